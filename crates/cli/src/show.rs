//! `lowmesh show`: prints a scenario with every value and its meaning, and its sweep.

use std::io::Write;

use clap_complete::engine::ArgValueCompleter;
use lowmesh_lab::plan::Plan;

use crate::failure::Failure;
use crate::{complete, rows};

/// Print a scenario with every value and its meaning.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in scenario, or a TOML file.
    #[arg(add = ArgValueCompleter::new(complete::scenarios))]
    scenario: String,
    /// Replace one value, such as traffic.period=2s (repeatable).
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        long_help = rows::set_help(),
        add = ArgValueCompleter::new(complete::settings)
    )]
    overrides: Vec<String>,
}

/// Writes the TOML.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let plan = Plan::load(&args.scenario, &args.overrides)?;
    Ok(out.write_all(plan.to_commented_toml().as_bytes())?)
}
