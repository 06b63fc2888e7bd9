//! Collector: makes one response of the outcomes of all members (S002 s2.3.1, `enr` and `eo`).
//!
//! | operation | text | SenML |
//! |---|---|---|
//! | lst | a line a reading: name, value, unit | the readings |
//! | avg, min, max | the number, or a line for each quantity | a record `e/NAME/avg`, or `e/NAME/avg/QUANTITY` for each quantity, and a record `NAME/code` for each member in it |
//! | any | a line a failure: name, `!`, code, reason | records `NAME/code` and `NAME/reason` |
//!
//! In text a single number stands alone, so that programs can read it; who failed is then in SenML only.
//!
//! Numbers are combined by quantity. A member with several values names the quantity of each, as a SenML pack does; if every
//! member has one value, all are of one quantity, whatever their names. A member with another unit than most members have
//! for a quantity counts as failed. Of several values of one sensor the latest counts, so no member weighs more.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt::Write as _;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::EntityTag;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};
use lowmesh_wire::senml::{RECORDS_MAX, Record, Value, emit_cbor, emit_json};

use crate::outcome::{Answer, Reading, Reason};
use crate::profile::Operation;
use crate::refusal::Refusal;

/// The outcome of one member, with its label.
pub type Outcome = (String, Result<Answer, Reason>);

/// The readings of one quantity, by unit.
#[derive(Debug, Default)]
struct Votes {
    /// How many have each unit, and the place among units at which it comes.
    units: BTreeMap<String, (usize, Reverse<usize>)>,
}

impl Votes {
    fn add(&mut self, unit: &str) {
        if let Some((count, _)) = self.units.get_mut(unit) {
            *count += 1;
        } else {
            let place = Reverse(self.units.len());
            self.units.insert(unit.to_owned(), (1, place));
        }
    }
    /// The unit that most have; of equal counts the one that comes first.
    fn most(&self) -> Option<&str> {
        self.units.iter().max_by_key(|(_, rank)| **rank).map(|(unit, _)| unit.as_str())
    }
}

/// Formats of results; the first is the default.
pub const FORMATS: [ContentFormat; 3] =
    [ContentFormat::TEXT_PLAIN, ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR];

/// Everything that a query specifies about its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name of the entity.
    pub name: String,
    /// What the result calls it: `e/NAME`, or the name that an entity above gives it.
    pub label: String,
    /// The operation.
    pub operation: Operation,
    /// Answers that must have come; at least one.
    pub replies: usize,
    /// Whether members were written to: then each code counts, and no values.
    pub writes: bool,
}

/// Turns outcomes into the reading that a parent entity uses, or into the reason why there is none.
pub fn collect(question: &Question, outcomes: Vec<Outcome>) -> Result<Answer, Refusal> {
    let asked = outcomes.len();
    let is_combined = !question.writes && question.operation != Operation::List;
    let mut outcomes: Vec<Outcome> = outcomes
        .into_iter()
        .map(|(label, outcome)| (label, outcome.and_then(|answer| usable(question, answer))))
        .collect();
    let quantities = if is_combined { agree(&mut outcomes) } else { Vec::new() };
    let (mut readings, mut failures, mut count) = (Vec::new(), Vec::new(), 0);
    let (mut max_age_s, mut codes) = (u32::MAX, Vec::new());
    for (label, outcome) in outcomes {
        match outcome {
            Ok(answer) => {
                count += 1;
                max_age_s = max_age_s.min(answer.max_age_s);
                codes.push((label, answer.code));
                readings.extend(answer.readings);
                failures.extend(answer.failures);
            }
            Err(reason) => failures.push((label, reason)),
        }
    }
    if count < question.replies.max(1) {
        return Err(too_few(question, (count, asked), &failures));
    }
    if question.writes {
        readings = codes.iter().map(|(label, code)| code_reading(label, *code)).collect();
    } else if is_combined {
        let mut by_quantity: BTreeMap<&str, Vec<&Reading>> = BTreeMap::new();
        for reading in &readings {
            by_quantity.entry(reading.quantity()).or_default().push(reading);
        }
        let combine = |quantity: &Option<String>| match quantity {
            None => combined(question, &readings.iter().collect::<Vec<_>>(), None),
            Some(one) => combined(question, by_quantity.get(one.as_str())?, Some(one)),
        };
        readings = quantities.iter().filter_map(combine).collect();
    }
    let code = if question.writes { Code::CHANGED } else { Code::CONTENT };
    let combined = if is_combined { codes } else { Vec::new() };
    Ok(Answer { code, readings, max_age_s, rtt: None, is_combined, combined, failures })
}

/// Whether the operation can use an answer.
fn usable(question: &Question, answer: Answer) -> Result<Answer, Reason> {
    if question.writes || question.operation == Operation::List {
        return Ok(answer);
    }
    if answer.readings.iter().any(|reading| reading.number().is_some()) {
        Ok(answer)
    } else {
        Err(Reason::Unusable("the answer has no number"))
    }
}

/// Leaves the numbers that can be combined: the latest of each sensor, with the unit that most have for their quantity.
/// Members with another unit have failed. The result is the quantities; `None` is all of them together.
fn agree(outcomes: &mut [Outcome]) -> Vec<Option<String>> {
    for (_, outcome) in outcomes.iter_mut() {
        let Ok(answer) = outcome else { continue };
        answer.readings.retain(|reading| reading.number().is_some());
        let mut latest: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, reading) in answer.readings.iter().enumerate() {
            // They are in the order of their times.
            latest.insert(&reading.name, place);
        }
        let latest: BTreeSet<usize> = latest.into_values().collect();
        let mut place = 0..;
        answer.readings.retain(|_| place.next().is_some_and(|place| latest.contains(&place)));
    }
    let good = || outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let has_one = good().all(|answer| answer.readings.len() == 1);
    let quantity =
        |reading: &Reading| if has_one { None } else { Some(reading.quantity().to_owned()) };
    // The quantities, in the order in which they come.
    let mut quantities: Vec<Option<String>> = Vec::new();
    let mut votes: BTreeMap<Option<String>, Votes> = BTreeMap::new();
    for reading in good().flat_map(|answer| &answer.readings) {
        let quantity = quantity(reading);
        if !votes.contains_key(&quantity) {
            quantities.push(quantity.clone());
        }
        let votes = votes.entry(quantity).or_default();
        reading.unit.iter().for_each(|unit| votes.add(unit));
    }
    let most: BTreeMap<&Option<String>, Option<&str>> =
        votes.iter().map(|(quantity, votes)| (quantity, votes.most())).collect();
    let has_unit = |reading: &Reading| {
        let Some(unit) = &reading.unit else { return true };
        most.get(&quantity(reading)).copied().flatten().is_none_or(|most| most == unit)
    };
    let fails = |outcome: &Outcome| {
        outcome.1.as_ref().is_ok_and(|answer| !answer.readings.iter().all(has_unit))
    };
    let failing: Vec<bool> = outcomes.iter().map(fails).collect();
    for ((_, outcome), fails) in outcomes.iter_mut().zip(failing) {
        if fails {
            *outcome = Err(Reason::Unusable("its unit is another than that of most members"));
        }
    }
    quantities
}

/// The combined reading of the readings of one quantity, or of all; `None` if its members have failed.
fn combined(question: &Question, readings: &[&Reading], quantity: Option<&str>) -> Option<Reading> {
    let first = readings.first()?;
    let numbers = || readings.iter().filter_map(|reading| reading.number());
    let value = match question.operation {
        Operation::Minimum => numbers().fold(f64::INFINITY, f64::min),
        Operation::Maximum => numbers().fold(f64::NEG_INFINITY, f64::max),
        // The list is not combined; all answers here have a number, so the count is above zero.
        Operation::Average | Operation::List => mean(numbers),
    };
    let same = readings.iter().all(|reading| reading.unit == first.unit);
    let mut name = format!("{}/{}", question.label, question.operation.name());
    let mut quantity_at = name.len();
    if let Some(quantity) = quantity.filter(|quantity| !quantity.is_empty()) {
        quantity_at += 1;
        write!(name, "/{quantity}").expect("a String takes everything");
    }
    let unit = first.unit.clone().filter(|_| same);
    Some(Reading { name, quantity_at, unit, value: Value::Number(value), time: None })
}

/// The mean of finite numbers is finite, also if their sum is not.
fn mean<I: Iterator<Item = f64>>(numbers: impl Fn() -> I) -> f64 {
    let (sum, count) = (numbers().sum::<f64>(), numbers().count() as f64);
    if sum.is_finite() { sum / count } else { numbers().map(|number| number / count).sum() }
}

fn too_few(
    question: &Question,
    (count, asked): (usize, usize),
    failures: &[(String, Reason)],
) -> Refusal {
    let needed = question.replies.max(1);
    let mut detail = format!("{count} of {asked} members answered, {needed} are needed");
    for (label, reason) in failures {
        write!(detail, "; {label}: {} {reason}", reason.code()).expect("a String takes everything");
    }
    // All members refuse for one reason: it is that of the request.
    let code = match failures.first() {
        Some((_, first @ Reason::Refused { .. }))
            if count == 0 && failures.iter().all(|(_, reason)| reason.code() == first.code()) =>
        {
            first.code()
        }
        _ if failures.iter().any(|(_, reason)| reason.code() == Code::GATEWAY_TIMEOUT) => {
            Code::GATEWAY_TIMEOUT
        }
        _ => Code::BAD_GATEWAY,
    };
    Refusal::new(code, "too few answers", detail)
}

fn code_reading(label: &str, code: Code) -> Reading {
    Reading::plain(format!("{label}/code"), None, Value::Text(code.to_string()))
}

/// The response with an answer in a format that the client accepts.
pub fn response(answer: &Answer, accept: Option<ContentFormat>) -> ResponseTemplate {
    let format = accept.unwrap_or(FORMATS[0]);
    let payload = match format {
        ContentFormat::SENML_JSON | ContentFormat::SENML_CBOR => match pack(answer, format) {
            Ok(payload) => payload,
            Err(detail) => {
                let refusal = Refusal::new(Code::BAD_GATEWAY, "result not writable", detail);
                return refusal.into_response();
            }
        },
        _ => text(answer),
    };
    let mut response = ResponseTemplate::new(answer.code).with_format(format);
    if answer.code == Code::CONTENT {
        let tag = EntityTag::of(&payload);
        response = response.with_option(OptionNumber::ETAG, tag.as_bytes());
        response.options.set_uint(OptionNumber::MAX_AGE, answer.max_age_s);
    }
    response.with_payload(payload)
}

/// A pack of all records, or the reason for none. A truncated pack would hide members.
fn pack(answer: &Answer, format: ContentFormat) -> Result<Vec<u8>, String> {
    let records = records(answer);
    if records.len() > RECORDS_MAX {
        let count = records.len();
        return Err(format!(
            "{count} records; SenML here holds {RECORDS_MAX}, text/plain any number"
        ));
    }
    let written = if format == ContentFormat::SENML_JSON {
        emit_json(&records).map(String::into_bytes)
    } else {
        let mut out = Vec::new();
        emit_cbor(&records, &mut out).map(|()| out)
    };
    written.map_err(|_| "an answer has a value that SenML cannot hold; text/plain can".to_string())
}

fn text(answer: &Answer) -> Vec<u8> {
    let value = |reading: &Reading| match &reading.value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => one_line(text),
        Value::Boolean(one) => one.to_string(),
        Value::Data(data) => hexadecimal(data),
    };
    if let [only] = &answer.readings[..]
        && answer.is_combined
    {
        return value(only).into_bytes();
    }
    let mut text = String::new();
    for reading in &answer.readings {
        let unit = reading.unit.as_deref().map(|unit| format!(" {}", one_line(unit)));
        let unit = unit.unwrap_or_default();
        let time = reading.time.map(|time| format!(" t={time}")).unwrap_or_default();
        writeln!(text, "{} {}{unit}{time}", reading.name, value(reading))
            .expect("a String takes everything");
    }
    for (label, reason) in &answer.failures {
        writeln!(text, "{label} ! {} {reason}", reason.code()).expect("a String takes everything");
    }
    text.into_bytes()
}

/// A text of a member without line breaks, so that it cannot add a line in the name of another one.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn hexadecimal(data: &[u8]) -> String {
    let mut text = String::new();
    for octet in data {
        write!(text, "{octet:02x}").expect("a String takes everything");
    }
    text
}

/// The records of an answer.
fn records(answer: &Answer) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let record = |name: String, value: Value| Record {
        name: Some(name),
        value: Some(value),
        ..Record::default()
    };
    for reading in &answer.readings {
        let (unit, time) = (reading.unit.clone(), reading.time);
        records.push(Record { unit, time, ..record(reading.name.clone(), reading.value.clone()) });
    }
    for (label, code) in &answer.combined {
        records.push(record(format!("{label}/code"), Value::Text(code.to_string())));
    }
    for (label, reason) in &answer.failures {
        records.push(record(format!("{label}/code"), Value::Text(reason.code().to_string())));
        records.push(record(format!("{label}/reason"), Value::Text(reason.to_string())));
    }
    records
}

#[cfg(test)]
mod tests;
