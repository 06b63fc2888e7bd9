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
//! Its parts are `senders`, `forwarder`, `outgoing` and the reassembling end. Every frame that leaves is an inter-frame gap
//! behind the one before. Compressing and decompressing whole packets, and the routes, are left to the adaptation layer
//! and its driver.

mod forwarder;
mod outgoing;
mod senders;

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected, earliest};
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};

use self::forwarder::Forwarder;
use self::outgoing::Outgoing;
use self::senders::Senders;
use super::refusal::Refusals;
use super::{Outcome, Received, Receiving, Sending, Step};
use crate::event::Route;
use crate::forward::Label;
use crate::params::Config;
use crate::reassemble::Fragment;

/// What the node wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Send a frame. Acknowledgements and aborts bear no name.
    Frame { payload: Vec<u8>, destination: Eui64, handle: Handle, is_advice: bool },
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

/// Recoverable fragments of one node.
#[derive(Debug)]
pub(crate) struct Node {
    config: Config,
    senders: Senders,
    forwarder: Forwarder,
    receiving: Receiving,
    refusals: Refusals,
    out: Outgoing,
    deadline: Option<Instant>,
}

impl Node {
    pub fn new(address: Eui64, contexts: Contexts, config: Config, rng: Rng) -> Self {
        Self {
            config,
            senders: Senders::new(config, rng),
            forwarder: Forwarder::new(address, contexts, config),
            receiving: Receiving::new(&config),
            refusals: Refusals::new(&config.recovery),
            out: Outgoing::new(config),
            deadline: None,
        }
    }

    /// What both ends of a link know from now on.
    pub fn set_contexts(&mut self, contexts: &Contexts) {
        self.forwarder.set_contexts(contexts.clone());
    }
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.poll_output()
    }
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
    pub const fn counters(&self) -> Counters {
        let (own, passed) = (self.senders.counters(), self.forwarder.counters());
        let Counters { forwarded, fallbacks, .. } = passed;
        let marked = own.marked + passed.marked;
        Counters { forwarded, fallbacks, marked, overflowed: self.out.overflowed(), ..own }
    }
    /// Octets of datagrams that are being put together.
    pub const fn receiving_octets(&self) -> usize {
        self.receiving.octets()
    }
    /// Datagrams that are being put together.
    pub const fn receiving_datagrams(&self) -> usize {
        self.receiving.datagrams()
    }
    /// Octets of datagrams that are being sent, and of frames that wait for the gap.
    pub fn sending_octets(&self) -> usize {
        self.out.octets() + self.datagrams().map(Sending::octets).sum::<usize>()
    }
    /// Datagrams that are being sent from here.
    pub fn datagrams(&self) -> impl Iterator<Item = &Sending> {
        self.senders.iter()
    }
    /// Datagrams whose fragments pass through.
    pub fn forwarded_datagrams(&self) -> usize {
        self.forwarder.open().count()
    }
    /// The packets that wait here, once for each copy.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let sending = self.datagrams().map(Sending::handle);
        let passing = self.forwarder.open().chain(self.forwarder.asked());
        sending.chain(self.receiving.handles()).chain(passing)
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
        self.out.observe(queue_state);
        let paths = self.forwarder.paths();
        self.senders.send(handle, next_hop, datagram, paths, &mut self.out);
        self.work(now);
    }

    /// True while datagrams are sent from here.
    pub fn is_sending(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Takes a frame with a dispatch of RFC 8931; false when it is malformed.
    pub fn on_frame(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        queue_state: QueueState,
    ) -> bool {
        let &Fragment { frame, source, handle, is_proven, .. } = fragment;
        self.out.observe(queue_state);
        if let Ok((header, data)) = Rfrag::parse(frame) {
            self.on_fragment(now, &Received { header, data, source, handle, is_proven });
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
        if is_first && !self.receiving.expects(source, &header) {
            let has_buffer = !self.receiving.is_full();
            if self.forwarder.ask(fragment, has_buffer, &mut self.out) {
                return;
            }
        }
        if !is_first && self.forwarder.knows(incoming) {
            self.forwarder.forward_next(now, incoming, fragment, &mut self.out);
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
            self.out.tell(Output::Accepted { handle });
        }
        self.take_in_accepted(now, fragment);
    }

    fn take_in_accepted(&mut self, now: Instant, fragment: &Received<'_>) {
        let source = fragment.source;
        let (outcome, ack) = self.receiving.accept(now, fragment, self.out.room());
        while let Some((handle, source, ack)) = self.receiving.take_evicted() {
            self.out.end(handle, Some(DropReason::BufferFull));
            self.refuse(now, source, ack.datagram_tag, false);
        }
        match outcome {
            Outcome::Complete { datagram, handle } => {
                self.out.tell(Output::Datagram { datagram, source, handle });
            }
            Outcome::Dropped { handle, reason } => self.out.end(handle, Some(reason)),
            Outcome::Waiting | Outcome::Unknown => {}
        }
        let header = fragment.header;
        match ack {
            // What confirms an abort is no refusal.
            Some(ack) if ack.bitmap == Bitmap::NULL && header.part != Part::Abort => {
                self.refuse(now, source, ack.datagram_tag, header.ack_request);
            }
            Some(ack) => self.out.acknowledge(source, ack),
            None => {}
        }
    }

    /// Tells a neighbour that its datagram cannot go on, once.
    fn refuse(&mut self, now: Instant, to: Eui64, datagram_tag: u8, asks: bool) {
        let label = Label { neighbour: to, tag: datagram_tag.into() };
        if !self.config.choices().refuses_once || self.refusals.tells(now, label, asks) {
            self.out.refuse(to, datagram_tag, self.refusals.are_advice());
        }
    }

    fn on_ack(&mut self, now: Instant, ack: RfragAck, from: Eui64) {
        let paths = self.forwarder.paths();
        if !self.senders.on_ack(now, ack, from, paths, &mut self.out) {
            self.forwarder.pass_back(now, ack, from, &mut self.out);
        }
    }

    /// The driver's answer to the oldest question.
    pub fn on_route_reply(
        &mut self,
        now: Instant,
        beginning: &[u8],
        route: Route,
        queue_state: QueueState,
    ) -> Result<(), Rejected> {
        self.out.observe(queue_state);
        let Some(pending) = self.forwarder.take_pending() else {
            return Err(Rejected::Gone { what: "route", why: "no first fragment waits for one" });
        };
        let first = pending.received();
        match route {
            // RFC 8931 s6.1.2: what cannot be forwarded is answered with a NULL bitmap.
            Route::None => {
                self.forwarder.close(pending.incoming(), DropReason::NoRoute, &mut self.out);
                let Rfrag { datagram_tag, ack_request, .. } = first.header;
                self.refuse(now, first.source, datagram_tag, ack_request);
            }
            Route::Via(next_hop) => {
                let (senders, out) = (&mut self.senders, &mut self.out);
                let forwarder = &mut self.forwarder;
                if !forwarder.forward_first(now, &pending, beginning, next_hop, senders, out) {
                    self.take_in_accepted(now, &first);
                }
            }
            Route::Here => self.take_in_accepted(now, &first),
        }
        self.work(now);
        Ok(())
    }

    /// The time of [`Node::next_deadline`] has come.
    pub fn on_deadline(&mut self, now: Instant, queue_state: QueueState) {
        self.out.observe(queue_state);
        while let Some((handle, source, ack)) = self.receiving.expire(now) {
            self.out.end(handle, Some(DropReason::ReassemblyTimeout));
            if self.config.choices().cleans_up {
                self.refuse(now, source, ack.datagram_tag, false);
            }
        }
        self.forwarder.expire(now, &mut self.out);
        self.senders.on_deadline(now, self.forwarder.paths(), &mut self.out);
        self.work(now);
    }

    /// The MAC is done with a frame, so that there may be room for another.
    pub fn on_frame_done(&mut self, now: Instant, queue_state: QueueState) {
        self.out.observe(queue_state);
        self.work(now);
    }

    /// Sends what may leave, and works out when to come back. What passes through and acknowledgements go first, then the
    /// datagrams of this node in turn.
    fn work(&mut self, now: Instant) {
        while self.out.gap_ends() <= now {
            let waiting = self.out.pop().or_else(|| self.senders.next_frame(now, &mut self.out));
            let Some(waiting) = waiting else { break };
            self.out.send(now, waiting);
        }
        let ends = earliest(self.receiving.next_deadline(), self.forwarder.next_deadline());
        let frames = earliest(self.senders.next_deadline(now, &self.out), self.out.next_deadline());
        self.deadline = earliest(ends, frames);
    }
}
