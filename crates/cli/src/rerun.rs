//! `lowmesh rerun`: repeats one stored run, to look at it closely, and checks that it is the same.

use std::io::Write;
use std::path::PathBuf;

use lowmesh_lab::build::Build;
use lowmesh_lab::report::Report;
use lowmesh_lab::runner;
use lowmesh_lab::simulate::{Simulate, Sinks};

use crate::console::say;
use crate::failure::Failure;
use crate::run::sink;
use crate::{store, table};

/// Repeat one stored run exactly, with a capture or a trace if wanted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the run; its first digits are enough if no other run has them.
    #[arg(value_name = "RUN-ID")]
    run: String,
    /// Store that holds the run.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Capture every frame for Wireshark.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write every event, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
}

/// Simulates the run and prints its numbers.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let store = store::existing(&store::location(args.store.as_deref())?)?;
    let (id, stored, kept) = store.find(&args.run)?;
    let mut scenario = stored.scenario;
    scenario.head.name = format!("run {id}");
    let sinks = Sinks { pcap: sink(args.pcap.as_deref())?, trace: sink(args.trace.as_deref())? };
    let again = runner::run(&scenario, 1, sinks, simulate, &|_| ());
    let report = Report::new(&scenario, again);
    let Some(run) = report.runs.first() else {
        let error =
            report.failures.first().map_or_else(String::new, |failure| failure.error.to_string());
        return Err(Failure::own(format!("run {id} failed: {error}")));
    };
    if args.json {
        out.write_all(report.to_json().as_bytes())?;
    } else {
        table::write(out, &scenario, &report)?;
    }
    out.flush()?;
    let own = Build::own();
    let same_build = stored.build == own.id;
    if run.trace_hash == stored.run.trace_hash {
        if !same_build {
            say!("run {id} was stored by {kept}; this program, {own}, gives the same trace");
        }
        return Ok(());
    }
    let message = format!(
        "run {id} gave the trace {:016x}, not the stored {:016x}",
        run.trace_hash, stored.run.trace_hash
    );
    let hint = if same_build {
        format!("this program, {own}, stored it: has the file changed since?")
    } else {
        format!(
            "it was stored by {kept}, and this program is {own}: use the former to repeat the run"
        )
    };
    Err(Failure::Own { message, hint: Some(hint) })
}
