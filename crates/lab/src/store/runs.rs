//! The runs of one build in a store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lowmesh_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use super::files::{BUILD_FILE, at, ids, recorded, write};
use super::{StoreError, Stored};
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

/// The folder with the runs of one build.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    folder: PathBuf,
    /// The first digits of the build's id.
    build: String,
}

impl Runs {
    /// The runs of the build with this id in the store at `store`; the folder may be missing.
    pub fn of(store: &Path, build: String) -> Self {
        Self { folder: store.join(&build), build }
    }
    /// The first digits of the build's id.
    pub fn build(&self) -> &str {
        &self.build
    }
    /// The file of a run.
    pub fn path(&self, id: RunId, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }
    /// The names of all runs, in order.
    pub fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        if self.folder.is_dir() { ids(&self.folder) } else { Ok(Vec::new()) }
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

    /// Keeps `run` of `scenario` under the name `id`, as made by `build`, whose folder this is.
    pub fn put(
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
        self.begin(build)?;
        write(&self.path(id, "wall"), format!("{:.6}\n", run.wall_s).as_bytes())?;
        write(&self.path(id, "json"), text.as_bytes())
    }

    /// Creates the folder of a build, with the file that names the build. The file keeps the first commit; later ones have
    /// the same sources.
    fn begin(&self, build: &Build) -> Result<(), StoreError> {
        let file = self.folder.join(BUILD_FILE);
        if file.is_file() {
            return Ok(());
        }
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(&self.folder)(error));
            }
            _ => {}
        }
        let mut text = serde_json::to_string(build).expect("texts only");
        text.push('\n');
        write(&file, text.as_bytes())
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

    /// Copies every run that is missing here from `other`, the same build in another store; returns their number.
    pub fn take(&self, other: &Self) -> Result<usize, StoreError> {
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
            self.begin(&recorded(&other.folder).unwrap_or(Build { id: build, commit: None }))?;
            if let Ok(wall) = fs::read(other.path(id, "wall")) {
                write(&self.path(id, "wall"), &wall)?;
            }
            write(&to, &theirs)?;
            taken += 1;
        }
        Ok(taken)
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
}
