//! Names that no row has, and values that no parameter takes.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::similar::similar;

/// A name that no row of a registry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What the rows are, as "congestion control".
    pub noun: &'static str,
    /// The name.
    pub name: String,
    /// The names of the rows.
    pub known: Vec<&'static str>,
}

/// A rule that an implementation breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// What its rows are, as "congestion control".
    pub noun: &'static str,
    /// The name of its row, possibly with values of parameters.
    pub row: String,
    /// What it does against the rule.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, row, what } = self;
        write!(f, "{noun} {row}: {what}")
    }
}
impl core::error::Error for Breach {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, name, known } = self;
        write!(f, "no {noun} is called `{name}`")?;
        write_similar(f, name, known)?;
        write!(f, "; there are {}", known.join(", "))
    }
}
impl core::error::Error for Unknown {}

/// The known name that is nearest to `wrong`, if one is near.
fn write_similar(f: &mut fmt::Formatter<'_>, wrong: &str, known: &[&str]) -> fmt::Result {
    similar(wrong, known.iter().copied())
        .map_or(Ok(()), |name| write!(f, " (did you mean `{name}`?)"))
}

/// A value that a choice does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// The row has no such parameter.
    NoSuchKey {
        /// The name of the row.
        row: &'static str,
        /// The key.
        key: String,
        /// The keys that the row has.
        known: Vec<&'static str>,
    },
    /// The value has another type or is out of bounds.
    OutOfBounds {
        /// The parameter.
        key: &'static str,
        /// The value.
        value: String,
        /// The bounds in words.
        allowed: String,
    },
    /// The user must give a value, and has not.
    Missing {
        /// The parameter.
        key: &'static str,
        /// The bounds in words.
        allowed: String,
    },
    /// The value is not in order with that of another parameter.
    Order {
        /// The parameter.
        key: &'static str,
        /// Its value.
        value: String,
        /// Whether it must be below the other one, not only not above.
        is_strict: bool,
        /// The other parameter.
        other: &'static str,
        /// The value of that one.
        most: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchKey { row, key, known } if known.is_empty() => {
                write!(f, "`{row}` has no parameter `{key}`, and no other one")
            }
            Self::NoSuchKey { row, key, known } => {
                write!(f, "`{row}` has no parameter `{key}`")?;
                write_similar(f, key, known)?;
                write!(f, "; it has {}", known.join(", "))
            }
            Self::OutOfBounds { key, value, allowed } => {
                write!(f, "{key} = {value} is out of bounds: {allowed}")
            }
            Self::Missing { key, allowed } => write!(f, "{key} is missing: it must be {allowed}"),
            Self::Order { key, value, is_strict, other, most } => {
                let relation = if *is_strict { "not below" } else { "above" };
                write!(f, "{key} = {value} is {relation} {other} = {most}")
            }
        }
    }
}
impl core::error::Error for ParameterError {}
