//! Which files can change the result of a stage, and one digest over them.
//!
//! A stage names crates and paths. The crates bring what they depend on; the lock file, the profiles and the source of
//! the stage itself always count. Tests and pages of crates do not: they change no program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xxhash_rust::xxh3::Xxh3;

use crate::metadata::Package;
use crate::process;

/// Where changes reach a stage. Whatever a stage reads beside its own source must be here: a file that is missing lets the
/// gate leave out a stage that would fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Crates of the workspace, each with all that it depends on.
    pub crates: &'static [&'static str],
    /// Other files and folders.
    pub paths: &'static [&'static str],
}

/// Files that reach every stage: versions, profiles, and how a stage starts programs.
const ALWAYS: [&str; 5] = [
    "Cargo.lock",
    "Cargo.toml",
    ".cargo/config.toml",
    "xtask/src/process.rs",
    "xtask/src/product.rs",
];

/// Folders of a package that no program is built from.
const TESTS: [&str; 4] = ["benches", "examples", "proptest-regressions", "tests"];

/// What cargo leaves in a folder outside of the workspace, whose own lock file is in [`ALWAYS`]: a fresh clone lacks it.
const LEFT_BY_CARGO: [&str; 2] = ["Cargo.lock", "target"];

/// The digest over all files that reach the stage with this command.
pub fn digest(reach: Reach, command: &str, packages: &[Package]) -> Result<String> {
    let root = process::root();
    let mut files = BTreeSet::new();
    for folder in closure(reach.crates, packages)? {
        for file in files_below(&folder)? {
            let place = file.strip_prefix(&folder).context("a file lies in its folder")?;
            if !is_test(place) {
                files.insert(file);
            }
        }
    }
    let module = command.replace('-', "_");
    let own = [format!("xtask/src/{module}.rs"), format!("xtask/src/{module}")];
    let own = own.iter().map(String::as_str).filter(|path| root.join(path).exists());
    for path in reach.paths.iter().copied().chain(ALWAYS).chain(own) {
        files.extend(files_below(&root.join(path))?);
    }
    let mut hash = Xxh3::new();
    for file in files {
        let place = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for part in [place.as_bytes(), &text] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(format!("{:032x}", hash.digest128()))
}

/// The folders of these crates and of all crates of the workspace that they depend on.
pub fn closure(names: &[&str], packages: &[Package]) -> Result<BTreeSet<PathBuf>> {
    let mut waiting: Vec<&str> = names.to_vec();
    let (mut seen, mut folders) = (BTreeSet::new(), BTreeSet::new());
    while let Some(name) = waiting.pop() {
        if !seen.insert(name) {
            continue;
        }
        let package = packages.iter().find(|package| package.name == name);
        let package = package.with_context(|| format!("the workspace has no crate {name}"))?;
        folders.insert(package.folder.clone());
        let own = package.dependencies.iter().filter(|one| one.ours && !one.dev);
        waiting.extend(own.map(|one| one.name.as_str()));
    }
    Ok(folders)
}

/// Whether a file of a package changes no program.
fn is_test(place: &Path) -> bool {
    let inside = place.iter().next().is_some_and(|first| TESTS.iter().any(|one| first == *one));
    let is_page = place.extension().is_some_and(|ending| ending == "md");
    let in_tests = place.iter().any(|part| part == "tests" || part == "tests.rs");
    inside || is_page || in_tests
}

/// The file, or all files below the folder.
fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    ensure!(path.exists(), "{} does not exist", path.display());
    let (mut waiting, mut files) = (vec![path.to_owned()], Vec::new());
    while let Some(path) = waiting.pop() {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        let entries =
            fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && !LEFT_BY_CARGO.contains(&&*name) {
                waiting.push(entry.path());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;

    const RADIO: Reach = Reach { crates: &["sim"], paths: &["docs/figures"] };

    #[test]
    fn what_cargo_leaves_beside_a_program_is_no_file_of_it() {
        let folder = std::env::temp_dir().join(format!("xtask-reach-{}", std::process::id()));
        for place in ["Cargo.toml", "Cargo.lock", "target/debug/program", "src/main.rs"] {
            let file = folder.join(place);
            fs::create_dir_all(file.parent().expect("it has a folder")).expect("writable");
            fs::write(file, "").expect("writable");
        }
        let mut files = files_below(&folder).expect("it is there");
        files.sort();
        fs::remove_dir_all(&folder).expect("its own");
        assert_eq!(files, ["Cargo.toml", "src/main.rs"].map(|place| folder.join(place)));
    }

    #[test]
    fn a_crate_brings_what_it_depends_on_but_no_dev_dependency() {
        let packages = metadata::packages().expect("a workspace");
        let folders = closure(&["lowpan"], &packages).expect("a crate");
        let names: Vec<_> =
            folders.iter().filter_map(|folder| folder.file_name()?.to_str()).collect();
        assert!(names.contains(&"lowpan") && names.contains(&"units"), "{names:?}");
        assert!(!names.contains(&"testkit") && !names.contains(&"sim"), "{names:?}");
        assert!(closure(&["no-such-crate"], &packages).is_err());
    }

    #[test]
    fn a_digest_is_repeatable_and_differs_between_reaches() {
        let packages = metadata::packages().expect("a workspace");
        let of = |reach, command| digest(reach, command, &packages).expect("readable");
        assert_eq!(of(RADIO, "traces"), of(RADIO, "traces"));
        assert_ne!(of(RADIO, "traces"), of(Reach { paths: &[], ..RADIO }, "traces"));
        assert_ne!(of(RADIO, "traces"), of(RADIO, "swarm"), "the stage itself counts");
    }

    #[test]
    fn tests_and_pages_of_a_package_do_not_count() {
        for place in ["tests/suite/main.rs", "src/tcp/tests.rs", "src/tests/pair.rs", "README.md"] {
            assert!(is_test(Path::new(place)), "{place}");
        }
        for place in ["src/lib.rs", "Cargo.toml", "data/links.csv", "build/main.rs"] {
            assert!(!is_test(Path::new(place)), "{place}");
        }
    }
}
