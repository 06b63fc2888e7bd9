//! The book of packets to groups: each ends at every member as delivered, as lost with a reason, or as open.
//!
//! The [ledger](crate::ledger) counts the copies. This book notes what each node did with its copy. Once no copy is left,
//! a member without delivery has lost the packet, for the first of these reasons:
//!
//! | the member | reason |
//! |---|---|
//! | dropped its copy | that of the drop |
//! | has no parent and is no root | `not_joined` |
//! | hears from a node that dropped the packet | that of the drop |
//! | hears from a node that had the packet | `unheard` |
//!
//! The node that a member hears from is its preferred parent, or if that had no copy, the parent of that, up to the root.

use std::collections::BTreeMap;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer};
use lowmesh_units::{Instant, NodeId};
use lowmesh_wire::ipv6::Address;

use crate::record::{Fate, GroupPacket, MemberFate};

/// What a node did with a packet.
#[derive(Clone, Copy, Debug, Default)]
struct CopyState {
    delivered: Option<Instant>,
    drop: Option<(Layer, DropReason)>,
}

/// A packet of which there are copies.
#[derive(Debug)]
struct Open {
    /// Its place in the record.
    place: usize,
    /// The nodes that have or had a copy.
    copies: BTreeMap<NodeId, CopyState>,
    /// The preferred parent of each node when the packet was sent.
    parents: Vec<Option<NodeId>>,
}

/// A packet that is about to be sent to a group.
#[derive(Debug)]
pub(crate) struct Addressed {
    pub(crate) at: Instant,
    pub(crate) node: NodeId,
    pub(crate) group: Address,
    /// All members but the sender.
    pub(crate) members: Vec<NodeId>,
    /// The preferred parent of each node of the run.
    pub(crate) parents: Vec<Option<NodeId>>,
}

/// The packets to groups of a run.
#[derive(Debug, Default)]
pub(crate) struct GroupBook {
    open: BTreeMap<Handle, Open>,
    packets: Vec<GroupPacket>,
}

impl GroupBook {
    /// A node sends a packet.
    pub(crate) fn addressed(&mut self, handle: Handle, addressed: Addressed) {
        let Addressed { at, node, group, members, parents } = addressed;
        let copies = BTreeMap::from([(node, CopyState::default())]);
        self.open.insert(handle, Open { place: self.packets.len(), copies, parents });
        let open = |node| MemberFate { node, fate: Fate::Open };
        let members = members.into_iter().map(open).collect();
        self.packets.push(GroupPacket { node, group, sent: at, members });
    }
    /// A node has a copy.
    pub(crate) fn accepted(&mut self, handle: Handle, node: NodeId) {
        self.update_copy(handle, node, |_| ());
    }
    /// A copy was delivered at a node.
    pub(crate) fn delivered(&mut self, now: Instant, handle: Handle, node: NodeId) {
        self.update_copy(handle, node, |copy| _ = copy.delivered.get_or_insert(now));
    }
    /// A copy ended at a node.
    pub(crate) fn dropped(&mut self, dropped: Dropped, node: NodeId) {
        let Dropped { handle, layer, reason } = dropped;
        self.update_copy(handle, node, |copy| {
            // That another copy is not wanted says nothing of the first one.
            if copy.drop.is_none_or(|(_, before)| is_of_spare_copy(before)) {
                copy.drop = Some((layer, reason));
            }
        });
    }
    fn update_copy(&mut self, handle: Handle, node: NodeId, change: impl FnOnce(&mut CopyState)) {
        if let Some(open) = self.open.get_mut(&handle) {
            change(open.copies.entry(node).or_default());
        }
    }

    /// No copy of a packet is left: the reasons for which members lost it.
    pub(crate) fn close(&mut self, handle: Handle) -> Vec<(Layer, DropReason)> {
        let Some(open) = self.open.remove(&handle) else { return Vec::new() };
        let mut reasons = Vec::new();
        for member in &mut self.packets[open.place].members {
            member.fate = if let Some(at) = open.delivered(member.node) {
                Fate::Delivered(at)
            } else {
                let (layer, reason) = open.reason(member.node);
                reasons.push((layer, reason));
                Fate::Lost(layer, reason)
            };
        }
        reasons
    }
    /// The record of all packets at the end of a run.
    pub(crate) fn finish(mut self) -> Vec<GroupPacket> {
        for open in self.open.values() {
            for member in &mut self.packets[open.place].members {
                if let Some(at) = open.delivered(member.node) {
                    member.fate = Fate::Delivered(at);
                }
            }
        }
        self.packets
    }
}

impl Open {
    fn delivered(&self, node: NodeId) -> Option<Instant> {
        self.copies.get(&node)?.delivered
    }
    /// Why a member has no copy.
    fn reason(&self, member: NodeId) -> (Layer, DropReason) {
        let strong = |(_, reason): &(Layer, DropReason)| !is_of_spare_copy(*reason);
        let drop_at = |node: &NodeId| self.copies.get(node).and_then(|copy| copy.drop);
        if let Some(own) = drop_at(&member) {
            return own;
        }
        let parent = |node: NodeId| self.parents.get(node.index()).copied().flatten();
        let Some(first) = parent(member) else {
            let source = self.copies.keys().find_map(|node| drop_at(node).filter(strong));
            let is_root = self.parents.contains(&Some(member));
            let unjoined = (Layer::Ipv6, DropReason::NotJoined);
            let unheard = (Layer::Mac, DropReason::Unheard);
            return if is_root { source.unwrap_or(unheard) } else { unjoined };
        };
        // Parents may lead in a circle for a while.
        let upward = std::iter::successors(Some(first), |node| parent(*node));
        let above = upward.take(self.parents.len()).find(|node| self.copies.contains_key(node));
        let cause = above.and_then(|node| drop_at(&node)).filter(strong);
        cause.unwrap_or((Layer::Mac, DropReason::Unheard))
    }
}

/// True for the end of a copy beside another one.
const fn is_of_spare_copy(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::Duplicate
            | DropReason::NotFromParent
            | DropReason::NotForUs
            | DropReason::Suppressed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Handle = Handle(7);
    const FULL: (Layer, DropReason) = (Layer::Mac, DropReason::QueueFull);
    const UNHEARD: (Layer, DropReason) = (Layer::Mac, DropReason::Unheard);

    /// 0 <- 1 <- 2 <- 3, and 4 without a parent; all but the root are members.
    fn book() -> GroupBook {
        let mut book = GroupBook::default();
        let parents = [None, Some(0), Some(1), Some(2), None];
        let addressed = Addressed {
            at: Instant::from_secs(1),
            node: NodeId(0),
            group: Address::ALL_MPL_FORWARDERS,
            members: (1..5).map(NodeId).collect(),
            parents: parents.map(|parent| parent.map(NodeId)).to_vec(),
        };
        book.addressed(PACKET, addressed);
        book
    }
    fn dropped((layer, reason): (Layer, DropReason)) -> Dropped {
        Dropped { handle: PACKET, layer, reason }
    }
    fn fates(book: GroupBook) -> Vec<Fate> {
        let packets = book.finish();
        packets[0].members.iter().map(|member| member.fate).collect()
    }

    #[test]
    fn each_member_has_it_or_a_reason() {
        let mut book = book();
        let now = Instant::from_secs(2);
        book.accepted(PACKET, NodeId(1));
        book.delivered(now, PACKET, NodeId(1));
        book.dropped(dropped(FULL), NodeId(1));
        let unjoined = (Layer::Ipv6, DropReason::NotJoined);
        assert_eq!(book.close(PACKET), [FULL, FULL, unjoined]);
        let lost = |(layer, reason)| Fate::Lost(layer, reason);
        assert_eq!(fates(book), [Fate::Delivered(now), lost(FULL), lost(FULL), lost(unjoined)]);
    }

    #[test]
    fn behind_a_node_that_sent_it_a_member_has_not_heard_it() {
        let mut book = book();
        book.accepted(PACKET, NodeId(1));
        book.dropped(dropped((Layer::Ipv6, DropReason::Duplicate)), NodeId(1));
        let reasons = book.close(PACKET);
        // Node 1 had a copy and did not deliver it; those behind it heard nothing.
        assert_eq!(reasons[..3], [(Layer::Ipv6, DropReason::Duplicate), UNHEARD, UNHEARD]);
    }

    #[test]
    fn the_first_cause_outweighs_the_end_of_spare_copies() {
        let mut book = book();
        book.dropped(dropped((Layer::Ipv6, DropReason::NotFromParent)), NodeId(2));
        book.dropped(dropped(FULL), NodeId(2));
        book.dropped(dropped((Layer::Ipv6, DropReason::Duplicate)), NodeId(2));
        assert_eq!(book.close(PACKET)[..3], [UNHEARD, FULL, FULL]);
    }

    #[test]
    fn what_is_under_way_at_the_end_is_open_where_it_has_not_arrived() {
        let mut book = book();
        let now = Instant::from_secs(2);
        book.delivered(now, PACKET, NodeId(2));
        assert_eq!(fates(book), [Fate::Open, Fate::Delivered(now), Fate::Open, Fate::Open]);
    }
}
