//! Which options are encrypted, and which stay in the open for proxies (RFC 8613 s4.1).
//!
//! ```text
//!   Class E   inside the ciphertext: all that no row below names
//!   Class U   outside: Uri-Host, Uri-Port, Proxy-Uri, Proxy-Scheme, OSCORE, Hop-Limit
//!   both      Observe, Max-Age, Block1, Block2, Size1, Size2, No-Response: inside for the other
//!             end, and outside for (or by) proxies
//! ```
//! No option is of Class I.

use alloc::vec::Vec;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::uri::{percent_decode, without_dot_segments};
use lowmesh_wire::coap::{Code, OptionNumber, OptionRef, Options};

use crate::ProtectError;

/// True for an option that the other end does not find in the ciphertext: Class U alone.
pub(crate) const fn is_outer_only(number: OptionNumber) -> bool {
    matches!(
        number,
        OptionNumber::URI_HOST
            | OptionNumber::URI_PORT
            | OptionNumber::OSCORE
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME
            // RFC 8768 s3: Class U.
            | OptionNumber::HOP_LIMIT
    )
}

/// A message taken apart.
pub(crate) struct Parts {
    pub inner: Options,
    pub outer: Options,
    pub outer_code: Code,
}

/// Which way a message goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// Sorts the options of a message that is to be protected.
pub(crate) fn split(message: &StreamMessage, way: Direction) -> Result<Parts, ProtectError> {
    let fits = match way {
        Direction::Request => message.code.is_request(),
        Direction::Response => message.code.is_response(),
    };
    if !fits {
        return Err(ProtectError::Code(message.code));
    }
    let (mut inner, mut outer) = (Options::new(), Options::new());
    let mut observes = false;
    for OptionRef { number, value } in &message.options {
        match number {
            // RFC 8613 s4.1.3.7: nested use is not supported, and processing SHALL be stopped.
            OptionNumber::OSCORE => return Err(ProtectError::Nested),
            OptionNumber::PROXY_URI => split_proxy_uri(value, &mut inner, &mut outer)?,
            OptionNumber::OBSERVE => {
                observes = true;
                outer.insert(number, value);
                // RFC 8613 s4.1.3.5.2: the Inner Observe of a notification MUST be empty.
                inner.insert(number, if way == Direction::Request { value } else { &[] });
            }
            _ if is_outer_only(number) => outer.insert(number, value),
            _ => inner.insert(number, value),
        }
    }
    // RFC 8613 s4.1.3.5 and s4.2: POST and 2.04, but FETCH and 2.05 for what observes.
    let outer_code = match (way, observes) {
        (Direction::Request, false) => Code::POST,
        (Direction::Request, true) => Code::FETCH,
        (Direction::Response, false) => Code::CHANGED,
        (Direction::Response, true) => Code::CONTENT,
    };
    Ok(Parts { inner, outer, outer_code })
}

/// The options of an OSCORE message that has been opened: its outer ones of Class U, and what was
/// inside.
pub(crate) fn join(outer: &Options, inner: &Options) -> Options {
    // RFC 8613 s8.2 and s8.4, step 1: all Class E options outside are discarded.
    let mut joined = inner.clone();
    let kept = |option: &OptionRef<'_>| {
        is_outer_only(option.number) && option.number != OptionNumber::OSCORE
    };
    for option in outer.iter().filter(kept) {
        joined.insert(option.number, option.value);
    }
    joined
}

/// RFC 8613 s4.1.3.3: what a proxy needs of a Proxy-Uri stays outside, path and query go inside.
fn split_proxy_uri(
    value: &[u8],
    inner: &mut Options,
    outer: &mut Options,
) -> Result<(), ProtectError> {
    let uri = core::str::from_utf8(value).map_err(|_| ProtectError::ProxyUri)?;
    let (scheme, rest) = uri.split_once("://").ok_or(ProtectError::ProxyUri)?;
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    if scheme.is_empty() || end == 0 {
        return Err(ProtectError::ProxyUri);
    }
    let (path, query) = rest[end..].split_once('?').unwrap_or((&rest[end..], ""));
    outer.insert(OptionNumber::PROXY_URI, &uri.as_bytes()[..scheme.len() + 3 + end]);
    let decoded = |part| percent_decode(part).ok_or(ProtectError::ProxyUri);
    // RFC 7252 s6.4: `/` and nothing are the same path; parts are percent-decoded.
    let segments = path.strip_prefix('/').unwrap_or(path);
    if !segments.is_empty() {
        let segments: Result<Vec<Vec<u8>>, _> = segments.split('/').map(decoded).collect();
        // RFC 7252 s6.4 step 2: dot segments are resolved before there are options.
        for segment in without_dot_segments(segments?) {
            inner.insert(OptionNumber::URI_PATH, &segment);
        }
    }
    if !query.is_empty() {
        for argument in query.split('&') {
            inner.insert(OptionNumber::URI_QUERY, &decoded(argument)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(uri: &str) -> Result<Parts, ProtectError> {
        let mut message = StreamMessage::new(Code::GET);
        message.options.insert(OptionNumber::PROXY_URI, uri.as_bytes());
        split(&message, Direction::Request)
    }

    fn values(options: &Options, number: OptionNumber) -> Vec<&[u8]> {
        options.iter().values(number).collect()
    }

    #[test]
    fn a_proxy_uri_keeps_its_authority_outside_and_its_path_and_query_inside() {
        // RFC 8613 s4.1.3.3, the example, with a longer path.
        let parts = proxied("coap://example.com/resource/a%2Fb?q=1&r=%32#end").expect("a URI");
        assert_eq!(parts.outer.get(OptionNumber::PROXY_URI), Some(&b"coap://example.com"[..]));
        assert_eq!(values(&parts.inner, OptionNumber::URI_PATH), [&b"resource"[..], b"a/b"]);
        assert_eq!(values(&parts.inner, OptionNumber::URI_QUERY), [b"q=1", b"r=2"]);
    }

    #[test]
    fn dot_segments_of_a_proxy_uri_are_resolved() {
        for (uri, path) in [
            ("coap://h/a/./b/../c", &[&b"a"[..], b"c"][..]),
            ("coap://h/a/%2e%2E/b/c/..", &[b"b", b""]),
            ("coap://h/../..", &[]),
        ] {
            let parts = proxied(uri).expect("a URI");
            assert_eq!(values(&parts.inner, OptionNumber::URI_PATH), path, "{uri}");
        }
    }

    #[test]
    fn a_proxy_uri_may_lack_path_and_query_but_not_its_authority() {
        for uri in ["coap://[2001:db8::1]:61616", "coap://h/"] {
            let parts = proxied(uri).expect("a URI");
            assert!(parts.inner.is_empty(), "{uri}");
        }
        for uri in ["coap:/h", "://h", "coap:///path", "nothing", "coap://h/%4"] {
            assert_eq!(proxied(uri).err(), Some(ProtectError::ProxyUri), "{uri}");
        }
    }

    #[test]
    fn options_go_inside_unless_a_proxy_needs_them() {
        let mut message = StreamMessage::new(Code::PUT);
        message.options.insert(OptionNumber::URI_HOST, b"h");
        message.options.insert_path("/secret");
        message.options.insert_uint(OptionNumber::BLOCK1, 8);
        message.options.insert_uint(OptionNumber::HOP_LIMIT, 16);
        message.options.insert(OptionNumber(2049), b"unknown");
        let parts = split(&message, Direction::Request).expect("plain");
        let outside: Vec<u16> = parts.outer.iter().map(|option| option.number.0).collect();
        let inside: Vec<u16> = parts.inner.iter().map(|option| option.number.0).collect();
        assert_eq!((outside, inside), (vec![3, 16], vec![11, 27, 2049]));
        assert_eq!(parts.outer_code, Code::POST);
    }

    #[test]
    fn observe_is_on_both_sides_but_says_its_number_inside_of_requests_only() {
        let mut message = StreamMessage::new(Code::GET);
        message.options.insert_uint(OptionNumber::OBSERVE, 1);
        let parts = split(&message, Direction::Request).expect("plain");
        assert_eq!(parts.inner.get(OptionNumber::OBSERVE), Some(&[1][..]));
        assert_eq!(parts.outer.get(OptionNumber::OBSERVE), Some(&[1][..]));
        assert_eq!(parts.outer_code, Code::FETCH);
        message.code = Code::CONTENT;
        let parts = split(&message, Direction::Response).expect("plain");
        assert_eq!(parts.inner.get(OptionNumber::OBSERVE), Some(&[][..]));
        assert_eq!(parts.outer.get(OptionNumber::OBSERVE), Some(&[1][..]));
        assert_eq!(parts.outer_code, Code::CONTENT);
    }

    #[test]
    fn what_a_proxy_adds_outside_of_class_e_is_discarded() {
        let mut outer = Options::new();
        outer.insert(OptionNumber::IF_MATCH, b"attacker");
        outer.insert_uint(OptionNumber::OBSERVE, 0);
        outer.insert(OptionNumber::URI_HOST, b"h");
        outer.insert(OptionNumber::OSCORE, b"");
        let mut inner = Options::new();
        inner.insert_path("/a");
        let numbers: Vec<u16> = join(&outer, &inner).iter().map(|one| one.number.0).collect();
        assert_eq!(numbers, [3, 11]);
    }
}
