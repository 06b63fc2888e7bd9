//! The uplink of a border router: which packets leave the mesh, and which come in from elsewhere.
//!
//! ```text
//!   from a neighbour, or made here, for another prefix        to another network
//!        RPL's option goes, the hop limit falls   ─────────>  Output::Uplink
//!   to a neighbour, or delivered here             <─────────  Event::Uplink
//!        RPL's option and source route come           from another network
//! ```
//! A packet that a border router itself sends to a group of scope 4 or more (RFC 7346 s2: admin-local, so wider than one
//! network) leaves also over the uplink. One that comes in goes to the members in the mesh, and not out again.

use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Scope};

use crate::event::Output;
use crate::{Addresses, packet};

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
pub(crate) fn leave(mut packet: Vec<u8>, handle: Handle) -> Output {
    packet::remove_rpl_option(&mut packet);
    spend_hop(&mut packet);
    Output::Uplink { packet, handle }
}

/// RFC 8200 s3: one hop less at each node that forwards. The forwarder saw that more than one is left.
pub(crate) fn spend_hop(packet: &mut [u8]) {
    packet[HOP_LIMIT_OFFSET] = packet[HOP_LIMIT_OFFSET].saturating_sub(1);
}
