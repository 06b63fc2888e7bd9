//! Mode E2E as in Lenders et al., "Fragment Forwarding in Lossy Networks", IEEE Access 9 (2021): the MTU is a
//! frame and what compression gains, so that each packet fits into one frame at every hop.

use lowmesh_ipv6::fragment::fragments;
use lowmesh_ipv6::packet::{Flow, udp};
use lowmesh_ipv6::params::{COMPRESSION_GAIN, COMPRESSION_GAIN_FRAGMENT, PREFIX};
use lowmesh_units::{Eui64, NodeId};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET};
use lowmesh_wire::lowpan::{Contexts, Extent, compress};

/// Octets that a frame with two long addresses leaves for 6LoWPAN.
const FRAME_PAYLOAD: usize = 102;

fn node(index: u16) -> Eui64 {
    NodeId(index).eui64()
}

/// A packet from node 1 to node 9, ports inline.
fn packet(octets: usize) -> Vec<u8> {
    let (source, destination) =
        (Address::global(PREFIX, node(1)), Address::global(PREFIX, node(9)));
    udp(
        &Flow { source, destination, source_port: 6383, destination_port: 6383 },
        64,
        &vec![7; octets],
        |_| (),
    )
}

/// Octets that compression leaves away between two forwarders, who are neither source nor destination.
fn gain(packet: &[u8]) -> usize {
    let mut packet = packet.to_vec();
    packet[HOP_LIMIT_OFFSET] -= 1;
    let contexts = Contexts::new().with(0, PREFIX);
    let mut headers = Vec::new();
    let covered =
        compress(&packet, node(4), Some(node(5)), &contexts, Extent::Chain, None, &mut headers)
            .expect("a whole packet");
    covered - headers.len()
}

#[test]
fn compression_gains_what_the_paper_s_table_adds_up() {
    let table = [-2, 4, 2, 1, 16, -1, 1, -1, 2i32];
    assert_eq!(usize::try_from(table.iter().sum::<i32>()), Ok(COMPRESSION_GAIN));
    assert_eq!(gain(&packet(64)), COMPRESSION_GAIN);
}

#[test]
fn a_fragment_gains_two_octets_less() {
    for part in fragments(&packet(200), 122, 1).expect("a whole packet") {
        assert_eq!(gain(&part), COMPRESSION_GAIN_FRAGMENT);
    }
}

/// The packets in which a payload leaves, each in one frame.
fn packets(octets: usize) -> Vec<Vec<u8>> {
    let packet = packet(octets);
    if packet.len() <= FRAME_PAYLOAD + COMPRESSION_GAIN {
        return vec![packet];
    }
    fragments(&packet, FRAME_PAYLOAD + COMPRESSION_GAIN_FRAGMENT, 1).expect("it fits").collect()
}

#[test]
fn every_packet_fits_into_one_frame_at_every_hop() {
    for octets in 0..=1232 {
        for part in packets(octets) {
            assert!(part.len() - gain(&part) <= FRAME_PAYLOAD, "{octets} octets");
        }
    }
}

#[test]
fn end_to_end_takes_as_many_fragments_as_in_the_paper() {
    let limits = [96, 144, 224, 288, 368, 432, 512, 576, 656, 720, 800, 864, 944, 1008];
    let differences: Vec<_> = (16..=1024)
        .step_by(16)
        .map(|octets| {
            let theirs = 1 + limits.iter().filter(|limit| **limit <= octets).count();
            (octets, packets(octets).len(), theirs)
        })
        .filter(|(_, ours, theirs)| ours != theirs)
        .collect();
    // The table gives 96 octets as the first limit, which its scripts have as a constant. A payload of 80 makes a
    // packet of 128 octets, four more than the MTU of 124.
    assert_eq!(differences, [(80, 2, 1)]);
}
