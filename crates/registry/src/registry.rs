//! The registry that holds the rows of a program.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::choice::Choice;
use crate::error::{Breach, Unknown};
use crate::row::{Algorithm, Row};

/// The implementations of an algorithm that a program knows.
pub struct Registry<A: Algorithm + ?Sized> {
    rows: Vec<&'static Row<A>>,
}

impl<A: Algorithm + ?Sized> Clone for Registry<A> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone() }
    }
}

impl<A: Algorithm + ?Sized> fmt::Debug for Registry<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.rows).finish()
    }
}

impl<A: Algorithm + ?Sized> Registry<A> {
    /// The implementations of the algorithm's own crate.
    pub fn builtin() -> Self {
        Self { rows: A::BUILTIN.to_vec() }
    }
    /// The same with one more row, which replaces a row of the same name.
    pub fn with(mut self, row: &'static Row<A>) -> Self {
        match self.rows.iter_mut().find(|known| **known == row) {
            Some(known) => *known = row,
            None => self.rows.push(row),
        }
        self
    }
    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row<A>> {
        self.rows.iter().copied()
    }
    /// The names of its rows.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rows().map(|row| row.name)
    }
    /// The row called `name`.
    pub fn row(&self, name: &str) -> Result<&'static Row<A>, Unknown> {
        self.rows().find(|row| row.name == name).ok_or_else(|| Unknown {
            noun: A::NOUN,
            name: name.to_string(),
            known: self.names().collect(),
        })
    }
    /// What its rows break of the rules of their trait; a test of each crate with rows calls it.
    pub fn breaches(&self) -> Vec<Breach> {
        self.rows().filter_map(|row| A::conformance(row).err()).collect()
    }
    /// The row called `name` with its defaults.
    pub fn choose(&self, name: &str) -> Result<Choice<A>, Unknown> {
        self.row(name).map(Choice::from)
    }
}
