//! The fragments that a datagram is cut into, and what is known of each.

use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::lowpan::rfrag::FRAGMENTS_MAX;

use crate::params::FIRST_FRAGMENT_SLACK;

/// What is known about a fragment. `Sent` and `Silent` tell when its latest copy left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// To be sent: for the first time, or again.
    Due,
    /// On its way.
    Sent(Instant),
    /// Nothing came back for a whole timeout; the next acknowledgement tells.
    Silent(Instant),
    /// The other end has it.
    Received,
}

/// One fragment of the datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub offset: u16,
    pub size: u16,
    pub copies: u16,
    /// Which of all copies that left was its latest.
    pub order: u32,
    pub fate: Fate,
}

impl Piece {
    /// When the latest copy left, while nothing is known of it.
    pub const fn unsettled(&self) -> Option<Instant> {
        match self.fate {
            Fate::Sent(at) | Fate::Silent(at) => Some(at),
            Fate::Due | Fate::Received => None,
        }
    }
}

/// Cuts a datagram of `size` octets. The first fragment leaves room for headers that grow on the path
/// (RFC 8931 s4.1).
pub(super) fn cut(size: usize, room: usize) -> Option<Vec<Piece>> {
    let slack = if size <= room { 0 } else { FIRST_FRAGMENT_SLACK };
    let first = room.checked_sub(slack).filter(|first| *first > 0)?.min(size);
    let count = 1 + (size - first).div_ceil(room);
    if count > FRAGMENTS_MAX || size == 0 {
        return None;
    }
    let piece = |sequence: usize| {
        let offset = if sequence == 0 { 0 } else { first + (sequence - 1) * room };
        let end = (first + sequence * room).min(size);
        let (offset, size) = (offset as u16, (end - offset) as u16);
        Piece { offset, size, copies: 0, order: 0, fate: Fate::Due }
    };
    Some((0..count).map(piece).collect())
}
