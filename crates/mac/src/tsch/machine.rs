//! The TSCH MAC as a machine: joining, beacons, keepalives, queues. What happens inside a timeslot is in
//! [`slot`](super::slot).
//!
//! ```text
//!                Start{coordinator}                       beacon heard
//!      Off ─────────────────────────> Synchronised <───────────────────── Scanning
//!       └──── Start ────────────────────────────────────────────────────────^ │
//!                                          └── no frame from the time source ──┘
//!                                              for `desynchronise`, or Leave
//! ```
//! IEEE 802.15.4-2015 s6.3.6 (starting and joining), s6.5.4 (synchronisation).

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Asn, Channel, Duration, Eui64, Instant, Rng};
use lowmesh_wire::ie::{LinkSpec, SlotframeSpec, TschBeacon};

use super::burst::{Burst, InFlight};
use super::cell::{CellId, CellOptions, Placement};
use super::choice::{Situation, Traffic};
use super::schedule::Schedule;
use super::spacing::Spacing;
use super::sync::Synchronisation;
use crate::account::RadioTime;
use crate::config::Config;
use crate::frame::{self, Content, PAYLOAD_OCTETS_MAX};
use crate::link::LinkTable;
use crate::params::{BEACON_GAP_MAX, EB_JITTER, JOIN_METRIC_MAX, QUEUE_TIME_SOURCE_QUARTERS};
use crate::queue::{NeighbourQueue, Priority, QueuedFrame, Queues};

/// What can happen to a TSCH MAC outside of its timeslots.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Power on: a coordinator starts a network whose slot 0 begins now, others scan.
    Start {
        /// Starts the network.
        coordinator: bool,
    },
    /// Send this.
    Send {
        /// To one neighbour, or to everyone in range.
        destination: Option<Eui64>,
        /// What.
        content: Content<'a>,
        /// Who goes first.
        priority: Priority,
        /// Its name.
        handle: Handle,
    },
    /// Take the time from this neighbour from now on (the RPL parent).
    SetTimeSource(Eui64),
    /// Send beacons with this join metric, or none.
    SetBeacons(Option<u8>),
    /// The schedule was changed from outside.
    ScheduleChanged,
    /// Give up what waits for this neighbour.
    Flush(Eui64),
    /// Do not send this frame, or not again, if it still waits; nothing more is said of it. A frame on the air
    /// comes to its end as any other.
    Withdraw(Handle),
    /// Leave the network and look for one again; a coordinator stays.
    Leave,
    /// A deadline came.
    Deadline,
}

/// What a TSCH MAC asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame ended: acknowledged by its destination, or sent to everyone.
    Sent {
        /// Its name.
        handle: Handle,
        /// Where it went.
        destination: Option<Eui64>,
        /// Copies.
        transmissions: u8,
    },
    /// A frame ended without arriving. `destination` did not answer if the reason is `NoAck`.
    Dropped {
        /// Which, and why.
        dropped: Dropped,
        /// Where it should have gone.
        destination: Option<Eui64>,
    },
    /// A frame for this node came.
    Received {
        /// From this neighbour,
        source: Eui64,
        /// in this cell,
        cell: Option<CellId>,
        /// to everyone or to this node alone,
        broadcast: bool,
        /// with this in it.
        payload: Vec<u8>,
        /// The datagram's name, where the driver knows it.
        handle: Handle,
    },
    /// A 6P message for this node came.
    Sixtop {
        /// From this neighbour.
        source: Eui64,
        /// In this cell.
        cell: Option<CellId>,
        /// The message.
        message: Vec<u8>,
    },
    /// In step with a network.
    Synchronised {
        /// Who gave the time; `None` at the coordinator.
        time_source: Option<Eui64>,
    },
    /// Out of step; queues and schedule are empty.
    Desynchronised,
    /// The expected transmissions over a link changed.
    LinkEtx {
        /// To this neighbour.
        peer: Eui64,
        /// In 1/128.
        etx: u16,
    },
    /// The first frame for this neighbour waits.
    QueueBusy(Eui64),
    /// The last frame for this neighbour is gone.
    QueueEmpty(Eui64),
    /// Move the local clock: positive makes it later.
    AdjustClock {
        /// By so much.
        micros: i32,
    },
}

/// Where the MAC stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    Off,
    Scanning { since: Instant, order: Vec<Channel> },
    Synchronised(Synchronisation),
}

/// A TSCH MAC.
#[derive(Debug)]
pub struct Tsch {
    pub(super) config: Config,
    pub(super) me: Eui64,
    pub(super) rng: Rng,
    pub(super) state: State,
    pub(super) schedule: Schedule,
    pub(super) queues: Queues,
    pub(super) links: LinkTable,
    pub(super) time: RadioTime,
    pub(super) outbox: Outbox<Output>,
    /// When slot 0 began.
    pub(super) origin: Instant,
    pub(super) beacon_due: Option<Asn>,
    pub(super) spacing: Spacing,
    pub(super) join_metric: Option<u8>,
    pub(super) sequence: u8,
    /// First slot that is not over.
    pub(super) next_slot: Asn,
    pub(super) in_flight: Option<InFlight>,
    pub(super) burst: Option<Burst>,
    /// Octets of an acknowledgement that began and was lost, in the slot that is not over.
    pub(super) lost_ack: Option<usize>,
    /// The slot of the next transmission, recomputed after each change.
    next_transmission: Option<Asn>,
}

impl Tsch {
    /// A MAC that is off.
    pub fn new(config: Config, me: Eui64, mut rng: Rng) -> Self {
        let queues = Queues::new(config.queue_frames_max, config.be_min);
        let sequence = rng.next_u32() as u8;
        Self {
            config,
            me,
            rng,
            state: State::Off,
            schedule: Schedule::new(),
            queues,
            links: LinkTable::default(),
            time: RadioTime::default(),
            outbox: Outbox::new(),
            origin: Instant::ZERO,
            beacon_due: None,
            spacing: Spacing::default(),
            join_metric: None,
            sequence,
            next_slot: Asn(0),
            in_flight: None,
            burst: None,
            lost_ack: None,
            next_transmission: None,
        }
    }

    /// What is known of the neighbours.
    pub const fn links(&self) -> &LinkTable {
        &self.links
    }
    /// The cells.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    /// The cells, to change them at `now`; [`Input::ScheduleChanged`] must follow.
    pub fn schedule_mut(&mut self, now: Instant) -> &mut Schedule {
        let asn = self.asn(now);
        self.schedule.set_now(asn);
        &mut self.schedule
    }
    /// The frames that wait.
    pub const fn queues(&self) -> &Queues {
        &self.queues
    }
    /// Octets that a frame can carry.
    pub const fn payload_octets_max(&self) -> usize {
        PAYLOAD_OCTETS_MAX
    }
    /// True when the clock is in step with a network.
    pub const fn is_synchronised(&self) -> bool {
        matches!(self.state, State::Synchronised(_))
    }
    /// Who gives the time.
    pub fn time_source(&self) -> Option<Eui64> {
        match &self.state {
            State::Synchronised(sync) => sync.time_source,
            _ => None,
        }
    }
    /// The slot that holds `now`.
    pub fn asn(&self, now: Instant) -> Asn {
        Asn(now.since(self.origin).as_nanos() / self.config.slot.as_nanos())
    }
    /// When slot `asn` starts.
    pub fn slot_start(&self, asn: Asn) -> Instant {
        self.origin + self.config.slot * asn.0
    }
    /// Length of a timeslot.
    pub const fn slot(&self) -> Duration {
        self.config.slot
    }
    /// Radio time up to `now`.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        let mut time = self.time;
        if let State::Scanning { since, .. } = &self.state {
            time.scanned(now.since(*since));
        }
        time.with_idle_slots(self.schedule.listening_slots(self.asn(now)))
    }

    /// When the next frame goes out: the start of its slot.
    pub fn next_transmission(&self) -> Option<Instant> {
        Some(self.slot_start(self.next_transmission?))
    }

    pub(super) fn situation(&self) -> Situation<'_> {
        let (schedule, queues, beacon_due) = (&self.schedule, &self.queues, self.beacon_due);
        Situation { schedule, queues, beacon_due, spacing: self.spacing }
    }
    /// Looks again for the next slot to send in; to be called after whatever could move it.
    pub(super) fn look_ahead(&mut self) {
        self.next_transmission = match self.state {
            State::Synchronised(_) => {
                let from = self.next_slot;
                let (claimed, free) = self.burst.map_or((None, from), |burst| burst.ahead(from));
                claimed.or_else(|| self.situation().next(free))
            }
            _ => None,
        };
    }

    fn start(&mut self, now: Instant, coordinator: bool) -> Result<(), Rejected> {
        if !matches!(self.state, State::Off) {
            return Err(Rejected::WrongState { what: "start", why: "the MAC runs already" });
        }
        if coordinator {
            self.origin = now;
            self.synchronise(now, None);
        } else {
            self.scan(now);
        }
        Ok(())
    }

    /// s6.3.6.3: listen on one channel after the other, in an order of one's own.
    fn scan(&mut self, now: Instant) {
        let mut order = self.config.hopping.channels().to_vec();
        for last in (1..order.len()).rev() {
            order.swap(last, self.rng.below(last as u32 + 1) as usize);
        }
        self.state = State::Scanning { since: now, order };
    }

    fn synchronise(&mut self, now: Instant, time_source: Option<Eui64>) {
        if let State::Scanning { since, .. } = &self.state {
            self.time.scanned(now.since(*since));
        }
        self.state = State::Synchronised(Synchronisation::new(time_source, now));
        self.next_slot = self.asn(now);
        self.outbox.push(Output::Synchronised { time_source });
    }

    /// A beacon was heard in slot `asn` of its network, which began at `slot_start`.
    pub(super) fn join(
        &mut self,
        now: Instant,
        slot_start: Instant,
        source: Eui64,
        tsch: &TschBeacon,
    ) {
        let age = self.config.slot * tsch.asn.0;
        if tsch.join_metric > JOIN_METRIC_MAX || slot_start < Instant::ZERO + age {
            return;
        }
        self.origin = slot_start - age;
        self.synchronise(now, Some(source));
        self.next_slot = tsch.asn + 1;
    }

    fn desynchronise(&mut self, now: Instant) {
        let asn = self.asn(now);
        self.schedule.set_now(asn);
        self.schedule.clear();
        self.beacon_due = None;
        self.spacing = Spacing::default();
        self.join_metric = None;
        self.in_flight = None;
        self.burst = None;
        for frame in self.queues.flush_all() {
            self.drop_frame(&frame, DropReason::Desynchronised);
        }
        self.outbox.push(Output::Desynchronised);
        self.scan(now);
    }

    pub(super) fn drop_frame(&mut self, frame: &QueuedFrame, reason: DropReason) {
        let dropped = Dropped { handle: frame.handle, layer: Layer::Mac, reason };
        self.outbox.push(Output::Dropped { dropped, destination: frame.destination });
    }

    fn send(
        &mut self,
        destination: Option<Eui64>,
        content: Content<'_>,
        priority: Priority,
        handle: Handle,
    ) {
        let length = match content {
            Content::Payload(payload) | Content::Advertisement(payload) => payload.len(),
            // Two descriptors and the sub-type of the IETF IE.
            Content::Sixtop(message) => message.len() + 5,
        };
        let refusal = if !self.is_synchronised() {
            Some(DropReason::NotJoined)
        } else if length > PAYLOAD_OCTETS_MAX {
            Some(DropReason::TooLarge)
        } else {
            None
        };
        self.sequence = self.sequence.wrapping_add(1);
        let octets = match refusal {
            Some(_) => Vec::new(),
            None => frame::data(self.config.pan, self.me, destination, self.sequence, content),
        };
        let is_advertisement = matches!(content, Content::Advertisement(_));
        let queued = QueuedFrame {
            octets,
            destination,
            handle,
            priority,
            is_advertisement,
            transmissions: 0,
        };
        if let Some(reason) = refusal {
            self.drop_frame(&queued, reason);
            return;
        }
        if let Some(old) = self.queues.supersede(&queued) {
            self.drop_frame(&old, DropReason::Superseded);
        }
        match self.queues.push(queued, self.share(destination)) {
            Ok(was_empty) => {
                if let (true, Some(peer)) = (was_empty, destination) {
                    self.outbox.push(Output::QueueBusy(peer));
                }
            }
            Err(queued) => self.drop_frame(&queued, DropReason::QueueFull),
        }
    }

    /// Data frames that may wait for `peer`.
    fn share(&self, peer: Option<Eui64>) -> usize {
        let each = self.config.queue_per_neighbour;
        if peer.is_none() || peer != self.time_source() {
            return each;
        }
        each.max(self.config.queue_frames_max * QUEUE_TIME_SOURCE_QUARTERS / 4)
    }

    fn set_beacons(&mut self, join_metric: Option<u8>) {
        self.join_metric = join_metric;
        match (join_metric, self.beacon_due) {
            (None, _) => self.beacon_due = None,
            (Some(_), None) => self.schedule_beacon(),
            (Some(_), Some(_)) => {}
        }
    }

    /// The next beacon comes after three quarters of the period to the whole of it. With a period near the
    /// distance of shared cells that would leave neighbours no choice of cells, and others no cell at all:
    /// then one to [`BEACON_GAP_MAX`] of them go by, drawn for each beacon.
    pub(super) fn schedule_beacon(&mut self) {
        let jitter = self.config.eb_period.mul_f64(EB_JITTER);
        let period = self.config.eb_period - jitter.mul_f64(self.rng.unit());
        let slots = |span: Duration| span.as_nanos() / self.config.slot.as_nanos();
        let due = self.next_slot + slots(period);
        let shared = CellOptions::TX.with(CellOptions::SHARED);
        let cells = self.schedule.cells().filter(|c| c.peer.is_none() && c.options.has(shared));
        let Some((next, after)) = cells
            .map(|c| {
                let next = self.schedule.next_occurrence(c, self.next_slot);
                (next, self.schedule.next_occurrence(c, next + 1))
            })
            .min()
        else {
            self.beacon_due = Some(due);
            return;
        };
        let distance = after.since(next);
        if 2 * slots(jitter) >= distance {
            self.beacon_due = Some(due);
            return;
        }
        let gap = u64::from(self.rng.below(BEACON_GAP_MAX));
        self.beacon_due = Some(due.max(next + 1) + gap * distance);
    }

    /// The beacon for slot `asn`: it tells joining nodes the time and where to be heard.
    pub(super) fn beacon(&self, asn: Asn) -> TschBeacon {
        let slotframes = self.schedule.slotframes().filter_map(|slotframe| {
            let shared =
                |options: CellOptions| options.has(CellOptions::SHARED.with(CellOptions::RX));
            let links: Vec<LinkSpec> = self
                .schedule
                .cells_in(slotframe.handle)
                .filter(|c| c.peer.is_none() && shared(c.options))
                .filter_map(|c| match c.placement {
                    Placement::Fixed { slot, channel_offset } => {
                        Some(LinkSpec { slot, channel_offset, options: c.options.0 })
                    }
                    Placement::Hashed { .. } => None,
                })
                .collect();
            (!links.is_empty()).then_some(SlotframeSpec {
                handle: slotframe.handle,
                length: slotframe.length,
                links,
            })
        });
        TschBeacon {
            asn,
            join_metric: self.join_metric.unwrap_or(u8::MAX),
            timeslot_id: 0,
            hopping_id: 0,
            slotframes: slotframes.collect(),
        }
    }

    fn set_time_source(&mut self, peer: Eui64) {
        if let State::Synchronised(sync) = &mut self.state
            && sync.time_source.is_some()
        {
            sync.time_source = Some(peer);
        }
    }

    fn deadline(&mut self, now: Instant) {
        let State::Synchronised(sync) = &mut self.state else { return };
        if sync.desynchronise_due(self.config.desynchronise).is_some_and(|due| due <= now) {
            self.desynchronise(now);
        } else if sync.keepalive_due(self.config.keepalive).is_some_and(|due| due <= now) {
            sync.asked(now);
            let time_source = sync.time_source;
            // Frames that already wait for the time source will be acknowledged, and so correct the clock.
            if self.queues.get(time_source).is_none_or(NeighbourQueue::is_empty) {
                let nothing = Content::Payload(&[]);
                self.send(time_source, nothing, Priority::Control, Handle::NONE);
            }
        }
    }

    fn flush(&mut self, peer: Eui64) {
        let frames = self.queues.flush(Some(peer));
        for frame in &frames {
            self.drop_frame(frame, DropReason::NeighbourLost);
        }
        if !frames.is_empty() {
            self.outbox.push(Output::QueueEmpty(peer));
        }
    }

    fn withdraw(&mut self, handle: Handle) {
        // The end of its slot looks for the frame in front of the queue.
        let on_air = self.in_flight.as_ref().is_some_and(|sent| match sent.choice.traffic {
            Traffic::Unicast(peer) => {
                let queue = self.queues.get(Some(peer));
                queue.and_then(|q| q.front()).is_some_and(|frame| frame.handle == handle)
            }
            Traffic::Beacon | Traffic::Broadcast => false,
        });
        if on_air {
            return;
        }
        if let Some(peer) = self.queues.withdraw(handle).and_then(|frame| frame.destination) {
            self.note_if_empty(peer);
        }
    }
}

impl Machine for Tsch {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        if self.is_synchronised() {
            // A slot that has begun is over for everything decided from now on.
            let asn = self.asn(now);
            let begun = self.slot_start(asn) < now;
            self.next_slot = self.next_slot.max(asn + u64::from(begun));
        }
        match input {
            Input::Start { coordinator } => self.start(now, coordinator)?,
            Input::Send { destination, content, priority, handle } => {
                self.send(destination, content, priority, handle);
            }
            Input::SetTimeSource(peer) => self.set_time_source(peer),
            Input::SetBeacons(join_metric) => self.set_beacons(join_metric),
            Input::ScheduleChanged => {}
            Input::Flush(peer) => self.flush(peer),
            Input::Withdraw(handle) => self.withdraw(handle),
            Input::Leave => {
                if self.time_source().is_some() {
                    self.desynchronise(now);
                }
            }
            Input::Deadline => self.deadline(now),
        }
        self.look_ahead();
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let State::Synchronised(sync) = &self.state else { return None };
        earliest(
            sync.keepalive_due(self.config.keepalive),
            sync.desynchronise_due(self.config.desynchronise),
        )
    }
}
