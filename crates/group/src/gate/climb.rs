//! A window of exchanges that climbs to the least time per answer, and repeats requests to silent members early.
//!
//! ```text
//!   an epoch = a query, or 8 answers at least      cost of a window = time with a request under way / answers
//!
//!   base ── every few epochs ──> trial of base + 1 or base - 1, an epoch or more ──> better by 1/4: the new base
//!    ^                             │ base + 1: three answers that take too long ─> else: less often, other direction
//!    └─────────────────────────────┴──────────────────────────────────────────────┘
//! ```
//! Near members answer sooner than far ones, with any window. So an epoch ends between two queries, and compares the same
//! members. The trial of a larger window ends as soon as eight answers cost no less. Any trial ends with its first epoch if it
//! is not better. One that is better goes on until its mean is below the goal by two standard errors; it has 64 answers for
//! that.
//!
//! With a larger window each round trip takes longer. If the exchanges only wait for each other, `w` of them take `w` times
//! as long, and nothing is gained. Three answers show this, so a bad trial disturbs few members.
//!
//! What a window costs includes its losses and its queues, whatever their cause: a MAC with few queues, interference, or
//! cells of a schedule. So the gate needs no model of the mesh. After each trial without a gain
//! the next trial comes later, up to `TRIAL_INTERVAL_MAX` epochs.

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

/// Answers of an epoch at least; ours: two rounds of a window of four.
const EPOCH_ANSWERS: u32 = 8;
/// Answers after which an epoch ends although requests are under way all the time; ours.
const EPOCH_ANSWERS_MAX: u32 = 64;
/// The share of a new epoch in the cost of a window; ours.
const SHARE: u64 = 4;
/// A trial must be better by one part in so many; ours, above the chance of one epoch.
const GAIN: u64 = 4;
/// Answers after which the trial of a larger window may end early; ours.
const TRIAL_ANSWERS: u32 = 3;
/// The share of a new sample in the round-trip time of the base; ours.
const ROUND_TRIP_SHARE: u64 = 5;
/// Answers of the longest trial; ours.
const TRIAL_ANSWERS_MAX: u32 = 64;
/// Standard errors by which a trial must be better than its goal; ours: chance does so once in forty times.
const ERRORS: u128 = 2;
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
    /// Time for each answer, smoothed over epochs, by window less one.
    costs: Vec<Option<Duration>>,
    patience: Patience,
    outstanding: u32,
    last_sent: Option<Instant>,
    /// Answers with this window: of the epoch, or of the whole trial.
    answers: Answers,
    /// Requests that were repeated in this epoch.
    silent: u32,
    /// Epochs to the next trial, and between trials.
    rest: u32,
    interval: u32,
    is_upward: bool,
    /// The smoothed round-trip time with the base.
    round_trip: Option<Duration>,
}

/// Some answers in a row, and the times between them in which a request was under way.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    count: u32,
    /// Since the last answer.
    gap: Duration,
    /// The end of `gap`.
    until: Instant,
    sum: Duration,
    /// Of the times between answers, in square microseconds.
    squares: u128,
    round_trips: Duration,
    /// Most requests under way.
    peak: u32,
}

impl Answers {
    /// The time passes, with a request under way.
    fn pass(&mut self, now: Instant) {
        self.gap += now.since(self.until);
        self.until = now;
    }
    fn add(&mut self, rtt: Duration) {
        self.count += 1;
        self.sum += self.gap;
        self.squares += u128::from(self.gap.as_micros()).pow(2);
        self.gap = Duration::ZERO;
        self.round_trips += rtt;
    }
    /// The mean time for each answer.
    fn mean(&self) -> Duration {
        self.sum / u64::from(self.count.max(1))
    }
    /// Whether the mean is below `goal` by more than [`ERRORS`] standard errors.
    fn is_clearly_below(&self, goal: Duration) -> bool {
        let count = u128::from(self.count.max(1));
        let mean = u128::from(self.mean().as_micros());
        let variance = (self.squares / count).saturating_sub(mean.pow(2));
        let difference = u128::from(goal.as_micros()).saturating_sub(mean);
        difference.pow(2) * count > variance * ERRORS.pow(2)
    }
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
            answers: Answers::default(),
            silent: 0,
            rest: 1,
            interval: 1,
            is_upward: false,
            round_trip: None,
        }
    }
    fn cost(&self, window: u32) -> Option<Duration> {
        self.costs.get(window as usize - 1).copied().flatten()
    }
    fn end_epoch(&mut self) {
        self.silent = 0;
        // Few members may not fill the window.
        let filled = self.window.min(self.answers.peak).max(1);
        let sample = self.answers.mean();
        let cost = self.cost(filled).map_or(sample, |cost| (cost * (SHARE - 1) + sample) / SHARE);
        if let Some(place) = self.costs.get_mut(filled as usize - 1) {
            *place = Some(cost);
        }
        if self.window != self.base {
            self.judge_trial();
            return;
        }
        self.begin_answers();
        self.rest = self.rest.saturating_sub(1);
        if self.rest == 0 {
            self.begin_trial(filled);
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
        self.rest = self.interval;
    }
    /// Ends the trial unless its gain may be chance.
    fn judge_trial(&mut self) {
        let goal = self.cost(self.base).map(|base| base - base / GAIN);
        let (Some(goal), Some(cost)) = (goal, self.cost(self.window)) else {
            self.give_trial_up();
            return;
        };
        if cost.max(self.answers.mean()) < goal && self.answers.is_clearly_below(goal) {
            self.base = self.window;
            self.round_trip = None;
            self.interval = 1;
            self.rest = self.interval;
            self.begin_answers();
        } else if cost.max(self.answers.mean()) >= goal || self.answers.count >= TRIAL_ANSWERS_MAX {
            self.give_trial_up();
        }
    }
    fn give_trial_up(&mut self) {
        self.window = self.base;
        self.is_upward = !self.is_upward;
        self.interval = (self.interval * 2).min(TRIAL_INTERVAL_MAX);
        self.rest = self.interval;
        self.silent = 0;
        self.begin_answers();
    }
    /// Whether some answers of a larger window cost no less than those of the base.
    fn is_without_gain(&self) -> bool {
        self.window > self.base
            && self.answers.count.is_multiple_of(EPOCH_ANSWERS)
            && self.cost(self.base).is_some_and(|base| self.answers.mean() >= base)
    }
    /// Notes a round trip; whether those so far show that the larger window of this trial gains too little.
    fn is_hopeless_after(&mut self, rtt: Duration) -> bool {
        if self.window == self.base {
            let mean = self.round_trip.unwrap_or(rtt);
            self.round_trip = Some((mean * (ROUND_TRIP_SHARE - 1) + rtt) / ROUND_TRIP_SHARE);
        }
        let (true, Some(round_trip)) = (self.window > self.base, self.round_trip) else {
            return false;
        };
        let (window, base) = (u64::from(self.window), u64::from(self.base));
        let longest = round_trip * window * (GAIN - 1) / (base * GAIN);
        let Answers { count, round_trips, .. } = self.answers;
        count >= TRIAL_ANSWERS && round_trips > longest * u64::from(count)
    }
    fn begin_answers(&mut self) {
        let Answers { gap, until, .. } = self.answers;
        self.answers = Answers { gap, until, peak: self.outstanding, ..Answers::default() };
    }
    fn leave(&mut self, now: Instant) {
        self.answers.pass(now);
        self.outstanding = self.outstanding.saturating_sub(1);
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
        if self.outstanding == 0 && now > self.answers.until {
            self.answers.until = now;
            if self.answers.count >= EPOCH_ANSWERS {
                self.end_epoch();
            }
        }
        self.last_sent = Some(now);
        self.outstanding += 1;
        self.answers.peak = self.answers.peak.max(self.outstanding);
    }
    fn on_answer(&mut self, _path: &Path, sample: Sample, now: Instant) {
        self.patience.sample(sample.rtt);
        self.leave(now);
        self.answers.add(sample.rtt);
        if self.is_hopeless_after(sample.rtt) || self.is_without_gain() {
            self.give_trial_up();
        } else if self.answers.count.is_multiple_of(EPOCH_ANSWERS_MAX) {
            self.end_epoch();
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
    fn on_again(&mut self, _path: &Path, _now: Instant) {
        self.patience.lose();
        self.silent += 1;
        // A larger window that loses at once is no better.
        if self.window > self.base && self.silent >= TRIAL_SILENT_MAX {
            self.give_trial_up();
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
        for answer in 0..20 {
            // A query of eight members ends.
            if answer % 8 == 0 {
                now += Duration::from_secs(1);
            }
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
    fn near_members_that_answer_sooner_make_no_window_look_better() {
        let mut gate =
            Climb::new(1, 8, Duration::from_secs(600), Patience::new(Duration::from_millis(100)));
        let mut now = Instant::ZERO;
        for answer in 0..800 {
            let member = answer % 24;
            if member == 0 {
                now += Duration::from_secs(1);
            }
            let under_way = 24 - member;
            while gate.permits(&PATH, now) == Permit::Now && gate.snapshot().outstanding < under_way
            {
                gate.on_sent(&PATH, now);
            }
            let cost = Duration::from_millis(if member < 8 { 10 } else { 90 });
            now += cost;
            let rtt = cost * u64::from(gate.snapshot().outstanding);
            gate.on_answer(&PATH, Sample { rtt, retransmissions: 0 }, now);
            assert_eq!(gate.base, 1, "after {answer} answers");
        }
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
