//! The uplink of a border router: which packets leave the mesh, and which come in from elsewhere.
//!
//! ```text
//!   from a neighbour, or made here, for another prefix        to another network
//!        as it is, the hop limit falls            ─────────>  Output::Uplink
//!   to a neighbour, or delivered here             <─────────  Event::Uplink
//!        encapsulated by the root                     from another network
//! ```
//! RFC 8200 s4: a packet keeps the headers that its source gave it. RFC 9008 s7.2.1 and s8.2.1 let an RPL option of type
//! 0x23 leave; a node that uses 0x63 encapsulates its packet to the root.
//!
//! A packet that a border router itself sends to a group of scope 4 or more (RFC 7346 s2: admin-local, so wider than one
//! network) leaves also over the uplink. One that comes in goes to the members in the mesh, and not out again.

use lowmesh_machine::{DropReason, Handle};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Scope};

use crate::event::Output;
use crate::params::SOURCE_ROUTE_TYPE;
use crate::{Addresses, Headers, packet};

/// Whether packets for other prefixes leave the mesh at this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uplink {
    is_open: bool,
}

impl Uplink {
    pub const fn new(is_open: bool) -> Self {
        Self { is_open }
    }
    /// True for an address outside of the mesh, to which packets leave here.
    pub fn leads_to(self, addresses: &Addresses, destination: &Address) -> bool {
        self.is_open
            && destination.prefix() != addresses.global().prefix()
            && !destination.is_link_local()
            && !destination.is_multicast()
            && !destination.is_unspecified()
    }
    /// True for a group that may have members outside of the mesh.
    pub fn leads_to_group(self, group: &Address) -> bool {
        self.is_open && group.multicast_scope().is_some_and(|scope| scope.0 > Scope::REALM_LOCAL.0)
    }
}

/// A packet of another node as it leaves the mesh.
pub(crate) fn leave(packet: &[u8], handle: Handle) -> Result<Output, DropReason> {
    check(packet, &Headers::of_packet(packet)?)?;
    let mut packet = packet.to_vec();
    packet::remove_rpl_option(&mut packet);
    spend_hop(&mut packet);
    Ok(Output::Uplink { packet, handle })
}

/// RFC 6554 s5.1: no packet with a source route of RPL enters a network or leaves it.
pub(crate) fn check(packet: &[u8], headers: &Headers) -> Result<(), DropReason> {
    let kind = headers.routing().and_then(|routing| packet.get(routing.start + 2));
    if kind == Some(&SOURCE_ROUTE_TYPE) { Err(DropReason::NotForUs) } else { Ok(()) }
}

/// RFC 8200 s3: one hop less at each node that forwards. The forwarder saw that more than one is left.
pub(crate) fn spend_hop(packet: &mut [u8]) {
    packet[HOP_LIMIT_OFFSET] = packet[HOP_LIMIT_OFFSET].saturating_sub(1);
}
