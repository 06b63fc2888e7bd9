//! Vectors of another implementation, and properties: what is compressed comes back, and nothing panics.

use std::vec;
use std::vec::Vec;

use lowmesh_units::Eui64;
use proptest::prelude::*;

use super::*;
use crate::Problem;
use crate::ieee802154::{self, Address as LinkAddress, Frame};
use crate::ipv6::{Address, Header, next_header};
use crate::udp;

const HERE: Eui64 = Eui64([0x02, 0, b'L', b'M', 0, 0, 0, 1]);
const THERE: Eui64 = Eui64([0x02, 0, b'L', b'M', 0, 0, 0, 2]);
const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
const OTHER: [u8; 8] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1];

fn contexts() -> Contexts {
    Contexts::new().with(0, PREFIX).with(5, OTHER)
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits"))
        .collect()
}

fn shrink(packet: &[u8], destination: Option<Eui64>, contexts: &Contexts) -> Vec<u8> {
    let mut frame = Vec::new();
    let covered = compress(packet, HERE, destination, contexts, Extent::Chain, None, &mut frame)
        .expect("a whole packet");
    assert_eq!(covered % 8, 0);
    frame.extend_from_slice(&packet[covered..]);
    frame
}

fn grow(frame: &[u8], destination: Option<Eui64>) -> Result<Vec<u8>, crate::DecodeError> {
    let mut packet = Vec::new();
    decompress(frame, HERE, destination, &contexts(), None, &mut packet)?;
    Ok(packet)
}

fn packet(source: Address, destination: Address, first: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: rest.len() as u16,
        next_header: first,
        hop_limit: 64,
        source,
        destination,
    }
    .emit(&mut bytes);
    bytes.extend_from_slice(rest);
    bytes
}

fn datagram(source: &Address, destination: &Address, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    udp::Datagram { source_port: ports.0, destination_port: ports.1, payload }.emit(
        source,
        destination,
        &mut bytes,
    );
    bytes
}

/// A packet as a RPL root sends it down: RPL option, source route, UDP.
fn downward() -> Vec<u8> {
    let (source, destination) = (Address::global(PREFIX, HERE), Address::global(PREFIX, THERE));
    let mut rest = vec![next_header::ROUTING, 0, 0x63, 4, 0x80, 0, 1, 0];
    rest.extend_from_slice(&[next_header::UDP, 1, 3, 2, 0xff, 0x60, 0, 0]);
    rest.extend_from_slice(&[2, 3, 0, 0, 0, 0, 0, 0]);
    rest.extend_from_slice(&datagram(&source, &destination, (0xf0b1, 0xf0b2), b"on"));
    packet(source, destination, next_header::HOP_BY_HOP, &rest)
}

#[test]
fn another_implementation_agrees_in_both_directions() {
    let file = include_str!("../../../../tests/vectors/lowpan/iphc.txt");
    let lines: Vec<&str> =
        file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 3 * 14);
    for vector in lines.chunks(3) {
        let (frame, expected) = (octets(vector[1]), octets(vector[2]));
        assert_eq!(grow(&frame, Some(THERE)), Ok(expected.clone()), "{}", vector[0]);
        assert_eq!(shrink(&expected, Some(THERE), &Contexts::new()), frame, "{}", vector[0]);
    }
}

#[test]
fn a_packet_of_the_root_is_compressed_down_its_whole_chain() {
    let frame = shrink(&downward(), Some(THERE), &contexts());
    // IPHC 2; option header 1 + 1 + 6; routing header 1 + 1 + 14; UDP 1 + 1 + 2; data 2.
    let expected = "7e77e106630480000100e30e0302ff6000000203000000000000f312";
    assert_eq!(frame[..frame.len() - 4], octets(expected));
    assert_eq!(grow(&frame, Some(THERE)), Ok(downward()));
}

#[test]
fn every_prefix_of_a_frame_is_an_error_or_another_packet() {
    let whole = downward();
    let frame = shrink(&whole, Some(THERE), &contexts());
    for end in 0..frame.len() {
        let (headers, short) = (frame.len() - 2, grow(&frame[..end], Some(THERE)));
        assert_eq!(short.is_err(), end < headers, "{end} octets");
        assert_ne!(short, Ok(whole.clone()));
    }
}

#[test]
fn the_beginning_of_a_packet_is_compressed_like_the_whole() {
    let whole = downward();
    let compressed = |packet: &[u8], size| {
        let mut out = Vec::new();
        let covered =
            compress(packet, HERE, Some(THERE), &contexts(), Extent::Chain, size, &mut out)
                .expect("an IPv6 header");
        (covered, out)
    };
    let (covered, headers) = compressed(&whole, None);
    for end in covered..=whole.len() {
        assert_eq!(compressed(&whole[..end], Some(whole.len())), (covered, headers.clone()));
    }
    // Without the end of its UDP header a beginning is compressed up to what is whole.
    assert_eq!(compressed(&whole[..covered - 1], Some(whole.len())).0, covered - 8);
}

#[test]
fn a_fragment_header_keeps_its_octets_but_the_reserved_one() {
    let fragment = [next_header::UDP, 0, 0x00, 0x49, 1, 2, 3, 4];
    let whole = packet(
        Address::global(PREFIX, HERE),
        Address::global(PREFIX, THERE),
        next_header::FRAGMENT,
        &[&fragment[..], &[9; 16]].concat(),
    );
    let frame = shrink(&whole, Some(THERE), &contexts());
    // IPHC in two octets, LOWPAN_NHC with EID 2, next header in line, six octets follow.
    assert_eq!(frame[2..11], [0xe4, next_header::UDP, 6, 0x00, 0x49, 1, 2, 3, 4]);
    assert_eq!(grow(&frame, Some(THERE)), Ok(whole.clone()));
    let mut reserved = frame;
    reserved[4] = 0;
    assert_eq!(grow(&reserved, Some(THERE)), Ok(whole));
}

#[test]
fn trailing_padding_is_left_away_and_comes_back() {
    for (option, carried) in [
        // PadN of three octets, Pad1, padding with data in it, padding behind padding, none.
        (&[0x63, 1, 0, 1, 1, 0][..], 3),
        (&[0x63, 3, 1, 2, 3, 0], 5),
        (&[0x63, 1, 0, 1, 1, 7], 6),
        (&[0x63, 2, 0, 0, 0, 0], 6),
        (&[0x63, 4, 1, 2, 3, 4], 6),
    ] {
        let mut rest = vec![next_header::ICMPV6, 0];
        rest.extend_from_slice(option);
        rest.extend_from_slice(&[155, 1, 0, 0]);
        let whole = packet(
            Address::link_local(HERE),
            Address::ALL_RPL_NODES,
            next_header::HOP_BY_HOP,
            &rest,
        );
        let frame = shrink(&whole, None, &contexts());
        // IPHC with one octet of group; then LOWPAN_NHC, next header, length.
        assert_eq!(frame[3..6], [0xe0, next_header::ICMPV6, carried], "{option:?}");
        assert_eq!(grow(&frame, None), Ok(whole));
    }
}

#[test]
fn ecn_stands_before_dscp() {
    let mut whole = packet(Address::link_local(HERE), Address::ALL_NODES, next_header::NONE, &[]);
    // DSCP 46, ECN 1.
    (whole[0], whole[1]) = (0x6b, 0x90);
    let frame = shrink(&whole, None, &contexts());
    assert_eq!(frame, [0b0111_0010, 0b0011_1011, 0b0110_1110, next_header::NONE, 1]);
    assert_eq!(grow(&frame, None), Ok(whole));
}

/// The modes of RFC 6282 s3.2.3 with M = 1 and of s3.2.4, each with the octets that it carries.
#[test]
fn a_group_address_takes_the_shortest_mode_that_holds_it() {
    for (group, second, inline) in [
        ("ff02::1a", 0x3b, &[0x1a][..]),
        ("ff03::fc", 0x3a, &[0x03, 0, 0, 0xfc]),
        ("ff1e::89:1", 0x3a, &[0x1e, 0x89, 0, 1]),
        ("ff05::1:89:1", 0x39, &[0x05, 1, 0, 0x89, 0, 1]),
        ("ff35:40:2001:db8:0:1:8000:1", 0xbc, &[0x35, 0, 0x80, 0, 0, 1]),
    ] {
        let address: core::net::Ipv6Addr = group.parse().expect("an address");
        let whole = packet(Address::link_local(HERE), address.into(), next_header::NONE, &[]);
        let frame = shrink(&whole, None, &contexts());
        assert_eq!(frame[1], second, "{group}");
        // The octet of contexts, if there is one, then the next header, then the group.
        let at = 3 + usize::from(second & 0x80 != 0);
        assert_eq!(frame[at..], *inline, "{group}");
        assert_eq!(grow(&frame, None), Ok(whole), "{group}");
    }
}

#[test]
fn contexts_other_than_the_first_take_one_octet() {
    let whole = packet(
        Address::global(OTHER, HERE),
        Address::global(PREFIX, THERE),
        next_header::NONE,
        &[],
    );
    let frame = shrink(&whole, Some(THERE), &contexts());
    assert_eq!(frame, [0b0111_1010, 0b1111_0111, 0x50, next_header::NONE]);
    assert_eq!(grow(&frame, Some(THERE)), Ok(whole));
}

#[test]
fn a_context_that_the_link_lacks_is_an_error() {
    let mut packet = Vec::new();
    let frame = [0b0111_1010, 0b1111_0111, 0x50, next_header::NONE];
    let error = decompress(&frame, HERE, Some(THERE), &Contexts::new(), None, &mut packet)
        .expect_err("no context");
    assert_eq!((error.field, error.problem), ("source address", Problem::Value));
    assert!(packet.is_empty());
}

#[test]
fn a_checksum_that_was_elided_is_computed() {
    let (source, destination) = (Address::link_local(HERE), Address::link_local(THERE));
    let udp = datagram(&source, &destination, (0xf0b1, 0xf0b2), b"x");
    let whole = packet(source, destination, next_header::UDP, &udp);
    let frame = [0b0111_1110, 0b0011_0011, 0b1111_0111, 0x12, b'x'];
    assert_eq!(grow(&frame, Some(THERE)), Ok(whole));
}

#[test]
fn an_uncompressed_packet_is_taken_as_it_is() {
    let whole = downward();
    let mut frame = vec![DISPATCH_IPV6];
    frame.extend_from_slice(&whole);
    assert_eq!(grow(&frame, Some(THERE)), Ok(whole));
    frame.pop();
    assert!(grow(&frame, Some(THERE)).is_err());
}

/// Addresses that reach each mode: whole, in a context, link-local; any, short or the frame's identifier.
fn unicast(node: Eui64) -> impl Strategy<Value = Address> {
    let prefix = prop_oneof![
        Just(PREFIX),
        Just(OTHER),
        Just(Address::LINK_LOCAL_PREFIX),
        Just([0x20, 1, 2, 3, 4, 5, 6, 7])
    ];
    let iid = prop_oneof![
        Just(node.interface_identifier()),
        any::<[u8; 8]>(),
        any::<[u8; 2]>().prop_map(|short| [0, 0, 0, 0xff, 0xfe, 0, short[0], short[1]]),
    ];
    (prefix, iid).prop_map(|(prefix, iid)| Address::from_parts(prefix, iid))
}

fn destination() -> impl Strategy<Value = Address> {
    let group = (any::<[u8; 15]>(), 1..=16usize).prop_map(|(tail, from)| {
        let mut octets = [0; 16];
        octets[1..].copy_from_slice(&tail);
        octets[2..from.max(2)].fill(0);
        octets[0] = 0xff;
        Address(octets)
    });
    let based = any::<[u8; 6]>().prop_map(|x| {
        let mut octets = [0xff, x[0], x[1], 64, 0, 0, 0, 0, 0, 0, 0, 0, x[2], x[3], x[4], x[5]];
        octets[4..12].copy_from_slice(&OTHER);
        Address(octets)
    });
    prop_oneof![unicast(THERE), group, based, Just(Address::ALL_RPL_NODES)]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), 0xf000..=0xf0ffu16, 0xf0b0..=0xf0bfu16]
}

/// Extension headers in front of `upper`: their octets, and the first one's type.
fn extensions() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let kind = prop_oneof![
        Just(next_header::HOP_BY_HOP),
        Just(next_header::ROUTING),
        Just(next_header::FRAGMENT),
        Just(next_header::DESTINATION_OPTIONS)
    ];
    let header = (kind, proptest::collection::vec(any::<u8>(), 0..40), any::<bool>());
    let header = header.prop_map(|(kind, data, fits)| {
        let mut bytes = vec![0, 0];
        match kind {
            next_header::FRAGMENT => bytes.resize(8, 0x11),
            next_header::ROUTING => {
                bytes.extend_from_slice(&[3, 1]);
                bytes.extend_from_slice(&data);
                bytes.resize(bytes.len().next_multiple_of(8), 0);
            }
            _ => {
                bytes.extend_from_slice(&[0x63, data.len() as u8]);
                bytes.extend_from_slice(&data);
                if fits {
                    crate::ipv6::pad_to_eight(&mut bytes, 0);
                } else {
                    bytes.resize(bytes.len().next_multiple_of(8), 0);
                }
            }
        }
        if kind != next_header::FRAGMENT {
            bytes[1] = (bytes.len() / 8 - 1) as u8;
        }
        (kind, bytes)
    });
    proptest::collection::vec(header, 0..4)
}

/// A packet to a group as MPL sends it (RFC 7731 s9.1): in a packet to the domain, behind a hop-by-hop option.
fn tunnelled(inner: &[u8]) -> Vec<u8> {
    let mut rest = vec![next_header::IPV6, 0, 0x6d, 2, 0x20, 9, 1, 0];
    rest.extend_from_slice(inner);
    let (source, domain) = (Address::global(PREFIX, HERE), Address::ALL_MPL_FORWARDERS);
    packet(source, domain, next_header::HOP_BY_HOP, &rest)
}
/// A datagram of `node` to a group.
fn to_group(node: Eui64) -> Vec<u8> {
    let (source, group) = (Address::global(PREFIX, node), Address::ALL_COAP_NODES);
    let group = group.in_scope(crate::ipv6::Scope::SITE_LOCAL);
    packet(source, group, next_header::UDP, &datagram(&source, &group, (5683, 5683), b"on"))
}

#[test]
fn a_packet_in_a_packet_is_compressed_against_its_outer_header() {
    let whole = tunnelled(&to_group(HERE));
    let frame = shrink(&whole, None, &contexts());
    assert_eq!(grow(&frame, None).as_ref(), Ok(&whole));
    // The inner source is the outer one, and both prefixes are context 0: EID 7, IPHC, and 32 bits of the group.
    let inner = &frame[frame.len() - 2 - 7 - 6 - 1..];
    assert_eq!(inner[..7], [0xee, 0x7e, 0x7a, 5, 0, 0, 0xfd]);
    let from_another = tunnelled(&to_group(THERE));
    let frame = shrink(&from_another, None, &contexts());
    assert_eq!(grow(&frame, None), Ok(from_another));
}

#[test]
fn a_packet_in_a_packet_is_compressed_at_its_beginning_too() {
    let whole = tunnelled(&to_group(THERE));
    let beginning = &whole[..whole.len() - 2];
    let mut frame = Vec::new();
    let contexts = contexts();
    let size = Some(whole.len());
    compress(beginning, HERE, None, &contexts, Extent::Chain, size, &mut frame).expect("headers");
    let mut grown = Vec::new();
    decompress(&frame, HERE, None, &contexts, size, &mut grown).expect("own octets");
    assert_eq!(grown, beginning);
    let short = Some(whole.len() - beginning.len());
    assert!(decompress(&frame, HERE, None, &contexts, short, &mut grown).is_err());
}

#[test]
fn a_third_packet_is_carried_as_it_is_and_not_read() {
    let inner = to_group(HERE);
    let middle =
        packet(Address::global(PREFIX, HERE), Address::ALL_NODES, next_header::IPV6, &inner);
    let whole = tunnelled(&middle);
    let frame = shrink(&whole, None, &contexts());
    assert_eq!(grow(&frame, None).as_ref(), Ok(&whole));
    assert!(frame.windows(inner.len()).any(|octets| octets == inner));
    let nested = [0x7e, 0x3b, 1, 0xee, 0x7e, 0x3b, 1, 0xee, 0x7e, 0x3b, 1];
    assert!(grow(&nested, None).is_err());
}

proptest! {
    #[test]
    fn what_is_compressed_comes_back(
        source in prop_oneof![unicast(HERE), Just(Address::UNSPECIFIED)],
        destination in destination(),
        word in prop_oneof![Just(0u32), any::<u32>(), any::<u32>().prop_map(|x| x & 0x0ff0_0000),
            any::<u32>().prop_map(|x| x & 0x003f_ffff)],
        hop_limit in prop_oneof![Just(1u8), Just(64), Just(255), any::<u8>()],
        extensions in extensions(),
        udp in proptest::option::of((port(), port())),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
        broadcast in any::<bool>(),
    ) {
        let (mut next, upper) = match udp {
            Some(ports) =>
                (next_header::UDP, datagram(&source, &destination, ports, &payload)),
            None => (next_header::ICMPV6, payload),
        };
        let mut rest = upper;
        for (kind, mut bytes) in extensions.into_iter().rev() {
            bytes[0] = next;
            next = kind;
            bytes.extend_from_slice(&rest);
            rest = bytes;
        }
        let mut whole = packet(source, destination, next, &rest);
        let word = 0x6000_0000 | word & 0x0fff_ffff;
        whole[..4].copy_from_slice(&word.to_be_bytes());
        whole[7] = hop_limit;
        let link = (!broadcast).then_some(THERE);
        let frame = shrink(&whole, link, &contexts());
        prop_assert!(frame.len() <= whole.len() + 2);
        prop_assert_eq!(grow(&frame, link), Ok(whole));
    }

    #[test]
    fn no_bytes_make_the_decompressor_panic(
        mut frame in proptest::collection::vec(any::<u8>(), 0..120),
        size in proptest::option::of(0usize..2048),
    ) {
        if let Some(first) = frame.first_mut() {
            *first = 0x60 | *first & 0x1f;
        }
        let mut packet = vec![7];
        let result = decompress(&frame, HERE, Some(THERE), &contexts(), size, &mut packet);
        prop_assert_eq!(packet[0], 7);
        if result.is_ok() {
            prop_assert!(Header::parse(&packet[1..]).is_ok());
        } else {
            prop_assert_eq!(packet.len(), 1);
        }
    }
}

#[test]
fn a_header_whose_options_do_not_decode_is_carried_as_it_is() {
    // An option that claims five octets where four are left.
    let whole = packet(
        Address::link_local(HERE),
        Address::ALL_RPL_NODES,
        next_header::HOP_BY_HOP,
        &[next_header::ICMPV6, 0, 0x63, 5, 1, 2, 3, 4, 155, 1, 0, 0],
    );
    let frame = shrink(&whole, None, &Contexts::new());
    assert_eq!(grow(&frame, None), Ok(whole));
}

/// A ping between two nodes with 16-bit addresses, and its answer: captured at a plugtest (test I1_t2 of Thread),
/// in the vectors of OpenThread (tests/unit/test_lowpan.cpp). Frame with FCS, then the packet.
const SHORT_PING: [[&str; 2]; 2] = [
    [
        "618813cefa001000007a333a8000639e000000004142434445464748845f",
        "6000000000103a40fe80000000000000000000fffe000000fe80000000000000000000fffe0010008000639e000000004142434445464748",
    ],
    [
        "61880fcefa000000107a333a8100629e000000004142434445464748e035",
        "6000000000103a40fe80000000000000000000fffe001000fe80000000000000000000fffe0000008100629e000000004142434445464748",
    ],
];

#[test]
fn captured_frames_between_16_bit_addresses_are_read_and_written_as_they_came() {
    for [frame, expected] in SHORT_PING {
        let bytes = octets(frame);
        let (bytes, check) = bytes.split_at(bytes.len() - ieee802154::FCS_OCTETS);
        assert_eq!(ieee802154::fcs(bytes).to_le_bytes(), check);
        let frame = Frame::parse(bytes).expect("a captured frame");
        let link = |address: Option<LinkAddress>| match address {
            Some(LinkAddress::Short(short)) => short.eui64(),
            other => panic!("{other:?}"),
        };
        let (source, destination) = (link(frame.header.source), link(frame.header.destination));
        let (none, mut packet) = (Contexts::new(), Vec::new());
        decompress(frame.payload, source, Some(destination), &none, None, &mut packet)
            .expect("LOWPAN_IPHC");
        assert_eq!(packet, octets(expected));
        let mut again = Vec::new();
        let covered =
            compress(&packet, source, Some(destination), &none, Extent::Chain, None, &mut again)
                .expect("a whole packet");
        again.extend_from_slice(&packet[covered..]);
        assert_eq!(again, frame.payload);
    }
}
