//! The verb from its command line to its output, over a made-up network.

use clap::Parser as _;
use lowmesh_lab::simulate::{RunError, Sinks};
use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::{Duration, Instant, NodeId, Seed};

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A network whose delay falls with `cocoa.alpha`; seed 13 fails.
fn made_up(s: &Scenario, seed: Seed, _: Sinks, _: &dyn Fn(Instant)) -> Result<Outcome, RunError> {
    if seed == Seed(13) {
        return Err(RunError::Scenario("no luck".to_owned()));
    }
    let sent = Instant::from_secs(2000);
    let delay = 2.0 - s.cocoa.alpha.unwrap_or(0.0) + (seed.0 % 3) as f64;
    let transaction = Transaction {
        node: NodeId(1),
        issued: sent,
        sent: Some(sent),
        ended: Some(sent + Duration::from_secs_f64(delay)),
        ending: Ending::Acknowledged,
        retransmissions: 0,
        rto: None,
    };
    let simulated = s.head.duration;
    Ok(Outcome { simulated, transactions: vec![transaction], ..Outcome::default() })
}

fn tune(line: &str) -> (Result<(), Failure>, String) {
    let words = std::iter::once("tune").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).expect("the test's own line");
    let mut out = Vec::new();
    let result = execute(&line.args, &made_up, &mut out);
    (result, String::from_utf8(out).expect("text"))
}

#[test]
fn the_best_set_is_printed_as_toml_that_a_scenario_takes() {
    let (result, text) =
        tune("grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20 --quiet");
    result.expect("no run fails");
    assert!(
        text.starts_with("grid-25: 9 sets searched on seeds 20 to 25, compared on seeds 26 to 28")
    );
    assert!(text.contains("over 6cocoa") && text.contains("better"), "{text}");
    let toml = &text[text.find("[coap]").expect("a section to paste")..];
    let pasted = Scenario::parse("x", &format!("name = \"x\"\n{toml}"), &[]).expect("valid");
    assert!(pasted.cocoa.alpha.expect("tuned") > 0.6, "{toml}");
}

#[test]
fn json_holds_the_same_and_nothing_else_is_on_stdout() {
    let (result, text) =
        tune("grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20 --json --quiet");
    result.expect("no run fails");
    let json: serde_json::Value = serde_json::from_str(&text).expect("one object");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["held_out_seeds"], serde_json::json!([26, 28]));
    assert_eq!(json["best"]["name"], "tuned");
    assert_eq!(json["compared"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["compared"][2]["gain"]["verdict"], "better");
    assert_eq!(json["compared"][3]["gain"], serde_json::Value::Null);
}

#[test]
fn a_failed_run_fails_the_verb_after_its_results_with_a_command_to_see_it() {
    let (result, text) = tune("grid-25 --budget 30 --seeds 5 --seed 10 --quiet --set seeds=4");
    assert!(text.contains("[cocoa]"), "{text}");
    let Err(Failure::Own { message, hint }) = result else { panic!("seed 13 failed") };
    assert!(message.ends_with("runs failed; seed 13: no luck"), "{message}");
    let hint = hint.expect("a command");
    assert!(hint.contains("lowmesh run grid-25 --seeds 1 --seed 13 --set 'seeds=4'"), "{hint}");
    assert!(hint.contains("--set 'coap.congestion="), "{hint}");
}

#[test]
fn what_cannot_be_tuned_is_refused_before_anything_runs() {
    for (line, told) in [
        ("grid-25 --timer rfc6298", "nothing to tune"),
        ("grid-25 --timer cocao", "did you mean `cocoa`"),
        ("grid-25 --budget 3", "too small"),
    ] {
        let (result, text) = tune(line);
        let Err(Failure::Usage { message, .. }) = result else { panic!("{line}") };
        assert!(message.contains(told) && text.is_empty(), "{message}");
    }
}
