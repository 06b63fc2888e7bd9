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
    /// A first try.
    pub(super) fn new(config: &Config) -> Self {
        Self { backoffs: 0, exponent: config.be_min }
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
        let tries = core::iter::successors(Some(ChannelAccess::new(&config)), |access| {
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
    fn without_backoff_the_channel_is_sensed_at_once_and_once() {
        let config = Config { be_min: 0, be_max: 0, backoffs_max: 0, ..Config::default() };
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Mac);
        let access = ChannelAccess::new(&config);
        assert!((0..20).all(|_| access.delay(&mut rng).is_zero()));
        assert_eq!(access.after_busy(&config), None);
    }
}
