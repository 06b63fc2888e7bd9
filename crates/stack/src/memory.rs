//! What a root keeps where a restart does not lose it, such as flash and a clock with a battery.
//!
//! Without it the network of TSCH would live on without its root, and DAOs would not come before their refresh.

use lowmesh_mac::tsch::FormerNetwork;
use lowmesh_rpl::Advertised;

use crate::link::Link;
use crate::node::Node;
use crate::routing::Routing;

/// What a root keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootMemory {
    /// Its network of TSCH.
    network: Option<FormerNetwork>,
    /// Its counters of RPL.
    advertised: Option<Advertised>,
}

impl Node {
    /// What this node has to keep where a restart does not lose it; nothing at nodes that are no root.
    pub fn root_memory(&self) -> RootMemory {
        RootMemory { network: self.link.network(), advertised: self.routing.advertised() }
    }

    /// Gives a node that is switched off and lost its memory what it has kept.
    pub fn remember(&mut self, memory: RootMemory) {
        if let (Link::Slotted(slotted), Some(network)) = (&mut self.link, memory.network) {
            slotted.remember(network);
        }
        if let (Routing::Rpl(rpl), Some(advertised)) = (&mut self.routing, memory.advertised) {
            rpl.resume(advertised);
        }
    }
}
