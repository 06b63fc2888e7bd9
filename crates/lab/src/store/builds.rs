//! The builds whose runs lie in a store: how many each has, and how stores of several builds are joined.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use super::{BUILD_FILE, Store, StoreError, at, ids, write};
use crate::build::{Build, BuildId, Commit, words};

/// How many runs of one build a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildRuns {
    /// The first digits of the build's id; none of runs from before builds were recorded.
    pub build: Option<String>,
    /// The first commit that made some of them, if it is known.
    pub commit: Option<Commit>,
    /// Their number, at least one.
    pub runs: usize,
    /// The folder in which they lie.
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

/// The runs of one build that a merge has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// What the other store has of that build.
    pub from: BuildRuns,
    /// How many of these were not here; none is taken of a build that was not recorded.
    pub taken: usize,
}

impl Store {
    /// How many runs of which build there are: this one first, then the others by id.
    pub fn builds(&self) -> Result<Vec<BuildRuns>, StoreError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let folder = entry.map_err(at(&self.folder))?.path();
            let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
            if !BuildId::is_short(&name) || !folder.is_dir() {
                continue;
            }
            let told = fs::read_to_string(folder.join(BUILD_FILE)).ok();
            let told = told.and_then(|text| serde_json::from_str::<Build>(&text).ok());
            let runs = ids(&folder)?.len();
            let commit = told.and_then(|build| build.commit);
            all.push(BuildRuns { build: Some(name), commit, runs, folder });
        }
        let (runs, folder) = (ids(&self.folder)?.len(), self.folder.clone());
        all.push(BuildRuns { build: None, commit: None, runs, folder });
        all.retain(|one| one.runs > 0);
        // Runs of unknown sources stand last.
        let own = |one: &BuildRuns| one.build.as_ref() == Some(&self.build);
        all.sort_by_key(|one| (!own(one), one.build.is_none(), one.build.clone()));
        Ok(all)
    }

    /// The builds whose runs are here but are not used.
    pub fn others(&self) -> Result<Vec<BuildRuns>, StoreError> {
        let mut all = self.builds()?;
        all.retain(|one| one.build.as_ref() != Some(&self.build));
        Ok(all)
    }

    /// The build whose runs are used, with its commit if there are some and it is known.
    pub fn build(&self) -> Result<String, StoreError> {
        let own = self.builds()?.into_iter().find(|one| one.build.as_ref() == Some(&self.build));
        Ok(own.map_or_else(|| words(&self.build, None), |own| own.to_string()))
    }

    /// Takes every run of `other` that is not here, each into the folder of its build. Says for each build of `other`
    /// how many those were.
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

    /// Takes every run of the build that is not here from `other`; returns how many those were.
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
            let told = fs::read_to_string(other.own().join(BUILD_FILE)).ok();
            let told = told.and_then(|text| serde_json::from_str(&text).ok());
            self.begin(&told.unwrap_or(Build { id: build, commit: None }))?;
            if let Ok(wall) = fs::read(other.path(id, "wall")) {
                write(&self.path(id, "wall"), &wall)?;
            }
            write(&to, &theirs)?;
            taken += 1;
        }
        Ok(taken)
    }
}

/// Builds in one line.
pub(super) fn list(builds: &[BuildRuns]) -> String {
    builds.iter().map(BuildRuns::to_string).collect::<Vec<_>>().join(", ")
}
