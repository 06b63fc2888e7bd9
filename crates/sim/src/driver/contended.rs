//! Frames in continuous time, for nodes whose MAC senses the channel: they begin when their MAC says so, and end
//! one air time later.
//!
//! ```text
//!   sender's MAC ── Sense ──> is the channel busy here? ──> Sensed
//!                ── Transmit ─> begins at every neighbour ──> Incoming where the radio finds it
//!                               ends there (SINR, capture) ─> Received or Lost
//!                               ends at the sender ─────────> Sent
//! ```
//! An event touches the nodes that may hear the frame and no others; a node that is idle costs nothing.

use lowmesh_mac::csma::Input;
use lowmesh_mac::params::PHY_HEADER_OCTETS;
use lowmesh_units::{Channel, Instant, NodeId};
use lowmesh_wire::ieee802154::FCS_OCTETS;

use crate::agenda::Kind;
use crate::air::{Arrival, Cca, Fate, FrameId, Noise, Receiver, Signal, reception_draw, resolve};
use crate::trace::Fact;
use crate::world::World;

use super::Driver;
use super::flight::Hearers;
use super::radio::{Outgoing, Owed, Radio};

/// The settings of a radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) channel: Channel,
    /// When the channel is busy.
    pub(crate) cca: Cca,
}

/// The driver of nodes that sense the channel.
#[derive(Debug)]
pub(crate) struct Contended {
    tunings: Vec<Tuning>,
    radios: Vec<Radio>,
    hearers: Hearers,
    frames_begun: u64,
}

impl Driver for Contended {
    fn event(&mut self, world: &mut World, now: Instant, kind: Kind, node: NodeId) {
        match kind {
            Kind::Sense => self.sensed(world, now, node),
            _ => self.frame_step(world, now, node),
        }
    }

    fn plan(&mut self, world: &mut World, node: NodeId) {
        let radio = &mut self.radios[node.index()];
        if world.is_off(node) {
            // A radio without power does nothing, and keeps its orders if the memory is kept.
            for order in world.orders.drain(..) {
                radio.take(order);
            }
            world.agenda.set(node, Kind::Sense, None);
            world.agenda.set(node, Kind::Frame, None);
            return;
        }
        for order in world.orders.drain(..) {
            radio.take(order);
        }
        world.agenda.set(node, Kind::Sense, radio.sensed_at());
        world.agenda.set(node, Kind::Frame, radio.next_frame_step());
    }

    fn stop(&mut self, world: &mut World, now: Instant, node: NodeId, is_kept: bool) {
        let radio = &mut self.radios[node.index()];
        if !is_kept {
            radio.sense = None;
        }
        radio.owed.lost |= is_kept && radio.receiver.judged_until().is_some();
        radio.receiver.abandon();
        if let Some(frame) = radio.outgoing.take_if(|frame| !is_kept || frame.frame.is_some()) {
            radio.owed.sent |= is_kept;
            self.break_off(world, now, &frame, |_| true);
        }
        if !is_kept {
            self.radios[node.index()].owed = Owed::default();
        }
        self.plan(world, node);
    }

    fn resume(&mut self, world: &mut World, now: Instant, node: NodeId) {
        let radio = &mut self.radios[node.index()];
        let Owed { sent, lost } = std::mem::take(&mut radio.owed);
        // What waited begins now.
        if radio.sense.is_some() {
            radio.sense = Some(now);
        }
        if let Some(frame) = &mut radio.outgoing {
            frame.start = now;
        }
        if lost {
            world.nodes[node.index()].radio(now, Input::Lost);
            self.settle(world, now, node);
        }
        if sent {
            world.nodes[node.index()].radio(now, Input::Sent);
        }
        self.settle(world, now, node);
    }

    fn tune(&mut self, node: NodeId, channel: Channel) {
        self.tunings[node.index()].channel = channel;
    }

    fn change_links(&mut self, world: &mut World, now: Instant) {
        for index in 0..self.radios.len() {
            let from = NodeId(index as u16);
            let begun = |frame: &&Outgoing| frame.frame.is_some();
            let Some(frame) = self.radios[index].outgoing.clone().filter(|frame| begun(&frame))
            else {
                continue;
            };
            let channel = self.channel(from);
            let links = world.links();
            let gone: Vec<NodeId> = (0..self.radios.len())
                .map(|to| NodeId(to as u16))
                .filter(|to| {
                    self.channel(*to) != channel || links.get(from, *to, channel).is_none()
                })
                .collect();
            self.break_off(world, now, &frame, |to| gone.contains(&to));
        }
    }
}

impl Contended {
    /// A driver of radios that are set to `tunings`, one a node.
    pub(crate) fn new(tunings: Vec<Tuning>) -> Self {
        let radios = vec![Radio::default(); tunings.len()];
        Self { tunings, radios, hearers: Hearers::default(), frames_begun: 0 }
    }

    /// A frame on the air ends at some radios before its time: none of them gets it.
    fn break_off(
        &mut self,
        world: &mut World,
        now: Instant,
        frame: &Outgoing,
        ends_at: impl Fn(NodeId) -> bool,
    ) {
        let Some(frame) = frame.frame else { return };
        for to in (0..self.radios.len()).map(|index| NodeId(index as u16)).filter(|to| ends_at(*to))
        {
            let noise = noise_at(world, self.channel(to), now, to);
            let cca = self.tunings[to.index()].cca;
            let receiver = &mut self.radios[to.index()].receiver;
            let fate = receiver.end(world.overlap, noise, cca, frame, now);
            if fate != Fate::Unheard && !world.is_off(to) {
                world.nodes[to.index()].radio(now, Input::Lost);
                self.settle(world, now, to);
            }
        }
    }

    fn channel(&self, node: NodeId) -> Channel {
        self.tunings[node.index()].channel
    }

    /// The node has sensed the channel for long enough.
    fn sensed(&mut self, world: &mut World, now: Instant, node: NodeId) {
        let noise = noise_at(world, self.channel(node), now, node);
        let radio = &mut self.radios[node.index()];
        let Some(from) = radio.sense.take() else { return };
        let busy = radio.receiver.is_busy(noise, self.tunings[node.index()].cca, from);
        world.nodes[node.index()].radio(now, Input::Sensed { busy });
        self.settle(world, now, node);
    }

    /// The node's frame on its way out begins, or ends.
    fn frame_step(&mut self, world: &mut World, now: Instant, node: NodeId) {
        let mut hearers = std::mem::take(&mut self.hearers);
        match self.radios[node.index()].outgoing.take() {
            Some(frame) if frame.frame.is_none() => {
                self.begin_frame(world, now, node, frame, &mut hearers);
            }
            Some(frame) => self.end_frame(world, now, node, &frame, &mut hearers),
            None => {}
        }
        self.hearers = hearers;
    }

    fn begin_frame(
        &mut self,
        world: &mut World,
        now: Instant,
        from: NodeId,
        mut outgoing: Outgoing,
        hearers: &mut Hearers,
    ) {
        self.frames_begun += 1;
        let frame = FrameId(self.frames_begun);
        outgoing.frame = Some(frame);
        let channel = self.channel(from);
        world.note_sent(now, now, from, None, channel, &outgoing.octets);
        world.books.note_carried(outgoing.handle());
        let addressee = outgoing.destination();
        if let Some(to) = addressee {
            world.books.outcome.frames.sent += 1;
            world.note_attempt(from, to, &outgoing.octets);
        }
        let destination = addressee.and_then(|to| world.names.node(to));
        let address = world.names.eui64(from);
        // Half duplex: what came in is lost to a radio that sends.
        self.radios[from.index()].receiver.abandon();
        hearers.found.clear();
        let rule = world.overlap;
        // Not `World::links`, which would borrow the whole world.
        let links = world.overlay.links(world.medium.links());
        for (to, link) in links.heard(from, channel) {
            if self.channel(to) != channel {
                continue;
            }
            let extra_mw = world.interference.extra_noise_mw(to, channel, now);
            let noise = Noise { floor_mw: world.noise_mw, extra_mw };
            let signal = Signal::over(link, now);
            let draw = reception_draw(world.seed, from, to, now);
            let radio = &mut self.radios[to.index()];
            pass_interference(world, &mut radio.receiver, to, channel, now);
            let begun = radio.outgoing.as_mut().filter(|own| own.frame.is_some());
            let sending = begun.is_some();
            // What the neighbour has on its way to this node is lost from now on.
            if let Some(own) = begun.filter(|own| own.destination() == Some(address)) {
                own.deaf = true;
            }
            let off = sending || world.is_off(to);
            let listening = !off && world.nodes[to.index()].is_listening();
            if destination == Some(to) {
                outgoing.awaited = listening;
                outgoing.deaf = sending;
            }
            if radio.receiver.begin(rule, noise, Arrival { frame, signal, draw }, listening) {
                hearers.found.push(to);
            }
        }
        self.radios[from.index()].outgoing = Some(outgoing);
        for &to in &hearers.found {
            world.nodes[to.index()].radio(now, Input::Incoming);
            self.settle(world, now, to);
        }
        self.settle(world, now, from);
    }

    fn end_frame(
        &mut self,
        world: &mut World,
        now: Instant,
        from: NodeId,
        outgoing: &Outgoing,
        hearers: &mut Hearers,
    ) {
        let frame = outgoing.frame.expect("the caller saw that it has begun");
        let channel = self.channel(from);
        let addressee = outgoing.destination();
        let destination = addressee.and_then(|to| world.names.node(to));
        hearers.ended.clear();
        let mut reached = None;
        // Not `World::links`, which would borrow the whole world.
        let links = world.overlay.links(world.medium.links());
        for (to, link) in links.heard(from, channel) {
            let Tuning { channel: heard, cca } = self.tunings[to.index()];
            if heard != channel {
                continue;
            }
            let extra_mw = world.interference.extra_noise_mw(to, channel, now);
            let noise = Noise { floor_mw: world.noise_mw, extra_mw };
            let receiver = &mut self.radios[to.index()].receiver;
            pass_interference(world, receiver, to, channel, now);
            let fate = receiver.end(world.overlap, noise, cca, frame, now);
            if fate != Fate::Unheard {
                hearers.ended.push((to, fate, link.rssi));
            }
            if destination == Some(to) {
                reached = Some((to, fate));
            }
        }
        if addressee.is_some() {
            note_fate(world, channel, from, outgoing, reached);
        }
        for &(to, fate, rssi) in &hearers.ended {
            let octets = &outgoing.octets;
            if fate == Fate::Received {
                let length = octets.len();
                world.books.trace.note(
                    now,
                    to,
                    Fact::Heard { from, rssi_dbm: rssi.0, octets: length },
                );
                let handle = outgoing.handle();
                world.nodes[to.index()].radio(now, Input::Received { octets, rssi, handle });
            } else {
                world.nodes[to.index()].radio(now, Input::Lost);
            }
            self.settle(world, now, to);
        }
        world.nodes[from.index()].radio(now, Input::Sent);
        self.settle(world, now, from);
    }
}

/// Books what became of a frame to one neighbour.
fn note_fate(
    world: &mut World,
    channel: Channel,
    from: NodeId,
    outgoing: &Outgoing,
    reached: Option<(NodeId, Fate)>,
) {
    let alone = |to| passes_alone(world, channel, from, to, outgoing);
    let collided = reached.is_some_and(|(to, _)| alone(to));
    let frames = &mut world.books.outcome.frames;
    match reached {
        Some((_, Fate::Received)) => frames.received += 1,
        Some(_) if outgoing.deaf => frames.deaf += 1,
        // It did not listen: missed, which is what remains.
        Some(_) if !outgoing.awaited => {}
        _ if collided => frames.collided += 1,
        _ => frames.faded += 1,
    }
}

/// Whether the frame reaches `to` when no other node sends.
fn passes_alone(
    world: &World,
    channel: Channel,
    from: NodeId,
    to: NodeId,
    outgoing: &Outgoing,
) -> bool {
    let start = outgoing.start;
    let Some(link) = world.links().get(from, to, channel) else { return false };
    let octets = outgoing.octets.len() + FCS_OCTETS + PHY_HEADER_OCTETS as usize;
    let draw = reception_draw(world.seed, from, to, start);
    let signals = [Signal::over(link, start)];
    let noise = noise_at(world, channel, start, to);
    let pieces = |_| world.interference.pieces(to, channel, start, octets);
    resolve(world.overlap, &signals, noise, pieces, |_| draw).received.is_some()
}

/// Judges the frame that `receiver` holds up to `now`, piece by piece where interference changes.
fn pass_interference(
    world: &World,
    receiver: &mut Receiver,
    node: NodeId,
    channel: Channel,
    now: Instant,
) {
    if world.interference.is_empty() {
        return;
    }
    while let Some(since) = receiver.judged_until().filter(|since| *since < now) {
        let Some(change) = world.interference.next_change(channel, since) else { return };
        let noise = noise_at(world, channel, since, node);
        receiver.pass(world.overlap, noise, change.min(now));
    }
}

fn noise_at(world: &World, channel: Channel, now: Instant, node: NodeId) -> Noise {
    let extra_mw = world.interference.extra_noise_mw(node, channel, now);
    Noise { floor_mw: world.noise_mw, extra_mw }
}
