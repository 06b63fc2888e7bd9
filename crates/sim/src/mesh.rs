//! A mesh in simulated time, whole or step by step.
//!
//! Time goes from event to event, never from slot to slot.

use std::collections::VecDeque;
use std::io;

use lowmesh_machine::{Handle, Machine as _, Rejected, earliest};
use lowmesh_stack::Node;
use lowmesh_stack::event::Input;
use lowmesh_units::{Duration, Eui64, Instant, NodeId};
use lowmesh_wire::ipv6::{Address, Header};

use crate::agenda::Kind;
use crate::air::error::BuildError;
use crate::driver::Driver;
use crate::error::Error;
use crate::event::{Event, EventError};
use crate::record::Outcome;
use crate::snapshot::{NodeSnapshot, Snapshot};
use crate::world::World;

/// Events between two progress reports.
const PROGRESS_EVENTS: u64 = 4096;

/// Outputs of a run.
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

/// Why a node does not accept a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// There is no such node.
    #[error("node {node} does not exist; nodes are numbered from 0, and there are {nodes}")]
    NoNode {
        /// The number that was given.
        node: NodeId,
        /// How many nodes there are.
        nodes: usize,
    },
    /// The time is in the past.
    #[error("{at} is in the past; the mesh is at {now}, so inject at {now} or later")]
    Past {
        /// The time that was given.
        at: Instant,
        /// The current time of the mesh.
        now: Instant,
    },
    /// The node has no power.
    #[error("node {node} is switched off; switch it on with an event, or choose another node")]
    Off {
        /// The node.
        node: NodeId,
    },
    /// The node refuses.
    #[error("{0}")]
    Refused(Rejected),
    /// The octets are no IPv6 packet.
    #[error(
        "the octets are not an IPv6 packet: {0}; give one whole packet, beginning with its version"
    )]
    Malformed(String),
}

/// Why an event cannot happen now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The time is in the past.
    #[error("{at} is in the past; the mesh is at {now}, so apply the event at {now} or later")]
    Past {
        /// The time that was given.
        at: Instant,
        /// The current time of the mesh.
        now: Instant,
    },
    /// The event is not possible.
    #[error(transparent)]
    Event(#[from] EventError),
}

/// Events that are to happen, in order of time.
pub(crate) type Plan = VecDeque<(Instant, Event)>;

/// A mesh: nodes, a medium, and simulated time.
///
/// Three nodes in a line run for half an hour:
///
/// ```
/// use lowmesh_sim::air::{build, unit_disk};
/// use lowmesh_sim::topology::TopologySpec;
/// use lowmesh_sim::{Mesh, NodeParts, PAN};
/// use lowmesh_units::{Duration, NodeId, Seed};
///
/// let seed = Seed(1);
/// let line = TopologySpec::Line { nodes: 3, spacing_m: 40.0 }.place(seed)?;
/// let mut mesh = Mesh::builder(seed)
///     .medium(build(&unit_disk::ROW, &line, seed)?)
///     .node(NodeId(0), NodeParts::border_router(PAN))
///     .nodes(1..=2, |_| NodeParts::router(PAN))
///     .build()?;
/// mesh.run_for(Duration::from_secs(1800));
/// assert_eq!(mesh.snapshot().nodes[2].parent, Some(NodeId(1)));
/// assert!(mesh.finish()?.frames.sent > 0);
/// # Ok::<(), lowmesh_sim::Error>(())
/// ```
#[derive(Debug)]
pub struct Mesh {
    pub(crate) world: World,
    pub(crate) driver: Box<dyn Driver>,
    /// Events that are to happen, in order of time.
    pub(crate) plan: Plan,
    /// Why an event could not happen that was possible when it was planned.
    pub(crate) fault: Option<BuildError>,
    /// All events before this time have been processed.
    now: Instant,
}

impl Mesh {
    pub(crate) fn new(world: World, driver: Box<dyn Driver>, plan: Plan) -> Self {
        Self { world, driver, plan, fault: None, now: Instant::ZERO }
    }

    /// The current time: all events before it have been processed.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The time of the next event; `None` if there is none.
    pub fn next_event(&self) -> Option<Instant> {
        let planned = self.plan.front().map(|(at, _)| *at);
        earliest(planned, self.world.agenda.peek().map(|(time, ..)| time))
    }

    /// Processes all events before `until`. A time in the past changes nothing.
    pub fn advance(&mut self, until: Instant) {
        self.advance_watched(until, &|_| ());
    }

    /// Does what [`Mesh::advance`] does, and calls `progress` with the time at intervals.
    pub fn advance_watched(&mut self, until: Instant, progress: &dyn Fn(Instant)) {
        let mut events: u64 = 0;
        loop {
            let next = self.world.agenda.peek().filter(|event| event.0 < until);
            let is_first = |at: Instant| at < until && next.is_none_or(|(time, ..)| at <= time);
            if self.plan.front().is_some_and(|(at, _)| is_first(*at)) {
                // The plan was checked when the mesh was built.
                if let Some((at, event)) = self.plan.pop_front() {
                    self.happen(at, event);
                }
                continue;
            }
            let Some((time, kind, node)) = next else { break };
            self.world.agenda.pop();
            self.world.change_air(time);
            if kind == Kind::Deadline {
                self.world.deadline(time, node);
                self.driver.settle(&mut self.world, time, node);
            } else {
                self.driver.event(&mut self.world, time, kind, node);
            }
            self.world.watch_recovery(time);
            events += 1;
            if events.is_multiple_of(PROGRESS_EVENTS) {
                progress(time);
            }
        }
        self.now = self.now.max(until);
    }

    /// Advances by `span`.
    pub fn run_for(&mut self, span: Duration) {
        self.advance(self.now + span);
    }

    /// Passes an IPv6 packet to a node at `now`, as if it came over the node's uplink. The node forwards it into the
    /// mesh or receives it. All events before `now` are processed first.
    pub fn inject(&mut self, now: Instant, node: NodeId, packet: &[u8]) -> Result<(), InjectError> {
        if let Err(error) = Header::parse_packet(packet) {
            return Err(InjectError::Malformed(error.to_string()));
        }
        self.tell(now, node, Input::Uplink { packet: packet.to_vec(), handle: Handle::NONE })
    }

    /// Lets a node join a group at `now`. All events before `now` are processed first.
    pub fn join_group(
        &mut self,
        now: Instant,
        node: NodeId,
        group: Address,
    ) -> Result<(), InjectError> {
        self.tell(now, node, Input::Join { group })
    }

    /// Lets a node leave a group at `now`. All events before `now` are processed first.
    pub fn leave_group(
        &mut self,
        now: Instant,
        node: NodeId,
        group: Address,
    ) -> Result<(), InjectError> {
        self.tell(now, node, Input::Leave { group })
    }

    /// Lets something happen to the mesh at `now`. All events before `now` are processed first.
    ///
    /// ```
    /// # use lowmesh_sim::air::{build, unit_disk};
    /// # use lowmesh_sim::topology::TopologySpec;
    /// use lowmesh_sim::event::{Event, Memory};
    /// use lowmesh_sim::{Mesh, NodeParts, PAN};
    /// use lowmesh_units::{Instant, NodeId, Seed};
    ///
    /// # let seed = Seed(1);
    /// # let line = TopologySpec::Line { nodes: 3, spacing_m: 40.0 }.place(seed)?;
    /// # let mut mesh = Mesh::builder(seed)
    /// #     .medium(build(&unit_disk::ROW, &line, seed)?)
    /// #     .node(NodeId(0), NodeParts::border_router(PAN))
    /// #     .nodes(1..=2, |_| NodeParts::router(PAN))
    /// #     .build()?;
    /// mesh.apply(Instant::from_secs(600), Event::Off { node: NodeId(1), memory: Memory::Lost })?;
    /// mesh.apply(Instant::from_secs(660), Event::On { node: NodeId(1) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&mut self, now: Instant, event: Event) -> Result<(), ApplyError> {
        if now < self.now {
            return Err(ApplyError::Past { at: now, now: self.now });
        }
        event.check(self.world.nodes.len())?;
        self.advance(now);
        self.world.check_event(&event)?;
        self.happen(now, event);
        Ok(())
    }

    fn tell(&mut self, now: Instant, node: NodeId, input: Input) -> Result<(), InjectError> {
        if node.index() >= self.world.nodes.len() {
            return Err(InjectError::NoNode { node, nodes: self.world.nodes.len() });
        }
        if now < self.now {
            return Err(InjectError::Past { at: now, now: self.now });
        }
        self.advance(now);
        if self.world.is_off(node) {
            return Err(InjectError::Off { node });
        }
        self.world.nodes[node.index()].handle(now, input).map_err(InjectError::Refused)?;
        self.driver.settle(&mut self.world, now, node);
        Ok(())
    }

    /// Ends the run at the current time and returns its outcome.
    pub fn finish(self) -> Result<Outcome, Error> {
        match self.fault {
            Some(error) => Err(error.into()),
            None => self.world.finish(self.now),
        }
    }

    /// The current state of the nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.world.nodes
    }

    /// The node that has an address.
    pub fn node_with(&self, address: Eui64) -> Option<NodeId> {
        self.world.names.node(address)
    }

    /// The address of a node of this mesh.
    pub fn eui64(&self, node: NodeId) -> Eui64 {
        self.world.names.eui64(node)
    }

    /// The state of all nodes at the current time.
    pub fn snapshot(&self) -> Snapshot {
        let ids = (0..self.world.nodes.len()).map(|n| NodeId(n as u16));
        Snapshot { now: self.now, nodes: ids.map(|id| self.look(id)).collect() }
    }

    fn look(&self, id: NodeId) -> NodeSnapshot {
        let (world, node) = (&self.world, &self.world.nodes[id.index()]);
        NodeSnapshot {
            node: id,
            eui64: world.names.eui64(id),
            address: node.global_address(),
            border_router: world.parts[id.index()].root,
            is_synchronised: node.is_synchronised(),
            is_joined: node.is_joined(),
            parent: node.parent().and_then(|parent| world.find(parent)),
            hops: world.hops(id),
            rank: node.rank(),
            negotiated_cells: node.negotiated_cells(),
            packet_buffer_octets: node.packet_buffer_octets(),
            frames_sent: node.counters().frames_sent,
            frames_acked: node.counters().frames_acked,
            radio: node.radio_time(self.now),
        }
    }
}
