//! Builds that ignore the lock file are found by the command line of their cargo.

use std::path::Path;

#[allow(dead_code, reason = "the build script alone asks for its own process")]
#[path = "../../build/locked.rs"]
mod build;

use build::{ignores_lock, own_id};

fn ignores(line: &str) -> bool {
    ignores_lock(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn only_an_installation_without_locked_ignores_the_lock_file() {
    assert!(ignores("/home/a/.cargo/bin/cargo install --path crates/cli"));
    assert!(ignores("cargo +stable --offline install lowmesh"));
    for line in [
        "cargo install --locked --path crates/cli",
        "cargo install --path crates/cli --frozen",
        "cargo build --release",
        "cargo run -- install",
        "bash install",
        "cargo",
    ] {
        assert!(!ignores(line), "{line}");
    }
}

/// The lines of the pages in a folder, and of the folders in it.
fn lines(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("readable").path();
        let is_page = path.extension().is_some_and(|ending| ending == "md" || ending == "yml");
        if path.is_dir() && !path.ends_with("target") {
            lines(&path, found);
        } else if is_page {
            let text = std::fs::read_to_string(&path).expect("text");
            found.extend(text.lines().map(str::to_owned));
        }
    }
}

#[test]
fn every_page_installs_the_versions_of_the_lock_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["docs", "examples", ".github"] {
        lines(&root.join(folder), &mut found);
    }
    for page in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect(page);
        found.extend(text.lines().map(str::to_owned));
    }
    let installs = found.iter().filter(|line| line.contains("cargo install --"));
    let installs: Vec<&String> = installs.collect();
    assert!(installs.len() >= 2, "{installs:?}");
    for line in installs {
        assert!(!ignores(&line[line.find("cargo").unwrap_or_default()..]), "{line}");
    }
}

#[test]
fn an_unlocked_build_has_an_id_that_no_other_build_has() {
    let sources = "0123456789abcdef0123456789abcdef";
    let id = own_id(sources, 1);
    assert!(id.parse::<lowmesh_lab::build::BuildId>().is_ok());
    assert_ne!(id, own_id(sources, 2));
    assert_ne!(id, own_id("another", 1));
}
