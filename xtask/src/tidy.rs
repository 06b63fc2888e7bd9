//! `tidy`: the rules of the house that no compiler checks. One file a rule; each returns breaches, and
//! this one prints them all at once.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{gate, metadata, process};

mod circles;
mod citations;
mod direction;
mod ledger;
mod links;
mod owners;
mod profiles;
mod prose;
mod rows;
mod sections;
mod snippets;
mod source;
mod words;
mod writing;

pub use direction::{floors, is_for_devices};

/// How bad a breach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Printed, but passes.
    Warning,
    /// Fails.
    Error,
}

/// One rule broken at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// How bad.
    pub weight: Weight,
    /// File, or file and line, or crate.
    pub place: String,
    /// What is wrong and what the rule is.
    pub message: String,
}

impl Breach {
    /// A breach that fails the command.
    pub fn error(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { weight: Weight::Error, place: place.into(), message: message.into() }
    }

    /// A breach that is only printed.
    pub fn warning(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Warning => "warning",
            Weight::Error => "error",
        };
        write!(f, "{weight}: {}: {}", self.place, self.message)
    }
}

/// One file of the workspace.
pub struct TextFile {
    /// Path from the root of the workspace, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl TextFile {
    /// Whether it is Rust.
    fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }
}

/// Checks everything; any error fails.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("tidy takes no argument, but got {unknown:?}");
    }
    let packages = metadata::packages()?;
    let mut breaches = direction::breaches(&packages);
    let ledger = process::root().join("docs/dependencies.md");
    let ledger = std::fs::read_to_string(&ledger)
        .with_context(|| format!("cannot read {}", ledger.display()))?;
    breaches.extend(ledger::breaches(&packages, &ledger));
    let manifest = std::fs::read_to_string(process::root().join("Cargo.toml"))?;
    breaches.extend(profiles::breaches(&manifest));
    let mut count = 0;
    for package in &packages {
        let files = source_files(&package.folder)?;
        count += files.len();
        for file in &files {
            breaches.extend(writing::breaches(file));
        }
        breaches.extend(circles::breaches(&files));
        breaches.extend(owners::breaches(&package.name, &files));
        breaches.extend(rows::breaches(&files));
        if direction::is_for_devices(&package.name) {
            breaches.extend(writing::std_breaches(&files));
        }
    }
    let all = files(&[process::root()], &["rs", "md", "toml"])?;
    let commands = crate::commands();
    for file in &all {
        breaches.extend(words::breaches(file));
        breaches.extend(sections::breaches(file));
        breaches.extend(citations::commands(file, &commands));
    }
    let (rust, others): (Vec<TextFile>, Vec<TextFile>) =
        all.into_iter().partition(TextFile::is_rust);
    let pages: Vec<TextFile> =
        others.into_iter().filter(|file| prose::is_page(&file.path)).collect();
    breaches.extend(pages_breaches(&pages, &rust)?);
    if !gate::is_current()? {
        let rule = "its table of stages differs from the list; cargo xtask stages --write mends it";
        breaches.push(Breach::error("CONTRIBUTING.md", rule));
    }
    breaches.sort_by(|a, b| (a.weight, &a.place).cmp(&(b.weight, &b.place)));
    for breach in &breaches {
        println!("{breach}");
    }
    let errors = breaches.iter().filter(|breach| breach.weight == Weight::Error).count();
    if errors > 0 {
        bail!(
            "tidy found {errors} breach(es); ARCHITECTURE.md and CONTRIBUTING.md explain the rules"
        );
    }
    println!("tidy: {} packages, {count} files, no breach", packages.len());
    Ok(())
}

/// Breaches of the pages that people read; `rust` is all Rust files.
fn pages_breaches(pages: &[TextFile], rust: &[TextFile]) -> Result<Vec<Breach>> {
    let root = process::root();
    let exists = |path: &str| root.join(path).exists();
    let mut breaches: Vec<Breach> = pages.iter().flat_map(prose::breaches).collect();
    breaches.extend(links::breaches(pages, exists));
    let tree = citations::Tree::new(rust);
    // A changelog names files that were there at its time.
    let present = pages.iter().filter(|page| page.path != "CHANGELOG.md");
    breaches.extend(present.flat_map(|page| citations::breaches(page, &tree, exists)));
    let examples = files(&[root.join("examples")], &["rs", "toml"])?;
    breaches.extend(pages.iter().flat_map(|page| snippets::breaches(page, &examples)));
    Ok(breaches)
}

/// All Rust files of a package, in order of path.
fn source_files(folder: &Path) -> Result<Vec<TextFile>> {
    files(&["src", "tests", "examples", "benches"].map(|part| folder.join(part)), &["rs"])
}

/// All files below `folders` whose names end with one of `extensions`, in order of path.
fn files(folders: &[PathBuf], extensions: &[&str]) -> Result<Vec<TextFile>> {
    let root = process::root();
    let mut paths = Vec::new();
    for folder in folders {
        collect(folder, extensions, &mut paths)?;
    }
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path =
                path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            Ok(TextFile { path, text })
        })
        .collect()
}

/// Adds the files below a folder, except hidden ones and those in the target folder.
fn collect(folder: &Path, extensions: &[&str], paths: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            collect(&path, extensions, paths)?;
        } else if extensions.iter().any(|wanted| extension == *wanted) {
            paths.push(path);
        }
    }
    Ok(())
}
