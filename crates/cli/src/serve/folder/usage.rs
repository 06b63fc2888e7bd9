//! How many files a folder has and how many octets, so that clients who write cannot fill a disk.
//!
//! Files outlive the clients who write them, so nobody gives way: beyond a bound only what makes no more is written. The
//! folder is counted at the start; what others change in it meanwhile is counted at the next start.

use std::fs;
use std::path::Path;

/// Folders in folders that are counted; ours, as for the list of files.
const DEPTH_MAX: usize = 8;

/// Files and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub files: u64,
    pub octets: u64,
}

/// What a folder has, and may have.
#[derive(Debug)]
pub struct Room {
    max: Usage,
    used: Usage,
}

impl Room {
    /// Counts the files of a folder, unless there are more than it may have.
    pub fn of(folder: &Path, max: Usage) -> Self {
        let mut used = Usage::default();
        count(folder, DEPTH_MAX, max.files, &mut used);
        Self { max, used }
    }
    /// Whether a file of `new` octets may take the place of one of `old`; `None` for none.
    pub const fn admits(&self, old: Option<u64>, new: u64) -> bool {
        let files = self.used.files + if old.is_none() { 1 } else { 0 };
        let (old, shrinks) = match old {
            Some(old) => (old, new <= old),
            None => (0, false),
        };
        let octets = self.used.octets.saturating_sub(old).saturating_add(new);
        // A file that gets shorter is always written.
        shrinks || (files <= self.max.files && octets <= self.max.octets)
    }
    /// A file of `new` octets has taken the place of one of `old`.
    pub const fn written(&mut self, old: Option<u64>, new: u64) {
        match old {
            Some(old) => self.used.octets = self.used.octets.saturating_sub(old),
            None => self.used.files += 1,
        }
        self.used.octets = self.used.octets.saturating_add(new);
    }
    /// A file of so many octets is gone.
    pub const fn deleted(&mut self, old: u64) {
        self.used.files = self.used.files.saturating_sub(1);
        self.used.octets = self.used.octets.saturating_sub(old);
    }
}

/// What cannot be read is not counted, and follows no link.
fn count(folder: &Path, depth: usize, files_max: u64, used: &mut Usage) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if used.files > files_max {
            return;
        }
        match entry.metadata() {
            Ok(about) if about.is_dir() && depth > 0 => {
                count(&entry.path(), depth - 1, files_max, used);
            }
            Ok(about) if about.is_file() => {
                used.files += 1;
                used.octets = used.octets.saturating_add(about.len());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_octets_have_a_bound_and_what_gets_shorter_is_always_written() {
        let mut room = Room { max: Usage { files: 2, octets: 100 }, used: Usage::default() };
        assert!(room.admits(None, 100) && !room.admits(None, 101));
        room.written(None, 60);
        room.written(None, 40);
        assert!(!room.admits(None, 0), "two files");
        assert!(room.admits(Some(40), 40) && !room.admits(Some(40), 41));
        room.written(Some(60), 10);
        assert!(room.admits(Some(40), 90));
        room.deleted(40);
        assert_eq!(room.used, Usage { files: 1, octets: 10 });
        assert!(room.admits(None, 90) && !room.admits(None, 91));
    }

    #[test]
    fn a_folder_is_counted_with_its_folders_and_without_what_links_lead_to() {
        let folder = std::env::temp_dir().join(format!("lowmesh-usage-{}", std::process::id()));
        fs::create_dir_all(folder.join("deeper")).expect("a place for files");
        fs::write(folder.join("a"), [0; 10]).expect("ours");
        fs::write(folder.join("deeper/b"), [0; 5]).expect("ours");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).expect("ours");
        let room = Room::of(&folder, Usage { files: 100, octets: 100 });
        assert_eq!(room.used, Usage { files: 2, octets: 15 });
        fs::remove_dir_all(&folder).expect("ours");
    }
}
