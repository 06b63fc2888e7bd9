//! Content formats (RFC 7252 s12.3 and its registry).

/// The number in Content-Format and Accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentFormat(pub u16);

/// Registry names, by number.
const NAMES: [(ContentFormat, &str); 12] = [
    (ContentFormat::TEXT_PLAIN, "text/plain;charset=utf-8"),
    (ContentFormat::LINK_FORMAT, "application/link-format"),
    (ContentFormat::XML, "application/xml"),
    (ContentFormat::OCTET_STREAM, "application/octet-stream"),
    (ContentFormat::EXI, "application/exi"),
    (ContentFormat::JSON, "application/json"),
    (ContentFormat::CBOR, "application/cbor"),
    (ContentFormat::SENML_JSON, "application/senml+json"),
    (ContentFormat::SENSML_JSON, "application/sensml+json"),
    (ContentFormat::SENML_CBOR, "application/senml+cbor"),
    (ContentFormat::COAP_GROUP_JSON, "application/coap-group+json"),
    (ContentFormat::PROBLEM_DETAILS, "application/concise-problem-details+cbor"),
];

impl ContentFormat {
    /// text/plain;charset=utf-8 (RFC 7252).
    pub const TEXT_PLAIN: Self = Self(0);
    /// application/link-format (RFC 6690).
    pub const LINK_FORMAT: Self = Self(40);
    /// application/xml (RFC 7252).
    pub const XML: Self = Self(41);
    /// application/octet-stream (RFC 7252).
    pub const OCTET_STREAM: Self = Self(42);
    /// application/exi (RFC 7252).
    pub const EXI: Self = Self(47);
    /// application/json (RFC 7252).
    pub const JSON: Self = Self(50);
    /// application/cbor (RFC 8949).
    pub const CBOR: Self = Self(60);
    /// application/senml+json (RFC 8428).
    pub const SENML_JSON: Self = Self(110);
    /// application/sensml+json (RFC 8428).
    pub const SENSML_JSON: Self = Self(111);
    /// application/senml+cbor (RFC 8428).
    pub const SENML_CBOR: Self = Self(112);
    /// application/coap-group+json (RFC 7390).
    pub const COAP_GROUP_JSON: Self = Self(256);
    /// application/concise-problem-details+cbor (RFC 9290).
    pub const PROBLEM_DETAILS: Self = Self(257);

    /// The media type, if this codec knows it.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(format, _)| *format == self).map(|(_, name)| *name)
    }
    /// The format with this media type, parameters included.
    pub fn from_name(media_type: &str) -> Option<Self> {
        NAMES.iter().find(|(_, name)| *name == media_type).map(|(format, _)| *format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_turn_into_each_other() {
        for (format, name) in NAMES {
            assert_eq!(format.name(), Some(name));
            assert_eq!(ContentFormat::from_name(name), Some(format));
        }
        assert_eq!(ContentFormat(65_000).name(), None);
    }
}
