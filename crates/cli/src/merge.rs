//! `lowmesh merge`: joins stores of runs into one.

use std::io::Write;
use std::path::PathBuf;

use lowmesh_lab::store::{Merged, Store};

use crate::console::say;
use crate::failure::Failure;
use crate::store;

/// Join stores of runs, such as those of `run --shard`, into one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Stores to copy runs from.
    #[arg(required = true, value_name = "DIR")]
    stores: Vec<PathBuf>,
    /// Store to copy the runs to; it is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

/// Copies the runs that are missing; prints how many there were, and of which builds.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let stores: Vec<Store> =
        args.stores.iter().map(|folder| store::existing(folder)).collect::<Result<_, _>>()?;
    let into = Store::open(&args.into)?;
    let (mut taken, mut lines) = (0, Vec::new());
    for store in &stores {
        let folder = store.folder().display();
        for Merged { from, taken: new } in into.merge(store)? {
            taken += new;
            let not_copied = if from.build.is_some() { "" } else { "; not copied" };
            lines.push(format!("{folder}: {} of {from}{not_copied}", counted(from.runs, "run")));
        }
    }
    let builds = into.builds()?;
    let all: usize = builds.iter().map(|build| build.runs).sum();
    let (runs, from) = (counted(taken, "run"), counted(stores.len(), "store"));
    writeln!(out, "{runs} copied from {from}; {} holds {all}", args.into.display())?;
    for line in lines {
        writeln!(out, "{line}")?;
    }
    if builds.len() > 1 {
        say!(
            "runs of different builds are kept separate: a program uses only runs of its own build"
        );
    }
    Ok(())
}

/// A number of things: `1 run`, `2 runs`.
fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
