//! What a link is like, and which values make none.

use lowmesh_units::Duration;

use crate::Loss;
use crate::error::ConfigError;

/// The properties of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bits that the serialiser sends in a second; at least 1.
    pub rate_bits_per_second: u64,
    /// The time from the end of serialisation to the other end, without jitter.
    pub delay: Duration,
    /// The least and the largest time that is added to the delay, drawn for each packet. A packet waits for the
    /// one before it, so jitter never changes the order.
    pub jitter: (Duration, Duration),
    /// Octets that may wait for the serialiser, in total and for any one sender; the packet that is being
    /// sent is not counted. The next packet that does not fit is dropped. An idle link accepts a packet of any length.
    pub queue_octets_max: u64,
    /// Which packets are lost after serialisation.
    pub loss: Loss,
    /// Samples of the queue length that are kept; later changes are only counted. 0 keeps none.
    pub samples_max: usize,
}

impl Config {
    /// Checks that the values make a link.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |key, value, allowed| Err(ConfigError { key, value, allowed });
        if self.rate_bits_per_second == 0 {
            return error("rate_bits_per_second", 0.0, "a link sends at least 1 bit per second");
        }
        if self.jitter.0 > self.jitter.1 {
            let allowed = "the least jitter is not above the largest";
            return error("jitter", self.jitter.0.as_secs_f64(), allowed);
        }
        self.loss.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Config = Config {
        rate_bits_per_second: 1,
        delay: Duration::ZERO,
        jitter: (Duration::ZERO, Duration::ZERO),
        queue_octets_max: 0,
        loss: Loss::None,
        samples_max: 0,
    };

    #[test]
    fn each_value_that_makes_no_link_is_named() {
        let key = |config: Config| config.check().map_err(|error| error.key);
        assert_eq!(key(GOOD), Ok(()));
        assert_eq!(key(Config { rate_bits_per_second: 0, ..GOOD }), Err("rate_bits_per_second"));
        let jitter = (Duration::from_millis(2), Duration::from_millis(1));
        assert_eq!(key(Config { jitter, ..GOOD }), Err("jitter"));
        let loss = |loss| key(Config { loss, ..GOOD });
        assert_eq!(loss(Loss::Independent { probability: 1.01 }), Err("probability"));
        assert_eq!(loss(Loss::Independent { probability: f64::NAN }), Err("probability"));
        let second = Duration::from_secs(1);
        let bursts = |good, bad, mean_good, mean_bad| {
            loss(Loss::GilbertElliott { good, bad, mean_good, mean_bad })
        };
        assert_eq!(bursts(0.0, 1.0, second, second), Ok(()));
        assert_eq!(bursts(-0.1, 1.0, second, second), Err("good"));
        assert_eq!(bursts(0.0, 2.0, second, second), Err("bad"));
        assert_eq!(bursts(0.0, 1.0, Duration::ZERO, second), Err("mean_good"));
        assert_eq!(bursts(0.0, 1.0, second, Duration::ZERO), Err("mean_bad"));
    }

    #[test]
    fn the_error_says_the_value_and_what_is_allowed() {
        let config = Config { loss: Loss::Independent { probability: 2.0 }, ..GOOD };
        let error = config.check().expect_err("2 is no probability");
        assert_eq!(error.to_string(), "probability: 2 is not allowed; a probability is 0 to 1");
    }
}
