//! Pages of made-up results.

use std::collections::BTreeSet;

use super::*;
use crate::claims::judge::{Evidence, judge};
use crate::claims::{Paper, Scope};
use crate::command::{Kept, Provenance};
use crate::figures::made_up::results;
use crate::results::Results;
use crate::runner::Failure;
use crate::simulate::RunError;

const SWEEP: [(&str, &[&str]); 4] = [
    ("coap.congestion", &["default", "cocoa", "6cocoa"]),
    ("topology.rows", &["5", "8"]),
    ("schedule.function", &["b-msf", "alice"]),
    ("traffic.period", &["2s", "4s", "6s", "8s", "10s", "12s", "14s", "16s", "18s", "20s"]),
];

fn provenance() -> Provenance {
    Provenance {
        scenario: "grid-25".to_owned(),
        overrides: vec!["duration=30min".to_owned()],
        store: Some(Kept::In("runs".to_owned())),
    }
}

#[test]
fn twelve_hundred_runs_make_a_page_below_five_megabytes_and_twice_the_same() {
    let results = results(&SWEEP, 10);
    assert_eq!(results.points.iter().map(|point| point.runs.len()).sum::<usize>(), 1200);
    let page_once = sweep_page(&results, &provenance());
    assert!(page_once.html.len() < 5_000_000, "{} bytes", page_once.html.len());
    assert_eq!(page_once, sweep_page(&results, &provenance()));
}

#[test]
fn a_page_reaches_for_nothing_outside_itself() {
    let html = sweep_page(&results(&SWEEP, 2), &provenance()).html;
    for outside in ["http://", "https://", "<script", "<link", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains(">inf"));
}

#[test]
fn every_point_has_the_command_that_makes_it_again() {
    let results = results(&SWEEP, 1);
    let html = sweep_page(&results, &provenance()).html;
    let command = "lowmesh run grid-25 --set duration=30min --set coap.congestion=6cocoa --set topology.rows=8 \
                   --set schedule.function=alice --set traffic.period=20s --seeds 10 --seed 1</code>";
    assert!(html.contains(command));
    assert_eq!(html.matches("class=\"point\"").count(), results.points.len());
    assert_eq!(html.matches("<code class=\"cmd\">lowmesh rerun ").count(), results.points.len());
}

#[test]
fn failed_runs_and_their_reasons_are_told() {
    let mut results = results(&[], 1);
    let error = RunError::Defect("<books>".to_owned());
    results.points[0].failures.push(Failure { seed: lowmesh_units::Seed(7), error });
    let html = sweep_page(&results, &provenance()).html;
    assert!(html.contains("1, and 1 failed"));
    assert!(html.contains("a defect of the simulator: &lt;books&gt;"));
}

#[test]
fn a_plan_without_a_finished_run_still_has_a_page() {
    for results in [Results::default(), results(&SWEEP, 0)] {
        let page = sweep_page(&results, &provenance());
        assert!(page.html.contains("No run finished") && page.html.ends_with("</html>\n"));
        assert!(page.figures.is_empty());
    }
}

#[test]
fn names_of_users_cannot_break_the_page() {
    let mut results = results(&[("a.b", &["<b>", "\"'"])], 1);
    results.name = "<script>alert(1)</script>".to_owned();
    let html = sweep_page(&results, &provenance()).html;
    assert!(!html.contains("<script>") && !html.contains("<b>"));
}

#[test]
fn whatever_leads_to_a_point_leads_to_one_that_is_there() {
    let page = sweep_page(&results(&SWEEP, 2), &provenance());
    let targets: BTreeSet<&str> = page
        .html
        .split("href=\"#")
        .skip(1)
        .map(|rest| rest.split('"').next().expect("a quote ends it"))
        .collect();
    assert_eq!(targets.len(), results(&SWEEP, 2).points.len(), "each point is led to");
    for target in targets {
        let places = page.html.matches(&format!("id=\"{target}\"")).count();
        assert_eq!(places, 1, "{target}");
    }
}

/// A publication of which a claim holds and another could not be decided.
fn reproduced() -> Page {
    let paper = Paper::find("righetti2023").expect("built in");
    let keys: [(&str, &[&str]); 4] = [
        ("scenario", &["grid-64"]),
        ("schedule.function", &["b-msf", "alice"]),
        ("coap.congestion", &["default", "cocoa", "6cocoa"]),
        ("traffic.period", &["2s", "6s"]),
    ];
    let noise: [(&str, &[&str]); 5] = [
        keys[0],
        ("radio.noise_dbm", &["-80.0", "-83.0"]),
        ("schedule.function", &["b-msf"]),
        keys[2],
        ("traffic.period", &["2s"]),
    ];
    let sweeps = [("load", results(&keys, 3)), ("noise", results(&noise, 3))];
    let sweeps = sweeps.map(|(name, results)| (name.to_owned(), results.points)).into();
    let evidence = Evidence {
        sweeps,
        scope: Scope { quick: true, ..Scope::default() },
        ..Evidence::default()
    };
    let claims = ["S000-03", "S000-11"].map(|id| paper.claim(id).expect("built in"));
    let answers = claims.map(|claim| judge(&paper, claim, &evidence));
    let command = "lowmesh reproduce righetti2023 --quick".to_owned();
    claims_page(&paper, &answers, &evidence, &Extent { command, kept: Kept::AsUsual })
}

#[test]
fn a_claim_is_told_with_its_verdict_in_a_sign_and_a_word_and_with_its_command() {
    let html = reproduced().html;
    assert!(html.contains("<div class=\"claim\" id=\"S000-03\">"));
    // The setting agrees, and is no finding that holds.
    assert!(html.contains("<b>0</b> <span class=\"verdict reproduced\">✓ reproduced</span>"));
    assert!(html.contains("<b>1</b> settings<small><a href=\"#S000-03\">"), "{html}");
    assert!(html.contains("lowmesh reproduce righetti2023 --quick --claim S000-03</code>"));
    assert!(html.contains("dither_max 1.5"), "what a probe measured");
    // Sweeps that were not run are listed.
    for sweep in ["readings", "window", "msf"] {
        assert!(html.contains(&format!("<li><code>{sweep}</code>")), "{sweep}");
    }
}

#[test]
fn each_sweep_of_a_publication_has_its_figures_and_the_commands_of_its_points() {
    let page = reproduced();
    let names: Vec<&str> = page.figures.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["load-lines-tdr.svg", "load-delay-distribution.svg", "load-rtt-rto.svg"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["noise-differences.svg", "noise-lines-tdr.svg", "noise-drops.svg"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(!names.contains(&"noise-rtt-rto.svg"), "the smaller sweep has the main ones alone");
    assert!(page.html.contains("<code class=\"cmd\">lowmesh run grid-64 --set duration=30min"));
    assert_eq!(page.html.matches("class=\"point\"").count(), 12 + 9);
    for outside in ["http://", "https://", "<script", "src="] {
        assert!(!page.html.contains(outside), "{outside}");
    }
}

#[test]
fn what_a_claim_states_of_points_stands_in_the_figure_of_its_sweep() {
    let paper = Paper::find("lenders2021").expect("built in");
    let keys: [(&str, &[&str]); 3] = [
        ("scenario", &["grenoble-t"]),
        ("fragments.window", &["appendix-c", "reno", "abe", "quic"]),
        ("traffic.payload_bytes", &["112", "208", "304"]),
    ];
    let mut runs = results(&keys, 2);
    for run in runs.points.iter_mut().flat_map(|point| &mut point.runs) {
        run.metrics.datagram_pdr = Some(0.2);
    }
    let sweeps = [("congestion".to_owned(), runs.points)].into();
    let evidence = Evidence { sweeps, ..Evidence::default() };
    let page = |ids: &[&str]| {
        let claims = ids.iter().map(|id| paper.claim(id).expect("built in"));
        let answers: Vec<_> = claims.map(|claim| judge(&paper, claim, &evidence)).collect();
        let command = "lowmesh reproduce lenders2021".to_owned();
        claims_page(&paper, &answers, &evidence, &Extent { command, kept: Kept::AsUsual }).html
    };
    let tip =
        "<a href=\"#S004-27\"><title>S004-27, published: datagram_pdr 0.005 to 0.06, stated 0.02 (";
    let html = page(&["S004-27", "S004-28"]);
    assert_eq!(html.matches(tip).count(), 1, "at 112 octets");
    assert!(html.contains("<div class=\"claim\" id=\"S004-27\">"), "the mark leads to it");
    assert!(
        html.contains("<th class=\"n\">stated</th>") && html.contains(",S004-27,0.005,0.06,0.02")
    );
    // What the page does not judge is not in its figures.
    assert!(!page(&["S004-28"]).contains("published:"));
}
