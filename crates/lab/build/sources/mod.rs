//! The sources that a run depends on, and the hash over them.
//!
//! The hash covers the package of the library and every workspace package that it depends on: all their files, their
//! features, and the name, version and checksum of each third-party package in the dependency tree (`Cargo.lock`). Only
//! files that cannot change a run are excluded: see [`READERS`], [`SKIPPED`] and `is_test`. A new file, crate or kind of
//! data therefore counts without a change here.
//!
//! The hash does not depend on the machine: neither on the folder of the sources, nor on the compiler or its profile.

mod lock;
mod manifest;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use lock::Lock;
use manifest::{Dependency, Manifest};

/// Modules of the library that only request runs, read finished ones or write the manual. They do not count. A test checks
/// that no module that counts uses one of these.
pub const READERS: [&str; 10] = [
    "claims", "command", "compare", "digits", "figures", "html", "manual", "report", "tune",
    "validate",
];

/// Folders at the top of a package that can change no run. The name of a run covers the values of its scenario.
const SKIPPED: [&str; 7] =
    ["benches", "examples", "papers", "proptest-regressions", "scenarios", "target", "tests"];

/// Version of the hash. A new version gives the same sources another id.
const FORMAT: &str = "lowmesh sources 1";

/// What a run depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// The hash, 32 hexadecimal digits.
    pub id: String,
    /// Files and folders; a change of one of them requires a new hash.
    pub watched: Vec<PathBuf>,
    /// The hashed files: name of the package and path inside it, with `/`.
    pub files: Vec<String>,
}

/// Hashes the sources of the library in the folder `package` and of its dependencies.
///
/// Outside a workspace (a package from a registry) only cargo knows the folders of the other packages. Their exact
/// versions in the library's manifest stand for them: a registry never changes a published version.
pub fn of(package: &Path) -> Result<Sources, String> {
    let own = Manifest::read(package)?;
    let root = own.root()?;
    let members = members(own, root.as_ref())?;
    let mut hash = Hash::new();
    let (mut watched, mut files) = (Vec::new(), Vec::new());
    for (number, member) in members.iter().enumerate() {
        hash.entry("package", &member.name, member.canonical().as_bytes());
        watched.push(member.folder.join("Cargo.toml"));
        let readers = if number == 0 { &READERS[..] } else { &[] };
        for (path, place) in counted(member, readers, &mut watched)? {
            hash.entry("file", &place, &contents(&path)?);
            files.push(place);
        }
    }
    match &root {
        Some(root) => {
            watched.push(root.folder.join("Cargo.toml"));
            let path = root.folder.join("Cargo.lock");
            for line in Lock::read(&path)?.tree(&members)? {
                hash.entry("crate", &line, &[]);
            }
            watched.push(path);
        }
        None => hash.entry("published", &members[0].name, &[]),
    }
    Ok(Sources { id: hash.digits(), watched, files })
}

/// The package itself, then every workspace package that it depends on, by name.
fn members(own: Manifest, root: Option<&Manifest>) -> Result<Vec<Manifest>, String> {
    let mut waiting = VecDeque::from([own.resolved(root)?]);
    let mut first = None;
    let mut others: BTreeMap<String, Manifest> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(member) = waiting.pop_front() {
        if !seen.insert(member.name.clone()) {
            continue;
        }
        for Dependency { folder, .. } in &member.dependencies {
            let Some(folder) = folder else { continue };
            waiting.push_back(Manifest::read(folder)?.resolved(root)?);
        }
        match first {
            None => first = Some(member),
            Some(_) => _ = others.insert(member.name.clone(), member),
        }
    }
    Ok(first.into_iter().chain(others.into_values()).collect())
}

/// The files of a package that count, each with its place (`package/path`), in the order of places. Their folders are
/// added to `watched`.
fn counted(
    member: &Manifest,
    readers: &[&str],
    watched: &mut Vec<PathBuf>,
) -> Result<Vec<(PathBuf, String)>, String> {
    let mut files = Vec::new();
    for (path, name) in entries(&member.folder)? {
        let text = path.extension().is_some_and(|ending| ending == "md");
        // `Manifest::canonical` stands for the text of the manifest.
        if text || SKIPPED.contains(&name.as_str()) || name.starts_with("Cargo.") {
            continue;
        }
        collect(&path, &name, readers, &mut files)?;
        watched.push(path);
    }
    files.sort_by(|a, b| a.1.cmp(&b.1));
    let whole = |(path, place): (PathBuf, String)| (path, format!("{}/{place}", member.name));
    Ok(files.into_iter().map(whole).collect())
}

fn collect(
    path: &Path,
    place: &str,
    readers: &[&str],
    files: &mut Vec<(PathBuf, String)>,
) -> Result<(), String> {
    let reads =
        |reader: &&str| place == format!("src/{reader}") || place == format!("src/{reader}.rs");
    if is_test(place) || readers.iter().any(reads) {
        return Ok(());
    }
    if !path.is_dir() {
        files.push((path.to_owned(), place.to_owned()));
        return Ok(());
    }
    for (inner, name) in entries(path)? {
        collect(&inner, &format!("{place}/{name}"), readers, files)?;
    }
    Ok(())
}

/// Whether a file or folder holds only tests. By convention these are `foo/tests.rs` and `foo/tests/`. A test checks that
/// each of them is a module under `#[cfg(test)]`.
fn is_test(place: &str) -> bool {
    let name = place.rsplit('/').next().unwrap_or(place);
    place.starts_with("src/") && (name == "tests" || name == "tests.rs")
}

/// The entries of a folder, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |error: std::io::Error| format!("cannot list {}: {error}", folder.display());
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            all.push((path, name));
        }
    }
    Ok(all)
}

/// The contents of a file. Line ends of text are normalised to those of Unix, since a checkout may write others.
fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let bytes =
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let text = path
        .extension()
        .is_some_and(|ending| ending == "rs" || ending == "toml" || ending == "csv");
    if !text || !bytes.contains(&b'\r') {
        return Ok(bytes);
    }
    let mut plain = Vec::with_capacity(bytes.len());
    for (at, octet) in bytes.iter().enumerate() {
        if *octet != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            plain.push(*octet);
        }
    }
    Ok(plain)
}

/// A hash over entries. Each part follows its length, so that different entries never give the same octets.
struct Hash(Xxh3);

impl Hash {
    fn new() -> Self {
        let mut hash = Self(Xxh3::new());
        hash.entry("format", FORMAT, &[]);
        hash
    }

    fn entry(&mut self, kind: &str, name: &str, bytes: &[u8]) {
        for part in [kind.as_bytes(), name.as_bytes(), bytes] {
            self.0.update(&(part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    fn digits(&self) -> String {
        format!("{:032x}", self.0.digest128())
    }
}
