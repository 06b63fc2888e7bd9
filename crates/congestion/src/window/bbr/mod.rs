//! BBR v1 of Linux (tcp_bbr.c, with the ACK aggregation of 5.1): a model of the path, its bandwidth and its least
//! round-trip time, decides how fast to send. draft-cardwell-iccrg-bbr-congestion-control-00 describes the algorithm
//! without policer, aggregation, pacing margin and quantisation.
//!
//! ```text
//!   Startup ── full pipe ──> Drain ── in flight <= BDP ──> ProbeBw (gains 5/4, 3/4, 1 x 6, one phase a round trip)
//!      ^                                                    |   ^
//!      └───────── not yet full ──── ProbeRtt <── least RTT is 10 s old
//!                                      └── 200 ms at 4 messages ──┘
//! ```
//!
//! The window stays in force in recovery (`recovers_itself`): a loss costs what was lost, and a round of
//! packet conservation. Callers without summaries (CoAP, fragments) get rate samples that the window makes itself.

mod filter;
mod policer;
mod rate;
mod signals;
mod steps;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant};

use self::filter::WindowedMax;
use self::policer::Policer;
use super::flight::Flight;
use super::{Ack, Limits, Phase, Window};
use crate::params::{
    BBR_FIRST_RTT, BBR_GAIN_CYCLE, BBR_GAIN_DRAIN, BBR_GAIN_HIGH, BBR_GAIN_WINDOW,
    BBR_INITIAL_WINDOW_MESSAGES, BBR_SMALL_BURST_RATE, BBR_WINDOW_MESSAGES_MIN,
};

/// The row of [`Bbr`].
pub static ROW: Row<dyn Window> =
    Row::<dyn Window>::plain("bbr", "BBR version 1 as in Linux, with pacing", |limits| {
        Box::new(Bbr::new(limits))
    });

/// What BBR does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Doubles the rate each round until the bandwidth stops growing.
    Startup,
    /// Empties the queue that Startup has built.
    Drain,
    /// Sends at the bandwidth, with a probe every eight phases.
    ProbeBw,
    /// Sends little for a while, to see the least round-trip time.
    ProbeRtt,
}

/// A rate of departures: bandwidth and gain.
#[derive(Clone, Copy, Debug, Default)]
struct Pacing {
    bandwidth: u64,
    gain: u64,
}

impl Pacing {
    fn product(self) -> u128 {
        u128::from(self.bandwidth) * u128::from(self.gain)
    }
}

/// The search for a bandwidth that no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: u64,
    rounds: u32,
    is_reached: bool,
}

/// Data that arrives beyond what the bandwidth explains, because acknowledgements come in bursts.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// The most of the present and of the last interval.
    extra: [u32; 2],
    index: usize,
    rounds: u32,
    epoch: Instant,
    epoch_acked: u64,
}

/// ProbeRtt while it lasts.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    done_at: Option<Instant>,
    is_round_done: bool,
}

/// The model of one path.
#[derive(Clone, Debug)]
pub struct Bbr {
    limits: Limits,
    window: u32,
    mode: Mode,
    phase: Phase,
    bandwidth: WindowedMax,
    policer: Policer,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    probe_rtt: ProbeRtt,
    rtt_min: Option<Duration>,
    rtt_min_at: Instant,
    pacing: Pacing,
    has_seen_rtt: bool,
    pacing_gain: u64,
    window_gain: u64,
    cycle_index: usize,
    cycle_at: Instant,
    rounds: u64,
    starts_round: bool,
    next_round_delivered: u64,
    conserves_packets: bool,
    restarts_from_idle: bool,
    window_before: u32,
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    segment_octets: u32,
    flight: Flight,
    /// What was delivered when a message left, for callers without rate samples; at most [`SENT_MAX`].
    sent: VecDeque<(Instant, u64)>,
}

/// Departures that are remembered for callers without rate samples: ours, 64; the oldest is forgotten.
const SENT_MAX: usize = 64;

impl Bbr {
    /// A window in Startup at `limits.initial`.
    pub fn new(limits: Limits) -> Self {
        let limits = limits.checked();
        let mut bbr = Self {
            limits,
            window: limits.initial,
            mode: Mode::Startup,
            phase: Phase::Open,
            bandwidth: WindowedMax::default(),
            policer: Policer::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            probe_rtt: ProbeRtt::default(),
            rtt_min: None,
            rtt_min_at: Instant::ZERO,
            pacing: Pacing::default(),
            has_seen_rtt: false,
            pacing_gain: BBR_GAIN_HIGH,
            window_gain: BBR_GAIN_HIGH,
            cycle_index: 0,
            cycle_at: Instant::ZERO,
            rounds: 0,
            starts_round: false,
            next_round_delivered: 1,
            conserves_packets: false,
            restarts_from_idle: false,
            window_before: 0,
            // The SYN counts, as in the samples of a TCP sender.
            delivered: 1,
            delivered_at: Instant::ZERO,
            lost: 0,
            segment_octets: 0,
            flight: Flight::default(),
            sent: VecDeque::new(),
        };
        bbr.set_first_pacing(BBR_FIRST_RTT);
        bbr
    }
    /// What it does at present.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
    /// The bandwidth that the model goes by.
    fn bandwidth(&self) -> u64 {
        self.policer.bandwidth().unwrap_or_else(|| self.bandwidth.get())
    }
    fn message(&self) -> u32 {
        self.limits.message
    }
    fn window_min(&self) -> u32 {
        BBR_WINDOW_MESSAGES_MIN.saturating_mul(self.message())
    }
    /// The bandwidth-delay product times `gain`.
    fn product(&self, bandwidth: u64, gain: u64) -> u32 {
        let Some(rtt) = self.rtt_min else {
            return BBR_INITIAL_WINDOW_MESSAGES.saturating_mul(self.message());
        };
        u32::try_from(rate::product(bandwidth, rtt, gain)).unwrap_or(u32::MAX)
    }
    /// Room for delayed acknowledgements: three bursts, an even number, and two more in the probing phase.
    fn quantised(&self, window: u32) -> u32 {
        let message = self.message();
        let window = window.saturating_add(3 * self.burst_messages().saturating_mul(message));
        let even = (window.div_ceil(message).saturating_add(1) & !1).saturating_mul(message);
        let probes = self.mode == Mode::ProbeBw && self.cycle_index == 0;
        if probes { even.saturating_add(2 * message) } else { even }
    }
    /// What should be in flight at `bandwidth` times `gain`.
    fn in_flight_target(&self, bandwidth: u64, gain: u64) -> u32 {
        self.quantised(self.product(bandwidth, gain))
    }
    /// Messages that leave back to back: 1 at a low rate, and what fills a millisecond otherwise.
    fn burst_messages(&self) -> u32 {
        if self.segment_octets == 0 {
            return 1;
        }
        let rate = self.octets_per_second();
        let least = if rate < BBR_SMALL_BURST_RATE { 1 } else { 2 };
        let burst = (rate >> 10).min(u64::from(u16::MAX)) / u64::from(self.segment_octets);
        (burst as u32).clamp(least, 127)
    }
    fn octets_per_second(&self) -> u64 {
        rate::octets_per_second(self.pacing.bandwidth, self.pacing.gain, self.segment_octets)
    }
    fn set_first_pacing(&mut self, rtt: Duration) {
        if let Some(bandwidth) = rate::bandwidth(u64::from(self.window), rtt) {
            self.pacing = Pacing { bandwidth, gain: BBR_GAIN_HIGH };
        }
    }
    /// Follows the bandwidth; before the pipe is full the rate only grows.
    fn set_pacing(&mut self, ack: &Ack<'_>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, ack.srtt.or(ack.rtt)) {
            self.has_seen_rtt = true;
            self.set_first_pacing(srtt);
        }
        let pacing = Pacing { bandwidth: self.bandwidth(), gain: self.pacing_gain };
        if self.full_pipe.is_reached || pacing.product() > self.pacing.product() {
            self.pacing = pacing;
        }
    }
    fn save_window(&mut self) {
        let keeps = self.phase < Phase::Recovery && self.mode != Mode::ProbeRtt;
        self.window_before = if keeps { self.window } else { self.window_before.max(self.window) };
    }
    fn set_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (BBR_GAIN_HIGH, BBR_GAIN_HIGH),
            Mode::Drain => (BBR_GAIN_DRAIN, BBR_GAIN_HIGH),
            Mode::ProbeBw if self.policer.bandwidth().is_some() => {
                (rate::GAIN_ONE, BBR_GAIN_WINDOW)
            }
            Mode::ProbeBw => (BBR_GAIN_CYCLE[self.cycle_index], BBR_GAIN_WINDOW),
            Mode::ProbeRtt => (rate::GAIN_ONE, rate::GAIN_ONE),
        };
    }
}

#[cfg(test)]
mod tests;
