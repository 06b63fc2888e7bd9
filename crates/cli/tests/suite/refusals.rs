//! What cannot be run is refused before anything is written: one error that says where, exit code 2.

use crate::folder::{Folder, lowmesh, stderr, stdout};

/// Runs `scenario` with every sink there is; returns the error without the folder's path.
fn refused(folder: &Folder, scenario: &str, sets: &[&str]) -> String {
    let before = folder.names();
    let (out, pcap, trace) = (folder.path("out"), folder.path("x.pcap"), folder.path("x.jsonl"));
    let mut args = vec!["run", scenario, "--out", &out, "--pcap", &pcap, "--trace", &trace];
    for set in sets {
        args.extend(["--set", set]);
    }
    let output = lowmesh(&args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert_eq!(folder.names(), before, "something was written");
    let errors = stderr(&output);
    let is_error = |line: &&str| line.starts_with("error: ");
    assert_eq!(errors.lines().filter(is_error).count(), 1, "{errors}");
    errors.strip_prefix("error: ").expect("the error comes first").replace(&folder.path(""), "")
}

/// A scenario of two nodes whose radio is `medium` from `file`.
fn measured(folder: &Folder, medium: &str, file: &str, contents: &str) -> String {
    folder.write(file, contents);
    let text = format!(
        "name = \"measured\"\n[topology]\nkind = \"table\"\nnodes = 2\n\
         [radio]\nmedium = \"{medium}\"\nfile = \"{file}\"\n"
    );
    folder.write("measured.toml", text)
}

const HEADER: &str = "{\"location\": \"here\", \"node_count\": 2, \"channels\": [11], \
                      \"start_date\": \"2018-01-11T16:32:22.0\"}";

#[test]
fn a_scenario_that_is_no_toml_is_refused_with_its_line() {
    let folder = Folder::new("syntax");
    let file = folder.write("broken.toml", "name = \"x\"\n[topology\nkind = \"grid\"\n");
    let error = refused(&folder, &file, &[]);
    assert!(error.starts_with("broken.toml:2:10: not valid TOML: "), "{error}");
}

#[test]
fn a_value_out_of_its_bounds_is_refused_with_its_key() {
    let folder = Folder::new("bounds");
    let file = folder.write("x.toml", "name = \"x\"\n\n[mac]\nqueue_frames = 0\n");
    let error = refused(&folder, &file, &[]);
    assert!(error.starts_with("x.toml:4:16: mac.queue_frames = 0: "), "{error}");
    let caret = "\n  4 | queue_frames = 0\n    |                ^\n";
    assert!(error.contains(caret), "{error}");
}

#[test]
fn a_trace_without_its_columns_is_refused_with_its_line() {
    let folder = Folder::new("k7-columns");
    let text = format!("{HEADER}\ndatetime,src,channel\n2018-01-11T16:32:22.0,0,11\n");
    let file = measured(&folder, "k7", "wrong.k7", &text);
    let error = refused(&folder, &file, &[]);
    assert!(error.starts_with("wrong.k7:2:"), "{error}");
}

#[test]
fn a_trace_with_a_word_for_a_number_is_refused_with_line_and_column() {
    let folder = Folder::new("k7-word");
    let columns = "datetime,src,dst,channel,mean_rssi,pdr,tx_count";
    let row = "2018-01-11T16:32:22.0,0,1,11,loud,1.0,100";
    let file = measured(&folder, "k7", "wrong.k7", &format!("{HEADER}\n{columns}\n{row}\n"));
    let error = refused(&folder, &file, &[]);
    assert!(error.starts_with("wrong.k7:3:30: `loud`"), "{error}");
}

#[test]
fn a_trace_that_is_not_there_is_refused_by_name() {
    let folder = Folder::new("k7-none");
    let file = measured(&folder, "k7", "some.k7", "");
    let error = refused(&folder, &file, &["radio.file=\"other.k7\""]);
    assert!(error.starts_with("other.k7: "), "{error}");
}

#[test]
fn a_table_of_links_without_its_columns_is_refused_with_its_line() {
    let folder = Folder::new("csv");
    let file = measured(&folder, "link-table", "links.csv", "src;dst;pdr\n0;1;1.0\n");
    let error = refused(&folder, &file, &[]);
    let told = "links.csv:1:1: expected header `src,dst,pdr`, found `src;dst;pdr`; ";
    assert!(error.starts_with(told), "{error}");
}

#[test]
fn places_with_a_column_too_many_are_refused_with_line_and_column() {
    let folder = Folder::new("places");
    folder.write("places.csv", "x_m,y_m\n0,0\n1,2,3\n");
    let text = "name = \"x\"\n[topology]\nkind = \"positions\"\nfile = \"places.csv\"\n";
    let file = folder.write("x.toml", text);
    let error = refused(&folder, &file, &[]);
    assert!(error.starts_with("places.csv:3:5: `3` follows the last field"), "{error}");
}

#[test]
fn a_table_of_another_number_of_nodes_is_refused_with_both_numbers() {
    let folder = Folder::new("count");
    let text =
        "name = \"x\"\n[topology]\nkind = \"table\"\nnodes = 7\n[radio]\nmedium = \"grenoble\"\n";
    let file = folder.write("x.toml", text);
    let error = refused(&folder, &file, &[]);
    assert!(error.contains("50") && error.contains('7'), "{error}");
}

#[test]
fn an_output_folder_that_exists_is_left_as_it_is() {
    let folder = Folder::new("exists");
    std::fs::create_dir(folder.path("out")).expect("the folder is writable");
    folder.write("out/precious.txt", "mine");
    let error = refused(&folder, "grid-25", &[]);
    assert_eq!(error.lines().next(), Some("out exists already; results go into a new folder"));
    assert_eq!(folder.read("out/precious.txt"), "mine");
}
