//! Kinds of rows without their types, for what lists all of them: help, completion, the manual, the catalogue of keys.

use alloc::vec::Vec;

use crate::parameter::Parameter;
use crate::registry::Registry;
use crate::row::{Algorithm, Row};

/// The rows of one registry.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What an implementation is called in messages, as "congestion control".
    pub noun: &'static str,
    /// The dotted scenario key that names an implementation.
    pub key: &'static str,
    /// Its rows in order; the first is the default.
    pub rows: Vec<Declaration>,
}

/// A row without its constructor.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in scenario files and flags.
    pub name: &'static str,
    /// What it is and where it is from, one line without a full stop.
    pub summary: &'static str,
    /// The scenario's section with its parameters; empty without parameters.
    pub section: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

impl Kind {
    /// The section and the key in it that name an implementation.
    ///
    /// # Panics
    ///
    /// If the key is not dotted.
    pub fn chooser(&self) -> (&'static str, &'static str) {
        self.key.rsplit_once('.').expect("a key that names a row is in a section")
    }
    /// The rows whose parameters are beside the key that names the row.
    pub fn beside(&self) -> impl Iterator<Item = Declaration> {
        let (section, _) = self.chooser();
        self.rows.iter().copied().filter(move |row| row.section == section)
    }
    /// The rows whose parameters are in sections of their own.
    pub fn apart(&self) -> impl Iterator<Item = Declaration> {
        let (section, _) = self.chooser();
        let is_apart =
            move |row: &Declaration| !row.parameters.is_empty() && row.section != section;
        self.rows.iter().copied().filter(is_apart)
    }
    /// The row called `name`.
    pub fn row(&self, name: &str) -> Option<Declaration> {
        self.rows.iter().copied().find(|row| row.name == name)
    }
}

impl<A: Algorithm + ?Sized> Row<A> {
    /// What it declares, without its constructor.
    pub const fn declaration(&self) -> Declaration {
        let Self { name, summary, section, parameters, .. } = *self;
        Declaration { name, summary, section, parameters }
    }
}

impl<A: Algorithm + ?Sized> Registry<A> {
    /// Its rows without their types.
    pub fn kind(&self) -> Kind {
        let rows = self.rows().map(Row::declaration).collect();
        Kind { noun: A::NOUN, key: A::KEY, rows }
    }
}
