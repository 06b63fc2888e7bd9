//! Where a path of a request leads below the folder that is served.
//!
//! Every step is an `openat` that follows no link, so that no program which moves files meanwhile can lead a request
//! out of the folder. A link is resolved by the system, and its result is walked from the root like any other path.
//!
//! Left to others: what a request does there.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lowmesh_coap::resource::{EntityTag, State};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

/// Links that one path may go through; ours: the limit of Linux (MAXSYMLINKS).
const LINKS_MAX: usize = 40;
/// A folder on the path is opened for its names alone, which asks for no right to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASSED: OFlag = OFlag::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASSED: OFlag = OFlag::O_RDONLY;

/// A folder whose real path is known.
pub struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

/// What is at a place. A link at the end of a path has been followed before.
pub enum Found {
    /// Nothing.
    Absent,
    /// A regular file.
    File(FileStat),
    /// A folder.
    Folder,
    /// A FIFO, a socket, a device: reading it may wait for ever.
    Other,
}

impl Found {
    /// The octets of a file; `None` if there is none.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::File(about) => Some(u64::try_from(about.st_size).unwrap_or(0)),
            _ => None,
        }
    }
}

/// A name in an open folder.
pub struct Place {
    /// The folder.
    pub folder: OwnedFd,
    /// The name.
    pub name: OsString,
}

impl Root {
    /// Opens the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = open(&path, flags, Mode::empty())?;
        Ok(Self { path, folder })
    }
    /// The open folder.
    pub const fn folder(&self) -> &OwnedFd {
        &self.folder
    }
    /// Where the segments of a path lead, all links followed.
    pub fn find<'s>(&self, segments: impl Iterator<Item = &'s [u8]>) -> io::Result<Place> {
        self.walk(names(segments)?, true)
    }
    /// The same without following a link at the end.
    pub fn entry<'s>(&self, segments: impl Iterator<Item = &'s [u8]>) -> io::Result<Place> {
        self.walk(names(segments)?, false)
    }

    fn walk(&self, names: VecDeque<OsString>, whole: bool) -> io::Result<Place> {
        let mut names = names;
        for _ in 0..LINKS_MAX {
            match self.walk_once(&mut names, whole)? {
                Step::There(place) => return Ok(place),
                Step::Link(link) => {
                    // What a link leads to need not be there, nor be inside, nor be anything at all.
                    let real = link.canonicalize().map_err(|_| io::ErrorKind::NotFound)?;
                    let inside = real.strip_prefix(&self.path);
                    let inside = inside.map_err(|_| io::ErrorKind::NotFound)?;
                    for name in inside.iter().rev() {
                        names.push_front(name.to_owned());
                    }
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
    /// Walks until the end or the first link; takes from `names` what it has walked.
    fn walk_once(&self, names: &mut VecDeque<OsString>, whole: bool) -> io::Result<Step> {
        let (mut folder, mut path) = (self.folder.try_clone()?, self.path.clone());
        while let Some(name) = names.pop_front() {
            if !name.to_str().is_some_and(is_name) {
                return Err(io::ErrorKind::NotFound.into());
            }
            path.push(&name);
            let last = names.is_empty();
            if (!last || whole) && kind_at(&folder, &name)? == SFlag::S_IFLNK {
                return Ok(Step::Link(path));
            }
            if last {
                return Ok(Step::There(Place { folder, name }));
            }
            let flags = PASSED | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            folder = openat(&folder, name.as_os_str(), flags, Mode::empty())?;
        }
        Err(io::ErrorKind::IsADirectory.into())
    }
}

/// How far a walk came.
enum Step {
    There(Place),
    /// The path of a link, which the rest of the names goes behind.
    Link(PathBuf),
}

/// The type of the file with a name; empty if there is none.
fn kind_at(folder: &OwnedFd, name: &OsStr) -> io::Result<SFlag> {
    match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(about) => Ok(kind(&about)),
        Err(Errno::ENOENT) => Ok(SFlag::empty()),
        Err(error) => Err(error.into()),
    }
}

/// The type of a file.
pub fn kind(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT
}

impl Place {
    /// What is there.
    pub fn look(&self) -> io::Result<Found> {
        let about = match fstatat(&self.folder, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
        {
            Ok(about) => about,
            Err(Errno::ENOENT) => return Ok(Found::Absent),
            Err(error) => return Err(error.into()),
        };
        Ok(match kind(&about) {
            SFlag::S_IFREG => Found::File(about),
            SFlag::S_IFDIR => Found::Folder,
            _ => Found::Other,
        })
    }
    /// Opens the regular file that is there to read it; says what it is once it is open.
    pub fn open(&self) -> io::Result<(File, FileStat)> {
        // Opening a device can already have an effect, so a device is not opened.
        if matches!(self.look()?, Found::Other) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // What took the place of a file meanwhile is opened without waiting for its other end.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(&self.folder, self.name.as_os_str(), flags, Mode::empty())?;
        let about = fstat(&file)?;
        match kind(&about) {
            SFlag::S_IFREG => Ok((file.into(), about)),
            SFlag::S_IFDIR => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
    /// Waits until names that have come to and gone from the folder are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder: File = openat(&self.folder, ".", flags, Mode::empty())?.into();
        match folder.sync_all() {
            // A file system that keeps no folders in memory has nothing to write.
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(()),
            synced => synced,
        }
    }
}

impl Found {
    /// What the conditions of a request ask about; an error if it is nothing that a request may change.
    pub fn state(&self) -> io::Result<State> {
        match self {
            Self::Absent => Ok(State::Absent),
            Self::File(about) => Ok(State::Present(Some(tag(about)))),
            Self::Folder => Err(io::ErrorKind::IsADirectory.into()),
            Self::Other => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// The entity tag of a file, which changes with each of its contents although none is read: it follows from where the
/// file lies, its size, and the times of its last changes, which are told to the nanosecond.
pub fn tag(about: &FileStat) -> EntityTag {
    let place = [&about.st_dev.to_be_bytes()[..], &about.st_ino.to_be_bytes()].concat();
    let changed = [&about.st_mtime.to_be_bytes()[..], &about.st_mtime_nsec.to_be_bytes()].concat();
    let moved = [&about.st_ctime.to_be_bytes()[..], &about.st_ctime_nsec.to_be_bytes()].concat();
    EntityTag::of(&[&place[..], &about.st_size.to_be_bytes(), &changed, &moved].concat())
}

/// The segments of a path as names of files.
fn names<'s>(segments: impl Iterator<Item = &'s [u8]>) -> io::Result<VecDeque<OsString>> {
    let name = |segment| str::from_utf8(segment).ok().filter(|name| is_name(name));
    let names = segments.map(|segment| name(segment).map(OsString::from));
    names.collect::<Option<_>>().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A file or a folder that may be named, by one segment of a path.
pub fn is_name(segment: &str) -> bool {
    !segment.is_empty() && !segment.starts_with('.') && !segment.contains(['/', '\\', ':', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_leads_elsewhere_is_no_name() {
        for name in ["a.txt", "b", "with blank", "ü", "a..b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".hidden", "a/b", "..\\a", "C:", "a\0"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
