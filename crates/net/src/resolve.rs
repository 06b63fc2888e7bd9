//! From the host of a URI to addresses.

use std::io;
use std::net::{SocketAddr, SocketAddrV6};

use lowmesh_wire::coap::uri::{Host, Uri};

use crate::multicast::{GroupError, Interface};

/// A host that leads nowhere.
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
    /// The zone of an IPv6 address is no interface.
    #[error(transparent)]
    Zone(#[from] GroupError),
    /// An address of the link without its link.
    #[error(
        "{0} is an address of one link: say which, as in [{0}%25eth0] (ip -6 addr lists the links)"
    )]
    NoZone(std::net::Ipv6Addr),
}

/// The addresses of a URI's host, with its port; at least one.
pub async fn resolve(uri: &Uri) -> Result<Vec<SocketAddr>, ResolveError> {
    let port = uri.port();
    match &uri.host {
        Host::V4(address) => Ok(vec![(*address, port).into()]),
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
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
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
    async fn an_address_of_the_link_needs_its_zone() {
        let text = addresses("coap://[fe80::1]/").await.expect_err("which link?");
        assert!(text.contains("%25"), "{text}");
        let zoned = addresses("coap://[fe80::1%251]/").await.expect("by number");
        assert!(matches!(zoned[0], SocketAddr::V6(one) if one.scope_id() == 1));
        let text = addresses("coap://[fe80::1%25nope0]/").await.expect_err("no such link");
        assert!(text.contains("nope0"), "{text}");
    }
}
