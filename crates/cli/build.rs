//! The build script of `lowmesh`: finds the commit of the sources, for reports and `--version`.
//!
//! Without a repository, as in an archive of the sources, `LOWMESH_COMMIT` names the commit. Only people read it: the names
//! of runs depend on the sources themselves.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of the repository that the program is built from.
const SOURCES: [&str; 3] = ["Cargo.lock", "Cargo.toml", "crates"];

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

/// The commit of the repository in `root`, with a final `-dirty` if sources of the program differ. `None` without a
/// repository, or if `root` is only a folder in another one.
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

/// Makes cargo run this script again when the sources or the commit change.
fn watch(root: &Path) {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = [Some("HEAD".to_owned()), Some("packed-refs".to_owned()), branch];
    let inside = names.into_iter().flatten();
    let inside = inside.filter_map(|name| git(root, &["rev-parse", "--git-path", &name]));
    for path in SOURCES.map(str::to_owned).into_iter().chain(inside) {
        // With a path that does not exist cargo would run the script each time.
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// The output of git without its line end; `None` if it fails or is not installed.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Another git may be running, so this one must not write.
    command.arg("--no-optional-locks").args(args).current_dir(root);
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
