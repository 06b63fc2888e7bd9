//! Which messages of peers an exchange engine understands, and how it refuses the others; the same over datagrams and
//! connections (RFC 7252 s5.4.1, s5.10.2).

use lowmesh_wire::coap::{Code, OptionNumber, OptionsIter, Recognition, decode_uint};

/// What an engine understands beyond RFC 7252, as its settings say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Understanding<'a> {
    /// Critical options that are processed above.
    pub(crate) extensions: &'a [OptionNumber],
    /// The application is a proxy.
    pub(crate) proxy: bool,
    /// The longest token of a request, octets.
    pub(crate) token_len_max: usize,
}

impl Understanding<'_> {
    fn knows(&self, number: OptionNumber) -> bool {
        self.extensions.contains(&number)
    }
    /// What the options of a request mean for its fate.
    pub(crate) fn of_request(&self, options: OptionsIter<'_>) -> Recognition {
        // RFC 7252 s5.4.2: a proxy forwards what it does not know, if that is safe.
        let relayed = self.proxy && is_for_proxy(options.clone());
        options.recognise(|number| self.knows(number) || (relayed && !number.is_unsafe()))
    }
    /// What the options of a response mean for its fate.
    pub(crate) fn of_response(&self, options: OptionsIter<'_>) -> Recognition {
        options.recognise(|number| self.knows(number))
    }
    /// The code to refuse a request with, if its token of `token_len` octets or its options, which hold
    /// no unknown critical one, ask for it.
    pub(crate) fn refusal(&self, options: OptionsIter<'_>, token_len: usize) -> Option<Code> {
        refusal(options, token_len, self.token_len_max, self.proxy)
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
) -> Option<Code> {
    // RFC 8974 s2.2.2: a token that will never be handled SHOULD be answered with 4.00, not RST.
    if token_len > token_len_max {
        return Some(Code::BAD_REQUEST);
    }
    for option in options {
        match option.number {
            // RFC 8768 s3: a value of 0 or above 255 MUST be rejected with 4.00.
            OptionNumber::HOP_LIMIT
                if !decode_uint(option.value).is_some_and(|hops| (1..=255).contains(&hops)) =>
            {
                return Some(Code::BAD_REQUEST);
            }
            // RFC 7252 s5.10.2: an endpoint that is no proxy MUST answer 5.05.
            number if !proxy && names_proxy(number) => {
                return Some(Code::PROXYING_NOT_SUPPORTED);
            }
            _ => {}
        }
    }
    None
}
