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

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use builds::{BuildRuns, Merged};
use lowmesh_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use crate::build::{Build, BuildId, words};
use crate::detail::Detail;
use crate::identity::{RunId, bare};
use crate::metrics::Metrics;
use crate::runner::Run;
use crate::scenario::{ConfigErrors, Scenario};

/// Version of the shape of a stored run.
///
/// 2: a run has the id of its build.
const SCHEMA: u32 = 2;

/// The file that names the build of a folder.
const BUILD_FILE: &str = "build.json";

/// The number of files that this process has begun to write.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A folder of runs, from which the runs of one build are used.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    /// The first digits of the build's id.
    build: String,
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
        "the stores disagree about run {0}, though one build made both: one of them was changed"
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

/// The file of a run.
#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    id: String,
    build: BuildId,
    seed: u64,
    /// As text: a reader that keeps numbers as doubles would round 64 bits.
    trace_hash: String,
    simulated_ns: u64,
    metrics: Metrics,
    detail: Detail,
    scenario: String,
}

impl Store {
    /// The store in `folder` with the runs of this program. A missing folder is created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        Ok(Self { folder: folder.to_owned(), build: BuildId::own().short() })
    }

    /// The store in `folder`, for reading results. `folder` may also be the folder of one build in a store. The store has
    /// the runs of this program or, if there are none, those of the only other build.
    pub fn open_results(folder: &Path) -> Result<Self, StoreError> {
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let parent = folder.parent().filter(|_| BuildId::is_short(name));
        if let (Some(parent), true) = (parent, folder.join(BUILD_FILE).is_file()) {
            return Ok(Self { folder: parent.to_owned(), build: name.to_owned() });
        }
        let store = Self::open(folder)?;
        let mut builds = store.builds()?;
        builds.retain(|runs| runs.build.is_some());
        let own = |runs: &BuildRuns| runs.build.as_ref() == Some(&store.build);
        match &builds[..] {
            [only] => Ok(Self { build: only.build.clone().unwrap_or_default(), ..store }),
            [] => Ok(store),
            some if some.iter().any(own) => Ok(store),
            _ => Err(StoreError::SeveralBuilds { folder: store.folder, builds }),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run called `id`, if it is stored. A file that cannot be read counts as missing, so the run is made again.
    pub fn get(&self, id: RunId) -> Option<Run> {
        let text = fs::read_to_string(self.path(id, "json")).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let same = record.schema == SCHEMA
            && record.id == id.to_string()
            && record.build.short() == self.build;
        same.then(|| self.run_of(id, &record)).flatten()
    }

    /// Whether the run called `id` is there.
    pub fn has(&self, id: RunId) -> bool {
        self.get(id).is_some()
    }

    /// Keeps `run` of `scenario` under the name `id`, as made by this program.
    pub fn put(&self, id: RunId, scenario: &Scenario, run: &Run) -> Result<(), StoreError> {
        self.put_by(&Build::own(), id, scenario, run)
    }

    fn put_by(
        &self,
        build: &Build,
        id: RunId,
        scenario: &Scenario,
        run: &Run,
    ) -> Result<(), StoreError> {
        let mut scenario = bare(scenario);
        scenario.head.seed = run.seed.0;
        let record = Record {
            schema: SCHEMA,
            id: id.to_string(),
            build: build.id,
            seed: run.seed.0,
            trace_hash: format!("{:016x}", run.trace_hash),
            simulated_ns: run.simulated.as_nanos(),
            metrics: run.metrics.clone(),
            detail: run.detail.clone(),
            scenario: scenario.to_toml(),
        };
        let mut text = serde_json::to_string(&record).expect("numbers and texts only");
        text.push('\n');
        let own = self.of(build.id.short());
        own.begin(build)?;
        write(&own.path(id, "wall"), format!("{:.6}\n", run.wall_s).as_bytes())?;
        write(&own.path(id, "json"), text.as_bytes())
    }

    /// Creates the folder of a build, with the file that names the build. The file keeps the first commit; later ones have
    /// the same sources.
    fn begin(&self, build: &Build) -> Result<(), StoreError> {
        let folder = self.own();
        let file = folder.join(BUILD_FILE);
        if file.is_file() {
            return Ok(());
        }
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(&folder)(error));
            }
            _ => {}
        }
        let mut text = serde_json::to_string(build).expect("texts only");
        text.push('\n');
        write(&file, text.as_bytes())
    }

    /// The only run whose name begins with `prefix`, in any build, with a summary of that build.
    pub fn find(&self, prefix: &str) -> Result<(RunId, Stored, BuildRuns), StoreError> {
        let mut found = Vec::new();
        for runs in self.builds()? {
            let Some(build) = runs.build.clone() else { continue };
            let names = ids(&runs.folder)?;
            let names = names.into_iter().filter(|id| id.to_string().starts_with(prefix));
            found.extend(names.map(|id| (id, build.clone(), runs.clone())));
        }
        match &found[..] {
            [] => Err(StoreError::Unknown(prefix.to_owned())),
            [(id, build, runs)] => Ok((*id, self.of(build.clone()).stored(*id)?, runs.clone())),
            _ => Err(StoreError::Ambiguous(prefix.to_owned(), found.len())),
        }
    }

    /// The run called `id` with its scenario.
    pub fn stored(&self, id: RunId) -> Result<Stored, StoreError> {
        let path = self.path(id, "json");
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let broken = |why: String| StoreError::Broken { path: path.clone(), why };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        if record.build.short() != self.build {
            return Err(broken(format!("it is of {}", words(&record.build.short(), None))));
        }
        let scenario = Scenario::parse("scenario", &record.scenario, &[])
            .map_err(|errors: ConfigErrors| broken(errors.to_string()))?;
        let run = self.run_of(id, &record).ok_or_else(|| broken("no trace hash".to_owned()))?;
        Ok(Stored { run, build: record.build, scenario })
    }

    /// The names of all runs of the build, in order.
    pub fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        let folder = self.own();
        if folder.is_dir() { ids(&folder) } else { Ok(Vec::new()) }
    }

    fn run_of(&self, id: RunId, record: &Record) -> Option<Run> {
        let wall = fs::read_to_string(self.path(id, "wall")).ok();
        Some(Run {
            seed: Seed(record.seed),
            trace_hash: u64::from_str_radix(&record.trace_hash, 16).ok()?,
            simulated: Duration::from_nanos(record.simulated_ns),
            wall_s: wall.and_then(|wall| wall.trim().parse().ok()).unwrap_or_default(),
            metrics: record.metrics.clone(),
            detail: record.detail.clone(),
        })
    }

    /// The same folder with the runs of another build.
    fn of(&self, build: String) -> Self {
        Self { folder: self.folder.clone(), build }
    }

    /// The folder of the build.
    fn own(&self) -> PathBuf {
        self.folder.join(&self.build)
    }

    fn path(&self, id: RunId, ending: &str) -> PathBuf {
        self.own().join(format!("{id}.{ending}"))
    }
}

/// The names of the runs in a folder, in order.
fn ids(folder: &Path) -> Result<Vec<RunId>, StoreError> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let name = entry.map_err(at(folder))?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
        ids.extend(stem.and_then(|stem| stem.parse::<RunId>().ok()));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Writes the file under another name and renames it, so that neither a reader nor a killed process leaves half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut partial = OsString::from(path);
    // Several threads may write to one folder at a time; the number keeps their files apart.
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    partial.push(format!(".partial-{}-{number}", std::process::id()));
    let partial = PathBuf::from(partial);
    let mut file = fs::File::create(&partial).map_err(at(&partial))?;
    file.write_all(bytes).map_err(at(&partial))?;
    drop(file);
    fs::rename(&partial, path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
