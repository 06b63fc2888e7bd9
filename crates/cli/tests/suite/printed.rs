//! Every command that the program prints runs as it is printed, pasted into a shell.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use crate::folder::{Folder, line_of_three, stderr, stdout};

/// Runs a command line in the folder as a user does who pastes it; runs are kept there too.
fn paste(folder: &Folder, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_lowmesh")).parent().expect("it has a folder");
    let before = env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(program.to_owned()).chain(env::split_paths(&before));
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder.path("")).env_remove("LOWMESH_STORE");
    shell.env("PATH", env::join_paths(places).expect("no colon in a path"));
    shell.env("XDG_DATA_HOME", folder.path("data")).output().expect("there is a shell")
}

/// The stdout of a command line that must succeed.
fn pasted(folder: &Folder, line: &str) -> String {
    let output = paste(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}\n{}", stderr(&output));
    stdout(&output)
}

/// The commands of a report, in their order.
fn commands(html: &str) -> Vec<String> {
    let marked = html.split("<code class=\"cmd\">").skip(1);
    let text = |part: &str| {
        let words = part.split("</code>").next().unwrap_or_default();
        words
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
    };
    marked.map(text).collect()
}

#[test]
fn every_command_of_the_report_of_a_sweep_runs() {
    let folder = Folder::new("printed-sweep");
    let sweep =
        "[sweep]\nzip = true\n\"mac.retries\" = [3, 5]\n\"traffic.period\" = [\"5s\", \"10s\"]\n";
    folder.write("it's a line.toml", line_of_three(2, sweep));
    let run = "lowmesh run \"it's a line.toml\" --set 'mac.hopping=[15, 20]' --quiet";
    pasted(&folder, &format!("{run} --store 'my runs' --report page.html"));
    let commands = commands(&folder.read("page.html"));
    // Each point, and each of its runs.
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in &commands {
        let one = pasted(&folder, command);
        assert!(one.contains("\n tdr "), "{command}\n{one}");
    }
}

#[test]
fn commands_of_the_report_of_a_search_run() {
    let folder = Folder::new("printed-tune");
    folder.write("line.toml", line_of_three(2, ""));
    let tune = "lowmesh tune line.toml --timer cocoa --budget 30 --quiet --store 'my runs'";
    pasted(&folder, &format!("{tune} --report page.html"));
    let commands = commands(&folder.read("page.html"));
    assert!(commands[0].starts_with("lowmesh tune "), "{}", commands[0]);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands.iter().step_by(7) {
        pasted(&folder, command);
    }
}

#[test]
fn the_evidence_of_claims_is_shown_again_by_the_commands_that_are_printed() {
    let folder = Folder::new("printed-claims");
    // One comparison of two sides, where the key is also set by the publication, and one formula.
    let line = "lowmesh reproduce ishaq2016 --quick --claim S002-39 --claim S002-01 --quiet";
    let text = pasted(&folder, &format!("{line} --json --report page.html"));
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let of_claims = told["claims"].as_array().expect("a list").iter();
    let of_claims: Vec<&str> = of_claims.filter_map(|claim| claim["command"].as_str()).collect();
    let page = commands(&folder.read("page.html"));
    assert!(of_claims.iter().all(|command| page.iter().any(|other| other == command)));
    let sides = of_claims.iter().find(|command| command.contains(" && lowmesh compare "));
    let table = pasted(&folder, sides.expect("a comparison"));
    assert!(table.contains(" difference "), "{table}");
    for command in page.iter().filter(|command| !command.contains(" && ")).step_by(9) {
        pasted(&folder, command);
    }
}

#[test]
fn files_of_keys_are_printed_as_a_shell_passes_them_on() {
    let folder = Folder::new("printed-keys");
    for (kind, words) in [
        ("psk", vec!["@my key"]),
        ("oscore", vec!["my key-client.conf", "my key-server.conf"]),
        ("tls --host localhost", vec!["my key-cert.pem", "my key-key.pem"]),
        ("group --member a --member b", vec!["my key-a.conf", "my key-b.conf"]),
    ] {
        let told = stderr(&paste(&folder, &format!("lowmesh keygen {kind} 'my key'")));
        let lines = told.lines().filter_map(|line| line.split_once(": lowmesh "));
        let lines: Vec<&str> = lines.map(|(_, words)| words).collect();
        assert_eq!(lines.len(), 2, "{told}");
        let passed: String =
            lines.iter().map(|line| pasted(&folder, &format!("printf '%s\\n' {line}"))).collect();
        for word in words {
            assert!(passed.lines().any(|line| line == word), "{kind}: {passed}");
        }
    }
}
