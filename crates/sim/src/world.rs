//! The world of a mesh: nodes, their clocks, the air between them, the application, and the books.
//!
//! What a node does it does in its machines. The world calls them when they are due and writes down what they say; a
//! [driver](crate::driver) carries the frames, and the [mesh](crate::mesh) moves time.

use lowmesh_machine::{
    DropReason, Dropped, Handle, Layer, Machine as _, debug_assert_accepted, earliest,
};
use lowmesh_stack::Node;
use lowmesh_stack::event::{Input, Network, Output, Packet, RadioOrder};
use lowmesh_units::{Asn, Channel, Eui64, Instant, NodeId, Seed};
use lowmesh_wire::ipv6::Address;

use crate::agenda::{Agenda, Kind};
use crate::air::overlay::Overlay;
use crate::air::{Interference, Links, Medium, Overlap};
use crate::backbone::{self, Backbone, Crossing, Effect, Fate};
use crate::blueprint::Blueprint;
use crate::books::Books;
use crate::capture::{Capture, Captured};
use crate::clock::Clock;
use crate::event::Memory;
use crate::group_book::Addressed;
use crate::moving::Site;
use crate::names::Names;
use crate::parts::Part;
use crate::power::Dark;
use crate::recovery::Recovery;
use crate::rootless::Rootless;
use crate::trace::{Fact, Trace};
use crate::unsent::Unsents;

/// The state that drivers work on.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) seed: Seed,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parts: Vec<Part>,
    pub(crate) names: Names,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) interference: Interference,
    pub(crate) overlap: Overlap,
    pub(crate) noise_mw: f64,
    pub(crate) books: Books,
    pub(crate) rootless: Rootless,
    pub(crate) agenda: Agenda,
    /// Radio orders of the last node whose outputs were processed; the driver executes them.
    pub(crate) orders: Vec<RadioOrder>,
    /// When each node is to boot, while it has not.
    pub(crate) boots: Vec<Option<Instant>>,
    /// Nodes without power.
    pub(crate) dark: Vec<Option<Dark>>,
    pub(crate) backbone: Backbone,
    pub(crate) blueprint: Blueprint,
    /// Links that events have changed.
    pub(crate) overlay: Overlay,
    /// The positions of nodes, if they can move.
    pub(crate) site: Option<Site>,
    /// Events whose recovery is not over.
    pub(crate) recovery: Recovery,
    /// What falls due at nodes that have not joined.
    pub(crate) unsent: Unsents,
}

/// Initial contents of a world; the rest is empty.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) seed: Seed,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parts: Vec<Part>,
    pub(crate) names: Names,
    pub(crate) clocks: Vec<Clock>,
    /// When each node is switched on.
    pub(crate) boots: Vec<Instant>,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) interference: Interference,
    pub(crate) backbone: Backbone,
    pub(crate) blueprint: Blueprint,
    pub(crate) trace: Trace,
    pub(crate) capture: Option<Capture>,
}

impl World {
    /// A world at time zero.
    pub(crate) fn new(beginning: Beginning) -> Self {
        let Beginning { seed, nodes, parts, names, clocks, boots, .. } = beginning;
        let Beginning { medium, interference, backbone, blueprint, trace, capture, .. } = beginning;
        let count = nodes.len();
        let ids = || (0..count).map(|n| NodeId(n as u16));
        let mut agenda = Agenda::new(count);
        for (id, at) in ids().zip(&boots) {
            agenda.set(id, Kind::Deadline, Some(*at));
        }
        Self {
            overlap: medium.overlap(),
            noise_mw: medium.noise().milliwatts(),
            books: Books::new(count, trace, capture),
            rootless: Rootless::new(ids().zip(&parts).map(|(id, part)| part.root == id)),
            boots: boots.into_iter().map(Some).collect(),
            dark: vec![None; count],
            overlay: Overlay::default(),
            site: None,
            recovery: Recovery::default(),
            unsent: Unsents::new(count),
            orders: Vec::new(),
            seed,
            nodes,
            parts,
            names,
            clocks,
            medium,
            interference,
            agenda,
            backbone,
            blueprint,
        }
    }

    /// The links as they are now.
    pub(crate) fn links(&self) -> &Links {
        self.overlay.links(self.medium.links())
    }

    /// Whether a node has no power.
    pub(crate) fn is_off(&self, node: NodeId) -> bool {
        self.dark[node.index()].is_some()
    }

    /// Whether `node` is the border router of its PAN, the root of its DODAG and a collector.
    pub(crate) fn is_root(&self, node: NodeId) -> bool {
        self.parts[node.index()].root == node
    }

    /// Writes down a frame that goes out at `at`, in a slot or not.
    pub(crate) fn note_sent(
        &mut self,
        now: Instant,
        at: Instant,
        from: NodeId,
        asn: Option<Asn>,
        channel: Channel,
        octets: &[u8],
    ) {
        let level = self.parts[from.index()].tx_power;
        self.books.note_sent(now, from, Captured { at, asn, channel, level, octets });
    }

    /// Writes down a frame to one neighbour.
    pub(crate) fn note_attempt(&mut self, from: NodeId, to: Eui64, octets: &[u8]) {
        if let Some(to) = self.names.node(to) {
            self.books.note_attempt(from, to, octets);
        }
    }

    /// Advances the medium if a change is due.
    pub(crate) fn change_air(&mut self, now: Instant) {
        if self.medium.next_change().is_some_and(|due| due <= now) {
            self.medium.advance(now);
            self.overlay.apply(self.medium.links());
        }
    }

    /// Processes the deadline of a node; the driver processes its outputs afterwards.
    pub(crate) fn deadline(&mut self, now: Instant, node: NodeId) {
        if self.is_off(node) {
            // What its lines and the wire bring is lost.
            self.backbone_due(now, node);
            return;
        }
        if self.boots[node.index()].take().is_some() {
            self.books.trace.note(now, node, Fact::Booted(self.names.eui64(node)));
            self.books.outcome.nodes[node.index()].booted.get_or_insert(now);
            self.unsent.boot(now, node, self.blueprint.due(node, &self.parts));
            self.tell(now, node, Input::Boot);
        }
        let due = self.nodes[node.index()].next_deadline();
        if due.is_some_and(|due| due <= now) {
            self.tell(now, node, Input::Deadline);
        }
        if self.is_root(node) {
            self.backbone_due(now, node);
        }
    }

    pub(crate) fn tell(&mut self, now: Instant, node: NodeId, input: Input) {
        // A node refuses what makes no sense in its state, such as an answer to a forgotten request.
        debug_assert_accepted(self.nodes[node.index()].handle(now, input));
    }

    /// Processes the outputs of a node, and schedules the next event of its machines. The driver schedules those of its
    /// radio.
    pub(crate) fn settle(&mut self, now: Instant, node: NodeId) {
        while let Some(output) = self.nodes[node.index()].poll_output() {
            match output {
                Output::Packet(packet) => {
                    self.books.note_packet(now, node, packet);
                    if let Packet::Addressed(handle, group) = packet {
                        let addressed = self.addressed(now, node, group);
                        self.books.note_addressed(handle, addressed);
                    }
                }
                Output::Application(event) => {
                    self.books.note_application(now, node, event, &self.names);
                }
                Output::Fragments(step) => self.books.timelines.note(now, node, step),
                Output::Network(network) => {
                    let changed = &self.nodes[node.index()];
                    self.books.note_network(now, node, &network, changed);
                    if let Network::Parent(parent) = network {
                        let parent = parent.and_then(|parent| self.names.node(parent));
                        self.rootless.set_parent(now, node, parent);
                    }
                    self.recovery.note_change();
                }
                Output::AdjustClock { micros } => {
                    self.clocks[node.index()].adjust(now, micros);
                }
                Output::Request { .. } => {
                    if let Some(answer) = output.not_found() {
                        self.tell(now, node, answer);
                    }
                }
                Output::Radio(order) => self.orders.push(order),
                Output::Uplink { packet, handle } => self.leave(now, node, packet, handle),
                // The world itself makes no requests, takes no datagrams and does not ping, and no node sends errors.
                Output::Transaction(_)
                | Output::Datagram { .. }
                | Output::Pong { .. }
                | Output::Trouble { .. } => {}
            }
        }
        if self.unsent.is_waiting(node) && !self.nodes[node.index()].awaits_network() {
            self.unsent.join(now, node);
        }
        let octets = self.nodes[node.index()].packet_buffer_octets();
        self.books.buffers[node.index()].set(now, octets);
        self.plan_deadline(now, node);
    }

    /// A packet of `node` to a group, with the members that the group has now in the mesh of `node`.
    fn addressed(&self, at: Instant, node: NodeId, group: Address) -> Addressed {
        let root = self.parts[node.index()].root;
        let ids = || (0..self.nodes.len()).map(|index| NodeId(index as u16));
        let is_member = |id: &NodeId| {
            let (other, part) = (&self.nodes[id.index()], &self.parts[id.index()]);
            *id != node && part.root == root && other.is_member(&group)
        };
        let parent = |id: NodeId| self.names.node(self.nodes[id.index()].parent()?);
        let (members, parents) = (ids().filter(is_member).collect(), ids().map(parent).collect());
        Addressed { at, node, group, members, parents }
    }

    /// A node is off from the start, until an event switches it on.
    pub(crate) fn start_late(&mut self, node: NodeId) {
        self.boots[node.index()] = None;
        self.dark[node.index()] = Some(Dark { since: Instant::ZERO, memory: Memory::Lost });
        self.agenda.set(node, Kind::Deadline, None);
    }

    /// Schedules the next event of a node.
    pub(crate) fn plan_deadline(&mut self, now: Instant, node: NodeId) {
        let index = node.index();
        let boot = self.boots[index];
        if self.is_root(node) {
            let is_sending = self.nodes[index].is_sending();
            self.backbone.note_radio(now, node, is_sending);
        }
        let machines = earliest(self.nodes[index].next_deadline(), self.backbone.next(node));
        // Nothing happens at a node before it is switched on.
        let deadline = boot.or(machines.map(|due| due.max(now)));
        let deadline = if self.is_off(node) { self.backbone.next(node) } else { deadline };
        self.agenda.set(node, Kind::Deadline, deadline);
    }

    /// A packet leaves the mesh at the border router `node`.
    fn leave(&mut self, now: Instant, node: NodeId, packet: Vec<u8>, handle: Handle) {
        self.books.trace.note(now, node, Fact::Left { handle, octets: packet.len() });
        if let Some(group) = backbone::destination(&packet).filter(Address::is_multicast) {
            return self.leave_to_group(now, node, group, &packet, handle);
        }
        match self.backbone.take(now, node, packet, handle) {
            Fate::Crosses(to) => self.plan_deadline(now, to),
            Fate::Gone => self.books.note_packet(now, node, Packet::Delivered(handle)),
            Fate::NoRoute => {
                let (layer, reason) = (Layer::Ipv6, DropReason::NoRoute);
                self.books.note_packet(
                    now,
                    node,
                    Packet::Dropped(Dropped { handle, layer, reason }),
                );
            }
        }
    }

    /// A packet to a group leaves the mesh at the border router `node`: a copy goes to each other mesh with members.
    fn leave_to_group(
        &mut self,
        now: Instant,
        node: NodeId,
        group: Address,
        packet: &[u8],
        handle: Handle,
    ) {
        for end in self.backbone.others(node) {
            let is_behind =
                |(part, other): (&Part, &Node)| part.root == end && other.is_member(&group);
            if !self.parts.iter().zip(&self.nodes).any(is_behind) {
                continue;
            }
            if let Fate::Crosses(to) = self.backbone.carry(now, node, end, packet.to_vec(), handle)
            {
                self.books.note_packet(now, node, Packet::Accepted(handle));
                self.plan_deadline(now, to);
            }
        }
        self.backbone.offer(now, node, packet);
        self.books.note_packet(now, node, Packet::PassedOn(handle));
    }

    /// Does what is due on the backbone at a border router, and gives it what has come.
    fn backbone_due(&mut self, now: Instant, node: NodeId) {
        for effect in self.backbone.advance(now, node) {
            match effect {
                Effect::Wake(other) if other != node => self.plan_deadline(now, other),
                Effect::Wake(_) => {}
                Effect::Lost(from, handle, reason) => {
                    let dropped = Dropped { handle, layer: Layer::Mac, reason };
                    self.books.note_packet(now, from, Packet::Dropped(dropped));
                }
            }
        }
        while let Some(Crossing { packet, handle, .. }) = self.backbone.arrived(now, node) {
            self.books.trace.note(now, node, Fact::Entered { handle, octets: packet.len() });
            if self.is_off(node) {
                let dropped = Dropped { handle, layer: Layer::Mac, reason: DropReason::PowerLost };
                self.books.note_packet(now, node, Packet::Dropped(dropped));
                continue;
            }
            self.tell(now, node, Input::Uplink { packet, handle });
        }
    }
}
