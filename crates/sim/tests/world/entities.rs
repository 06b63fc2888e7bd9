//! An entity in a mesh, which a node observes: the manager observes the members.

use lowmesh_applications::{Arrivals, Entities, Schedule, Sensor};
use lowmesh_coap::RequestTemplate;
use lowmesh_group::Config;
use lowmesh_sim::air::{build, unit_disk};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::{Mesh, NodeParts, PAN, prefix_of};
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, HostHandle, Input, RequestId, Snapshot};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Class, Code, OptionNumber};
use lowmesh_wire::ipv6::Address;

const SEED: Seed = Seed(5);
const START: Duration = Duration::from_secs(1800);
/// How often a sensor changes.
const PERIOD: Duration = Duration::from_secs(60);

/// Creates an entity, observes it, and after a while ends the observation.
#[derive(Debug)]
struct Watcher {
    manager: Address,
    document: String,
    next: Option<Instant>,
    created: bool,
    observation: Option<RequestId>,
    end: Instant,
    states: Vec<(Instant, Vec<u8>)>,
    refused: u64,
}

impl Watcher {
    /// States that differ from the one before.
    fn changes(&self) -> u64 {
        self.states.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64
    }
}

impl Application for Watcher {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Deadline if self.next.is_some_and(|next| next <= now) => {
                self.next = None;
                if let Some(observation) = self.observation {
                    host.deregister(observation);
                } else if self.created {
                    let mut message = RequestTemplate::get("e/room");
                    message.options.set_uint(OptionNumber::OBSERVE, 0);
                    self.observation = Some(host.request((self.manager, COAP_PORT), message));
                    self.next = Some(self.end);
                } else {
                    let document = self.document.clone().into_bytes();
                    let message = RequestTemplate::new(Code::POST, "e").with_payload(document);
                    host.request((self.manager, COAP_PORT), message);
                }
            }
            Input::Response { request, message, .. } if self.observation != Some(request) => {
                self.created = message.code == Code::CREATED;
                self.next = Some(now + Duration::from_secs(1));
            }
            Input::Notification { message, .. } if message.code.class() == Class::Success => {
                self.states.push((now, message.payload));
            }
            Input::Response { .. } | Input::Failed { .. } | Input::Refused { .. } => {
                self.refused += 1;
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.next
    }
    fn snapshot(&self) -> Snapshot {
        let late = self.states.iter().filter(|(at, _)| *at > self.end + PERIOD).count() as u64;
        let states = self.states.len() as u64;
        let counters = vec![
            ("states", states),
            ("changes", self.changes()),
            ("late", late),
            ("refused", self.refused),
        ];
        Snapshot { name: "watcher", counters }
    }
}

fn counter(mesh: &Mesh, application: &str, name: &str) -> u64 {
    let mut all = mesh.nodes().iter().flat_map(lowmesh_stack::Node::snapshots);
    let snapshot = all.find(|one| one.name == application).expect("it is installed");
    snapshot.counters.iter().find(|(one, _)| *one == name).expect("it counts that").1
}

#[test]
fn a_node_observes_an_entity_and_the_manager_its_members() {
    let line =
        TopologySpec::Grid { rows: 1, cols: 4, spacing_m: 30.0 }.place(SEED).expect("a line");
    let addressing = NodeParts::router(PAN).stack.addressing;
    let address = |node| Address::global(prefix_of(PAN), addressing.eui64(SEED, NodeId(node)));
    let rng = |node| Rng::stream(SEED, NodeId(node), Purpose::Traffic);
    let sensor = |node| {
        let arrivals = Arrivals::Periodic { period: PERIOD, jitter: 0.0 };
        Sensor::new("s".to_owned(), 4, Schedule::new(arrivals, Duration::ZERO, None, rng(node)))
    };
    let member = |node| format!("\"coap://[{}]/s\"", std::net::Ipv6Addr::from(address(node)));
    let (next, end) = (Some(Instant::ZERO + START), Instant::ZERO + START + PERIOD * 10);
    let watcher = Watcher {
        manager: address(0),
        document: format!("{{\"name\":\"room\",\"er\":[{},{}]}}", member(1), member(2)),
        next,
        created: false,
        observation: None,
        end,
        states: Vec::new(),
        refused: 0,
    };
    let manager = Entities::new(Config::default(), Duration::ZERO, rng(0)).expect("empty");
    let mut mesh = Mesh::builder(SEED)
        .medium(build(&unit_disk::ROW, &line, SEED).expect("possible"))
        .node(NodeId(0), NodeParts::border_router(PAN))
        .nodes(1..4, |_| NodeParts::router(PAN))
        .application(NodeId(0), manager)
        .application(NodeId(1), sensor(1))
        .application(NodeId(2), sensor(2))
        .application(NodeId(3), watcher)
        .build()
        .expect("possible");
    mesh.run_for(START + PERIOD * 10);
    // Each sensor has changed about ten times, and each change has reached the client.
    let (states, changes) =
        (counter(&mesh, "watcher", "states"), counter(&mesh, "watcher", "changes"));
    assert_eq!(counter(&mesh, "watcher", "refused"), 0);
    assert!((15..=21).contains(&changes), "{changes} changes in {states} states");
    mesh.run_for(PERIOD * 10);
    // The observation has ended.
    assert_eq!(counter(&mesh, "watcher", "late"), 0);
}
