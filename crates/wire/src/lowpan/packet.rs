//! A packet in a frame, in the form that the dispatch tells: with 6LoRH, with LOWPAN_IPHC alone, or as it is.

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use super::context::Contexts;
use super::decode::{Link, expand};
use super::encode::{Extent, Whole, compress_whole};
use super::routing::{compress_routed, decompress_routed};
use super::{DISPATCH_IPV6, DISPATCH_PAGE_1};
use crate::DecodeError;
use crate::ipv6::Header;

/// Compresses the headers of `packet` for a frame from `link_src` to `link_dst` (`None`: broadcast) into `out`.
///
/// A forwarder has only the beginning of a packet, what a first fragment brought; then `datagram_size` tells
/// how large the whole is. Returns the octets of `packet` that the compressed headers stand for, a multiple of
/// eight; what is behind them goes on the air as it is.
pub fn compress(
    packet: &[u8],
    link_src: Eui64,
    link_dst: Option<Eui64>,
    contexts: &Contexts,
    extent: Extent,
    datagram_size: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<usize, DecodeError> {
    let header = match datagram_size {
        None => Header::parse_packet(packet)?,
        Some(size) => Header::parse_beginning(packet, size)?,
    };
    let size = datagram_size.unwrap_or(packet.len());
    let whole = Whole { packet, size, header, is_inner: false };
    if extent == Extent::Routed
        && let Some(covered) = compress_routed(&whole, (link_src, link_dst), contexts, out)
    {
        return Ok(covered);
    }
    compress_whole(&whole, (link_src, link_dst), contexts, extent, out)
}

/// Decompresses a frame from `link_src` to `link_dst` (`None`: broadcast) and appends the IPv6 packet to `out`.
///
/// `frame` starts with the dispatch: LOWPAN_IPHC, IPv6, or page 1 with 6LoRH. For a first fragment, `datagram_size` tells how
/// large the whole packet will be; then what is appended is its beginning. On an error `out` is as before.
pub fn decompress(
    frame: &[u8],
    link_src: Eui64,
    link_dst: Option<Eui64>,
    contexts: &Contexts,
    datagram_size: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let start = out.len();
    let link = Link { source: link_src, destination: link_dst, contexts, is_inner: false };
    let result = if frame.first() == Some(&DISPATCH_IPV6) {
        copy(&frame[1..], datagram_size, out)
    } else if frame.first() == Some(&DISPATCH_PAGE_1) {
        decompress_routed(frame, &link, datagram_size, out)
    } else {
        expand(frame, &link, datagram_size, out)
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn copy(packet: &[u8], size: Option<usize>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    Header::parse_beginning(packet, size.unwrap_or(packet.len()))?;
    out.extend_from_slice(packet);
    Ok(())
}
