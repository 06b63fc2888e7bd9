//! Where the changing part of a security context outlives a crash (RFC 8613 appendix B.1.1).
//!
//! ```text
//!   PATH.new  written, synced ──► renamed to PATH ──► folder synced ──► the new text survives a crash
//!                  |                                      |
//!             an error here: the old text          an error here: one of the two
//! ```

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lowmesh_oscore::{Identity, ProtectError, StateError};

/// A security context cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("{} is in use by another process; only one process may use a security context", .0.display())]
    InUse(PathBuf),
    /// What is stored is of a context that was derived many times, and the file says no `rfc8613_b_2` any more.
    #[error(
        "{} belongs to a context that was derived with rfc8613_b_2, which is off now; \
         turn it on again, or give both ends a new master_secret", .0.display()
    )]
    Renewed(PathBuf),
    /// Another folder is wanted than the recorded one.
    #[error(
        "{} says that the state of this key file is in {}, and {} is given; give the former. If you moved the state, \
         write the new folder into {} too", record.display(), recorded.display(), wanted.display(), record.display()
    )]
    OtherFolder {
        /// Where the folder is recorded.
        record: PathBuf,
        /// The recorded folder.
        recorded: PathBuf,
        /// The folder that is given.
        wanted: PathBuf,
    },
    /// The record of the folder cannot be used.
    #[error(
        "{} has to contain the folder with the state of this key file: {error}. \
         Put the state back, or if you moved it, write the new folder into the file", record.display()
    )]
    Record {
        /// Where the folder is recorded.
        record: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The recorded folder has no state.
    #[error(
        "{} says that the state of this key file is in {}, and it is not there; put it back, or if you moved it, write \
         the new folder into the file. If it is lost, remove the file, and use a new master_secret: with the old one, \
         sequence numbers would be used twice", record.display(), recorded.display()
    )]
    Lost {
        /// Where the folder is recorded.
        record: PathBuf,
        /// The recorded folder.
        recorded: PathBuf,
    },
    /// There is a state in the recorded folder, and another next to the key file.
    #[error(
        "{} is a second state of this key file, and {} says that its state is in {}; if you moved the state back, remove \
         the latter file, else move the former away", found.display(), record.display(), recorded.display()
    )]
    Second {
        /// The state.
        found: PathBuf,
        /// Where the folder is recorded.
        record: PathBuf,
        /// The recorded folder.
        recorded: PathBuf,
    },
    /// There is a state next to its file, and another folder is wanted for it.
    #[error("{} is the state of this context; move it to {}, or leave that folder out",
            found.display(), wanted.display())]
    Elsewhere {
        /// The state.
        found: PathBuf,
        /// The folder.
        wanted: PathBuf,
    },
    /// Its store cannot be read or written.
    #[error("cannot store the OSCORE state in {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The key file cannot be locked.
    #[error(
        "cannot lock {}, so another process could use it at the same time: {error}; \
         copy it to a local disk, and use the copy alone", path.display()
    )]
    Lock {
        /// The key file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// What is stored is damaged.
    #[error("{}: {error}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage, with its line.
        error: StateError,
    },
    /// The operating system gives no random octets.
    #[error("the operating system gives no random octets, which OSCORE needs: {0}")]
    Random(io::Error),
    /// The contexts have been closed, or there is none of this number.
    #[error("this security context no longer exists")]
    Closed,
    /// The message cannot be protected.
    #[error(transparent)]
    Protect(#[from] ProtectError),
}

/// Storage for one short text, of which a crash never leaves a part.
pub trait Store: fmt::Debug + Send {
    /// The place's name, for people.
    fn place(&self) -> &Path;
    /// The text that was saved last; `None` if none ever was.
    fn load(&self) -> io::Result<Option<String>>;
    /// Replaces the text. After `Ok` it survives a crash; after an error either it does or the one before, and
    /// another call may succeed.
    fn save(&mut self, text: &str) -> io::Result<()>;
}

/// A [`Store`] in a file, which belongs to one process at a time.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    /// Held as long as the store: two processes with one context would use its nonces twice.
    lock: File,
}

impl FileStore {
    /// The file at `path`, which need not exist; its folder must. All names of one file, but hard links, are one store.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::File { path: path.to_owned(), error };
        let path = real(path).map_err(failed)?;
        let lock = lock(&path)?;
        Ok(Self { path, lock })
    }
}

impl Store for FileStore {
    fn place(&self) -> &Path {
        &self.path
    }
    fn load(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
    fn save(&mut self, text: &str) -> io::Result<()> {
        let name = beside(&self.path, "lock");
        if !is_at(&self.lock, &name)? {
            let what =
                format!("{} was removed, so another process may use this state", name.display());
            return Err(io::Error::other(what));
        }
        replace(&self.path, text.as_bytes())
    }
}

/// Replaces what a file contains. After `Ok` it survives a crash; after an error there is the old content or the new.
pub(super) fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    let new = beside(path, "new");
    let mut file = fresh(&new)?;
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The rename is in the folder, and only the folder's own sync makes it survive a loss of power.
    File::open(folder(path))?.sync_all()
}

/// A new file, in place of one that a crash has left. It follows no link that somebody has put there.
fn fresh(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

/// Whether a path still leads to an open file. Without its name a lock keeps nobody out.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere an open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Holds `PATH.lock` until the file is dropped.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::File { path: path.to_owned(), error };
    let name = beside(path, "lock");
    // A new file follows no link, and what the link of an old one leads to keeps what it has.
    let lock = match File::create_new(&name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            File::options().write(true).open(&name)
        }
        lock => lock,
    };
    let lock = lock.map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The path without symbolic links and relative parts, also of a file that does not exist yet.
pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            Ok(fs::canonicalize(folder(path))?.join(name))
        }
        other => other,
    }
}

/// The folder of a file; `.` for a name without one.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The path with an ending more.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// What the names of all states begin with in which numbers of one sender stand.
pub(super) fn sender_of(path: &Path, sender: Identity) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", hex(sender)));
    name.into()
}

pub(super) fn hex(identity: Identity) -> String {
    let digits = identity.as_bytes().iter().map(|octet| format!("{octet:02x}"));
    digits.collect::<Vec<_>>().concat()
}
