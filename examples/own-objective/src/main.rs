//! An objective function of one's own: one file and one row.
//!
//! The function counts hops, as long as links are good: a link up to a limit costs one hop, and a worse link costs two. Its
//! row gives it a name and a section in scenario files, with bounds, unit and errors.

use std::error::Error;

use lowmesh_lab::scenario::Rows;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_registry::{Parameter, Registry, Row};
use lowmesh_rpl::objective::conformance;
use lowmesh_rpl::params::LAST_RESORT_LINK_METRIC;
use lowmesh_rpl::{Etx, ObjectiveFunction};
use lowmesh_units::{Duration, Rank};

static GOOD_HOPS: Row<dyn ObjectiveFunction> = Row {
    name: "good-hops",
    summary: "Fewest hops, in which a poor link counts for two",
    section: "good-hops",
    parameters: &[Parameter::number(
        "good_etx",
        1.5,
        1.0,
        8.0,
        "The worst link that counts for one hop",
    )
    .unit("ETX")
    .source("ours")],
    make: |choice| Box::new(GoodHops { good: Etx::from_f64(choice.number("good_etx")) }),
};

#[derive(Debug)]
struct GoodHops {
    good: Etx,
}

impl ObjectiveFunction for GoodHops {
    fn name(&self) -> &'static str {
        GOOD_HOPS.name
    }
    fn code_point(&self) -> u16 {
        // RFC 6550 s20.5: IANA assigns these; this one is far from those in use.
        0xff00
    }
    fn min_hop_rank_increase(&self) -> u16 {
        256
    }
    fn max_link_metric(&self) -> Etx {
        Etx(LAST_RESORT_LINK_METRIC)
    }
    fn rank_through(&self, neighbour: Rank, etx: Etx, min_hop: u16) -> Rank {
        if neighbour == Rank::INFINITE || etx > self.max_link_metric() {
            return Rank::INFINITE;
        }
        let hops = if etx <= self.good { 1 } else { 2 };
        neighbour.0.checked_add(min_hop.saturating_mul(hops)).map_or(Rank::INFINITE, Rank)
    }
    fn switch_threshold(&self) -> u32 {
        // Less than one hop: every shorter path is worth a switch.
        255
    }
    fn switch_after(&self) -> Option<Duration> {
        None
    }
    fn measures_first(&self) -> bool {
        true
    }
}

const SCENARIO: &str = r#"
name = "yard"
duration = "30min"
topology = { kind = "grid", rows = 3, cols = 3 }
radio = { medium = "unit-disk" }
sweep = { "rpl.objective" = ["of0", "good-hops"] }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // What every objective function must keep; call it in a test of yours.
    conformance::check(&GOOD_HOPS)?;

    let rows = || Rows { objectives: Registry::builtin().with(&GOOD_HOPS), ..Rows::default() };
    for (settings, scenario) in rows().read("yard.toml", SCENARIO, &[])?.points {
        let seed = scenario.seeds().next().ok_or("a scenario has a seed")?;
        let outcome = simulate(&scenario, seed, Sinks::default(), &|_| ())?;
        let hops: Vec<u32> = outcome.nodes.iter().filter_map(|node| node.hops).collect();
        let all = outcome.transactions.len();
        let answered = outcome.transactions.iter().filter(|one| one.delay().is_some()).count();
        println!(
            "{}: {answered} of {all} requests were answered over {hops:?} hops",
            settings[0].1
        );
        assert!(hops.len() == 9 && all > 0 && 10 * answered > 9 * all);
    }

    // Errors know the row too.
    let flags = ["rpl.objective=good-hops".to_owned(), "good-hops.good_etx=0.5".to_owned()];
    let errors = rows().read("yard.toml", SCENARIO, &flags).expect_err("no link is better than 1");
    println!("{errors}");
    assert!(errors.to_string().contains("good_etx = 0.5: must be a number from 1 to 8"));
    Ok(())
}
