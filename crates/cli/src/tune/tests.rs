//! The verb from its command line to its output, over a made-up network.

use clap::Parser as _;
use lowmesh_lab::build::BuildId;
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
    let timer = &s.coap.congestion;
    let alpha = timer.replacement("alpha").map_or(0.0, |_| timer.number("alpha"));
    let delay = 2.0 - alpha + (seed.0 % 3) as f64;
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

/// A store of the test's own, removed with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let unique = format!("lowmesh-tune-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(unique))
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the verb with `simulate` and the store of `folder`.
fn tune_with(
    folder: &Folder,
    line: &str,
    simulate: &Simulate<'_>,
) -> (Result<(), Failure>, String) {
    let store = folder.0.to_str().expect("a name");
    let words = ["tune", "--quiet", "--store", store].into_iter().chain(line.split_whitespace());
    let line = Line::try_parse_from(words).expect("the test's own line");
    let mut out = Vec::new();
    let result = execute(&line.args, simulate, &mut out);
    (result, String::from_utf8(out).expect("text"))
}

fn tune(name: &str, line: &str) -> (Result<(), Failure>, String) {
    tune_with(&Folder::new(name), line, &made_up)
}

#[test]
fn the_best_set_is_printed_as_toml_that_a_scenario_takes() {
    let (result, text) =
        tune("toml", "grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20");
    result.expect("no run fails");
    assert!(
        text.starts_with("grid-25: 9 sets searched on seeds 20 to 25, compared on seeds 26 to 28")
    );
    assert!(text.contains("over 6cocoa") && text.contains("better"), "{text}");
    let toml = &text[text.find("[coap]").expect("a section to paste")..];
    let pasted = Scenario::parse("x", &format!("name = \"x\"\n{toml}"), &[]).expect("valid");
    assert!(pasted.coap.congestion.number("alpha") > 0.6, "{toml}");
}

#[test]
fn keys_of_other_algorithms_are_tuned_and_compared_with_the_scenario() {
    let line = "grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20";
    let keys = "--key schedule.function --key cocoa.alpha --set coap.congestion=cocoa";
    let (result, text) = tune("keys", &format!("{line} {keys}"));
    result.expect("no run fails");
    assert!(text.contains("over unchanged") && text.contains("better"), "{text}");
    assert!(text.contains("\n[schedule]\n") && text.contains("\n[cocoa]\nalpha = 0."), "{text}");
    let (refused, _) = tune("keys-refused", &format!("{line} --key mac.retries"));
    let Err(Failure::Usage { message, .. }) = refused else { panic!("no row has it") };
    assert!(message.starts_with("mac.retries cannot be tuned"), "{message}");
}

#[test]
fn json_holds_the_same_and_nothing_else_is_on_stdout() {
    let (result, text) =
        tune("json", "grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20 --json");
    result.expect("no run fails");
    let json: serde_json::Value = serde_json::from_str(&text).expect("one object");
    assert_eq!(json["schema"], 3);
    assert_eq!(json["held_out_seeds"], serde_json::json!([26, 28]));
    assert_eq!(json["best"]["name"], "tuned");
    assert_eq!(json["compared"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["compared"][2]["gain"]["verdict"], "better");
    assert_eq!(json["compared"][3]["gain"], serde_json::Value::Null);
}

#[test]
fn a_failed_run_fails_the_verb_after_its_results_with_a_command_to_see_it() {
    let (result, text) = tune("failed", "grid-25 --budget 30 --seeds 5 --seed 10 --set seeds=4");
    assert!(text.contains("[cocoa]"), "{text}");
    let Err(Failure::Own { message, hint }) = result else { panic!("seed 13 failed") };
    assert!(message.ends_with("runs failed; seed 13: no luck"), "{message}");
    let hint = hint.expect("a command");
    assert!(
        hint.starts_with("to see it again: lowmesh run grid-25 --set coap.congestion="),
        "{hint}"
    );
    assert!(hint.ends_with(" --seeds 1 --seed 13"), "{hint}");
}

#[test]
fn what_cannot_be_tuned_is_refused_before_anything_runs() {
    let (result, text) = tune("refused", "grid-25 --budget 3");
    let Err(Failure::Usage { message, .. }) = result else { panic!("three runs are too few") };
    assert!(message.contains("too small") && text.is_empty(), "{message}");
}

#[test]
fn a_timer_that_does_not_exist_is_told_with_those_that_do() {
    let error = Line::try_parse_from(["tune", "grid-25", "--timer", "cocao"]).map(|_| ());
    let told = error.expect_err("no such timer").to_string();
    assert!(told.contains("'cocoa'") && told.contains("6cocoa"), "{told}");
}

#[test]
fn a_second_call_runs_only_what_is_missing_and_says_the_same() {
    let folder = Folder::new("again");
    let line = "grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20 --json";
    let (_, first) = tune_with(&folder, line, &made_up);
    let mut stored: Vec<PathBuf> = std::fs::read_dir(folder.0.join(BuildId::own().short()))
        .expect("a store")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| !path.ends_with("build.json"))
        .collect();
    stored.sort();
    assert_eq!(stored.len(), 30 + 3 * 4);
    std::fs::remove_file(&stored[7]).expect("it is there");
    let made = std::sync::Mutex::new(0);
    let counting = |s: &Scenario, seed: Seed, sinks: Sinks, told: &dyn Fn(Instant)| {
        *made.lock().expect("no test thread panics") += 1;
        made_up(s, seed, sinks, told)
    };
    let (_, second) = tune_with(&folder, line, &counting);
    assert_eq!(made.into_inner().expect("no test thread panics"), 1);
    assert_eq!(second, first);
}

#[test]
fn the_report_shows_search_and_comparison_with_a_command_for_every_set() {
    let folder = Folder::new("page");
    std::fs::create_dir(&folder.0).expect("no test takes the same name twice");
    let file = folder.0.join("tuned.html");
    let line = "grid-25 --objective delay_p95 --budget 30 --seeds 3 --seed 20 --report";
    let (result, _) = tune_with(&folder, &format!("{line} {}", file.display()), &made_up);
    result.expect("no run fails");
    let html = std::fs::read_to_string(&file).expect("it was written");
    for part in ["id=\"comparison\"", "id=\"search\"", "better than", "✓ better"] {
        assert!(html.contains(part), "{part}");
    }
    let command = "lowmesh run grid-25 --set coap.congestion=6cocoa --seeds 3 --seed 26</code>";
    assert!(html.contains(command), "no command of a published set");
    assert_eq!(html.matches("class=\"point\"").count(), 9 + 4);
    assert!(folder.0.join("tuned-figures/search.svg").is_file());
}
