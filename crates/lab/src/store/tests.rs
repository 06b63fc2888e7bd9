//! Runs that are kept, taken back, joined, and lost in every way that a machine can lose them.

use std::collections::BTreeMap;

use super::*;
use crate::identity::Identity;

/// An empty folder of the test's own, removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lowmesh-store-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the system's folder for temporary files is writable");
        Self(path)
    }
    fn store(&self, name: &str) -> Store {
        Store::open(&self.0.join(name)).expect("writable")
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn scenario() -> Scenario {
    Scenario::parse("x", "name = \"x\"\nseed = 5", &[]).expect("a valid scenario")
}

fn run(seed: u64) -> Run {
    Run {
        seed: Seed(seed),
        trace_hash: u64::MAX - seed,
        simulated: Duration::from_nanos(3_600_000_000_001),
        wall_s: 0.25,
        metrics: Metrics {
            // Neither has a short decimal; both must come back to the last bit.
            tdr: Some(0.1 + 0.2),
            delay_mean_ms: Some(1.0 / 3.0),
            drops: BTreeMap::from([("no_ack", 7)]),
            ..Metrics::default()
        },
        detail: Detail { delays_ms: vec![0.1, 1e7 / 3.0], ..Detail::default() },
    }
}

fn put(store: &Store, seed: u64) -> RunId {
    let id = Identity::of(&scenario()).run(Seed(seed));
    store.put(id, &scenario(), &run(seed)).expect("writable");
    id
}

fn files(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let entries =
        fs::read_dir(store.folder()).expect("readable").map(|entry| entry.expect("readable"));
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().expect("ASCII");
            (name, fs::read(entry.path()).expect("readable"))
        })
        .collect()
}

#[test]
fn a_run_comes_back_to_the_last_bit() {
    let scratch = Scratch::new("bits");
    let store = scratch.store("a");
    let id = put(&store, 3);
    assert_eq!(store.get(id), Some(run(3)));
    let stored = store.stored(id).expect("just put");
    assert_eq!((stored.run, stored.model), (run(3), MODEL_VERSION));
}

#[test]
fn a_stored_run_holds_the_scenario_that_repeats_it() {
    let scratch = Scratch::new("repeat");
    let store = scratch.store("a");
    let id = put(&store, 3);
    let (found, stored) = store.find(&id.to_string()[..8]).expect("its only run");
    assert_eq!(found, id);
    assert_eq!(stored.scenario.seeds().collect::<Vec<_>>(), [Seed(3)]);
    assert_eq!(Identity::of(&stored.scenario).run(Seed(3)), id);
}

#[test]
fn a_file_that_was_cut_short_counts_as_no_run_at_every_length() {
    let scratch = Scratch::new("cut");
    let store = scratch.store("a");
    let id = put(&store, 3);
    let path = store.path(id, "json");
    let whole = fs::read(&path).expect("just put");
    for length in (0..whole.len() - 1).step_by(17) {
        fs::write(&path, &whole[..length]).expect("writable");
        assert_eq!(store.get(id), None, "{length} octets");
    }
}

#[test]
fn a_run_under_another_name_counts_as_none() {
    let scratch = Scratch::new("renamed");
    let store = scratch.store("a");
    let (one, two) = (put(&store, 1), Identity::of(&scenario()).run(Seed(2)));
    fs::rename(store.path(one, "json"), store.path(two, "json")).expect("writable");
    assert_eq!(store.get(two), None);
}

#[test]
fn joined_stores_are_those_of_one_attempt_byte_for_byte() {
    let scratch = Scratch::new("joined");
    let (a, b, whole) = (scratch.store("a"), scratch.store("b"), scratch.store("whole"));
    for seed in [1, 2, 3] {
        put(if seed == 2 { &b } else { &a }, seed);
        put(&whole, seed);
    }
    let into = scratch.store("into");
    assert_eq!(into.merge(&a).expect("readable"), 2);
    assert_eq!(into.merge(&b).expect("readable"), 1);
    assert_eq!(into.merge(&b).expect("readable"), 0);
    assert_eq!(files(&into), files(&whole));
}

#[test]
fn stores_that_disagree_about_a_run_are_not_joined() {
    let scratch = Scratch::new("disagree");
    let (a, b) = (scratch.store("a"), scratch.store("b"));
    let id = put(&a, 1);
    b.put(id, &scenario(), &Run { trace_hash: 0, ..run(1) }).expect("writable");
    assert!(matches!(a.merge(&b), Err(StoreError::Disagree(_))));
    assert_eq!(a.get(id), Some(run(1)));
}

#[test]
fn a_beginning_of_a_name_must_be_of_one_run() {
    let scratch = Scratch::new("prefix");
    let store = scratch.store("a");
    put(&store, 1);
    put(&store, 2);
    assert!(matches!(store.find("nothing"), Err(StoreError::Unknown(_))));
    assert!(matches!(store.find(""), Err(StoreError::Ambiguous(_, 2))));
}

#[test]
fn what_a_killed_process_left_behind_is_no_run() {
    let scratch = Scratch::new("killed");
    let store = scratch.store("a");
    let id = put(&store, 1);
    fs::write(store.folder().join(format!("{id}.json.partial-1")), "{").expect("writable");
    assert_eq!(store.ids().expect("readable"), [id]);
}
