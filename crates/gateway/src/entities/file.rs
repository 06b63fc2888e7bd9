//! The state of a manager in a file: a line for each change, and a line at the end of each step.
//!
//! ```text
//!   lowmesh-groups 2
//!   entity/room 8b01f5...        the key, and the value in hexadecimal
//!   entity/hall -                the key is removed
//!   step 5c0f2ab7e1d90344 end    what is above is whole: a checksum of all octets before this line
//! ```
//! A step that has no end is as if it had not begun: the program ended while it wrote. Anything else that is not as it was
//! written is damage, and the file is refused. Before its first change, and whenever the file has doubled, the program writes
//! it again without what is out of date; `FILE.bak` is the one before. `FILE.spare` keeps room for a step when the disk is
//! full.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lowmesh_group::store::{Change, Store, StoreError};

use crate::params::{GROUPS_SPARE, GROUPS_STATE_MIN};
use lowmesh_net::oscore::folder;

const HEAD: &str = "lowmesh-groups 2";
/// That of files without checksums.
const HEAD_BEFORE: &str = "lowmesh-groups 1";
const STEP: &str = "step";
/// Makes the line of a step unlike a change, whatever octet of it is damaged.
const END: &str = "end";

/// A [`Store`] in a file, which is locked as long as the store exists.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    file: File,
    state: BTreeMap<String, Vec<u8>>,
    sum: Checksum,
    /// Octets of whole steps.
    whole: u64,
    /// Octets of whole steps at which the file is written again. A file that was only read has none.
    rewrite_at: Option<u64>,
    /// Whether `FILE.spare` is there.
    has_spare: bool,
    /// A loss of power may still bring the file before the last rename back.
    is_renamed: bool,
}

impl FileStore {
    /// Opens a file, and creates it if it does not exist. One that exists stays as it is until the first change.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let failed = |error: &dyn std::fmt::Display| {
            StoreError(format!("state in {}: {error}", path.display()))
        };
        let (file, is_new) = lock(&path).map_err(|error| failed(&error))?;
        let state = if is_new {
            BTreeMap::new()
        } else {
            let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
            let bak = beside(&path, "bak");
            let damaged = |what: String| {
                let hint = if bak.exists() {
                    format!("{} is the file before its last rewrite", bak.display())
                } else {
                    "remove it to start without entities".to_owned()
                };
                failed(&format!("{what}; {hint}"))
            };
            read(&text).map_err(damaged)?
        };
        let (has_spare, is_renamed) = (false, is_new);
        let (mut sum, mut octets, mut rewrite_at) = (Checksum::START, 0, None);
        if is_new {
            let (text, of_text) = whole(&state);
            (sum, octets) = (of_text, text.len() as u64);
            rewrite_at = Some(next_rewrite(octets));
        }
        let whole = octets;
        let mut store = Self { path, file, state, sum, whole, rewrite_at, has_spare, is_renamed };
        store.has_room();
        Ok(store)
    }
    fn spare(&self) -> PathBuf {
        beside(&self.path, "spare")
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
    /// Writes the file again.
    fn rewrite(&mut self) -> io::Result<()> {
        let (text, sum) = whole(&self.state);
        let (file, new) = write_new(&self.path, &text)?;
        let bak = beside(&self.path, "bak");
        match fs::remove_file(&bak) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A file system without links has no backup.
        let _kept = fs::hard_link(&self.path, &bak);
        if let Err(error) = fs::rename(&new, &self.path) {
            let _not_left = fs::remove_file(&new);
            return Err(error);
        }
        // The new file has had its lock before it got the name; that of the old one ends here.
        (self.file, self.sum, self.whole, self.is_renamed) = (file, sum, text.len() as u64, true);
        self.rewrite_at = Some(next_rewrite(self.whole));
        Ok(())
    }
    /// Adds a step. Half of one does not stay before the next.
    fn add(&mut self, step: &str) -> io::Result<()> {
        if self.rewrite_at.is_none() {
            self.rewrite()?;
        }
        let sum = self.sum.with(step);
        let text = format!("{step}{STEP} {sum} {END}\n");
        if let Err(error) = self.append(&text) {
            let _kept = self.file.set_len(self.whole);
            return Err(error);
        }
        self.whole += text.len() as u64;
        self.sum = sum.with(&text[step.len()..]);
        Ok(())
    }
}

impl Store for FileStore {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.state.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut step = String::new();
        for change in changes {
            push(&mut step, &change.key, change.value.as_deref());
        }
        let mut added = self.add(&step);
        if added.is_err() && self.has_spare && fs::remove_file(self.spare()).is_ok() {
            self.has_spare = false;
            added = self.add(&step);
        }
        let failed =
            |error: io::Error| StoreError(format!("state in {}: {error}", self.path.display()));
        added.map_err(failed)?;
        for Change { key, value } in changes {
            match value {
                Some(value) => _ = self.state.insert(key.clone(), value.clone()),
                None => _ = self.state.remove(key),
            }
        }
        if self.rewrite_at.is_some_and(|limit| self.whole >= limit) && self.rewrite().is_err() {
            // The old one stays, and is good.
            self.rewrite_at = Some(next_rewrite(self.whole));
        }
        Ok(())
    }
    /// A change is begun only if the spare room for its step is there: a full disk is known before it.
    fn has_room(&mut self) -> bool {
        if !self.has_spare {
            let spare = self.spare();
            let filled = fresh(&spare).and_then(|mut file| {
                file.write_all(&[0; GROUPS_SPARE])?;
                file.sync_all()
            });
            self.has_spare = filled.is_ok();
            if !self.has_spare {
                let _not_left_half = fs::remove_file(&spare);
            }
        }
        self.has_spare
    }
}

/// A checksum of all octets so far (FNV-1a of 64 bits): another octet at one place always gives another sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checksum(u64);

impl Checksum {
    const START: Self = Self(0xcbf2_9ce4_8422_2325);

    fn with(self, text: &str) -> Self {
        let next = |sum: u64, octet: u8| (sum ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        Self(text.bytes().fold(self.0, next))
    }
}

impl std::fmt::Display for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The length at which a file of so many octets is written again.
const fn next_rewrite(octets: u64) -> u64 {
    let doubled = octets.saturating_mul(2);
    if doubled < GROUPS_STATE_MIN { GROUPS_STATE_MIN } else { doubled }
}

/// The name of a file beside another: `FILE.EXTENSION`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// A new file, in place of one that a crash has left. It follows no link that somebody has put there.
fn fresh(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

/// Two that start at once write different files.
fn new_name(path: &Path) -> PathBuf {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    beside(path, &format!("{}-{serial}.new", std::process::id()))
}

/// A file with one step, and the checksum of all of it.
fn whole(state: &BTreeMap<String, Vec<u8>>) -> (String, Checksum) {
    let mut text = format!("{HEAD}\n");
    for (key, value) in state {
        push(&mut text, key, Some(value));
    }
    let sum = Checksum::START.with(&text);
    let end = format!("{STEP} {sum} {END}\n");
    text.push_str(&end);
    (text, sum.with(&end))
}

/// Writes a new file that is locked; its name.
fn write_new(path: &Path, text: &str) -> io::Result<(File, PathBuf)> {
    let name = new_name(path);
    match fs::remove_file(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().append(true).create_new(true).open(&name)?;
    let written = new.try_lock().map_err(io::Error::from).and_then(|()| {
        new.write_all(text.as_bytes())?;
        new.sync_all()
    });
    if written.is_err() {
        let _not_left_half = fs::remove_file(&name);
    }
    written.map(|()| (new, name))
}

/// Locks a file: two programs that write the same one would lose changes. If it does not exist, it is created, whole and
/// locked, and the result says so.
fn lock(path: &Path) -> io::Result<(File, bool)> {
    let in_use = || io::Error::other("another running program uses it");
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (new, name) = write_new(path, &whole(&BTreeMap::new()).0)?;
            // A link does not replace what another program has created meanwhile.
            let linked = fs::hard_link(&name, path);
            let _only_a_name = fs::remove_file(&name);
            return match linked {
                Ok(()) => Ok((new, true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(in_use()),
                Err(error) => Err(error),
            };
        }
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Another program that has written the file again has the lock of the new one.
    let (ours, named) = (file.metadata()?, fs::metadata(path)?);
    if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
        Ok((file, false))
    } else {
        Err(in_use())
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

/// The state after all whole steps. The error says what is damaged.
fn read(text: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let (mut state, mut step) = (BTreeMap::new(), Vec::new());
    let (mut sum, mut steps, mut has_sums) = (Checksum::START, 0, true);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let place = number + 1;
        let Some(content) = line.strip_suffix('\n') else {
            // A line that was cut is the last one, and its step has no end.
            break;
        };
        if number == 0 {
            has_sums = content == HEAD;
            if !has_sums && content != HEAD_BEFORE {
                return Err(format!("line 1 is not {HEAD:?}: another program wrote the file"));
            }
        } else if content == STEP || content.starts_with("step ") {
            let said = content.strip_prefix("step ");
            if has_sums && said.is_none_or(|said| said != format!("{sum} {END}")) {
                return Err(format!(
                    "the file is damaged in or above line {place}: a checksum is wrong"
                ));
            }
            for (key, value) in step.drain(..) {
                match value {
                    Some(value) => _ = state.insert(key, value),
                    None => _ = state.remove(&key),
                }
            }
            steps += 1;
        } else {
            let change = change(content);
            step.push(change.ok_or_else(|| format!("line {place} is not a change, KEY HEX"))?);
        }
        sum = sum.with(line);
    }
    // The first step is written before the file gets its name: without it the file was cut later.
    if steps == 0 {
        return Err("the file is damaged: it has no whole step".to_owned());
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
        // Each prefix of the file has the state after one of the steps, or no whole step, and then it is refused.
        let before = vec![("entity/a".to_owned(), vec![1]), ("numbers".to_owned(), vec![0, 2])];
        let first = HEAD.len() + 1 + "step 0123456789abcdef end\n".len();
        for end in 0..=whole.len() {
            fs::write(&path, &whole[..end]).expect("written");
            let state = FileStore::open(&path).and_then(|mut store| store.load());
            if end < first {
                let error = state.expect_err("no whole step").to_string();
                assert!(error.contains("no whole step; "), "{end}: {error}");
                assert_eq!(fs::read(&path).expect("a file"), &whole[..end], "it stays as it is");
            } else {
                let state = state.expect("a state");
                let is_one = state.is_empty() || state == before || state == expected;
                assert!(is_one, "{end}: {state:?}");
            }
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
    fn each_damaged_octet_is_found_and_the_file_stays() {
        let folder = folder_of("groups-damage");
        let path = folder.join("state");
        let mut store = FileStore::open(&path).expect("a new file");
        for number in 0..4 {
            store.commit(&[put(&format!("entity/{number}"), &[number; 8])]).expect("written");
        }
        drop(store);
        let whole = fs::read(&path).expect("a file");
        let state = FileStore::open(&path).and_then(|mut store| store.load());
        for place in 0..whole.len() {
            for change in [1, 2, 0x20, 0x80] {
                let mut damaged = whole.clone();
                damaged[place] ^= change;
                fs::write(&path, &damaged).expect("written");
                let opened = FileStore::open(&path).and_then(|mut store| store.load());
                // Without its last line break the last step has no end, as if the program had ended.
                if place + 1 < whole.len() {
                    assert!(opened.is_err(), "octet {place}: {opened:?}");
                } else {
                    assert_ne!(opened, state);
                }
                assert_eq!(fs::read(&path).expect("a file"), damaged);
            }
        }
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_of_an_earlier_version_is_read_and_the_one_before_the_last_rewrite_is_kept() {
        let folder = folder_of("groups-before");
        let path = folder.join("state");
        let before = format!("{HEAD_BEFORE}\nentity/a 01\nstep\n");
        fs::write(&path, &before).expect("written");
        let mut store = FileStore::open(&path).expect("an earlier version");
        assert_eq!(fs::read_to_string(&path).expect("a file"), before, "nothing has changed yet");
        store.commit(&[put("entity/b", &[2])]).expect("written");
        drop(store);
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.starts_with(HEAD), "{text}");
        assert_eq!(fs::read_to_string(beside(&path, "bak")).expect("a backup"), before);
        let state = FileStore::open(&path).and_then(|mut store| store.load());
        assert_eq!(state.expect("a state").len(), 2);
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn of_programs_that_start_at_once_one_gets_the_file() {
        let folder = folder_of("groups-race");
        for round in 0..50 {
            let path = folder.join(format!("state-{round}"));
            let barrier = std::sync::Barrier::new(4);
            let open = || {
                barrier.wait();
                FileStore::open(&path)
            };
            let all: Vec<_> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                all.into_iter().map(|one| one.join().expect("no panic")).collect()
            });
            assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1, "{all:?}");
        }
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn without_spare_room_there_is_no_room_for_changes() {
        let folder = folder_of("groups-spare");
        let path = folder.join("state");
        let mut store = FileStore::open(&path).expect("a new file");
        assert!(store.has_room());
        assert_eq!(fs::metadata(store.spare()).expect("a file").len(), GROUPS_SPARE as u64);
        // A folder in its place cannot be filled.
        fs::remove_file(store.spare()).expect("ours");
        fs::create_dir(store.spare()).expect("a folder");
        store.has_spare = false;
        assert!(!store.has_room());
        fs::remove_dir(store.spare()).expect("ours");
        assert!(store.has_room());
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_of_another_program_is_refused_with_its_line() {
        assert!(read("hello\n").is_err_and(|error| error.contains("line 1")));
        let error = read(&format!("{HEAD_BEFORE}\nentity/a xy\n{STEP}\n")).expect_err("no digits");
        assert_eq!(error, "line 2 is not a change, KEY HEX");
    }

    #[cfg(unix)]
    #[test]
    fn links_in_place_of_the_files_beside_it_change_nothing_that_they_lead_to() {
        let folder = std::env::temp_dir().join(format!("lowmesh-links-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let (path, other, nowhere) =
            (folder.join("state"), folder.join("other"), folder.join("nowhere"));
        fs::write(&other, "its own").expect("a disk");
        std::os::unix::fs::symlink(&other, beside(&path, "spare")).expect("a disk");
        std::os::unix::fs::symlink(&nowhere, beside(&path, "bak")).expect("a disk");
        let mut store = FileStore::open(&path).expect("free");
        store.rewrite().expect("a disk");
        assert!(store.has_room());
        assert_eq!(fs::read_to_string(&other).expect("a disk"), "its own");
        assert!(!nowhere.exists());
        for name in ["spare", "bak"] {
            assert!(beside(&path, name).symlink_metadata().expect("there").is_file(), "{name}");
        }
        fs::remove_dir_all(&folder).expect("ours");
    }
}
