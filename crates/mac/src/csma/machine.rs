//! The CSMA MAC as a machine: its queue, and whose turn it is. `send` has the transmitter, `receive` the receiver.
//!
//! ```text
//!                        CCA busy: another backoff            no acknowledgement: another copy
//!                          ┌────────┐              ┌──────────────────────────────────────────┐
//!                          v        │              v                                          │
//!   queue ── its turn ──> Access ───┴─ idle ────> OnAir ── Sent ──> AckWait ── deadline ──────┤
//!                          │ too often busy         │ nobody answers   │ acknowledged         │ spent
//!                          v                        v                  v                      v
//!                       ChannelAccess              Sent               Sent                  NoAck
//! ```
//! The receiver beside it:
//! ```text
//!   Open ── Incoming ──> Incoming ── Received, to be acknowledged ──> Acknowledging ── Sent ──> Open
//! ```
//! and, in the thin MAC, the buffer that a received frame occupies for a while.

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Rejected, earliest};
use lowmesh_units::{Dbm, Duration, Eui64, Instant, Rng};

use super::config::{Access, Config, Radio};
use super::event::{Input, Output};
use super::receive::{Heard, Receiver};
use super::send::{After, Progress, Transmitter};
use super::shared::{Counters, Shared};
use super::turns;
use super::waiting::Waiting;
use crate::account::RadioTime;
use crate::frame::{self, PAYLOAD_OCTETS_MAX};
use crate::link::LinkTable;
use crate::queue::{Priority, QueuedFrame};

/// A CSMA MAC.
#[derive(Debug)]
pub struct Csma {
    shared: Shared,
    transmitter: Transmitter,
    receiver: Receiver,
    /// When it was switched on.
    started: Option<Instant>,
    waiting: Waiting,
    /// Thin: when the frame in front is tried again if nothing happens before.
    retry_at: Option<Instant>,
    sequence: u8,
}

impl Csma {
    /// A MAC that is off.
    pub fn new(config: Config, me: Eui64, mut rng: Rng) -> Self {
        let sequence = rng.next_u32() as u8;
        let waiting = Waiting::new(&config);
        Self {
            shared: Shared::new(config, me, rng),
            transmitter: Transmitter::default(),
            receiver: Receiver::default(),
            started: None,
            waiting,
            retry_at: None,
            sequence,
        }
    }

    /// What is known of the neighbours.
    pub const fn links(&self) -> &LinkTable {
        &self.shared.links
    }
    /// Whether `peer` acknowledges frames; false of all where frames to others are nothing special.
    pub fn is_proven(&self, peer: Eui64) -> bool {
        self.shared.config.shares_queue && turns::acknowledges(&self.shared.links, Some(peer))
    }
    /// The node looks for a parent: see [`LinkTable::reset_bad`].
    pub fn reset_bad_links(&mut self) {
        self.shared.links.reset_bad();
    }
    /// True when it is switched on.
    pub const fn is_on(&self) -> bool {
        self.started.is_some()
    }
    /// True while a frame has its turn: from its first backoff to its end.
    pub fn is_sending(&self) -> bool {
        self.transmitter.frame().is_some()
    }
    /// Octets that a frame to a node with as long an address can carry.
    pub fn payload_octets_max(&self) -> usize {
        self.room_to(None)
    }
    /// Frames that wait behind the one on its way.
    pub fn queued(&self) -> usize {
        self.waiting.iter().count()
    }
    /// Frames that may wait.
    pub const fn queue_frames_max(&self) -> usize {
        self.shared.config.queue_frames_max
    }
    /// The datagrams of all frames held, for the conservation of packets.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.transmitter.frame().into_iter().chain(self.waiting.iter()).map(|frame| frame.handle)
    }
    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.shared.counters
    }
    /// Radio time up to `now`: what is not sending is listening.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        let on = self.started.map_or(Duration::ZERO, |started| now.since(started));
        RadioTime { tx: self.shared.tx_time, rx: on - self.shared.tx_time, ..RadioTime::default() }
    }

    /// True when a frame that begins now is heard.
    pub fn listens(&self) -> bool {
        let thin = matches!(self.shared.config.radio, Radio::Thin { .. });
        self.started.is_some()
            && !self.receiver.is_acknowledging()
            && match self.transmitter.progress() {
                None => !self.receiver.is_occupied(),
                Some(Progress::Access(_)) => !thin,
                Some(Progress::OnAir) => false,
                Some(Progress::AckWait { .. }) => true,
            }
    }

    fn send(
        &mut self,
        now: Instant,
        destination: Option<Eui64>,
        payload: &[u8],
        (priority, is_advice): (Priority, bool),
        handle: Handle,
    ) {
        let refusal = if self.started.is_none() {
            Some(DropReason::NotJoined)
        } else if payload.len() > self.room_to(destination) {
            Some(DropReason::TooLarge)
        } else if !self.makes_room(destination, priority) {
            Some(DropReason::QueueFull)
        } else if is_advice && self.is_silent(now, destination) {
            Some(DropReason::NoAck)
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.refuse(handle, destination, reason);
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let (pan, me, sequence) = (self.shared.config.pan, self.shared.me, self.sequence);
        let ack_request = self.shared.config.expects_ack(destination);
        let octets = frame::data_2006(pan, me, destination, sequence, ack_request, payload);
        let is_advertisement = false;
        let frame = QueuedFrame {
            octets,
            destination,
            handle,
            priority,
            is_advertisement,
            is_advice,
            transmissions: 0,
            refusals: 0,
        };
        let is_busy = self.transmitter.frame().is_some();
        let Shared { config, links, .. } = &self.shared;
        self.waiting.insert(now, config, links, frame, is_busy);
        self.start_next(now);
    }

    fn refuse(&mut self, handle: Handle, destination: Option<Eui64>, reason: DropReason) {
        self.shared.counters.refused += 1;
        let dropped = Dropped { handle, layer: Layer::Mac, reason };
        self.shared.outbox.push(Output::Dropped { dropped, destination, transmissions: 0 });
    }

    /// Octets that a frame to `destination` can carry.
    fn room_to(&self, destination: Option<Eui64>) -> usize {
        let gain = frame::payload_octets_max(self.shared.me, destination) - PAYLOAD_OCTETS_MAX;
        self.shared.config.payload_octets_max + gain
    }

    fn is_silent(&self, now: Instant, destination: Option<Eui64>) -> bool {
        let link = destination.and_then(|peer| self.shared.links.get(peer));
        link.is_some_and(|link| link.is_silent(now))
    }

    /// Whether another frame to `destination` may wait, after it displaced others.
    fn makes_room(&mut self, destination: Option<Eui64>, priority: Priority) -> bool {
        let is_busy = self.transmitter.frame().is_some();
        loop {
            let Shared { config, links, .. } = &self.shared;
            if self.waiting.admits(config, links, destination, priority, is_busy) {
                return true;
            }
            let Some(frame) = self.waiting.displace(config, links, destination) else {
                return false;
            };
            self.refuse(frame.handle, frame.destination, DropReason::QueueFull);
        }
    }

    /// The next frame in the queue gets its turn, unless one is on its way. In the thin MAC it is put back
    /// while the radio is busy.
    fn start_next(&mut self, now: Instant) {
        self.retry_at = None;
        if self.transmitter.frame().is_some() || self.waiting.iter().next().is_none() {
            return;
        }
        if self.processor_waits() {
            return;
        }
        if let Radio::Thin { requeue, .. } = self.shared.config.radio
            && (!self.receiver.is_open() || self.receiver.is_occupied())
        {
            self.retry_at = Some(now + requeue);
            return;
        }
        let Shared { config, links, silent_copies, .. } = &mut self.shared;
        if let Some(frame) = self.waiting.next(now, config, links, silent_copies) {
            self.transmitter.begin(now, frame, &mut self.shared);
        }
    }

    /// Contiki before NG: the processor has a frame from the radio when its acknowledgement, which the radio sends, is
    /// out; so what it forwards does not find the channel busy with that.
    fn processor_waits(&self) -> bool {
        self.shared.config.access != Access::Backoff && self.receiver.is_acknowledging()
    }

    /// The frame on its way has come to its end, or not yet.
    fn after(&mut self, now: Instant, progress: After) {
        match progress {
            After::Same => return,
            After::Over { destination, is_sent } => self.waiting.ended(now, destination, is_sent),
            After::Deferred(frame) => self.waiting.defer(now, frame, &mut self.shared.rng),
        }
        while let Some(late) = self.waiting.settle_late(now) {
            self.refuse(late.handle, late.destination, DropReason::QueueFull);
        }
        self.start_next(now);
    }

    fn on_sent(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.receiver.on_acknowledged() {
            self.start_next(now);
            return Ok(());
        }
        let after = self.transmitter.on_sent(now, &mut self.shared)?;
        self.after(now, after);
        Ok(())
    }

    fn on_received(&mut self, now: Instant, octets: &[u8], rssi: Dbm, handle: Handle) {
        self.receiver.end_frame();
        if !self.listens() {
            return;
        }
        let waits = self.transmitter.deadline().is_some();
        let heard = Heard { octets, rssi, handle };
        if let Some(ack) = self.receiver.on_frame(now, &heard, waits, &mut self.shared) {
            let after = self.transmitter.on_ack(now, ack.sequence, rssi, &mut self.shared);
            self.after(now, after);
        }
    }

    fn deadline(&mut self, now: Instant) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if due(self.transmitter.deadline()) {
            let after = self.transmitter.on_ack_timeout(now, &mut self.shared);
            self.after(now, after);
        }
        if due(self.receiver.deadline()) {
            self.receiver.release();
            self.start_next(now);
        }
        if due(self.retry_at) || due(self.waiting.deadline()) {
            self.start_next(now);
        }
    }
}

impl Machine for Csma {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        match input {
            Input::Start => {
                if self.started.is_some() {
                    return Err(Rejected::WrongState {
                        what: "start",
                        why: "the MAC runs already",
                    });
                }
                self.started = Some(now);
            }
            Input::Send { destination, payload, priority, is_advice, handle } => {
                self.send(now, destination, payload, (priority, is_advice), handle);
            }
            Input::Sensed { busy } => {
                // A radio in the middle of a frame, in or out, has its answer without measuring.
                let busy = busy || !self.receiver.is_open();
                let after = self.transmitter.on_sensed(now, busy, &mut self.shared)?;
                self.after(now, after);
            }
            Input::Sent => self.on_sent(now)?,
            Input::Incoming => {
                let listens = self.listens();
                self.receiver.on_incoming(listens)?;
            }
            Input::Received { octets, rssi, handle } => {
                self.on_received(now, octets, rssi, handle);
            }
            Input::Lost => self.receiver.on_lost()?,
            Input::Deadline => self.deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.shared.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let waiting = match self.transmitter.frame() {
            // The end of that frame gives the next its turn.
            Some(_) => None,
            None if self.processor_waits() => None,
            None => self.waiting.deadline(),
        };
        let retry = self.retry_at.or(waiting);
        earliest(self.transmitter.deadline(), earliest(self.receiver.deadline(), retry))
    }
}
