//! An application of one's own on a simulated mesh: a lamp on every node, and a switch at the root that turns them on
//! one after the other with confirmable PUT requests.

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_sim::air::{build, unit_disk};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::{Mesh, NodeParts, PAN, prefix_of};
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Snapshot};
use lowmesh_units::{Duration, Instant, NodeId, Seed};
use lowmesh_wire::coap::Code;
use lowmesh_wire::ipv6::Address;

/// A lamp: a resource that takes 0 and 1.
#[derive(Debug, Default)]
struct Lamp {
    is_on: bool,
}

impl Application for Lamp {
    fn claims(&self) -> Claims {
        Claims { paths: vec!["lamp".to_owned()], ports: Vec::new() }
    }
    fn handle(&mut self, _now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Input::Request { exchange, message, .. } = input {
            self.is_on = message.payload == b"1";
            host.respond(exchange, ResponseTemplate::new(Code::CHANGED));
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "lamp", counters: vec![("on", self.is_on.into())] }
    }
}

/// The switch: one lamp every second.
#[derive(Debug)]
struct Switch {
    lamps: Vec<Address>,
    next: Instant,
    answered: u64,
}

impl Application for Switch {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Deadline => {
                if let Some(lamp) = self.lamps.pop() {
                    let message = RequestTemplate::new(Code::PUT, "lamp").with_payload(vec![b'1']);
                    host.request((lamp, COAP_PORT), message);
                }
                self.next = now + Duration::from_secs(1);
            }
            Input::Response { .. } => self.answered += 1,
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        (!self.lamps.is_empty()).then_some(self.next)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "switch", counters: vec![("answered", self.answered)] }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (seed, nodes) = (Seed(1), 9);
    let grid = TopologySpec::Grid { rows: 3, cols: 3, spacing_m: 30.0 }.place(seed)?;
    let mut builder = Mesh::builder(seed)
        .medium(build(&unit_disk::ROW, &grid, seed)?)
        .node(NodeId(0), NodeParts::border_router(PAN))
        .nodes(1..nodes, |_| NodeParts::router(PAN));
    let addressing = NodeParts::router(PAN).stack.addressing;
    let address = |node| Address::global(prefix_of(PAN), addressing.eui64(seed, node));
    let lamps: Vec<Address> = (1..nodes).map(|node| address(NodeId(node))).collect();
    for node in 1..nodes {
        builder = builder.application(NodeId(node), Lamp::default());
    }
    let switch = Switch { lamps, next: Instant::from_secs(1800), answered: 0 };
    let mut mesh = builder.application(NodeId(0), switch).build()?;

    let lit = |mesh: &Mesh| {
        let shown = mesh.nodes().iter().flat_map(|node| node.snapshots());
        shown.filter(|one| one.name == "lamp" && one.counters[0].1 == 1).count()
    };
    for minute in [29, 31, 33, 35] {
        mesh.advance(Instant::from_secs(60 * minute));
        println!("{minute:2} min: {} of {} lamps are on", lit(&mesh), nodes - 1);
    }
    assert!(lit(&mesh) >= 7, "the mesh has lost too many requests");
    Ok(())
}
