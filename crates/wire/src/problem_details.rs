//! Concise problem details: what is wrong, in a CBOR map, next to a response code (RFC 9290).
//!
//! ```text
//!   {-1: "title", -2: "detail", -3: "instance URI", -4: 128 (the response code 4.00), ...}
//! ```
//!
//! Entries that are not known here are skipped, as s3 asks for: those of applications (keys from 0
//! up, and URIs) and standard ones to come. When a server sends details is the server's choice.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder, decode};

use crate::coap::Code;
use crate::{DecodeError, Problem};

/// Keys of RFC 9290 s6.1.
mod key {
    pub const TITLE: i64 = -1;
    pub const DETAIL: i64 = -2;
    pub const INSTANCE: i64 = -3;
    pub const RESPONSE_CODE: i64 = -4;
}

/// CBOR tag of a text with its language (RFC 9290 appendix A).
const LANGUAGE_TAGGED: u64 = 38;

/// The standard entries (RFC 9290 s2).
///
/// ```
/// use lowmesh_wire::coap::Code;
/// use lowmesh_wire::problem_details::ProblemDetails;
/// let details = ProblemDetails {
///     title: Some("no such member".into()),
///     response_code: Some(Code::NOT_FOUND),
///     ..ProblemDetails::default()
/// };
/// let mut bytes = Vec::new();
/// details.emit(&mut bytes);
/// assert_eq!(bytes, b"\xa2\x20\x6eno such member\x23\x18\x84");
/// assert_eq!(ProblemDetails::parse(&bytes), Ok(details));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProblemDetails<'a> {
    /// What sort of problem it is, for people; the same each time.
    pub title: Option<Cow<'a, str>>,
    /// What happened this time, and how to put it right, for people.
    pub detail: Option<Cow<'a, str>>,
    /// A URI reference that names this occurrence.
    pub instance: Option<Cow<'a, str>>,
    /// The response code of the origin server.
    pub response_code: Option<Code>,
}

impl<'a> ProblemDetails<'a> {
    /// Reads a payload; texts are borrowed from it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let mut details = Self::default();
        details.read(&mut decoder).map_err(|(field, error)| {
            let problem = if error.is_end_of_input() { Problem::Truncated } else { Problem::Value };
            let offset = error.position().unwrap_or(decoder.position()).min(bytes.len());
            self::error(field, offset, problem)
        })?;
        if decoder.position() != bytes.len() {
            return Err(error("end of map", decoder.position(), Problem::Length));
        }
        Ok(details)
    }
    fn read(&mut self, decoder: &mut Decoder<'a>) -> Result<(), (&'static str, decode::Error)> {
        let in_field = |field| move |error| (field, error);
        let len = decoder.map().map_err(in_field("map"))?;
        let mut read = 0;
        while match len {
            Some(len) => read < len,
            None => decoder.datatype().map_err(in_field("break"))? != Type::Break,
        } {
            read += 1;
            let key = match decoder.datatype().map_err(in_field("key"))? {
                Type::I8 | Type::I16 | Type::I32 | Type::I64 => decoder.i64(),
                _ => decoder.skip().map(|()| 0),
            };
            match key.map_err(in_field("key"))? {
                key::TITLE => self.title = Some(text(decoder).map_err(in_field("title"))?),
                key::DETAIL => self.detail = Some(text(decoder).map_err(in_field("detail"))?),
                key::INSTANCE => {
                    let uri = decoder.str().map_err(in_field("instance"))?;
                    self.instance = Some(Cow::Borrowed(uri));
                }
                key::RESPONSE_CODE => {
                    let code = decoder.u8().map_err(in_field("response code"))?;
                    self.response_code = Some(Code(code));
                }
                // RFC 9290 s3.1 and s3.2: entries that are not recognised MUST be ignored.
                _ => decoder.skip().map_err(in_field("unknown entry"))?,
            }
        }
        if len.is_none() {
            decoder.set_position(decoder.position() + 1);
        }
        Ok(())
    }
    /// Appends the bytes of the map. RFC 9290 s2 wants at least one entry.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut encoder = Encoder::new(out);
        let texts = [
            (key::TITLE, &self.title),
            (key::DETAIL, &self.detail),
            (key::INSTANCE, &self.instance),
        ];
        let present = texts.iter().filter(|(_, text)| text.is_some()).count();
        let entries = present + usize::from(self.response_code.is_some());
        let mut write = || -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
            encoder.map(entries as u64)?;
            for (key, text) in texts {
                if let Some(text) = text {
                    encoder.i64(key)?.str(text)?;
                }
            }
            if let Some(code) = self.response_code {
                encoder.i64(key::RESPONSE_CODE)?.u8(code.0)?;
            }
            Ok(())
        };
        write().expect("a Vec takes everything");
    }
}

/// A text, or the text in a pair of language and text (RFC 9290 s2: both are allowed).
fn text<'a>(decoder: &mut Decoder<'a>) -> Result<Cow<'a, str>, decode::Error> {
    if decoder.datatype()? != Type::Tag {
        return decoder.str().map(Cow::Borrowed);
    }
    let tag = decoder.tag()?;
    let len = decoder.array()?;
    // RFC 9290 appendix A: [language, text, ? direction].
    let Some(len @ 2..=3) = len.filter(|_| tag.as_u64() == LANGUAGE_TAGGED) else {
        return Err(decode::Error::message("not a language-tagged text"));
    };
    decoder.str()?;
    let text = decoder.str()?;
    if len == 3 {
        decoder.skip()?;
    }
    Ok(Cow::Borrowed(text))
}

const fn error(field: &'static str, offset: usize, problem: Problem) -> DecodeError {
    DecodeError { header: "problem details", field, offset, problem }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole() -> ProblemDetails<'static> {
        ProblemDetails {
            title: Some("title of the error".into()),
            detail: Some("detailed information about the error".into()),
            instance: Some("coaps://pd.example/FA317434".into()),
            response_code: Some(Code::BAD_REQUEST),
        }
    }

    fn emitted(details: &ProblemDetails<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        details.emit(&mut bytes);
        bytes
    }

    #[test]
    fn the_example_of_rfc_9290_is_read_and_its_custom_entry_skipped() {
        // RFC 9290 s3.2, figure 4, with a shorter map of the application.
        let mut bytes = emitted(&whole());
        bytes[0] = 0xa5;
        bytes.extend_from_slice(b"\x78\x1etag:3gpp.org,2022-03:TS29112__");
        bytes.extend_from_slice(b"\xa2\x00\x65cause\x01\x81\x82\x61a\x61b");
        assert_eq!(ProblemDetails::parse(&bytes), Ok(whole()));
    }

    #[test]
    fn every_prefix_is_an_error() {
        let bytes = emitted(&whole());
        for end in 0..bytes.len() {
            let error = ProblemDetails::parse(&bytes[..end]).expect_err("cut");
            assert!(error.offset <= end, "{error}");
        }
        assert!(ProblemDetails::parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_text_may_carry_its_language_and_direction() {
        let plain = ProblemDetails { title: Some("nein".into()), ..ProblemDetails::default() };
        let tagged = b"\xa1\x20\xd8\x26\x82\x62de\x64nein";
        assert_eq!(ProblemDetails::parse(tagged), Ok(plain.clone()));
        let directed = b"\xbf\x20\xd8\x26\x83\x62de\x64nein\xf4\xff";
        assert_eq!(ProblemDetails::parse(directed), Ok(plain));
        assert!(ProblemDetails::parse(b"\xa1\x20\xd8\x27\x82\x62de\x64nein").is_err());
    }

    #[test]
    fn an_entry_of_the_wrong_kind_is_named() {
        for (bytes, field) in [
            (&b"\xa1\x20\x01"[..], "title"),
            (b"\xa1\x22\x41a", "instance"),
            (b"\xa1\x23\x19\x01\x00", "response code"),
            (b"\x80", "map"),
        ] {
            assert_eq!(ProblemDetails::parse(bytes).expect_err("wrong").field, field);
        }
    }

    proptest! {
        #[test]
        fn random_octets_never_panic_and_what_parses_reads_back(
            octets in prop::collection::vec(any::<u8>(), 0..32),
        ) {
            let bytes = [&[0xa2, 0x20][..], &octets].concat();
            if let Ok(details) = ProblemDetails::parse(&bytes) {
                let again = emitted(&details);
                prop_assert_eq!(ProblemDetails::parse(&again), Ok(details));
            }
        }
    }
}
