//! Parameters of algorithms and their values.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use lowmesh_units::Duration;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A number, possibly with decimals.
    Number(f64),
    /// A time span.
    Time(Duration),
    /// One of several names.
    Name(&'static str),
    /// The path of a file.
    File(String),
    /// A square of shares: one row for each sender, one column for each receiver.
    Matrix(Vec<Vec<f64>>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::File(path) => path.fmt(f),
            Self::Matrix(rows) => fmt::Debug::fmt(rows, f),
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
values!(bool => Flag, u64 => Whole, f64 => Number, Duration => Time, &'static str => Name, String => File, Vec<Vec<f64>> => Matrix);

/// The values that a parameter takes, and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Yes or no.
    Flag(bool),
    /// Whole numbers.
    Whole(Bounded<u64>),
    /// Numbers.
    Number(Bounded<f64>),
    /// Time spans.
    Time(Bounded<Duration>),
    /// These names, of which the first is the default.
    Name(&'static [&'static str]),
    /// Paths of files; there is no default.
    File,
    /// Squares of shares from 0 to 1; there is no default.
    Matrix,
}

/// A default, and the smallest and the largest allowed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The value if a user does not replace it.
    pub default: T,
    /// The smallest allowed value.
    pub low: T,
    /// The largest allowed value.
    pub high: T,
}

impl<T: PartialOrd> Bounded<T> {
    fn admits(&self, value: &T) -> bool {
        // A number that is none compares as outside.
        self.low <= *value && *value <= self.high
    }
}

/// A value of an algorithm that a user can replace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in scenario files.
    pub key: &'static str,
    /// The values that it takes, with the default.
    pub domain: Domain,
    /// The unit of its number, as "dBm" or "slots"; empty for a number without one, and for what is no number.
    pub unit: &'static str,
    /// What it does, one line without a full stop.
    pub summary: &'static str,
    /// Where its default is from, as "RFC 9033 s14"; "ours" for a number of this project.
    pub source: &'static str,
    /// Its relation to another parameter.
    pub order: Order,
    /// Where to search for good values.
    pub search: Option<Search>,
    /// The contents of a small file that it takes; empty if it takes no file.
    pub example: &'static str,
}

/// The relation of a parameter to another one of the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// None.
    Free,
    /// It does not exceed the parameter of this key.
    NotAbove(&'static str),
    /// It is less than the parameter of this key.
    Below(&'static str),
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

/// The ratio of bounds from which on candidates are spread evenly in the logarithm: two orders of magnitude.
const WIDE: f64 = 100.0;

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
    const fn new(key: &'static str, domain: Domain, summary: &'static str) -> Self {
        let (unit, source, example) = ("", "", "");
        Self { key, domain, unit, summary, source, order: Order::Free, search: None, example }
    }
    /// Yes or no.
    pub const fn flag(key: &'static str, default: bool, summary: &'static str) -> Self {
        Self::new(key, Domain::Flag(default), summary)
    }
    /// A number from `low` to `high`.
    pub const fn number(
        key: &'static str,
        default: f64,
        low: f64,
        high: f64,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Domain::Number(Bounded { default, low, high }), summary)
    }
    /// A whole number from `low` to `high`.
    pub const fn whole(
        key: &'static str,
        default: u64,
        low: u64,
        high: u64,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Domain::Whole(Bounded { default, low, high }), summary)
    }
    /// A time span from `low` to `high`.
    pub const fn time(
        key: &'static str,
        default: Duration,
        low: Duration,
        high: Duration,
        summary: &'static str,
    ) -> Self {
        Self::new(key, Domain::Time(Bounded { default, low, high }), summary)
    }
    /// One of `names`, of which the first is the default.
    pub const fn name(
        key: &'static str,
        names: &'static [&'static str],
        summary: &'static str,
    ) -> Self {
        Self::new(key, Domain::Name(names), summary)
    }
    /// The path of a file, which the user must give; `example` is the contents of a small one.
    pub const fn file(key: &'static str, example: &'static str, summary: &'static str) -> Self {
        Self { example, ..Self::new(key, Domain::File, summary) }
    }
    /// A square of shares, which the user must give.
    pub const fn matrix(key: &'static str, summary: &'static str) -> Self {
        Self::new(key, Domain::Matrix, summary)
    }
    /// The same with a unit.
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }
    /// The same with the source of its default.
    pub const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
    /// The same, not above the parameter called `key`.
    pub const fn not_above(self, key: &'static str) -> Self {
        Self { order: Order::NotAbove(key), ..self }
    }
    /// The same, below the parameter called `key`.
    pub const fn below(self, key: &'static str) -> Self {
        Self { order: Order::Below(key), ..self }
    }
    /// The same with a range of search.
    pub const fn search(self, search: Search) -> Self {
        Self { search: Some(search), ..self }
    }
    /// Its value if a user does not replace it; `None` where the user must give one.
    pub fn default(&self) -> Option<Value> {
        Some(match self.domain {
            Domain::Flag(flag) => Value::Flag(flag),
            Domain::Whole(whole) => Value::Whole(whole.default),
            Domain::Number(number) => Value::Number(number.default),
            Domain::Time(time) => Value::Time(time.default),
            Domain::Name(names) => Value::Name(names.first()?),
            Domain::File | Domain::Matrix => return None,
        })
    }
    /// Whether `value` has its type and is within its bounds.
    pub fn admits(&self, value: &Value) -> bool {
        match (self.domain, value) {
            (Domain::Flag(_), Value::Flag(_)) => true,
            (Domain::Whole(whole), Value::Whole(value)) => whole.admits(value),
            (Domain::Number(number), Value::Number(value)) => number.admits(value),
            (Domain::Time(time), Value::Time(value)) => time.admits(value),
            (Domain::Name(names), Value::Name(name)) => names.contains(name),
            (Domain::File, Value::File(path)) => !path.is_empty(),
            (Domain::Matrix, Value::Matrix(rows)) => is_square_of_shares(rows),
            _ => false,
        }
    }
    /// Its value of this size, in seconds if it is a time; a flag is yes from one half on, and a name is the one at this
    /// index. `None` where a size means nothing.
    pub fn value_at(&self, size: f64) -> Option<Value> {
        Some(match self.domain {
            Domain::Flag(_) => Value::Flag(size >= 0.5),
            Domain::Whole(_) => Value::Whole(size as u64),
            Domain::Number(_) => Value::Number(size),
            Domain::Time(_) => Value::Time(Duration::from_secs_f64(size)),
            Domain::Name(names) => Value::Name(names.get(size as usize).or(names.last())?),
            Domain::File | Domain::Matrix => return None,
        })
    }
    /// Where to search for good values: the range of search, else all that is allowed. `None` for files and matrices.
    pub fn range(&self) -> Option<Search> {
        let (low, high) = match self.domain {
            _ if self.search.is_some() => return self.search,
            Domain::Flag(_) => (0.0, 1.0),
            Domain::Whole(Bounded { low, high, .. }) => (low as f64, high as f64),
            Domain::Number(Bounded { low, high, .. }) => (low, high),
            Domain::Time(Bounded { low, high, .. }) => (low.as_secs_f64(), high.as_secs_f64()),
            Domain::Name(names) => (0.0, names.len() as f64),
            Domain::File | Domain::Matrix => return None,
        };
        let why = "All that the parameter allows.";
        // Between orders of magnitude, an even spread would try large values only.
        let is_wide = low > 0.0 && high / low >= WIDE;
        Some(if is_wide {
            Search::logarithmic(low, high, why)
        } else {
            Search::linear(low, high, why)
        })
    }
    /// Whether there is no range of search, or one of values that are allowed.
    pub fn is_searched_within_bounds(&self) -> bool {
        let is_allowed = |size| self.value_at(size).is_some_and(|value| self.admits(&value));
        self.search.is_none_or(|Search { low, high, .. }| {
            low < high && is_allowed(low) && is_allowed(high)
        })
    }
    /// Its bounds in words with the unit, as "0 to 16 slots".
    pub fn allowed(&self) -> String {
        let (low, high): (&dyn fmt::Display, &dyn fmt::Display) = match &self.domain {
            Domain::Flag(_) => return "true or false".to_string(),
            Domain::Whole(Bounded { low, high, .. }) => (low, high),
            Domain::Number(Bounded { low, high, .. }) => (low, high),
            Domain::Time(Bounded { low, high, .. }) => (low, high),
            Domain::Name(names) => return format!("one of {}", names.join(", ")),
            Domain::File => return "the path of a file".to_string(),
            Domain::Matrix => {
                return "numbers from 0 to 1, as many in each row as there are rows".to_string();
            }
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{low} to {high}{unit}")
    }
}

fn is_square_of_shares(rows: &[Vec<f64>]) -> bool {
    let shares = |row: &Vec<f64>| row.iter().all(|share| (0.0..=1.0).contains(share));
    !rows.is_empty() && rows.iter().all(|row| row.len() == rows.len() && shares(row))
}
