//! Runs that are stored, read back, merged, and lost to interrupted writes.

use std::collections::BTreeMap;

use lowmesh_units::{Duration, Seed};

use super::*;
use crate::build::Commit;
use crate::detail::Detail;
use crate::identity::Identity;
use crate::metrics::Metrics;

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

/// A build of other sources.
fn other() -> Build {
    Build { id: BuildId(BuildId::own().0 ^ (1 << 127)), commit: Commit::parse("147307f-dirty") }
}

fn put_by_other(store: &Store, seed: u64) -> RunId {
    let id = Identity::of(&scenario()).run_by(other().id, Seed(seed));
    let other_run = Run { trace_hash: 1, ..run(seed) };
    store.of(other().id.short()).put(&other(), id, &scenario(), &other_run).expect("writable");
    id
}

/// The folder of this build.
fn folder(store: &Store) -> PathBuf {
    store.folder().join(BuildId::own().short())
}

fn files(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let entries =
        fs::read_dir(folder(store)).expect("readable").map(|entry| entry.expect("readable"));
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
    assert_eq!((stored.run, stored.build), (run(3), BuildId::own()));
}

#[test]
fn a_stored_run_holds_the_scenario_that_repeats_it() {
    let scratch = Scratch::new("repeat");
    let store = scratch.store("a");
    let id = put(&store, 3);
    let scenario = store.stored(id).expect("just put").scenario;
    assert_eq!(scenario.seeds().collect::<Vec<_>>(), [Seed(3)]);
    assert_eq!(Identity::of(&scenario).run(Seed(3)), id);
}

#[test]
fn a_run_of_any_build_is_found_by_its_first_digits_with_the_build_that_made_it() {
    let scratch = Scratch::new("found");
    let store = scratch.store("a");
    for (id, build) in [(put(&store, 1), Build::own()), (put_by_other(&store, 1), other())] {
        let (found, stored, runs) = store.find(&id.to_string()[..8]).expect("its only run");
        assert_eq!((found, stored.run.seed, stored.build), (id, Seed(1), build.id));
        assert_eq!((runs.build, runs.commit, runs.runs), (Some(build.id.short()), build.commit, 1));
    }
}

#[test]
fn a_file_that_was_cut_short_counts_as_no_run_at_every_length() {
    let scratch = Scratch::new("cut");
    let store = scratch.store("a");
    let id = put(&store, 3);
    let path = store.used.path(id, "json");
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
    fs::rename(store.used.path(one, "json"), store.used.path(two, "json")).expect("writable");
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
    let taken = |from: &Store| {
        let merged = into.merge(from).expect("readable");
        merged.iter().map(|one| (one.from.runs, one.taken)).collect::<Vec<_>>()
    };
    assert_eq!(taken(&a), [(2, 2)]);
    assert_eq!(taken(&b), [(1, 1)]);
    assert_eq!(taken(&b), [(1, 0)]);
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
    fs::write(folder(&store).join(format!("{id}.json.partial-1")), "{").expect("writable");
    assert_eq!(store.ids().expect("readable"), [id]);
}

#[test]
fn runs_of_another_build_are_named_and_not_used() {
    let scratch = Scratch::new("other");
    let store = scratch.store("a");
    let (one, two) = (put_by_other(&store, 1), put_by_other(&store, 2));
    let own = put(&store, 1);
    assert_eq!((store.get(one), store.get(two)), (None, None));
    assert_eq!(store.ids().expect("readable"), [own]);
    let others = store.others().expect("readable");
    assert_eq!(others.len(), 1);
    assert_eq!((others[0].runs, others[0].build.as_ref()), (2, Some(&other().id.short())));
    assert_eq!(others[0].to_string(), other().to_string());
    assert!(others[0].to_string().ends_with(" (commit 147307f-dirty)"), "{}", others[0]);
}

#[test]
fn a_run_of_another_build_under_this_name_and_folder_counts_as_none() {
    let scratch = Scratch::new("moved");
    let store = scratch.store("a");
    let (theirs, own) = (put_by_other(&store, 1), Identity::of(&scenario()).run(Seed(1)));
    fs::create_dir_all(folder(&store)).expect("writable");
    let from = store.of(other().id.short()).path(theirs, "json");
    let text =
        fs::read_to_string(from).expect("just put").replace(&theirs.to_string(), &own.to_string());
    fs::write(store.used.path(own, "json"), text).expect("writable");
    assert_eq!(store.get(own), None);
    assert!(matches!(store.stored(own), Err(StoreError::Broken { .. })));
}

#[test]
fn runs_from_before_builds_were_recorded_are_named_and_left() {
    let scratch = Scratch::new("before");
    let (store, into) = (scratch.store("a"), scratch.store("into"));
    fs::write(store.folder().join(format!("{:032x}.json", 7)), "{\"schema\":1}").expect("writable");
    let others = store.others().expect("readable");
    assert_eq!((others[0].runs, &others[0].build), (1, &None));
    assert_eq!(others[0].to_string(), "a build that was not recorded");
    let merged = into.merge(&store).expect("readable");
    assert_eq!((merged[0].from.runs, merged[0].taken), (1, 0));
    assert!(matches!(store.find("0000"), Err(StoreError::Unknown(_))));
}

#[test]
fn joined_stores_keep_builds_apart_with_their_commits() {
    let scratch = Scratch::new("apart");
    let (a, b, into) = (scratch.store("a"), scratch.store("b"), scratch.store("into"));
    put(&a, 1);
    put_by_other(&b, 1);
    for from in [&a, &b] {
        into.merge(from).expect("readable");
    }
    let builds = into.builds().expect("readable");
    let short = |build: &BuildRuns| (build.build.clone().unwrap_or_default(), build.runs);
    let expected = [(BuildId::own().short(), 1), (other().id.short(), 1)];
    assert_eq!(builds.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(builds[1].commit, other().commit);
    assert_eq!(into.ids().expect("readable").len(), 1);
}

#[test]
fn results_are_read_of_one_build_alone() {
    let scratch = Scratch::new("results");
    let store = scratch.store("a");
    let runs = |folder: &Path| Store::open_results(folder).and_then(|store| store.ids());
    let theirs = put_by_other(&store, 1);
    assert_eq!(runs(store.folder()).expect("one build"), [theirs]);
    let own = put(&store, 1);
    assert_eq!(runs(store.folder()).expect("this build first"), [own]);
    assert_eq!(runs(&store.folder().join(other().id.short())).expect("named"), [theirs]);
    fs::remove_dir_all(folder(&store)).expect("ours");
    let third = Build { id: BuildId(other().id.0 ^ (1 << 126)), commit: None };
    store.of(third.id.short()).put(&third, own, &scenario(), &run(1)).expect("writable");
    let error = Store::open_results(store.folder()).expect_err("two builds, none of them ours");
    let told = error.to_string();
    assert!(told.contains("runs of 2 builds: "), "{told}");
    assert!(told.contains(&third.to_string()) && told.contains(&other().to_string()), "{told}");
}
