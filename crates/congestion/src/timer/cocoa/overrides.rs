//! A user's own numbers over a named parameter set.
//!
//! Only numbers can be replaced. The rules in which the sources differ (ageing, what the factor is
//! chosen by, the order of updates) stay with the named set, because each belongs to its source.

use core::fmt;

use lowmesh_units::Duration;

use super::parameters::Parameters;
use crate::params::{COCOA_FACTOR_MAX, COCOA_K_MAX, COCOA_THRESHOLD_MAX};

/// Numbers that replace those of a set; an absent one leaves the set's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Gain of RTT, 0 to 1.
    pub alpha: Option<f64>,
    /// Gain of RTTVAR, 0 to 1.
    pub beta: Option<f64>,
    /// Weight of RTTVAR in the strong estimator, 0 to [`COCOA_K_MAX`].
    pub k_strong: Option<f64>,
    /// Weight of RTTVAR in the weak estimator, 0 to [`COCOA_K_MAX`].
    pub k_weak: Option<f64>,
    /// Weight of the strong estimator in the overall RTO, 0 to 1.
    pub lambda_strong: Option<f64>,
    /// Weight of the weak estimator in the overall RTO, 0 to 1.
    pub lambda_weak: Option<f64>,
    /// Timeouts below this back off by `vbf_below`; at most [`COCOA_THRESHOLD_MAX`].
    pub vbf_lower: Option<Duration>,
    /// Timeouts above this back off by `vbf_above`; not below `vbf_lower`.
    pub vbf_upper: Option<Duration>,
    /// Back-off factor of short timeouts, 1 to [`COCOA_FACTOR_MAX`].
    pub vbf_below: Option<f64>,
    /// Back-off factor of usual timeouts, 1 to [`COCOA_FACTOR_MAX`].
    pub vbf_between: Option<f64>,
    /// Back-off factor of long timeouts, 1 to [`COCOA_FACTOR_MAX`].
    pub vbf_above: Option<f64>,
}

impl Overrides {
    /// Whether nothing is replaced.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `set` with these numbers in it, if each is within its bounds.
    pub fn over(&self, set: &Parameters) -> Result<Parameters, OutOfBounds> {
        let mut laid = *set;
        let numbers = [
            ("alpha", self.alpha, &mut laid.alpha, 0.0, 1.0),
            ("beta", self.beta, &mut laid.beta, 0.0, 1.0),
            ("k_strong", self.k_strong, &mut laid.k.strong, 0.0, COCOA_K_MAX),
            ("k_weak", self.k_weak, &mut laid.k.weak, 0.0, COCOA_K_MAX),
            ("lambda_strong", self.lambda_strong, &mut laid.lambda.strong, 0.0, 1.0),
            ("lambda_weak", self.lambda_weak, &mut laid.lambda.weak, 0.0, 1.0),
            ("vbf_below", self.vbf_below, &mut laid.backoff.below, 1.0, COCOA_FACTOR_MAX),
            ("vbf_between", self.vbf_between, &mut laid.backoff.between, 1.0, COCOA_FACTOR_MAX),
            ("vbf_above", self.vbf_above, &mut laid.backoff.above, 1.0, COCOA_FACTOR_MAX),
        ];
        for (key, value, place, low, high) in numbers {
            let Some(value) = value else { continue };
            // A NaN is in no range.
            if !(low..=high).contains(&value) {
                return Err(OutOfBounds { key });
            }
            *place = value;
        }
        let thresholds = &mut laid.backoff;
        thresholds.lower = self.vbf_lower.unwrap_or(thresholds.lower);
        thresholds.upper = self.vbf_upper.unwrap_or(thresholds.upper);
        if thresholds.upper > COCOA_THRESHOLD_MAX {
            return Err(OutOfBounds { key: "vbf_upper" });
        }
        if thresholds.lower > thresholds.upper {
            return Err(OutOfBounds { key: "vbf_lower" });
        }
        Ok(laid)
    }
}

/// A number that a set cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The field of [`Overrides`].
    pub key: &'static str,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is out of its bounds: ", self.key)?;
        match self.key {
            "k_strong" | "k_weak" => write!(f, "0 to {COCOA_K_MAX}"),
            "vbf_below" | "vbf_between" | "vbf_above" => write!(f, "1 to {COCOA_FACTOR_MAX}"),
            "vbf_lower" => f.write_str("at most vbf_upper"),
            "vbf_upper" => write!(f, "at most {COCOA_THRESHOLD_MAX}"),
            _ => f.write_str("0 to 1"),
        }
    }
}
impl core::error::Error for OutOfBounds {}

#[cfg(test)]
mod tests {
    use super::super::parameters::{DRAFT_03, SIX_COCOA, TABLE_2};
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn without_numbers_a_set_stays_what_it_is() {
        for set in [TABLE_2, DRAFT_03, SIX_COCOA] {
            assert_eq!(Overrides::default().over(&set), Ok(set));
        }
        assert!(Overrides::default().is_empty());
    }

    #[test]
    fn the_numbers_of_6cocoa_over_cocoa_are_6cocoa_but_for_the_name() {
        let overrides = Overrides {
            alpha: Some(0.9),
            beta: Some(0.5),
            k_strong: Some(2.0),
            k_weak: Some(0.5),
            lambda_strong: Some(0.75),
            lambda_weak: Some(0.1),
            vbf_lower: Some(Duration::from_secs(20)),
            vbf_upper: Some(Duration::from_secs(50)),
            vbf_below: Some(2.2),
            vbf_between: Some(1.5),
            vbf_above: Some(1.1),
        };
        assert_eq!(overrides.over(&TABLE_2), Ok(Parameters { name: "cocoa", ..SIX_COCOA }));
    }

    #[test]
    fn rules_that_are_no_numbers_stay_with_the_set() {
        let laid = Overrides { alpha: Some(0.5), ..Overrides::default() }.over(&DRAFT_03);
        assert_eq!(laid, Ok(Parameters { alpha: 0.5, ..DRAFT_03 }));
    }

    #[test]
    fn numbers_out_of_bounds_are_named() {
        let none = Overrides::default();
        let cases = [
            (Overrides { alpha: Some(1.1), ..none }, "alpha"),
            (Overrides { beta: Some(f64::NAN), ..none }, "beta"),
            (Overrides { k_weak: Some(-1.0), ..none }, "k_weak"),
            (Overrides { vbf_above: Some(0.9), ..none }, "vbf_above"),
            (Overrides { vbf_lower: Some(Duration::from_secs(4)), ..none }, "vbf_lower"),
            (Overrides { vbf_upper: Some(Duration::from_secs(91)), ..none }, "vbf_upper"),
        ];
        for (overrides, key) in cases {
            let error = overrides.over(&TABLE_2).expect_err(key);
            assert!(error.to_string().starts_with(key), "{error}");
        }
    }
}
