//! Places of requests that are under way: a total, with shares for a client and for a node.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use crate::params::{UNDER_WAY_A_CLIENT_MAX, UNDER_WAY_A_NODE_MAX, UNDER_WAY_MAX};
use crate::target::Authority;

/// The places that are taken. Requests that the manager makes by itself have the share of one client.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: usize,
    clients: BTreeMap<Option<IpAddr>, usize>,
    nodes: BTreeMap<Authority, usize>,
}

impl Places {
    /// Whether a request for this client to this node may leave.
    pub(crate) fn has_room(&self, client: Option<IpAddr>, node: &Authority) -> bool {
        let of_client = self.clients.get(&client).copied().unwrap_or_default();
        let of_node = self.nodes.get(node).copied().unwrap_or_default();
        self.taken < UNDER_WAY_MAX
            && of_client < UNDER_WAY_A_CLIENT_MAX
            && of_node < UNDER_WAY_A_NODE_MAX
    }
    /// A request leaves.
    pub(crate) fn take(&mut self, client: Option<IpAddr>, node: &Authority) {
        self.taken += 1;
        *self.clients.entry(client).or_default() += 1;
        *self.nodes.entry(node.clone()).or_default() += 1;
    }
    /// A request has ended.
    pub(crate) fn free(&mut self, client: Option<IpAddr>, node: &Authority) {
        self.taken -= 1;
        give_back(&mut self.clients, &client);
        give_back(&mut self.nodes, node);
    }
}

fn give_back<K: Ord>(shares: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(share) = shares.get_mut(key) {
        *share -= 1;
        if *share == 0 {
            shares.remove(key);
        }
    }
}
