//! The built-in publications are valid, and errors in a file are reported with their place.

use super::*;
use crate::claims::Basis;
use crate::command::tests::{sets, words};
use crate::scenario::Scenario;

#[test]
fn every_built_in_publication_is_valid_and_listed_by_its_name() {
    for (name, paper, claims) in PAPERS {
        let paper = Paper::parse(paper, claims).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(paper.name, *name);
        let ids: BTreeSet<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(ids.len(), paper.claims.len(), "names of claims are unique");
    }
}

#[test]
fn the_full_load_sweep_of_righetti2023_is_1200_runs() {
    let paper = Paper::find("righetti2023").expect("built in");
    let load = paper.sweeps.iter().find(|sweep| sweep.name == "load").expect("it has one");
    let plans = paper.plans(load, Scope::default()).expect("sound");
    let runs: usize = plans.iter().map(|plan| plan.runs().len()).sum();
    assert_eq!(runs, 1200);
    let first = &plans[0].points[0].settings;
    assert_eq!(first[0], ("scenario".to_owned(), "grid-25".to_owned()));
}

#[test]
fn a_case_is_one_setting_and_overrides_several_keys() {
    let paper = Paper::find("pesola2020").expect("built in");
    let grid = paper.sweeps.iter().find(|sweep| sweep.name == "grid").expect("it has one");
    let plans = paper.plans(grid, Scope::default()).expect("sound");
    let points: Vec<_> = plans.into_iter().flat_map(|plan| plan.points).collect();
    // Two timers, and two windows with four buffers; each with four error rates, and with one client and four.
    assert_eq!(points.len(), (2 + 2 * 4) * 4 * 2);
    let high = points.iter().find(|point| {
        point.settings.iter().any(|(key, value)| key == "error_percent" && value == "20")
    });
    let keys = high.expect("a case").scenario.keys();
    let link =
        ["loss", "burst_share", "burst_mean"].map(|key| keys[&format!("link[0].{key}")].clone());
    assert_eq!(link, ["0.02", "0.375", "1250ms"]);
}

#[test]
fn measured_values_belong_to_points_of_their_sweep() {
    let paper = Paper::find("pesola2020").expect("built in");
    let measured = paper.measured.as_ref().expect("it has a table");
    for row in measured.rows.iter().filter(|row| row.sweep == "grid") {
        let grid = paper.sweeps.iter().find(|sweep| sweep.name == "grid").expect("it has one");
        let plans = paper.plans(grid, Scope::default()).expect("sound");
        let points = plans.iter().flat_map(|plan| &plan.points);
        let is_there = points.into_iter().any(|point| {
            row.at.iter().all(|(key, value)| {
                point.settings.iter().any(|(other, there)| other == key && there == value)
            })
        });
        assert!(is_there, "{row:?}");
    }
    assert!(measured.rows.len() > 40);
}

#[test]
fn the_command_of_every_point_leads_to_its_very_runs() {
    for (name, ..) in PAPERS {
        commands_lead_to_runs(name);
    }
}

fn commands_lead_to_runs(name: &str) {
    let paper = Paper::find(name).expect("built in");
    let scopes = [(true, None), (false, Some(Seed(11)))];
    let scopes = scopes.map(|(quick, first_seed)| Scope { quick, first_seed });
    for (sweep, scope) in paper.sweeps.iter().flat_map(|s| scopes.map(|scope| (s, scope))) {
        let provenance = paper.provenance(&sweep.name, scope);
        for plan in paper.plans(sweep, scope).expect("sound") {
            for point in plan.points {
                let command = provenance.point(&point);
                let name = words(&command).into_iter().nth(2).expect("a scenario");
                let again = Scenario::load(&name, &sets(&command));
                let again = again.unwrap_or_else(|error| panic!("{command}: {error}"));
                assert_eq!(again, point.scenario, "{command}");
            }
        }
    }
}

#[test]
fn every_claim_of_a_publication_is_there() {
    for (name, prefix, claims) in [
        ("righetti2023", "S000", 29),
        ("lenders2021", "S004", 40),
        ("ishaq2016", "S002", 43),
        ("pesola2020", "S003", 24),
    ] {
        let paper = Paper::find(name).expect("built in");
        let ids: Vec<String> = (1..=claims).map(|n| format!("{prefix}-{n:02}")).collect();
        let found: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(found, ids);
    }
}

#[test]
fn a_claim_that_names_something_unknown_is_rejected() {
    let paper = "name = \"x\"\ntitle = \"\"\nauthors = \"\"\nvenue = \"\"\nyear = 2000\ndoi = \"\"";
    let head = "[[claim]]\nid = \"C\"\ngrade = \"hard\"\nkind = \"trend\"\nbasis = \"finding\"\nplace = \"\"\n\
                text = \"\"\nclaimed = \"\"\n[[claim.test]]\nop = \"gt\"\n";
    let error = |tail: &str| {
        let claims = format!("{head}{tail}");
        Paper::parse(paper, &claims).expect_err("it is wrong").to_string()
    };
    assert_eq!(error("metric = \"pdr\""), "C: there is no metric `pdr`");
    assert_eq!(error("metric = \"tdr\"\nsweep = \"s\""), "C: there is no sweep `s`");
    assert_eq!(error("probe = \"nose\""), "C: there is no probe `nose`");
    assert_eq!(error(""), "C: a test needs a metric or a probe");
    assert!(error("tolerances = 1").contains("unknown field"));
    let own = "metric = \"\"\nalong = \"length\"\nclaims = [\"C\"]";
    let head = head.replace("\"gt\"", "\"same_orderings\"");
    let error = Paper::parse(paper, &format!("{head}{own}")).expect_err("it names itself");
    assert_eq!(
        error.to_string(),
        "C: orderings compare claims that are not about orderings themselves"
    );
}

#[test]
fn a_claim_declares_what_its_verdict_says() {
    let paper = "name = \"x\"\ntitle = \"\"\nauthors = \"\"\nvenue = \"\"\nyear = 2000\ndoi = \"\"";
    let parse = |basis: &str, test: &str| {
        let claims = format!(
            "[[claim]]\nid = \"C\"\ngrade = \"hard\"\nkind = \"trend\"\n{basis}\nplace = \"\"\n\
             text = \"\"\nclaimed = \"\"\n[[claim.test]]\nop = \"gt\"\n{test}"
        );
        Paper::parse(paper, &claims).map_err(|error| error.to_string())
    };
    let (probed, run) = ("probe = \"timer cocoa\"\nexpect = { k = 1 }", "metric = \"tdr\"");
    for (basis, test, why) in [
        ("basis = \"finding\"", probed, "C: a claim that only probes check is a setting"),
        ("basis = \"calibration\"", run, "C: a calibrated claim says `because` of which number"),
        (
            "basis = \"setting\"",
            run,
            "C: a setting that simulations check says `because` of which constant or definition",
        ),
        ("basis = \"finding\"\nbecause = \"so\"", run, "C: a finding has no `because`"),
    ] {
        assert_eq!(parse(basis, test).expect_err(why), why);
    }
    assert!(parse("", run).expect_err("none is declared").contains("missing field `basis`"));
    for (basis, test) in [
        ("basis = \"finding\"", run),
        ("basis = \"setting\"", probed),
        ("basis = \"setting\"\nbecause = \"so\"", run),
        ("basis = \"calibration\"\nbecause = \"so\"", run),
    ] {
        assert!(parse(basis, test).is_ok(), "{basis}");
    }
}

#[test]
fn claims_that_a_number_was_fitted_to_are_calibrated() {
    let calibrated = |name: &str| {
        let paper = Paper::find(name).expect("built in");
        let claims = paper.claims.into_iter().filter(|claim| claim.basis == Basis::Calibration);
        claims.map(|claim| claim.id[5..].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(calibrated("righetti2023"), "");
    assert_eq!(calibrated("lenders2021"), "");
    assert_eq!(calibrated("ishaq2016"), "05 06 07 08 12 17 20 23 30 31 32 34");
    assert_eq!(calibrated("pesola2020"), "07 13 22");
}

#[test]
fn a_digest_changes_with_the_tests_alone() {
    let (_, paper, claims) = PAPERS.iter().find(|(name, ..)| *name == "pesola2020").expect("there");
    let digest =
        |claims: &str| Paper::parse(paper, claims).expect("valid").claims[0].digest.clone();
    let before = digest(claims);
    assert_eq!(digest(&claims.replacen("below 1.35 times", "under 1.35 times", 1)), before);
    assert_ne!(digest(&claims.replacen("value = 42.62", "value = 42.63", 1)), before);
}
