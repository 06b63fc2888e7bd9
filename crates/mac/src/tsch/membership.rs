//! Whether a node is in step with a network, and how it comes to be.
//!
//! ```text
//!                Start(New)                               beacons heard
//!      Off ─────────────────────────> Synchronised <───────────────────── Scanning
//!       └──── Start(Scan), Start(Resume) ───────────────────────────────────^ │
//!                                          └── no frame from the time source ──┘
//!                                              for `desynchronise`, a beacon of it
//!                                              with another slot number, or Leave
//! ```
//! IEEE 802.15.4-2015 s6.3.6 (starting and joining), s6.5.4 (synchronisation); RFC 8180 s4.5.2 and s6.2 (what a joining node
//! takes from beacons, and of whom). What the beacon says of slotframes, cells, timing and channels becomes the node's own.

use alloc::vec::Vec;

use lowmesh_machine::{Rejected, earliest};
use lowmesh_units::{Asn, Channel, Dbm, Eui64, Instant};
use lowmesh_wire::ie::TschBeacon;

use super::event::Output;
use super::former::{FormerNetwork, Start};
use super::shared::Shared;
use super::sync::Synchronisation;
use crate::account::RadioTime;
use crate::config::Config;
use crate::params::{JOIN_METRIC_MAX, SILENT_KEEPALIVES};

/// The relation of a node to a network.
#[derive(Clone, Debug)]
pub(super) enum Membership {
    /// The node is off.
    Off,
    /// It looks for a network, on one channel after the other.
    Scanning {
        /// Since when.
        since: Instant,
        /// The channels in the order of this scan.
        order: Vec<Channel>,
        /// Those that were heard, with their latest beacon each, in order.
        candidates: Vec<Candidate>,
        /// A coordinator looks for its former network alone, and begins a new one at this time.
        former: Option<(FormerNetwork, Instant)>,
    },
    /// Its clock is in step with a network.
    Synchronised(Synchronisation),
}

/// A neighbour whose beacon was heard in a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    source: Eui64,
    join_metric: u8,
    rssi: Dbm,
    /// When its network's slot 0 began.
    origin: Instant,
    /// When it was first heard.
    since: Instant,
}

/// A deadline of a node in a network that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The clock can no longer be trusted.
    Desynchronised,
    /// This time source was silent for long.
    Keepalive(Option<Eui64>),
    /// A coordinator has heard nothing of its former network.
    NewNetwork,
}

impl Membership {
    pub const fn is_synchronised(&self) -> bool {
        matches!(self, Self::Synchronised(_))
    }
    pub fn time_source(&self) -> Option<Eui64> {
        match self {
            Self::Synchronised(sync) => sync.time_source(),
            _ => None,
        }
    }
    /// The time source that the upper layer chose: its way to the coordinator.
    pub const fn upward(&self) -> Option<Eui64> {
        match self {
            Self::Synchronised(sync) => sync.chosen(),
            _ => None,
        }
    }
    /// On which channel a scan listens at `now`.
    pub fn scanned_channel(&self, now: Instant, config: &Config) -> Option<Channel> {
        let Self::Scanning { since, order, former, .. } = self else { return None };
        let minimal =
            former.and_then(|(former, _)| former.channel(now, config.slot, &config.hopping));
        if minimal.is_some() {
            return minimal;
        }
        let periods = now.since(*since).as_nanos() / config.scan_period.as_nanos();
        Some(order[periods as usize % order.len()])
    }
    /// Adds the time of a scan that goes on to `time`.
    pub fn add_scan(&self, now: Instant, time: &mut RadioTime) {
        if let Self::Scanning { since, .. } = self {
            time.scanned(now.since(*since));
        }
    }

    /// The node is switched on.
    pub fn start(
        &mut self,
        now: Instant,
        start: Start,
        shared: &mut Shared,
    ) -> Result<(), Rejected> {
        if !matches!(self, Self::Off) {
            return Err(Rejected::WrongState { what: "start", why: "the MAC runs already" });
        }
        match start {
            Start::Scan => self.scan(now, shared),
            Start::Resume(network) if !shared.config.resume.is_zero() => {
                self.scan(now, shared);
                if let Self::Scanning { former, .. } = self {
                    // Slots begin where those of the boot begin.
                    let slot = shared.config.slot;
                    let slots = shared.config.resume.as_nanos().div_ceil(slot.as_nanos());
                    *former = Some((network, now + slot * slots));
                }
            }
            Start::New | Start::Resume(_) => self.begin(now, shared),
        }
        Ok(())
    }

    /// A coordinator begins a network.
    pub fn begin(&mut self, now: Instant, shared: &mut Shared) {
        shared.origin = now;
        shared.schedule.begin(Asn(0));
        self.synchronise(now, None, shared);
    }

    /// The network that a coordinator looks for.
    pub fn former(&self) -> Option<FormerNetwork> {
        match self {
            Self::Scanning { former, .. } => former.map(|(former, _)| former),
            _ => None,
        }
    }

    /// s6.3.6.3: listen on one channel after the other, in an order of one's own.
    pub fn scan(&mut self, now: Instant, shared: &mut Shared) {
        shared.reset_timing();
        let mut order = shared.config.hopping.channels().to_vec();
        for last in (1..order.len()).rev() {
            order.swap(last, shared.rng.below(last as u32 + 1) as usize);
        }
        *self = Self::Scanning { since: now, order, candidates: Vec::new(), former: None };
    }

    fn synchronise(&mut self, now: Instant, time_source: Option<Eui64>, shared: &mut Shared) {
        self.add_scan(now, &mut shared.time);
        *self = Self::Synchronised(Synchronisation::new(time_source, now));
        shared.next_slot = shared.asn(now);
        shared.outbox.push(Output::Synchronised { time_source });
    }

    /// A beacon of a network was heard in a scan, in its slot that began at `slot_start`. The node joins when it has heard
    /// as many neighbours as it is to choose from, or long enough.
    ///
    /// It joins upon a beacon in any case: the time of one that came minutes ago is too old to send in slots.
    pub fn hear(
        &mut self,
        slot_start: Instant,
        source: Eui64,
        beacon: &TschBeacon,
        rssi: Dbm,
        shared: &mut Shared,
    ) {
        let Self::Scanning { candidates, former, .. } = self else { return };
        let Some(timing) = shared.timing_of(beacon) else { return };
        let age = timing.slot * beacon.asn.0;
        if slot_start < Instant::ZERO + age {
            return;
        }
        let origin = slot_start - age;
        if let Some((former, _)) = former {
            if former.is(origin) {
                shared.origin = origin;
                shared.schedule.begin(beacon.asn);
                self.synchronise(slot_start, None, shared);
                shared.next_slot = beacon.asn + 1;
            }
            return;
        }
        let join_metric = beacon.join_metric;
        if join_metric > JOIN_METRIC_MAX {
            return;
        }
        let known = candidates.iter().position(|one| one.source == source);
        let since = known.map_or(slot_start, |at| candidates.remove(at).since);
        candidates.push(Candidate { source, join_metric, rssi, origin, since });
        let config = &shared.config;
        // RFC 9033 s4.3, RFC 8180 s6.2: NUM_NEIGHBOURS_TO_WAIT neighbours, or MAX_EB_DELAY since the first one.
        let first = candidates.iter().map(|one| one.since).min().unwrap_or(slot_start);
        if candidates.len() < config.join_neighbours.into()
            && slot_start.since(first) < config.join_wait
        {
            return;
        }
        // Two nodes of one network do not agree on the time to the microsecond.
        let half = timing.slot / 2;
        let agrees =
            |one: &&Candidate| one.origin.since(origin) < half && origin.since(one.origin) < half;
        let strength = |one: &Candidate| (core::cmp::Reverse(one.join_metric), one.rssi.0);
        let better = |a: &&Candidate, b: &&Candidate| {
            let (a, b) = (strength(a), strength(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let best = candidates.iter().filter(agrees).max_by(better);
        let time_source = best.map_or(source, |best| best.source);
        shared.origin = origin;
        shared.install(timing, beacon);
        self.synchronise(slot_start, Some(time_source), shared);
        shared.next_slot = beacon.asn + 1;
    }

    /// A node that is not the coordinator takes the time from `peer` from now on.
    pub fn set_time_source(&mut self, peer: Eui64) {
        if let Self::Synchronised(sync) = self
            && sync.time_source().is_some()
        {
            sync.set_time_source(peer);
        }
    }

    /// Whether a frame of `peer`, or its acknowledgement, corrects the clock.
    pub fn takes_time_from(&mut self, peer: Eui64) -> bool {
        match self {
            Self::Synchronised(sync) => sync.takes_time_from(peer),
            _ => false,
        }
    }

    /// A beacon was heard: its sender stands in for a time source that does not answer, while it is nearer to the
    /// coordinator than this node ever was. Who takes the time from this node is not, so no two nodes follow each other.
    /// The choice is ours: the clock of a node whose parent is gone drifts until it hears nobody, and it scans for minutes
    /// in the midst of its network.
    pub fn consider(&mut self, now: Instant, source: Eui64, beacon: &TschBeacon, shared: &Shared) {
        let Self::Synchronised(sync) = self else { return };
        let is_nearer = beacon.join_metric <= JOIN_METRIC_MAX
            && shared.least_metric.is_none_or(|own| beacon.join_metric < own);
        if !is_nearer || sync.is_silent(now, shared.config.keepalive * SILENT_KEEPALIVES) {
            sync.substitute(source, is_nearer);
        }
    }

    /// A frame of the time source came, or its acknowledgement: the clock is off by `micros`.
    pub fn correct_clock(&mut self, now: Instant, micros: i32, shared: &mut Shared) {
        if let Self::Synchronised(sync) = self {
            sync.refresh(now);
        }
        if micros != 0 {
            shared.outbox.push(Output::AdjustClock { micros });
        }
    }

    /// The deadline that has come; a keepalive counts as sent.
    pub fn due(&mut self, now: Instant, config: &Config) -> Option<Due> {
        let is_over = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        let sync = match self {
            Self::Synchronised(sync) => sync,
            Self::Scanning { former: Some((_, until)), .. } if is_over(Some(*until)) => {
                return Some(Due::NewNetwork);
            }
            Self::Scanning { .. } | Self::Off => return None,
        };
        if is_over(sync.desynchronise_due(config.desynchronise)) {
            return Some(Due::Desynchronised);
        }
        if !is_over(sync.keepalive_due(config.keepalive)) {
            return None;
        }
        sync.asked(now);
        Some(Due::Keepalive(sync.time_source()))
    }
    pub fn next_deadline(&self, config: &Config) -> Option<Instant> {
        let sync = match self {
            Self::Synchronised(sync) => sync,
            Self::Scanning { former, .. } => return former.map(|(_, until)| until),
            Self::Off => return None,
        };
        earliest(sync.keepalive_due(config.keepalive), sync.desynchronise_due(config.desynchronise))
    }
}
