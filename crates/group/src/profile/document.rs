//! Profiles as documents: JSON, CBOR, link format (RFC 6690) and Uri-Query in, JSON, CBOR and text out.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use lowmesh_wire::coap::{ContentFormat, OptionNumber, Options};
use lowmesh_wire::link_format::links;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder, decode};
use serde_json::Value as Json;

use crate::params::DOCUMENT_MAX;
use crate::refusal::Refusal;
use lowmesh_wire::coap::Code;

/// The value of a field, in any notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A text, which may be a number.
    Text(String),
    /// A whole number.
    Number(u64),
    /// Texts.
    List(Vec<String>),
}

impl Field {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
    /// The number, or the number that a text contains.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            Self::List(_) => None,
        }
    }
    /// The texts of a list, or the single text as a list.
    pub fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Text(text) => Some(vec![text]),
            Self::List(texts) => Some(texts.iter().map(String::as_str).collect()),
            Self::Number(_) => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => number.fmt(f),
            Self::List(texts) => write!(f, "{texts:?}"),
        }
    }
}

/// The fields of a payload. Without a format, the first octet tells which one it is.
pub fn fields(
    format: Option<ContentFormat>,
    payload: &[u8],
) -> Result<Vec<(String, Field)>, Refusal> {
    if payload.len() > DOCUMENT_MAX {
        let detail = format!("{} octets; {DOCUMENT_MAX} are allowed", payload.len());
        return Err(Refusal::new(Code::REQUEST_ENTITY_TOO_LARGE, "profile too long", detail));
    }
    let guessed = match payload.first() {
        None => return Ok(Vec::new()),
        Some(b'{') => ContentFormat::JSON,
        Some(b'<') => ContentFormat::LINK_FORMAT,
        Some(0xa0..=0xbf) => ContentFormat::CBOR,
        Some(_) => ContentFormat::TEXT_PLAIN,
    };
    match format.filter(|format| *format != ContentFormat::TEXT_PLAIN).unwrap_or(guessed) {
        ContentFormat::JSON => json(payload),
        ContentFormat::CBOR => cbor(payload),
        ContentFormat::LINK_FORMAT => link_format(payload),
        other => Err(Refusal::new(
            Code::UNSUPPORTED_CONTENT_FORMAT,
            "format of profiles",
            format!("Content-Format {} is not 40 (link format), 50 (JSON) or 60 (CBOR)", other.0),
        )),
    }
}

/// The fields of a query. Several `er` are one list.
pub fn query(options: &Options) -> Result<Vec<(String, Field)>, Refusal> {
    let mut fields: Vec<(String, Field)> = Vec::new();
    for argument in options.iter().values(OptionNumber::URI_QUERY) {
        let text = core::str::from_utf8(argument)
            .map_err(|_| Refusal::field("an argument of the query is not UTF-8"))?;
        push(&mut fields, text)?;
    }
    Ok(fields)
}

/// The fields of the query of a URI.
pub fn arguments(query: &[String]) -> Result<Vec<(String, Field)>, Refusal> {
    let mut fields = Vec::new();
    query.iter().try_for_each(|argument| push(&mut fields, argument))?;
    Ok(fields)
}

fn push(fields: &mut Vec<(String, Field)>, argument: &str) -> Result<(), Refusal> {
    let Some((key, value)) = argument.split_once('=') else {
        return Err(Refusal::field(format!("{argument:?} in the query has no value: KEY=VALUE")));
    };
    if key == "er"
        && let Some((_, Field::List(list))) = fields.iter_mut().find(|(key, _)| key == "er")
    {
        list.push(value.to_string());
        return Ok(());
    }
    let field = match key {
        "er" => Field::List(vec![value.to_string()]),
        _ => Field::Text(value.to_string()),
    };
    fields.push((key.to_string(), field));
    Ok(())
}

fn json(payload: &[u8]) -> Result<Vec<(String, Field)>, Refusal> {
    let document: Json = serde_json::from_slice(payload)
        .map_err(|error| Refusal::field(format!("the payload is not JSON: {error}")))?;
    let Json::Object(map) = document else {
        return Err(Refusal::field("the JSON is not an object: {\"er\": [...], ...}"));
    };
    let field = |key: &str, value: Json| {
        let text = |one: &Json| one.as_str().map(String::from);
        match &value {
            Json::String(text) => Some(Field::Text(text.clone())),
            Json::Number(number) => number.as_u64().map(Field::Number),
            Json::Array(list) => list.iter().map(text).collect::<Option<_>>().map(Field::List),
            _ => None,
        }
        .ok_or_else(|| wrong_kind(key))
    };
    map.into_iter().map(|(key, value)| Ok((key.clone(), field(&key, value)?))).collect()
}

fn cbor(payload: &[u8]) -> Result<Vec<(String, Field)>, Refusal> {
    let mut decoder = Decoder::new(payload);
    let fields = cbor_map(&mut decoder).map_err(|error| {
        let at = decoder.position();
        Refusal::field(format!("the payload is not a CBOR map of texts, octet {at}: {error}"))
    })?;
    if decoder.position() == payload.len() {
        Ok(fields)
    } else {
        Err(Refusal::field("octets follow the CBOR map"))
    }
}

fn cbor_map(decoder: &mut Decoder<'_>) -> Result<Vec<(String, Field)>, decode::Error> {
    let len = decoder.map()?.ok_or_else(|| decode::Error::message("a map of unknown length"))?;
    let mut fields = Vec::new();
    for _ in 0..len {
        let key = decoder.str()?.to_string();
        let field = match decoder.datatype()? {
            Type::String => Field::Text(decoder.str()?.to_string()),
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => Field::Number(decoder.u64()?),
            Type::Array => {
                let list: Result<Vec<_>, _> = decoder.array_iter::<&str>()?.collect();
                Field::List(list?.into_iter().map(String::from).collect())
            }
            _ => return Err(decode::Error::message("neither text, number nor list")),
        };
        fields.push((key, field));
    }
    Ok(fields)
}

fn link_format(payload: &[u8]) -> Result<Vec<(String, Field)>, Refusal> {
    let text =
        core::str::from_utf8(payload).map_err(|_| Refusal::field("the payload is not UTF-8"))?;
    let member = |link: lowmesh_wire::link_format::Link<'_>| match link.attribute("name") {
        Some(name) => format!("{name}={}", link.target),
        None => link.target.to_string(),
    };
    let targets: Result<Vec<_>, _> = links(text).map(|link| link.map(member)).collect();
    let targets = targets.map_err(|error| Refusal::field(format!("{error}")))?;
    Ok(vec![("er".to_string(), Field::List(targets))])
}

fn wrong_kind(key: &str) -> Refusal {
    Refusal::field(format!(
        "{key}: the value is neither a text, a whole number nor a list of texts"
    ))
}

/// Writes fields as text, one in each line.
pub fn to_text(fields: &[(&str, Field)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, field) in fields {
        let value = match field {
            Field::Text(text) => text.clone(),
            Field::Number(number) => number.to_string(),
            Field::List(texts) => texts.join(" "),
        };
        writeln!(text, "{key}: {value}").expect("a String takes everything");
    }
    text.into_bytes()
}

/// Writes fields as a JSON object.
pub fn to_json(fields: &[(&str, Field)]) -> Vec<u8> {
    let value = |field: &Field| match field {
        Field::Text(text) => Json::from(text.as_str()),
        Field::Number(number) => Json::from(*number),
        Field::List(texts) => Json::from(texts.clone()),
    };
    let map: serde_json::Map<String, Json> =
        fields.iter().map(|(key, field)| ((*key).to_string(), value(field))).collect();
    serde_json::to_vec(&Json::Object(map)).expect("texts and numbers have a JSON form")
}

/// Writes fields as a CBOR map.
pub fn to_cbor(fields: &[(&str, Field)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    let mut write = || -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
        encoder.map(fields.len() as u64)?;
        for (key, field) in fields {
            encoder.str(key)?;
            match field {
                Field::Text(text) => _ = encoder.str(text)?,
                Field::Number(number) => _ = encoder.u64(*number)?,
                Field::List(texts) => {
                    encoder.array(texts.len() as u64)?;
                    for text in texts {
                        encoder.str(text)?;
                    }
                }
            }
        }
        Ok(())
    };
    write().expect("a Vec takes everything");
    out
}
