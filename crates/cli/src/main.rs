//! The lowmesh command: reads the command line, calls one verb, turns its end into an exit code.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 something went wrong on our side (a
//! run failed, a file cannot be written), 2 the command line or the scenario is wrong.

mod compare;
mod dry;
mod failure;
mod merge;
mod node;
mod progress;
mod report;
mod reproduce;
mod rerun;
mod run;
mod scenarios;
mod show;
mod store;
mod table;
mod tune;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Simulate meshes of constrained nodes and compare their protocols.
#[derive(Debug, Parser)]
#[command(name = "lowmesh", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Reproduce(reproduce::Args),
    Run(run::Args),
    Rerun(rerun::Args),
    Compare(compare::Args),
    Merge(merge::Args),
    Node(node::Args),
    Scenarios(scenarios::Args),
    Show(show::Args),
    Tune(tune::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stdout = &mut io::stdout().lock();
    let result = match &cli.verb {
        Verb::Reproduce(args) => reproduce::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Run(args) => run::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Rerun(args) => rerun::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Compare(args) => compare::execute(args, stdout),
        Verb::Merge(args) => merge::execute(args, stdout),
        Verb::Node(args) => node::execute(args, stdout),
        Verb::Scenarios(args) => scenarios::execute(args, stdout),
        Verb::Show(args) => show::execute(args, stdout),
        Verb::Tune(args) => tune::execute(args, &lowmesh_lab::simulate::simulate, stdout),
    };
    match result.and_then(|()| Ok(stdout.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
