//! From an IPv6 packet to what goes on the air: one frame, or a first fragment with more behind it.

use alloc::vec::Vec;

use lowmesh_units::Eui64;
use lowmesh_wire::DecodeError;
use lowmesh_wire::ipv6::Header;
use lowmesh_wire::lowpan::fragment::FIRST_OCTETS;
use lowmesh_wire::lowpan::rfrag::RFRAG_OCTETS;
use lowmesh_wire::lowpan::{Contexts, Extent, compress, without_visited};

use crate::params::FragmentMode;

/// How a packet leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In one frame, ready to send.
    Whole(Vec<u8>),
    /// In fragments, of which the first starts with `headers`.
    Fragments {
        /// Compressed headers.
        headers: Vec<u8>,
        /// Octets of the packet that they stand for.
        covered: usize,
    },
    /// The headers alone are larger than a frame, or this mode has no fragments.
    TooLarge,
}

/// A link over which packets go.
#[derive(Clone, Copy)]
pub(crate) struct Link<'a> {
    pub source: Eui64,
    /// `None`: a broadcast.
    pub destination: Option<Eui64>,
    pub contexts: &'a Contexts,
}

impl Link<'_> {
    /// Appends the compressed headers of a packet, or of the beginning of one of `size` octets, and returns the octets
    /// that they stand for.
    pub fn compress(
        &self,
        packet: &[u8],
        extent: Extent,
        size: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecodeError> {
        let &Self { source, destination, contexts } = self;
        compress(packet, source, destination, contexts, extent, size, out)
    }
}

/// The packet as the other end of a link will have it: in the form of 6LoRH without the entries of its source route that
/// are consumed. A size or an offset of fragments refers to this one.
pub(crate) fn settled(packet: Vec<u8>, extent: Extent) -> Vec<u8> {
    let shorter = if extent == Extent::Routed { without_visited(&packet) } else { None };
    shorter.unwrap_or(packet)
}

/// Compresses `packet` for a frame over `link` that has room for `frame_payload` octets.
pub(crate) fn form(
    packet: &[u8],
    link: Link<'_>,
    extent: Extent,
    mode: FragmentMode,
    frame_payload: usize,
) -> Result<Form, DecodeError> {
    let mut headers = Vec::with_capacity(packet.len());
    let covered = link.compress(packet, extent, None, &mut headers)?;
    let octets = headers.len() + packet.len() - covered;
    let grows = covered < packet.len() && may_outgrow_a_frame(packet, octets, mode, frame_payload);
    if octets <= frame_payload && !grows {
        headers.extend_from_slice(&packet[covered..]);
        return Ok(Form::Whole(headers));
    }
    if mode == FragmentMode::EndToEnd {
        return Ok(Form::TooLarge);
    }
    if headers.len() + FIRST_OCTETS <= frame_payload {
        return Ok(Form::Fragments { headers, covered });
    }
    let headers = first_headers(packet, link, extent, None, frame_payload)?;
    Ok(headers.map_or(Form::TooLarge, |(headers, covered)| Form::Fragments { headers, covered }))
}

/// True when ways FF and SFR send a packet of `octets` after compression in fragments although it fits into the
/// first link's frame.
///
/// Every further link may compress it less. In fragments forwarders have room for that; a whole frame they would have
/// to cut. Mode FF allows for no compression at all, since only its first fragment can grow, which has headers alone (RFC
/// 8930 s5.1); mode SFR needs the room of a fragment's header. RIOT does both.
fn may_outgrow_a_frame(
    packet: &[u8],
    octets: usize,
    mode: FragmentMode,
    frame_payload: usize,
) -> bool {
    let outgrows = match mode {
        FragmentMode::Forwarded => packet.len() > frame_payload,
        FragmentMode::Recovered => octets + RFRAG_OCTETS > frame_payload,
        FragmentMode::HopWise | FragmentMode::EndToEnd => false,
    };
    outgrows
        && Header::parse(packet).is_ok_and(|header| {
            !header.destination.is_link_local() && !header.destination.is_multicast()
        })
}

/// The compressed headers of a first fragment and the octets of `beginning` that they stand for; `None` when
/// no frame can hold them.
pub(crate) fn first_headers(
    beginning: &[u8],
    link: Link<'_>,
    extent: Extent,
    datagram_size: Option<usize>,
    frame_payload: usize,
) -> Result<Option<(Vec<u8>, usize)>, DecodeError> {
    let mut headers = Vec::with_capacity(frame_payload);
    for extent in [extent, Extent::Ipv6Only] {
        // RFC 6282 s2: a header that does not fit into the first fragment is not compressed.
        headers.clear();
        let covered = link.compress(beginning, extent, datagram_size, &mut headers)?;
        if headers.len() + FIRST_OCTETS <= frame_payload {
            return Ok(Some((headers, covered)));
        }
    }
    Ok(None)
}
