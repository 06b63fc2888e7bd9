//! Cells and slotframes as plain values.
//!
//! ```text
//!              slot 0   1   2   3   4   5 ...  length-1 | 0   1 ...
//!   handle 0   [shared]                                 | [shared]
//!   handle 1            [Rx]    [Tx→B]                  |     [Rx]
//! ```

use lowmesh_units::{Asn, Eui64};

/// What a cell may be used for (IEEE 802.15.4-2015 s8.4.3.3.1, macLinkOptions; also RFC 8480 s6.2.6 CellOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CellOptions(pub u8);

impl CellOptions {
    /// May send.
    pub const TX: Self = Self(1);
    /// Must listen.
    pub const RX: Self = Self(2);
    /// Others may send in it too: backoff applies.
    pub const SHARED: Self = Self(4);
    /// Frames in it may correct the clock.
    pub const TIMEKEEPING: Self = Self(8);

    /// All that this MAC knows.
    pub const ALL: Self = Self(15);

    /// The options of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// True when all options of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Why a cell exists; the scheduling function that put it there may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellKind {
    /// The shared cell of RFC 8180, for beacons and broadcast.
    Minimal,
    /// Derived from addresses without negotiation (RFC 9033 s3, Orchestra, ALICE).
    Autonomous,
    /// Agreed with the peer by 6P.
    Negotiated,
}

/// Where in the slotframe a cell lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Always at the same slot and channel offset.
    Fixed {
        /// Slot in the slotframe, below its length.
        slot: u16,
        /// Channel offset.
        channel_offset: u16,
    },
    /// Moves with each repetition of the slotframe (ALICE: hash of the link and the slotframe number).
    Hashed {
        /// The link's key.
        key: u64,
        /// Channel offsets used are 1 to this number (0 is left to the broadcast cell).
        channel_offsets: u16,
    },
}

impl Placement {
    /// Slot and channel offset in repetition `cycle` of a slotframe of `length` slots.
    pub fn at(self, cycle: u64, length: u16) -> (u16, u16) {
        match self {
            Self::Fixed { slot, channel_offset } => (slot, channel_offset),
            Self::Hashed { key, channel_offsets } => {
                hashed_place(key, cycle, length, channel_offsets)
            }
        }
    }
}

/// Slot and channel offset of a hashed cell: one 32-bit mix of (key, cycle), reduced twice.
fn hashed_place(key: u64, cycle: u64, length: u16, channel_offsets: u16) -> (u16, u16) {
    // The finaliser of MurmurHash3 (fmix64): ALICE asks for any hash that both ends share.
    let mut h = key ^ cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^= h >> 33;
    let slot = (h as u32 % u32::from(length.max(1))) as u16;
    let offset = ((h >> 32) as u32 % u32::from(channel_offsets.max(1))) as u16 + 1;
    (slot, offset)
}

/// Names a cell for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub u32);

/// What happened in a cell since it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CellUse {
    /// Frames sent, retries included.
    pub sent: u32,
    /// Frames sent to one node and acknowledged by it.
    pub acked: u32,
    /// Frames received (with a good checksum, whatever their destination).
    pub received: u32,
}

/// One cell of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// The slotframe it belongs to.
    pub slotframe: u8,
    /// Where it lies.
    pub placement: Placement,
    /// What it may be used for.
    pub options: CellOptions,
    /// Why it exists.
    pub kind: CellKind,
    /// The other end, or anyone.
    pub peer: Option<Eui64>,
    /// First slot in which it exists.
    pub since: Asn,
    /// What happened in it.
    pub used: CellUse,
}

/// A slotframe: its priority is its handle, 0 first (IEEE 802.15.4-2015 s6.2.6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slotframe {
    /// Its name and priority.
    pub handle: u8,
    /// Slots in one repetition.
    pub length: u16,
}

impl Slotframe {
    /// Which repetition `asn` lies in, and the slot in it.
    pub const fn split(self, asn: Asn) -> (u64, u16) {
        (asn.0 / self.length as u64, (asn.0 % self.length as u64) as u16)
    }
}

impl Cell {
    /// True when it is there for beacons alone: to everyone, and shared with nobody.
    pub fn is_for_beacons(&self) -> bool {
        self.peer.is_none()
            && self.options.has(CellOptions::TX)
            && !self.options.has(CellOptions::SHARED)
    }
    /// True when frames to `peer` may be sent in it and nobody else shares it.
    pub fn is_dedicated_tx(&self, peer: Eui64) -> bool {
        self.peer == Some(peer)
            && self.options.has(CellOptions::TX)
            && !self.options.has(CellOptions::SHARED)
    }
}

/// What a scheduling function says of a cell that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSpec {
    /// The slotframe to put it in.
    pub slotframe: u8,
    /// Where it lies.
    pub placement: Placement,
    /// What it may be used for.
    pub options: CellOptions,
    /// Why it exists.
    pub kind: CellKind,
    /// The other end, or anyone.
    pub peer: Option<Eui64>,
}
