//! The adaptation layer of one node as a machine: composition of `compress`, `fragment` and `reassemble`;
//! fragments that pass through are `relay`'s, recoverable ones `recovered`'s.

mod recovered;
mod relay;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::fragment::{NEXT_OCTETS, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, Dispatch, decompress};

use self::recovered::RouteClient;
use self::relay::PendingRoute;
use crate::buffer_overhead::BufferOverhead;
use crate::compress::{Form, form};
use crate::event::{Counters, Input, Output};
use crate::forward::VirtualReassembly;
use crate::fragment::{First, Fragmented};
use crate::frames::{End, Frames, Part};
use crate::memory::PacketBuffer;
use crate::params::{Config, FragmentMode, MTU};
use crate::reassemble::{Fragment, Outcome, Reassembly};
use crate::recover::{self, node::Node};
use crate::transit::TransitDatagram;

/// The adaptation layer of one node.
#[derive(Debug)]
pub struct Adaptation {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    datagram_tag: u16,
    fragmented: Vec<Fragmented>,
    fragmented_octets: usize,
    reassembly: Reassembly,
    passing: VirtualReassembly<TransitDatagram>,
    pending_routes: VecDeque<PendingRoute>,
    /// Who asked for routes, oldest first.
    route_clients: VecDeque<RouteClient>,
    recovery: Node,
    frames: Frames,
    counters: Counters,
    outbox: Outbox<Output>,
}

impl Adaptation {
    /// The layer of the node `address`, whose links share `contexts`; `rng` is the stream of purpose `Lowpan`.
    pub fn new(address: Eui64, contexts: Contexts, config: Config, mut rng: Rng) -> Self {
        // RFC 4944 s5.3: the first datagram_tag is not defined; a random one tells a restarted node's
        // fragments from its earlier ones.
        let datagram_tag = rng.next_u32() as u16;
        Self {
            address,
            recovery: Node::new(address, contexts.clone(), config, rng),
            contexts,
            config,
            datagram_tag,
            fragmented: Vec::new(),
            fragmented_octets: 0,
            reassembly: Reassembly::new(&config),
            passing: VirtualReassembly::new(
                config.forwarded_datagrams,
                config.reassembly_limits().timeout,
            ),
            pending_routes: VecDeque::new(),
            route_clients: VecDeque::new(),
            frames: Frames::default(),
            counters: Counters::default(),
            outbox: Outbox::new(),
        }
    }

    /// Octets of packet data that wait now; their sum is at most [`Config::packet_buffer_octets`].
    pub fn packet_buffer(&self) -> PacketBuffer {
        let buffer_overhead = self.buffer_overhead();
        let reassembled = self.reassembly.handles().count() + self.recovery.receiving_datagrams();
        PacketBuffer {
            reassembly: self.reassembly.octets()
                + self.recovery.receiving_octets()
                + reassembled * buffer_overhead.reassembly,
            fragmentation: self.fragmented_octets
                + self.recovery.sending_octets()
                + self.recovery.datagrams().count() * buffer_overhead.packet,
            frames: self.frames.octets(),
        }
    }
    /// Octets that another packet may have: what the packet buffer has left, less what is kept beside a packet.
    fn room(&self) -> usize {
        let taken = self.packet_buffer().total() + self.buffer_overhead().packet;
        self.config.packet_buffer_octets.saturating_sub(taken)
    }
    const fn buffer_overhead(&self) -> BufferOverhead {
        self.config.choices().overhead
    }
    /// The packets that wait here or in the MAC's queue, once for each copy: whole, in reassembly, being sent
    /// in fragments, or passing through.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let fragmented = self.fragmented.iter().map(|datagram| datagram.handle);
        let passing = self.passing.iter().map(|entry| entry.handle);
        let asked = self.pending_routes.iter().map(PendingRoute::handle);
        let here = self.reassembly.handles().chain(fragmented);
        let ended = self.frames.ended_packets();
        let others = here.chain(passing).chain(asked).chain(self.frames.whole_packets());
        others.chain(self.recovery.handles()).chain(ended)
    }
    /// Packets that are being sent in fragments now; at most the configured bound.
    pub fn fragmented_datagrams(&self) -> usize {
        self.fragmented.len() + self.recovery.datagrams().count()
    }
    /// Datagrams that are being sent in recoverable fragments now, with their windows.
    pub fn recovered_datagrams(&self) -> impl Iterator<Item = &recover::Sending> {
        self.recovery.datagrams()
    }
    /// Datagrams whose fragments pass through now; at most the configured bound.
    pub fn forwarded_datagrams(&self) -> usize {
        self.passing.iter().count() + self.recovery.forwarded_datagrams()
    }
    /// What was counted since the layer began.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// What was counted of recoverable fragments.
    pub const fn recovery_counters(&self) -> recover::Counters {
        self.recovery.counters()
    }

    fn on_packet(
        &mut self,
        now: Instant,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) -> Result<(), Rejected> {
        const MALFORMED: Rejected = Rejected::Invalid {
            what: "packet to send",
            why: "it has no IPv6 header whose payload length is that of the packet",
        };
        if bytes.len() > MTU {
            self.drop_packet(handle, DropReason::TooLarge);
            return Ok(());
        }
        let payload = self.config.frame_payload;
        let mode = self.config.mode;
        let form = form(&bytes, self.address, destination, &self.contexts, mode, payload)
            .map_err(|_| MALFORMED)?;
        match form {
            Form::Whole(payload) if payload.len() > self.room() => {
                self.drop_packet(handle, DropReason::BufferFull);
            }
            Form::Whole(payload) => {
                self.frames.push(
                    handle,
                    Part::Whole,
                    payload.len() + self.buffer_overhead().packet,
                );
                self.outbox.push(Output::Frame { payload, destination, handle, last: true });
            }
            Form::Fragments { headers, covered }
                if mode == FragmentMode::Recovered && destination.is_some() =>
            {
                if let Some(next_hop) = destination {
                    self.send_recovered(now, &bytes, next_hop, handle, headers, covered);
                }
            }
            Form::Fragments { headers, covered } if payload >= NEXT_OCTETS + OFFSET_UNIT => {
                self.send_fragmented(bytes, destination, handle, headers, covered);
            }
            Form::Fragments { .. } | Form::TooLarge => {
                self.drop_packet(handle, DropReason::TooLarge);
            }
        }
        Ok(())
    }

    fn send_fragmented(
        &mut self,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
        headers: Vec<u8>,
        covered: usize,
    ) {
        let room = self.room();
        let own = self.fragmented.iter().filter(|one| one.destination == destination).count();
        let full = !self.config.may_fragment(own, self.fragmented.len());
        if full || bytes.len() + self.config.frame_payload > room {
            self.drop_packet(handle, DropReason::BufferFull);
            return;
        }
        let first = match self.config.mode {
            FragmentMode::Forwarded => First::Headers,
            FragmentMode::HopWise | FragmentMode::Recovered | FragmentMode::EndToEnd => First::Full,
        };
        let tag = self.next_datagram_tag();
        self.fragmented_octets += bytes.len() + self.buffer_overhead().packet;
        self.fragmented.push(Fragmented::new(
            handle,
            destination,
            bytes,
            headers,
            covered,
            first,
            tag,
        ));
        self.advance(self.fragmented.len() - 1);
    }

    /// RFC 4944 s5.3: the sender increments datagram_tag for successive datagrams; RFC 8930 s5: for those that
    /// pass through as well, so that no two on the air have the same.
    fn next_datagram_tag(&mut self) -> u16 {
        let tag = self.datagram_tag;
        self.datagram_tag = tag.wrapping_add(1);
        tag
    }

    /// Sends as many fragments of the datagram `at` as may be in flight.
    fn advance(&mut self, at: usize) {
        while self.fragmented[at].in_flight() < self.config.in_flight_max() {
            if self.room() < self.config.frame_payload {
                if self.fragmented[at].in_flight() == 0 {
                    let handle = self.remove_fragmented(at).handle;
                    self.drop_packet(handle, DropReason::BufferFull);
                }
                return;
            }
            let datagram = &mut self.fragmented[at];
            let Some((payload, last)) = datagram.next_fragment(self.config.frame_payload) else {
                return;
            };
            let (destination, handle) = (datagram.destination, datagram.handle);
            self.counters.fragments_sent += 1;
            self.frames.push(
                handle,
                Part::Fragment,
                payload.len() + self.buffer_overhead().fragment,
            );
            self.outbox.push(Output::Frame { payload, destination, handle, last });
        }
    }

    /// A packet need not wait itself once it is all in frames.
    fn let_go(&mut self, at: usize) {
        if !self.fragmented[at].is_let_go() {
            self.fragmented[at].let_go();
            self.fragmented_octets -= self.fragmented[at].octets() + self.buffer_overhead().packet;
        }
    }

    fn remove_fragmented(&mut self, at: usize) -> Fragmented {
        self.let_go(at);
        self.fragmented.remove(at)
    }

    fn on_frame_done(&mut self, now: Instant, handle: Handle, delivered: bool) {
        // A frame that is not one of ours: the MAC also sends some of its own.
        let Some(part) = self.frames.take(handle) else { return };
        match part {
            Part::Whole => self.outbox.push(Output::PacketDone { handle, delivered }),
            Part::Fragment => self.on_fragment_done(handle, delivered),
            Part::Forwarded => self.on_forwarded(now, handle, delivered),
            // Whether the next node has it does not matter: the ends find out.
            Part::Recovered => {}
        }
        while let Some(end) = self.frames.take_ended(handle, part) {
            self.close_copy(handle, end);
        }
        self.offer_room(now);
    }

    /// A copy of a packet is over, with the last of its frames that are of this kind.
    fn end_copy(&mut self, handle: Handle, part: Part, end: End) {
        if let Some(end) = self.frames.end(handle, part, end) {
            self.close_copy(handle, end);
        }
    }

    fn close_copy(&mut self, handle: Handle, end: End) {
        match end {
            End::PassedOn => self.outbox.push(Output::PacketDone { handle, delivered: true }),
            End::Failed => self.outbox.push(Output::PacketDone { handle, delivered: false }),
            End::Dropped(reason) => self.drop_packet(handle, reason),
        }
    }

    fn on_fragment_done(&mut self, handle: Handle, delivered: bool) {
        let waiting = |datagram: &Fragmented| datagram.handle == handle && datagram.in_flight() > 0;
        let Some(at) = self.fragmented.iter().position(waiting) else { return };
        self.fragmented[at].on_confirmed(delivered, self.config.abandons());
        match self.fragmented[at].result() {
            Some(delivered) => {
                self.remove_fragmented(at);
                self.outbox.push(Output::PacketDone { handle, delivered });
            }
            // GNRC cuts a packet while its first frame is on the air, and then lets it go.
            None if self.fragmented[at].is_sent() && self.config.choices().hands_over_all => {
                self.let_go(at);
            }
            None => self.advance(at),
        }
    }

    fn on_frame(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let &Fragment { frame, source, destination, handle } = fragment;
        let broadcast = destination.is_none();
        let dispatch = frame.first().map_or(Dispatch::NotLowpan, |octet| Dispatch::of(*octet));
        match dispatch {
            Dispatch::Ipv6 | Dispatch::Iphc => {
                self.outbox.push(Output::Accepted { handle });
                let mut bytes = Vec::with_capacity(frame.len() + 64);
                match decompress(frame, source, destination, &self.contexts, None, &mut bytes) {
                    Ok(()) => {
                        self.outbox.push(Output::Packet { bytes, source, broadcast, handle });
                    }
                    Err(_) => self.drop_packet(handle, DropReason::Malformed),
                }
            }
            Dispatch::First | Dispatch::Next => {
                self.counters.fragments_received += 1;
                self.on_fragment(now, fragment);
            }
            Dispatch::Rfrag | Dispatch::RfragAck => {
                self.counters.fragments_received += 1;
                self.on_recoverable(now, fragment);
            }
            // RFC 4944 s5.1: a frame that is not LoWPAN is discarded.
            Dispatch::NotLowpan | Dispatch::Other => {
                self.outbox.push(Output::Accepted { handle });
                self.drop_packet(handle, DropReason::Malformed);
            }
        }
    }

    /// Takes a fragment of a datagram that is put together here.
    fn reassemble(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let &Fragment { source, destination, handle, .. } = fragment;
        let (held, opened) = (self.reassembly.holds(fragment), self.reassembly.opened());
        let room = self.room();
        let outcome = self.reassembly.accept(now, fragment, &self.contexts, room);
        let ends = matches!(outcome, Outcome::Dropped { handle: ended, .. } if ended == handle);
        if self.reassembly.opened() > opened || ends && !held {
            self.outbox.push(Output::Accepted { handle });
        }
        self.on_outcome(source, destination.is_none(), outcome);
    }

    fn on_outcome(&mut self, source: Eui64, broadcast: bool, outcome: Outcome) {
        while let Some(handle) = self.reassembly.take_evicted() {
            self.drop_packet(handle, DropReason::BufferFull);
        }
        match outcome {
            Outcome::Waiting => {}
            Outcome::Complete { bytes, handle } => {
                self.outbox.push(Output::Packet { bytes, source, broadcast, handle });
            }
            Outcome::Dropped { handle, reason } => self.drop_packet(handle, reason),
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        // RFC 4944 s5.3: when the timeout comes, what has accumulated is discarded.
        while let Some(handle) = self.reassembly.expire(now) {
            self.drop_packet(handle, DropReason::ReassemblyTimeout);
        }
        while let Some(entry) = self.passing.expire(now) {
            let end = End::Dropped(DropReason::ReassemblyTimeout);
            self.end_copy(entry.handle, Part::Forwarded, end);
        }
        self.on_recovery_deadline(now);
    }

    fn drop_packet(&mut self, handle: Handle, reason: DropReason) {
        self.outbox.push(Output::Dropped(Dropped { handle, layer: Layer::Lowpan, reason }));
    }
}

impl Machine for Adaptation {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        match input {
            Input::Packet { bytes, destination, handle } => {
                return self.on_packet(now, bytes, destination, handle);
            }
            Input::Frame { payload, source, destination, handle } => {
                self.on_frame(now, &Fragment { frame: payload, source, destination, handle });
            }
            Input::FrameDone { handle, delivered } => self.on_frame_done(now, handle, delivered),
            Input::RouteReply { beginning, route } => {
                return match self.route_clients.pop_front() {
                    Some(RouteClient::Recovered) => self.on_recovered_route(now, &beginning, route),
                    Some(RouteClient::Forwarded) | None => {
                        self.on_route_reply(now, &beginning, route)
                    }
                };
            }
            Input::Deadline => self.on_deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let here = earliest(self.reassembly.next_deadline(), self.passing.next_deadline());
        earliest(here, self.recovery.next_deadline())
    }
}

#[cfg(test)]
mod tests;
