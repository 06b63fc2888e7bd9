//! The unit disk with interference range and distance loss of Cooja (UDGM).
//!
//! ```text
//!   P(rx at d) = ratio_tx (1 - (d / R)^2 (1 - ratio_rx)),   d <= R
//!   RSSI       = -10 - 85 d / R dBm
//! ```
//!
//! Cooja draws the transmit ratio once a frame for all receivers; here each receiver draws for itself.

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::Dbm;

use super::links::{Link, Links};
use super::params::{
    DISK_INTERFERENCE_M, DISK_NOTHING_DBM, DISK_RANGE_M, DISK_STRONG_DBM, DISK_WEAK_DBM,
};
use super::position::Position;
use super::row::{MakeMedium, Needs, SECTION, places};
use super::{Medium, Overlap};

/// The row of [`UnitDisk`].
pub static ROW: Row<dyn Medium> = Row {
    name: "unit-disk",
    summary: "Cooja's unit disk",
    section: SECTION,
    parameters: &[
        metres("range_m", DISK_RANGE_M, "Distance up to which frames arrive")
            .not_above("interference_range_m"),
        metres("interference_range_m", DISK_INTERFERENCE_M, "Distance up to which frames interfere"),
        Parameter::number(
            "edge_ratio",
            1.0,
            0.0,
            1.0,
            "Share of frames that arrive at the edge of the disk; 1 gives the same ratio everywhere",
        )
        .source(COOJA),
    ],
    make: MakeMedium {
        needs: Needs::Places,
        build: |choice, topology, _| Ok(Box::new(UnitDisk::new(params(choice), places(topology)?))),
    },
};

const COOJA: &str = "default of Cooja's UDGM";

const fn metres(key: &'static str, default: f64, summary: &'static str) -> Parameter {
    Parameter::number(key, default, 0.1, 100_000.0, summary).unit("m").source(COOJA)
}

fn params(choice: &Choice<dyn Medium>) -> DiskParams {
    DiskParams {
        range_m: choice.number("range_m"),
        interference_m: choice.number("interference_range_m"),
        ratio_rx: choice.number("edge_ratio"),
        ..DiskParams::default()
    }
}

/// The values of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskParams {
    /// Frames are received up to here, m.
    pub range_m: f64,
    /// Frames destroy others up to here, m.
    pub interference_m: f64,
    /// Success at the transmitter, 0 to 1.
    pub ratio_tx: f64,
    /// Success at the edge of the range, 0 to 1.
    pub ratio_rx: f64,
}

impl Default for DiskParams {
    fn default() -> Self {
        Self {
            range_m: DISK_RANGE_M,
            interference_m: DISK_INTERFERENCE_M,
            ratio_tx: 1.0,
            ratio_rx: 1.0,
        }
    }
}

impl DiskParams {
    /// The chance that a frame arrives over `distance_m`.
    pub fn reception_probability(&self, distance_m: f64) -> f64 {
        if distance_m > self.range_m {
            return 0.0;
        }
        let part = distance_m / self.range_m;
        self.ratio_tx * (1.0 - part * part * (1.0 - self.ratio_rx))
    }
    /// Received power at `distance_m`.
    pub fn rssi(&self, distance_m: f64) -> Dbm {
        let slope = DISK_WEAK_DBM - DISK_STRONG_DBM;
        Dbm((DISK_STRONG_DBM + slope * distance_m / self.range_m).max(DISK_NOTHING_DBM))
    }
}

/// The medium named `unit-disk`.
#[derive(Clone, Debug)]
pub struct UnitDisk {
    links: Links,
}

impl UnitDisk {
    /// The links among `positions`.
    pub fn new(params: DiskParams, positions: &[Position]) -> Self {
        let reach_m = params.range_m.max(params.interference_m);
        let links = Links::flat(positions.len(), |tx, rx| {
            let distance_m = positions[tx.index()].distance_m(positions[rx.index()]);
            (distance_m <= reach_m).then(|| {
                let pdr = params.reception_probability(distance_m);
                Link::dictated(params.rssi(distance_m), pdr)
            })
        });
        Self { links }
    }
}

impl Medium for UnitDisk {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::Collision
    }
    fn noise(&self) -> Dbm {
        Dbm(DISK_NOTHING_DBM)
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Channel, NodeId};

    use super::*;

    #[test]
    fn success_falls_with_the_square_of_distance_to_the_ratio_at_the_edge() {
        let params = DiskParams { ratio_tx: 0.9, ratio_rx: 0.6, ..DiskParams::default() };
        for (distance, expected) in [(0.0, 0.9), (25.0, 0.81), (50.0, 0.54), (50.1, 0.0)] {
            let p = params.reception_probability(distance);
            assert!((p - expected).abs() < 1e-12, "{distance} m: {p}");
        }
    }

    #[test]
    fn the_signal_falls_linearly_to_the_edge() {
        let params = DiskParams::default();
        for (distance, expected) in [(0.0, -10.0), (25.0, -52.5), (50.0, -95.0), (90.0, -100.0)] {
            assert!((params.rssi(distance).0 - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn nodes_between_the_ranges_disturb_without_being_received() {
        let places = [0.0, 40.0, 80.0, 120.0].map(|x| Position::new(x, 0.0));
        let disk = UnitDisk::new(DiskParams::default(), &places);
        assert_eq!(disk.neighbours(NodeId(0)), [NodeId(1), NodeId(2)]);
        let channel = Channel::new(11).expect("a channel of the band");
        assert!(disk.reception_probability(NodeId(0), NodeId(2), channel, 20) < 1e-12);
        assert!(disk.rssi(NodeId(0), NodeId(2), channel).is_some());
    }
}
