//! Pister-hack: every link lies a uniform 0 to 40 dB under free space, and a measured table turns RSSI
//! into PDR (6TiSCH simulator, Random connectivity).
//!
//! The depth of a link belongs to the two places, not to the order in which nodes are made: a node that
//! is moved gets new links, and both directions are alike.

use std::sync::LazyLock;

use lowmesh_registry::Row;
use lowmesh_units::rng::{draw, draw_unit};
use lowmesh_units::{Dbm, Purpose, Seed};

use super::links::{Link, Links};
use super::params::{
    PDR_OF_RSSI, PDR_TABLE_FIRST_DBM, PISTER_HACK_DEPTH_DB, PISTER_HACK_NOISE_DBM,
};
use super::pathloss::friis_gain_db;
use super::position::Position;
use super::row::{MakeMedium, Needs, SECTION, TX_POWER, places};
use super::{Medium, Overlap};

/// The row of [`PisterHack`].
pub static ROW: Row<dyn Medium> = Row {
    name: "pister-hack",
    summary: "The 6TiSCH Simulator's model",
    section: SECTION,
    parameters: &[TX_POWER.source("6TiSCH Simulator")],
    make: MakeMedium {
        needs: Needs::Places,
        build: |choice, topology, seed| {
            let tx_power = Dbm(choice.number("tx_power_dbm"));
            Ok(Box::new(PisterHack::new(places(topology)?, tx_power, seed)))
        },
    },
};

/// The medium named `pister-hack`.
#[derive(Clone, Debug)]
pub struct PisterHack {
    links: Links,
}

impl PisterHack {
    /// The links among `positions`, with transmitters of `tx_power`.
    pub fn new(positions: &[Position], tx_power: Dbm, seed: Seed) -> Self {
        let links = Links::flat(positions.len(), |tx, rx| {
            let rssi = link_rssi(seed, positions[tx.index()], positions[rx.index()], tx_power);
            let heard = rssi.0 >= PISTER_HACK_NOISE_DBM;
            heard.then(|| Link::dictated(rssi, pdr_of_rssi(rssi.0)))
        });
        Self { links }
    }
}

impl Medium for PisterHack {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::DictatedPdr
    }
    fn noise(&self) -> Dbm {
        Dbm(PISTER_HACK_NOISE_DBM)
    }
}

/// RSSI between two places, the same both ways.
pub fn link_rssi(seed: Seed, a: Position, b: Position, tx_power: Dbm) -> Dbm {
    let key =
        |place: Position| draw(seed, Purpose::Shadowing, place.x_m.to_bits(), place.y_m.to_bits());
    let (a_key, b_key) = (key(a), key(b));
    let depth = draw_unit(seed, Purpose::Shadowing, a_key.min(b_key), a_key.max(b_key))
        * PISTER_HACK_DEPTH_DB;
    Dbm(tx_power.0 + friis_gain_db(a.distance_m(b)) - depth)
}

/// PDR at an RSSI in dBm, linear between the whole dBm of the table.
pub fn pdr_of_rssi(rssi_dbm: f64) -> f64 {
    let place = rssi_dbm - PDR_TABLE_FIRST_DBM;
    if place.is_nan() || place <= 0.0 {
        return PDR_OF_RSSI[0];
    }
    let step = place as usize;
    let [.., last] = PDR_OF_RSSI;
    let (Some(low), Some(high)) = (PDR_OF_RSSI.get(step), PDR_OF_RSSI.get(step + 1)) else {
        return last;
    };
    low + (high - low) * (place - step as f64)
}

/// The lowest RSSI in dBm at which the table gives `pdr`; for media that know PDRs only.
pub fn rssi_of_pdr(pdr: f64) -> f64 {
    let step = PDR_OF_RSSI.partition_point(|entry| *entry < pdr).clamp(1, PDR_OF_RSSI.len() - 1);
    let (low, high) = (PDR_OF_RSSI[step - 1], PDR_OF_RSSI[step]);
    let part = ((pdr - low) / (high - low)).clamp(0.0, 1.0);
    PDR_TABLE_FIRST_DBM + (step - 1) as f64 + part
}

/// PDR at a linear SINR: that of the RSSI which stands as far above the noise.
pub fn pdr_at_sinr(sinr: f64) -> f64 {
    pdr_of_rssi(PISTER_HACK_NOISE_DBM + 10.0 * libm::log10(sinr))
}

/// The noise of this model, mW.
pub fn noise_mw() -> f64 {
    static NOISE: LazyLock<f64> = LazyLock::new(|| Dbm(PISTER_HACK_NOISE_DBM).milliwatts());
    *NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_gives_its_entries_and_lines_between_them() {
        for (rssi, pdr) in [
            (-120.0, 0.0),
            (-97.0, 0.0),
            (-96.5, 0.0747),
            (-93.0, 0.6359),
            (-90.0, 0.8603),
            (-79.5, 0.99515),
            (-79.0, 1.0),
            (-10.0, 1.0),
        ] {
            assert!((pdr_of_rssi(rssi) - pdr).abs() < 1e-9, "{rssi}: {}", pdr_of_rssi(rssi));
        }
    }

    #[test]
    fn the_table_turns_round() {
        for step in 1..=100 {
            let pdr = f64::from(step) / 100.0;
            assert!((pdr_of_rssi(rssi_of_pdr(pdr)) - pdr).abs() < 1e-9, "{pdr}");
        }
        assert!((rssi_of_pdr(0.0) + 97.0).abs() < 1e-9);
    }

    #[test]
    fn links_are_symmetric_and_lie_in_the_forty_decibels_under_free_space() {
        let place = |i: u16| Position::new(f64::from(i) * 7.0, f64::from(i % 5) * 3.0);
        let mut sum = 0.0;
        for i in 1..1000 {
            let rssi = |a, b| link_rssi(Seed(5), a, b, Dbm(0.0)).0;
            let (there, back) = (rssi(place(0), place(i)), rssi(place(i), place(0)));
            assert!((there - back).abs() < 1e-12);
            let depth = friis_gain_db(place(0).distance_m(place(i))) - there;
            assert!((0.0..=40.0).contains(&depth));
            sum += depth;
        }
        assert!((sum / 999.0 - 20.0).abs() < 1.5, "mean depth {}", sum / 999.0);
    }
}
