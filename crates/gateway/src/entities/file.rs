//! The state of a manager in a file: a line for each change, and a line at the end of each step.
//!
//! ```text
//!   lowmesh-groups 1
//!   entity/room 8b01f5...        the key, and the value in hexadecimal
//!   entity/hall -                the key is removed
//!   step                         what is above is whole
//! ```
//! A step that has no end is as if it had not begun: the program ended while it wrote. At its start, and whenever the file
//! has doubled, the program writes it again without what is out of date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lowmesh_group::store::{Change, Store, StoreError};

use crate::params::GROUPS_STATE_MIN;
use lowmesh_net::oscore::folder;

const HEAD: &str = "lowmesh-groups 1";
const STEP: &str = "step";

/// A [`Store`] in a file, which is locked as long as the store exists.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    file: File,
    state: BTreeMap<String, Vec<u8>>,
    /// Octets of whole steps.
    whole: u64,
    /// Octets of whole steps at which the file is written again.
    rewrite_at: u64,
    /// A loss of power may still bring the file before the last rename back.
    is_renamed: bool,
}

impl FileStore {
    /// Opens a file, and creates it if it does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let failed = |error: &dyn std::fmt::Display| {
            StoreError(format!("state in {}: {error}", path.display()))
        };
        let before = lock(&path).map_err(|error| failed(&error))?;
        let state = match fs::read_to_string(&path) {
            Ok(text) => read(&text).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(&error)),
        };
        let (file, whole) = rewrite(&path, &state).map_err(|error| failed(&error))?;
        // The new file has its lock by now.
        drop(before);
        let (rewrite_at, is_renamed) = (next_rewrite(whole), true);
        Ok(Self { path, file, state, whole, rewrite_at, is_renamed })
    }
    fn append(&mut self, text: &str) -> io::Result<()> {
        if self.is_renamed {
            // The rename is in the folder, and only the folder's own sync makes it survive a loss of power.
            File::open(folder(&self.path))?.sync_all()?;
            self.is_renamed = false;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }
    /// Writes the file again once it has doubled. The old one stays if that is not possible.
    fn shrink(&mut self) {
        if self.whole < self.rewrite_at {
            return;
        }
        if let Ok((file, whole)) = rewrite(&self.path, &self.state) {
            (self.file, self.whole, self.is_renamed) = (file, whole, true);
        }
        self.rewrite_at = next_rewrite(self.whole);
    }
}

impl Store for FileStore {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.state.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut text = String::new();
        for change in changes {
            push(&mut text, &change.key, change.value.as_deref());
        }
        text.push_str(STEP);
        text.push('\n');
        if let Err(error) = self.append(&text) {
            // Half a step must not stay before the next one.
            let _kept = self.file.set_len(self.whole);
            return Err(StoreError(format!("state in {}: {error}", self.path.display())));
        }
        self.whole += text.len() as u64;
        for Change { key, value } in changes {
            match value {
                Some(value) => _ = self.state.insert(key.clone(), value.clone()),
                None => _ = self.state.remove(key),
            }
        }
        self.shrink();
        Ok(())
    }
}

/// The length at which a file of so many octets is written again.
const fn next_rewrite(octets: u64) -> u64 {
    let doubled = octets.saturating_mul(2);
    if doubled < GROUPS_STATE_MIN { GROUPS_STATE_MIN } else { doubled }
}

/// Writes a state to a new file that takes the place of the old one.
fn rewrite(path: &Path, state: &BTreeMap<String, Vec<u8>>) -> io::Result<(File, u64)> {
    let mut text = format!("{HEAD}\n");
    for (key, value) in state {
        push(&mut text, key, Some(value));
    }
    text.push_str(STEP);
    text.push('\n');
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    match fs::remove_file(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().append(true).create_new(true).open(&name)?;
    new.try_lock()?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&name, path)?;
    Ok((new, text.len() as u64))
}

/// Locks a file, if it is there: two programs that write the same one would lose changes.
fn lock(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(file) => match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::other("another running program uses it"))
            }
            Err(TryLockError::Error(error)) => Err(error),
        },
    }
}

fn push(text: &mut String, key: &str, value: Option<&[u8]>) {
    text.push_str(key);
    text.push(' ');
    match value {
        Some(value) => {
            for octet in value {
                write!(text, "{octet:02x}").expect("a String takes everything");
            }
        }
        None => text.push('-'),
    }
    text.push('\n');
}

/// The state after all whole steps.
fn read(text: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut lines = text.lines().enumerate();
    if !matches!(lines.next(), None | Some((_, HEAD))) {
        return Err(format!("line 1 is not {HEAD:?}: another program wrote the file"));
    }
    let (mut state, mut step) = (BTreeMap::new(), Vec::new());
    let last = text.lines().count();
    for (number, line) in lines {
        if line == STEP {
            for (key, value) in step.drain(..) {
                match value {
                    Some(value) => _ = state.insert(key, value),
                    None => _ = state.remove(&key),
                }
            }
            continue;
        }
        match change(line) {
            Some(change) => step.push(change),
            // A line that was cut is the last one, and its step has no end.
            None if number + 1 == last => {}
            None => return Err(format!("line {} is not a change, KEY HEX", number + 1)),
        }
    }
    Ok(state)
}

fn change(line: &str) -> Option<(String, Option<Vec<u8>>)> {
    let (key, value) = line.split_once(' ')?;
    if value == "-" {
        return Some((key.to_owned(), None));
    }
    let digits = value.as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let octets: Option<Vec<u8>> = digits.chunks(2).map(octet).collect();
    Some((key.to_owned(), Some(octets?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &[u8]) -> Change {
        Change { key: key.to_owned(), value: Some(value.to_vec()) }
    }

    fn folder_of(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lowmesh-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn what_was_committed_is_there_again_and_half_a_step_is_not() {
        let folder = folder_of("groups-state");
        let path = folder.join("state");
        let mut store = FileStore::open(&path).expect("a new file");
        store.commit(&[put("entity/a", b"\x01"), put("numbers", b"\x00\x02")]).expect("written");
        let end = Change { key: "entity/a".to_owned(), value: None };
        store.commit(&[end, put("entity/b", b"\xff")]).expect("written");
        drop(store);
        let whole = fs::read(&path).expect("a file");
        let expected =
            vec![("entity/b".to_owned(), vec![0xff]), ("numbers".to_owned(), vec![0, 2])];
        assert_eq!(FileStore::open(&path).and_then(|mut store| store.load()), Ok(expected.clone()));
        // Each prefix of the file has the state after one of the steps.
        let before = vec![("entity/a".to_owned(), vec![1]), ("numbers".to_owned(), vec![0, 2])];
        for end in HEAD.len() + 1..=whole.len() {
            fs::write(&path, &whole[..end]).expect("written");
            let state = FileStore::open(&path).and_then(|mut store| store.load()).expect("a state");
            assert!(state.is_empty() || state == before || state == expected, "{end}: {state:?}");
        }
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_of_many_changes_does_not_grow_without_bound() {
        let folder = folder_of("groups-growth");
        let path = folder.join("state");
        let mut store = FileStore::open(&path).expect("a new file");
        let value = |step: u8| vec![step; 100_000];
        for step in 0..100 {
            store.commit(&[put("entity/a", &value(step))]).expect("written");
            assert!(fs::metadata(&path).expect("a file").len() < 3 * GROUPS_STATE_MIN);
        }
        assert!(FileStore::open(&path).is_err(), "the new file is locked, too");
        drop(store);
        let state = FileStore::open(&path).and_then(|mut store| store.load());
        assert_eq!(state, Ok(vec![("entity/a".to_owned(), value(99))]));
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_has_one_store_at_a_time() {
        let folder = folder_of("groups-lock");
        let path = folder.join("state");
        let first = FileStore::open(&path).expect("a new file");
        let error = FileStore::open(&path).expect_err("it is in use").to_string();
        assert!(error.contains("another running program"), "{error}");
        drop(first);
        assert!(FileStore::open(&path).is_ok());
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_of_another_program_is_refused_with_its_line() {
        assert!(read("hello\n").is_err_and(|error| error.contains("line 1")));
        let error = read(&format!("{HEAD}\nentity/a xy\n{STEP}\n")).expect_err("no digits");
        assert_eq!(error, "line 2 is not a change, KEY HEX");
    }
}
