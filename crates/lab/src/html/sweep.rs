//! The page of `lowmesh run`: the points of a scenario or of its sweep.

use std::collections::BTreeSet;

use super::document::{Document, Page, facts};
use super::markup::{csv_link, table};
use super::points;
use crate::build;
use crate::command::Provenance;
use crate::compare::unequal::of_results;
use crate::digits::{Digits, with_interval};
use crate::figures::sheet::escaped;
use crate::figures::{Data, figures};
use crate::metrics::Metrics;
use crate::report::never_joined;
use crate::results::{PointResult, Results};

/// Metrics of the table of a sweep.
const SUMMARY: [&str; 6] = [
    "tdr",
    "pdr_up",
    "delay_p50_ms",
    "delay_p95_ms",
    "retransmissions_per_transaction",
    "duty_cycle",
];

/// Makes the page of `results`.
pub fn sweep_page(results: &Results, provenance: &Provenance) -> Page {
    let points = &results.points;
    let mut page = Document::new(&results.name, lead(points));
    page.section("results", "Results");
    page.add(&summary(results));
    for unequal in of_results(results) {
        page.add(&format!("<p class=\"note\">Warning: {}</p>\n", escaped(&unequal.to_string())));
    }
    for point in points {
        if let Some(told) = never_joined(&point.runs) {
            let place = match point.words().as_str() {
                "" => String::new(),
                words => format!("{words}: "),
            };
            page.add(&format!("<p class=\"note\">Warning: {}</p>\n", escaped(&(place + &told))));
        }
    }
    page.section("figures", "Figures");
    let figures = figures(points, &[]);
    for figure in &figures {
        page.figure("", figure);
    }
    if figures.is_empty() {
        page.add("<p>No run finished, so there is nothing to draw.</p>\n");
    }
    if let Some(events) = event_table(points) {
        page.section("events", "Events");
        page.add("<p class=\"note\">Of the run with the first seed of each point.</p>\n");
        page.add(&events);
    }
    page.section("again", "Run it again");
    page.add(points::NOTE);
    let told = &mut BTreeSet::new();
    page.add(&points::commands(points, provenance, "Commands of all points", told));
    let failures = points::failures(points, provenance);
    if !failures.is_empty() {
        page.section("failures", "Failed runs");
        page.add(&failures);
    }
    if let Some(first) = points.first() {
        page.section("parameters", "Parameters");
        if points.len() > 1 {
            page.add("<p class=\"note\">The values of the first point; the others differ only in the swept keys.</p>\n");
        }
        page.add(&points::parameters(first, "The scenario with every value"));
    }
    page.finish()
}

/// What was run, with what, how often.
fn lead(points: &[PointResult]) -> String {
    let scenario = points.first().map(|point| &point.point.scenario);
    let description = scenario.map_or("", |scenario| scenario.head.description.as_str());
    let description = match description {
        "" => String::new(),
        words => format!("<p>{}</p>\n", escaped(words)),
    };
    description
        + &facts(&[
            ("Points", points.len().to_string()),
            ("Runs", points::run_count(points)),
            ("Seeds", points::seed_range(points)),
            ("A run", points::run_length(points)),
            ("Program", build::program()),
        ])
}

/// All metrics of a single point, or the main ones of each point.
fn summary(results: &Results) -> String {
    let data = match results.points.as_slice() {
        [point] => all_metrics(point),
        points => main_metrics(&results.keys(), points),
    };
    let file = format!("{}-runs.csv", file_name(&results.name));
    let runs = csv_link(&results.to_csv(), &file, "CSV of all runs");
    format!(
        "<p class=\"note\">Means over the seeds with 95 % confidence intervals (Student's t). {runs}</p>\n{}",
        table(&data)
    )
}

fn all_metrics(point: &PointResult) -> Data {
    let mut data = Data::new(&["metric", "mean", "ci95", "n"]);
    for (name, _) in Metrics::default().numbers() {
        let estimate = point.estimate(name);
        let digits = estimate.map(Digits::of);
        let shown = |value: Option<f64>| {
            digits.zip(value).map_or_else(String::new, |(digits, value)| digits.show(value))
        };
        data.rows.push(vec![
            name.to_owned(),
            shown(estimate.map(|e| e.mean)),
            shown(estimate.and_then(|e| e.ci95)),
            estimate.map_or(0, |e| e.n).to_string(),
        ]);
    }
    data
}

fn main_metrics(keys: &[&str], points: &[PointResult]) -> Data {
    let mut data = Data::new(keys);
    data.columns.extend(SUMMARY.map(ToOwned::to_owned));
    for point in points {
        let setting = |key: &&str| point.setting(key).unwrap_or_default().to_owned();
        let mut row: Vec<String> = keys.iter().map(setting).collect();
        let shown = |metric| point.estimate(metric).map_or_else(String::new, with_interval);
        row.extend(SUMMARY.map(shown));
        data.push(&point.anchor(), row);
    }
    data
}

/// What happened to the network in the first run of each point, and what it cost; nothing without events.
fn event_table(points: &[PointResult]) -> Option<String> {
    let columns = [
        "point",
        "at_s",
        "event",
        "node",
        "peer",
        "cut_off",
        "recovery_s",
        "ended",
        "lost",
        "parent_changes",
    ];
    let mut data = Data::new(&columns);
    for point in points {
        let words: Vec<String> =
            point.point.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        for event in point.runs.first().iter().flat_map(|run| &run.metrics.event_list) {
            let shown = |node: Option<u16>| node.map_or_else(String::new, |node| node.to_string());
            let row = vec![
                words.join(", "),
                Data::number(Some(event.at_s)),
                event.event.clone(),
                shown(event.node),
                shown(event.peer),
                event.cut_off.to_string(),
                Data::number(event.recovery_s),
                event.ended.to_string(),
                event.lost.to_string(),
                event.parent_changes.to_string(),
            ];
            data.push(&point.anchor(), row);
        }
    }
    (!data.rows.is_empty()).then(|| table(&data))
}

/// A name that every file system takes.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
