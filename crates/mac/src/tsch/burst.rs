//! Bursts: frames to one neighbour in slots that follow each other, on one channel
//! (IEEE 802.15.4-2015 s7.2.1.3, the Frame Pending field in TSCH).
//!
//! ```text
//!   sender    | frame, pending ... ack | frame, pending ... ack | frame ... ack |
//!   receiver  | cell                   | stays on               | stays on      |
//! ```
//! A frame whose sender has more for its receiver says so; once it is acknowledged, both use the next slot
//! again. The standard has the receiver stay unless it has a cell of its own there, which the sender cannot
//! know; here, as in Contiki-NG, the burst goes first on both sides. Its slots are not use of a cell.

use lowmesh_units::{Asn, Channel};

use super::cell::CellId;
use super::choice::Choice;

/// Bit of the first octet of a frame: more follows (s7.2.1.3).
const FRAME_PENDING: u8 = 1 << 4;

/// A frame that goes out in a slot, with its place in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) choice: Choice,
    pub(super) channel: Channel,
    /// Frames of its burst before this one.
    pub(super) follows: u8,
    /// It told its receiver to stay on.
    pub(super) pending: bool,
}

impl InFlight {
    /// The first, and perhaps only, frame of its cell.
    pub(super) const fn first(choice: Choice, channel: Channel) -> Self {
        Self { choice, channel, follows: 0, pending: false }
    }

    /// Marks `octets`, of which `waiting` frames to the same neighbour wait with it, when the next one may follow.
    pub(super) fn mark(&mut self, octets: &mut [u8], waiting: usize, frames_max: u8) {
        self.pending = waiting > 1 && self.follows + 1 < frames_max;
        if self.pending
            && let Some(control) = octets.first_mut()
        {
            *control |= FRAME_PENDING;
        }
    }
}

/// A slot that the frame before it claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    asn: Asn,
    channel: Channel,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Sends on, after `sent` frames.
    Sender { choice: Choice, sent: u8 },
    /// Stays on, for what began in `cell`.
    Receiver { cell: Option<CellId> },
}

impl Burst {
    /// At the sender, when `frame` was acknowledged in slot `asn`.
    pub(super) fn after(asn: Asn, frame: InFlight) -> Option<Self> {
        let side = Side::Sender { choice: frame.choice, sent: frame.follows + 1 };
        frame.pending.then_some(Self { asn: asn + 1, channel: frame.channel, side })
    }

    /// At the receiver, when a frame in slot `asn` said that more follow.
    pub(super) fn heard(asn: Asn, channel: Channel, cell: Option<CellId>) -> Self {
        Self { asn: asn + 1, channel, side: Side::Receiver { cell } }
    }

    /// What the sender goes on with in slot `asn`.
    pub(super) fn sends(self, asn: Asn) -> Option<InFlight> {
        match self.side {
            Side::Sender { choice, sent } if self.asn == asn => {
                Some(InFlight { follows: sent, ..InFlight::first(choice, self.channel) })
            }
            _ => None,
        }
    }

    /// Where the receiver listens in slot `asn`, and the cell in which the burst began.
    pub(super) fn listens(self, asn: Asn) -> Option<(Channel, Option<CellId>)> {
        match self.side {
            Side::Receiver { cell } if self.asn == asn => Some((self.channel, cell)),
            _ => None,
        }
    }

    /// The slot at or after `from` that it wants to send in, and the first one that it leaves free.
    pub(super) fn ahead(self, from: Asn) -> (Option<Asn>, Asn) {
        match self.side {
            _ if self.asn < from => (None, from),
            Side::Sender { .. } => (Some(self.asn), from),
            Side::Receiver { .. } => (None, self.asn + 1),
        }
    }
}
