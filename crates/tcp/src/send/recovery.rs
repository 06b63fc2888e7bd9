//! The phases of loss recovery: New Reno without SACK as in Linux, RACK with SACK, F-RTO (RFC 5682), undo by
//! timestamps (RFC 3522) and by duplicate SACK, proportional rate reduction (RFC 6937).

use lowmesh_congestion::window::{Phase, PhaseChange};
use lowmesh_units::Instant;

use super::finding::Finding;
use super::{Acknowledgement, Reduction, Retransmit, Sender, Undo};
use crate::params::REORDERING_MAX;

impl Sender {
    /// Looks for losses after an acknowledgement that is a duplicate, brings blocks or comes in recovery
    /// (Linux, tcp_fastretrans_alert).
    pub(super) fn find_losses(
        &mut self,
        finding: &Finding,
        ack: &Acknowledgement<'_>,
        now: Instant,
    ) -> Retransmit {
        let is_duplicate = !finding.is_no_duplicate
            && finding.covered == 0
            && !finding.advances
            && !finding.reports_duplicate;
        if self.phase == Phase::Open {
            self.undo.first_copy = None;
        } else if self.phase == Phase::Recovery && self.una >= self.high {
            if !self.sack {
                self.queue.clear_anonymous_sacks();
            }
            if self.try_undo_recovery(ack, now) {
                return Retransmit::Nothing;
            }
            self.end_reduction();
        }
        match self.phase {
            Phase::Recovery => self.in_recovery(finding, ack, is_duplicate, now),
            Phase::Loss => {
                let retransmit = self.in_loss(finding, ack, is_duplicate, now);
                let copies = self.queue.retransmitted;
                self.mark_losses(finding.advances, now);
                // A copy that is lost again is congestion again.
                if self.phase != Phase::Open && self.queue.retransmitted == copies {
                    return retransmit;
                }
                self.in_order(finding, is_duplicate, now)
            }
            Phase::Open | Phase::Disorder => self.in_order(finding, is_duplicate, now),
        }
    }
    fn in_recovery(
        &mut self,
        finding: &Finding,
        ack: &Acknowledgement<'_>,
        is_duplicate: bool,
        now: Instant,
    ) -> Retransmit {
        if !finding.advances {
            if !self.sack {
                self.add_anonymous_sack(is_duplicate);
            }
        } else if self.try_undo_partial(finding, ack, now) {
            return Retransmit::Nothing;
        }
        if self.try_undo_by_duplicates(finding, now) {
            self.try_keep_open(now);
        }
        self.mark_losses(finding.advances, now);
        if self.phase != Phase::Recovery {
            if self.queue.lost == 0 {
                return Retransmit::Nothing;
            }
            self.enter_recovery(now);
        }
        Retransmit::Lost
    }
    /// RFC 2883 and 3708: every copy was reported as not needed.
    fn try_undo_by_duplicates(&mut self, finding: &Finding, now: Instant) -> bool {
        let undoes = finding.reports_duplicate && self.undo.is_armed && self.undo.copies == Some(0);
        if undoes {
            self.rack.on_undo_by_duplicates();
            self.undo_reduction(false, now);
        }
        undoes
    }
    /// Phase Loss (Linux, tcp_process_loss).
    fn in_loss(
        &mut self,
        finding: &Finding,
        ack: &Acknowledgement<'_>,
        is_duplicate: bool,
        now: Instant,
    ) -> Retransmit {
        let is_recovered = self.una >= self.high;
        if finding.advances && self.may_undo(ack) {
            self.undo_loss(false, now);
            return Retransmit::Nothing;
        }
        if self.is_probing_spurious {
            // RFC 5682 s3.1, step 3b: an original arrived, so the timeout was spurious.
            if finding.proves_original {
                self.undo_loss(true, now);
                return Retransmit::Nothing;
            }
            if self.next > self.high {
                // Step 3a: a duplicate after new data says that the loss was real.
                if finding.sacks || is_duplicate {
                    self.is_probing_spurious = false;
                }
            } else if finding.advances && !is_recovered {
                // Step 2b: new data, if there is some and the peer takes it.
                self.high = self.next;
                if self.unsent() > 0 && self.window_end() > self.next {
                    return Retransmit::NewData;
                }
                self.is_probing_spurious = false;
            }
        }
        if is_recovered {
            self.try_undo_recovery(ack, now);
            return Retransmit::Nothing;
        }
        if !self.sack {
            if self.next > self.high && is_duplicate {
                self.add_anonymous_sack(true);
            } else if finding.advances {
                self.queue.clear_anonymous_sacks();
            }
        }
        Retransmit::Lost
    }
    /// Phases Open and Disorder.
    fn in_order(&mut self, finding: &Finding, is_duplicate: bool, now: Instant) -> Retransmit {
        if !self.sack {
            if finding.advances {
                self.queue.clear_anonymous_sacks();
            }
            self.add_anonymous_sack(is_duplicate);
        }
        if self.phase <= Phase::Disorder {
            self.try_undo_by_duplicates(finding, now);
        }
        self.mark_losses(finding.advances, now);
        if self.queue.lost > 0 {
            self.enter_recovery(now);
            return Retransmit::Lost;
        }
        self.forget_first_copy();
        self.try_keep_open(now);
        Retransmit::Nothing
    }
    /// A duplicate acknowledgement says that one more segment arrived, but not which.
    fn add_anonymous_sack(&mut self, is_duplicate: bool) {
        if is_duplicate {
            let before = self.queue.sacked;
            self.queue.sacked += 1;
            self.check_reordering(0);
            if self.queue.sacked > before {
                self.sampler.count(1);
            }
        }
    }
    /// More duplicates than segments that may have arrived mean reordering (Linux, tcp_limit_reno_sacked).
    pub(super) fn check_reordering(&mut self, covered: u32) {
        let holes = self.queue.lost.max(1).min(self.queue.len());
        if self.queue.sacked + holes > self.queue.len() {
            self.queue.sacked = self.queue.len() - holes;
            self.reordering = (self.queue.len() + covered).clamp(1, REORDERING_MAX);
            self.reordering_seen = true;
        }
    }
    /// The end of the highest segment that a block has named, or what is acknowledged.
    pub(super) fn highest_sacked(&self) -> i64 {
        let sacked = self.queue.segments.iter().rfind(|sent| self.sack && sent.is_sacked);
        sacked.map_or(self.una, |sent| sent.end)
    }
    /// RFC 8985 s6.2, step 3: an original at `start` arrived behind higher ones. The distance is the degree of reordering
    /// (Linux, tcp_check_sack_reordering).
    pub(super) fn note_reordering(&mut self, start: i64) {
        let distance = self.highest_sacked() - start;
        if distance <= 0 {
            return;
        }
        let segments = distance.unsigned_abs().div_ceil(u64::from(self.segment_octets.max(1)));
        let segments = u32::try_from(segments).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(segments).min(REORDERING_MAX);
        self.reordering_seen = true;
    }
    fn mark_losses(&mut self, advances: bool, now: Instant) {
        if self.queue.is_empty() {
            return;
        }
        if self.sack {
            self.rack_mark_lost(now);
            return;
        }
        let begins = self.phase < Phase::Recovery && self.queue.sacked >= self.reordering;
        // RFC 6582 s3.2, step 5, as in Linux: a partial acknowledgement marks the new head only.
        let goes_on = self.phase == Phase::Recovery && advances;
        let is_marked = self.queue.segments.front().is_some_and(|head| head.is_lost);
        if (begins || goes_on) && !is_marked {
            self.queue.mark_lost(0, &mut self.lost);
        }
    }
    pub(super) fn enter_recovery(&mut self, now: Instant) {
        self.forget_first_copy();
        self.arm_undo();
        self.counters.recoveries += 1;
        self.high = self.next;
        self.probe_end = None;
        self.reduction = Reduction { window_before: self.window_size(), delivered: 0, out: 0 };
        self.set_phase(Phase::Recovery, true, now);
    }
    pub(super) fn arm_undo(&mut self) {
        // A probe that sent a copy may be reported as a duplicate, too.
        let probes = u32::from(self.probe_end.is_some() && self.probe_was_copy);
        let copies = Some(self.queue.retransmitted + probes).filter(|copies| *copies > 0);
        let first_copy = self.undo.first_copy;
        self.undo = Undo { is_armed: true, start: self.una, copies, first_copy };
    }
    /// Tells the window; it knows then of the losses that led here.
    pub(super) fn set_phase(&mut self, phase: Phase, is_new_episode: bool, now: Instant) {
        self.phase = phase;
        // A timeout reports what it marks here, an acknowledgement with its summary.
        let lost =
            if phase == Phase::Loss { core::mem::take(&mut self.lost) } else { alloc::vec![] };
        self.window.on_phase(&PhaseChange { phase, is_new_episode, lost: &lost }, now);
    }
    fn may_undo(&self, ack: &Acknowledgement<'_>) -> bool {
        self.undo.is_armed && (self.undo.copies == Some(0) || self.is_from_original(ack))
    }
    /// RFC 3522: the echo is older than the first copy, so the original arrived.
    fn is_from_original(&self, ack: &Acknowledgement<'_>) -> bool {
        match (self.undo.first_copy, ack.echo) {
            (Some(copy), Some(echo)) => (echo.wrapping_sub(copy) as i32) < 0,
            (Some(_), None) => false,
            (None, _) => self.sack || self.una < self.high,
        }
    }
    /// The end of an episode; true when the phase stays until something above it is acknowledged.
    fn try_undo_recovery(&mut self, ack: &Acknowledgement<'_>, now: Instant) -> bool {
        if self.may_undo(ack) {
            self.undo_reduction(false, now);
        } else {
            self.rack.on_recovery_over();
        }
        if self.holds_phase() {
            return true;
        }
        let was_recovery = self.phase == Phase::Recovery;
        if was_recovery {
            self.end_reduction();
        }
        self.set_phase(Phase::Open, false, now);
        false
    }
    /// RFC 6582 s4.1 without SACK: duplicates of what is just acknowledged start no second recovery.
    fn holds_phase(&mut self) -> bool {
        let holds = self.una == self.high && !self.sack;
        if holds {
            self.forget_first_copy();
        }
        holds
    }
    /// Without a copy in flight the next one begins an episode.
    fn forget_first_copy(&mut self) {
        if !self.queue.any_retransmitted() {
            self.undo.first_copy = None;
        }
    }
    fn try_undo_partial(
        &mut self,
        finding: &Finding,
        ack: &Acknowledgement<'_>,
        now: Instant,
    ) -> bool {
        if !self.undo.is_armed || !self.is_from_original(ack) {
            return false;
        }
        // A late original filled the hole: reordering, and no loss.
        self.note_reordering(finding.una_before);
        if self.queue.retransmitted > 0 {
            return true;
        }
        self.forget_first_copy();
        self.undo_reduction(true, now);
        self.try_keep_open(now);
        false
    }
    fn undo_loss(&mut self, is_proven: bool, now: Instant) {
        self.undo_reduction(true, now);
        self.retries = 0;
        if self.holds_phase() {
            return;
        }
        if is_proven || self.sack {
            self.set_phase(Phase::Open, false, now);
        }
    }
    fn undo_reduction(&mut self, unmark: bool, now: Instant) {
        if unmark {
            self.queue.unmark_lost();
        }
        self.window.on_undo(now);
        self.undo.is_armed = false;
        self.rack.allow();
        self.counters.undos += 1;
    }
    fn try_keep_open(&mut self, now: Instant) {
        let is_disordered =
            self.queue.sacked + self.queue.lost > 0 || self.queue.any_retransmitted();
        let phase = if is_disordered { Phase::Disorder } else { Phase::Open };
        if phase != self.phase {
            self.set_phase(phase, false, now);
            self.high = self.next;
        }
    }
    /// The window is at the threshold when recovery ends.
    fn end_reduction(&mut self) {
        if self.window.recovers_itself() || !self.undo.is_armed {
            return;
        }
        if let Some(threshold) = self.window.snapshot().threshold {
            self.window.resize(threshold);
        }
    }
    /// RFC 6937 with Linux's rule for acknowledgements that move on without a new loss.
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: u32, advances: bool) {
        if delivered == 0 || self.reduction.window_before == 0 {
            return;
        }
        let in_flight = self.queue.in_flight();
        let threshold = self.window.snapshot().threshold.unwrap_or(u32::MAX);
        let reduction = &mut self.reduction;
        reduction.delivered += delivered;
        let send = if in_flight > threshold {
            let share = u64::from(threshold) * u64::from(reduction.delivered);
            let due = share.div_ceil(u64::from(reduction.window_before)) as u32;
            due.saturating_sub(reduction.out)
        } else {
            let due = reduction.delivered.saturating_sub(reduction.out).max(delivered);
            let extra = u32::from(advances && newly_lost == 0);
            (due + extra).min(threshold - in_flight)
        };
        // The first copy leaves in any case.
        let send = send.max(u32::from(reduction.out == 0));
        self.window.resize(in_flight + send);
    }
    /// A loss that a probe has repaired reduces the window without a recovery (RFC 8985 s7.4.2).
    pub(super) fn meet_congestion(&mut self, now: Instant) {
        self.set_phase(self.phase, true, now);
        self.high = self.next;
        if let Some(threshold) = self.window.snapshot().threshold
            && !self.window.recovers_itself()
        {
            self.window.resize(threshold);
        }
        self.try_keep_open(now);
    }
}
