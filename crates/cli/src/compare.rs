//! `lowmesh compare`: what two settings differ in, run by run, with the confidence interval of the difference.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use lowmesh_lab::compare::{Difference, Side, build_of_summary, difference, points_of_store};
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::scenario::sweep::describe;
use lowmesh_lab::store::Store;
use serde_json::json;

use crate::failure::Failure;
use crate::table;

/// Compare results run by run (runs of one seed meet the same radio weather).
///
/// With A and B, points of equal settings are compared. With A alone, --by says which swept key to compare the
/// values of.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder made by `run --out`, its summary.json, or a store of runs.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Another one to compare it with.
    #[arg(value_name = "B", required_unless_present = "by", conflicts_with = "by")]
    b: Option<PathBuf>,
    /// Compare the values of this swept key with each other.
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// The value of the key that the others are compared with; the first unless given.
    #[arg(long, value_name = "VALUE", requires = "by")]
    baseline: Option<String>,
    /// Only points with this setting (repeatable).
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = setting)]
    filter: Vec<(String, String)>,
    /// Metrics to compare, parted by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table::metric)]
    metrics: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Two points with what tells them apart.
struct Pair<'s> {
    title: String,
    a: &'s Side,
    b: &'s Side,
}

/// Which build made each side; there is one side with `--by`.
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
    let (a, build_a) = read(&args.a, &args.filter)?;
    let b = args.b.as_deref().map(|b| read(b, &args.filter)).transpose()?;
    let (b, build_b) = b.map_or((None, None), |(b, build)| (Some(b), Some(build)));
    let builds = Builds { a: build_a, b: build_b };
    let pairs = match (&b, &args.by) {
        (Some(b), _) => across(&a, b),
        (None, Some(key)) => by_key(&a, key, args.baseline.as_deref())?,
        (None, None) => Vec::new(),
    };
    if pairs.is_empty() {
        return Err(Failure::Usage {
            message: "there are no two points to compare".to_owned(),
            hint: Some(
                "two results need points of equal settings; --where chooses some".to_owned(),
            ),
        });
    }
    let metrics = if args.metrics.is_empty() {
        Metrics::default().numbers().iter().map(|(name, _)| (*name).to_owned()).collect()
    } else {
        args.metrics.clone()
    };
    let compared: Vec<(&Pair<'_>, Vec<Difference>)> = pairs
        .iter()
        .map(|pair| (pair, metrics.iter().filter_map(|m| difference(pair.a, pair.b, m)).collect()))
        .collect();
    if compared.iter().all(|(_, differences)| differences.is_empty()) {
        return Err(Failure::Usage {
            message: "no seed was run on both sides".to_owned(),
            hint: Some("runs are compared by seed: give both sides the same --seed".to_owned()),
        });
    }
    if args.json {
        return write_json(out, &compared, &builds).map_err(Failure::from);
    }
    for (i, (pair, differences)) in compared.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}\n", pair.title)?;
        write_table(out, differences)?;
    }
    Ok(writeln!(out, "\n{builds}")?)
}

/// The points of results that have all of `filter`'s settings, and which build made them.
fn read(path: &Path, filter: &[(String, String)]) -> Result<(Vec<Side>, String), Failure> {
    let summary = if path.is_dir() { path.join("summary.json") } else { path.to_owned() };
    let (mut points, build) = if path.is_dir() && !summary.is_file() {
        let store = Store::open_results(path)?;
        (points_of_store(&store)?, store.build()?)
    } else {
        let usage = |why: String| {
            let message = format!("{}: {why}", summary.display());
            let hint = "give the summary.json or the folder of `lowmesh run --out`, or a store";
            Failure::usage(message, hint)
        };
        let text = fs::read_to_string(&summary).map_err(|error| usage(error.to_string()))?;
        let points = Side::read_summary(&text).map_err(|error| usage(error.to_string()))?;
        let build = build_of_summary(&text);
        (
            points,
            build.map_or_else(
                || "a build that was not recorded".to_owned(),
                |build| build.to_string(),
            ),
        )
    };
    points.retain(|point| point.has(filter));
    Ok((points, build))
}

/// Points of equal settings; two single points whatever their settings are.
fn across<'s>(a: &'s [Side], b: &'s [Side]) -> Vec<Pair<'s>> {
    if let ([a], [b]) = (a, b) {
        let title = match (describe(&a.settings), describe(&b.settings)) {
            (a, b) if a.is_empty() && b.is_empty() => "A to B".to_owned(),
            (a, b) => format!("A ({a}) to B ({b})"),
        };
        return vec![Pair { title, a, b }];
    }
    let same = |a: &'s Side| {
        let b = b.iter().find(|b| b.settings == a.settings)?;
        Some(Pair { title: format!("A to B at {}", describe(&a.settings)), a, b })
    };
    a.iter().filter_map(same).collect()
}

/// Every value of a swept key beside the baseline, all other settings equal.
fn by_key<'s>(
    points: &'s [Side],
    key: &str,
    baseline: Option<&str>,
) -> Result<Vec<Pair<'s>>, Failure> {
    let value =
        |side: &'s Side| side.settings.iter().find(|(own, _)| own == key).map(|(_, v)| v.as_str());
    let mut values: Vec<&str> = Vec::new();
    for found in points.iter().filter_map(value) {
        if !values.contains(&found) {
            values.push(found);
        }
    }
    let usage = |message: String| Failure::Usage { message, hint: None };
    let first = values.first().ok_or_else(|| usage(format!("{key} was not swept here")))?;
    let baseline = baseline.unwrap_or(first);
    if !values.contains(&baseline) {
        let values = values.join(", ");
        return Err(usage(format!("{key} = {baseline} was not run; its values are {values}")));
    }
    let pair = |b: &'s Side| {
        let own = value(b).filter(|own| *own != baseline)?;
        let rest = b.without(key);
        let a = points.iter().find(|a| value(a) == Some(baseline) && a.without(key) == rest)?;
        let place =
            if rest.is_empty() { String::new() } else { format!(" at {}", describe(&rest)) };
        Some(Pair { title: format!("{key}: {baseline} to {own}{place}"), a, b })
    };
    Ok(points.iter().filter_map(pair).collect())
}

fn write_table(out: &mut dyn Write, differences: &[Difference]) -> io::Result<()> {
    let mut table = Table::new();
    let header = ["metric", "from", "to", "difference", "95 % CI", "pairs", ""];
    table.load_style(presets::NOTHING).set_header(header);
    for found in differences {
        let number = |value: f64| format!("{value:.*}", table::decimals(&found.metric));
        let verdict = if found.significant == Some(true) { "*" } else { "" };
        table.add_row([
            found.metric.clone(),
            number(found.a),
            number(found.b),
            format!("{:+.*}", table::decimals(&found.metric), found.difference),
            found.ci95.map_or_else(|| "-".to_owned(), |half| format!("± {}", number(half))),
            found.n.to_string(),
            verdict.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    if differences.iter().any(|found| found.significant == Some(true)) {
        writeln!(out, "\n* the interval of the difference does not hold zero")?;
    }
    Ok(())
}

fn write_json(
    out: &mut dyn Write,
    compared: &[(&Pair<'_>, Vec<Difference>)],
    builds: &Builds,
) -> io::Result<()> {
    let settings = |side: &Side| -> serde_json::Map<String, serde_json::Value> {
        side.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
    };
    let pair = |(pair, differences): &(&Pair<'_>, Vec<Difference>)| json!({ "a": settings(pair.a), "b": settings(pair.b), "differences": differences });
    let pairs: Vec<_> = compared.iter().map(pair).collect();
    writeln!(
        out,
        "{:#}",
        json!({ "schema": 1, "builds": { "a": builds.a, "b": builds.b }, "pairs": pairs })
    )
}

#[cfg(test)]
mod tests;
