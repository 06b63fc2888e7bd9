//! CoAP URIs, and the options they become (RFC 7252 s6, RFC 8323 s8).
//!
//! ```text
//!   coap+tcp://[2001:db8::1%25eth0]:61616/sensors/temp?unit=C
//!   scheme     host         zone   port   path          query
//! ```
//! Names are resolved, and connections made, by the driver. The scheme says on what.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::net::{Ipv4Addr, Ipv6Addr};

use super::{OptionNumber, Options};

/// Longest value of Uri-Host, Uri-Path and Uri-Query, octets (RFC 7252 s5.10).
const PART_LEN_MAX: usize = 255;

/// The schemes of RFC 7252 s6 and RFC 8323 s8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `coap`: UDP.
    Coap,
    /// `coaps`: DTLS.
    Coaps,
    /// `coap+tcp`.
    CoapTcp,
    /// `coaps+tcp`: TLS.
    CoapsTcp,
    /// `coap+ws`: WebSockets.
    CoapWs,
    /// `coaps+ws`: WebSockets over TLS.
    CoapsWs,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Coap, Self::Coaps, Self::CoapTcp, Self::CoapsTcp, Self::CoapWs, Self::CoapsWs];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::CoapTcp => "coap+tcp",
            Self::CoapsTcp => "coaps+tcp",
            Self::CoapWs => "coap+ws",
            Self::CoapsWs => "coaps+ws",
        }
    }
    /// The port where a URI says none: RFC 7252 s6.1 and s6.2, RFC 8323 s8.1 to s8.4.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Coap | Self::CoapTcp => 5683,
            Self::Coaps | Self::CoapsTcp => 5684,
            Self::CoapWs => 80,
            Self::CoapsWs => 443,
        }
    }
    /// True for a scheme over DTLS or TLS.
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Coaps | Self::CoapsTcp | Self::CoapsWs)
    }
    /// True for a connection, false for datagrams.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Coap | Self::Coaps)
    }
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name, decoded and in lower case.
    Name(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address, with its zone if it has one (RFC 6874).
    V6(Ipv6Addr, Option<String>),
}

/// A CoAP URI, taken apart.
///
/// ```
/// use lowmesh_wire::coap::uri::{Host, Uri};
/// use lowmesh_wire::coap::{OptionNumber, Options};
/// let uri: Uri = "coap://Example.net/.well-known/core?rt=a%26b".parse()?;
/// assert_eq!((&uri.host, uri.port()), (&Host::Name("example.net".into()), 5683));
/// let mut options = Options::new();
/// uri.insert_into(&mut options);
/// assert_eq!(options.get(OptionNumber::URI_HOST), Some(&b"example.net"[..]));
/// assert_eq!(options.get(OptionNumber::URI_QUERY), Some(&b"rt=a&b"[..]));
/// assert_eq!(uri.to_string(), "coap://example.net/.well-known/core?rt=a%26b");
/// # Ok::<(), lowmesh_wire::coap::uri::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// How.
    pub scheme: Scheme,
    /// Whom.
    pub host: Host,
    /// Where, if that is said.
    pub explicit_port: Option<u16>,
    /// The segments of the path, decoded; none for `/`.
    pub path: Vec<String>,
    /// The arguments of the query, decoded.
    pub query: Vec<String>,
}

/// Why a text is no CoAP URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// No scheme, or none of CoAP's.
    #[error(
        "a CoAP URI begins with coap://, coaps://, coap+tcp://, coaps+tcp://, coap+ws:// or \
         coaps+ws://"
    )]
    Scheme,
    /// No host, or one that is none.
    #[error("{0:?} is not a host: a name, an IPv4 address, or an IPv6 address in brackets")]
    Host(String),
    /// A port that is none.
    #[error("{0:?} is not a port: 1 to 65535")]
    Port(String),
    /// RFC 7252 s6.4 step 4: no fragment.
    #[error("a CoAP URI has no fragment, so a # must be written as %23")]
    Fragment,
    /// A percent sign without two hexadecimal digits, or octets that are not UTF-8.
    #[error("{0:?} is not percent-encoded UTF-8: a % must be written as %25")]
    Encoding(String),
    /// More than an option holds.
    #[error("a part of the URI is longer than 255 octets: {0:?}")]
    TooLong(String),
}

impl core::str::FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text.split_once("://").ok_or(UriError::Scheme)?;
        let known = Scheme::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(scheme));
        let scheme = known.ok_or(UriError::Scheme)?;
        // RFC 7252 s6.4 step 4: a URI with a fragment fails.
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, explicit_port) = split_authority(authority)?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(p, q)| (p, Some(q)));
        // RFC 7252 s6.4 step 8: the path `/` and the empty one have no option.
        let path = path.strip_prefix('/').unwrap_or(path);
        let path =
            if path.is_empty() { Vec::new() } else { without_dot_segments(parts(path, '/')?) };
        let query = query.map_or(Ok(Vec::new()), |query| parts(query, '&'))?;
        Ok(Self { scheme, host, explicit_port, path, query })
    }
}

impl Uri {
    /// The port, said or not.
    pub fn port(&self) -> u16 {
        self.explicit_port.unwrap_or(self.scheme.default_port())
    }
    /// Adds the options of a request that is sent to the host and port of the URI itself: Uri-Host
    /// for a name, Uri-Path and Uri-Query (RFC 7252 s6.4).
    pub fn insert_into(&self, options: &mut Options) {
        if let Host::Name(name) = &self.host {
            options.insert(OptionNumber::URI_HOST, name.as_bytes());
        }
        for segment in &self.path {
            options.insert(OptionNumber::URI_PATH, segment.as_bytes());
        }
        for argument in &self.query {
            options.insert(OptionNumber::URI_QUERY, argument.as_bytes());
        }
    }
}

fn split_authority(authority: &str) -> Result<(Host, Option<u16>), UriError> {
    let bad = || UriError::Host(authority.into());
    let (host, port) = if let Some(inside) = authority.strip_prefix('[') {
        let (inside, behind) = inside.split_once(']').ok_or_else(bad)?;
        let (address, zone) = match inside.split_once('%') {
            // RFC 6874 s2: the zone follows `%25`; a bare `%` is what people type.
            Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
            None => (inside, None),
        };
        let address = address.parse().map_err(|_| bad())?;
        if zone == Some("") {
            return Err(bad());
        }
        let port = match behind {
            "" => None,
            _ => Some(behind.strip_prefix(':').ok_or_else(bad)?),
        };
        (Host::V6(address, zone.map(String::from)), port)
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let name = decoded(host)?.to_ascii_lowercase();
        // RFC 7252 s6.4: an authority with user information, or without a host, fails.
        if name.is_empty() || name.contains(['@', ' ', '/', '[', ']', '\0']) {
            return Err(bad());
        }
        if name.len() > PART_LEN_MAX {
            return Err(UriError::TooLong(name));
        }
        (name.parse().map_or(Host::Name(name), Host::V4), port)
    };
    let port = match port {
        None | Some("") => None,
        Some(digits) => {
            let number = digits.parse().ok().filter(|port| *port != 0);
            Some(number.ok_or_else(|| UriError::Port(digits.into()))?)
        }
    };
    Ok((host, port))
}

/// The decoded segments of a path without `.` and `..` (RFC 7252 s6.4 step 2, RFC 3986 s5.2.4): a Uri-Path must not have
/// these values (RFC 7252 s5.10.1). `%2E` is a dot too, since a URI means the same with it (RFC 3986 s2.3).
pub fn without_dot_segments<S: AsRef<[u8]> + Default>(segments: Vec<S>) -> Vec<S> {
    let mut path = Vec::new();
    let count = segments.len();
    for (place, segment) in segments.into_iter().enumerate() {
        match segment.as_ref() {
            b"." => {}
            // Above the root there is nothing to leave.
            b".." => drop(path.pop()),
            _ => {
                path.push(segment);
                continue;
            }
        }
        // A path that ends in a dot segment ends in a slash.
        if place + 1 == count {
            path.push(S::default());
        }
    }
    // RFC 7252 s6.4 step 8: `/` has no option.
    let is_root = matches!(&path[..], [only] if only.as_ref().is_empty());
    if is_root { Vec::new() } else { path }
}

fn parts(text: &str, separator: char) -> Result<Vec<String>, UriError> {
    let part = |part| {
        let part = decoded(part)?;
        if part.len() > PART_LEN_MAX { Err(UriError::TooLong(part)) } else { Ok(part) }
    };
    text.split(separator).map(part).collect()
}

fn decoded(part: &str) -> Result<String, UriError> {
    let octets = percent_decode(part).ok_or_else(|| UriError::Encoding(part.into()))?;
    String::from_utf8(octets).map_err(|_| UriError::Encoding(part.into()))
}

/// The octets that a part of a URI stands for; `None` if two hexadecimal digits do not follow each
/// percent sign (RFC 3986 s2.1).
pub fn percent_decode(part: &str) -> Option<Vec<u8>> {
    let digit = |octet: u8| char::from(octet).to_digit(16);
    let mut octets = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let (pair, tail) = tail.split_first_chunk::<2>()?;
            octets.push((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
            rest = tail;
        } else {
            octets.push(*first);
        }
    }
    Some(octets)
}

/// Writes a part of a URI; what is neither allowed in a segment (RFC 3986 s3.3) nor in `more` is
/// percent-encoded.
fn encode(part: &str, more: &[u8], without: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for octet in part.bytes() {
        let plain = octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&octet);
        if (plain || more.contains(&octet)) && octet != without {
            f.write_char(char::from(octet))?;
        } else {
            write!(f, "%{octet:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name())?;
        match &self.host {
            Host::Name(name) => encode(name, b"", b':', f)?,
            Host::V4(address) => write!(f, "{address}")?,
            Host::V6(address, None) => write!(f, "[{address}]")?,
            Host::V6(address, Some(zone)) => write!(f, "[{address}%25{zone}]")?,
        }
        if let Some(port) = self.explicit_port {
            write!(f, ":{port}")?;
        }
        // RFC 7252 s6.5: at least the slash, then segments and arguments.
        if self.path.is_empty() {
            f.write_char('/')?;
        }
        for segment in &self.path {
            f.write_char('/')?;
            encode(segment, b"", 0, f)?;
        }
        for (place, argument) in self.query.iter().enumerate() {
            f.write_char(if place == 0 { '?' } else { '&' })?;
            encode(argument, b"/?", b'&', f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_three_equal_uris_of_rfc_7252_are_equal() {
        // RFC 7252 s6.3.
        let first = uri("coap://example.com:5683/~sensors/temp.xml");
        for other in
            ["coap://EXAMPLE.com/%7Esensors/temp.xml", "coap://EXAMPLE.com:/%7esensors/temp.xml"]
        {
            let other = uri(other);
            assert_eq!((&other.host, other.port(), &other.path), (&first.host, 5683, &first.path));
        }
    }

    #[test]
    fn the_uris_of_rfc_7252_appendix_b_become_its_options() {
        let mut options = Options::new();
        uri("coap://[2001:db8::2:1]/").insert_into(&mut options);
        assert!(options.is_empty());
        uri("coap://example.net/").insert_into(&mut options);
        assert_eq!(options.get(OptionNumber::URI_HOST), Some(&b"example.net"[..]));
        let japanese =
            uri("coap://xn--18j4d.example/%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF");
        assert_eq!(japanese.path, ["こんにちは"]);
        let odd = uri("coap://198.51.100.1:61616//%2F//?%2F%2F&?%26");
        assert_eq!(
            (odd.host, odd.explicit_port),
            (Host::V4([198, 51, 100, 1].into()), Some(61616))
        );
        assert_eq!(odd.path, ["", "/", "", ""]);
        assert_eq!(odd.query, ["//", "?&"]);
    }

    #[test]
    fn dot_segments_are_resolved_and_never_become_options() {
        // RFC 3986 s5.2.4 has the first two, s5.4.2 those above the root.
        for (path, resolved) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("/mid/content=5/../6", "/mid/6"),
            ("/a/../b", "/b"),
            ("/../../g", "/g"),
            ("/..", "/"),
            ("/.", "/"),
            ("/./", "/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a//../b", "/a/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/%2E/b", "/a/b"),
            ("/...", "/..."),
            ("/..a/.b", "/..a/.b"),
            ("/a?x=../b", "/a?x=../b"),
        ] {
            assert_eq!(uri(&format!("coap://h{path}")).to_string(), format!("coap://h{resolved}"));
        }
    }

    #[test]
    fn every_scheme_has_its_port() {
        let ports = [5683, 5684, 5683, 5684, 80, 443];
        for (scheme, port) in Scheme::ALL.into_iter().zip(ports) {
            let uri = uri(&format!("{}://h/a", scheme.name()));
            assert_eq!((uri.scheme, uri.port()), (scheme, port));
        }
    }

    #[test]
    fn a_zone_follows_an_address_with_and_without_its_25() {
        for text in ["coap://[ff02::fd%25eth0]/", "coap://[ff02::fd%eth0]/"] {
            let host = Host::V6("ff02::fd".parse().expect("an address"), Some("eth0".into()));
            assert_eq!(uri(text).host, host);
            assert_eq!(uri(text).to_string(), "coap://[ff02::fd%25eth0]/");
        }
    }

    #[test]
    fn what_is_no_coap_uri_is_told_why() {
        for (text, error) in [
            ("http://h/", UriError::Scheme),
            ("coap:h", UriError::Scheme),
            ("coap://h/a#b", UriError::Fragment),
            ("coap:///a", UriError::Host(String::new())),
            ("coap://me@h/", UriError::Host("me@h".into())),
            ("coap://[::1/", UriError::Host("[::1".into())),
            ("coap://[::1]x", UriError::Host("[::1]x".into())),
            ("coap://[fe80::1%]/", UriError::Host("[fe80::1%]".into())),
            ("coap://h:0/", UriError::Port("0".into())),
            ("coap://h:65536/", UriError::Port("65536".into())),
            ("coap://h/%4", UriError::Encoding("%4".into())),
            ("coap://h/%ff", UriError::Encoding("%ff".into())),
        ] {
            assert_eq!(text.parse::<Uri>(), Err(error), "{text}");
        }
        let long = format!("coap://h/{}", "a".repeat(256));
        assert!(matches!(long.parse::<Uri>(), Err(UriError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn what_parses_is_written_and_parses_to_the_same(
            text in "(coap|coaps\\+ws)://([a-zA-Z0-9.%]{1,8}|\\[::[0-9a-f]{0,2}\\])(:[0-9]{0,5})?(/.{0,8}){0,3}(\\?.{0,10})?",
        ) {
            if let Ok(uri) = text.parse::<Uri>() {
                prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
            }
        }
    }
}
