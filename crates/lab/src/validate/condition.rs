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

/// One condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// The retransmission timer, by the testbed's name.
    pub algorithm: String,
    /// Time between two messages of a client, ms.
    pub period_ms: u32,
    /// What the testbed came to.
    pub measured: Figures,
    /// What the model comes to.
    pub simulated: Figures,
}

/// The median time of first attempts in an idle network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HopRtt {
    /// Hops to the root.
    pub hops: u32,
    /// On the testbed.
    pub measured_ms: f64,
    /// In the model.
    pub simulated_ms: f64,
}
