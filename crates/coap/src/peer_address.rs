//! The address of a peer, and the source that it belongs to.

use core::hash::Hash;

use lowmesh_shares::Source;
use lowmesh_wire::ipv6::Address;

use crate::params::DATAGRAM_OVERHEAD;

/// What names a peer to the tables of an endpoint and a host.
///
/// Protocol state belongs to one peer: message IDs, tokens, round-trip times, whether its address is proven. A share of a
/// bound belongs to a source: a machine may use any number of ports, and is one source.
///
/// ```
/// use lowmesh_coap::PeerAddress;
/// assert_eq!(("2001:db8::1", 5683).source(), ("2001:db8::1", 61616).source());
/// assert_ne!(("2001:db8::1", 5683).source(), ("2001:db8::2", 5683).source());
/// ```
pub trait PeerAddress: Ord + Copy + Hash {
    /// Octets that the headers of a datagram to or from this address take, as far as amplification counts them.
    fn overhead(self) -> usize {
        DATAGRAM_OVERHEAD
    }
    /// The value that all peers of the same source have in common. It may be the address of one of them. No address of
    /// the source is less, and no address of another source lies between.
    fn source(self) -> Self {
        self
    }
    /// The same source with the wider prefixes that it is in, for tables in which prefixes have shares.
    fn network(self) -> Source;
}

/// Numbers and names have no prefixes in common, so that each is a network of its own.
const fn apart(number: u64) -> Source {
    // The octets that differ most come first.
    Source::V6(number.to_le_bytes())
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl PeerAddress for $number {
            fn network(self) -> Source {
                apart(self.into())
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64);

impl PeerAddress for &str {
    fn network(self) -> Source {
        // The last octet of a name becomes the lowest of the number, which comes first.
        apart(self.bytes().fold(0, |number, octet| number << 8 | u64::from(octet)))
    }
}

/// Nodes of a mesh have one prefix, and each of them is a source.
impl PeerAddress for Address {
    fn network(self) -> Source {
        apart(u64::from_be_bytes(self.interface_identifier()))
    }
}

/// An address and a port: all ports of an address are one source.
impl<A: PeerAddress> PeerAddress for (A, u16) {
    fn source(self) -> Self {
        (self.0, 0)
    }
    fn network(self) -> Source {
        self.0.network()
    }
}
