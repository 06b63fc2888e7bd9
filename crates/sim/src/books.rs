//! The books of a run: what nodes, frames, packets and transactions did, in trace, capture, ledger and outcome.

use std::collections::BTreeMap;
use std::io;

use lowmesh_ipv6::Ipv6;
use lowmesh_mac::account::RadioTime;
use lowmesh_machine::{DropReason, Handle};
use lowmesh_stack::Node;
use lowmesh_stack::application::Report;
use lowmesh_stack::event::{ApplicationEvent, Class, Network, Packet, Transaction};
use lowmesh_units::{Instant, NodeId};

use crate::capture::{Capture, Captured};
use crate::error::Error;
use crate::group_book::{Addressed, GroupBook};
use crate::ledger::Ledger;
use crate::lives::Lives;
use crate::names::Names;
use crate::occupancy::Occupancy;
use crate::record::{self, Datagram, Ending, NodeSummary, Outcome};
use crate::timeline::DatagramTimelines;
use crate::trace::{Fact, Trace};

/// All that is written down of a run.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) trace: Trace,
    capture: Option<Capture>,
    capture_error: Option<io::Error>,
    pub(crate) ledger: Ledger,
    groups: GroupBook,
    pub(crate) outcome: Outcome,
    pub(crate) timelines: DatagramTimelines,
    /// Places in the record of the requests of each node, by their numbers from 1; those to groups have none.
    requests: Vec<Vec<Option<usize>>>,
    /// Places in the record of what nodes published, by node and number.
    published: BTreeMap<(NodeId, u32), usize>,
    /// The packet that carries what a node published, by the place in the record; the last one if there are several.
    carriers: BTreeMap<usize, Handle>,
    /// The place in the record of what each node published last.
    latest: Vec<Option<usize>>,
    /// The packet buffer of each node.
    pub(crate) buffers: Vec<Occupancy>,
    /// Radio time of each node at the moment it joined.
    pub(crate) joined_radio: Vec<RadioTime>,
    /// The lives of each node that are over.
    pub(crate) lives: Vec<Lives>,
    /// Nodes that have lost their memory and had no parent since.
    restarted: Vec<bool>,
    /// Frames that have gone out.
    frames: u64,
}

impl Books {
    /// Empty books for `nodes` nodes.
    pub(crate) fn new(nodes: usize, trace: Trace, capture: Option<Capture>) -> Self {
        Self {
            trace,
            capture,
            capture_error: None,
            ledger: Ledger::default(),
            groups: GroupBook::default(),
            outcome: Outcome { nodes: vec![NodeSummary::default(); nodes], ..Outcome::default() },
            timelines: DatagramTimelines::default(),
            requests: vec![Vec::new(); nodes],
            published: BTreeMap::new(),
            carriers: BTreeMap::new(),
            latest: vec![None; nodes],
            buffers: vec![Occupancy::default(); nodes],
            joined_radio: vec![RadioTime::default(); nodes],
            lives: vec![Lives::default(); nodes],
            restarted: vec![false; nodes],
            frames: 0,
        }
    }

    /// A frame goes out, in a slot or not.
    pub(crate) fn note_sent(&mut self, now: Instant, from: NodeId, frame: Captured<'_>) {
        self.frames += 1;
        let Captured { asn, channel, octets, .. } = frame;
        self.trace.note(now, from, Fact::Sent { asn, channel, octets });
        if let Some(capture) = &mut self.capture
            && let Err(error) = capture.write(frame)
        {
            self.capture = None;
            self.capture_error.get_or_insert(error);
        }
    }

    /// A frame to one neighbour goes out: a new one, or one that went out before.
    pub(crate) fn note_attempt(&mut self, from: NodeId, to: NodeId, octets: &[u8]) {
        let link = self.outcome.links.entry((from, to)).or_default();
        // The sequence number is the third octet of the frames that our MACs make.
        let sequence = octets.get(2).copied();
        if link.sequence == sequence {
            link.retransmissions += 1;
        } else {
            link.frames += 1;
        }
        link.sequence = sequence;
    }

    pub(crate) fn note_packet(&mut self, now: Instant, node: NodeId, packet: Packet) {
        self.trace.note(now, node, Fact::Packet(packet));
        let (handle, is_over) = match packet {
            Packet::Born(handle, class) => {
                self.note_carrier(node, handle, class);
                return self.ledger.born(handle, class);
            }
            // The world knows the members.
            Packet::Addressed(..) => return,
            Packet::Accepted(handle) => {
                self.groups.accepted(handle, node);
                return self.ledger.accepted(handle);
            }
            Packet::PassedOn(handle) => (handle, self.ledger.passed_on(handle)),
            Packet::Delivered(handle) => {
                self.groups.delivered(now, handle, node);
                (handle, self.ledger.delivered(handle))
            }
            Packet::Dropped(dropped) => {
                if dropped.reason == DropReason::QueueFull {
                    self.outcome.overflows.push((now, node));
                }
                self.groups.dropped(dropped, node);
                (dropped.handle, self.ledger.dropped(dropped))
            }
        };
        if is_over {
            for reason in self.groups.close(handle) {
                *self.outcome.drops.entry(reason).or_default() += 1;
            }
        }
    }

    /// What a node published last goes into this packet, if it carries data. A copy of a notification takes the place of the
    /// packet before.
    fn note_carrier(&mut self, node: NodeId, handle: Handle, class: Class) {
        let carries = matches!(class, Class::Request | Class::Response);
        if let Some(place) = self.latest[node.index()].filter(|_| carries) {
            self.carriers.insert(place, handle);
        }
    }

    /// A node sends a packet to a group.
    pub(crate) fn note_addressed(&mut self, handle: Handle, addressed: Addressed) {
        self.groups.addressed(handle, addressed);
    }

    /// A frame goes out with a packet, or a message of a node's own.
    pub(crate) fn note_carried(&mut self, handle: Handle) {
        self.outcome.groups.frames += u64::from(Ipv6::is_group(handle));
    }

    /// Records the action of an application.
    pub(crate) fn note_application(
        &mut self,
        now: Instant,
        node: NodeId,
        event: ApplicationEvent,
        names: &Names,
    ) {
        match event {
            ApplicationEvent::Issued(request) => {
                // Requests of a node are numbered from 1 without a gap.
                debug_assert_eq!(request.number() as usize, self.requests[node.index()].len() + 1);
                self.requests[node.index()].push(Some(self.outcome.transactions.len()));
                self.outcome.transactions.push(record::Transaction {
                    node,
                    issued: now,
                    sent: None,
                    ended: None,
                    ending: Ending::Open,
                    retransmissions: 0,
                    rto: None,
                });
            }
            ApplicationEvent::Asked(_) => self.requests[node.index()].push(None),
            ApplicationEvent::Transaction(request, event) => {
                let number = request.number() as usize;
                if let Some(&Some(place)) = self.requests[node.index()].get(number - 1) {
                    self.note_transaction(now, node, place, event);
                }
            }
            ApplicationEvent::Report(Report::Executed) => self.outcome.executed += 1,
            ApplicationEvent::Report(
                report @ (Report::Queried
                | Report::QueryEnded { .. }
                | Report::MembersAsked
                | Report::MemberAnswered),
            ) => self.note_query(now, node, report),
            ApplicationEvent::Report(Report::Published { number }) => {
                self.published.insert((node, number), self.outcome.datagrams.len());
                self.latest[node.index()] = Some(self.outcome.datagrams.len());
                let (sent, arrived, is_open) = (now, None, false);
                self.outcome.datagrams.push(Datagram { node, sent, arrived, is_open });
            }
            ApplicationEvent::Report(Report::Received { from, number }) => {
                let Some(node) = names.node(from.eui64()) else { return };
                if let Some(&place) = self.published.get(&(node, number)) {
                    self.outcome.datagrams[place].arrived.get_or_insert(now);
                    self.carriers.remove(&place);
                }
            }
        }
    }

    /// Records what a client of an Entity Manager or the manager itself reports. A client has one query at a time, and what
    /// the manager does while a query is open is done for it.
    fn note_query(&mut self, now: Instant, node: NodeId, report: Report) {
        let frames = self.frames;
        if report == Report::Queried {
            return self.outcome.queries.push(record::Query {
                node,
                issued: now,
                ended: None,
                last_answer: None,
                answered: 0,
                failed: 0,
                is_success: false,
                requests: 0,
                frames,
            });
        }
        let Some(query) = self.outcome.queries.last_mut().filter(|one| one.ended.is_none()) else {
            return;
        };
        match report {
            Report::MembersAsked => query.requests += 1,
            Report::MemberAnswered => query.last_answer = Some(now),
            Report::QueryEnded { answered, failed, is_success } => {
                query.ended = Some(now);
                (query.answered, query.failed, query.is_success) = (answered, failed, is_success);
                // Until now the field has the number at its start.
                query.frames = frames - query.frames;
            }
            _ => {}
        }
    }

    /// A node has lost its memory: the requests of its applications that are not over have failed.
    pub(crate) fn note_life_over(&mut self, now: Instant, id: NodeId, node: &Node) {
        let index = id.index();
        for place in std::mem::take(&mut self.requests[index]).into_iter().flatten() {
            let is_open = |one: &record::Transaction| one.ending == Ending::Open;
            if self.outcome.transactions.get(place).is_some_and(is_open) {
                let failed = Transaction::Failed(Handle::NONE, DropReason::PowerLost);
                self.note_transaction(now, id, place, failed);
            }
        }
        self.lives[index].end(node, now);
        self.buffers[index].set(now, 0);
        self.restarted[index] = true;
    }

    /// Traces a fact about the transaction at an index of the record; its name in the trace is the index plus 1.
    fn note_transaction(&mut self, now: Instant, node: NodeId, place: usize, event: Transaction) {
        let event = event.renamed(Handle(place as u64 + 1));
        self.trace.note(now, node, Fact::Transaction(event));
        let Some(record) = self.outcome.transactions.get_mut(place) else { return };
        match event {
            Transaction::Sent(_, rto) => {
                record.sent = Some(now);
                record.rto = Some(rto);
            }
            Transaction::Resent(_, copy) => record.retransmissions = copy,
            Transaction::Acknowledged(_, _, retransmissions) => {
                record.ended = Some(now);
                record.ending = Ending::Acknowledged;
                record.retransmissions = retransmissions;
            }
            Transaction::Failed(_, reason) => {
                record.ended = Some(now);
                record.ending = Ending::Failed(reason);
            }
        }
    }

    pub(crate) fn note_network(
        &mut self,
        now: Instant,
        id: NodeId,
        network: &Network,
        node: &Node,
    ) {
        self.trace.note(now, id, Fact::Network(network));
        let index = id.index();
        let summary = &mut self.outcome.nodes[index];
        match network {
            Network::Desynchronised => summary.desynchronisations += 1,
            Network::Parent(Some(_)) if self.restarted[index] => self.restarted[index] = false,
            Network::Parent(Some(_)) if summary.joined.is_some() => {
                summary.parent_changes += 1;
                self.outcome.parent_changes.push((now, id));
            }
            _ => {}
        }
        if summary.joined.is_none() && node.is_joined() {
            summary.joined = Some(now);
            self.joined_radio[index] = self.lives[index].radio_with(node, now);
        }
    }

    /// Closes the books at `end`.
    pub(crate) fn close(self, end: Instant) -> Result<Outcome, Error> {
        let Self { mut trace, mut outcome, ledger, groups, capture, capture_error, .. } = self;
        for (place, handle) in self.carriers {
            let datagram = &mut outcome.datagrams[place];
            datagram.is_open = datagram.arrived.is_none() && ledger.is_under_way(handle);
        }
        outcome.timelines = self.timelines.chosen();
        outcome.simulated = end.since(Instant::ZERO);
        outcome.up = ledger.packets(Class::Request);
        outcome.down = ledger.packets(Class::Response);
        outcome.control = ledger.packets(Class::Control);
        for (reason, count) in ledger.drops() {
            *outcome.drops.entry(*reason).or_default() += count;
        }
        outcome.groups.packets = groups.finish();
        trace.finish().map_err(Error::Trace)?;
        outcome.trace_hash = trace.hash();
        if let Some(error) = capture_error {
            return Err(Error::Capture(error));
        }
        if let Some(capture) = capture {
            capture.finish().map_err(Error::Capture)?;
        }
        Ok(outcome)
    }
}
