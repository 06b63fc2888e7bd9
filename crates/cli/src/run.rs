//! `lowmesh run`: simulates a scenario over its seeds and reports what came of it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use lowmesh_lab::html::Provenance;
use lowmesh_lab::report::{Folder, Report};
use lowmesh_lab::results::{Point, PointResult, Results};
use lowmesh_lab::runner;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::{Simulate, Sinks};

use crate::failure::Failure;
use crate::progress::{Meter, Style};
use crate::{report, table};

/// Simulate a scenario over its seeds and report means with confidence intervals.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in scenario (see `lowmesh scenarios`), or a TOML file.
    scenario: String,
    /// Number of runs, each with a seed of its own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Seed of the first run; the others count up from it.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Runs at a time; all cores unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Replace one value of the scenario, as traffic.period=2s (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Write runs.csv, summary.json and scenario.toml into a new folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a report as one HTML page, and its figures as SVG files beside it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Capture every frame of the first seed's run for Wireshark.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write every event of the first seed's run, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print nothing but results and errors.
    #[arg(long, short)]
    quiet: bool,
    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value_t = Style::Auto)]
    progress: Style,
}

/// Runs the scenario with `simulate` and writes the report.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario, &overrides(args))?;
    // Whatever can be refused is refused before hours of simulation.
    lowmesh_lab::air::check(&scenario)
        .map_err(|error| Failure::Usage { message: error.to_string(), hint: None })?;
    args.report.as_deref().map(report::check).transpose()?;
    let folder = args.out.as_deref().map(Folder::reserve).transpose()?;
    let sinks = Sinks { pcap: sink(args.pcap.as_deref())?, trace: sink(args.trace.as_deref())? };
    let style = if args.quiet { Style::None } else { args.progress };
    let meter = Meter::new(style, scenario.head.seeds, scenario.head.duration);
    let observe = |progress: runner::Progress<'_>| meter.observe(&progress);
    let campaign = runner::run(&scenario, args.jobs, sinks, simulate, &observe);
    meter.finish();
    if let Some(page) = &args.report {
        write_page(args, page, &scenario, &campaign)?;
    }
    let report = Report::new(&scenario, campaign);
    if let (Some(folder), false) = (folder, report.runs.is_empty()) {
        folder.commit(&scenario, &report)?;
    }
    if !args.quiet {
        tell_files(args, &scenario, &report);
    }
    if args.json {
        out.write_all(report.to_json().as_bytes())?;
    } else if !report.runs.is_empty() {
        table::write(out, &scenario, &report)?;
    }
    out.flush()?;
    failed_runs(args, &report)
}

/// Writes the page of the one point that a scenario without a sweep has.
fn write_page(
    args: &Args,
    page: &Path,
    scenario: &Scenario,
    campaign: &runner::Campaign,
) -> Result<(), Failure> {
    let point = Point { settings: Vec::new(), scenario: scenario.clone() };
    let (runs, failures) = (campaign.runs.clone(), campaign.failures.clone());
    let results = Results {
        name: scenario.head.name.clone(),
        points: vec![PointResult { point, runs, failures }],
    };
    let overrides = args.overrides.clone();
    let provenance = Provenance { scenario: args.scenario.clone(), overrides };
    report::write(page, &results, &provenance)?;
    Ok(())
}

fn overrides(args: &Args) -> Vec<String> {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.seeds.map(|seeds| format!("seeds={seeds}")));
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    overrides
}

fn sink(path: Option<&Path>) -> Result<Option<Box<dyn Write + Send>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = File::create(path)
        .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))?;
    Ok(Some(Box::new(BufWriter::new(file))))
}

fn tell_files(args: &Args, scenario: &Scenario, report: &Report) {
    let first = scenario.head.seed;
    if let Some(path) = &args.pcap {
        eprintln!("capture of seed {first} alone: {}", path.display());
    }
    if let Some(path) = &args.trace {
        eprintln!("trace of seed {first} alone: {}", path.display());
    }
    if let Some(path) = &args.report {
        eprintln!("report: {}", path.display());
    }
    if let (Some(path), false) = (&args.out, report.runs.is_empty()) {
        eprintln!("results: {}", path.display());
    }
}

/// Turns failed runs into a failure with the command that shows the first of them again.
fn failed_runs(args: &Args, report: &Report) -> Result<(), Failure> {
    let Some(first) = report.failures.first() else { return Ok(()) };
    let all = report.runs.len() + report.failures.len();
    let (failed, seed) = (report.failures.len(), first.seed.0);
    let message = format!("{failed} of {all} runs failed; seed {seed}: {}", first.error);
    let mut again = format!("lowmesh run {} --seeds 1 --seed {seed}", args.scenario);
    again.extend(args.overrides.iter().flat_map(|set| [" --set '", set, "'"]));
    Err(Failure::Own { message, hint: Some(format!("to see it again: {again}")) })
}

#[cfg(test)]
mod tests;
