//! From the host of a URI to addresses.

use std::borrow::Cow;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use lowmesh_wire::coap::uri::{Host, Uri};

use crate::multicast::{GroupError, Interface};

/// A host without a usable address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nobody knows the name.
    #[error("the name {name:?} is not known: {error}")]
    Unknown {
        /// The name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The name has no address.
    #[error("the name {0:?} has no address")]
    NoAddress(String),
    /// A name in other letters than ASCII that is no name of the DNS.
    #[error("{0:?} is not a DNS name: RFC 5891 does not allow its characters")]
    NoName(String),
    /// A zone behind an address that is the same on all links.
    #[error("{0} is the same on every link: remove %25{1}")]
    ZoneTooMany(Ipv6Addr, String),
    /// The zone of an IPv6 address is no interface.
    #[error(transparent)]
    Zone(#[from] GroupError),
    /// An address of the link without its link.
    #[error(
        "{0} is valid on one link only: name the link, as in [{0}%25eth0] (ip -6 addr lists the links)"
    )]
    NoZone(Ipv6Addr),
}

/// The addresses of a URI's host, with its port; at least one.
pub async fn resolve(uri: &Uri) -> Result<Vec<SocketAddr>, ResolveError> {
    let port = uri.port();
    match &uri.host {
        Host::V4(address) => Ok(vec![(*address, port).into()]),
        // RFC 4007 s4: the loopback address is of a link of its own, the same for all interfaces.
        Host::V6(address, Some(_)) if address.is_loopback() => Ok(vec![(*address, port).into()]),
        // RFC 4007 s6: addresses of global scope, private ones (RFC 4193 s3.3) too, have one zone only.
        Host::V6(address, Some(zone)) if !has_zones(*address) => {
            Err(ResolveError::ZoneTooMany(*address, zone.clone()))
        }
        Host::V6(address, Some(zone)) => {
            let Interface(index) = Interface::named(zone)?;
            Ok(vec![SocketAddrV6::new(*address, port, 0, index).into()])
        }
        // RFC 4007 s11: an address of the link means nothing without its zone.
        Host::V6(address, None) if address.is_unicast_link_local() => {
            Err(ResolveError::NoZone(*address))
        }
        Host::V6(address, None) => Ok(vec![(*address, port).into()]),
        Host::Name(name) => {
            let ascii = ascii_name(name)?;
            let found = tokio::net::lookup_host((&*ascii, port)).await;
            let found = found.map_err(|error| ResolveError::Unknown { name: name.clone(), error });
            let addresses: Vec<SocketAddr> = found?.collect();
            if addresses.is_empty() {
                Err(ResolveError::NoAddress(name.clone()))
            } else {
                Ok(addresses)
            }
        }
    }
}

/// A name in the encoding of the DNS. Uri-Host keeps the letters of the URI (RFC 7252 s6.4 step 5); the lookup uses the
/// encoding of IDNA (RFC 3986 s3.2.2).
pub(crate) fn ascii_name(name: &str) -> Result<Cow<'_, str>, ResolveError> {
    if name.is_ascii() {
        return Ok(Cow::Borrowed(name));
    }
    idna::domain_to_ascii_cow(name.as_bytes(), idna::AsciiDenyList::URL)
        .map_err(|_| ResolveError::NoName(name.to_owned()))
}

/// Whether an address means something else on another link: link-local ones, and groups, whose interface a zone chooses.
const fn has_zones(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local() || address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
        let uri: Uri = text.parse().expect("a URI");
        resolve(&uri).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn addresses_and_names_resolve_with_the_port_of_their_scheme() {
        let v4 = addresses("coaps://192.0.2.1/").await.expect("an address");
        assert_eq!(v4, ["192.0.2.1:5684".parse().expect("an address")]);
        let named = addresses("coap://localhost:61616/").await.expect("always known");
        assert!(named.iter().all(|one| one.ip().is_loopback() && one.port() == 61616));
    }

    #[tokio::test]
    async fn a_name_in_other_letters_is_asked_for_as_the_dns_has_it() {
        assert_eq!(ascii_name("bücher.example").expect("a name"), "xn--bcher-kva.example");
        assert_eq!(ascii_name("_coap._udp.example").expect("a name"), "_coap._udp.example");
        // IDNA maps full-width letters to their plain forms (UTS #46 s4).
        let found = addresses("coap://ｌｏｃａｌｈｏｓｔ:61616/").await.expect("localhost");
        assert!(found.iter().all(|one| one.ip().is_loopback()));
        let text = addresses("coap://xn--ü.example/").await.expect_err("both at once");
        assert!(text.contains("DNS"), "{text}");
    }

    #[tokio::test]
    async fn a_zone_behind_an_address_of_every_link_is_refused_and_behind_loopback_ignored() {
        for text in ["coap://[::1%25lo]:9/", "coap://[::1%25nope0]:9/"] {
            let found = addresses(text).await.expect("loopback");
            assert_eq!(found, ["[::1]:9".parse().expect("an address")]);
        }
        for text in ["coap://[2001:db8::1%25eth0]/", "coap://[fd00::1%251]/"] {
            let error = addresses(text).await.expect_err("no link");
            assert!(error.contains("remove %25"), "{error}");
        }
        assert!(addresses("coap://[ff02::fd%251]/").await.is_ok());
    }

    #[tokio::test]
    async fn an_address_of_the_link_needs_its_zone() {
        let text = addresses("coap://[fe80::1]/").await.expect_err("which link?");
        assert!(text.contains("%25"), "{text}");
        let zoned = addresses("coap://[fe80::1%251]/").await.expect("by number");
        assert!(matches!(zoned[0], SocketAddr::V6(one) if one.scope_id() == 1));
        let text = addresses("coap://[fe80::1%25nope0]/").await.expect_err("no such link");
        assert!(text.contains("nope0"), "{text}");
    }
}
