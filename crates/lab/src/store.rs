//! The store: a folder with one small file for each finished run. The name of the file follows from the inputs of the run.
//!
//! ```text
//! STORE/9f3ac04be1d2/build.json         the build of these runs, and the first commit that made some
//! STORE/9f3ac04be1d2/RUN.json           a run
//! STORE/9f3ac04be1d2/RUN.wall           its wall-clock time, used for estimates only
//! ```
//!
//! Each build of the program uses only the runs in its own folder. A file appears as a whole or not at all, and the name
//! of a run determines its bytes. So stores from several places or attempts join to the store that one attempt in one place
//! makes. Runs in the store's folder itself are older than the record of builds: their sources are unknown, and they are
//! not used.

mod builds;
mod files;
mod runs;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use builds::{BuildRuns, Merged};
use files::{BUILD_FILE, at};
use runs::Runs;

use crate::build::{Build, BuildId, words};
use crate::identity::RunId;
use crate::runner::Run;
use crate::scenario::Scenario;

/// A folder of runs, from which the runs of one build are used.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    used: Runs,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("cannot use the store: {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No stored run has a name that begins so.
    #[error("no stored run has a name that begins with `{0}`")]
    Unknown(String),
    /// Several have.
    #[error("{1} stored runs have names that begin with `{0}`; give more digits")]
    Ambiguous(String, usize),
    /// A file in the store is not what this program writes.
    #[error("{} is not a stored run of this version: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Two stores have different contents for a run of one build.
    #[error(
        "the stores disagree about run {0}, although the same build made both: one store was changed"
    )]
    Disagree(String),
    /// A store has runs of several builds, none of them this program.
    #[error("{} has runs of {} builds: {}", folder.display(), builds.len(), builds::list(builds))]
    SeveralBuilds {
        /// The store.
        folder: PathBuf,
        /// What it has.
        builds: Vec<BuildRuns>,
    },
}

/// A stored run with what repeats it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What it gave.
    pub run: Run,
    /// The build that made it.
    pub build: BuildId,
    /// Its scenario, of this one seed.
    pub scenario: Scenario,
}

impl Store {
    /// The store in `folder` with the runs of this program. A missing folder is created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        Ok(Self::with(folder, BuildId::own().short()))
    }

    /// The store in `folder`, for reading results. `folder` may also be the folder of one build in a store. The store has
    /// the runs of this program or, if there are none, those of the only other build.
    pub fn open_results(folder: &Path) -> Result<Self, StoreError> {
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let parent = folder.parent().filter(|_| BuildId::is_short(name));
        if let (Some(parent), true) = (parent, folder.join(BUILD_FILE).is_file()) {
            return Ok(Self::with(parent, name.to_owned()));
        }
        let store = Self::open(folder)?;
        let mut builds = store.builds()?;
        builds.retain(|runs| runs.build.is_some());
        match &builds[..] {
            [only] => Ok(Self::with(folder, only.build.clone().unwrap_or_default())),
            [] => Ok(store),
            some if some.iter().any(|runs| runs.is_of(store.used.build())) => Ok(store),
            _ => Err(StoreError::SeveralBuilds { folder: store.folder, builds }),
        }
    }

    fn with(folder: &Path, build: String) -> Self {
        Self { folder: folder.to_owned(), used: Runs::of(folder, build) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run called `id`, if it is stored. A file that cannot be read counts as missing, so the run is made again.
    pub fn get(&self, id: RunId) -> Option<Run> {
        self.used.get(id)
    }
    /// Whether the run called `id` is stored.
    pub fn has(&self, id: RunId) -> bool {
        self.used.has(id)
    }
    /// Stores `run` of `scenario` under the name `id`, as made by this program.
    pub fn put(&self, id: RunId, scenario: &Scenario, run: &Run) -> Result<(), StoreError> {
        let build = Build::own();
        self.of(build.id.short()).put(&build, id, scenario, run)
    }
    /// The run called `id` with its scenario.
    pub fn stored(&self, id: RunId) -> Result<Stored, StoreError> {
        self.used.stored(id)
    }
    /// The names of all runs of the build, in order.
    pub fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        self.used.ids()
    }

    /// The only run whose name begins with `prefix`, in any build, with a summary of that build.
    pub fn find(&self, prefix: &str) -> Result<(RunId, Stored, BuildRuns), StoreError> {
        let mut found = Vec::new();
        for runs in self.builds()? {
            let Some(build) = runs.build.clone() else { continue };
            let names = self.of(build.clone()).ids()?;
            let names = names.into_iter().filter(|id| id.to_string().starts_with(prefix));
            found.extend(names.map(|id| (id, build.clone(), runs.clone())));
        }
        match &found[..] {
            [] => Err(StoreError::Unknown(prefix.to_owned())),
            [(id, build, runs)] => Ok((*id, self.of(build.clone()).stored(*id)?, runs.clone())),
            _ => Err(StoreError::Ambiguous(prefix.to_owned(), found.len())),
        }
    }

    /// The runs of each build: this build first, then the others by id.
    pub fn builds(&self) -> Result<Vec<BuildRuns>, StoreError> {
        builds::in_store(&self.folder, self.used.build())
    }
    /// The builds whose runs are in the store but are not used.
    pub fn others(&self) -> Result<Vec<BuildRuns>, StoreError> {
        let mut all = self.builds()?;
        all.retain(|one| !one.is_of(self.used.build()));
        Ok(all)
    }

    /// The build whose runs are used, with its commit if it has runs and the commit is known.
    pub fn build(&self) -> Result<String, StoreError> {
        let own = self.builds()?.into_iter().find(|one| one.is_of(self.used.build()));
        Ok(own.map_or_else(|| words(self.used.build(), None), |own| own.to_string()))
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

    /// The runs of another build.
    fn of(&self, build: String) -> Runs {
        Runs::of(&self.folder, build)
    }
}

#[cfg(test)]
mod tests;
