//! From an IPv6 packet to what goes on the air: one frame, or a first fragment with more behind it.

use alloc::vec::Vec;

use lowmesh_units::Eui64;
use lowmesh_wire::DecodeError;
use lowmesh_wire::lowpan::fragment::FIRST_OCTETS;
use lowmesh_wire::lowpan::{Contexts, Extent, compress};

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
    /// The headers alone are larger than a frame.
    TooLarge,
}

/// Compresses `packet` for a frame from `source` to `destination` that has room for `frame_payload` octets.
pub(crate) fn form(
    packet: &[u8],
    source: Eui64,
    destination: Option<Eui64>,
    contexts: &Contexts,
    frame_payload: usize,
) -> Result<Form, DecodeError> {
    let mut headers = Vec::with_capacity(packet.len());
    let mut covered =
        compress(packet, source, destination, contexts, Extent::Chain, None, &mut headers)?;
    if headers.len() + packet.len() - covered <= frame_payload {
        headers.extend_from_slice(&packet[covered..]);
        return Ok(Form::Whole(headers));
    }
    if headers.len() + FIRST_OCTETS > frame_payload {
        // RFC 6282 s2: a header that does not fit into the first fragment is not compressed.
        headers.clear();
        covered =
            compress(packet, source, destination, contexts, Extent::Ipv6Only, None, &mut headers)?;
        if headers.len() + FIRST_OCTETS > frame_payload {
            return Ok(Form::TooLarge);
        }
    }
    Ok(Form::Fragments { headers, covered })
}
