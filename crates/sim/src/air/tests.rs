//! The conformance suite over every medium that comes with the simulator, built as a scenario would, and what holds of
//! these only.

use std::path::PathBuf;

use lowmesh_mac::params::OCTET;
use lowmesh_registry::{Algorithm as _, Choice, Registry, Row};
use lowmesh_units::{Channel, Duration, Seed};
use proptest::prelude::*;

use super::error::BuildError;
use super::k7::K7;
use super::link_table::{LinkTable, Tabled};
use super::params::{GRENOBLE_NODES, MRM_GRID_NOISE_DBM, MRM_NOISE_DBM};
use super::playback::Playback;
use super::*;
use crate::topology::{Topology, TopologySpec};

fn nodes(medium: &dyn Medium) -> impl Iterator<Item = NodeId> + use<> {
    (0..medium.links().nodes()).map(|i| NodeId(i as u16))
}

/// The medium of each row, on nodes that fit it.
fn all(seed: Seed) -> Vec<Box<dyn Medium>> {
    <dyn Medium>::BUILTIN.iter().map(|row| one(row, seed)).collect()
}

fn one(row: &'static Row<dyn Medium>, seed: Seed) -> Box<dyn Medium> {
    conformance::built(row, seed).expect("it conforms")
}

#[test]
fn every_medium_conforms_and_so_does_its_row() {
    assert_eq!(Registry::<dyn Medium>::builtin().breaches(), []);
}

#[test]
fn a_medium_that_announces_changes_has_other_links_after_them() {
    let is_changing = |medium: &dyn Medium| medium.next_change().is_some();
    assert!(is_changing(&*one(&playback::ROW, Seed(5))) && !is_changing(&*one(&mrm::ROW, Seed(5))));
    for mut medium in all(Seed(5)).into_iter().filter(|medium| is_changing(&**medium)) {
        let links = |medium: &dyn Medium| conformance::heard(medium).collect::<Vec<_>>();
        let before = links(&*medium);
        let is_other = (0..100).any(|_| {
            medium.next_change().is_some_and(|at| {
                medium.advance(at);
                links(&*medium) != before
            })
        });
        assert!(is_other, "{} keeps its links", medium.name());
    }
}

/// The part of collisions of two equal frames that leave one of them whole, in timeslots and in continuous time.
fn survivors(medium: &dyn Medium, link: &Link) -> [f64; 2] {
    const COLLISIONS: u64 = 2_000;
    let rule = medium.overlap();
    let noise = Noise { floor_mw: medium.noise().milliwatts(), extra_mw: 0.0 };
    let cca = Cca { mode: CcaMode::Either, energy_mw: 2e-8 };
    let (senders, rx) = ([NodeId(1), NodeId(2)], NodeId(0));
    let airtime = OCTET * 60;
    let mut counts = [0; 2];
    for start in (0..COLLISIONS).map(|i| Instant::ZERO + Duration::from_millis(10) * i) {
        let signal = Signal::over(link, start);
        let draw = |i: usize| reception_draw(Seed(8), senders[i], rx, start);
        let judged = resolve(rule, &[signal; 2], noise, |_| noise.whole(60), draw);
        counts[0] += u32::from(judged.received.is_some());
        let mut receiver = Receiver::default();
        for i in 0..2 {
            let arrival = Arrival { frame: FrameId(i as u64), signal, draw: draw(i) };
            receiver.begin(rule, noise, arrival, true);
        }
        let fates = [0, 1].map(|i| receiver.end(rule, noise, cca, FrameId(i), start + airtime));
        counts[1] += u32::from(fates.contains(&Fate::Received));
    }
    counts.map(|count| f64::from(count) / COLLISIONS as f64)
}

#[test]
fn two_equal_frames_destroy_each_other_on_every_medium_but_that_of_cooja() {
    for medium in all(Seed(7)) {
        let channel = Channel::new(11).expect("a channel of the band");
        let links = |tx| medium.links().heard(tx, channel).map(|(_, link)| *link);
        let loudest = nodes(&*medium).flat_map(links).max_by(|a, b| a.rssi.0.total_cmp(&b.rssi.0));
        let survivors = survivors(&*medium, &loudest.expect("someone is heard"));
        for part in survivors {
            match medium.overlap() {
                // Cooja's code captures and never corrupts both (docs/topics/radio.md).
                Overlap::Capture { .. } => assert!(part > 0.99, "{}: {part}", medium.name()),
                _ => assert!(part < 0.01, "{}: {part}", medium.name()),
            }
        }
    }
}

#[test]
fn a_default_mrm_grid_is_one_hop_and_one_with_more_noise_is_not() {
    let grid = TopologySpec::Grid { rows: 5, cols: 5, spacing_m: 33.0 };
    let grid = grid.place(Seed(1)).expect("a good grid");
    let channel = Channel::new(20).expect("a channel of the band");
    let corner_to_corner = |noise_dbm: f64| {
        let mrm = Choice::from(&mrm::ROW).with("noise_dbm", noise_dbm).expect("within bounds");
        let medium = build(mrm, &grid, Seed(1)).expect("good");
        medium.reception_probability(NodeId(0), NodeId(24), channel, 60)
    };
    assert!(corner_to_corner(MRM_NOISE_DBM) > 0.999);
    assert!(corner_to_corner(MRM_GRID_NOISE_DBM) < 1e-4);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let grid = TopologySpec::Line { nodes: 3, spacing_m: 10.0 }.place(Seed(1)).expect("good");
    let disk = || Choice::from(&unit_disk::ROW);
    for (set, expected) in [
        (disk().with("range_m", -5.0), "range_m = -5"),
        (Choice::from(&mrm::ROW).with("noise_dbm", f64::NAN), "noise_dbm = NaN"),
    ] {
        assert!(set.expect_err(expected).to_string().contains(expected));
    }
    let wide = disk().with("range_m", 101.0).expect("within bounds");
    let absent = Choice::from(&playback::ROW).with("file", "absent.k7".to_owned());
    let cases = [
        (Choice::from(&link_table::GRENOBLE), &grid, "50 nodes, and the topology has 3"),
        (wide, &grid, "range_m = 101 is above interference_range_m = 100"),
        (absent.expect("a name"), &grid, "absent.k7: "),
        (Choice::from(&playback::ROW), &grid, "file is missing"),
        (Choice::from(&pister_hack::ROW), &Topology::unplaced(3), "topology = unplaced"),
        (Choice::from(&tree_links::ROW), &grid, "topology = no tree"),
    ];
    for (choice, topology, expected) in cases {
        let error = build(choice, topology, Seed(1)).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!matches!(error, BuildError::Text(_)));
    }
}

#[test]
fn the_built_in_grenoble_table_is_what_the_raw_trace_says() {
    let shared = std::env::var_os("LOWMESH_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let raw = shared.join("data/grenoble-k7/grenoble.k7.gz");
    let built_in = LinkTable::grenoble();
    assert_eq!(built_in.nodes(), GRENOBLE_NODES);
    let Ok(contents) = std::fs::read(&raw) else {
        println!("passed over: the raw trace is not here (set LOWMESH_SHARED)");
        return;
    };
    let trace = K7::parse("grenoble.k7.gz", &contents).expect("good");
    let derived = LinkTable::from_k7(&trace);
    assert!(derived.means().keys().eq(built_in.means().keys()));
    for (key, raw) in derived.means() {
        let kept = built_in.means()[key];
        // The text keeps 0.1 dB and 0.0001 of PDR, rounded.
        assert!((raw.rssi.0 - kept.rssi.0).abs() <= 0.0501, "{key:?}");
        assert!((raw.pdr - kept.pdr).abs() <= 0.0000501, "{key:?}");
    }
    // The played-back trace has the table's links, and its first round is already there.
    let playback = Playback::new(trace);
    let table = Tabled::link_table("table", &built_in);
    for tx in nodes(&table) {
        assert_eq!(playback.neighbours(tx), table.neighbours(tx), "node {tx}");
    }
    let first = playback.rssi(NodeId(0), NodeId(18), Channel::new(11).expect("in the band"));
    assert_eq!(first, Some(Dbm(-69.9)));
    assert!(playback.next_change().is_some_and(|next| next < Instant::from_secs(4 * 3600)));
}

proptest! {
    #[test]
    fn any_candidates_give_a_frame_that_was_there(
        mut signals in prop::collection::vec(
            (0u64..2_000, -120f64..-20.0, prop::option::of(0f64..=1.0)),
            0..6,
        ),
        extra in prop::option::of(-110f64..-40.0),
        number in 0f64..1.0,
    ) {
        signals.sort_by_key(|signal| signal.0);
        let candidates: Vec<_> = signals
            .iter()
            .map(|(us, dbm, pdr)| Signal {
                start: Instant::ZERO + Duration::from_micros(*us),
                power_mw: Dbm(*dbm).milliwatts(),
                pdr: *pdr,
            })
            .collect();
        let extra_mw = extra.map_or(0.0, |dbm| Dbm(dbm).milliwatts());
        let noise = Noise { floor_mw: Dbm(-98.0).milliwatts(), extra_mw };
        let capture = Overlap::Capture { threshold: 0.5 };
        let dictated = [Overlap::DictatedPdr, Overlap::DictatedSinr];
        let curve = Overlap::Curve(|sinr, _| (sinr / 10.0).min(1.0));
        let rules = [Overlap::Sinr, curve, dictated[0], dictated[1], capture, Overlap::Collision];
        for rule in rules {
            let judged = resolve(rule, &candidates, noise, |_| noise.whole(60), |_| number);
            prop_assert!(judged.locked.is_none_or(|index| index < candidates.len()));
            prop_assert!(judged.received.is_none() || judged.received == judged.locked);
            prop_assert!(!judged.interfered || candidates.len() > 1);
            // A better number never loses what a worse one received alone.
            if candidates.len() == 1 && judged.received.is_some() {
                let lucky = resolve(rule, &candidates, noise, |_| noise.whole(60), |_| 0.0);
                prop_assert_eq!(lucky.received, judged.received);
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_without_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        packed: bool,
    ) {
        if packed {
            bytes.splice(0..0, [0x1f, 0x8b, 8, 0]);
        }
        let error = K7::parse("any.k7", &bytes).expect_err("no header can come up by chance");
        prop_assert!(error.to_string().contains("any.k7"));
    }
}
