//! The applications of the nodes: clients that report readings, and the collector that takes them.

use lowmesh_applications::params::NUMBER_OCTETS;
use lowmesh_applications::{Arrivals, Carrier, Client, Collector, Schedule};
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
}

/// Octets by which the collector tells one datagram from another.
pub const DATAGRAM_OCTETS_MIN: usize = NUMBER_OCTETS;

/// What runs on the node `id`, whose root has an address.
pub fn applications(
    config: &Config,
    routes: &Routes,
    seed: Seed,
    id: NodeId,
    root: Address,
) -> Vec<Box<dyn lowmesh_stack::Application>> {
    if id == ROOT {
        let path = match &config.application {
            Application::Coap { path, .. } => path.clone(),
            Application::Datagrams => String::new(),
        };
        return vec![Box::new(Collector::new(path, config.service))];
    }
    if !config.is_client(routes, id) {
        return Vec::new();
    }
    let carrier = match &config.application {
        Application::Coap { confirmable, path } => {
            let (path, confirmable, window) = (path.clone(), *confirmable, config.window);
            Carrier::Requests { path, confirmable, window }
        }
        Application::Datagrams => Carrier::Datagrams,
    };
    let arrivals = Arrivals::Periodic { period: config.period, jitter: config.jitter };
    let rng = Rng::stream(seed, id, Purpose::Traffic);
    let schedule = Schedule::new(arrivals, config.start, config.readings_max, rng);
    vec![Box::new(Client::new(root, carrier, config.payload_octets, schedule))]
}

impl Config {
    /// Whether the node is far enough from the root to be a client; known only of given routes.
    fn is_client(&self, routes: &Routes, id: NodeId) -> bool {
        let far = match routes {
            Routes::Rpl => true,
            Routes::Static(tree) => tree.hops(id).is_some_and(|hops| hops >= self.hops_min),
        };
        far && !self.silent.contains(&id)
    }
}
