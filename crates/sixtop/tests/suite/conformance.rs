//! The conformance suite over the rows of all scheduling functions, and what holds of Orchestra only.

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
use lowmesh_registry::{Choice, Registry, Row};
use lowmesh_sixtop::functions::conformance::{
    check, listens,
    net::{Net, eui},
};
use lowmesh_sixtop::functions::{Children, Context, make, minimal, orchestra};
use lowmesh_sixtop::{Event, SchedulingFunction};
use lowmesh_units::{Asn, Duration};

#[test]
fn every_built_in_function_keeps_the_rules() {
    assert_eq!(Registry::<dyn SchedulingFunction>::builtin().breaches(), []);
}

/// The minimal schedule with cells to neighbours that do not know of them.
#[derive(Debug)]
struct Deaf(Box<dyn SchedulingFunction>);

impl SchedulingFunction for Deaf {
    fn name(&self) -> &'static str {
        DEAF.name
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        self.0.handle(context, event);
        if let Event::QueueBusy(peer) = *event {
            context.cell(CellSpec {
                slotframe: 0,
                placement: Placement::Fixed { slot: 5, channel_offset: 3 },
                options: CellOptions::TX,
                kind: CellKind::Autonomous,
                peer: Some(peer),
            });
        }
    }
}

static DEAF: Row<dyn SchedulingFunction> =
    Row::<dyn SchedulingFunction>::plain("deaf", "Sends where nobody listens", |_, children| {
        Box::new(Deaf(make(&(&minimal::ROW).into(), children)))
    });

#[test]
fn a_function_whose_neighbours_do_not_listen_is_refused() {
    let breach = check(&DEAF).expect_err("nobody listens in slot 5").to_string();
    assert!(breach.starts_with("scheduling function deaf"), "{breach}");
    assert!(breach.contains("nobody listens where node 0 sends"), "{breach}");
}

/// Orchestra in a line of three nodes, root first, with frames queued along both links.
fn line(choice: &Choice<dyn SchedulingFunction>) -> Net {
    let mut net = Net::new(3, 0.05, 21, || make(choice, Children::Known));
    net.attach(1, None, 0);
    net.attach(2, None, 1);
    for (node, peer) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
        net.tell(node, Event::QueueBusy(eui(peer)));
        net.flow(node, peer, 0.5);
    }
    net.run_for(Duration::from_secs(900));
    net
}

fn sender() -> Choice<dyn SchedulingFunction> {
    Choice::from(&orchestra::ROW).with("variant", "sender").expect("one of the names")
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
    for (choice, slot) in [(Choice::from(&orchestra::ROW), 2), (sender(), 1)] {
        let mut net = line(&choice);
        net.tell(2, Event::KnownToParent(eui(1)));
        net.tell(1, Event::KnownToParent(eui(0)));
        assert_eq!(places(&net, 1, None, CellOptions::TX), [(1, 0)], "{choice:?}");
        assert_eq!(places(&net, 1, Some(2), shared), [(slot, 4)], "{choice:?}");
    }
    let net = line(&Choice::from(&orchestra::ROW));
    assert_eq!(places(&net, 2, None, CellOptions::RX), [(2, 4)]);
    let common = shared.with(CellOptions::RX).with(CellOptions::TIMEKEEPING);
    assert_eq!(places(&net, 2, None, common), [(0, 1)]);
}

#[test]
fn orchestras_root_listens_all_the_time_if_there_is_a_slotframe_for_it() {
    let shared = CellOptions::TX.with(CellOptions::SHARED);
    for (choice, children) in [
        (Choice::from(&orchestra::ROW), Children::Known),
        (sender(), Children::Known),
        (Choice::from(&orchestra::ROW), Children::Unknown),
    ] {
        let choice = choice.with("root_length", 7_u64).expect("within bounds");
        let mut net = Net::new(3, 0.0, 5, || make(&choice, children));
        net.tell(1, Event::RootKnown(eui(0)));
        net.attach(1, None, 0);
        net.attach(2, None, 1);
        net.tell(1, Event::KnownToParent(eui(0)));
        // To the root in the sender's own slot, of 7; to others as ever.
        assert_eq!(places(&net, 1, Some(0), shared), [(1, 2)], "{choice:?}");
        let cells = net.nodes[1].schedule.cells_in(2);
        assert_eq!(cells.map(|c| c.peer).collect::<Vec<_>>(), [Some(eui(0))], "{choice:?}");
        assert_eq!(net.nodes[2].schedule.cells_in(2).count(), 0, "{choice:?}");
        assert!((0..500).all(|asn| listens(&net, 0, Asn(asn), 2)), "{choice:?}");
        net.tell(1, Event::ParentChanged { old: Some(eui(0)), new: None });
        assert_eq!(net.nodes[1].schedule.cells_in(2).count(), 0, "{choice:?}");
    }
}
