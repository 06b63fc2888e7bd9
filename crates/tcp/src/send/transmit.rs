//! What leaves: copies of what is lost, then new data, as far as window, pacing and the peer allow (Linux,
//! tcp_write_xmit and tcp_xmit_retransmit_queue).

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::queue::Sent;
use super::{Departure, Retransmit, Sender, Timer};
use crate::params::UNPACED_SEGMENTS;

impl Sender {
    /// Sends what may leave now.
    pub(crate) fn transmit(&mut self, now: Instant) {
        self.send_copies(Retransmit::Lost, now);
        self.send_new(now);
    }
    /// Sends copies as an acknowledgement allows; F-RTO sends new data in their place.
    pub(super) fn send_copies(&mut self, retransmit: Retransmit, now: Instant) {
        self.waits_for_pacing = false;
        if retransmit == Retransmit::NewData {
            self.send_new(now);
            if self.next > self.high {
                return;
            }
            self.is_probing_spurious = false;
        }
        if retransmit != Retransmit::Nothing {
            self.send_lost(now);
        }
    }
    pub(super) fn send_lost(&mut self, now: Instant) {
        let mut restarts_timer = false;
        for index in 0..self.queue.segments.len() {
            let is_done = self.queue.retransmitted >= self.queue.lost;
            if is_done || self.queue.in_flight() >= self.window_size() || self.is_paced(now) {
                break;
            }
            let segment = &self.queue.segments[index];
            if !segment.is_lost || segment.is_sacked || segment.is_retransmitted {
                continue;
            }
            if !self.may_repeat(index) {
                break;
            }
            self.retransmit(index, now);
            if self.phase == Phase::Recovery {
                self.reduction.out += 1;
            }
            restarts_timer |= index == 0 && !matches!(self.timer, Some((Timer::Reordering, _)));
        }
        if restarts_timer {
            let delay = self.estimator.rto() + self.pacing_delay(now);
            self.timer = Some((Timer::Retransmission, now + delay));
        }
    }
    /// True when pacing holds the next segment back.
    pub(super) fn is_paced(&mut self, now: Instant) -> bool {
        let is_paced = self.paced_until > now && self.window.pacing_rate().is_some();
        self.waits_for_pacing |= is_paced;
        is_paced
    }
    pub(crate) fn send_new(&mut self, now: Instant) {
        let mut count = 0;
        let mut is_limited = false;
        let mut unit = 0;
        while self.unsent() > 0 && !self.is_paced(now) {
            if self.queue.in_flight() >= self.window_size() {
                is_limited = true;
                break;
            }
            let Some(octets) = self.next_octets() else { break };
            // Linux (tcp_tso_autosize): a sender that does not pace passes on segments in pairs.
            if count % 2 == 0 || self.window.pacing_rate().is_some() {
                unit = self.queue.next_unit();
            }
            self.send_segment(octets, unit, now);
            count += 1;
        }
        is_limited |= self.queue.in_flight() >= self.window_size();
        if count > 0 || is_limited {
            self.validate_window(is_limited);
        }
        if count > 0 {
            if self.phase == Phase::Recovery {
                self.reduction.out += count;
            }
            self.schedule_loss_probe(false, now);
        }
        if self.queue.is_empty()
            && self.unsent() > 0
            && self.timer.is_none()
            && !self.waits_for_pacing
        {
            self.probe_backoff = 0;
            self.timer = Some((Timer::WindowProbe, now + self.probe_delay()));
        }
    }
    /// Octets of the next segment with new data, if the window of the peer allows one; 0 for a lone FIN.
    pub(super) fn octets_that_fit(&self) -> Option<i64> {
        let octets = (self.data_end() - self.next).min(self.full_segment());
        // The sender's silly window avoidance (RFC 9293 s3.8.6.2.1): no part of a segment. A FIN takes a number of the
        // window, too, so it may follow its data alone.
        let needs = octets.max(1);
        (self.next + needs <= self.window_end()).then_some(octets)
    }
    /// The same, if Nagle allows a segment, too.
    fn next_octets(&self) -> Option<i64> {
        let octets = self.octets_that_fit()?;
        let ends = self.fin == Some(self.next + octets);
        let is_short = octets < self.full_segment() && !ends;
        let short_is_out = self.short_end > self.una;
        (!(is_short && self.profile.nagle && short_is_out)).then_some(octets)
    }
    /// A segment with new data leaves.
    fn send_segment(&mut self, octets: i64, unit: u64, now: Instant) {
        let is_alone = self.queue.is_empty();
        let start = self.next;
        let fin = self.fin == Some(start + octets) && start + octets < self.window_end();
        let end = start + octets + i64::from(fin);
        self.note_restart(now);
        let stamp = self.sampler.on_sent(is_alone, now);
        self.queue.segments.push_back(Sent {
            start,
            end,
            fin,
            left: now,
            stamp: Some(stamp),
            unit,
            is_lost: false,
            is_retransmitted: false,
            was_retransmitted: false,
            is_sacked: false,
            is_counted: true,
        });
        if octets < self.full_segment() {
            self.short_end = end;
        }
        self.next = end;
        self.window.on_sent(1, now);
        self.depart(start, octets, fin, now);
        if is_alone || matches!(self.timer, Some((Timer::LossProbe, _))) {
            self.rearm(now);
        }
    }
    /// A copy of a segment leaves, and is on its way.
    pub(super) fn retransmit(&mut self, index: usize, now: Instant) {
        // Blocks of SACK in our own acknowledgements make segments shorter for a while.
        self.queue.recut(index, self.full_segment());
        self.copy(index, now);
        let Some(segment) = self.queue.segments.get_mut(index) else { return };
        if !segment.is_retransmitted {
            segment.is_retransmitted = true;
            self.queue.retransmitted += 1;
        }
        let clock = self.clock(now);
        self.undo.first_copy.get_or_insert(clock);
        self.undo.copies = Some(self.undo.copies.unwrap_or(0) + 1);
    }
    fn copy(&mut self, index: usize, now: Instant) {
        self.join_short(index, now);
        self.note_restart(now);
        let stamp = self.sampler.on_sent(false, now);
        let Some(segment) = self.queue.segments.get_mut(index) else { return };
        segment.left = now;
        segment.stamp = Some(stamp);
        segment.was_retransmitted = true;
        let (start, end, fin) = (segment.start, segment.end, segment.fin);
        if !core::mem::replace(&mut segment.is_counted, true) {
            self.window.on_sent(1, now);
        }
        self.counters.note_copy();
        self.depart(start, end - i64::from(fin) - start, fin, now);
    }
    /// The first segment after a time in which the application had nothing to send (Linux, CA_EVENT_TX_START).
    fn note_restart(&mut self, now: Instant) {
        if self.queue.in_flight() == 0 && self.sampler.is_limited() {
            self.window.on_restart(now);
        }
    }
    /// A copy takes the short segments behind it along, as far as they fit (Linux, tcp_retrans_try_collapse).
    fn join_short(&mut self, index: usize, now: Instant) {
        let (full, window_end) = (self.full_segment(), self.window_end());
        while let (Some(first), Some(second)) =
            (self.queue.segments.get(index), self.queue.segments.get(index + 1))
        {
            let octets = second.octets() + first.octets();
            if first.fin || second.is_sacked || octets > full || second.end > window_end {
                return;
            }
            if second.is_counted {
                self.window.on_discarded(1, now);
            }
            self.queue.join(index, self.sack);
        }
    }
    fn depart(&mut self, start: i64, octets: i64, fin: bool, now: Instant) {
        let from = (start - self.buffer_start) as usize;
        let data = self.buffer.range(from..from + octets as usize).copied().collect();
        let push = start + octets == self.data_end();
        self.departures.push_back(Departure { start, data, push, fin });
        self.counters.segments += 1;
        self.last_sent = now;
        self.pace(octets as u64, now);
    }
    /// Departures keep the window's rate; one that comes late may be followed sooner (Linux,
    /// tcp_update_skb_after_send).
    fn pace(&mut self, octets: u64, now: Instant) {
        let Some(rate) = self.window.pacing_rate().filter(|rate| *rate > 0) else { return };
        let late = now.since(self.paced_until);
        self.paced_until = self.paced_until.max(now);
        if self.counters.segments >= UNPACED_SEGMENTS {
            let gap = Duration::from_nanos(octets.saturating_mul(1_000_000_000) / rate);
            self.paced_until += gap - late.min(gap / 2);
        }
    }
    /// Remembers how much of the window a flight uses (RFC 7661 has the idea, Linux the rule).
    fn validate_window(&mut self, is_limited: bool) {
        let out = self.queue.len();
        let usage = &mut self.usage;
        let is_over = self.una >= usage.end;
        if is_over || is_limited || (!usage.is_limited && out > usage.out_max) {
            usage.is_limited = is_limited;
            usage.out_max = out;
            usage.end = self.next;
        }
    }
    /// One segment with new data, whatever the congestion window says: a loss probe.
    pub(super) fn send_one(&mut self, octets: i64, now: Instant) {
        let unit = self.queue.next_unit();
        self.send_segment(octets, unit, now);
    }
    /// The last segment again as a loss probe, which counts as no copy that is on its way; false if the peer has closed its
    /// window over it.
    pub(super) fn send_copy_of_last(&mut self, now: Instant) -> bool {
        let last = self.queue.segments.iter().rposition(|segment| !segment.is_sacked);
        let Some(index) = last.filter(|index| self.may_repeat(*index)) else { return false };
        self.copy(index, now);
        true
    }
    /// RFC 9293 s3.8.6: a peer that has closed its window over what is on its way gets copies of what still fits (SHLD-16).
    /// The first segment leaves in any case, and so probes a closed window (MUST-35).
    fn may_repeat(&self, index: usize) -> bool {
        let segment = self.queue.segments.get(index);
        index == 0 || segment.is_some_and(|segment| segment.start < self.window_end())
    }
    /// A part of a segment, for a peer whose window holds no more and has not opened for an RTO (RFC 9293
    /// s3.8.6.2.1, the override timeout).
    pub(super) fn send_what_fits(&mut self, now: Instant) {
        let room = self.window_end() - self.next;
        let octets = (self.data_end() - self.next).min(self.full_segment()).min(room);
        self.send_one(octets, now);
    }
}
