//! Runs of small scenarios through the built command: what they print, and that it does not depend on how.

use crate::folder::{Folder, line_of_three, lowmesh, stderr, stdout};

/// Two nodes in reach of each other, and one 10 km away.
const FAR: &str = r#"
name = "far"
duration = "6min"
warmup = "3min"
seeds = 2

[topology]
kind = "positions"
file = "places.csv"

[mac]
eb_period = "4s"

[traffic]
start = "2min"
"#;

/// The wall clock is the one thing that may differ between two runs.
fn without_wall_clock(json: &str) -> String {
    json.lines().filter(|line| !line.contains("\"wall_s\":")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_json_of_a_run_has_the_keys_of_schema_3() {
    let folder = Folder::new("keys");
    let file = folder.write("line.toml", line_of_three(3, ""));
    let output = lowmesh(&["run", &file, "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!((json["schema"].as_u64(), json["scenario"].as_str()), (Some(3), Some("line-3")));
    assert_eq!(json["build"]["id"].as_str().map(str::len), Some(32));
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json.get("failures").is_none(), "no run failed");
    let runs = json["runs"].as_array().expect("a list");
    let seeds: Vec<_> = runs.iter().map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(1), Some(2), Some(3)]);
    for run in runs {
        assert_eq!(run["trace_hash"].as_str().map(str::len), Some(16));
        assert_eq!(run["sim_s"], 360.0);
        assert!(run["wall_s"].as_f64().is_some_and(|wall| wall > 0.0));
        assert_eq!((&run["metrics"]["nodes"], &run["metrics"]["joined"]), (&2.into(), &2.into()));
        assert!(run["metrics"]["drops"].is_object());
    }
    for (metric, summary) in json["summary"].as_object().expect("one entry a metric") {
        let keys: Vec<_> = summary.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["ci95", "mean", "n"], "{metric}");
        assert!(runs[0]["metrics"].get(metric).is_some(), "{metric}");
    }
    assert!(json["summary"]["tdr"]["mean"].as_f64().is_some_and(|tdr| tdr > 0.9));
}

#[test]
fn the_number_of_jobs_changes_nothing_but_the_wall_clock() {
    let folder = Folder::new("jobs");
    let file = folder.write("line.toml", line_of_three(3, ""));
    let run = |jobs| stdout(&lowmesh(&["run", &file, "--json", "--quiet", "--jobs", jobs]));
    let (one, two) = (run("1"), run("2"));
    assert!(one.contains("\"wall_s\":"));
    assert_eq!(without_wall_clock(&one), without_wall_clock(&two));
}

#[test]
fn who_watches_changes_nothing_but_the_wall_clock() {
    let folder = Folder::new("watched");
    let file = folder.write("line.toml", line_of_three(3, ""));
    let plain = stdout(&lowmesh(&["run", &file, "--json", "--quiet"]));
    let (pcap, trace, out) =
        (folder.path("run.pcap"), folder.path("run.jsonl"), folder.path("results"));
    let watched = ["run", &file, "--json", "--pcap", &pcap, "--trace", &trace, "--out", &out];
    let output = lowmesh(&watched);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(without_wall_clock(&stdout(&output)), without_wall_clock(&plain));
    let files = ["line.toml", "results", "run.jsonl", "run.pcap"];
    assert_eq!(folder.names(), files);
    for line in folder.read("run.jsonl").lines().take(1000) {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
    let written = folder.read("results/summary.json");
    assert_eq!(without_wall_clock(&written), without_wall_clock(&plain));
}

#[test]
fn results_name_their_own_scenario_and_it_runs_to_the_same_results() {
    let folder = Folder::new("again");
    let file = folder.write("line.toml", line_of_three(3, ""));
    let out = folder.path("results");
    lowmesh(&["run", &file, "--out", &out, "--quiet", "--set", "traffic.period=\"5s\""]);
    let again = lowmesh(&["run", &folder.path("results/scenario.toml"), "--json", "--quiet"]);
    let first = folder.read("results/summary.json");
    assert_eq!(without_wall_clock(&stdout(&again)), without_wall_clock(&first));
}

#[test]
fn a_node_out_of_reach_ends_no_run_and_is_counted() {
    let folder = Folder::new("far");
    folder.write("places.csv", "x_m,y_m\n0,0\n30,0\n10000,0\n");
    let file = folder.write("far.toml", FAR);
    let output = lowmesh(&["run", &file, "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    for run in json["runs"].as_array().expect("a list") {
        assert_eq!((&run["metrics"]["joined"], &run["metrics"]["nodes"]), (&1.into(), &2.into()));
        assert_eq!(run["metrics"]["never_joined_nodes"], serde_json::json!([2]));
    }
    let table = stdout(&lowmesh(&["run", &file, "--quiet"]));
    let row = |name: &str| {
        let line = table.lines().find(|line| line.trim_start().starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned)
    };
    assert_eq!((row("joined"), row("nodes")), (Some("1".to_owned()), Some("2".to_owned())));
}
