//! Leaves that run no RPL: what their router tells the root, and what the root makes of it.

use lowmesh_units::Duration;
use lowmesh_wire::rpl::{
    Dao, DaoAck, DaoStatus, Dco, Dio, Message, RplOption, Target, TransitInformation,
};

use super::network::{Network, global, link_local};
use super::script::{Script, daos, dio, sent};
use crate::{Address, Config, Destination, Input, Mode, Output, Sequence};

const MODES: [Mode; 2] = [Mode::Storing, Mode::NonStoring];
/// The leaf.
const LEAF: usize = 40;
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// "Moved", as a rejection (RFC 9010 s6.3).
const MOVED: u8 = 0xc3;

/// Node 1, which has heard the root.
fn router(mode: Mode) -> Script {
    let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
    script.hear(0, &Message::Dio(Dio { mode, ..dio(128) }));
    script.pass(Duration::from_secs(60));
    script
}
fn root(mode: Mode) -> Script {
    Script::of(Config::root(link_local(1), global(1)).with_mode(mode))
}
fn attach(script: &mut Script, sequence: u8) -> Vec<Output> {
    let (leaf, sequence) = (global(LEAF), Sequence(sequence));
    script.give(Input::Attach { leaf, sequence, lifetime: TEN_MINUTES })
}
fn transit(router: usize, path_sequence: u8, path_lifetime: u8) -> TransitInformation {
    TransitInformation {
        external: true,
        invalidates: false,
        path_control: 0,
        path_sequence,
        path_lifetime,
        parent: Some(global(router)),
    }
}
/// A DAO of a router about a leaf, as it comes to the root; returns the answer and the rest.
fn announce(
    script: &mut Script,
    leaf: Address,
    transit: TransitInformation,
) -> (DaoStatus, Vec<Output>) {
    let options =
        vec![RplOption::Target(Target::host(leaf)), RplOption::TransitInformation(transit)];
    let dao = Dao { instance: 0, ack_wanted: true, sequence: 7, dodag_id: None, options };
    let from = transit.parent.expect("a router");
    let message = &Message::Dao(dao);
    let outputs = script.give(Input::Message { from, multicast: false, message });
    let status = sent(&outputs).into_iter().find_map(|(to, message)| match message {
        Message::DaoAck(ack) if to == Destination::Unicast(from) => Some(ack.status),
        _ => None,
    });
    (status.expect("a DAO-ACK"), outputs)
}
/// The DAOs about the leaf, with where they go.
fn told(outputs: &[Output]) -> Vec<(Destination, u8, TransitInformation)> {
    let about = |(to, message): (Destination, &Message)| match message {
        Message::Dao(dao) => match dao.options[..] {
            [RplOption::Target(target), RplOption::TransitInformation(transit)]
                if target == Target::host(global(LEAF)) =>
            {
                assert!(dao.ack_wanted);
                Some((to, dao.sequence, transit))
            }
            _ => None,
        },
        _ => None,
    };
    sent(outputs).into_iter().filter_map(about).collect()
}
fn acknowledge(script: &mut Script, sequence: u8, status: u8) -> Vec<Output> {
    let (status, dodag_id, options) = (DaoStatus(status), None, Vec::new());
    let message = &Message::DaoAck(DaoAck { instance: 0, sequence, status, dodag_id, options });
    script.give(Input::Message { from: global(0), multicast: false, message })
}
fn refused(outputs: &[Output]) -> Vec<u8> {
    let one = |output: &Output| match output {
        Output::LeafRefused { leaf, status } if *leaf == global(LEAF) => Some(*status),
        _ => None,
    };
    outputs.iter().filter_map(one).collect()
}
/// The DCOs, with where they go.
fn ended(outputs: &[Output]) -> Vec<(Destination, &Dco)> {
    let one = |(to, message)| match message {
        &Message::Dco(ref dco) => Some((to, dco)),
        _ => None,
    };
    sent(outputs).into_iter().filter_map(one).collect()
}

#[test]
fn a_router_announces_a_leaf_to_the_root_in_both_modes() {
    for mode in MODES {
        let mut script = router(mode);
        attach(&mut script, 5);
        let outputs = script.pass(Duration::from_secs(5));
        // RFC 9010 s9.2.2: E, the own address as parent, the number of the registration, and a longer lifetime.
        let expected = transit(1, 5, 11);
        let told = told(&outputs);
        assert_eq!(told.len(), 1, "{mode:?}");
        assert_eq!((told[0].0, told[0].2), (Destination::Unicast(global(0)), expected));
    }
}

#[test]
fn without_an_acknowledgement_the_announcement_comes_again_with_its_number() {
    let mut script = router(Mode::Storing);
    attach(&mut script, 5);
    let outputs = script.pass(Duration::from_secs(100));
    let copies = told(&outputs);
    assert_eq!(copies.len(), 4, "three retransmissions");
    assert!(copies.iter().all(|copy| *copy == copies[0]));
    let again = told(&script.pass(Duration::from_secs(300)));
    assert!(!again.is_empty(), "after a rest it begins again");
    acknowledge(&mut script, again.last().expect("some").1, 0);
    assert_eq!(told(&script.pass(Duration::from_secs(600))), []);
}

#[test]
fn the_end_of_a_registration_is_told_with_a_lifetime_of_zero() {
    let mut script = router(Mode::NonStoring);
    attach(&mut script, 5);
    let sequence = told(&script.pass(Duration::from_secs(5)))[0].1;
    acknowledge(&mut script, sequence, 0);
    script.give(Input::Detach { leaf: global(LEAF) });
    let told = told(&script.pass(Duration::from_secs(5)));
    assert_eq!(told.iter().map(|one| one.2).collect::<Vec<_>>(), [transit(1, 5, 0)]);
}

#[test]
fn an_acknowledgement_of_the_own_dao_is_none_of_a_leaf_and_the_other_way_round() {
    let mut script = Script::of(Config::router(link_local(1)).with_mode(Mode::NonStoring));
    script.hear(0, &Message::Dio(Dio { mode: Mode::NonStoring, ..dio(128) }));
    attach(&mut script, 5);
    let outputs = script.pass(Duration::from_secs(9));
    let sequences: Vec<u8> = daos(&outputs).iter().map(|dao| dao.sequence).collect();
    let of_leaf = told(&outputs)[0].1;
    assert!(sequences.len() == 2 && sequences[0] != sequences[1], "{sequences:?}");
    acknowledge(&mut script, of_leaf, 0);
    let outputs = script.pass(Duration::from_secs(30));
    assert_eq!(told(&outputs), [], "it is known");
    assert!(!daos(&outputs).is_empty(), "the own one is not");
}

#[test]
fn a_router_that_joins_again_announces_its_leaves_again() {
    for mode in MODES {
        let mut script = router(mode);
        attach(&mut script, 5);
        let sequence = told(&script.pass(Duration::from_secs(5)))[0].1;
        acknowledge(&mut script, sequence, 0);
        script.give(Input::LocalRepair);
        assert_eq!(told(&script.pass(Duration::from_secs(30))), []);
        script.hear(0, &Message::Dio(Dio { mode, ..dio(128) }));
        let again = told(&script.pass(Duration::from_secs(20)));
        acknowledge(&mut script, again.last().expect("it is told again").1, 0);
        assert_eq!(told(&script.pass(Duration::from_secs(300))), [], "{mode:?}");
        // The root lost its routes, and asks by its DTSN.
        script.hear(0, &Message::Dio(Dio { mode, dtsn: 241, ..dio(128) }));
        assert!(!told(&script.pass(Duration::from_secs(30))).is_empty(), "{mode:?}");
    }
}

#[test]
fn a_leaf_that_the_root_refuses_is_given_up_with_the_status_of_the_root() {
    // Moved, a status of neighbour discovery; no room, one of RPL.
    for (status, expected) in [(MOVED, 3), (128, 0)] {
        let mut script = router(Mode::Storing);
        attach(&mut script, 5);
        let sequence = told(&script.pass(Duration::from_secs(5)))[0].1;
        assert_eq!(refused(&acknowledge(&mut script, sequence, status)), [expected]);
        script.give(Input::Detach { leaf: global(LEAF) });
        assert_eq!(told(&script.pass(Duration::from_secs(60))), [], "nothing is left to end");
    }
}

#[test]
fn the_root_knows_the_router_of_a_leaf_until_the_lifetime_ends() {
    for mode in MODES {
        let mut script = root(mode);
        let (status, _) = announce(&mut script, global(LEAF), transit(5, 240, 2));
        assert_eq!(status, DaoStatus::ACCEPTED);
        assert_eq!(script.node.router_of(&global(LEAF)), Some(global(5)), "{mode:?}");
        assert_eq!(script.node.routes().count(), 0, "it is no node of the DODAG");
        script.pass(Duration::from_secs(119));
        assert!(script.node.router_of(&global(LEAF)).is_some());
        script.pass(Duration::from_secs(2));
        assert_eq!(script.node.router_of(&global(LEAF)), None);
    }
}

#[test]
fn a_leaf_that_moved_is_behind_its_new_router_and_the_old_one_hears_of_it() {
    let mut script = root(Mode::Storing);
    announce(&mut script, global(LEAF), transit(5, 240, 20));
    let (status, outputs) = announce(&mut script, global(LEAF), transit(6, 241, 20));
    assert_eq!(status, DaoStatus::ACCEPTED);
    assert_eq!(script.node.router_of(&global(LEAF)), Some(global(6)));
    let [(to, dco)] = ended(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((to, dco.status), (Destination::Unicast(global(5)), MOVED));

    // At the old router.
    let mut old = router(Mode::Storing);
    attach(&mut old, 240);
    let message = &Message::Dco(dco.clone());
    let mut hear = |from| old.give(Input::Message { from, multicast: false, message });
    assert!(refused(&hear(global(7))).is_empty(), "only the root may say so");
    assert_eq!(refused(&hear(global(0))), [3]);
    // A registration after the move is newer than the DCO.
    attach(&mut old, 242);
    let outputs = old.give(Input::Message { from: global(0), multicast: false, message });
    assert!(refused(&outputs).is_empty());
}

#[test]
fn old_news_of_a_leaf_changes_nothing() {
    let mut script = root(Mode::NonStoring);
    announce(&mut script, global(LEAF), transit(6, 241, 20));
    let (status, _) = announce(&mut script, global(LEAF), transit(5, 240, 20));
    assert_eq!(status, DaoStatus(MOVED));
    // The router that it left has heard of the move late.
    announce(&mut script, global(LEAF), transit(5, 240, 0));
    announce(&mut script, global(LEAF), transit(5, 241, 0));
    assert_eq!(script.node.router_of(&global(LEAF)), Some(global(6)));
    announce(&mut script, global(LEAF), transit(6, 241, 0));
    assert_eq!(script.node.router_of(&global(LEAF)), None);
}

#[test]
fn the_root_may_be_the_router_of_a_leaf() {
    let mut script = root(Mode::Storing);
    announce(&mut script, global(LEAF), transit(5, 240, 20));
    let outputs = attach(&mut script, 241);
    assert_eq!(script.node.router_of(&global(LEAF)), None, "it is a neighbour");
    assert_eq!(ended(&outputs).len(), 1);
    let (status, outputs) = announce(&mut script, global(LEAF), transit(5, 240, 20));
    assert_eq!((status, refused(&outputs)), (DaoStatus(MOVED), vec![]));
    let (status, outputs) = announce(&mut script, global(LEAF), transit(5, 242, 20));
    assert_eq!((status, refused(&outputs)), (DaoStatus::ACCEPTED, vec![3]));
    // Old news, from a leaf that lost its memory.
    assert_eq!(refused(&attach(&mut script, 241)), [3]);
    assert_eq!(script.node.router_of(&global(LEAF)), Some(global(5)));
}

#[test]
fn no_leaf_takes_the_address_of_a_node_of_the_dodag() {
    let mut script = root(Mode::Storing);
    script.hear(5, &Message::Dao(super::script::dao(6, 240, 30)));
    for address in [global(6), global(1), global(9)] {
        let (status, _) = announce(&mut script, address, transit(9, 240, 20));
        assert_eq!(status, DaoStatus(0xc1));
        assert_eq!(script.node.router_of(&address), None);
    }
}

#[test]
fn a_router_that_announces_leaf_after_leaf_keeps_no_other_out() {
    let config = Config::root(link_local(1), global(1));
    let mut script = Script::of(Config { routes_max: 8, ..config });
    for leaf in 60..80 {
        announce(&mut script, global(leaf), transit(5, 240, 20));
    }
    assert_eq!(script.node.downward.external().len(), 8);
    let (status, _) = announce(&mut script, global(90), transit(6, 240, 20));
    assert_eq!(status, DaoStatus::ACCEPTED);
    assert_eq!(script.node.router_of(&global(90)), Some(global(6)));
    assert_eq!(script.node.downward.external().len(), 8);
    let (status, _) = announce(&mut script, global(91), transit(5, 240, 20));
    assert_eq!(status, DaoStatus::REJECTED);
}

#[test]
fn routers_between_keep_nothing_of_a_leaf() {
    for mode in MODES {
        let line = [(0, 1, 1.0), (1, 2, 1.0)];
        let mut network = Network::with(3, &line, 1, |config| config.with_mode(mode));
        network.run(Duration::from_secs(120));
        let (leaf, sequence) = (global(LEAF), Sequence::START);
        network.input(2, Input::Attach { leaf, sequence, lifetime: TEN_MINUTES });
        network.run(Duration::from_secs(60));
        assert_eq!(network.nodes[0].router_of(&leaf), Some(global(2)), "{mode:?}");
        assert!(network.nodes.iter().all(|node| node.routes().all(|(target, _)| *target != leaf)));
        network.input(2, Input::Detach { leaf });
        network.run(Duration::from_secs(60));
        assert_eq!(network.nodes[0].router_of(&leaf), None, "{mode:?}");
    }
}
