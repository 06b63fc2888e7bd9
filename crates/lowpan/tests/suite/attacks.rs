//! The two attacks on fragmentation that Hummen et al. (WiSec 2013) describe, and what they come to here.

use lowmesh_lowpan::{Config, FragmentMode};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::HOP_LIMIT_OFFSET;
use lowmesh_wire::lowpan::fragment::FragmentHeader;

use crate::line::{Line, eui, packet};

fn config(mode: FragmentMode) -> Config {
    Config { mode, ..Config::default() }
}

/// The fragments of a packet from node 0 to the last of `nodes`, as its neighbour gets them.
fn frames(mode: FragmentMode, nodes: usize, octets: usize) -> Vec<Vec<u8>> {
    let mut line = Line::new(nodes, config(mode), 1);
    line.send(packet(0, nodes - 1, octets, 3), 1);
    line.run_to_rest();
    line.sent.into_iter().filter(|(from, _)| *from == 0).map(|(_, payload)| payload).collect()
}

/// A first fragment of a datagram that will never be complete.
fn reservation(tag: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    FragmentHeader { datagram_size: 1280, datagram_tag: tag, offset: 8 }.emit(&mut frame);
    frame.extend_from_slice(&[0; 8]);
    frame
}

#[test]
fn a_neighbour_that_reserves_buffers_leaves_one_for_the_others() {
    let config = Config { reassembly_octets: 6000, ..config(FragmentMode::HopWise) };
    let mut line = Line::new(2, config, 1);
    for tag in 0..1000 {
        line.hear(1, eui(7), &reservation(tag), u64::from(tag) + 10);
    }
    let genuine = frames(FragmentMode::HopWise, 2, 300);
    for frame in &genuine {
        line.hear(1, eui(0), frame, 1);
    }
    assert_eq!(line.delivered, [packet(0, 1, 300, 3)]);
    line.run_to_rest();
}

#[test]
fn reserved_buffers_are_free_again_after_their_time() {
    let mut line = Line::new(2, config(FragmentMode::HopWise), 1);
    for tag in 0..10 {
        line.hear(1, eui(7), &reservation(tag), u64::from(tag) + 10);
    }
    assert!(line.nodes[1].packet_buffer().reassembly > 0);
    line.run_until(Instant::ZERO + Config::default().reassembly_timeout);
    assert_eq!(line.nodes[1].packet_buffer().reassembly, 0);
}

#[test]
fn a_neighbour_that_reserves_entries_makes_a_forwarder_reassemble_and_no_more() {
    let config = Config { forwarded_datagrams: 2, ..config(FragmentMode::Forwarded) };
    let mut line = Line::new(3, config, 1);
    let bait = frames(FragmentMode::Forwarded, 3, 300);
    for tag in 0..10 {
        let mut first = bait[0].clone();
        first[2..4].copy_from_slice(&u16::to_be_bytes(tag));
        line.hear(1, eui(7), &first, u64::from(tag) + 10);
    }
    assert!(line.nodes[1].forwarded_datagrams() <= 2);
    for frame in &frames(FragmentMode::Forwarded, 3, 300) {
        line.hear(1, eui(0), frame, 1);
    }
    line.run_until(line.now() + Duration::from_millis(200));
    assert_eq!(line.delivered.len(), 1);
    line.run_to_rest();
}

#[test]
fn bogus_copies_of_fragments_do_not_pass_a_forwarder_and_spoil_nothing() {
    let mut line = Line::new(3, config(FragmentMode::Forwarded), 1);
    let genuine = frames(FragmentMode::Forwarded, 3, 300);
    for frame in &genuine {
        line.hear(1, eui(0), frame, 1);
        // The attacker speaks with the neighbour's address: the same place, other octets; then another length.
        let mut copy = frame.clone();
        copy.iter_mut().skip(5).for_each(|octet| *octet ^= 0xff);
        line.hear(1, eui(0), &copy, 1);
        line.hear(1, eui(0), &copy[..copy.len().min(5 + 8)], 1);
    }
    line.run_to_rest();
    let mut expected = packet(0, 2, 300, 3);
    expected[HOP_LIMIT_OFFSET] -= 1;
    assert_eq!(line.delivered, [expected]);
    // One frame for each genuine fragment went on.
    assert_eq!(line.sent.iter().filter(|(from, _)| *from == 1).count(), genuine.len());
}

#[test]
fn a_bogus_copy_of_the_same_place_and_length_changes_nothing_at_the_end() {
    let mut line = Line::new(2, config(FragmentMode::HopWise), 1);
    for frame in &frames(FragmentMode::HopWise, 2, 300) {
        line.hear(1, eui(0), frame, 1);
        let mut copy = frame.clone();
        if let Some(last) = copy.last_mut() {
            *last ^= 0xff;
        }
        line.hear(1, eui(0), &copy, 1);
    }
    assert_eq!(line.delivered, [packet(0, 1, 300, 3)]);
    line.run_to_rest();
}
