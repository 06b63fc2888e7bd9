//! `lowmesh scenarios`: lists the scenarios that come with the program.

use std::io::Write;

use lowmesh_lab::scenario::{BUILTINS, Scenario};

use crate::console::{width, wrapped};
use crate::failure::Failure;

/// List the built-in scenarios.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Writes the list.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut list = Vec::with_capacity(BUILTINS.len());
    for builtin in BUILTINS {
        list.push((builtin.name, Scenario::load(builtin.name, &[])?.head.description));
    }
    if args.json {
        let entry = |(name, description): &(&str, String)| serde_json::json!({ "name": name, "description": description });
        let entries: Vec<_> = list.iter().map(entry).collect();
        let json = serde_json::json!({ "schema": 1, "scenarios": entries });
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    for (name, description) in list {
        let line = format!("{name:14} {description}");
        writeln!(out, "{}", wrapped(&line, width(), &" ".repeat(15)))?;
    }
    Ok(())
}
