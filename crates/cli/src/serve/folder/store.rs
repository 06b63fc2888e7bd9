//! How a file takes the place of another: written aside, synced, and moved there in one step.
//!
//! ```text
//!   create aside ─► write ─► sync ─► rename ─► sync the folder ─► answer
//!        └──────────┴─ error ─┴─► remove
//! ```
//! A reader sees the old file or the new one. What a crash has left unfinished is removed at the next start.

use std::ffi::OsStr;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::place::Place;
use crate::serve::reply::lock;

/// How the names of unfinished files begin. They are hidden, so no request reaches them.
const UNFINISHED: &str = ".lowmesh-unfinished";
/// How often another name is tried when one is taken.
const TRIES: usize = 16;
/// The rights that a file keeps: what a request has written runs with the rights of nobody else (set-user-ID).
const KEPT_MODE: u32 = 0o777;

/// What makes files different: their names while they are unfinished, and the times of their contents.
#[derive(Default)]
pub struct Serial {
    names: AtomicU64,
    newest: Mutex<Option<SystemTime>>,
}

impl Serial {
    /// The time of day, later than each before, so that no two contents have the same.
    #[allow(clippy::disallowed_methods, reason = "the time of a file is the time of day")]
    fn time(&self) -> SystemTime {
        let mut newest = lock(&self.newest);
        let now = SystemTime::now();
        let later = newest.map_or(now, |newest| now.max(newest + Duration::from_nanos(1)));
        *newest = Some(later);
        later
    }
    fn name(&self) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        format!("{UNFINISHED}-{}-{number}", std::process::id())
    }
}

/// A file that is written and not yet in its place. Dropped, it is removed.
pub struct Unfinished<'p> {
    place: &'p Place,
    name: String,
    /// Open for as long as it is unfinished: its lock keeps another server from removing it.
    file: File,
    placed: bool,
}

impl<'p> Unfinished<'p> {
    /// Writes a body beside its place and waits until it is on the disk. It gets the rights of the file that it is to
    /// replace.
    pub fn write(
        place: &'p Place,
        body: &[u8],
        old: Option<&FileStat>,
        serial: &Serial,
    ) -> io::Result<Self> {
        let (name, file) = create(place, serial)?;
        let mut unfinished = Self { place, name, file, placed: false };
        let file = &mut unfinished.file;
        // Without locks in the file system, two servers must not write to one folder.
        let _locked = file.try_lock();
        if let Some(old) = old {
            keep_rights(file, old)?;
        }
        file.write_all(body)?;
        file.set_modified(serial.time())?;
        file.sync_all()?;
        Ok(unfinished)
    }
    /// Puts it into its place. [`Place::sync`] makes that durable.
    pub fn put(mut self) -> io::Result<()> {
        let folder = &self.place.folder;
        renameat(folder, self.name.as_str(), folder, self.place.name.as_os_str())?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // What cannot be removed now is removed at the next start.
            let _left = remove(&self.place.folder, &self.name);
        }
    }
}

fn create(place: &Place, serial: &Serial) -> io::Result<(String, File)> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut taken = Errno::EEXIST;
    for _ in 0..TRIES {
        let name = serial.name();
        // The mask of the process takes the rights away that it takes from every new file.
        match openat(&place.folder, name.as_str(), flags, Mode::from_bits_truncate(0o666)) {
            Ok(file) => return Ok((name, file.into())),
            Err(Errno::EEXIST) => taken = Errno::EEXIST,
            Err(error) => return Err(error.into()),
        }
    }
    Err(taken.into())
}

/// Owner first, since a change of owner takes rights away.
fn keep_rights(file: &File, old: &FileStat) -> io::Result<()> {
    if fchown(file, Some(old.st_uid), Some(old.st_gid)).is_err() {
        // Only root gives files away. A group that we belong to we can still keep.
        let _ours = fchown(file, None, Some(old.st_gid));
    }
    let mode = Mode::from_bits_truncate(old.st_mode).bits();
    #[allow(clippy::useless_conversion, reason = "the type is another on other systems")]
    file.set_permissions(Permissions::from_mode(u32::from(mode) & KEPT_MODE))
}

/// Removes a name from a folder.
pub fn remove(folder: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<()> {
    Ok(unlinkat(folder, name.as_ref(), UnlinkatFlags::NoRemoveDir)?)
}

/// Removes a file that a crash has left unfinished; one that another server writes stays.
pub fn clean(folder: impl AsFd, name: &str) {
    if !name.starts_with(UNFINISHED) {
        return;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(folder.as_fd(), name, flags, Mode::empty()).map(File::from);
    if file.is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock))) {
        // Without the right to remove it, it stays, hidden.
        let _left = remove(folder, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_contents_have_the_same_time_and_no_two_files_the_same_name() {
        let serial = Serial::default();
        let times: Vec<SystemTime> = (0..1000).map(|_| serial.time()).collect();
        assert!(times.is_sorted_by(|one, next| one < next));
        assert_ne!(serial.name(), serial.name());
    }
}
