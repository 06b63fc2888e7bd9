//! What was sent and is not acknowledged, with the counts that loss recovery needs.

use alloc::collections::VecDeque;

use lowmesh_congestion::Message;
use lowmesh_units::Instant;

use crate::rate::Stamp;

/// One segment that is not acknowledged; positions count from the SYN, which is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) start: i64,
    /// Behind the last octet, or behind the FIN.
    pub(super) end: i64,
    pub(super) fin: bool,
    /// When the latest copy left.
    pub(super) left: Instant,
    pub(super) stamp: Option<Stamp>,
    pub(super) is_lost: bool,
    /// A copy is on its way.
    pub(super) is_retransmitted: bool,
    pub(super) was_retransmitted: bool,
    pub(super) is_sacked: bool,
    /// The window counts it as on its way.
    pub(super) is_counted: bool,
}

impl Sent {
    pub(super) const fn message(&self) -> Message {
        Message { size: 1, sent: self.left }
    }
}

/// The segments in the order of the stream; bounded by the largest congestion window.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) segments: VecDeque<Sent>,
    /// Known to have arrived: by SACK, or by duplicate acknowledgements, which name no segment.
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) retransmitted: u32,
    /// Segments ever marked lost, with copies that are lost again.
    pub(super) lost_total: u64,
}

impl Queue {
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// packets_out - sacked_out - lost_out + retrans_out of Linux.
    pub(super) fn in_flight(&self) -> u32 {
        (self.len() + self.retransmitted).saturating_sub(self.sacked + self.lost)
    }
    pub(super) fn any_retransmitted(&self) -> bool {
        self.retransmitted > 0 || self.segments.front().is_some_and(|head| head.was_retransmitted)
    }
    /// Marks a segment lost; `lost` takes it if the window counted it as on its way.
    pub(super) fn mark_lost(&mut self, index: usize, lost: &mut alloc::vec::Vec<Message>) {
        let Some(segment) = self.segments.get_mut(index) else { return };
        if segment.is_sacked {
            return;
        }
        if !segment.is_lost {
            segment.is_lost = true;
            self.lost += 1;
            self.lost_total += 1;
        } else if segment.is_retransmitted {
            // The copy is lost too.
            segment.is_retransmitted = false;
            self.retransmitted -= 1;
            self.lost_total += 1;
        }
        if core::mem::take(&mut segment.is_counted) {
            lost.push(segment.message());
        }
    }
    /// A block names the segment: it has arrived, and is neither lost nor on its way.
    pub(super) fn mark_sacked(&mut self, index: usize) {
        let Some(segment) = self.segments.get_mut(index) else { return };
        if core::mem::take(&mut segment.is_retransmitted) {
            self.retransmitted -= 1;
        }
        if core::mem::take(&mut segment.is_lost) {
            self.lost -= 1;
        }
        segment.is_sacked = true;
        segment.is_counted = false;
        segment.stamp = None;
        self.sacked += 1;
    }
    /// The receiver has thrown away what its blocks named (RFC 2018 s8).
    pub(super) fn clear_sacked(&mut self) {
        for segment in &mut self.segments {
            segment.is_sacked = false;
        }
        self.sacked = 0;
    }
    /// Takes all marks of loss away: what was late is on its way again.
    pub(super) fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.is_lost = false;
        }
        self.lost = 0;
    }
    /// Forgets what duplicate acknowledgements said.
    pub(super) fn clear_anonymous_sacks(&mut self) {
        self.sacked = 0;
    }
}
