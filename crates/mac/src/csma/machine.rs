//! The CSMA MAC as a machine: its queue, its states, and whose turn it is. How a frame gets out is in
//! `send`, how one comes in in `receive`.
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

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Duration, Eui64, Instant, Rng};

use super::access::ChannelAccess;
use super::config::{Config, Radio};
use super::event::{Input, Output};
use super::turns::{self, Turns};
use crate::account::RadioTime;
use crate::frame;
use crate::link::LinkTable;
use crate::queue::{FrameQueue, Priority, QueuedFrame, has_room};

/// How far the frame on its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for the channel: a `Sense` is out.
    Access(ChannelAccess),
    /// The radio turns round or sends: a `Transmit` is out.
    OnAir,
    /// It is out, and the acknowledgement is not here.
    AckWait {
        /// When it is given up.
        until: Instant,
    },
}

/// The frame on its way.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) frame: QueuedFrame,
    pub(super) progress: Progress,
}

/// What the receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    /// Nothing.
    Open,
    /// It stays with a frame that has begun.
    Incoming,
    /// An `Acknowledge` is out.
    Acknowledging,
}

/// What a MAC counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// CCAs.
    pub sensed: u64,
    /// Those that found the channel busy.
    pub sensed_busy: u64,
    /// Data frames on the air, retries included.
    pub transmissions: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Frames for this node that went up.
    pub accepted: u64,
    /// Frames that came once more; most MACs hold them back.
    pub duplicates: u64,
    /// Acknowledgements of frames of this node.
    pub acknowledged: u64,
    /// Frames for other nodes or networks, and those that mean nothing here.
    pub filtered: u64,
    /// Frames that do not decode, or are secured.
    pub malformed: u64,
    /// Frames given up without an acknowledgement after their last copy.
    pub no_ack: u64,
    /// Frames given up because the channel was busy each time.
    pub channel_access: u64,
    /// Frames that were not taken: the queue was full, they were too large, or the MAC was off.
    pub refused: u64,
}

/// A CSMA MAC.
#[derive(Debug)]
pub struct Csma {
    pub(super) config: Config,
    pub(super) me: Eui64,
    pub(super) rng: Rng,
    /// When it was switched on.
    started: Option<Instant>,
    queue: FrameQueue,
    turns: Turns,
    pub(super) outgoing: Option<Outgoing>,
    pub(super) receiver: Receiver,
    /// Thin: until when the last frame occupies the buffer.
    pub(super) buffer_until: Option<Instant>,
    /// Thin: when the frame in front is tried again if nothing happens before.
    retry_at: Option<Instant>,
    /// Before this nothing of one's own follows the last frame: the interframe space.
    pub(super) spaced_until: Instant,
    pub(super) links: LinkTable,
    pub(super) outbox: Outbox<Output>,
    pub(super) counters: Counters,
    pub(super) tx_time: Duration,
    sequence: u8,
}

impl Csma {
    /// A MAC that is off.
    pub fn new(config: Config, me: Eui64, mut rng: Rng) -> Self {
        let sequence = rng.next_u32() as u8;
        Self {
            config,
            me,
            rng,
            started: None,
            queue: FrameQueue::default(),
            turns: Turns::default(),
            outgoing: None,
            receiver: Receiver::Open,
            buffer_until: None,
            retry_at: None,
            spaced_until: Instant::ZERO,
            links: LinkTable::default(),
            outbox: Outbox::new(),
            counters: Counters::default(),
            tx_time: Duration::ZERO,
            sequence,
        }
    }

    /// What is known of the neighbours.
    pub const fn links(&self) -> &LinkTable {
        &self.links
    }
    /// True when it is switched on.
    pub const fn is_on(&self) -> bool {
        self.started.is_some()
    }
    /// Octets that a frame can carry.
    pub const fn payload_octets_max(&self) -> usize {
        self.config.payload_octets_max
    }
    /// Frames that wait behind the one on its way.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }
    /// Frames that may wait.
    pub const fn queue_frames_max(&self) -> usize {
        self.config.queue_frames_max
    }
    /// The datagrams of all frames held, for the conservation of packets.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let outgoing = self.outgoing.iter().map(|outgoing| &outgoing.frame);
        outgoing.chain(self.queue.iter()).map(|frame| frame.handle)
    }
    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// Radio time up to `now`: what is not sending is listening.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        let on = self.started.map_or(Duration::ZERO, |started| now.since(started));
        RadioTime { tx: self.tx_time, rx: on - self.tx_time, ..RadioTime::default() }
    }

    /// True when a frame that begins now is heard.
    pub fn listens(&self) -> bool {
        let thin = matches!(self.config.radio, Radio::Thin { .. });
        let progress = self.outgoing.as_ref().map(|outgoing| outgoing.progress);
        self.started.is_some()
            && self.receiver != Receiver::Acknowledging
            && match progress {
                None => self.buffer_until.is_none(),
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
        priority: Priority,
        handle: Handle,
    ) {
        let refusal = if self.started.is_none() {
            Some(DropReason::NotJoined)
        } else if payload.len() > self.config.payload_octets_max {
            Some(DropReason::TooLarge)
        } else if !self.admits(destination, priority) {
            Some(DropReason::QueueFull)
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.counters.refused += 1;
            let dropped = Dropped { handle, layer: Layer::Mac, reason };
            self.outbox.push(Output::Dropped { dropped, destination, transmissions: 0 });
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let (pan, me, sequence) = (self.config.pan, self.me, self.sequence);
        let ack_request = self.expects_ack(destination);
        let octets = frame::data_2006(pan, me, destination, sequence, ack_request, payload);
        let is_advertisement = false;
        let frame = QueuedFrame {
            octets,
            destination,
            handle,
            priority,
            is_advertisement,
            transmissions: 0,
        };
        self.queue.insert(frame);
        self.start_next(now);
    }

    fn admits(&self, destination: Option<Eui64>, priority: Priority) -> bool {
        let (queue, frames_max) = (&self.queue, self.config.queue_frames_max);
        if self.config.shares_queue {
            turns::admits(queue, &self.links, frames_max, destination, priority)
        } else {
            has_room(queue.len(), frames_max, priority)
        }
    }

    /// The next frame in the queue gets its turn, unless one is on its way. In the thin MAC it is put back
    /// while the radio is busy.
    pub(super) fn start_next(&mut self, now: Instant) {
        self.retry_at = None;
        if self.outgoing.is_some() || self.queue.is_empty() {
            return;
        }
        if let Radio::Thin { requeue, .. } = self.config.radio
            && (self.receiver != Receiver::Open || self.buffer_until.is_some())
        {
            self.retry_at = Some(now + requeue);
            return;
        }
        let next = if self.config.shares_queue {
            self.turns.next(&mut self.queue, &self.links)
        } else {
            self.queue.pop()
        };
        if let Some(frame) = next {
            self.access(now, frame, ChannelAccess::new(&self.config, 0));
        }
    }

    fn deadline(&mut self, now: Instant) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if due(self.ack_deadline()) {
            self.on_ack_timeout(now);
        }
        if due(self.buffer_until) {
            self.buffer_until = None;
            self.start_next(now);
        }
        if due(self.retry_at) {
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
            Input::Send { destination, payload, priority, handle } => {
                self.send(now, destination, payload, priority, handle);
            }
            Input::Sensed { busy } => self.on_sensed(now, busy)?,
            Input::Sent => self.on_sent(now)?,
            Input::Incoming => self.on_incoming()?,
            Input::Received { octets, rssi, handle } => self.on_frame(now, octets, rssi, handle),
            Input::Lost => self.on_lost()?,
            Input::Deadline => self.deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.ack_deadline(), earliest(self.buffer_until, self.retry_at))
    }
}
