//! Getting the channel: IEEE 802.15.4-2015 s6.2.5.1, Figure 6-5, unslotted.
//!
//! ```text
//!   NB = 0, BE = macMinBe
//!      │
//!      ├──> wait random(0 .. 2^BE - 1) backoff periods ──> CCA ── idle ──> send
//!      │                                                    │ busy
//!      └──── NB <= macMaxCsmaBackoffs ──── NB += 1, BE = min(BE + 1, macMaxBe)
//!                                           └── NB > macMaxCsmaBackoffs ──> failure
//! ```

use lowmesh_units::{Duration, Rng};

use super::config::Config;
use crate::params::BACKOFF_PERIOD;

/// One attempt to get the channel for one copy of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelAccess {
    /// NB: backoffs after the first.
    backoffs: u8,
    /// BE.
    exponent: u8,
}

impl ChannelAccess {
    /// A first try for the copy that follows `copies` others.
    pub(super) fn new(config: &Config, copies: u8) -> Self {
        let growth = config.be_growth.saturating_mul(copies);
        let exponent = config.be_min.saturating_add(growth).min(config.be_max);
        Self { backoffs: 0, exponent }
    }
    /// How long to wait before sensing.
    pub(super) fn delay(self, rng: &mut Rng) -> Duration {
        BACKOFF_PERIOD * u64::from(rng.below(1 << self.exponent))
    }
    /// The next try after a busy channel, unless that was the last.
    pub(super) fn after_busy(self, config: &Config) -> Option<Self> {
        let exponent = (self.exponent + 1).min(config.be_max);
        (self.backoffs < config.backoffs_max)
            .then_some(Self { backoffs: self.backoffs + 1, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    #[test]
    fn windows_double_from_be_min_to_be_max_and_the_fifth_busy_channel_is_the_last() {
        let config = Config::default();
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Mac);
        let tries = core::iter::successors(Some(ChannelAccess::new(&config, 0)), |access| {
            access.after_busy(&config)
        });
        let longest: Vec<u64> = tries
            .map(|access| {
                let drawn = (0..500).map(|_| access.delay(&mut rng)).max().expect("500 draws");
                drawn.as_micros() / 320
            })
            .collect();
        assert_eq!(longest, [7, 15, 31, 31, 31]);
    }

    #[test]
    fn the_first_window_of_a_copy_grows_only_where_it_is_set_to() {
        let exponents = |be_growth| {
            let config = Config { be_growth, ..Config::default() };
            [0, 1, 2, 255].map(|copies| ChannelAccess::new(&config, copies).exponent)
        };
        assert_eq!(exponents(0), [3; 4]);
        assert_eq!(exponents(1), [3, 4, 5, 5]);
    }

    #[test]
    fn without_backoff_the_channel_is_sensed_at_once_and_once() {
        let config = Config { be_min: 0, be_max: 0, backoffs_max: 0, ..Config::default() };
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Mac);
        let access = ChannelAccess::new(&config, 0);
        assert!((0..20).all(|_| access.delay(&mut rng).is_zero()));
        assert_eq!(access.after_busy(&config), None);
    }
}
