//! What an attack did to the honest clients and to the victim, beside the bars.

use std::time::Duration;

use serde_json::{Value, json};

use super::honest::{Kind, OPENING_FAR, Sample};

/// Resident memory of the victim, less than, MB.
pub const MEMORY_MAX_MB: f64 = 64.0;
/// The 99th percentile of latencies, less than.
pub const P99_MAX: Duration = Duration::from_secs(1);
/// The same of the new connections of clients 200 ms away.
pub const OPENING_MAX: Duration = OPENING_FAR;
/// From the end of an attack until all is normal, at most.
pub const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// The numbers of one attack.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub name: &'static str,
    /// Requests of honest clients during the attack and until all was normal, and how many of them succeeded.
    pub requests: usize,
    pub succeeded: usize,
    pub p50: Duration,
    pub p99: Duration,
    /// The 99th percentile of the clients 200 ms away alone: of their requests, and of their new connections.
    pub p99_far: Duration,
    pub p99_opening: Duration,
    /// Resident memory: before, at its peak, and at the end, MB.
    pub memory_mb: [f64; 3],
    /// `None` if it did not come to that in time.
    pub recovery: Option<Duration>,
    /// What else was wrong, for people.
    pub faults: Vec<String>,
    /// What failed to honest clients, for people.
    pub failures: Vec<String>,
    /// What the attacker did.
    pub sent: String,
}

impl Measured {
    /// Takes the latencies and failures of honest clients.
    pub fn take(&mut self, samples: &[Sample]) {
        let sorted = |is: fn(Kind) -> bool| {
            let some = samples.iter().filter(|one| is(one.work));
            let mut took: Vec<Duration> = some.map(|one| one.took).collect();
            took.sort();
            took
        };
        self.requests = samples.len();
        self.succeeded = samples.iter().filter(|one| one.succeeded).count();
        let near = sorted(|work| !work.far);
        (self.p50, self.p99) = (percentile(&near, 50), percentile(&near, 99));
        self.p99_far = percentile(&sorted(|work| work.far && !work.opens), 99);
        self.p99_opening = percentile(&sorted(|work| work.far && work.opens), 99);
    }
    /// Every bar that is missed.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.succeeded < self.requests || self.requests == 0 {
            missed.push("success".to_owned());
        }
        if self.p99 >= P99_MAX {
            missed.push("p99".to_owned());
        }
        if self.p99_far >= P99_MAX {
            missed.push("p99 far away".to_owned());
        }
        if self.p99_opening >= OPENING_MAX {
            missed.push("connections far away".to_owned());
        }
        if self.memory_mb[1] >= MEMORY_MAX_MB {
            missed.push("memory".to_owned());
        }
        if self.recovery.is_none_or(|recovery| recovery > RECOVERY_MAX) {
            missed.push("recovery".to_owned());
        }
        if !self.faults.is_empty() {
            missed.push("behaviour".to_owned());
        }
        missed
    }
    /// The head of the table.
    pub fn head() -> String {
        format!(
            "{:<21} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>10}  verdict",
            "attack",
            "requests",
            "success",
            "p50 ms",
            "p99 ms",
            "far ms",
            "open ms",
            "RSS MB",
            "end",
            "recovery s"
        )
    }
    /// Its row of the table.
    pub fn row(&self) -> String {
        let share = 100.0 * self.succeeded as f64 / self.requests.max(1) as f64;
        let recovery =
            self.recovery.map_or("never".to_owned(), |span| format!("{:.1}", span.as_secs_f64()));
        let missed = self.missed();
        let verdict = if missed.is_empty() {
            "holds".to_owned()
        } else {
            format!("MISSED {}", missed.join(", "))
        };
        format!(
            "{:<21} {:>8} {share:>7.2}% {:>7.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>6.1} {recovery:>10}  {verdict}",
            self.name,
            self.requests,
            self.p50.as_secs_f64() * 1e3,
            self.p99.as_secs_f64() * 1e3,
            self.p99_far.as_secs_f64() * 1e3,
            self.p99_opening.as_secs_f64() * 1e3,
            self.memory_mb[1],
            self.memory_mb[2],
        )
    }
    /// The same for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "attack": self.name,
            "requests": self.requests,
            "succeeded": self.succeeded,
            "p50_ms": self.p50.as_secs_f64() * 1e3,
            "p99_ms": self.p99.as_secs_f64() * 1e3,
            "p99_far_ms": self.p99_far.as_secs_f64() * 1e3,
            "p99_opening_ms": self.p99_opening.as_secs_f64() * 1e3,
            "rss_before_mb": self.memory_mb[0],
            "rss_peak_mb": self.memory_mb[1],
            "rss_end_mb": self.memory_mb[2],
            "recovery_s": self.recovery.map(|span| span.as_secs_f64()),
            "sent": self.sent,
            "faults": self.faults,
            "failures": self.failures,
            "missed": self.missed(),
        })
    }
}

/// The duration that so many in a hundred do not exceed; they come in order.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(took_ms: u64, succeeded: bool) -> Sample {
        let work = Kind { far: false, opens: false };
        Sample { at: Duration::ZERO, took: Duration::from_millis(took_ms), succeeded, work }
    }

    fn good() -> Measured {
        let recovery = Some(Duration::ZERO);
        let mut good = Measured { recovery, memory_mb: [9.0, 10.0, 9.0], ..Measured::default() };
        good.take(&(1..=100).map(|ms| sample(ms, true)).collect::<Vec<_>>());
        good
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let good = good();
        assert_eq!((good.p50.as_millis(), good.p99.as_millis(), good.requests), (50, 99, 100));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }

    #[test]
    fn every_bar_can_be_missed() {
        assert!(good().missed().is_empty());
        let mut slow = good();
        slow.take(&[sample(1000, true)]);
        assert_eq!(slow.missed(), ["p99"]);
        let far = |took, opens| Sample { work: Kind { far: true, opens }, ..sample(took, true) };
        slow.take(&[sample(1, true), far(1000, false)]);
        assert_eq!(slow.missed(), ["p99 far away"]);
        slow.take(&[sample(1, true), far(999, false), far(1799, true)]);
        assert!(slow.missed().is_empty());
        slow.take(&[sample(1, true), far(1800, true)]);
        assert_eq!(slow.missed(), ["connections far away"]);
        let mut failed = good();
        failed.take(&[sample(1, false), sample(1, true)]);
        assert_eq!(failed.missed(), ["success"]);
        assert_eq!(Measured { memory_mb: [9.0, 64.0, 9.0], ..good() }.missed(), ["memory"]);
        assert_eq!(Measured { recovery: None, ..good() }.missed(), ["recovery"]);
        let faults = vec!["wrong".to_owned()];
        assert_eq!(Measured { faults, ..good() }.missed(), ["behaviour"]);
        assert_eq!(
            Measured { recovery: Some(Duration::ZERO), ..Measured::default() }.missed(),
            ["success"]
        );
    }
}
