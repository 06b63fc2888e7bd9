//! `lowmesh tune`: searches parameters of a retransmission timer, or of another algorithm, for a scenario.

use std::io::{self, Write};
use std::path::PathBuf;

use clap_complete::engine::ArgValueCompleter;
use comfy_table::{Table, presets};
use lowmesh_lab::build;
use lowmesh_lab::command::{Kept, Provenance, quoted};
use lowmesh_lab::digits::{signed_with_interval, with_interval};
use lowmesh_lab::html::search_page;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::Simulate;
use lowmesh_lab::statistics::Estimate;
use lowmesh_lab::store::Store;
use lowmesh_lab::tune::{
    Compared, Objective, Plan, Request, Space, TuneError, TuneEvent, Tuned, Verdict,
};

use crate::console::say;
use crate::failure::Failure;
use crate::interrupt::{self, Left};
use crate::progress::{Meter, Style};
use crate::{complete, report, rows, store, table};

/// Search the best parameters of a retransmission timer, or of another algorithm, for a scenario.
///
/// Many parameter sets run on few seeds, the best third of them on three times as many seeds, and so on. The best set
/// is then compared with the published sets, on seeds that the search has not used.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in scenario (see `lowmesh scenarios`), or a TOML file.
    #[arg(add = ArgValueCompleter::new(complete::scenarios))]
    scenario: String,
    /// The timer. For a timer without parameters, coap.ack_timeout is tuned.
    /// The default is cocoa, unless --key is given.
    #[arg(long, value_name = "NAME", value_parser = rows::timers(), conflicts_with = "keys")]
    timer: Option<String>,
    /// Tune this key: a parameter of an algorithm of the scenario, such as schedule.housekeeping, or a key that names an
    /// algorithm, such as schedule.function, for all its parameters (repeatable). The best set is compared with the
    /// scenario as it is.
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// What to optimise: delivery, the 95th percentile of the delay, or both (halving that delay is worth ten
    /// points of delivery).
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(Objective::NAMES), default_value = "weighted")]
    objective: String,
    /// Runs that the search may use; the comparison needs further runs.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    budget: u32,
    /// Seeds of the comparison; by default as many as the scenario has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
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
    /// Keep runs in this folder, and reuse the runs that it holds. By default they are kept where `lowmesh run` keeps
    /// the runs of sweeps.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write a report as one HTML page, and its figures as SVG files next to it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON instead of the tables.
    #[arg(long)]
    json: bool,
    /// Print nothing but results and errors.
    #[arg(long, short)]
    quiet: bool,
    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value_t = Style::Auto)]
    progress: Style,
}

/// Searches with `simulate` and writes what was found.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    if args.keys.is_empty() {
        overrides.push(format!("coap.congestion={}", timer(args)));
    }
    let scenario = Scenario::load(&args.scenario, &overrides)?;
    lowmesh_lab::air::check(&scenario)
        .map_err(|error| Failure::Usage { message: error.to_string(), hint: None })?;
    let objective = Objective::by_name(&args.objective).expect("the parser allows its names only");
    let space = if args.keys.is_empty() {
        Space::of_timer(scenario.coap.congestion.row())
    } else {
        Space::of_keys(&scenario, &args.keys)?
    };
    let seeds = args.seeds.unwrap_or(scenario.head.seeds);
    let request = Request { objective, budget: args.budget, seeds, jobs: args.jobs };
    let plan = Plan::new(request, space)?;
    args.report.as_deref().map(report::check).transpose()?;
    let store = Store::open(&store::location(args.store.as_deref())?)?;
    store::check_writable(&store)?;
    if !args.quiet {
        say!("at most {} runs, stored in {}", plan.runs(), store.folder().display());
        store::tell_others(&store)?;
    }
    let style = if args.quiet { Style::None } else { args.progress };
    let total = scenario.head.duration * u64::from(plan.runs());
    let meter = Meter::new(style, plan.runs().into(), total);
    interrupt::watch(Left::in_store(&store), &meter)?;
    let observe = |event: TuneEvent<'_>| match event {
        TuneEvent::Run(progress) => meter.observe(&progress, ""),
        _ if args.quiet => {}
        TuneEvent::Rung(rung) => {
            meter.line(&format!("searching: {} sets on {} seeds", rung.candidates, rung.seeds));
        }
        TuneEvent::Compare(first, last) => {
            meter.line(&format!("comparing the best one on seeds {} to {}", first.0, last.0));
        }
    };
    let tuned = plan.execute(&scenario, Some(&store), simulate, &observe)?;
    meter.finish();
    if let Some(file) = &args.report {
        let kept = store::kept(args.store.as_deref());
        let page = search_page(&tuned, &provenance(args, &kept), &again(args, &kept));
        report::write(file, &page, args.quiet)?;
    }
    if args.json {
        out.write_all(tuned.to_json().as_bytes())?;
    } else {
        write(out, &tuned)?;
    }
    out.flush()?;
    failed_runs(args, &tuned)
}

/// The name of the timer, where one is tuned.
fn timer(args: &Args) -> &str {
    args.timer.as_deref().unwrap_or("cocoa")
}

/// How runs of the search are repeated; what is tuned is a setting of the points.
fn provenance(args: &Args, kept: &Kept) -> Provenance {
    let scenario = args.scenario.clone();
    Provenance { scenario, overrides: args.overrides.clone(), store: Some(kept.clone()) }
}

/// The command that repeats this result.
fn again(args: &Args, kept: &Kept) -> String {
    let Args { scenario, objective, budget, .. } = args;
    let mut words = format!("lowmesh tune {}", quoted(scenario));
    if args.keys.is_empty() {
        words.extend([" --timer ", &quoted(timer(args))]);
    }
    words.extend(args.keys.iter().map(|key| format!(" --key {}", quoted(key))));
    words.extend([format!(" --objective {objective} --budget {budget}")]);
    words.extend(args.seeds.map(|seeds| format!(" --seeds {seeds}")));
    words.extend(args.seed.map(|seed| format!(" --seed {seed}")));
    words.extend(args.overrides.iter().map(|set| format!(" --set {}", quoted(set))));
    if let Kept::In(folder) = kept {
        words.extend([" --store ", &quoted(folder)]);
    }
    words
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        Self::Usage { message: error.to_string(), hint: None }
    }
}

fn write(out: &mut dyn Write, tuned: &Tuned) -> io::Result<()> {
    let ((from, to), (first, last)) = (tuned.search_seeds, tuned.held_out_seeds);
    writeln!(
        out,
        "{}: {} sets searched on seeds {from} to {to}, compared on seeds {first} to {last}\n",
        tuned.scenario, tuned.candidates
    )?;
    let values = tuned.compared.iter().map(|one| {
        [
            name(one),
            shown(one.value, with_interval),
            shown(one.tdr, with_interval),
            shown(one.delay_p95_ms, with_interval),
            shown(one.retransmissions, with_interval),
        ]
    });
    let objective = tuned.objective.name();
    write_table(out, ["set", objective, "tdr", "delay_p95_ms", "retransmissions"], values)?;
    let gains = tuned.compared.iter().filter_map(|one| {
        let gain = one.gain?;
        let verdict = match gain.verdict() {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotShown => "not shown",
        };
        Some([
            format!("over {}", name(one)),
            shown(gain.objective, signed_with_interval),
            shown(gain.tdr, signed_with_interval),
            shown(gain.delay_p95_ms, signed_with_interval),
            verdict.to_owned(),
        ])
    });
    writeln!(out, "\nthe best set minus the others, paired by seed, ± 95 % CI:\n")?;
    let gain = if tuned.objective.falls() { "gain (less delay)" } else { "gain" };
    write_table(out, ["", gain, "tdr", "delay_p95_ms", "verdict"], gains)?;
    let best = tuned.best.to_toml();
    writeln!(out, "\n{}\n{}\n\n{}", tuned.conclusion(), build::program(), best.trim_end())
}

fn write_table<const N: usize>(
    out: &mut dyn Write,
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    table::print(out, table, 1)
}

fn name(one: &Compared) -> String {
    one.candidate.published.unwrap_or("tuned").to_owned()
}

fn shown(value: Option<Estimate>, words: fn(Estimate) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), words)
}

/// Turns failed runs into a failure with the command that repeats the first of them.
fn failed_runs(args: &Args, tuned: &Tuned) -> Result<(), Failure> {
    let points = tuned.searched.iter().chain(&tuned.held_out);
    let first = points.flat_map(|point| point.failures.iter().map(move |one| (point, one))).next();
    let Some((point, failure)) = first else { return Ok(()) };
    let (count, seed) = (tuned.failures.len(), failure.seed.0);
    let message = format!("{count} runs failed; seed {seed}: {}", failure.error);
    // A failed run is not kept, so its scenario has to be named.
    let unkept = Provenance { store: None, ..provenance(args, &Kept::AsUsual) };
    let again = unkept.run(&point.point, failure.seed);
    Err(Failure::Own { message, hint: Some(format!("to see it again: {again}")) })
}

#[cfg(test)]
mod tests;
