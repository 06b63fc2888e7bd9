//! A report as a table for people, readable without colours.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use lowmesh_lab::build;
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::report::Report;
use lowmesh_lab::results::Results;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::statistics::Estimate;

/// Writes `report` of `scenario`.
pub fn write(out: &mut dyn Write, scenario: &Scenario, report: &Report) -> io::Result<()> {
    let head = &scenario.head;
    let runs = report.runs.len();
    let seeds = match (report.runs.first(), report.runs.last()) {
        (Some(first), Some(last)) if runs > 1 => {
            format!("seeds {} to {}", first.seed.0, last.seed.0)
        }
        (Some(first), _) => format!("seed {}", first.seed.0),
        _ => "none finished".to_owned(),
    };
    let plural = if runs == 1 { "" } else { "s" };
    writeln!(
        out,
        "{}: {runs} run{plural} of {}, measured from {} on, {seeds}\n",
        report.scenario, head.duration, head.warmup
    )?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["metric", "mean", "95 % CI", "runs"]);
    // Rows of traffic that the scenario does not have would say nothing.
    let absent: Vec<&str> = [&Metrics::OF_TRANSACTIONS[..], &Metrics::OF_DATAGRAMS[..]]
        .into_iter()
        .filter(|names| report.estimate(names[0]).is_some_and(|count| count.mean == 0.0))
        .flatten()
        .copied()
        .collect();
    let hidden = |name: &str| Metrics::MECHANISMS.contains(&name) || absent.contains(&name);
    for (name, estimate) in report.summary.iter().filter(|(name, _)| !hidden(name)) {
        table.add_row(row(name, *estimate));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let drops = report.drops();
    if !drops.is_empty() {
        let drops: Vec<String> = drops.iter().map(|(name, n)| format!("{name} {n:.1}")).collect();
        writeln!(out, "\ndrops a run: {}", drops.join(", "))?;
    }
    writeln!(out, "\n{}", build::program())
}

/// Metrics in the table of a sweep when the user chooses none.
pub const CHOSEN: [&str; 6] = [
    "tdr",
    "delay_p50_ms",
    "delay_p95_ms",
    "retransmissions_per_transaction",
    "joined",
    "duty_cycle",
];

/// Reads the name of a metric.
pub fn metric(name: &str) -> Result<String, String> {
    let metrics = Metrics::default().numbers();
    if metrics.iter().any(|(metric, _)| *metric == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = metrics.iter().map(|(name, _)| *name).collect();
    Err(format!("the metrics are {}", names.join(", ")))
}

/// Writes one row a point of a sweep, with the means of `metrics` and their intervals.
pub fn write_sweep(out: &mut dyn Write, results: &Results, metrics: &[String]) -> io::Result<()> {
    let runs: usize = results.points.iter().map(|point| point.runs.len()).sum();
    let points = results.points.len();
    writeln!(out, "{}: {points} points, {runs} runs; means ± 95 % CI\n", results.name)?;
    let keys = results.keys();
    let mut table = Table::new();
    let header = keys.iter().copied().chain(metrics.iter().map(String::as_str)).chain(["runs"]);
    table.load_style(presets::NOTHING).set_header(header);
    for point in &results.points {
        let settings = point.point.settings.iter().map(|(_, value)| value.clone());
        let means = metrics.iter().map(|name| {
            let Some(estimate) = point.estimate(name) else { return "-".to_owned() };
            let number = |value: f64| format!("{value:.*}", decimals(name));
            let half = estimate.ci95.map(|half| format!(" ± {}", number(half)));
            number(estimate.mean) + &half.unwrap_or_default()
        });
        table.add_row(settings.chain(means).chain([point.runs.len().to_string()]));
    }
    for column in table.column_iter_mut().skip(keys.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "\n{}", build::program())
}

fn row(name: &str, estimate: Option<Estimate>) -> [String; 4] {
    let number = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.*}", decimals(name)))
    };
    let interval = number(estimate.and_then(|estimate| estimate.ci95));
    let interval = if interval == "-" { interval } else { format!("± {interval}") };
    let runs = estimate.map_or(0, |estimate| estimate.n);
    [name.to_owned(), number(estimate.map(|estimate| estimate.mean)), interval, runs.to_string()]
}

/// Digits after the point: four for shares, one for times and counts, two for the rest.
pub fn decimals(name: &str) -> usize {
    match name {
        "tdr" | "pdr_up" | "pdr_down" | "duty_cycle" => 4,
        "retransmissions_per_transaction" => 3,
        "hops_mean" | "parent_changes" => 2,
        _ => 1,
    }
}
