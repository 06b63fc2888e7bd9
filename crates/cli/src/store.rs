//! Where runs are kept: `--store`, else `LOWMESH_STORE`, else the user's folder for data.

use std::env;
use std::path::{Path, PathBuf};

use lowmesh_lab::command::Kept;
use lowmesh_lab::store::{BuildRuns, Store, StoreError};

use crate::console::say;
use crate::failure::Failure;
use crate::place;

/// Other builds that are named; the rest is counted.
const BUILDS_TOLD: usize = 3;

/// The folder that the user named, by flag or environment.
pub fn named(flag: Option<&Path>) -> Option<PathBuf> {
    flag.map(Path::to_owned).or_else(|| folder_of("LOWMESH_STORE"))
}

/// The folder that the user named, or the default one.
pub fn location(flag: Option<&Path>) -> Result<PathBuf, Failure> {
    let own = || {
        let data = folder_of("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
        let data = data.or_else(|| Some(folder_of("HOME")?.join(".local/share")))?;
        Some(data.join("lowmesh").join("runs"))
    };
    named(flag).or_else(own).ok_or_else(|| Failure::Usage {
        message: "there is no folder for stored runs".to_owned(),
        hint: Some("name one with --store DIR or LOWMESH_STORE".to_owned()),
    })
}

/// How a printed command names the store.
pub fn kept(flag: Option<&Path>) -> Kept {
    flag.map_or(Kept::AsUsual, |folder| Kept::In(folder.to_string_lossy().into_owned()))
}

/// Refuses a store that cannot take runs, before any is made.
pub fn check_writable(store: &Store) -> Result<(), Failure> {
    place::check_folder(store.folder()).map_err(|why| {
        let message = format!("cannot store runs in {}: {why}", store.folder().display());
        Failure::usage(message, "name another folder with --store DIR or LOWMESH_STORE")
    })
}

/// A store that must exist.
pub fn existing(folder: &Path) -> Result<Store, Failure> {
    if !folder.is_dir() {
        let message = format!("there is no store in {}", folder.display());
        return Err(Failure::Usage { message, hint: None });
    }
    Ok(Store::open(folder)?)
}

/// Names the builds whose runs are in the store but are not used, on stderr.
pub fn tell_others(store: &Store) -> Result<(), Failure> {
    let others = store.others()?;
    for other in others.iter().take(BUILDS_TOLD) {
        say!("{}", line(other));
    }
    if let Some(more) = others.len().checked_sub(BUILDS_TOLD).filter(|more| *more > 0) {
        say!("and runs of {more} more builds in {}", store.folder().display());
    }
    Ok(())
}

/// The message about runs of another build, with how to remove them.
fn line(other: &BuildRuns) -> String {
    let (runs, folder) = (other.runs, other.folder.display());
    let files = if other.build.is_some() { "" } else { "/*.json" };
    let plural = if runs == 1 { " is" } else { "s are" };
    format!(
        "{runs} stored run{plural} of {other}: not used, because this program is another build; \
         to drop them, remove {folder}{files}"
    )
}

fn folder_of(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unknown(_) | StoreError::Ambiguous(..) => {
                let hint = "`runs.csv` and `--json` of a sweep name its runs";
                Self::Usage { message, hint: Some(hint.to_owned()) }
            }
            StoreError::SeveralBuilds { .. } => {
                let hint = "give the folder of one build in the store";
                Self::Usage { message, hint: Some(hint.to_owned()) }
            }
            _ => Self::own(message),
        }
    }
}
