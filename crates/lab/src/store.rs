//! The store: a folder with one small file for each finished run, named by what the run depends on.
//!
//! A file appears as a whole or not at all, and its bytes follow from the run's name alone, so stores made in
//! several places or in several attempts join to what one attempt in one place would have made. How long a run
//! took is no result; it stands in a file beside, and is used for estimates.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lowmesh_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use crate::detail::Detail;
use crate::identity::{MODEL_VERSION, RunId, bare};
use crate::metrics::Metrics;
use crate::runner::Run;
use crate::scenario::{ConfigErrors, Scenario};

/// Version of the shape of a stored run.
const SCHEMA: u32 = 1;

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
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
    #[error("{} is no stored run of this version: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Two stores disagree about a run; one of them was made by another program.
    #[error("the stores disagree about run {0}: was one made by another version of the program?")]
    Disagree(String),
}

/// A stored run with what repeats it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What it gave.
    pub run: Run,
    /// The version of the model that made it.
    pub model: u32,
    /// Its scenario, of this one seed.
    pub scenario: Scenario,
}

/// The file of a run.
#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    id: String,
    model: u32,
    seed: u64,
    /// As text: a reader that keeps numbers as doubles would round 64 bits.
    trace_hash: String,
    simulated_ns: u64,
    metrics: Metrics,
    detail: Detail,
    scenario: String,
}

impl Store {
    /// The store in `folder`, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run called `id`, if it is stored. A file that cannot be read counts as none: the run is made again.
    pub fn get(&self, id: RunId) -> Option<Run> {
        let text = fs::read_to_string(self.path(id, "json")).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let same = record.schema == SCHEMA && record.id == id.to_string();
        same.then(|| self.run_of(id, &record)).flatten()
    }

    /// Whether the run called `id` is there.
    pub fn has(&self, id: RunId) -> bool {
        self.get(id).is_some()
    }

    /// Keeps `run` of `scenario` under the name `id`.
    pub fn put(&self, id: RunId, scenario: &Scenario, run: &Run) -> Result<(), StoreError> {
        let mut scenario = bare(scenario);
        scenario.head.seed = run.seed.0;
        let record = Record {
            schema: SCHEMA,
            id: id.to_string(),
            model: MODEL_VERSION,
            seed: run.seed.0,
            trace_hash: format!("{:016x}", run.trace_hash),
            simulated_ns: run.simulated.as_nanos(),
            metrics: run.metrics.clone(),
            detail: run.detail.clone(),
            scenario: scenario.to_toml(),
        };
        let mut text = serde_json::to_string(&record).expect("numbers and texts only");
        text.push('\n');
        write(&self.path(id, "wall"), format!("{:.6}\n", run.wall_s).as_bytes())?;
        write(&self.path(id, "json"), text.as_bytes())
    }

    /// The one run whose name begins with `prefix`.
    pub fn find(&self, prefix: &str) -> Result<(RunId, Stored), StoreError> {
        let names = self.ids()?.into_iter().filter(|id| id.to_string().starts_with(prefix));
        let found: Vec<RunId> = names.collect();
        let id = match found[..] {
            [] => return Err(StoreError::Unknown(prefix.to_owned())),
            [id] => id,
            _ => return Err(StoreError::Ambiguous(prefix.to_owned(), found.len())),
        };
        Ok((id, self.stored(id)?))
    }

    /// The run called `id` with its scenario.
    pub fn stored(&self, id: RunId) -> Result<Stored, StoreError> {
        let path = self.path(id, "json");
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let broken = |why: String| StoreError::Broken { path: path.clone(), why };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let scenario = Scenario::parse("scenario", &record.scenario, &[])
            .map_err(|errors: ConfigErrors| broken(errors.to_string()))?;
        let run = self.run_of(id, &record).ok_or_else(|| broken("no trace hash".to_owned()))?;
        Ok(Stored { run, model: record.model, scenario })
    }

    /// The names of all runs, in order.
    pub fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let name = entry.map_err(at(&self.folder))?.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            ids.extend(stem.and_then(|stem| stem.parse::<RunId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Takes every run of `other` that is not here; returns how many those were.
    pub fn merge(&self, other: &Self) -> Result<usize, StoreError> {
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
            other.stored(id)?;
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

    fn path(&self, id: RunId, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }
}

/// Writes a file under another name first, so that whoever reads or is killed never leaves half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut partial = OsString::from(path);
    partial.push(format!(".partial-{}", std::process::id()));
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
