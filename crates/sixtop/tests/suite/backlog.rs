//! `msf/backlog`: cells for frames that wait, and how long they stay.

use lowmesh_registry::Registry;
use lowmesh_sixtop::functions::conformance::net::{Net, eui};
use lowmesh_sixtop::functions::msf::Msf;
use lowmesh_sixtop::functions::{Children, make};
use lowmesh_sixtop::params::MsfParams;
use lowmesh_sixtop::{Change, Event};
use lowmesh_units::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A root and its child, a minute after they met.
fn pair(seed: u64) -> Net {
    let choice = Registry::builtin().choose("msf/backlog").expect("a built-in function");
    let mut net = Net::new(2, 0.0, seed, || make(&choice, Children::Known));
    net.attach(1, None, 0);
    net.run_for(MINUTE);
    net
}

#[test]
fn a_node_asks_for_a_cell_to_a_child_once_frames_have_waited_for_it_for_four_slotframes() {
    let mut net = pair(22);
    // Frames that come and go are no backlog.
    for _ in 0..20 {
        net.tell(0, Event::QueueBusy(eui(1)));
        net.run_for(Duration::from_secs(3));
        net.tell(0, Event::QueueEmpty(eui(1)));
    }
    assert_eq!(net.tx(0, 1), []);
    net.tell(0, Event::QueueBusy(eui(1)));
    net.run_for(Duration::from_secs(8));
    assert_eq!(net.tx(0, 1).len(), 1, "4.04 s and a transaction");
    net.run_for(Duration::from_secs(6));
    assert!(net.tx(0, 1).len() > 1, "one cell was not enough");
    net.tell(0, Event::QueueEmpty(eui(1)));
    assert_eq!(net.disagreements(), []);
    // Used as cells should be they stay, hardly used the child gives them back, one in each hold.
    let many = net.tx(0, 1).len();
    net.flow(0, 1, 0.5);
    net.run_for(MINUTE * 90);
    assert_eq!(net.tx(0, 1).len(), many);
    net.flow(0, 1, 0.1);
    net.run_for(MINUTE * 70 * many as u64);
    assert_eq!(net.tx(0, 1), []);
    assert_eq!(net.disagreements(), []);
}

#[test]
fn a_node_requests_one_more_cell_to_its_parent_for_each_four_slotframes_of_backlog() {
    let mut net = pair(24);
    assert_eq!(net.tx(1, 0).len(), 1);
    net.tell(1, Event::QueueBusy(eui(0)));
    net.run_for(Duration::from_secs(20));
    let relieved = net.tx(1, 0).len();
    assert!((3..=5).contains(&relieved), "{relieved}");
    net.tell(1, Event::QueueEmpty(eui(0)));
    assert_eq!(net.disagreements(), []);
    // Cells that are hardly used are given back by the counters of s5.1, down to the last, one in each hold.
    net.flow(1, 0, 0.1);
    net.run_for(MINUTE * 70 * relieved as u64);
    assert_eq!(net.tx(1, 0).len(), 1);
}

#[test]
fn a_backlog_is_nobodys_business_where_children_do_not_count_what_they_receive() {
    let without = MsfParams { receive_cells: false, ..MsfParams::BACKLOG };
    let off = MsfParams { backlog_slotframes: 0, ..MsfParams::BACKLOG };
    for params in [without, off] {
        let mut net = Net::new(2, 0.0, 23, || Box::new(Msf::new(params, Children::Known)));
        net.attach(1, None, 0);
        net.tell(0, Event::QueueBusy(eui(1)));
        net.tell(1, Event::QueueBusy(eui(0)));
        net.run_for(MINUTE * 5);
        assert_eq!(net.tx(0, 1), []);
        assert_eq!(net.tx(1, 0).len(), 1);
    }
}

/// Frames wait at `from` for `to` until there is one cell more.
fn wait(net: &mut Net, from: usize, to: usize) {
    let before = net.tx(from, to).len();
    net.tell(from, Event::QueueBusy(eui(to)));
    while net.tx(from, to).len() == before {
        net.run_for(Duration::from_secs(1));
    }
    net.tell(from, Event::QueueEmpty(eui(to)));
    // The other end may commit a second later.
    net.run_for(Duration::from_secs(2));
}

#[test]
fn a_cell_that_a_backlog_added_stays_for_an_hour_and_twice_as_long_if_it_was_missed() {
    // The child releases in both directions: the cells that it asked for, and those that its parent did.
    for (from, to, least) in [(1, 0, 1), (0, 1, 0)] {
        let mut net = pair(31);
        net.flow(from, to, 0.1);
        let mut minutes = 60;
        for _ in 0..3 {
            wait(&mut net, from, to);
            net.run_for(MINUTE * (minutes - 1));
            assert_eq!(net.tx(from, to).len(), least + 1, "{from}->{to} {minutes} min");
            // The end of a window of 100 cells, and a transaction.
            net.run_for(MINUTE * 4);
            assert_eq!(net.tx(from, to).len(), least, "{from}->{to} {minutes} min");
            minutes *= 2;
        }
        assert_eq!(net.disagreements(), []);
    }
}

#[test]
fn a_release_that_was_not_missed_makes_the_next_hold_short_again() {
    let mut net = pair(32);
    net.flow(1, 0, 0.1);
    for minutes in [60, 120, 240] {
        wait(&mut net, 1, 0);
        net.run_for(MINUTE * (minutes + 4));
        assert_eq!(net.tx(1, 0).len(), 1);
    }
    wait(&mut net, 1, 0);
    wait(&mut net, 1, 0);
    // Eight hours for each of these two cells; the first release is not missed, so the next hold is short.
    net.run_for(MINUTE * (8 * 60 + 4));
    assert_eq!(net.tx(1, 0).len(), 2);
    net.run_for(MINUTE * (8 * 60));
    assert_eq!(net.tx(1, 0).len(), 1);
    wait(&mut net, 1, 0);
    net.run_for(MINUTE * (2 * 60 + 4));
    assert_eq!(net.tx(1, 0).len(), 1);
}

/// Transactions in a day with a load that fills cells by less than a quarter, and yet makes frames wait now and then.
fn transactions_in_a_day(params: MsfParams) -> usize {
    let mut net = Net::new(2, 0.0, 33, || Box::new(Msf::new(params, Children::Known)));
    net.attach(1, None, 0);
    net.run_for(MINUTE);
    net.nodes[1].changes.clear();
    for _ in 0..24 * 12 {
        // One frame in five slotframes.
        net.flow(1, 0, 0.2 / net.tx(1, 0).len() as f64);
        if net.tx(1, 0).len() == 1 {
            wait(&mut net, 1, 0);
        }
        net.run_for(MINUTE * 5);
    }
    let ended = |c: &&Change| matches!(c, Change::Ended { .. });
    net.nodes[1].changes.iter().filter(ended).count()
}

#[test]
fn a_constant_load_near_the_lower_limit_ends_in_silence() {
    let restless = MsfParams { hold: (Duration::ZERO, Duration::ZERO), ..MsfParams::BACKLOG };
    assert!(transactions_in_a_day(restless) > 200);
    // Holds of 1, 2, 4, 8 and 8 h, and one that has begun.
    let settled = transactions_in_a_day(MsfParams::BACKLOG);
    assert!((3..=11).contains(&settled), "{settled}");
}
