//! How long the radio was on, and for what: the base of duty cycle and energy.

use lowmesh_units::Duration;

use crate::frame::airtime;
use crate::params::{ACK_WAIT, RX_WAIT, TURNAROUND, TX_OFFSET};

/// Radio time so far, by what the radio did. Idle listening in scheduled cells is not in it: the schedule
/// counts those slots by arithmetic and [`RadioTime::with_idle_slots`] adds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RadioTime {
    /// Sending frames and acknowledgements.
    pub tx: Duration,
    /// Receiving, or waiting for something to receive.
    pub rx: Duration,
    /// Slots in which the node should have listened and did something else, or did more than listen.
    pub listening_slots_used: u64,
}

impl RadioTime {
    /// A frame of `octets` was sent and no acknowledgement is expected.
    pub fn sent(&mut self, octets: usize) {
        self.tx += airtime(octets);
    }
    /// A frame was received and is answered with an acknowledgement of `octets`: the radio turns from one to the other.
    pub fn acknowledged(&mut self, octets: usize) {
        self.rx += TURNAROUND;
        self.tx += airtime(octets);
    }
    /// The sender then turned and waited for an acknowledgement, in vain or of `octets`.
    pub fn waited_for_ack(&mut self, octets: Option<usize>) {
        // The wait is centred on the expected moment: half of it passes before the frame starts.
        self.rx += TURNAROUND + octets.map_or(ACK_WAIT, |o| ACK_WAIT / 2 + airtime(o));
    }
    /// A frame of `octets` was received, or began and was lost: the radio was on until its end.
    pub fn received(&mut self, octets: usize) {
        self.rx += RX_WAIT / 2 + airtime(octets);
    }
    /// The frame of `octets` that ended a scan goes on after the start of its slot, until which the scan counts.
    pub fn joined(&mut self, octets: usize) {
        self.rx += TX_OFFSET + airtime(octets);
    }
    /// The radio scanned for `span`, whatever it heard.
    pub fn scanned(&mut self, span: Duration) {
        self.rx += span;
    }
    /// The same with `slots` of scheduled listening, of which those used otherwise are left out.
    pub fn with_idle_slots(mut self, slots: u64) -> Self {
        self.rx += RX_WAIT * slots.saturating_sub(self.listening_slots_used);
        self
    }
    /// All time with the radio on.
    pub fn on(self) -> Duration {
        self.tx + self.rx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_slots_are_what_the_schedule_counts_less_what_was_used() {
        let mut time = RadioTime::default();
        time.received(100);
        time.listening_slots_used = 1;
        let total = time.with_idle_slots(11);
        assert_eq!(total.rx - time.rx, RX_WAIT * 10);
    }
}
