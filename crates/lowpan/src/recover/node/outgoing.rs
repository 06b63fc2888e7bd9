//! What leaves a node: frames of its own and of others, a gap apart and while there is room (RFC 8931 s4.2).

use alloc::vec::Vec;

use lowmesh_congestion::Permit;
use lowmesh_machine::{Handle, earliest};
use lowmesh_units::{Duration, Eui64, Instant};

use super::super::{Event, Sending};
use super::{Node, Output, Waiting};
use crate::params::RECOVERY_QUEUE_FRAMES;

impl Node {
    /// Puts a frame behind those that wait for the gap. One that has no room is lost, and recovered by its ends.
    pub(super) fn push(&mut self, payload: Vec<u8>, destination: Eui64, handle: Handle) {
        if self.queue.len() < RECOVERY_QUEUE_FRAMES && payload.len() <= self.queue_state.room {
            self.take_room(&payload);
            self.queue.push_back(Waiting { payload, destination, handle });
        } else {
            self.counters.overflowed += 1;
        }
    }

    /// Sends what may leave, and works out when to come back.
    pub(super) fn work(&mut self, now: Instant) {
        while self.gap_ends <= now {
            let Some(Waiting { payload, destination, handle }) = self.next_frame(now) else {
                break;
            };
            self.outbox.push(Output::Frame { payload, destination, handle });
            self.queue_state.backlog += 1;
            // RFC 8931 s4.2: the sender MUST keep a gap between frames.
            self.gap_ends = now + self.gap();
        }
        let mut deadline = earliest(self.receiving.next_deadline(), self.paths.next_deadline());
        let has_room = self.has_room();
        for sending in &self.sending {
            deadline = earliest(deadline, sending.deadline());
            let at = match self.permits(sending, now) {
                // Without room the next confirmation of the MAC is what brings it.
                Permit::Now if has_room => Some(self.gap_ends),
                Permit::At(at) => Some(at.max(self.gap_ends)),
                Permit::Now | Permit::Blocked => None,
            };
            deadline = earliest(deadline, at);
        }
        let gap = (!self.queue.is_empty()).then_some(self.gap_ends);
        self.deadline = earliest(deadline, gap);
    }

    /// Whether a fragment of the datagram may leave. One that has not begun waits while its neighbour has as many
    /// unfinished ones as it may.
    fn permits(&self, sending: &Sending, now: Instant) -> Permit {
        let to = sending.next_hop();
        let begun = || self.sending.iter().filter(|one| one.next_hop() == to && one.has_begun());
        let bound = self.config.recovery.unfinished_per_neighbour;
        if !sending.has_begun() && bound.is_some_and(|most| begun().count() >= most.max(1)) {
            return Permit::Blocked;
        }
        sending.permits(now)
    }

    const fn gap(&self) -> Duration {
        if self.config.choices().paces {
            self.config.recovery.inter_frame_gap
        } else {
            Duration::ZERO
        }
    }

    /// True when the packet buffer takes another frame of this node's own.
    fn has_room(&self) -> bool {
        self.queue_state.room >= self.config.frame_payload
    }

    fn take_room(&mut self, frame: &[u8]) {
        let octets = frame.len() + self.config.choices().overhead.fragment;
        self.queue_state.room = self.queue_state.room.saturating_sub(octets);
    }

    /// What passes through and acknowledgements go first, then the datagrams of this node in turn.
    fn next_frame(&mut self, now: Instant) -> Option<Waiting> {
        if let Some(waiting) = self.queue.pop_front() {
            return Some(waiting);
        }
        if !self.has_room() {
            return None;
        }
        let may_leave = |sending: &Sending| self.permits(sending, now) == Permit::Now;
        let at = self.sending.iter().position(may_leave)?;
        let mut sending = self.sending.remove(at)?;
        let (mut header, is_copy) = sending.next_fragment(now, &mut self.rng)?;
        if self.config.choices().marks_own && self.is_congested() {
            header.congestion = true;
            self.counters.marked += 1;
        }
        let payload = sending.frame(&header);
        self.take_room(&payload);
        self.counters.resent += u64::from(is_copy);
        self.counters.sent += u64::from(!is_copy);
        let (destination, handle) = (sending.next_hop(), sending.handle());
        self.sending.push_back(sending);
        let event = if is_copy { Event::Resent } else { Event::Sent };
        self.tell(self.sending.len() - 1, event);
        Some(Waiting { payload, destination, handle })
    }
}
