//! A medium of one's own: a corridor with a fire door that opens and closes.
//!
//! Five nodes stand in a row. The door between nodes 2 and 3 weakens what passes it by 30 dB; it is shut for the
//! first ten minutes of every half hour. Frames survive by a curve that is simpler than the standard's.

use lowmesh_sim::air::{Link, Links, Medium, Overlap, conformance};
use lowmesh_sim::{Mesh, NodeParts, PAN, traffic};
use lowmesh_units::{Dbm, Duration, Instant, NodeId, Seed};

const NODES: u16 = 5;
const SPACING_M: f64 = 30.0;
const DOOR_DB: f64 = 30.0;
/// The first node behind the door.
const BEHIND: u16 = 3;
const SHUT: Duration = Duration::from_secs(600);
const OPEN: Duration = Duration::from_secs(1200);

#[derive(Debug)]
struct Corridor {
    links: Links,
    is_shut: bool,
    next: Instant,
}

impl Corridor {
    fn new() -> Self {
        Self { links: links(true), is_shut: true, next: Instant::ZERO + SHUT }
    }
}

/// All pairs, for a door that is shut or open. A pair that may ever hear each other is in the table, so a shut door
/// makes links weak, not absent.
fn links(is_shut: bool) -> Links {
    Links::flat(usize::from(NODES), |from, to| {
        let metres = SPACING_M * f64::from(from.0.abs_diff(to.0));
        let door_db = if is_shut && (from.0 < BEHIND) != (to.0 < BEHIND) { DOOR_DB } else { 0.0 };
        let loss_db = 60.0 + 0.8 * metres + door_db;
        Some(Link::radiated(Dbm(-loss_db)))
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
        "corridor"
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
        self.links = links(self.is_shut);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // What every medium must keep; call it in a test of yours.
    conformance::check(|| Box::new(Corridor::new()))?;

    let readings =
        traffic::Config { period: Duration::from_secs(30), ..traffic::Config::readings() };
    let mut mesh = Mesh::builder(Seed(1))
        .medium(Box::new(Corridor::new()))
        .node(NodeId(0), NodeParts::border_router(PAN))
        .nodes(1..NODES, |_| NodeParts::router(PAN))
        .traffic(readings)
        .build()?;
    for _ in 0..12 {
        mesh.run_for(Duration::from_secs(600));
        let snapshot = mesh.snapshot();
        let up = |node: &&lowmesh_sim::NodeSnapshot| node.is_joined;
        println!(
            "{:>6}: {} of {NODES} joined",
            snapshot.now,
            snapshot.nodes.iter().filter(up).count()
        );
    }
    let outcome = mesh.finish()?;
    let good = outcome.transactions.iter().filter(|reading| reading.delay().is_some()).count();
    println!("{good} of {} readings were answered", outcome.transactions.len());
    assert!(good > 0 && outcome.nodes[4].joined.is_some_and(|at| at > Instant::ZERO + SHUT));
    Ok(())
}
