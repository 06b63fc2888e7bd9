//! 6LoRH: the route of RFC 8138's figures 22 to 25, sizes, and properties.

use std::vec;
use std::vec::Vec;

use lowmesh_units::Eui64;
use proptest::prelude::*;

use super::path::{self, Entries};
use super::*;
use crate::ipv6::{Address, next_header};
use crate::lowpan::{Dispatch, Extent, RoutingContext, compress, decompress};
use crate::rpl::{Advance, HopByHopOption, SourceRoute};
use crate::udp;

const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
const OPTION: HopByHopOption = HopByHopOption {
    skippable: true,
    down: true,
    rank_error: false,
    forwarding_error: false,
    instance: 0,
    sender_rank: 0x0103,
};

/// Nodes whose EUI-64 share no octet, or that have 16-bit addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Long,
    Short,
}

fn node(kind: Kind, id: u8) -> Address {
    let iid = match kind {
        Kind::Long => [id + 0x10; 8],
        Kind::Short => [0, 0, 0, 0xff, 0xfe, 0, id + 0x10, id + 0x10],
    };
    Address::from_parts(PREFIX, iid)
}
fn contexts(kind: Kind) -> Contexts {
    let routing = RoutingContext { root: node(kind, 0), skippable: true };
    Contexts::new().with(0, PREFIX).with_routing(Some(routing))
}
fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| {
        u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16).expect("hex digits")
    };
    digits.chunks(2).map(pair).collect()
}

fn plain(source: Address, destination: Address, hop_limit: u8, data: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    udp::Datagram { source_port: 5683, destination_port: 5683, payload: data }.emit(
        &source,
        &destination,
        &mut datagram,
    );
    around(source, destination, hop_limit, next_header::UDP, &datagram)
}
fn around(source: Address, destination: Address, limit: u8, next: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: rest.len() as u16,
        next_header: next,
        hop_limit: limit,
        source,
        destination,
    }
    .emit(&mut bytes);
    bytes.extend_from_slice(rest);
    bytes
}
/// `packet` with RPL's option and a route over `hops`, to its destination.
fn routed(packet: &[u8], option: Option<HopByHopOption>, hops: &[Address]) -> Vec<u8> {
    let header = Header::parse_packet(packet).expect("own packet");
    let mut all: Vec<_> = hops.iter().map(|hop| hop.0).collect();
    all.push(header.destination.0);
    let (first, route) = SourceRoute::over(&all).expect("one hop at least");
    let route = (!route.addresses.is_empty()).then_some(route);
    let behind = if route.is_some() { next_header::ROUTING } else { header.next_header };
    let mut rest = Vec::new();
    if let Some(option) = option {
        rest.extend_from_slice(&[behind, 0]);
        option.emit(&mut rest);
    }
    if let Some(route) = route {
        route.emit(header.next_header, &first, &mut rest);
    }
    rest.extend_from_slice(&packet[40..]);
    let next = if option.is_some() { next_header::HOP_BY_HOP } else { behind };
    around(header.source, Address(first), header.hop_limit, next, &rest)
}

fn compressed(
    packet: &[u8],
    from: &Address,
    to: &Address,
    contexts: &Contexts,
    extent: Extent,
) -> Vec<u8> {
    let mut frame = Vec::new();
    let to = Some(to.eui64());
    let covered = compress(packet, from.eui64(), to, contexts, extent, None, &mut frame)
        .expect("a whole packet");
    assert_eq!(covered % 8, 0);
    frame.extend_from_slice(&packet[covered..]);
    frame
}
fn grown(
    frame: &[u8],
    from: &Address,
    to: &Address,
    contexts: &Contexts,
) -> Result<Vec<u8>, DecodeError> {
    let mut packet = vec![0xaa];
    let result = decompress(frame, from.eui64(), Some(to.eui64()), contexts, None, &mut packet);
    if result.is_err() {
        assert_eq!(packet, [0xaa], "an error leaves the output as it was");
    }
    result.map(|()| packet.split_off(1))
}

fn read_path(mut headers: &[u8], reference: &Address) -> Vec<Address> {
    let mut all = Vec::new();
    while let [size, kind, rest @ ..] = headers {
        let mut reader = Reader::new("SRH-6LoRH", rest);
        all.push(Entries::read(&mut reader, *size, *kind).expect("whole"));
        headers = reader.rest();
    }
    path::expand(reference, &all, &Reader::new("SRH-6LoRH", &[])).expect("no group")
}

#[test]
fn the_route_of_the_rfc_is_consumed_hop_by_hop_as_its_figures_show() {
    // RFC 8138 A.3: what nodes A, B, C and D receive, figures 22 to 25. The octets were written down from the procedure of
    // s5.5, which OpenWSN follows as well, and wait for a comparison with the figures in print.
    let source = Address::from_parts(PREFIX, [0x11; 8]);
    let figures = [
        "80 03 aaaaaaaaaaaaaaaa  80 01 bbbb  81 02 cccccccc dddddddd",
        "80 03 aaaaaaaaaaaabbbb  81 02 cccccccc dddddddd",
        "80 03 aaaaaaaacccccccc  80 02 dddddddd",
        "80 03 aaaaaaaadddddddd",
    ];
    let mut hops = read_path(&octets(figures[0]), &source);
    let ends = hops.iter().map(|hop| hop.0[12..].to_vec());
    let expected = ["aaaaaaaa", "aaaabbbb", "cccccccc", "dddddddd"].map(octets);
    assert_eq!(ends.collect::<Vec<_>>(), expected);
    for figure in figures {
        let mut headers = Vec::new();
        path::emit(&source, &hops, &mut headers);
        assert_eq!(headers, octets(figure));
        assert_eq!(read_path(&headers, &source), hops);
        hops.remove(0);
    }
}

#[test]
fn entries_are_longer_than_needed_where_a_header_would_take_more() {
    let source = Address::from_parts(PREFIX, [0; 8]);
    let hop = |high: u8, low: u8| Address::from_parts(PREFIX, [0, 0, 0, 0, 0, 0, high, low]);
    let emitted = |path: &[Address]| {
        let mut headers = Vec::new();
        path::emit(&source, path, &mut headers);
        assert_eq!(read_path(&headers, &source), path);
        headers
    };
    assert_eq!(emitted(&[hop(0, 2), hop(0, 3), hop(0, 4)]), octets("82 00 02 03 04"));
    // Entries of one octet alone, of two, and one of one between two of two.
    assert_eq!(emitted(&[hop(1, 2), hop(1, 3)]), octets("81 01 0102 0103"));
    assert_eq!(emitted(&[hop(1, 2), hop(1, 3), hop(2, 1)]), octets("82 01 0102 0103 0201"));
    let long: Vec<Address> = (1..=6).map(|low| hop(1, low)).collect();
    assert_eq!(emitted(&long), octets("80 01 0101 84 00 02 03 04 05 06"));
    assert!(emitted(&[]).is_empty());
    // A header counts to 32.
    let many: Vec<Address> = (1..=40).map(|low| hop(0, low)).collect();
    assert_eq!(emitted(&many).len(), 2 + 32 + 2 + 8);
}

#[test]
fn the_rank_takes_one_octet_where_its_low_octet_is_zero_and_the_instance_none_where_it_is_zero() {
    let [root, last] = [0, 1].map(|id| node(Kind::Long, id));
    let network = contexts(Kind::Long);
    for (instance, sender_rank, header) in [
        (0, 0x0200, "93 05 02"),
        (0, 0x0003, "92 05 0003"),
        (0, 0x0203, "92 05 0203"),
        (0, 0, "93 05 00"),
        (30, 0x0200, "91 05 1e 02"),
        (30, 0x0203, "90 05 1e 0203"),
    ] {
        let option = HopByHopOption { instance, sender_rank, ..OPTION };
        let packet = routed(&plain(root, last, 64, b"x"), Some(option), &[]);
        let frame = compressed(&packet, &root, &last, &network, Extent::Routed);
        let header = octets(header);
        assert_eq!(frame[1..=header.len()], header);
        assert_eq!(grown(&frame, &root, &last, &network), Ok(packet));
    }
}

#[test]
fn a_packet_has_the_octets_of_the_example() {
    // Down over ..02 and ..03 to ..04, rank 3, instance 0; LOWPAN_IPHC has the last hop.
    let at = |low: u8| Address::from_parts(PREFIX, [0, 0, 0, 0xff, 0xfe, 0, 0, low]);
    let packet = plain(at(1), at(4), 64, b"on");
    let option = HopByHopOption { sender_rank: 3, ..OPTION };
    let packet = routed(&packet, Some(option), &[at(2), at(3)]);
    let network = contexts(Kind::Short);
    let frame = compressed(&packet, &at(1), &at(2), &network, Extent::Routed);
    // The source is that of the frame; the destination takes two octets.
    assert_eq!(frame[..18], octets("f1 81 00 02 03 92 05 0003 7e 76 0004 f0 1633 1633"));
    assert_eq!(Dispatch::of(frame[0]), Dispatch::Routed);
    let up = HopByHopOption { down: false, sender_rank: 3, ..OPTION };
    let up = routed(&plain(at(4), at(1), 64, b"on"), Some(up), &[]);
    let frame = compressed(&up, &at(4), &at(3), &network, Extent::Routed);
    assert_eq!(frame[..6], octets("f1 82 05 0003 7e"));
    let tunnelled = around(at(0), at(2), 64, next_header::IPV6, &packet);
    let root = Contexts::new()
        .with(0, PREFIX)
        .with_routing(Some(RoutingContext { root: at(0), skippable: true }));
    let frame = compressed(&tunnelled, &at(0), &at(2), &root, Extent::Routed);
    // The packet inside keeps its own headers with LOWPAN_NHC.
    assert_eq!(frame[..8], octets("f1 80 00 02 a1 06 40 7e"));
    assert_eq!(grown(&frame, &at(0), &at(2), &root), Ok(tunnelled));
}

/// Octets that RPL's headers take on the first link from the root to a node at the end of `hops`; third, with 6LoRH.
fn cost(kind: Kind, hops: u8, in_tunnel: bool) -> [usize; 3] {
    let (root, last) = (node(kind, 0), node(kind, hops));
    let route: Vec<Address> = (1..=hops).map(|id| node(kind, id)).collect();
    let network = contexts(kind);
    let (alone, packet) = if in_tunnel {
        let inner = plain(Address([0x20; 16]), last, 60, b"x");
        let outer = around(root, last, 64, next_header::IPV6, &inner);
        (inner, routed(&outer, Some(OPTION), &route[..route.len() - 1]))
    } else {
        let alone = plain(root, last, 64, b"x");
        (alone.clone(), routed(&alone, Some(OPTION), &route[..route.len() - 1]))
    };
    // What the packet takes without them, in a frame between its ends.
    let least = compressed(&alone, &root, &last, &network, Extent::Chain).len();
    let octets = |extent| compressed(&packet, &root, &route[0], &network, extent).len() - least;
    let frame = compressed(&packet, &root, &route[0], &network, Extent::Routed);
    assert_eq!(frame[0], 0xf1);
    assert_eq!(grown(&frame, &root, &route[0], &network), Ok(packet.clone()));
    [packet.len() - alone.len(), octets(Extent::Chain), octets(Extent::Routed)]
}

#[test]
fn sizes_are_those_that_the_formats_give() {
    // Dispatch 1, option 2 + 2, route 2 and its entries, the final destination in line, IP-in-IP 3.
    for (kind, entry) in [(Kind::Long, 8), (Kind::Short, 2)] {
        for hops in 1..=8u8 {
            let n = usize::from(hops);
            let [_, nhc, sixlorh] = cost(kind, hops, false);
            let route = if n > 1 { 2 + entry * (n - 1) + entry } else { 0 };
            assert_eq!(sixlorh, 5 + route, "{kind:?} {hops} hops");
            assert!(sixlorh < nhc, "{kind:?} {hops} hops: {sixlorh} and {nhc}");
            let [.., sixlorh] = cost(kind, hops, true);
            assert_eq!(sixlorh, 8 + 2 + entry * n, "{kind:?} {hops} hops, tunnel");
        }
    }
    let row = |kind, in_tunnel| [1, 2, 3, 5, 8].map(|hops| cost(kind, hops, in_tunnel));
    // Uncompressed, LOWPAN_NHC, 6LoRH.
    let long = [[8, 8, 5], [24, 24, 23], [32, 32, 31], [48, 48, 47], [72, 72, 71]];
    assert_eq!(row(Kind::Long, false), long);
    // On the first link LOWPAN_NHC leaves both addresses of the outer packet away, on later ones that of the root not.
    let long = [[48, 11, 18], [64, 35, 26], [72, 43, 34], [88, 59, 50], [112, 83, 74]];
    assert_eq!(row(Kind::Long, true), long);
    assert_eq!(row(Kind::Short, false).map(|[.., sixlorh]| sixlorh), [5, 11, 13, 17, 23]);
    assert_eq!(row(Kind::Short, true).map(|[.., sixlorh]| sixlorh), [12, 14, 16, 20, 26]);
}

#[test]
fn the_encapsulator_is_compressed_against_the_root() {
    let (root, here, far) = (node(Kind::Long, 0), node(Kind::Long, 7), Address([0x20; 16]));
    let network = contexts(Kind::Long);
    let option = HopByHopOption { down: false, ..OPTION };
    let inner = plain(here, far, 60, b"x");
    let packet = routed(&around(here, root, 64, next_header::IPV6, &inner), Some(option), &[]);
    let frame = compressed(&packet, &here, &root, &network, Extent::Routed);
    assert_eq!(frame[..8], octets("f1 82 05 0103 a9 06 40"));
    assert_eq!(frame[8..16], here.0[8..]);
    assert_eq!(grown(&frame, &here, &root, &network), Ok(packet.clone()));
    // Who does not know the root can neither write nor read it.
    let nobody = Contexts::new().with(0, PREFIX);
    assert!(grown(&frame, &here, &root, &nobody).is_err());
    let frame = compressed(&packet, &here, &root, &nobody, Extent::Routed);
    assert_eq!(frame[0], 0xf1, "the whole encapsulator, and the end as a route of one hop");
    assert_eq!(grown(&frame, &here, &root, &nobody), Ok(packet));
}

#[test]
fn what_6lorh_cannot_say_stays_with_rfc_6282() {
    let [root, first, last] = [0, 1, 2].map(|id| node(Kind::Long, id));
    let network = contexts(Kind::Long);
    let alone = plain(root, last, 64, b"x");
    let good = routed(&alone, Some(OPTION), &[first]);
    let class = |at: usize, octet: u8| {
        let inner = around(root, last, 64, next_header::IPV6, &alone);
        let mut packet = routed(&inner, Some(OPTION), &[first]);
        packet[at] = octet;
        packet
    };
    let mut reserved = good.clone();
    reserved[44] |= 1;
    let mut visited = good.clone();
    let mut onward = Address(visited[24..40].try_into().expect("sixteen octets")).0;
    let (mut route, ..) = SourceRoute::parse(&visited[48..], &onward).expect("own route");
    assert_eq!(route.advance(&mut onward), Advance::Onward);
    let mut header = Vec::new();
    route.emit(next_header::UDP, &onward, &mut header);
    visited[24..40].copy_from_slice(&onward);
    visited.splice(48..48 + header.len(), header);
    let other_type = HopByHopOption { skippable: false, ..OPTION };
    let cases = [
        ("no header of RPL", alone.clone()),
        ("reserved bits of the option", reserved),
        ("an entry that is consumed", visited.clone()),
        ("the other type of option", routed(&alone, Some(other_type), &[first])),
        ("a traffic class that the inner packet does not have", class(0, 0x61)),
        ("a flow label of a tunnel", class(3, 1)),
    ];
    for (what, packet) in cases {
        let frame = compressed(&packet, &root, &first, &network, Extent::Routed);
        assert_eq!(frame, compressed(&packet, &root, &first, &network, Extent::Chain), "{what}");
        assert_eq!(grown(&frame, &root, &first, &network), Ok(packet), "{what}");
    }
    let settled = without_visited(&visited).expect("an entry is consumed");
    assert_eq!(settled, routed(&alone, Some(OPTION), &[]));
    assert_eq!(without_visited(&settled), None);
    assert_eq!(without_visited(&good), None);
}

#[test]
fn entries_go_away_one_by_one_and_the_last_takes_the_header_with_it() {
    let hops: Vec<Address> = (1..=4).map(|id| node(Kind::Long, id)).collect();
    let alone = plain(node(Kind::Long, 0), node(Kind::Long, 5), 64, b"payload");
    for next in 1..=hops.len() {
        let mut packet = routed(&alone, Some(OPTION), &hops[next - 1..]);
        let mut here = Header::parse(&packet).expect("own packet").destination.0;
        let (mut route, _, octets) = SourceRoute::parse(&packet[48..], &here).expect("own route");
        assert_eq!(route.advance(&mut here), Advance::Onward);
        let mut header = Vec::new();
        route.emit(next_header::UDP, &here, &mut header);
        packet.splice(48..48 + octets, header);
        packet[24..40].copy_from_slice(&here);
        let settled = without_visited(&packet).expect("an entry is consumed");
        assert_eq!(settled, routed(&alone, Some(OPTION), &hops[next..]), "hop {next}");
        assert_eq!((packet.len() - settled.len()) % 8, 0);
        // The beginning of a packet is treated like the whole.
        let headers = 48 + octets;
        let beginning = without_visited(&packet[..headers]).expect("all headers");
        assert_eq!(beginning, settled[..beginning.len()]);
        assert!((0..headers).all(|end| without_visited(&packet[..end]).is_none()));
    }
}

#[test]
fn unknown_elective_headers_are_skipped_and_unknown_critical_ones_end_the_packet() {
    let [root, first, last] = [0, 1, 2].map(|id| node(Kind::Long, id));
    let network = contexts(Kind::Long);
    let packet = routed(&plain(root, last, 64, b"x"), Some(OPTION), &[first]);
    let frame = compressed(&packet, &root, &first, &network, Extent::Routed);
    let with = |header: &[u8]| {
        let mut longer = frame.clone();
        longer.splice(1..1, header.iter().copied());
        grown(&longer, &root, &first, &network)
    };
    for (header, problem) in [
        (&[0xa0, 7][..], None),
        (&[0xa3, 99, 1, 2, 3], None),
        (&[0xa1, 4, 0, 0xa0, 5], None),
        (&[0x80, 6], Some(Problem::Unsupported)),
        (&[0x83, 99], Some(Problem::Unsupported)),
        (&[0x83, 5, 1], Some(Problem::Unsupported)),
        (&[0xbf, 99], Some(Problem::Truncated)),
        (&[0xa0, 6], Some(Problem::Length)),
        (&[0xb2, 6], Some(Problem::Length)),
        (&[0x80, 4, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], Some(Problem::Value)),
    ] {
        assert_eq!(with(header).map_err(|error| error.problem).err(), problem, "{header:x?}");
        if problem.is_none() {
            assert_eq!(with(header), Ok(packet.clone()), "{header:x?}");
        }
    }
}

#[test]
fn every_prefix_of_a_frame_is_an_error_or_another_packet() {
    let [root, first, last] = [0, 1, 2].map(|id| node(Kind::Long, id));
    let network = contexts(Kind::Long);
    for inner in [plain(root, last, 64, b""), {
        let inner = plain(last, last, 9, b"");
        around(root, last, 64, next_header::IPV6, &inner)
    }] {
        let packet = routed(&inner, Some(OPTION), &[first]);
        let frame = compressed(&packet, &root, &first, &network, Extent::Routed);
        for end in 0..frame.len() {
            assert!(grown(&frame[..end], &root, &first, &network).is_err(), "{end} octets");
        }
    }
}

#[test]
fn the_beginning_of_a_packet_is_compressed_like_the_whole() {
    let [root, first, last] = [0, 1, 2].map(|id| node(Kind::Long, id));
    let network = contexts(Kind::Long);
    let packet = routed(&plain(root, last, 64, &[7; 200]), Some(OPTION), &[first]);
    let covered = 40 + 8 + 16 + 8;
    for end in (covered..packet.len()).step_by(8) {
        let (mut headers, size) = (Vec::new(), Some(packet.len()));
        let (from, to) = (root.eui64(), Some(first.eui64()));
        let beginning = &packet[..end];
        let said = compress(beginning, from, to, &network, Extent::Routed, size, &mut headers);
        assert_eq!(said, Ok(covered));
        assert_eq!(headers[0], 0xf1);
        headers.extend_from_slice(&beginning[covered..]);
        let mut back = Vec::new();
        decompress(&headers, from, to, &network, size, &mut back).expect("own frame");
        assert_eq!(back, beginning);
    }
}

fn any_node() -> impl Strategy<Value = Address> {
    let kind = prop_oneof![Just(Kind::Long), Just(Kind::Short)];
    let near = (kind, 0..9u8).prop_map(|(kind, id)| node(kind, id));
    let any = any::<[u8; 16]>().prop_map(|mut octets| {
        octets[0] &= 0x7f;
        Address(octets)
    });
    prop_oneof![4 => near, 1 => any]
}
fn any_option() -> impl Strategy<Value = Option<HopByHopOption>> {
    let flags = any::<[bool; 3]>();
    let instance = prop_oneof![Just(0), any::<u8>()];
    let rank = prop_oneof![0..256u16, (0..256u16).prop_map(|rank| rank << 8), any::<u16>()];
    proptest::option::of((flags, instance, rank).prop_map(|(flags, instance, sender_rank)| {
        let [down, rank_error, forwarding_error] = flags;
        HopByHopOption {
            skippable: true,
            down,
            rank_error,
            forwarding_error,
            instance,
            sender_rank,
        }
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_compressed_comes_back(
        [source, last, inner_source, from, to] in proptest::array::uniform5(any_node()),
        hops in proptest::collection::vec(any_node(), 0..40),
        option in any_option(),
        tunnelled in any::<bool>(),
        data in proptest::collection::vec(any::<u8>(), 0..40),
        knows_root in any::<bool>(),
    ) {
        let network = if knows_root {
            contexts(Kind::Long)
        } else {
            Contexts::new().with(0, PREFIX)
        };
        let inner = plain(if tunnelled { inner_source } else { source }, last, 60, &data);
        let packet = if tunnelled {
            routed(&around(source, last, 64, next_header::IPV6, &inner), option, &hops)
        } else {
            routed(&inner, option, &hops)
        };
        let says = option.is_some() || tunnelled || !hops.is_empty();
        let frame = compressed(&packet, &from, &to, &network, Extent::Routed);
        prop_assert_eq!(frame[0] == 0xf1, says);
        prop_assert_eq!(grown(&frame, &from, &to, &network), Ok(packet));
    }

    #[test]
    fn no_bytes_make_the_decompressor_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..80),
        headers in proptest::collection::vec((0x80..0xc0u8, 0..8u8), 0..4),
        size in proptest::option::of(0..400usize),
    ) {
        let mut frame = vec![0xf1];
        for (first, kind) in headers {
            frame.extend_from_slice(&[first, kind]);
            let some = bytes.len().min(usize::from(first & 0x1f));
            frame.extend(bytes.drain(..some));
        }
        frame.append(&mut bytes);
        let network = contexts(Kind::Short);
        let mut packet = Vec::new();
        let to = Some(Eui64([1; 8]));
        let _ = decompress(&frame, Eui64([2; 8]), to, &network, size, &mut packet);
        let _ = without_visited(&frame);
    }
}
