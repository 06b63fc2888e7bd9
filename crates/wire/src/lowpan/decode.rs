//! The decompressor: LOWPAN_IPHC and LOWPAN_NHC back to IPv6 (RFC 6282 s3, s4).

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use super::Contexts;
use super::encode::{
    CONTEXT_OCTET, DESTINATION_STATEFUL, IPHC_ID, MULTICAST, NEXT_HEADER_COMPRESSED,
    SOURCE_STATEFUL, link_of,
};
use super::nhc::{ChainEnd, OpenUdp, read_chain};
use super::prefix::{read_multicast, read_prefix_multicast, read_unicast};
use crate::ipv6::{
    Address, DESTINATION_OFFSET, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET, SOURCE_OFFSET,
    next_header,
};
use crate::{DecodeError, Problem, Reader, udp};

/// What the frame's own header tells.
pub(super) struct Link<'a> {
    pub source: Eui64,
    pub destination: Option<Eui64>,
    pub contexts: &'a Contexts,
    /// The packet is in another one.
    pub is_inner: bool,
}

/// Reads LOWPAN_IPHC and what is behind it, and appends the packet.
pub(super) fn expand(
    frame: &[u8],
    link: &Link<'_>,
    datagram_size: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new("LOWPAN_IPHC", frame);
    let start = out.len();
    let next_compressed = read_iphc(&mut reader, link, out)?;
    let end = if next_compressed {
        read_chain(&mut reader, start + NEXT_HEADER_OFFSET, out)?
    } else {
        ChainEnd::Carried
    };
    if let ChainEnd::Packet = end {
        if link.is_inner {
            return Err(reader.error("LOWPAN_NHC EID", Problem::Unsupported));
        }
        let (source, destination) = link_of(&Header::parse(&out[start..])?);
        let inner = Link { source, destination, contexts: link.contexts, is_inner: true };
        let before = out.len() - start;
        let too_long = || reader.error("datagram_size", Problem::Length);
        let size = datagram_size.map(|size| size.checked_sub(before).ok_or_else(too_long));
        expand(reader.rest(), &inner, size.transpose()?, out)?;
    } else {
        out.extend_from_slice(reader.rest());
    }

    // RFC 6282 s3.1: lengths come from the lower layers, the frame's or the fragment header's.
    let there = out.len() - start;
    let size = datagram_size.unwrap_or(there);
    let payload = u16::try_from(size - HEADER_OCTETS.min(size))
        .map_err(|_| reader.error("payload length", Problem::Length))?;
    if there > size {
        return Err(reader.error("datagram_size", Problem::Length));
    }
    out[start + 4..start + 6].copy_from_slice(&payload.to_be_bytes());
    match end {
        ChainEnd::Udp(open) => close_udp(&reader, open, start, size, out),
        ChainEnd::Carried | ChainEnd::Packet => Ok(()),
    }
}

/// The IPv6 header of the LOWPAN_IPHC at the cursor, without its length.
pub(super) fn peek_header(mut reader: Reader<'_>, link: &Link<'_>) -> Result<Header, DecodeError> {
    let mut header = Vec::with_capacity(HEADER_OCTETS);
    read_iphc(&mut reader, link, &mut header)?;
    Header::parse(&header)
}

/// Fills in the length of a UDP header and, where it was elided, the checksum.
fn close_udp(
    reader: &Reader<'_>,
    open: OpenUdp,
    start: usize,
    size: usize,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    // `size` is at least what is there, of which the UDP header is a part.
    let length = (start + size - open.at) as u16;
    out[open.at + 4..open.at + 6].copy_from_slice(&length.to_be_bytes());
    if open.checksum_elided {
        if out.len() - start != size {
            // The rest of the datagram is in other frames; the sum cannot be made here.
            return Err(reader.error("checksum", Problem::Unsupported));
        }
        // RFC 6282 s4.3.2: the decompressor computes a checksum that was elided.
        let source = address_at(out, start + SOURCE_OFFSET);
        let destination = address_at(out, start + DESTINATION_OFFSET);
        let sum = udp::checksum(&source, &destination, &out[open.at..]);
        let at = open.at + udp::CHECKSUM_OFFSET;
        out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(())
}

fn address_at(packet: &[u8], at: usize) -> Address {
    let mut octets = [0; 16];
    octets.copy_from_slice(&packet[at..at + 16]);
    Address(octets)
}

/// Reads the LOWPAN_IPHC part, writes an IPv6 header without length and returns NH.
fn read_iphc(
    reader: &mut Reader<'_>,
    link: &Link<'_>,
    out: &mut Vec<u8>,
) -> Result<bool, DecodeError> {
    let start = *reader;
    let [first, second] = reader.array("LOWPAN_IPHC")?;
    if first & 0b1110_0000 != IPHC_ID {
        return Err(start.error("dispatch", Problem::Unsupported));
    }
    let contexts = if second & CONTEXT_OCTET != 0 { reader.u8("contexts")? } else { 0 };
    let (traffic_class, flow_label) = read_traffic_class(reader, first >> 3 & 0b11)?;
    let next_compressed = first & NEXT_HEADER_COMPRESSED != 0;
    let next_header = if next_compressed { next_header::NONE } else { reader.u8("next header")? };
    let hop_limit = match first & 0b11 {
        0b00 => reader.u8("hop limit")?,
        0b01 => 1,
        0b10 => 64,
        _ => 255,
    };
    let source = read_source(reader, link, second, contexts >> 4)?;
    let destination = read_destination(reader, link, second, contexts & 0x0f)?;
    let header = Header {
        traffic_class,
        flow_label,
        payload_length: 0,
        next_header,
        hop_limit,
        source,
        destination,
    };
    header.emit(out);
    Ok(next_compressed)
}

fn read_traffic_class(reader: &mut Reader<'_>, mode: u8) -> Result<(u8, u32), DecodeError> {
    Ok(match mode {
        0b00 => {
            let ecn_dscp = reader.u8("traffic class")?;
            let [high, middle, low] = reader.array("flow label")?;
            (ecn_dscp.rotate_left(2), u32::from_be_bytes([0, high & 0x0f, middle, low]))
        }
        0b01 => {
            let [high, middle, low] = reader.array("flow label")?;
            (high >> 6, u32::from_be_bytes([0, high & 0x0f, middle, low]))
        }
        0b10 => (reader.u8("traffic class")?.rotate_left(2), 0),
        _ => (0, 0),
    })
}

fn read_source(
    reader: &mut Reader<'_>,
    link: &Link<'_>,
    encoding: u8,
    context: u8,
) -> Result<Address, DecodeError> {
    const FIELD: &str = "source address";
    let mode = encoding >> 4 & 0b11;
    let stateful = encoding & SOURCE_STATEFUL != 0;
    if stateful && mode == 0b00 {
        return Ok(Address::UNSPECIFIED);
    }
    let prefix = if stateful { Some(known(reader, link, FIELD, context)?) } else { None };
    read_unicast(reader, FIELD, prefix, mode, Some(link.source))
}

fn read_destination(
    reader: &mut Reader<'_>,
    link: &Link<'_>,
    encoding: u8,
    context: u8,
) -> Result<Address, DecodeError> {
    const FIELD: &str = "destination address";
    let mode = encoding & 0b11;
    let stateful = encoding & DESTINATION_STATEFUL != 0;
    let group = encoding & MULTICAST != 0;
    match (group, stateful) {
        (true, false) => read_multicast(reader, mode),
        (true, true) if mode == 0b00 => {
            let prefix = known(reader, link, FIELD, context)?;
            read_prefix_multicast(reader, prefix)
        }
        (false, false) => read_unicast(reader, FIELD, None, mode, link.destination),
        (false, true) if mode != 0b00 => {
            let prefix = known(reader, link, FIELD, context)?;
            read_unicast(reader, FIELD, Some(prefix), mode, link.destination)
        }
        // RFC 6282 s3.1.1: these combinations are reserved.
        _ => Err(reader.error("destination address mode", Problem::Value)),
    }
}

/// The prefix of a context that the link has.
fn known(
    reader: &Reader<'_>,
    link: &Link<'_>,
    field: &'static str,
    context: u8,
) -> Result<[u8; 8], DecodeError> {
    link.contexts.prefix(context).ok_or_else(|| reader.error(field, Problem::Value))
}
