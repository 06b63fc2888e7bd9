//! `lowmesh completions` and `lowmesh man`: every verb is in both.

mod folder;

use folder::{Folder, lowmesh, stderr, stdout};

/// The verbs that the command itself lists.
fn verbs() -> Vec<String> {
    let help = stdout(&lowmesh(&["--help"]));
    let list = help.split("Commands:\n").nth(1).expect("a list of verbs");
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_verb_is_completed_in_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = lowmesh(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let script = stdout(&output);
        for verb in verbs() {
            assert!(script.contains(&verb), "{verb} in {shell}");
        }
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = Folder::new("man");
    let output = lowmesh(&["man", &folder.path("")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(verbs().contains(&"observe".to_owned()));
    let mut pages = vec!["lowmesh.1".to_owned()];
    for verb in verbs() {
        let name = format!("lowmesh-{verb}.1");
        let begin = format!(".TH lowmesh-{verb} 1");
        assert!(folder.read(&name).contains(&begin), "{verb}");
        pages.push(name);
    }
    pages.sort();
    assert_eq!(folder.names(), pages);
    assert!(folder.read("lowmesh.1").contains("lowmesh\\-observe(1)"));
}

#[test]
fn a_folder_that_cannot_be_made_ends_with_1() {
    let folder = Folder::new("man-file");
    let file = folder.write("file", "in the way");
    let output = lowmesh(&["man", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: cannot write "), "{}", stderr(&output));
}
