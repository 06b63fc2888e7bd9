//! A medium of one's own: a corridor with a fire door that opens and closes.
//!
//! Nodes stand in a row. The door behind the middle weakens what passes it; it is shut for the first ten minutes of
//! every half hour. Frames survive by a curve that is simpler than the standard's. The row gives the medium a name and
//! a key in the scenario section `[radio]`.

use std::error::Error;

use lowmesh_lab::scenario::Rows;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_registry::{Choice, Parameter, Registry, Row};
use lowmesh_sim::air::{
    Link, Links, MakeMedium, Medium, Needs, Overlap, SECTION, build, conformance,
};
use lowmesh_sim::topology::{Topology, TopologySpec};
use lowmesh_units::{Dbm, Duration, Instant, Seed};

static CORRIDOR: Row<dyn Medium> = Row {
    name: "corridor",
    summary: "Nodes in a row, with a fire door behind the middle",
    section: SECTION,
    parameters: &[Parameter::number("door_db", 30.0, 0.0, 100.0, "Loss of a shut door")
        .unit("dB")
        .source("ours")],
    make: MakeMedium {
        needs: Needs::Table(|_| None),
        build: |choice, topology, _| {
            Ok(Box::new(Corridor::new(topology, choice.number("door_db"))))
        },
    },
};

const SPACING_M: f64 = 30.0;
const SHUT: Duration = Duration::from_secs(600);
const OPEN: Duration = Duration::from_secs(1200);

#[derive(Debug)]
struct Corridor {
    nodes: usize,
    door_db: f64,
    links: Links,
    is_shut: bool,
    next: Instant,
}

impl Corridor {
    fn new(topology: &Topology, door_db: f64) -> Self {
        let nodes = topology.nodes();
        let (links, next) = (links(nodes, door_db), Instant::ZERO + SHUT);
        Self { nodes, door_db, links, is_shut: true, next }
    }
}

/// All pairs, for a door that takes so much. A pair that may ever hear each other is in the table, so a shut door makes
/// links weak, not absent.
fn links(nodes: usize, door_db: f64) -> Links {
    Links::flat(nodes, |from, to| {
        let is_behind = |index: usize| 2 * index >= nodes;
        let metres = SPACING_M * f64::from(from.0.abs_diff(to.0));
        let door_db = if is_behind(from.index()) == is_behind(to.index()) { 0.0 } else { door_db };
        Some(Link::radiated(Dbm(-(60.0 + 0.8 * metres + door_db))))
    })
}

/// The chance of `octets` octets: none below an SINR of 3, all from 30 on. The rules of the trait ask for the same
/// number on every machine, which multiplications and square roots give.
fn curve(sinr: f64, octets: f64) -> f64 {
    let octet = ((sinr - 3.0) / 27.0).clamp(0.0, 1.0);
    (0..octets.round() as u32).fold(1.0, |chance, _| chance * octet.sqrt().sqrt().sqrt())
}

impl Medium for Corridor {
    fn name(&self) -> &'static str {
        CORRIDOR.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::Curve(curve)
    }
    fn noise(&self) -> Dbm {
        Dbm(-100.0)
    }
    fn next_change(&self) -> Option<Instant> {
        Some(self.next)
    }
    fn advance(&mut self, now: Instant) {
        while self.next <= now {
            self.is_shut = !self.is_shut;
            self.next += if self.is_shut { SHUT } else { OPEN };
        }
        self.links = links(self.nodes, if self.is_shut { self.door_db } else { 0.0 });
    }
}

const SCENARIO: &str = "name = 'corridor'\nduration = '2h'\ntopology = { kind = 'table', nodes = 6 }\n\
    radio = { medium = 'corridor', door_db = 35 }\n";

fn main() -> Result<(), Box<dyn Error>> {
    // What every medium must keep; call it in a test of yours. `build` gives what `Mesh::builder()` takes.
    conformance::check(&CORRIDOR)?;
    let five = TopologySpec::Unplaced { nodes: 5 }.place(Seed(1))?;
    let corridor = Choice::from(&CORRIDOR).with("door_db", 20.0)?;
    conformance::check_made(|| build(corridor.clone(), &five, Seed(1)).expect("any nodes fit"))?;

    let rows = Rows { media: Registry::builtin().with(&CORRIDOR), ..Rows::default() };
    let swept = rows.read("corridor.toml", SCENARIO, &["traffic.period=30s".to_owned()])?;
    let outcome = simulate(&swept.points[0].1, Seed(1), Sinks::default(), &|_| ())?;
    for (index, node) in outcome.nodes.iter().enumerate() {
        println!("node {index} joined at {:?}", node.joined);
    }
    let good = outcome.transactions.iter().filter(|reading| reading.delay().is_some()).count();
    println!("{good} of {} readings were answered", outcome.transactions.len());
    assert!(good > 0 && outcome.nodes[5].joined.is_some_and(|at| at > Instant::ZERO + SHUT));
    Ok(())
}
