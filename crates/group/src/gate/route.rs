//! Requests spaced by the air time of their paths, far members first, one exchange for each first hop.
//!
//! ```text
//!   air time of an exchange = 2 min(hops, 3) t          t = rtt / (2 hops) of clean answers, smoothed
//!   the next request leaves air time / share after the one before
//! ```
//! Beyond three hops a path reuses its channel (Flush, Kim et al. 2007). Without routes all members count as one hop behind
//! one first hop of their own, so that the share alone decides.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use lowmesh_registry::{Parameter, Row};
use lowmesh_units::{Duration, Instant};

use super::{Gate, Path, Permit, Sample, Snapshot};
use crate::params::INTERFERENCE_HOPS;

/// The row of [`Route`].
pub static ROW: Row<dyn Gate> = Row {
    name: "gate-route",
    summary: "Requests spaced by the air time of each path, distant members first, one exchange for each first hop",
    section: "gate-route",
    parameters: &[
        Parameter::number("share", 0.5, SHARE_MIN, SHARE_MAX, "Initial share of the channel")
            .source("ours"),
        Parameter::time(
            "transmission",
            Duration::from_millis(5),
            Duration::from_millis(1),
            Duration::from_secs(1),
            "Assumed time of a transmission over one hop, before the first answer",
        )
        .source("a frame of 80 octets at 250 kbit/s, its acknowledgement and back-off"),
        Parameter::whole("window", 4, 1, 64, "Maximum number of simultaneous exchanges")
            .unit("exchanges")
            .source("ours"),
    ],
    make: |choice| {
        let (share, transmission) = (choice.number("share"), choice.time("transmission"));
        Box::new(Route::new(share, transmission, choice.whole("window")))
    },
};

/// The least and the largest share; ours.
const SHARE_MIN: f64 = 0.05;
const SHARE_MAX: f64 = 0.9;
/// Growth of the share after a run of clean answers, and how many those are; ours.
const SHARE_STEP: f64 = 0.05;
const CLEAN_RUN: u32 = 10;
/// What is left of the share after a second loss in a row, and after two within a round trip; ours.
const AFTER_SECOND_LOSS: f64 = 0.85;
const AFTER_CLOSE_LOSSES: f64 = 0.5;
/// The wait for an answer before its place is free, in round trips; ours. At most ACK_TIMEOUT (RFC 7252 s4.8).
const PATIENCE_ROUND_TRIPS: u64 = 4;
const PATIENCE_MAX: Duration = Duration::from_secs(2);

/// Pacing by the occupancy of the channel.
#[derive(Clone, Debug)]
pub struct Route {
    share: f64,
    transmission: Duration,
    window: u32,
    outstanding: u32,
    free_at: Instant,
    busy: BTreeMap<u64, u32>,
    clean: u32,
    losses: u32,
    last_loss: Option<Instant>,
    round_trip: Option<Duration>,
}

impl Route {
    /// A gate with its initial share, its assumed time of a transmission, and its maximum number of exchanges.
    pub const fn new(share: f64, transmission: Duration, window: u32) -> Self {
        Self {
            share,
            transmission,
            window,
            outstanding: 0,
            free_at: Instant::ZERO,
            busy: BTreeMap::new(),
            clean: 0,
            losses: 0,
            last_loss: None,
            round_trip: None,
        }
    }
    fn air_time(&self, path: &Path) -> Duration {
        self.transmission * (2 * path.hops().min(INTERFERENCE_HOPS))
    }
    fn lose(&mut self, now: Instant) {
        let round_trip = self.round_trip.unwrap_or(PATIENCE_MAX);
        let close = self.last_loss.is_some_and(|last| now.since(last) <= round_trip);
        self.losses += 1;
        if close {
            self.share *= AFTER_CLOSE_LOSSES;
        } else if self.losses > 1 {
            self.share *= AFTER_SECOND_LOSS;
        }
        self.share = self.share.max(SHARE_MIN);
        self.last_loss = Some(now);
        self.clean = 0;
    }
}

impl Gate for Route {
    fn permits(&self, path: &Path, now: Instant) -> Permit {
        if self.outstanding >= self.window {
            return Permit::Blocked;
        }
        if self.free_at > now {
            return Permit::At(self.free_at);
        }
        // Members whose first hop is not known do not wait for each other.
        if path.first_hop != 0 && self.busy.contains_key(&path.first_hop) {
            return Permit::OtherPath;
        }
        Permit::Now
    }
    fn on_sent(&mut self, path: &Path, now: Instant) {
        self.outstanding += 1;
        *self.busy.entry(path.first_hop).or_insert(0) += 1;
        self.free_at = self.free_at.max(now) + self.air_time(path).mul_f64(1.0 / self.share);
    }
    fn on_answer(&mut self, path: &Path, sample: Sample, now: Instant) {
        self.on_discarded(path, now);
        if sample.retransmissions > 0 {
            self.lose(now);
            return;
        }
        let transmission = sample.rtt / (2 * path.hops());
        self.transmission = (self.transmission * 7 + transmission) / 8;
        self.round_trip =
            Some(self.round_trip.map_or(sample.rtt, |old| (old * 7 + sample.rtt) / 8));
        self.losses = 0;
        self.clean += 1;
        if self.clean >= CLEAN_RUN {
            self.clean = 0;
            self.share = (self.share + SHARE_STEP).min(SHARE_MAX);
        }
    }
    fn on_lost(&mut self, path: &Path, now: Instant) {
        self.on_discarded(path, now);
        self.lose(now);
    }
    fn on_discarded(&mut self, path: &Path, _now: Instant) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(count) = self.busy.get_mut(&path.first_hop) {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(&path.first_hop);
            }
        }
    }
    fn patience(&self) -> Option<Duration> {
        let wait = self.round_trip.map(|one| one * PATIENCE_ROUND_TRIPS);
        Some(wait.map_or(PATIENCE_MAX, |wait| wait.min(PATIENCE_MAX)))
    }
    fn order(&self, path: &Path) -> u8 {
        u8::MAX - path.hops
    }
    fn snapshot(&self) -> Snapshot {
        let gap = self.air_time(&Path::default()).mul_f64(1.0 / self.share);
        Snapshot { window: Some(self.window), outstanding: self.outstanding, gap }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Path = Path { hops: 3, first_hop: 7 };
    const NEAR: Path = Path { hops: 1, first_hop: 9 };

    fn gate() -> Route {
        Route::new(0.5, Duration::from_millis(5), 4)
    }

    #[test]
    fn a_far_request_holds_the_channel_longer_and_leaves_first() {
        let mut gate = gate();
        assert!(gate.order(&FAR) < gate.order(&NEAR));
        gate.on_sent(&FAR, Instant::ZERO);
        // 2 x 3 hops x 5 ms over half the channel.
        assert_eq!(gate.permits(&NEAR, Instant::ZERO), Permit::At(Instant::from_millis(60)));
        assert_eq!(gate.permits(&NEAR, Instant::from_millis(60)), Permit::Now);
        assert_eq!(gate.permits(&FAR, Instant::from_millis(60)), Permit::OtherPath);
    }

    #[test]
    fn clean_answers_widen_the_share_and_close_losses_halve_it() {
        let mut gate = gate();
        let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
        for step in 0..u64::from(CLEAN_RUN) {
            gate.on_sent(&NEAR, Instant::from_millis(step * 100));
            gate.on_answer(&NEAR, sample, Instant::from_millis(step * 100 + 10));
        }
        assert!(gate.share > 0.5);
        let share = gate.share;
        gate.on_sent(&NEAR, Instant::from_secs(9));
        gate.on_sent(&FAR, Instant::from_secs(9));
        gate.on_lost(&NEAR, Instant::from_secs(10));
        assert_eq!(gate.share.to_bits(), share.to_bits());
        gate.on_lost(&FAR, Instant::from_secs(10));
        assert!(gate.share <= share / 2.0);
    }
}
