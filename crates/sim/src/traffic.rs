//! Which applications run on which node.

use lowmesh_applications::params::NUMBER_OCTETS;
use lowmesh_applications::{
    Arrivals, Carrier, Client, Collector, Observer, Poller, Schedule, Sensor,
};
use lowmesh_stack::Routes;
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::Address;

use crate::world::ROOT;

/// When and what clients send.
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
    /// When they come.
    pub process: Process,
    /// Nodes with a period of their own.
    pub periods: Vec<(NodeId, Duration)>,
    /// Readings of a client; without a bound it goes on to the end.
    pub readings_max: Option<u64>,
    /// Requests of a client from the oldest that is not over to the newest; a reading that finds no room among
    /// them is left out.
    pub window: Option<usize>,
    /// How long the collector takes to answer a request.
    pub service: Duration,
    /// Nodes that are no clients.
    pub silent: Vec<NodeId>,
    /// Only nodes at least so many hops below the root are clients, where routes are given.
    pub hops_min: u16,
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
    /// Notifications of each node to the root, which observes it (RFC 7641).
    Observe {
        /// Whether notifications are confirmable.
        confirmable: bool,
        /// The resource of a node.
        path: String,
    },
}

/// Octets by which the collector tells one datagram from another.
pub const DATAGRAM_OCTETS_MIN: usize = NUMBER_OCTETS;

/// When the events of a client come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// One a period, with jitter.
    Periodic,
    /// At random: exponential gaps with the period as their mean.
    Poisson,
    /// So many at once, one burst a period.
    Bursts(u32),
}

/// What runs on the node `id`; `addresses` are those of all nodes, the root first.
pub fn applications(
    config: &Config,
    routes: &Routes,
    seed: Seed,
    id: NodeId,
    addresses: &[Address],
) -> Vec<Box<dyn lowmesh_stack::Application>> {
    let plan = Plan { config, routes, seed, addresses };
    if id == ROOT { plan.of_root() } else { plan.of_node(id) }
}

/// What goes into the choice of applications.
struct Plan<'a> {
    config: &'a Config,
    routes: &'a Routes,
    seed: Seed,
    addresses: &'a [Address],
}

impl Plan<'_> {
    fn of_root(&self) -> Vec<Box<dyn lowmesh_stack::Application>> {
        let config = self.config;
        match &config.application {
            Application::Coap { path, .. } => {
                vec![Box::new(Collector::new(path.clone(), config.service))]
            }
            Application::Datagrams => {
                vec![Box::new(Collector::new(String::new(), config.service))]
            }
            Application::Poll { confirmable, path } => self
                .sensors()
                .map(|(id, address)| {
                    let schedule = self.schedule(id, self.rng(id), config.readings_max);
                    Box::new(Poller::new(address, path.clone(), *confirmable, schedule)) as Box<_>
                })
                .collect(),
            Application::Observe { confirmable, path } => self
                .sensors()
                .map(|(id, address)| {
                    // The sensor draws from the stream itself.
                    let schedule = self.schedule(id, self.rng(id).fork(), Some(1));
                    Box::new(Observer::new(address, path.clone(), *confirmable, schedule)) as Box<_>
                })
                .collect(),
        }
    }
    fn of_node(&self, id: NodeId) -> Vec<Box<dyn lowmesh_stack::Application>> {
        let config = self.config;
        if !self.is_client(id) {
            return Vec::new();
        }
        let octets = config.payload_octets;
        let schedule = self.schedule(id, self.rng(id), config.readings_max);
        let carrier = match &config.application {
            Application::Coap { confirmable, path } => {
                let (path, confirmable, window) = (path.clone(), *confirmable, config.window);
                Carrier::Requests { path, confirmable, window }
            }
            Application::Datagrams => Carrier::Datagrams,
            // Its state does not change by itself: nobody observes it.
            Application::Poll { path, .. } | Application::Observe { path, .. } => {
                return vec![Box::new(Sensor::new(path.clone(), octets, schedule))];
            }
        };
        vec![Box::new(Client::new(self.addresses[ROOT.index()], carrier, octets, schedule))]
    }
    /// The nodes whose sensors the root reads.
    fn sensors(&self) -> impl Iterator<Item = (NodeId, Address)> {
        let nodes = (0..).map(NodeId).zip(self.addresses.iter().copied()).skip(1);
        nodes.filter(|(id, _)| self.is_client(*id))
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
    /// Whether the node is far enough from the root to be a client; known only of given routes.
    fn is_client(&self, id: NodeId) -> bool {
        let far = match self.routes {
            Routes::Rpl => true,
            Routes::Static(tree) => tree.hops(id).is_some_and(|hops| hops >= self.config.hops_min),
        };
        far && !self.config.silent.contains(&id)
    }
}
