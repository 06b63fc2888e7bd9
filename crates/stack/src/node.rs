//! A node: every layer a machine of its own, and this the machine made of them.
//!
//! ```text
//!      Request, Respond                 Datagram, Ping, Uplink
//!            v                                    v
//!      applications ── coap ────── udp ───────── ipv6 ── lowpan ── link ── radio
//!                                                  │              TSCH and 6top, or CSMA
//!                                               routing
//! ```
//! Layers do not know each other: each output of one is an arm of one function here, which tells the others.
//!
//! | outputs of | go to | file |
//! |---|---|---|
//! | link | `on_link` | `link::boundary` |
//! | lowpan | `on_lowpan` | `lowpan` |
//! | ipv6 | `on_ipv6`, at once | `network` |
//! | routing | `on_rpl` | `network` |
//! | coap | `on_coap` | `coap` |
//! | applications | `act` | `hosting` |
//!
//! Besides packets and messages, this is what one tells another; what TSCH and 6top tell each other stays in
//! `link::slotted`:
//!
//! | from | to | what |
//! |---|---|---|
//! | link: up, down | routing, sixtop | start, stop |
//! | mac: queue busy, queue empty | sixtop | autonomous cells |
//! | mac: ETX | rpl | link metric |
//! | routing: parent | mac, sixtop, ipv6 | time source, cells, default route |
//! | rpl: no parent for long | mac | leave the network |
//! | routing: rank | mac | join metric of beacons |
//! | routing: child, known to parent | sixtop | cells |
//! | rpl: route | ipv6 | route |
//! | ipv6: forward, source route | rpl | a question, answered at once |
//! | ipv6: trouble | coap | an endpoint that cannot be reached |

use alloc::boxed::Box;

use lowmesh_ipv6::{Addresses, Event, Ipv6, RouteTable};
use lowmesh_lowpan::Adaptation;
use lowmesh_mac::csma::Csma;
use lowmesh_machine::{Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_oscore::transport::{Protection, VolatileContexts};
use lowmesh_rpl::Rpl;
use lowmesh_sixtop::functions::make;
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::Contexts;

use crate::config::{CoapHost, Config, ConfigError, LinkLayer, Routes};
use crate::event::{Class, ErrorCounts, Input, Output, Peer};
use crate::identity::Identity;
use crate::installed::Applications;
use crate::link::{Link, Slotted};
use crate::params::{COAP_PORT, DATAGRAM_PORT};
use crate::routing::Routing;
use crate::tree::Place;

/// What a node counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames handed to the radio, retries included.
    pub frames_sent: u64,
    /// Frames to one neighbour that were acknowledged.
    pub frames_acked: u64,
    /// ICMPv6 errors that this node sent.
    pub errors_sent: ErrorCounts,
    /// Those that it did not send, since the rate was used up.
    pub errors_withheld: u64,
    /// ICMPv6 errors that came about packets of this node.
    pub errors_received: ErrorCounts,
}

/// One node of a mesh.
#[derive(Debug)]
pub struct Node {
    pub(crate) link: Link,
    pub(crate) lowpan: Adaptation,
    pub(crate) ipv6: Ipv6,
    pub(crate) routing: Routing,
    pub(crate) coap: CoapHost,
    pub(crate) applications: Applications,
    pub(crate) outbox: Outbox<Output>,
    pub(crate) counters: Counters,
    /// The last DIO to all neighbours.
    pub(crate) advertisement: Option<Handle>,
}

/// What a node knows of its network before it is switched on.
struct NetworkParts {
    addresses: Addresses,
    routes: RouteTable,
    routing: Routing,
    contexts: Contexts,
    protection: Option<Protection<Peer, VolatileContexts>>,
}

impl Node {
    /// A node of a planned network, switched off.
    pub fn new(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let stream = |purpose| Rng::stream(seed, id, purpose);
        let eui64 = |id| config.addressing.eui64(seed, id);
        let addresses = Addresses::new(eui64(id), config.prefix);
        let (routing, routes) = match &config.routes {
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
        Self::assemble(config, id, is_root, seed, network)
    }

    /// A node by itself, switched off. What the settings say of routes, RPL and the prefix is not for it.
    pub fn alone(config: &Config, identity: Identity, seed: Seed) -> Result<Self, ConfigError> {
        let Identity { addresses, routes, contexts } = identity;
        let routing = Routing::Static(Place::alone());
        let protection = None;
        let network = NetworkParts { addresses, routes, routing, contexts, protection };
        Self::assemble(config, NodeId(0), true, seed, network)
    }

    fn assemble(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
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
                Link::Slotted(Box::new(Slotted::new(&config.mac, function, me, is_root, streams)))
            }
            LinkLayer::Csma(csma) => {
                csma.check()?;
                Link::Contended(Box::new(Csma::new(csma.clone(), me, stream(Purpose::Mac))))
            }
        };
        let settings = config.ipv6_of(id, is_root, &lowpan, contexts.clone());
        let mut ipv6 = Ipv6::new(settings, addresses, routes, &mut stream(Purpose::Ipv6));
        for port in [COAP_PORT, DATAGRAM_PORT] {
            ipv6.open(port);
        }
        Ok(Self {
            link,
            lowpan: Adaptation::new(me, contexts, lowpan, stream(Purpose::Lowpan)),
            ipv6,
            routing,
            coap: config.coap_host(protection, &stream)?,
            applications: Applications::default(),
            outbox: Outbox::new(),
            counters: Counters::default(),
            advertisement: None,
        })
    }

    fn boot(&mut self, now: Instant) {
        self.applications.start();
        if let Some(event) = self.link.boot(now) {
            self.on_link(now, event);
        }
    }

    fn deadline(&mut self, now: Instant) -> Result<(), Rejected> {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        self.link.deadline(now);
        if due(self.lowpan.next_deadline()) {
            self.lowpan.handle(now, lowmesh_lowpan::Input::Deadline)?;
        }
        if due(self.ipv6.next_deadline()) {
            self.tell_ipv6(now, Event::Deadline);
        }
        if let Routing::Rpl(rpl) = &mut self.routing
            && due(rpl.next_deadline())
        {
            rpl.handle(now, lowmesh_rpl::Input::Deadline)?;
        }
        if due(self.coap.next_deadline()) {
            self.coap.handle(now, lowmesh_coap::Input::Deadline)?;
        }
        self.applications.deadline(now);
        Ok(())
    }

    /// Lets every layer say what it has to say, until all are silent.
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(event) = self.link.poll(now) {
                self.on_link(now, event);
            } else if let Some(output) = self.lowpan.poll_output() {
                self.on_lowpan(now, output);
            } else if self.link.step(now, &mut self.outbox) {
                // The MAC has something to send now, which comes first.
            } else if let Some(output) = self.poll_rpl() {
                self.on_rpl(now, output);
            } else if let Some(output) = self.coap.poll_output() {
                self.on_coap(now, output);
            } else if !self.call_application(now) {
                break;
            }
        }
    }
}

impl Machine for Node {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        let result = match input {
            Input::Boot => {
                self.boot(now);
                Ok(())
            }
            Input::Deadline => self.deadline(now),
            Input::Request { peer, request, handle } => self.request(now, peer, request, handle),
            Input::Respond { exchange, response } => {
                let handle = Handle::NONE;
                self.coap.handle(now, lowmesh_coap::Input::Respond { exchange, response, handle })
            }
            Input::Datagram { source_port, peer, payload } => {
                self.send_datagram(now, source_port, peer, &payload, Class::Request);
                Ok(())
            }
            Input::Uplink { packet, handle } => {
                self.tell_ipv6(now, Event::Uplink { packet, handle });
                Ok(())
            }
            Input::Ping { to, echo } => {
                let message = Icmpv6::EchoRequest(echo);
                self.tell_ipv6(now, Event::Message { to, message });
                Ok(())
            }
        };
        self.settle(now);
        result
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let rpl = match &self.routing {
            Routing::Rpl(rpl) => rpl.next_deadline(),
            Routing::Static(_) => None,
        };
        let packets = earliest(self.lowpan.next_deadline(), self.ipv6.next_deadline());
        let network = earliest(packets, rpl);
        let ends = earliest(self.link.next_deadline(), self.coap.next_deadline());
        earliest(network, earliest(ends, self.applications.next_deadline()))
    }
}
