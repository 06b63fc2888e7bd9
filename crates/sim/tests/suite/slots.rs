//! What can happen within one timeslot, read off the record stream of random worlds.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lowmesh_sim::Sinks;
use lowmesh_sim::record::Outcome;
use lowmesh_units::{Duration, Eui64};
use lowmesh_wire::ieee802154::{Address, FCS_OCTETS, Frame, FrameType};
use serde_json::Value;

use crate::worlds::{Config, line, quick, random, run, watched};

/// Longest frame of the O-QPSK PHY (IEEE 802.15.4-2015 s11.3: aMaxPhyPacketSize).
const PHY_OCTETS_MAX: usize = 127;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(octets)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All that happened on the air in one slot.
#[derive(Debug, Default)]
struct Slot {
    /// Sender and channel of each frame that is no acknowledgement.
    sent: BTreeMap<u64, u64>,
    /// Addresses of these frames: whose, and for whom if for one.
    addresses: BTreeMap<u64, (Eui64, Option<Eui64>)>,
    /// Sender and channel of each acknowledgement.
    acks: BTreeMap<u64, u64>,
    /// Who heard whom.
    heard: BTreeMap<u64, u64>,
    /// How many were heard by the node that they were for.
    arrived: u64,
    /// Whose frame was acknowledged.
    acked: Vec<u64>,
}

fn octets(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn long(address: Option<Address>) -> Option<Eui64> {
    match address {
        Some(Address::Extended(eui)) => Some(eui),
        _ => None,
    }
}

/// The slots of a run with frames in them, and its outcome; each frame is checked.
fn slots(config: Config, number: u64) -> (BTreeMap<u64, Slot>, Outcome) {
    let lines = Shared::default();
    let sinks = Sinks { pcap: None, trace: Some(Box::new(lines.clone())) };
    let outcome = watched(config, number, sinks).expect("the books balance");
    let text = lines.0.lock().expect("no writer panics").clone();
    let mut slots: BTreeMap<u64, Slot> = BTreeMap::new();
    let mut booted = BTreeMap::new();
    for line in String::from_utf8(text).expect("UTF-8").lines() {
        let fact: Value = serde_json::from_str(line).expect(line);
        // Slots are 10 ms; the stream tells the start of the slot.
        let time = fact["t_s"].as_f64().expect("seconds");
        let slot = slots.entry((time * 100.0).round() as u64).or_default();
        let number = |key: &str| fact[key].as_u64().expect("a number");
        let node = number("node");
        match fact["event"].as_str().expect("a word") {
            "sent" => {
                let octets = octets(fact["octets"].as_str().expect("hexadecimal"));
                assert!(octets.len() + FCS_OCTETS <= PHY_OCTETS_MAX, "{line}");
                let frame = Frame::parse(&octets).expect(line);
                let is_ack = frame.header.frame_type == FrameType::Ack;
                if !is_ack {
                    let me = long(frame.header.source).expect("a long address");
                    slot.addresses.insert(node, (me, long(frame.header.destination)));
                }
                let frames = if is_ack { &mut slot.acks } else { &mut slot.sent };
                assert_eq!(frames.insert(node, number("channel")), None, "twice: {line}");
            }
            "heard" => {
                let destination = slot.addresses.get(&number("from")).and_then(|(_, to)| *to);
                slot.arrived += u64::from(destination == booted.get(&node).copied());
                assert_eq!(slot.heard.insert(node, number("from")), None, "twice: {line}");
            }
            "booted" => {
                let hex = fact["eui64"].as_str().expect("hexadecimal").replace('-', "");
                booted.insert(node, Eui64(octets(&hex).try_into().expect("eight octets")));
            }
            "answered" if fact["acked"] == true => slot.acked.push(node),
            _ => {}
        }
    }
    (slots, outcome)
}

#[test]
fn frames_to_a_neighbour_that_sends_in_the_same_slot_are_deaf() {
    let mut deaf = 0;
    for number in 0..12 {
        let (slots, outcome) = slots(random(number), number);
        let to_a_sender = |air: &Slot| {
            let sends = |to: Eui64| air.addresses.values().any(|(sender, _)| *sender == to);
            air.addresses.values().filter(|(_, to)| to.is_some_and(sends)).count() as u64
        };
        let counted: u64 = slots.values().map(to_a_sender).sum();
        assert_eq!(outcome.frames.deaf, counted, "random({number})");
        deaf += counted;
    }
    assert!(deaf > 100, "{deaf}");
}

#[test]
fn the_air_keeps_its_rules_in_every_slot() {
    let (mut heard, mut acked) = (0, 0);
    for number in 0..12 {
        for (slot, air) in slots(random(number), number).0 {
            let at = format!("random({number}) slot {slot}: {air:?}");
            for (listener, sender) in &air.heard {
                assert!(air.sent.contains_key(sender), "heard without a frame, {at}");
                assert!(!air.sent.contains_key(listener), "a radio sends or listens, {at}");
            }
            for (acker, channel) in &air.acks {
                let sender = air.heard.get(acker).expect(&at);
                assert_eq!(air.sent.get(sender), Some(channel), "on another channel, {at}");
            }
            for sender in &air.acked {
                let from_it = |acker: &&u64| air.heard.get(acker) == Some(sender);
                assert_eq!(air.acks.keys().filter(from_it).count(), 1, "{at}");
            }
            heard += air.heard.len();
            acked += air.acked.len();
        }
    }
    assert!(heard > 20_000 && acked > 5_000, "too quiet: {heard} heard, {acked} acknowledged");
}

#[test]
fn a_frame_outside_the_guard_time_is_not_received() {
    let mut config = random(0);
    config.drift_max_ppm = 40.0;
    config.node.mac.guard = Duration::from_micros(400);
    let (slots, outcome) = slots(config, 0);
    let arrived: u64 = slots.values().map(|air| air.arrived).sum();
    assert!(arrived > 50, "too quiet: {arrived}");
    assert_eq!(outcome.frames.received, arrived);
}

/// Links are perfect and nothing interferes, so only a clock out of step makes a frame fade.
#[test]
fn a_frame_outside_the_guard_time_counts_as_faded() {
    let faded = |guard_micros| {
        let mut config = Config { drift_max_ppm: 40.0, ..quick(line(3)) };
        config.node.mac.guard = Duration::from_micros(guard_micros);
        run(config, 4).frames.faded
    };
    assert_eq!(faded(1_100), 0);
    assert!(faded(20) > 0);
}
