//! `xtask grenoble RAW OUT`: derives the built-in Grenoble table from the raw K7 trace, which is not kept
//! in the repository.

use std::fs;

use anyhow::{Context as _, bail};
use lowmesh_sim::air::k7::K7;
use lowmesh_sim::air::link_table::LinkTable;

/// Head of the table: what it is, where it comes from, whose it is.
const ATTRIBUTION: &str = "\
Mean RSSI and PDR of each directed link and channel of 50 nodes, FIT IoT-LAB Grenoble, 11 to 13 January 2018.
Derived by `cargo xtask grenoble` from the trace grenoble.k7.gz of the 6TiSCH Simulator (Inria, OpenWSN).
pdr: frames received of all sent; a round in which a receiver heard none counts as 0, unless it
never reported anything again (node 7 after 3 of 19 rounds, node 35 after 8).
rssi_dbm: mean over the frames received. Links and channels never heard have no line.
The simulator's notice: Copyright (c) Inria. Licence: BSD-3-Clause.
Cite: Municio et al., Simulating 6TiSCH Networks, Trans. Emerging Tel. Tech. 2019, doi:10.1002/ett.3494.";

/// Runs the command with its arguments `RAW OUT`.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let [raw, out] = args else { bail!("usage: cargo xtask grenoble RAW OUT") };
    let contents = fs::read(raw).with_context(|| format!("reading {raw}"))?;
    let table = LinkTable::from_k7(&K7::parse(raw, &contents)?);
    fs::write(out, table.to_csv(ATTRIBUTION)).with_context(|| format!("writing {out}"))?;
    println!("{out}: {} nodes, {} links and channels", table.nodes(), table.means().len());
    Ok(())
}
