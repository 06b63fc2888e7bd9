//! TCP segments over IPv6 and IPv4 (RFC 9293 s3.1) with the options of RFC 2018, RFC 7323 and RFC 9293.
//!
//! ```text
//! |          Source Port          |       Destination Port        |
//! |                        Sequence Number                        |
//! |                    Acknowledgment Number                      |
//! | Offset|  Rsrvd  |   Control   |            Window             |
//! |           Checksum            |         Urgent Pointer        |
//! |            Options, padded to a multiple of four              |
//! ```
//!
//! What the numbers mean is left to the crate `tcp`.

mod options;

pub use options::{
    OPTIONS_OCTETS_MAX, Options, SACK_BLOCKS_MAX, SackBlock, SackBlocks, Timestamps,
};

use alloc::vec::Vec;

use crate::checksum::{pseudo_header_checksum, pseudo_header_checksum_v4};
use crate::ipv6::{Address, next_header};
use crate::{DecodeError, Problem, Reader};

/// Octets of the header without options (RFC 9293 s3.1).
pub const HEADER_OCTETS: usize = 20;
/// Where the checksum stands in the header.
pub const CHECKSUM_OFFSET: usize = 16;

/// The ends of a packet, for the pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Source and destination over IPv6.
    V6(Address, Address),
    /// Source and destination over IPv4.
    V4([u8; 4], [u8; 4]),
}

impl Ends {
    fn checksum(&self, segment: &[u8]) -> u16 {
        match *self {
            Self::V6(source, destination) => {
                pseudo_header_checksum(&source.0, &destination.0, next_header::TCP, segment)
            }
            Self::V4(source, destination) => {
                pseudo_header_checksum_v4(source, destination, next_header::TCP, segment)
            }
        }
    }
}

/// The control bits (RFC 9293 s3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// CWR: the congestion window was reduced (RFC 3168).
    pub cwr: bool,
    /// ECE: an echo of a congestion mark (RFC 3168).
    pub ece: bool,
    /// URG: the urgent pointer counts.
    pub urg: bool,
    /// ACK: the acknowledgment number counts.
    pub ack: bool,
    /// PSH: pass the data to the application at once.
    pub psh: bool,
    /// RST: the connection is over.
    pub rst: bool,
    /// SYN: sequence numbers are synchronised.
    pub syn: bool,
    /// FIN: the sender has no more data.
    pub fin: bool,
}

impl Control {
    const fn from_octet(octet: u8) -> Self {
        Self {
            cwr: octet & 0x80 != 0,
            ece: octet & 0x40 != 0,
            urg: octet & 0x20 != 0,
            ack: octet & 0x10 != 0,
            psh: octet & 0x08 != 0,
            rst: octet & 0x04 != 0,
            syn: octet & 0x02 != 0,
            fin: octet & 0x01 != 0,
        }
    }
    fn octet(self) -> u8 {
        let bits = [self.cwr, self.ece, self.urg, self.ack, self.psh, self.rst, self.syn, self.fin];
        bits.iter().fold(0, |octet, bit| octet << 1 | u8::from(*bit))
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// The number of the first octet of data, or of the SYN.
    pub sequence: u32,
    /// The next number that the sender expects, where ACK is set.
    pub acknowledgment: u32,
    /// The control bits.
    pub control: Control,
    /// The receive window, before it is scaled.
    pub window: u16,
    /// The urgent pointer, where URG is set.
    pub urgent: u16,
    /// The options.
    pub options: Options,
}

/// A segment whose data borrows from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The header.
    pub header: Header,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a whole segment and verifies its checksum.
    pub fn parse(ends: &Ends, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("TCP", bytes);
        let source_port = reader.u16_be("source port")?;
        let destination_port = reader.u16_be("destination port")?;
        let sequence = reader.u32_be("sequence number")?;
        let acknowledgment = reader.u32_be("acknowledgment number")?;
        let offset = usize::from(reader.u8("data offset")? >> 4) * 4;
        if offset < HEADER_OCTETS {
            return Err(reader.error("data offset", Problem::Value));
        }
        let control = Control::from_octet(reader.u8("control bits")?);
        let window = reader.u16_be("window")?;
        reader.u16_be("checksum")?;
        let urgent = reader.u16_be("urgent pointer")?;
        let options = reader.take(offset - HEADER_OCTETS, "options")?;
        if ends.checksum(bytes) != 0 {
            return Err(reader.error("checksum", Problem::Checksum));
        }
        let options = Options::parse(options)?;
        let header = Header {
            source_port,
            destination_port,
            sequence,
            acknowledgment,
            control,
            window,
            urgent,
            options,
        };
        Ok(Self { header, payload: reader.rest() })
    }

    /// Writes the segment with its checksum.
    pub fn emit(&self, ends: &Ends, out: &mut Vec<u8>) {
        let start = out.len();
        let header = &self.header;
        out.extend_from_slice(&header.source_port.to_be_bytes());
        out.extend_from_slice(&header.destination_port.to_be_bytes());
        out.extend_from_slice(&header.sequence.to_be_bytes());
        out.extend_from_slice(&header.acknowledgment.to_be_bytes());
        out.push(((header.octets() / 4) << 4) as u8);
        out.push(header.control.octet());
        out.extend_from_slice(&header.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&header.urgent.to_be_bytes());
        header.options.emit(out);
        out.extend_from_slice(self.payload);
        let sum = ends.checksum(&out[start..]);
        out[start + CHECKSUM_OFFSET..start + CHECKSUM_OFFSET + 2]
            .copy_from_slice(&sum.to_be_bytes());
    }
}

impl Header {
    /// Octets of the header with its options.
    pub fn octets(&self) -> usize {
        HEADER_OCTETS + self.options.octets()
    }
}

#[cfg(test)]
mod tests;
