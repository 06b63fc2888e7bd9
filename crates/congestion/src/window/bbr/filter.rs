//! The largest value of the last rounds in three samples, after the running filter of K. Nichols that Linux uses
//! (win_minmax.c): the best value, the best since then, and the best since that one.

/// A value and the round in which it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    round: u64,
    value: u64,
}

/// The largest value of a window of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    best: Sample,
    second: Sample,
    third: Sample,
}

impl WindowedMax {
    /// The largest value.
    pub(super) const fn get(&self) -> u64 {
        self.best.value
    }
    /// `value` came in `round`; values older than `rounds` no longer count.
    pub(super) fn update(&mut self, rounds: u64, round: u64, value: u64) {
        let sample = Sample { round, value };
        if value >= self.best.value || round - self.third.round > rounds {
            *self = Self { best: sample, second: sample, third: sample };
            return;
        }
        if value >= self.second.value {
            self.second = sample;
            self.third = sample;
        } else if value >= self.third.value {
            self.third = sample;
        }
        self.age(rounds, sample);
    }
    /// Takes up the next best value when one is too old, and spreads the samples over the window.
    fn age(&mut self, rounds: u64, sample: Sample) {
        let age = sample.round - self.best.round;
        if age > rounds {
            *self = Self { best: self.second, second: self.third, third: sample };
            if sample.round - self.best.round > rounds {
                *self = Self { best: self.second, second: self.third, third: sample };
            }
        } else if self.second.round == self.best.round && age > rounds / 4 {
            self.second = sample;
            self.third = sample;
        } else if self.third.round == self.second.round && age > rounds / 2 {
            self.third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_value_counts_at_once_and_a_smaller_one_when_the_larger_is_old() {
        let mut filter = WindowedMax::default();
        filter.update(10, 1, 50);
        filter.update(10, 2, 80);
        assert_eq!(filter.get(), 80);
        for round in 3..=12 {
            filter.update(10, round, 60);
            assert_eq!(filter.get(), 80, "round {round}");
        }
        filter.update(10, 13, 60);
        assert_eq!(filter.get(), 60);
    }

    #[test]
    fn after_a_pause_only_the_new_value_counts() {
        let mut filter = WindowedMax::default();
        filter.update(10, 1, 50);
        filter.update(10, 30, 5);
        assert_eq!(filter.get(), 5);
    }
}
