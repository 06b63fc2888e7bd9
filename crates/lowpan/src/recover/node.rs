//! All that one node does with recoverable fragments: fragmenting end, forwarder, reassembling end
//! (RFC 8931 s6).
//!
//! ```text
//!   RFRAG, first      known here: taken in | else RouteRequest: via a neighbour: path opened, goes on
//!                                                               here, or no path is free: taken in
//!                                                               nowhere: NULL bitmap
//!   RFRAG, later      goes on along its path | taken in | NULL bitmap
//!   RFRAG, abort      goes on and takes down its path | frees the buffer
//!   RFRAG-ACK         for a datagram sent from here | goes back along its path | dropped
//! ```
//!
//! Every frame that leaves is an inter-frame gap behind the one before. Compressing and decompressing whole packets, and
//! the routes, are left to the adaptation layer and its driver.

mod forwarder;
mod outgoing;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox};
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, RFRAG_OCTETS, Rfrag, RfragAck};

use self::forwarder::PendingRoute;
use super::path::Path;
use super::refusal::Refusals;
use super::{Ending, Event, Outcome, Received, Receiving, Sending, Step, null};
use crate::forward::{Label, VirtualReassembly};
use crate::params::{Config, REFUSAL_SHARE};

/// What the node wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Send a frame. Acknowledgements and aborts bear no name.
    Frame { payload: Vec<u8>, destination: Eui64, handle: Handle },
    /// The first fragment of a neighbour's packet was taken over.
    Accepted { handle: Handle },
    /// Where does the packet go that begins so?
    RouteRequest { beginning: Vec<u8>, source: Eui64, handle: Handle },
    /// A compressed datagram is whole.
    Datagram { datagram: Vec<u8>, source: Eui64, handle: Handle },
    /// A packet is through, or this node's copy of it has ended for the reason given.
    Ended { handle: Handle, dropped: Option<DropReason> },
    /// Something happened to a datagram that is sent from here.
    Step(Step),
}

/// What the node has to know about the layer around it, as of now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueState {
    /// Octets that the packet buffer has left.
    pub room: usize,
    /// Frames in the MAC's queue.
    pub backlog: usize,
}

/// What the node counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Fragments sent for the first time.
    pub sent: u64,
    /// Fragments sent again.
    pub resent: u64,
    /// Fragments that passed through.
    pub forwarded: u64,
    /// Fragments that were marked here, for the queue was long.
    pub marked: u64,
    /// Acknowledgements with E that came back to the fragmenting end.
    pub marks_reported: u64,
    /// Datagrams that were reassembled here, though they go on, for no path was free or the headers outgrew the frame.
    pub fallbacks: u64,
    /// Frames that found the queue before the gap full.
    pub overflowed: u64,
    /// Datagrams that ended at their fragmenting end.
    pub ended: u64,
    /// Of these, those during which the gap between fragments changed.
    pub gaps_changed: u64,
}

/// A frame that waits for the gap.
#[derive(Debug)]
struct Waiting {
    payload: Vec<u8>,
    destination: Eui64,
    handle: Handle,
}

/// Recoverable fragments of one node.
#[derive(Debug)]
pub(crate) struct Node {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    datagram_tag: u8,
    rng: Rng,
    sending: VecDeque<Sending>,
    receiving: Receiving,
    refusals: Refusals,
    paths: VirtualReassembly<Path>,
    pending_routes: VecDeque<PendingRoute>,
    queue: VecDeque<Waiting>,
    queue_state: QueueState,
    /// When the next frame may leave.
    gap_ends: Instant,
    deadline: Option<Instant>,
    counters: Counters,
    outbox: Outbox<Output>,
}

impl Node {
    pub fn new(address: Eui64, contexts: Contexts, config: Config, mut rng: Rng) -> Self {
        let timeout = config.reassembly_limits().timeout;
        Self {
            address,
            contexts,
            config,
            datagram_tag: rng.next_u32() as u8,
            rng,
            sending: VecDeque::new(),
            receiving: Receiving::new(&config),
            refusals: Refusals::new(config.recovery.arq.timeout() / REFUSAL_SHARE),
            paths: VirtualReassembly::new(config.forwarded_datagrams, timeout),
            pending_routes: VecDeque::new(),
            queue: VecDeque::new(),
            queue_state: QueueState::default(),
            gap_ends: Instant::ZERO,
            deadline: None,
            counters: Counters::default(),
            outbox: Outbox::new(),
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// Octets of datagrams that are being put together.
    pub fn receiving_octets(&self) -> usize {
        self.receiving.octets()
    }
    /// Datagrams that are being put together.
    pub fn receiving_datagrams(&self) -> usize {
        self.receiving.handles().count()
    }
    /// Octets of datagrams that are being sent, and of frames that wait for the gap.
    pub fn sending_octets(&self) -> usize {
        let waiting: usize = self.queue.iter().map(|waiting| waiting.payload.len()).sum();
        waiting + self.sending.iter().map(Sending::octets).sum::<usize>()
    }
    /// Datagrams that are being sent from here.
    pub fn datagrams(&self) -> impl Iterator<Item = &Sending> {
        self.sending.iter()
    }
    /// Datagrams whose fragments pass through.
    pub fn forwarded_datagrams(&self) -> usize {
        self.paths.iter().filter(|entry| !entry.state.is_complete).count()
    }
    /// The packets that wait here, once for each copy.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let open = self.paths.iter().filter(|entry| !entry.state.is_complete);
        let passing = open.map(|entry| entry.handle);
        let asked = self.pending_routes.iter().map(PendingRoute::handle);
        let sending = self.sending.iter().map(Sending::handle);
        sending.chain(self.receiving.handles()).chain(passing).chain(asked)
    }

    /// Sends a compressed datagram.
    pub fn send(
        &mut self,
        now: Instant,
        handle: Handle,
        next_hop: Eui64,
        datagram: Vec<u8>,
        queue_state: QueueState,
    ) {
        self.queue_state = queue_state;
        let own = self.sending.iter().filter(|one| one.next_hop() == next_hop).count();
        let admitted = self.config.may_fragment(own, self.sending.len());
        let Some(tag) = admitted.then(|| self.free_tag(next_hop)).flatten() else {
            self.end(handle, Some(DropReason::BufferFull));
            return;
        };
        let room = self.config.frame_payload.saturating_sub(RFRAG_OCTETS);
        match Sending::new(handle, next_hop, datagram, tag, room, &self.config) {
            Some(sending) => self.sending.push_back(sending),
            None => self.end(handle, Some(DropReason::TooLarge)),
        }
        self.work(now);
    }

    /// A tag that no datagram from here to `next_hop` has (RFC 8931 s5.1: temporarily unique for its source), if there is
    /// one.
    fn free_tag(&mut self, next_hop: Eui64) -> Option<u8> {
        for _ in 0..=u8::MAX {
            let tag = self.datagram_tag;
            self.datagram_tag = tag.wrapping_add(1);
            let label = Label { neighbour: next_hop, tag: tag.into() };
            let is_own = |one: &Sending| one.datagram_tag() == tag && one.next_hop() == next_hop;
            if self.paths.find_outgoing(label).is_none() && !self.sending.iter().any(is_own) {
                return Some(tag);
            }
        }
        None
    }

    /// True while datagrams are sent from here.
    pub fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Takes a frame with a dispatch of RFC 8931 from the neighbour `source`; false when it is malformed.
    pub fn on_frame(
        &mut self,
        now: Instant,
        frame: &[u8],
        source: Eui64,
        handle: Handle,
        queue_state: QueueState,
    ) -> bool {
        self.queue_state = queue_state;
        if let Ok((header, data)) = Rfrag::parse(frame) {
            self.on_fragment(now, &Received { header, data, source, handle });
        } else if let Ok(ack) = RfragAck::parse(frame) {
            self.on_ack(now, ack, source);
        } else {
            return false;
        }
        self.work(now);
        true
    }

    fn on_fragment(&mut self, now: Instant, fragment: &Received<'_>) {
        let &Received { header, source, .. } = fragment;
        let incoming = Label { neighbour: source, tag: header.datagram_tag.into() };
        let is_first = matches!(header.part, Part::First { .. });
        if is_first {
            // A sender that was refused begins again under another tag, so this is another datagram.
            self.refusals.forget(incoming);
        }
        if is_first && !self.receiving.expects(source, &header) && self.ask(fragment) {
            return;
        }
        if !is_first && self.paths.find(incoming).is_some() {
            self.forward_next(now, incoming, fragment);
        } else {
            self.take_in(now, fragment);
        }
    }

    /// Takes in a fragment for this node.
    fn take_in(&mut self, now: Instant, fragment: &Received<'_>) {
        let &Received { header, source, handle, .. } = fragment;
        let opens =
            matches!(header.part, Part::First { .. }) && !self.receiving.expects(source, &header);
        if opens {
            self.outbox.push(Output::Accepted { handle });
        }
        self.take_in_accepted(now, fragment);
    }

    fn take_in_accepted(&mut self, now: Instant, fragment: &Received<'_>) {
        let source = fragment.source;
        let (outcome, ack) = self.receiving.accept(now, fragment, self.queue_state.room);
        while let Some((handle, source, ack)) = self.receiving.take_evicted() {
            self.end(handle, Some(DropReason::BufferFull));
            self.refuse(now, source, ack.datagram_tag, false);
        }
        match outcome {
            Outcome::Complete { datagram, handle } => {
                self.outbox.push(Output::Datagram { datagram, source, handle });
            }
            Outcome::Dropped { handle, reason } => self.end(handle, Some(reason)),
            Outcome::Waiting | Outcome::Unknown => {}
        }
        let header = fragment.header;
        match ack {
            // What confirms an abort is no refusal.
            Some(ack) if ack.bitmap == Bitmap::NULL && header.part != Part::Abort => {
                self.refuse(now, source, ack.datagram_tag, header.ack_request);
            }
            Some(ack) => self.acknowledge(source, ack),
            None => {}
        }
    }

    /// Tells a neighbour that its datagram cannot go on, once.
    fn refuse(&mut self, now: Instant, to: Eui64, datagram_tag: u8, asks: bool) {
        let label = Label { neighbour: to, tag: datagram_tag.into() };
        if !self.config.choices().refuses_once || self.refusals.tells(now, label, asks) {
            self.acknowledge(to, null(datagram_tag));
        }
    }

    fn acknowledge(&mut self, to: Eui64, ack: RfragAck) {
        let mut payload = Vec::new();
        ack.emit(&mut payload);
        self.push(payload, to, Handle::NONE);
    }

    fn on_ack(&mut self, now: Instant, ack: RfragAck, from: Eui64) {
        let tag = ack.datagram_tag;
        let is_own = |one: &Sending| one.datagram_tag() == tag && one.next_hop() == from;
        if let Some(at) = self.sending.iter().position(is_own) {
            self.counters.marks_reported += u64::from(ack.congestion);
            let (received, lost) = (self.sending[at].received(), self.sending[at].lost());
            let ending = self.sending[at].on_ack(&ack, now);
            self.tell_ack(at, received, lost, ack.congestion);
            if let Some(ending) = ending {
                self.end_sending(at, ending);
            }
            return;
        }
        self.pass_back(now, ack, from);
    }

    /// Tells what an acknowledgement has changed since so many fragments were received and lost.
    fn tell_ack(&mut self, at: usize, received: usize, lost: u16, marked: bool) {
        let arrived = self.sending[at].received() - received;
        let lost = self.sending[at].lost() - lost;
        let told = [
            (arrived > 0).then_some(Event::Acked(arrived as u8)),
            (lost > 0).then_some(Event::Lost(lost as u8)),
            marked.then_some(Event::Marked),
        ];
        for event in told.into_iter().flatten() {
            self.tell(at, event);
        }
    }

    /// Tells a step of a datagram, if anybody wants to know.
    fn tell(&mut self, at: usize, event: Event) {
        if self.config.tell_steps {
            self.outbox.push(Output::Step(Step::of(&self.sending[at], event)));
        }
    }

    fn end_sending(&mut self, at: usize, ending: Ending) {
        let (handle, next_hop) = (self.sending[at].handle(), self.sending[at].next_hop());
        let cleans_up = match ending {
            Ending::Delivered | Ending::Refused => false,
            Ending::GaveUp => self.config.choices().cleans_up,
            Ending::Unasked => true,
        };
        if cleans_up {
            // RFC 8931 s6.3: a pseudo fragment cleans up the path.
            let abort = self.sending[at].abort_frame();
            self.push(abort, next_hop, Handle::NONE);
        }
        if matches!(ending, Ending::Refused | Ending::GaveUp) {
            let tag = self.free_tag(next_hop);
            if tag.is_some_and(|tag| self.sending[at].restart(tag)) {
                self.tell(at, Event::Restarted);
                return;
            }
        }
        self.counters.ended += 1;
        self.counters.gaps_changed += u64::from(self.sending[at].gap_changed());
        self.tell(at, Event::Ended(ending));
        self.sending.remove(at);
        self.end_with_frames(
            handle,
            match ending {
                Ending::Delivered => None,
                Ending::Refused => Some(DropReason::Reset),
                Ending::GaveUp | Ending::Unasked => Some(DropReason::GaveUp),
            },
        );
    }

    /// This node's copy of a packet is over, and what waits of it for the gap serves no one any more.
    fn end_with_frames(&mut self, handle: Handle, dropped: Option<DropReason>) {
        self.queue.retain(|waiting| waiting.handle != handle || handle == Handle::NONE);
        self.end(handle, dropped);
    }

    /// This node's copy of a packet is over.
    fn end(&mut self, handle: Handle, dropped: Option<DropReason>) {
        self.outbox.push(Output::Ended { handle, dropped });
    }

    /// The time of [`Node::next_deadline`] has come.
    pub fn on_deadline(&mut self, now: Instant, queue_state: QueueState) {
        self.queue_state = queue_state;
        while let Some((handle, source, ack)) = self.receiving.expire(now) {
            self.end(handle, Some(DropReason::ReassemblyTimeout));
            if self.config.choices().cleans_up {
                self.refuse(now, source, ack.datagram_tag, false);
            }
        }
        while let Some(entry) = self.paths.expire(now) {
            if !entry.state.is_complete {
                self.end_with_frames(entry.handle, Some(DropReason::ReassemblyTimeout));
            }
        }
        let mut at = 0;
        while at < self.sending.len() {
            let before = self.sending.len();
            let is_late = self.sending[at].deadline().is_some_and(|deadline| deadline <= now);
            let ending = self.sending[at].on_timeout(now);
            if is_late {
                self.tell(at, Event::TimedOut);
            }
            if let Some(ending) = ending {
                self.end_sending(at, ending);
            }
            at += usize::from(self.sending.len() == before);
        }
        self.work(now);
    }

    /// The MAC is done with a frame, so that there may be room for another.
    pub fn on_frame_done(&mut self, now: Instant, queue_state: QueueState) {
        self.queue_state = queue_state;
        self.work(now);
    }
}
