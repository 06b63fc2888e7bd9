//! Rates as whole numbers: units a microsecond in fixed point with 24 bits, gains in parts of 256, as Linux computes
//! them, so that its rounding is ours.

use lowmesh_units::Duration;

use crate::params::BBR_PACING_MARGIN_PERCENT;

/// Bits behind the point of a bandwidth.
const BANDWIDTH_BITS: u32 = 24;
/// A gain of 1.
pub(super) const GAIN_ONE: u64 = 256;

/// `delivered` in `span`; `None` for a span under a microsecond.
pub(super) fn bandwidth(delivered: u64, span: Duration) -> Option<u64> {
    (delivered << BANDWIDTH_BITS).checked_div(span.as_micros())
}

/// What `bandwidth` delivers in `span`, rounded down.
pub(super) fn delivered_in(bandwidth: u64, span: Duration) -> u64 {
    let units = u128::from(bandwidth) * u128::from(span.as_micros());
    (units >> BANDWIDTH_BITS) as u64
}

/// What `bandwidth` times `gain` delivers in `span`, rounded up.
pub(super) fn product(bandwidth: u64, span: Duration, gain: u64) -> u64 {
    let units = u128::from(bandwidth) * u128::from(span.as_micros()) * u128::from(gain)
        / u128::from(GAIN_ONE);
    units.div_ceil(1 << BANDWIDTH_BITS) as u64
}

/// The rate of departures in octets a second, one percent below `bandwidth` times `gain`.
pub(super) fn octets_per_second(bandwidth: u64, gain: u64, segment_octets: u32) -> u64 {
    let octets = u128::from(bandwidth) * u128::from(segment_octets) * u128::from(gain)
        / u128::from(GAIN_ONE);
    let share = u128::from(1_000_000 / 100 * (100 - BBR_PACING_MARGIN_PERCENT));
    ((octets * share) >> BANDWIDTH_BITS) as u64
}

/// How long `units` take at that rate.
pub(super) fn time_of(units: u32, bandwidth: u64, gain: u64) -> Duration {
    let share = u128::from(100 - BBR_PACING_MARGIN_PERCENT);
    let rate = u128::from(bandwidth) * u128::from(gain) * share;
    let scaled = (u128::from(units) << BANDWIDTH_BITS) * 1_000 * 100 * u128::from(GAIN_ONE);
    Duration::from_nanos(
        scaled.checked_div(rate).map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pacing_rate_is_that_of_a_measured_kernel() {
        // Linux 6.18 after a handshake of 650,571 us: 10 segments of 244 octets, gain 739/256, 10,681 octets/s.
        let first = bandwidth(10, Duration::from_micros(650_571)).expect("a span");
        assert_eq!(octets_per_second(first, 739, 244), 10_681);
        // After 645,642 us without timestamps: 256 octets, 11,294 octets/s.
        let first = bandwidth(10, Duration::from_micros(645_642)).expect("a span");
        assert_eq!(octets_per_second(first, 739, 256), 11_294);
    }

    #[test]
    fn a_gap_is_the_inverse_of_the_rate() {
        let rate = bandwidth(100, Duration::from_secs(1)).expect("a span");
        let gap = time_of(1, rate, GAIN_ONE).as_millis_f64();
        assert!((gap - 10.0 / 0.99).abs() < 0.01, "{gap}");
        assert_eq!(product(rate, Duration::from_millis(95), GAIN_ONE), 10);
        assert_eq!(delivered_in(rate, Duration::from_millis(95)), 9);
    }
}
