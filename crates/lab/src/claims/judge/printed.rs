//! The commands of all comparisons of the publications: each is a sweep of the very points that are compared.

use std::collections::{BTreeMap, BTreeSet};

use super::trend::trend;
use super::words::command;
use crate::claims::PAPERS;
use crate::claims::claim::{Op, Test};
use crate::claims::paper::{Paper, Scope};
use crate::claims::select;
use crate::command::tests::{sets, words};
use crate::plan::Plan;
use crate::results::PointResult;
use crate::scenario::Scenario;

/// The points of each sweep of a publication, without runs.
fn points(paper: &Paper, name: &str, scope: Scope) -> Vec<PointResult> {
    let sweep = paper.sweeps.iter().find(|sweep| sweep.name == name).expect("tests name sweeps");
    let plans = paper.plans(sweep, scope).expect("sound");
    let points = plans.into_iter().flat_map(|plan| plan.points);
    let without_runs = |point| PointResult { point, runs: Vec::new(), failures: Vec::new() };
    points.map(without_runs).collect()
}

/// Whether a test compares two values of one setting.
fn is_of_one_key(test: &Test) -> bool {
    let sides = test.left.as_ref().zip(test.right.as_ref());
    let one_key =
        sides.is_some_and(|(left, right)| left.len() == 1 && left.keys().eq(right.keys()));
    one_key && test.over.is_empty() && !test.on_average && test.knee_below.is_none()
}

/// Checks every command of a publication. Returns how many there are, and how many comparisons of one setting have none.
fn check(paper: &Paper, scope: Scope) -> (usize, usize) {
    let mut sweeps: BTreeMap<&str, Vec<PointResult>> = BTreeMap::new();
    let (mut seen, mut without) = (BTreeSet::new(), 0);
    let tests = paper.claims.iter().flat_map(|claim| &claim.tests);
    for test in tests.filter(|test| is_of_one_key(test) && test.reference.is_none()) {
        let points = sweeps.entry(&test.sweep).or_insert_with(|| points(paper, &test.sweep, scope));
        let provenance = paper.provenance(&test.sweep, scope);
        for one in select::comparisons(test, points) {
            let Some(line) = command(test, &one, &provenance) else {
                without += 1;
                continue;
            };
            if !seen.insert(line.clone()) {
                continue;
            }
            let (run, _) = line.split_once(" && lowmesh compare ").expect("both sides");
            let name = words(run).into_iter().nth(2).expect("a scenario");
            let plan = Plan::load(&name, &sets(run));
            let plan = plan.unwrap_or_else(|error| panic!("{line}: {error}"));
            let found = plan.points.iter().map(|point| &point.scenario);
            let both = [one.other.expect("it has two sides"), one.point];
            assert!(found.eq(both.map(|point| &point.point.scenario)), "{line}");
        }
    }
    (seen.len(), without)
}

#[test]
fn the_command_of_every_comparison_leads_to_the_very_points_of_both_sides() {
    for (name, ..) in PAPERS {
        let paper = Paper::find(name).expect("built in");
        for quick in [true, false] {
            let (commands, without) = check(&paper, Scope { quick, ..Scope::default() });
            assert!(commands >= 20, "{name}: {commands}");
            assert_eq!(without, 0, "{name}: comparisons of one setting without a command");
        }
    }
}

#[test]
fn the_command_of_every_trend_sweeps_a_curve_of_its_points() {
    let mut commands = 0;
    for (name, ..) in PAPERS {
        let (paper, scope) = (Paper::find(name).expect("built in"), Scope::default());
        let tests = paper.claims.iter().flat_map(|claim| &claim.tests);
        for test in tests.filter(|test| test.op == Op::MonotoneInc) {
            let points = points(&paper, &test.sweep, scope);
            let comparisons = select::comparisons(test, &points);
            let from = paper.provenance(&test.sweep, scope);
            let line = trend(test, 1, &points, &comparisons, &from).command.expect("a sweep");
            let scenario = words(&line).into_iter().nth(2).expect("a scenario");
            let plan = Plan::load(&scenario, &sets(&line));
            let plan = plan.unwrap_or_else(|error| panic!("{line}: {error}"));
            let known =
                |scenario: &Scenario| points.iter().any(|point| point.point.scenario == *scenario);
            assert!(plan.points.len() > 1, "{line}");
            assert!(plan.points.iter().all(|point| known(&point.scenario)), "{line}");
            commands += 1;
        }
    }
    assert!(commands >= 2, "{commands}");
}
