//! The adaptation layer of one node as a machine. It composes the parts, and passes to one what another says:
//!
//! | input | part |
//! |---|---|
//! | `Packet` | `compress`; a large one goes to `sender` (RFC 4944) or `recover::node` (RFC 8931) |
//! | `Frame` | by its dispatch: `decompress`, `relay` (RFC 8930), `reassemble` or `recover::node` |
//! | `FrameDone` | `frames`, then the part that sent the frame |
//! | `RouteReply` | the part that asked |
//! | `Network` | what all parts compress with |
//! | `Deadline` | `reassemble`, `relay`, `recover::node` |

mod relay;
mod sender;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Outbox, Rejected, earliest};
use lowmesh_reassembly::Name as _;
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::fragment::{FragmentHeader, NEXT_OCTETS, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, Dispatch, Extent, decompress};

use self::relay::{Lent, Relay, take_tag};
use self::sender::{Oversized, Sender};
use crate::buffer_overhead::BufferOverhead;
use crate::compress::{Form, Link, form, settled};
use crate::event::{Counters, Input, Network, Output, Route};
use crate::frames::{End, Frames, Part};
use crate::memory::PacketBuffer;
use crate::params::{Config, FragmentMode, MTU};
use crate::reassemble::{Fragment, Outcome, Piece, Reassembly};
use crate::recover;
use crate::recover::node::{self, Node, QueueState};

/// The part that asked for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteClient {
    Relay,
    Recovery,
}

/// The adaptation layer of one node.
#[derive(Debug)]
pub struct Adaptation {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    datagram_tag: u16,
    sender: Sender,
    reassembly: Reassembly,
    relay: Relay,
    recovery: Node,
    /// Which parts asked for routes, oldest first.
    route_clients: VecDeque<RouteClient>,
    /// Packets that start here have the form of 6LoRH.
    is_routed: bool,
    /// The newest packet that was put out, and its form: a forwarder keeps it.
    newest: (Handle, Extent),
    frames: Frames,
    fragments_received: u64,
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
            relay: Relay::new(address, contexts.clone(), config),
            recovery: Node::new(address, contexts.clone(), config, rng),
            contexts,
            config,
            datagram_tag,
            sender: Sender::new(config),
            reassembly: Reassembly::new(&config),
            route_clients: VecDeque::new(),
            is_routed: false,
            newest: (Handle::NONE, Extent::Chain),
            frames: Frames::default(),
            fragments_received: 0,
            outbox: Outbox::new(),
        }
    }

    /// What the root of the RPL network decided last.
    pub fn network(&self) -> Network {
        Network { routing: self.contexts.routing().copied(), is_routed: self.is_routed }
    }
    /// Octets of packet data that wait now; their sum is at most [`Config::packet_buffer_octets`].
    pub fn packet_buffer(&self) -> PacketBuffer {
        let buffer_overhead = self.buffer_overhead();
        let reassembled = self.reassembly.len() + self.recovery.receiving_datagrams();
        PacketBuffer {
            reassembly: self.reassembly.octets()
                + self.recovery.receiving_octets()
                + reassembled * buffer_overhead.reassembly,
            fragmentation: self.sender.octets()
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
        let here = self.reassembly.handles().chain(self.sender.handles());
        let ended = self.frames.ended_packets();
        let others = here.chain(self.relay.handles()).chain(self.frames.whole_packets());
        others.chain(self.recovery.handles()).chain(ended)
    }
    /// Packets that are being sent in fragments now; at most the configured bound.
    pub fn fragmented_datagrams(&self) -> usize {
        self.sender.len() + self.recovery.datagrams().count()
    }
    /// Datagrams that are being sent in recoverable fragments now, with their windows.
    pub fn recovered_datagrams(&self) -> impl Iterator<Item = &recover::Sending> {
        self.recovery.datagrams()
    }
    /// Datagrams whose fragments pass through now; at most the configured bound.
    pub fn forwarded_datagrams(&self) -> usize {
        self.relay.len() + self.recovery.forwarded_datagrams()
    }
    /// What was counted since the layer began.
    pub const fn counters(&self) -> Counters {
        let fragments_sent = self.sender.fragments();
        let fragments_received = self.fragments_received;
        Counters { fragments_sent, fragments_received, ..self.relay.counters() }
    }
    /// What was counted of recoverable fragments.
    pub const fn recovery_counters(&self) -> recover::Counters {
        self.recovery.counters()
    }

    /// Takes over what the root of the RPL network decides.
    fn on_network(&mut self, network: Network) {
        let Network { routing, is_routed } = network;
        self.is_routed = is_routed;
        if self.contexts.routing() != routing.as_ref() {
            self.contexts = core::mem::take(&mut self.contexts).with_routing(routing);
            self.relay.set_contexts(self.contexts.clone());
            self.recovery.set_contexts(&self.contexts);
        }
    }

    /// RFC 9035 s4: the source of a packet obeys the root, a forwarder keeps the form in which the packet came.
    fn extent_of(&self, handle: Handle) -> Extent {
        let (newest, extent) = self.newest;
        if newest == handle && handle != Handle::NONE {
            extent
        } else if self.is_routed {
            Extent::Routed
        } else {
            Extent::Chain
        }
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
        let extent = self.extent_of(handle);
        let bytes = settled(bytes, extent);
        let link = Link { source: self.address, destination, contexts: &self.contexts };
        let form = form(&bytes, link, extent, mode, payload).map_err(|_| MALFORMED)?;
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
                self.outbox.push(Output::Frame {
                    payload,
                    destination,
                    handle,
                    last: true,
                    is_advice: false,
                });
            }
            Form::Fragments { headers, covered }
                if mode == FragmentMode::Recovered && destination.is_some() =>
            {
                if let Some(next_hop) = destination {
                    self.send_recovered(now, &bytes, next_hop, handle, headers, covered);
                }
            }
            Form::Fragments { headers, covered } if payload >= NEXT_OCTETS + OFFSET_UNIT => {
                let packet = Oversized { bytes, destination, handle, headers, covered };
                let room = self.room();
                self.sender.send(packet, || take_tag(&mut self.datagram_tag), room);
                self.drain_sender();
            }
            Form::Fragments { .. } | Form::TooLarge => {
                self.drop_packet(handle, DropReason::TooLarge);
            }
        }
        Ok(())
    }

    /// Sends a packet whose compressed `headers` stand for its first `covered` octets.
    fn send_recovered(
        &mut self,
        now: Instant,
        packet: &[u8],
        next_hop: Eui64,
        handle: Handle,
        mut headers: Vec<u8>,
        covered: usize,
    ) {
        headers.extend_from_slice(&packet[covered..]);
        if headers.len() + self.config.frame_payload > self.room() {
            self.drop_packet(handle, DropReason::BufferFull);
            return;
        }
        let queue = self.queue_state();
        self.recovery.send(now, handle, next_hop, headers, queue);
        self.drain_recovery();
    }

    fn on_frame_done(&mut self, now: Instant, handle: Handle, result: Result<(), DropReason>) {
        // A frame that is not one of ours: the MAC also sends some of its own.
        let Some(part) = self.frames.take(handle) else { return };
        match part {
            Part::Whole => self.outbox.push(Output::PacketDone { handle, result }),
            Part::Fragment => {
                let room = self.room();
                self.sender.on_fragment_done(handle, result, room);
                self.drain_sender();
            }
            Part::Forwarded => {
                self.relay.on_fragment_done(now, handle, result, &mut self.reassembly);
                self.drain_relay(now);
            }
            // Whether the next node has it does not matter: the ends find out.
            Part::Recovered => {}
        }
        while let Some(end) = self.frames.take_ended(handle, part) {
            self.close_copy(handle, end);
        }
        if self.recovery.is_sending() {
            // There may be room for another fragment.
            let queue = self.queue_state();
            self.recovery.on_frame_done(now, queue);
            self.drain_recovery();
        }
    }

    /// A copy of a packet is over, with the last of its frames that are of this kind.
    fn end_copy(&mut self, handle: Handle, part: Part, end: End) {
        if let Some(end) = self.frames.end(handle, part, end) {
            self.close_copy(handle, end);
        }
    }

    fn close_copy(&mut self, handle: Handle, end: End) {
        match end {
            End::PassedOn => self.outbox.push(Output::PacketDone { handle, result: Ok(()) }),
            End::Failed(reason) => {
                self.outbox.push(Output::PacketDone { handle, result: Err(reason) });
            }
            End::Dropped(reason) => self.drop_packet(handle, reason),
        }
    }

    fn on_frame(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let &Fragment { frame, source, destination, handle, .. } = fragment;
        let dispatch = frame.first().map_or(Dispatch::NotLowpan, |octet| Dispatch::of(*octet));
        match dispatch {
            Dispatch::Ipv6 | Dispatch::Iphc | Dispatch::Routed => {
                self.outbox.push(Output::Accepted { handle });
                self.on_packet_frame(frame, source, destination, handle);
            }
            Dispatch::First | Dispatch::Next => {
                self.fragments_received += 1;
                self.on_fragment(now, fragment);
            }
            Dispatch::Rfrag | Dispatch::RfragAck => {
                self.fragments_received += 1;
                self.on_recoverable(now, fragment);
            }
            // RFC 4944 s5.1: a frame that is not LoWPAN is discarded.
            Dispatch::NotLowpan | Dispatch::Other => {
                self.outbox.push(Output::Accepted { handle });
                self.drop_packet(handle, DropReason::Malformed);
            }
        }
    }

    /// Takes a fragment of RFC 4944: it passes, or is put together here.
    fn on_fragment(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let unicast = fragment.destination.is_some();
        if self.config.mode == FragmentMode::Forwarded
            && unicast
            && let Ok(header) = FragmentHeader::parse(fragment.frame)
        {
            let room = self.room();
            let (datagram_tag, reassembly) = (&mut self.datagram_tag, &mut self.reassembly);
            let mut lent = Lent { room, datagram_tag, reassembly };
            let passes = self.relay.on_fragment(now, fragment, header, &mut lent);
            self.drain_relay(now);
            if passes {
                return;
            }
        }
        self.reassemble(now, fragment);
    }

    /// Takes a frame with a dispatch of RFC 8931.
    fn on_recoverable(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let queue = self.queue_state();
        // RFC 8931 s6: fragments are for one neighbour, who acknowledges them.
        let is_taken =
            fragment.destination.is_some() && self.recovery.on_frame(now, fragment, queue);
        if !is_taken {
            let handle = fragment.handle;
            self.outbox.push(Output::Accepted { handle });
            self.drop_packet(handle, DropReason::Malformed);
        }
        self.drain_recovery();
    }

    fn on_route_reply(
        &mut self,
        now: Instant,
        beginning: Vec<u8>,
        route: Route,
    ) -> Result<(), Rejected> {
        if self.route_clients.pop_front() == Some(RouteClient::Recovery) {
            let queue = self.queue_state();
            self.recovery.on_route_reply(now, &beginning, route, queue)?;
            self.drain_recovery();
        } else {
            let room = self.room();
            let (datagram_tag, reassembly) = (&mut self.datagram_tag, &mut self.reassembly);
            let mut lent = Lent { room, datagram_tag, reassembly };
            self.relay.on_route_reply(now, beginning, route, &mut lent)?;
            self.drain_relay(now);
        }
        Ok(())
    }

    fn queue_state(&self) -> QueueState {
        QueueState { room: self.room(), backlog: self.frames.len() }
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
            Outcome::Complete { bytes, handle, extent } => {
                self.newest = (handle, extent);
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
        self.relay.on_deadline(now);
        self.drain_relay(now);
        if self.recovery.next_deadline().is_some_and(|deadline| deadline <= now) {
            let queue = self.queue_state();
            self.recovery.on_deadline(now, queue);
            self.drain_recovery();
        }
    }

    fn drain_sender(&mut self) {
        while let Some(output) = self.sender.poll_output() {
            if let Output::Frame { payload, handle, .. } = &output {
                let octets = payload.len() + self.buffer_overhead().fragment;
                self.frames.push(*handle, Part::Fragment, octets);
            }
            self.outbox.push(output);
        }
    }

    fn drain_relay(&mut self, now: Instant) {
        while let Some(output) = self.relay.poll_output() {
            match output {
                relay::Output::Accepted { handle } => self.outbox.push(Output::Accepted { handle }),
                relay::Output::RouteRequest { beginning, source, handle } => {
                    self.route_clients.push_back(RouteClient::Relay);
                    self.outbox.push(Output::RouteRequest { beginning, source, handle });
                }
                relay::Output::Frame { payload, next_hop, handle, last } => {
                    self.put_frame(Part::Forwarded, payload, next_hop, handle, (last, false));
                }
                relay::Output::Stays { name, data, extent, handle, is_proven } => {
                    let room = self.room();
                    let piece = Piece { offset: 0, data: &data, extent, is_proven };
                    let outcome = self.reassembly.place(now, name, piece, handle, room);
                    self.on_outcome(name.source(), name.is_broadcast(), outcome);
                }
                relay::Output::Dropped { handle, reason } => self.drop_packet(handle, reason),
                relay::Output::Ended { handle, end } => {
                    self.end_copy(handle, Part::Forwarded, end);
                }
            }
        }
    }

    /// Puts out a frame of a part to one neighbour, with its flags `last` and `is_advice`.
    fn put_frame(
        &mut self,
        part: Part,
        payload: Vec<u8>,
        next_hop: Eui64,
        handle: Handle,
        (last, is_advice): (bool, bool),
    ) {
        let octets = payload.len() + self.buffer_overhead().fragment;
        self.frames.push(handle, part, octets);
        let destination = Some(next_hop);
        self.outbox.push(Output::Frame { payload, destination, handle, last, is_advice });
    }

    fn drain_recovery(&mut self) {
        while let Some(output) = self.recovery.poll_output() {
            match output {
                node::Output::Frame { payload, destination, handle, is_advice } => {
                    // Whether another follows is known only when it is due.
                    let flags = (false, is_advice);
                    self.put_frame(Part::Recovered, payload, destination, handle, flags);
                }
                node::Output::Accepted { handle } => self.outbox.push(Output::Accepted { handle }),
                node::Output::RouteRequest { beginning, source, handle } => {
                    self.route_clients.push_back(RouteClient::Recovery);
                    self.outbox.push(Output::RouteRequest { beginning, source, handle });
                }
                node::Output::Datagram { datagram, source, handle } => {
                    self.on_packet_frame(&datagram, source, Some(self.address), handle);
                }
                node::Output::Step(step) => self.outbox.push(Output::Step(step)),
                node::Output::Ended { handle, dropped } => {
                    let end = dropped.map_or(End::PassedOn, End::Dropped);
                    self.end_copy(handle, Part::Recovered, end);
                }
            }
        }
    }

    /// Takes the compressed form of a whole packet.
    fn on_packet_frame(
        &mut self,
        compressed: &[u8],
        source: Eui64,
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let broadcast = destination.is_none();
        let mut bytes = Vec::with_capacity(compressed.len() + 64);
        match decompress(compressed, source, destination, &self.contexts, None, &mut bytes) {
            Ok(()) => {
                self.newest = (handle, Extent::of(compressed));
                self.outbox.push(Output::Packet { bytes, source, broadcast, handle });
            }
            Err(_) => self.drop_packet(handle, DropReason::Malformed),
        }
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
            Input::Frame { payload, source, destination, handle, is_proven } => {
                let fragment = Fragment { frame: payload, source, destination, handle, is_proven };
                self.on_frame(now, &fragment);
            }
            Input::FrameDone { handle, result } => self.on_frame_done(now, handle, result),
            Input::RouteReply { beginning, route } => {
                return self.on_route_reply(now, beginning, route);
            }
            Input::Network(network) => self.on_network(network),
            Input::Deadline => self.on_deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let here = earliest(self.reassembly.next_deadline(), self.relay.next_deadline());
        earliest(here, self.recovery.next_deadline())
    }
}

#[cfg(test)]
mod tests;
