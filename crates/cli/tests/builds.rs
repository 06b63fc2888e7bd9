//! Runs of another build of the program, through the built command: named, kept apart, and never taken for its own.
//!
//! The other build is made up: its folder in the store is that of this one, renamed. `cargo xtask stale-store` has two
//! programs that are really built from different sources.

#[expect(dead_code, reason = "shared by the command's tests, each of which uses a part")]
mod folder;

use std::fs;
use std::path::Path;

use folder::{Folder, lowmesh, stderr, stdout};

/// Two points of one run of a line of three nodes.
const SWEPT: &str = r#"
name = "line-3"
duration = "6min"
warmup = "3min"
seeds = 1

[topology]
kind = "line"
nodes = 3
spacing_m = 30.0

[mac]
eb_period = "4s"

[traffic]
start = "2min"

[sweep]
"traffic.period" = ["5s", "10s"]
"#;

/// The id of the other build.
const OTHER: &str = "0123456789ab0123456789ab01234567";
/// The commit of the other build.
const COMMIT: &str = "89abcdef0123";

/// The id of this program.
fn own() -> String {
    let version = stdout(&lowmesh(&["--version"]));
    version.lines().find_map(|line| line.strip_prefix("build ")).expect("an id").to_owned()
}

/// A command that must succeed: what it printed, and what it said.
fn done(args: &[&str]) -> (String, String) {
    let output = lowmesh(args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(args).0).expect("JSON alone")
}

/// Makes the runs in a store runs of the other build.
fn disguise(store: &str) {
    let to = Path::new(store).join(&OTHER[..12]);
    fs::rename(Path::new(store).join(&own()[..12]), &to).expect("it has runs");
    for entry in fs::read_dir(&to).expect("a build") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("text").replace(&own(), OTHER);
        fs::write(&path, text).expect("writable");
    }
    let build =
        format!("{{\"id\":\"{OTHER}\",\"commit\":{{\"hash\":\"{COMMIT}\",\"dirty\":true}}}}\n");
    fs::write(to.join("build.json"), build).expect("writable");
}

/// A folder with the sweep, and a store with its runs of the other build.
fn stale(name: &str) -> (Folder, String, String) {
    let folder = Folder::new(name);
    let (file, store) = (folder.write("s.toml", SWEPT), folder.path("store"));
    done(&["run", &file, "--store", &store, "--quiet"]);
    disguise(&store);
    (folder, file, store)
}

#[test]
fn the_version_tells_the_build_and_the_commit() {
    let long = stdout(&lowmesh(&["--version"]));
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], concat!("lowmesh ", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].strip_prefix("build ").is_some_and(|id| id.len() == 32), "{long}");
    assert!(lines[2].starts_with("commit ") && lines.len() == 3, "{long}");
    assert_eq!(stdout(&lowmesh(&["-V"])).lines().collect::<Vec<_>>(), [lines[0]]);
}

#[test]
fn a_sweep_names_the_runs_of_another_build_and_makes_its_own() {
    let (_folder, file, store) = stale("builds-sweep");
    let dry = json(&["run", &file, "--store", &store, "-n", "--json"]);
    assert_eq!((&dry["stored"], &dry["missing"]), (&0.into(), &2.into()));
    assert_eq!(dry["other_builds"][0]["build"], OTHER[..12]);
    assert_eq!(
        (&dry["other_builds"][0]["runs"], &dry["other_builds"][0]["commit"]["hash"]),
        (&2.into(), &COMMIT.into())
    );
    let text = done(&["run", &file, "--store", &store, "-n"]).0;
    let named = format!("2 of build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert!(text.contains(&format!("\nnot used: {named}\n")), "{text}");
    let (_, told) = done(&["run", &file, "--store", &store]);
    let named =
        format!("2 stored runs are of build {} (commit {COMMIT}-dirty): not used", &OTHER[..12]);
    assert!(
        told.contains(&named) && told.contains(&format!("remove {store}/{}", &OTHER[..12])),
        "{told}"
    );
    let (table, told) = done(&["run", &file, "--store", &store]);
    assert!(told.contains("2 of 2 runs are stored") && !told.contains("not used"), "{told}");
    assert!(table.contains(&format!("build {}", &own()[..12])), "{table}");
}

#[test]
fn runs_of_builds_that_were_not_recorded_are_named() {
    let folder = Folder::new("builds-before");
    let (file, store) = (folder.write("s.toml", SWEPT), folder.path("store"));
    fs::create_dir(&store).expect("writable");
    folder.write(&format!("store/{OTHER}.json"), "{\"schema\":1,\"model\":8}");
    let (_, told) = done(&["run", &file, "--store", &store]);
    assert!(told.contains("1 stored run is of a build that was not recorded: not used"), "{told}");
}

#[test]
fn a_reproduction_names_the_runs_of_another_build() {
    let (_folder, _, store) = stale("builds-reproduce");
    let line = ["reproduce", "righetti2023", "--claim", "S000-03", "--store", &store];
    let report = json(&[&line[..], &["--json"]].concat());
    assert_eq!(report["build"]["id"], own());
    let text = done(&line).0;
    assert!(text.contains(&format!("build {}", &own()[..12])), "{text}");
    let dry = done(&[&line[..], &["-n"]].concat()).0;
    assert!(dry.contains(&format!("not used: 2 of build {}", &OTHER[..12])), "{dry}");
}

#[test]
fn joined_stores_of_two_builds_are_kept_apart_and_that_is_told() {
    let (folder, file, theirs) = stale("builds-merge");
    let (ours, into) = (folder.path("ours"), folder.path("into"));
    done(&["run", &file, "--store", &ours, "--quiet"]);
    let (text, told) = done(&["merge", &ours, &theirs, "--into", &into]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("4 runs taken from 2 stores; {into} holds 4"));
    assert!(lines[1].starts_with(&format!("{ours}: 2 runs of build {}", &own()[..12])), "{text}");
    let other = format!("{theirs}: 2 runs of build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert_eq!(lines[2], other);
    assert!(told.contains("runs of different builds are kept apart"), "{told}");
    let dry = json(&["run", &file, "--store", &into, "-n", "--json"]);
    assert_eq!((&dry["stored"], &dry["other_builds"][0]["runs"]), (&2.into(), &2.into()));
    let (_, told) = done(&["merge", &ours, "--into", &folder.path("one")]);
    assert_eq!(told, "");
}

#[test]
fn a_run_of_another_build_is_made_again_and_the_build_is_told() {
    let (folder, _, store) = stale("builds-rerun");
    let inside = Path::new(&store).join(&OTHER[..12]);
    let names = fs::read_dir(&inside).expect("a build").map(|entry| entry.expect("readable"));
    let mut names = names.map(|entry| entry.file_name().into_string().expect("ASCII"));
    // `build.json` is no run: the name of a run has 32 digits.
    let name = names.find(|name| name.len() == 32 + ".json".len()).expect("a run");
    let name = name.replace(".wall", ".json");
    let (_, told) = done(&["rerun", &name[..12], "--store", &store]);
    let named = format!("was stored by build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert!(told.contains(&named) && told.contains("gives the same trace"), "{told}");
    let place = format!("store/{}/{name}", &OTHER[..12]);
    let text = folder.read(&place);
    let at = text.find("\"trace_hash\":\"").expect("a field") + 14;
    folder.write(&place, format!("{}0123456789abcdef{}", &text[..at], &text[at + 16..]));
    let output = lowmesh(&["rerun", &name[..12], "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains(&named) && told.contains(&format!("this program is build {}", &own()[..12])),
        "{told}"
    );
}

#[test]
fn a_comparison_reads_one_build_of_a_store_and_tells_which() {
    let (folder, file, store) = stale("builds-compare");
    let by = ["--by", "traffic.period", "--metrics", "tdr"];
    let compare = |from: &[&str]| {
        let text = done(&[&["compare"], from].concat()).0;
        text.lines().last().expect("a last line").to_owned()
    };
    let text = compare(&[&[store.as_str()][..], &by].concat());
    assert_eq!(text, format!("made by build {} (commit {COMMIT}-dirty)", &OTHER[..12]));
    done(&["run", &file, "--store", &store, "--quiet", "--out", &folder.path("out")]);
    let text = compare(&[&[store.as_str()][..], &by].concat());
    assert!(text.starts_with(&format!("made by build {}", &own()[..12])), "{text}");
    let text = compare(&[&format!("{store}/{}", &OTHER[..12]), &store]);
    let [theirs, ours] = [OTHER, &own()].map(|id| format!("build {}", &id[..12]));
    assert!(
        text.starts_with(&format!("A: {theirs}")) && text.contains(&format!("; B: {ours}")),
        "{text}"
    );
    assert!(compare(&[&store, &folder.path("out")]).starts_with(&format!("made by {ours}")));
}
