//! `lowmesh show`: prints a scenario with every value and its meaning, and its sweep.

use std::io::Write;

use clap_complete::engine::ArgValueCompleter;
use lowmesh_lab::plan::Plan;
use lowmesh_lab::scenario::Scenario;
use lowmesh_units::Seed;

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
    /// Write the positions that the run with this seed has into the scenario.
    #[arg(long, value_name = "SEED")]
    freeze: Option<u64>,
}

/// Writes the TOML.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(seed) = args.freeze {
        let scenario = Scenario::load(&args.scenario, &args.overrides)?;
        let frozen = scenario
            .frozen(Seed(seed))
            .map_err(|error| Failure::usage(error, "change the topology or the seed"))?;
        let hint = "all runs have the links of its table already";
        let frozen = frozen
            .ok_or_else(|| Failure::usage("--freeze: the medium needs no positions", hint))?;
        return Ok(out.write_all(frozen.to_commented_toml().as_bytes())?);
    }
    let plan = Plan::load(&args.scenario, &args.overrides)?;
    Ok(out.write_all(plan.to_commented_toml().as_bytes())?)
}
