//! The books of a run: frames, packets, transactions and nodes, as they are told, into trace, capture, ledger and
//! outcome.

use lowmesh_machine::{DropReason, Handle};
use lowmesh_stack::application::Report;
use lowmesh_stack::event::{ApplicationEvent, Network, Packet, Transaction};
use lowmesh_units::{Asn, Channel, Eui64, Instant, NodeId};

use crate::capture::Captured;
use crate::record::{self, Datagram, Ending};
use crate::trace::Fact;
use crate::world::World;

impl World {
    /// A frame goes out at `at`, in a slot or not.
    pub(crate) fn note_sent(
        &mut self,
        now: Instant,
        at: Instant,
        from: NodeId,
        asn: Option<Asn>,
        channel: Channel,
        octets: &[u8],
    ) {
        self.trace.note(now, from, Fact::Sent { asn, channel, octets });
        if let Some(capture) = &mut self.capture {
            let frame =
                Captured { at, asn, channel, level: self.parts[from.index()].tx_power, octets };
            if let Err(error) = capture.write(frame) {
                self.capture = None;
                self.capture_error.get_or_insert(error);
            }
        }
    }

    /// A frame to one neighbour goes out: a new one, or one that went out before.
    pub(crate) fn note_attempt(&mut self, from: NodeId, to: Eui64, octets: &[u8]) {
        let Some(to) = self.names.node(to) else { return };
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
        match packet {
            Packet::Born(handle, class) => self.ledger.born(handle, class),
            Packet::Accepted(handle) => self.ledger.accepted(handle),
            Packet::PassedOn(handle) => self.ledger.passed_on(handle),
            Packet::Delivered(handle) => self.ledger.delivered(handle),
            Packet::Dropped(dropped) => {
                if dropped.reason == DropReason::QueueFull {
                    self.outcome.overflows.push((now, node));
                }
                self.ledger.dropped(dropped);
            }
        }
    }

    /// Records the action of an application.
    pub(crate) fn note_application(&mut self, now: Instant, node: NodeId, event: ApplicationEvent) {
        match event {
            ApplicationEvent::Issued(request) => {
                // Requests of a node are numbered from 1 without a gap.
                debug_assert_eq!(request.number() as usize, self.requests[node.index()].len() + 1);
                self.requests[node.index()].push(self.outcome.transactions.len());
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
            ApplicationEvent::Transaction(request, event) => {
                let number = request.number() as usize;
                if let Some(&place) = self.requests[node.index()].get(number - 1) {
                    self.note_transaction(now, node, place, event);
                }
            }
            ApplicationEvent::Report(Report::Executed) => self.outcome.executed += 1,
            ApplicationEvent::Report(Report::Published { number }) => {
                self.published.insert((node, number), self.outcome.datagrams.len());
                self.outcome.datagrams.push(Datagram { node, sent: now, arrived: None });
            }
            ApplicationEvent::Report(Report::Received { from, number }) => {
                let Some(node) = self.names.node(from.eui64()) else { return };
                if let Some(&place) = self.published.get(&(node, number)) {
                    self.outcome.datagrams[place].arrived.get_or_insert(now);
                }
            }
        }
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

    pub(crate) fn note_network(&mut self, now: Instant, node: NodeId, network: &Network) {
        self.trace.note(now, node, Fact::Network(network));
        let index = node.index();
        let summary = &mut self.outcome.nodes[index];
        match network {
            Network::Desynchronised => summary.desynchronisations += 1,
            Network::Parent(Some(_)) if summary.joined.is_some() => summary.parent_changes += 1,
            _ => {}
        }
        if summary.joined.is_none() && self.nodes[index].is_joined() {
            summary.joined = Some(now);
            self.joined_radio[index] = self.nodes[index].radio_time(now);
        }
    }
}
