//! A retransmission timer of one's own: one file and one row.
//!
//! The timer waits a multiple of the longest round trip that it has seen lately. Its row gives it a name and a section in
//! scenario files, with bounds, errors and a range for the search of good values.

use std::error::Error;

use lowmesh_congestion::params::{RTO_MAX, RTO_MIN, WAIT_MAX};
use lowmesh_congestion::timer::conformance;
use lowmesh_congestion::{Attempt, Timer, TimerSnapshot};
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::scenario::Rows;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_registry::{Parameter, Registry, Row, Search};
use lowmesh_units::{Duration, Instant, Rng};

static LONGEST: Row<dyn Timer> = Row {
    name: "longest",
    summary: "A multiple of the longest recent round trip",
    section: "longest",
    parameters: &[
        Parameter::number("factor", 1.5, 1.0, 10.0, "Timeout in longest round trips")
            .source("ours")
            .search(Search::linear(1.1, 4.0, "Round trips of a mesh vary by less.")),
        Parameter::number("memory", 0.9, 0.0, 1.0, "What a shorter round trip leaves of it")
            .source("ours"),
    ],
    make: |choice, ack_timeout| {
        Box::new(Longest {
            factor: choice.number("factor"),
            memory: choice.number("memory"),
            rto: ack_timeout,
            longest: None,
        })
    },
};

#[derive(Debug)]
struct Longest {
    factor: f64,
    memory: f64,
    rto: Duration,
    longest: Option<Duration>,
}

impl Timer for Longest {
    fn initial(&mut self, _now: Instant, rng: &mut Rng) -> Duration {
        // Nodes that start together must not retransmit together.
        self.rto.mul_f64(rng.between(1.0, 1.5)).clamp(RTO_MIN, WAIT_MAX)
    }
    fn backoff(&mut self, attempt: Attempt, _rng: &mut Rng) -> Duration {
        attempt.previous.mul_f64(2.0).clamp(RTO_MIN, WAIT_MAX)
    }
    fn on_sample(&mut self, rtt: Duration, _retransmissions: u8, _now: Instant) {
        let remembered = self.longest.unwrap_or(rtt).mul_f64(self.memory);
        let longest = rtt.max(remembered).min(RTO_MAX);
        self.longest = Some(longest);
        self.rto = longest.mul_f64(self.factor).clamp(RTO_MIN, RTO_MAX);
    }
    fn on_give_up(&mut self, _now: Instant) {}
    fn snapshot(&self) -> TimerSnapshot {
        TimerSnapshot { rto: self.rto, srtt: None, rttvar: None, strong: None, weak: None }
    }
    fn name(&self) -> &'static str {
        LONGEST.name
    }
}

const SCENARIO: &str = r#"
name = "corridor"
duration = "20min"
[topology]
kind = "line"
nodes = 4
[sweep]
"coap.congestion" = ["default", "longest"]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // What every timer must keep; call it in a test of yours.
    conformance::check(&LONGEST)?;

    let rows = || Rows { timers: Registry::builtin().with(&LONGEST), ..Rows::default() };
    for (settings, scenario) in rows().read("corridor.toml", SCENARIO, &[])?.points {
        let seed = scenario.seeds().next().ok_or("a scenario has a seed")?;
        let outcome = simulate(&scenario, seed, Sinks::default(), &|_| ())?;
        let metrics = Metrics::of(&outcome, scenario.head.warmup).numbers();
        let tdr = metrics.iter().find(|(name, _)| *name == "tdr").and_then(|(_, tdr)| *tdr);
        let tdr = tdr.ok_or("no transactions")?;
        println!("{} = {}: {:.1} % delivered", settings[0].0, settings[0].1, 100.0 * tdr);
        assert!(tdr > 0.9);
    }

    // Errors know the row too.
    let wrong = SCENARIO.replace("[sweep]", "[longest]\nfactor = 0.5\n[sweep]");
    let errors = rows().read("corridor.toml", &wrong, &[]).expect_err("a factor below one");
    println!("{errors}");
    assert!(errors.to_string().contains("longest.factor = 0.5: must be a number from 1 to 10"));
    Ok(())
}
