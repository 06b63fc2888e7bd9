//! Which messages of peers an exchange engine understands, and how it refuses the others; the same over datagrams and
//! connections (RFC 7252 s5.4.1, s5.10.2).

use alloc::format;
use alloc::string::{String, ToString};

use lowmesh_wire::coap::{Code, OptionNumber, OptionsIter, Recognition, decode_uint};

use crate::event::ResponseTemplate;

/// What an engine understands beyond RFC 7252, as its settings say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Understanding<'a> {
    /// Critical options that are processed above.
    pub(crate) extensions: &'a [OptionNumber],
    /// The application is a proxy.
    pub(crate) proxy: bool,
    /// The application is a proxy for all requests.
    pub(crate) reverse_proxy: bool,
    /// The longest token of a request, octets.
    pub(crate) token_len_max: usize,
}

impl Understanding<'_> {
    fn knows(&self, number: OptionNumber) -> bool {
        self.extensions.contains(&number)
    }
    /// What the options of a request mean for its fate.
    pub(crate) fn of_request(&self, options: OptionsIter<'_>) -> Recognition {
        // RFC 7252 s5.4.1: "critical" is for endpoints; a proxy forwards what it does not know, if that is safe.
        let relayed = self.reverse_proxy || (self.proxy && is_for_proxy(options.clone()));
        options.recognise(|number| self.knows(number) || (relayed && !number.is_unsafe()))
    }
    /// What the options of a response mean for its fate.
    pub(crate) fn of_response(&self, options: OptionsIter<'_>) -> Recognition {
        // RFC 7252 s5.7.1: what of it a proxy forwards, its own rules say, safe or unsafe.
        let relayed = self.proxy || self.reverse_proxy;
        let mut recognition = options.clone().recognise(|number| relayed || self.knows(number));
        // RFC 7252 s5.10.7: a Location-Path is elective, but the location without a segment that it must not have would be
        // another one. So the response is refused as a whole.
        if recognition.faulty_elective && has_dot_segment(options, OptionNumber::LOCATION_PATH) {
            recognition.critical = recognition.critical.or(Some(OptionNumber::LOCATION_PATH));
        }
        recognition
    }
    /// The answer to a request that the application does not get, if its token of `token_len` octets or its options ask
    /// for one.
    pub(crate) fn refusal(
        &self,
        options: OptionsIter<'_>,
        recognition: Recognition,
        token_len: usize,
    ) -> Option<ResponseTemplate> {
        // RFC 7252 s5.4.1: the diagnostic payload SHOULD describe the option.
        let bad_option = recognition.critical.map(|number| (Code::BAD_OPTION, described(number)));
        let refused = bad_option.or_else(|| {
            let (code, text) = refusal(options, token_len, self.token_len_max, self.proxy)?;
            Some((code, text.to_string()))
        });
        let (code, text) = refused?;
        Some(ResponseTemplate::new(code).with_payload(text.into_bytes()))
    }
}

/// Whether a segment of a path has the meaning that RFC 3986 s5.2.4 gives it in a URI.
fn has_dot_segment(options: OptionsIter<'_>, number: OptionNumber) -> bool {
    options.values(number).any(|segment| matches!(segment, b"." | b".."))
}

/// What is wrong with a critical option.
fn described(number: OptionNumber) -> String {
    match number.definition() {
        Some(row) if number == OptionNumber::URI_PATH => {
            format!("option {} ({}): wrong length, or a segment . or ..", number.0, row.name)
        }
        Some(row) => format!("option {} ({}): wrong length, or too often", number.0, row.name),
        None => format!("option {} is not known", number.0),
    }
}

/// Whether a request asks for a forward proxy (RFC 7252 s5.10.2).
pub(crate) fn is_for_proxy(mut options: OptionsIter<'_>) -> bool {
    options.any(|option| names_proxy(option.number))
}

const fn names_proxy(number: OptionNumber) -> bool {
    matches!(number, OptionNumber::PROXY_URI | OptionNumber::PROXY_SCHEME)
}

fn refusal(
    options: OptionsIter<'_>,
    token_len: usize,
    token_len_max: usize,
    proxy: bool,
) -> Option<(Code, &'static str)> {
    // RFC 8974 s2.2.2: a token that will never be handled SHOULD be answered with 4.00, not RST.
    if token_len > token_len_max {
        return Some((Code::BAD_REQUEST, "the token is too long"));
    }
    for option in options {
        match option.number {
            // RFC 8768 s3: a value of 0 or above 255 MUST be rejected with 4.00.
            OptionNumber::HOP_LIMIT
                if !decode_uint(option.value).is_some_and(|hops| (1..=255).contains(&hops)) =>
            {
                return Some((Code::BAD_REQUEST, "Hop-Limit is not from 1 to 255"));
            }
            // RFC 7252 s5.10.2: an endpoint that is no proxy MUST answer 5.05.
            number if !proxy && names_proxy(number) => {
                return Some((Code::PROXYING_NOT_SUPPORTED, "this server is no proxy"));
            }
            _ => {}
        }
    }
    None
}
