//! A node: every layer a machine of its own, and this the machine made of them.
//!
//! ```text
//!            Request, Respond                         Transaction, Request
//!                  │                                        ^
//!      coap ───────┼──────────── udp ── ipv6 ── lowpan ─────┼──── mac ── radio
//!                  v            rpl ─────┘                  │      │
//!                descend ───────────────────────────────> ascend   sixtop
//! ```
//! Layers do not know each other. What one must tell another sideways is an arm of [`Node::tell_network`]
//! and nowhere else:
//!
//! | from | to | what |
//! |---|---|---|
//! | mac: synchronised, desynchronised | rpl, sixtop | start, stop |
//! | mac: queue busy, queue empty | sixtop | autonomous cells |
//! | mac: ETX | rpl | link metric |
//! | rpl: parent | mac, sixtop, ipv6 | time source, cells, default route |
//! | rpl: no parent for long | mac | leave the network |
//! | rpl: rank | mac | join metric of beacons |
//! | rpl: child, known to parent | sixtop | cells |
//! | rpl: route | ipv6 | route |

use alloc::vec::Vec;

use lowmesh_coap::Endpoint;
use lowmesh_ipv6::{Addresses, Forwarder, RouteTable};
use lowmesh_lowpan::Adaptation;
use lowmesh_mac::tsch::{self, Tsch};
use lowmesh_machine::{Dropped, Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_rpl::Rpl;
use lowmesh_sixtop::machine::{Change, SixtopEvent};
use lowmesh_sixtop::{Event, Sixtop};
use lowmesh_units::{Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::Contexts;

use crate::ORPHAN_MAX;
use crate::config::{Config, ConfigError};
use crate::event::{Class, Input, Network, Output, Packet, Peer, Transaction};

/// What a node counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames handed to the radio, retries included.
    pub frames_sent: u64,
    /// Frames to one neighbour that were acknowledged.
    pub frames_acked: u64,
}

/// One node of a mesh.
#[derive(Debug)]
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) is_root: bool,
    pub(crate) mac: Tsch,
    pub(crate) sixtop: Sixtop,
    pub(crate) lowpan: Adaptation,
    pub(crate) ipv6: Forwarder,
    pub(crate) rpl: Rpl,
    pub(crate) coap: Endpoint<Peer>,
    pub(crate) hop_limit: u8,
    pub(crate) outbox: Outbox<Output>,
    pub(crate) counters: Counters,
    /// Why the MAC gave up the frame that 6LoWPAN is being told of.
    pub(crate) failure: Option<Dropped>,
    /// Since when the node is synchronised without a parent.
    orphan_since: Option<Instant>,
    /// Number of the last packet made here.
    last_packet: u64,
    /// Number of the schedule's last change that the MAC was told of.
    seen_schedule: u64,
}

impl Node {
    /// A node that is switched off.
    pub fn new(
        config: &Config,
        id: NodeId,
        is_root: bool,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let me = id.eui64();
        let stream = |purpose| Rng::stream(seed, id, purpose);
        let addresses = Addresses::new(me, config.prefix);
        let mut rpl = config.rpl.clone();
        rpl.link_local = addresses.link_local().0;
        rpl.role = if is_root {
            lowmesh_rpl::Role::Root { dodag_id: addresses.global().0 }
        } else {
            lowmesh_rpl::Role::Router
        };
        rpl.check()?;
        let routes = RouteTable::new(rpl.routes_max);
        let function = config.scheduling.function();
        let contexts = Contexts::new().with(0, config.prefix);
        let lowpan_rng = stream(Purpose::Lowpan);
        Ok(Self {
            id,
            is_root,
            mac: Tsch::new(config.mac.clone(), me, stream(Purpose::Mac)),
            sixtop: Sixtop::new(me, config.mac.slot, function, stream(Purpose::Sixtop)),
            lowpan: Adaptation::new(me, contexts, config.lowpan, lowpan_rng),
            ipv6: Forwarder::new(addresses, routes),
            rpl: Rpl::new(rpl, stream(Purpose::Rpl)),
            coap: Endpoint::new(config.coap.clone(), stream(Purpose::Coap))?,
            hop_limit: config.hop_limit,
            outbox: Outbox::new(),
            counters: Counters::default(),
            failure: None,
            orphan_since: None,
            last_packet: 0,
            seen_schedule: 0,
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

    fn boot(&mut self, now: Instant) -> Result<(), Rejected> {
        self.mac.handle(now, tsch::Input::Start { coordinator: self.is_root })?;
        self.tell_sixtop(now, Event::Started { root: self.is_root });
        Ok(())
    }

    fn deadline(&mut self, now: Instant) -> Result<(), Rejected> {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if due(self.mac.next_deadline()) {
            self.mac.handle(now, tsch::Input::Deadline)?;
        }
        if due(self.sixtop.next_deadline()) {
            self.tell_sixtop(now, Event::Deadline);
        }
        if due(self.lowpan.next_deadline()) {
            self.lowpan.handle(now, lowmesh_lowpan::Input::Deadline)?;
        }
        if due(self.rpl.next_deadline()) {
            self.rpl.handle(now, lowmesh_rpl::Input::Deadline)?;
        }
        if due(self.orphan_deadline()) {
            self.orphan_since = None;
            self.mac.handle(now, tsch::Input::Leave)?;
        }
        if due(self.coap.next_deadline()) {
            self.coap.handle(now, lowmesh_coap::Input::Deadline)?;
        }
        Ok(())
    }

    /// Lets every layer say what it has to say, until all are silent.
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.mac.poll_output() {
                self.on_mac(now, output);
            } else if let Some(output) = self.lowpan.poll_output() {
                self.on_lowpan(now, output);
            } else if let Some(output) = self.sixtop.poll_output() {
                self.on_sixtop(now, output);
            } else if let Some(output) = self.rpl.poll_output() {
                self.on_rpl(now, output);
            } else if let Some(output) = self.coap.poll_output() {
                self.on_coap(now, output);
            } else {
                break;
            }
        }
    }

    /// One layer's answer to another is never refused: both are composed here, and this is their contract.
    pub(crate) fn expect_accepted(result: Result<(), Rejected>) {
        debug_assert!(result.is_ok(), "{result:?}");
    }

    pub(crate) fn tell_sixtop(&mut self, now: Instant, event: Event) {
        self.drive_sixtop(now, SixtopEvent::Event(event));
    }

    pub(crate) fn drive_sixtop(&mut self, now: Instant, event: SixtopEvent<'_>) {
        let asn = self.mac.asn(now);
        let schedule = self.mac.schedule_mut(now);
        let input = lowmesh_sixtop::machine::Input { asn, schedule, event };
        Self::expect_accepted(self.sixtop.handle(now, input));
        let generation = self.mac.schedule().generation();
        if generation != self.seen_schedule {
            self.seen_schedule = generation;
            Self::expect_accepted(self.mac.handle(now, tsch::Input::ScheduleChanged));
        }
    }

    pub(crate) fn tell_mac(&mut self, now: Instant, input: tsch::Input<'_>) {
        Self::expect_accepted(self.mac.handle(now, input));
    }

    pub(crate) fn tell_rpl(&mut self, now: Instant, input: lowmesh_rpl::Input<'_>) {
        Self::expect_accepted(self.rpl.handle(now, input));
    }

    /// What the MAC has to say that is not a frame.
    pub(crate) fn tell_network(&mut self, now: Instant, output: &tsch::Output) {
        match *output {
            tsch::Output::Synchronised { time_source } => {
                self.outbox.push(Output::Network(Network::Synchronised));
                self.orphan_since = Some(now).filter(|_| !self.is_root);
                self.tell_sixtop(now, Event::Synchronised);
                self.tell_sixtop(now, Event::TimeSource(time_source));
                self.tell_rpl(now, lowmesh_rpl::Input::Start);
            }
            tsch::Output::Desynchronised => {
                self.outbox.push(Output::Network(Network::Desynchronised));
                self.orphan_since = None;
                self.tell_sixtop(now, Event::Desynchronised);
                self.tell_rpl(now, lowmesh_rpl::Input::Stop);
            }
            tsch::Output::QueueBusy(peer) => self.tell_sixtop(now, Event::QueueBusy(peer)),
            tsch::Output::QueueEmpty(peer) => self.tell_sixtop(now, Event::QueueEmpty(peer)),
            tsch::Output::LinkEtx { peer, etx } => {
                let neighbour = Address::link_local(peer).0;
                let fresh = self
                    .mac
                    .links()
                    .get(peer)
                    .is_some_and(|link| link.samples >= lowmesh_mac::params::ETX_FRESH);
                let etx = lowmesh_rpl::Etx(etx);
                self.tell_rpl(now, lowmesh_rpl::Input::LinkEtx { neighbour, etx, fresh });
            }
            tsch::Output::AdjustClock { micros } => {
                self.outbox.push(Output::AdjustClock { micros });
            }
            tsch::Output::Sent { .. }
            | tsch::Output::Dropped { .. }
            | tsch::Output::Received { .. }
            | tsch::Output::Sixtop { .. } => {}
        }
    }

    /// What RPL has to say that is not a message.
    pub(crate) fn tell_routes(&mut self, now: Instant, output: &lowmesh_rpl::Output) {
        match *output {
            lowmesh_rpl::Output::ParentChanged { old, new } => self.on_parent(now, old, new),
            lowmesh_rpl::Output::Joined { .. } | lowmesh_rpl::Output::RankChanged { .. } => {
                let metric = self.join_metric();
                self.tell_mac(now, tsch::Input::SetBeacons(metric));
            }
            lowmesh_rpl::Output::KnownToParent { parent } => {
                self.tell_sixtop(now, Event::KnownToParent(Address(parent).eui64()));
            }
            lowmesh_rpl::Output::Detached => self.tell_mac(now, tsch::Input::SetBeacons(None)),
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
                self.tell_sixtop(now, Event::ChildAdded(Address(child).eui64()));
            }
            lowmesh_rpl::Output::ChildRemoved { child } => {
                self.tell_sixtop(now, Event::ChildRemoved(Address(child).eui64()));
            }
            lowmesh_rpl::Output::Send { .. } => {}
        }
    }

    fn on_parent(&mut self, now: Instant, old: Option<[u8; 16]>, new: Option<[u8; 16]>) {
        let eui = |address: Option<[u8; 16]>| address.map(|a| Address(a).eui64());
        let (old, new): (Option<Eui64>, Option<Eui64>) = (eui(old), eui(new));
        self.ipv6.routes.set_default(new.map(Address::link_local));
        self.orphan_since = if new.is_none() { Some(now) } else { None };
        if let Some(parent) = new {
            self.tell_mac(now, tsch::Input::SetTimeSource(parent));
            self.tell_sixtop(now, Event::TimeSource(Some(parent)));
        }
        self.tell_sixtop(now, Event::ParentChanged { old, new });
        self.outbox.push(Output::Network(Network::Parent(new)));
    }

    /// When a node without a parent gives the network up.
    fn orphan_deadline(&self) -> Option<Instant> {
        Some(self.orphan_since? + ORPHAN_MAX)
    }

    /// RFC 8180 s6.1 (join priority): DAGRank of the rank, less that of the root.
    fn join_metric(&self) -> Option<u8> {
        if !self.rpl.is_joined() {
            return None;
        }
        let hops = self.rpl.dag_rank().saturating_sub(1);
        Some(u8::try_from(hops).unwrap_or(u8::MAX))
    }

    fn on_sixtop(&mut self, now: Instant, output: lowmesh_sixtop::machine::Output) {
        match output {
            lowmesh_sixtop::machine::Output::Send { to, bytes, handle } => {
                let content = lowmesh_mac::frame::Content::Sixtop(&bytes);
                let priority = lowmesh_mac::queue::Priority::Control;
                let destination = Some(to);
                let input = tsch::Input::Send { destination, content, priority, handle };
                self.tell_mac(now, input);
            }
            lowmesh_sixtop::machine::Output::Event(change) => self.note_change(&change),
        }
    }

    fn note_change(&mut self, change: &Change) {
        let (what, cell) = match change {
            Change::Added(cell) => ("added", cell),
            Change::Removed(cell) => ("removed", cell),
            _ => return,
        };
        let place = |cycle| match cell.placement {
            lowmesh_mac::tsch::cell::Placement::Fixed { slot, channel_offset } => {
                (slot, channel_offset)
            }
            hashed @ lowmesh_mac::tsch::cell::Placement::Hashed { .. } => hashed.at(cycle, 1),
        };
        if let Some(peer) = cell.peer {
            let cells = Vec::from([place(0)]);
            self.outbox.push(Output::Network(Network::Cells { peer, what, cells }));
        }
    }

    pub(crate) fn note_packet(&mut self, packet: Packet) {
        self.outbox.push(Output::Packet(packet));
    }
    pub(crate) fn note_transaction(&mut self, transaction: Transaction) {
        self.outbox.push(Output::Transaction(transaction));
    }
}

impl Machine for Node {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        let result = match input {
            Input::Boot => self.boot(now),
            Input::Deadline => self.deadline(now),
            Input::Request { peer, request, handle } => self
                .coap
                .handle(now, lowmesh_coap::Input::Request { peer, message: request, handle }),
            Input::Respond { exchange, response } => {
                let handle = Handle::NONE;
                self.coap.handle(now, lowmesh_coap::Input::Respond { exchange, response, handle })
            }
        };
        self.settle(now);
        result
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let link = earliest(self.mac.next_deadline(), self.sixtop.next_deadline());
        let network = earliest(self.lowpan.next_deadline(), self.rpl.next_deadline());
        let above = earliest(self.coap.next_deadline(), self.orphan_deadline());
        earliest(earliest(link, network), above)
    }
}
