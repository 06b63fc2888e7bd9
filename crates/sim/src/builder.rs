//! The builder of a mesh: a medium, nodes with their parts, and applications.

use std::collections::BTreeMap;

use lowmesh_stack::{Application, LinkLayer, Node, Routes};
use lowmesh_units::{Duration, Instant, NodeId, PanId, Purpose, Rng, Seed};

use crate::air::error::{BuildError, ConfigError};
use crate::air::{Interference, Interferer, Medium, Position};
use crate::backbone::{Backbone, LineParts, UplinkSink, Wire};
use crate::blueprint::Blueprint;
use crate::capture::Capture;
use crate::clock::Clock;
use crate::driver::{Contended, Driver, Slotted, Tuning};
use crate::error::Error;
use crate::event::{Event, Memory, check_plan};
use crate::mesh::{Mesh, Plan, Sinks};
use crate::moving::{Rebuild, Site, UNMOVABLE};
use crate::names::Names;
use crate::parts::{NodeParts, Part};
use crate::trace::Trace;
use crate::traffic;
use crate::world::{Beginning, World};

/// Builder of a [`Mesh`]; [`Mesh::builder`] returns one.
#[derive(Debug)]
pub struct Builder {
    seed: Seed,
    medium: Option<Box<dyn Medium>>,
    positions: Option<Vec<Position>>,
    rebuild: Option<Rebuild>,
    interferers: Vec<Interferer>,
    nodes: BTreeMap<NodeId, NodeParts>,
    /// A node that was given twice.
    twice: Option<NodeId>,
    traffic: traffic::Config,
    applications: Vec<(NodeId, Box<dyn Application>)>,
    backbone: Option<Wire>,
    lines: Vec<(NodeId, NodeId, LineParts)>,
    uplink: Uplink,
    sinks: Sinks,
    events: Vec<(Instant, Event)>,
}

/// The sink of packets for other networks.
#[derive(Default)]
struct Uplink(Option<UplinkSink>);

impl std::fmt::Debug for Uplink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Uplink(given)" } else { "Uplink(none)" })
    }
}

impl Mesh {
    /// Returns a builder of a mesh whose random numbers come from `seed`.
    pub fn builder(seed: Seed) -> Builder {
        Builder {
            seed,
            medium: None,
            positions: None,
            rebuild: None,
            interferers: Vec::new(),
            nodes: BTreeMap::new(),
            twice: None,
            traffic: traffic::Config::silent(),
            applications: Vec::new(),
            backbone: None,
            lines: Vec::new(),
            uplink: Uplink::default(),
            sinks: Sinks::default(),
            events: Vec::new(),
        }
    }
}

impl Builder {
    /// Sets the medium: one of [`air`](crate::air), or your own.
    #[must_use]
    pub fn medium(mut self, medium: Box<dyn Medium>) -> Self {
        self.medium = Some(medium);
        self
    }

    /// Sets the positions of the nodes. Only interferers with a position need them; a medium has its own.
    #[must_use]
    pub fn positions(mut self, positions: &[Position]) -> Self {
        self.positions = Some(positions.to_vec());
        self
    }

    /// Lets events move nodes: `rebuild` makes the medium for other positions. [`Builder::positions`] gives the first positions.
    #[must_use]
    pub fn movable(
        mut self,
        rebuild: impl Fn(&[Position]) -> Result<Box<dyn Medium>, BuildError> + Send + 'static,
    ) -> Self {
        self.rebuild = Some(Rebuild(Box::new(rebuild)));
        self
    }

    /// Sets the interferers.
    #[must_use]
    pub fn interferers(mut self, interferers: Vec<Interferer>) -> Self {
        self.interferers = interferers;
        self
    }

    /// Adds a node. Nodes are numbered from 0 without a gap.
    #[must_use]
    pub fn node(mut self, id: NodeId, parts: NodeParts) -> Self {
        if self.nodes.insert(id, parts).is_some() {
            self.twice = Some(id);
        }
        self
    }

    /// Adds several nodes.
    #[must_use]
    pub fn nodes(
        self,
        numbers: impl IntoIterator<Item = u16>,
        parts: impl Fn(NodeId) -> NodeParts,
    ) -> Self {
        let ids = numbers.into_iter().map(NodeId);
        ids.fold(self, |builder, id| builder.node(id, parts(id)))
    }

    /// Sets the traffic of the nodes; without this call there is none.
    #[must_use]
    pub fn traffic(mut self, traffic: traffic::Config) -> Self {
        self.traffic = traffic;
        self
    }

    /// Adds an application to a node, in addition to those of [`Builder::traffic`].
    #[must_use]
    pub fn application(mut self, id: NodeId, application: impl Application + 'static) -> Self {
        self.applications.push((id, Box::new(application)));
        self
    }

    /// Connects the border routers by a wire, which carries packets for other meshes.
    #[must_use]
    pub fn backbone(mut self, wire: Wire) -> Self {
        self.backbone = Some(wire);
        self
    }

    /// Connects two border routers by a line. The far one is reached over its line alone, also where there is a backbone.
    /// A border router without a mesh is a wired host.
    #[must_use]
    pub fn line(mut self, near: NodeId, far: NodeId, parts: LineParts) -> Self {
        self.lines.push((near, far, parts));
        self
    }

    /// Sets the sink of packets for prefixes outside all meshes: it gets the time, the border router, and the packet.
    /// [`Mesh::inject`] sends packets into the mesh.
    #[must_use]
    pub fn uplink(mut self, sink: impl FnMut(Instant, NodeId, &[u8]) + Send + 'static) -> Self {
        self.uplink = Uplink(Some(Box::new(sink)));
        self
    }

    /// Sets where the run writes its capture and trace.
    #[must_use]
    pub fn sinks(mut self, sinks: Sinks) -> Self {
        self.sinks = sinks;
        self
    }

    /// Plans events. Those of one moment happen in the order in which they were given.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = (Instant, Event)>) -> Self {
        self.events.extend(events);
        self
    }

    /// Builds the mesh at time zero; an error says which parts do not fit together.
    pub fn build(mut self) -> Result<Mesh, Error> {
        let medium = self.medium.take().ok_or_else(|| {
            let allowed = "call Builder::medium with one of lowmesh_sim::air or of your own";
            ConfigError::new("medium", &"none", allowed)
        })?;
        let mut nodes = self.consecutive(medium.links().nodes())?;
        let roots = self.settle(&mut nodes)?;
        let (seed, count) = (self.seed, nodes.len());
        let site = self.site()?;
        let interference =
            Interference::new(&self.interferers, count, self.positions.as_deref(), seed)?;
        let ids = || (0..count).map(|n| NodeId(n as u16));
        let (plan, late) = self.plan(&nodes)?;
        let eui64 = |(id, node): (NodeId, &NodeParts)| node.stack.addressing.eui64(seed, id);
        let names = Names::new(ids().zip(&nodes).map(eui64));
        let driver = driver(&nodes)?;
        let backbone = self.connect(&nodes)?;
        let mut machines = ids()
            .zip(&nodes)
            .map(|(id, node)| Node::new(&node.stack, id, node.is_border_router, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let parts = ids().zip(&nodes).zip(&roots);
        let parts: Vec<Part> = parts
            .map(|((id, node), root)| {
                let collector = self.traffic.collector.of(id, &roots);
                part(id, node, (*root, collector), &self.traffic)
            })
            .collect();
        let clocks = ids().zip(&nodes).map(|(id, node)| clock(seed, id, node)).collect();
        let boots = ids().zip(&nodes).map(|(id, node)| boot(seed, id, node)).collect();
        let queried = self.traffic.queried_members();
        let blueprint = Blueprint {
            seed,
            addresses: machines.iter().map(Node::global_address).collect(),
            stacks: nodes.into_iter().map(|node| node.stack).collect(),
            traffic: self.traffic,
            losses: vec![0; count],
        };
        for (id, node) in ids().zip(&mut machines) {
            blueprint.install(id, node, &parts)?;
        }
        for (id, one) in self.applications {
            let Some(node) = machines.get_mut(id.index()) else {
                let allowed = "an application runs on one of the nodes";
                return Err(ConfigError::new(format!("node {id}"), &"missing", allowed).into());
            };
            node.install(one)?;
        }
        let mut world = World::new(Beginning {
            seed,
            nodes: machines,
            parts,
            names,
            clocks,
            boots,
            medium,
            interference,
            backbone,
            blueprint,
            trace: Trace::new(self.sinks.trace),
            capture: self.sinks.pcap.map(Capture::new).transpose().map_err(Error::Capture)?,
        });
        world.books.outcome.entity_members = queried;
        world.site = site;
        for node in late {
            world.start_late(node);
        }
        Ok(Mesh::new(world, driver, plan))
    }

    /// Gives the parts of nodes what they have of the whole mesh; returns the border router of each node.
    fn settle(&self, nodes: &mut [NodeParts]) -> Result<Vec<NodeId>, ConfigError> {
        let is_open = self.backbone.is_some() || !self.lines.is_empty() || self.uplink.0.is_some();
        for node in &mut *nodes {
            node.stack.uplink |= is_open;
        }
        let (roots, count) = (roots(nodes)?, nodes.len() as u16);
        for (node, root) in nodes.iter_mut().zip(&roots) {
            if let Some(oscore) = &mut node.stack.oscore {
                (oscore.nodes, oscore.root) = (count, *root);
            }
        }
        Ok(roots)
    }

    /// The positions of nodes, if they can move; an error if events move nodes that cannot.
    fn site(&mut self) -> Result<Option<Site>, ConfigError> {
        let moves = |(_, event): &&(Instant, Event)| matches!(event, Event::Move { .. });
        if let Some((rebuild, positions)) = self.rebuild.take().zip(self.positions.clone()) {
            let interferers = self.interferers.clone();
            return Ok(Some(Site { positions, rebuild, interferers }));
        }
        match self.events.iter().find(moves) {
            Some((at, _)) => {
                Err(ConfigError::new(format!("event `move` at {at} s"), &"move", UNMOVABLE))
            }
            None => Ok(None),
        }
    }

    /// The events in order of time, and the nodes that are off from the start.
    fn plan(&mut self, nodes: &[NodeParts]) -> Result<(Plan, Vec<NodeId>), ConfigError> {
        let mut plan = std::mem::take(&mut self.events);
        for (index, after) in
            nodes.iter().enumerate().filter_map(|(i, n)| Some((i, n.fails_after?)))
        {
            let off = Event::Off { node: NodeId(index as u16), memory: Memory::Lost };
            plan.push((Instant::ZERO + after, off));
        }
        plan.sort_by_key(|(at, _)| *at);
        let late = check_plan(&plan, nodes.len()).map_err(|(index, error)| {
            let (at, event) = &plan[index];
            let key = format!("event `{}` at {at} s: {}", event.name(), error.key);
            ConfigError::new(key, &error.value, error.allowed)
        })?;
        Ok((plan.into(), late))
    }

    /// The backbone between the border routers among `nodes`.
    fn connect(&mut self, nodes: &[NodeParts]) -> Result<Backbone, ConfigError> {
        let ids = (0..nodes.len()).map(|n| NodeId(n as u16));
        let heads = ids.zip(nodes).filter(|(_, node)| node.is_border_router);
        let ends: Vec<_> = heads.map(|(id, node)| (node.stack.prefix, id)).collect();
        let lines = std::mem::take(&mut self.lines);
        line_ends(&lines, &ends)?;
        let sink = self.uplink.0.take();
        Backbone::new(self.backbone, ends.into_iter(), lines, sink, self.seed).map_err(|error| {
            ConfigError::new(format!("line: {}", error.key), &error.value, error.allowed)
        })
    }

    /// The parts of nodes 0, 1, ..., as many as the medium has.
    fn consecutive(&mut self, expected: usize) -> Result<Vec<NodeParts>, ConfigError> {
        if let Some(twice) = self.twice {
            let allowed = "a node is given once";
            return Err(ConfigError::new(format!("node {twice}"), &"given twice", allowed));
        }
        let nodes = std::mem::take(&mut self.nodes);
        let numbers = nodes.keys().map(|id| id.index());
        if let Some((missing, _)) = numbers.enumerate().find(|(index, number)| index != number) {
            let allowed = "nodes are numbered from 0 without a gap";
            return Err(ConfigError::new(format!("node {missing}"), &"missing", allowed));
        }
        let places = self.positions.as_ref().map_or(nodes.len(), Vec::len);
        for (what, given) in [("medium", expected), ("list of positions", places)] {
            if given != nodes.len() {
                let allowed = format!("the {what} has {given}; the numbers must be the same");
                return Err(ConfigError::new("nodes", &nodes.len(), allowed));
            }
        }
        for (id, node) in &nodes {
            let key = format!("node {id}: drift");
            ConfigError::within(&key, node.drift_max_ppm, 0.0, DRIFT_LIMIT_PPM)?;
        }
        Ok(nodes.into_values().collect())
    }
}

/// Largest drift that a clock may have, parts per million. Ours: no crystal is off by a thousandth.
const DRIFT_LIMIT_PPM: f64 = 1000.0;

/// The border router of each node's PAN.
fn roots(nodes: &[NodeParts]) -> Result<Vec<NodeId>, ConfigError> {
    let mut of_pan: BTreeMap<u16, NodeId> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_border_router) {
        let id = NodeId(index as u16);
        if let Some(other) = of_pan.insert(node.pan().0, id) {
            let allowed = format!("node {other} is the border router of this PAN; it has one");
            return Err(ConfigError::new(format!("node {id}: pan"), &shown(node.pan()), allowed));
        }
    }
    let mut roots = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let wrong = |key: &str, value: String, allowed: String| {
            Err(ConfigError::new(format!("node {index}: {key}"), &value, allowed))
        };
        let Some(root) = of_pan.get(&node.pan().0).copied() else {
            let allowed = "a node of this PAN must be its border router".to_owned();
            return wrong("pan", shown(node.pan()), allowed);
        };
        let head = &nodes[root.index()].stack;
        if node.stack.prefix != head.prefix {
            let allowed =
                format!("the prefix of its border router, node {root}: {:02x?}", head.prefix);
            return wrong("prefix", format!("{:02x?}", node.stack.prefix), allowed);
        }
        let (by_rpl, mode) = (by_rpl(&node.stack.routes), node.stack.rpl.mode);
        if by_rpl != self::by_rpl(&head.routes) || by_rpl && mode != head.rpl.mode {
            let allowed =
                format!("the source of routes and RPL's mode of node {root}, its border router");
            return wrong(
                "routes",
                if by_rpl { format!("{mode:?}") } else { "given".into() },
                allowed,
            );
        }
        if node.stack.is_leaf && (!by_rpl || NodeId(index as u16) == root) {
            let allowed = "no border router is a leaf, and a leaf needs routes of RPL".to_owned();
            return wrong("is_leaf", "true".into(), allowed);
        }
        if !by_rpl && (root != NodeId(0) || of_pan.len() > 1) {
            let allowed = "given routes lead to node 0, the only border router".to_owned();
            return wrong("routes", "given".into(), allowed);
        }
        roots.push(root);
    }
    Ok(roots)
}

/// Checks that lines connect border routers, and that each far end has one.
fn line_ends(
    lines: &[(NodeId, NodeId, LineParts)],
    ends: &[([u8; 8], NodeId)],
) -> Result<(), ConfigError> {
    for (index, (near, far, _)) in lines.iter().enumerate() {
        let refuse = |node: NodeId, allowed: &str| {
            Err(ConfigError::new(format!("line {index}"), &node.0, allowed))
        };
        for node in [near, far] {
            if !ends.iter().any(|(_, end)| end == node) {
                return refuse(*node, "a line connects two border routers");
            }
        }
        if near == far || lines[..index].iter().any(|(_, other, _)| other == far) {
            return refuse(*far, "the far end of a line is another node without a further line");
        }
    }
    Ok(())
}

const fn by_rpl(routes: &Routes) -> bool {
    matches!(routes, Routes::Rpl)
}

fn shown(pan: PanId) -> String {
    format!("{:#06x}", pan.0)
}

/// The driver of these nodes, which must have one kind of MAC.
fn driver(nodes: &[NodeParts]) -> Result<Box<dyn Driver>, ConfigError> {
    let Some(first) = nodes.first() else {
        return Err(ConfigError::new("nodes", &0, "a mesh has at least a border router"));
    };
    let slotted = |node: &NodeParts| matches!(node.stack.link, LinkLayer::Tsch);
    let slot = first.stack.mac.slot;
    for (index, node) in nodes.iter().enumerate() {
        if slotted(node) != slotted(first) {
            let (value, allowed) =
                ("another MAC", "all nodes keep timeslots, or all sense the channel");
            return Err(ConfigError::new(format!("node {index}: link"), &value, allowed));
        }
        if slotted(node) && node.stack.mac.slot != slot {
            let allowed = format!("the timeslot of node 0, {slot}");
            return Err(ConfigError::new(
                format!("node {index}: slot"),
                &node.stack.mac.slot,
                allowed,
            ));
        }
    }
    if slotted(first) {
        return Ok(Box::new(Slotted::new(slot)));
    }
    let tuning =
        |node: &NodeParts| Tuning { channel: node.carrier.channel, cca: node.carrier.cca() };
    Ok(Box::new(Contended::new(nodes.iter().map(tuning).collect())))
}

fn part(
    id: NodeId,
    node: &NodeParts,
    (root, collector): (NodeId, NodeId),
    traffic: &traffic::Config,
) -> Part {
    let far_enough = match &node.stack.routes {
        Routes::Rpl => true,
        Routes::Static(tree) => tree.hops(id).is_some_and(|hops| hops >= traffic.hops_min),
    };
    Part {
        root,
        collector,
        guard: node.stack.mac.guard,
        tx_power: node.tx_power,
        energy: node.energy,
        is_client: id != root && far_enough && !traffic.silent.contains(&id),
        is_leaf: node.stack.is_leaf,
    }
}

fn clock(seed: Seed, id: NodeId, node: &NodeParts) -> Clock {
    if node.is_border_router { Clock::exact() } else { Clock::new(seed, id, node.drift_max_ppm) }
}

fn boot(seed: Seed, id: NodeId, node: &NodeParts) -> Instant {
    let spread = if node.is_border_router { Duration::ZERO } else { node.boot_spread };
    let mut rng = Rng::stream(seed, id, Purpose::Boot);
    Instant::ZERO + spread.mul_f64(rng.unit())
}
