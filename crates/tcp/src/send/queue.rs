//! What was sent and is not acknowledged, with the counts that loss recovery needs.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

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
    /// Segments that left as one unit of the sender have the same number; copies may cut it at other places.
    pub(super) unit: u64,
    pub(super) is_lost: bool,
    /// A copy is on its way.
    pub(super) is_retransmitted: bool,
    pub(super) was_retransmitted: bool,
    pub(super) is_sacked: bool,
    /// The window counts it as on its way.
    pub(super) is_counted: bool,
}

impl Sent {
    pub(super) const fn octets(&self) -> i64 {
        self.end - self.fin as i64 - self.start
    }
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
    /// Numbers of units so far.
    units: u64,
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
    pub(super) fn mark_lost(&mut self, index: usize, lost: &mut Vec<Message>) {
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
    /// Cuts a unit of the sender into segments of `octets` from `index` on, which gets a number of its own.
    pub(super) fn recut(&mut self, index: usize, octets: i64) {
        let Some(first) = self.segments.get(index).copied() else { return };
        let in_unit = |sent: &&Sent| sent.unit == first.unit && !sent.is_sacked;
        let unit: Vec<Sent> =
            self.segments.iter().skip(index).take_while(in_unit).copied().collect();
        let Some(last) = unit.last() else { return };
        let end = last.end - i64::from(last.fin);
        if first.octets() == octets.min(end - first.start) {
            return;
        }
        for sent in &unit {
            self.lost -= u32::from(sent.is_lost);
            self.retransmitted -= u32::from(sent.is_retransmitted);
            self.segments.remove(index);
        }
        let mut start = first.start;
        let mut pieces = 0;
        while start < end {
            let piece_end = end.min(start + octets);
            let fin = last.fin && piece_end == end;
            self.units += 1;
            let unit = if pieces == 0 { self.units } else { first.unit };
            let piece = Sent { start, end: piece_end + i64::from(fin), fin, unit, ..first };
            self.segments.insert(index + pieces, piece);
            pieces += 1;
            start = piece_end;
        }
        // All pieces have the marks of the first segment.
        self.lost += if first.is_lost { pieces as u32 } else { 0 };
        self.retransmitted += if first.is_retransmitted { pieces as u32 } else { 0 };
    }
    /// A number for the next unit.
    pub(super) const fn next_unit(&mut self) -> u64 {
        self.units += 1;
        self.units
    }
    /// Makes one segment of two that follow each other.
    pub(super) fn join(&mut self, index: usize, sack: bool) {
        let Some(second) = self.segments.remove(index + 1) else { return };
        self.lost -= u32::from(second.is_lost);
        self.retransmitted -= u32::from(second.is_retransmitted);
        if !sack {
            // One of the duplicate acknowledgements may have been for it.
            self.sacked = self.sacked.saturating_sub(1);
        }
        if let Some(first) = self.segments.get_mut(index) {
            first.end = second.end;
            first.fin = second.fin;
            first.was_retransmitted |= second.was_retransmitted;
        }
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
