//! A window of exchanges that answers open and losses close, with a gap that losses stretch.
//!
//! ```text
//!   queueing q = rtt - least rtt of as many hops         x = least rtt / (2 hops), about one transmission
//!   a round of answers without a loss:   q < x  window + 1      x..3x  hold      > 3x  window - 1      gap / 2
//!   one loss:                            window - 1, gap at least x
//!   a second one within a round trip:    window / 2, gap doubled + x
//! ```
//! A loss in a mesh is often interference, which a smaller window does not cure: so one loss costs one place, and two
//! close losses cost half. A window of one place is the end: one exchange after the other.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::{Duration, Instant};

use super::patience::Patience;
use super::{Gate, Path, Permit, Sample, Snapshot};

/// The parameters, which `gate-climb` and `hybrid` share.
pub(super) const PARAMETERS: [Parameter; 4] = [
    Parameter::whole("window", 2, 1, 64, "Initial number of simultaneous exchanges")
        .unit("exchanges")
        .source("ours")
        .not_above("window-max"),
    Parameter::whole("window-max", 8, 1, 64, "Maximum number of simultaneous exchanges")
        .unit("exchanges")
        .source("ours"),
    Parameter::time(
        "memory",
        Duration::from_secs(600),
        Duration::ZERO,
        Duration::from_secs(86_400),
        "Idle time after which the gate starts again from its first window",
    )
    .source("ours"),
    Parameter::time(
        "again-min",
        Duration::from_millis(100),
        Duration::from_millis(1),
        Duration::from_secs(30),
        "Minimum wait before the request to a silent member is repeated",
    )
    .source("ours: four exchanges over one hop"),
];

/// The row of [`Aimd`].
pub static ROW: Row<dyn Gate> = Row {
    name: "gate-aimd",
    summary: "A window of exchanges that adapts to delay and loss",
    section: "gate-aimd",
    parameters: &PARAMETERS,
    make: |choice| Box::new(Aimd::of(choice)),
};

/// Longest gap; ours: a quarter of ACK_TIMEOUT (RFC 7252 s4.8), so that a tail of losses does not stop the gate.
const GAP_MAX: Duration = Duration::from_millis(500);
/// Transmissions of queueing above which the window shrinks, and below which it grows; ours, after TCP Vegas.
const QUEUEING_HIGH: u64 = 3;

/// A window that adapts to delay and loss.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: u32,
    window_first: u32,
    window_max: u32,
    memory: Duration,
    gap: Duration,
    outstanding: u32,
    last_sent: Option<Instant>,
    last_loss: Option<Instant>,
    /// Least round-trip time, by hops.
    least: BTreeMap<u64, Duration>,
    patience: Patience,
    queueing: Duration,
    /// Answers of the round.
    answers: u32,
    /// Whether the round had a loss.
    lossy: bool,
}

impl Aimd {
    pub(super) fn of(choice: &Choice<dyn Gate>) -> Self {
        let (window, window_max) = (choice.whole("window"), choice.whole("window-max"));
        let patience = Patience::new(choice.time("again-min"));
        Self::new(window, window_max, choice.time("memory"), patience)
    }
    /// A gate with its first and its largest window, which forgets after an idle time.
    const fn new(window: u32, window_max: u32, memory: Duration, patience: Patience) -> Self {
        Self {
            window,
            window_first: window,
            window_max,
            memory,
            gap: Duration::ZERO,
            outstanding: 0,
            last_sent: None,
            last_loss: None,
            least: BTreeMap::new(),
            patience,
            queueing: Duration::ZERO,
            answers: 0,
            lossy: false,
        }
    }
    /// About the time of one transmission over one hop.
    fn transmission(&self, path: &Path) -> Duration {
        let least = self.least.get(&path.hops()).copied();
        let any = || self.least.values().min().copied();
        least.or_else(any).unwrap_or(Duration::ZERO) / (2 * path.hops())
    }
    fn sample(&mut self, path: &Path, rtt: Duration) {
        let least = self.least.entry(path.hops()).or_insert(rtt);
        *least = (*least).min(rtt);
        let late = rtt.saturating_sub(*least);
        self.queueing = (self.queueing * 3 + late) / 4;
        self.patience.sample(rtt);
    }
    /// Ends a round when as many answers have come as the window has places.
    fn count(&mut self, path: &Path) {
        self.answers += 1;
        if self.answers < self.window {
            return;
        }
        if !self.lossy {
            let transmission = self.transmission(path);
            if self.queueing < transmission {
                self.window = (self.window + 1).min(self.window_max);
            } else if self.queueing > transmission * QUEUEING_HIGH {
                self.window = self.window.saturating_sub(1).max(1);
            }
            self.gap = self.gap / 2;
        }
        self.answers = 0;
        self.lossy = false;
    }
    fn lose(&mut self, path: &Path, now: Instant) {
        let transmission = self.transmission(path);
        let round_trip = self.patience.round_trip();
        let again = self.last_loss.is_some_and(|last| now.since(last) <= round_trip);
        if again {
            self.window = (self.window / 2).max(1);
            self.gap = self.gap * 2 + transmission;
        } else {
            self.window = self.window.saturating_sub(1).max(1);
            self.gap = self.gap.max(transmission);
        }
        self.gap = self.gap.min(GAP_MAX);
        self.last_loss = Some(now);
        self.lossy = true;
        self.answers = 0;
    }
}

impl Gate for Aimd {
    fn permits(&self, _path: &Path, now: Instant) -> Permit {
        if self.outstanding >= self.window {
            return Permit::Blocked;
        }
        match self.last_sent.map(|last| last + self.gap) {
            Some(next) if next > now => Permit::At(next),
            _ => Permit::Now,
        }
    }
    fn on_sent(&mut self, _path: &Path, now: Instant) {
        let idle = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        if self.outstanding == 0 && idle > self.memory {
            *self =
                Self::new(self.window_first, self.window_max, self.memory, self.patience.renewed());
        }
        self.last_sent = Some(now);
        self.outstanding += 1;
    }
    fn on_answer(&mut self, path: &Path, sample: Sample, now: Instant) {
        self.on_discarded(path, now);
        if sample.retransmissions > 0 {
            // A copy was lost, whether or not the gate had given it up.
            self.lose(path, now);
        } else {
            self.sample(path, sample.rtt);
            self.count(path);
        }
    }
    fn on_lost(&mut self, path: &Path, now: Instant) {
        self.on_discarded(path, now);
        self.lose(path, now);
    }
    fn on_discarded(&mut self, _path: &Path, _now: Instant) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
    fn on_late(&mut self, path: &Path, sample: Sample, _now: Instant) {
        self.sample(path, sample.rtt);
    }
    fn again(&self, _path: &Path, times: u8) -> Option<Duration> {
        self.patience.again(times)
    }
    fn on_again(&mut self, path: &Path, now: Instant) {
        self.patience.lose();
        self.lose(path, now);
    }
    fn patience(&self) -> Option<Duration> {
        Some(self.patience.place())
    }
    fn snapshot(&self) -> Snapshot {
        let (outstanding, gap) = (self.outstanding, self.gap);
        Snapshot { window: Some(self.window), outstanding, gap }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Path = Path { hops: 1, first_hop: 0 };

    fn answer(gate: &mut Aimd, at_ms: u64, rtt_ms: u64) {
        let sample = Sample { rtt: Duration::from_millis(rtt_ms), retransmissions: 0 };
        gate.on_sent(&NEAR, Instant::from_millis(at_ms));
        gate.on_answer(&NEAR, sample, Instant::from_millis(at_ms + rtt_ms));
    }

    fn open() -> Aimd {
        let mut gate =
            Aimd::new(2, 8, Duration::from_secs(600), Patience::new(Duration::from_millis(100)));
        for step in 0..40 {
            answer(&mut gate, step * 20, 10);
        }
        gate
    }

    #[test]
    fn rounds_without_queueing_open_the_window_up_to_its_bound() {
        assert_eq!(open().snapshot().window, Some(8));
    }

    #[test]
    fn queueing_closes_the_window_without_a_loss() {
        let mut gate = open();
        for step in 0..40 {
            answer(&mut gate, 1000 + step * 100, 60);
        }
        assert!(gate.snapshot().window < Some(8), "{gate:?}");
    }

    #[test]
    fn one_loss_costs_one_place_and_a_second_close_one_half_of_them() {
        let mut gate = open();
        gate.on_sent(&NEAR, Instant::from_millis(1000));
        gate.on_sent(&NEAR, Instant::from_millis(1000));
        gate.on_lost(&NEAR, Instant::from_millis(1100));
        assert_eq!(gate.snapshot().window, Some(7));
        gate.on_lost(&NEAR, Instant::from_millis(1105));
        assert_eq!(gate.snapshot().window, Some(3));
        assert!(!gate.snapshot().gap.is_zero());
    }

    #[test]
    fn a_gate_that_was_idle_for_long_starts_afresh() {
        let mut gate = open();
        gate.on_sent(&NEAR, Instant::from_secs(3600));
        assert_eq!(gate.snapshot().window, Some(2));
    }
}
