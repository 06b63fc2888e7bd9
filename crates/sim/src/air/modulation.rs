//! How many frames survive a given SINR on the 2.4 GHz O-QPSK PHY (IEEE 802.15.4-2006 annex E.4.1.8).
//!
//! ```text
//!   BER  = 8/15 * 1/16 * sum over k = 2..16 of (-1)^k C(16, k) exp(20 SINR (1/k - 1))
//!   PSR  = (1 - BER)^(8 octets)
//! ```
//!
//! Fifteen exponentials a frame are too many for a simulator, so ln(1 - BER) is tabulated over the linear
//! SINR once; linear interpolation is off by less than 0.02 % of it.

use std::sync::LazyLock;

/// C(16, k) for k = 2..=16.
const BINOMIALS: [f64; 15] = [
    120.0, 560.0, 1820.0, 4368.0, 8008.0, 11440.0, 12870.0, 11440.0, 8008.0, 4368.0, 1820.0, 560.0,
    120.0, 16.0, 1.0,
];
/// Table steps for one unit of linear SINR.
const STEPS: f64 = 256.0;
/// Linear SINR (6 dB) past which the BER is under 10^-16.
const SINR_MAX: f64 = 4.0;

static LOG_BIT_SUCCESS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    (0..=(SINR_MAX * STEPS) as usize + 1)
        .map(|step| libm::log1p(-bit_error_rate(step as f64 / STEPS)))
        .collect()
});

/// Bit error rate at a linear SINR (annex E.4.1.8), 0.5 at none.
pub fn bit_error_rate(sinr: f64) -> f64 {
    let mut sum = 0.0;
    let mut sign = 1.0;
    for (index, binomial) in BINOMIALS.iter().enumerate() {
        let k = (index + 2) as f64;
        sum += sign * binomial * libm::exp(20.0 * sinr * (1.0 / k - 1.0));
        sign = -sign;
    }
    (sum / 30.0).clamp(0.0, 0.5)
}

/// The chance that all bits of `octets` octets arrive at a linear SINR.
pub fn packet_success(sinr: f64, octets: usize) -> f64 {
    libm::exp(log_success(sinr, octets as f64))
}

/// The natural logarithm of that chance, for a part of a frame: those of all parts add up.
pub fn log_success(sinr: f64, octets: f64) -> f64 {
    if sinr >= SINR_MAX {
        return 0.0;
    }
    // NaN (no signal in no noise) carries nothing.
    if sinr.is_nan() || sinr <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let place = sinr * STEPS;
    let step = place as usize;
    let table = &*LOG_BIT_SUCCESS;
    let log_bit = table[step] + (table[step + 1] - table[step]) * (place - step as f64);
    log_bit * (8.0 * octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_signal_every_second_bit_is_wrong() {
        assert!((bit_error_rate(0.0) - 0.5).abs() < 1e-12);
        assert!(packet_success(0.0, 20) < 1e-12);
        assert!(packet_success(f64::NAN, 20) < 1e-12);
    }

    #[test]
    fn the_bit_error_rate_follows_its_first_term_at_high_sinr() {
        // The k = 2 term alone: 120/30 exp(-10 SINR); the next is exp(-10/3 SINR) smaller.
        for sinr in [1.5, 2.0, 3.0] {
            let first = 4.0 * libm::exp(-10.0 * sinr);
            let rate = bit_error_rate(sinr);
            assert!((rate / first - 1.0).abs() < 0.05, "{sinr}: {rate} {first}");
        }
        // The whole sum by hand at 0 dB.
        assert!((bit_error_rate(1.0) - 1.6153e-4).abs() < 1e-8, "{}", bit_error_rate(1.0));
    }

    #[test]
    fn the_table_agrees_with_the_formula() {
        for step in 1..400 {
            let sinr = f64::from(step) * 0.01;
            let exact = libm::exp(8.0 * 127.0 * libm::log1p(-bit_error_rate(sinr)));
            assert!((packet_success(sinr, 127) - exact).abs() < 2e-4, "{sinr}");
        }
    }

    #[test]
    fn longer_frames_and_weaker_signals_fail_more() {
        for pair in [0.5, 0.7, 0.9, 1.1, 1.3].windows(2) {
            assert!(packet_success(pair[0], 100) < packet_success(pair[1], 100));
            assert!(packet_success(pair[0], 100) < packet_success(pair[0], 20));
        }
        assert!((packet_success(10.0, 127) - 1.0).abs() < 1e-12);
    }
}
