//! A node: every layer a machine of its own, and this the machine made of them.
//!
//! ```text
//!            Request, Respond, Datagram               Transaction, Request
//!                  │                                        ^
//!      coap ───────┼──────────── udp ── ipv6 ── lowpan ─────┼──── link ── radio
//!                  v          routing ───┘                  │       TSCH and 6top, or CSMA
//!                descend ───────────────────────────────> ascend
//! ```
//! Layers do not know each other. What one must tell another sideways is an arm of [`Node::on_link`] or of
//! [`Node::tell_routes`] and nowhere else; what TSCH and 6top tell each other stays in `slotted`:
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

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_coap::{Endpoint, Host, RequestTemplate};
use lowmesh_ipv6::{Addresses, Forwarder, NeighbourCache, RouteTable};
use lowmesh_lowpan::Adaptation;
use lowmesh_mac::csma::Csma;
use lowmesh_machine::{Dropped, Handle, Machine, Outbox, Rejected, earliest, expect_accepted};
use lowmesh_oscore::transport::{
    DatagramHost, Protected, Protection, VolatileContexts, extensions,
};
use lowmesh_rpl::Rpl;
use lowmesh_sixtop::Event;
use lowmesh_units::{Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::icmpv6::{self, Icmpv6};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::Contexts;

use crate::config::{Config, ConfigError, LinkLayer, Routes};
use crate::end_to_end::EndToEnd;
use crate::event::{Class, ErrorCounts, Input, Network, Output, Packet, Peer, RadioOrder};
use crate::identity::Identity;
use crate::installed::Applications;
use crate::link::{Link, LinkEvent, Slotted};
use crate::params::MIN_DELAY_BETWEEN_RAS;
use crate::rate::{Bucket, ErrorRate};
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

/// The CoAP host of a node.
pub(crate) type CoapHost = DatagramHost<Peer, VolatileContexts>;

/// Where a node's routes come from.
#[derive(Debug)]
pub(crate) enum Routing {
    /// RPL finds them.
    Rpl(Box<Rpl>),
    /// They are given.
    Static(Place),
}

/// One node of a mesh.
#[derive(Debug)]
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) link: Link,
    pub(crate) lowpan: Adaptation,
    pub(crate) end_to_end: EndToEnd,
    pub(crate) ipv6: Forwarder,
    pub(crate) routing: Routing,
    pub(crate) coap: CoapHost,
    pub(crate) applications: Applications,
    pub(crate) neighbours: NeighbourCache,
    pub(crate) contexts: Contexts,
    pub(crate) hop_limit: u8,
    pub(crate) error_rate: ErrorRate,
    /// Router Advertisements to all.
    pub(crate) advertisements: Bucket,
    /// Whether packets for other prefixes leave the mesh here.
    pub(crate) has_uplink: bool,
    pub(crate) outbox: Outbox<Output>,
    pub(crate) counters: Counters,
    /// Why the MAC gave up the frame whose end 6LoWPAN is handling.
    pub(crate) failure: Option<Dropped>,
    /// Number of the last packet made here.
    last_packet: u64,
}

/// What a node knows of its network before it is switched on.
struct NetworkParts {
    ipv6: Forwarder,
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
                let rpl = rpl(config, &addresses, is_root)?;
                let routes = RouteTable::new(rpl.routes_max);
                (Routing::Rpl(Box::new(Rpl::new(rpl, stream(Purpose::Rpl)))), routes)
            }
            Routes::Static(tree) => {
                let place = Place::of(tree, id, eui64)?;
                (Routing::Static(place), tree.routes(id, config.prefix, eui64))
            }
        };
        let contexts = Contexts::new().with(0, config.prefix);
        let ipv6 = Forwarder::new(addresses, routes);
        let address = |id| Address::global(config.prefix, eui64(id));
        let protection = config.oscore.as_ref().map(|oscore| oscore.protection(id, address));
        let network = NetworkParts { ipv6, routing, contexts, protection };
        Self::assemble(config, id, is_root, seed, network)
    }

    /// A node by itself, switched off. What the settings say of routes, RPL and the prefix is not for it.
    pub fn alone(config: &Config, identity: Identity, seed: Seed) -> Result<Self, ConfigError> {
        let Identity { addresses, routes, contexts } = identity;
        let ipv6 = Forwarder::new(addresses, routes);
        let routing = Routing::Static(Place::alone());
        let network = NetworkParts { ipv6, routing, contexts, protection: None };
        Self::assemble(config, NodeId(0), true, seed, network)
    }

    fn assemble(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
        network: NetworkParts,
    ) -> Result<Self, ConfigError> {
        let NetworkParts { ipv6, routing, contexts, protection } = network;
        let stream = |purpose| Rng::stream(seed, id, purpose);
        let me = ipv6.addresses.node();
        let mut lowpan = config.lowpan;
        if let Some(buffers) = config.root_reassembly_buffers.filter(|_| is_root) {
            lowpan.reassembly_buffers = buffers;
        }
        let link = match &config.link {
            LinkLayer::Tsch => {
                let function = config.scheduling.function();
                let streams = (stream(Purpose::Mac), stream(Purpose::Sixtop));
                Link::Slotted(Box::new(Slotted::new(&config.mac, function, me, is_root, streams)))
            }
            LinkLayer::Csma(csma) => {
                csma.check()?;
                Link::Contended(Box::new(Csma::new(csma.clone(), me, stream(Purpose::Mac))))
            }
        };
        Ok(Self {
            id,
            link,
            lowpan: Adaptation::new(me, contexts.clone(), lowpan, stream(Purpose::Lowpan)),
            end_to_end: EndToEnd::new(&lowpan, &mut stream(Purpose::Lowpan)),
            ipv6,
            routing,
            coap: coap(config, protection, &stream)?,
            applications: Applications::default(),
            neighbours: NeighbourCache::new(),
            contexts,
            hop_limit: config.hop_limit,
            error_rate: ErrorRate::new(config.icmpv6_errors),
            advertisements: Bucket::new(1, MIN_DELAY_BETWEEN_RAS),
            has_uplink: is_root && config.uplink,
            outbox: Outbox::new(),
            counters: Counters::default(),
            failure: None,
            last_packet: 0,
        })
    }

    /// A name for a packet that is made here: unique in the run, and never [`Handle::NONE`].
    ///
    /// ```text
    ///   | class 4 bits, from bit 56 | node 16 bits, from bit 40 | number, from 1 |
    /// ```
    pub(crate) fn next_handle(&mut self, class: Class) -> Handle {
        self.last_packet += 1;
        Handle((class as u64) << 56 | u64::from(self.id.0) << 40 | self.last_packet)
    }
    /// True for routing messages that were made here.
    pub(crate) fn is_own_control(&self, handle: Handle) -> bool {
        handle.0 >> 40 == (Class::Control as u64) << 16 | u64::from(self.id.0)
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
        self.expire_reassembly(now);
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

    /// The driver asks.
    fn request(
        &mut self,
        now: Instant,
        peer: Peer,
        message: RequestTemplate,
        name: Handle,
    ) -> Result<(), Rejected> {
        let handle = self.applications.open(name);
        let input = lowmesh_coap::Input::Request { peer, message, handle };
        self.coap.handle(now, input).inspect_err(|_| self.applications.close(handle))
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

    fn poll_rpl(&mut self) -> Option<lowmesh_rpl::Output> {
        match &mut self.routing {
            Routing::Rpl(rpl) => rpl.poll_output(),
            Routing::Static(_) => None,
        }
    }

    pub(crate) fn tell_rpl(&mut self, now: Instant, input: lowmesh_rpl::Input<'_>) {
        if let Routing::Rpl(rpl) = &mut self.routing {
            expect_accepted(rpl.handle(now, input));
        }
    }

    /// What the link layer has to say.
    fn on_link(&mut self, now: Instant, event: LinkEvent) {
        match event {
            LinkEvent::Up => {
                self.outbox.push(Output::Network(Network::Synchronised));
                self.tell_rpl(now, lowmesh_rpl::Input::Start);
                self.take_place(now);
            }
            LinkEvent::Down => {
                self.outbox.push(Output::Network(Network::Desynchronised));
                self.tell_rpl(now, lowmesh_rpl::Input::Stop);
            }
            LinkEvent::Received { source, broadcast, payload, handle } => {
                self.on_frame(now, source, broadcast, &payload, handle);
            }
            LinkEvent::Done { handle, acked, dropped } => {
                self.counters.frames_acked += u64::from(acked);
                self.on_frame_done(now, handle, dropped);
            }
            LinkEvent::Etx { peer, etx, fresh } => {
                let neighbour = Address::link_local(peer).0;
                let etx = lowmesh_rpl::Etx(etx);
                self.tell_rpl(now, lowmesh_rpl::Input::LinkEtx { neighbour, etx, fresh });
            }
            LinkEvent::Driver(order) => {
                if let Output::Radio(RadioOrder::Transmit { .. }) = &order {
                    self.counters.frames_sent += 1;
                }
                self.outbox.push(order);
            }
        }
    }

    /// A node with static routes has its place in the network as soon as it has neighbours.
    fn take_place(&mut self, now: Instant) {
        let Routing::Static(place) = &self.routing else { return };
        let (parent, metric) = (place.parent, u8::try_from(place.hops).unwrap_or(u8::MAX));
        for &child in &place.children {
            self.link.tell_sixtop(now, Event::ChildAdded(child));
        }
        let is_below_root = place.hops == 1;
        self.link.set_beacons(now, Some(metric));
        if let Some(root) = parent.filter(|_| is_below_root) {
            self.link.tell_sixtop(now, Event::RootKnown(root));
        }
        self.link.on_parent(now, None, parent);
        if let Some(parent) = parent {
            self.link.tell_sixtop(now, Event::KnownToParent(parent));
        }
        self.outbox.push(Output::Network(Network::Parent(parent)));
    }

    /// What RPL has to say that is not a message.
    pub(crate) fn tell_routes(&mut self, now: Instant, output: &lowmesh_rpl::Output) {
        match *output {
            lowmesh_rpl::Output::ParentChanged { old, new } => self.on_parent(now, old, new),
            lowmesh_rpl::Output::Joined { .. } | lowmesh_rpl::Output::RankChanged { .. } => {
                let metric = self.join_metric();
                self.link.set_beacons(now, metric);
            }
            lowmesh_rpl::Output::KnownToParent { parent } => {
                self.link.tell_sixtop(now, Event::KnownToParent(Address(parent).eui64()));
            }
            lowmesh_rpl::Output::Detached => self.link.set_beacons(now, None),
            lowmesh_rpl::Output::RouteAdded { target, via, .. } => {
                // In non-storing mode `via` is no neighbour: source routes come from RPL itself.
                if Address(via).is_link_local() {
                    // A full table sends the packet up instead of down: RPL's bound is the same.
                    let _full = self.ipv6.routes.insert(Address(target), Address(via));
                }
            }
            lowmesh_rpl::Output::RouteRemoved { target } => {
                self.ipv6.routes.remove(&Address(target));
            }
            lowmesh_rpl::Output::ChildAdded { child } => {
                self.link.tell_sixtop(now, Event::ChildAdded(Address(child).eui64()));
            }
            lowmesh_rpl::Output::ChildRemoved { child } => {
                self.link.tell_sixtop(now, Event::ChildRemoved(Address(child).eui64()));
            }
            lowmesh_rpl::Output::Send { .. } => {}
        }
    }

    fn on_parent(&mut self, now: Instant, old: Option<[u8; 16]>, new: Option<[u8; 16]>) {
        let eui = |address: Option<[u8; 16]>| address.map(|a| Address(a).eui64());
        let (old, new): (Option<Eui64>, Option<Eui64>) = (eui(old), eui(new));
        self.ipv6.routes.set_default(new.map(Address::link_local));
        let root = match &self.routing {
            Routing::Rpl(rpl) => rpl.dodag_id().map(|id| Address(id).eui64()),
            Routing::Static(_) => None,
        };
        if let Some(root) = root.filter(|root| new == Some(*root)) {
            self.link.tell_sixtop(now, Event::RootKnown(root));
        }
        self.link.on_parent(now, old, new);
        self.outbox.push(Output::Network(Network::Parent(new)));
    }

    /// RFC 8180 s6.1 (join priority): DAGRank of the rank, less that of the root.
    fn join_metric(&self) -> Option<u8> {
        let Routing::Rpl(rpl) = &self.routing else { return None };
        if !rpl.is_joined() {
            return None;
        }
        let hops = rpl.dag_rank().saturating_sub(1);
        Some(u8::try_from(hops).unwrap_or(u8::MAX))
    }

    pub(crate) fn note_packet(&mut self, packet: Packet) {
        self.outbox.push(Output::Packet(packet));
    }
}

fn coap(
    config: &Config,
    protection: Option<Protection<Peer, VolatileContexts>>,
    stream: &impl Fn(Purpose) -> Rng,
) -> Result<CoapHost, ConfigError> {
    let mut settings = config.coap.clone();
    settings.extensions.extend(extensions(protection.is_some()));
    settings.amplification_max = config.host.amplification_max;
    let endpoint = Endpoint::new(settings, stream(Purpose::Coap))?;
    let mut rng = stream(Purpose::Host);
    let protected = Protected::new(endpoint, protection, &config.host, rng.fork());
    Ok(Host::new(protected, config.host.clone(), rng))
}

/// RPL's settings with this node's addresses and role in them.
fn rpl(
    config: &Config,
    addresses: &Addresses,
    is_root: bool,
) -> Result<lowmesh_rpl::Config, ConfigError> {
    let mut rpl = config.rpl.clone();
    rpl.link_local = addresses.link_local().0;
    rpl.role = if is_root {
        lowmesh_rpl::Role::Root { dodag_id: addresses.global().0 }
    } else {
        lowmesh_rpl::Role::Router
    };
    rpl.check()?;
    Ok(rpl)
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
                self.on_uplink(now, packet, handle);
                Ok(())
            }
            Input::Ping { to, echo } => {
                let source = self.ipv6.addresses.source_for(&to);
                let mut payload = Vec::with_capacity(echo.data.len() + icmpv6::HEADER_LENGTH);
                Icmpv6::EchoRequest(echo).emit(&source.0, &to.0, &mut payload);
                self.send_control(now, source, to, &payload);
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
        let fragments = self.end_to_end.reassembly.next_deadline();
        let network = earliest(earliest(self.lowpan.next_deadline(), fragments), rpl);
        let ends = earliest(self.link.next_deadline(), self.coap.next_deadline());
        earliest(network, earliest(ends, self.applications.next_deadline()))
    }
}
