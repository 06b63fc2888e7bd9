//! Made-up results for the tests of figures and pages.

use lowmesh_units::{Duration, Seed};

use crate::detail::{Cell, Detail, Drops, HopDelays, NodeDetail, Sample, Series};
use crate::metrics::Metrics;
use crate::results::{Point, PointResult, Results};
use crate::runner::Run;
use crate::scenario::Scenario;

/// The full product of `keys`, `seeds` runs a point.
pub fn results(keys: &[(&str, &[&str])], seeds: u64) -> Results {
    let mut settings: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (key, values) in keys {
        let with = |so_far: &Vec<(String, String)>, value: &str| {
            let mut settings = so_far.clone();
            settings.push(((*key).to_owned(), value.to_owned()));
            settings
        };
        settings = settings.iter().flat_map(|s| values.iter().map(|v| with(s, v))).collect();
    }
    let scenario = Scenario::parse("x", "name = \"made-up\"", &[]).expect("a valid scenario");
    let points = settings.into_iter().enumerate().map(|(index, settings)| PointResult {
        point: Point { settings, scenario: scenario.clone() },
        runs: (1..=seeds).map(|seed| run(index as u64, seed)).collect(),
        failures: Vec::new(),
    });
    Results { name: "made-up".to_owned(), points: points.collect() }
}

/// A run whose numbers depend on point and seed alone.
fn run(point: u64, seed: u64) -> Run {
    let wobble = ((point * 7 + seed * 13) % 10) as f64 / 100.0;
    Run {
        seed: Seed(seed),
        trace_hash: point * 1000 + seed,
        simulated: Duration::from_secs(3600),
        wall_s: 1.0,
        metrics: Metrics {
            tdr: Some(0.9 + wobble),
            pdr_up: Some(0.95),
            delay_p50_ms: Some(300.0 + 10.0 * point as f64),
            delay_p95_ms: Some(2000.0 + 1000.0 * wobble),
            retransmissions_per_transaction: Some(wobble),
            duty_cycle: Some(0.05),
            ..Metrics::default()
        },
        detail: detail(point, seed),
    }
}

fn detail(point: u64, seed: u64) -> Detail {
    let node = |id: u16| NodeDetail {
        parent: (id > 0).then(|| if id.is_multiple_of(5) { id - 5 } else { id - 1 }),
        hops: Some(u32::from(id % 5 + id / 5)),
        tdr: Some(0.9),
        duty_cycle: Some(0.05),
    };
    let cell = |id: u16| Cell {
        node: id,
        peer: id - 1,
        slot: id % 29,
        channel_offset: id * 3 % 16,
        shared: false,
    };
    let sample = |i: u16| Sample {
        t_s: f32::from(i) * 12.0,
        rtt_ms: (!i.is_multiple_of(40)).then(|| 300.0 + f32::from(i % 50) * 20.0),
        rto_ms: Some(2000.0 + f32::from(i % 7) * 150.0),
        retransmissions: u8::from(i.is_multiple_of(10)),
    };
    let drop =
        |reason: &str, count| Drops { layer: "mac".to_owned(), reason: reason.to_owned(), count };
    Detail {
        delays_ms: (0..=100_u8).map(|p| 100.0 + f32::from(p) * (10.0 + point as f32)).collect(),
        hops: (1..=8)
            .map(|hops| HopDelays {
                hops,
                n: 9,
                delays_ms: [1.0, 2.0, 3.0, 4.0, 5.0].map(|f| f * 90.0),
            })
            .collect(),
        latencies: Vec::new(),
        drops: vec![drop("no_ack", 50 + seed), drop("queue_full", 7)],
        nodes: (0..25).map(node).collect(),
        cells: (1..25).map(cell).collect(),
        series: Some(Series { node: 24, samples: (0..300).map(sample).collect() }),
        timelines: Vec::new(),
        transfer: None,
    }
}
