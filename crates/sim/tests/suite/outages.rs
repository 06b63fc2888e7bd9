//! A link that is silent for a while.

use lowmesh_sim::air::{Link, Links, Medium, Overlap};
use lowmesh_sim::{Mesh, NodeParts, PAN};
use lowmesh_units::{Dbm, Duration, Instant, NodeId, Seed};

const FROM: Instant = Instant::from_secs(900);
const TO: Instant = Instant::from_secs(1500);

/// Two nodes with a perfect link that is silent from [`FROM`] to [`TO`].
#[derive(Debug)]
struct Outage {
    links: Links,
    next: Option<Instant>,
}

fn links(pdr: f64) -> Links {
    Links::flat(2, |_, _| Some(Link::dictated(Dbm(-60.0), pdr)))
}

impl Medium for Outage {
    fn name(&self) -> &'static str {
        "outage"
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::Collision
    }
    fn noise(&self) -> Dbm {
        Dbm(-100.0)
    }
    fn next_change(&self) -> Option<Instant> {
        self.next
    }
    fn advance(&mut self, now: Instant) {
        let is_silent = now >= FROM && now < TO;
        self.links = links(if is_silent { 0.0 } else { 1.0 });
        self.next = [FROM, TO].into_iter().find(|change| *change > now);
    }
}

fn mesh(seed: u64) -> Mesh {
    let medium = Outage { links: links(1.0), next: Some(FROM) };
    Mesh::builder(Seed(seed))
        .medium(Box::new(medium))
        .node(NodeId(0), NodeParts::border_router(PAN))
        .nodes(1..=1, |_| NodeParts::router(PAN))
        .build()
        .expect("two nodes")
}

#[test]
fn a_node_that_finds_its_network_again_has_a_parent_soon_and_keeps_it() {
    for seed in 1..=10 {
        let mut mesh = mesh(seed);
        mesh.advance(FROM);
        assert_eq!(mesh.snapshot().nodes[1].parent, Some(NodeId(0)), "seed {seed}");
        mesh.advance(TO);
        assert!(!mesh.snapshot().nodes[1].is_synchronised, "seed {seed}");
        while !mesh.snapshot().nodes[1].is_synchronised {
            mesh.run_for(Duration::from_secs(1));
            assert!(mesh.now() < TO + Duration::from_secs(3600), "seed {seed}");
        }
        mesh.run_for(Duration::from_secs(30));
        for second in 0..600 {
            let node = &mesh.snapshot().nodes[1];
            assert_eq!(node.parent, Some(NodeId(0)), "seed {seed}, {second} s later");
            mesh.run_for(Duration::from_secs(1));
        }
    }
}
