//! IEEE 802.15.4-2015 MAC frames (s7.2, s7.3): frame control, sequence number, addresses, information
//! elements, payload. The FCS is the radio's business; [`fcs`] computes it for captures and serial links.
//!
//! ```text
//!  octets  2      0/1       0/2   0/2/8    0/2   0/2/8    variable     variable     variable
//!        +-----+----------+-----+--------+-----+--------+-----------+------------+---------+
//!        | FCF | sequence | PAN | dest.  | PAN | source | header IE | payload IE | payload |
//!        +-----+----------+-----+--------+-----+--------+-----------+------------+---------+
//! ```
//! Not read here: auxiliary security headers (a secured frame is `Unsupported`).

use alloc::vec::Vec;

use lowmesh_units::{Eui64, PanId, ShortAddr};

use crate::ie::{HeaderIes, PayloadIes, skip_header_ies, skip_payload_ies};
use crate::{DecodeError, Problem, Reader};

const HEADER: &str = "IEEE 802.15.4";

/// Largest PHY payload of the 2.4 GHz O-QPSK PHY, FCS included: aMaxPhyPacketSize, s11.2.
pub const PHY_PACKET_MAX: usize = 127;
/// Octets of the frame check sequence, s7.2.11.
pub const FCS_OCTETS: usize = 2;

/// Frame type, s7.2.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// Beacon; with version 2 an enhanced beacon.
    Beacon,
    /// Data.
    Data,
    /// Acknowledgement; with version 2 an enhanced one.
    Ack,
    /// MAC command; its first payload octet is the command identifier.
    Command,
}

/// Frame version, s7.2.2.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// IEEE 802.15.4-2003.
    V2003,
    /// IEEE 802.15.4-2006.
    V2006,
    /// IEEE 802.15.4-2015: information elements, enhanced beacons and acknowledgements.
    V2015,
}

/// A link-layer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Two octets, given by a coordinator; 0xffff is everyone.
    Short(ShortAddr),
    /// The node's own eight octets.
    Extended(Eui64),
}

impl Address {
    /// Everyone in range.
    pub const BROADCAST: Self = Self::Short(ShortAddr::BROADCAST);

    const fn mode(self) -> u16 {
        match self {
            Self::Short(_) => 2,
            Self::Extended(_) => 3,
        }
    }
    fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Short(ShortAddr(short)) => out.extend_from_slice(&short.to_le_bytes()),
            Self::Extended(Eui64(mut octets)) => {
                // Least significant octet first on the air (s4.3).
                octets.reverse();
                out.extend_from_slice(&octets);
            }
        }
    }
}

/// The MAC header without its information elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub frame_type: FrameType,
    /// Which edition of the standard it follows.
    pub version: Version,
    /// More frames follow for the receiver.
    pub frame_pending: bool,
    /// The receiver is to acknowledge.
    pub ack_request: bool,
    /// The PAN ID compression bit, whose meaning depends on the version and both addresses (s7.2.2.6).
    pub pan_id_compression: bool,
    /// Information elements follow (version 2015 only).
    pub ie_present: bool,
    /// Sequence number; `None` is "suppressed" (version 2015 only).
    pub sequence: Option<u8>,
    /// PAN of the destination, where the frame carries it.
    pub destination_pan: Option<PanId>,
    /// Destination.
    pub destination: Option<Address>,
    /// PAN of the source, where the frame carries it.
    pub source_pan: Option<PanId>,
    /// Source.
    pub source: Option<Address>,
}

/// Which PAN identifiers are in the header: (destination's, source's), s7.2.2.6 and Table 7-2.
fn pans_present(
    version: Version,
    compression: bool,
    destination: Option<u16>,
    source: Option<u16>,
) -> (bool, bool) {
    if version != Version::V2015 {
        return (
            destination.is_some(),
            source.is_some() && !(compression && destination.is_some()),
        );
    }
    match (destination, source) {
        (None, None) => (compression, false),
        (Some(_), None) | (Some(3), Some(3)) => (!compression, false),
        (None, Some(_)) => (false, !compression),
        (Some(_), Some(_)) => (true, !compression),
    }
}

impl Header {
    /// Appends the header.
    ///
    /// The caller has set the PAN fields as the compression bit demands; a missing one is sent as broadcast.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let frame_type = match self.frame_type {
            FrameType::Beacon => 0,
            FrameType::Data => 1,
            FrameType::Ack => 2,
            FrameType::Command => 3,
        };
        let version = match self.version {
            Version::V2003 => 0,
            Version::V2006 => 1,
            Version::V2015 => 2,
        };
        let modes = (self.destination.map(Address::mode), self.source.map(Address::mode));
        let control: u16 = frame_type
            | u16::from(self.frame_pending) << 4
            | u16::from(self.ack_request) << 5
            | u16::from(self.pan_id_compression) << 6
            | u16::from(self.sequence.is_none()) << 8
            | u16::from(self.ie_present) << 9
            | modes.0.unwrap_or(0) << 10
            | version << 12
            | modes.1.unwrap_or(0) << 14;
        out.extend_from_slice(&control.to_le_bytes());
        out.extend(self.sequence);
        let pans = pans_present(self.version, self.pan_id_compression, modes.0, modes.1);
        let pan = |pan: Option<PanId>| pan.unwrap_or(PanId::BROADCAST).0.to_le_bytes();
        if pans.0 {
            out.extend_from_slice(&pan(self.destination_pan));
        }
        if let Some(address) = self.destination {
            address.emit(out);
        }
        if pans.1 {
            out.extend_from_slice(&pan(self.source_pan));
        }
        if let Some(address) = self.source {
            address.emit(out);
        }
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let control = reader.u16_le("frame control")?;
        let bit = |n: u16| control >> n & 1 == 1;
        let bad = |field, problem| DecodeError { header: HEADER, field, offset: 0, problem };
        let frame_type = match control & 7 {
            0 => FrameType::Beacon,
            1 => FrameType::Data,
            2 => FrameType::Ack,
            3 => FrameType::Command,
            _ => return Err(bad("frame type", Problem::Unsupported)),
        };
        let version = match control >> 12 & 3 {
            0 => Version::V2003,
            1 => Version::V2006,
            2 => Version::V2015,
            _ => return Err(bad("frame version", Problem::Unsupported)),
        };
        if bit(3) {
            return Err(bad("security enabled", Problem::Unsupported));
        }
        // Before 2015 bits 8 and 9 were reserved and are ignored.
        let new = version == Version::V2015;
        let sequence = if new && bit(8) { None } else { Some(reader.u8("sequence number")?) };
        let mode = |shift: u16, field| match control >> shift & 3 {
            0 => Ok(None),
            1 => Err(bad(field, Problem::Value)),
            mode => Ok(Some(mode)),
        };
        let modes = (mode(10, "destination addressing mode")?, mode(14, "source addressing mode")?);
        let pans = pans_present(version, bit(6), modes.0, modes.1);
        let pan = |present: bool, reader: &mut Reader<'_>, field| {
            present.then(|| reader.u16_le(field).map(PanId)).transpose()
        };
        let destination_pan = pan(pans.0, reader, "destination PAN")?;
        let destination = parse_address(reader, modes.0, "destination address")?;
        let source_pan = pan(pans.1, reader, "source PAN")?;
        let source = parse_address(reader, modes.1, "source address")?;
        Ok(Self {
            frame_type,
            version,
            frame_pending: bit(4),
            ack_request: bit(5),
            pan_id_compression: bit(6),
            ie_present: new && bit(9),
            sequence,
            destination_pan,
            destination,
            source_pan,
            source,
        })
    }
}

fn parse_address(
    reader: &mut Reader<'_>,
    mode: Option<u16>,
    field: &'static str,
) -> Result<Option<Address>, DecodeError> {
    Ok(match mode {
        None => None,
        Some(2) => Some(Address::Short(ShortAddr(reader.u16_le(field)?))),
        Some(_) => {
            let mut octets: [u8; 8] = reader.array(field)?;
            octets.reverse();
            Some(Address::Extended(Eui64(octets)))
        }
    })
}

/// A frame as a view on its bytes (without FCS).
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The header's fields.
    pub header: Header,
    /// Header information elements, terminations left out.
    pub header_ies: HeaderIes<'a>,
    /// Payload information elements, termination left out.
    pub payload_ies: PayloadIes<'a>,
    /// What follows.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame without FCS. Every information element is checked for its length here, so that
    /// walking over them later cannot fail.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let header = Header::parse(&mut reader)?;
        let (mut header_ies, mut payload_ies) = (HeaderIes::default(), PayloadIes::default());
        if header.ie_present {
            let (ies, payload_ies_follow) = skip_header_ies(&mut reader)?;
            header_ies = ies;
            if payload_ies_follow {
                payload_ies = skip_payload_ies(&mut reader)?;
            }
        }
        Ok(Self { header, header_ies, payload_ies, payload: reader.rest() })
    }
}

/// The frame check sequence of a MAC frame: ITU-T CRC-16, reflected, initial value 0 (s7.2.11).
///
/// ```
/// // The standard's own example, s7.2.11: an acknowledgement frame.
/// assert_eq!(lowmesh_wire::ieee802154::fcs(&[0x02, 0x00, 0x6a]), 0x79e4);
/// ```
pub fn fcs(frame: &[u8]) -> u16 {
    frame.iter().fold(0, |crc, octet| {
        let mut crc = crc ^ u16::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    fn all_headers() -> Vec<Header> {
        let pan = Some(PanId(0xabcd));
        let addresses = [
            None,
            Some(Address::Short(ShortAddr(0x1234))),
            Some(Address::Extended(NodeId(7).eui64())),
        ];
        let mut headers = Vec::new();
        for version in [Version::V2003, Version::V2006, Version::V2015] {
            for destination in addresses {
                for source in addresses {
                    for compression in [false, true] {
                        let modes = (destination.map(Address::mode), source.map(Address::mode));
                        let pans = pans_present(version, compression, modes.0, modes.1);
                        headers.push(Header {
                            frame_type: FrameType::Data,
                            version,
                            frame_pending: compression,
                            ack_request: true,
                            pan_id_compression: compression,
                            ie_present: false,
                            sequence: Some(0x42),
                            destination_pan: pan.filter(|_| pans.0),
                            destination,
                            source_pan: pan.filter(|_| pans.1),
                            source,
                        });
                    }
                }
            }
        }
        headers
    }

    #[test]
    fn every_header_reads_back_and_every_prefix_is_an_error() {
        for header in all_headers() {
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            let frame = Frame::parse(&bytes).expect("own output");
            assert_eq!(frame.header, header);
            for end in 0..bytes.len() {
                assert!(Frame::parse(&bytes[..end]).is_err(), "{header:?} cut at {end}");
            }
        }
    }

    #[test]
    fn the_frame_control_of_a_known_frame_is_right() {
        // FCF 0xdc61 is what RIOT sends: data, AR, PAN compressed, version 1, long addresses.
        let header = Header {
            frame_type: FrameType::Data,
            version: Version::V2006,
            frame_pending: false,
            ack_request: true,
            pan_id_compression: true,
            ie_present: false,
            sequence: Some(1),
            destination_pan: Some(PanId(0x0023)),
            destination: Some(Address::Extended(NodeId(1).eui64())),
            source_pan: None,
            source: Some(Address::Extended(NodeId(2).eui64())),
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(&bytes[..5], &[0x61, 0xdc, 1, 0x23, 0x00]);
        assert_eq!(bytes[5], 1, "least significant octet of the address first");
    }

    #[test]
    fn secured_frames_are_refused_by_name() {
        let error = Frame::parse(&[0x09, 0x00, 0x01]).expect_err("security bit set");
        assert_eq!((error.field, error.problem), ("security enabled", Problem::Unsupported));
    }
}
