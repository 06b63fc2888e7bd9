//! Nodes whose routing does not name children, as in RPL's non-storing mode: their cells show who sends to them.

use lowmesh_registry::Registry;
use lowmesh_sixtop::Event;
use lowmesh_sixtop::functions::conformance::net::{Net, eui};
use lowmesh_sixtop::functions::{Children, make};
use lowmesh_units::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// `count` nodes with the function called `name`; only node 1 knows its parent, node 0.
fn network(count: usize, name: &str) -> Net {
    let choice = Registry::builtin().choose(name).expect("a built-in function");
    let mut net = Net::new(count, 0.0, 22, || make(&choice, Children::Unknown));
    net.tell(1, Event::TimeSource(Some(eui(0))));
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    net.run_for(MINUTE);
    assert_eq!(net.tx(1, 0).len(), 1);
    net
}

#[test]
fn a_node_asks_for_a_cell_to_a_neighbour_that_has_cells_once_frames_have_waited_for_it() {
    let mut net = network(2, "msf/backlog");
    assert_eq!(net.tx(0, 1), []);
    net.tell(0, Event::QueueBusy(eui(1)));
    net.run_for(Duration::from_secs(8));
    assert_eq!(net.tx(0, 1).len(), 1, "4.04 s and a transaction");
    net.run_for(Duration::from_secs(6));
    assert!(net.tx(0, 1).len() > 1, "one cell was not enough");
    net.tell(0, Event::QueueEmpty(eui(1)));
    assert_eq!(net.disagreements(), []);
    // What is hardly used the child gives back, one cell in an hour.
    net.flow(0, 1, 0.1);
    net.run_for(MINUTE * 300);
    assert_eq!(net.tx(0, 1), []);
}

#[test]
fn a_node_asks_nothing_of_a_neighbour_without_cells() {
    let mut net = network(3, "msf/backlog");
    net.tell(0, Event::QueueBusy(eui(2)));
    net.run_for(MINUTE);
    assert_eq!(net.tx(0, 2), []);
}

#[test]
fn b_msf_has_a_cell_to_each_neighbour_that_has_cells() {
    let mut net = network(2, "b-msf");
    net.run_for(MINUTE);
    assert_eq!((net.tx(1, 0).len(), net.tx(0, 1).len()), (1, 1));
    net.flow(0, 1, 0.9);
    net.run_for(MINUTE * 10);
    assert!(net.tx(0, 1).len() > 3, "its own counters add cells");
    assert_eq!(net.disagreements(), []);
}

#[test]
fn a_neighbour_that_changed_its_parent_or_fell_silent_has_no_cells_left() {
    for function in ["msf/backlog", "b-msf"] {
        for leaves in [true, false] {
            let mut net = network(3, function);
            net.tell(0, Event::QueueBusy(eui(1)));
            net.run_for(Duration::from_secs(8));
            net.tell(0, Event::QueueEmpty(eui(1)));
            assert!(!net.tx(0, 1).is_empty());
            if leaves {
                net.tell(1, Event::ParentChanged { old: Some(eui(0)), new: Some(eui(2)) });
            } else {
                net.loss = 1.0;
            }
            net.run_for(MINUTE * 30);
            assert_eq!([net.tx(0, 1), net.rx(0, 1)].concat(), [], "{function}, leaves: {leaves}");
        }
    }
}
