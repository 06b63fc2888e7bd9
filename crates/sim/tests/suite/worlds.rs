//! Worlds for tests: a plain one to vary, and random ones, each from one number.

use lowmesh_coap::CongestionControl;
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_registry::{Choice, Registry};
use lowmesh_rpl::Mode;
use lowmesh_sim::air::interference::{Loudness, Usage};
use lowmesh_sim::air::{Interferer, Medium, build, link_table, pister_hack, unit_disk};
use lowmesh_sim::record::Outcome;
use lowmesh_sim::topology::{Topology, TopologySpec};
use lowmesh_sim::traffic::Application;
use lowmesh_sim::{Carrier, Event, Mesh, NodeParts, Sinks, traffic};
use lowmesh_sixtop::SchedulingFunction;
use lowmesh_sixtop::functions::msf;
use lowmesh_units::{Dbm, Duration, Instant, NodeId, Purpose, Rng, Seed};

/// A mesh with one border router, whose nodes are all made of the same parts.
#[derive(Clone, Debug)]
pub struct Config {
    pub duration: Duration,
    pub topology: TopologySpec,
    pub medium: Choice<dyn Medium>,
    pub interferers: Vec<Interferer>,
    pub carrier: Carrier,
    pub drift_max_ppm: f64,
    pub boot_spread: Duration,
    pub node: lowmesh_stack::Config,
    pub traffic: traffic::Config,
    /// Nodes that run no RPL.
    pub leaves: Vec<NodeId>,
    /// Nodes that are switched off for good, and when.
    pub failures: Vec<(NodeId, Duration)>,
    pub events: Vec<(Instant, Event)>,
}

impl Config {
    /// The mesh at its start.
    pub fn mesh(self, seed: u64, sinks: Sinks) -> Result<Mesh, lowmesh_sim::Error> {
        let seed = Seed(seed);
        let topology = self.topology.place(seed)?;
        let parts = NodeParts { carrier: self.carrier, ..NodeParts::new(self.node) }
            .drift(self.drift_max_ppm)
            .boot_within(self.boot_spread);
        let root = NodeParts { is_border_router: true, ..parts.clone() };
        let medium = build(self.medium.clone(), &topology, seed)?;
        let mut builder = Mesh::builder(seed).medium(medium);
        if let Some(positions) = topology.positions() {
            let choice = self.medium;
            builder = builder.positions(positions).movable(move |positions| {
                build(choice.clone(), &Topology::placed(positions.to_vec()), seed)
            });
        }
        builder
            .interferers(self.interferers)
            .node(NodeId(0), root)
            .nodes(1..topology.nodes() as u16, |id| {
                let own = self.failures.iter().find(|(node, _)| *node == id);
                let mut node =
                    NodeParts { fails_after: own.map(|(_, time)| *time), ..parts.clone() };
                node.stack.is_leaf = self.leaves.contains(&id);
                node
            })
            .traffic(self.traffic)
            .events(self.events)
            .sinks(sinks)
            .build()
    }
}

/// Five nodes in a line that hear their neighbours only, perfectly; B-MSF, one CON POST a node every 10 s.
pub fn line(nodes: usize) -> Config {
    let mut node = lowmesh_stack::Config {
        scheduling: Choice::from(&msf::B_MSF),
        ..lowmesh_stack::Config::default()
    };
    node.mac.hopping = HoppingSequence::sixteen();
    node.lowpan.frame_payload = lowmesh_mac::frame::PAYLOAD_OCTETS_MAX;
    Config {
        duration: Duration::from_secs(900),
        topology: TopologySpec::Line { nodes, spacing_m: 40.0 },
        medium: disk(1.0),
        interferers: Vec::new(),
        carrier: Carrier::default(),
        drift_max_ppm: 20.0,
        boot_spread: Duration::from_secs(1),
        node,
        traffic: traffic::Config {
            start: Duration::from_secs(120),
            period: Duration::from_secs(10),
            ..traffic::Config::readings()
        },
        leaves: Vec::new(),
        failures: Vec::new(),
        events: Vec::new(),
    }
}

/// The same with so many beacons that all nodes join in a few minutes, for what is not about joining.
pub fn quick(mut config: Config) -> Config {
    config.node.mac.eb_period = Duration::from_secs(2);
    config.node.mac.broadcast_spacing = 0;
    config
}

/// A disk of 50 m in which the share `edge` of frames arrives at the edge.
pub fn disk(edge: f64) -> Choice<dyn Medium> {
    let disk = Choice::from(&unit_disk::ROW).with("interference_range_m", 60.0);
    disk.and_then(|disk| disk.with("edge_ratio", edge)).expect("within bounds")
}

/// Nodes of which each hears the others with these chances.
pub fn matrix_of(pdr: Vec<Vec<f64>>) -> Choice<dyn Medium> {
    Choice::from(&link_table::PDR_MATRIX).with("matrix", pdr).expect("a square of shares")
}

/// Runs `config` to its end.
pub fn run(config: Config, seed: u64) -> Outcome {
    watched(config, seed, Sinks::default()).expect("the books balance")
}

/// The same, written to `sinks`.
pub fn watched(config: Config, seed: u64, sinks: Sinks) -> Result<Outcome, lowmesh_sim::Error> {
    let duration = config.duration;
    let mut mesh = config.mesh(seed, sinks)?;
    mesh.run_for(duration);
    mesh.finish()
}

/// A mesh at its start.
pub fn mesh(config: Config, seed: u64) -> Mesh {
    config.mesh(seed, Sinks::default()).expect("parts that fit together")
}

/// Every scheduling function, by name.
pub fn functions() -> [(&'static str, Choice<dyn SchedulingFunction>); 6] {
    ["minimal", "msf", "msf/backlog", "b-msf", "alice", "orchestra"]
        .map(|name| (name, Registry::builtin().choose(name).expect("a built-in function")))
}

/// A small world in which everything that a scenario can choose is chosen by `number`.
pub fn random(number: u64) -> Config {
    let mut rng = Rng::stream(Seed(number), NodeId(0), Purpose::Swarm);
    let mut config = line(1);
    let nodes = 2 + rng.below(9) as usize;
    config.topology = match rng.below(4) {
        0 => TopologySpec::Grid { rows: 2, cols: nodes.div_ceil(2), spacing_m: 33.0 },
        1 => TopologySpec::Line { nodes, spacing_m: 38.0 },
        2 => TopologySpec::Star { nodes, radius_m: 30.0 },
        _ => TopologySpec::random_square(nodes),
    };
    let placed_for_pister = matches!(config.topology, TopologySpec::RandomSquare { .. });
    config.medium = if placed_for_pister {
        (&pister_hack::ROW).into()
    } else {
        disk(pick(&mut rng, &[1.0, 0.8, 0.5]))
    };
    if rng.chance(0.3) {
        config.interferers.push(Interferer::Wifi {
            channel: 1 + rng.below(13) as u8,
            duty_cycle: rng.between(0.05, 0.4),
            usage: Usage::default(),
            loudness: Loudness::Everywhere(Dbm(-75.0)),
        });
    }
    config.drift_max_ppm = pick(&mut rng, &[0.0, 10.0, 40.0]);
    config.boot_spread = Duration::from_secs(pick(&mut rng, &[1, 60]));
    let mode = pick(&mut rng, &[Mode::Storing, Mode::NonStoring]);
    let objective = pick(&mut rng, &["of0", "mrhof", "mrhof/classic"]);
    let objective = Registry::builtin().choose(objective).expect("a built-in function");
    config.node.scheduling = functions()[rng.below(6) as usize].1.clone();
    config.node.rpl = config.node.rpl.with_mode(mode).with_objective(objective);
    config.node.rpl.dao_ack = rng.chance(0.5);
    config.node.mac.queue_frames_max = pick(&mut rng, &[4, 8, 16]);
    config.node.mac.retries_max = pick(&mut rng, &[0, 1, 7]);
    config.node.mac.eb_period = Duration::from_secs(pick(&mut rng, &[2, 16]));
    config.node.lowpan.reassembly_buffers = pick(&mut rng, &[1, 4]);
    let nstart = pick(&mut rng, &[1, 4]);
    config.node.coap.congestion = CongestionControl::default().with_nstart(nstart);
    config.traffic.period = Duration::from_millis(pick(&mut rng, &[500, 2_000, 30_000]));
    config.traffic.payload_octets = pick(&mut rng, &[1, 20, 120, 300]);
    let (confirmable, path) = (rng.chance(0.7), "sensor".into());
    config.traffic.application = Application::Coap { confirmable, path };
    config
}

fn pick<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u32) as usize].clone()
}
