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
use lowmesh_units::{Instant, NodeId};
use lowmesh_wire::ieee802154::FCS_OCTETS;

use crate::air::{Arrival, Fate, FrameId, Noise, Signal, reception_draw, resolve};
use crate::flight::Hearers;
use crate::radio::Outgoing;
use crate::trace::Fact;
use crate::world::World;

impl World {
    /// The node has sensed the channel for long enough.
    pub(crate) fn sensed(&mut self, now: Instant, node: NodeId) {
        let noise = self.noise_at(now, node);
        let radio = &mut self.radios[node.index()];
        let Some(from) = radio.sense.take() else { return };
        let busy = radio.receiver.is_busy(noise, self.cca, from);
        self.nodes[node.index()].radio(now, Input::Sensed { busy });
        self.settle(now, node);
    }

    /// The node's frame on its way out begins, or ends.
    pub(crate) fn frame_step(&mut self, now: Instant, node: NodeId) {
        let mut hearers = std::mem::take(&mut self.hearers);
        match self.radios[node.index()].outgoing.take() {
            Some(frame) if frame.frame.is_none() => {
                self.begin_frame(now, node, frame, &mut hearers);
            }
            Some(frame) => self.end_frame(now, node, &frame, &mut hearers),
            None => {}
        }
        self.hearers = hearers;
    }

    fn begin_frame(
        &mut self,
        now: Instant,
        from: NodeId,
        mut outgoing: Outgoing,
        hearers: &mut Hearers,
    ) {
        self.frames_begun += 1;
        let frame = FrameId(self.frames_begun);
        outgoing.frame = Some(frame);
        let channel = self.config.carrier.channel;
        self.note_sent(now, now, from, None, channel, &outgoing.octets);
        let destination = outgoing.destination();
        if let Some(to) = destination {
            self.outcome.frames.sent += 1;
            self.note_attempt(from, to, &outgoing.octets);
        }
        // Half duplex: what came in is lost to a radio that sends.
        self.radios[from.index()].receiver.abandon();
        hearers.found.clear();
        let rule = self.overlap;
        for (to, link) in self.medium.links().heard(from, channel) {
            let extra_mw = self.interference.extra_noise_mw(to, channel, now);
            let noise = Noise { floor_mw: self.noise_mw, extra_mw };
            let signal = Signal::over(link, now);
            let draw = reception_draw(self.seed, from, to, now);
            let radio = &mut self.radios[to.index()];
            let begun = radio.outgoing.as_mut().filter(|own| own.frame.is_some());
            let sending = begun.is_some();
            // What the neighbour has on its way to this node is lost from now on.
            if let Some(own) = begun.filter(|own| own.destination() == Some(self.names.eui64(from)))
            {
                own.deaf = true;
            }
            let off = sending || self.lives[to.index()].failed;
            let listening = !off && self.nodes[to.index()].is_listening();
            if destination == Some(self.names.eui64(to)) {
                outgoing.awaited = listening;
                outgoing.deaf = sending;
            }
            if radio.receiver.begin(rule, noise, Arrival { frame, signal, draw }, listening) {
                hearers.found.push(to);
            }
        }
        self.radios[from.index()].outgoing = Some(outgoing);
        for &to in &hearers.found {
            self.nodes[to.index()].radio(now, Input::Incoming);
            self.settle(now, to);
        }
        self.settle(now, from);
    }

    fn end_frame(
        &mut self,
        now: Instant,
        from: NodeId,
        outgoing: &Outgoing,
        hearers: &mut Hearers,
    ) {
        let frame = outgoing.frame.expect("the caller saw that it has begun");
        let channel = self.config.carrier.channel;
        let destination = outgoing.destination();
        let cca = self.cca;
        hearers.ended.clear();
        let mut reached = None;
        for (to, link) in self.medium.links().heard(from, channel) {
            let extra_mw = self.interference.extra_noise_mw(to, channel, now);
            let noise = Noise { floor_mw: self.noise_mw, extra_mw };
            let receiver = &mut self.radios[to.index()].receiver;
            let fate = receiver.end(self.overlap, noise, cca, frame, now);
            if fate != Fate::Unheard {
                hearers.ended.push((to, fate, link.rssi));
            }
            if destination == Some(self.names.eui64(to)) {
                reached = Some((to, fate));
            }
        }
        if destination.is_some() {
            self.note_fate(from, outgoing, reached);
        }
        for &(to, fate, rssi) in &hearers.ended {
            let octets = &outgoing.octets;
            if fate == Fate::Received {
                let length = octets.len();
                self.trace.note(now, to, Fact::Heard { from, rssi_dbm: rssi.0, octets: length });
                let handle = outgoing.handle();
                self.nodes[to.index()].radio(now, Input::Received { octets, rssi, handle });
            } else {
                self.nodes[to.index()].radio(now, Input::Lost);
            }
            self.settle(now, to);
        }
        self.nodes[from.index()].radio(now, Input::Sent);
        self.settle(now, from);
    }

    /// Books what became of a frame to one neighbour.
    fn note_fate(&mut self, from: NodeId, outgoing: &Outgoing, reached: Option<(NodeId, Fate)>) {
        let alone = |to| self.passes_alone(from, to, outgoing);
        let collided = reached.is_some_and(|(to, _)| alone(to));
        let frames = &mut self.outcome.frames;
        match reached {
            Some((_, Fate::Received)) => frames.received += 1,
            Some(_) if outgoing.deaf => frames.deaf += 1,
            // It did not listen: missed, which is what remains.
            Some(_) if !outgoing.awaited => {}
            _ if collided => frames.collided += 1,
            _ => frames.faded += 1,
        }
    }

    /// Whether the frame would have reached `to` if no other node had sent.
    fn passes_alone(&self, from: NodeId, to: NodeId, outgoing: &Outgoing) -> bool {
        let (channel, start) = (self.config.carrier.channel, outgoing.start);
        let Some(link) = self.medium.links().get(from, to, channel) else { return false };
        let octets = outgoing.octets.len() + FCS_OCTETS + PHY_HEADER_OCTETS as usize;
        let draw = reception_draw(self.seed, from, to, start);
        let signals = [Signal::over(link, start)];
        let noise = self.noise_at(start, to);
        resolve(self.overlap, &signals, noise, |_| octets, |_| draw).received.is_some()
    }

    fn noise_at(&self, now: Instant, node: NodeId) -> Noise {
        let channel = self.config.carrier.channel;
        let extra_mw = self.interference.extra_noise_mw(node, channel, now);
        Noise { floor_mw: self.noise_mw, extra_mw }
    }
}
