//! An application of one's own on a simulated mesh: a lamp on every node, and a switch at the root that turns them on
//! one after the other with confirmable PUT requests.

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::settings::simulation;
use lowmesh_sim::{Sinks, World};
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Snapshot};
use lowmesh_stack::COAP_PORT;
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
    // A mesh of 25 nodes without traffic of its own.
    let sets = ["duration=20min", "traffic.application=poll", "traffic.start=19min"];
    let scenario = Scenario::load("grid-25", &sets.map(str::to_owned))?;
    let mut world = World::new(simulation(&scenario), Seed(1), Sinks::default())?;
    let lamps: Vec<Address> = world.nodes()[1..].iter().map(|node| node.global_address()).collect();
    for node in 1..=lamps.len() {
        world.install(NodeId(node as u16), Box::new(Lamp::default()))?;
    }
    let switch = Switch { lamps, next: Instant::from_secs(600), answered: 0 };
    world.install(NodeId(0), Box::new(switch))?;

    let is_on = |world: &World| {
        let shown = world.nodes().iter().flat_map(|node| node.snapshots());
        shown.filter(|one| one.name == "lamp" && one.counters[0].1 == 1).count()
    };
    for minute in [9, 11, 13, 15] {
        world.advance(Instant::from_secs(60 * minute), &|_| ());
        println!("{minute:2} min: {:2} lamps are on", is_on(&world));
    }
    assert!(is_on(&world) >= 23, "the mesh has lost too many requests");
    Ok(())
}
