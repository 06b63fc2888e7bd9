//! The builds in a store, and the number of runs of each.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::files::{at, ids, recorded};
use crate::build::{BuildId, Commit, words};

/// The runs of one build in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildRuns {
    /// The first digits of the build's id; none for runs that are older than the record of builds.
    pub build: Option<String>,
    /// The first commit that made some of them, if it is known.
    pub commit: Option<Commit>,
    /// Their number, at least one.
    pub runs: usize,
    /// Their folder.
    pub folder: PathBuf,
}

impl BuildRuns {
    /// Whether they are the runs of the build whose id begins with `build`.
    pub(super) fn is_of(&self, build: &str) -> bool {
        self.build.as_deref() == Some(build)
    }
}

/// As in `build 9f3ac04be1d2 (commit 147307f0a1b2-dirty)`.
impl fmt::Display for BuildRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.build {
            Some(build) => f.write_str(&words(build, self.commit.as_ref())),
            None => f.write_str("a build that was not recorded"),
        }
    }
}

/// The runs of one build in a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The runs of this build in the other store.
    pub from: BuildRuns,
    /// The number of copied runs; zero for a build that was not recorded.
    pub taken: usize,
}

/// The runs of each build in the store at `store`: the build `first`, then the others by id.
pub(super) fn in_store(store: &Path, first: &str) -> Result<Vec<BuildRuns>, StoreError> {
    let mut all = Vec::new();
    for entry in fs::read_dir(store).map_err(at(store))? {
        let folder = entry.map_err(at(store))?.path();
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        if !BuildId::is_short(&name) || !folder.is_dir() {
            continue;
        }
        let runs = ids(&folder)?.len();
        let commit = recorded(&folder).and_then(|build| build.commit);
        all.push(BuildRuns { build: Some(name), commit, runs, folder });
    }
    let (runs, folder) = (ids(store)?.len(), store.to_owned());
    all.push(BuildRuns { build: None, commit: None, runs, folder });
    all.retain(|one| one.runs > 0);
    // Runs of unknown sources come last.
    all.sort_by_key(|one| (!one.is_of(first), one.build.is_none(), one.build.clone()));
    Ok(all)
}

/// Builds in one line.
pub(super) fn list(builds: &[BuildRuns]) -> String {
    builds.iter().map(BuildRuns::to_string).collect::<Vec<_>>().join(", ")
}
