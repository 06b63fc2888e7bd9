//! CUBIC (RFC 9438): growth by time since the last reduction, and not by round trips.
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max       K = cbrt((W_max - cwnd_epoch) / C)
//!   W_est      grows like Reno with alpha = 3 (1 - beta) / (1 + beta) until it has passed cwnd_prior, then with alpha = 1
//!   avoidance  towards max(W_cubic(t + RTT), W_est), at most half a window a round trip
//!   episode    ssthresh = max(0.7 W, 2 messages);  fast convergence: W_max = 0.85 W below the last W_max
//! ```
//!
//! Windows in these formulas count messages. Senders with summaries of acknowledgements (TCP) leave slow start by HyStart
//! of Linux (`hystart`) before a loss; it is the ancestor of HyStart++ (RFC 9406).

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant};

use super::hystart::HyStart;
use super::loss_based::{Avoidance, Growth, LossBased};
use super::{Ack, Limits, Window};
use crate::params::{
    CUBIC_BETA, CUBIC_C, CUBIC_CREDIT_BLIND, CUBIC_CREDIT_WINDOWS_MAX, CUBIC_GROWTH_MAX,
    HYSTART_PAUSE, RENO_THRESHOLD_MESSAGES_MIN,
};

/// The row of [`Cubic`].
pub static ROW: Row<dyn Window> = Row::<dyn Window>::plain(
    "cubic",
    "CUBIC (RFC 9438), for TCP with HyStart as in Linux",
    |limits| Box::new(Cubic::new(limits)),
);

/// The window of CUBIC.
pub type Cubic = LossBased<CubicGrowth>;

/// The state of CUBIC's congestion avoidance.
#[derive(Clone, Copy, Debug, Default)]
pub struct CubicGrowth {
    /// W_max in messages; 0 before the first reduction.
    window_max: f64,
    /// W_max before the latest reduction.
    window_max_before: f64,
    /// cwnd_prior: the window in messages at the latest reduction, a timeout too; 0 before the first.
    prior: f64,
    /// cwnd_prior before the latest reduction.
    prior_before: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
}

/// Congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K in seconds.
    k: f64,
    /// The plateau: W_max, or the window where it already was larger.
    origin: f64,
    /// W_est.
    estimate: f64,
}

impl Cubic {
    /// A window that starts at `limits.initial`.
    pub fn new(limits: Limits) -> Self {
        Self::with_growth(limits, CubicGrowth::default())
    }
}

impl CubicGrowth {
    /// RFC 9438 s4.2: the epoch begins with the first acknowledgement in congestion avoidance.
    fn begin(&self, window: f64, now: Instant) -> Epoch {
        let origin = self.window_max.max(window);
        let k = libm::cbrt((origin - window) / CUBIC_C);
        Epoch { start: now, k, origin, estimate: window }
    }
}

impl Growth for CubicGrowth {
    const NAME: &'static str = "cubic";

    fn threshold(&mut self, window: u32, message: u32) -> u32 {
        let messages = f64::from(window) / f64::from(message);
        self.window_max_before = self.window_max;
        self.prior_before = core::mem::replace(&mut self.prior, messages);
        // RFC 9438 s4.7, fast convergence.
        self.window_max =
            if messages < self.window_max { messages * (1.0 + CUBIC_BETA) / 2.0 } else { messages };
        self.epoch = None;
        let reduced = (f64::from(window) * CUBIC_BETA) as u32;
        // RFC 9438 s4.6: the least is two messages.
        reduced.max(RENO_THRESHOLD_MESSAGES_MIN.saturating_mul(message))
    }
    fn credit_per_message(&mut self, state: Avoidance, now: Instant) -> u32 {
        let message = f64::from(state.message);
        let window = f64::from(state.window) / message;
        let epoch = self.epoch.unwrap_or_else(|| self.begin(window, now));
        let rtt = state.rtt.unwrap_or(Duration::ZERO).as_secs_f64();
        let t = now.since(epoch.start).as_secs_f64() + rtt - epoch.k;
        let cubic = CUBIC_C * t * t * t + epoch.origin;
        // RFC 9438 s4.3, equation 4: Reno's share until it has passed cwnd_prior; always in Linux.
        let alpha = if epoch.estimate < self.prior {
            3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA)
        } else {
            1.0
        };
        let acked = f64::from(state.acked) / message;
        let estimate = epoch.estimate + alpha * acked / window;
        self.epoch = Some(Epoch { estimate, ..epoch });
        // What W_est is ahead counts in whole messages: W_cubic is the window of a round trip later, W_est that of now.
        let ahead = (cubic - window).max(libm::floor(estimate - window));
        let ahead = ahead.min(window * (CUBIC_GROWTH_MAX - 1.0));
        // Linux: without a plateau, as after a timeout, a message for twenty at least.
        let most = if self.window_max > 0.0 {
            window * CUBIC_CREDIT_WINDOWS_MAX
        } else {
            CUBIC_CREDIT_BLIND
        };
        let credit = if ahead > 0.0 { (window / ahead).min(most) } else { most };
        (credit.clamp(1.0, most) * message) as u32
    }
    fn undo(&mut self) {
        self.window_max = self.window_max_before;
        self.prior = self.prior_before;
        self.epoch = None;
    }
    fn restart(&mut self) {
        self.epoch = None;
    }
    /// RFC 9438 s4.8 and Linux (bictcp_reset): the plateau is forgotten, and HyStart may end slow start again. What the
    /// window was before counts on (s4.3).
    fn forget(&mut self) {
        *self = Self { prior: self.prior, prior_before: self.prior_before, ..Self::default() };
    }
    fn ends_slow_start(&mut self, window: u32, message: u32, ack: &Ack<'_>, now: Instant) -> bool {
        let starts_now = self.epoch.is_some_and(|epoch| now.since(epoch.start) < HYSTART_PAUSE);
        !starts_now && self.hystart.ends_slow_start(window / message, ack, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, window_of};
    use super::super::{Ack, Phase, PhaseChange};
    use super::*;

    /// A window of 100 that met a loss, at its threshold.
    fn reduced() -> Cubic {
        let mut window = Cubic::new(Limits::messages(100, 10_000));
        episode(&mut window);
        window
    }

    fn episode(window: &mut Cubic) {
        let change = PhaseChange { phase: Phase::Recovery, is_new_episode: true, lost: &[] };
        window.on_phase(&change, at(0));
        let threshold = window.snapshot().threshold.expect("a loss sets it");
        window.resize(threshold);
    }

    /// Acknowledges whole windows every 100 ms for `rounds`, from round `from`.
    fn rounds(window: &mut Cubic, from: u64, rounds: u64) {
        for round in from..from + rounds {
            let acked = window_of(window);
            for one in 0..acked {
                let now = at(round * 100 + u64::from(one) * 100 / u64::from(acked));
                let rtt = Some(Duration::from_millis(100));
                let ack = Ack {
                    advances: true,
                    delivered: 1,
                    is_window_limited: true,
                    rtt,
                    ..Ack::default()
                };
                window.on_ack(&ack, now);
            }
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_never_less_than_two() {
        assert_eq!(window_of(&reduced()), 70);
        let mut window = Cubic::new(Limits::messages(2, 100));
        episode(&mut window);
        assert_eq!(window_of(&window), 2);
    }

    #[test]
    fn the_window_is_back_at_its_plateau_after_k_and_grows_slowest_there() {
        let mut window = reduced();
        // K = cbrt(30 / 0.4) = 4.2 s, 42 rounds of 100 ms.
        rounds(&mut window, 0, 21);
        let half = window_of(&window);
        rounds(&mut window, 21, 21);
        let plateau = window_of(&window);
        assert!((94..=101).contains(&plateau), "{plateau}");
        assert!(half - 70 > plateau - half, "{half} {plateau}");
        rounds(&mut window, 42, 42);
        assert!(window_of(&window) > 120, "{}", window_of(&window));
    }

    #[test]
    fn at_small_windows_it_grows_at_least_like_reno_with_its_alpha() {
        let mut window = Cubic::new(Limits::messages(10, 1000));
        episode(&mut window);
        assert_eq!(window_of(&window), 7);
        rounds(&mut window, 0, 10);
        // alpha = 0.529 for six rounds up to W_max, then one a round; W_cubic alone would have reached 9.
        assert!((13..=15).contains(&window_of(&window)), "{}", window_of(&window));
    }

    #[test]
    fn after_a_timeout_it_grows_with_its_alpha_up_to_the_window_before() {
        let mut window = Cubic::new(Limits::messages(10, 1000));
        let change = PhaseChange { phase: Phase::Loss, is_new_episode: true, lost: &[] };
        window.on_phase(&change, at(0));
        window.resize(7);
        // Reno with alpha = 0.529 comes from the threshold to 10 in 5.7 rounds, and grows by one a round from there.
        rounds(&mut window, 0, 3);
        assert_eq!(window_of(&window), 8);
        rounds(&mut window, 3, 9);
        assert!((15..=17).contains(&window_of(&window)), "{}", window_of(&window));
    }

    #[test]
    fn a_loss_below_the_last_plateau_gives_room_to_others() {
        let mut window = reduced();
        episode(&mut window);
        assert!((window.growth().window_max - 59.5).abs() < 1e-9);
        window.on_undo(at(1));
        assert!((window.growth().window_max - 100.0).abs() < 1e-9);
    }
}
