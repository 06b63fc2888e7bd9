//! The verb from its command line to its output, with made-up outcomes in the simulator's place.

use std::fs;

use clap::Parser as _;
use lowmesh_lab::simulate::RunError;
use lowmesh_sim::record::{Ending, NodeSummary, Outcome, Packets, Transaction};
use lowmesh_units::{Duration, Instant, NodeId, Seed};

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// An outcome that depends on the seed alone: seed 13 fails.
fn made_up(
    scenario: &Scenario,
    seed: Seed,
    mut sinks: Sinks,
    progress: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    if seed == Seed(13) {
        return Err(RunError::Scenario("no luck".to_owned()));
    }
    if let Some(pcap) = &mut sinks.pcap {
        pcap.write_all(seed.0.to_string().as_bytes()).map_err(|e| RunError::Sink(e.to_string()))?;
    }
    progress(Instant::from_secs(10));
    let issued = Instant::from_secs(2000);
    let transaction = |ending, delay_ms| Transaction {
        node: NodeId(1),
        issued,
        sent: Some(issued),
        ended: Some(issued + Duration::from_millis(delay_ms)),
        ending,
        retransmissions: 0,
        rto: None,
    };
    Ok(Outcome {
        trace_hash: seed.0,
        simulated: scenario.head.duration,
        transactions: vec![
            transaction(Ending::Acknowledged, 100 * seed.0),
            transaction(Ending::Failed(lowmesh_machine::DropReason::GaveUp), 0),
        ],
        up: Packets { sent: 4, delivered: 3, dropped: 1, ..Packets::default() },
        nodes: vec![NodeSummary::default(); 2],
        ..Outcome::default()
    })
}

fn run(line: &str) -> (Result<(), Failure>, String) {
    let words = std::iter::once("run").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).expect("the test's own line");
    let mut out = Vec::new();
    let result = execute(&line.args, &made_up, &mut out);
    (result, String::from_utf8(out).expect("text"))
}

/// A name in the system's folder for temporary files that nothing has yet.
fn scratch(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lowmesh-cli-{test}-{}", std::process::id()))
}

#[test]
fn the_table_says_what_ran_and_shows_absent_metrics_as_a_dash() {
    let (result, text) = run("grid-25 --seeds 3 --quiet");
    assert!(result.is_ok());
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        text.lines().next(),
        Some("grid-25: 3 runs of 1h, measured from 12min on, seeds 1 to 3")
    );
    assert!(lines.contains(&vec!["tdr", "0.5000", "±", "0.0000", "3"]), "{text}");
    assert!(lines.contains(&vec!["delay_mean_ms", "200", "±", "248", "3"]), "{text}");
    assert!(lines.contains(&vec!["hops_mean", "-", "-", "0"]), "{text}");
}

#[test]
fn rows_of_traffic_that_the_scenario_does_not_have_are_left_out() {
    let (result, text) = run("grid-25 --seeds 1 --quiet");
    assert!(result.is_ok());
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"transactions") && names.contains(&"tdr"), "{text}");
    assert!(!names.contains(&"datagrams") && !names.contains(&"latency_p95_ms"), "{text}");
}

#[test]
fn one_seed_has_no_interval() {
    let (result, text) = run("grid-25 --seeds 1 --seed 5 --quiet");
    assert!(result.is_ok());
    assert!(text.starts_with("grid-25: 1 run of 1h, measured from 12min on, seed 5\n"), "{text}");
    let tdr: Vec<&str> = text
        .lines()
        .find(|line| line.trim_start().starts_with("tdr"))
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!(tdr, ["tdr", "0.5000", "-", "1"]);
}

#[test]
fn json_is_the_only_thing_on_stdout() {
    let (result, text) = run("grid-25 --seeds 2 --seed 7 --json --quiet");
    assert!(result.is_ok());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON alone");
    assert_eq!(json["runs"][1]["seed"], 8);
    assert_eq!(json["summary"]["pdr_up"]["mean"], 0.75);
}

#[test]
fn results_are_the_same_with_any_number_of_jobs() {
    let csv = |jobs: usize| {
        let json = run(&format!("grid-25 --seeds 6 --jobs {jobs} --json --quiet")).1;
        let mut json: serde_json::Value = serde_json::from_str(&json).expect("JSON alone");
        for run in json["runs"].as_array_mut().expect("a list") {
            run["wall_s"] = 0.into();
        }
        json
    };
    assert_eq!(csv(1), csv(3));
}

#[test]
fn the_folder_of_results_is_written_and_then_refused() {
    let out = scratch("out");
    let line = format!("grid-25 --seeds 2 --quiet --out {}", out.display());
    assert!(run(&line).0.is_ok());
    let csv = fs::read_to_string(out.join("runs.csv")).expect("written");
    let (again, text) = run(&line);
    let kept = fs::read_to_string(out.join("runs.csv")).expect("left alone");
    _ = fs::remove_dir_all(&out);
    assert!(matches!(again, Err(Failure::Usage { .. })));
    assert_eq!((text.as_str(), csv), ("", kept));
}

#[test]
fn a_capture_is_of_the_first_seed() {
    let path = scratch("pcap");
    let (result, _) = run(&format!("grid-25 --seeds 3 --seed 4 --quiet --pcap {}", path.display()));
    let capture = fs::read_to_string(&path).expect("written");
    _ = fs::remove_file(&path);
    assert!(result.is_ok());
    assert_eq!(capture, "4");
}

#[test]
fn failed_runs_are_told_with_the_command_that_shows_them_again() {
    let (result, text) = run("grid-25 --seeds 3 --seed 12 --set mac.retries=3 --quiet");
    let Err(Failure::Own { message, hint }) = result else { panic!("{result:?}") };
    assert_eq!(message, "1 of 3 runs failed; seed 13: no luck");
    let again = "to see it again: lowmesh run grid-25 --set mac.retries=3 --seeds 1 --seed 13";
    assert_eq!(hint.as_deref(), Some(again));
    assert!(text.starts_with("grid-25: 2 runs "), "{text}");
}

#[test]
fn when_every_run_fails_no_folder_is_left() {
    let out = scratch("none");
    let (result, text) =
        run(&format!("grid-25 --seeds 1 --seed 13 --quiet --out {}", out.display()));
    assert!(matches!(result, Err(Failure::Own { .. })));
    assert_eq!((text.as_str(), out.exists()), ("", false));
}

/// A sweep of two points over `seeds` seeds from `seed` on, in a folder that goes with the value.
struct Swept(PathBuf);

impl Swept {
    fn new(test: &str, seed: u64, seeds: u32) -> Self {
        let folder = scratch(test);
        fs::create_dir(&folder).expect("no test takes the same name twice");
        let text = format!(
            "name = \"two\"\nseeds = {seeds}\nseed = {seed}\n[sweep]\n\"mac.retries\" = [3, 4]"
        );
        fs::write(folder.join("two.toml"), text).expect("writable");
        Self(folder)
    }
    fn run(&self, flags: &str) -> (Result<(), Failure>, String) {
        let folder = self.0.display();
        run(&format!("{folder}/two.toml --store {folder}/store --jobs 1 --quiet {flags}"))
    }
    fn stored(&self) -> usize {
        let store = Store::open(&self.0.join("store")).expect("writable");
        store.ids().expect("readable").len()
    }
}
impl Drop for Swept {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn failed_runs_of_a_sweep_are_told_with_their_point_and_command() {
    let swept = Swept::new("swept-failed", 12, 3);
    let (result, text) = swept.run("");
    let Err(Failure::Own { message, hint }) = result else { panic!("{result:?}") };
    assert_eq!(message, "2 of 6 runs failed; seed 13 at mac.retries = 3: no luck");
    let file = swept.0.join("two.toml");
    assert_eq!(
        hint,
        Some(format!(
            "to see it again: lowmesh run {} --set mac.retries=3 --seeds 1 --seed 13",
            file.display()
        ))
    );
    assert!(text.starts_with("two: 2 points, 4 runs; "), "{text}");
    assert_eq!(swept.stored(), 4);
}

#[test]
fn fail_fast_begins_no_run_after_the_first_failure() {
    let swept = Swept::new("swept-fast", 12, 3);
    let (result, _) = swept.run("--fail-fast");
    let Err(Failure::Own { message, .. }) = result else { panic!("{result:?}") };
    assert!(message.starts_with("1 of 6 runs failed, 4 were not started; "), "{message}");
    assert_eq!(swept.stored(), 1);
}

#[test]
fn a_flag_picks_one_point_of_a_sweep() {
    let swept = Swept::new("swept-picked", 1, 2);
    let (result, text) = swept.run("--set mac.retries=4");
    assert!(result.is_ok());
    assert!(text.starts_with("two: 2 runs of 1h, "), "{text}");
}

#[test]
fn runs_of_a_plain_scenario_are_kept_when_a_store_is_named() {
    let store = scratch("plain-store");
    let line = format!("grid-25 --seeds 2 --quiet --json --store {}", store.display());
    let (first, second) = (run(&line).1, run(&line).1);
    let kept = Store::open(&store).and_then(|store| store.ids()).expect("readable").len();
    _ = fs::remove_dir_all(&store);
    assert_eq!(kept, 2);
    // Also the wall time is that of the one run that was made, to the millionth of a second.
    let rounded = |text: &str| {
        let mut json: serde_json::Value = serde_json::from_str(text).expect("JSON alone");
        for run in json["runs"].as_array_mut().expect("a list") {
            let wall = run["wall_s"].as_f64().expect("a number");
            run["wall_s"] = format!("{wall:.6}").into();
        }
        json
    };
    assert_eq!(rounded(&first), rounded(&second));
}

#[test]
fn a_dry_run_as_json_counts_what_is_stored() {
    let swept = Swept::new("swept-dry", 1, 2);
    let dry = || -> serde_json::Value {
        serde_json::from_str(&swept.run("-n --json").1).expect("JSON alone")
    };
    assert_eq!((&dry()["runs"], &dry()["stored"]), (&4.into(), &0.into()));
    assert!(swept.run("--shard 1/2").0.is_ok());
    assert_eq!((&dry()["stored"], &dry()["missing"]), (&2.into(), &2.into()));
}

#[test]
fn a_sweep_whose_points_differ_in_more_than_its_keys_says_so_in_its_json() {
    let swept = Swept::new("swept-unequal", 1, 2);
    let warnings = |flags: &str| {
        let (result, text) = swept.run(&format!("--set sweep.mac.retries=[3] {flags} --json"));
        assert!(result.is_ok(), "{result:?}");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON alone");
        json["warnings"].as_array().expect("a list").clone()
    };
    assert_eq!(warnings(""), [serde_json::Value::Null; 0]);
    let functions = "--set sweep.schedule.function=msf,alice";
    let found = warnings(functions);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0]["choice"], "schedule.function");
    assert_eq!(
        found[0]["values"][1],
        serde_json::json!({ "chosen": "alice", "key": "schedule.unicast_length", "value": "29" })
    );
    assert_eq!(found[0]["flags"][0], "--set schedule.unicast_length=101");
    let fair = "--set schedule.unicast_length=101 --set schedule.broadcast_length=101";
    assert_eq!(warnings(&format!("{functions} {fair}")), [serde_json::Value::Null; 0]);
}
