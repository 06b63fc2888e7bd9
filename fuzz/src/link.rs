//! From the IEEE 802.15.4 frame up to UDP and RPL. The corpora are frames of a simulated mesh, and what the
//! decoders themselves find in them.

use lowmesh_units::{Eui64, NodeId};
use lowmesh_wire::checksum::pseudo_header_checksum;
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ieee802154::Frame;
use lowmesh_wire::ipv6::{Address, Extensions, Header, next_header, upper_layer};
use lowmesh_wire::lowpan::fragment::FragmentHeader;
use lowmesh_wire::lowpan::rfrag::{Rfrag, RfragAck};
use lowmesh_wire::lowpan::{Contexts, Extent, compress, decompress};
use lowmesh_wire::mpl;
use lowmesh_wire::rpl::{HopByHopOption, Message, SourceRoute};
use lowmesh_wire::{sixp, tcp, trickle_multicast, udp};

use crate::target::{Target, unhex};

const FRAMES: &str = include_str!("../corpus/frames.txt");
const VECTORS: &str = include_str!("../../tests/vectors/lowpan/iphc.txt");
const FRAGMENTS: &str = include_str!("../../tests/vectors/lowpan/fragments.txt");

/// The prefix of the simulated mesh.
const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];

pub fn targets() -> Vec<Target> {
    let upper = |wanted: u8| packets().filter_map(move |packet| upper_layer_of(&packet, wanted));
    let icmpv6: Vec<_> = upper(next_header::ICMPV6).collect();
    vec![
        Target { name: "ieee802154", corpus: frames().collect(), accepts: frame },
        Target { name: "sixp", corpus: sixp_messages(), accepts: sixp_message },
        Target { name: "lowpan", corpus: payloads(), accepts: lowpan },
        Target { name: "lowpan_fragment", corpus: fragments(), accepts: fragment },
        Target { name: "lowpan_rfrag", corpus: recoverable(), accepts: rfrag },
        Target { name: "ipv6", corpus: packets().collect(), accepts: packet },
        Target { name: "udp", corpus: upper(next_header::UDP).collect(), accepts: datagram },
        Target { name: "tcp", corpus: segments(), accepts: segment },
        Target { name: "icmpv6", corpus: icmpv6.clone(), accepts: icmpv6_message },
        Target { name: "rpl", corpus: rpl_messages(&icmpv6), accepts: rpl_message },
        Target { name: "rpl_source_route", corpus: source_routes(), accepts: source_route },
        Target { name: "rpl_option", corpus: vec![unhex("630400000100")], accepts: rpl_option },
        Target { name: "mpl_option", corpus: vec![unhex("6d0440020018")], accepts: mpl_option },
        Target { name: "mpl_control", corpus: mpl_controls(), accepts: mpl_control },
        Target {
            name: "trickle_multicast",
            corpus: vec![unhex("c002abcd00017fff"), unhex("0c028102")],
            accepts: trickle_multicast_octets,
        },
    ]
}

fn hexadecimal_lines(file: &'static str) -> impl Iterator<Item = Vec<u8>> {
    let whole = |line: &&str| !line.is_empty() && line.bytes().all(|one| one.is_ascii_hexdigit());
    file.lines().filter(whole).map(unhex)
}

fn frames() -> impl Iterator<Item = Vec<u8>> {
    hexadecimal_lines(FRAMES)
}

fn frame(octets: &[u8]) -> bool {
    let Ok(frame) = Frame::parse(octets) else { return false };
    let elements = frame.header_ies.iter().chain(frame.payload_ies.iter());
    let size: usize = elements.map(|(_, content)| content.len()).sum();
    assert!(size + frame.payload.len() <= octets.len());
    let _ = frame.header_ies.time_correction();
    let _ = frame.payload_ies.tsch();
    let _ = frame.payload_ies.sixtop();
    true
}

fn sixp_messages() -> Vec<Vec<u8>> {
    let content =
        |octets: Vec<u8>| Frame::parse(&octets).ok()?.payload_ies.sixtop().map(<[u8]>::to_vec);
    frames().filter_map(content).collect()
}

fn sixp_message(octets: &[u8]) -> bool {
    let Ok(message) = sixp::Message::parse(octets) else { return false };
    let mut again = Vec::new();
    message.emit(&mut again);
    assert_eq!(sixp::Message::parse(&again), Ok(message));
    true
}

fn contexts() -> Contexts {
    Contexts::new().with(0, PREFIX)
}

fn ends() -> (Eui64, Option<Eui64>) {
    (NodeId(1).eui64(), Some(NodeId(2).eui64()))
}

/// What frames carry, and the vectors of another implementation.
fn payloads() -> Vec<Vec<u8>> {
    let carried = |octets: Vec<u8>| Some(Frame::parse(&octets).ok()?.payload.to_vec());
    let known = |payload: &Vec<u8>| lowpan(payload);
    frames().filter_map(carried).chain(hexadecimal_lines(VECTORS)).filter(known).collect()
}

fn lowpan(octets: &[u8]) -> bool {
    let (source, destination) = ends();
    let mut out = Vec::new();
    for size in [None, Some(octets.len() + 40), Some(1280)] {
        let before = out.len();
        let read = decompress(octets, source, destination, &contexts(), size, &mut out);
        assert!(read.is_ok() || out.len() == before);
    }
    out.clear();
    if decompress(octets, source, destination, &contexts(), None, &mut out).is_err() {
        return false;
    }
    for extent in [Extent::Chain, Extent::Ipv6Only] {
        let (mut small, mut again) = (Vec::new(), Vec::new());
        let covered = compress(&out, source, destination, &contexts(), extent, None, &mut small)
            .expect("a packet that was decompressed is one");
        small.extend_from_slice(&out[covered..]);
        decompress(&small, source, destination, &contexts(), None, &mut again)
            .expect("what was compressed here");
        assert_eq!(again, out);
    }
    true
}

fn fragments() -> Vec<Vec<u8>> {
    hexadecimal_lines(FRAGMENTS).filter(|line| fragment(line)).collect()
}

fn fragment(octets: &[u8]) -> bool {
    let Ok(header) = FragmentHeader::parse(octets) else { return false };
    let mut again = Vec::new();
    header.emit(&mut again);
    assert_eq!(FragmentHeader::parse(&again), Ok(header));
    true
}

/// Seen on the wire of RIOT: an acknowledgement of all but the third, a first and a later fragment.
fn recoverable() -> Vec<Vec<u8>> {
    ["ea55df000000", "e8550004012041424344", "e8558804000401020304"].map(unhex).to_vec()
}

fn rfrag(octets: &[u8]) -> bool {
    let mut again = Vec::new();
    if let Ok((header, data)) = Rfrag::parse(octets) {
        header.emit(&mut again);
        again.extend_from_slice(data);
        assert_eq!(Rfrag::parse(&again), Ok((header, data)));
        return true;
    }
    let Ok(ack) = RfragAck::parse(octets) else { return false };
    ack.emit(&mut again);
    assert_eq!(RfragAck::parse(&again), Ok(ack));
    true
}

/// IPv6 packets of the mesh, and of the vectors.
fn packets() -> impl Iterator<Item = Vec<u8>> {
    let (source, destination) = ends();
    payloads().into_iter().filter_map(move |payload| {
        let mut packet = Vec::new();
        decompress(&payload, source, destination, &contexts(), None, &mut packet).ok()?;
        Some(packet)
    })
}

fn packet(octets: &[u8]) -> bool {
    let Ok(extensions) = Extensions::new(octets) else { return false };
    for extension in extensions.flatten() {
        extension.options().for_each(drop);
    }
    if let Ok(upper) = upper_layer(octets) {
        assert!(upper.offset <= octets.len());
    }
    Header::parse_packet(octets).is_ok()
}

fn upper_layer_of(packet: &[u8], wanted: u8) -> Option<Vec<u8>> {
    let upper = upper_layer(packet).ok()?;
    (upper.next_header == wanted).then(|| packet[upper.offset..].to_vec())
}

const FROM: Address = Address::ALL_NODES;
const TO: Address = Address::ALL_RPL_NODES;

/// Puts the checksum right, which no mutation would find.
fn sealed(octets: &[u8], next_header: u8, checksum_at: usize) -> Option<Vec<u8>> {
    let mut sealed = octets.to_vec();
    sealed.get_mut(checksum_at..checksum_at + 2)?.fill(0);
    let sum = pseudo_header_checksum(&FROM.0, &TO.0, next_header, &sealed);
    let sum = if sum == 0 && next_header == next_header::UDP { u16::MAX } else { sum };
    sealed[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(sealed)
}

fn datagram(octets: &[u8]) -> bool {
    let Some(octets) = sealed(octets, next_header::UDP, udp::CHECKSUM_OFFSET) else { return false };
    let Ok(datagram) = udp::Datagram::parse(&FROM, &TO, &octets) else { return false };
    let mut again = Vec::new();
    datagram.emit(&FROM, &TO, &mut again);
    assert_eq!(again, octets);
    true
}

/// A SYN and an acknowledgment with two blocks of SACK, as a Linux kernel sends them.
fn segments() -> Vec<Vec<u8>> {
    let syn = "a2261633ecd2a7a200000000a002ffffac370000020401000402080a3d8c020a000000000103030a";
    let sack = "a2261633ecd2b7435e051519d0100040ea9900000101080a3d8c0e2f48aae489\
                010105125e0519a15e051a895e0516015e0516e9";
    vec![unhex(syn), unhex(sack)]
}

fn segment(octets: &[u8]) -> bool {
    let ends = tcp::Ends::V6(FROM, TO);
    let Some(octets) = sealed(octets, next_header::TCP, tcp::CHECKSUM_OFFSET) else { return false };
    let Ok(segment) = tcp::Segment::parse(&ends, &octets) else { return false };
    let mut again = Vec::new();
    segment.emit(&ends, &mut again);
    let again = tcp::Segment::parse(&ends, &again).expect("our own octets");
    assert_eq!((again.header.sequence, again.payload), (segment.header.sequence, segment.payload));
    true
}

fn icmpv6_message(octets: &[u8]) -> bool {
    let Some(octets) = sealed(octets, next_header::ICMPV6, 2) else { return false };
    let Ok(message) = Icmpv6::parse(&octets, &FROM.0, &TO.0) else { return false };
    let mut again = Vec::new();
    message.emit(&FROM.0, &TO.0, &mut again);
    assert_eq!(Icmpv6::parse(&again, &FROM.0, &TO.0), Ok(message));
    true
}

/// The code, then what follows the checksum.
fn rpl_messages(icmpv6: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const TYPE: u8 = 155;
    let rpl = icmpv6.iter().filter(|message| message[0] == TYPE);
    rpl.map(|message| [&message[1..2], &message[4..]].concat()).collect()
}

fn rpl_message(octets: &[u8]) -> bool {
    let Some((code, body)) = octets.split_first() else { return false };
    let Ok(message) = Message::parse(*code, body) else { return false };
    let mut again = Vec::new();
    message.emit(&mut again);
    assert_eq!(Message::parse(*code, &again), Ok(message));
    true
}

fn source_routes() -> Vec<Vec<u8>> {
    let hop = |last: u8| Address::from_parts(PREFIX, [0, 0, 0, 0, 0x4d, 0x4c, 0, last]).0;
    let routes = (2..6).filter_map(|hops| {
        let hops: Vec<[u8; 16]> = (1..=hops).map(hop).collect();
        let (destination, route) = SourceRoute::over(&hops)?;
        let mut bytes = Vec::new();
        route.emit(next_header::UDP, &destination, &mut bytes);
        Some(bytes)
    });
    routes.collect()
}

fn source_route(octets: &[u8]) -> bool {
    let mut destination = Address::from_parts(PREFIX, [0, 0, 0, 0, 0x4d, 0x4c, 0, 1]).0;
    let Ok((mut route, next, len)) = SourceRoute::parse(octets, &destination) else { return false };
    assert!(len <= octets.len());
    let mut again = Vec::new();
    route.emit(next, &destination, &mut again);
    let reread = SourceRoute::parse(&again, &destination);
    assert_eq!(reread.map(|(route, ..)| route), Ok(route.clone()));
    route.advance(&mut destination);
    true
}

fn rpl_option(octets: &[u8]) -> bool {
    let Ok(option) = HopByHopOption::parse(octets) else { return false };
    let mut again = Vec::new();
    option.emit(&mut again);
    assert_eq!(HopByHopOption::parse(&again), Ok(option));
    true
}

fn mpl_option(octets: &[u8]) -> bool {
    let Ok(option) = mpl::DataOption::parse(octets) else { return false };
    let mut again = Vec::new();
    option.emit(&mut again);
    assert_eq!(mpl::DataOption::parse(&again), Ok(option));
    true
}

fn mpl_controls() -> Vec<Vec<u8>> {
    let mut info = mpl::SeedInfo::new(mpl::SeedId::Short(0x18), 250);
    info.insert(3);
    let mut bytes = Vec::new();
    let source = mpl::SeedInfo::new(mpl::SeedId::Source, 9);
    mpl::Control { seeds: vec![info, source] }.emit(&mut bytes);
    vec![bytes]
}

fn mpl_control(octets: &[u8]) -> bool {
    let Ok(control) = mpl::Control::parse(octets) else { return false };
    let mut again = Vec::new();
    control.emit(&mut again);
    assert_eq!(mpl::Control::parse(&again), Ok(control));
    true
}

fn trickle_multicast_octets(octets: &[u8]) -> bool {
    if let Ok(option) = trickle_multicast::DataOption::parse(octets) {
        let mut again = Vec::new();
        option.emit(&mut again);
        assert_eq!(trickle_multicast::DataOption::parse(&again), Ok(option));
        return true;
    }
    let Ok(lists) = trickle_multicast::parse_lists(octets) else { return false };
    let mut again = Vec::new();
    trickle_multicast::emit_lists(&lists, &mut again);
    assert_eq!(trickle_multicast::parse_lists(&again), Ok(lists));
    true
}
