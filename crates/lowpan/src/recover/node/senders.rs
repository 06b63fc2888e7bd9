//! The fragmenting ends in a node: one [`Sending`] for each datagram, and whose turn it is (RFC 8931 s6).
//!
//! | bound | total | share of one next hop | the next one |
//! |---|---|---|---|
//! | datagrams | `fragmented_datagrams` | as many as are free, with `shares_fragmentation` | is dropped, `buffer_full` |
//! | datagrams that have begun | | `unfinished_per_neighbour` | waits |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_congestion::Permit;
use lowmesh_machine::{DropReason, Handle, earliest};
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::rfrag::{RFRAG_OCTETS, RfragAck};

use super::outgoing::{Outgoing, Waiting};
use super::{Counters, Output};
use crate::forward::{Label, VirtualReassembly};
use crate::params::Config;
use crate::recover::path::Path;
use crate::recover::{Ending, Event, Sending, Step};

/// The datagrams that are sent from here.
#[derive(Debug)]
pub(super) struct Senders {
    config: Config,
    datagram_tag: u8,
    rng: Rng,
    datagrams: VecDeque<Sending>,
    counters: Counters,
}

impl Senders {
    pub fn new(config: Config, mut rng: Rng) -> Self {
        let datagram_tag = rng.next_u32() as u8;
        let (datagrams, counters) = (VecDeque::new(), Counters::default());
        Self { config, datagram_tag, rng, datagrams, counters }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Sending> {
        self.datagrams.iter()
    }
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }
    /// What was counted of fragments from here.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Sends a compressed datagram.
    pub fn send(
        &mut self,
        handle: Handle,
        next_hop: Eui64,
        datagram: Vec<u8>,
        paths: &VirtualReassembly<Path>,
        out: &mut Outgoing,
    ) {
        let own = self.datagrams.iter().filter(|one| one.next_hop() == next_hop).count();
        let admitted = self.config.may_fragment(own, self.datagrams.len());
        let Some(tag) = admitted.then(|| self.free_tag(next_hop, paths)).flatten() else {
            out.end(handle, Some(DropReason::BufferFull));
            return;
        };
        let room = self.config.frame_payload.saturating_sub(RFRAG_OCTETS);
        match Sending::new(handle, next_hop, datagram, tag, room, &self.config) {
            Some(sending) => self.datagrams.push_back(sending),
            None => out.end(handle, Some(DropReason::TooLarge)),
        }
    }

    /// A tag that no datagram from here to `next_hop` has, nor one that passes on `paths` (RFC 8931 s5.1: temporarily
    /// unique for its source), if there is one.
    pub fn free_tag(&mut self, next_hop: Eui64, paths: &VirtualReassembly<Path>) -> Option<u8> {
        for _ in 0..=u8::MAX {
            let tag = self.datagram_tag;
            self.datagram_tag = tag.wrapping_add(1);
            let label = Label { neighbour: next_hop, tag: tag.into() };
            let is_own = |one: &Sending| one.datagram_tag() == tag && one.next_hop() == next_hop;
            let passes = paths.iter().any(|entry| entry.outgoing == label);
            if !passes && !self.datagrams.iter().any(is_own) {
                return Some(tag);
            }
        }
        None
    }

    /// Takes an acknowledgement; false when it is for a datagram from elsewhere.
    pub fn on_ack(
        &mut self,
        now: Instant,
        ack: RfragAck,
        from: Eui64,
        paths: &VirtualReassembly<Path>,
        out: &mut Outgoing,
    ) -> bool {
        let tag = ack.datagram_tag;
        let is_own = |one: &Sending| one.datagram_tag() == tag && one.next_hop() == from;
        let Some(at) = self.datagrams.iter().position(is_own) else { return false };
        self.counters.marks_reported += u64::from(ack.congestion);
        let (received, lost) = (self.datagrams[at].received(), self.datagrams[at].lost());
        let ending = self.datagrams[at].on_ack(&ack, now);
        self.tell_ack(at, received, lost, ack.congestion, out);
        if let Some(ending) = ending {
            self.end(at, ending, paths, out);
        }
        true
    }

    /// Tells what an acknowledgement has changed since so many fragments were received and lost.
    fn tell_ack(&self, at: usize, received: usize, lost: u16, marked: bool, out: &mut Outgoing) {
        let arrived = self.datagrams[at].received() - received;
        let lost = self.datagrams[at].lost() - lost;
        let told = [
            (arrived > 0).then_some(Event::Acked(arrived as u8)),
            (lost > 0).then_some(Event::Lost(lost as u8)),
            marked.then_some(Event::Marked),
        ];
        for event in told.into_iter().flatten() {
            self.tell(at, event, out);
        }
    }

    /// Tells a step of a datagram, if anybody wants to know.
    fn tell(&self, at: usize, event: Event, out: &mut Outgoing) {
        if self.config.tell_steps {
            out.tell(Output::Step(Step::of(&self.datagrams[at], event)));
        }
    }

    fn end(
        &mut self,
        at: usize,
        ending: Ending,
        paths: &VirtualReassembly<Path>,
        out: &mut Outgoing,
    ) {
        let (handle, next_hop) = (self.datagrams[at].handle(), self.datagrams[at].next_hop());
        let cleans_up = match ending {
            Ending::Delivered | Ending::Refused => false,
            Ending::GaveUp => self.config.choices().cleans_up,
            Ending::Unasked => true,
        };
        if cleans_up {
            // RFC 8931 s6.3: a pseudo fragment cleans up the path.
            out.push(self.datagrams[at].abort_frame(), next_hop, Handle::NONE);
        }
        if matches!(ending, Ending::Refused | Ending::GaveUp) {
            let tag = self.free_tag(next_hop, paths);
            if tag.is_some_and(|tag| self.datagrams[at].restart(tag)) {
                self.tell(at, Event::Restarted, out);
                return;
            }
        }
        self.counters.ended += 1;
        self.counters.gaps_changed += u64::from(self.datagrams[at].gap_changed());
        self.tell(at, Event::Ended(ending), out);
        self.datagrams.remove(at);
        let dropped = match ending {
            Ending::Delivered => None,
            Ending::Refused => Some(DropReason::Reset),
            Ending::GaveUp | Ending::Unasked => Some(DropReason::GaveUp),
        };
        out.end_with_frames(handle, dropped);
    }

    /// Looks for acknowledgements that are late.
    pub fn on_deadline(
        &mut self,
        now: Instant,
        paths: &VirtualReassembly<Path>,
        out: &mut Outgoing,
    ) {
        let mut at = 0;
        while at < self.datagrams.len() {
            let before = self.datagrams.len();
            let is_late = self.datagrams[at].deadline().is_some_and(|deadline| deadline <= now);
            let ending = self.datagrams[at].on_timeout(now);
            if is_late {
                self.tell(at, Event::TimedOut, out);
            }
            if let Some(ending) = ending {
                self.end(at, ending, paths, out);
            }
            at += usize::from(self.datagrams.len() == before);
        }
    }

    /// The next fragment of the datagram whose turn it is.
    pub fn next_frame(&mut self, now: Instant, out: &mut Outgoing) -> Option<Waiting> {
        if !out.has_room() {
            return None;
        }
        let may_leave = |sending: &Sending| self.permits(sending, now) == Permit::Now;
        let at = self.datagrams.iter().position(may_leave)?;
        let mut sending = self.datagrams.remove(at)?;
        let (mut header, is_copy) = sending.next_fragment(now, &mut self.rng)?;
        if self.config.choices().marks_own && out.is_congested() {
            header.congestion = true;
            self.counters.marked += 1;
        }
        let payload = sending.frame(&header);
        out.take_room(&payload);
        self.counters.resent += u64::from(is_copy);
        self.counters.sent += u64::from(!is_copy);
        let (destination, handle) = (sending.next_hop(), sending.handle());
        self.datagrams.push_back(sending);
        let event = if is_copy { Event::Resent } else { Event::Sent };
        self.tell(self.datagrams.len() - 1, event, out);
        Some(Waiting { payload, destination, handle, is_advice: false })
    }

    /// When an acknowledgement is late, or the next fragment may leave.
    pub fn next_deadline(&self, now: Instant, out: &Outgoing) -> Option<Instant> {
        let mut deadline = None;
        for sending in &self.datagrams {
            deadline = earliest(deadline, sending.deadline());
            let at = match self.permits(sending, now) {
                // Without room the next confirmation of the MAC is what brings it.
                Permit::Now if out.has_room() => Some(out.gap_ends()),
                Permit::At(at) => Some(at.max(out.gap_ends())),
                Permit::Now | Permit::Blocked => None,
            };
            deadline = earliest(deadline, at);
        }
        deadline
    }

    /// Whether a fragment of the datagram may leave. One that has not begun waits while its neighbour has as many
    /// unfinished ones as it may.
    fn permits(&self, sending: &Sending, now: Instant) -> Permit {
        let to = sending.next_hop();
        let begun = || self.datagrams.iter().filter(|one| one.next_hop() == to && one.has_begun());
        let bound = self.config.recovery.unfinished_per_neighbour;
        if !sending.has_begun() && bound.is_some_and(|most| begun().count() >= most.max(1)) {
            return Permit::Blocked;
        }
        sending.permits(now)
    }
}
