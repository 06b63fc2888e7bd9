//! The page of `lowmesh tune`: the best set of numbers, what it gains, and the search.

use std::collections::BTreeSet;

use super::document::{Document, Page, facts};
use super::markup::{command, prose, table};
use super::points;
use crate::build;
use crate::command::Provenance;
use crate::digits::signed_with_interval;
use crate::figures::sheet::escaped;
use crate::figures::{Data, search};
use crate::statistics::Estimate;
use crate::tune::{Tuned, Verdict};

/// Makes the page of `tuned`; `again` is the command that makes it again.
pub fn search_page(tuned: &Tuned, provenance: &Provenance, again: &str) -> Page {
    let mut page = Document::new(&format!("{}: tuned", tuned.scenario), lead(tuned, again));
    page.section("best", "The best set");
    page.add(&format!("<pre>{}</pre>\n", escaped(&tuned.best.to_toml())));
    page.section("comparison", "On fresh seeds");
    if let Some(figure) = search::comparison(tuned) {
        page.figure("", &figure);
    }
    page.add("<h3>What the best set gains</h3>\n<p class=\"note\">The best set minus the others, paired by seed, with 95 % confidence intervals.</p>\n");
    page.add(&table(&gains(tuned)));
    page.section("search", "The search");
    if let Some(figure) = search::rungs(tuned) {
        page.figure("", &figure);
    }
    page.section("again", "Run it again");
    page.add(points::NOTE);
    let mut told = BTreeSet::new();
    let mut commands = |points, heading| points::commands(points, provenance, heading, &mut told);
    page.add(&commands(&tuned.held_out, "Sets of the comparison"));
    page.add(&commands(&tuned.searched, "Sets of the search"));
    let failures = [&tuned.searched, &tuned.held_out].map(|p| points::failures(p, provenance));
    if failures.iter().any(|failures| !failures.is_empty()) {
        page.section("failures", "Failed runs");
        page.add(&failures.concat());
    }
    if let Some(first) = tuned.held_out.first() {
        page.section("parameters", "Parameters");
        page.add("<p class=\"note\">The values of the first set of the comparison; the others differ only in the tuned keys.</p>\n");
        page.add(&points::parameters(first, "The scenario with every value"));
    }
    page.finish()
}

fn lead(tuned: &Tuned, again: &str) -> String {
    let seeds = |(first, last): (u64, u64)| format!("{first} to {last}");
    let mut html = format!("<p>In short: {}.</p>\n", prose(&tuned.conclusion()));
    html.push_str(&facts(&[
        ("Objective", tuned.objective.name().to_owned()),
        ("Sets searched", tuned.candidates.to_string()),
        ("Seeds of the search", seeds(tuned.search_seeds)),
        ("Seeds of the comparison", seeds(tuned.held_out_seeds)),
        ("Runs of the search", points::run_count(&tuned.searched)),
        ("Runs of the comparison", points::run_count(&tuned.held_out)),
        ("A run", points::run_length(&tuned.held_out)),
        ("Program", build::program()),
    ]));
    html.push_str(&command(again));
    html.push('\n');
    html
}

fn gains(tuned: &Tuned) -> Data {
    let mut data = Data::new(&["over", tuned.objective.name(), "tdr", "delay_p95_ms", "verdict"]);
    for (one, point) in tuned.compared.iter().zip(&tuned.held_out) {
        let Some(gain) = one.gain else { continue };
        let verdict = match gain.verdict() {
            Verdict::Better => "✓ better",
            Verdict::Worse => "✗ worse",
            Verdict::NotShown => "? not shown",
        };
        let words =
            |value: Option<Estimate>| value.map_or_else(|| "-".to_owned(), signed_with_interval);
        let row = vec![
            one.candidate.published.unwrap_or("tuned").to_owned(),
            words(gain.objective),
            words(gain.tdr),
            words(gain.delay_p95_ms),
            verdict.to_owned(),
        ];
        data.push(&point.anchor(), row);
    }
    data
}
