//! What happens to the overall RTO while no sample comes.
//!
//! The rules are applied when the value is needed, for all the time that has passed, as
//! draft-ietf-core-cocoa-03 s4.3 allows; no timer runs.

use lowmesh_units::{Duration, Instant};

use super::parameters::Ageing;

const ONE_SECOND: Duration = Duration::from_secs(1);
const TWO_SECONDS: Duration = Duration::from_secs(2);
const THREE_SECONDS: Duration = Duration::from_secs(3);
/// A short RTO ages after this many times its own value, in all variants.
const SHORT_IDLE_FACTOR: u64 = 16;
/// A long RTO ages after this many times its own value, in the draft and on the testbed.
const LONG_IDLE_FACTOR: u64 = 4;
/// A long RTO ages after this time, in the paper's eq 10.
const LONG_IDLE: Duration = Duration::from_secs(30);

/// Why the value is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A message is about to be sent.
    Use,
    /// A sample is about to be added.
    Sample,
}

/// An RTO and the time from which it ages on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aged {
    pub(super) rto: Duration,
    pub(super) updated: Instant,
}

/// What has become at `now` of an overall RTO that was `rto` at `updated`.
pub(super) fn aged(
    rule: Ageing,
    occasion: Occasion,
    rto: Duration,
    updated: Instant,
    now: Instant,
) -> Aged {
    match rule {
        Ageing::PaperText => paper_text(occasion, rto, updated, now),
        Ageing::Draft03 => draft_03(rto, updated, now),
        // The testbed's controller checks once a second, apart from samples.
        Ageing::Ecoap if occasion == Occasion::Sample => Aged { rto, updated },
        Ageing::Ecoap => ecoap(rto, updated, now),
    }
}

/// Righetti et al. 2023, eq 10 and the sentence after it: the long rule only "when a new
/// measurement is obtained".
fn paper_text(occasion: Occasion, rto: Duration, updated: Instant, now: Instant) -> Aged {
    let idle = now.since(updated);
    if rto > TWO_SECONDS && idle > LONG_IDLE && occasion == Occasion::Sample {
        Aged { rto: (TWO_SECONDS + rto) / 2, updated: now }
    } else if rto < ONE_SECOND && idle >= rto * SHORT_IDLE_FACTOR {
        Aged { rto: ONE_SECOND, updated: now }
    } else {
        Aged { rto, updated }
    }
}

/// draft-ietf-core-cocoa-03 s4.3: below 1 s doubled after 16 RTO, above 3 s moved half-way to 2 s
/// after 4 RTO, as often as the idle time allows.
fn draft_03(mut rto: Duration, mut updated: Instant, now: Instant) -> Aged {
    loop {
        let (wait, next) = if rto < ONE_SECOND {
            (rto * SHORT_IDLE_FACTOR, rto * 2)
        } else if rto > THREE_SECONDS {
            (rto * LONG_IDLE_FACTOR, ONE_SECOND + rto / 2)
        } else {
            return Aged { rto, updated };
        };
        if now.since(updated) < wait {
            return Aged { rto, updated };
        }
        rto = next;
        updated += wait;
    }
}

/// The testbed's code, once a second: a short RTO becomes 1 s; a long one (2 + RTO) / RTO seconds,
/// a slip for (2 + RTO) / 2 that lands between 1 and 1.7 s. Both sides are compared in whole
/// seconds.
fn ecoap(rto: Duration, updated: Instant, now: Instant) -> Aged {
    let idle = now.since(updated).as_secs();
    if rto < ONE_SECOND && idle >= (rto * SHORT_IDLE_FACTOR).as_secs() {
        Aged { rto: ONE_SECOND, updated: now }
    } else if rto > THREE_SECONDS && idle >= (rto * LONG_IDLE_FACTOR).as_secs() {
        let seconds = rto.as_secs_f64();
        Aged { rto: Duration::from_secs_f64((2.0 + seconds) / seconds), updated: now }
    } else {
        Aged { rto, updated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rule: Ageing, occasion: Occasion, rto_ms: u64, idle_ms: u64) -> u64 {
        let rto = Duration::from_millis(rto_ms);
        let now = Instant::from_secs(100) + Duration::from_millis(idle_ms);
        aged(rule, occasion, rto, Instant::from_secs(100), now).rto.as_millis()
    }

    #[test]
    fn the_papers_long_rto_moves_half_way_to_2_s_when_a_sample_comes_after_30_s() {
        // Claim S000-05.
        let after = |occasion, rto, idle| after(Ageing::PaperText, occasion, rto, idle);
        assert_eq!(after(Occasion::Sample, 6000, 30_001), 4000);
        assert_eq!(after(Occasion::Sample, 6000, 30_000), 6000);
        assert_eq!(after(Occasion::Sample, 2000, 90_000), 2000);
        assert_eq!(after(Occasion::Use, 6000, 90_000), 6000);
    }

    #[test]
    fn the_papers_short_rto_becomes_1_s_after_16_times_itself() {
        // Claim S000-05.
        assert_eq!(after(Ageing::PaperText, Occasion::Use, 500, 7_999), 500);
        assert_eq!(after(Ageing::PaperText, Occasion::Use, 500, 8_000), 1000);
        assert_eq!(after(Ageing::PaperText, Occasion::Use, 1000, 60_000), 1000);
    }

    #[test]
    fn the_drafts_rules_add_up_over_the_idle_time() {
        let after = |rto, idle| after(Ageing::Draft03, Occasion::Use, rto, idle);
        assert_eq!(after(300, 4_799), 300);
        assert_eq!(after(300, 4_800), 600);
        // 4.8 s at 300 ms, then 9.6 s at 600 ms, then above 1 s and at rest.
        assert_eq!(after(300, 14_400), 1200);
        assert_eq!(after(300, 1_000_000), 1200);
        // 8 s idles 32 s to 5 s, 20 s more to 3.5 s, 14 s more to 2.75 s.
        assert_eq!([after(8000, 32_000), after(8000, 52_000)], [5000, 3500]);
        assert_eq!(after(8000, 66_000), 2750);
    }

    #[test]
    fn the_testbeds_slip_brings_a_long_rto_under_1_7_s() {
        let after = |rto, idle| after(Ageing::Ecoap, Occasion::Use, rto, idle);
        assert_eq!(after(4000, 15_999), 4000);
        assert_eq!(after(4000, 16_000), 1500);
        assert_eq!(after(900, 14_400), 1000);
        assert_eq!(after(2500, 600_000), 2500);
    }
}
