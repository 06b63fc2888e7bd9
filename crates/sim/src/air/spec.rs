//! A medium as a scenario says it, and the one place that builds it.

use lowmesh_units::{Dbm, Seed};

use super::Medium;
use super::error::{BuildError, ConfigError};
use super::k7::K7;
use super::link_table::{LinkTable, Tabled};
use super::mrm::{Mrm, MrmParams};
use super::params::{ANTENNA_HEIGHT_M, NOISE_DBM, PATH_LOSS_EXPONENT, SHADOWING_SIGMA_DB};
use super::pathloss::{PathLoss, Radiated};
use super::pister_hack::PisterHack;
use super::playback::Playback;
use super::position::Position;
use super::tree_links::{TreeLinks, TreeLinksParams};
use super::unit_disk::{DiskParams, UnitDisk};
use crate::topology::Topology;

/// Every medium there is, as plain values.
#[derive(Clone, Debug, PartialEq)]
pub enum MediumSpec {
    /// `unit-disk`.
    UnitDisk(DiskParams),
    /// `friis`, `two-ray` or `log-distance`.
    Radiated {
        /// How power falls.
        path_loss: PathLoss,
        /// Power of all transmitters.
        tx_power: Dbm,
        /// Noise at all receivers.
        noise: Dbm,
    },
    /// `mrm`.
    Mrm(MrmParams),
    /// `pister-hack`.
    PisterHack {
        /// Power of all transmitters; the same as the random square was made with.
        tx_power: Dbm,
    },
    /// `fixed`: the chance that a frame of node i reaches node j, on all channels.
    Fixed {
        /// Row i, column j.
        pdr: Vec<Vec<f64>>,
    },
    /// `k7`: a trace played back.
    K7 {
        /// Path of the trace, plain or gzip.
        file: String,
    },
    /// `link-table` read from a file.
    LinkTable {
        /// Path of the table.
        file: String,
    },
    /// `links`: the tree of good links of a deployment.
    Links(TreeLinksParams),
    /// `link-table` with the built-in Grenoble measurement (50 nodes).
    Grenoble,
}

impl MediumSpec {
    /// The names of all media, for scenario files and their errors.
    pub const NAMES: [&str; 10] = [
        "unit-disk",
        "friis",
        "two-ray",
        "log-distance",
        "mrm",
        "pister-hack",
        "fixed",
        "k7",
        "link-table",
        "links",
    ];

    /// The medium called `name` with its default values; `None` for an unknown name and for those that
    /// have none (`fixed`, `k7`, `links`). A `link-table` without a file is Grenoble's.
    pub fn named(name: &str) -> Option<Self> {
        let radiated =
            |path_loss| Self::Radiated { path_loss, tx_power: Dbm(0.0), noise: Dbm(NOISE_DBM) };
        match name {
            "unit-disk" => Some(Self::UnitDisk(DiskParams::default())),
            "friis" => Some(radiated(PathLoss::Friis)),
            "two-ray" => Some(radiated(PathLoss::TwoRay { height_m: ANTENNA_HEIGHT_M })),
            "log-distance" => Some(radiated(PathLoss::LogDistance {
                exponent: PATH_LOSS_EXPONENT,
                sigma_db: SHADOWING_SIGMA_DB,
            })),
            "mrm" => Some(Self::Mrm(MrmParams::default())),
            "pister-hack" => Some(Self::PisterHack { tx_power: Dbm(0.0) }),
            "link-table" => Some(Self::Grenoble),
            _ => None,
        }
    }
}

/// Builds the medium of `spec` among the nodes of `topology`.
pub fn build(
    spec: &MediumSpec,
    topology: &Topology,
    seed: Seed,
) -> Result<Box<dyn Medium>, BuildError> {
    check(spec)?;
    Ok(match spec {
        MediumSpec::UnitDisk(params) => Box::new(UnitDisk::new(*params, places(topology)?)),
        MediumSpec::Radiated { path_loss, tx_power, noise } => {
            Box::new(Radiated::new(*path_loss, places(topology)?, *tx_power, *noise, seed))
        }
        MediumSpec::Mrm(params) => Box::new(Mrm::new(*params, places(topology)?)),
        MediumSpec::PisterHack { tx_power } => {
            Box::new(PisterHack::new(places(topology)?, *tx_power, seed))
        }
        MediumSpec::Fixed { pdr } => {
            same_nodes("medium.pdr", pdr.len(), topology)?;
            Box::new(Tabled::fixed(pdr)?)
        }
        MediumSpec::Links(params) => {
            same_nodes("topology.parents", params.links.len() + 1, topology)?;
            Box::new(TreeLinks::new(params, seed)?)
        }
        MediumSpec::K7 { file } => {
            let trace = K7::parse(file, &read(file)?)?;
            same_nodes("medium.file", trace.node_count, topology)?;
            Box::new(Playback::new(trace))
        }
        MediumSpec::LinkTable { file } => {
            let contents = read(file)?;
            let text = core::str::from_utf8(&contents).map_err(|error| unreadable(file, &error))?;
            let table = LinkTable::parse(file, text)?;
            same_nodes("medium.file", table.nodes(), topology)?;
            Box::new(Tabled::link_table(&table))
        }
        MediumSpec::Grenoble => {
            let table = LinkTable::grenoble();
            same_nodes("medium.grenoble", table.nodes(), topology)?;
            Box::new(Tabled::link_table(&table))
        }
    })
}

/// Checks the numbers of `spec`, so that no model meets NaN or a division by zero.
fn check(spec: &MediumSpec) -> Result<(), ConfigError> {
    let within = ConfigError::within;
    let dbm = |key: &str, power: Dbm| within(key, power.0, -200.0, 100.0);
    match *spec {
        MediumSpec::UnitDisk(params) => {
            within("medium.range_m", params.range_m, 0.001, 1e6)?;
            within("medium.interference_m", params.interference_m, params.range_m, 1e6)?;
            within("medium.ratio_tx", params.ratio_tx, 0.0, 1.0)?;
            within("medium.ratio_rx", params.ratio_rx, 0.0, 1.0)
        }
        MediumSpec::Radiated { path_loss, tx_power, noise } => {
            dbm("medium.tx_power_dbm", tx_power)?;
            dbm("medium.noise_dbm", noise)?;
            match path_loss {
                PathLoss::Friis => Ok(()),
                PathLoss::TwoRay { height_m } => within("medium.height_m", height_m, 0.01, 1000.0),
                PathLoss::LogDistance { exponent, sigma_db } => {
                    within("medium.exponent", exponent, 1.0, 8.0)?;
                    within("medium.sigma_db", sigma_db, 0.0, 20.0)
                }
            }
        }
        MediumSpec::Mrm(params) => {
            dbm("medium.tx_power_dbm", params.tx_power)?;
            dbm("medium.noise_dbm", params.noise)?;
            dbm("medium.sensitivity_dbm", params.sensitivity)?;
            within("medium.snr_threshold_db", params.snr_threshold_db, -50.0, 50.0)?;
            within("medium.noise_variance", params.noise_variance, 0.0, 400.0)?;
            within("medium.gain_variance", params.gain_variance, 0.0, 400.0)?;
            within("medium.capture_db", params.capture_db, 0.0, 50.0)
        }
        MediumSpec::PisterHack { tx_power } => dbm("medium.tx_power_dbm", tx_power),
        MediumSpec::Fixed { .. }
        | MediumSpec::K7 { .. }
        | MediumSpec::Links(_)
        | MediumSpec::LinkTable { .. }
        | MediumSpec::Grenoble => Ok(()),
    }
}

fn places(topology: &Topology) -> Result<&[Position], ConfigError> {
    topology.positions().ok_or_else(|| {
        let allowed = "this medium needs nodes with positions: grid, line, star, explicit, file, random-square";
        ConfigError::new("topology", &"unplaced", allowed)
    })
}

fn same_nodes(key: &str, nodes: usize, topology: &Topology) -> Result<(), ConfigError> {
    if nodes == topology.nodes() {
        return Ok(());
    }
    let given = format!("{nodes} nodes");
    let allowed = format!("the topology has {}; the numbers must be the same", topology.nodes());
    Err(ConfigError::new(key, &given, allowed))
}

fn read(file: &str) -> Result<Vec<u8>, BuildError> {
    std::fs::read(file).map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &str, error: &dyn ToString) -> BuildError {
    BuildError::File { file: file.to_owned(), reason: error.to_string() }
}
