//! What the built command prints where, and the code it ends with.

use crate::folder::{lowmesh, stderr, stdout};

#[test]
fn listing_scenarios_ends_with_0() {
    let output = lowmesh(&["scenarios"]);
    assert_eq!(output.status.code(), Some(0));
    let names: Vec<String> = stdout(&output)
        .lines()
        .filter_map(|line| Some(line.split(' ').next()?.to_owned()))
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(
        names,
        [
            "building-20",
            "grenoble-50",
            "grenoble-t",
            "grid-25",
            "grid-25-failures",
            "grid-64",
            "lille-50",
            "multicast-grid",
            "nb-iot",
            "office-10",
            "pister-26",
            "pister-64",
            "wilab-2x10",
            "wilab-40"
        ]
    );
}

#[test]
fn the_list_is_also_json() {
    let output = lowmesh(&["scenarios", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["scenarios"][0]["name"], "building-20");
}

#[test]
fn show_prints_a_scenario_that_can_be_shown_again() {
    let output = lowmesh(&["show", "grid-64", "--set", "traffic.period=2s"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.contains("\nperiod = \"2s\"  # Time between two requests of a node.\n"), "{text}");
    assert!(
        text.contains("  # Congestion control. Random first timeout, doubled (RFC 7252 s4.8).\n"),
        "{text}"
    );
    let file = std::env::temp_dir().join(format!("lowmesh-show-{}.toml", std::process::id()));
    std::fs::write(&file, &text).expect("the system's folder for temporary files is writable");
    let again = lowmesh(&["show", file.to_str().expect("ASCII")]);
    _ = std::fs::remove_file(&file);
    assert_eq!(stdout(&again), text);
}

#[test]
fn wrong_usage_ends_with_2_and_says_nothing_on_stdout() {
    for args in [
        &[][..],
        &["fly"],
        &["run"],
        &["run", "grid-25", "--seeds", "0"],
        &["run", "grid-2"],
        &["run", "grid-25", "--set", "mac.retires=2"],
        &["show", "none.toml"],
    ] {
        let output = lowmesh(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_ne!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn an_error_is_one_line_with_a_hint() {
    let output = lowmesh(&["run", "grid-2"]);
    assert_eq!(
        stderr(&output),
        "error: there is no built-in scenario and no file `grid-2`; did you mean `grid-25`?\n\
         hint: `lowmesh scenarios` lists the built-in ones\n"
    );
}

#[test]
fn a_folder_that_exists_is_refused_with_2() {
    let folder = std::env::temp_dir();
    let output = lowmesh(&["run", "grid-25", "--out", folder.to_str().expect("ASCII")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("exists already"), "{}", stderr(&output));
}

#[test]
fn a_file_that_cannot_be_written_ends_with_1() {
    let output = lowmesh(&["run", "grid-25", "--pcap", "no/such/folder/x.pcap"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: cannot write no/such/folder/x.pcap: "));
}

#[test]
fn messages_have_colours_on_request_only() {
    let refused = |variables: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        command.args(["run", "grid-2"]).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.envs(variables.iter().map(|name| (name, "1")));
        stderr(&command.output().expect("the command was built"))
    };
    let plain = refused(&[]);
    assert!(plain.starts_with("error: ") && !plain.contains('\u{1b}'), "{plain}");
    let coloured = refused(&["CLICOLOR_FORCE"]);
    assert!(coloured.contains("\u{1b}[31merror:\u{1b}[0m "), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[36mhint:\u{1b}[0m "), "{coloured:?}");
    assert_eq!(refused(&["NO_COLOR", "CLICOLOR_FORCE"]), plain);
}
