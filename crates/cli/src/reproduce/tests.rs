//! Tests of `lowmesh reproduce` with made-up runs.

use clap::Parser;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::RunError;
use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::{Duration, Instant, NodeId, Seed};

use std::fs;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Ten transactions, of which 6CoCoA delivers all and the others one less.
fn made_up(
    scenario: &Scenario,
    seed: Seed,
    _: Sinks,
    _: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    if seed == Seed(3) {
        return Err(RunError::Scenario("no place found".to_owned()));
    }
    let best = scenario.coap.congestion.name() == "6cocoa";
    let issued = Instant::ZERO + scenario.head.warmup;
    let transaction = |number: u64| {
        let lost = number == 0 && !best;
        let failed = Ending::Failed(lowmesh_machine::DropReason::GaveUp);
        Transaction {
            node: NodeId(1),
            issued,
            sent: Some(issued),
            ended: Some(issued + Duration::from_millis(100 + seed.0)),
            ending: if lost { failed } else { Ending::Acknowledged },
            retransmissions: 0,
            rto: None,
        }
    };
    let transactions = (0..10).map(transaction).collect();
    Ok(Outcome { transactions, simulated: scenario.head.duration, ..Outcome::default() })
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let unique = format!("lowmesh-reproduce-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(unique))
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn reproduce(words: &[&str], simulate: &Simulate<'_>) -> (String, Result<(), Failure>) {
    let line = Line::try_parse_from([&["reproduce", "--quiet"], words].concat());
    let line = line.unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    let result = execute(&line.args, simulate, &mut out);
    (String::from_utf8(out).expect("text"), result)
}

#[test]
fn without_a_name_publications_are_listed() {
    let (text, result) = reproduce(&[], &made_up);
    assert!(result.is_ok());
    assert!(text.starts_with("righetti2023  29 claims\n"), "{text}");
    let (text, _) = reproduce(&["--json"], &made_up);
    let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(list["papers"][0]["claims"], 29);
}

#[test]
fn a_claim_is_told_with_what_was_measured_and_a_second_time_runs_nothing() {
    let folder = Folder::new("claim");
    let store = folder.0.to_str().expect("a name");
    let words = ["righetti2023", "--quick", "--json", "--claim", "S000-21", "--store", store];
    let (text, result) = reproduce(&words, &made_up);
    assert!(matches!(result, Err(Failure::Own { .. })), "the runs of seed 3 failed");
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&told["schema"], &told["paper"]), (&json!(3), &json!("righetti2023")));
    let claim = &told["claims"][0];
    assert_eq!((&claim["id"], &claim["grade"]), (&json!("S000-21"), &json!("hard")));
    assert_eq!(claim["verdict"], "reproduced", "{claim}");
    assert_eq!(claim["n"], 2);
    assert!((claim["measured"].as_f64().expect("a number") - 1.0 / 9.0).abs() < 1e-9);
    assert!(claim["command"].as_str().is_some_and(|command| {
        command.starts_with("lowmesh run grid-64 ")
            && command.contains("--set traffic.period=2s")
            && command.contains("--set sweep.coap.congestion=cocoa,6cocoa ")
            && command.contains(" && lowmesh compare tdr-cocoa-6cocoa-")
            && command.contains(" --by coap.congestion --baseline=cocoa --metrics tdr")
    }));
    for one in claim["command"].as_str().expect("text").split(" && ") {
        let words = one.split(' ').map(|word| word.trim_matches('\''));
        let parsed = crate::Cli::try_parse_from(words);
        assert!(parsed.is_ok(), "{one}: {}", parsed.expect_err("refused"));
    }
    assert_eq!((&told["preliminary"], &claim["place"]), (&json!(true), &json!("s VII, figure 8")));
    assert_eq!(told["summary"]["findings"]["reproduced"], 1);
    let again = |scenario: &Scenario, seed: Seed, sinks: Sinks, told: &dyn Fn(Instant)| {
        assert_eq!(seed, Seed(3), "only what failed is run again");
        made_up(scenario, seed, sinks, told)
    };
    assert_eq!(reproduce(&words, &again).0, text);
}

#[test]
fn formulae_need_no_runs_and_stand_in_the_report() {
    let folder = Folder::new("formula");
    let store = folder.0.to_str().expect("a name");
    let report = folder.0.join("report.html");
    let file = report.to_str().expect("a name");
    let none = |_: &Scenario, _: Seed, _: Sinks, _: &dyn Fn(Instant)| panic!("nothing to run");
    fs::create_dir(&folder.0).expect("no test takes the same name twice");
    let words = ["righetti2023", "--claim", "S000-03", "--store", store, "--report", file];
    let (text, result) = reproduce(&words, &none);
    assert!(result.is_ok(), "{result:?}");
    assert!(text.contains("S000-03  REPRODUCED (setting)"), "{text}");
    assert!(text.contains("\nsettings: 1 of 1 checked\n"), "{text}");
    let report = fs::read_to_string(report).expect("it was written");
    assert!(report.contains("<div class=\"claim\" id=\"S000-03\">"), "{report}");
    assert!(report.contains("<span class=\"verdict reproduced\">✓ reproduced</span>"), "{report}");
    assert!(report.contains(">lowmesh reproduce righetti2023 --claim S000-03</code>"), "{report}");
}

#[test]
fn the_table_comes_first_and_fits_eighty_columns() {
    let folder = Folder::new("table");
    let store = folder.0.to_str().expect("a name");
    let (text, _) = reproduce(&["righetti2023", "--quick", "--store", store], &made_up);
    let (before, blocks) = text.split_once("\n\nS000-01  REPRODUCED").expect("a block a claim");
    let (_, table) = before.split_once("\nfindings\n claim ").expect("a table");
    assert!(table.contains("\n\nsettings\n claim "), "settings stand apart: {before}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{before}");
    assert!(before.contains("\nPRELIMINARY: "), "{before}");
    assert!(before.contains("settings: 11 of 11 checked"), "{before}");
    let rows = before.lines().filter(|line| line.starts_with(" S000-")).count();
    assert_eq!((rows, blocks.matches("\n    why  ").count()), (29, 29), "{text}");
}

#[test]
fn other_seeds_are_other_runs() {
    let folder = Folder::new("seed");
    let store = folder.0.to_str().expect("a name");
    let seeds = |words: &[&str]| {
        let words = [&["righetti2023", "--quick", "--claim", "S000-21", "--store", store], words];
        let seen = std::sync::Mutex::new(std::collections::BTreeSet::new());
        let watched = |scenario: &Scenario, seed: Seed, sinks: Sinks, told: &dyn Fn(Instant)| {
            seen.lock().expect("no panic").insert(seed.0);
            made_up(scenario, seed, sinks, told)
        };
        _ = reproduce(&words.concat(), &watched);
        seen.into_inner().expect("no panic").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(seeds(&[]), [1, 2, 3]);
    assert_eq!(seeds(&["--seed", "11"]), [11, 12, 13]);
}

#[test]
fn what_is_not_there_is_refused_with_a_hint() {
    for words in [&["nobody2000"][..], &["righetti2023", "--claim", "S000-99"]] {
        let (_, result) = reproduce(words, &made_up);
        assert!(matches!(result, Err(Failure::Usage { hint: Some(_), .. })), "{result:?}");
    }
}
