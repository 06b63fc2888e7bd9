//! Which applications run on which node.

pub use lowmesh_applications::entity_client::Query;
use lowmesh_applications::params::NUMBER_OCTETS;
use lowmesh_applications::{
    Arrivals, Carrier, Client, Collector as Collecting, Entities as Manager, EntityClient,
    GroupClient, Member, Membership, Observer, Point, Poller, Schedule, Sensor,
};
use lowmesh_group::Authority;
use lowmesh_group::gate::Gate;
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::uri::Host;
use lowmesh_wire::ipv6::Address;

use crate::parts::Part;
use crate::record::Reading;
use crate::unsent::Due;

/// When clients send, and what they send.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// No client sends before this.
    pub start: Duration,
    /// Time between two requests of a client; zero is no traffic at all.
    pub period: Duration,
    /// Share of the period by which each gap varies: uniform in [1 - jitter, 1 + jitter].
    pub jitter: f64,
    /// Octets of payload in a request or datagram.
    pub payload_octets: usize,
    /// What carries the readings.
    pub application: Application,
    /// Their arrival process.
    pub process: Process,
    /// Nodes with a period of their own.
    pub periods: Vec<(NodeId, Duration)>,
    /// Readings of a client; without a bound it goes on to the end.
    pub readings_max: Option<u64>,
    /// Requests of a client from the oldest that is not over to the newest; a reading that finds no room among
    /// them is left out.
    pub window: Option<usize>,
    /// Which node takes the readings of a node.
    pub collector: Collector,
    /// How long the collector, or a member of an entity, takes to answer a request.
    pub service: Duration,
    /// Nodes that are no clients.
    pub silent: Vec<NodeId>,
    /// Only nodes at least so many hops below the root are clients, where routes are given.
    pub hops_min: u16,
}

impl Config {
    /// A CoAP request of 20 octets every half minute, from the sixth minute on: the defaults of a scenario.
    pub fn readings() -> Self {
        Self {
            start: Duration::from_secs(360),
            period: Duration::from_secs(30),
            jitter: 0.1,
            payload_octets: 20,
            application: Application::Coap { confirmable: true, path: "sensor".to_owned() },
            process: Process::Periodic,
            periods: Vec::new(),
            readings_max: None,
            window: None,
            collector: Collector::Own,
            service: Duration::ZERO,
            silent: Vec::new(),
            hops_min: 0,
        }
    }

    /// The members of the entity that is queried, where there is one.
    pub(crate) fn queried_members(&self) -> Vec<NodeId> {
        match &self.application {
            Application::Entities(entities) => entities.members(&entities.query.entity),
            _ => Vec::new(),
        }
    }

    /// No traffic at all.
    pub fn silent() -> Self {
        Self { period: Duration::ZERO, ..Self::readings() }
    }
}

/// Which node receives the readings of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Collector {
    /// That of its own PAN.
    #[default]
    Own,
    /// The one with the lowest number, over the backbone where there are several.
    First,
    /// The node with the next number in its mesh, of the last node the first; border routers take none.
    Next,
}

impl Collector {
    /// The collector of `node`, where `roots` has the border router of each node.
    pub(crate) fn of(self, node: NodeId, roots: &[NodeId]) -> NodeId {
        let own = roots[node.index()];
        match self {
            Self::Own => own,
            Self::First => roots.iter().min().copied().unwrap_or_default(),
            Self::Next => {
                let ids = || (0..).map(NodeId).zip(roots);
                let mut others = ids().filter(|(id, root)| **root == own && *id != own);
                let next = others.clone().find(|(id, _)| *id > node);
                next.or_else(|| others.next()).map_or(own, |(id, _)| id)
            }
        }
    }
}

/// What carries the readings.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// CoAP requests.
    Coap {
        /// Confirmable or not.
        confirmable: bool,
        /// The collector's resource, with slashes between segments.
        path: String,
    },
    /// UDP datagrams of [`DATAGRAM_OCTETS_MIN`] octets or more, which nobody answers.
    Datagrams,
    /// GET requests of the root to each node.
    Poll {
        /// Confirmable or not.
        confirmable: bool,
        /// The resource of a node.
        path: String,
    },
    /// GET requests of each client to node 0, where a client may be a border router.
    Fetch {
        /// Confirmable or not.
        confirmable: bool,
        /// The resource of node 0, whose representation has as many octets as `payload_octets` says.
        path: String,
        /// The first so many nodes that are not silent are clients; all of them if unset.
        clients: Option<usize>,
    },
    /// Notifications of each node to the root, which observes it (RFC 7641).
    Observe {
        /// Whether notifications are confirmable.
        confirmable: bool,
        /// The resource of a node.
        path: String,
    },
    /// Unconfirmed POST requests of one node to a group, which nobody answers.
    Group {
        /// The sender.
        sender: NodeId,
        /// The address of the group.
        group: Address,
        /// The members; without any, all nodes but the sender.
        members: Vec<NodeId>,
        /// The resource of a member.
        path: String,
    },
    /// Queries of entities, which a manager answers (Ishaq et al. 2016).
    Entities(Entities),
}

/// Entities, their manager and its client.
#[derive(Clone, Debug, PartialEq)]
pub struct Entities {
    /// The node that manages them; a border router, with or without a mesh.
    pub manager: NodeId,
    /// The node that asks; another border router.
    pub client: NodeId,
    /// When each request to a member may leave.
    pub gate: Choice<dyn Gate>,
    /// The entities in the order of their creation, each after those in it.
    pub all: Vec<Entity>,
    /// What the client asks.
    pub query: Query,
    /// The resource of a member.
    pub path: String,
    /// When the first entity is created.
    pub setup: Duration,
    /// How long the manager takes to make a result for a client.
    pub service: Duration,
}

/// One entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its name.
    pub name: String,
    /// The nodes that are members.
    pub nodes: Vec<NodeId>,
    /// The entities that are members.
    pub entities: Vec<String>,
    /// Fields of its profile, each as JSON.
    pub profile: Vec<(&'static str, String)>,
}

impl Entities {
    /// The members of an entity, including those of nested entities.
    pub fn members(&self, name: &str) -> Vec<NodeId> {
        let (mut found, mut open, mut seen) = (Vec::new(), vec![name], Vec::new());
        while let Some(name) = open.pop() {
            let Some(entity) = self.all.iter().find(|one| one.name == name) else { continue };
            if !seen.contains(&name) {
                seen.push(name);
                found.extend(&entity.nodes);
                open.extend(entity.entities.iter().map(String::as_str));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
    /// The request that creates an entity, for nodes with these addresses.
    fn document(&self, entity: &Entity, addresses: &[Address]) -> String {
        let path = self.path.trim_matches('/');
        let node = |id: &NodeId| format!("coap://[{}]/{path}", addresses[id.index()]);
        let nodes = entity.nodes.iter().map(node);
        let entities = entity.entities.iter().map(|name| format!("/e/{name}"));
        let members: Vec<String> = nodes.chain(entities).map(|uri| format!("{uri:?}")).collect();
        let mut document = format!("{{\"name\":{:?},\"er\":[{}]", entity.name, members.join(","));
        for (key, value) in &entity.profile {
            document.extend([",\"", key, "\":", value]);
        }
        document.push('}');
        document
    }
}

/// Octets by which the collector tells one datagram from another.
pub const DATAGRAM_OCTETS_MIN: usize = NUMBER_OCTETS;

/// The arrival process of a client's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// One a period, with jitter.
    Periodic,
    /// At random: exponential gaps with the period as their mean.
    Poisson,
    /// Bursts of this many events, one burst a period.
    Bursts(u32),
}

/// Inputs of the traffic plan: each list has one entry a node.
pub(crate) struct Plan<'a> {
    pub(crate) config: &'a Config,
    pub(crate) seed: Seed,
    pub(crate) parts: &'a [Part],
    pub(crate) addresses: &'a [Address],
    /// How often the node has lost its memory.
    pub(crate) losses: u16,
}

impl Plan<'_> {
    /// The applications of a node.
    pub(crate) fn applications(&self, id: NodeId) -> Vec<Box<dyn lowmesh_stack::Application>> {
        let part = &self.parts[id.index()];
        if let Application::Entities(entities) = &self.config.application {
            return self.of_entities(id, entities);
        }
        if let Application::Group { sender, group, members, path } = &self.config.application {
            let is_listed = members.is_empty() || members.contains(&id);
            return match *sender == id {
                true => vec![self.of_group_client(id, *group, path)],
                false if is_listed => vec![Box::new(Member::new(*group, path.clone()))],
                false => Vec::new(),
            };
        }
        if let Application::Fetch { confirmable, path, clients } = &self.config.application {
            return match id {
                NodeId(0) => vec![self.of_server(path)],
                _ if self.fetches(id, *clients) => vec![self.of_fetcher(id, path, *confirmable)],
                _ => Vec::new(),
            };
        }
        if part.root == id {
            self.of_border_router(id)
        } else {
            let client = part.is_client.then(|| self.of_client(id, part.collector));
            let takes = matches!(self.config.collector, Collector::Next);
            client.into_iter().chain(takes.then(|| self.of_collector()).flatten()).collect()
        }
    }
    /// What falls due at a node before it joins, if its application waits for that.
    pub(crate) fn due(&self, id: NodeId) -> Option<Due> {
        let part = &self.parts[id.index()];
        let is_client = part.root != id && part.is_client;
        let (acts, reading, paced_as) = match &self.config.application {
            Application::Coap { .. } => (is_client, Reading::Transaction, id),
            Application::Datagrams | Application::Observe { .. } => {
                (is_client, Reading::Datagram, id)
            }
            // Clients follow the load of the node that they ask.
            Application::Fetch { clients, .. } => {
                let acts = id != NodeId(0) && self.fetches(id, *clients);
                (acts, Reading::Transaction, NodeId(0))
            }
            Application::Group { sender, .. } => (*sender == id, Reading::GroupPacket, id),
            // Border routers ask, which have joined when they start.
            Application::Poll { .. } | Application::Entities(_) => return None,
        };
        let most = self.config.readings_max;
        let schedule = || self.schedule(id, self.rng(id), most);
        let (now, later) = (schedule(), most.map(|_| schedule()));
        acts.then_some(Due { reading, paced_as, schedule: now, later })
    }
    /// The end that takes requests or datagrams.
    fn of_collector(&self) -> Option<Box<dyn lowmesh_stack::Application>> {
        let path = match &self.config.application {
            Application::Coap { path, .. } => path.clone(),
            Application::Datagrams => String::new(),
            _ => return None,
        };
        Some(Box::new(Collecting::new(path, self.config.service)))
    }
    fn of_border_router(&self, here: NodeId) -> Vec<Box<dyn lowmesh_stack::Application>> {
        let config = self.config;
        match &config.application {
            Application::Coap { .. } | Application::Datagrams => {
                self.of_collector().into_iter().collect()
            }
            // Its nodes have parts of their own, whatever their place.
            Application::Group { .. } | Application::Fetch { .. } | Application::Entities(_) => {
                Vec::new()
            }
            Application::Poll { confirmable, path } => self
                .sensors(here)
                .map(|(id, address)| {
                    let schedule = self.schedule(id, self.rng(id), config.readings_max);
                    Box::new(Poller::new(address, path.clone(), *confirmable, schedule)) as Box<_>
                })
                .collect(),
            Application::Observe { confirmable, path } => self
                .sensors(here)
                .map(|(id, address)| {
                    // The sensor draws from the stream itself.
                    let schedule = self.schedule(id, self.rng(id).fork(), Some(1));
                    Box::new(Observer::new(address, path.clone(), *confirmable, schedule)) as Box<_>
                })
                .collect(),
        }
    }
    fn of_client(&self, id: NodeId, collector: NodeId) -> Box<dyn lowmesh_stack::Application> {
        let config = self.config;
        let octets = config.payload_octets;
        let schedule = self.schedule(id, self.rng(id), config.readings_max);
        let carrier = match &config.application {
            Application::Coap { confirmable, path } => {
                let (path, confirmable, window) = (path.clone(), *confirmable, config.window);
                Carrier::Requests { path, confirmable, window }
            }
            Application::Datagrams => Carrier::Datagrams,
            Application::Poll { path, .. }
            | Application::Observe { path, .. }
            | Application::Fetch { path, .. }
            | Application::Group { path, .. } => {
                return Box::new(self.sensor(path, octets, schedule));
            }
            Application::Entities(entities) => {
                return Box::new(self.sensor(&entities.path, octets, schedule));
            }
        };
        let collector = self.addresses[collector.index()];
        let client = Client::new(collector, carrier, octets, schedule);
        Box::new(client.numbered_from(self.first_number()))
    }
    fn sensor(&self, path: &str, octets: usize, schedule: Schedule) -> Sensor {
        Sensor::new(path.to_owned(), octets, schedule).numbered_from(self.first_number())
    }
    /// The number of the first value of a node, which counts up to a million from one loss of memory to the next.
    const fn first_number(&self) -> u32 {
        (self.losses as u32) << 20
    }
    /// The parts of a node where entities are queried: the manager, its client, or a member with its data point.
    fn of_entities(
        &self,
        id: NodeId,
        entities: &Entities,
    ) -> Vec<Box<dyn lowmesh_stack::Application>> {
        let mut parts: Vec<Box<dyn lowmesh_stack::Application>> = Vec::new();
        if id == entities.manager {
            let host = Host::V6(self.addresses[id.index()].into(), None);
            let authorities = vec![Authority::plain(host)];
            let config = lowmesh_group::Config {
                authorities,
                gate: entities.gate.clone(),
                ..lowmesh_group::Config::published()
            };
            let manager = Manager::new(config, entities.service, self.rng(id).fork());
            parts.push(Box::new(manager.expect("a manager without a state reads none")));
        }
        if id == entities.client {
            let document = |entity| entities.document(entity, self.addresses);
            let documents = entities.all.iter().map(document).collect();
            let schedule = self.schedule(id, self.rng(id), self.config.readings_max);
            let manager = self.addresses[entities.manager.index()];
            let (query, setup) = (entities.query.clone(), entities.setup);
            parts.push(Box::new(EntityClient::new(manager, documents, query, setup, schedule)));
        }
        if entities.all.iter().any(|entity| entity.nodes.contains(&id)) {
            // Each member has another value, so that results tell them apart.
            let value = f64::from(id.0);
            let point =
                Point::new(&entities.path, value, self.config.payload_octets, self.config.service);
            parts.push(Box::new(point));
            parts.push(Box::new(Membership::default()));
        }
        parts
    }
    /// The resource that clients fetch.
    fn of_server(&self, path: &str) -> Box<dyn lowmesh_stack::Application> {
        let never = self.schedule(NodeId(0), self.rng(NodeId(0)), Some(0));
        Box::new(Sensor::new(path.to_owned(), self.config.payload_octets, never))
    }
    fn of_fetcher(
        &self,
        id: NodeId,
        path: &str,
        confirmable: bool,
    ) -> Box<dyn lowmesh_stack::Application> {
        let schedule = self.schedule(id, self.rng(id), self.config.readings_max);
        Box::new(Poller::new(self.addresses[0], path.to_owned(), confirmable, schedule))
    }
    /// Whether a node is among the first so many that are not silent.
    fn fetches(&self, id: NodeId, clients: Option<usize>) -> bool {
        let is_silent = |node: &NodeId| self.config.silent.contains(node);
        let before = (1..id.0).map(NodeId).filter(|node| !is_silent(node)).count();
        !is_silent(&id) && clients.is_none_or(|clients| before < clients)
    }
    fn of_group_client(
        &self,
        id: NodeId,
        group: Address,
        path: &str,
    ) -> Box<dyn lowmesh_stack::Application> {
        let schedule = self.schedule(id, self.rng(id), self.config.readings_max);
        Box::new(GroupClient::new(group, path.to_owned(), self.config.payload_octets, schedule))
    }
    /// The nodes whose sensors a border router reads.
    fn sensors(&self, here: NodeId) -> impl Iterator<Item = (NodeId, Address)> {
        let nodes = (0..).map(NodeId).zip(self.parts).zip(self.addresses);
        let read = nodes.filter(move |((_, part), _)| part.is_client && part.collector == here);
        read.map(|((id, _), address)| (id, *address))
    }
    fn rng(&self, id: NodeId) -> Rng {
        Rng::stream(self.seed, id, Purpose::Traffic)
    }
    fn schedule(&self, id: NodeId, rng: Rng, events_max: Option<u64>) -> Schedule {
        let config = self.config;
        let own = config.periods.iter().find(|(node, _)| *node == id);
        let (period, jitter) = (own.map_or(config.period, |(_, period)| *period), config.jitter);
        let arrivals = match config.process {
            Process::Periodic => Arrivals::Periodic { period, jitter },
            Process::Poisson => Arrivals::Poisson { period },
            Process::Bursts(size) => Arrivals::Bursts { period, jitter, size },
        };
        Schedule::new(arrivals, config.start, events_max, rng)
    }
}
