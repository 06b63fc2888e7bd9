//! Media whose received power follows from distance alone, and whose frames succeed by their SINR:
//! `friis`, `two-ray` and `log-distance` (with static shadowing, one seeded draw a link, alike both ways).

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::rng::draw_normal;
use lowmesh_units::{Dbm, NodeId, Purpose, Seed};

use super::error::BuildError;
use super::links::{Link, Links};
use super::params::{
    ANTENNA_HEIGHT_M, AUDIBLE_BELOW_NOISE_DB, CARRIER_MHZ, FRIIS_CONSTANT_DB, PATH_LOSS_EXPONENT,
    SHADOWING_SIGMA_DB,
};
use super::position::Position;
use super::row::{self, MakeMedium, NOISE, Needs, SECTION, TX_POWER, places};
use super::site::Topology;
use super::{Medium, Overlap};

/// Log-distance path loss.
pub static LOG_DISTANCE: Row<dyn Medium> = Row {
    name: "log-distance",
    summary: "Log-distance path loss with shadowing",
    section: SECTION,
    parameters: &[
        TX_POWER,
        NOISE,
        row::exponent(PATH_LOSS_EXPONENT, "Path-loss exponent"),
        row::shadowing(SHADOWING_SIGMA_DB, "Standard deviation of the shadowing of a link"),
    ],
    make: radiated(|choice, topology, seed| {
        let (exponent, sigma_db) = (choice.number("exponent"), choice.number("shadowing_db"));
        Radiated::of(PathLoss::LogDistance { exponent, sigma_db }, choice, topology, seed)
    }),
};

/// Free space.
pub static FRIIS: Row<dyn Medium> = Row {
    name: "friis",
    summary: "Free space",
    section: SECTION,
    parameters: &[TX_POWER, NOISE],
    make: radiated(|choice, topology, seed| Radiated::of(PathLoss::Friis, choice, topology, seed)),
};

/// Two rays.
pub static TWO_RAY: Row<dyn Medium> = Row {
    name: "two-ray",
    summary: "Free space at short distances, ground reflection at long ones",
    section: SECTION,
    parameters: &[
        TX_POWER,
        NOISE,
        Parameter::number(
            "height_m",
            ANTENNA_HEIGHT_M,
            0.01,
            1000.0,
            "Height of the antennas over ground",
        )
        .unit("m")
        .source("ours"),
    ],
    make: radiated(|choice, topology, seed| {
        let height_m = choice.number("height_m");
        Radiated::of(PathLoss::TwoRay { height_m }, choice, topology, seed)
    }),
};

const fn radiated(build: row::BuildMedium) -> MakeMedium {
    MakeMedium { needs: Needs::Places, build }
}

/// How power falls with distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Free space.
    Friis,
    /// Free space near by; past the crossover distance the ray from the ground eats the direct one.
    TwoRay {
        /// Height of all antennas, m.
        height_m: f64,
    },
    /// Free space for the first metre, then `exponent` decades of 10 dB a decade of distance.
    LogDistance {
        /// Path loss exponent, 2 for free space.
        exponent: f64,
        /// Standard deviation of the static shadowing of a link, dB.
        sigma_db: f64,
    },
}

impl PathLoss {
    /// Gain at `distance_m` in dB, without shadowing; never above 0.
    pub fn gain_db(self, distance_m: f64) -> f64 {
        match self {
            Self::TwoRay { height_m } => {
                let wavelength_m = 299.792_458 / CARRIER_MHZ;
                let crossover_m = 4.0 * core::f64::consts::PI * height_m * height_m / wavelength_m;
                if distance_m <= crossover_m {
                    return friis_gain_db(distance_m);
                }
                40.0 * (libm::log10(height_m) - libm::log10(distance_m))
            }
            Self::LogDistance { exponent, .. } if distance_m > 1.0 => {
                friis_gain_db(1.0) - 10.0 * exponent * libm::log10(distance_m)
            }
            Self::Friis | Self::LogDistance { .. } => friis_gain_db(distance_m),
        }
    }

    fn shadowing_db(self, seed: Seed, a: NodeId, b: NodeId) -> f64 {
        match self {
            Self::LogDistance { sigma_db, .. } if sigma_db > 0.0 => {
                let (low, high) = (u64::from(a.min(b).0), u64::from(a.max(b).0));
                sigma_db * draw_normal(seed, Purpose::Shadowing, low, high)
            }
            _ => 0.0,
        }
    }
}

/// Friis gain at 2400 MHz in dB, never above 0.
pub fn friis_gain_db(distance_m: f64) -> f64 {
    let loss = libm::log10(CARRIER_MHZ) + libm::log10(distance_m / 1000.0);
    (FRIIS_CONSTANT_DB - 20.0 * loss).min(0.0)
}

/// A medium of one [`PathLoss`].
#[derive(Clone, Debug)]
pub struct Radiated {
    model: PathLoss,
    noise: Dbm,
    links: Links,
}

impl Radiated {
    /// The medium of `model` with the power and the noise of `choice`.
    fn of(
        model: PathLoss,
        choice: &Choice<dyn Medium>,
        topology: &Topology,
        seed: Seed,
    ) -> Result<Box<dyn Medium>, BuildError> {
        let (tx_power, noise) = (choice.number("tx_power_dbm"), choice.number("noise_dbm"));
        let positions = places(topology)?;
        Ok(Box::new(Self::new(model, positions, Dbm(tx_power), Dbm(noise), seed)))
    }
    /// The links among `positions` by `model`.
    pub fn new(
        model: PathLoss,
        positions: &[Position],
        tx_power: Dbm,
        noise: Dbm,
        seed: Seed,
    ) -> Self {
        let links = Links::flat(positions.len(), |tx, rx| {
            let distance_m = positions[tx.index()].distance_m(positions[rx.index()]);
            let gain = model.gain_db(distance_m) + model.shadowing_db(seed, tx, rx);
            let rssi = Dbm(tx_power.0 + gain);
            (rssi.0 >= noise.0 - AUDIBLE_BELOW_NOISE_DB).then(|| Link::radiated(rssi))
        });
        Self { model, noise, links }
    }
}

impl Medium for Radiated {
    fn name(&self) -> &'static str {
        match self.model {
            PathLoss::Friis => FRIIS.name,
            PathLoss::TwoRay { .. } => TWO_RAY.name,
            PathLoss::LogDistance { .. } => LOG_DISTANCE.name,
        }
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::Sinr
    }
    fn noise(&self) -> Dbm {
        self.noise
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Channel;

    use super::*;

    #[test]
    fn free_space_loses_forty_decibels_in_the_first_metre_and_six_each_doubling() {
        assert!((friis_gain_db(1.0) + 40.04).abs() < 0.01);
        assert!((friis_gain_db(20.0) - friis_gain_db(10.0) + 6.02).abs() < 0.01);
        assert!(friis_gain_db(0.0).abs() < 1e-12);
    }

    #[test]
    fn two_rays_lose_twelve_decibels_each_doubling_past_the_crossover() {
        let model = PathLoss::TwoRay { height_m: 1.5 };
        assert!((model.gain_db(100.0) - friis_gain_db(100.0)).abs() < 1e-12);
        assert!((model.gain_db(1000.0) - model.gain_db(500.0) + 12.04).abs() < 0.01);
        // Both branches meet at the crossover, 226.4 m for 1.5 m antennas.
        assert!((model.gain_db(226.0) - model.gain_db(227.0)).abs() < 0.2);
    }

    #[test]
    fn log_distance_loses_ten_times_its_exponent_each_decade() {
        let model = PathLoss::LogDistance { exponent: 3.0, sigma_db: 0.0 };
        assert!((model.gain_db(100.0) - model.gain_db(10.0) + 30.0).abs() < 1e-9);
        assert!((model.gain_db(0.5) - friis_gain_db(0.5)).abs() < 1e-12);
    }

    #[test]
    fn shadowing_is_alike_both_ways_and_differs_by_seed() {
        let positions: Vec<_> = (0..20).map(|i| Position::new(f64::from(i), 0.0)).collect();
        let model = PathLoss::LogDistance { exponent: 3.0, sigma_db: 4.0 };
        let channel = Channel::new(20).expect("a channel of the band");
        let rssi = |seed, a, b| {
            Radiated::new(model, &positions, Dbm(0.0), Dbm(-98.0), Seed(seed))
                .rssi(NodeId(a), NodeId(b), channel)
                .expect("in reach")
        };
        assert_eq!(rssi(1, 3, 9), rssi(1, 9, 3));
        assert_ne!(rssi(1, 3, 9), rssi(2, 3, 9));
    }
}
