//! `lowmesh run`: simulates a scenario, or every point of a sweep, for each seed and reports the results.
//!
//! Runs of a sweep are kept in a store and not repeated. Runs of a plain scenario are kept if a store is named.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap_complete::engine::ArgValueCompleter;
use lowmesh_lab::batch::{Batch, Ended, How};
use lowmesh_lab::command::Provenance;
use lowmesh_lab::compare::unequal::of_points;
use lowmesh_lab::html::sweep_page;
use lowmesh_lab::plan::{Plan, RunSpec, Shard};
use lowmesh_lab::report::{Folder, Report, never_joined};
use lowmesh_lab::results::{Point, Results};
use lowmesh_lab::runner::{Campaign, Progress};
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::scenario::sweep::describe;
use lowmesh_lab::simulate::{Simulate, Sinks};
use lowmesh_lab::store::Store;
use lowmesh_lab::unreached;
use lowmesh_units::Seed;

use crate::console::say;
use crate::failure::Failure;
use crate::interrupt::{self, Left};
use crate::progress::{FIGURE, Meter, Style};
use crate::{complete, dry, report, rows, store, table};

/// Simulate a scenario, or every point of its sweep, for each seed; report means with confidence intervals.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in scenario (see `lowmesh scenarios`), a TOML file, or a link table (CSV).
    #[arg(add = ArgValueCompleter::new(complete::scenarios))]
    scenario: String,
    /// Number of runs, each with its own seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Seed of the first run; each further run uses the next number.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Runs at a time; by default one on each core. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Replace one value of the scenario, such as traffic.period=2s (repeatable).
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        long_help = rows::set_help(),
        add = ArgValueCompleter::new(complete::settings)
    )]
    overrides: Vec<String>,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Write runs.csv, summary.json, scenario.toml and the files that it names into a new folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a report as one HTML page, and its figures as SVG files next to it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Keep runs in this folder, and reuse the runs that it holds. By default only sweeps keep their runs: in
    /// LOWMESH_STORE, or in a folder for the user's data.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Run everything again, including runs that the store already holds.
    #[arg(long)]
    force: bool,
    /// Run nothing; print how many runs there are, how many are stored, and how long the rest takes.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Continue after a failed run (default; --fail-fast stops).
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// Start no further runs after a failed one.
    #[arg(long)]
    fail_fast: bool,
    /// Run one part only: 2/8 is the second part of eight. `lowmesh merge` joins the parts.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Metrics in the table of a sweep, comma-separated.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table::metric,
          default_values = table::CHOSEN, hide_default_value = true,
          add = ArgValueCompleter::new(complete::metrics))]
    metrics: Vec<String>,
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
    let plan = Plan::load(&args.scenario, &overrides(args))?;
    // Everything that can be refused is refused before hours of simulation.
    check_air(&plan)?;
    let watched = args.pcap.is_some() || args.trace.is_some();
    if watched && plan.is_sweep() {
        let message = "--pcap and --trace write one run, and a sweep has many".to_owned();
        let hint = "run the sweep, then `lowmesh rerun RUN-ID --pcap FILE`".to_owned();
        return Err(Failure::Usage { message, hint: Some(hint) });
    }
    if !args.quiet {
        let points = plan.points.iter().map(|point| (&point.settings, &point.scenario));
        for unequal in of_points(points) {
            say!("warning: {unequal}");
        }
        tell_unreached(&plan);
    }
    let store = open_store(args, &plan)?;
    let runs = plan.runs();
    let runs = args.shard.map_or(runs.clone(), |shard| shard.of(runs));
    let mut batch = Batch::new(&plan, runs, store.as_ref());
    if args.force {
        batch.force();
    }
    if args.dry_run {
        let how = dry::How { jobs: args.jobs, json: args.json };
        return dry::execute(how, &plan, &batch, store.as_ref(), simulate, out);
    }
    args.report.as_deref().map(report::check).transpose()?;
    store.as_ref().map(store::check_writable).transpose()?;
    let folder = args.out.as_deref().map(|out| Folder::reserve(out, &plan)).transpose()?;
    let sinks = Sinks { pcap: sink(args.pcap.as_deref())?, trace: sink(args.trace.as_deref())? };
    if watched {
        batch.force_first();
    }
    if let Some(store) = &store
        && !args.quiet
        && !batch.missing().is_empty()
    {
        store::tell_others(store)?;
    }
    let left = Left::new(&plan, store.as_ref());
    let ended = run(args, &plan, batch, sinks, left, simulate)?;
    write_page(args, store.is_some(), &ended.results)?;
    tell_never_joined(args, &ended.results);
    if !plan.is_sweep() {
        return plain(args, &plan.points[0], ended, folder, out);
    }
    let finished = ended.results.points.iter().any(|point| !point.runs.is_empty());
    if let (Some(folder), true) = (folder, finished) {
        folder.commit_sweep(&ended.results)?;
        tell_results(args);
    }
    if args.json {
        out.write_all(ended.results.to_json().as_bytes())?;
    } else if finished {
        table::write_sweep(out, &ended.results, &args.metrics)?;
    }
    out.flush()?;
    failed_runs(args, &plan, &ended)
}

/// Builds the air of every point; all different errors are reported at once.
fn check_air(plan: &Plan) -> Result<(), Failure> {
    let mut errors: Vec<String> = Vec::new();
    for point in &plan.points {
        let error = lowmesh_lab::air::check(&point.scenario).err().map(|error| error.to_string());
        errors.extend(error.filter(|error| !errors.contains(error)));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage { message: errors.join("\n"), hint: None })
}

/// Says which nodes cannot join; what is the same at many points is said once.
fn tell_unreached(plan: &Plan) {
    let mut told: Vec<String> = Vec::new();
    for warning in plan.points.iter().filter_map(|point| unreached::warning(&point.scenario)) {
        if !told.contains(&warning) {
            say!("warning: {warning}");
            told.push(warning);
        }
    }
}

/// Points of a sweep about which it is said that nodes never joined.
const POINTS_TOLD: usize = 5;

/// Says at which points nodes never joined.
fn tell_never_joined(args: &Args, results: &Results) {
    if args.quiet {
        return;
    }
    let lines: Vec<String> = results
        .points
        .iter()
        .filter_map(|point| {
            let told = never_joined(&point.runs)?;
            let place = describe(&point.point.settings);
            Some(if place.is_empty() { told } else { format!("{place}: {told}") })
        })
        .collect();
    for line in lines.iter().take(POINTS_TOLD) {
        say!("warning: {line}");
    }
    if lines.len() > POINTS_TOLD {
        say!("warning: at {} more points nodes never joined", lines.len() - POINTS_TOLD);
    }
}

/// The store of a sweep, of a shard, or of a user who named one.
fn open_store(args: &Args, plan: &Plan) -> Result<Option<Store>, Failure> {
    let flag = args.store.as_deref();
    let folder = if plan.is_sweep() || args.shard.is_some() {
        Some(store::location(flag)?)
    } else {
        store::named(flag)
    };
    Ok(folder.map(|folder| Store::open(&folder)).transpose()?)
}

/// Runs what is missing, with progress and failures on stderr.
fn run(
    args: &Args,
    plan: &Plan,
    batch: Batch<'_>,
    sinks: Sinks,
    left: Left,
    simulate: &Simulate<'_>,
) -> Result<Ended, Failure> {
    let style = if args.quiet { Style::None } else { args.progress };
    let missing = batch.missing().len();
    if !args.quiet && missing < batch.len() {
        say!("{} of {} runs are stored", batch.len() - missing, batch.len());
    }
    let meter = Meter::new(style, missing as u64, batch.missing_time());
    let meter = meter.with_figure(args.metrics.first().map_or(FIGURE, String::as_str));
    interrupt::watch(left, &meter)?;
    let observe = |spec: &RunSpec, progress: Progress<'_>| {
        let place = describe(&plan.points[spec.point].settings);
        let place = if place.is_empty() { place } else { format!(" at {place}") };
        meter.observe(&progress, &place);
        if let (Progress::Failed(_), true) = (&progress, plan.is_sweep()) {
            meter.line(&again(args, &plan.points[spec.point], spec.seed));
        }
    };
    let how = How { jobs: args.jobs, fail_fast: args.fail_fast };
    let ended = batch.run(how, sinks, simulate, &observe);
    meter.finish();
    Ok(ended?)
}

/// Reports the runs of a scenario that is not swept.
fn plain(
    args: &Args,
    of: &Point,
    ended: Ended,
    folder: Option<Folder>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (scenario, skipped) = (&of.scenario, ended.skipped);
    let point = ended.results.points.into_iter().next().expect("a plan has at least one point");
    let campaign = Campaign { runs: point.runs, failures: point.failures };
    let report = Report::new(scenario, campaign);
    if let (Some(folder), false) = (folder, report.runs.is_empty()) {
        folder.commit(&report)?;
        tell_results(args);
    }
    if !args.quiet {
        tell_sinks(args, scenario);
    }
    if args.json {
        out.write_all(report.to_json().as_bytes())?;
    } else if !report.runs.is_empty() {
        table::write(out, scenario, &report)?;
    }
    out.flush()?;
    if let (Some(hint), false) = (report.crowded_cell(scenario), args.quiet) {
        say!("hint: {hint}");
    }
    let Some(first) = report.failures.first() else { return Ok(()) };
    let seed = first.seed.0;
    let counts = counts(report.failures.len(), report.runs.len(), skipped);
    let message = format!("{counts}; seed {seed}: {}", first.error);
    Err(Failure::Own { message, hint: Some(again(args, of, first.seed)) })
}

/// Writes the report, if one is wanted; `kept` says whether the runs are in a store.
fn write_page(args: &Args, kept: bool, results: &Results) -> Result<(), Failure> {
    let Some(file) = &args.report else { return Ok(()) };
    let store = kept.then(|| store::kept(args.store.as_deref()));
    let provenance = Provenance { store, ..provenance(args) };
    report::write(file, &sweep_page(results, &provenance), args.quiet)
}

fn overrides(args: &Args) -> Vec<String> {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.seeds.map(|seeds| format!("seeds={seeds}")));
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    overrides
}

/// Creates the file at `path` for a run to write.
pub fn sink(path: Option<&Path>) -> Result<Option<Box<dyn Write + Send>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = File::create(path)
        .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))?;
    Ok(Some(Box::new(BufWriter::new(file))))
}

fn tell_results(args: &Args) {
    if let (Some(path), false) = (&args.out, args.quiet) {
        say!("results: {}", path.display());
    }
}

fn tell_sinks(args: &Args, scenario: &Scenario) {
    let first = scenario.head.seed;
    if let Some(path) = &args.pcap {
        say!("capture of seed {first} alone: {}", path.display());
    }
    if let Some(path) = &args.trace {
        say!("trace of seed {first} alone: {}", path.display());
    }
}

/// Turns failed runs of a sweep into a failure with the command that repeats the first of them.
fn failed_runs(args: &Args, plan: &Plan, ended: &Ended) -> Result<(), Failure> {
    let Some((spec, first)) = ended.failed.first() else { return Ok(()) };
    let point = &plan.points[spec.point];
    let runs = ended.results.points.iter().map(|point| point.runs.len()).sum();
    let counts = counts(ended.failed.len(), runs, ended.skipped);
    let (place, seed) = (describe(&point.settings), spec.seed.0);
    let message = format!("{counts}; seed {seed} at {place}: {}", first.error);
    Err(Failure::Own { message, hint: Some(again(args, point, spec.seed)) })
}

fn counts(failed: usize, finished: usize, skipped: usize) -> String {
    let all = failed + finished + skipped;
    let skipped =
        if skipped == 0 { String::new() } else { format!(", {skipped} were not started") };
    format!("{failed} of {all} runs failed{skipped}")
}

/// The command that repeats one run of a point.
fn again(args: &Args, point: &Point, seed: Seed) -> String {
    format!("to see it again: {}", provenance(args).run(point, seed))
}

/// How runs that no store holds are repeated.
fn provenance(args: &Args) -> Provenance {
    let (scenario, overrides) = (args.scenario.clone(), args.overrides.clone());
    Provenance { scenario, overrides, store: None }
}

#[cfg(test)]
mod tests;
