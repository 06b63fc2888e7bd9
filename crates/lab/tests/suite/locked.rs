//! Builds that ignore the lock file are found by the command line of their cargo.

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

#[test]
fn an_unlocked_build_has_an_id_that_no_other_build_has() {
    let sources = "0123456789abcdef0123456789abcdef";
    let id = own_id(sources, 1);
    assert!(id.parse::<lowmesh_lab::build::BuildId>().is_ok());
    assert_ne!(id, own_id(sources, 2));
    assert_ne!(id, own_id("another", 1));
}
