//! Bounds of the connections of a node: how many there are, how many are half open, and how many octets all of them hold.
//!
//! A connection holds the octets that wait for its send buffer, those in this buffer, and those that arrived and are not
//! read. Beyond the share of an address, its connection with the most octets is aborted. Beyond the total, the same
//! happens to the address with the most octets, so an address that holds little loses nothing.

use core::ops::RangeInclusive;

use lowmesh_wire::ipv6::Address;

use super::Streams;
use crate::event::Peer;
use crate::params::{
    STREAM_WAITING_OCTETS, STREAMS_HALF_OPEN_MIN, STREAMS_MAX, STREAMS_OCTETS_MAX,
    STREAMS_OCTETS_PER_ADDRESS, STREAMS_PER_ADDRESS,
};

/// Bounds of the connections of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections at once.
    pub connections_max: usize,
    /// The same to and from one address.
    pub connections_per_address: usize,
    /// Octets of one connection that wait for room in its send buffer.
    pub waiting_octets_max: usize,
    /// Octets that all connections hold.
    pub octets_max: usize,
    /// The same of all connections to and from one address.
    pub octets_per_address: usize,
}

impl StreamLimits {
    /// Connections at once whose peers have not finished the handshake (RFC 4987 s3).
    pub(super) fn half_open_max(&self) -> usize {
        (self.connections_max / 4).max(STREAMS_HALF_OPEN_MIN)
    }
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            connections_max: STREAMS_MAX,
            connections_per_address: STREAMS_PER_ADDRESS,
            waiting_octets_max: STREAM_WAITING_OCTETS,
            octets_max: STREAMS_OCTETS_MAX,
            octets_per_address: STREAMS_OCTETS_PER_ADDRESS,
        }
    }
}

impl Streams {
    /// Whether there is room for one more connection with the address of a peer.
    pub(super) fn takes(&self, peer: Peer) -> bool {
        let of_address = self.all.range(of(peer.0)).count();
        self.all.len() < self.limits.connections_max
            && of_address < self.limits.connections_per_address
    }
    /// Octets that the connections to and from an address hold.
    pub(super) fn held_by(&self, address: Address) -> usize {
        self.all.range(of(address)).map(|(_, stream)| stream.held).sum()
    }
    /// The address that holds the most octets.
    pub(super) fn largest_address(&self) -> Option<Address> {
        let addresses = self.all.keys().map(|peer| peer.0);
        addresses.max_by_key(|address| self.held_by(*address))
    }
    /// The connection of an address that holds the most octets.
    pub(super) fn largest_of(&self, address: Address) -> Option<Peer> {
        let largest = self.all.range(of(address)).max_by_key(|(_, stream)| stream.held);
        largest.map(|(peer, _)| *peer)
    }
}

/// All peers with an address.
const fn of(address: Address) -> RangeInclusive<Peer> {
    (address, 0)..=(address, u16::MAX)
}
