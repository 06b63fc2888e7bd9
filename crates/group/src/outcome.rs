//! What became of a request to a member: its answer as readings, or why there is none.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use lowmesh_coap::Fault;
use lowmesh_machine::DropReason;
use lowmesh_units::Duration;
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::problem_details::ProblemDetails;
use lowmesh_wire::senml::{Value, parse_cbor, parse_json, resolve};

use crate::params::{ANSWER_MAX, READINGS_MAX};

/// One value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its name among all readings of a result.
    pub name: String,
    /// Where in the name that of the quantity begins: in SenML the name of the record behind the base name, elsewhere the end.
    pub quantity_at: usize,
    /// The unit, if it is known.
    pub unit: Option<String>,
    /// The value.
    pub value: Value,
    /// Its time in SenML: seconds since 1970, or below 2^28 from now (RFC 8428 s4.5.3). `None` is now.
    pub time: Option<f64>,
}

impl Reading {
    /// A reading whose name has no part for the quantity.
    pub const fn plain(name: String, unit: Option<String>, value: Value) -> Self {
        Self { quantity_at: name.len(), name, unit, value, time: None }
    }
    /// What it measures, as far as its name says it: empty for a resource with one value.
    pub fn quantity(&self) -> &str {
        self.name.get(self.quantity_at..).unwrap_or_default()
    }
    /// The value, if it is a number.
    pub const fn number(&self) -> Option<f64> {
        match self.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }
    fn octets(&self) -> usize {
        let value = match &self.value {
            Value::Text(text) => text.len(),
            Value::Data(data) => data.len(),
            Value::Number(_) | Value::Boolean(_) => size_of::<f64>(),
        };
        self.name.len() + self.unit.as_ref().map_or(0, String::len) + value
    }
}

/// Why a member has not done what the manager requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No answer came, after all retransmissions or within the time of the query.
    Silent,
    /// The time of the query was over before the request could leave.
    NotAsked,
    /// No answer has come for a while, and none is expected before one of a probe.
    Down,
    /// The node cannot be reached.
    Unreachable,
    /// The node reset the request: no CoAP server is there.
    Reset,
    /// The manager had no room for the request.
    Busy,
    /// An answer with an error.
    Refused {
        /// The code of the answer.
        code: Code,
        /// What the member says about it.
        detail: String,
    },
    /// An answer that does not fit.
    Unusable(&'static str),
    /// An answer that breaks a rule of CoAP.
    Faulty(Fault),
}

impl Reason {
    /// The reason for a failed request.
    pub(crate) const fn of_drop(reason: DropReason) -> Self {
        match reason {
            DropReason::NoRoute | DropReason::NotJoined => Self::Unreachable,
            DropReason::Reset | DropReason::NoListener => Self::Reset,
            DropReason::QueueFull | DropReason::BufferFull => Self::Busy,
            DropReason::TooLarge => Self::Unusable(TOO_LONG),
            DropReason::Malformed => Self::Unusable("the answer is malformed"),
            _ => Self::Silent,
        }
    }
    /// The reason for a request that the node has failed. Its text is that of every client.
    pub(crate) fn of_fault(fault: Fault) -> Self {
        match fault {
            Fault::TooLong => Self::Unusable(TOO_LONG),
            fault => Self::Faulty(fault),
        }
    }
    /// The reason in a response with an error code.
    pub(crate) fn of_error(message: &Message) -> Self {
        let details = ProblemDetails::parse(&message.payload).ok();
        let said = details.and_then(|details| details.detail.or(details.title));
        let said = said.map(alloc::borrow::Cow::into_owned);
        let text = || core::str::from_utf8(&message.payload).map(str::trim).map(str::to_owned).ok();
        let detail: String = said.or_else(text).unwrap_or_default();
        let detail = detail.chars().filter(|one| !one.is_control()).take(80).collect();
        Self::Refused { code: message.code, detail }
    }
    /// The code that represents the reason in results: 5.04 for silence, 5.02 for an unusable answer.
    pub const fn code(&self) -> Code {
        match self {
            Self::Silent | Self::NotAsked | Self::Down | Self::Unreachable | Self::Reset => {
                Code::GATEWAY_TIMEOUT
            }
            Self::Busy => Code::SERVICE_UNAVAILABLE,
            Self::Refused { code, .. } => *code,
            Self::Unusable(_) | Self::Faulty(_) => Code::BAD_GATEWAY,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("silent"),
            Self::NotAsked => f.write_str("not asked in time"),
            Self::Down => f.write_str("silent for a while, not asked again yet"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Reset => f.write_str("reset"),
            Self::Busy => f.write_str("manager busy"),
            Self::Unusable(why) => f.write_str(why),
            Self::Faulty(fault) => fault.fmt(f),
            Self::Refused { code, detail } if detail.is_empty() => {
                f.write_str(code.name().unwrap_or("refused"))
            }
            Self::Refused { detail, .. } => f.write_str(detail),
        }
    }
}

/// The answer of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The code of the answer, 2.xx.
    pub code: Code,
    /// Its values.
    pub readings: Vec<Reading>,
    /// How long it is fresh, seconds.
    pub max_age_s: u32,
    /// From the request to the answer, where that is known.
    pub rtt: Option<Duration>,
    /// Whether its one value was computed of several.
    pub is_combined: bool,
    /// Members whose values are in the combined one, each with the code of its answer.
    pub combined: Vec<(String, Code)>,
    /// Members of a sub-entity that failed.
    pub failures: Vec<(String, Reason)>,
}

/// An answer of more than [`ANSWER_MAX`] octets.
const TOO_LONG: &str = "the answer is longer than 2048 octets";

/// Max-Age where an answer says none: RFC 7252 s5.10.5, seconds.
pub(crate) const MAX_AGE_DEFAULT_S: u32 = 60;

/// Reads the answer of a member with a label.
pub(crate) fn read(
    label: &str,
    message: &Message,
    rtt: Option<Duration>,
) -> Result<Answer, Reason> {
    if message.code.class() != Class::Success {
        return Err(Reason::of_error(message));
    }
    if message.payload.len() > ANSWER_MAX {
        return Err(Reason::Unusable(TOO_LONG));
    }
    let max_age_s = message.options.get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE_DEFAULT_S);
    let readings = readings(label, message)?;
    if readings.iter().map(Reading::octets).sum::<usize>() > READINGS_MAX + label.len() {
        return Err(Reason::Unusable("the answer is too long with its base names"));
    }
    let (code, is_combined) = (message.code, false);
    let (combined, failures) = (Vec::new(), Vec::new());
    Ok(Answer { code, readings, max_age_s, rtt, is_combined, combined, failures })
}

fn readings(label: &str, message: &Message) -> Result<Vec<Reading>, Reason> {
    let payload = &message.payload;
    if payload.is_empty() {
        return Ok(Vec::new());
    }
    let format = lowmesh_coap::resource::content_format(&message.options);
    let pack = match format {
        Some(ContentFormat::SENML_JSON) => parse_json(payload),
        Some(ContentFormat::SENML_CBOR) => parse_cbor(payload),
        // RFC 7252 s5.5.1: without a format the payload is of an unknown one; constrained servers mean text.
        None | Some(ContentFormat::TEXT_PLAIN | ContentFormat::JSON) => {
            return match core::str::from_utf8(payload) {
                Ok(text) => Ok(vec![of_text(label, text)]),
                Err(_) if format.is_none() => Ok(vec![of_octets(label, payload)]),
                Err(_) => Err(Reason::Unusable("the answer is not UTF-8")),
            };
        }
        Some(_) => return Ok(vec![of_octets(label, payload)]),
    };
    let unusable = || Reason::Unusable("the answer is not SenML, although its format is");
    let pack = pack.map_err(|_| unusable())?;
    // RFC 8428 s4.5.3: with zero for now, times that are relative stay relative.
    let measurements = resolve(&pack, 0.0).map_err(|_| unusable())?;
    let bases = || pack.iter().filter_map(|record| record.base_name.as_deref());
    let reading = |one: lowmesh_wire::senml::Measurement| {
        let base = bases().filter(|base| one.name.starts_with(base)).map(str::len).max();
        let quantity_at = label.len() + 1 + base.unwrap_or(0);
        let name = format!("{label}/{}", one.name);
        let time = (one.time != 0.0).then_some(one.time);
        one.value.map(|value| Reading { name, quantity_at, unit: one.unit, value, time })
    };
    Ok(measurements.into_iter().filter_map(reading).collect())
}

fn of_octets(label: &str, payload: &[u8]) -> Reading {
    Reading::plain(label.to_owned(), None, Value::Data(payload.to_vec()))
}

/// A text that is a number, with or without a unit after a blank, is one: `22.3 C`.
fn of_text(label: &str, text: &str) -> Reading {
    let trimmed = text.trim();
    let (first, unit) = match trimmed.split_once(' ') {
        Some((first, unit)) => (first, Some(unit.trim())),
        None => (trimmed, None),
    };
    let number = first.parse::<f64>().ok().filter(|number| number.is_finite());
    let is_unit = |unit: &&str| unit.len() <= 8 && !unit.contains(' ');
    match number {
        Some(number) if unit.is_none_or(|unit| is_unit(&unit)) => {
            Reading::plain(label.to_owned(), unit.map(str::to_owned), Value::Number(number))
        }
        _ => Reading::plain(label.to_owned(), None, Value::Text(trimmed.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn content(format: Option<ContentFormat>, payload: &[u8]) -> Message {
        let mut message = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(1));
        if let Some(format) = format {
            message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        }
        message.payload = payload.to_vec();
        message
    }

    #[test]
    fn numbers_have_units_and_texts_stay_texts() {
        for (text, number, unit) in
            [("22.3 C", Some(22.3), Some("C")), ("-4", Some(-4.0), None), ("on", None, None)]
        {
            let answer = read("a/t", &content(None, text.as_bytes()), None).expect("an answer");
            let [reading] = &answer.readings[..] else { panic!("{answer:?}") };
            assert_eq!((reading.number(), reading.unit.as_deref()), (number, unit), "{text}");
        }
        let answer = read("a", &content(None, b"NaN"), None).expect("a text");
        assert_eq!(answer.readings[0].number(), None);
    }

    #[test]
    fn a_pack_is_as_many_readings_below_the_label() {
        // RFC 8428 s5.1.2, shortened.
        let pack = br#"[{"bn":"urn:dev:ow:10e2073a01080063:","n":"voltage","u":"V","v":120.1},
            {"n":"current","u":"A","v":1.2}]"#;
        let message = content(Some(ContentFormat::SENML_JSON), pack);
        let answer = read("fd00::1/s", &message, None).expect("SenML");
        let names: Vec<_> = answer.readings.iter().map(|one| &one.name[..]).collect();
        assert_eq!(names[1], "fd00::1/s/urn:dev:ow:10e2073a01080063:current");
        assert_eq!(answer.readings[0].number(), Some(120.1));
        assert_eq!(
            answer.readings.iter().map(Reading::quantity).collect::<Vec<_>>(),
            ["voltage", "current"]
        );
        assert_eq!(answer.readings[0].time, None);
    }

    #[test]
    fn readings_keep_their_times() {
        // Two readings of one sensor, one before the other (RFC 8428 s4.3: name and time make the record).
        let pack = br#"[{"bn":"t","v":20,"t":-60},{"v":21}]"#;
        let message = content(Some(ContentFormat::SENML_JSON), pack);
        let answer = read("a", &message, None).expect("SenML");
        assert_eq!(
            answer.readings.iter().map(|one| one.time).collect::<Vec<_>>(),
            [Some(-60.0), None]
        );
    }

    #[test]
    fn a_member_that_lies_about_its_format_is_named() {
        let message = content(Some(ContentFormat::SENML_CBOR), b"22.3");
        assert!(matches!(read("a", &message, None), Err(Reason::Unusable(_))));
        let long = content(None, &[b'1'; ANSWER_MAX + 1]);
        assert!(matches!(read("a", &long, None), Err(Reason::Unusable(_))));
    }

    #[test]
    fn an_answer_that_grows_with_its_base_name_is_not_kept() {
        let pack = |length: usize, count: usize| {
            let records = vec!["{\"v\":1}"; count].join(",");
            let pack = format!("[{{\"bn\":\"{}\",\"v\":1}},{records}]", "x".repeat(length));
            assert!(pack.len() <= ANSWER_MAX);
            read("a", &content(Some(ContentFormat::SENML_JSON), pack.as_bytes()), None)
        };
        assert_eq!(pack(20, 100).map(|answer| answer.readings.len()), Ok(101));
        // 126 names of 1,000 octets out of an answer of 2,048.
        assert!(matches!(pack(1000, 125), Err(Reason::Unusable(_))));
    }

    #[test]
    fn an_error_keeps_what_the_member_says() {
        let mut message = content(None, b"no such sensor\n");
        message.code = Code::NOT_FOUND;
        let reason = read("a", &message, None).expect_err("4.04");
        assert_eq!(reason.to_string(), "no such sensor");
        assert_eq!(reason.code(), Code::NOT_FOUND);
        assert_eq!(Reason::of_drop(DropReason::GaveUp).code(), Code::GATEWAY_TIMEOUT);
        let endless = Reason::of_drop(DropReason::TooLarge);
        assert_eq!(endless.to_string(), "the answer is longer than 2048 octets");
    }
}
