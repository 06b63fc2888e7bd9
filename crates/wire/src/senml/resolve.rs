//! From records to measurements that stand alone (RFC 8428 s4.6).

use alloc::string::String;
use alloc::vec::Vec;

use super::{Fault, Record, SenmlError, VERSION, Value};

/// Times below are seconds from now, others since 1970: RFC 8428 s4.5.3, 2^28 s.
const RELATIVE_BELOW: f64 = 268_435_456.0;

/// A record with all base fields applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The whole name.
    pub name: String,
    /// The unit's symbol, its own or that of the base.
    pub unit: Option<String>,
    /// The value; `None` if only the sum is known.
    pub value: Option<Value>,
    /// The integral of the value over time.
    pub sum: Option<f64>,
    /// Seconds since 1970.
    pub time: f64,
    /// Within how many seconds the next update will come.
    pub update_time: Option<f64>,
}

/// Base fields as they stand after some records.
#[derive(Default)]
struct Base<'a> {
    version: Option<u32>,
    name: &'a str,
    time: f64,
    unit: Option<&'a str>,
    value: Option<f64>,
    sum: Option<f64>,
}

/// Applies the base fields of a pack; what comes out is in the order of its times. `now` is in
/// seconds since 1970 and stands in for times that are relative.
///
/// ```
/// use lowmesh_wire::senml::{parse_json, resolve};
/// let pack = parse_json(br#"[{"bn":"lamp/","n":"red","vb":true},{"n":"dim","t":-60,"v":0.5}]"#)?;
/// let all = resolve(&pack, 1_800_000_000.0)?;
/// assert_eq!((&all[0].name[..], all[0].time), ("lamp/dim", 1_799_999_940.0));
/// # Ok::<(), lowmesh_wire::senml::SenmlError>(())
/// ```
pub fn resolve(records: &[Record], now: f64) -> Result<Vec<Measurement>, SenmlError> {
    let mut base = Base::default();
    let mut resolved = Vec::with_capacity(records.len());
    for (place, record) in records.iter().enumerate() {
        base.take(record).map_err(SenmlError::at(place))?;
        resolved.push(base.apply(record, now).map_err(SenmlError::at(place))?);
    }
    // RFC 8428 s4.6: resolved records are in chronological order.
    resolved.sort_by(|a, b| a.time.total_cmp(&b.time));
    Ok(resolved)
}

impl<'a> Base<'a> {
    fn take(&mut self, record: &'a Record) -> Result<(), Fault> {
        if let Some(version) = record.base_version {
            // RFC 8428 s4.4: a version that is not supported is refused, and all must be the same.
            let known = (1..=VERSION).contains(&version);
            if !known || self.version.is_some_and(|earlier| earlier != version) {
                return Err(Fault::Version(version));
            }
            self.version = Some(version);
        }
        self.name = record.base_name.as_deref().unwrap_or(self.name);
        self.time = record.base_time.unwrap_or(self.time);
        self.unit = record.base_unit.as_deref().or(self.unit);
        self.value = record.base_value.or(self.value);
        self.sum = record.base_sum.or(self.sum);
        Ok(())
    }
    fn apply(&self, record: &Record, now: f64) -> Result<Measurement, Fault> {
        let mut name = String::from(self.name);
        name.push_str(record.name.as_deref().unwrap_or(""));
        if !is_name(&name) {
            return Err(Fault::Name(name));
        }
        let time = sum_of("bt", self.time, "t", record.time.unwrap_or(0.0))?;
        // RFC 8428 s4.5.2: of a base and its field the one that is missing counts as zero.
        let value = match (&record.value, self.value) {
            (Some(Value::Number(number)), base) => {
                Some(Value::Number(sum_of("bv", base.unwrap_or(0.0), "v", *number)?))
            }
            (None, Some(base)) if record.sum.is_none() => Some(Value::Number(base)),
            (value, _) => value.clone(),
        };
        let sum = match (record.sum, self.sum) {
            (None, None) => None,
            (sum, base) => Some(sum_of("bs", base.unwrap_or(0.0), "s", sum.unwrap_or(0.0))?),
        };
        if value.is_none() && sum.is_none() {
            return Err(Fault::NoValue);
        }
        let unit = record.unit.as_deref().or(self.unit).map(String::from);
        let time = if time < RELATIVE_BELOW { now + time } else { time };
        Ok(Measurement { name, unit, value, sum, time, update_time: record.update_time })
    }
}

/// A field with its base. Both are finite, but their sum may lie beyond the largest number of binary64.
fn sum_of(
    base: &'static str,
    base_value: f64,
    field: &'static str,
    value: f64,
) -> Result<f64, Fault> {
    let sum = base_value + value;
    if sum.is_finite() { Ok(sum) } else { Err(Fault::TooLarge(base, field)) }
}

/// RFC 8428 s4.5.1: at least one character, only these, and a letter or digit first.
fn is_name(name: &str) -> bool {
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-:./_".contains(&octet);
    name.bytes().all(allowed) && name.bytes().next().is_some_and(|one| one.is_ascii_alphanumeric())
}
