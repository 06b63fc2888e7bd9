//! Runs of another build of the program, through the built command: named, kept apart, and never taken for its own.
//!
//! The other build is made up: its folder in the store is that of this one, renamed. `cargo xtask stale-store` has two
//! programs that are really built from different sources.

use std::fs;
use std::path::Path;

use crate::folder::{
    Folder, build_id, line_of_three, lowmesh, run_files, short_build_id, stderr, stdout, succeed,
};

/// Two points of one run each.
fn swept() -> String {
    line_of_three(1, "[sweep]\n\"traffic.period\" = [\"5s\", \"10s\"]\n")
}

/// The id of the other build.
const OTHER: &str = "0123456789ab0123456789ab01234567";
/// The commit of the other build.
const COMMIT: &str = "89abcdef0123";

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&succeed(args).0).expect("JSON alone")
}

/// Makes the runs in a store runs of the other build.
fn disguise(store: &str) {
    let to = Path::new(store).join(&OTHER[..12]);
    fs::rename(Path::new(store).join(short_build_id()), &to).expect("it has runs");
    for entry in fs::read_dir(&to).expect("a build") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("text").replace(&build_id(), OTHER);
        fs::write(&path, text).expect("writable");
    }
    let build =
        format!("{{\"id\":\"{OTHER}\",\"commit\":{{\"hash\":\"{COMMIT}\",\"dirty\":true}}}}\n");
    fs::write(to.join("build.json"), build).expect("writable");
}

/// A folder with the sweep, and a store with its runs of the other build.
fn stale(name: &str) -> (Folder, String, String) {
    let folder = Folder::new(name);
    let (file, store) = (folder.write("s.toml", swept()), folder.path("store"));
    succeed(&["run", &file, "--store", &store, "--quiet"]);
    disguise(&store);
    (folder, file, store)
}

#[test]
fn the_version_names_the_build_and_the_commit() {
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
    let text = succeed(&["run", &file, "--store", &store, "-n"]).0;
    let named = format!("2 of build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert!(text.contains(&format!("\nnot used: {named}\n")), "{text}");
    let (_, messages) = succeed(&["run", &file, "--store", &store]);
    let named =
        format!("2 stored runs are of build {} (commit {COMMIT}-dirty): not used", &OTHER[..12]);
    assert!(
        messages.contains(&named) && messages.contains(&format!("remove {store}/{}", &OTHER[..12])),
        "{messages}"
    );
    let (table, messages) = succeed(&["run", &file, "--store", &store]);
    assert!(
        messages.contains("2 of 2 runs are stored") && !messages.contains("not used"),
        "{messages}"
    );
    assert!(table.contains(&format!("build {}", short_build_id())), "{table}");
}

#[test]
fn runs_of_builds_that_were_not_recorded_are_named() {
    let folder = Folder::new("builds-before");
    let (file, store) = (folder.write("s.toml", swept()), folder.path("store"));
    fs::create_dir(&store).expect("writable");
    folder.write(&format!("store/{OTHER}.json"), "{\"schema\":1,\"model\":8}");
    let (_, messages) = succeed(&["run", &file, "--store", &store]);
    assert!(
        messages.contains("1 stored run is of a build that was not recorded: not used"),
        "{messages}"
    );
}

#[test]
fn a_reproduction_names_the_runs_of_another_build() {
    let (_folder, _, store) = stale("builds-reproduce");
    let line = ["reproduce", "righetti2023", "--claim", "S000-03", "--store", &store];
    let report = json(&[&line[..], &["--json"]].concat());
    assert_eq!(report["build"]["id"], build_id());
    let text = succeed(&line).0;
    assert!(text.contains(&format!("build {}", short_build_id())), "{text}");
    let dry = succeed(&[&line[..], &["-n"]].concat()).0;
    assert!(dry.contains(&format!("not used: 2 of build {}", &OTHER[..12])), "{dry}");
}

#[test]
fn merged_stores_keep_two_builds_apart_and_say_so() {
    let (folder, file, theirs) = stale("builds-merge");
    let (ours, into) = (folder.path("ours"), folder.path("into"));
    succeed(&["run", &file, "--store", &ours, "--quiet"]);
    let (text, messages) = succeed(&["merge", &ours, &theirs, "--into", &into]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("4 runs copied from 2 stores; {into} holds 4"));
    assert!(
        lines[1].starts_with(&format!("{ours}: 2 runs of build {}", short_build_id())),
        "{text}"
    );
    let other = format!("{theirs}: 2 runs of build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert_eq!(lines[2], other);
    assert!(messages.contains("runs of different builds are kept separate"), "{messages}");
    let dry = json(&["run", &file, "--store", &into, "-n", "--json"]);
    assert_eq!((&dry["stored"], &dry["other_builds"][0]["runs"]), (&2.into(), &2.into()));
    let (_, messages) = succeed(&["merge", &ours, "--into", &folder.path("one")]);
    assert_eq!(messages, "");
}

#[test]
fn a_re_run_names_the_other_build_that_stored_the_run() {
    let (folder, _, store) = stale("builds-rerun");
    let runs = run_files(&Path::new(&store).join(&OTHER[..12]));
    let name = runs[0].file_name().and_then(|name| name.to_str()).expect("ASCII");
    let (_, messages) = succeed(&["rerun", &name[..12], "--store", &store]);
    let named = format!("was stored by build {} (commit {COMMIT}-dirty)", &OTHER[..12]);
    assert!(messages.contains(&named) && messages.contains("gives the same trace"), "{messages}");
    let place = format!("store/{}/{name}", &OTHER[..12]);
    let text = folder.read(&place);
    let at = text.find("\"trace_hash\":\"").expect("a field") + 14;
    folder.write(&place, format!("{}0123456789abcdef{}", &text[..at], &text[at + 16..]));
    let output = lowmesh(&["rerun", &name[..12], "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let messages = stderr(&output);
    let own = format!("this program is build {}", short_build_id());
    assert!(messages.contains(&named) && messages.contains(&own), "{messages}");
}

#[test]
fn a_comparison_reads_one_build_of_a_store_and_names_it() {
    let (folder, file, store) = stale("builds-compare");
    let by = ["--by", "traffic.period", "--metrics", "tdr"];
    let compare = |from: &[&str]| {
        let text = succeed(&[&["compare"], from].concat()).0;
        text.lines().last().expect("a last line").to_owned()
    };
    let text = compare(&[&[store.as_str()][..], &by].concat());
    assert_eq!(text, format!("made by build {} (commit {COMMIT}-dirty)", &OTHER[..12]));
    succeed(&["run", &file, "--store", &store, "--quiet", "--out", &folder.path("out")]);
    let text = compare(&[&[store.as_str()][..], &by].concat());
    assert!(text.starts_with(&format!("made by build {}", short_build_id())), "{text}");
    let text = compare(&[&format!("{store}/{}", &OTHER[..12]), &store]);
    let [theirs, ours] = [OTHER, &build_id()].map(|id| format!("build {}", &id[..12]));
    assert!(
        text.starts_with(&format!("A: {theirs}")) && text.contains(&format!("; B: {ours}")),
        "{text}"
    );
    assert!(compare(&[&store, &folder.path("out")]).starts_with(&format!("made by {ours}")));
}
