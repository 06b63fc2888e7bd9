//! SenML in JSON (RFC 8428 s5).

use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Number, Value as Json};

use super::{Entry, Fault, Field, RECORDS_MAX, Record, Scalar, SenmlError, fields, writable};
use crate::Problem;

/// Whole numbers up to here are written without a fraction: all of them are exact in 64 bits.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads a pack.
///
/// ```
/// use lowmesh_wire::senml::{Value, parse_json};
/// let pack = parse_json(br#"[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","v":23.1}]"#)?;
/// assert_eq!(pack[0].value, Some(Value::Number(23.1)));
/// # Ok::<(), lowmesh_wire::senml::SenmlError>(())
/// ```
pub fn parse_json(bytes: &[u8]) -> Result<alloc::vec::Vec<Record>, SenmlError> {
    let document: Json = serde_json::from_slice(bytes).map_err(|error| {
        let offset = offset(bytes, error.line(), error.column());
        let problem = if error.is_eof() { Problem::Truncated } else { Problem::Value };
        SenmlError::syntax("JSON", offset, problem)
    })?;
    let Json::Array(maps) = document else {
        return Err(SenmlError::syntax("pack", 0, Problem::Value));
    };
    if maps.len() > RECORDS_MAX {
        return Err(SenmlError::TooManyRecords);
    }
    let records = maps.into_iter().enumerate();
    records.map(|(place, map)| record(map).map_err(SenmlError::at(place))).collect()
}

/// What serde_json calls line and column (both from 1), as an octet's number.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let start = bytes.split_inclusive(|octet| *octet == b'\n').take(line.saturating_sub(1));
    (start.map(<[u8]>::len).sum::<usize>() + column.saturating_sub(1)).min(bytes.len())
}

fn record(map: Json) -> Result<Record, Fault> {
    let Json::Object(map) = map else { return Err(Fault::Kind("record")) };
    let mut record = Record::default();
    for (label, value) in map {
        match Field::from_label(&label) {
            Some(field) => record.set(field, scalar(field, value)?)?,
            // RFC 8428 s4.4: a field whose label ends with `_` MUST be understood or refused.
            None if label.ends_with('_') => return Err(Fault::MustUnderstand(label)),
            None => {}
        }
    }
    Ok(record)
}

fn scalar(field: Field, value: Json) -> Result<Scalar, Fault> {
    let scalar = match value {
        Json::Bool(one) => Some(Scalar::Boolean(one)),
        Json::Number(one) => one.as_f64().map(Scalar::Number),
        // RFC 8428 s5: base64url; s4.2 says without padding.
        Json::String(text) if field == Field::DataValue => {
            URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok().map(Scalar::Data)
        }
        Json::String(text) => Some(Scalar::Text(text)),
        _ => None,
    };
    scalar.ok_or(Fault::Kind(field.label()))
}

/// Writes a pack.
pub fn emit_json(records: &[Record]) -> Result<String, SenmlError> {
    writable(records)?;
    let mut out = String::from("[");
    for (place, record) in records.iter().enumerate() {
        out.push_str(if place > 0 { ",{" } else { "{" });
        for (place, (field, entry)) in fields(record).enumerate() {
            out.push_str(if place > 0 { ",\"" } else { "\"" });
            out.push_str(field.label());
            out.push_str("\":");
            out.push_str(&json(&entry));
        }
        out.push('}');
    }
    out.push(']');
    Ok(out)
}

fn json(entry: &Entry<'_>) -> String {
    let value = match entry {
        Entry::Number(one) if is_whole(*one) => Json::from(*one as i64),
        Entry::Number(one) => Json::from(Number::from_f64(*one).expect("writable has looked")),
        Entry::Text(one) => Json::from(*one),
        Entry::Boolean(one) => Json::from(*one),
        Entry::Data(one) => Json::from(URL_SAFE_NO_PAD.encode(one)),
    };
    serde_json::to_string(&value).expect("a scalar has a text")
}

/// Negative zero is not: its sign would be lost.
fn is_whole(number: f64) -> bool {
    number.abs() <= EXACT_MAX && ((number as i64) as f64).to_bits() == number.to_bits()
}
