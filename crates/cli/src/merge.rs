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
    /// Stores to take runs from.
    #[arg(required = true, value_name = "DIR")]
    stores: Vec<PathBuf>,
    /// Store to put them in; it is created if it does not exist.
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
            lines.push(match &from.build {
                Some(_) => format!("{folder}: {} runs of {from}", from.runs),
                None => {
                    format!("{folder}: {} runs of {from}; they are left where they are", from.runs)
                }
            });
        }
    }
    let builds = into.builds()?;
    let all: usize = builds.iter().map(|build| build.runs).sum();
    let plural = if stores.len() == 1 { "" } else { "s" };
    writeln!(
        out,
        "{taken} runs taken from {} store{plural}; {} holds {all}",
        stores.len(),
        args.into.display()
    )?;
    for line in lines {
        writeln!(out, "{line}")?;
    }
    if builds.len() > 1 {
        say!("runs of different builds are kept apart: a program uses only runs of its own build");
    }
    Ok(())
}
