//! SenML: sensor measurements and actuator settings, in JSON and CBOR (RFC 8428).
//!
//! ```text
//!   [{"bn":"urn:dev:ow:10e2073a0108006:","bt":1276020076,"bu":"A","n":"voltage","u":"V","v":120.1},
//!    {"n":"current","t":-5,"v":1.2}]
//!     a record: base fields (b...) hold from here on, the others for this record
//! ```
//!
//! A pack is a list of [`Record`]s; [`resolve`] applies the base fields and checks the names. Units
//! are their symbols: what a unit means, and what a measurement is for, is the application's.

mod cbor;
mod json;
mod resolve;

use alloc::string::String;
use alloc::vec::Vec;

use crate::{DecodeError, Problem};

pub use cbor::{emit_cbor, parse_cbor};
pub use json::{emit_json, parse_json};
pub use resolve::{Measurement, resolve};

/// Most records of a pack; ours: twenty times what fits into a block-wise body of a constrained
/// device.
pub const RECORDS_MAX: usize = 4096;
/// The version of RFC 8428 s4.4, which a pack has that says none.
pub const VERSION: u32 = 10;

/// One record, as it is written (RFC 8428 s4.1 and s4.2).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Record {
    /// `bver`: the version of the pack.
    pub base_version: Option<u32>,
    /// `bn`: goes before names.
    pub base_name: Option<String>,
    /// `bt`: is added to times, seconds.
    pub base_time: Option<f64>,
    /// `bu`: the unit of records that have none.
    pub base_unit: Option<String>,
    /// `bv`: is added to numbers.
    pub base_value: Option<f64>,
    /// `bs`: is added to sums.
    pub base_sum: Option<f64>,
    /// `n`.
    pub name: Option<String>,
    /// `u`, a symbol of the registry of RFC 8428 s12.1.
    pub unit: Option<String>,
    /// `v`, `vs`, `vb` or `vd`.
    pub value: Option<Value>,
    /// `s`: the integral of the value over time.
    pub sum: Option<f64>,
    /// `t`, seconds: below 2^28 from now, else since 1970.
    pub time: Option<f64>,
    /// `ut`: within how many seconds the next update will come.
    pub update_time: Option<f64>,
}

/// The value of a record; at most one is allowed (RFC 8428 s4.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `v`, finite.
    Number(f64),
    /// `vs`.
    Text(String),
    /// `vb`.
    Boolean(bool),
    /// `vd`.
    Data(Vec<u8>),
}

impl Record {
    /// A record with a name and a number.
    pub fn number(name: &str, unit: &str, value: f64) -> Self {
        Self {
            name: Some(name.into()),
            unit: Some(unit.into()),
            value: Some(Value::Number(value)),
            ..Self::default()
        }
    }
    /// All its numbers with their labels.
    fn numbers(&self) -> [(&'static str, Option<f64>); 6] {
        let value = match self.value {
            Some(Value::Number(value)) => Some(value),
            _ => None,
        };
        [
            ("bt", self.base_time),
            ("bv", self.base_value),
            ("bs", self.base_sum),
            ("v", value),
            ("s", self.sum),
            ("t", self.time),
        ]
    }
    /// Takes one field in, whichever way it was written.
    fn set(&mut self, field: Field, value: Scalar) -> Result<(), Fault> {
        let label = field.label();
        let twice = match (field, value) {
            (Field::BaseVersion, Scalar::Number(number)) => {
                let version = number as u32;
                if f64::from(version).to_bits() != number.to_bits() {
                    return Err(Fault::Kind(label));
                }
                self.base_version.replace(version).is_some()
            }
            (Field::BaseName, Scalar::Text(text)) => self.base_name.replace(text).is_some(),
            (Field::BaseUnit, Scalar::Text(text)) => self.base_unit.replace(text).is_some(),
            (Field::Name, Scalar::Text(text)) => self.name.replace(text).is_some(),
            (Field::Unit, Scalar::Text(text)) => self.unit.replace(text).is_some(),
            (Field::BaseTime, Scalar::Number(one)) => self.base_time.replace(one).is_some(),
            (Field::BaseValue, Scalar::Number(one)) => self.base_value.replace(one).is_some(),
            (Field::BaseSum, Scalar::Number(one)) => self.base_sum.replace(one).is_some(),
            (Field::Sum, Scalar::Number(one)) => self.sum.replace(one).is_some(),
            (Field::Time, Scalar::Number(one)) => self.time.replace(one).is_some(),
            (Field::UpdateTime, Scalar::Number(one)) => self.update_time.replace(one).is_some(),
            (Field::Value, Scalar::Number(one)) => self.put(Value::Number(one))?,
            (Field::TextValue, Scalar::Text(text)) => self.put(Value::Text(text))?,
            (Field::BooleanValue, Scalar::Boolean(one)) => self.put(Value::Boolean(one))?,
            (Field::DataValue, Scalar::Data(data)) => self.put(Value::Data(data))?,
            _ => return Err(Fault::Kind(label)),
        };
        if twice { Err(Fault::Twice(label)) } else { Ok(()) }
    }
    fn put(&mut self, value: Value) -> Result<bool, Fault> {
        // RFC 8428 s4.2: there MUST NOT be more than one value field in a record.
        match self.value.replace(value) {
            Some(_) => Err(Fault::SeveralValues),
            None => Ok(false),
        }
    }
}

/// A field of a record: its label in JSON, and its number in CBOR (RFC 8428 tables 1 and 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    BaseVersion,
    BaseName,
    BaseTime,
    BaseUnit,
    BaseValue,
    BaseSum,
    Name,
    Unit,
    Value,
    TextValue,
    BooleanValue,
    Sum,
    Time,
    UpdateTime,
    DataValue,
}

impl Field {
    const ALL: [(Self, &'static str, i8); 15] = [
        (Self::BaseVersion, "bver", -1),
        (Self::BaseName, "bn", -2),
        (Self::BaseTime, "bt", -3),
        (Self::BaseUnit, "bu", -4),
        (Self::BaseValue, "bv", -5),
        (Self::BaseSum, "bs", -6),
        (Self::Name, "n", 0),
        (Self::Unit, "u", 1),
        (Self::Value, "v", 2),
        (Self::TextValue, "vs", 3),
        (Self::BooleanValue, "vb", 4),
        (Self::Sum, "s", 5),
        (Self::Time, "t", 6),
        (Self::UpdateTime, "ut", 7),
        (Self::DataValue, "vd", 8),
    ];

    fn from_label(label: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == label).map(|row| row.0)
    }
    fn from_number(number: i64) -> Option<Self> {
        Self::ALL.iter().find(|row| i64::from(row.2) == number).map(|row| row.0)
    }
    const fn label(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What a field can hold, before it is known whether it may hold it.
enum Scalar {
    Number(f64),
    Text(String),
    Boolean(bool),
    Data(Vec<u8>),
}

/// What is wrong with a pack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenmlError {
    /// It is not JSON or CBOR, or not a list of maps.
    #[error(transparent)]
    Syntax(#[from] DecodeError),
    /// More than [`RECORDS_MAX`] records.
    #[error("more than {RECORDS_MAX} records")]
    TooManyRecords,
    /// A record breaks a rule.
    #[error("record {record}: {fault}")]
    Record {
        /// Which, from 0.
        record: usize,
        /// What is wrong with it.
        fault: Fault,
    },
}

impl SenmlError {
    const fn at(record: usize) -> impl FnOnce(Fault) -> Self {
        move |fault| Self::Record { record, fault }
    }
    const fn syntax(field: &'static str, offset: usize, problem: Problem) -> Self {
        Self::Syntax(DecodeError { header: "SenML", field, offset, problem })
    }
}

/// The rules that a record can break.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The name, base name included, is empty or has a character that is not allowed.
    #[error("the name {0:?} is empty or has characters other than A-Z a-z 0-9 - : . / _")]
    Name(String),
    /// A version that is not known here, or not the one of earlier records.
    #[error("version {0} is unknown, or differs from that of earlier records")]
    Version(u32),
    /// A field that is not known here and must be.
    #[error("field {0:?} must be understood, but is unknown")]
    MustUnderstand(String),
    /// More than one of `v`, `vs`, `vb` and `vd`.
    #[error("more than one value")]
    SeveralValues,
    /// Neither a value nor a sum.
    #[error("neither a value nor a sum")]
    NoValue,
    /// A field of another kind than its own.
    #[error("field {0:?} has a value of the wrong type")]
    Kind(&'static str),
    /// A field that occurs twice.
    #[error("field {0:?} occurs twice")]
    Twice(&'static str),
    /// A number that is infinite or none.
    #[error("field {0:?} is not a finite number")]
    NotFinite(&'static str),
    /// A base field and its field whose sum is infinite.
    #[error("the sum of {0:?} and {1:?} is not a finite number")]
    TooLarge(&'static str, &'static str),
}

/// What both writers ask of a pack: every number finite, and not too many records.
fn writable(records: &[Record]) -> Result<(), SenmlError> {
    if records.len() > RECORDS_MAX {
        return Err(SenmlError::TooManyRecords);
    }
    for (record, one) in records.iter().enumerate() {
        let mut numbers = one.numbers().into_iter().chain([("ut", one.update_time)]);
        let broken = numbers.find(|(_, number)| number.is_some_and(|value| !value.is_finite()));
        if let Some((label, _)) = broken {
            return Err(SenmlError::Record { record, fault: Fault::NotFinite(label) });
        }
    }
    Ok(())
}

/// The fields of a record in the order of table 6, each with its value.
fn fields(record: &Record) -> impl Iterator<Item = (Field, Entry<'_>)> {
    let number = |number: Option<f64>| number.map(Entry::Number);
    let value = record.value.as_ref().map(|value| match value {
        Value::Number(one) => (Field::Value, Entry::Number(*one)),
        Value::Text(one) => (Field::TextValue, Entry::Text(one)),
        Value::Boolean(one) => (Field::BooleanValue, Entry::Boolean(*one)),
        Value::Data(one) => (Field::DataValue, Entry::Data(one)),
    });
    let base = [
        (Field::BaseVersion, record.base_version.map(|one| Entry::Number(f64::from(one)))),
        (Field::BaseName, record.base_name.as_deref().map(Entry::Text)),
        (Field::BaseTime, number(record.base_time)),
        (Field::BaseUnit, record.base_unit.as_deref().map(Entry::Text)),
        (Field::BaseValue, number(record.base_value)),
        (Field::BaseSum, number(record.base_sum)),
        (Field::Name, record.name.as_deref().map(Entry::Text)),
        (Field::Unit, record.unit.as_deref().map(Entry::Text)),
    ];
    let rest = [
        (Field::Sum, number(record.sum)),
        (Field::Time, number(record.time)),
        (Field::UpdateTime, number(record.update_time)),
    ];
    let base = base.into_iter().filter_map(present);
    base.chain(value).chain(rest.into_iter().filter_map(present))
}

fn present((field, entry): (Field, Option<Entry<'_>>)) -> Option<(Field, Entry<'_>)> {
    Some((field, entry?))
}

/// A value on its way out.
enum Entry<'a> {
    Number(f64),
    Text(&'a str),
    Boolean(bool),
    Data(&'a [u8]),
}

#[cfg(test)]
mod tests;
