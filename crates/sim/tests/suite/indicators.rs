//! Three small worlds with fixed seeds, and their results as a table: a change to a protocol shows
//! here what it does to a network, and its commit says why that is better.

use std::fmt::Write as _;

use lowmesh_rpl::Mode;
use lowmesh_sim::record::{Ending, Outcome};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_units::{Duration, Instant};

use crate::worlds::{Config, disk, functions, line, run};

fn scenarios() -> [(&'static str, Config); 3] {
    let mut calm = line(3);
    calm.duration = Duration::from_secs(1_200);

    let mut busy = line(9);
    busy.topology = TopologySpec::Grid { rows: 3, cols: 3, spacing_m: 33.0 };
    busy.medium = disk(0.8);
    busy.duration = Duration::from_secs(1_200);
    busy.traffic.period = Duration::from_secs(2);

    let mut fragments = line(4);
    let [.., (_, orchestra)] = functions();
    fragments.node.scheduling = orchestra;
    fragments.node.rpl = fragments.node.rpl.with_mode(Mode::NonStoring);
    fragments.node.mac.eb_period = Duration::from_secs(4);
    fragments.duration = Duration::from_secs(1_200);
    fragments.traffic.period = Duration::from_secs(30);
    fragments.traffic.payload_octets = 300;
    [("calm line", calm), ("busy grid", busy), ("fragments", fragments)]
}

/// A row of the table.
fn row(table: &mut String, name: &str, seed: u64, outcome: &Outcome) {
    let ended = |ending: fn(Ending) -> bool| {
        outcome.transactions.iter().filter(|t| ending(t.ending)).count()
    };
    let acknowledged = ended(|ending| ending == Ending::Acknowledged);
    let failed = ended(|ending| matches!(ending, Ending::Failed(_)));
    let mut delays: Vec<u64> =
        outcome.transactions.iter().filter_map(|t| Some(t.delay()?.as_millis())).collect();
    delays.sort_unstable();
    let median = delays.get(delays.len() / 2).copied().unwrap_or_default();
    let joined = outcome.nodes[1..].iter().filter(|node| node.joined.is_some()).count();
    let last = outcome.nodes.iter().filter_map(|node| node.joined).max();
    let last = last.map_or(0.0, Instant::as_secs_f64);
    let duty = outcome.nodes.iter().map(|node| node.duty_cycle).sum::<f64>();
    let duty = 100.0 * duty / outcome.nodes.len() as f64;
    let cells: u32 = outcome.nodes.iter().map(|node| node.negotiated_cells).sum();
    let frames: u64 = outcome.nodes.iter().map(|node| node.frames_sent).sum();
    let dropped: u64 = outcome.drops.values().sum();
    writeln!(
        table,
        "{name:<10} {seed:>4} {joined:>6} {last:>7.0} {acknowledged:>5} {failed:>6} {median:>9} \
         {duty:>6.2} {cells:>5} {frames:>6} {dropped:>7}"
    )
    .expect("a string takes it");
}

#[test]
fn three_small_worlds_give_these_indicators() {
    let mut table = String::from(
        "scenario   seed joined  last_s acked failed median_ms duty_% cells frames dropped\n",
    );
    for (name, config) in scenarios() {
        for seed in [1, 2, 3] {
            row(&mut table, name, seed, &run(config.clone(), seed));
        }
    }
    insta::assert_snapshot!(table);
}
