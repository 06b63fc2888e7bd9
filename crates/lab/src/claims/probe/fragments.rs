//! Into how many fragments a node cuts packets, and what recoverable ones look like on the air.

use lowmesh_congestion::WindowSpec;
use lowmesh_ipv6::fragment::fragments;
use lowmesh_ipv6::params::{COMPRESSION_GAIN, COMPRESSION_GAIN_FRAGMENT};
use lowmesh_lowpan::{Adaptation, Config, FragmentMode, Input, Output, Recovery};
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header, next_header};
use lowmesh_wire::lowpan::fragment::FIRST_OCTETS;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, RFRAG_OCTETS, Rfrag, RfragAck};
use lowmesh_wire::lowpan::{Contexts, Extent, compress};
use lowmesh_wire::udp::Datagram;

use super::{Values, values};

const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
/// What a frame with long addresses leaves for 6LoWPAN in the publication's network, octets.
const FRAME_PAYLOAD: usize = 102;
/// Payloads of the publication, octets.
const PAYLOAD_STEP: usize = 16;
const PAYLOAD_MOST: usize = 1024;
/// The nodes of a path: where packets come from, two between, where they go.
const SOURCE: NodeId = NodeId(1);
const NEXT: NodeId = NodeId(2);
const AFTER: NodeId = NodeId(3);
const LAST: NodeId = NodeId(5);
/// Octets that IPv6 and UDP headers have before compression.
const HEADERS: usize = 48;

/// The number of fragments by payload in the fragmentation mode called `name`.
pub fn probe(name: &str) -> Result<Values, String> {
    let mode = FragmentMode::ALL.into_iter().find(|mode| mode.name() == name);
    let mode = mode.ok_or_else(|| format!("there is no fragmentation mode `{name}`"))?;
    let mut found = Values::new();
    let (mut before, mut surplus) = (1, 0);
    for payload in (PAYLOAD_STEP..=PAYLOAD_MOST).step_by(PAYLOAD_STEP) {
        let count = count(mode, payload)?;
        if count > before {
            found.insert(format!("limit_{before}"), payload as f64);
        }
        before = count;
        surplus = surplus.max(count.saturating_sub(frames(FragmentMode::HopWise, payload)?.len()));
    }
    found.insert("most".to_owned(), before as f64);
    found.insert("beyond_hop_wise".to_owned(), surplus as f64);
    match mode {
        FragmentMode::Forwarded => {
            let first = frames(mode, PAYLOAD_MOST)?.remove(0);
            // Only compressed headers: fewer octets than they stand for.
            let headers_alone = first.len() - FIRST_OCTETS < HEADERS;
            found.insert("headers_alone".to_owned(), f64::from(u8::from(headers_alone)));
        }
        FragmentMode::Recovered => found.extend(recoverable(&frames(mode, PAYLOAD_MOST)?)?),
        FragmentMode::EndToEnd => {
            found.insert("gain".to_owned(), gain(&packet(PAYLOAD_STEP))? as f64);
        }
        FragmentMode::HopWise => {}
    }
    Ok(found)
}

/// Fragments of a payload at the source.
fn count(mode: FragmentMode, payload: usize) -> Result<usize, String> {
    match mode {
        FragmentMode::EndToEnd => cut_by_ipv6(&packet(payload)),
        FragmentMode::HopWise | FragmentMode::Forwarded | FragmentMode::Recovered => {
            Ok(frames(mode, payload)?.len())
        }
    }
}

/// Packets in which one goes end to end, each of which fits into a frame.
fn cut_by_ipv6(packet: &[u8]) -> Result<usize, String> {
    if packet.len() <= FRAME_PAYLOAD + COMPRESSION_GAIN {
        return Ok(1);
    }
    let parts = fragments(packet, FRAME_PAYLOAD + COMPRESSION_GAIN_FRAGMENT, 1);
    Ok(parts.map_err(|reason| reason.name().to_owned())?.count())
}

/// Octets that compression leaves away between two nodes that are neither source nor destination.
fn gain(packet: &[u8]) -> Result<usize, String> {
    let mut packet = packet.to_vec();
    packet[HOP_LIMIT_OFFSET] -= 1;
    let (from, to) = (NEXT.eui64(), AFTER.eui64());
    let contexts = Contexts::new().with(0, PREFIX);
    let mut headers = Vec::new();
    let covered = compress(&packet, from, Some(to), &contexts, Extent::Chain, None, &mut headers);
    Ok(covered.map_err(|error| error.to_string())? - headers.len())
}

/// What the source sends to the next node for the last.
fn frames(mode: FragmentMode, payload: usize) -> Result<Vec<Vec<u8>>, String> {
    // The whole bitmap as window and no gap, so that all fragments leave at once.
    let recovery = Recovery {
        window: WindowSpec::fixed(32),
        inter_frame_gap: Duration::ZERO,
        ..Recovery::default()
    };
    let config = Config { mode, frame_payload: FRAME_PAYLOAD, recovery, ..Config::default() };
    let contexts = Contexts::new().with(0, PREFIX);
    let rng = Rng::stream(Seed(1), SOURCE, Purpose::Lowpan);
    let mut layer = Adaptation::new(SOURCE.eui64(), contexts, config, rng);
    let bytes = packet(payload);
    let (destination, handle) = (Some(NEXT.eui64()), Handle(1));
    let input = Input::Packet { bytes, destination, handle };
    layer.handle(Instant::ZERO, input).map_err(|error| error.to_string())?;
    let mut frames = Vec::new();
    while let Some(output) = layer.poll_output() {
        if let Output::Frame { payload, handle, .. } = output {
            frames.push(payload);
            let done = Input::FrameDone { handle, result: Ok(()) };
            layer.handle(Instant::ZERO, done).map_err(|error| error.to_string())?;
        }
    }
    if frames.is_empty() { Err(format!("{payload} octets do not leave")) } else { Ok(frames) }
}

/// A UDP packet between ports that do not compress.
fn packet(payload: usize) -> Vec<u8> {
    let (source, destination) =
        (Address::global(PREFIX, SOURCE.eui64()), Address::global(PREFIX, LAST.eui64()));
    let mut bytes = Vec::with_capacity(HEADERS + payload);
    Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 8 + payload as u16,
        next_header: next_header::UDP,
        hop_limit: 64,
        source,
        destination,
    }
    .emit(&mut bytes);
    let data = vec![0; payload];
    let datagram = Datagram { source_port: 6383, destination_port: 6383, payload: &data };
    datagram.emit(&source, &destination, &mut bytes);
    bytes
}

/// The fields of recoverable fragments and their acknowledgement.
fn recoverable(frames: &[Vec<u8>]) -> Result<Values, String> {
    let headers: Result<Vec<Rfrag>, _> =
        frames.iter().map(|frame| Rfrag::parse(frame).map(|(header, _)| header)).collect();
    let headers = headers.map_err(|error| error.to_string())?;
    let octets: usize = frames.iter().map(|frame| frame.len() - RFRAG_OCTETS).sum();
    let size_in_first = headers[0].part == Part::First { datagram_size: octets as u16 };
    let asked = headers.iter().filter(|header| header.ack_request).count();
    let asks_last = asked == 1 && headers.last().is_some_and(|header| header.ack_request);
    // How many values of a field come back as they went out.
    let survive = |change: &dyn Fn(u16) -> Rfrag| {
        let comes_back = |value: &u16| {
            let mut bytes = Vec::new();
            let header = change(*value);
            header.emit(&mut bytes);
            bytes.resize(bytes.len() + usize::from(header.fragment_size), 0);
            Rfrag::parse(&bytes).is_ok_and(|(parsed, _)| parsed == header)
        };
        (0..=1024).filter(comes_back).count() as f64
    };
    let next =
        Rfrag { part: Part::Next { sequence: 1, offset: 9 }, fragment_size: 1, ..headers[0] };
    let sequence = |value: u16| Rfrag {
        part: Part::Next { sequence: value.min(255) as u8, offset: 9 },
        ..next
    };
    let mut ack = Vec::new();
    let bitmap = Bitmap(0x8000_0001);
    RfragAck { congestion: true, datagram_tag: 7, bitmap }.emit(&mut ack);
    let echo = RfragAck::parse(&ack).is_ok_and(|ack| ack.congestion && ack.bitmap == bitmap);
    Ok(values([
        ("header_octets", RFRAG_OCTETS as f64),
        ("ack_octets", ack.len() as f64),
        ("size_in_first_offset", f64::from(u8::from(size_in_first))),
        ("asks_on_last", f64::from(u8::from(asks_last))),
        // Sequence 0 is the first fragment's.
        ("sequences", survive(&sequence) + 1.0),
        ("sizes", survive(&|value| Rfrag { fragment_size: value, ..next })),
        ("ack_echoes_e", f64::from(u8::from(echo))),
        ("bitmap_bits", f64::from(Bitmap::FULL.count())),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_cut_at_payloads_of_their_own() {
        let limit = |mode| probe(mode).expect("it is known")["limit_1"];
        assert!(limit("ff") < limit("sfr") && limit("sfr") < limit("hwr"));
        assert!(probe("pigeon").is_err());
    }

    #[test]
    fn end_to_end_cuts_into_more_than_hop_wise() {
        let most = |mode| probe(mode).expect("it is known")["most"];
        assert!(most("e2e") > most("hwr"));
    }
}
