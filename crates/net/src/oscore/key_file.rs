//! A file of keys, and the one folder that the states of its sender are in.
//!
//! ```text
//!   keys.conf                    locked while it is in use, whatever folder its states are in
//!   keys.conf.01.state-in        the folder of the states of the sender 01, if it is not this one
//!   DIR/keys.conf.01-02.state    a state
//! ```
//! Two states of one sender would use the same sequence numbers with one key (RFC 8613 s7.2). So the lock is on the key file:
//! processes with different folders exclude each other. The record makes each open use the folder of the first. The order of
//! an open keeps this true at any crash: states first, then the record, and messages after that.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lowmesh_oscore::Identity;
use zeroize::Zeroizing;

use super::error::OpenError;
use super::store::{StoreError, beside, folder, lock, real, replace, sender_of};

/// A key file that no other process uses.
#[derive(Debug)]
pub(super) struct KeyFile {
    /// Without symbolic links.
    path: PathBuf,
    text: Zeroizing<String>,
    lock: File,
}

/// Where the states of a key file are.
#[derive(Debug)]
pub(super) struct States {
    place: PathBuf,
    locks: Locks,
    /// The record to write once there are states.
    record: Option<PathBuf>,
}

/// Held as long as keys are in use.
#[derive(Debug)]
pub(super) struct Locks {
    _keys: File,
    _states: File,
}

impl KeyFile {
    /// Locks and reads a file. All names of one file are one file; a file with several hard links is refused.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let read = |error| OpenError::Read { path: path.to_owned(), error };
        let real = real(path).map_err(read)?;
        let file = File::open(&real).map_err(read)?;
        let names = file.metadata().map_err(read)?.nlink();
        if names > 1 {
            return Err(OpenError::HardLinks { path: path.to_owned(), names });
        }
        let mut lock = locked(file, &real)?;
        let mut text = Zeroizing::new(String::new());
        lock.read_to_string(&mut text).map_err(read)?;
        Ok(Self { path: real, text, lock })
    }
    /// What the file says.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
    /// The place of the states of a sender: the recorded folder, else the given one, else that of the file. Unless they may
    /// be lost, there are states in a recorded folder.
    pub(super) fn states(
        self,
        sender: Identity,
        wanted: Option<&Path>,
        may_lose: bool,
    ) -> Result<States, StoreError> {
        let own = folder(&self.path);
        let record = beside(&sender_of(&self.path, sender), "state-in");
        let recorded = recorded(&record, own)?;
        let failed = |path: &Path, error| StoreError::File { path: path.to_owned(), error };
        let real_folder = |path: &Path| fs::canonicalize(path).map_err(|error| failed(path, error));
        let wanted = wanted.map(real_folder).transpose()?;
        if let (Some(recorded), Some(wanted)) = (&recorded, &wanted)
            && recorded != wanted
        {
            let (recorded, wanted) = (recorded.clone(), wanted.clone());
            return Err(StoreError::OtherFolder { record, recorded, wanted });
        }
        let is_recorded = recorded.is_some();
        let chosen = recorded.or(wanted).unwrap_or_else(|| own.to_owned());
        let is_elsewhere = chosen != own;
        if is_elsewhere && let Some(found) = state_at(&self.path, sender) {
            return Err(if is_recorded {
                StoreError::Second { found, record, recorded: chosen }
            } else {
                StoreError::Elsewhere { found, wanted: chosen }
            });
        }
        let place = chosen.join(self.path.file_name().unwrap_or_default());
        if is_recorded && !may_lose && state_at(&place, sender).is_none() {
            return Err(StoreError::Lost { record, recorded: chosen });
        }
        let locks = Locks { _keys: self.lock, _states: lock(&sender_of(&place, sender))? };
        let record = (is_elsewhere && !is_recorded).then_some(record);
        Ok(States { place, locks, record })
    }
}

impl States {
    /// The path that the names of all states begin with.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }
    /// Records the folder, now that there are states in it. The locks are to be held as long as the states are in use.
    pub(super) fn record(self) -> Result<Locks, StoreError> {
        let Some(record) = self.record else { return Ok(self.locks) };
        let mut line = folder(&self.place).to_owned().into_os_string().into_vec();
        line.push(b'\n');
        match replace(&record, &line) {
            Ok(()) => Ok(self.locks),
            // Keys that are mounted read-only are what another folder is for.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(self.locks)
            }
            Err(error) => Err(StoreError::File { path: record, error }),
        }
    }
}

/// Locks a key file, which is open for reading, as nothing else may be permitted.
fn locked(file: File, path: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::Lock { path: path.to_owned(), error };
    let again = match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
        // Some file systems, such as NFS, give a lock only to those that may write.
        Err(TryLockError::Error(error)) => {
            File::options().read(true).write(true).open(path).map_err(|_| failed(error))?
        }
    };
    match again.try_lock() {
        Ok(()) => Ok(again),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The longest path of a record, octets: PATH_MAX of Linux, and the end of the line.
const RECORD_MAX: u64 = 4097;

/// The folder that a record says, without symbolic links; a relative one begins at the folder of the keys.
fn recorded(record: &Path, own: &Path) -> Result<Option<PathBuf>, StoreError> {
    let failed = |error| StoreError::Record { record: record.to_owned(), error };
    let about = match fs::symlink_metadata(record) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about.map_err(failed)?,
    };
    // What a link leads to is not ours to read, or to show in an error.
    if !about.is_file() || about.len() > RECORD_MAX {
        return Err(failed(io::Error::other("it is not a file of one line")));
    }
    let octets = fs::read(record).map_err(failed)?;
    let line = octets.strip_suffix(b"\n").unwrap_or(&octets);
    if line.is_empty() {
        return Err(failed(io::Error::other("it is empty")));
    }
    let path = own.join(OsStr::from_bytes(line));
    let real = fs::canonicalize(&path).map_err(|error| {
        failed(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    })?;
    Ok(Some(real))
}

/// A state of a sender at a place, if there is one. A folder that may not be read tells it by the lock of its states.
fn state_at(place: &Path, sender: Identity) -> Option<PathBuf> {
    let prefix = sender_of(place, sender);
    let Ok(entries) = fs::read_dir(folder(place)) else {
        let lock = beside(&prefix, "lock");
        return fs::symlink_metadata(&lock).is_ok().then_some(lock);
    };
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let is_state = |name: &OsStr| {
        let rest = name.as_encoded_bytes().strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(b"-") && rest.ends_with(b".state"))
    };
    entries.flatten().find(|entry| is_state(&entry.file_name())).map(|entry| entry.path())
}
