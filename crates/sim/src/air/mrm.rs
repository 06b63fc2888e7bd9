//! The direct ray of Cooja's multi-path ray-tracer medium, with its published formulae and defaults.
//!
//! ```text
//!   RSSI  = P_tx + min(0, -32.44 - 20 log10(f_MHz) - 20 log10(d_km))
//!   P(rx) = 1 - Phi((threshold - (RSSI - noise)) / sigma),  sigma^2 = gain variance + noise variance
//! ```
//!
//! Obstacles, reflections and diffractions are left out: without walls only the direct ray exists.
//! With the defaults half of all frames still arrive over 499 m, so a grid at 33 m is one hop wide;
//! a noise of -81.6 dBm puts that range at 60 m.

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::Dbm;

use super::links::{Link, Links};
use super::params::{
    MRM_CAPTURE_DB, MRM_GAIN_VARIANCE, MRM_GRID_NOISE_DBM, MRM_NOISE_DBM, MRM_NOISE_VARIANCE,
    MRM_SENSITIVITY_DBM, MRM_SNR_THRESHOLD_DB, PROBABILITY_MIN,
};
use super::pathloss::friis_gain_db;
use super::position::Position;
use super::row::{MakeMedium, Needs, SECTION, TX_POWER, places};
use super::{Medium, Overlap};

/// The row of [`Mrm`].
pub static ROW: Row<dyn Medium> = Row {
    name: "mrm",
    summary: "Cooja's multi-path medium, direct ray",
    section: SECTION,
    parameters: &[
        TX_POWER.source("a Cooja mote always sends at 0 dBm"),
        Parameter::number("noise_dbm", MRM_GRID_NOISE_DBM, -150.0, 0.0, "Mean background noise")
            .unit("dBm")
            .source("ours: delivery ratios of .99, .84 and .36 at 33, 46.7 and 66 m. Cooja's own -100 makes a 33 m grid one hop wide"),
        cooja(
            "snr_threshold_db",
            (MRM_SNR_THRESHOLD_DB, -50.0, 50.0),
            "Signal-to-noise ratio at which half of the frames arrive",
        )
        .unit("dB"),
        cooja("system_gain_var", (MRM_GAIN_VARIANCE, 0.0, 400.0), "Variance of the system gain")
            .unit("dB squared"),
        cooja("noise_var", (MRM_NOISE_VARIANCE, 0.0, 400.0), "Variance of the background noise")
            .unit("dB squared"),
        cooja(
            "sensitivity_dbm",
            (MRM_SENSITIVITY_DBM, -150.0, 0.0),
            "Sensitivity of the receiver; raises the threshold if it is above the noise",
        )
        .unit("dBm"),
        cooja(
            "capture_db",
            (MRM_CAPTURE_DB, 0.0, 50.0),
            "A new frame captures the receiver unless it is weaker by more than this",
        )
        .unit("dB"),
    ],
    make: MakeMedium {
        needs: Needs::Places,
        build: |choice, topology, _| Ok(Box::new(Mrm::new(params(choice), places(topology)?))),
    },
};

const fn cooja(
    key: &'static str,
    (default, low, high): (f64, f64, f64),
    summary: &'static str,
) -> Parameter {
    Parameter::number(key, default, low, high, summary).source("default of Cooja's MRM")
}

fn params(choice: &Choice<dyn Medium>) -> MrmParams {
    MrmParams {
        tx_power: Dbm(choice.number("tx_power_dbm")),
        noise: Dbm(choice.number("noise_dbm")),
        snr_threshold_db: choice.number("snr_threshold_db"),
        sensitivity: Dbm(choice.number("sensitivity_dbm")),
        noise_variance: choice.number("noise_var"),
        gain_variance: choice.number("system_gain_var"),
        capture_db: choice.number("capture_db"),
    }
}

/// The values of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MrmParams {
    /// Transmit power.
    pub tx_power: Dbm,
    /// Mean background noise.
    pub noise: Dbm,
    /// Least signal-to-noise ratio, dB.
    pub snr_threshold_db: f64,
    /// Receiver sensitivity; it raises the threshold if it is above the noise.
    pub sensitivity: Dbm,
    /// Variance of the background noise, dB^2.
    pub noise_variance: f64,
    /// Variance of the system gain, dB^2.
    pub gain_variance: f64,
    /// A new frame at most this much weaker takes the receiver over, dB.
    pub capture_db: f64,
}

impl Default for MrmParams {
    fn default() -> Self {
        Self {
            tx_power: Dbm(0.0),
            noise: Dbm(MRM_NOISE_DBM),
            snr_threshold_db: MRM_SNR_THRESHOLD_DB,
            sensitivity: Dbm(MRM_SENSITIVITY_DBM),
            noise_variance: MRM_NOISE_VARIANCE,
            gain_variance: MRM_GAIN_VARIANCE,
            capture_db: MRM_CAPTURE_DB,
        }
    }
}

impl MrmParams {
    /// Received power at `distance_m`.
    pub fn rssi(&self, distance_m: f64) -> Dbm {
        Dbm(self.tx_power.0 + friis_gain_db(distance_m))
    }
    /// The chance that a frame arrives over `distance_m`.
    pub fn reception_probability(&self, distance_m: f64) -> f64 {
        let threshold = self.snr_threshold_db.max(self.sensitivity.0 - self.noise.0);
        let snr = self.rssi(distance_m).0 - self.noise.0;
        let sigma = libm::sqrt(self.noise_variance + self.gain_variance);
        if sigma > 0.0 {
            // 1 - Phi(z) = erfc(z / sqrt 2) / 2, exact also far out in the tail.
            0.5 * libm::erfc((threshold - snr) / (sigma * core::f64::consts::SQRT_2))
        } else {
            f64::from(u8::from(snr >= threshold))
        }
    }
}

/// The medium named `mrm`.
#[derive(Clone, Debug)]
pub struct Mrm {
    noise: Dbm,
    /// Kept as a ratio: it is asked for at every receiver.
    capture_threshold: f64,
    links: Links,
}

impl Mrm {
    /// The links among `positions`.
    pub fn new(params: MrmParams, positions: &[Position]) -> Self {
        let links = Links::flat(positions.len(), |tx, rx| {
            let distance_m = positions[tx.index()].distance_m(positions[rx.index()]);
            let rssi = params.rssi(distance_m);
            let pdr = params.reception_probability(distance_m);
            // A frame that fails its draw does not disturb in this model, so a link that never carries one
            // is no link.
            (pdr >= PROBABILITY_MIN).then(|| Link::dictated(rssi, pdr))
        });
        let capture_threshold = Dbm(-params.capture_db).milliwatts();
        Self { noise: params.noise, capture_threshold, links }
    }
}

impl Medium for Mrm {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::Capture { threshold: self.capture_threshold }
    }
    fn noise(&self) -> Dbm {
        self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noise_of_minus_81_6_makes_33_metre_grids_multi_hop() {
        let params = MrmParams { noise: Dbm(-81.6), ..MrmParams::default() };
        for (distance, expected) in [(33.0, 0.99), (46.7, 0.84), (66.0, 0.36)] {
            let p = params.reception_probability(distance);
            assert!((p - expected).abs() < 0.01, "{distance} m: {p}");
        }
    }

    #[test]
    fn the_defaults_reach_half_a_kilometre() {
        let params = MrmParams::default();
        for (distance, expected) in [(33.0, 1.0), (187.0, 1.0), (327.0, 0.95), (499.0, 0.5)] {
            let p = params.reception_probability(distance);
            assert!((p - expected).abs() < 0.01, "{distance} m: {p}");
        }
    }

    #[test]
    fn a_sensitivity_above_the_noise_raises_the_threshold() {
        let deaf = MrmParams { sensitivity: Dbm(-80.0), ..MrmParams::default() };
        assert!(deaf.reception_probability(327.0) < 0.01);
        // -80 dBm is reached at 99.5 m.
        assert!((deaf.reception_probability(99.5) - 0.5).abs() < 0.01);
    }
}
