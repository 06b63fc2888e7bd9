//! Rows: the declarations of algorithms.

use alloc::string::{String, ToString};
use core::fmt;

use crate::error::Breach;
use crate::parameter::Parameter;

/// A trait of which users choose an implementation.
pub trait Algorithm: 'static {
    /// What an implementation is called in messages, as "congestion control".
    const NOUN: &'static str;
    /// The dotted scenario key that names an implementation, as "coap.congestion".
    const KEY: &'static str;
    /// The implementations of its own crate; the first is the default.
    const BUILTIN: &'static [&'static Row<Self>];
    /// How an implementation is made, usually a function of a [`Choice`](crate::Choice) and what the caller provides.
    type Make: Copy + Send + Sync;
    /// Runs the suite that every implementation passes: the declaration of the row ([`Row::check`]), and the rules of the
    /// trait.
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach>;
}

/// One implementation of an algorithm. Two rows with the same name are equal.
pub struct Row<A: Algorithm + ?Sized> {
    /// Its name in scenario files and flags.
    pub name: &'static str,
    /// What it is and where it is from, one line without a full stop.
    pub summary: &'static str,
    /// The scenario's section with its parameters; empty without parameters. Rows have the same keys if they share a
    /// section that is not the one of [`Algorithm::KEY`].
    pub section: &'static str,
    /// Its parameters, in the order in which a scenario lists them.
    pub parameters: &'static [Parameter],
    /// Its constructor.
    pub make: A::Make,
}

impl<A: Algorithm + ?Sized> Row<A> {
    /// A row without parameters.
    pub const fn plain(name: &'static str, summary: &'static str, make: A::Make) -> Self {
        Self { name, summary, section: "", parameters: &[], make }
    }
    /// A rule that this row breaks.
    pub fn breach(&self, what: impl Into<String>) -> Breach {
        Breach { noun: A::NOUN, row: self.name.to_string(), what: what.into() }
    }
    /// The index and the declaration of the parameter called `key`.
    pub fn parameter(&self, key: &str) -> Option<(usize, &'static Parameter)> {
        self.parameters.iter().enumerate().find(|(_, parameter)| parameter.key == key)
    }
}

impl<A: Algorithm + ?Sized> PartialEq for Row<A> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl<A: Algorithm + ?Sized> Eq for Row<A> {}

impl<A: Algorithm + ?Sized> fmt::Debug for Row<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
