//! The hash that identifies a build: the sources that count, and its independence of the machine.

#[path = "../../build/sources/mod.rs"]
mod build;

use std::fs;
use std::path::{Path, PathBuf};

use lowmesh_lab::build::BuildId;

/// A workspace of four packages in a temporary folder, removed on drop.
struct Tree(PathBuf);

/// The packages of the lock file: name, version, checksum (none in the workspace) and dependencies.
const LOCKED: [(&str, &str, &str, &[&str]); 8] = [
    ("air", "0.1.0", "", &["maths 1.0.0"]),
    ("alien", "3.0.0", "cc", &[]),
    ("lab", "0.1.0", "", &["air", "alien", "timer"]),
    ("maths", "1.0.0", "aa", &["numbers"]),
    ("maths", "2.0.0", "dd", &[]),
    ("net", "0.1.0", "", &["maths 2.0.0"]),
    ("numbers", "1.0.0", "bb", &[]),
    ("timer", "0.1.0", "", &[]),
];

fn lock() -> String {
    let package = |(name, version, checksum, dependencies): (&str, &str, &str, &[&str])| {
        let source = match checksum {
            "" => String::new(),
            sum => format!("source = \"registry\"\nchecksum = \"{sum}\"\n"),
        };
        format!(
            "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}dependencies = {dependencies:?}\n"
        )
    };
    "version = 4\n".to_owned() + &LOCKED.map(package).concat()
}

impl Tree {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lowmesh-sources-{name}-{}", std::process::id()));
        let tree = Self(path);
        tree.write(
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/*\"]\n[workspace.package]\nedition = \"2024\"\n\
             [workspace.dependencies]\nair = { path = \"crates/air\" }\ntimer = { path = \"crates/timer\" }\n\
             maths = { version = \"1\", default-features = false }\n",
        );
        tree.write("Cargo.lock", &lock());
        let package = |name: &str, rest: &str| {
            let head = format!("[package]\nname = \"{name}\"\nedition.workspace = true\n{rest}");
            tree.write(&format!("crates/{name}/Cargo.toml"), &head);
            tree.write(&format!("crates/{name}/src/lib.rs"), "pub mod model;\n");
        };
        package(
            "lab",
            "[dependencies]\nair.workspace = true\n[dev-dependencies]\nalien = \"3\"\n\
             [target.'cfg(unix)'.dependencies]\ntimer.workspace = true\n",
        );
        package("air", "[dependencies]\nmaths = { workspace = true, features = [\"fast\"] }\n");
        package("timer", "");
        package("net", "[dependencies]\nair.workspace = true\nmaths = \"2\"\n");
        tree.write("crates/timer/src/rto.rs", "pub const RTO: u32 = 2;\n\n// s4.8\n");
        tree.write("crates/air/data/links.csv", "a,b\n1,2\n");
        tree
    }

    fn write(&self, place: &str, text: &str) {
        let path = self.0.join(place);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    fn edit(&self, place: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.0.join(place)).expect("written before");
        assert!(text.contains(from), "{place} has {from}");
        self.write(place, &text.replace(from, to));
    }

    fn lab(&self) -> PathBuf {
        self.0.join("crates/lab")
    }

    fn id(&self) -> String {
        build::of(&self.lab()).unwrap_or_else(|why| panic!("{why}")).id
    }

    /// Whether `change` changes the id of the sources.
    fn counts(&self, change: impl FnOnce(&Self)) -> bool {
        let before = self.id();
        change(self);
        self.id() != before
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_same_sources_in_two_folders_have_one_id() {
    let (here, there) = (Tree::new("here"), Tree::new("there-and-longer"));
    assert_eq!(here.id(), there.id());
    assert_eq!(here.id().len(), 32);
}

#[test]
fn every_package_on_which_a_run_builds_counts_with_all_its_files() {
    let tree = Tree::new("counts");
    let rto = "crates/timer/src/rto.rs";
    assert!(tree.counts(|tree| tree.edit(rto, "= 2", "= 3")), "a constant");
    assert!(tree.counts(|tree| tree.edit(rto, "s4.8", "4.8")), "a comment too");
    assert!(tree.counts(|tree| tree.edit("crates/air/data/links.csv", "1,2", "1,3")), "data");
    assert!(tree.counts(|tree| tree.write("crates/air/more/table.bin", "1")), "a new folder");
    assert!(tree.counts(|tree| tree.write("crates/timer/build.rs", "")), "a build script");
    assert!(tree.counts(|tree| tree.write("crates/lab/src/model.rs", "")), "a module of the lab");
    let moved = |tree: &Tree| {
        fs::rename(tree.0.join(rto), tree.0.join("crates/timer/src/other.rs")).expect("writable");
    };
    assert!(tree.counts(moved), "the name of a file");
}

#[test]
fn what_a_manifest_says_of_the_language_and_of_features_counts() {
    let tree = Tree::new("manifest");
    let root = "Cargo.toml";
    assert!(tree.counts(|tree| tree.edit(root, "2024", "2021")), "the edition");
    assert!(tree.counts(|tree| tree.edit(root, "false", "true")), "default features");
    assert!(tree.counts(|tree| tree.edit("crates/air/Cargo.toml", "fast", "slow")), "features");
    let feature = |tree: &Tree| tree.edit("crates/timer/Cargo.toml", "edition", "x = 1\nedition");
    assert!(!tree.counts(feature), "other keys of the package");
    let versions =
        |tree: &Tree| tree.edit("crates/timer/Cargo.toml", "x = 1", "version = \"9.0.0\"");
    assert!(!tree.counts(versions), "its version");
}

#[test]
fn packages_of_others_count_by_the_lock_file_if_a_run_builds_on_them() {
    let tree = Tree::new("lock");
    let swap = |from: &'static str, to: &'static str| {
        tree.counts(|tree| tree.edit("Cargo.lock", from, to))
    };
    assert!(swap("\"aa\"", "\"a1\""), "the checksum of a dependency");
    assert!(swap("\"bb\"", "\"b1\""), "that of its dependency");
    assert!(!swap("\"cc\"", "\"c1\""), "that of a dependency of tests");
    assert!(!swap("\"dd\"", "\"d1\""), "that of a package on which no run builds");
}

#[test]
fn what_cannot_change_a_run_does_not_count() {
    let tree = Tree::new("rest");
    for place in [
        "crates/timer/tests/rto.rs",
        "crates/timer/benches/rto.rs",
        "crates/timer/examples/rto.rs",
        "crates/timer/src/rto/tests.rs",
        "crates/timer/src/rto/tests/more.rs",
        "crates/timer/README.md",
        "crates/timer/.hidden",
        "crates/net/src/lib.rs",
        "crates/lab/src/html/page.rs",
        "crates/lab/src/report.rs",
        "docs/timer.md",
    ] {
        assert!(!tree.counts(|tree| tree.write(place, "fn changed() {}")), "{place}");
    }
    // Only the lab has such modules; in other packages these names count.
    assert!(tree.counts(|tree| tree.write("crates/timer/src/report.rs", "")));
}

#[test]
fn line_ends_of_a_checkout_do_not_count() {
    let tree = Tree::new("ends");
    let rto = "crates/timer/src/rto.rs";
    assert!(!tree.counts(|tree| tree.edit(rto, "\n", "\r\n")));
    assert!(
        tree.counts(|tree| tree.edit(rto, "\r\n\r\n", "\r\r\n")),
        "other control characters do"
    );
}

#[test]
fn a_package_of_a_registry_counts_by_its_own_files_and_the_versions_that_it_names() {
    let tree = Tree::new("published");
    let manifest = |version: &str| {
        tree.write(
            "crates/lab/Cargo.toml",
            &format!("[package]\nname = \"lab\"\nedition = \"2024\"\n[dependencies]\nair = \"={version}\"\n"),
        );
    };
    assert!(tree.counts(|_| manifest("0.1.0")));
    let rto = "crates/timer/src/rto.rs";
    assert!(
        !tree.counts(|tree| tree.edit(rto, "= 2", "= 3")),
        "the workspace above is not its own"
    );
    assert!(tree.counts(|_| manifest("0.1.1")));
    assert!(tree.counts(|tree| tree.write("crates/lab/src/model.rs", "")));
}

#[test]
fn sources_that_cannot_be_hashed_are_named() {
    let tree = Tree::new("wrong");
    let error = |tree: &Tree| build::of(&tree.lab()).expect_err("it is wrong");
    tree.edit("Cargo.lock", "source = \"registry\"\nchecksum = \"bb\"", "");
    assert!(error(&tree).contains("numbers 1.0.0 has no source"), "{}", error(&tree));
    tree.edit("Cargo.toml", "air =", "water =");
    assert!(error(&tree).contains("has no dependency air"), "{}", error(&tree));
}

/// The sources of this library.
fn own() -> build::Sources {
    build::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn the_program_has_the_id_of_its_sources() {
    assert_eq!(BuildId::own().to_string(), own().id);
}

#[test]
fn timers_air_and_link_tables_count_and_pages_do_not() {
    let files = own().files;
    for place in [
        "lowmesh-congestion/src/lib.rs",
        "lowmesh-sim/data/grenoble.csv",
        "lowmesh-trickle/src/lib.rs",
        "lowmesh-lab/src/metrics.rs",
        "lowmesh-lab/src/store.rs",
        "lowmesh-lab/build/sources/mod.rs",
    ] {
        assert!(files.iter().any(|file| file == place), "{place}");
    }
    for place in [
        "lowmesh-lab/src/html",
        "lowmesh-lab/src/digits",
        "lowmesh-lab/src/claims",
        "lowmesh-net/",
        "lowmesh/",
    ] {
        assert!(!files.iter().any(|file| file.starts_with(place)), "{place}");
    }
}

/// The text before the module of tests; a module in a file of its own does not end it.
fn without_tests(text: &str) -> &str {
    let begins_block = |(at, mark): &(usize, &str)| {
        text[at + mark.len()..].lines().next().is_some_and(|line| line.ends_with('{'))
    };
    let tests = text.match_indices("#[cfg(test)]\n").find(begins_block);
    &text[..tests.map_or(text.len(), |(at, _)| at)]
}

#[test]
fn no_module_that_counts_uses_one_that_does_not() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in own().files {
        let Some(place) = file.strip_prefix("lowmesh-lab/src/") else { continue };
        let text = fs::read_to_string(src.join(place)).expect("it was hashed");
        let code = without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let words: Vec<&str> =
                line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).collect();
            for reader in build::READERS {
                let (path, inner) = (format!("{reader}::"), format!("::{reader}"));
                let uses = |word: &&str| word.starts_with(&path) || word.contains(&inner);
                assert!(!words.iter().any(uses), "{place}: {line}");
            }
        }
    }
}

#[test]
fn files_called_tests_are_built_for_tests_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = fs::read_dir(crates)
        .expect("the workspace")
        .map(|entry| entry.expect("readable").path().join("src"))
        .collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("readable").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("readable");
                for (at, _) in text.match_indices("mod tests;") {
                    seen += 1;
                    let attributes = text[..at].lines().rev().skip_while(|line| line.is_empty());
                    let mut attributes = attributes.take_while(|line| line.starts_with("#["));
                    assert!(attributes.any(|one| one == "#[cfg(test)]"), "{}", path.display());
                }
            }
        }
    }
    assert!(seen > 10, "{seen}");
}
