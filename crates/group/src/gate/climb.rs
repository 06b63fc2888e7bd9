//! A window of exchanges that climbs to the least time per answer, and repeats requests to silent members early.
//!
//! ```text
//!   an epoch = 8 answers          cost of a window = time with a request under way / answers, smoothed
//!
//!   base ── every few epochs ──> trial of base + 1 or base - 1 for one epoch ──> better by 1/4: the new base
//!    ^                             │ base + 1: three answers that take too long ─> else: less often, other direction
//!    └─────────────────────────────┴──────────────────────────────────────────────┘
//! ```
//! With a larger window each round trip takes longer. If the exchanges only wait for each other, `w` of them take `w` times
//! as long, and nothing is gained. Three answers show this, so a bad trial disturbs few members.
//!
//! What a window costs includes its losses and its queues, whatever their cause: a MAC with few queues, interference, or
//! cells of a schedule. So the gate needs no model of the mesh. After each trial without a gain
//! the next trial comes later, up to [`TRIAL_INTERVAL_MAX`] epochs.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::{Duration, Instant};

use super::patience::Patience;
use super::{Gate, Path, Permit, Sample, Snapshot, aimd};

/// The row of [`Climb`].
pub static ROW: Row<dyn Gate> = Row {
    name: "gate-climb",
    summary: "A window of exchanges that follows the mean time per answer",
    section: "gate-climb",
    parameters: &[
        Parameter::whole("window", 1, 1, 64, "Initial number of simultaneous exchanges")
            .unit("exchanges")
            .source("ours: a single exchange disturbs no other")
            .not_above("window-max"),
        aimd::PARAMETERS[1],
        aimd::PARAMETERS[2],
        aimd::PARAMETERS[3],
    ],
    make: |choice| Box::new(Climb::of(choice)),
};

/// Answers of an epoch; ours: two rounds of a window of four.
const EPOCH_ANSWERS: u32 = 8;
/// The share of a new epoch in the cost of a window; ours.
const SHARE: u64 = 4;
/// A trial must be better by one part in so many; ours, above the chance of one epoch.
const GAIN: u64 = 4;
/// Answers after which the trial of a larger window may end early; ours.
const TRIAL_ANSWERS: u32 = 3;
/// The share of a new sample in the round-trip time of the base; ours.
const ROUND_TRIP_SHARE: u64 = 5;
/// Epochs between two trials at most; ours.
const TRIAL_INTERVAL_MAX: u32 = 16;
/// Repeated requests that end the trial of a larger window; ours.
const TRIAL_SILENT_MAX: u32 = 2;

/// A window that follows the measured time per answer.
#[derive(Clone, Debug)]
pub struct Climb {
    first: u32,
    memory: Duration,
    /// The best window so far.
    base: u32,
    /// The window of this epoch: the base, or a trial.
    window: u32,
    /// Time for each answer, by window less one.
    costs: Vec<Option<Duration>>,
    patience: Patience,
    outstanding: u32,
    last_sent: Option<Instant>,
    epoch: Epoch,
    /// Epochs to the next trial, and between trials.
    rest: u32,
    interval: u32,
    is_upward: bool,
    /// The smoothed round-trip time with the base.
    round_trip: Option<Duration>,
    trial: RoundTrips,
}

/// The answers of a trial.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrips {
    answers: u32,
    sum: Duration,
}

/// Some answers in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    busy: Duration,
    since: Instant,
    answers: u32,
    /// Most requests under way.
    peak: u32,
    /// Requests that were repeated.
    silent: u32,
}

impl Climb {
    fn of(choice: &Choice<dyn Gate>) -> Self {
        let (first, most) = (choice.whole("window"), choice.whole("window-max"));
        Self::new(first, most, choice.time("memory"), Patience::new(choice.time("again-min")))
    }
    /// A gate with its first and its largest window, which forgets after an idle time.
    fn new(first: u32, most: u32, memory: Duration, patience: Patience) -> Self {
        Self {
            first,
            memory,
            base: first,
            window: first,
            costs: vec![None; most as usize],
            patience,
            outstanding: 0,
            last_sent: None,
            epoch: Epoch::default(),
            rest: 1,
            interval: 1,
            is_upward: false,
            round_trip: None,
            trial: RoundTrips::default(),
        }
    }
    fn cost(&self, window: u32) -> Option<Duration> {
        self.costs.get(window as usize - 1).copied().flatten()
    }
    fn end_epoch(&mut self, now: Instant) {
        let Epoch { busy, since, answers, peak, .. } = self.epoch;
        let under_way = if self.outstanding > 0 { now.since(since) } else { Duration::ZERO };
        let sample = (busy + under_way) / u64::from(answers.max(1));
        // Few members may not fill the window.
        let filled = self.window.min(peak).max(1);
        let cost = match self.cost(filled) {
            Some(cost) => (cost * (SHARE - 1) + sample) / SHARE,
            None => sample,
        };
        if let Some(place) = self.costs.get_mut(filled as usize - 1) {
            *place = Some(cost);
        }
        self.begin_epoch(now);
        if self.window == self.base {
            self.rest = self.rest.saturating_sub(1);
            if self.rest == 0 {
                self.begin_trial(filled);
            }
        } else {
            self.end_trial();
        }
    }
    fn begin_trial(&mut self, filled: u32) {
        let most = self.costs.len() as u32;
        // More than few members fill would be no trial.
        if self.is_upward && (self.base >= most || filled < self.base) {
            self.is_upward = false;
        }
        if !self.is_upward && self.base == 1 {
            self.is_upward = true;
        }
        let next = if self.is_upward { self.base + 1 } else { self.base.saturating_sub(1).max(1) };
        self.window = next.min(most);
        self.trial = RoundTrips::default();
        self.rest = self.interval;
    }
    fn end_trial(&mut self) {
        let is_better = match (self.cost(self.window), self.cost(self.base)) {
            (Some(trial), Some(base)) => trial < base - base / GAIN,
            _ => false,
        };
        if is_better {
            self.base = self.window;
            self.round_trip = None;
            self.interval = 1;
            self.rest = self.interval;
        } else {
            self.give_trial_up();
        }
    }
    fn give_trial_up(&mut self) {
        self.window = self.base;
        self.is_upward = !self.is_upward;
        self.interval = (self.interval * 2).min(TRIAL_INTERVAL_MAX);
        self.rest = self.interval;
    }
    /// Notes a round trip; whether it shows that the larger window of this trial gains too little.
    fn is_hopeless_after(&mut self, rtt: Duration) -> bool {
        if self.window == self.base {
            let mean = self.round_trip.unwrap_or(rtt);
            self.round_trip = Some((mean * (ROUND_TRIP_SHARE - 1) + rtt) / ROUND_TRIP_SHARE);
        }
        let (true, Some(round_trip)) = (self.window > self.base, self.round_trip) else {
            return false;
        };
        self.trial.answers += 1;
        self.trial.sum += rtt;
        let (window, base) = (u64::from(self.window), u64::from(self.base));
        let longest = round_trip * window * (GAIN - 1) / (base * GAIN);
        self.trial.answers >= TRIAL_ANSWERS
            && self.trial.sum > longest * u64::from(self.trial.answers)
    }
    fn begin_epoch(&mut self, now: Instant) {
        self.epoch = Epoch { since: now, peak: self.outstanding, ..Epoch::default() };
    }
    fn leave(&mut self, now: Instant) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding == 0 {
            self.epoch.busy += now.since(self.epoch.since);
        }
    }
}

impl Gate for Climb {
    fn permits(&self, _path: &Path, _now: Instant) -> Permit {
        if self.outstanding < self.window { Permit::Now } else { Permit::Blocked }
    }
    fn on_sent(&mut self, _path: &Path, now: Instant) {
        let idle = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        if self.outstanding == 0 && idle > self.memory {
            let most = self.costs.len() as u32;
            *self = Self::new(self.first, most, self.memory, self.patience.renewed());
        }
        if self.outstanding == 0 {
            self.epoch.since = now;
        }
        self.last_sent = Some(now);
        self.outstanding += 1;
        self.epoch.peak = self.epoch.peak.max(self.outstanding);
    }
    fn on_answer(&mut self, _path: &Path, sample: Sample, now: Instant) {
        self.patience.sample(sample.rtt);
        self.leave(now);
        self.epoch.answers += 1;
        if self.is_hopeless_after(sample.rtt) {
            self.give_trial_up();
            self.begin_epoch(now);
        } else if self.epoch.answers >= EPOCH_ANSWERS {
            self.end_epoch(now);
        }
    }
    fn on_lost(&mut self, _path: &Path, now: Instant) {
        self.leave(now);
    }
    fn on_discarded(&mut self, _path: &Path, now: Instant) {
        self.leave(now);
    }
    fn on_late(&mut self, _path: &Path, sample: Sample, _now: Instant) {
        self.patience.sample(sample.rtt);
    }
    fn again(&self, _path: &Path, times: u8) -> Option<Duration> {
        self.patience.again(times)
    }
    fn on_again(&mut self, _path: &Path, now: Instant) {
        self.patience.lose();
        self.epoch.silent += 1;
        // A larger window that loses at once is no better.
        if self.window > self.base && self.epoch.silent >= TRIAL_SILENT_MAX {
            self.give_trial_up();
            self.begin_epoch(now);
        }
    }
    fn patience(&self) -> Option<Duration> {
        Some(self.patience.place())
    }
    fn snapshot(&self) -> Snapshot {
        let (outstanding, gap) = (self.outstanding, Duration::ZERO);
        Snapshot { window: Some(self.window), outstanding, gap }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { hops: 1, first_hop: 0 };

    /// A mesh whose answers take `cost_ms(window)` each, and a gate that asks it for so many.
    fn settle(cost_ms: impl Fn(u32) -> u64, answers: u32) -> u32 {
        let mut gate =
            Climb::new(2, 8, Duration::from_secs(600), Patience::new(Duration::from_millis(100)));
        let mut now = Instant::ZERO;
        let mut windows = [0_u32; 9];
        for _ in 0..answers {
            while gate.permits(&PATH, now) == Permit::Now {
                gate.on_sent(&PATH, now);
            }
            let window = gate.snapshot().window.expect("it has one");
            windows[window as usize] += 1;
            now += Duration::from_millis(cost_ms(window));
            let rtt = Duration::from_millis(cost_ms(window) * u64::from(window));
            gate.on_answer(&PATH, Sample { rtt, retransmissions: 0 }, now);
        }
        (1..9).max_by_key(|window| windows[*window as usize]).expect("eight windows")
    }

    #[test]
    fn the_window_climbs_to_where_answers_cost_least() {
        // Queues for two neighbours; a channel that has room for all; one that any second request disturbs.
        assert_eq!(settle(|window| if window <= 2 { 60 / u64::from(window) } else { 90 }, 2000), 2);
        assert_eq!(
            settle(|window| 400 / u64::from(window), 2000),
            3,
            "the fourth gains no more than a quarter"
        );
        assert_eq!(settle(|window| 30 * u64::from(window), 2000), 1);
    }

    #[test]
    fn three_slow_answers_end_the_trial_of_a_larger_window() {
        let mut gate =
            Climb::new(1, 8, Duration::from_secs(600), Patience::new(Duration::from_millis(100)));
        gate.is_upward = true;
        let mut now = Instant::ZERO;
        let mut in_trial = 0;
        for _ in 0..20 {
            while gate.permits(&PATH, now) == Permit::Now {
                gate.on_sent(&PATH, now);
            }
            let window = gate.snapshot().window.expect("it has one");
            in_trial += u32::from(window > 1);
            let rtt = Duration::from_millis(if window > 1 { 400 } else { 200 });
            now += rtt / u64::from(window);
            gate.on_answer(&PATH, Sample { rtt, retransmissions: 0 }, now);
        }
        assert_eq!(in_trial, TRIAL_ANSWERS);
        assert_eq!(gate.snapshot().window, Some(1));
    }

    #[test]
    fn few_members_do_not_open_a_window_that_they_cannot_fill() {
        let mut gate =
            Climb::new(2, 8, Duration::from_secs(600), Patience::new(Duration::from_millis(100)));
        for query in 0..200 {
            let now = Instant::from_secs(query);
            for _ in 0..3 {
                if gate.permits(&PATH, now) == Permit::Now {
                    gate.on_sent(&PATH, now);
                }
            }
            let now = now + Duration::from_millis(100);
            while gate.snapshot().outstanding > 0 {
                let rtt = Duration::from_millis(100);
                gate.on_answer(&PATH, Sample { rtt, retransmissions: 0 }, now);
            }
        }
        assert!(gate.snapshot().window <= Some(4), "{gate:?}");
    }

    #[test]
    fn a_gate_that_was_idle_for_long_starts_with_its_first_window() {
        let mut gate = Climb::new(2, 8, Duration::from_secs(600), Patience::new(Duration::ZERO));
        (gate.base, gate.window, gate.last_sent) = (7, 7, Some(Instant::ZERO));
        gate.on_sent(&PATH, Instant::from_secs(3600));
        assert_eq!(gate.snapshot().window, Some(2));
    }
}
