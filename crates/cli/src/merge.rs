//! `lowmesh merge`: joins stores of runs into one.

use std::io::Write;
use std::path::PathBuf;

use lowmesh_lab::store::Store;

use crate::failure::Failure;
use crate::store;

/// Join stores of runs, as those of `run --shard`, into one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The stores to take runs from.
    #[arg(required = true, value_name = "DIR")]
    stores: Vec<PathBuf>,
    /// The store to put them in; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

/// Copies what is missing and says how much that was.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let stores: Vec<Store> =
        args.stores.iter().map(|folder| store::existing(folder)).collect::<Result<_, _>>()?;
    let into = Store::open(&args.into)?;
    let mut taken = 0;
    for store in &stores {
        taken += into.merge(store)?;
    }
    let all = into.ids()?.len();
    let plural = if stores.len() == 1 { "" } else { "s" };
    writeln!(
        out,
        "{taken} runs taken from {} store{plural}; {} holds {all}",
        stores.len(),
        args.into.display()
    )?;
    Ok(())
}
