//! An acknowledgement: what it covers, the round-trip time, and what the window is told (Linux, tcp_ack).

use alloc::vec::Vec;

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::finding::Finding;
use super::queue::Sent;
use super::report::Report;
use super::{Acknowledgement, Retransmit, Sender, Timer, clock};
use crate::params::REORDERING;

impl Sender {
    /// Takes an acknowledgement that lies within what was sent.
    pub(crate) fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        if ack.position < self.una {
            self.on_old_acknowledgement(ack, now);
            return;
        }
        let in_flight_before = self.queue.in_flight();
        let delivered_before = self.sampler.delivered();
        let lost_before = self.queue.lost_total;
        let mut finding = Finding {
            advances: ack.position > self.una,
            is_no_duplicate: ack.has_data,
            una_before: self.una,
            ..Finding::default()
        };
        let highest_before = self.highest_sacked();
        self.update_peer_window(ack, &mut finding);
        self.note_answer(ack, finding.advances);
        let was_empty = self.queue.is_empty();
        self.una = ack.position;
        if was_empty {
            // A late report that the last copy was not needed still undoes what it cost.
            self.take_blocks(ack, &mut finding, now);
            if finding.reports_duplicate {
                self.find_losses(&finding, ack, now);
            }
            self.process_loss_probe(ack.position, &finding, now);
            self.after_probe(now);
            self.transmit(now);
            return;
        }
        self.rack.begin();
        self.take_blocks(ack, &mut finding, now);
        self.clean(ack, highest_before, &mut finding, now);
        let rtt = self.update_rtt(ack, &finding, now);
        finding.restarts_timer |= finding.covered > 0;
        if !self.sack && finding.covered > 0 {
            self.remove_anonymous_sacks(finding.covered);
        }
        self.rack.adapt(finding.newest.delivered_before(), self.sampler.delivered());
        self.process_loss_probe(ack.position, &finding, now);
        let is_dubious = !(finding.is_no_duplicate || finding.covered > 0)
            || finding.sacks
            || finding.reports_duplicate
            || self.phase != Phase::Open;
        let retransmit =
            if is_dubious { self.find_losses(&finding, ack, now) } else { Retransmit::Nothing };
        if finding.restarts_timer && !self.rack.sets_timer() {
            self.restart_timer(now);
        }
        let delivered = (self.sampler.delivered() - delivered_before) as u32;
        let newly_lost = (self.queue.lost_total - lost_before) as u32;
        let rtt_min = self.rtt_min.map(|(rtt, _)| rtt);
        let rate = self.sampler.sample(&finding.newest, delivered, rtt_min, now);
        if self.phase == Phase::Recovery && !self.window.recovers_itself() {
            self.reduce(delivered, newly_lost, finding.advances);
        }
        // Behind much reordering the window grows by blocks of SACK, too (Linux, tcp_may_raise_cwnd).
        let advances = finding.covered > 0 || (finding.sacks && self.reordering > REORDERING);
        let is_delayed = finding.is_delayed;
        let report =
            Report { rate, rtt, is_delayed, delivered, newly_lost, in_flight_before, advances };
        self.tell(&report, now);
        self.send_copies(retransmit, now);
        // Data that came along changes what our next segment says, so the connection takes it first.
        if !ack.has_data {
            self.send_new(now);
        }
    }
    /// An acknowledgement that came late moves nothing, but its blocks are true (Linux, old_ack).
    fn on_old_acknowledgement(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        if !self.sack || ack.blocks.is_empty() || self.queue.is_empty() {
            return;
        }
        let mut finding =
            Finding { is_no_duplicate: ack.has_data, una_before: self.una, ..Finding::default() };
        self.rack.begin();
        self.take_blocks(ack, &mut finding, now);
        let retransmit = self.find_losses(&finding, ack, now);
        self.send_copies(retransmit, now);
        if !ack.has_data {
            self.send_new(now);
        }
    }
    /// The peer is there. An answer that acknowledges nothing keeps the connection open while the window is closed over the
    /// segment that is sent again (RFC 9293 s3.8.6, SHLD-17, and s3.8.6.1, MUST-37).
    fn note_answer(&mut self, ack: &Acknowledgement<'_>, advances: bool) {
        self.window_probes = 0;
        if advances {
            self.retries = 0;
        }
        let end = self.queue.segments.front().map_or(i64::MAX, |head| head.end);
        if advances || ack.position + (self.peer_window as i64) < end {
            self.unanswered = 0;
        }
    }
    /// RFC 9293 s3.10.7.4: a segment updates the window if it is not older than the last one that did. Of two segments
    /// with the same numbers, the larger window counts, or a closed one (Linux, tcp_may_update_window).
    fn update_peer_window(&mut self, ack: &Acknowledgement<'_>, finding: &mut Finding) {
        let is_newer = ack.position > self.una
            || ack.segment > self.window_segment
            || (ack.segment == self.window_segment && ack.window > self.peer_window);
        if is_newer {
            finding.is_no_duplicate |= ack.window != self.peer_window
                || finding.advances
                || ack.segment > self.window_segment;
            self.window_segment = ack.segment;
            self.peer_window = ack.window;
            self.peer_window_max = self.peer_window_max.max(ack.window);
        } else if ack.window == 0 && ack.segment == self.window_segment {
            self.peer_window = 0;
            finding.is_no_duplicate = true;
        }
    }
    /// Removes what is covered from the queue (Linux, tcp_clean_rtx_queue).
    fn clean(
        &mut self,
        ack: &Acknowledgement<'_>,
        highest_before: i64,
        finding: &mut Finding,
        now: Instant,
    ) {
        let (sacked_before, una_before) = (self.queue.sacked, self.buffer_start);
        let mut late = None;
        while let Some(head) = self.queue.segments.front_mut() {
            if head.end > self.una {
                // A segment that is covered in part keeps what is left, for retransmission.
                head.start = head.start.max(self.una);
                break;
            }
            let Some(segment) = self.queue.segments.pop_front() else { break };
            if segment.is_retransmitted {
                self.queue.retransmitted -= 1;
            }
            if segment.was_retransmitted {
                finding.covers_copy = true;
            } else if !segment.is_sacked {
                let rtt = now.since(segment.left);
                finding.rtt_oldest = finding.rtt_oldest.or(Some(rtt));
                finding.rtt_newest = Some(rtt);
                late = late.or(Some(segment.start));
                finding.proves_original |= segment.end <= self.high;
            }
            if segment.is_sacked {
                self.queue.sacked -= 1;
            } else if self.sack {
                self.sampler.count(1);
                self.rack_take(&segment, ack, now);
            }
            if segment.is_lost {
                self.queue.lost -= 1;
            }
            if segment.is_counted {
                self.acked.push(segment.message());
            }
            if let Some(stamp) = segment.stamp {
                self.sampler.on_delivered(stamp, segment.end, &mut finding.newest);
            }
            finding.covered += 1;
        }
        finding.is_delayed = finding.covered == 1
            && finding.rtt_oldest.is_some()
            && sacked_before == 0
            && self.una - una_before < i64::from(self.segment_octets)
            && finding.newest.delivered_before() + 1 == self.sampler.delivered();
        // RFC 8985 s6.2, step 3: it counts, too, that an original is acknowledged at last.
        if let Some(start) = late.filter(|start| self.sack && *start < highest_before) {
            self.note_reordering(start);
        }
        // Without SACK nothing says which of several segments were originals.
        if !self.sack && finding.covers_copy {
            finding.proves_original = false;
        }
        let freed = (self.una.min(self.data_end()) - self.buffer_start).max(0);
        self.buffer.drain(..freed as usize);
        self.buffer_start += freed;
    }
    /// Takes a sample, from originals, from blocks or from the echoed timestamp (RFC 7323 s4.3). The newest is the window's.
    fn update_rtt(
        &mut self,
        ack: &Acknowledgement<'_>,
        finding: &Finding,
        now: Instant,
    ) -> Option<Duration> {
        let originals =
            if finding.covers_copy { None } else { finding.rtt_oldest.zip(finding.rtt_newest) };
        let echo = ack.echo_rtt.filter(|_| finding.covered > 0).map(|rtt| (rtt, rtt));
        let (oldest, newest) = originals.or(finding.rtt_sacked).or(echo)?;
        // What a block names left last.
        let newest = finding.rtt_sacked.map_or(newest, |(_, newest)| newest);
        let is_late = finding.is_delayed && self.rtt_min.is_some_and(|(least, _)| newest > least);
        if !is_late {
            self.note_rtt_min(newest, now);
        }
        self.estimator.sample(oldest, self.una, self.next);
        // A segment that was sent after the head shows that the path works: the timer starts again.
        let head_age = self.queue.segments.front().map(|head| now.since(head.left));
        let sacked = finding.rtt_sacked.map(|(oldest, _)| oldest);
        if finding.covered == 0 && sacked.zip(head_age).is_some_and(|(rtt, age)| rtt > age) {
            self.restart_timer(now);
        }
        Some(newest)
    }
    /// What duplicate acknowledgements said about segments that are covered now (Linux, tcp_remove_reno_sacks).
    fn remove_anonymous_sacks(&mut self, covered: u32) {
        self.sampler.count(covered.saturating_sub(self.queue.sacked).max(1));
        self.queue.sacked = self.queue.sacked.saturating_sub(covered - 1);
        self.check_reordering(covered);
    }
    /// Marks what blocks of SACK name (RFC 2018, RFC 6675 s4).
    fn take_blocks(&mut self, ack: &Acknowledgement<'_>, finding: &mut Finding, now: Instant) {
        if !self.sack {
            return;
        }
        let report = duplicate_report(ack);
        if let Some(report) = report {
            self.take_duplicate_report(report, finding);
        }
        let is_new = |block: &&(i64, i64)| {
            block.0 < block.1
                && block.0 > self.una
                && block.1 <= self.next
                && Some(**block) != report
        };
        // The latest range is named first (RFC 2018 s4), so of the ranges of one acknowledgement the order says nothing
        // about reordering: what counts is what earlier ones have named.
        let mut blocks: Vec<(i64, i64)> = ack.blocks.iter().filter(is_new).copied().collect();
        blocks.sort_unstable();
        let highest = self.highest_sacked();
        for (left, right) in blocks {
            self.take_block((left, right), highest, finding, now);
        }
        let counts = self.phase != Phase::Loss || self.undo.is_armed;
        if let Some(start) = finding.late.filter(|_| counts) {
            self.note_reordering(start);
        }
    }
    /// RFC 2883: data arrived twice, so a copy was not needed. A report of more than fits the window, or of more segments
    /// than were ever sent again, is not believed (Linux, tcp_dsack_seen).
    fn take_duplicate_report(&mut self, (left, right): (i64, i64), finding: &mut Finding) {
        let octets = (right - left).unsigned_abs();
        let segments = octets.div_ceil(u64::from(self.segment_octets.max(1)));
        if octets > self.peer_window_max {
            return;
        }
        self.duplicates += segments;
        if self.duplicates > self.counters.retransmissions {
            return;
        }
        finding.reports_duplicate = true;
        finding.reports_probe = segments == 1 && self.probe_end == Some(right);
        if self.reordering_seen && !finding.reports_probe {
            self.rack.on_duplicate();
        }
        let mut needless = 0;
        if right <= finding.una_before {
            needless = segments as u32;
        } else {
            let inside = |sent: &&Sent| left <= sent.start && sent.end <= right;
            for sent in
                self.queue.segments.iter().filter(inside).filter(|sent| sent.was_retransmitted)
            {
                needless += 1;
                if sent.is_sacked {
                    finding.late =
                        Some(finding.late.map_or(sent.start, |late| late.min(sent.start)));
                }
            }
        }
        self.sampler.count(segments as u32);
        if self.undo.is_armed && right > self.undo.start {
            self.undo.copies = self.undo.copies.map(|copies| copies.saturating_sub(needless));
        }
    }
    /// Marks one range; `highest` is what blocks of earlier acknowledgements have named.
    fn take_block(
        &mut self,
        (left, right): (i64, i64),
        highest: i64,
        finding: &mut Finding,
        now: Instant,
    ) {
        for index in 0..self.queue.segments.len() {
            let segment = self.queue.segments[index];
            if segment.is_sacked || segment.start < left || segment.end > right {
                continue;
            }
            if !segment.was_retransmitted {
                let rtt = now.since(segment.left);
                let (oldest, newest) = finding.rtt_sacked.unwrap_or((rtt, rtt));
                finding.rtt_sacked = Some((oldest.max(rtt), newest.min(rtt)));
                finding.proves_original |= segment.end <= self.high;
                if segment.start < highest {
                    finding.late =
                        Some(finding.late.map_or(segment.start, |late| late.min(segment.start)));
                }
            }
            if let Some(stamp) = segment.stamp {
                self.sampler.on_delivered(stamp, segment.end, &mut finding.newest);
            }
            if segment.is_counted {
                self.acked.push(segment.message());
            }
            self.queue.mark_sacked(index);
            self.sampler.count(1);
            self.rack_advance(&segment, now);
            finding.sacks = true;
        }
    }
    /// A copy that left after the echoed timestamp did not cause the acknowledgement: the original has arrived, and
    /// RACK learns nothing.
    fn rack_take(&mut self, segment: &Sent, ack: &Acknowledgement<'_>, now: Instant) {
        let left = clock(self.clock_offset, segment.left);
        let is_spurious = segment.was_retransmitted
            && ack.echo.is_some_and(|echo| (echo.wrapping_sub(left) as i32) < 0);
        if !is_spurious {
            self.rack_advance(segment, now);
        }
    }
    /// The end of a loss probe (RFC 8985 s7.4).
    fn process_loss_probe(&mut self, position: i64, finding: &Finding, now: Instant) {
        let Some(end) = self.probe_end.filter(|end| position >= *end) else { return };
        if !self.probe_was_copy || finding.reports_probe {
            self.probe_end = None;
        } else if position > end {
            // The probe repaired a loss: congestion, met once.
            self.probe_end = None;
            self.meet_congestion(now);
        } else if !(finding.advances || finding.is_no_duplicate || finding.sacks) {
            self.probe_end = None;
        }
    }
    /// An acknowledgement came while nothing was on its way.
    fn after_probe(&mut self, now: Instant) {
        if let Some((Timer::WindowProbe, _)) = self.timer {
            if self.unsent() == 0 || self.window_end() > self.next {
                self.timer = None;
                self.probe_backoff = 0;
            } else {
                self.timer = Some((Timer::WindowProbe, now + self.probe_delay()));
            }
        }
    }
}

/// RFC 2883 s4: the first block reports a duplicate if it begins below the acknowledgement, or lies in the second block.
fn duplicate_report(ack: &Acknowledgement<'_>) -> Option<(i64, i64)> {
    let &(left, right) = ack.blocks.first()?;
    let is_inside = |outer: &(i64, i64)| outer.0 <= left && right <= outer.1;
    let reports = left < ack.position || ack.blocks.get(1).is_some_and(is_inside);
    (left < right && reports).then_some((left, right))
}
