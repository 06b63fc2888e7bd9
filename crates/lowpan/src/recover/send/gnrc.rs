//! The fragmenting end of GNRC, where it does otherwise (`gnrc_sixlowpan_frag_sfr.c`).
//!
//! It has one list of the fragments that were sent and are not acknowledged, never longer than the window. What a
//! shrinking window no longer holds is taken off at its end, as if it had never been sent; what stays counts as on
//! its way. Only the last of the list asks for an acknowledgement.

use lowmesh_units::Instant;

use super::Sending;
use crate::recover::pieces::Fate;

impl Sending {
    /// After a timeout. False when the fragment that asked is taken off (`_shrink_window`): the others are not sent
    /// again unasked, and the packet is given up.
    pub(super) fn keep_window(&mut self, asked: usize, now: Instant) -> bool {
        let mut room = self.window.snapshot().window;
        let mut keeps_asked = false;
        for (sequence, piece) in self.pieces.iter_mut().enumerate() {
            let Some(sent) = piece.unsettled() else { continue };
            if room == 0 {
                (piece.copies, piece.fate) = (0, Fate::Due);
                continue;
            }
            room -= 1;
            if sequence == asked {
                keeps_asked = true;
            } else {
                piece.fate = Fate::Sent(sent);
                self.window.on_sent(1, now);
            }
        }
        keeps_asked
    }

    /// After losses: of what has to be sent again, the window keeps its own length.
    pub(super) fn take_back_lost(&mut self) {
        let room = self.window.snapshot().window as usize;
        let lost =
            self.pieces.iter_mut().filter(|piece| piece.fate == Fate::Due && piece.copies > 0);
        for piece in lost.skip(room) {
            piece.copies = 0;
        }
    }
}
