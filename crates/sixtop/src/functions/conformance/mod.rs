//! What every [`SchedulingFunction`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all functions of this crate.

pub mod net;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions};
use lowmesh_machine::Machine as _;
use lowmesh_registry::{Breach, Choice, Domain, Row, Value};
use lowmesh_units::{Asn, Duration};

use self::net::{Net, eui};
use super::{Children, Event, SchedulingFunction, make};

/// Share of frames that is lost in the small network.
const LOSS: f64 = 0.05;
/// How long the network runs before it is looked at: longer than any 6P timeout.
const SETTLED: Duration = Duration::from_secs(900);
/// Deadlines that are checked one after the other.
const DEADLINES_MAX: usize = 500;
/// Slots in which the ends of each link are compared, long after the start.
const SLOTS: core::ops::Range<u64> = 1_000_000..1_006_000;
/// The links of the network, in both directions: a line of three nodes, root first.
const LINKS: [(usize, usize); 4] = [(0, 1), (1, 0), (1, 2), (2, 1)];

/// Checks the row and the functions that it makes, in a small network that loses frames: where a node sends the other end
/// listens, one shared cell is heard by all, beacons are heard, links that end leave no cells, a lost clock empties the
/// schedule, and the same seed gives the same cells. Each name of a parameter that takes names is tried.
///
/// ```
/// use lowmesh_sixtop::functions::{alice, conformance};
/// conformance::check(&alice::ROW)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn SchedulingFunction>) -> Result<(), Breach> {
    row.check()?;
    for choice in choices(row) {
        let function = make(&choice, Children::Known);
        if function.name() != row.name {
            return Err(row.breach(format!("the function is called {}", function.name())));
        }
        for children in [Children::Known, Children::Unknown] {
            if children == Children::Unknown && function.needs_children() {
                continue;
            }
            let subject = Subject { choice: &choice, children };
            subject.check().map_err(|what| Breach {
                row: format!("{choice:?}, children {children:?}"),
                ..row.breach(what)
            })?;
        }
    }
    Ok(())
}

/// The row with its defaults, and with each name of each parameter that takes names.
fn choices(row: &'static Row<dyn SchedulingFunction>) -> Vec<Choice<dyn SchedulingFunction>> {
    let mut choices = Vec::from([Choice::from(row)]);
    for parameter in row.parameters {
        let Domain::Name(names) = parameter.domain else { continue };
        let others = names.iter().skip(1);
        choices.extend(
            others.filter_map(|name| Choice::from(row).with(parameter.key, Value::Name(name)).ok()),
        );
    }
    choices
}

/// A function in one situation.
struct Subject<'a> {
    choice: &'a Choice<dyn SchedulingFunction>,
    children: Children,
}

impl Subject<'_> {
    fn check(&self) -> Result<(), String> {
        let net = self.line();
        check_cells(&net)?;
        check_links(&net)?;
        check_shared_cell(&net)?;
        check_backoff(&net)?;
        check_beacons(&net)?;
        check_snapshot(&net)?;
        self.check_repetition(&net)?;
        self.check_deadlines()?;
        self.check_ended_links()?;
        self.check_swapped_places()?;
        self.check_lost_clock()
    }

    /// A line of three, root first, with frames queued along both links.
    fn line(&self) -> Net {
        let mut net = Net::new(3, LOSS, 21, || make(self.choice, self.children));
        net.attach(1, None, 0);
        net.attach(2, None, 1);
        for (node, peer) in LINKS {
            net.tell(node, Event::QueueBusy(eui(peer)));
            net.flow(node, peer, 0.5);
        }
        net.run_for(SETTLED);
        net
    }

    fn check_repetition(&self, net: &Net) -> Result<(), String> {
        let cells = |net: &Net| -> Vec<String> {
            net.nodes.iter().map(|node| format!("{:?}", node.schedule)).collect()
        };
        ensure(cells(net) == cells(&self.line()), || {
            "the same seed gives other schedules".to_string()
        })
    }

    fn check_deadlines(&self) -> Result<(), String> {
        let mut net = self.line();
        for _ in 0..DEADLINES_MAX {
            let deadlines = net.nodes.iter().filter_map(|node| node.sixtop.next_deadline());
            let Some(next) = deadlines.min() else { break };
            let now = net.now;
            ensure(next > now, || format!("a deadline that was answered at {now} is still due"))?;
            net.run_until(next);
        }
        Ok(())
    }

    fn check_ended_links(&self) -> Result<(), String> {
        let mut net = self.line();
        for (node, peer) in LINKS {
            net.tell(node, Event::QueueEmpty(eui(peer)));
        }
        net.tell(2, Event::TimeSource(None));
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: None });
        net.tell(1, Event::ChildRemoved(eui(2)));
        net.run_for(SETTLED);
        for (node, peer) in [(2, 1), (1, 2)] {
            let left = net.nodes[node].schedule.cells().filter(|c| c.peer == Some(eui(peer)));
            let left = left.count();
            ensure(left == 0, || format!("a link that ended leaves {left} cells at node {node}"))?;
        }
        check_cells(&net)
    }

    fn check_swapped_places(&self) -> Result<(), String> {
        let mut net = self.line();
        net.tell(1, Event::ChildRemoved(eui(2)));
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: Some(eui(0)) });
        net.tell(0, Event::ChildAdded(eui(2)));
        net.tell(0, Event::ChildRemoved(eui(1)));
        net.attach(1, Some(0), 2);
        net.run_for(SETTLED * 2);
        check_cells(&net)?;
        let apart = net.disagreements();
        ensure(apart.is_empty(), || {
            format!("after a parent and a child changed places {apart:?} disagree on their cells")
        })?;
        let reaches = |c: &Cell| {
            let to_anyone = c.peer.is_none() && c.options.has(CellOptions::SHARED);
            c.options.has(CellOptions::TX) && (c.peer == Some(eui(2)) || to_anyone)
        };
        ensure(net.nodes[1].schedule.cells().any(reaches), || {
            "a node has no cell to its new parent, its child before".to_string()
        })
    }

    fn check_lost_clock(&self) -> Result<(), String> {
        let mut net = self.line();
        let own = |net: &Net| -> Vec<_> {
            let cells = net.nodes[2].schedule.cells();
            let own = cells.filter(|c| c.peer.is_none() && c.kind != CellKind::Negotiated);
            own.map(|c| (c.slotframe, c.placement, c.options)).collect()
        };
        let before = own(&net);
        net.tell(2, Event::Desynchronised);
        let is_empty = net.nodes[2].schedule.slotframes().count() == 0;
        ensure(is_empty, || "slotframes are left when the clock is lost".to_string())?;
        let deadline = net.nodes[2].sixtop.next_deadline();
        ensure(deadline.is_none(), || "a deadline is left when the clock is lost".to_string())?;
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: None });
        net.tell(2, Event::Synchronised);
        ensure(own(&net) == before, || {
            "its own cells are others after it synchronised again".to_string()
        })
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Each cell lies within its slotframe, sends or listens, and is there once.
fn check_cells(net: &Net) -> Result<(), String> {
    for node in &net.nodes {
        let all: Vec<&Cell> = node.schedule.cells().collect();
        for (index, cell) in all.iter().enumerate() {
            let length = node.schedule.slotframe(cell.slotframe).map_or(0, |frame| frame.length);
            let is_within = (0..50).all(|cycle| cell.placement.at(cycle, length).0 < length);
            ensure(is_within, || format!("a cell leaves its slotframe: {cell:?}"))?;
            let is_used = cell.options.has(CellOptions::TX) || cell.options.has(CellOptions::RX);
            ensure(is_used, || format!("a cell neither sends nor listens: {cell:?}"))?;
            let is_same = |other: &&Cell| {
                let place = (cell.slotframe, cell.placement, cell.options, cell.peer);
                place == (other.slotframe, other.placement, other.options, other.peer)
            };
            let is_twice = all[index + 1..].iter().any(is_same);
            ensure(!is_twice, || format!("a cell is there twice: {cell:?}"))?;
        }
    }
    Ok(())
}

/// True when `node` listens in slot `asn` at `channel_offset`, maybe in another cell's shadow.
pub fn listens(net: &Net, node: usize, asn: Asn, channel_offset: u16) -> bool {
    let at = net.nodes[node].schedule.at(asn);
    at.into_iter().any(|(c, offset)| c.options.has(CellOptions::RX) && offset == channel_offset)
}

/// Where a node sends to its neighbour, the neighbour listens.
fn check_links(net: &Net) -> Result<(), String> {
    let nodes = 0..net.nodes.len();
    for asn in SLOTS.map(Asn) {
        for node in nodes.clone() {
            for (cell, offset) in net.nodes[node].schedule.at(asn) {
                let peer = cell.peer.filter(|_| cell.options.has(CellOptions::TX));
                let Some(peer) = peer else { continue };
                let peer = nodes.clone().find(|other| eui(*other) == peer);
                let is_heard = peer.is_some_and(|peer| listens(net, peer, asn, offset));
                ensure(is_heard, || format!("nobody listens where node {node} sends: {cell:?}"))?;
            }
        }
    }
    Ok(())
}

/// There is one cell that anyone may send in, and all listen there.
fn check_shared_cell(net: &Net) -> Result<(), String> {
    let shared = CellOptions::TX.with(CellOptions::SHARED);
    for node in &net.nodes {
        let cells = node.schedule.cells();
        let broadcast: Vec<&Cell> =
            cells.filter(|c| c.peer.is_none() && c.options.has(shared)).collect();
        let [cell] = broadcast[..] else {
            return Err(format!("{} cells are for anyone, not one", broadcast.len()));
        };
        ensure(cell.kind == CellKind::Minimal, || format!("the cell for anyone is {cell:?}"))?;
        let asn = node.schedule.next_occurrence(cell, Asn(5000));
        let length = node.schedule.slotframe(cell.slotframe).map_or(1, |frame| frame.length);
        let (_, offset) = cell.placement.at(0, length);
        let is_heard = (0..net.nodes.len()).all(|node| listens(net, node, asn, offset));
        ensure(is_heard, || format!("not all listen in the cell for anyone: {cell:?}"))?;
    }
    Ok(())
}

/// Senders back off in cells that addresses alone place, so that two senders may have the same one.
fn check_backoff(net: &Net) -> Result<(), String> {
    for cell in net.nodes.iter().flat_map(|node| node.schedule.cells()) {
        let is_to_one = cell.options.has(CellOptions::TX) && cell.peer.is_some();
        let must_share = is_to_one && cell.kind == CellKind::Autonomous;
        ensure(!must_share || cell.options.has(CellOptions::SHARED), || {
            format!("senders do not back off in a cell that nobody negotiated: {cell:?}")
        })?;
    }
    Ok(())
}

/// A node hears the beacons of its time source.
fn check_beacons(net: &Net) -> Result<(), String> {
    for (node, source) in [(1, 0), (2, 1)] {
        let schedule = &net.nodes[source].schedule;
        let is_beacon = |c: &&Cell| c.kind == CellKind::Minimal && c.options.has(CellOptions::TX);
        let beacons = schedule.cells().find(is_beacon);
        let beacons = beacons.ok_or_else(|| format!("node {source} has no cell for beacons"))?;
        let asn = schedule.next_occurrence(beacons, Asn(777));
        let offset = schedule.at(asn).find(|(cell, _)| cell.id == beacons.id).map(|(_, at)| at);
        let is_heard = offset.is_some_and(|offset| listens(net, node, asn, offset));
        ensure(is_heard, || format!("node {node} does not hear the beacons of node {source}"))?;
    }
    Ok(())
}

/// A snapshot counts the cells of each neighbour.
fn check_snapshot(net: &Net) -> Result<(), String> {
    let node = &net.nodes[1];
    let counted: u16 =
        node.sixtop.snapshot(&node.schedule).peers.values().map(|peer| peer.tx + peer.rx).sum();
    let there = node.schedule.cells().filter(|c| c.peer.is_some()).count();
    ensure(usize::from(counted) == there, || {
        format!("its snapshot counts {counted} of {there} cells with neighbours")
    })
}
