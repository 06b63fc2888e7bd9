//! What every [`Medium`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all media that come with the simulator. It cannot see a medium that asks the clock or
//! another source of chance only now and then; the rules in the documentation of [`Medium`] stay with its author.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use lowmesh_registry::{Algorithm as _, Breach, Choice, Domain, Row};
use lowmesh_units::{Channel, Duration, Instant, NodeId, Seed};

use super::{Link, Medium, Needs, Noise, Signal, reception_draw, resolve};
use crate::topology::{TopologySpec, TreeSpec};

/// Frames in the comparison of the delivered share with the medium's stated probability.
const FRAMES: u64 = 20_000;
/// The largest accepted difference: four standard deviations of a share of one half among [`FRAMES`] draws.
const DIFFERENCE_MAX: f64 = 0.015;
/// Accepted ratio of a power in milliwatts to the same power in dBm, for rounding.
const ONE_POWER: core::ops::RangeInclusive<f64> = 0.999_999_999..=1.000_000_001;
/// Octets of those frames.
const OCTETS: usize = 60;
/// Changes of the links that are checked.
const CHANGES_MAX: usize = 10_000;

/// Checks the row and the medium that it makes with its defaults, on nodes that fit it. A file that the row needs is the
/// example of its parameter, and a matrix is one of ours.
///
/// ```
/// use lowmesh_sim::air::{conformance, pathloss};
/// conformance::check(&pathloss::LOG_DISTANCE)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn Medium>) -> Result<(), Breach> {
    row.check()?;
    let name = built(row, Seed(2))?.name();
    if name != row.name {
        return Err(row.breach(format!("the medium is called {name}")));
    }
    check_made(|| built(row, Seed(2)).expect("it was built before"))
}

/// Checks the medium that `make` returns, for example one with other values than the defaults of its row; every call must
/// return an equal one.
///
/// ```
/// use lowmesh_sim::air::conformance::check_made;
/// use lowmesh_sim::air::{build, pathloss};
/// use lowmesh_sim::topology::TopologySpec;
/// use lowmesh_units::Seed;
///
/// let line = TopologySpec::Line { nodes: 3, spacing_m: 40.0 }.place(Seed(1))?;
/// check_made(|| build(&pathloss::LOG_DISTANCE, &line, Seed(1)).expect("it has places"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_made(make: impl Fn() -> Box<dyn Medium>) -> Result<(), Breach> {
    let mut medium = make();
    let (name, again) = (medium.name(), make());
    let named = |what| Breach { noun: <dyn Medium>::NOUN, row: name.to_owned(), what };
    if again.name() != name {
        return Err(named(format!("the next one that is made is called {}", again.name())));
    }
    check_links(&*medium).map_err(named)?;
    check_repetition(&*medium, &*again).map_err(named)?;
    check_arrivals(&*medium).map_err(named)?;
    check_changes(&mut *medium).map_err(named)
}

/// The medium of a row on nodes that fit it.
pub(super) fn built(row: &'static Row<dyn Medium>, seed: Seed) -> Result<Box<dyn Medium>, Breach> {
    let breach = |error: &dyn ToString| row.breach(error.to_string());
    let mut choice = Choice::from(row);
    let mut files = Vec::new();
    for parameter in row.parameters {
        let set = match parameter.domain {
            Domain::Matrix => {
                let matrix = MATRIX.map(|shares| shares.to_vec()).to_vec();
                choice.set(parameter.key, matrix)
            }
            Domain::File => {
                let file = ExampleFile::write(parameter.example).map_err(|error| breach(&error))?;
                let path = file.0.to_string_lossy().into_owned();
                files.push(file);
                choice.set(parameter.key, path)
            }
            _ => continue,
        };
        set.map_err(|error| breach(&error))?;
    }
    let spec = match row.make.needs {
        Needs::Places => TopologySpec::Grid { rows: 5, cols: 5, spacing_m: 33.0 },
        Needs::Table(nodes) => {
            TopologySpec::Unplaced { nodes: nodes(&choice).unwrap_or(NODES_OF_TABLE) }
        }
        Needs::Tree => TopologySpec::Tree(TreeSpec {
            parents: [0, 1, 1].map(NodeId).to_vec(),
            distances_m: vec![5.0; 3],
            ..TreeSpec::default()
        }),
    };
    let topology = spec.place(seed).map_err(|error| breach(&error))?;
    // Not `air::build`: a table in a file says itself how many nodes there are.
    (row.make.build)(&choice, &topology, seed).map_err(|error| breach(&error))
}

/// Nodes of a medium that takes any number of nodes without places.
const NODES_OF_TABLE: usize = 5;
/// Delivery ratios between three nodes.
const MATRIX: [[f64; 3]; 3] = [[0.0, 0.9, 0.1], [0.8, 0.0, 0.0], [0.3, 0.2, 0.0]];

/// A file that exists as long as this value.
struct ExampleFile(PathBuf);

impl ExampleFile {
    fn write(contents: &str) -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lowmesh-medium-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents)?;
        Ok(Self(path))
    }
}

impl Drop for ExampleFile {
    fn drop(&mut self) {
        // What is left in the folder for temporary files harms nobody.
        _ = std::fs::remove_file(&self.0);
    }
}

fn channels() -> impl Iterator<Item = Channel> {
    (11..=26).filter_map(Channel::new)
}

fn nodes(medium: &dyn Medium) -> impl Iterator<Item = NodeId> + use<> {
    (0..medium.links().nodes()).map(|i| NodeId(i as u16))
}

/// All current links, with their channels.
pub(super) fn heard(medium: &dyn Medium) -> impl Iterator<Item = (NodeId, NodeId, Channel, Link)> {
    let pairs = nodes(medium).flat_map(|tx| channels().map(move |channel| (tx, channel)));
    pairs.flat_map(|(tx, channel)| {
        let links = medium.links().heard(tx, channel);
        links.map(move |(rx, link)| (tx, rx, channel, *link))
    })
}

/// Neighbours are sorted and complete; powers are finite and probabilities lie in [0, 1].
fn check_links(medium: &dyn Medium) -> Result<(), String> {
    let noise = medium.noise().0;
    if !(-250.0..100.0).contains(&noise) {
        return Err(format!("its noise is {noise} dBm"));
    }
    for tx in nodes(medium) {
        let neighbours = medium.neighbours(tx);
        if !neighbours.is_sorted_by(|a, b| a < b) {
            return Err(format!("the neighbours of {tx} do not ascend"));
        }
        if neighbours.contains(&tx) {
            return Err(format!("node {tx} is its own neighbour"));
        }
        let known: BTreeSet<_> = neighbours.iter().copied().collect();
        for (_, rx, channel, _) in heard(medium).filter(|(from, ..)| *from == tx) {
            if !known.contains(&rx) || medium.rssi(tx, rx, channel).is_none() {
                return Err(format!("node {rx} hears {tx} and is no neighbour of it"));
            }
        }
    }
    let mut links = 0;
    for (tx, rx, channel, link) in heard(medium) {
        let at = format!("from {tx} to {rx} on channel {}", channel.number());
        let (dbm, ratio) = (link.rssi.0, link.power_mw / link.rssi.milliwatts());
        if !(-200.0..50.0).contains(&dbm) || !ONE_POWER.contains(&ratio) {
            return Err(format!("{at}: {dbm} dBm and {} mW are not one power", link.power_mw));
        }
        let chance = medium.reception_probability(tx, rx, channel, OCTETS);
        if !(0.0..=1.0).contains(&chance) {
            return Err(format!("{at}: {chance} is no chance"));
        }
        links += 1;
    }
    if links == 0 { Err("no node hears another".to_owned()) } else { Ok(()) }
}

/// Two media from the same parameters are equal.
fn check_repetition(one: &dyn Medium, other: &dyn Medium) -> Result<(), String> {
    if !heard(one).eq(heard(other)) || one.next_change() != other.next_change() {
        return Err("it is another one each time that it is made".to_owned());
    }
    Ok(())
}

/// Without interference, frames arrive with the medium's stated probability, on the first link and the weakest.
fn check_arrivals(medium: &dyn Medium) -> Result<(), String> {
    let noise = Noise { floor_mw: medium.noise().milliwatts(), extra_mw: 0.0 };
    let weakest = heard(medium).min_by(|a, b| a.3.power_mw.total_cmp(&b.3.power_mw));
    for (tx, rx, channel, link) in heard(medium).next().into_iter().chain(weakest) {
        let arrives = |i: &u64| {
            let start = Instant::ZERO + Duration::from_millis(10) * *i;
            let draw = |_| reception_draw(Seed(6), tx, rx, start);
            let signals = [Signal::over(&link, start)];
            resolve(medium.overlap(), &signals, noise, |_| noise.whole(OCTETS), draw)
                .received
                .is_some()
        };
        let share = (0..FRAMES).filter(arrives).count() as f64 / FRAMES as f64;
        let said = medium.reception_probability(tx, rx, channel, OCTETS);
        if (share - said).abs() >= DIFFERENCE_MAX {
            return Err(format!(
                "of lone frames from {tx} to {rx} {share:.3} arrive where it says {said:.3}"
            ));
        }
    }
    Ok(())
}

/// After a change no change is overdue, no new pair appears, and the links stay valid.
fn check_changes(medium: &mut dyn Medium) -> Result<(), String> {
    let neighbours = |medium: &dyn Medium| -> Vec<Vec<NodeId>> {
        nodes(medium).map(|tx| medium.neighbours(tx).to_vec()).collect()
    };
    let before = neighbours(medium);
    let mut now = Instant::ZERO;
    for _ in 0..CHANGES_MAX {
        let Some(next) = medium.next_change() else { break };
        now = now.max(next);
        medium.advance(now);
        if medium.next_change().is_some_and(|later| later <= now) {
            return Err(format!("a change that was due at {next} is still due after it"));
        }
    }
    if neighbours(medium) != before {
        return Err("a pair came or went that the table did not have at the start".to_owned());
    }
    if now > Instant::ZERO { check_links(medium) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Dbm;

    use super::*;
    use crate::air::{Links, Overlap};

    /// A medium between two nodes with everything open to be spoilt.
    #[derive(Clone, Debug)]
    struct Pair {
        links: Links,
        overlap: Overlap,
        change: Option<Instant>,
    }

    impl Medium for Pair {
        fn name(&self) -> &'static str {
            "pair"
        }
        fn links(&self) -> &Links {
            &self.links
        }
        fn overlap(&self) -> Overlap {
            self.overlap
        }
        fn noise(&self) -> Dbm {
            Dbm(-98.0)
        }
        fn next_change(&self) -> Option<Instant> {
            self.change
        }
    }

    fn pair(link: Link) -> Pair {
        let links = Links::flat(2, |_, _| Some(link));
        Pair { links, overlap: Overlap::Curve(half_an_octet), change: None }
    }

    /// A receiver that loses one octet in a hundred, however loud.
    fn half_an_octet(_sinr: f64, octets: f64) -> f64 {
        libm::pow(0.99, octets)
    }

    fn verdict(pair: &Pair) -> String {
        check_made(|| Box::new(pair.clone())).expect_err("it is spoilt").to_string()
    }

    #[test]
    fn a_medium_of_ones_own_with_a_curve_of_its_own_passes() {
        let good = pair(Link::radiated(Dbm(-60.0)));
        assert_eq!(check_made(|| Box::new(good.clone())), Ok(()));
        let channel = Channel::new(11).expect("in the band");
        let chance = good.reception_probability(NodeId(0), NodeId(1), channel, OCTETS);
        assert!((chance - libm::pow(0.99, OCTETS as f64)).abs() < 1e-12);
    }

    #[test]
    fn what_a_medium_must_not_do_is_told_with_its_name() {
        let mut wrong = Link::radiated(Dbm(-60.0));
        wrong.power_mw *= 2.0;
        assert!(
            verdict(&pair(wrong)).starts_with("medium pair: from 0 to 1 on channel 11: -60 dBm")
        );
        let mut more = pair(Link::radiated(Dbm(-60.0)));
        more.overlap = Overlap::Curve(|_, _| 1.5);
        assert!(verdict(&more).ends_with("1.5 is no chance"));
        let mut stuck = pair(Link::radiated(Dbm(-60.0)));
        stuck.change = Some(Instant::from_secs(5));
        assert!(verdict(&stuck).contains("still due after it"));
        let mut silent = pair(Link::radiated(Dbm(-60.0)));
        silent.links = Links::flat(2, |_, _| None);
        assert_eq!(verdict(&silent), "medium pair: no node hears another");
    }
}
