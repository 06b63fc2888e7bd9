//! 6LoRH: what RPL adds to a packet, in front of its LOWPAN_IPHC (RFC 8138).
//!
//! ```text
//!   1 1 1 1 0 0 0 1 | SRH-6LoRH ... | RPI-6LoRH | IP-in-IP-6LoRH | LOWPAN_IPHC | ...
//!   page 1 (RFC 8025)  hops of a route  RPL option  outer header     final destination
//! ```
//!
//! - `outline`: the headers that RPL adds to a packet, as values, and as the octets of an IPv6 packet.
//! - `headers`: these values as 6LoRH and back.
//! - `path`: the hops of a source route in entries of 1 to 16 octets.
//! - [`without_visited`]: consumes the entries that 6LoRH does not carry.
//!
//! A packet that 6LoRH would change has LOWPAN_IPHC and LOWPAN_NHC alone. Whether a node may use 6LoRH is left to the
//! layers above: the root says so in its DODAG Configuration (RFC 9035).

mod headers;
mod outline;
mod path;
#[cfg(test)]
mod tests;
mod visited;

use alloc::vec::Vec;

use self::outline::Outline;
use super::context::Contexts;
use super::decode::{Link, expand, peek_header};
use super::encode::{Whole, compress_whole};
use crate::ipv6::Header;
use crate::{DecodeError, Problem, Reader};

pub use visited::without_visited;

/// Writes `whole` with 6LoRH and returns the octets of the packet that the headers stand for; `None`, and nothing
/// written, when the packet has no header for it or would not come back as it is.
pub(super) fn compress_routed(
    whole: &Whole<'_>,
    link: (lowmesh_units::Eui64, Option<lowmesh_units::Eui64>),
    contexts: &Contexts,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let context = contexts.routing();
    let (outline, behind) = Outline::of_packet(whole, context)?;
    let rest = outline.rest(whole.packet, &behind);
    let mut again = Vec::with_capacity(whole.packet.len());
    outline.emit(&rest, context, &mut again)?;
    if again != whole.packet {
        return None;
    }
    let removed = whole.packet.len() - rest.len();
    let size = whole.size - removed;
    let header = Header::parse_beginning(&rest, size).ok()?;
    let link = outline.tunnel.as_ref().map_or(link, |tunnel| tunnel.link(&outline.path, context));
    let start = out.len();
    headers::emit(&outline, &header.source, context, out)?;
    let inner = Whole { packet: &rest, size, header, is_inner: outline.tunnel.is_some() };
    let covered = compress_whole(&inner, link, contexts, super::Extent::Chain, out);
    if covered.is_err() {
        out.truncate(start);
    }
    covered.ok().map(|covered| covered + removed)
}

/// Reads a frame that begins with the dispatch of page 1, and appends the packet to `out`.
pub(super) fn decompress_routed(
    frame: &[u8],
    link: &Link<'_>,
    datagram_size: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new("6LoRH", frame);
    let chain = headers::read(&mut reader)?;
    let context = link.contexts.routing();
    let tunnel = chain.tunnel(&reader, context)?;
    // The destination of a tunnel is the last hop of its route, and both ends serve as the addresses of the link.
    let ends = match &tunnel {
        Some(tunnel) => {
            let path = chain.path(&tunnel.source, &reader)?;
            tunnel.link(&path, context)
        }
        None => (link.source, link.destination),
    };
    let inner = Link {
        source: ends.0,
        destination: ends.1,
        contexts: link.contexts,
        is_inner: tunnel.is_some(),
    };
    let first = peek_header(reader, &inner)?;
    let reference = tunnel.as_ref().map_or(first.source, |tunnel| tunnel.source);
    let path = chain.path(&reference, &reader)?;
    let outline = Outline { option: chain.option(context), tunnel, path };
    let added = outline.added_octets(&first.destination, context);
    let too_long = || reader.error("datagram_size", Problem::Length);
    let size =
        datagram_size.map(|size| size.checked_sub(added).ok_or_else(too_long)).transpose()?;
    let mut rest = Vec::with_capacity(frame.len() + 64);
    expand(reader.rest(), &inner, size, &mut rest)?;
    outline.emit(&rest, context, out).ok_or_else(|| reader.error("path", Problem::Length))
}
