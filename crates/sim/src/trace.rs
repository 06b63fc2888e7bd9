//! The record stream of a run: one hash over everything, and on request a line of JSON for each fact.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::event::Event;
use lowmesh_machine::Handle;
use lowmesh_stack::event::{Class, Network, Packet, Transaction};
use lowmesh_units::{Asn, Channel, Eui64, Instant, NodeId};
use lowmesh_wire::ipv6::Address;
use xxhash_rust::xxh3::Xxh3;

/// A fact.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// The node was switched on; this is its address.
    Booted(Eui64),
    /// Something happened to the mesh from outside.
    Happened(&'a Event),
    /// A frame went out.
    Sent {
        /// In this slot, under TSCH,
        asn: Option<Asn>,
        /// on this channel.
        channel: Channel,
        /// The frame without FCS.
        octets: &'a [u8],
    },
    /// A frame came in.
    Heard {
        /// From this node,
        from: NodeId,
        /// this loud,
        rssi_dbm: f64,
        /// this long.
        octets: usize,
    },
    /// The slot of a frame to one neighbour is over.
    Answered {
        /// The acknowledgement came.
        acked: bool,
    },
    /// About an IPv6 packet.
    Packet(Packet),
    /// A packet left its mesh at this border router.
    Left {
        /// The name of the packet.
        handle: Handle,
        /// How long it is.
        octets: usize,
    },
    /// A packet came to this border router over the backbone.
    Entered {
        /// The name of the packet.
        handle: Handle,
        /// How long it is.
        octets: usize,
    },
    /// About a transaction.
    Transaction(Transaction),
    /// About the network.
    Network(&'a Network),
}

/// Octets that may wait to be hashed.
const PENDING_MAX: usize = 4096;

/// Hashes facts, and optionally writes them.
pub struct Trace {
    hash: Xxh3,
    /// What is not hashed yet: one long update costs less than many short ones.
    pending: Vec<u8>,
    out: Option<Box<dyn Write + Send>>,
    line: String,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trace")
    }
}

impl Trace {
    /// A trace that is hashed, and written to `out` if there is one.
    pub fn new(out: Option<Box<dyn Write + Send>>) -> Self {
        let pending = Vec::with_capacity(PENDING_MAX);
        Self { hash: Xxh3::new(), pending, out, line: String::new(), error: None }
    }

    /// Adds a fact about `node`.
    pub fn note(&mut self, now: Instant, node: NodeId, fact: Fact<'_>) {
        self.hash_fact(now, node, fact);
        if let Some(out) = &mut self.out {
            self.line.clear();
            write_line(&mut self.line, now, node, fact);
            let written = out.write_all(self.line.as_bytes());
            if let Err(error) = written {
                self.error.get_or_insert(error);
                self.out = None;
            }
        }
    }

    /// The hash so far.
    pub fn hash(&self) -> u64 {
        let mut hash = self.hash.clone();
        hash.update(&self.pending);
        hash.digest()
    }

    /// Writes what is still in a buffer, and reports an earlier failure to write.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }

    fn hash_fact(&mut self, now: Instant, node: NodeId, fact: Fact<'_>) {
        let mut words = [now.as_nanos(), u64::from(node.0), 0, 0, 0];
        let mut fields = String::new();
        let mut octets: &[u8] = &[];
        let tail = match fact {
            Fact::Sent { asn, channel, octets: sent } => {
                octets = sent;
                [1, asn.map_or(u64::MAX, |asn| asn.0), u64::from(channel.number())]
            }
            Fact::Heard { from, rssi_dbm, octets } => {
                [2 | (octets as u64) << 8, u64::from(from.0), rssi_dbm.to_bits()]
            }
            Fact::Answered { acked } => [3, u64::from(acked), 0],
            Fact::Booted(address) => [17, address.as_u64(), 0],
            Fact::Happened(event) => {
                event.write_fields(&mut fields);
                octets = fields.as_bytes();
                [0x15 | u64::from(event.number()) << 8, octets.len() as u64, 0]
            }
            Fact::Packet(packet) => hash_packet(packet),
            Fact::Left { handle, octets } => [18, handle.0, octets as u64],
            Fact::Entered { handle, octets } => [19, handle.0, octets as u64],
            Fact::Transaction(transaction) => hash_transaction(transaction),
            Fact::Network(network) => {
                if let Network::Cells { what, .. } = network {
                    octets = what.as_bytes();
                }
                hash_network(network)
            }
        };
        words[2..].copy_from_slice(&tail);
        let mut bytes = [0; 40];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        if self.pending.len() + bytes.len() + octets.len() > PENDING_MAX {
            self.hash.update(&self.pending);
            self.pending.clear();
        }
        self.pending.extend_from_slice(&bytes);
        self.pending.extend_from_slice(octets);
    }
}

fn hash_packet(packet: Packet) -> [u64; 3] {
    match packet {
        Packet::Born(handle, class) => [4, handle.0, class as u64],
        Packet::Addressed(handle, group) => [20, handle.0, low_bits(group)],
        Packet::Accepted(handle) => [5, handle.0, 0],
        Packet::PassedOn(handle) => [6, handle.0, 0],
        Packet::Delivered(handle) => [7, handle.0, 0],
        Packet::Dropped(d) => [8, d.handle.0, (d.layer as u64) << 8 | d.reason as u64],
    }
}

/// The last 64 bits of an address; of a group, RFC 4291 s2.7 gives the others little to say.
fn low_bits(address: Address) -> u64 {
    u64::from_be_bytes(address.interface_identifier())
}

const fn hash_transaction(transaction: Transaction) -> [u64; 3] {
    match transaction {
        Transaction::Sent(handle, rto) => [9, handle.0, rto.as_nanos()],
        Transaction::Acknowledged(handle, rtt, copies) => {
            [0xa | (copies as u64) << 8, handle.0, rtt.as_nanos()]
        }
        Transaction::Resent(handle, copy) => [16, handle.0, copy as u64],
        Transaction::Failed(handle, reason) => [11, handle.0, reason as u64],
    }
}

fn hash_network(network: &Network) -> [u64; 3] {
    match network {
        Network::Synchronised => [12, 0, 0],
        Network::Desynchronised => [13, 0, 0],
        Network::Parent(parent) => [14, parent.map_or(0, lowmesh_units::Eui64::as_u64), 0],
        Network::Cells { peer, cells, .. } => {
            let sum = cells.iter().fold(cells.len() as u64, |sum, (slot, offset)| {
                sum.wrapping_mul(0x1_0000_0001).wrapping_add(u64::from(*slot) << 16)
                    ^ u64::from(*offset)
            });
            [15, peer.as_u64(), sum]
        }
    }
}

/// One JSON object and a newline. Every value is a number, a fixed word or hexadecimal, so nothing needs escaping.
fn write_line(line: &mut String, now: Instant, node: NodeId, fact: Fact<'_>) {
    let start = |line: &mut String, event: &str| {
        // Writing to a String cannot fail.
        let _ = match node {
            // All nodes have no number.
            NodeId(u16::MAX) => write!(line, "{{\"t_s\":{now},\"node\":null,\"event\":\"{event}\""),
            node => write!(line, "{{\"t_s\":{now},\"node\":{node},\"event\":\"{event}\""),
        };
    };
    match fact {
        Fact::Sent { asn, channel, octets } => {
            start(line, "sent");
            if let Some(asn) = asn {
                let _ = write!(line, ",\"asn\":{}", asn.0);
            }
            let _ = write!(line, ",\"channel\":{channel},\"octets\":\"");
            for octet in octets {
                let _ = write!(line, "{octet:02x}");
            }
            line.push('"');
        }
        Fact::Heard { from, rssi_dbm, octets } => {
            start(line, "heard");
            let _ = write!(line, ",\"from\":{from},\"rssi_dbm\":{rssi_dbm:.1},\"length\":{octets}");
        }
        Fact::Booted(address) => {
            start(line, "booted");
            let _ = write!(line, ",\"eui64\":\"{address}\"");
        }
        Fact::Happened(event) => {
            start(line, event.name());
            event.write_fields(line);
        }
        Fact::Answered { acked } => {
            start(line, "answered");
            let _ = write!(line, ",\"acked\":{acked}");
        }
        Fact::Packet(packet) => write_packet(line, packet, start),
        Fact::Left { handle, octets } => {
            start(line, "packet_left");
            let _ = write!(line, ",\"packet\":\"{:x}\",\"length\":{octets}", handle.0);
        }
        Fact::Entered { handle, octets } => {
            start(line, "packet_entered");
            let _ = write!(line, ",\"packet\":\"{:x}\",\"length\":{octets}", handle.0);
        }
        Fact::Transaction(transaction) => write_transaction(line, transaction, start),
        Fact::Network(network) => write_network(line, network, start),
    }
    line.push_str("}\n");
}

fn write_packet(line: &mut String, packet: Packet, start: impl Fn(&mut String, &str)) {
    let (event, handle) = match packet {
        Packet::Born(handle, _) => ("packet_born", handle),
        Packet::Addressed(handle, _) => ("packet_addressed", handle),
        Packet::Accepted(handle) => ("packet_accepted", handle),
        Packet::PassedOn(handle) => ("packet_passed_on", handle),
        Packet::Delivered(handle) => ("packet_delivered", handle),
        Packet::Dropped(dropped) => ("packet_dropped", dropped.handle),
    };
    start(line, event);
    let _ = write!(line, ",\"packet\":\"{:x}\"", handle.0);
    match packet {
        Packet::Born(_, class) => {
            let _ = write!(line, ",\"class\":\"{}\"", class_name(class));
        }
        Packet::Addressed(_, group) => {
            let _ = write!(line, ",\"group\":\"{group}\"");
        }
        Packet::Dropped(dropped) => {
            let (layer, reason) = (dropped.layer.name(), dropped.reason.name());
            let _ = write!(line, ",\"layer\":\"{layer}\",\"reason\":\"{reason}\"");
        }
        _ => {}
    }
}

fn write_transaction(line: &mut String, event: Transaction, start: impl Fn(&mut String, &str)) {
    match event {
        Transaction::Sent(handle, rto) => {
            start(line, "transaction_sent");
            let rto = rto.as_millis_f64();
            let _ = write!(line, ",\"transaction\":\"{:x}\",\"rto_ms\":{rto:.3}", handle.0);
        }
        Transaction::Acknowledged(handle, rtt, copies) => {
            start(line, "transaction_acknowledged");
            let rtt = rtt.as_millis_f64();
            let _ = write!(
                line,
                ",\"transaction\":\"{:x}\",\"rtt_ms\":{rtt:.3},\"retransmissions\":{copies}",
                handle.0
            );
        }
        Transaction::Resent(handle, copy) => {
            start(line, "transaction_resent");
            let _ = write!(line, ",\"transaction\":\"{:x}\",\"copy\":{copy}", handle.0);
        }
        Transaction::Failed(handle, reason) => {
            start(line, "transaction_failed");
            let reason = reason.name();
            let _ = write!(line, ",\"transaction\":\"{:x}\",\"reason\":\"{reason}\"", handle.0);
        }
    }
}

fn write_network(line: &mut String, network: &Network, start: impl Fn(&mut String, &str)) {
    match network {
        Network::Synchronised => start(line, "synchronised"),
        Network::Desynchronised => start(line, "desynchronised"),
        Network::Parent(parent) => {
            start(line, "parent");
            match parent {
                Some(parent) => {
                    let _ = write!(line, ",\"parent\":\"{parent}\"");
                }
                None => line.push_str(",\"parent\":null"),
            }
        }
        Network::Cells { peer, what, cells } => {
            start(line, "cells");
            let _ = write!(line, ",\"peer\":\"{peer}\",\"what\":\"{what}\",\"cells\":{cells:?}");
            // Tuples print with parentheses; JSON wants brackets.
            *line = line.replace('(', "[").replace(')', "]");
        }
    }
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Request => "request",
        Class::Response => "response",
        Class::Control => "control",
        Class::Group => "group",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lowmesh_machine::{DropReason, Dropped, Handle, Layer};
    use lowmesh_units::Duration;

    use super::*;

    const NODE: NodeId = NodeId(3);
    const NOW: Instant = Instant::from_secs(2);

    fn cells(what: &'static str) -> Network {
        Network::Cells { peer: NodeId(1).eui64(), what, cells: vec![(5, 2), (7, 0)] }
    }

    /// Every kind of fact, each with the line it is written as.
    fn facts() -> Vec<(Fact<'static>, &'static str)> {
        let networks: &'static [Network] = Vec::leak(vec![
            Network::Parent(Some(NodeId(1).eui64())),
            cells("added"),
            cells("removed"),
        ]);
        let channel = Channel::new(26).expect("a channel");
        let (packet, handle) = (Handle(0xab), Handle(9));
        let dropped = Dropped { handle: packet, layer: Layer::Mac, reason: DropReason::QueueFull };
        let time = Duration::from_millis(2500);
        vec![
            (
                Fact::Sent { asn: Some(Asn(200)), channel, octets: &[0x41, 0x0f] },
                r#""event":"sent","asn":200,"channel":26,"octets":"410f""#,
            ),
            (
                Fact::Heard { from: NodeId(1), rssi_dbm: -70.25, octets: 50 },
                r#""event":"heard","from":1,"rssi_dbm":-70.2,"length":50"#,
            ),
            (
                Fact::Booted(NodeId(1).eui64()),
                r#""event":"booted","eui64":"02-4c-4d-00-00-00-00-01""#,
            ),
            (Fact::Answered { acked: true }, r#""event":"answered","acked":true"#),
            (Fact::Answered { acked: false }, r#""event":"answered","acked":false"#),
            (
                Fact::Packet(Packet::Born(packet, Class::Response)),
                r#""event":"packet_born","packet":"ab","class":"response""#,
            ),
            (
                Fact::Packet(Packet::Addressed(packet, Address::ALL_MPL_FORWARDERS)),
                r#""event":"packet_addressed","packet":"ab","group":"ff03::fc""#,
            ),
            (Fact::Packet(Packet::Accepted(packet)), r#""event":"packet_accepted","packet":"ab""#),
            (Fact::Packet(Packet::PassedOn(packet)), r#""event":"packet_passed_on","packet":"ab""#),
            (
                Fact::Packet(Packet::Delivered(packet)),
                r#""event":"packet_delivered","packet":"ab""#,
            ),
            (
                Fact::Packet(Packet::Dropped(dropped)),
                r#""event":"packet_dropped","packet":"ab","layer":"mac","reason":"queue_full""#,
            ),
            (
                Fact::Transaction(Transaction::Sent(handle, time)),
                r#""event":"transaction_sent","transaction":"9","rto_ms":2500.000"#,
            ),
            (
                Fact::Transaction(Transaction::Resent(handle, 2)),
                r#""event":"transaction_resent","transaction":"9","copy":2"#,
            ),
            (
                Fact::Transaction(Transaction::Acknowledged(handle, time, 1)),
                r#""event":"transaction_acknowledged","transaction":"9","rtt_ms":2500.000,"retransmissions":1"#,
            ),
            (
                Fact::Transaction(Transaction::Failed(handle, DropReason::GaveUp)),
                r#""event":"transaction_failed","transaction":"9","reason":"gave_up""#,
            ),
            (Fact::Network(&Network::Synchronised), r#""event":"synchronised""#),
            (Fact::Network(&Network::Desynchronised), r#""event":"desynchronised""#),
            (Fact::Network(&Network::Parent(None)), r#""event":"parent","parent":null"#),
            (Fact::Network(&networks[0]), r#""event":"parent","parent":"02-4c-4d-00-00-00-00-01""#),
            (
                Fact::Network(&networks[1]),
                r#""event":"cells","peer":"02-4c-4d-00-00-00-00-01","what":"added","cells":[[5, 2], [7, 0]]"#,
            ),
            (
                Fact::Network(&networks[2]),
                r#""event":"cells","peer":"02-4c-4d-00-00-00-00-01","what":"removed","cells":[[5, 2], [7, 0]]"#,
            ),
        ]
    }

    fn hash_of(now: Instant, node: NodeId, fact: Fact<'_>) -> u64 {
        let mut trace = Trace::new(None);
        trace.note(now, node, fact);
        trace.hash()
    }

    #[test]
    fn each_fact_is_written_as_one_line_of_json() {
        for (fact, expected) in facts() {
            let mut line = String::new();
            write_line(&mut line, NOW, NODE, fact);
            assert_eq!(line, format!("{{\"t_s\":2.000000,\"node\":3,{expected}}}\n"));
            serde_json::from_str::<serde_json::Value>(&line).expect(&line);
        }
    }

    #[test]
    fn no_two_facts_have_one_hash() {
        let hashes: BTreeSet<u64> =
            facts().iter().map(|(fact, _)| hash_of(NOW, NODE, *fact)).collect();
        assert_eq!(hashes.len(), facts().len());
    }

    #[test]
    fn the_hash_knows_when_and_where_and_in_which_order() {
        let (one, other) = (Fact::Answered { acked: true }, Fact::Answered { acked: false });
        let here = hash_of(NOW, NODE, one);
        assert_ne!(hash_of(Instant::from_secs(3), NODE, one), here);
        assert_ne!(hash_of(NOW, NodeId(4), one), here);
        let both = |first, second| {
            let mut trace = Trace::new(None);
            trace.note(NOW, NODE, first);
            trace.note(NOW, NODE, second);
            trace.hash()
        };
        assert_ne!(both(one, other), both(other, one));
    }

    /// Takes so many lines, then fails.
    struct Short(usize);

    impl Write for Short {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_at_the_end_and_leaves_the_hash_alone() {
        let (mut short, mut alone) = (Trace::new(Some(Box::new(Short(2)))), Trace::new(None));
        for (fact, _) in facts() {
            short.note(NOW, NODE, fact);
            alone.note(NOW, NODE, fact);
        }
        assert_eq!(short.hash(), alone.hash());
        let error = short.finish().expect_err("the disk was full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        alone.finish().expect("nothing was to be written");
    }
}
