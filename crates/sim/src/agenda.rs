//! The event queue: for every node the next moment at which it must be called, and the next thing that its
//! radio does.
//!
//! An indexed binary heap with one place for each (node, kind): moving an event costs O(log n), nothing is
//! allocated, and no stale event is ever popped. Order is by time, then kind, then node, so it depends on
//! nothing but the events themselves.

use core::cmp::Ordering;

use lowmesh_units::{Instant, NodeId};

/// The kind of a pending event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A deadline of the node's machines or its application.
    Deadline,
    /// The node has sensed the channel; before frames of the same moment begin.
    Sense,
    /// A frame of the node ends or begins, outside of timeslots.
    Frame,
    /// A slot in which the node sends; after all deadlines of the same moment.
    Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Instant,
    kind: Kind,
    node: NodeId,
}

/// How many kinds there are.
const KINDS: usize = 4;
/// No place in the heap.
const ABSENT: u32 = u32::MAX;

/// All pending events.
#[derive(Debug)]
pub struct Agenda {
    heap: Vec<Key>,
    /// Where each (node, kind) stands in the heap.
    places: Vec<[u32; KINDS]>,
}

impl Agenda {
    /// An empty agenda for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { heap: Vec::with_capacity(2 * nodes), places: vec![[ABSENT; KINDS]; nodes] }
    }

    /// Moves an event, adds it, or with `None` removes it.
    pub fn set(&mut self, node: NodeId, kind: Kind, time: Option<Instant>) {
        let place = self.places[node.index()][kind as usize];
        match (time, place) {
            (None, ABSENT) => {}
            (None, place) => self.remove(place as usize),
            (Some(time), ABSENT) => {
                self.heap.push(Key { time, kind, node });
                let last = self.heap.len() - 1;
                self.note(last);
                self.sift_up(last);
            }
            (Some(time), place) => {
                let place = place as usize;
                let before = self.heap[place].time;
                self.heap[place].time = time;
                // Most plans confirm what is planned.
                match time.cmp(&before) {
                    Ordering::Less => self.sift_up(place),
                    Ordering::Equal => {}
                    Ordering::Greater => self.sift_down(place),
                }
            }
        }
    }

    /// The earliest event, left in place.
    pub fn peek(&self) -> Option<(Instant, Kind, NodeId)> {
        self.heap.first().map(|key| (key.time, key.kind, key.node))
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Instant, Kind, NodeId)> {
        let first = self.peek()?;
        self.remove(0);
        Some(first)
    }

    fn remove(&mut self, place: usize) {
        let key = self.heap.swap_remove(place);
        self.places[key.node.index()][key.kind as usize] = ABSENT;
        if place < self.heap.len() {
            self.note(place);
            self.sift_up(place);
            self.sift_down(place);
        }
    }

    fn note(&mut self, place: usize) {
        let key = self.heap[place];
        self.places[key.node.index()][key.kind as usize] = place as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            let mut least = place;
            for child in [left, right] {
                if child < self.heap.len() && self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            self.swap(least, place);
            place = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{Purpose, Rng, Seed};
    use std::collections::BTreeSet;

    #[test]
    fn it_pops_what_a_sorted_set_would_pop_under_random_changes() {
        let mut rng = Rng::stream(Seed(4), NodeId(0), Purpose::Swarm);
        let mut agenda = Agenda::new(20);
        let mut model: BTreeSet<(Instant, Kind, NodeId)> = BTreeSet::new();
        for _ in 0..20_000 {
            let node = NodeId(rng.below(20) as u16);
            let kinds = [Kind::Deadline, Kind::Sense, Kind::Frame, Kind::Slot];
            let kind = kinds[rng.below(KINDS as u32) as usize];
            if rng.chance(0.3) {
                assert_eq!(agenda.pop(), model.pop_first());
                continue;
            }
            let time = rng.chance(0.8).then(|| Instant::from_nanos(u64::from(rng.below(50))));
            agenda.set(node, kind, time);
            model.retain(|(_, k, n)| (*k, *n) != (kind, node));
            model.extend(time.map(|t| (t, kind, node)));
            assert_eq!(agenda.peek(), model.first().copied());
        }
    }

    #[test]
    fn slots_come_after_the_deadlines_of_the_same_moment() {
        let mut agenda = Agenda::new(2);
        agenda.set(NodeId(0), Kind::Slot, Some(Instant::from_secs(1)));
        agenda.set(NodeId(1), Kind::Deadline, Some(Instant::from_secs(1)));
        assert_eq!(agenda.pop().map(|e| e.1), Some(Kind::Deadline));
        assert_eq!(agenda.pop().map(|e| e.1), Some(Kind::Slot));
        assert_eq!(agenda.pop(), None);
    }
}
