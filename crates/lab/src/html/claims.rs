//! The page of `lowmesh reproduce`: the verdicts on the claims of a publication, and the runs behind them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::document::{Document, Page, facts};
use super::markup::{command, csv_link, prose, table};
use super::points;
use crate::build;
use crate::claims::judge::Evidence;
use crate::claims::{
    Answer, Basis, Grade, Level, MeasuredTable, Paper, Sensitivity, Summary, Sweep, Verdict,
};
use crate::command::{Kept, Provenance};
use crate::digits::median_of;
use crate::figures::sheet::escaped;
use crate::figures::{Data, differences, figures, main_figures};
use crate::results::{PointResult, Results};

/// The command of the page and the store of its runs.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The command that makes the page again.
    pub command: String,
    /// Where its runs are kept.
    pub kept: Kept,
}

/// Makes the page of `answers` to claims of `paper`.
pub fn claims_page(paper: &Paper, answers: &[Answer], evidence: &Evidence, how: &Extent) -> Page {
    let mut page = Document::new(&paper.title, lead(paper, answers, evidence, how));
    page.section("claims", "Claims");
    page.add(&claims(answers));
    if !paper.assumptions.is_empty() {
        page.section("assumptions", "Assumptions");
        page.add("<ul>\n");
        for assumption in &paper.assumptions {
            page.add(&format!("<li>{}</li>\n", prose(assumption)));
        }
        page.add("</ul>\n");
    }
    let largest = largest(paper, evidence);
    let levels: Vec<Level> =
        answers.iter().filter_map(|answer| paper.claim(&answer.id)).flat_map(Level::of).collect();
    let mut listed: Vec<(&Sweep, Vec<PointResult>, Provenance)> = Vec::new();
    for sweep in &paper.sweeps {
        let Some(own) = evidence.sweeps.get(&sweep.name) else { continue };
        let sensitivity = Sensitivity::of(paper, &sweep.name, &evidence.sweeps);
        let shown = sensitivity.as_ref().map_or(own, |found| &found.points).clone();
        add_sweep(
            &mut page,
            sweep,
            &shown,
            paper.measured.as_ref(),
            sensitivity.as_ref(),
            &levels,
            Some(sweep.name.as_str()) == largest,
        );
        let provenance = paper.provenance(&sweep.name, evidence.scope);
        listed.push((sweep, shown, Provenance { store: Some(how.kept.clone()), ..provenance }));
    }
    let missing = paper.sweeps.iter().filter(|sweep| !evidence.sweeps.contains_key(&sweep.name));
    let missing: Vec<&Sweep> = missing.collect();
    if !missing.is_empty() {
        page.section("not-run", "Sweeps that were not run");
        page.add("<ul>\n");
        for sweep in missing {
            let (name, purpose) = (escaped(&sweep.name), escaped(&sweep.purpose));
            page.add(&format!("<li><code>{name}</code>: {purpose}</li>\n"));
        }
        page.add("</ul>\n");
    }
    add_commands(&mut page, &listed);
    page.finish()
}

/// The sweep with the most points; of several, the first.
fn largest<'p>(paper: &'p Paper, evidence: &Evidence) -> Option<&'p str> {
    let size = |sweep: &&Sweep| evidence.sweeps.get(&sweep.name).map(Vec::len);
    paper.sweeps.iter().rev().max_by_key(size).map(|sweep| sweep.name.as_str())
}

/// The publication, how many claims hold, and what was run.
fn lead(paper: &Paper, answers: &[Answer], evidence: &Evidence, how: &Extent) -> String {
    let Paper { authors, venue, year, doi, .. } = paper;
    let mut html = format!(
        "<p>{}<br>{}, {year}, doi {}</p>\n<ul class=\"counts\">\n",
        escaped(authors),
        escaped(venue),
        escaped(doi)
    );
    let mut line = |name: &str, counted: Vec<&Answer>| {
        let link = |answer: &&Answer| format!("<a href=\"#{0}\">{0}</a>", escaped(&answer.id));
        let links: Vec<String> = counted.iter().map(link).collect();
        let (count, links) = (counted.len(), links.join(" "));
        // Writing to a String cannot fail, here and below.
        _ = writeln!(html, "<li><b>{count}</b> {name}<small>{links}</small></li>");
    };
    // Only findings are evidence.
    let of = |basis| answers.iter().filter(move |answer| answer.basis == basis);
    for verdict in Verdict::ALL {
        let counted = of(Basis::Finding).filter(|answer| answer.verdict == verdict).collect();
        line(&mark(verdict), counted);
    }
    for basis in [Basis::Calibration, Basis::Setting] {
        line(basis.heading(), of(basis).collect());
    }
    html.push_str("</ul>\n");
    let points: Vec<PointResult> = evidence.sweeps.values().flatten().cloned().collect();
    html.push_str(&facts(&[
        ("Claims", Summary::of(answers).words()),
        (
            "Extent",
            if evidence.scope.quick {
                "quick: fewer points and seeds, shorter runs"
            } else {
                "full"
            }
            .to_owned(),
        ),
        ("Runs", points::run_count(&points)),
        ("Seeds", points::seed_range(&points)),
        ("A run", points::run_length(&points)),
        ("Program", build::program()),
    ]));
    html.push_str(&command(&how.command));
    html.push('\n');
    html
}

/// A verdict as a sign and a word.
fn mark(verdict: Verdict) -> String {
    let (sign, class) = match verdict {
        Verdict::Reproduced => ("✓", "reproduced"),
        Verdict::NotReproduced => ("✗", "not_reproduced"),
        Verdict::Undecided => ("?", "undecided"),
    };
    format!("<span class=\"verdict {class}\">{sign} {}</span>", verdict.word())
}

/// A table of all claims, followed by the details of each.
fn claims(answers: &[Answer]) -> String {
    let mut html = "<table class=\"claims\"><colgroup><col style=\"width:6.5rem\"><col style=\"width:8.5rem\"><col style=\"width:10.5rem\"><col><col></colgroup>\n\
                    <thead><tr><th>claim</th><th>place</th><th>verdict</th><th>claimed</th><th>measured ± 95 % CI</th></tr></thead>\n<tbody>\n"
        .to_owned();
    for basis in Basis::ALL {
        let mut some = answers.iter().filter(|answer| answer.basis == basis).peekable();
        if some.peek().is_some() {
            _ = writeln!(html, "<tr><th colspan=\"5\">{}</th></tr>", basis.heading());
        }
        some.for_each(|answer| html.push_str(&row(answer)));
    }
    html.push_str("</tbody></table>\n");
    answers.iter().map(block).for_each(|block| html.push_str(&block));
    html
}

/// A claim in the table.
fn row(answer: &Answer) -> String {
    let grade = match answer.grade {
        Grade::Hard => "hard",
        Grade::Soft => "soft",
    };
    let [place, claimed, measured] =
        [&answer.place, &answer.claimed, &answer.measured_short()].map(|words| prose(words));
    format!(
        "<tr class=\"facts\"><td><a href=\"#{id}\"><b>{id}</b></a><br>{grade}</td><td data-label=\"place\">{place}</td><td>{}</td>\
         <td data-label=\"claimed\">{claimed}</td><td data-label=\"measured\">{measured}</td></tr>\n",
        mark(answer.verdict),
        id = escaped(&answer.id),
    )
}

/// The details of one claim.
fn block(answer: &Answer) -> String {
    let [id, text, why] = [&answer.id, &answer.text, &answer.why].map(|words| prose(words));
    let mut html = format!(
        "<div class=\"claim\" id=\"{id}\">\n<p><b>{id}</b> {} {text}</p>\n<p class=\"note\">Measured: {}. Why: {why}</p>\n",
        mark(answer.verdict),
        escaped(&answer.measured_words()),
    );
    if let Some(power) = &answer.power {
        _ = writeln!(html, "<p class=\"note\">Power: {}</p>", escaped(&power.words()));
    }
    if !answer.because.is_empty() {
        let (basis, because) = (answer.basis.word(), prose(&answer.because));
        _ = writeln!(html, "<p class=\"note\">No evidence ({basis}): {because}</p>");
    }
    if let Some(words) = answer.by_its_own_words() {
        _ = writeln!(html, "<p class=\"note\">By the publication's own criterion: {words}</p>");
    }
    if !answer.note.is_empty() {
        _ = writeln!(html, "<p class=\"note\">Reading: {}</p>", prose(&answer.note));
    }
    html + &command(&answer.command) + "\n</div>\n"
}

/// The figures of one sweep: `all` of them or only the main ones, with the `levels` of this sweep.
fn add_sweep(
    page: &mut Document,
    sweep: &Sweep,
    points: &[PointResult],
    measured: Option<&MeasuredTable>,
    sensitivity: Option<&Sensitivity>,
    levels: &[Level],
    all: bool,
) {
    let Sweep { name, purpose, .. } = sweep;
    page.section(&format!("sweep-{name}"), &format!("Sweep {name}"));
    page.add(&format!("<p>{}</p>\n", escaped(purpose)));
    let results = Results { name: name.clone(), points: points.to_vec() };
    let csv = csv_link(&results.to_csv(), &format!("{name}-runs.csv"), "CSV of all runs");
    page.add(&format!(
        "<p class=\"note\">{} points, {} runs, seeds {}. {csv}</p>\n",
        points.len(),
        points::run_count(points),
        points::seed_range(points)
    ));
    let prefix = format!("{name}-");
    if let Some(figure) = sensitivity.and_then(differences::draw) {
        page.figure(&prefix, &figure);
    }
    let own = |level: &&Level| level.sweep == *name;
    let levels: Vec<Level> = levels.iter().filter(own).cloned().collect();
    page.add(&beside(measured, name, points));
    let figures = if all { figures(points, &levels) } else { main_figures(points, &levels) };
    for figure in &figures {
        page.figure(&prefix, figure);
    }
    if figures.is_empty() {
        page.add("<p>No run finished, so there is nothing to draw.</p>\n");
    }
}

/// A table of the points that others measured as well: our median with its interval, and theirs.
fn beside(measured: Option<&MeasuredTable>, sweep: &str, points: &[PointResult]) -> String {
    let Some(measured) = measured else { return String::new() };
    let both: Vec<_> = points.iter().filter_map(|p| Some((p, measured.row(sweep, p)?))).collect();
    let Some((_, first)) = both.first() else { return String::new() };
    let keys: Vec<&str> = first.at.keys().map(String::as_str).collect();
    let mut data = Data::new(&keys);
    data.columns.extend([measured.metric.clone(), measured.name.clone()]);
    for (point, row) in &both {
        let setting = |key: &&str| point.setting(key).unwrap_or_default().to_owned();
        let mut fields: Vec<String> = keys.iter().map(setting).collect();
        fields.push(median_of(point.values(&measured.metric)));
        fields.push(row.words());
        data.push(&point.anchor(), fields);
    }
    format!(
        "<p class=\"note\">Medians over the runs with 95 % confidence intervals (order statistics), beside those measured of {}.</p>\n{}",
        escaped(&measured.name),
        table(&data)
    )
}

/// Commands of all points, failed runs, parameters.
fn add_commands(page: &mut Document, listed: &[(&Sweep, Vec<PointResult>, Provenance)]) {
    if listed.is_empty() {
        return;
    }
    page.section("again", "Run it again");
    page.add(points::NOTE);
    let mut told = BTreeSet::new();
    for (sweep, points, provenance) in listed {
        let heading = format!("Commands of all points of the sweep {}", sweep.name);
        page.add(&points::commands(points, provenance, &heading, &mut told));
    }
    let failures = listed.iter().map(|(_, points, from)| points::failures(points, from));
    let failures: String = failures.collect();
    if !failures.is_empty() {
        page.section("failures", "Failed runs");
        page.add(&failures);
    }
    page.section("parameters", "Parameters");
    page.add("<p class=\"note\">The values of the first point of each scenario; the other points differ in the settings listed with them.</p>\n");
    let mut seen: Vec<&str> = Vec::new();
    for point in listed.iter().flat_map(|(_, points, _)| points) {
        let scenario = point.setting("scenario").unwrap_or(&point.point.scenario.head.name);
        if !seen.contains(&scenario) {
            page.add(&points::parameters(point, &format!("{scenario} with every value")));
            seen.push(scenario);
        }
    }
}
