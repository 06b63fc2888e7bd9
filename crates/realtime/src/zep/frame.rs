//! ZEP version 2: IEEE 802.15.4 frames in UDP datagrams, as sniffers and native builds of operating systems for
//! small devices have them. No standard: the layout is what Wireshark and RIOT read and write.
//!
//! ```text
//!   0    'E' 'X'
//!   2    version 2
//!   3    type: 1 data, 2 acknowledgement of a datagram, 255 hello
//!   4    channel
//!   5    device, 2 octets
//!   7    1: the frame ends in its FCS, 0: in a signal quality
//!   8    LQI
//!   9    time of day in the format of NTP, 8 octets
//!   17   sequence number, 4 octets
//!   21   reserved, 10 octets; "HELLO" in a hello
//!   31   octets that follow
//!   32   the frame with FCS; in a hello the EUI-64 of the sender
//! ```

use lowmesh_units::{Channel, Eui64};
use lowmesh_wire::ieee802154::{FCS_OCTETS, PHY_PACKET_MAX, fcs};
use lowmesh_wire::{DecodeError, Problem, Reader};

/// The port that IANA has for ZEP.
pub const PORT: u16 = 17_754;
/// Octets before the frame.
pub const HEADER_OCTETS: usize = 32;
/// Octets of the largest datagram.
pub const DATAGRAM_OCTETS_MAX: usize = HEADER_OCTETS + PHY_PACKET_MAX;

const HEADER: &str = "ZEP";
const PREAMBLE: [u8; 2] = *b"EX";
const VERSION: u8 = 2;
const DATA: u8 = 1;
const ACK: u8 = 2;
const HELLO: u8 = 255;
const WITH_FCS: u8 = 1;
const GREETING: [u8; 10] = *b"HELLO\0\0\0\0\0";

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A frame that was on the air.
    Data {
        /// How well it was heard: 0 to 255.
        lqi: u8,
        /// The frame without FCS, which was right.
        frame: &'a [u8],
    },
    /// Somebody is there.
    Hello(Eui64),
    /// A data datagram came; nobody waits for it.
    Ack,
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// On which channel the frame was; `None` for an acknowledgement, or a channel of another band.
    pub channel: Option<Channel>,
    /// The content.
    pub content: Content<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let mut wrong = reader.error("preamble", Problem::Value);
        if reader.array("preamble")? != PREAMBLE {
            return Err(wrong);
        }
        wrong = reader.error("version", Problem::Unsupported);
        if reader.u8("version")? != VERSION {
            return Err(wrong);
        }
        wrong = reader.error("type", Problem::Unsupported);
        let kind = reader.u8("type")?;
        if kind == ACK {
            reader.u32_be("sequence number")?;
            return Ok(Self { channel: None, content: Content::Ack });
        }
        if kind != DATA && kind != HELLO {
            return Err(wrong);
        }
        let channel = Channel::new(reader.u8("channel")?);
        reader.u16_be("device")?;
        let with_fcs = reader.u8("LQI mode")? == WITH_FCS;
        let lqi = reader.u8("LQI")?;
        reader.take(8, "timestamp")?;
        reader.u32_be("sequence number")?;
        reader.take(10, "reserved")?;
        let length = usize::from(reader.u8("length")?);
        if reader.remaining() > length {
            return Err(reader.error("frame", Problem::Length));
        }
        if kind == HELLO {
            let node = Eui64(reader.array("EUI-64")?);
            return Ok(Self { channel, content: Content::Hello(node) });
        }
        let checksum = reader.error("frame", Problem::Checksum);
        let psdu = reader.take(length, "frame")?;
        let short = reader.error("frame", Problem::Length);
        let (frame, trailer) = psdu.split_last_chunk::<FCS_OCTETS>().ok_or(short)?;
        if with_fcs && u16::from_le_bytes(*trailer) != fcs(frame) {
            return Err(checksum);
        }
        Ok(Self { channel, content: Content::Data { lqi, frame } })
    }

    /// Appends the datagram, at the time of day `timestamp` (NTP), with its number.
    ///
    /// A frame of more than 125 octets without FCS does not fit the PHY and must not come here.
    pub fn emit(&self, timestamp: u64, sequence: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&PREAMBLE);
        out.push(VERSION);
        let (kind, lqi, reserved) = match self.content {
            Content::Ack => {
                out.push(ACK);
                out.extend_from_slice(&sequence.to_be_bytes());
                return;
            }
            Content::Data { lqi, .. } => (DATA, lqi, [0; 10]),
            Content::Hello(_) => (HELLO, u8::MAX, GREETING),
        };
        let channel = self.channel.map_or(0, Channel::number);
        out.extend_from_slice(&[kind, channel, 0, 0, WITH_FCS, lqi]);
        out.extend_from_slice(&timestamp.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        out.extend_from_slice(&reserved);
        match self.content {
            Content::Data { frame, .. } => {
                out.push((frame.len() + FCS_OCTETS) as u8);
                out.extend_from_slice(frame);
                out.extend_from_slice(&fcs(frame).to_le_bytes());
            }
            Content::Hello(Eui64(octets)) => {
                out.push(octets.len() as u8);
                out.extend_from_slice(&octets);
            }
            Content::Ack => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;
    use proptest::prelude::*;

    fn channel() -> Option<Channel> {
        Channel::new(26)
    }
    fn bytes(content: Content<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Datagram { channel: channel(), content }.emit(0x0123_4567_89ab_cdef, 9, &mut out);
        out
    }

    #[test]
    fn the_octets_stand_where_other_stacks_look_for_them() {
        // The acknowledgement of IEEE 802.15.4-2015 s7.2.11 with its FCS.
        let octets = bytes(Content::Data { lqi: 200, frame: &[0x02, 0x00, 0x6a] });
        let mut expected = vec![b'E', b'X', 2, 1, 26, 0, 0, 1, 200];
        expected.extend_from_slice(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        expected.extend_from_slice(&[0, 0, 0, 9]);
        expected.extend_from_slice(&[0; 10]);
        expected.extend_from_slice(&[5, 0x02, 0x00, 0x6a, 0xe4, 0x79]);
        assert_eq!(octets, expected);
    }

    #[test]
    fn every_kind_comes_back_as_it_was_and_no_beginning_of_it() {
        let frame = &[0x41, 0xd8, 7, 1, 2, 3][..];
        let node = NodeId(3).eui64();
        for content in [Content::Data { lqi: 7, frame }, Content::Hello(node), Content::Ack] {
            let octets = bytes(content);
            let channel = channel().filter(|_| content != Content::Ack);
            assert_eq!(Datagram::parse(&octets), Ok(Datagram { channel, content }));
            for end in 0..octets.len() {
                assert!(Datagram::parse(&octets[..end]).is_err(), "{content:?} cut at {end}");
            }
        }
    }

    #[test]
    fn a_frame_with_a_wrong_fcs_is_refused_unless_there_is_none() {
        let mut octets = bytes(Content::Data { lqi: 7, frame: &[1, 2, 3] });
        *octets.last_mut().expect("it has a frame") ^= 1;
        let error = Datagram::parse(&octets).expect_err("one bit is wrong");
        assert_eq!((error.field, error.problem), ("frame", Problem::Checksum));
        octets[7] = 0;
        let datagram = Datagram::parse(&octets).expect("a signal quality stands there");
        assert_eq!(datagram.content, Content::Data { lqi: 7, frame: &[1, 2, 3] });
    }

    #[test]
    fn other_versions_and_types_are_refused_by_name() {
        for (place, field) in [(0, "preamble"), (2, "version"), (3, "type")] {
            let mut octets = bytes(Content::Data { lqi: 7, frame: &[1, 2, 3] });
            octets[place] = 77;
            assert_eq!(Datagram::parse(&octets).map_err(|error| error.field), Err(field));
        }
    }

    proptest! {
        #[test]
        fn no_datagram_upsets_the_reader(
            mut octets in prop::collection::vec(any::<u8>(), 0..160),
            kind in prop::sample::select(vec![1_u8, 2, 255]),
        ) {
            if octets.len() > 4 {
                octets[..4].copy_from_slice(&[b'E', b'X', 2, kind]);
            }
            if let Ok(Datagram { content: Content::Data { frame, .. }, .. }) = Datagram::parse(&octets) {
                prop_assert!(frame.len() + HEADER_OCTETS + FCS_OCTETS <= octets.len());
            }
        }
    }
}
