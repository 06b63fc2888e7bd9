//! `lowmesh compare`: how the results of two settings differ, run by run, with the confidence interval of the difference.

mod sides;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use clap_complete::engine::ArgValueCompleter;
use comfy_table::{Table, presets};
use lowmesh_lab::compare::family::{LEVEL, holm};
use lowmesh_lab::compare::unequal::{self, Unequal};
use lowmesh_lab::compare::{Difference, Side, difference};
use lowmesh_lab::digits::Digits;
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::scenario::CHOICES;
use serde_json::{Value, json};

use crate::console::say;
use crate::failure::Failure;
use crate::{complete, table};
use sides::{Pair, Read, across, by_key};

/// Version of the JSON's shape.
///
/// 2: `significant` is false for a difference of zero; `p`, `p_holm`, `significant_holm` and `warnings` are new.
const SCHEMA: u32 = 2;

/// Compare results run by run (runs with the same seed have the same radio conditions).
///
/// With A and B, points with equal settings are compared. With A alone, --by names the swept key whose values are
/// compared.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder made by `run --out`, its summary.json, or a store of runs.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Results to compare A with.
    #[arg(value_name = "B", required_unless_present = "by", conflicts_with = "by")]
    b: Option<PathBuf>,
    /// Compare the values of this swept key with each other.
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Value with which the other values are compared; by default the first.
    #[arg(long, value_name = "VALUE", requires = "by")]
    baseline: Option<String>,
    /// Compare only points with this setting (repeatable).
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = setting)]
    filter: Vec<(String, String)>,
    /// Metrics to compare, comma-separated. By default all, without rows that are zero in every run.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table::metric,
          add = ArgValueCompleter::new(complete::metrics))]
    metrics: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// One metric of a pair.
struct Row {
    metric: String,
    /// Absent if no pair of runs has the metric.
    found: Option<Difference>,
    /// Whether both sides are zero in all runs and the user did not ask for the metric.
    hidden: bool,
    /// The p-value of the difference, corrected for all rows that are shown.
    p_holm: Option<f64>,
}

/// Two points with all their rows.
struct Compared<'s> {
    pair: Pair<'s>,
    rows: Vec<Row>,
}

/// The build that made each side; with `--by` there is one side.
struct Builds {
    a: String,
    b: Option<String>,
}

impl fmt::Display for Builds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.b {
            Some(b) if *b != self.a => write!(f, "A: {}; B: {b}", self.a),
            _ => write!(f, "made by {}", self.a),
        }
    }
}

/// Reads the results and writes the differences.
pub fn execute(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let read = |path: &PathBuf| {
        let mut read = Read::open(path)?;
        read.choose(&args.filter)?;
        Ok::<_, Failure>(read)
    };
    let a = read(&args.a)?;
    let b = args.b.as_ref().map(read).transpose()?;
    let builds = Builds { a: a.build.clone(), b: b.as_ref().map(|b| b.build.clone()) };
    let pairs = match (&b, &args.by) {
        (Some(b), _) => across(&a, b)?,
        (None, Some(key)) => by_key(&a, key, args.baseline.as_deref())?,
        (None, None) => unreachable!("the command line has B or --by"),
    };
    if !pairs.iter().any(|pair| pair.a.runs.keys().any(|seed| pair.b.runs.contains_key(seed))) {
        let hint = "runs are compared by seed: give both sides the same --seed";
        return Err(Failure::usage("no seed was run on both sides", hint));
    }
    let mut warnings = warnings(&pairs, args.by.as_deref());
    if pairs.iter().any(|pair| pair.a.leaves_out_unsent() != pair.b.leaves_out_unsent()) {
        warnings.push(Warning::Definition);
    }
    let mut compared: Vec<Compared<'_>> =
        pairs.into_iter().map(|pair| Compared { rows: rows(&pair, &args.metrics), pair }).collect();
    if compared.iter().all(|one| one.rows.iter().all(|row| row.found.is_none())) {
        let message = format!("no pair of runs has {}", args.metrics.join(" or "));
        let hint = "a metric is absent if a run has no data for it";
        return Err(Failure::usage(message, hint));
    }
    let comparisons = judge_together(&mut compared);
    for warning in &warnings {
        say!("warning: {}", warning.text());
    }
    if args.json {
        return Ok(write_json(out, &compared, comparisons, &warnings, &builds)?);
    }
    Ok(write_text(out, &compared, comparisons, &builds)?)
}

/// Why the differences may come from settings other than the compared ones.
enum Warning {
    Unequal(Unequal),
    /// The scenarios of some points are not known.
    Unknown,
    /// One side is from a program with another definition of delivery.
    Definition,
}

impl Warning {
    fn text(&self) -> String {
        match self {
            Self::Unequal(unequal) => unequal.to_string(),
            Self::Unknown => "there is no scenario.toml next to summary.json: settings that differ by default were \
                              not checked"
                .to_owned(),
            Self::Definition => "one side is from a program whose tdr and datagram_pdr leave out what was due at nodes that \
                                 had not joined: its tdr is the tdr_joined of the other side"
                .to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Unequal(unequal) => json!(unequal),
            Self::Unknown | Self::Definition => json!({ "text": self.text() }),
        }
    }
}

/// Settings that differ between the sides of `pairs` and are not compared; with `by`, only that key is compared.
fn warnings(pairs: &[Pair<'_>], by: Option<&str>) -> Vec<Warning> {
    let keys: Option<Vec<_>> =
        pairs.iter().map(|pair| Some((pair.a.keys.as_ref()?, pair.b.keys.as_ref()?))).collect();
    let Some(keys) = keys else {
        // Points of one sweep differ in its keys only, unless the key brings defaults for others.
        let matters = by.is_none_or(|key| CHOICES.contains(&key));
        return if matters { vec![Warning::Unknown] } else { Vec::new() };
    };
    let settings = pairs.iter().flat_map(|pair| pair.a.settings.iter().chain(&pair.b.settings));
    let swept: Vec<String> = settings.map(|(key, _)| key.clone()).collect();
    unequal::of_pairs(&keys, &swept).into_iter().map(Warning::Unequal).collect()
}

/// The rows of a pair: the metrics in `asked`, or all metrics of its runs.
fn rows(pair: &Pair<'_>, asked: &[String]) -> Vec<Row> {
    let row = |metric: &str| Row {
        metric: metric.to_owned(),
        found: difference(pair.a, pair.b, metric),
        hidden: asked.is_empty() && pair.a.is_zero(metric) && pair.b.is_zero(metric),
        p_holm: None,
    };
    if !asked.is_empty() {
        return asked.iter().map(|metric| row(metric)).collect();
    }
    let all = Metrics::default().numbers().into_iter().map(|(metric, _)| row(metric));
    all.filter(|row| row.found.is_some()).collect()
}

/// Sets the corrected p-value of every row that is shown; returns how many rows have one.
fn judge_together(compared: &mut [Compared<'_>]) -> usize {
    let rows = compared.iter_mut().flat_map(|one| &mut one.rows).filter(|row| !row.hidden);
    let mut family: Vec<(&mut Row, f64)> =
        rows.filter_map(|row| row.found.as_ref()?.p.map(|p| (row, p))).collect();
    let alone: Vec<f64> = family.iter().map(|(_, p)| *p).collect();
    for ((row, _), together) in family.iter_mut().zip(holm(&alone)) {
        row.p_holm = Some(together);
    }
    alone.len()
}

impl Row {
    fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < LEVEL)
    }
}

fn write_text(
    out: &mut dyn Write,
    compared: &[Compared<'_>],
    comparisons: usize,
    builds: &Builds,
) -> io::Result<()> {
    for Compared { pair, rows } in compared {
        writeln!(out, "{}\n", pair.title)?;
        write_table(out, rows)?;
        writeln!(out)?;
    }
    let rows = || compared.iter().flat_map(|one| &one.rows);
    let family = match comparisons {
        1 => "as one comparison".to_owned(),
        all => format!("corrected for {all} comparisons (Holm)"),
    };
    if rows().any(Row::is_significant) {
        writeln!(out, "* significant at 5 %, {family}")?;
    }
    let alone = |row: &&Row| {
        let alone = row.found.as_ref().and_then(|found| found.significant) == Some(true);
        alone && !row.hidden && !row.is_significant()
    };
    match rows().filter(alone).count() {
        0 => {}
        1 => writeln!(
            out,
            "1 more interval excludes zero; with {comparisons} comparisons this can be chance"
        )?,
        n => writeln!(
            out,
            "{n} more intervals exclude zero; with {comparisons} comparisons this can be chance"
        )?,
    }
    match rows().filter(|row| row.hidden).count() {
        0 => {}
        1 => writeln!(out, "1 row is hidden: zero on both sides in all runs (--metrics shows it)")?,
        n => writeln!(
            out,
            "{n} rows are hidden: zero on both sides in all runs (--metrics shows them)"
        )?,
    }
    writeln!(out, "{builds}")
}

fn write_table(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let mut table = Table::new();
    let header = ["metric", "from", "to", "difference", "95 % CI", "pairs", ""];
    table.load_style(presets::NOTHING).set_header(header);
    for row in rows.iter().filter(|row| !row.hidden) {
        let Some(found) = &row.found else {
            table.add_row([&row.metric, "-", "-", "-", "-", "0", ""]);
            continue;
        };
        let digits = digits(found);
        let interval = found.ci95.map(|half| format!("± {}", digits.show(half)));
        let star = if row.is_significant() { "*" } else { "" };
        table.add_row([
            row.metric.clone(),
            digits.show(found.a),
            digits.show(found.b),
            digits.show_signed(found.difference),
            interval.unwrap_or_else(|| "-".to_owned()),
            found.n.to_string(),
            star.to_owned(),
        ]);
    }
    table::print(out, table, 1)
}

/// The digits of a row: those of the difference's interval; without a spread, those of both means.
fn digits(found: &Difference) -> Digits {
    match found.ci95 {
        Some(half) if half > 0.0 => Digits::of(found.estimate()),
        _ => Digits::exact(&[found.a, found.b]),
    }
}

fn write_json(
    out: &mut dyn Write,
    compared: &[Compared<'_>],
    comparisons: usize,
    warnings: &[Warning],
    builds: &Builds,
) -> io::Result<()> {
    let settings = |side: &Side| -> serde_json::Map<String, Value> {
        side.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
    };
    let row = |row: &Row| {
        let mut json = json!(row.found.as_ref()?);
        json["p_holm"] = json!(row.p_holm);
        json["significant_holm"] = json!(row.p_holm.map(|_| row.is_significant()));
        Some(json)
    };
    let pair = |Compared { pair, rows }: &Compared<'_>| {
        let differences: Vec<Value> = rows.iter().filter_map(row).collect();
        json!({ "a": settings(pair.a), "b": settings(pair.b), "differences": differences })
    };
    let pairs: Vec<Value> = compared.iter().map(pair).collect();
    let warnings: Vec<Value> = warnings.iter().map(Warning::json).collect();
    let json = json!({
        "schema": SCHEMA, "builds": { "a": builds.a, "b": builds.b }, "warnings": warnings,
        "comparisons": comparisons, "pairs": pairs,
    });
    writeln!(out, "{json:#}")
}

#[cfg(test)]
mod tests;
