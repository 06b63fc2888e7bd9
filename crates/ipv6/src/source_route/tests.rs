//! Steps along a source route, and routes that are not followed.

use lowmesh_units::NodeId;
use lowmesh_wire::ipv6::{Header, next_header};

use super::*;
use crate::packet::plain;
use crate::params::PREFIX;

fn global(node: u16) -> Address {
    Address::global(PREFIX, NodeId(node).eui64())
}
fn addresses(node: u16) -> Addresses {
    Addresses::new(NodeId(node).eui64(), PREFIX)
}
fn step(bytes: &mut [u8], addresses: &Addresses) -> Result<Step, DropReason> {
    let headers = Headers::of_packet(bytes).expect("own packet");
    super::step(bytes, &headers, addresses)
}
/// Where the source routing header stands.
fn routing(bytes: &[u8]) -> Range<usize> {
    let headers = Headers::of_packet(bytes).expect("own packet");
    find(bytes, &headers).expect("well-formed").expect("there")
}
fn packet(destination: Address) -> Vec<u8> {
    plain(global(0), destination, next_header::ICMPV6, 64, &[155, 2, 3], |options| {
        options.extend_from_slice(&[0x63, 4, 0, 0, 1, 0]);
    })
}
fn routed(hops: &[Address], destination: Address) -> Vec<u8> {
    let mut bytes = packet(destination);
    assert!(insert(&mut bytes, hops));
    bytes
}

#[test]
fn an_inserted_route_is_compressed_and_stands_behind_hop_by_hop_options() {
    let bytes = routed(&[global(1), global(2)], global(3));
    let header = Header::parse_packet(&bytes).expect("own packet");
    assert_eq!(header.destination, global(1));
    let kinds: Vec<_> = Extensions::new(&bytes)
        .expect("own packet")
        .map(|extension| extension.expect("own packet").kind)
        .collect();
    assert_eq!(kinds, [ExtensionKind::HopByHop, ExtensionKind::Routing]);
    let routing = &bytes[routing(&bytes)];
    // All octets but the last are shared; two addresses of one octet, six of padding.
    assert_eq!(routing, [next_header::ICMPV6, 1, 3, 2, 0xff, 0x60, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn each_step_swaps_the_destination_with_the_next_segment() {
    let mut bytes = routed(&[global(1), global(2)], global(3));
    assert_eq!(step(&mut bytes, &addresses(1)), Ok(Step::Next(global(2))));
    assert_eq!(step(&mut bytes, &addresses(2)), Ok(Step::Next(global(3))));
    assert_eq!(step(&mut bytes, &addresses(3)), Ok(Step::Arrived));
    let routing = &bytes[routing(&bytes)];
    assert_eq!((routing[SEGMENTS_LEFT], &routing[8..10]), (0, &[1, 2][..]));
}

#[test]
fn addresses_without_a_common_prefix_travel_whole() {
    let far = Address([0x20; 16]);
    let mut bytes = routed(&[global(1)], far);
    assert_eq!(step(&mut bytes, &addresses(1)), Ok(Step::Next(far)));
    assert_eq!(routing(&bytes).len(), 24);
}

#[test]
fn a_route_that_comes_back_is_a_loop() {
    let mut bytes = routed(&[global(4), global(1), global(2), global(1)], global(3));
    let before = bytes.clone();
    assert_eq!(step(&mut bytes, &addresses(1)), Err(DropReason::RankLoop));
    assert_eq!(bytes, before);
}

#[test]
fn two_own_addresses_side_by_side_are_no_loop() {
    let own = addresses(1);
    let mut bytes = routed(&[global(4), own.global(), own.link_local()], global(3));
    assert_eq!(step(&mut bytes, &own), Ok(Step::Next(own.global())));
}

#[test]
fn more_segments_left_than_addresses_is_malformed() {
    let mut bytes = routed(&[global(1)], global(3));
    let at = routing(&bytes).start;
    bytes[at + SEGMENTS_LEFT] = 2;
    assert_eq!(step(&mut bytes, &addresses(1)), Err(DropReason::Malformed));
}

#[test]
fn a_group_is_no_segment() {
    let mut bytes = routed(&[global(1)], Address::ALL_NODES);
    assert_eq!(step(&mut bytes, &addresses(1)), Err(DropReason::Malformed));
}

#[test]
fn an_unknown_routing_type_is_passed_over_only_at_its_end() {
    let mut bytes = routed(&[global(1)], global(3));
    let at = routing(&bytes).start;
    bytes[at + 2] = 253;
    assert_eq!(step(&mut bytes, &addresses(1)), Err(DropReason::Malformed));
    bytes[at + SEGMENTS_LEFT] = 0;
    assert_eq!(step(&mut bytes, &addresses(1)), Ok(Step::Arrived));
}

#[test]
fn an_empty_or_too_long_route_leaves_the_packet_alone() {
    let mut bytes = packet(global(3));
    let before = bytes.clone();
    assert!(!insert(&mut bytes, &[]));
    assert!(!insert(&mut bytes, &[Address([0x20; 16]); 200]));
    assert_eq!(bytes, before);
}
