//! Collector: makes one response of the outcomes of all members (S002 s2.3.1, `enr` and `eo`).
//!
//! | operation | text | SenML |
//! |---|---|---|
//! | lst | a line a reading: name, value, unit | the readings |
//! | avg, min, max | the number | a record `e/NAME/avg`, and a record `NAME/code` for each member in it |
//! | any | a line a failure: name, `!`, code, reason | records `NAME/code` and `NAME/reason` |
//!
//! In text a single number stands alone, so that programs can read it; who failed is then in SenML only.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::EntityTag;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};
use lowmesh_wire::senml::{RECORDS_MAX, Record, Value, emit_cbor, emit_json};

use crate::outcome::{Answer, Reading, Reason};
use crate::params::ROOT;
use crate::profile::Operation;
use crate::refusal::Refusal;

/// The outcome of one member, with its label.
pub type Outcome = (String, Result<Answer, Reason>);

/// Formats of results; the first is the default.
pub const FORMATS: [ContentFormat; 3] =
    [ContentFormat::TEXT_PLAIN, ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR];

/// Everything that a query specifies about its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name of the entity.
    pub name: String,
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
    let (mut readings, mut failures, mut count) = (Vec::new(), Vec::new(), 0);
    let (mut max_age_s, mut codes) = (u32::MAX, Vec::new());
    for (label, outcome) in outcomes {
        let outcome = outcome.and_then(|answer| usable(question, answer));
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
    let is_combined = !question.writes && question.operation != Operation::List;
    if question.writes {
        readings = codes.iter().map(|(label, code)| code_reading(label, *code)).collect();
    } else if is_combined {
        readings = vec![combined(question, &readings)];
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

fn combined(question: &Question, readings: &[Reading]) -> Reading {
    let numbers = || readings.iter().filter_map(Reading::number);
    let value = match question.operation {
        Operation::Minimum => numbers().fold(f64::INFINITY, f64::min),
        Operation::Maximum => numbers().fold(f64::NEG_INFINITY, f64::max),
        // The list is not combined; all answers here have a number, so the count is above zero.
        Operation::Average | Operation::List => mean(numbers),
    };
    let with_number = || readings.iter().filter(|reading| reading.number().is_some());
    let first = with_number().next().and_then(|reading| reading.unit.clone());
    let same = with_number().all(|reading| reading.unit == first);
    let name = format!("{ROOT}/{}/{}", question.name, question.operation.name());
    Reading { name, unit: first.filter(|_| same), value: Value::Number(value) }
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
    Reading { name: format!("{label}/code"), unit: None, value: Value::Text(code.to_string()) }
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
        writeln!(text, "{} {}{unit}", reading.name, value(reading))
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
        let unit = reading.unit.clone();
        records.push(Record { unit, ..record(reading.name.clone(), reading.value.clone()) });
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
