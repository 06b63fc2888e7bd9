//! The groups of a node: its memberships, and what its multicast engine learns of them.

use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_multicast::{Event, Snapshot};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::Address;

use crate::multicast::Layers;
use crate::node::Node;

impl Node {
    /// What the multicast engine of this node holds.
    pub fn multicast(&self) -> Snapshot {
        self.multicast.snapshot()
    }
    /// True if this node is in `group`.
    pub fn is_member(&self, group: &Address) -> bool {
        group.is_multicast() && self.ipv6.addresses().contains(group)
    }

    /// The neighbours to which this node forwards packets of `group` because they registered for it.
    pub fn subscribers(&self, group: &Address) -> Vec<Eui64> {
        self.routing.subscribed(group)
    }

    /// Joins a group: its packets come to this node, and RPL advertises the membership if it has routes for groups.
    pub(crate) fn join_group(&mut self, now: Instant, group: Address) -> Result<(), Rejected> {
        self.ipv6.join(group)?;
        if group.is_routed_group() {
            self.routing.join(now, group);
        }
        Ok(())
    }
    /// Leaves a group; nothing happens if the node is not in it.
    pub(crate) fn leave_group(&mut self, now: Instant, group: Address) {
        self.ipv6.leave(&group);
        self.routing.leave(now, group);
    }

    /// Passes an event to the multicast engine.
    pub(crate) fn group_event(&mut self, now: Instant, event: Event<'_>) {
        let layers = Layers {
            addresses: self.ipv6.addresses(),
            routing: &self.routing,
            period: self.link.broadcast_period(),
        };
        self.multicast.handle(now, event, &layers);
    }
}
