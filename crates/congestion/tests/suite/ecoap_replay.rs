//! The testbed's own timeouts, replayed: real CoCoA transactions (ECOAP, Vallati et al. 2020) go
//! through the
//! `cocoa/ecoap` set, and the timeouts that the testbed logged must lie where ours would be drawn
//! from.
//!
//! The measurements have no licence to be handed on, so they are not part of this repository.
//! Without them (`LOWMESH_SHARED`, or `shared` beside the checkout) the test says so and passes
//! over itself.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use lowmesh_congestion::Timer;
use lowmesh_congestion::timer::Cocoa;
use lowmesh_congestion::timer::cocoa::parameters::{ECOAP, Parameters, TABLE_2};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

/// Share of logged first timeouts that the published rules explain, at least.
const EXPLAINED_MIN: f64 = 0.86;
/// The log has whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// Lines this close belong to one tick of the controller, which does not log in which order it
/// worked.
const TICK: u64 = 5;

/// An acknowledged transaction.
#[derive(Clone, Copy)]
struct Success {
    at: u64,
    rtt: u64,
    retransmissions: u8,
}

/// The logs of one node, in file order: (time, rto0) and successes.
#[derive(Default)]
struct Node {
    timeouts: Vec<(u64, u64)>,
    successes: Vec<Success>,
}

fn data() -> Option<PathBuf> {
    let shared = env::var_os("LOWMESH_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let ecoap = shared.join("data/ecoap");
    ecoap.join("rto").is_dir().then_some(ecoap)
}

/// The rows of a compressed table, each as numbers in the order of `columns`.
fn rows<const N: usize>(path: &Path, columns: [&str; N]) -> Vec<[u64; N]> {
    let file = fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("a gzip of text");
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().expect("a head line").split(',').collect();
    let places = columns.map(|name| {
        head.iter().position(|column| *column == name).unwrap_or_else(|| panic!("no {name}"))
    });
    let number = |field: &str| field.parse::<f64>().map_or(0, |value| value as u64);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            places.map(|place| number(fields[place]))
        })
        .collect()
}

/// The logs of one run, by node.
fn nodes(ecoap: &Path, scenario: &str, run: &str) -> Vec<Node> {
    let timeouts = ecoap.join("rto").join(scenario).join(format!("{run}.rto.csv.gz"));
    let outcomes = ecoap.join("tx").join(scenario).join(format!("{run}.csv.gz"));
    let mut nodes: BTreeMap<u64, Node> = BTreeMap::new();
    for [at, node, rto0] in rows(&timeouts, ["t_ms", "node", "rto0"]) {
        nodes.entry(node).or_default().timeouts.push((at, rto0));
    }
    let columns = ["t_ms", "node", "ok", "rtt_ms", "n_rtx"];
    for [at, node, ok, rtt, n_rtx] in rows(&outcomes, columns) {
        if ok == 1 {
            let success = Success { at, rtt, retransmissions: n_rtx as u8 };
            nodes.entry(node).or_default().successes.push(success);
        }
    }
    nodes.into_values().collect()
}

/// Whether a timer could have drawn the logged timeout.
fn explains(timer: &Cocoa, rto0: u64) -> bool {
    let (rto, rto0) = (timer.snapshot().rto, Duration::from_millis(rto0));
    rto0 + ROUNDING >= rto && rto0 <= rto.mul_f64(1.5) + ROUNDING
}

fn after_success(timer: &Cocoa, success: Success) -> Cocoa {
    let mut timer = timer.clone();
    let now = Instant::from_millis(success.at);
    timer.on_sample(Duration::from_millis(success.rtt), success.retransmissions, now);
    timer
}

/// Replays one node: (logged timeouts, explained ones).
///
/// A timeout is logged after an outcome, or when the controller's check each second finds the value
/// aged. Where one tick holds several of these, the first (in file order) that explains the timeout
/// is taken to be its cause.
fn replay(node: &Node, parameters: &'static Parameters) -> (u64, u64) {
    // Only the place of the drawn value in its range is random, and nothing here looks at that.
    let mut rng = Rng::stream(Seed(0), NodeId(0), Purpose::Coap);
    let mut timer = Cocoa::new(parameters);
    let mut successes: VecDeque<Success> = node.successes.iter().copied().collect();
    let mut explained = 0;
    for (at, rto0) in &node.timeouts {
        let in_tick = successes.iter().take_while(|success| success.at <= at + TICK).count();
        let mut aged = timer.clone();
        aged.initial(Instant::from_millis(*at), &mut rng);
        let cause = (0..in_tick)
            .map(|place| (Some(place), after_success(&timer, successes[place])))
            .chain([(None, aged.clone())])
            .find(|(_, timer)| explains(timer, *rto0));
        explained += u64::from(cause.is_some());
        let (place, after) = cause.unwrap_or_else(|| match successes.front() {
            Some(success) if in_tick > 0 => (Some(0), after_success(&timer, *success)),
            _ => (None, aged),
        });
        timer = after;
        if let Some(place) = place {
            successes.remove(place);
        }
    }
    (node.timeouts.len() as u64, explained)
}

/// (scenario, logged, explained by the testbed's set, explained by table 2) over all runs with
/// logged timeouts.
fn replay_all(ecoap: &Path) -> Vec<(String, u64, u64, u64)> {
    let listing = |folder: &Path| {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort_unstable();
        names
    };
    let mut totals = Vec::new();
    for scenario in listing(&ecoap.join("rto")) {
        let mut total = (scenario.clone(), 0, 0, 0);
        for file in listing(&ecoap.join("rto").join(&scenario)) {
            let Some(run) = file.strip_suffix(".rto.csv.gz") else { continue };
            for node in nodes(ecoap, &scenario, run) {
                let (logged, explained) = replay(&node, &ECOAP);
                total.1 += logged;
                total.2 += explained;
                total.3 += replay(&node, &TABLE_2).1;
            }
        }
        totals.push(total);
    }
    totals
}

#[test]
fn the_timeouts_of_the_testbed_are_explained_by_its_parameter_set() {
    let Some(ecoap) = data() else {
        println!("passed over: the ECOAP measurements are not here (LOWMESH_SHARED says where)");
        return;
    };
    let totals = replay_all(&ecoap);
    let share = |part: u64, whole: u64| part as f64 / whole as f64;
    for (scenario, logged, explained, table_2) in &totals {
        println!(
            "{scenario}: {logged} timeouts, explained {:.3} (table-2 set: {:.3})",
            share(*explained, *logged),
            share(*table_2, *logged)
        );
    }
    let sum = |pick: fn(&(String, u64, u64, u64)) -> u64| totals.iter().map(pick).sum::<u64>();
    let (logged, explained, table_2) = (sum(|t| t.1), sum(|t| t.2), sum(|t| t.3));
    println!("all: {logged} timeouts, explained {:.4}", share(explained, logged));
    assert!(logged > 100_000, "only {logged} timeouts were found");
    assert!(share(explained, logged) >= EXPLAINED_MIN);
    assert!(explained > table_2, "another parameter set explains the testbed better");
}
