//! What every scheduling function must do, whatever its name: one suite over all of them.

mod harness;

use harness::{Net, eui};
use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions};
use lowmesh_machine::Machine;
use lowmesh_sixtop::function_by_name;
use lowmesh_sixtop::functions::NAMES;
use lowmesh_sixtop::functions::orchestra::{Orchestra, Rule};
use lowmesh_sixtop::params::OrchestraParams;
use lowmesh_sixtop::{Event, Sixtop};
use lowmesh_units::{Asn, Duration};

/// A line of three, root first, with frames queued along both links.
fn line(function: &str) -> Net {
    let mut net = Net::new(3, function, 0.05, 21);
    net.attach(1, None, 0);
    net.attach(2, None, 1);
    for (node, peer) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
        net.tell(node, Event::QueueBusy(eui(peer)));
        net.flow(node, peer, 0.5);
    }
    net.run_for(Duration::from_secs(900));
    net
}

fn assert_sane(net: &Net, function: &str) {
    for node in &net.nodes {
        for cell in node.schedule.cells() {
            let length = node.schedule.slotframe(cell.slotframe).expect("its own").length;
            for cycle in 0..50 {
                assert!(cell.placement.at(cycle, length).0 < length, "{function}: {cell:?}");
            }
            assert!(cell.options.has(CellOptions::TX) || cell.options.has(CellOptions::RX));
        }
        let all: Vec<&Cell> = node.schedule.cells().collect();
        for (i, one) in all.iter().enumerate() {
            let same = |other: &&&Cell| {
                let place = (one.slotframe, one.placement, one.options, one.peer);
                place == (other.slotframe, other.placement, other.options, other.peer)
            };
            assert!(!all[i + 1..].iter().any(|o| same(&o)), "{function}: twice {one:?}");
        }
    }
}

/// True when `node` listens in slot `asn` at `channel_offset`, maybe in another cell's shadow.
fn listens(net: &Net, node: usize, asn: Asn, channel_offset: u16) -> bool {
    let at = net.nodes[node].schedule.at(asn);
    at.into_iter().any(|(c, offset)| c.options.has(CellOptions::RX) && offset == channel_offset)
}

#[test]
fn every_name_leads_to_a_function_of_that_name() {
    for name in NAMES {
        assert_eq!(function_by_name(name).expect(name).name(), name);
    }
}

#[test]
fn where_a_node_sends_to_its_neighbour_the_neighbour_listens() {
    for function in NAMES {
        let net = line(function);
        assert_sane(&net, function);
        let mut met = 0;
        for asn in (1_000_000..1_006_000).map(Asn) {
            for node in 0..3 {
                for (cell, offset) in net.nodes[node].schedule.at(asn) {
                    let Some(peer) = cell.peer.filter(|_| cell.options.has(CellOptions::TX)) else {
                        continue;
                    };
                    let peer = (0..3).find(|n| eui(*n) == peer).expect("one of the three");
                    assert!(listens(&net, peer, asn, offset), "{function}: {cell:?}");
                    met += 1;
                }
            }
        }
        assert!(met > 0 || function == "minimal", "{function}");
    }
}

#[test]
fn a_cell_that_anyone_may_send_in_is_heard_by_all_and_there_is_one() {
    for function in NAMES {
        let net = line(function);
        for node in &net.nodes {
            let shared = CellOptions::TX.with(CellOptions::SHARED);
            let broadcast: Vec<&Cell> = node
                .schedule
                .cells()
                .filter(|c| c.peer.is_none() && c.options.has(shared))
                .collect();
            assert_eq!(broadcast.len(), 1, "{function}");
            assert_eq!(broadcast[0].kind, CellKind::Minimal);
            let asn = node.schedule.next_occurrence(broadcast[0], Asn(5000));
            let slotframe = node.schedule.slotframe(broadcast[0].slotframe).expect("its own");
            let (_, offset) = broadcast[0].placement.at(0, slotframe.length);
            assert!((0..3).all(|n| listens(&net, n, asn, offset)), "{function}");
        }
    }
}

#[test]
fn senders_back_off_in_cells_that_nobody_negotiated() {
    for function in NAMES {
        let net = line(function);
        for cell in net.nodes.iter().flat_map(|node| node.schedule.cells()) {
            let to_one = cell.options.has(CellOptions::TX) && cell.peer.is_some();
            // Addresses alone place these, so two senders may have the same one.
            if to_one && cell.kind == CellKind::Autonomous {
                assert!(cell.options.has(CellOptions::SHARED), "{function}: {cell:?}");
            }
        }
    }
}

/// Slot and channel offset of the cells of `node` to or from `peer` with these options.
fn places(net: &Net, node: usize, peer: Option<usize>, options: CellOptions) -> Vec<(u16, u16)> {
    let cells = net.nodes[node].schedule.cells();
    let cells = cells.filter(|c| c.peer == peer.map(eui) && c.options == options);
    cells.map(|c| c.placement.at(0, 1)).collect()
}

#[test]
fn orchestra_has_the_slot_of_the_owner_and_the_channel_offset_of_the_receiver() {
    // Contiki-NG's orchestra-conf.h: beacons at offset 0, the common cell at 1, unicast from 2 on by the hash.
    let shared = CellOptions::TX.with(CellOptions::SHARED);
    for (function, slot) in [("orchestra", 2), ("orchestra/sender-based", 1)] {
        let mut net = line(function);
        net.tell(2, Event::KnownToParent(eui(1)));
        net.tell(1, Event::KnownToParent(eui(0)));
        assert_eq!(places(&net, 1, None, CellOptions::TX), [(1, 0)], "{function}");
        assert_eq!(places(&net, 1, Some(2), shared), [(slot, 4)], "{function}");
    }
    let net = line("orchestra");
    assert_eq!(places(&net, 2, None, CellOptions::RX), [(2, 4)]);
    let common = shared.with(CellOptions::RX).with(CellOptions::TIMEKEEPING);
    assert_eq!(places(&net, 2, None, common), [(0, 1)]);
}

#[test]
fn orchestras_root_listens_all_the_time_if_there_is_a_slotframe_for_it() {
    let params = OrchestraParams { root_length: 7, ..OrchestraParams::default() };
    let shared = CellOptions::TX.with(CellOptions::SHARED);
    for rule in [Rule::ReceiverStoring, Rule::SenderStoring, Rule::ReceiverNonStoring] {
        let mut net = Net::with(3, 0.0, 5, || Box::new(Orchestra::new(rule, params)));
        net.tell(1, Event::RootKnown(eui(0)));
        net.attach(1, None, 0);
        net.attach(2, None, 1);
        net.tell(1, Event::KnownToParent(eui(0)));
        // To the root in the sender's own slot, of 7; to others as ever.
        assert_eq!(places(&net, 1, Some(0), shared), [(1, 2)], "{rule:?}");
        let cells = net.nodes[1].schedule.cells_in(2);
        assert_eq!(cells.map(|c| c.peer).collect::<Vec<_>>(), [Some(eui(0))], "{rule:?}");
        assert_eq!(net.nodes[2].schedule.cells_in(2).count(), 0, "{rule:?}");
        assert!((0..500).all(|asn| listens(&net, 0, Asn(asn), 2)), "{rule:?}");
        net.tell(1, Event::ParentChanged { old: Some(eui(0)), new: None });
        assert_eq!(net.nodes[1].schedule.cells_in(2).count(), 0, "{rule:?}");
    }
}

#[test]
fn a_node_hears_the_beacons_of_its_time_source() {
    for function in NAMES {
        let net = line(function);
        for (node, source) in [(1, 0), (2, 1)] {
            let beacons = net.nodes[source]
                .schedule
                .cells()
                .find(|c| c.kind == CellKind::Minimal && c.options.has(CellOptions::TX))
                .expect("a cell for beacons");
            let asn = net.nodes[source].schedule.next_occurrence(beacons, Asn(777));
            let at: Vec<_> = net.nodes[source].schedule.at(asn).collect();
            let (_, offset) = at.iter().find(|(c, _)| c.id == beacons.id).expect("lies there");
            assert!(listens(&net, node, asn, *offset), "{function}");
        }
    }
}

#[test]
fn links_that_end_leave_no_cells() {
    for function in NAMES {
        let mut net = line(function);
        for (node, peer) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            net.tell(node, Event::QueueEmpty(eui(peer)));
        }
        net.tell(2, Event::TimeSource(None));
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: None });
        net.tell(1, Event::ChildRemoved(eui(2)));
        net.run_for(Duration::from_secs(900));
        let between = |node: usize, peer: usize| {
            net.nodes[node].schedule.cells().filter(|c| c.peer == Some(eui(peer))).count()
        };
        assert_eq!((between(2, 1), between(1, 2)), (0, 0), "{function}");
        assert_sane(&net, function);
    }
}

#[test]
fn a_parent_and_a_child_may_change_places() {
    for function in NAMES {
        let mut net = line(function);
        net.tell(1, Event::ChildRemoved(eui(2)));
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: Some(eui(0)) });
        net.tell(0, Event::ChildAdded(eui(2)));
        net.tell(0, Event::ChildRemoved(eui(1)));
        net.attach(1, Some(0), 2);
        net.run_for(Duration::from_secs(1800));
        assert_sane(&net, function);
        assert_eq!(net.disagreements(), [], "{function}");
        let reaches = |c: &Cell| {
            let to_anyone = c.peer.is_none() && c.options.has(CellOptions::SHARED);
            c.options.has(CellOptions::TX) && (c.peer == Some(eui(2)) || to_anyone)
        };
        assert!(net.nodes[1].schedule.cells().any(reaches), "{function}");
    }
}

#[test]
fn losing_the_clock_empties_the_schedule_and_a_new_one_is_like_the_first() {
    for function in NAMES {
        let mut net = line(function);
        let own = |net: &Net| -> Vec<_> {
            let cells = net.nodes[2].schedule.cells();
            let own = cells.filter(|c| c.peer.is_none() && c.kind != CellKind::Negotiated);
            own.map(|c| (c.slotframe, c.placement, c.options)).collect()
        };
        let before = own(&net);
        net.tell(2, Event::Desynchronised);
        assert_eq!(net.nodes[2].schedule.slotframes().count(), 0, "{function}");
        assert_eq!(net.nodes[2].sixtop.next_deadline(), None, "{function}");
        net.tell(2, Event::ParentChanged { old: Some(eui(1)), new: None });
        net.tell(2, Event::Synchronised);
        assert_eq!(own(&net), before, "{function}");
    }
}

#[test]
fn a_deadline_that_was_answered_is_over() {
    for function in NAMES {
        let mut net = line(function);
        for _ in 0..500 {
            let deadlines = net.nodes.iter().filter_map(|n| n.sixtop.next_deadline());
            let Some(next) = deadlines.min() else { break };
            assert!(next > net.now, "{function}");
            net.run_until(next);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_schedules() {
    for function in NAMES {
        let cells = || {
            let net = line(function);
            net.nodes.iter().map(|n| format!("{:?}", n.schedule)).collect::<Vec<_>>()
        };
        assert_eq!(cells(), cells(), "{function}");
    }
}

#[test]
fn a_snapshot_counts_the_cells_of_each_neighbour() {
    for function in NAMES {
        let net = line(function);
        let sixtop: &Sixtop = &net.nodes[1].sixtop;
        let snapshot = sixtop.snapshot(&net.nodes[1].schedule);
        let counted: u16 = snapshot.peers.values().map(|p| p.tx + p.rx).sum();
        let with_peer = net.nodes[1].schedule.cells().filter(|c| c.peer.is_some()).count();
        assert_eq!(usize::from(counted), with_peer, "{function}");
        assert_eq!(sixtop.function_name(), function);
    }
}
