//! One datagram that is forwarded fragment by fragment (RFC 8930 s5).
//!
//! A forwarder remembers which octets went on, so that the datagram's end is known and no octet goes on
//! twice: a copy, or a fragment that contradicts an earlier one, ends here.

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_units::Eui64;
use lowmesh_wire::DecodeError;
use lowmesh_wire::lowpan::fragment::{
    DATAGRAM_SIZE_MAX, FIRST_OCTETS, FragmentHeader, NEXT_OCTETS, OFFSET_UNIT,
};
use lowmesh_wire::lowpan::{Contexts, Extent};

use crate::compress::{Link, first_headers};

/// Units of eight octets in the largest datagram, and the words of 64 bits that mark them.
const UNITS_MAX: usize = DATAGRAM_SIZE_MAX.div_ceil(OFFSET_UNIT);
const WORDS: usize = UNITS_MAX.div_ceil(64);

/// A datagram on its way through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransitDatagram {
    /// Octets of the whole datagram before compression, as it comes.
    pub datagram_size: u16,
    /// Octets that it is shorter by as it goes on: with 6LoRH an entry of its source route is consumed here (RFC 8138 s5.5).
    pub shrink: u16,
    /// Fragments handed to the MAC and not yet confirmed.
    pub in_flight: usize,
    /// Why the first of them was lost that was.
    pub lost: Option<DropReason>,
    /// One bit for each unit of eight octets that went on.
    passed: [u64; WORDS],
}

impl TransitDatagram {
    pub const fn new(datagram_size: u16) -> Self {
        Self { datagram_size, shrink: 0, in_flight: 0, lost: None, passed: [0; WORDS] }
    }

    /// Marks the octets of a fragment; false when it is not one of this datagram's, or some of it went on before.
    pub fn claim(&mut self, offset: usize, octets: usize) -> bool {
        let size = usize::from(self.datagram_size);
        let end = offset + octets;
        // RFC 4944 s5.3: all fragments but the last are multiples of eight octets long.
        if octets == 0 || end > size || (end < size && !octets.is_multiple_of(OFFSET_UNIT)) {
            return false;
        }
        let units = offset / OFFSET_UNIT..end.div_ceil(OFFSET_UNIT);
        if units.clone().any(|unit| self.passed[unit / 64] & 1 << (unit % 64) != 0) {
            return false;
        }
        for unit in units {
            self.passed[unit / 64] |= 1 << (unit % 64);
        }
        true
    }

    /// True when every octet went on.
    pub fn is_complete(&self) -> bool {
        let passed: u32 = self.passed.iter().map(|word| word.count_ones()).sum();
        passed as usize == usize::from(self.datagram_size).div_ceil(OFFSET_UNIT)
    }
}

/// The link over which a datagram goes on.
pub(crate) struct Onward<'a> {
    pub here: Eui64,
    pub next_hop: Eui64,
    pub tag: u16,
    pub contexts: &'a Contexts,
    /// The form in which the datagram came.
    pub extent: Extent,
    /// Octets that a frame has for 6LoWPAN.
    pub frame_payload: usize,
}

/// The frames in which `beginning`, the decompressed first fragment of a datagram of `size` octets, goes on.
///
/// One frame if the headers did not grow too much; else they go alone, and what was behind them follows in a
/// fragment of its own (the mode `minimal first fragment` of RFC 8930 s5.1). `None`: no frame can hold them.
pub(crate) fn first_frames(
    beginning: &[u8],
    size: u16,
    link: &Onward<'_>,
) -> Result<Option<Vec<Vec<u8>>>, DecodeError> {
    let &Onward { here, next_hop, tag, contexts, extent, frame_payload } = link;
    let datagram_size = Some(usize::from(size));
    let link = Link { source: here, destination: Some(next_hop), contexts };
    let Some((headers, covered)) =
        first_headers(beginning, link, extent, datagram_size, frame_payload)?
    else {
        return Ok(None);
    };
    let header = |offset: usize| FragmentHeader {
        datagram_size: size,
        datagram_tag: tag,
        offset: offset as u16,
    };
    let rest = &beginning[covered..];
    let whole = FIRST_OCTETS + headers.len() + rest.len();
    let mut frames = Vec::with_capacity(1);
    let mut first = Vec::with_capacity(whole.min(frame_payload));
    header(0).emit(&mut first);
    first.extend_from_slice(&headers);
    if whole <= frame_payload {
        first.extend_from_slice(rest);
        frames.push(first);
        return Ok(Some(frames));
    }
    frames.push(first);
    let room = (frame_payload - NEXT_OCTETS) / OFFSET_UNIT * OFFSET_UNIT;
    for (index, data) in rest.chunks(room).enumerate() {
        let mut next = Vec::with_capacity(NEXT_OCTETS + data.len());
        header(covered + index * room).emit(&mut next);
        next.extend_from_slice(data);
        frames.push(next);
    }
    Ok(Some(frames))
}

/// The frame of a later fragment under the tag of the next link, on which the datagram is `shrink` octets shorter.
pub(crate) fn next_frame(header: FragmentHeader, data: &[u8], tag: u16, shrink: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(NEXT_OCTETS + data.len());
    // What went away stood in the first fragment, so every later one begins behind it.
    let FragmentHeader { datagram_size, offset, .. } = header;
    let (datagram_size, offset) = (datagram_size - shrink, offset - shrink);
    FragmentHeader { datagram_size, datagram_tag: tag, offset }.emit(&mut frame);
    frame.extend_from_slice(data);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_forwarded_when_every_octet_went_on_once() {
        let mut transit = TransitDatagram::new(203);
        assert!(transit.claim(48, 96));
        assert!(transit.claim(0, 48));
        assert!(!transit.is_complete());
        assert!(transit.claim(144, 59));
        assert!(transit.is_complete());
    }

    #[test]
    fn no_octet_goes_on_twice() {
        let mut transit = TransitDatagram::new(203);
        assert!(transit.claim(48, 96));
        for (offset, octets) in [(48, 96), (48, 8), (136, 16), (0, 56), (136, 67)] {
            assert!(!transit.claim(offset, octets), "{octets} octets at {offset}");
        }
        assert!(transit.claim(0, 48) && transit.claim(144, 59));
    }

    #[test]
    fn what_does_not_fit_into_the_datagram_does_not_go_on() {
        let mut transit = TransitDatagram::new(203);
        for (offset, octets) in [(0, 0), (0, 50), (96, 108), (200, 8), (2040, 8)] {
            assert!(!transit.claim(offset, octets), "{octets} octets at {offset}");
        }
        assert_eq!(transit, TransitDatagram::new(203));
    }

    #[test]
    fn the_largest_datagram_has_a_mark_for_its_last_octet() {
        let mut transit = TransitDatagram::new(DATAGRAM_SIZE_MAX as u16);
        assert!(transit.claim(2040, 7) && transit.claim(0, 2040));
        assert!(transit.is_complete());
    }
}
