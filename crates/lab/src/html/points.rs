//! The points behind a page: what each was, and the commands that make it and its runs again.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::markup::{command, table};
use crate::command::Provenance;
use crate::figures::Data;
use crate::figures::sheet::escaped;
use crate::results::PointResult;

/// Points whose commands are shown without being asked for.
const OPEN_MAX: usize = 12;

/// What stands above the lists of commands.
pub const NOTE: &str = "<p class=\"note\">One click selects a command. Marks in figures and rows of tables lead to their point here. \
                        The same scenario, seed and version give the same trace hash on any machine.</p>\n";

/// The commands of `points`, in a list that opens when one is looked for; `heading` says which they are. Points
/// whose anchors were `told` before are left out.
pub fn commands(
    points: &[PointResult],
    provenance: &Provenance,
    heading: &str,
    told: &mut BTreeSet<String>,
) -> String {
    let open = if points.len() <= OPEN_MAX { " open" } else { "" };
    let mut html = format!("<details{open}><summary>{}</summary>\n", escaped(heading));
    for point in points {
        let anchor = point.anchor();
        if told.contains(&anchor) {
            continue;
        }
        // Writing to a String cannot fail, here and below.
        _ = writeln!(html, "<div class=\"point\" id=\"{anchor}\">");
        told.insert(anchor);
        let words = point.words();
        if !words.is_empty() {
            _ = writeln!(html, "<p>{}</p>", escaped(&words));
        }
        html.push_str(&command(&provenance.point(&point.point)));
        let runs = provenance.runs(point);
        if !runs.is_empty() {
            html.push_str("\n<details><summary>Each run alone</summary>");
            for (seed, rerun) in runs {
                _ = write!(html, "\nseed {}{}", seed.0, command(&rerun));
            }
            html.push_str("</details>");
        }
        html.push_str("</div>\n");
    }
    html.push_str("</details>\n");
    html
}

/// Runs that failed, with their reasons and the commands that show them; empty without any.
pub fn failures(points: &[PointResult], provenance: &Provenance) -> String {
    let mut data = Data::new(&["point", "seed", "error", "command"]);
    for point in points {
        for failure in &point.failures {
            // A failed run is not kept, so its scenario has to be named.
            let unkept = Provenance { store: None, ..provenance.clone() };
            let (seed, error) = (failure.seed.0.to_string(), failure.error.to_string());
            let again = unkept.run(&point.point, failure.seed);
            data.push(&point.anchor(), vec![point.words(), seed, error, again]);
        }
    }
    if data.rows.is_empty() { String::new() } else { table(&data) }
}

/// The number of finished runs, followed by that of failed ones.
pub fn run_count(points: &[PointResult]) -> String {
    let finished: usize = points.iter().map(|point| point.runs.len()).sum();
    match points.iter().map(|point| point.failures.len()).sum::<usize>() {
        0 => finished.to_string(),
        failed => format!("{finished}, and {failed} failed"),
    }
}

/// First and last seed; empty without a run.
pub fn seed_range(points: &[PointResult]) -> String {
    let seeds = || points.iter().flat_map(|point| &point.runs).map(|run| run.seed.0);
    match (seeds().min(), seeds().max()) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        _ => String::new(),
    }
}

/// How long a run is, as a fact; empty without a point.
pub fn run_length(points: &[PointResult]) -> String {
    points.first().map_or_else(String::new, |point| {
        let head = &point.point.scenario.head;
        format!("{} of simulated time, measured from {} on", head.duration, head.warmup)
    })
}

/// A scenario with every value, folded.
pub fn parameters(point: &PointResult, summary: &str) -> String {
    let (summary, toml) = (escaped(summary), escaped(&point.point.scenario.to_toml()));
    format!("<details><summary>{summary}</summary>\n<pre>{toml}</pre>\n</details>\n")
}
