//! Files with keys: who but their owner can read or change them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::console::say;

/// Warns, once for each file, if others than its owner and its group may read it, or others than its owner may write it.
pub fn look_at(file: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Some(mode) = mode(file).filter(|mode| is_open(*mode)) else { return };
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned()) {
        let file = file.display();
        say!("warning: {file} has a key, and its mode {mode:04o} lets others use or change it");
        say!("hint: chmod 600 {file}");
    }
}

#[cfg(unix)]
fn mode(file: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    // What cannot be looked at cannot be read either, and is reported there. A pipe or a terminal has no such mode.
    let about = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    Some(about.mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_file: &Path) -> Option<u32> {
    None
}

const fn is_open(mode: u32) -> bool {
    mode & 0o026 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_owner_and_one_that_its_group_reads_are_closed() {
        assert_eq!([0o600, 0o400, 0o640].map(is_open), [false; 3]);
        assert_eq!([0o666, 0o644, 0o660, 0o602].map(is_open), [true; 4]);
    }
}
