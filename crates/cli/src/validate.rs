//! `lowmesh validate`: compares the simulator with measurements of a real network, which the user has in a folder.

use std::io::Write;
use std::path::PathBuf;

use lowmesh_lab::build::{self, Build};
use lowmesh_lab::simulate::Simulate;
use lowmesh_lab::validate::ecoap::{self, Effect, Error, Figures, How, Validation};
use lowmesh_units::Duration;

use crate::failure::Failure;

/// Compare the simulator with measurements of a real network.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    network: Network,
}

#[derive(Debug, clap::Subcommand)]
enum Network {
    /// 20 clients on a fixed tree over CSMA, default timer and CoCoA, periods of 100 ms to 10 s (Vallati et al. 2020).
    Ecoap(Ecoap),
}

#[derive(Debug, clap::Args)]
struct Ecoap {
    /// Folder with conditions.csv, topology_pint_static.csv and tx.
    folder: PathBuf,
    /// Number of runs of each condition.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Length of a run; the testbed's runs took 16 min.
    #[arg(long, value_name = "TIME", default_value = "16min")]
    duration: Duration,
    /// Runs at a time; by default one on each core.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Cross-validate: fit the two fitted parameters again for each period, without the data of that period.
    #[arg(long)]
    cross: bool,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs the model and prints its results next to the measurements.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let Network::Ecoap(args) = &args.network;
    let how = How { seeds: args.seeds, duration: args.duration, jobs: args.jobs };
    let validate = if args.cross { ecoap::cross_validate } else { ecoap::validate };
    let validation = validate(&args.folder, how, simulate).map_err(|error| match error {
        Error::Run(_) => Failure::own(error),
        Error::Data(_) => {
            let hint = "give the folder with the tables of the testbed, as they were published";
            Failure::usage(error, hint)
        }
        Error::Model(_) => Failure::Usage { message: error.to_string(), hint: None },
    })?;
    if args.json {
        let mut value = serde_json::to_value(&validation).map_err(Failure::own)?;
        value["build"] = serde_json::to_value(Build::own()).map_err(Failure::own)?;
        return Ok(writeln!(out, "{value:#}")?);
    }
    table(out, &validation)?;
    Ok(writeln!(out, "\n{}", build::program())?)
}

/// A row for each condition, with these columns of measured and simulated figures.
fn conditions<const N: usize>(
    out: &mut dyn Write,
    validation: &Validation,
    head: [&str; N],
    cells: impl Fn(Figures, Figures) -> [String; N],
) -> Result<(), Failure> {
    write!(out, "{:<8} {:>6}", "timer", "period")?;
    for name in head {
        write!(out, "  {name:>15}")?;
    }
    writeln!(out)?;
    for condition in &validation.conditions {
        write!(out, "{:<8} {:>6}", condition.algorithm, condition.period_ms)?;
        for cell in cells(condition.measured, condition.simulated) {
            write!(out, "  {cell:>15}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn table(out: &mut dyn Write, validation: &Validation) -> Result<(), Failure> {
    writeln!(out, "measured | simulated\n")?;
    let pair = |a: f64, b: f64, digits: usize| format!("{a:.digits$} | {b:.digits$}");
    let head = ["acked/s", "tdr", "p50 ms", "p95 ms"];
    conditions(out, validation, head, |a, b| {
        [
            pair(a.throughput_tps, b.throughput_tps, 1),
            pair(a.tdr, b.tdr, 4),
            pair(a.rtt_p50_ms, b.rtt_p50_ms, 0),
            pair(a.rtt_p95_ms, b.rtt_p95_ms, 0),
        ]
    })?;
    writeln!(out)?;
    conditions(out, validation, ["link success", "one copy"], |a, b| {
        [pair(a.link_success, b.link_success, 2), pair(a.first_attempts, b.first_attempts, 2)]
    })?;
    writeln!(out, "\nmedian time of first attempts at light load, ms")?;
    for hop in &validation.light_rtt {
        let (a, b) = (hop.measured_ms, hop.simulated_ms);
        writeln!(out, "{:>4} hops  {a:>6.1} | {b:>6.1}", hop.hops)?;
    }
    let ratio = |effect: &Option<Effect>, of: fn(&Effect) -> f64| {
        effect.as_ref().map_or_else(|| "-".to_owned(), |effect| format!("{:.2}", of(effect)))
    };
    let both = |of| {
        let (a, b) = (&validation.measured_effect, &validation.simulated_effect);
        format!("{} | {}", ratio(a, of), ratio(b, of))
    };
    writeln!(out, "\nCoCoA by default at 250 ms")?;
    writeln!(out, "{:>16}  {}", "throughput", both(|effect| effect.throughput_ratio))?;
    writeln!(out, "{:>16}  {}", "p95", both(|effect| effect.rtt_p95_ratio))?;
    writeln!(out, "\nmean error of the model, as a factor")?;
    for error in &validation.errors {
        writeln!(out, "{:>16}  {:.3}", error.figure, error.factor)?;
    }
    if !validation.folds.is_empty() {
        writeln!(out, "\nleft out ms      margin  shadowing  error where fitted | left out")?;
    }
    for fold in &validation.folds {
        let periods: Vec<String> = fold.periods_ms.iter().map(u32::to_string).collect();
        let (periods, chosen) = (periods.join(", "), fold.chosen);
        let (margin, shadowing) = (chosen.margin_db, chosen.shadowing_db);
        let (fitted, held_out) = (fold.fitted, fold.held_out);
        writeln!(
            out,
            "{periods:<15} {margin:>4} dB {shadowing:>7} dB {fitted:>19.3} | {held_out:.3}"
        )?;
    }
    Ok(())
}
