//! What a run leaves behind: facts about transactions, packets and nodes, from which reports are made.
//!
//! Reports read these records and nothing else; no metric is computed inside a node.

use std::collections::BTreeMap;

use lowmesh_machine::{DropReason, Layer};
use lowmesh_units::{Duration, Instant, NodeId};
use lowmesh_wire::ipv6::Address;

pub use crate::backbone::{LineRecord, QueueRecord};
use crate::event::Event;
pub use crate::timeline::DatagramTimeline;
pub use lowmesh_stack::streams::{SendCounters, StreamCounters};

/// How a CoAP transaction ended (RFC 7252 s4.2; a transaction is one request and its acknowledgement).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The acknowledgement (or response) came.
    Acknowledged,
    /// It ended without; the reason is one of the closed list.
    Failed(DropReason),
    /// Still under way, or still waiting in the application's buffer, when the run ended.
    Open,
}

/// One CoAP transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The client.
    pub node: NodeId,
    /// When the application issued the request.
    pub issued: Instant,
    /// When the first copy was sent, if it was.
    pub sent: Option<Instant>,
    /// When it ended, if it did.
    pub ended: Option<Instant>,
    /// How the transaction ended.
    pub ending: Ending,
    /// Copies sent after the first.
    pub retransmissions: u8,
    /// The retransmission timeout chosen for the first copy.
    pub rto: Option<Duration>,
}

impl Transaction {
    /// Time from the first transmission to the acknowledgement; only for acknowledged transactions.
    pub fn delay(&self) -> Option<Duration> {
        match (self.ending, self.sent, self.ended) {
            (Ending::Acknowledged, Some(sent), Some(ended)) => Some(ended.since(sent)),
            _ => None,
        }
    }
}

/// The outcomes of the IPv6 packets of one kind; every packet is delivered, dropped or queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Packets {
    /// Packets that a node brought into the world.
    pub sent: u64,
    /// Packets that reached their destination.
    pub delivered: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Those of them that found a queue full.
    pub overflowed: u64,
    /// Packets still in some queue when the run ended.
    pub queued: u64,
}

/// One UDP datagram of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The node that sent the frame.
    pub node: NodeId,
    /// When it was given to the socket.
    pub sent: Instant,
    /// When the collector's socket first had it.
    pub arrived: Option<Instant>,
    /// Whether it could still arrive when the run ended: a node held a packet with it.
    pub is_open: bool,
}

/// What carries a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A CoAP transaction.
    Transaction,
    /// A UDP datagram, or a state that is observed.
    Datagram,
    /// A packet to a group.
    GroupPacket,
}

/// A reading that was due at a node that was on and had not joined, so that nobody sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The node.
    pub node: NodeId,
    /// When it was due.
    pub due: Instant,
    /// What would have carried it.
    pub reading: Reading,
}

/// One packet to a group that reaches further than the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPacket {
    /// The node that sent it.
    pub node: NodeId,
    /// The address of the group.
    pub group: Address,
    /// When it was sent.
    pub sent: Instant,
    /// What became of it at each member that the group had then, without the sender.
    pub members: Vec<MemberFate>,
}

/// The outcome of a packet at one member of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberFate {
    /// The member.
    pub node: NodeId,
    /// How it ended there.
    pub fate: Fate,
}

/// The outcome of a packet to a group at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delivered, the first time at this moment.
    Delivered(Instant),
    /// It did not come, for this reason.
    Lost(Layer, DropReason),
    /// A node still held a copy when the run ended.
    Open,
}

/// Packets to groups.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Groups {
    /// All packets, in the order of sending.
    pub packets: Vec<GroupPacket>,
    /// Frames that carried one of them or a fragment, every copy counted.
    pub frames: u64,
    /// Control messages of multicast engines.
    pub controls: u64,
}

/// One query of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The client.
    pub node: NodeId,
    /// When the client asked.
    pub issued: Instant,
    /// When it had the result, if it did.
    pub ended: Option<Instant>,
    /// When the manager had the last answer of a member.
    pub last_answer: Option<Instant>,
    /// Members whose answers are in the result.
    pub answered: u16,
    /// Members that failed, as the result says.
    pub failed: u16,
    /// Whether the result is a success, which may lack members.
    pub is_success: bool,
    /// Requests of the manager to members and groups, without retransmissions.
    pub requests: u32,
    /// Frames of all nodes from its start to its end.
    pub frames: u64,
}

/// Something that happened to the mesh, and how it recovered.
///
/// A node has routes while its preferred parents lead to its border router, and the routes of the border router lead to
/// the node, over nodes that are on and links that carry frames.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub event: Event,
    /// Nodes without routes right after it, of those that need them: they are on and have a path of usable links to their
    /// border router.
    pub cut_off: u32,
    /// When all nodes that needed routes had them at the same time; unset if that did not happen in the run.
    pub recovered: Option<Instant>,
}

/// Frames from one node to one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkUse {
    /// Frames, whatever the number of copies.
    pub frames: u64,
    /// Copies after the first.
    pub retransmissions: u64,
    /// Sequence number of the last one.
    pub(crate) sequence: Option<u8>,
}

/// Fragments of packets below IPv6, over all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fragments {
    /// Fragments that nodes sent of packets that they cut, each once.
    pub sent: u64,
    /// Recoverable fragments sent again from where they were cut.
    pub resent: u64,
    /// Fragments that passed through a node.
    pub forwarded: u64,
    /// Packets in transit that a node reassembled, though their fragments were to pass through.
    pub fallbacks: u64,
    /// Packets in recoverable fragments that are over at the node that cut them.
    pub recovered: u64,
    /// Of these, those during which the gap between fragments changed.
    pub gaps_changed: u64,
    /// Recoverable fragments that a node marked as having met congestion (RFC 8931 s5: E).
    pub marked: u64,
    /// Acknowledgements with that mark that came back to where the packet was cut.
    pub marks_reported: u64,
}

impl Fragments {
    /// Adds what one more node did.
    pub(crate) const fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.resent += other.resent;
        self.forwarded += other.forwarded;
        self.fallbacks += other.fallbacks;
        self.recovered += other.recovered;
        self.gaps_changed += other.gaps_changed;
        self.marked += other.marked;
        self.marks_reported += other.marks_reported;
    }
}

/// The outcomes of the unicast frames to one neighbour; every retry counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Frames {
    /// Frames that went out.
    pub sent: u64,
    /// Of these, those that the neighbour received.
    pub received: u64,
    /// Those that the neighbour would have received if no other node had sent.
    pub collided: u64,
    /// Those that noise alone spoilt.
    pub faded: u64,
    /// Those that the neighbour could not hear because it sent at the same time.
    pub deaf: u64,
    /// Those that carried a message of 6P (RFC 8480).
    pub sixtop: u64,
}

impl Frames {
    /// Frames for which the neighbour did not listen, and frames to a neighbour out of range.
    pub const fn missed(&self) -> u64 {
        self.sent - self.received - self.collided - self.faded - self.deaf
    }
}

/// One negotiated cell that a node may send in; its other end listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiatedCell {
    /// The other end.
    pub peer: NodeId,
    /// Slot in its slotframe.
    pub slot: u16,
    /// Channel offset.
    pub channel_offset: u16,
    /// Whether others may send in it too.
    pub shared: bool,
}

/// The summary of one node.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeSummary {
    /// When it was first switched on; unset if it never was.
    pub booted: Option<Instant>,
    /// When it first had both a synchronised clock and a RPL parent (the root: when it started).
    pub joined: Option<Instant>,
    /// Hops to the root over preferred parents at the end of the run.
    pub hops: Option<u32>,
    /// Time with a preferred parent whose own parents led to no root.
    pub rootless: Duration,
    /// Its preferred parent at the end.
    pub parent: Option<NodeId>,
    /// Share of time with the radio on, from joining to the end.
    pub duty_cycle: f64,
    /// Charge drawn by the radio from boot to the end, in millicoulombs.
    pub charge_mc: f64,
    /// Changes of preferred parent after the first.
    pub parent_changes: u32,
    /// Times it lost synchronisation.
    pub desynchronisations: u32,
    /// Frames sent, first copies and retries.
    pub frames_sent: u64,
    /// Link-layer unicast frames acknowledged.
    pub frames_acked: u64,
    /// Negotiated cells at the end.
    pub negotiated_cells: u32,
    /// Those of them that it may send in.
    pub sending_cells: Vec<NegotiatedCell>,
    /// Octets of packet data that waited in it, mean over the run.
    pub buffer_mean_octets: f64,
    /// The most of them at once.
    pub buffer_most_octets: usize,
    /// What TCP did at it, where it has TCP.
    pub streams: Option<StreamCounters>,
}

/// The complete result of a run.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// Hash over every frame, reception, drop and transaction in order.
    pub trace_hash: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// All transactions, in order of issue.
    pub transactions: Vec<Transaction>,
    /// Requests that the collector's application executed (RFC 7252 s4.5: once for all copies of a message).
    pub executed: u64,
    /// CoAP requests and datagrams on their way to the collector.
    pub up: Packets,
    /// CoAP responses on their way to the clients.
    pub down: Packets,
    /// Everything else (RPL control).
    pub control: Packets,
    /// Packets to groups.
    pub groups: Groups,
    /// Queries of entities, in order of issue.
    pub queries: Vec<Query>,
    /// The members of the entity that is queried, those of entities in it too.
    pub entity_members: Vec<NodeId>,
    /// Ended packets by layer and reason; a packet to a group counts once for each member that lost it.
    pub drops: BTreeMap<(Layer, DropReason), u64>,
    /// Every packet that found a queue full: when and at which node, in order of time.
    pub overflows: Vec<(Instant, NodeId)>,
    /// UDP datagrams of applications, in the order of sending.
    pub datagrams: Vec<Datagram>,
    /// Readings that were due and that nobody sent, in order of time.
    pub unsent: Vec<Unsent>,
    /// What the adaptation layers of all nodes did with packets larger than a frame.
    pub fragments: Fragments,
    /// Datagrams in recoverable fragments whose timeline shows most, where nodes were to tell their steps: one that
    /// arrived, then one that was given up.
    pub timelines: Vec<DatagramTimeline>,
    /// Frames to one neighbour.
    pub frames: Frames,
    /// The same by sender and neighbour.
    pub links: BTreeMap<(NodeId, NodeId), LinkUse>,
    /// What happened to the mesh, in order of time, and how it recovered.
    pub events: Vec<EventRecord>,
    /// Every change of preferred parent after the first choice, in order of time.
    pub parent_changes: Vec<(Instant, NodeId)>,
    /// What each link of the backbone carried.
    pub lines: Vec<LineRecord>,
    /// One entry a node, root first.
    pub nodes: Vec<NodeSummary>,
}
