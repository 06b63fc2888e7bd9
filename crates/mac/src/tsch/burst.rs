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

use lowmesh_units::{Asn, Channel, Eui64};

use super::cell::{CellId, CellOptions};
use super::choice::{Choice, Traffic};
use super::machine::Tsch;
use crate::params::RX_WAIT;

/// Bit of the first octet of a frame: more follows (s7.2.1.3).
const FRAME_PENDING: u8 = 1 << 4;

/// A slot that the frame before it claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    asn: Asn,
    channel: Channel,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Sends to `peer`, after `sent` frames.
    Sender { choice: Choice, sent: u8 },
    /// Stays on, for what began in `cell`.
    Receiver { cell: Option<CellId> },
}

/// What [`Tsch::transmit`] sent and [`Tsch::finish`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) choice: Choice,
    pub(super) channel: Channel,
    /// Frames of its burst before this one.
    pub(super) follows: u8,
    /// It told its receiver to stay on.
    pub(super) pending: bool,
}

impl Tsch {
    /// What goes out in slot `asn`: the rest of a burst, or what the schedule says.
    pub(super) fn departure(&mut self, asn: Asn) -> Option<InFlight> {
        if let Some(Burst { asn: at, channel, side: Side::Sender { choice, sent } }) =
            self.burst.take()
            && at == asn
            && let Traffic::Unicast(peer) = choice.traffic
            && self.queues.get(Some(peer)).is_some_and(|queue| !queue.is_empty())
        {
            return Some(InFlight { choice, channel, follows: sent, pending: false });
        }
        let choice = self.situation().choose(asn)?;
        let channel = self.config.hopping.channel(asn, choice.channel_offset);
        Some(InFlight { choice, channel, follows: 0, pending: false })
    }

    /// Marks the copy for `peer` when the next frame may follow at once.
    pub(super) fn mark_pending(&self, peer: Eui64, follows: u8, octets: &mut [u8]) -> bool {
        let more = self.queues.get(Some(peer)).is_some_and(|queue| queue.len() > 1);
        let pending = more && follows + 1 < self.config.burst_frames_max;
        if pending && let Some(control) = octets.first_mut() {
            *control |= FRAME_PENDING;
        }
        pending
    }

    /// The frame of slot `asn` was acknowledged: the next slot is its successor's.
    pub(super) fn go_on(&mut self, asn: Asn, sent: InFlight) {
        if sent.pending {
            let side = Side::Sender { choice: sent.choice, sent: sent.follows + 1 };
            self.burst = Some(Burst { asn: asn + 1, channel: sent.channel, side });
        }
    }

    /// A frame for this node in slot `asn` said that more follow.
    pub(super) fn stay_on(&mut self, asn: Asn, channel: Channel, cell: Option<CellId>) {
        let scheduled = self.schedule.at(asn + 1).any(|(c, _)| c.options.has(CellOptions::RX));
        if !scheduled {
            self.time.rx += RX_WAIT;
        }
        self.burst = Some(Burst { asn: asn + 1, channel, side: Side::Receiver { cell } });
    }

    /// Where this node listens in slot `asn` for the rest of a burst, and the cell in which that began.
    pub(super) fn burst_heard(&self, asn: Asn) -> Option<(Channel, Option<CellId>)> {
        match self.burst {
            Some(Burst { asn: at, channel, side: Side::Receiver { cell } }) if at == asn => {
                Some((channel, cell))
            }
            _ => None,
        }
    }

    /// The next slot to send in because of a burst, and the first one that a burst leaves free.
    pub(super) fn burst_ahead(&self) -> (Option<Asn>, Asn) {
        match self.burst {
            Some(Burst { asn, side, .. }) if asn >= self.next_slot => match side {
                Side::Sender { .. } => (Some(asn), self.next_slot),
                Side::Receiver { .. } => (None, asn + 1),
            },
            _ => (None, self.next_slot),
        }
    }
}
