//! Whether a node is in step with a network, and how it comes to be.
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

use lowmesh_machine::{Rejected, earliest};
use lowmesh_units::{Channel, Eui64, Instant};
use lowmesh_wire::ie::TschBeacon;

use super::event::Output;
use super::shared::Shared;
use super::sync::Synchronisation;
use crate::account::RadioTime;
use crate::config::Config;
use crate::params::JOIN_METRIC_MAX;

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
    },
    /// Its clock is in step with a network.
    Synchronised(Synchronisation),
}

/// A deadline of a node in a network that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The clock can no longer be trusted.
    Desynchronised,
    /// This time source was silent for long.
    Keepalive(Option<Eui64>),
}

impl Membership {
    pub const fn is_synchronised(&self) -> bool {
        matches!(self, Self::Synchronised(_))
    }
    pub fn time_source(&self) -> Option<Eui64> {
        match self {
            Self::Synchronised(sync) => sync.time_source,
            _ => None,
        }
    }
    /// On which channel a scan listens at `now`.
    pub fn scanned_channel(&self, now: Instant, config: &Config) -> Option<Channel> {
        let Self::Scanning { since, order } = self else { return None };
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
        coordinator: bool,
        shared: &mut Shared,
    ) -> Result<(), Rejected> {
        if !matches!(self, Self::Off) {
            return Err(Rejected::WrongState { what: "start", why: "the MAC runs already" });
        }
        if coordinator {
            shared.origin = now;
            self.synchronise(now, None, shared);
        } else {
            self.scan(now, shared);
        }
        Ok(())
    }

    /// s6.3.6.3: listen on one channel after the other, in an order of one's own.
    pub fn scan(&mut self, now: Instant, shared: &mut Shared) {
        let mut order = shared.config.hopping.channels().to_vec();
        for last in (1..order.len()).rev() {
            order.swap(last, shared.rng.below(last as u32 + 1) as usize);
        }
        *self = Self::Scanning { since: now, order };
    }

    fn synchronise(&mut self, now: Instant, time_source: Option<Eui64>, shared: &mut Shared) {
        self.add_scan(now, &mut shared.time);
        *self = Self::Synchronised(Synchronisation::new(time_source, now));
        shared.next_slot = shared.asn(now);
        shared.outbox.push(Output::Synchronised { time_source });
    }

    /// A beacon of a network was heard, in its slot that began at `slot_start`.
    pub fn join(
        &mut self,
        slot_start: Instant,
        source: Eui64,
        beacon: &TschBeacon,
        shared: &mut Shared,
    ) {
        let age = shared.config.slot * beacon.asn.0;
        if beacon.join_metric > JOIN_METRIC_MAX || slot_start < Instant::ZERO + age {
            return;
        }
        shared.origin = slot_start - age;
        self.synchronise(slot_start, Some(source), shared);
        shared.next_slot = beacon.asn + 1;
    }

    /// A node that is not the coordinator takes the time from `peer` from now on.
    pub fn set_time_source(&mut self, peer: Eui64) {
        if let Self::Synchronised(sync) = self
            && sync.time_source.is_some()
        {
            sync.time_source = Some(peer);
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
        let Self::Synchronised(sync) = self else { return None };
        let is_over = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if is_over(sync.desynchronise_due(config.desynchronise)) {
            return Some(Due::Desynchronised);
        }
        if !is_over(sync.keepalive_due(config.keepalive)) {
            return None;
        }
        sync.asked(now);
        Some(Due::Keepalive(sync.time_source))
    }
    pub fn next_deadline(&self, config: &Config) -> Option<Instant> {
        let Self::Synchronised(sync) = self else { return None };
        earliest(sync.keepalive_due(config.keepalive), sync.desynchronise_due(config.desynchronise))
    }
}
