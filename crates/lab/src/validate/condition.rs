//! The figures that measurements and simulation are both brought to.

use serde::Serialize;

/// What a condition comes to, measured or simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Acknowledged transactions a second, all clients together.
    pub throughput_tps: f64,
    /// Transaction delivery ratio of those whose first copy was sent.
    pub tdr: f64,
    /// Median time from the first copy to the acknowledgement, ms.
    pub rtt_p50_ms: f64,
    /// Its 95th percentile, ms.
    pub rtt_p95_ms: f64,
    /// Of frames to one neighbour, every copy counted, those that were acknowledged.
    pub link_success: f64,
    /// Of the acknowledged transactions, those that needed one copy.
    pub first_attempts: f64,
}

impl Figures {
    /// Every figure with its name.
    pub const fn all(&self) -> [(&'static str, f64); 6] {
        [
            ("throughput_tps", self.throughput_tps),
            ("tdr", self.tdr),
            ("rtt_p50_ms", self.rtt_p50_ms),
            ("rtt_p95_ms", self.rtt_p95_ms),
            ("link_success", self.link_success),
            ("first_attempts", self.first_attempts),
        ]
    }
}
