//! Why a request cannot be put before the application, on any transport.

use lowmesh_wire::coap::{Code, OptionNumber, OptionsIter, decode_uint};

/// Whether a request asks for a forward proxy (RFC 7252 s5.10.2).
pub(crate) fn is_for_proxy(options: OptionsIter<'_>) -> bool {
    options.map(|option| option.number).any(names_proxy)
}

const fn names_proxy(number: OptionNumber) -> bool {
    matches!(number, OptionNumber::PROXY_URI | OptionNumber::PROXY_SCHEME)
}

/// The code to refuse a request with, if its token of `token_len` octets or its options, which hold
/// no unknown critical one, ask for it.
pub(crate) fn refusal(
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
