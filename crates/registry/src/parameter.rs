//! Parameters of algorithms and their values.

use alloc::format;
use alloc::string::String;
use core::fmt;

use lowmesh_units::Duration;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A number, possibly with decimals.
    Number(f64),
    /// A time span.
    Time(Duration),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

macro_rules! values {
    ($($type:ty => $variant:ident),*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}
values!(bool => Flag, u64 => Whole, f64 => Number, Duration => Time);

/// A number of an algorithm that a user can replace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in scenario files.
    pub key: &'static str,
    /// Its value if a user does not replace it.
    pub default: Value,
    /// The smallest and the largest allowed value.
    pub bounds: (Value, Value),
    /// What it does and where its default is from, one line without a full stop.
    pub summary: &'static str,
    /// Its relation to another parameter.
    pub order: Order,
    /// Where to search for good values.
    pub search: Option<Search>,
}

/// The relation of a parameter to another one of the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// None.
    Free,
    /// It does not exceed the parameter of this key.
    NotAbove(&'static str),
}

/// A range of values to search, within the bounds of the parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The smallest candidate; of a time, in seconds.
    pub low: f64,
    /// The largest candidate; of a time, in seconds.
    pub high: f64,
    /// How candidates are spread.
    pub scale: Scale,
    /// Why the range ends there, a sentence.
    pub why: &'static str,
}

/// How candidates are spread over a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly in the logarithm: from 1 to 2 is as far as from 20 to 40.
    Logarithmic,
}

impl Search {
    /// Evenly spread candidates.
    pub const fn linear(low: f64, high: f64, why: &'static str) -> Self {
        Self { low, high, scale: Scale::Linear, why }
    }
    /// Candidates that are evenly spread in the logarithm; `low` is above zero.
    pub const fn logarithmic(low: f64, high: f64, why: &'static str) -> Self {
        Self { low, high, scale: Scale::Logarithmic, why }
    }
}

impl Parameter {
    const fn new(
        key: &'static str,
        default: Value,
        bounds: (Value, Value),
        summary: &'static str,
    ) -> Self {
        Self { key, default, bounds, summary, order: Order::Free, search: None }
    }
    /// A number from `low` to `high`.
    pub const fn number(
        key: &'static str,
        default: f64,
        low: f64,
        high: f64,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Value::Number(default), (Value::Number(low), Value::Number(high)), summary)
    }
    /// A whole number from `low` to `high`.
    pub const fn whole(
        key: &'static str,
        default: u64,
        low: u64,
        high: u64,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Value::Whole(default), (Value::Whole(low), Value::Whole(high)), summary)
    }
    /// A time span from `low` to `high`.
    pub const fn time(
        key: &'static str,
        default: Duration,
        low: Duration,
        high: Duration,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Value::Time(default), (Value::Time(low), Value::Time(high)), summary)
    }
    /// The same, not above the parameter called `key`.
    pub const fn not_above(self, key: &'static str) -> Self {
        Self { order: Order::NotAbove(key), ..self }
    }
    /// The same with a range of search.
    pub const fn search(self, search: Search) -> Self {
        Self { search: Some(search), ..self }
    }
    /// Whether `value` has its type and is within its bounds.
    pub fn admits(&self, value: Value) -> bool {
        let (low, high) = self.bounds;
        // Values of different types, and a number that is none, compare as outside.
        core::mem::discriminant(&low) == core::mem::discriminant(&value)
            && low <= value
            && value <= high
    }
    /// Its value of this size, in seconds if it is a time; a flag is yes from one half on.
    pub fn value_at(&self, size: f64) -> Value {
        match self.default {
            Value::Flag(_) => Value::Flag(size >= 0.5),
            Value::Whole(_) => Value::Whole(size as u64),
            Value::Number(_) => Value::Number(size),
            Value::Time(_) => Value::Time(Duration::from_secs_f64(size)),
        }
    }
    /// Whether there is no range of search, or one of values that are allowed.
    pub fn is_searched_within_bounds(&self) -> bool {
        self.search.is_none_or(|Search { low, high, .. }| {
            low < high && self.admits(self.value_at(low)) && self.admits(self.value_at(high))
        })
    }
    /// Its bounds in words, as "0 to 16".
    pub fn allowed(&self) -> String {
        let (low, high) = self.bounds;
        format!("{low} to {high}")
    }
}
