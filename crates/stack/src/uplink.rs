//! The uplink of a border router: packets that leave the mesh, and packets that come in from elsewhere.
//!
//! ```text
//!   from a neighbour, or made here, for another prefix        to another network
//!        RPL's option goes, the hop limit falls   ─────────>  Output::Uplink
//!   to a neighbour, or delivered here             <─────────  Input::Uplink
//!        RPL's option and source route come           from another network
//! ```

use alloc::vec::Vec;

use lowmesh_ipv6::{Decision, packet};
use lowmesh_machine::{DropReason, Handle, Layer};
use lowmesh_units::Instant;
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header};

use crate::event::{Class, Output};
use crate::node::Node;

impl Node {
    /// True for an address outside of the mesh, to which packets leave by the uplink.
    pub(crate) fn is_beyond(&self, address: &Address) -> bool {
        let ours = self.ipv6.addresses.global();
        self.has_uplink
            && address.0[..8] != ours.0[..8]
            && !address.is_link_local()
            && !address.is_multicast()
            && !address.is_unspecified()
    }

    /// True when a packet that has no route here leaves the mesh; `bytes` may be its beginning.
    pub(crate) fn leaves(&self, bytes: &[u8]) -> bool {
        Header::parse(bytes).is_ok_and(|header| self.is_beyond(&header.destination))
    }

    /// Sends a packet of another node out of the mesh.
    pub(crate) fn send_beyond(&mut self, mut bytes: Vec<u8>, handle: Handle) {
        packet::remove_rpl_option(&mut bytes);
        spend_hop(&mut bytes);
        self.outbox.push(Output::Uplink { packet: bytes, handle });
    }

    /// Takes a packet that came over the uplink: it is for this node, or goes on into the mesh.
    pub(crate) fn on_uplink(&mut self, now: Instant, mut bytes: Vec<u8>, handle: Handle) {
        let handle = if handle == Handle::NONE { self.born(Class::Request) } else { handle };
        // What another network wrote for its own routers says nothing here.
        packet::remove_rpl_option(&mut bytes);
        let reason = match self.ipv6.input(&mut bytes) {
            Decision::Deliver => return self.deliver(now, bytes, handle),
            Decision::Forward { .. } => None,
            // RPL knows more routes than the table has. The hop is not paid for yet.
            Decision::Drop(DropReason::NoRoute) => {
                spend_hop(&mut bytes);
                None
            }
            Decision::Drop(reason) => Some(reason),
        };
        let way = reason.map_or_else(|| self.way_in(now, &mut bytes), Err);
        match way {
            Ok(next_hop) => self.send_packet(now, bytes, Some(next_hop), handle),
            Err(reason) => {
                self.tell_source(now, &bytes, handle, (Layer::Ipv6, reason));
                self.dropped(handle, Layer::Ipv6, reason);
            }
        }
    }

    /// The first hop of a packet into the mesh, which gets what packets made here have.
    fn way_in(
        &mut self,
        now: Instant,
        bytes: &mut Vec<u8>,
    ) -> Result<lowmesh_units::Eui64, DropReason> {
        let destination = Header::parse(bytes).map_err(|_| DropReason::Malformed)?.destination;
        let (next_hop, option) = self.way_to(now, destination)?;
        packet::insert_options(bytes, |out| crate::descend::emit(option, out));
        if self.add_source_route(bytes, destination) {
            Ok(next_hop)
        } else {
            Err(DropReason::NoRoute)
        }
    }
}

/// RFC 8200 s3: one hop less at each node that forwards. The forwarder saw that more than one is left.
fn spend_hop(packet: &mut [u8]) {
    packet[HOP_LIMIT_OFFSET] = packet[HOP_LIMIT_OFFSET].saturating_sub(1);
}
