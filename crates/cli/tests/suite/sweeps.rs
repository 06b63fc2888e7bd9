//! Sweeps through the built command: runs that are kept, lost, shared out and joined, always to the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::folder::{
    Folder, line_of_three, lowmesh, run_files, short_build_id, stderr, stdout, succeed,
};

/// Four points.
const SWEEP: &str = r#"[sweep]
"traffic.period" = "5s..10s step 5s"
"coap.congestion" = ["default", "6cocoa"]
"#;

/// Four points of three runs each.
fn swept() -> String {
    line_of_three(3, SWEEP)
}

/// The stored runs by name; how long each took is no result. A store that one program made has one folder.
fn stored(store: &str) -> BTreeMap<String, Vec<u8>> {
    let mut builds = fs::read_dir(store).expect("a store").map(|entry| entry.expect("readable"));
    let Some(build) = builds.next() else { return BTreeMap::new() };
    assert!(builds.next().is_none(), "one build");
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let runs = run_files(&build.path()).into_iter();
    runs.map(|path| (name(&path).expect("ASCII"), fs::read(&path).expect("readable"))).collect()
}

/// Runs the sweep with `args` more and returns its JSON.
fn sweep(file: &str, store: &str, args: &[&str]) -> String {
    let mut line = vec!["run", file, "--store", store, "--json", "--quiet"];
    line.extend(args);
    succeed(&line).0
}

#[test]
fn runs_that_are_lost_are_made_again_to_the_same_bytes() {
    let folder = Folder::new("sweep-lost");
    let file = folder.write("s.toml", swept());
    let store = folder.path("store");
    let first = sweep(&file, &store, &["--out", &folder.path("first")]);
    let whole = stored(&store);
    assert_eq!(whole.len(), 12);
    for name in whole.keys().step_by(3) {
        fs::remove_file(format!("{store}/{}/{name}", short_build_id())).expect("stored");
    }
    let second = sweep(&file, &store, &["--out", &folder.path("second")]);
    assert_eq!(second, first);
    assert_eq!(stored(&store), whole);
    for name in ["runs.csv", "summary.json", "scenario.toml"] {
        assert_eq!(folder.read(&format!("second/{name}")), folder.read(&format!("first/{name}")));
    }
    assert_eq!(sweep(&file, &store, &["--force", "--jobs", "1"]), first);
}

#[test]
fn a_killed_sweep_goes_on_where_it_was_to_the_same_bytes() {
    let folder = Folder::new("sweep-killed");
    let file = folder.write("s.toml", swept());
    let whole = sweep(&file, &folder.path("whole"), &[]);
    let store = folder.path("store");
    fs::create_dir(&store).expect("writable");
    for _ in 0..2 {
        let before = stored(&store).len();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lowmesh"))
            .args(["run", &file, "--store", &store, "--quiet", "--jobs", "1"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the command was built");
        while stored(&store).len() == before && child.try_wait().expect("our child").is_none() {
            std::thread::yield_now();
        }
        _ = child.kill();
        child.wait().expect("our child");
        assert!(stored(&store).len() > before, "what was finished before the end is kept");
        if stored(&store).len() == 12 {
            break;
        }
    }
    assert_eq!(sweep(&file, &store, &[]), whole);
    assert_eq!(stored(&store), stored(&folder.path("whole")));
}

#[test]
fn two_shards_joined_are_one_run_byte_for_byte() {
    let folder = Folder::new("sweep-shards");
    let file = folder.write("s.toml", swept());
    let [one, two, joined, whole] = ["one", "two", "joined", "whole"].map(|name| folder.path(name));
    sweep(&file, &one, &["--shard", "1/2"]);
    sweep(&file, &two, &["--shard", "2/2"]);
    assert_eq!((stored(&one).len(), stored(&two).len()), (6, 6));
    let output = lowmesh(&["merge", &one, &two, "--into", &joined]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("12 runs copied from 2 stores"), "{}", stdout(&output));
    let expected = sweep(&file, &whole, &["--out", &folder.path("a")]);
    assert_eq!(stored(&joined), stored(&whole));
    let dry = stdout(&lowmesh(&["run", &file, "--store", &joined, "-n"]));
    assert!(dry.contains("\nto run: 0\n"), "{dry}");
    assert_eq!(sweep(&file, &joined, &["--out", &folder.path("b")]), expected);
    assert_eq!(folder.read("b/runs.csv"), folder.read("a/runs.csv"));
}

#[test]
fn a_dry_run_says_what_there_is_to_do_and_stores_nothing() {
    let folder = Folder::new("sweep-dry");
    let file = folder.write("s.toml", swept());
    let store = folder.path("store");
    let dry = || stdout(&lowmesh(&["run", &file, "--store", &store, "--dry-run", "--jobs", "1"]));
    let text = dry();
    assert!(text.starts_with("line-3: 4 points, 12 runs\nstored: 0 in "), "{text}");
    assert!(text.contains("\nto run: 12, "), "{text}");
    assert!(stored(&store).is_empty());
    sweep(&file, &store, &["--shard", "1/4"]);
    let text = dry();
    assert!(text.contains("\nstored: 3 in ") && text.contains("\nto run: 9, "), "{text}");
}

#[test]
fn the_json_of_a_sweep_has_the_keys_of_schema_3() {
    let folder = Folder::new("sweep-json");
    let file = folder.write("s.toml", swept());
    let text = sweep(&file, &folder.path("store"), &[]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON alone");
    let keys: Vec<_> = json.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["build", "points", "scenario", "schema", "version", "warnings"]);
    assert_eq!(json["schema"], 3);
    let points = json["points"].as_array().expect("a list");
    assert_eq!(points.len(), 4);
    assert_eq!(points[1]["settings"]["coap.congestion"], "6cocoa");
    assert_eq!(points[1]["settings"]["traffic.period"], "5s");
    for point in points {
        assert_eq!(point["runs"].as_array().map(Vec::len), Some(3));
        assert_eq!(point["summary"]["tdr"]["n"], 3);
    }
    assert!(!text.contains("wall_s"));
}

#[test]
fn the_table_has_a_row_a_point_with_the_chosen_metrics() {
    let folder = Folder::new("sweep-table");
    let file = folder.write("s.toml", swept());
    let store = folder.path("store");
    let output = lowmesh(&["run", &file, "--store", &store, "--quiet", "--metrics", "tdr,nodes"]);
    let text = stdout(&output);
    let rows: Vec<Vec<&str>> =
        text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    let (program, rows) = rows.split_last().expect("a last line");
    assert_eq!(program[..3], ["lowmesh", concat!(env!("CARGO_PKG_VERSION"), ","), "build"]);
    assert_eq!(rows[0], ["traffic.period", "coap.congestion", "tdr", "nodes", "runs"]);
    assert_eq!((rows.len(), rows[4][0], rows[4][1]), (6, "10s", "6cocoa"), "{text}");
    assert!(rows[4].ends_with(&["2", "±", "0", "3"]), "{text}");
}

#[test]
fn a_stored_run_is_made_again_with_a_capture() {
    let folder = Folder::new("sweep-rerun");
    let file = folder.write("s.toml", swept());
    let store = folder.path("store");
    let json: serde_json::Value =
        serde_json::from_str(&sweep(&file, &store, &[])).expect("JSON alone");
    let run = &json["points"][2]["runs"][1];
    let (id, pcap) = (run["id"].as_str().expect("a name"), folder.path("run.pcap"));
    let output = lowmesh(&["rerun", &id[..12], "--store", &store, "--pcap", &pcap, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let again: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(again["runs"][0]["trace_hash"], run["trace_hash"]);
    assert_eq!(again["runs"][0]["metrics"], run["metrics"]);
    assert!(fs::metadata(&pcap).expect("written").len() > 10_000);
}

#[test]
fn a_stored_run_whose_trace_this_program_does_not_reproduce_is_an_error() {
    let folder = Folder::new("sweep-otherwise");
    let file = folder.write("s.toml", swept());
    let store = folder.path("store");
    sweep(&file, &store, &["--shard", "1/12"]);
    let name = stored(&store).into_keys().next().expect("one run");
    let text = folder.read(&format!("store/{}/{name}", short_build_id()));
    let at = text.find("\"trace_hash\":\"").expect("a field") + 14;
    let text = format!("{}0123456789abcdef{}", &text[..at], &text[at + 16..]);
    folder.write(&format!("store/{}/{name}", short_build_id()), text);
    let output = lowmesh(&["rerun", &name[..32], "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not the stored 0123456789abcdef"), "{}", stderr(&output));
}

#[test]
fn a_sweep_is_compared_with_itself_by_a_key_from_its_folder_and_from_its_store() {
    let folder = Folder::new("sweep-compare");
    let file = folder.write("s.toml", swept());
    let (store, out) = (folder.path("store"), folder.path("out"));
    sweep(&file, &store, &["--out", &out]);
    let compare = |from: &str| {
        let line = [
            "compare",
            from,
            "--by",
            "coap.congestion",
            "--baseline",
            "default",
            "--where",
            "traffic.period=5s",
            "--json",
        ];
        succeed(&line).0
    };
    let text = compare(&out);
    assert_eq!(compare(&store), text);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON alone");
    assert_eq!(json["pairs"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["pairs"][0]["b"]["coap.congestion"], "6cocoa");
    assert_eq!(json["pairs"][0]["differences"][0]["n"], 3);
}

#[test]
fn functions_are_compared_from_a_folder_and_from_a_store_with_a_warning_in_both() {
    let folder = Folder::new("sweep-functions");
    let functions = "[sweep]\n\"schedule.function\" = [\"msf\", \"alice\"]\n";
    let file = folder.write("s.toml", line_of_three(3, functions));
    let (store, out) = (folder.path("store"), folder.path("out"));
    let output = lowmesh(&["run", &file, "--store", &store, "--out", &out]);
    let warning = "warning: schedule.negotiated_length = 101 (msf) against schedule.unicast_length = 29 (alice), ";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    let compare = |from: &str| {
        let line = ["compare", from, "--by", "schedule.function", "--baseline", "msf"];
        let (text, messages) = succeed(&line);
        assert!(messages.starts_with(warning), "{messages}");
        text
    };
    let text = compare(&out);
    assert_eq!(compare(&store), text);
    assert!(text.starts_with("schedule.function: msf to alice\n"), "{text}");
}

#[test]
fn wrong_sweeps_end_with_2_and_their_line() {
    let folder = Folder::new("sweep-wrong");
    let file = folder.write("s.toml", swept().replace("6cocoa", "7cocoa"));
    let output = lowmesh(&["run", &file, "--store", &folder.path("store")]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("s.toml:21:"), "{error}");
    assert!(error.contains("coap.congestion = \"7cocoa\": must be one of"), "{error}");
    assert_eq!(folder.names(), ["s.toml"]);
}

#[test]
fn what_is_not_there_is_refused_with_2() {
    let folder = Folder::new("sweep-none");
    let file = folder.write("s.toml", swept());
    let (none, store) = (folder.path("none"), folder.path("store"));
    sweep(&file, &store, &["--shard", "1/12"]);
    for args in [
        &["rerun", "00", "--store", &none][..],
        &["rerun", "zz", "--store", &store],
        &["merge", &none, "--into", &store],
        &["merge", &store],
        &["run", &file, "--shard", "3/2"],
        &["run", &file, "--pcap", &none, "--store", &store],
        &["run", &file, "--fail-fast", "--keep-going"],
        &["compare", &none, &store],
        &["compare", &store],
    ] {
        let output = lowmesh(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_ne!(stderr(&output), "", "{args:?}");
    }
    assert_eq!(folder.names(), ["s.toml", "store"]);
}

#[test]
fn the_tables_of_a_sweep_and_of_a_comparison_fit_80_columns() {
    let folder = Folder::new("columns");
    let sweep =
        "[sweep]\n\"coap.congestion\" = [\"default\", \"cocoa\"]\n\"mac.retries\" = [3, 7]\n";
    let file = folder.write("line.toml", line_of_three(2, sweep));
    let store = folder.path("store");
    let printed = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        let output = command.args(words).env("COLUMNS", "80").output().expect("it was built");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let table = printed(&["run", &file, "--store", &store]);
    let compared = printed(&["compare", &store, "--by", "coap.congestion"]);
    for line in table.lines().chain(compared.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Each table of the sweep names the points; no name of a metric is cut.
    assert!(table.matches("coap.congestion  mac.retries").count() > 1, "{table}");
    assert!(compared.contains("retransmissions_per_transaction"), "{compared}");
}
