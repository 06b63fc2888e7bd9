//! What a node over ZEP counts: datagrams and frames at its socket, fragments, packets, and ICMPv6 errors.
//!
//! ```text
//!   heard   = accepted + acknowledged + waiting + receive losses (inbox_full, not_zep and other_channel excluded)
//!   packets:  born + received = passed on + delivered + dropped + held
//! ```
//! A packet counts once for each copy of it: one that is forwarded is received and passed on.

use std::collections::BTreeMap;

use lowmesh_mac::csma;
use lowmesh_mac::frame::is_ack;
use lowmesh_machine::{DropReason, Layer};
use lowmesh_stack::Node;
use lowmesh_stack::event::{ErrorCounts, Output, Packet};

use super::event::{Event, Loss};

/// The counters of a node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames and acknowledgements of them.
    pub frames: Frames,
    /// Datagrams and frames that went no further, by reason.
    pub lost: BTreeMap<Loss, u64>,
    /// Fragments of packets.
    pub fragments: Fragments,
    /// IPv6 packets.
    pub packets: Packets,
    /// IPv6 packets that ended here without arriving, by layer and reason.
    pub dropped: BTreeMap<(Layer, DropReason), u64>,
    /// ICMPv6 errors that left.
    pub errors_sent: ErrorCounts,
    /// ICMPv6 errors that did not leave, since the rate was used up.
    pub errors_withheld: u64,
    /// ICMPv6 errors that came about packets of this node.
    pub errors_received: ErrorCounts,
}

/// Frames of IEEE 802.15.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Frames {
    /// Data frames that left, copies included.
    pub sent: u64,
    /// Acknowledgements that left.
    pub acknowledgements_sent: u64,
    /// Data frames of this node that were acknowledged.
    pub acknowledged: u64,
    /// Frames that came on the channel of the node.
    pub heard: u64,
    /// Of these, data frames for this node that came for the first time.
    pub accepted: u64,
    /// Of these, frames that wait until the node listens.
    pub waiting: u64,
}

/// Fragments of 6LoWPAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fragments {
    /// Fragments of packets that are sent from here, copies included.
    pub sent: u64,
    /// Fragments that came.
    pub received: u64,
    /// Fragments that passed through.
    pub forwarded: u64,
}

/// IPv6 packets, once for each copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Packets {
    /// Packets that were made here.
    pub born: u64,
    /// Packets that came from a neighbour for this node alone.
    pub received: u64,
    /// Packets that a neighbour has taken, or all of them.
    pub passed_on: u64,
    /// Packets that were for this node.
    pub delivered: u64,
    /// Packets that ended here without arriving.
    pub dropped: u64,
    /// Packets that the node holds now.
    pub held: u64,
}

/// What a host counts as things happen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sent: u64,
    acknowledgements_sent: u64,
    heard: u64,
    waiting: u64,
    lost: BTreeMap<Loss, u64>,
    packets: Packets,
    dropped: BTreeMap<(Layer, DropReason), u64>,
    /// The counters of the MAC when they were looked at last.
    mac: csma::Counters,
}

impl Tally {
    /// Counts something that happened.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Heard { .. } => {
                self.heard += 1;
                self.waiting += 1;
            }
            Event::Lost(loss) => {
                *self.lost.entry(*loss).or_default() += 1;
                self.waiting -= u64::from(*loss == Loss::EarlyFull);
            }
            Event::Said(Output::Packet(packet)) => self.packet(*packet),
            Event::Said(_) => {}
            Event::Sent(octets) if is_ack(octets) => {
                self.acknowledgements_sent += 1;
            }
            Event::Sent(_) => self.sent += 1,
        }
    }
    /// A frame that waited is the MAC's now.
    pub fn taken(&mut self) {
        self.waiting -= 1;
    }

    fn packet(&mut self, packet: Packet) {
        let packets = &mut self.packets;
        match packet {
            Packet::Born(..) => packets.born += 1,
            Packet::Addressed(..) => {}
            Packet::Accepted(_) => packets.received += 1,
            Packet::PassedOn(_) => packets.passed_on += 1,
            Packet::Delivered(_) => packets.delivered += 1,
            Packet::Dropped(dropped) => {
                packets.dropped += 1;
                *self.dropped.entry((dropped.layer, dropped.reason)).or_default() += 1;
            }
        }
    }

    /// The frames that the MAC has lost since the last call.
    pub fn losses(&mut self, node: &Node) -> Vec<Loss> {
        let Some(mac) = node.contention().filter(|mac| *mac != self.mac) else { return Vec::new() };
        let (old, mut losses) = (self.mac, Vec::new());
        for (loss, count) in [
            (Loss::Malformed, mac.malformed - old.malformed),
            (Loss::NotForUs, mac.filtered - old.filtered),
            (Loss::Duplicate, mac.duplicates - old.duplicates),
            (Loss::NoAck, mac.no_ack - old.no_ack),
            (Loss::ChannelAccess, mac.channel_access - old.channel_access),
            (Loss::Refused, mac.refused - old.refused),
        ] {
            losses.extend((0..count).map(|_| loss));
        }
        self.mac = mac;
        losses
    }

    /// All that was counted here and in the layers of the node.
    pub fn counters(&self, node: &Node) -> Counters {
        let (stack, lowpan) = (node.counters(), node.lowpan().counters());
        let (mac, recovery) =
            (node.contention().unwrap_or_default(), node.lowpan().recovery_counters());
        Counters {
            frames: Frames {
                sent: self.sent,
                acknowledgements_sent: self.acknowledgements_sent,
                acknowledged: mac.acknowledged,
                heard: self.heard,
                accepted: mac.accepted,
                waiting: self.waiting,
            },
            lost: self.lost.clone(),
            fragments: Fragments {
                sent: lowpan.fragments_sent + recovery.sent + recovery.resent,
                received: lowpan.fragments_received,
                forwarded: lowpan.fragments_forwarded + recovery.forwarded,
            },
            packets: Packets { held: node.held().len() as u64, ..self.packets },
            dropped: self.dropped.clone(),
            errors_sent: stack.errors_sent,
            errors_withheld: stack.errors_withheld,
            errors_received: stack.errors_received,
        }
    }
}
