//! Which packets a link loses: none, each with the same probability, or in bursts.

use lowmesh_units::{Duration, Instant, Rng};

use crate::error::ConfigError;

/// The process that decides whether a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Every packet arrives.
    None,
    /// Each packet is lost with this probability, independently of the others.
    Independent {
        /// From 0 to 1.
        probability: f64,
    },
    /// Two states in continuous time with exponential sojourns, from Gilbert 1960 and Elliott 1963; the link starts in
    /// the good one. The state goes on while nothing is sent.
    GilbertElliott {
        /// The probability of a loss in the good state, from 0 to 1.
        good: f64,
        /// The same in the bad state.
        bad: f64,
        /// The mean sojourn in the good state.
        mean_good: Duration,
        /// The mean sojourn in the bad state.
        mean_bad: Duration,
    },
}

impl Loss {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let probability = |key, value: f64| {
            let allowed = "a probability is 0 to 1";
            let valid = (0.0..=1.0).contains(&value);
            if valid { Ok(()) } else { Err(ConfigError { key, value, allowed }) }
        };
        let sojourn = |key, mean: Duration| {
            let allowed = "a mean sojourn is longer than 0";
            if mean.is_zero() { Err(ConfigError { key, value: 0.0, allowed }) } else { Ok(()) }
        };
        match *self {
            Self::None => Ok(()),
            Self::Independent { probability: value } => probability("probability", value),
            Self::GilbertElliott { good, bad, mean_good, mean_bad } => {
                probability("good", good)?;
                probability("bad", bad)?;
                sojourn("mean_good", mean_good)?;
                sojourn("mean_bad", mean_bad)
            }
        }
    }
}

/// The process in its present state.
#[derive(Debug)]
pub(crate) struct Process {
    loss: Loss,
    is_bad: bool,
    /// The end of the present sojourn; unset until the first packet.
    until: Option<Instant>,
}

impl Process {
    pub(crate) const fn new(loss: Loss) -> Self {
        Self { loss, is_bad: false, until: None }
    }
    /// Whether the packet whose serialisation ends at `now` is lost. `now` never goes back.
    pub(crate) fn loses(&mut self, now: Instant, rng: &mut Rng) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent { probability } => rng.chance(probability),
            Loss::GilbertElliott { good, bad, mean_good, mean_bad } => {
                let mut until = match self.until {
                    Some(until) => until,
                    None => Instant::ZERO + sojourn(mean_good, rng),
                };
                while until <= now {
                    self.is_bad = !self.is_bad;
                    until += sojourn(if self.is_bad { mean_bad } else { mean_good }, rng);
                }
                self.until = Some(until);
                rng.chance(if self.is_bad { bad } else { good })
            }
        }
    }
}

/// A sojourn of at least a nanosecond, so that time goes on.
fn sojourn(mean: Duration, rng: &mut Rng) -> Duration {
    mean.mul_f64(rng.exponential()).max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    fn share(loss: Loss, packets: u64, gap: Duration) -> f64 {
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Wired);
        let mut process = Process::new(loss);
        let lost =
            (0..packets).filter(|i| process.loses(Instant::ZERO + gap * *i, &mut rng)).count();
        lost as f64 / packets as f64
    }

    #[test]
    fn independent_losses_come_to_their_probability() {
        let share =
            share(Loss::Independent { probability: 0.3 }, 100_000, Duration::from_millis(1));
        assert!((share - 0.3).abs() < 0.005, "{share}");
    }

    #[test]
    fn bursts_come_to_the_mean_of_both_states_weighted_by_their_sojourns() {
        let loss = Loss::GilbertElliott {
            good: 0.02,
            bad: 0.5,
            mean_good: Duration::from_secs(8),
            mean_bad: Duration::from_millis(1500),
        };
        // (0.02 * 8 + 0.5 * 1.5) / 9.5 = 0.0958.
        let share = share(loss, 400_000, Duration::from_millis(79));
        assert!((share - 0.0958).abs() < 0.006, "{share}");
    }

    #[test]
    fn losses_of_bursts_follow_each_other() {
        let loss = Loss::GilbertElliott {
            good: 0.0,
            bad: 1.0,
            mean_good: Duration::from_secs(9),
            mean_bad: Duration::from_secs(1),
        };
        let mut rng = Rng::stream(Seed(2), NodeId(0), Purpose::Wired);
        let mut process = Process::new(loss);
        let lost: Vec<bool> =
            (0..100_000).map(|i| process.loses(Instant::from_millis(i * 10), &mut rng)).collect();
        let after_loss = lost.windows(2).filter(|pair| pair[0]).collect::<Vec<_>>();
        let both = after_loss.iter().filter(|pair| pair[1]).count() as f64;
        assert!(both / after_loss.len() as f64 > 0.97, "a bad second holds a hundred packets");
    }
}
