//! The address of a peer, and the source that it belongs to.

use core::hash::Hash;

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
}

impl PeerAddress for u8 {}
impl PeerAddress for u16 {}
impl PeerAddress for u32 {}
impl PeerAddress for u64 {}
impl PeerAddress for &str {}

/// An address and a port: all ports of an address are one source.
impl<A: Ord + Copy + Hash> PeerAddress for (A, u16) {
    fn source(self) -> Self {
        (self.0, 0)
    }
}
