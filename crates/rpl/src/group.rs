//! Memberships in groups (RFC 6550 s12): the descendants that listen to a group, and the registrations that go to the parent.
//!
//! ```text
//!   a child's DAO for a group, or a membership of this node ---> this node wants the group: a DAO of its own goes up
//!   the last of them ends (No-Path, lifetime, lost child) -----> a No-Path goes up
//! ```
//!
//! Registrations of children: [`GROUP_ROUTES_MAX`] in total, [`GROUP_ROUTES_PER_CHILD`] for one child. The next one is
//! refused by the status of the DAO-ACK. Memberships of this node have their bound in `ipv6`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::rpl::Address;

use crate::params::{GROUP_ROUTES_MAX, GROUP_ROUTES_PER_CHILD};
use crate::{Order, Sequence};

/// The news of a child about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) expires: Instant,
    pub(crate) path_sequence: Sequence,
}

/// What this node has to do with a group.
#[derive(Clone, Debug)]
struct Group {
    is_own: bool,
    /// By link-local address.
    children: BTreeMap<Address, Registration>,
    /// Path Sequence of the latest advertisement of this node.
    path_sequence: Sequence,
    is_advertised: bool,
}

impl Group {
    fn is_wanted(&self) -> bool {
        self.is_own || !self.children.is_empty()
    }
}

/// A change that the parent is to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) group: Address,
    pub(crate) path_sequence: Sequence,
    /// Whether this node wants the group now.
    pub(crate) is_wanted: bool,
}

/// All groups that concern a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    table: BTreeMap<Address, Group>,
    /// The parent may not know the newest state.
    is_changed: bool,
}

/// True for the address of a group.
pub(crate) const fn is_group(address: &Address) -> bool {
    address[0] == 0xff
}

impl Groups {
    /// This node joins a group.
    pub(crate) fn join(&mut self, group: Address) {
        self.entry(group).is_own = true;
        self.is_changed = true;
    }
    /// This node leaves a group.
    pub(crate) fn leave(&mut self, group: &Address) {
        if let Some(known) = self.table.get_mut(group) {
            known.is_own = false;
            self.is_changed = true;
        }
    }
    fn entry(&mut self, group: Address) -> &mut Group {
        self.table.entry(group).or_insert_with(|| Group {
            is_own: false,
            children: BTreeMap::new(),
            path_sequence: Sequence::START,
            is_advertised: false,
        })
    }

    /// The children that registered for a group, ordered.
    pub(crate) fn children(&self, group: &Address) -> impl Iterator<Item = &Address> {
        self.table.get(group).into_iter().flat_map(|known| known.children.keys())
    }

    /// Takes the registration of a child; false if there is no room for it.
    pub(crate) fn register(
        &mut self,
        group: Address,
        child: Address,
        registration: Registration,
    ) -> bool {
        if self.is_stale(&group, &child, registration.path_sequence) {
            return true;
        }
        let known = self.table.get(&group).is_some_and(|group| group.children.contains_key(&child));
        if !known {
            let children = self.table.values().flat_map(|group| group.children.keys());
            let (all, own) = children
                .fold((0, 0), |(all, own), one| (all + 1, own + usize::from(*one == child)));
            if all >= GROUP_ROUTES_MAX || own >= GROUP_ROUTES_PER_CHILD {
                return false;
            }
        }
        self.entry(group).children.insert(child, registration);
        self.is_changed = true;
        true
    }
    /// Takes the No-Path of a child.
    pub(crate) fn withdraw(&mut self, group: &Address, child: &Address, sequence: Sequence) {
        if !self.is_stale(group, child, sequence)
            && let Some(known) = self.table.get_mut(group)
        {
            self.is_changed |= known.children.remove(child).is_some();
        }
    }
    /// RFC 6550 s9.2.2: what is older than known is stale.
    fn is_stale(&self, group: &Address, child: &Address, sequence: Sequence) -> bool {
        let known = self.table.get(group).and_then(|group| group.children.get(child));
        known.is_some_and(|known| sequence.order(known.path_sequence) == Order::Older)
    }
    /// A neighbour is no child any more.
    pub(crate) fn forget_child(&mut self, child: &Address) {
        for group in self.table.values_mut() {
            self.is_changed |= group.children.remove(child).is_some();
        }
    }
    /// Ends the registrations whose lifetime is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        for group in self.table.values_mut() {
            let before = group.children.len();
            group.children.retain(|_, registration| registration.expires > now);
            self.is_changed |= group.children.len() != before;
        }
    }
    /// When the next registration ends.
    pub(crate) fn earliest_expiry(&self) -> Instant {
        let all = self.table.values().flat_map(|group| group.children.values());
        all.map(|registration| registration.expires).min().unwrap_or(Instant::FAR_FUTURE)
    }
    /// Forgets everything but the memberships of this node.
    pub(crate) fn clear(&mut self) {
        for group in self.table.values_mut() {
            group.children.clear();
            group.is_advertised = false;
        }
        self.table.retain(|_, group| group.is_own);
        self.is_changed = !self.table.is_empty();
    }

    /// What the parent has yet to hear; it counts as told from now on.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        if !core::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let changed = |group: &Group| group.is_wanted() != group.is_advertised;
        let changes = self.tell(changed);
        self.table.retain(|_, group| group.is_wanted());
        changes
    }
    /// All groups that this node wants, for a refresh or a new parent; they count as told from now on.
    pub(crate) fn take_all(&mut self) -> Vec<Change> {
        self.tell(Group::is_wanted)
    }
    fn tell(&mut self, which: impl Fn(&Group) -> bool) -> Vec<Change> {
        let chosen = self.table.iter_mut().filter(|(_, group)| which(group));
        let tell = |(group, known): (&Address, &mut Group)| {
            let is_wanted = known.is_wanted();
            known.is_advertised = is_wanted;
            // RFC 6550 s9.2.2: each advertisement of a target by its own node has a new Path Sequence.
            known.path_sequence = known.path_sequence.next();
            Change { group: *group, path_sequence: known.path_sequence, is_wanted }
        };
        chosen.map(tell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Address = [0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd];

    fn child(id: u8) -> Address {
        [id; 16]
    }
    fn until(seconds: u64) -> Registration {
        Registration { expires: Instant::from_secs(seconds), path_sequence: Sequence::START }
    }
    fn wanted(groups: &mut Groups) -> Vec<bool> {
        groups.take_changes().iter().map(|change| change.is_wanted).collect()
    }

    #[test]
    fn the_parent_hears_of_the_first_member_and_of_the_end_of_the_last() {
        let mut groups = Groups::default();
        assert!(groups.register(GROUP, child(1), until(10)));
        assert_eq!(wanted(&mut groups), [true]);
        assert!(groups.register(GROUP, child(2), until(20)));
        groups.join(GROUP);
        assert!(wanted(&mut groups).is_empty());
        groups.withdraw(&GROUP, &child(1), Sequence::START);
        groups.leave(&GROUP);
        assert!(wanted(&mut groups).is_empty());
        assert_eq!(groups.children(&GROUP).collect::<Vec<_>>(), [&child(2)]);
        groups.expire(Instant::from_secs(20));
        assert_eq!(wanted(&mut groups), [false]);
        assert!(groups.table.is_empty());
    }

    #[test]
    fn a_lost_child_takes_its_registrations_along() {
        let mut groups = Groups::default();
        for last in 0..3 {
            let mut group = GROUP;
            group[15] = last;
            assert!(groups.register(group, child(1), until(10)));
        }
        assert!(groups.register(GROUP, child(2), until(10)));
        wanted(&mut groups);
        groups.forget_child(&child(1));
        assert_eq!(wanted(&mut groups), [false; 3]);
        assert_eq!(groups.children(&GROUP).count(), 1);
    }

    #[test]
    fn old_news_of_a_child_changes_nothing() {
        let mut groups = Groups::default();
        let newer = Registration { path_sequence: Sequence::START.next(), ..until(20) };
        assert!(groups.register(GROUP, child(1), newer));
        groups.withdraw(&GROUP, &child(1), Sequence::START);
        assert!(groups.register(GROUP, child(1), until(5)));
        assert_eq!(groups.earliest_expiry(), Instant::from_secs(20));
    }

    #[test]
    fn registrations_are_bounded_in_total_and_for_one_child() {
        let mut groups = Groups::default();
        let group = |first: usize| {
            let mut group = GROUP;
            group[14..].copy_from_slice(&(first as u16).to_be_bytes());
            group
        };
        for number in 0..GROUP_ROUTES_PER_CHILD {
            assert!(groups.register(group(number), child(1), until(10)));
        }
        assert!(!groups.register(group(GROUP_ROUTES_PER_CHILD), child(1), until(10)));
        assert!(groups.register(group(0), child(1), until(30)), "it renews");
        let others = (2..=u8::MAX).take_while(|id| groups.register(GROUP, child(*id), until(10)));
        assert_eq!(others.count(), GROUP_ROUTES_MAX - GROUP_ROUTES_PER_CHILD);
    }

    #[test]
    fn what_a_node_forgets_is_not_its_own_membership() {
        let mut groups = Groups::default();
        groups.join(GROUP);
        assert!(groups.register(GROUP, child(1), until(10)));
        wanted(&mut groups);
        groups.clear();
        assert_eq!(groups.children(&GROUP).count(), 0);
        assert_eq!(wanted(&mut groups), [true]);
        assert_eq!(groups.take_all().len(), 1);
    }
}
