//! The builds in a store: the number of runs of each, and the merge of stores with several builds.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BUILD_FILE, Store, StoreError, at, ids, write};
use crate::build::{Build, BuildId, Commit, words};

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

impl Store {
    /// The runs of each build: this build first, then the others by id.
    pub fn builds(&self) -> Result<Vec<BuildRuns>, StoreError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let folder = entry.map_err(at(&self.folder))?.path();
            let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
            if !BuildId::is_short(&name) || !folder.is_dir() {
                continue;
            }
            let runs = ids(&folder)?.len();
            let commit = recorded(&folder).and_then(|build| build.commit);
            all.push(BuildRuns { build: Some(name), commit, runs, folder });
        }
        let (runs, folder) = (ids(&self.folder)?.len(), self.folder.clone());
        all.push(BuildRuns { build: None, commit: None, runs, folder });
        all.retain(|one| one.runs > 0);
        // Runs of unknown sources come last.
        let own = |one: &BuildRuns| one.build.as_ref() == Some(&self.build);
        all.sort_by_key(|one| (!own(one), one.build.is_none(), one.build.clone()));
        Ok(all)
    }

    /// The builds whose runs are in the store but are not used.
    pub fn others(&self) -> Result<Vec<BuildRuns>, StoreError> {
        let mut all = self.builds()?;
        all.retain(|one| one.build.as_ref() != Some(&self.build));
        Ok(all)
    }

    /// The build whose runs are used, with its commit if it has runs and the commit is known.
    pub fn build(&self) -> Result<String, StoreError> {
        let own = self.builds()?.into_iter().find(|one| one.build.as_ref() == Some(&self.build));
        Ok(own.map_or_else(|| words(&self.build, None), |own| own.to_string()))
    }

    /// Copies every run of `other` that is missing here into the folder of its build. Returns the number of copied runs for
    /// each build of `other`.
    pub fn merge(&self, other: &Self) -> Result<Vec<Merged>, StoreError> {
        let mut merged = Vec::new();
        for from in other.builds()? {
            let mut taken = 0;
            if let Some(build) = &from.build {
                taken = self.of(build.clone()).take(&other.of(build.clone()))?;
            }
            merged.push(Merged { from, taken });
        }
        Ok(merged)
    }

    /// Copies every run of the build that is missing here from `other`; returns their number.
    fn take(&self, other: &Self) -> Result<usize, StoreError> {
        let mut taken = 0;
        for id in other.ids()? {
            let (from, to) = (other.path(id, "json"), self.path(id, "json"));
            let theirs = fs::read(&from).map_err(at(&from))?;
            if self.has(id) {
                if fs::read(&to).map_err(at(&to))? != theirs {
                    return Err(StoreError::Disagree(id.to_string()));
                }
                continue;
            }
            let build = other.stored(id)?.build;
            self.begin(&recorded(&other.own()).unwrap_or(Build { id: build, commit: None }))?;
            if let Ok(wall) = fs::read(other.path(id, "wall")) {
                write(&self.path(id, "wall"), &wall)?;
            }
            write(&to, &theirs)?;
            taken += 1;
        }
        Ok(taken)
    }
}

/// The build that the file in `folder` names; none if it cannot be read.
fn recorded(folder: &Path) -> Option<Build> {
    let text = fs::read_to_string(folder.join(BUILD_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Builds in one line.
pub(super) fn list(builds: &[BuildRuns]) -> String {
    builds.iter().map(BuildRuns::to_string).collect::<Vec<_>>().join(", ")
}
