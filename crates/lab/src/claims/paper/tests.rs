//! The built-in publications are valid, and errors in a file are reported with their place.

use super::*;
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
fn the_command_of_every_point_leads_to_its_very_runs() {
    let paper = Paper::find("righetti2023").expect("built in");
    let scopes = [(false, None), (true, None), (false, Some(Seed(11)))];
    let scopes = scopes.map(|(quick, first_seed)| Scope { quick, first_seed });
    for (sweep, scope) in paper.sweeps.iter().flat_map(|s| scopes.map(|scope| (s, scope))) {
        let provenance = paper.provenance(&sweep.name, scope);
        for plan in paper.plans(sweep, scope).expect("sound") {
            for point in plan.points {
                let command = provenance.point(&point);
                let mut words = command.strip_prefix("lowmesh run ").expect("a run").split(' ');
                let name = words.next().expect("a scenario");
                let mut sets = Vec::new();
                while let (Some(flag), Some(value)) = (words.next(), words.next()) {
                    let key = flag.trim_start_matches('-');
                    let own = if key == "set" { String::new() } else { format!("{key}=") };
                    sets.push(own + value);
                }
                let again = Scenario::load(name, &sets).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(again, point.scenario, "{command}");
            }
        }
    }
}

#[test]
fn every_claim_of_a_publication_is_there() {
    for (name, prefix, claims) in
        [("righetti2023", "S000", 28), ("lenders2021", "S004", 40), ("ishaq2016", "S002", 43)]
    {
        let paper = Paper::find(name).expect("built in");
        let ids: Vec<String> = (1..=claims).map(|n| format!("{prefix}-{n:02}")).collect();
        let found: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(found, ids);
    }
}

#[test]
fn a_claim_that_names_something_unknown_is_rejected() {
    let paper = "name = \"x\"\ntitle = \"\"\nauthors = \"\"\nvenue = \"\"\nyear = 2000\ndoi = \"\"";
    let head = "[[claim]]\nid = \"C\"\ngrade = \"hard\"\nkind = \"trend\"\nplace = \"\"\n\
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
