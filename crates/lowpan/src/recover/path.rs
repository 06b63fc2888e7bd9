//! The path of a datagram through a forwarder: what its fragments look like on the next link, and what is
//! remembered beside the two labels (RFC 8931 s4.4, s6.1).
//!
//! ```text
//!   fragment          (link source, tag)  ->  (next hop, our tag), offset + shift
//!   acknowledgement   (link source, its tag) <- (next hop, our tag)
//! ```

use alloc::vec::Vec;

use lowmesh_units::Eui64;
use lowmesh_wire::lowpan::DISPATCH_IPV6;
use lowmesh_wire::lowpan::rfrag::{Part, RFRAG_OCTETS, Rfrag};
use lowmesh_wire::lowpan::{Contexts, Extent, compress, decompress};

/// What a forwarder remembers of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Octets that the compressed headers grew by on this node: what all later offsets grow by.
    pub shift: i32,
    /// The other end has all of it; what comes now is a copy whose acknowledgement was lost.
    pub is_complete: bool,
}

/// The link over which a fragment came, or goes on.
#[derive(Clone, Copy)]
pub(crate) struct Link<'a> {
    pub source: Eui64,
    pub destination: Eui64,
    pub contexts: &'a Contexts,
}

/// The beginning of a packet out of the first fragment of its compressed form, and the size of the packet.
pub(crate) fn beginning(header: &Rfrag, data: &[u8], link: Link<'_>) -> Option<(Vec<u8>, usize)> {
    let Part::First { datagram_size } = header.part else { return None };
    let decompressed = |size: Option<usize>| {
        let mut bytes = Vec::with_capacity(data.len() + 64);
        let Link { source, destination, contexts } = link;
        decompress(data, source, Some(destination), contexts, size, &mut bytes).ok()?;
        Some(bytes)
    };
    // RFC 8931 s5.1 counts the compressed form: the headers, which are all in this fragment, tell by how much the
    // packet is longer.
    let size = if data.first() == Some(&DISPATCH_IPV6) {
        usize::from(datagram_size) - 1
    } else {
        usize::from(datagram_size) + decompressed(None)?.len() - data.len()
    };
    Some((decompressed(Some(size))?, size))
}

/// The first fragment as it goes on over `link` under `tag`, of a packet of `size` octets in the form `extent` that
/// begins with `beginning`; and by how much it grew. `None`: a frame of `frame_payload` octets cannot hold it.
pub(crate) fn first_onward(
    header: &Rfrag,
    beginning: &[u8],
    (size, extent): (usize, Extent),
    tag: u8,
    link: Link<'_>,
    frame_payload: usize,
) -> Option<(Vec<u8>, i32)> {
    let Part::First { datagram_size } = header.part else { return None };
    let Link { source, destination, contexts } = link;
    let mut data = Vec::with_capacity(frame_payload);
    let covered =
        compress(beginning, source, Some(destination), contexts, extent, Some(size), &mut data)
            .ok()?;
    data.extend_from_slice(&beginning[covered..]);
    let fragment_size = data.len() as u16;
    let shift = i32::from(fragment_size) - i32::from(header.fragment_size);
    // RFC 8931 s4.4: the node MUST adapt the datagram size, and save the difference for later offsets.
    let datagram_size = u16::try_from(i32::from(datagram_size) + shift).ok()?;
    let fits = RFRAG_OCTETS + data.len() <= frame_payload;
    let part = Part::First { datagram_size };
    fits.then(|| {
        (frame(&Rfrag { datagram_tag: tag, fragment_size, part, ..*header }, &data), shift)
    })
}

/// A later fragment, or an abort, as it goes on under `tag`; `None` when its offset is not one of this datagram's.
pub(crate) fn next_onward(header: &Rfrag, data: &[u8], tag: u8, shift: i32) -> Option<Vec<u8>> {
    let part = match header.part {
        Part::Next { sequence, offset } => {
            let offset = u16::try_from(i32::from(offset) + shift).ok().filter(|to| *to > 0)?;
            Part::Next { sequence, offset }
        }
        other => other,
    };
    Some(frame(&Rfrag { datagram_tag: tag, part, ..*header }, data))
}

/// A header with its fragment behind it.
pub(crate) fn frame(header: &Rfrag, data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(RFRAG_OCTETS + data.len());
    header.emit(&mut frame);
    frame.extend_from_slice(data);
    frame
}
