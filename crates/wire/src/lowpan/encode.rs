//! The compressor: an IPv6 packet's headers as LOWPAN_IPHC and LOWPAN_NHC (RFC 6282 s3, s4).
//!
//! ```text
//! |0 1 1| TF |NH| HLIM |CID|SAC| SAM |M|DAC| DAM |   then SCI DCI, traffic class and flow label,
//!                                                    next header, hop limit, source, destination
//! ```

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use super::nhc::Compressible;
use super::prefix::Shortened;
use super::{Contexts, DISPATCH_PAGE_1};
use crate::DecodeError;
use crate::ipv6::{HEADER_OCTETS, Header};

/// LOWPAN_IPHC's dispatch and fields in the first octet.
pub(super) const IPHC_ID: u8 = 0b0110_0000;
pub(super) const NEXT_HEADER_COMPRESSED: u8 = 0b0000_0100;
/// LOWPAN_IPHC's fields in the second octet.
pub(super) const CONTEXT_OCTET: u8 = 0b1000_0000;
pub(super) const SOURCE_STATEFUL: u8 = 0b0100_0000;
pub(super) const MULTICAST: u8 = 0b0000_1000;
pub(super) const DESTINATION_STATEFUL: u8 = 0b0000_0100;

/// How many headers of a packet are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those of RPL with 6LoRH (RFC 8138) if that can say them, and all behind them as in `Chain`.
    Routed,
    /// The IPv6 header and all headers behind it that LOWPAN_NHC knows.
    Chain,
    /// Only the IPv6 header: for packets whose compressed chain does not fit into a first fragment.
    Ipv6Only,
}

impl Extent {
    /// The form of a packet whose compressed headers are `frame`, in which a forwarder passes it on (RFC 9035 s4).
    pub fn of(frame: &[u8]) -> Self {
        if frame.first() == Some(&DISPATCH_PAGE_1) { Self::Routed } else { Self::Chain }
    }
}

/// A packet in a frame, or in another packet.
pub(super) struct Whole<'a> {
    /// The packet or its beginning.
    pub packet: &'a [u8],
    /// How large the whole is.
    pub size: usize,
    pub header: Header,
    pub is_inner: bool,
}

pub(super) fn compress_whole(
    whole: &Whole<'_>,
    (link_src, link_dst): (Eui64, Option<Eui64>),
    contexts: &Contexts,
    extent: Extent,
    out: &mut Vec<u8>,
) -> Result<usize, DecodeError> {
    let &Whole { packet, size, ref header, is_inner } = whole;
    // One packet in another is enough for tunnels; the decompressor takes no more either.
    let allowed = |next: &Compressible<'_>| !is_inner || !matches!(next, Compressible::Packet(_));
    let first = match extent {
        Extent::Routed | Extent::Chain => {
            Compressible::find(packet, size, header.next_header, HEADER_OCTETS)
        }
        Extent::Ipv6Only => None,
    };
    let mut next = first.filter(allowed);
    emit_iphc(header, next.is_some(), link_src, link_dst, contexts, out);
    let mut covered = HEADER_OCTETS;
    while let Some(this) = next {
        next = this.next(packet, size).filter(allowed);
        covered += this.emit(next.is_some(), out);
        if let Compressible::Packet(inner) = this {
            let size = size - covered;
            let header_of_inner = Header::parse_beginning(inner, size)?;
            let inner = Whole { packet: inner, size, header: header_of_inner, is_inner: true };
            covered += compress_whole(&inner, link_of(header), contexts, extent, out)?;
        }
    }
    Ok(covered)
}

/// The addresses that stand for those of a frame in an inner packet: of the encapsulating header (RFC 6282 s3.2.2).
pub(super) fn link_of(outer: &Header) -> (Eui64, Option<Eui64>) {
    let Header { source, destination, .. } = outer;
    (source.eui64(), (!destination.is_multicast()).then(|| destination.eui64()))
}

fn emit_iphc(
    header: &Header,
    next_compressed: bool,
    link_src: Eui64,
    link_dst: Option<Eui64>,
    contexts: &Contexts,
    out: &mut Vec<u8>,
) {
    let group = header.destination.is_multicast();
    let source = Shortened::source(&header.source, link_src, contexts);
    let destination = if group {
        Shortened::multicast(&header.destination, contexts)
    } else {
        Shortened::unicast(&header.destination, link_dst, contexts)
    };
    // RFC 6282 s3.1.1: without the extra octet both contexts are number 0.
    let context_octet = source.context != 0 || destination.context != 0;
    let limit = hop_limit_mode(header.hop_limit);
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };

    let at = out.len();
    out.extend_from_slice(&[
        IPHC_ID | flag(next_compressed, NEXT_HEADER_COMPRESSED) | limit,
        flag(context_octet, CONTEXT_OCTET)
            | flag(source.stateful, SOURCE_STATEFUL)
            | source.mode << 4
            | flag(group, MULTICAST)
            | flag(destination.stateful, DESTINATION_STATEFUL)
            | destination.mode,
    ]);
    if context_octet {
        out.push(source.context << 4 | destination.context);
    }
    out[at] |= emit_traffic_class(header, out) << 3;
    if !next_compressed {
        out.push(header.next_header);
    }
    if limit == 0 {
        out.push(header.hop_limit);
    }
    source.emit_inline(out);
    destination.emit_inline(out);
}

/// HLIM: hop limits that need no octet.
const fn hop_limit_mode(hop_limit: u8) -> u8 {
    match hop_limit {
        1 => 0b01,
        64 => 0b10,
        255 => 0b11,
        _ => 0b00,
    }
}

/// Writes traffic class and flow label as short as they allow and returns TF.
fn emit_traffic_class(header: &Header, out: &mut Vec<u8>) -> u8 {
    // RFC 6282 s3.2.1: here ECN comes first, in IPv6 it is behind the DSCP.
    let ecn_dscp = header.traffic_class.rotate_right(2);
    let [_, high, middle, low] = header.flow_label.to_be_bytes();
    match (ecn_dscp, header.flow_label) {
        (0, 0) => 0b11,
        (_, 0) => {
            out.push(ecn_dscp);
            0b10
        }
        (ecn, _) if ecn.trailing_zeros() >= 6 => {
            out.extend_from_slice(&[ecn | high, middle, low]);
            0b01
        }
        _ => {
            out.extend_from_slice(&[ecn_dscp, high, middle, low]);
            0b00
        }
    }
}
