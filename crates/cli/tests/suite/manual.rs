//! `lowmesh completions` and `lowmesh man`: every verb is in both.

use crate::folder::{Folder, lowmesh, stderr, stdout};

/// The verbs that the command itself lists.
fn verbs() -> Vec<String> {
    verbs_of(&[])
}

/// Every verb, and every verb in it.
fn every_verb() -> Vec<Vec<String>> {
    let within = |verb: String| {
        let inner = verbs_of(&[&verb]).into_iter().map(|name| vec![verb.clone(), name]);
        let inner: Vec<Vec<String>> = inner.collect();
        std::iter::once(vec![verb.clone()]).chain(inner).collect::<Vec<_>>()
    };
    verbs().into_iter().flat_map(within).collect()
}

/// The verbs within a verb, by the list of its help.
fn verbs_of(verb: &[&str]) -> Vec<String> {
    let help = stdout(&lowmesh(&[verb, &["--help"]].concat()));
    let Some(list) = help.split("Commands:\n").nth(1) else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// What a shell's script asks for the last of these words; each candidate without its description.
fn completed(shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let last = (words.len() - 1).to_string();
    command.arg("--").args(words).env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", last);
    let output = command.env("_CLAP_IFS", "\n").output().expect("the command was built");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let candidate = |line: &str| line.split(['\t', ':']).next().unwrap_or_default().to_owned();
    stdout(&output).lines().map(candidate).collect()
}

#[test]
fn every_verb_is_completed_in_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = lowmesh(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("lowmesh"), "{shell}");
    }
    for shell in ["bash", "fish", "zsh"] {
        let found = completed(shell, &["lowmesh", ""]);
        for verb in verbs() {
            assert!(found.contains(&verb), "{verb} in {shell}: {found:?}");
        }
    }
}

#[test]
fn values_are_completed_in_bash_zsh_and_fish() {
    for shell in ["bash", "fish", "zsh"] {
        let all = |words: &[&str]| completed(shell, words).join(" ");
        assert_eq!(
            all(&["lowmesh", "run", "grid-"]),
            "grid-25 grid-25-failures grid-64",
            "{shell}"
        );
        assert_eq!(all(&["lowmesh", "run", "x", "--set", "rpl.mo"]), "rpl.mode=", "{shell}");
        let modes = all(&["lowmesh", "run", "x", "--set", "rpl.mode=n"]);
        assert_eq!(modes, "rpl.mode=non-storing", "{shell}");
        assert_eq!(all(&["lowmesh", "get", "--cc", "fas"]), "fasor", "{shell}");
        assert_eq!(all(&["lowmesh", "reproduce", "len"]), "lenders2021", "{shell}");
    }
}

#[test]
fn bash_completes_with_the_script_that_is_printed() {
    let folder = Folder::new("bash");
    let script = folder.write("script", stdout(&lowmesh(&["completions", "bash"])));
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_lowmesh")).parent().expect("a folder");
    let line = format!(
        "PATH={}:$PATH; source {script}; COMP_WORDS=(lowmesh run gri); COMP_CWORD=2; COMP_TYPE=9; \
         _clap_complete_lowmesh lowmesh gri run 2>/dev/null; echo \"${{COMPREPLY[*]}}\"",
        bin.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &line]).output();
    let Ok(output) = output else { return };
    let words = stdout(&output).replace('\u{b}', " ");
    assert_eq!(
        words.split_whitespace().collect::<Vec<_>>(),
        ["grid-25", "grid-25-failures", "grid-64"]
    );
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = Folder::new("man");
    let output = lowmesh(&["man", &folder.path("")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(verbs().contains(&"observe".to_owned()));
    let mut pages = vec!["lowmesh.1".to_owned()];
    for verb in every_verb() {
        let name = verb.join("-");
        let page = folder.read(&format!("lowmesh-{name}.1"));
        assert!(page.contains(&format!(".TH lowmesh-{name} 1")), "{name}");
        for section in ["NAME", "SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\""] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{section} of {name}: {page}");
        }
        pages.push(format!("lowmesh-{name}.1"));
    }
    pages.sort();
    assert_eq!(folder.names(), pages);
    assert!(folder.read("lowmesh.1").contains("lowmesh\\-observe(1)"));
}

#[test]
fn the_help_of_every_verb_ends_with_examples_and_exit_status() {
    for verb in std::iter::once(Vec::new()).chain(every_verb()) {
        let mut words: Vec<&str> = verb.iter().map(String::as_str).collect();
        words.push("--help");
        let help = stdout(&lowmesh(&words));
        let (_, rest) = help.split_once("\nEXAMPLES\n").unwrap_or_else(|| panic!("{help}"));
        let (examples, exits) = rest.split_once("\nEXIT STATUS\n").expect("after the examples");
        assert!(examples.contains("      lowmesh "), "{examples}");
        assert!(exits.starts_with("  0   success\n"), "{exits}");
    }
}

#[test]
fn help_and_lists_fit_80_columns() {
    let within = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        let output = command.args(words).env("COLUMNS", "80").output().expect("it was built");
        let text = stdout(&output);
        assert!(!text.is_empty(), "{words:?}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
    };
    for verb in std::iter::once(Vec::new()).chain(every_verb()) {
        let words: Vec<&str> = verb.iter().map(String::as_str).collect();
        within(&[&words[..], &["--help"]].concat());
        within(&[&words[..], &["-h"]].concat());
    }
    within(&["scenarios"]);
    within(&["reproduce"]);
}

#[test]
fn the_manual_lists_every_exit_status() {
    let manual = include_str!("../../../../docs/topics/results.md");
    let help = stdout(&lowmesh(&["--help"]));
    let (_, exits) = help.split_once("\nEXIT STATUS\n").expect("a list");
    for line in exits.lines().take_while(|line| !line.is_empty()) {
        let (code, meaning) = line.trim().split_once(' ').expect("code and meaning");
        let row = format!("| {code} | {}", meaning.trim());
        assert!(manual.contains(&row), "{row} is missing in results.md");
    }
}

#[test]
fn a_folder_that_cannot_be_made_ends_with_1() {
    let folder = Folder::new("man-file");
    let file = folder.write("file", "in the way");
    let output = lowmesh(&["man", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: cannot write "), "{}", stderr(&output));
}
