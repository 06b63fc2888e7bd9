//! Ctrl-C while runs are made: says which runs are kept and how to continue, and ends the process.

use lowmesh_lab::command::quoted;
use lowmesh_lab::identity::RunId;
use lowmesh_lab::plan::Plan;
use lowmesh_lab::store::Store;

use crate::console::say;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::ports::interrupted;
use crate::progress::Meter;

/// What an interrupted command leaves behind.
pub struct Left {
    /// The store that keeps the runs, and all runs of the command.
    kept: Option<(Store, Vec<RunId>)>,
}

impl Left {
    /// The runs of a plan in this store.
    pub fn new(plan: &Plan, store: Option<&Store>) -> Self {
        let ids = || plan.runs().into_iter().map(|run| run.id).collect();
        Self { kept: store.map(|store| (store.clone(), ids())) }
    }
    /// The runs of a command that does not know all of them beforehand.
    pub fn in_store(store: &Store) -> Self {
        Self { kept: Some((store.clone(), Vec::new())) }
    }

    /// What is kept, and how to continue.
    fn words(&self, again: &str) -> String {
        let Some((store, ids)) = &self.kept else {
            return format!(
                "interrupted; no run is kept\nto keep finished runs: {again} --store DIR"
            );
        };
        let place = store.folder().display();
        let what = match (ids.len(), self.stored()) {
            (0, _) => "finished runs are".to_owned(),
            (1, stored) => format!("{stored} of 1 run is"),
            (all, stored) => format!("{stored} of {all} runs are"),
        };
        format!("interrupted; {what} kept in {place}\nto continue: {again}")
    }

    /// The runs that are in the store now.
    fn stored(&self) -> usize {
        let Some((store, ids)) = &self.kept else { return 0 };
        ids.iter().filter(|id| store.get(**id).is_some()).count()
    }
}

/// Waits for Ctrl-C or SIGTERM in a thread of its own, then ends the process.
pub fn watch(left: Left, meter: &Meter) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::own)?;
    // Signals are caught from here on.
    let signal = {
        let _inside = runtime.enter();
        interrupted().map_err(Failure::own)?
    };
    let bar = meter.bar();
    let waiting = move || {
        runtime.block_on(signal);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        for line in left.words(&again(std::env::args().skip(1))).lines() {
            say!("{line}");
        }
        std::process::exit(Exit::Interrupted.code().into());
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(waiting).map_err(Failure::own)?;
    Ok(())
}

/// The command with these arguments; without --force, which would make the kept runs again.
fn again(args: impl Iterator<Item = String>) -> String {
    let args = args.filter(|arg| arg != "--force").map(|arg| quoted(&arg));
    std::iter::once("lowmesh".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_continues_makes_no_kept_run_again() {
        let args = ["run", "my file.toml", "--force", "--seeds", "3"].map(str::to_owned);
        assert_eq!(again(args.into_iter()), "lowmesh run 'my file.toml' --seeds 3");
    }

    #[test]
    fn without_a_store_nothing_is_kept_and_the_flag_is_named() {
        let left = Left { kept: None };
        let words = left.words("lowmesh run grid-25");
        assert!(
            words.ends_with("to keep finished runs: lowmesh run grid-25 --store DIR"),
            "{words}"
        );
    }
}
