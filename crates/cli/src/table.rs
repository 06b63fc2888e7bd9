//! A report as a table for people, readable without colours.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use lowmesh_lab::build;
use lowmesh_lab::digits::{Digits, with_interval};
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::report::Report;
use lowmesh_lab::results::Results;
use lowmesh_lab::scenario::{Scenario, similar};
use lowmesh_lab::statistics::Estimate;

use crate::console::{width, wrapped};

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
    // Rows about traffic that the scenario does not have are left out.
    let kinds = [
        &Metrics::OF_TRANSACTIONS[..],
        &Metrics::OF_DATAGRAMS[..],
        &Metrics::OF_GROUPS[..],
        &Metrics::OF_QUERIES[..],
        &Metrics::OF_EVENTS[..],
    ];
    let absent: Vec<&str> = kinds
        .into_iter()
        .filter(|names| report.estimate(names[0]).is_some_and(|count| count.mean == 0.0))
        // What was due and was never sent has no number, but a ratio.
        .filter(|names| {
            let has = |name: &str| names.contains(&name) && report.estimate(name).is_some();
            !has("tdr") && !has("datagram_pdr")
        })
        .flatten()
        .copied()
        .collect();
    let hidden = |name: &str| Metrics::MECHANISMS.contains(&name) || absent.contains(&name);
    for (name, estimate) in report.summary.iter().filter(|(name, _)| !hidden(name)) {
        table.add_row(row(name, *estimate));
    }
    print(out, table, 1)?;
    let drops = report.drops();
    if !drops.is_empty() {
        let drops: Vec<String> =
            drops.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect();
        let line = format!("drops a run: {}", drops.join(", "));
        writeln!(out, "\n{}", wrapped(&line, width(), "    "))?;
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
    let meant = similar(name, names.iter().copied());
    let meant = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    Err(format!("there is no such metric; {meant}the metrics are {}", names.join(", ")))
}

/// Writes one row a point of a sweep, with the means of `metrics` and their intervals.
pub fn write_sweep(out: &mut dyn Write, results: &Results, metrics: &[String]) -> io::Result<()> {
    let runs: usize = results.points.iter().map(|point| point.runs.len()).sum();
    let points = results.points.len();
    writeln!(out, "{}: {points} points, {runs} runs; means ± 95 % CI\n", results.name)?;
    for (index, part) in parts(results, metrics, width()).into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        print(out, sweep_table(results, part), results.keys().len())?;
    }
    writeln!(out, "\n{}", build::program())
}

/// A row for each point, with these metrics.
fn sweep_table(results: &Results, metrics: &[String]) -> Table {
    let keys = results.keys();
    let mut table = Table::new();
    let header = keys.iter().copied().chain(metrics.iter().map(String::as_str)).chain(["runs"]);
    table.load_style(presets::NOTHING).set_header(header);
    for point in &results.points {
        let settings = point.point.settings.iter().map(|(_, value)| value.clone());
        let means = metrics
            .iter()
            .map(|name| point.estimate(name).map_or_else(|| "-".to_owned(), with_interval));
        table.add_row(settings.chain(means).chain([point.runs.len().to_string()]));
    }
    table
}

/// Cuts the metrics into tables that fit `width`, each with at least one metric.
fn parts<'m>(results: &Results, metrics: &'m [String], width: usize) -> Vec<&'m [String]> {
    let mut parts = Vec::new();
    let mut rest = metrics;
    while !rest.is_empty() {
        let fits = |count: &usize| {
            let table = sweep_table(results, &rest[..*count]);
            table.lines().all(|line| line.trim_end().chars().count() <= width)
        };
        let (part, others) = rest.split_at((1..=rest.len()).rev().find(fits).unwrap_or(1));
        parts.push(part);
        rest = others;
    }
    parts
}

/// Prints a table within the width of stdout. The first `names` columns have names, the others numbers, which are never
/// cut.
pub fn print(out: &mut dyn Write, mut table: Table, names: usize) -> io::Result<()> {
    let width = width();
    // Columns move together before names are cut.
    if table.lines().any(|line| line.trim_end().chars().count() > width) {
        table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 1)));
    }
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    for (index, column) in table.column_iter_mut().enumerate() {
        if index < names {
            column.set_delimiter('_');
        } else {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(name: &str, estimate: Option<Estimate>) -> [String; 4] {
    let Some(estimate) = estimate else { return [name, "-", "-", "0"].map(str::to_owned) };
    let digits = Digits::of(estimate);
    let interval = estimate.ci95.map(|half| format!("± {}", digits.show(half)));
    let interval = interval.unwrap_or_else(|| "-".to_owned());
    [name.to_owned(), digits.show(estimate.mean), interval, estimate.n.to_string()]
}

/// A mean count: one digit after the point, two significant ones below 1.
fn count(mean: f64) -> String {
    Digits::significant(mean.min(9.0), 2).show(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_metric_is_told_with_the_one_that_was_meant() {
        let told = metric("dely_p95_ms").expect_err("no metric");
        assert!(
            told.starts_with("there is no such metric; did you mean `delay_p95_ms`? "),
            "{told}"
        );
        let told = metric("zebra").expect_err("no metric");
        assert!(told.starts_with("there is no such metric; the metrics are tdr, "), "{told}");
        assert_eq!(metric("tdr").as_deref(), Ok("tdr"));
    }

    #[test]
    fn rows_have_the_digits_of_their_interval() {
        let row = |mean, ci95| {
            let [_, mean, interval, _] = row("datagram_pdr", Some(Estimate { mean, ci95, n: 10 }));
            (mean, interval)
        };
        let words = |mean: &str, interval: &str| (mean.to_owned(), interval.to_owned());
        assert_eq!(row(0.998_55, Some(0.000_341)), words("0.99855", "± 0.00034"));
        assert_eq!(row(4620.71, Some(54.8)), words("4621", "± 55"));
        assert_eq!(row(0.998_55, None), words("0.9986", "-"));
    }

    #[test]
    fn a_rare_drop_is_not_shown_as_none() {
        assert_eq!([87.26, 2.0, 0.04].map(count), ["87.3", "2.0", "0.040"]);
    }
}
