//! The build script of `lowmesh`: finds the commit from which the program is built, for reports and `--version`.
//!
//! `LOWMESH_COMMIT` names it where there is no repository, as for an archive of the sources. Nothing depends on it but
//! what people read: runs are named by the sources themselves.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of the repository the program is built from.
const SOURCES: [&str; 5] = ["Cargo.lock", "Cargo.toml", "crates", "papers", "scenarios"];

fn main() {
    println!("cargo::rerun-if-env-changed=LOWMESH_COMMIT");
    let given = env::var("LOWMESH_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| of_repository(&root()?)).unwrap_or_default();
    println!("cargo::rustc-env=LOWMESH_COMMIT={commit}");
}

/// The folder of the workspace.
fn root() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    package.join("../..").canonicalize().ok()
}

/// The commit of the repository in `root`, with `-dirty` behind it if sources of the program differ; none if there is no
/// repository, or if it is another one that only holds the folder.
fn of_repository(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let hash = git(root, &["rev-parse", "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(SOURCES);
    let clean = git(root, &status)?.is_empty();
    watch(root);
    Some(if clean { hash } else { hash + "-dirty" })
}

/// Has this script run again when the sources change, or the commit.
fn watch(root: &Path) {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = [Some("HEAD".to_owned()), Some("packed-refs".to_owned()), branch];
    let inside = names.into_iter().flatten();
    let inside = inside.filter_map(|name| git(root, &["rev-parse", "--git-path", &name]));
    for path in SOURCES.map(str::to_owned).into_iter().chain(inside) {
        // A path that is not there would have the script run each time.
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// What git says, without the line end; none if it fails or is not installed.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Looking must not write: another git may be at work.
    command.arg("--no-optional-locks").args(args).current_dir(root);
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
