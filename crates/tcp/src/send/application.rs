//! What the application does: opens after the handshake, writes, closes.

use lowmesh_units::Instant;

use super::report::Report;
use super::{Agreement, Sender};
use crate::profile::Profile;

impl Sender {
    /// The sender of an established connection.
    pub(crate) fn open(
        profile: &Profile,
        agreement: &Agreement,
        clock_offset: u32,
        now: Instant,
    ) -> Self {
        let mut sender = Self::new(profile, agreement, clock_offset, now);
        if let Some(rtt) = agreement.handshake_rtt {
            sender.note_rtt_min(rtt, now);
            sender.estimator.sample(rtt, 1, 1);
        } else {
            sender.estimator.fall_back();
        }
        // RFC 5681 s3.1 after a lost SYN, by Linux only after the second one.
        if agreement.syn_retries > 1 {
            sender.window.resize(1);
        }
        // The handshake's sample, so that a window which paces has its first rate.
        sender.tell(&Report { rtt: agreement.handshake_rtt, ..Report::default() }, now);
        sender
    }
    /// Takes data, for which there is room.
    pub(crate) fn write(&mut self, data: &[u8], now: Instant) {
        let has_room = self.queue.in_flight() < self.window_size();
        let is_short = self.unsent() < i64::from(self.segment_octets);
        if is_short && has_room && self.queue.lost <= self.queue.retransmitted {
            self.sampler.limit(self.queue.in_flight());
        }
        self.restart_after_idle(now);
        self.buffer.extend(data);
        self.transmit(now);
    }
    /// No more data comes: a FIN follows the last octet.
    pub(crate) fn close(&mut self, now: Instant) {
        if self.fin.is_none() {
            self.fin = Some(self.data_end());
            self.transmit(now);
        }
    }
    /// RFC 5681 s4.1: no more than the restart window after an idle RTO; a window that paces needs no such rule.
    fn restart_after_idle(&mut self, now: Instant) {
        let is_idle = self.queue.is_empty() && now.since(self.last_sent) > self.estimator.rto();
        let applies = self.profile.slow_start_after_idle && !self.window.recovers_itself();
        if applies && is_idle && self.next > 1 {
            let restart = self.profile.initial_window_segments.min(self.window_size());
            self.window.resize(restart);
        }
    }
}
