//! A node is assembled from its settings: the parts of each layer, and the applications above them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_ipv6::{Addresses, Ipv6, RouteTable};
use lowmesh_lowpan::Adaptation;
use lowmesh_mac::csma::Csma;
use lowmesh_machine::Outbox;
use lowmesh_oscore::transport::{Protection, VolatileContexts};
use lowmesh_rpl::Rpl;
use lowmesh_sixtop::functions::make;
use lowmesh_units::{NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::Contexts;

use crate::application::{Application, ApplicationId};
use crate::config::{Config, ConfigError, LinkLayer, Routes, Transport};
use crate::event::Peer;
use crate::hosting::Hosting;
use crate::identity::Identity;
use crate::leaf::Leaf;
use crate::link::{Link, Slotted};
use crate::multicast::Multicast;
use crate::node::{Counters, Node, Rest};
use crate::params::{COAP_PORT, DATAGRAM_PORT};
use crate::routing::Routing;
use crate::streams::Streams;
use crate::tree::Place;

/// What a node knows of its network before it is switched on.
struct NetworkParts {
    addresses: Addresses,
    routes: RouteTable,
    routing: Routing,
    contexts: Contexts,
    protection: Option<Protection<Peer, VolatileContexts>>,
}

/// What a node draws from, and how often it has lost its memory.
#[derive(Clone, Copy)]
struct Life {
    seed: Seed,
    losses: u16,
}

impl Node {
    /// A node of a planned network, switched off.
    pub fn new(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        Self::after_losses(config, id, is_root, seed, 0)
    }

    /// The same node after it has lost its memory so many times, switched off and without applications. It has the same
    /// addresses, draws other random numbers, and names its packets differently.
    pub fn after_losses(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
        losses: u16,
    ) -> Result<Self, ConfigError> {
        let life = Life { seed: seed.after_losses(losses), losses };
        let stream = |purpose| Rng::stream(life.seed, id, purpose);
        let eui64 = |id| config.addressing.eui64(seed, id);
        let addresses = Addresses::new(eui64(id), config.prefix);
        let (routing, routes) = match &config.routes {
            Routes::Rpl if config.is_leaf && !is_root => {
                let (node, address) = (addresses.node(), addresses.global());
                let leaf = Leaf::new(node, address, stream(Purpose::Rpl));
                (Routing::Leaf(Box::new(leaf)), RouteTable::new(0))
            }
            _ if config.is_leaf => return Err(ConfigError::Leaf),
            Routes::Rpl => {
                let rpl = config.rpl_of(&addresses, is_root)?;
                let routes = RouteTable::new(rpl.routes_max);
                (Routing::Rpl(Box::new(Rpl::new(rpl, stream(Purpose::Rpl)))), routes)
            }
            Routes::Static(tree) => {
                let place = Place::of(tree, id, eui64)?;
                (Routing::Static(place), tree.routes(id, config.prefix, eui64))
            }
        };
        let contexts = Contexts::new().with(0, config.prefix);
        let address = |id| Address::global(config.prefix, eui64(id));
        let protection = config.oscore.as_ref().map(|oscore| oscore.protection(id, address));
        let network = NetworkParts { addresses, routes, routing, contexts, protection };
        Self::assemble(config, id, is_root, life, network)
    }

    /// A node without a planned network, switched off. What the settings say of routes, RPL and the prefix is not for
    /// it.
    pub fn alone(config: &Config, identity: Identity, seed: Seed) -> Result<Self, ConfigError> {
        let Identity { addresses, routes, contexts } = identity;
        let routing = Routing::Static(Place::alone());
        let protection = None;
        let network = NetworkParts { addresses, routes, routing, contexts, protection };
        Self::assemble(config, NodeId(0), true, Life { seed, losses: 0 }, network)
    }

    fn assemble(
        config: &Config,
        id: NodeId,
        is_root: bool,
        Life { seed, losses }: Life,
        network: NetworkParts,
    ) -> Result<Self, ConfigError> {
        let NetworkParts { addresses, routes, routing, contexts, protection } = network;
        let stream = |purpose| Rng::stream(seed, id, purpose);
        let me = addresses.node();
        let mut lowpan = config.lowpan;
        if let Some(buffers) = config.root_reassembly_buffers.filter(|_| is_root) {
            lowpan.reassembly_buffers = buffers;
        }
        let link = match &config.link {
            LinkLayer::Tsch => {
                config.scheduling.check()?;
                let function = make(&config.scheduling, config.children());
                let streams = (stream(Purpose::Mac), stream(Purpose::Sixtop));
                Link::Slotted(Box::new(Slotted::new(config, function, me, is_root, streams)))
            }
            LinkLayer::Csma(csma) => {
                csma.check()?;
                Link::Contended(Box::new(Csma::new(csma.clone(), me, stream(Purpose::Mac))))
            }
        };
        let settings = config.ipv6_of((id, losses), is_root, &lowpan, contexts.clone());
        let mut ipv6 = Ipv6::new(settings, addresses, routes, &mut stream(Purpose::Ipv6));
        ipv6.open(DATAGRAM_PORT);
        let streams = match &config.transport {
            Transport::Udp => {
                ipv6.open(COAP_PORT);
                None
            }
            // The UDP port stays closed: a datagram must not pass for octets of a connection with the same peer.
            Transport::Tcp(tcp) => {
                ipv6.take_segments();
                Some(Streams::new(tcp.profile, tcp.limits, stream(Purpose::Tcp))?)
            }
        };
        let multicast = Multicast::new(&config.multicast, stream(Purpose::Multicast));
        for group in multicast.listens() {
            ipv6.join(*group).expect("a node without groups has room for those of its engine");
        }
        let mut node = Self {
            link,
            lowpan: Adaptation::new(me, contexts, lowpan, stream(Purpose::Lowpan)),
            ipv6,
            multicast,
            routing,
            hosting: Hosting::new(config.coap_host(protection, &stream)?),
            streams,
            outbox: Outbox::new(),
            counters: Counters::default(),
            advertisement: None,
            rest: Rest::default(),
        };
        node.rest = node.look_above();
        Ok(node)
    }

    /// Takes the applications from number `first` on out of a node that is not used any more.
    pub fn into_applications(self, first: usize) -> Vec<Box<dyn Application>> {
        self.hosting.into_applications(first)
    }

    /// Installs one more application on the node, which is switched off.
    pub fn install(
        &mut self,
        application: Box<dyn Application>,
    ) -> Result<ApplicationId, ConfigError> {
        let ports = application.claims().ports;
        let id = self.hosting.install(application)?;
        for port in ports {
            self.ipv6.open(port);
        }
        Ok(id)
    }
}
