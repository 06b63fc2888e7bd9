//! Frames that wait for the air. CSMA has one [`FrameQueue`]; TSCH has one a neighbour and one for broadcast,
//! bounded each and together ([`Queues`]).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_units::{Asn, Eui64, Rng};

use crate::params::QUEUE_CONTROL_RESERVE;

/// Who goes first to the same neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// 6P, routing, keepalives.
    Control,
    /// Everything else.
    Data,
}

/// A complete MAC frame (without FCS) on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedFrame {
    /// The octets for the air.
    pub octets: Vec<u8>,
    /// For whom; `None` is everyone in range.
    pub destination: Option<Eui64>,
    /// The datagram in it.
    pub handle: Handle,
    /// Who goes first.
    pub priority: Priority,
    /// A newer advertisement takes its place.
    pub is_advertisement: bool,
    /// It is of use to its receiver, but nothing depends on it: one copy is enough.
    pub is_advice: bool,
    /// Copies sent so far.
    pub transmissions: u8,
    /// Of these, the ones that arrived and that the neighbour refused by a negative acknowledgement.
    pub refusals: u8,
}

impl QueuedFrame {
    /// Tries that say something of the link: all but those that arrived and were refused, which would make it look worse,
    /// and one for the end of the frame if the last was one of these.
    pub const fn tries(&self) -> u8 {
        let tries = self.transmissions.saturating_sub(self.refusals);
        if tries == 0 { 1 } else { tries }
    }
}

/// Backoff in shared cells: IEEE 802.15.4-2015 s6.2.5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    exponent: u8,
    /// First slot in which a shared cell may be used again.
    pub until: Asn,
}

impl Backoff {
    /// No backoff.
    pub const fn new(be_min: u8) -> Self {
        Self { exponent: be_min, until: Asn(0) }
    }
    /// Forgets past collisions.
    pub fn reset(&mut self, be_min: u8) {
        *self = Self::new(be_min);
    }
    /// After a collision: how many shared cells to let pass.
    pub fn collide(&mut self, be_max: u8, rng: &mut Rng) -> u32 {
        self.exponent = (self.exponent + 1).min(be_max);
        rng.below(1 << self.exponent)
    }
}

/// Frames of this priority that may still join `held` others where there is room for `data_max`.
pub fn free_places(held: usize, data_max: usize, priority: Priority) -> usize {
    let reserve = match priority {
        Priority::Control => QUEUE_CONTROL_RESERVE,
        Priority::Data => 0,
    };
    (data_max + reserve).saturating_sub(held)
}

/// True when a frame of this priority may join `held` others where there is room for `data_max`.
pub fn has_room(held: usize, data_max: usize, priority: Priority) -> bool {
    free_places(held, data_max, priority) > 0
}

/// Frames in the order in which they go out; the owner keeps it bounded ([`has_room`]).
#[derive(Clone, Debug, Default)]
pub struct FrameQueue(VecDeque<QueuedFrame>);

impl FrameQueue {
    /// The frame whose turn it is.
    pub fn front(&self) -> Option<&QueuedFrame> {
        self.0.front()
    }
    /// The same, to count its copies.
    pub fn front_mut(&mut self) -> Option<&mut QueuedFrame> {
        self.0.front_mut()
    }
    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Frames waiting.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Frames waiting, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedFrame> + '_ {
        self.0.iter()
    }

    /// Control goes before data, but never before a frame that is being retried: its sequence number is out.
    pub fn insert(&mut self, frame: QueuedFrame) {
        let before =
            |queued: &QueuedFrame| queued.transmissions == 0 && queued.priority > frame.priority;
        let place = self.0.iter().position(before).unwrap_or(self.0.len());
        self.0.insert(place, frame);
    }
    /// Behind all others, whatever its priority.
    pub fn push_back(&mut self, frame: QueuedFrame) {
        self.0.push_back(frame);
    }
    /// Takes the frame whose turn it is.
    pub fn pop(&mut self) -> Option<QueuedFrame> {
        self.0.pop_front()
    }
    /// Takes the frame at a place in the order.
    pub fn take(&mut self, place: usize) -> Option<QueuedFrame> {
        self.0.remove(place)
    }
    /// Takes the frame named `handle` out of its place.
    pub fn remove(&mut self, handle: Handle) -> Option<QueuedFrame> {
        let place = self.0.iter().position(|frame| frame.handle == handle)?;
        self.0.remove(place)
    }
    /// Takes all.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedFrame> + '_ {
        self.0.drain(..)
    }
}

/// The frames for one destination.
#[derive(Clone, Debug)]
pub struct NeighbourQueue {
    /// The neighbour; `None` is everyone.
    pub peer: Option<Eui64>,
    frames: FrameQueue,
    /// Its backoff in shared cells.
    pub backoff: Backoff,
}

impl NeighbourQueue {
    /// The frame whose turn it is.
    pub fn front(&self) -> Option<&QueuedFrame> {
        self.frames.front()
    }
    /// The same, to count its copies.
    pub fn front_mut(&mut self) -> Option<&mut QueuedFrame> {
        self.frames.front_mut()
    }
    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
    /// Frames waiting.
    pub fn len(&self) -> usize {
        self.frames.len()
    }
}

/// All queues of a node, broadcast first, then in order of address.
#[derive(Clone, Debug)]
pub struct Queues {
    all: Vec<NeighbourQueue>,
    held: usize,
    data_max: usize,
    be_min: u8,
}

impl Queues {
    /// Empty queues that hold up to `data_max` frames together, and a few more of control.
    pub fn new(data_max: usize, be_min: u8) -> Self {
        let broadcast = NeighbourQueue {
            peer: None,
            frames: FrameQueue::default(),
            backoff: Backoff::new(be_min),
        };
        Self { all: Vec::from([broadcast]), held: 0, data_max, be_min }
    }

    /// Frames waiting, all queues together.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Adds a frame to the queue of its destination, which holds up to `share` data frames; gives it back when
    /// there is no room. True when that queue was empty before.
    pub fn push(&mut self, frame: QueuedFrame, share: usize) -> Result<bool, QueuedFrame> {
        let peer = frame.destination;
        let waiting = self.get(peer).map_or(0, NeighbourQueue::len);
        if !has_room(self.held, self.data_max, frame.priority)
            || !has_room(waiting, share, frame.priority)
        {
            return Err(frame);
        }
        let place = match self.all.binary_search_by_key(&peer, |q| q.peer) {
            Ok(place) => place,
            Err(place) => {
                let backoff = Backoff::new(self.be_min);
                let frames = FrameQueue::default();
                self.all.insert(place, NeighbourQueue { peer, frames, backoff });
                place
            }
        };
        let queue = &mut self.all[place];
        let was_empty = queue.is_empty();
        queue.frames.insert(frame);
        self.held += 1;
        Ok(was_empty)
    }

    /// Takes out a frame of an advertisement that waits for the same neighbours as `newer`, which replaces it.
    pub fn supersede(&mut self, newer: &QueuedFrame) -> Option<QueuedFrame> {
        if !newer.is_advertisement {
            return None;
        }
        let is_stale = |old: &QueuedFrame| {
            old.is_advertisement && old.handle != newer.handle && old.transmissions == 0
        };
        let frames = &mut self.get_mut(newer.destination)?.frames.0;
        let old = frames.iter().position(is_stale).and_then(|place| frames.remove(place))?;
        self.held -= 1;
        Some(old)
    }

    /// Takes the frame whose turn it is for `peer`.
    pub fn pop(&mut self, peer: Option<Eui64>) -> Option<QueuedFrame> {
        let queue = self.get_mut(peer)?;
        let frame = queue.frames.pop()?;
        self.held -= 1;
        Some(frame)
    }

    /// The queue for everyone: the first of all, and always there.
    pub fn broadcast(&self) -> &NeighbourQueue {
        &self.all[0]
    }
    /// The queue for `peer`.
    pub fn get(&self, peer: Option<Eui64>) -> Option<&NeighbourQueue> {
        self.all.binary_search_by_key(&peer, |q| q.peer).ok().map(|i| &self.all[i])
    }
    /// The same, to change it.
    pub fn get_mut(&mut self, peer: Option<Eui64>) -> Option<&mut NeighbourQueue> {
        self.all.binary_search_by_key(&peer, |q| q.peer).ok().map(|i| &mut self.all[i])
    }

    /// Queues to single neighbours that are not empty, in order of address.
    pub fn busy(&self) -> impl Iterator<Item = (Eui64, &NeighbourQueue)> + '_ {
        self.all.iter().filter(|q| !q.is_empty()).filter_map(|q| Some((q.peer?, q)))
    }

    /// Takes the frame named `handle` out of the queue that it waits in.
    pub fn withdraw(&mut self, handle: Handle) -> Option<QueuedFrame> {
        let frame = self.all.iter_mut().find_map(|queue| queue.frames.remove(handle))?;
        self.held -= 1;
        Some(frame)
    }

    /// Removes all frames for `peer`.
    pub fn flush(&mut self, peer: Option<Eui64>) -> Vec<QueuedFrame> {
        let Some(queue) = self.get_mut(peer) else { return Vec::new() };
        let frames: Vec<QueuedFrame> = queue.frames.drain().collect();
        self.held -= frames.len();
        frames
    }

    /// Removes everything, back-offs too: they are numbers of slots of a network that the node leaves.
    pub fn flush_all(&mut self) -> Vec<QueuedFrame> {
        self.held = 0;
        for queue in &mut self.all {
            queue.backoff.reset(self.be_min);
        }
        self.all.iter_mut().flat_map(|q| q.frames.drain()).collect()
    }

    /// The datagrams of all waiting frames, for the conservation of packets.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.all.iter().flat_map(|q| q.frames.iter().map(|f| f.handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    fn frame(destination: Option<Eui64>, handle: u64, priority: Priority) -> QueuedFrame {
        let (octets, handle) = (Vec::new(), Handle(handle));
        let is_advertisement = false;
        let (is_advice, transmissions, refusals) = (false, 0, 0);
        QueuedFrame {
            octets,
            destination,
            handle,
            priority,
            is_advertisement,
            is_advice,
            transmissions,
            refusals,
        }
    }
    const PEER: Option<Eui64> = Some(NodeId(1).eui64());

    #[test]
    fn control_overtakes_data_but_not_a_retry() {
        let mut queues = Queues::new(8, 1);
        for n in 1..=2 {
            queues.push(frame(PEER, n, Priority::Data), 8).expect("room");
        }
        let queue = queues.get_mut(PEER).expect("made above");
        queue.front_mut().expect("not empty").transmissions = 1;
        queues.push(frame(PEER, 3, Priority::Control), 8).expect("room");
        let order: Vec<u64> =
            core::iter::from_fn(|| queues.pop(PEER)).map(|f| f.handle.0).collect();
        assert_eq!(order, [1, 3, 2]);
    }

    #[test]
    fn the_bound_holds_over_all_queues_and_control_has_a_reserve() {
        let mut queues = Queues::new(2, 1);
        queues.push(frame(PEER, 1, Priority::Data), 8).expect("room");
        queues.push(frame(None, 2, Priority::Data), 8).expect("room");
        assert_eq!(
            queues.push(frame(PEER, 3, Priority::Data), 8).expect_err("full").handle,
            Handle(3)
        );
        for n in 0..QUEUE_CONTROL_RESERVE as u64 {
            queues.push(frame(PEER, 10 + n, Priority::Control), 8).expect("reserve");
        }
        assert!(queues.push(frame(PEER, 99, Priority::Control), 8).is_err());
        assert_eq!(queues.flush_all().len(), 2 + QUEUE_CONTROL_RESERVE);
        assert_eq!(queues.held(), 0);
    }

    #[test]
    fn a_backoff_ends_with_the_network_whose_slots_it_counts() {
        let mut queues = Queues::new(16, 1);
        queues.push(frame(PEER, 1, Priority::Data), 8).expect("room");
        let fresh = queues.get(PEER).expect("made above").backoff;
        let queue = queues.get_mut(PEER).expect("made above");
        queue.backoff.collide(5, &mut Rng::stream(Seed(1), NodeId(1), Purpose::Mac));
        queue.backoff.until = Asn(360_000);
        queues.flush_all();
        queues.push(frame(PEER, 2, Priority::Data), 8).expect("room");
        assert_eq!(queues.get(PEER).expect("made above").backoff, fresh);
    }

    #[test]
    fn a_neighbour_that_does_not_answer_leaves_room_for_the_others() {
        let mut queues = Queues::new(16, 1);
        let accepted = |queues: &mut Queues, peer, priority| {
            (0..20).take_while(|n| queues.push(frame(peer, *n, priority), 4).is_ok()).count()
        };
        assert_eq!(accepted(&mut queues, PEER, Priority::Data), 4);
        assert_eq!(accepted(&mut queues, PEER, Priority::Control), QUEUE_CONTROL_RESERVE);
        assert_eq!(accepted(&mut queues, Some(NodeId(2).eui64()), Priority::Data), 4);
        assert_eq!(accepted(&mut queues, None, Priority::Data), 4);
        assert_eq!(accepted(&mut queues, Some(NodeId(3).eui64()), Priority::Data), 0, "16 wait");
    }

    #[test]
    fn an_advertisement_takes_the_place_of_the_one_that_waits() {
        let advertisement = |destination, handle| QueuedFrame {
            is_advertisement: true,
            ..frame(destination, handle, Priority::Control)
        };
        let mut queues = Queues::new(16, 1);
        for waiting in [advertisement(None, 1), frame(None, 2, Priority::Control)] {
            queues.push(waiting, 4).expect("room");
        }
        let replaced = |queues: &mut Queues, newer: &QueuedFrame| {
            queues.supersede(newer).map(|frame| frame.handle.0)
        };
        assert_eq!(replaced(&mut queues, &frame(None, 4, Priority::Control)), None);
        assert_eq!(replaced(&mut queues, &advertisement(PEER, 4)), None);
        assert_eq!(replaced(&mut queues, &advertisement(None, 4)), Some(1));
        assert_eq!(replaced(&mut queues, &advertisement(None, 4)), None);
        assert_eq!(queues.held(), 1);
        // Fragments of one datagram belong together.
        for fragment in 1..=2 {
            let fragment = QueuedFrame { octets: vec![fragment], ..advertisement(PEER, 3) };
            assert_eq!(replaced(&mut queues, &fragment), None);
            queues.push(fragment, 4).expect("room");
        }
        assert_eq!(replaced(&mut queues, &advertisement(PEER, 4)), Some(3));
        assert_eq!(replaced(&mut queues, &advertisement(PEER, 4)), Some(3));
        // The receiver may have the first copy of a frame that was sent before.
        queues.push(QueuedFrame { transmissions: 1, ..advertisement(PEER, 5) }, 4).expect("room");
        assert_eq!(replaced(&mut queues, &advertisement(PEER, 6)), None);
    }

    #[test]
    fn backoff_windows_double_up_to_their_bound() {
        let mut rng = Rng::stream(lowmesh_units::Seed(1), NodeId(0), lowmesh_units::Purpose::Mac);
        let mut backoff = Backoff::new(1);
        let largest: Vec<u32> = (0..4)
            .map(|_| {
                let mut copy = backoff;
                let drawn = (0..200)
                    .map(|_| {
                        let mut b = copy;
                        b.collide(3, &mut rng)
                    })
                    .max();
                copy.collide(3, &mut rng);
                backoff = copy;
                drawn.unwrap_or(0)
            })
            .collect();
        assert_eq!(largest, [3, 7, 7, 7]);
    }
}
