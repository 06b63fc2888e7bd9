//! The payload of an answer for people: one link a line, JSON with indentation, CBOR in diagnostic notation,
//! one measurement a line.

use lowmesh_wire::coap::ContentFormat;
use lowmesh_wire::link_format::links;
use lowmesh_wire::senml::{Measurement, Record, Value, parse_cbor, parse_json, resolve};

use crate::diagnostic::{hex, notation};

/// The format that a user names: by number, by media type, or by libcoap's short name.
pub fn format(text: &str) -> Result<ContentFormat, String> {
    let short = match text {
        "" | "plain" | "text/plain" => Some(ContentFormat::TEXT_PLAIN),
        "link" | "link-format" => Some(ContentFormat::LINK_FORMAT),
        "xml" => Some(ContentFormat::XML),
        "binary" | "octet-stream" => Some(ContentFormat::OCTET_STREAM),
        "exi" => Some(ContentFormat::EXI),
        "json" => Some(ContentFormat::JSON),
        "cbor" => Some(ContentFormat::CBOR),
        "senml-json" => Some(ContentFormat::SENML_JSON),
        "senml-cbor" => Some(ContentFormat::SENML_CBOR),
        "coap-group+json" => Some(ContentFormat::COAP_GROUP_JSON),
        _ => None,
    };
    let number = || text.parse().ok().map(ContentFormat);
    short.or_else(number).or_else(|| ContentFormat::from_name(text)).ok_or_else(|| {
        "give a number, a media type, or plain, link-format, xml, octet-stream, exi, json, cbor, \
         senml-json, senml-cbor, coap-group+json"
            .to_owned()
    })
}

/// A payload laid out for reading; what does not follow its format is shown as it is, or as octets.
pub fn pretty(format: Option<ContentFormat>, payload: &[u8]) -> String {
    let laid = match format {
        Some(ContentFormat::LINK_FORMAT) => link_lines(payload),
        Some(ContentFormat::JSON | ContentFormat::COAP_GROUP_JSON) => json(payload),
        Some(ContentFormat::CBOR | ContentFormat::PROBLEM_DETAILS) => notation(payload),
        Some(ContentFormat::SENML_JSON) => {
            parse_json(payload).ok().and_then(|pack| measurements(&pack))
        }
        Some(ContentFormat::SENML_CBOR) => {
            parse_cbor(payload).ok().and_then(|pack| measurements(&pack))
        }
        _ => None,
    };
    laid.unwrap_or_else(|| plain(payload))
}

/// Text as text, anything else in hexadecimal.
pub fn plain(payload: &[u8]) -> String {
    // Control characters of a peer do not reach a terminal.
    match std::str::from_utf8(payload) {
        Ok(text) if !text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)) => {
            text.into()
        }
        _ => hex(payload),
    }
}

fn link_lines(payload: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(payload).ok()?;
    let mut lines = Vec::new();
    for link in links(text) {
        let link = link.ok()?;
        let mut line = link.target.to_owned();
        for attribute in link.attributes() {
            line.push_str("  ");
            line.push_str(attribute.name);
            if let Some(value) = attribute.value() {
                line.push('=');
                line.push_str(&value);
            }
        }
        lines.push(line);
    }
    let lines = lines.join("\n");
    (!lines.contains(|c: char| c.is_control() && c != '\n')).then_some(lines)
}

fn json(payload: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(payload).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

fn measurements(pack: &[Record]) -> Option<String> {
    // Times that are relative stay so: the present is 0.
    let measurements = resolve(pack, 0.0).ok()?;
    Some(measurements.iter().map(measurement).collect::<Vec<_>>().join("\n"))
}

fn measurement(one: &Measurement) -> String {
    let value = match &one.value {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Text(text)) => format!("{text:?}"),
        Some(Value::Boolean(truth)) => truth.to_string(),
        Some(Value::Data(octets)) => hex(octets),
        None => one.sum.map(|sum| format!("sum {sum}")).unwrap_or_default(),
    };
    let mut line = format!("{}  {value}", one.name);
    if let Some(unit) = &one.unit {
        line.push(' ');
        line.push_str(unit);
    }
    if one.time != 0.0 {
        line.push_str("  t=");
        line.push_str(&one.time.to_string());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_numbers_media_types_and_short_names() {
        for text in ["60", "cbor", "application/cbor"] {
            assert_eq!(format(text), Ok(ContentFormat::CBOR));
        }
        assert!(format("cobr").is_err_and(|why| why.contains("senml-cbor")));
    }

    #[test]
    fn every_format_is_laid_out_in_its_own_way() {
        for (format, payload, laid) in [
            (ContentFormat::LINK_FORMAT, &b"</a>;rt=\"t\",</b>;obs"[..], "/a  rt=t\n/b  obs"),
            (ContentFormat::JSON, br#"{"a":1}"#, "{\n  \"a\": 1\n}"),
            (ContentFormat::CBOR, &[0x82, 1, 2], "[1, 2]"),
            (ContentFormat::SENML_JSON, br#"[{"n":"t","u":"Cel","v":21.5}]"#, "t  21.5 Cel"),
            (ContentFormat::TEXT_PLAIN, b"hello", "hello"),
        ] {
            assert_eq!(pretty(Some(format), payload), laid);
        }
    }

    #[test]
    fn what_does_not_follow_its_format_is_shown_as_it_is() {
        assert_eq!(pretty(Some(ContentFormat::JSON), b"{"), "{");
        assert_eq!(pretty(Some(ContentFormat::CBOR), &[0x82, 1]), "8201");
        assert_eq!(pretty(None, b"\x1b[2J"), "1b5b324a");
    }
}
