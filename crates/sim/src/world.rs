//! The world: nodes, their clocks, the air between them, and the loop that moves time.
//!
//! Time goes from event to event, never from slot to slot. What a node does it does in its machines; the
//! world only carries frames, keeps clocks and writes the books.

use std::collections::BTreeMap;
use std::io;

use lowmesh_mac::account::RadioTime;
use lowmesh_machine::{Machine as _, earliest, expect_accepted};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{Application, LinkLayer, Node};
use lowmesh_units::{Eui64, Instant, NodeId, Purpose, Rng, Seed};

use crate::agenda::{Agenda, Kind};
use crate::air::{Cca, Interference, Medium, Overlap, build};
use crate::capture::Capture;
use crate::clock::Clock;
use crate::config::Config;
use crate::courses::Courses;
use crate::error::Error;
use crate::failure::Life;
use crate::flight::{Hearers, Scratch};
use crate::ledger::Ledger;
use crate::names::Names;
use crate::occupancy::Occupancy;
use crate::radio::Radio;
use crate::record::{NodeSummary, Outcome};
use crate::trace::{Fact, Trace};
use crate::traffic::applications;

/// The node that is the border router, the root of the DODAG and the collector.
pub const ROOT: NodeId = NodeId(0);

/// How often progress is told, in events.
const PROGRESS_EVENTS: u64 = 4096;

/// Where a run writes what it does.
#[derive(Default)]
pub struct Sinks {
    /// A capture of every frame.
    pub pcap: Option<Box<dyn io::Write + Send>>,
    /// A line of JSON for every fact.
    pub trace: Option<Box<dyn io::Write + Send>>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sinks")
    }
}

/// A network in simulated time.
#[derive(Debug)]
pub struct World {
    pub(crate) config: Config,
    pub(crate) seed: Seed,
    pub(crate) nodes: Vec<Node>,
    pub(crate) names: Names,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) interference: Interference,
    pub(crate) overlap: Overlap,
    pub(crate) noise_mw: f64,
    /// When a sensed channel is busy.
    pub(crate) cca: Cca,
    pub(crate) trace: Trace,
    pub(crate) capture: Option<Capture>,
    pub(crate) capture_error: Option<io::Error>,
    pub(crate) scratch: Scratch,
    /// One a node under carrier sense; none under TSCH.
    pub(crate) radios: Vec<Radio>,
    pub(crate) hearers: Hearers,
    /// Frames so far under carrier sense.
    pub(crate) frames_begun: u64,
    pub(crate) agenda: Agenda,
    pub(crate) lives: Vec<Life>,
    boots: Vec<Option<Instant>>,
    pub(crate) ledger: Ledger,
    pub(crate) outcome: Outcome,
    pub(crate) courses: Courses,
    /// Places in the record of the requests of each node, by their numbers from 1.
    pub(crate) requests: Vec<Vec<usize>>,
    /// Places in the record of what nodes published, by node and number.
    pub(crate) published: BTreeMap<(NodeId, u32), usize>,
    /// The packet buffer of each node.
    pub(crate) buffers: Vec<Occupancy>,
    /// Radio time of each node at the moment it joined.
    pub(crate) joined_radio: Vec<RadioTime>,
    now: Instant,
}

impl World {
    /// Builds the network of `config` with the randomness of `seed`; nothing has happened yet.
    pub fn new(config: Config, seed: Seed, sinks: Sinks) -> Result<Self, Error> {
        let mut config = config;
        let topology = config.topology.place(seed)?;
        let medium = build(&config.medium, &topology, seed)?;
        let count = topology.nodes();
        if let Some(oscore) = &mut config.node.oscore {
            oscore.nodes = count as u16;
        }
        let interference =
            Interference::new(&config.interferers, count, topology.positions(), seed)?;
        let ids = (0..count).map(|n| NodeId(n as u16));
        let mut nodes = ids
            .clone()
            .map(|id| Node::new(&config.node, id, id == ROOT, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<_> = nodes.iter().map(Node::global_address).collect();
        for (id, node) in ids.clone().zip(&mut nodes) {
            for one in applications(&config.traffic, &config.node.routes, seed, id, &addresses) {
                node.install(one)?;
            }
        }
        let names = Names::new(ids.clone().map(|id| config.node.addressing.eui64(seed, id)));
        let mut boots = Vec::with_capacity(count);
        let mut agenda = Agenda::new(count);
        for id in ids.clone() {
            let mut rng = Rng::stream(seed, id, Purpose::Boot);
            let wait = config.boot_spread.mul_f64(rng.unit());
            let at = if id == ROOT { Instant::ZERO } else { Instant::ZERO + wait };
            boots.push(Some(at));
            agenda.set(id, Kind::Deadline, Some(at));
        }
        let mut lives = vec![Life::default(); count];
        for (node, after) in &config.failures {
            if let Some(life) = lives.get_mut(node.index()) {
                life.ends = Some(Instant::ZERO + *after);
            }
        }
        Ok(Self {
            lives,
            overlap: medium.overlap(),
            noise_mw: medium.noise().milliwatts(),
            cca: config.carrier.cca(),
            clocks: ids.map(|id| Clock::new(seed, id, config.drift_max_ppm)).collect(),
            outcome: Outcome { nodes: vec![NodeSummary::default(); count], ..Outcome::default() },
            capture: sinks.pcap.map(Capture::new).transpose().map_err(Error::Capture)?,
            trace: Trace::new(sinks.trace),
            capture_error: None,
            scratch: Scratch::default(),
            radios: match config.node.link {
                LinkLayer::Tsch => Vec::new(),
                LinkLayer::Csma(_) => vec![Radio::default(); count],
            },
            hearers: Hearers::default(),
            frames_begun: 0,
            ledger: Ledger::default(),
            courses: Courses::default(),
            requests: vec![Vec::new(); count],
            published: BTreeMap::new(),
            now: Instant::ZERO,
            config,
            seed,
            nodes,
            names,
            medium,
            interference,
            agenda,
            boots,
            buffers: vec![Occupancy::default(); count],
            joined_radio: vec![RadioTime::default(); count],
        })
    }

    /// Runs to the end of the configured duration; `progress` is told the time now and then.
    pub fn run(mut self, progress: &dyn Fn(Instant)) -> Result<Outcome, Error> {
        let end = Instant::ZERO + self.config.duration;
        self.advance(end, progress);
        self.finish(end)
    }

    /// Puts one more application on a node, before anything has happened.
    pub fn install(&mut self, node: NodeId, one: Box<dyn Application>) -> Result<(), Error> {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.install(one)?;
        }
        Ok(())
    }

    /// The nodes, root first, as they are now.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that has an address.
    pub fn node_with(&self, address: Eui64) -> Option<NodeId> {
        self.names.node(address)
    }

    /// The address of a node of this network.
    pub fn eui64(&self, node: NodeId) -> Eui64 {
        self.names.eui64(node)
    }

    /// Lets everything happen that is due before `end`; [`World::run`] goes on from there.
    pub fn advance(&mut self, end: Instant, progress: &dyn Fn(Instant)) {
        let mut events: u64 = 0;
        while let Some((time, kind, node)) = self.agenda.peek().filter(|e| e.0 < end) {
            self.agenda.pop();
            self.now = time;
            self.change_air(time);
            match kind {
                Kind::Deadline => self.deadline(time, node),
                Kind::Sense => self.sensed(time, node),
                Kind::Frame => self.frame_step(time, node),
                Kind::Slot => self.timeslot(time, node),
            }
            events += 1;
            if events.is_multiple_of(PROGRESS_EVENTS) {
                progress(time);
            }
        }
    }

    /// The next node that sends in the slot that starts at `now`.
    pub(crate) fn pop_sender(&mut self, now: Instant) -> Option<NodeId> {
        let (time, kind, node) = self.agenda.peek()?;
        if (time, kind) != (now, Kind::Slot) {
            return None;
        }
        self.agenda.pop();
        Some(node)
    }

    fn change_air(&mut self, now: Instant) {
        if self.medium.next_change().is_some_and(|due| due <= now) {
            self.medium.advance(now);
        }
    }

    fn deadline(&mut self, now: Instant, node: NodeId) {
        if self.fails(now, node) {
            return;
        }
        if self.boots[node.index()].take().is_some() {
            self.trace.note(now, node, Fact::Booted(self.names.eui64(node)));
            self.tell(now, node, Input::Boot);
        }
        let due = self.nodes[node.index()].next_deadline();
        if due.is_some_and(|due| due <= now) {
            self.tell(now, node, Input::Deadline);
        }
        self.settle(now, node);
    }

    fn tell(&mut self, now: Instant, node: NodeId, input: Input) {
        // A node refuses what makes no sense in its state, such as an answer to a forgotten request.
        expect_accepted(self.nodes[node.index()].handle(now, input));
    }

    /// Takes what a node has to say, and notes when it wants to be called again.
    pub(crate) fn settle(&mut self, now: Instant, node: NodeId) {
        while let Some(output) = self.nodes[node.index()].poll_output() {
            match output {
                Output::Packet(packet) => self.note_packet(now, node, packet),
                Output::Application(event) => self.note_application(now, node, event),
                Output::Fragments(step) => self.courses.note(now, node, step),
                Output::Network(network) => self.note_network(now, node, &network),
                Output::AdjustClock { micros } => {
                    self.clocks[node.index()].adjust(now, micros);
                }
                Output::Request { .. } => {
                    if let Some(answer) = output.not_found() {
                        self.tell(now, node, answer);
                    }
                }
                Output::Radio(_) if self.lives[node.index()].failed => {}
                Output::Radio(order) => self.radios[node.index()].take(order),
                // The world itself makes no requests, takes no datagrams and does not ping, and no node sends errors.
                Output::Transaction(_)
                | Output::Datagram { .. }
                | Output::Pong { .. }
                | Output::Trouble { .. } => {}
            }
        }
        let index = node.index();
        self.buffers[index].set(now, self.nodes[index].packet_buffer_octets());
        let life = self.lives[index];
        if life.failed {
            return self.silence(node);
        }
        let boot = self.boots[index];
        let machines = self.nodes[index].next_deadline();
        // Nothing happens at a node before it is switched on.
        let deadline = boot.or(machines.map(|due| due.max(now)));
        self.agenda.set(node, Kind::Deadline, earliest(deadline, life.ends));
        match self.radios.get(index) {
            Some(radio) => {
                self.agenda.set(node, Kind::Sense, radio.sensed_at());
                self.agenda.set(node, Kind::Frame, radio.next_frame_step());
            }
            None => self.agenda.set(node, Kind::Slot, self.nodes[index].next_transmission()),
        }
    }
}
