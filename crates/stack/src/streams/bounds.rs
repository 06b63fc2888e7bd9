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
        self.all.len() < self.limits.connections_max
            && self.count_of(peer.0) < self.limits.connections_per_address
    }
    /// Whether there is room for a connection that a peer opens. Beyond the share of its address, another one of that
    /// address gives way.
    pub(super) fn takes_call(&self, peer: Peer) -> bool {
        let gives_way =
            || self.longest_silent(peer).is_some() || self.oldest_half_open(peer.0).is_some();
        self.takes(peer) || self.all.len() < self.limits.connections_max && gives_way()
    }
    /// The unfinished handshake that gives way when `newcomer` begins one: a SYN proves no address, so it costs an
    /// established connection nothing. While there is an established one to end later, one handshake may exceed the share.
    pub(super) fn displaced(&self, newcomer: Peer) -> Option<Peer> {
        let beyond = usize::from(self.longest_silent(newcomer).is_some());
        let is_full = self.count_of(newcomer.0) >= self.limits.connections_per_address + beyond;
        self.oldest_half_open(newcomer.0).filter(|_| is_full)
    }
    /// The connection that gives way when the handshake of `newcomer`, which proves its address, has ended.
    pub(super) fn surplus(&self, newcomer: Peer) -> Option<Peer> {
        let is_beyond = self.count_of(newcomer.0) > self.limits.connections_per_address;
        is_beyond.then(|| self.longest_silent(newcomer).unwrap_or(newcomer))
    }
    fn count_of(&self, address: Address) -> usize {
        self.all.range(of(address)).count()
    }
    fn oldest_half_open(&self, address: Address) -> Option<Peer> {
        self.half_open.iter().map(|(_, peer)| *peer).find(|peer| peer.0 == address)
    }
    /// The established connection that a peer at the address of `newcomer` opened and that has been silent longest.
    fn longest_silent(&self, newcomer: Peer) -> Option<Peer> {
        self.all
            .range(of(newcomer.0))
            .filter(|(peer, stream)| {
                let is_half_open = self.half_open.contains(&(stream.since, **peer));
                **peer != newcomer && !stream.is_own && !is_half_open
            })
            .min_by_key(|(_, stream)| stream.connection.last_heard())
            .map(|(peer, _)| *peer)
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
