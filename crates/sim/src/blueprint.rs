//! What the nodes of a mesh are made from, kept to make a node again that has lost its memory.

use lowmesh_stack::{ConfigError, Node};
use lowmesh_units::{NodeId, Seed};
use lowmesh_wire::ipv6::Address;

use crate::parts::Part;
use crate::traffic::{Config, Plan};
use crate::unsent::Due;

/// Settings of all nodes and of their traffic, and how often each has lost its memory.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) seed: Seed,
    pub(crate) stacks: Vec<lowmesh_stack::Config>,
    pub(crate) traffic: Config,
    pub(crate) addresses: Vec<Address>,
    pub(crate) losses: Vec<u16>,
}

impl Blueprint {
    /// A node without a past.
    pub(crate) fn node(&self, id: NodeId, is_root: bool) -> Result<Node, ConfigError> {
        let losses = self.losses.get(id.index()).copied().unwrap_or_default();
        Node::after_losses(&self.stacks[id.index()], id, is_root, self.seed, losses)
    }

    /// Installs the applications of the traffic on a node; returns how many there are.
    pub(crate) fn install(
        &self,
        id: NodeId,
        node: &mut Node,
        parts: &[Part],
    ) -> Result<usize, ConfigError> {
        let all = self.plan(id, parts).applications(id);
        let count = all.len();
        for one in all {
            node.install(one)?;
        }
        Ok(count)
    }

    /// What falls due at a node in its present life before it joins.
    pub(crate) fn due(&self, id: NodeId, parts: &[Part]) -> Option<Due> {
        self.plan(id, parts).due(id)
    }

    fn plan<'a>(&'a self, id: NodeId, parts: &'a [Part]) -> Plan<'a> {
        let (config, addresses, losses) = (&self.traffic, &self.addresses, self.losses[id.index()]);
        let seed = self.seed.after_losses(losses);
        Plan { config, seed, parts, addresses, losses }
    }
}
