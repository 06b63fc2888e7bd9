//! LOWPAN_NHC: the headers behind the IPv6 header (RFC 6282 s4): UDP, extension headers, and a packet in the packet.
//!
//! ```text
//! extension header  |1 1 1 0|  EID  |NH|     UDP  |1 1 1 1 0|C| P |
//! ```

use alloc::vec::Vec;

use crate::ipv6::{Extension, ExtensionKind, Header, Options, next_header, pad_to_eight};
use crate::{DecodeError, Problem, Reader, udp};

const UDP_ID: u8 = 0b1111_0000;
const UDP_MASK: u8 = 0b1111_1000;
const UDP_CHECKSUM_ELIDED: u8 = 0b100;
const EXTENSION_ID: u8 = 0b1110_0000;
const EXTENSION_MASK: u8 = 0b1111_0000;
/// EID 7 without NH: LOWPAN_IPHC of an inner packet follows (RFC 6282 s4.2).
pub(super) const INNER_PACKET: u8 = 0b1110_1110;
const NEXT_HEADER_FOLLOWS: u8 = 1;
/// RFC 6282 s4.3.3: ports 61616 to 61631 take four bits, 61440 to 61695 eight.
const PORTS_OF_FOUR_BITS: u16 = 0xf0b0;
const PORTS_OF_EIGHT_BITS: u16 = 0xf000;
/// RFC 6282 s4.2: padding of up to seven octets can be left away.
const PADDING_OCTETS_MAX: usize = 7;

/// EID values (RFC 6282 s4.2).
const fn extension_id(kind: ExtensionKind) -> u8 {
    match kind {
        ExtensionKind::HopByHop => 0,
        ExtensionKind::Routing => 1,
        ExtensionKind::Fragment => 2,
        ExtensionKind::DestinationOptions => 3,
    }
}

/// A header of the packet that LOWPAN_NHC can carry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compressible<'a> {
    Udp(&'a [u8]),
    Extension {
        extension: Extension<'a>,
        carried: &'a [u8],
    },
    /// A packet in the packet, which the compressor treats like one in a frame.
    Packet(&'a [u8]),
}

impl<'a> Compressible<'a> {
    /// The header of type `next_header` at octet `at` of `packet`, if it can be compressed.
    ///
    /// `packet` may be the beginning of one of `size` octets.
    pub fn find(packet: &'a [u8], size: usize, next_header: u8, at: usize) -> Option<Self> {
        if next_header == next_header::UDP {
            let datagram = packet.get(at..)?;
            let length = datagram.get(4..6)?;
            // RFC 6282 s4.3.2: the length is always elided, so it has to be what the lower layers tell.
            let exact = usize::from(u16::from_be_bytes([length[0], length[1]])) + at == size;
            return (exact && datagram.len() >= udp::HEADER_OCTETS).then_some(Self::Udp(datagram));
        }
        if next_header == next_header::IPV6 {
            // The length is elided here too.
            let inner = packet.get(at..)?;
            return Header::parse_beginning(inner, size - at).ok().map(|_| Self::Packet(inner));
        }
        let kind = ExtensionKind::from_next_header(next_header)?;
        let extension = Extension::parse(kind, packet, at).ok()?;
        let carried = &extension.bytes[2..extension.bytes.len() - trailing_padding(&extension)];
        // RFC 6282 s4.2: a header with more than 255 octets after the length is not compressed.
        let short = u8::try_from(carried.len()).is_ok();
        (short && restorable(&extension)).then_some(Self::Extension { extension, carried })
    }

    /// The header behind this one, if it can be compressed as well.
    pub fn next(&self, packet: &'a [u8], size: usize) -> Option<Self> {
        match self {
            // What follows a fragment header may be the middle of a datagram.
            Self::Udp(_)
            | Self::Packet(_)
            | Self::Extension {
                extension: Extension { kind: ExtensionKind::Fragment, .. }, ..
            } => None,
            Self::Extension { extension, .. } => {
                let behind = extension.offset + extension.bytes.len();
                Self::find(packet, size, extension.next_header, behind)
            }
        }
    }

    /// Writes the header and returns its octets before compression; of an inner packet only what tells that it follows.
    pub fn emit(&self, next_follows: bool, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Udp(datagram) => {
                emit_udp(datagram, out);
                udp::HEADER_OCTETS
            }
            Self::Packet(_) => {
                out.push(INNER_PACKET);
                0
            }
            Self::Extension { extension, carried } => {
                let id = EXTENSION_ID | extension_id(extension.kind) << 1;
                out.push(id | u8::from(next_follows));
                if !next_follows {
                    out.push(extension.next_header);
                }
                // RFC 6282 s4.2: the length counts the octets behind it. A fragment header has a reserved octet
                // in that place: Contiki-NG and RIOT write and need the length, Wireshark takes either.
                out.push(carried.len() as u8);
                out.extend_from_slice(carried);
                extension.bytes.len()
            }
        }
    }
}

/// True when the decompressor gives the same header back.
///
/// What a fragment header has in the length's place is lost: it is reserved, and zero (RFC 8200 s4.5). Options
/// that do not decode cannot be padded by the other end, which refuses them (RFC 6282 s4.2).
fn restorable(extension: &Extension<'_>) -> bool {
    match extension.kind {
        ExtensionKind::Fragment => extension.bytes[1] == 0,
        ExtensionKind::Routing => true,
        ExtensionKind::HopByHop | ExtensionKind::DestinationOptions => {
            extension.options().all(|option| option.is_ok())
        }
    }
}

/// Octets of the padding option that the decompressor will put back by itself (RFC 6282 s4.2).
fn trailing_padding(extension: &Extension<'_>) -> usize {
    if !extension.kind.has_options() {
        return 0;
    }
    let (mut padding, mut after_padding) = (0, false);
    for option in extension.options() {
        let Ok(option) = option else { return 0 };
        let single = !after_padding && option.octets() <= PADDING_OCTETS_MAX;
        // Octets other than zero would not come back.
        let empty = option.data.iter().all(|octet| *octet == 0);
        padding = if option.is_padding() && single && empty { option.octets() } else { 0 };
        after_padding = option.is_padding();
    }
    padding
}

fn emit_udp(datagram: &[u8], out: &mut Vec<u8>) {
    let source = u16::from_be_bytes([datagram[0], datagram[1]]);
    let destination = u16::from_be_bytes([datagram[2], datagram[3]]);
    let four_bits = |port: u16| port & 0xfff0 == PORTS_OF_FOUR_BITS;
    let eight_bits = |port: u16| port & 0xff00 == PORTS_OF_EIGHT_BITS;
    if four_bits(source) && four_bits(destination) {
        out.extend_from_slice(&[UDP_ID | 0b11, (source << 4) as u8 | (destination & 0x0f) as u8]);
    } else if eight_bits(source) {
        out.extend_from_slice(&[UDP_ID | 0b10, source as u8]);
        out.extend_from_slice(&datagram[2..4]);
    } else if eight_bits(destination) {
        out.push(UDP_ID | 0b01);
        out.extend_from_slice(&datagram[..2]);
        out.push(destination as u8);
    } else {
        out.push(UDP_ID);
        out.extend_from_slice(&datagram[..4]);
    }
    // RFC 6282 s4.3.2: only an upper layer that protects the data may have the checksum elided; none here does.
    out.extend_from_slice(&datagram[udp::CHECKSUM_OFFSET..udp::HEADER_OCTETS]);
}

/// A UDP header among the decompressed ones, whose length and perhaps checksum are still missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenUdp {
    /// Octets from the start of the output to the header.
    pub at: usize,
    /// The checksum was elided and has to be computed.
    pub checksum_elided: bool,
}

/// What the end of a chain leaves to the decompressor.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChainEnd {
    /// Nothing: what follows is carried as it is.
    Carried,
    /// The length of a UDP header.
    Udp(OpenUdp),
    /// An inner packet.
    Packet,
}

/// Reads the chain of LOWPAN_NHC headers; writes the first one's type at `patch` of `out`.
pub(super) fn read_chain(
    reader: &mut Reader<'_>,
    mut patch: usize,
    out: &mut Vec<u8>,
) -> Result<ChainEnd, DecodeError> {
    loop {
        let start = *reader;
        let encoding = reader.u8("LOWPAN_NHC")?;
        if encoding & UDP_MASK == UDP_ID {
            out[patch] = next_header::UDP;
            return read_udp(reader, encoding, out).map(ChainEnd::Udp);
        }
        if encoding == INNER_PACKET {
            out[patch] = next_header::IPV6;
            return Ok(ChainEnd::Packet);
        }
        if encoding & EXTENSION_MASK != EXTENSION_ID {
            return Err(start.error("LOWPAN_NHC", Problem::Unsupported));
        }
        let kind = match encoding >> 1 & 0b111 {
            0 => ExtensionKind::HopByHop,
            1 => ExtensionKind::Routing,
            2 => ExtensionKind::Fragment,
            3 => ExtensionKind::DestinationOptions,
            // 4 is mobility, which nobody in the mesh makes; 7 with NH is reserved.
            _ => return Err(start.error("LOWPAN_NHC EID", Problem::Unsupported)),
        };
        out[patch] = kind.next_header();
        patch = out.len();
        let next_follows = encoding & NEXT_HEADER_FOLLOWS != 0;
        out.push(if next_follows { next_header::NONE } else { reader.u8("next header")? });
        read_extension(reader, kind, patch, out)?;
        if !next_follows {
            return Ok(ChainEnd::Carried);
        }
    }
}

/// Reads the body of an extension header that begins at `start` of `out` with its next header.
fn read_extension(
    reader: &mut Reader<'_>,
    kind: ExtensionKind,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let length = reader.u8("length")?;
    if kind == ExtensionKind::Fragment {
        // RFC 8200 s4.5: eight octets, whatever stands in the place of the length; reserved is zero.
        out.push(0);
        out.extend_from_slice(reader.take(6, "fragment header")?);
        return Ok(());
    }
    out.push(length);
    let body = reader.take(usize::from(length), "extension header")?;
    out.extend_from_slice(body);
    if kind.has_options() {
        // RFC 6282 s4.2: the decompressor pads the header out to a multiple of eight octets. Options that do not
        // decode cannot be padded either.
        for option in Options::new(body) {
            option?;
        }
        pad_to_eight(out, start);
    }
    let octets = out.len() - start;
    if !octets.is_multiple_of(8) {
        return Err(reader.error("length", Problem::Length));
    }
    out[start + 1] = (octets / 8 - 1) as u8;
    Ok(())
}

fn read_udp(
    reader: &mut Reader<'_>,
    encoding: u8,
    out: &mut Vec<u8>,
) -> Result<OpenUdp, DecodeError> {
    let (source, destination) = match encoding & 0b11 {
        0b00 => (reader.u16_be("source port")?, reader.u16_be("destination port")?),
        0b01 => {
            let source = reader.u16_be("source port")?;
            (source, PORTS_OF_EIGHT_BITS | u16::from(reader.u8("destination port")?))
        }
        0b10 => {
            let source = PORTS_OF_EIGHT_BITS | u16::from(reader.u8("source port")?);
            (source, reader.u16_be("destination port")?)
        }
        _ => {
            let ports = u16::from(reader.u8("ports")?);
            (PORTS_OF_FOUR_BITS | ports >> 4, PORTS_OF_FOUR_BITS | ports & 0x0f)
        }
    };
    let checksum_elided = encoding & UDP_CHECKSUM_ELIDED != 0;
    let checksum = if checksum_elided { 0 } else { reader.u16_be("checksum")? };
    let at = out.len();
    for field in [source, destination, 0, checksum] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    Ok(OpenUdp { at, checksum_elided })
}
