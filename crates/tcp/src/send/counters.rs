//! What a sender counts.

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Segments with data or FIN that left, with copies.
    pub segments: u64,
    /// Copies among them.
    pub retransmissions: u64,
    /// Copies from the first fast recovery to the second.
    pub first_recovery_copies: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// The most doublings of the timeout.
    pub backoff_max: u32,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Reductions that were undone.
    pub undos: u64,
    /// Loss probes.
    pub probes: u64,
}

impl SendCounters {
    /// The totals of this sender and another one.
    pub fn merge(&mut self, other: &Self) {
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.first_recovery_copies += other.first_recovery_copies;
        self.timeouts += other.timeouts;
        self.backoff_max = self.backoff_max.max(other.backoff_max);
        self.recoveries += other.recoveries;
        self.undos += other.undos;
        self.probes += other.probes;
    }
    /// Notes a copy.
    pub(super) const fn note_copy(&mut self) {
        self.retransmissions += 1;
        if self.recoveries == 1 {
            self.first_recovery_copies += 1;
        }
    }
}
