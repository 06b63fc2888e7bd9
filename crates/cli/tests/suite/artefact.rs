//! A folder of `--out` is complete: copied to another place, it gives the same bytes, without the files it came from.

use std::fs;

use crate::folder::{Folder, line_of_three, succeed};

const PLACES: &str = "x_m,y_m\n0,0\n30,5\n55,20\n";
const NARROW: &str = "x_m,y_m\n0,0\n20,5\n40,10\n";
const LINKS: &str = "src,dst,pdr\n0,1,1\n1,0,1\n1,2,0.9\n2,1,0.9\n";
const EVENTS: &str = "at,kind,node\n4min,off,2\n";

/// Copies what is in one folder into a new one.
fn copy(from: &str, to: &str) {
    fs::create_dir(to).expect("writable");
    for entry in fs::read_dir(from).expect("it was written") {
        let entry = entry.expect("readable");
        fs::copy(entry.path(), format!("{to}/{}", entry.file_name().display())).expect("a file");
    }
}

/// A file without how long runs took, which is no result.
fn bytes(path: &str) -> String {
    let text = fs::read_to_string(path).expect("it was written");
    if path.ends_with("runs.csv") && text.starts_with("seed,trace_hash,sim_s,wall_s,") {
        let lines = text.lines().map(|line| {
            let fields = line.split(',').enumerate().filter(|(index, _)| *index != 3);
            fields.map(|(_, field)| field).collect::<Vec<_>>().join(",")
        });
        return lines.collect::<Vec<_>>().join("\n");
    }
    text.lines().filter(|line| !line.contains("\"wall_s\"")).collect::<Vec<_>>().join("\n")
}

/// Runs what is in `home`, moves only the folder of results, runs it there, and compares all files of both.
fn travels(name: &str, files: &[(&str, &str)], scenario: &str, sets: &[&str], copies: &[&str]) {
    let folder = Folder::new(name);
    for part in ["home", "home/more", "away"] {
        fs::create_dir(folder.path(part)).expect("writable");
    }
    for (file, contents) in files {
        folder.write(&format!("home/{file}"), contents);
    }
    let run = |scenario: &str, sets: &[&str], out: &str, store: &str| {
        let [out, store] = [out, store].map(|name| folder.path(name));
        let mut line = vec!["run", scenario, "--quiet", "--out", &out, "--store", &store];
        line.extend(sets.iter().flat_map(|set| ["--set", set]));
        succeed(&line);
    };
    run(&folder.path(&format!("home/{scenario}")), sets, "home/out", "store");
    copy(&folder.path("home/out"), &folder.path("away/copy"));
    fs::remove_dir_all(folder.path("home")).expect("ours");
    run(&folder.path("away/copy/scenario.toml"), &[], "again", "other");
    let mut wanted = ["runs.csv", "scenario.toml", "summary.json"].to_vec();
    wanted.extend(copies);
    wanted.sort_unstable();
    for place in ["away/copy", "again"] {
        let entries = fs::read_dir(folder.path(place)).expect("it was written");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("ASCII");
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("readable"))).collect();
        names.sort();
        assert_eq!(names, wanted, "{place}");
    }
    for file in wanted {
        let [copy, again] =
            ["away/copy", "again"].map(|place| folder.path(&format!("{place}/{file}")));
        assert_eq!(bytes(&copy), bytes(&again), "{file}");
        let own = folder.path("");
        assert!(!bytes(&copy).contains(&own), "{file} names a folder of this machine");
    }
}

#[test]
fn a_scenario_travels_with_its_places_links_and_events() {
    let parts = "[radio]\nmedium = \"link-table\"\nfile = \"more/links.csv\"\n\
                 [[event]]\nkind = \"file\"\nfile = \"events.csv\"\n";
    let kind = "kind = \"line\"\nnodes = 3\nspacing_m = 30.0";
    let scenario = line_of_three(2, parts);
    assert!(scenario.contains(kind));
    let scenario = scenario.replace(kind, "kind = \"positions\"\nfile = \"places.csv\"");
    let files = [
        ("s.toml", scenario.as_str()),
        ("places.csv", PLACES),
        ("more/links.csv", LINKS),
        ("events.csv", EVENTS),
    ];
    travels("artefact-one", &files, "s.toml", &[], &["places.csv", "links.csv", "events.csv"]);
}

#[test]
fn a_sweep_over_files_of_one_name_travels_with_both() {
    let kind = "kind = \"line\"\nnodes = 3\nspacing_m = 30.0";
    let sweep = "[sweep]\n\"topology.file\" = [\"places.csv\", \"more/places.csv\"]\n\"mac.retries\" = [3, 5]\n";
    let scenario = line_of_three(1, sweep);
    let scenario = scenario.replace(kind, "kind = \"positions\"\nfile = \"places.csv\"");
    let files =
        [("s.toml", scenario.as_str()), ("places.csv", PLACES), ("more/places.csv", NARROW)];
    travels("artefact-sweep", &files, "s.toml", &[], &["places.csv", "2-places.csv"]);
}

#[test]
fn a_bare_list_of_links_travels() {
    let files = [("street.csv", LINKS)];
    let short = ["seeds=1", "duration=6min", "warmup=3min", "traffic.start=2min"];
    travels("artefact-links", &files, "street.csv", &short, &["street.csv"]);
}
