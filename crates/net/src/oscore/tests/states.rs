//! Where the states of a key file are, and that there is one of each.

use std::os::unix::fs::symlink;
use std::path::Path;

use lowmesh_oscore::PartialIv;

use super::*;

const KEYS: &str =
    "master_secret,ascii,0123456789abcdef\nsender_id,ascii,c\nrecipient_id,ascii,s\n";
const STATE: &str = "keys.conf.63-73.state";
const RECORD: &str = "keys.conf.63.state-in";

/// A key file and two folders for its state.
fn folders(name: &str) -> (Folder, PathBuf, [PathBuf; 2]) {
    let folder = Folder::new(name);
    let keys = folder.0.canonicalize().expect("there").join("keys");
    let states = ["first", "second"].map(|name| keys.with_file_name(name));
    for one in states.iter().chain([&keys]) {
        fs::create_dir_all(one).expect("a disk");
    }
    let file = keys.join("keys.conf");
    fs::write(&file, KEYS).expect("a disk");
    (folder, file, states)
}

fn number(contexts: &Contexts) -> PartialIv {
    let get = StreamMessage::new(Code::GET);
    contexts.protect_request(0, &get).expect("plain").1.partial_iv()
}

/// The next number of a key file.
fn next(file: &Path, state: Option<&Path>) -> Result<PartialIv, OpenError> {
    Contexts::open_in(file, state).map(|contexts| number(&contexts))
}

fn error(file: &Path, state: Option<&Path>) -> StoreError {
    match Contexts::open_in(file, state) {
        Err(OpenError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_that_was_given_once_is_that_of_all_later_opens() {
    let (_folder, file, [first, second]) = folders("given-once");
    let numbers = [Some(&*first), None, Some(&*first), None].map(|state| next(&file, state));
    let numbers = numbers.map(|number| number.expect("our own"));
    assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    assert!(first.join(STATE).exists() && !file.with_file_name(STATE).exists());
    let refused = error(&file, Some(&second));
    assert!(matches!(refused, StoreError::OtherFolder { .. }), "{refused}");
    assert!(!second.join(STATE).exists());
    let all = [first.as_path(), &second].map(|folder| folder.display().to_string());
    let text = refused.to_string();
    assert!(all.iter().all(|folder| text.contains(folder)) && text.contains(RECORD), "{text}");
    // The folder of the keys is another one too.
    assert!(matches!(error(&file, file.parent()), StoreError::OtherFolder { .. }));
}

#[test]
fn a_key_file_is_one_whatever_folder_has_its_states() {
    let (_folder, file, [first, second]) = folders("one");
    let contexts = Contexts::open_in(&file, Some(&first)).expect("our own");
    // As if the folder of the keys could not be written.
    fs::remove_file(file.with_file_name(RECORD)).expect("recorded");
    for state in [None, Some(&*first), Some(&*second)] {
        assert!(matches!(error(&file, state), StoreError::InUse(_)));
    }
    contexts.close().expect("a disk");
    Contexts::open_in(&file, Some(&first)).expect("free");
}

#[test]
fn a_state_that_is_moved_goes_on_and_one_that_is_lost_does_not_begin_again() {
    let (_folder, file, [first, second]) = folders("moved");
    let record = file.with_file_name(RECORD);
    let used = next(&file, Some(&first)).expect("our own");
    fs::rename(first.join(STATE), second.join(STATE)).expect("a disk");
    for state in [None, Some(&*first)] {
        assert!(matches!(error(&file, state), StoreError::Lost { .. }));
    }
    assert!(matches!(error(&file, Some(&second)), StoreError::OtherFolder { .. }));
    // A relative folder begins at the record, and the end of the line may be missing.
    fs::write(&record, "../second").expect("a disk");
    let then = next(&file, None).expect("moved");
    assert!(used < then, "{then:?}");
    fs::rename(second.join(STATE), file.with_file_name(STATE)).expect("a disk");
    assert!(matches!(error(&file, None), StoreError::Second { .. }));
    fs::remove_file(&record).expect("recorded");
    assert!(then < next(&file, None).expect("moved back"));
    assert!(matches!(error(&file, Some(&first)), StoreError::Elsewhere { .. }));
    fs::rename(file.with_file_name(STATE), first.join(STATE)).expect("a disk");
    assert!(then < next(&file, Some(&first)).expect("moved again"));
    fs::remove_dir_all(&first).expect("a disk");
    assert!(matches!(error(&file, None), StoreError::Record { .. }), "the folder is not there");
}

#[test]
fn a_context_that_is_derived_many_times_may_lose_its_state() {
    let (_folder, file, [first, second]) = folders("renewed");
    fs::write(&file, format!("{KEYS}rfc8613_b_2,bool,true\n")).expect("a disk");
    Contexts::open_in(&file, Some(&first)).expect("our own");
    assert!(matches!(error(&file, Some(&second)), StoreError::OtherFolder { .. }));
    Contexts::open(&file).expect("a new context");
}

#[test]
fn a_record_that_is_no_file_of_one_path_is_refused_and_nothing_of_it_is_shown() {
    let (_folder, file, [first, _]) = folders("record");
    let record = file.with_file_name(RECORD);
    let secret = first.join("secret");
    fs::write(&secret, "a secret").expect("a disk");
    symlink(&secret, &record).expect("a disk");
    let text = error(&file, None).to_string();
    assert!(text.contains(RECORD) && !text.contains("a secret"), "{text}");
    for octets in [vec![], b"\n".to_vec(), vec![b'x'; 5000], b"/a\0b\n".to_vec()] {
        fs::remove_file(&record).expect("there");
        fs::write(&record, octets).expect("a disk");
        assert!(matches!(error(&file, None), StoreError::Record { .. }));
        assert!(matches!(error(&file, Some(&first)), StoreError::Record { .. }));
    }
    // Nor does writing a record follow a link that somebody has put there.
    fs::remove_file(&record).expect("there");
    symlink(&secret, file.with_file_name(format!("{RECORD}.new"))).expect("a disk");
    next(&file, Some(&first)).expect("our own");
    assert_eq!(fs::read(&secret).expect("there"), b"a secret");
    let line = format!("{}\n", first.display());
    assert_eq!(fs::read_to_string(&record).expect("recorded"), line);
}
