//! What a retransmission timer does, found from outside: samples go in, waits come out, and the parameters are
//! solved from the two.

use lowmesh_congestion::params::ACK_TIMEOUT;
use lowmesh_congestion::{Attempt, EstimatorSnapshot, Timer, timer};
use lowmesh_registry::Registry;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

use super::{Values, values};

/// Draws from which the ends of a random range are read.
const DRAWS: usize = 4000;

/// The numbers of the timer called `name`.
pub fn probe(name: &str) -> Result<Values, String> {
    let choice = Registry::builtin().choose(name).map_err(|error| error.to_string())?;
    let fresh = || Ok::<_, String>(timer::make(&choice, ACK_TIMEOUT));
    let mut found = first_waits(fresh()?.as_mut());
    found.extend(backoff(fresh()?.as_mut()));
    if fresh()?.snapshot().strong.is_none() {
        let mut sampled = fresh()?;
        sampled.on_sample(Duration::from_secs(3), 0, at(1));
        if sampled.snapshot().strong.is_some() {
            found.extend(estimators(&fresh)?);
            found.extend(ageing(&fresh)?);
        }
    }
    Ok(found)
}

const fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn rng() -> Rng {
    Rng::stream(Seed(1), NodeId(1), Purpose::Coap)
}

/// The range of first waits of a timer that knows nothing yet, as seconds and as multiples of its timeout.
fn first_waits(timer: &mut dyn Timer) -> Values {
    let rto = timer.snapshot().rto.as_secs_f64();
    let mut rng = rng();
    let waits: Vec<f64> =
        (0..DRAWS).map(|_| timer.initial(at(1), &mut rng).as_secs_f64()).collect();
    let low = waits.iter().copied().fold(f64::INFINITY, f64::min);
    let high = waits.iter().copied().fold(0.0, f64::max);
    values([
        ("first_rto_min_s", low),
        ("first_rto_max_s", high),
        ("first_rto_mean_s", waits.iter().sum::<f64>() / DRAWS as f64),
        ("dither_min", low / rto),
        ("dither_max", high / rto),
    ])
}

/// The back-off factors at short, middle and long first waits, and where they change.
fn backoff(timer: &mut dyn Timer) -> Values {
    let mut rng = rng();
    let mut factor = |seconds: f64| {
        let initial = Duration::from_secs_f64(seconds);
        let attempt = Attempt { initial, previous: Duration::from_millis(100), number: 1 };
        timer.backoff(attempt, &mut rng).as_secs_f64() / 0.1
    };
    let (short, long) = (factor(0.1), factor(59.0));
    // The smallest first wait at which the factor is no longer that of short ones; from there up, the smallest at
    // which it is that of long ones.
    let mut edge = |low: f64, beyond: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (low, 60.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if beyond(factor(middle)) { high = middle } else { low = middle }
        }
        high
    };
    let lower = edge(0.1, &|factor| (factor - short).abs() > 1e-6);
    let upper = edge(lower, &|factor| (factor - long).abs() <= 1e-6);
    let middle = factor(f64::midpoint(lower, upper));
    values([
        ("backoff_short", short),
        ("backoff_middle", middle),
        ("backoff_long", long),
        ("backoff_lower_s", lower),
        ("backoff_upper_s", upper),
    ])
}

type Fresh<'f> = dyn Fn() -> Result<Box<dyn Timer>, String> + 'f;

/// The estimators' parameters, solved from their state after one and two samples.
fn estimators(fresh: &Fresh<'_>) -> Result<Values, String> {
    const FIRST_S: f64 = 4.0;
    const SECOND_S: f64 = 6.0;
    let mut found = values([("initial_rto_s", fresh()?.snapshot().rto.as_secs_f64())]);
    for (strength, retransmissions) in [("strong", 0), ("weak", 1)] {
        let state = |timer: &dyn Timer| -> Result<EstimatorSnapshot, String> {
            let snapshot = timer.snapshot();
            let estimator = if strength == "strong" { snapshot.strong } else { snapshot.weak };
            estimator.ok_or_else(|| format!("the {strength} estimator took no sample"))
        };
        let mut timer = fresh()?;
        let before = timer.snapshot().rto.as_secs_f64();
        timer.on_sample(Duration::from_secs_f64(FIRST_S), retransmissions, at(1));
        let one = state(timer.as_ref())?;
        let (srtt, rttvar) = (one.srtt.as_secs_f64(), one.rttvar.as_secs_f64());
        let rto = one.rto.as_secs_f64();
        let overall = timer.snapshot().rto.as_secs_f64();
        timer.on_sample(Duration::from_secs_f64(SECOND_S), retransmissions, at(2));
        let two = state(timer.as_ref())?;
        let srtt_two = two.srtt.as_secs_f64();
        let alpha = (srtt_two - srtt) / (SECOND_S - srtt);
        // A sample that equals the RTT leaves RTTVAR' = (1 - beta) RTTVAR, whichever of the two is updated first.
        let mut steady = fresh()?;
        for second in [1, 2] {
            steady.on_sample(Duration::from_secs_f64(FIRST_S), retransmissions, at(second));
        }
        let beta = 1.0 - state(steady.as_ref())?.rttvar.as_secs_f64() / rttvar;
        let named = |name: &str| format!("{name}_{strength}");
        found.insert(named("first_rtt_share"), srtt / FIRST_S);
        found.insert(named("first_rttvar_share"), rttvar / FIRST_S);
        found.insert(named("k"), (rto - srtt) / rttvar);
        found.insert(named("lambda"), (overall - before) / (rto - before));
        found.insert(named("alpha"), alpha);
        found.insert(named("beta"), beta);
    }
    found.insert("weak_retransmissions_max".to_owned(), weak_limit(fresh)?);
    Ok(found)
}

/// The most retransmissions of an exchange that still moves the timer.
fn weak_limit(fresh: &Fresh<'_>) -> Result<f64, String> {
    let mut limit = 0;
    for retransmissions in 1..=4 {
        let mut timer = fresh()?;
        timer.on_sample(Duration::from_secs(4), retransmissions, at(1));
        if timer.snapshot().weak.is_some() {
            limit = retransmissions;
        }
    }
    Ok(f64::from(limit))
}

/// What becomes of a long and of a short timeout after a silence.
fn ageing(fresh: &Fresh<'_>) -> Result<Values, String> {
    let mut long = fresh()?;
    long.on_sample(Duration::from_secs(10), 0, at(1));
    let high = long.snapshot().rto.as_secs_f64();
    let lambda = lambda_strong(fresh)?;
    // A sample at `now` mixes the aged timeout with the estimator's: what it had aged to follows.
    let aged = |idle: f64| -> Result<f64, String> {
        let mut timer = fresh()?;
        timer.on_sample(Duration::from_secs(10), 0, at(1));
        timer.on_sample(Duration::from_secs(10), 0, at(1) + Duration::from_secs_f64(idle));
        let state = timer.snapshot();
        let estimator = state.strong.ok_or("no strong estimator")?.rto.as_secs_f64();
        Ok((state.rto.as_secs_f64() - lambda * estimator) / (1.0 - lambda))
    };
    let short = |idle: f64| -> Result<(f64, f64), String> {
        let mut timer = fresh()?;
        let mut now = at(1);
        for _ in 0..200 {
            timer.on_sample(Duration::from_millis(100), 0, now);
            now += Duration::from_millis(100);
        }
        now = now + Duration::from_secs_f64(idle) - Duration::from_millis(100);
        let before = timer.snapshot().rto.as_secs_f64();
        timer.initial(now, &mut rng());
        Ok((before, timer.snapshot().rto.as_secs_f64()))
    };
    let low = short(0.0)?.0;
    Ok(values([
        ("long_after_29s", aged(29.0)? / high),
        ("long_after_31s", aged(31.0)? / f64::midpoint(2.0, high)),
        ("short_after_15_rto", short(15.0 * low)?.1 / low),
        ("short_after_17_rto_s", short(17.0 * low)?.1),
    ]))
}

fn lambda_strong(fresh: &Fresh<'_>) -> Result<f64, String> {
    let mut timer = fresh()?;
    let before = timer.snapshot().rto.as_secs_f64();
    timer.on_sample(Duration::from_secs(4), 0, at(1));
    let state = timer.snapshot();
    let estimator = state.strong.ok_or("no strong estimator")?.rto.as_secs_f64();
    Ok((state.rto.as_secs_f64() - before) / (estimator - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &Values, key: &str, wanted: f64) {
        assert!((found[key] - wanted).abs() < 1e-3, "{key}: {found:?}");
    }

    #[test]
    fn parameters_are_recovered_from_behaviour() {
        let found = probe("6cocoa").expect("it is known");
        for (key, wanted) in [
            ("lambda_strong", 0.75),
            ("lambda_weak", 0.1),
            ("k_strong", 2.0),
            ("k_weak", 0.5),
            ("alpha_strong", 0.9),
            ("beta_weak", 0.5),
            ("backoff_lower_s", 20.0),
            ("backoff_upper_s", 50.0),
            ("backoff_middle", 1.5),
        ] {
            near(&found, key, wanted);
        }
    }

    #[test]
    fn a_timer_without_estimators_has_only_waits() {
        let found = probe("default").expect("it is known");
        near(&found, "backoff_short", 2.0);
        assert!(!found.contains_key("k_strong"));
        assert!((2.0..2.01).contains(&found["first_rto_min_s"]), "{found:?}");
    }

    #[test]
    fn variants_are_told_apart() {
        let text = probe("cocoa/paper-text").expect("it is known");
        let table = probe("cocoa").expect("it is known");
        near(&text, "alpha_strong", 0.25);
        near(&table, "alpha_strong", 0.125);
        near(&text, "backoff_long", 1.3);
        near(&table, "backoff_long", 1.5);
    }
}
