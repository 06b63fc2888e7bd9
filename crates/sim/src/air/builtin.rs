//! The media that come with the simulator.

use lowmesh_registry::{Algorithm, Breach, Row};

use super::row::MakeMedium;
use super::{
    Medium, conformance, link_table, mrm, pathloss, pister_hack, playback, tree_links, unit_disk,
};

impl Algorithm for dyn Medium {
    const NOUN: &'static str = "medium";
    const KEY: &'static str = "radio.medium";
    const BUILTIN: &'static [&'static Row<Self>] = &[
        &mrm::ROW,
        &unit_disk::ROW,
        &pathloss::LOG_DISTANCE,
        &pathloss::FRIIS,
        &pathloss::TWO_RAY,
        &pister_hack::ROW,
        &link_table::PDR_MATRIX,
        &playback::ROW,
        &link_table::ROW,
        &link_table::GRENOBLE,
        &tree_links::ROW,
    ];
    type Make = MakeMedium;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}
