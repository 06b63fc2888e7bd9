//! The frames that a MAC makes: data, 6P, keepalives, beacons, acknowledgements.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Eui64, PanId, ShortAddr};
use lowmesh_wire::ie::{self, TimeCorrection, TschBeacon};
use lowmesh_wire::ieee802154::{Address, FCS_OCTETS, FrameType, Header, PHY_PACKET_MAX, Version};

use crate::params::{OCTET, PHY_HEADER_OCTETS};

/// Octets of the header of a data frame with extended addresses: control 2, sequence 1, PAN 2, addresses 16.
pub const DATA_HEADER_OCTETS: usize = 21;
/// Octets that a data frame between extended addresses can carry.
pub const PAYLOAD_OCTETS_MAX: usize = PHY_PACKET_MAX - FCS_OCTETS - DATA_HEADER_OCTETS;
/// Octets by which a short address is shorter than an extended one.
pub const SHORT_GAIN_OCTETS: usize = 6;
/// Octets that a data frame between short addresses can carry.
pub const SHORT_PAYLOAD_OCTETS_MAX: usize = PAYLOAD_OCTETS_MAX + 2 * SHORT_GAIN_OCTETS;

/// Octets of an immediate acknowledgement without FCS.
pub const IMMEDIATE_ACK_OCTETS: usize = 3;

/// Octets that a data frame from `source` to `destination` can carry. What goes to all has no more room than what goes to
/// a node of the same kind as its source, so that it fits between any two of them.
pub fn payload_octets_max(source: Eui64, destination: Option<Eui64>) -> usize {
    let gain = |node| if ShortAddr::from_eui64(node).is_some() { SHORT_GAIN_OCTETS } else { 0 };
    PAYLOAD_OCTETS_MAX + gain(source) + gain(destination.unwrap_or(source))
}

/// Time on the air of a MAC frame of `octets` (FCS not counted in), with its PHY header.
pub const fn airtime(octets: usize) -> Duration {
    let octets = octets as u64 + FCS_OCTETS as u64 + PHY_HEADER_OCTETS;
    Duration::from_nanos(OCTET.as_nanos() * octets)
}

/// What a data frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A 6LoWPAN frame, or nothing (a keepalive).
    Payload(&'a [u8]),
    /// A 6LoWPAN frame that is out of date as soon as the next one of its kind is sent, such as a DIO or DAO.
    Advertisement(&'a [u8]),
    /// A 6P message in a 6top IE.
    Sixtop(&'a [u8]),
}

/// A data frame of the 2015 edition from `source` to `destination`, or to everyone.
pub fn data(
    pan: PanId,
    source: Eui64,
    destination: Option<Eui64>,
    sequence: u8,
    content: Content<'_>,
) -> Vec<u8> {
    let sixtop = matches!(content, Content::Sixtop(_));
    let header = Header {
        ie_present: sixtop,
        ack_request: destination.is_some(),
        sequence: Some(sequence),
        ..header(FrameType::Data, pan, Some(source), destination)
    };
    let mut octets = Vec::with_capacity(PHY_PACKET_MAX);
    header.emit(&mut octets);
    match content {
        Content::Payload(payload) | Content::Advertisement(payload) => {
            octets.extend_from_slice(payload);
        }
        Content::Sixtop(message) => ie::emit_sixtop(message, &mut octets),
    }
    octets
}

/// A data frame of the 2006 edition, which every stack reads: the same fields, no information elements.
pub fn data_2006(
    pan: PanId,
    source: Eui64,
    destination: Option<Eui64>,
    sequence: u8,
    ack_request: bool,
    payload: &[u8],
) -> Vec<u8> {
    let header = Header {
        version: Version::V2006,
        // Until 2015 the bit always meant that the source's PAN is that of the destination.
        pan_id_compression: true,
        ack_request,
        sequence: Some(sequence),
        ..header(FrameType::Data, pan, Some(source), destination)
    };
    let mut octets = Vec::with_capacity(DATA_HEADER_OCTETS + payload.len());
    header.emit(&mut octets);
    octets.extend_from_slice(payload);
    octets
}

/// An immediate acknowledgement (s7.3.3), as in editions before 2015: it names no node.
pub const fn immediate_ack(sequence: u8) -> [u8; IMMEDIATE_ACK_OCTETS] {
    [0x02, 0x00, sequence]
}

/// True for the octets of an acknowledgement (s7.2.2.2: the lowest three bits are the type, 2).
pub fn is_ack(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet & 7 == 2)
}

/// An enhanced beacon.
pub fn beacon(pan: PanId, source: Eui64, sequence: u8, tsch: &TschBeacon) -> Vec<u8> {
    let header = Header {
        ie_present: true,
        sequence: Some(sequence),
        ..header(FrameType::Beacon, pan, Some(source), None)
    };
    let mut octets = Vec::with_capacity(64);
    header.emit(&mut octets);
    ie::emit_tsch(tsch, &mut octets);
    octets
}

/// An enhanced acknowledgement with a time correction: the sender is to send so many microseconds later. It has the sequence
/// number of the frame, if that has one. With `nack` it says that the frame came and is not accepted.
pub fn ack(destination: Eui64, sequence: Option<u8>, micros: i32, nack: bool) -> Vec<u8> {
    let mut octets = Vec::with_capacity(16);
    ack_header(destination, sequence, true).emit(&mut octets);
    let micros = micros.clamp(-2048, 2047) as i16;
    ie::emit_time_correction(TimeCorrection { micros, nack }, &mut octets);
    octets
}

/// An enhanced acknowledgement without information elements, as outside of TSCH.
pub fn plain_ack(destination: Eui64, sequence: Option<u8>) -> Vec<u8> {
    let mut octets = Vec::with_capacity(12);
    ack_header(destination, sequence, false).emit(&mut octets);
    octets
}

fn ack_header(destination: Eui64, sequence: Option<u8>, ie_present: bool) -> Header {
    Header {
        frame_type: FrameType::Ack,
        version: Version::V2015,
        frame_pending: false,
        ack_request: false,
        // With only a destination the bit says that no PAN is in the frame (Table 7-2).
        pan_id_compression: true,
        ie_present,
        sequence,
        destination_pan: None,
        destination: Some(address_of(destination)),
        source_pan: None,
        source: None,
    }
}

fn header(
    frame_type: FrameType,
    pan: PanId,
    source: Option<Eui64>,
    destination: Option<Eui64>,
) -> Header {
    let source = source.map(address_of);
    let destination = destination.map_or(Address::BROADCAST, address_of);
    let is_extended = |address| matches!(address, Address::Extended(_));
    Header {
        frame_type,
        version: Version::V2015,
        frame_pending: false,
        ack_request: false,
        // Table 7-2: between extended addresses the bit unset keeps the destination's PAN alone, and else the bit set does.
        pan_id_compression: !(is_extended(destination) && source.is_some_and(is_extended)),
        ie_present: false,
        sequence: None,
        destination_pan: Some(pan),
        destination: Some(destination),
        source_pan: None,
        source,
    }
}

/// The address of a node on the air: short if its name is made of a short one.
fn address_of(node: Eui64) -> Address {
    ShortAddr::from_eui64(node).map_or(Address::Extended(node), Address::Short)
}

/// Whether an address on the air is one of the node `me`, which may have a short one beside its EUI-64.
pub fn is_mine(address: Address, me: Eui64, short: Option<ShortAddr>) -> bool {
    node_of(address).is_some_and(|node| node == me || short.is_some_and(|own| own.eui64() == node))
}

/// The name of the node that has an address on the air; none for groups.
pub fn node_of(address: Address) -> Option<Eui64> {
    match address {
        Address::Extended(node) => Some(node),
        Address::Short(ShortAddr::BROADCAST | ShortAddr::NONE) => None,
        Address::Short(short) => Some(short.eui64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;
    use lowmesh_wire::ieee802154::Frame;

    #[test]
    fn a_full_payload_fills_the_phy_packet_exactly() {
        let payload = [0; PAYLOAD_OCTETS_MAX];
        let to = Some(NodeId(2).eui64());
        let octets = data(PanId(1), NodeId(1).eui64(), to, 9, Content::Payload(&payload));
        assert_eq!(octets.len() + FCS_OCTETS, PHY_PACKET_MAX);
        let frame = Frame::parse(&octets).expect("own frame");
        assert!(frame.header.ack_request);
        assert_eq!(frame.header.destination_pan, Some(PanId(1)));
        assert_eq!(frame.payload, payload);
    }

    #[test]
    fn frames_of_the_2006_edition_are_those_that_riot_sends() {
        let (to, from) = (NodeId(1).eui64(), NodeId(2).eui64());
        let octets = data_2006(PanId(0x23), from, Some(to), 7, true, &[0x41]);
        assert_eq!(octets[..5], [0x61, 0xdc, 7, 0x23, 0x00]);
        assert_eq!(octets.len(), DATA_HEADER_OCTETS + 1);
        let broadcast = data_2006(PanId(0x23), from, None, 8, false, &[0x41]);
        let frame = Frame::parse(&broadcast).expect("own frame");
        assert_eq!(frame.header.destination, Some(Address::BROADCAST));
        assert!(!frame.header.ack_request);
        assert_eq!(frame.payload, [0x41]);
    }

    #[test]
    fn an_immediate_acknowledgement_reads_as_one() {
        let octets = immediate_ack(0x6a);
        let frame = Frame::parse(&octets).expect("own frame");
        assert_eq!(frame.header.frame_type, FrameType::Ack);
        assert_eq!((frame.header.sequence, frame.header.destination), (Some(0x6a), None));
    }

    #[test]
    fn the_longest_frame_takes_the_standards_time() {
        // macTsMaxTx: 4256 us for 127 octets and the PHY header.
        assert_eq!(airtime(125), Duration::from_micros(4_256));
    }

    #[test]
    fn an_acknowledgement_carries_the_correction() {
        for nack in [false, true] {
            let octets = ack(NodeId(3).eui64(), Some(77), -300, nack);
            let frame = Frame::parse(&octets).expect("own frame");
            assert_eq!(frame.header.sequence, Some(77));
            let correction = frame.header_ies.time_correction().map(|c| (c.micros, c.nack));
            assert_eq!(correction, Some((-300, nack)));
        }
    }

    #[test]
    fn frames_between_short_addresses_are_twelve_octets_shorter_and_name_one_pan() {
        let [a, b] = [1, 2].map(|node| ShortAddr(node).eui64());
        let long = NodeId(9).eui64();
        for (from, to, gain) in [(a, b, 12), (a, long, 6), (long, b, 6), (long, a, 6)] {
            let payload = std::vec![0x41; payload_octets_max(from, Some(to))];
            assert_eq!(payload.len(), PAYLOAD_OCTETS_MAX + gain);
            let octets = data(PanId(7), from, Some(to), 9, Content::Payload(&payload));
            assert_eq!(octets.len() + FCS_OCTETS, PHY_PACKET_MAX);
            let header = Frame::parse(&octets).expect("own frame").header;
            assert_eq!((header.destination_pan, header.source_pan), (Some(PanId(7)), None));
            assert_eq!(header.source.and_then(node_of), Some(from));
            assert_eq!(header.destination.and_then(node_of), Some(to));
        }
        assert_eq!(payload_octets_max(a, None), SHORT_PAYLOAD_OCTETS_MAX);
    }

    #[test]
    fn an_acknowledgement_names_a_short_address_and_may_have_no_sequence_number() {
        let to = ShortAddr(0x1234);
        for octets in [ack(to.eui64(), None, 5, false), plain_ack(to.eui64(), None)] {
            let header = Frame::parse(&octets).expect("own frame").header;
            assert_eq!((header.sequence, header.destination), (None, Some(Address::Short(to))));
        }
        assert_eq!(plain_ack(to.eui64(), None), [0x42, 0x29, 0x34, 0x12]);
    }
}
