//! The OSCORE contexts of a planned network (RFC 8613): each node shares one with the root, all of one Master Secret.
//!
//! ```text
//!   node n   Sender ID n, Recipient ID 0, two octets each     the root has the same context the other way round
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_oscore::transport::{OwnRequests, Plain, Protection, VolatileContexts};
use lowmesh_oscore::{Contexts, Identity, Inputs, SecurityContext};
use lowmesh_units::NodeId;
use lowmesh_wire::ipv6::Address;

use crate::event::Peer;
use crate::params::COAP_PORT;

/// What the contexts of a planned network are derived from.
#[derive(Clone, PartialEq, Eq)]
pub struct Oscore {
    /// The Master Secret.
    pub master_secret: Vec<u8>,
    /// Nodes of the network, all roots included.
    pub nodes: u16,
    /// The root that the node shares a context with, or the node itself.
    pub root: NodeId,
}

impl core::fmt::Debug for Oscore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Oscore").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// The Sender ID of a node.
fn identity(id: NodeId) -> Identity {
    // Two octets always fit.
    Identity::new(&id.0.to_be_bytes()).unwrap_or_default()
}

impl Oscore {
    /// Contexts of this Master Secret; who assembles the network says how many nodes there are, and the roots.
    pub fn new(master_secret: &[u8]) -> Self {
        Self { master_secret: master_secret.to_vec(), nodes: 0, root: NodeId(0) }
    }
    fn context(&self, here: NodeId, there: NodeId) -> SecurityContext {
        SecurityContext::derive(&Inputs {
            master_secret: &self.master_secret,
            master_salt: &[],
            id_context: None,
            sender_id: identity(here),
            recipient_id: identity(there),
        })
    }
    /// What the node `id` protects with: every request of its own, and the answers to protected ones.
    pub(crate) fn protection(
        &self,
        id: NodeId,
        address: impl Fn(NodeId) -> Address,
    ) -> Protection<Peer, VolatileContexts> {
        let root = self.root;
        let others: Vec<NodeId> = if id == root {
            (0..self.nodes).map(NodeId).filter(|other| *other != root).collect()
        } else {
            [root].into()
        };
        let contexts = others.iter().map(|other| self.context(id, *other)).collect();
        let peers = others.iter().enumerate();
        let by_peer: BTreeMap<Peer, usize> =
            peers.map(|(place, other)| ((address(*other), COAP_PORT), place)).collect();
        Protection {
            contexts: VolatileContexts::new(Contexts::new(contexts)),
            own_requests: OwnRequests::ByPeer(by_peer),
            plain_requests: Plain::Refused,
        }
    }
}
