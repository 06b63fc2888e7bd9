//! The files of a store: their names, and writes that leave a whole file or none.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::StoreError;
use crate::build::Build;
use crate::identity::RunId;

/// The file that names the build of a folder.
pub(super) const BUILD_FILE: &str = "build.json";

/// The number of files that this process has begun to write.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The build that the file in `folder` names; none if it cannot be read.
pub(super) fn recorded(folder: &Path) -> Option<Build> {
    let text = fs::read_to_string(folder.join(BUILD_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}

/// The names of the runs in a folder, in order.
pub(super) fn ids(folder: &Path) -> Result<Vec<RunId>, StoreError> {
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
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut partial = OsString::from(path);
    // Several threads may write to one folder at a time; the number keeps their files apart.
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    partial.push(format!(".partial-{}-{number}", std::process::id()));
    let partial = PathBuf::from(partial);
    // One that a killed process has left is removed; a new file follows no link.
    let _none_left = fs::remove_file(&partial);
    let mut file = fs::File::create_new(&partial).map_err(at(&partial))?;
    file.write_all(bytes).map_err(at(&partial))?;
    drop(file);
    fs::rename(&partial, path).map_err(at(path))
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), source }
}
