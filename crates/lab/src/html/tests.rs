//! Pages of made-up results.

use super::*;
use crate::figures::made_up::results;
use crate::runner::Failure;
use crate::simulate::RunError;

const SWEEP: [(&str, &[&str]); 4] = [
    ("coap.congestion", &["default", "cocoa", "6cocoa"]),
    ("topology.rows", &["5", "8"]),
    ("schedule.function", &["b-msf", "alice"]),
    ("traffic.period", &["2s", "4s", "6s", "8s", "10s", "12s", "14s", "16s", "18s", "20s"]),
];

fn provenance() -> Provenance {
    Provenance { scenario: "grid-25".to_owned(), overrides: vec!["duration=30min".to_owned()] }
}

#[test]
fn twelve_hundred_runs_make_a_page_below_five_megabytes_and_twice_the_same() {
    let results = results(&SWEEP, 10);
    assert_eq!(results.points.iter().map(|point| point.runs.len()).sum::<usize>(), 1200);
    let page_once = page(&results, &provenance());
    assert!(page_once.html.len() < 5_000_000, "{} bytes", page_once.html.len());
    assert_eq!(page_once, page(&results, &provenance()));
}

#[test]
fn a_page_reaches_for_nothing_outside_itself() {
    let html = page(&results(&SWEEP, 2), &provenance()).html;
    for outside in ["http://", "https://", "<script", "<link", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains(">inf"));
}

#[test]
fn every_point_has_the_command_that_makes_it_again() {
    let results = results(&SWEEP, 1);
    let html = page(&results, &provenance()).html;
    let command = "lowmesh run grid-25 --set duration=30min --set coap.congestion=6cocoa --set topology.rows=8 \
                   --set schedule.function=alice --set traffic.period=20s --seeds 10 --seed 1</code>";
    assert!(html.contains(command));
    assert_eq!(html.matches("class=\"cmd\"").count(), results.points.len());
}

#[test]
fn failed_runs_and_their_reasons_are_told() {
    let mut results = results(&[], 1);
    let error = RunError::Defect("<books>".to_owned());
    results.points[0].failures.push(Failure { seed: lowmesh_units::Seed(7), error });
    let html = page(&results, &provenance()).html;
    assert!(html.contains("1, and 1 failed"));
    assert!(html.contains("a defect of the simulator: &lt;books&gt;"));
}

#[test]
fn a_plan_without_a_finished_run_still_has_a_page() {
    for results in [Results::default(), results(&SWEEP, 0)] {
        let page = page(&results, &provenance());
        assert!(page.html.contains("No run finished") && page.html.ends_with("</html>\n"));
        assert!(page.figures.is_empty());
    }
}

#[test]
fn names_of_users_cannot_break_the_page() {
    let mut results = results(&[("a.b", &["<b>", "\"'"])], 1);
    results.name = "<script>alert(1)</script>".to_owned();
    let html = page(&results, &provenance()).html;
    assert!(!html.contains("<script>") && !html.contains("<b>"));
}
