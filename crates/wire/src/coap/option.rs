//! Option numbers, what they say about themselves, and their definitions (RFC 7252 s5.4 and s5.10,
//! and the RFCs that came after it).

use core::fmt;

/// How an option's value is to be read (RFC 7252 s3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No value.
    Empty,
    /// Any octets.
    Opaque,
    /// A number in network byte order without leading zeros.
    Uint,
    /// UTF-8 text.
    String,
}

/// A row of the table of options: RFC 7252 table 4 and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which option.
    pub number: OptionNumber,
    /// The RFC that defines it. Every endpoint recognises those of RFC 7252; any other only where
    /// something processes it.
    pub rfc: u16,
    /// Its name in the registry.
    pub name: &'static str,
    /// May occur more than once (R).
    pub repeatable: bool,
    /// How its value reads.
    pub format: Format,
    /// Shortest value, octets.
    pub len_min: u16,
    /// Longest value, octets.
    pub len_max: u16,
}

impl Definition {
    /// Whether `value` may follow an option numbered `previous`: its length is right, it is not
    /// repeated against the rules, and a segment of a path is not what a relative reference has.
    pub(super) fn admits(&self, value: &[u8], previous: Option<OptionNumber>) -> bool {
        let lengths = usize::from(self.len_min)..=usize::from(self.len_max);
        // RFC 7252 s5.10.1, s5.10.7: the value MUST NOT be "." or "..".
        let is_dots = matches!(value, b"." | b"..")
            && matches!(self.number, OptionNumber::URI_PATH | OptionNumber::LOCATION_PATH);
        lengths.contains(&value.len())
            && (self.repeatable || previous != Some(self.number))
            && !is_dots
    }
}

/// An option's number, whose low bits say how to treat it when it is unknown (RFC 7252 s5.4.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionNumber(pub u16);

const fn row(
    rfc: u16,
    number: OptionNumber,
    name: &'static str,
    repeatable: bool,
    format: Format,
    len: (u16, u16),
) -> Definition {
    Definition { number, rfc, name, repeatable, format, len_min: len.0, len_max: len.1 }
}

/// RFC 7252 s5.10 table 4, with the options of later RFCs in between.
const DEFINITIONS: [Definition; 24] = [
    row(7252, OptionNumber::IF_MATCH, "If-Match", true, Format::Opaque, (0, 8)),
    row(7252, OptionNumber::URI_HOST, "Uri-Host", false, Format::String, (1, 255)),
    row(7252, OptionNumber::ETAG, "ETag", true, Format::Opaque, (1, 8)),
    row(7252, OptionNumber::IF_NONE_MATCH, "If-None-Match", false, Format::Empty, (0, 0)),
    row(7641, OptionNumber::OBSERVE, "Observe", false, Format::Uint, (0, 3)),
    row(7252, OptionNumber::URI_PORT, "Uri-Port", false, Format::Uint, (0, 2)),
    row(7252, OptionNumber::LOCATION_PATH, "Location-Path", true, Format::String, (0, 255)),
    row(8613, OptionNumber::OSCORE, "OSCORE", false, Format::Opaque, (0, 255)),
    row(7252, OptionNumber::URI_PATH, "Uri-Path", true, Format::String, (0, 255)),
    row(7252, OptionNumber::CONTENT_FORMAT, "Content-Format", false, Format::Uint, (0, 2)),
    row(7252, OptionNumber::MAX_AGE, "Max-Age", false, Format::Uint, (0, 4)),
    row(7252, OptionNumber::URI_QUERY, "Uri-Query", true, Format::String, (0, 255)),
    // RFC 8768 s3: one octet, but 0 and what is above 255 MUST be answered with 4.00 and so not be
    // ignored for their length.
    row(8768, OptionNumber::HOP_LIMIT, "Hop-Limit", false, Format::Uint, (0, 4)),
    row(7252, OptionNumber::ACCEPT, "Accept", false, Format::Uint, (0, 2)),
    row(7252, OptionNumber::LOCATION_QUERY, "Location-Query", true, Format::String, (0, 255)),
    row(7959, OptionNumber::BLOCK2, "Block2", false, Format::Uint, (0, 3)),
    row(7959, OptionNumber::BLOCK1, "Block1", false, Format::Uint, (0, 3)),
    row(7959, OptionNumber::SIZE2, "Size2", false, Format::Uint, (0, 4)),
    row(7252, OptionNumber::PROXY_URI, "Proxy-Uri", false, Format::String, (1, 1034)),
    row(7252, OptionNumber::PROXY_SCHEME, "Proxy-Scheme", false, Format::String, (1, 255)),
    row(7252, OptionNumber::SIZE1, "Size1", false, Format::Uint, (0, 4)),
    row(9175, OptionNumber::ECHO, "Echo", false, Format::Opaque, (1, 40)),
    row(7967, OptionNumber::NO_RESPONSE, "No-Response", false, Format::Uint, (0, 1)),
    row(9175, OptionNumber::REQUEST_TAG, "Request-Tag", true, Format::Opaque, (0, 8)),
];

/// The rows of the numbers below 64, which most options of messages have; past the table where there is none.
const ROWS: [u8; 64] = {
    let mut rows = [u8::MAX; 64];
    let mut row = 0;
    while row < DEFINITIONS.len() {
        let number = DEFINITIONS[row].number.0 as usize;
        if number < rows.len() {
            rows[number] = row as u8;
        }
        row += 1;
    }
    rows
};

impl OptionNumber {
    /// If-Match (s5.10.8.1).
    pub const IF_MATCH: Self = Self(1);
    /// Uri-Host (s5.10.1).
    pub const URI_HOST: Self = Self(3);
    /// ETag (s5.10.6).
    pub const ETAG: Self = Self(4);
    /// If-None-Match (s5.10.8.2).
    pub const IF_NONE_MATCH: Self = Self(5);
    /// Observe: register, deregister, sequence number (RFC 7641 s2).
    pub const OBSERVE: Self = Self(6);
    /// Uri-Port (s5.10.1).
    pub const URI_PORT: Self = Self(7);
    /// Location-Path (s5.10.7).
    pub const LOCATION_PATH: Self = Self(8);
    /// OSCORE (RFC 8613 s2).
    pub const OSCORE: Self = Self(9);
    /// Uri-Path, one segment each (s5.10.1).
    pub const URI_PATH: Self = Self(11);
    /// Content-Format (s5.10.3).
    pub const CONTENT_FORMAT: Self = Self(12);
    /// Max-Age, seconds (s5.10.5).
    pub const MAX_AGE: Self = Self(14);
    /// Uri-Query, one argument each (s5.10.1).
    pub const URI_QUERY: Self = Self(15);
    /// Hop-Limit (RFC 8768 s3).
    pub const HOP_LIMIT: Self = Self(16);
    /// Accept (s5.10.4).
    pub const ACCEPT: Self = Self(17);
    /// Location-Query (s5.10.7).
    pub const LOCATION_QUERY: Self = Self(20);
    /// Block2: block of a response body (RFC 7959 s2.1).
    pub const BLOCK2: Self = Self(23);
    /// Block1: block of a request body (RFC 7959 s2.1).
    pub const BLOCK1: Self = Self(27);
    /// Size2: size of a response body (RFC 7959 s4).
    pub const SIZE2: Self = Self(28);
    /// Proxy-Uri (s5.10.2).
    pub const PROXY_URI: Self = Self(35);
    /// Proxy-Scheme (s5.10.2).
    pub const PROXY_SCHEME: Self = Self(39);
    /// Size1 (s5.10.9).
    pub const SIZE1: Self = Self(60);
    /// Echo: proof that a request is fresh (RFC 9175 s2.2).
    pub const ECHO: Self = Self(252);
    /// No-Response: which classes of response are not wanted (RFC 7967 s2).
    pub const NO_RESPONSE: Self = Self(258);
    /// Request-Tag: which body a block belongs to (RFC 9175 s3.2).
    pub const REQUEST_TAG: Self = Self(292);

    /// Not to be ignored by who does not know it (s5.4.1).
    pub const fn is_critical(self) -> bool {
        self.0 & 1 != 0
    }
    /// Not to be forwarded by a proxy that does not know it (s5.4.2).
    pub const fn is_unsafe(self) -> bool {
        self.0 & 2 != 0
    }
    /// Not part of the cache key; has a meaning only for options that are safe to forward (s5.4.2).
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1e == 0x1c
    }
    /// Its row of the table of options, if it has one.
    #[inline]
    pub fn definition(self) -> Option<&'static Definition> {
        match ROWS.get(usize::from(self.0)) {
            Some(row) => DEFINITIONS.get(usize::from(*row)),
            None => DEFINITIONS.iter().find(|definition| definition.number == self),
        }
    }
}

impl fmt::Debug for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.definition() {
            Some(definition) => f.write_str(definition.name),
            None => write!(f, "Option({})", self.0),
        }
    }
}

/// A number as an option value: at most four octets, held without allocation.
#[derive(Clone, Copy, Debug)]
pub struct UintBytes {
    bytes: [u8; 4],
    skip: u8,
}

impl UintBytes {
    /// The octets, without leading zeros.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.skip)..]
    }
}

/// A number in the shortest form: zero is no octet at all (RFC 7252 s3.2).
pub const fn encode_uint(value: u32) -> UintBytes {
    UintBytes { bytes: value.to_be_bytes(), skip: (value.leading_zeros() / 8) as u8 }
}

/// The number in an option's value; leading zeros are allowed (RFC 7252 s3.2), more than 32 bits
/// are not.
pub fn decode_uint(value: &[u8]) -> Option<u32> {
    let first = value.iter().position(|octet| *octet != 0).unwrap_or(value.len());
    let digits = &value[first..];
    (digits.len() <= 4)
        .then(|| digits.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_complete() {
        assert!(DEFINITIONS.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert_eq!(OptionNumber::PROXY_URI.definition().map(|d| d.len_max), Some(1034));
        assert_eq!(OptionNumber(65).definition(), None);
        for number in 0..=u16::MAX {
            let row = DEFINITIONS.iter().find(|definition| definition.number.0 == number);
            assert_eq!(OptionNumber(number).definition(), row, "{number}");
        }
    }

    #[test]
    fn number_bits_agree_with_the_columns_of_the_tables_of_options() {
        // C, U and N columns of RFC 7252 table 4, RFC 7641 s2, RFC 7959 s2.1 and s4, RFC 7967 s2, RFC
        // 8613 s2, RFC 8768 s3, RFC 9175 s2.2.1 and s3.2.1.
        let critical = [1, 3, 5, 7, 9, 11, 15, 17, 23, 27, 35, 39];
        let uncritical_unsafe = [6, 14, 258];
        for definition in DEFINITIONS {
            let number = definition.number.0;
            assert_eq!(definition.number.is_critical(), critical.contains(&number));
            let unsafe_to_forward = [3, 7, 11, 15, 23, 27, 35, 39].contains(&number)
                || uncritical_unsafe.contains(&number);
            assert_eq!(definition.number.is_unsafe(), unsafe_to_forward, "{number}");
            let no_cache_key = [28, 60, 252].contains(&number);
            assert_eq!(definition.number.is_no_cache_key(), no_cache_key, "{number}");
        }
    }

    #[test]
    fn numbers_take_the_fewest_octets() {
        for (value, octets) in [
            (0, &[][..]),
            (1, &[1]),
            (255, &[255]),
            (256, &[1, 0]),
            (65_536, &[1, 0, 0]),
            (u32::MAX, &[255, 255, 255, 255]),
        ] {
            assert_eq!(encode_uint(value).as_bytes(), octets);
            assert_eq!(decode_uint(octets), Some(value));
        }
    }

    #[test]
    fn leading_zeros_are_read_and_33_bits_are_not() {
        assert_eq!(decode_uint(&[0, 0, 0, 0, 0, 7]), Some(7));
        assert_eq!(decode_uint(&[1, 0, 0, 0, 0]), None);
    }
}
