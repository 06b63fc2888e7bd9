//! Downward routes of a node: its own DAOs and those of others, and memberships of groups.

use lowmesh_units::Duration;
use lowmesh_wire::rpl::{Dao, DaoAck, DaoStatus, Dco, Dio, Message, RplOption, Target};

use super::network::{global, link_local};
use super::script::{Script, dao, daos, dio, sent};
use crate::{Config, Destination, Input, Mode, Output};

const GROUP: [u8; 16] = [0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd];

/// Node 1 in the mode with multicast, which has heard the root.
fn joined_with_groups() -> Script {
    let mode = Mode::StoringMulticast;
    let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
    script.hear(0, &Message::Dio(Dio { mode, ..dio(128) }));
    script
}
/// A DAO of a child for the group.
fn group_dao(path_sequence: u8, path_lifetime: u8) -> Message {
    let mut dao = dao(0, path_sequence, path_lifetime);
    dao.options[0] = RplOption::Target(Target::host(GROUP));
    Message::Dao(dao)
}
/// The path lifetimes of what DAOs tell of the group.
fn told_of_group(outputs: &[Output]) -> Vec<u8> {
    let options = daos(outputs).into_iter().flat_map(|dao| dao.options.windows(2));
    let told = options.filter_map(|pair| match pair {
        [RplOption::Target(target), RplOption::TransitInformation(transit)] => {
            (target.prefix == GROUP).then_some(transit.path_lifetime)
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn a_new_parent_gets_all_routes_and_the_old_one_a_no_path() {
    let mut script = Script::joined();
    script.etx(0, 4.0);
    script.hear(3, &Message::Dao(dao(3, 241, 30)));
    script.pass(Duration::from_secs(10));
    let outputs = script.hear(2, &Message::Dio(dio(160)));
    assert_eq!(script.parent(), Some(2));
    let farewell = daos(&outputs);
    assert!(
        matches!(farewell[0].options[1], RplOption::TransitInformation(t) if t.path_lifetime == 0)
    );
    let later = script.pass(Duration::from_secs(8));
    let (to, _) = sent(&later).into_iter().find(|(_, m)| m.name() == "dao").expect("a DAO");
    assert_eq!(to, Destination::Unicast(link_local(2)));
    let targets: Vec<_> = daos(&later)[0].options.iter().step_by(2).collect();
    let expected = [1, 3].map(|node| RplOption::Target(Target::host(global(node))));
    assert_eq!(targets, expected.iter().collect::<Vec<_>>());
}

fn ack(sequence: u8) -> Message {
    let (status, dodag_id, options) = (DaoStatus::ACCEPTED, None, Vec::new());
    Message::DaoAck(DaoAck { instance: 0, sequence, status, dodag_id, options })
}

#[test]
fn a_dao_is_repeated_with_its_sequence_until_the_ack_and_then_never() {
    let mut script = Script::joined();
    let outputs = script.pass(Duration::from_secs(60));
    let sequences: Vec<u8> = daos(&outputs).iter().map(|dao| dao.sequence).collect();
    assert!(sequences.len() >= 3 && sequences.iter().all(|s| *s == sequences[0]), "{sequences:?}");
    script.hear(0, &ack(sequences[0]));
    assert_eq!(daos(&script.pass(Duration::from_secs(300))), Vec::<&Dao>::new());
}

#[test]
fn copies_of_a_dao_do_not_bring_back_a_route_that_was_taken_back() {
    let mut script = Script::joined();
    script.hear(3, &Message::Dao(dao(3, 241, 30)));
    let target = RplOption::Target(Target::host(global(3)));
    // What a DAO tells of the target.
    let lifetime = |dao: &Dao| {
        let place = dao.options.iter().position(|option| *option == target)?;
        match dao.options.get(place + 1) {
            Some(RplOption::TransitInformation(transit)) => Some(transit.path_lifetime),
            other => panic!("{other:?}"),
        }
    };
    let outputs = script.pass(Duration::from_secs(8));
    let first = daos(&outputs)[0].clone();
    assert_eq!(lifetime(&first), Some(30));
    script.hear(3, &Message::Dao(dao(3, 241, 0)));
    let outputs = script.pass(Duration::from_secs(300));
    let copies = daos(&outputs);
    // The own address is repeated alone, in a DAO of its own; then comes the No-Path.
    assert!(copies[0].sequence != first.sequence && lifetime(copies[0]).is_none(), "{copies:?}");
    let news: Vec<u8> = copies.iter().filter_map(|dao| lifetime(dao)).collect();
    assert!(!news.is_empty() && news.iter().all(|lifetime| *lifetime == 0), "{news:?}");
}

#[test]
fn an_unanswered_dao_rests_after_its_retries_but_is_not_forgotten() {
    let mut script = Script::joined();
    let outputs = script.pass(Duration::from_secs(230));
    assert_eq!(daos(&outputs).len(), 4);
    let later = script.pass(Duration::from_secs(300));
    assert!((1..=6).contains(&daos(&later).len()));
}

#[test]
fn a_parent_that_wants_daos_by_its_dtsn_gets_one() {
    let mut script = Script::of(Config { dao_ack: false, ..Config::router(link_local(1)) });
    script.hear(0, &Message::Dio(dio(128)));
    assert_eq!(daos(&script.pass(Duration::from_secs(60))).len(), 1);
    script.hear(0, &Message::Dio(dio(128)));
    assert_eq!(daos(&script.pass(Duration::from_secs(60))).len(), 0);
    script.hear(0, &Message::Dio(Dio { dtsn: 241, ..dio(128) }));
    assert_eq!(daos(&script.pass(Duration::from_secs(60))).len(), 1);
}

#[test]
fn a_dao_is_acknowledged_and_older_news_ignored() {
    let mut script = Script::of(Config::root(link_local(0), global(0)));
    let outputs = script.hear(1, &Message::Dao(dao(3, 250, 30)));
    let accepted = |(to, message): &(Destination, &Message)| {
        *to == Destination::Unicast(link_local(1))
            && matches!(message, Message::DaoAck(ack) if ack.sequence == 9 && ack.status.0 == 0)
    };
    assert!(sent(&outputs).iter().all(accepted) && sent(&outputs).len() == 1);
    script.hear(2, &Message::Dao(dao(3, 249, 30)));
    script.hear(1, &Message::Dao(dao(3, 249, 0)));
    let via = |script: &Script| script.node.routes().next().map(|(_, route)| route.via);
    assert_eq!(via(&script), Some(link_local(1)));
    script.hear(2, &Message::Dao(dao(3, 251, 30)));
    script.hear(1, &Message::Dao(dao(3, 251, 0)));
    assert_eq!(via(&script), Some(link_local(2)), "a No-Path counts only from the next hop");
}

#[test]
fn a_route_that_is_taken_back_serves_until_the_news_of_another_way() {
    let mut script = Script::of(Config::root(link_local(0), global(0)));
    let way = |script: &Script| script.node.next_hop(&global(3)).map(|next| next.address);
    script.hear(1, &Message::Dao(dao(1, 250, 30)));
    script.hear(1, &Message::Dao(dao(3, 250, 30)));
    script.hear(1, &Message::Dao(dao(3, 250, 0)));
    assert_eq!(way(&script), Some(link_local(1)), "it serves on");
    script.hear(2, &Message::Dao(dao(3, 251, 30)));
    assert_eq!(way(&script), Some(link_local(2)));
    let removed = |outputs: &[Output]| {
        outputs.iter().any(|output| matches!(output, Output::ChildRemoved { .. }))
    };
    // The last route of a child makes it no child at once, though it serves for a minute.
    assert!(removed(&script.hear(2, &Message::Dao(dao(3, 252, 0)))));
    script.pass(Duration::from_secs(59));
    assert_eq!(way(&script), Some(link_local(2)));
    assert!(!removed(&script.pass(Duration::from_secs(2))));
    assert_eq!(way(&script), None);
}

/// What a DCO says of one target, and to whom it goes.
fn dcos(outputs: &[Output]) -> Vec<(Destination, &RplOption, u8)> {
    let dcos = sent(outputs).into_iter().filter_map(|(to, message)| match message {
        Message::Dco(dco) => match &dco.options[..] {
            [target, RplOption::TransitInformation(transit)] => {
                Some((to, target, transit.path_sequence))
            }
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    dcos.collect()
}
fn dco(target: usize, path_sequence: u8) -> Message {
    let (instance, ack_wanted, status, sequence, dodag_id) = (0, true, 0, 240, None);
    let options = dao(target, path_sequence, 0).options;
    Message::Dco(Dco { instance, ack_wanted, status, sequence, dodag_id, options })
}
fn tell(script: &mut Script, from: usize, message: &Message) -> Vec<Output> {
    script.give(Input::Message { from: link_local(from), multicast: false, message })
}

#[test]
fn where_the_paths_of_a_moved_node_part_the_old_one_is_ended() {
    let target = RplOption::Target(Target::host(global(3)));
    let mut root = Script::of(Config::root(link_local(0), global(0)));
    assert_eq!(dcos(&root.hear(1, &Message::Dao(dao(3, 241, 30)))), []);
    // A refresh over the same path is no move.
    assert_eq!(dcos(&root.hear(1, &Message::Dao(dao(3, 242, 30)))), []);
    let outputs = root.hear(2, &Message::Dao(dao(3, 243, 30)));
    assert_eq!(dcos(&outputs), [(Destination::Unicast(link_local(1)), &target, 243)]);
    // A node without the flag keeps its old path, and so does one that lay below a node that moved.
    let mut quiet = dao(3, 244, 30);
    if let RplOption::TransitInformation(transit) = &mut quiet.options[1] {
        transit.invalidates = false;
    }
    assert_eq!(dcos(&root.hear(1, &Message::Dao(quiet))), []);
    assert_eq!(dcos(&root.hear(2, &Message::Dao(dao(3, 244, 30)))), []);
    // Nobody else knew of the path to a child.
    root.hear(3, &Message::Dao(dao(3, 245, 30)));
    assert_eq!(dcos(&root.hear(2, &Message::Dao(dao(3, 246, 30)))), []);
}

#[test]
fn a_dco_ends_older_routes_and_goes_on_down_the_former_path() {
    let target = RplOption::Target(Target::host(global(3)));
    let mut script = Script::joined();
    script.hear(2, &Message::Dao(dao(3, 241, 30)));
    for older in [240, 241] {
        let outputs = tell(&mut script, 0, &dco(3, older));
        assert_eq!((dcos(&outputs), script.node.routes().count()), (vec![], 1), "{older}");
    }
    let multicast = script.hear(0, &dco(3, 242));
    assert_eq!((multicast, script.node.routes().count()), (vec![], 1), "a DCO is for one node");
    let outputs = tell(&mut script, 0, &dco(3, 242));
    assert_eq!(dcos(&outputs), [(Destination::Unicast(link_local(2)), &target, 242)]);
    assert!(outputs.contains(&Output::RouteRemoved { target: global(3) }));
    let answered = |(to, message): &(Destination, &Message)| {
        *to == Destination::Unicast(link_local(0))
            && matches!(message, Message::DcoAck(ack) if (ack.sequence, ack.status) == (240, 0))
    };
    assert!(sent(&outputs).iter().any(answered), "{outputs:?}");
    assert_eq!(script.node.routes().count(), 0);
}

#[test]
fn with_a_child_that_moved_go_the_routes_over_it() {
    let mut script = Script::joined();
    for below in [3, 4, 5] {
        script.hear(3, &Message::Dao(dao(below, 241, 30)));
    }
    script.hear(2, &Message::Dao(dao(2, 241, 30)));
    let outputs = tell(&mut script, 0, &dco(3, 242));
    assert_eq!(dcos(&outputs), [], "the target itself hears nothing");
    let left: Vec<_> = script.node.routes().map(|(target, _)| *target).collect();
    assert_eq!(left, [global(2)]);
    assert!(outputs.contains(&Output::ChildRemoved { child: link_local(3) }));
}

#[test]
fn what_a_child_that_moved_said_before_its_move_is_late() {
    let mut root = Script::of(Config::root(link_local(0), global(0)));
    let way = |root: &Script| root.node.next_hop(&global(4)).map(|next| next.address);
    for (from, target, sequence) in [(3, 3, 241), (3, 4, 245), (2, 3, 242), (2, 4, 245)] {
        root.hear(from, &Message::Dao(dao(target, sequence, 30)));
    }
    assert_eq!(way(&root), Some(link_local(2)), "a node below keeps its Path Sequence");
    root.hear(3, &Message::Dao(dao(3, 241, 30)));
    root.hear(3, &Message::Dao(dao(4, 245, 30)));
    assert_eq!(way(&root), Some(link_local(2)), "a copy of the DAO from before");
    root.hear(3, &Message::Dao(dao(4, 246, 30)));
    assert_eq!(way(&root), Some(link_local(3)), "news of the target itself");
    root.hear(2, &Message::Dao(dao(4, 247, 30)));
    root.hear(3, &Message::Dao(dao(3, 243, 30)));
    root.hear(3, &Message::Dao(dao(4, 247, 30)));
    assert_eq!(way(&root), Some(link_local(3)), "it came back, and says so first");
}

#[test]
fn a_dao_speaks_of_its_sender_first() {
    let mut script = Script::of(Config::router(link_local(9)));
    script.hear(0, &Message::Dio(dio(128)));
    script.hear(3, &Message::Dao(dao(3, 241, 30)));
    let outputs = script.pass(Duration::from_secs(20));
    let targets: Vec<_> = daos(&outputs)[0].options.iter().step_by(2).collect();
    let expected = [9, 3].map(|node| RplOption::Target(Target::host(global(node))));
    assert_eq!(targets, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_parent_that_did_not_answer_hears_that_it_is_left_whatever_its_link() {
    for (answers, farewells) in [(true, 0), (false, 1)] {
        let mut script = Script::joined();
        let outputs = script.pass(Duration::from_secs(20));
        let sequence = daos(&outputs)[0].sequence;
        if answers {
            script.hear(0, &ack(sequence));
        }
        script.hear(2, &Message::Dio(dio(160)));
        let outputs = script.etx(0, 20.0);
        assert_eq!(script.parent(), Some(2));
        let told = sent(&outputs).into_iter().filter(|(to, message)| {
            *to == Destination::Unicast(link_local(0)) && message.name() == "dao"
        });
        assert_eq!(told.count(), farewells, "answers {answers}");
    }
}

#[test]
fn a_full_table_refuses_and_the_refused_node_looks_elsewhere() {
    let mut root = Script::of(Config { routes_max: 1, ..Config::root(link_local(0), global(0)) });
    root.hear(1, &Message::Dao(dao(1, 241, 30)));
    let outputs = root.hear(2, &Message::Dao(dao(2, 241, 30)));
    assert!(matches!(sent(&outputs)[..], [(_, Message::DaoAck(ack))] if ack.status.is_rejection()));

    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(256)));
    let before = script.pass(Duration::from_secs(8));
    let sequence = daos(&before)[0].sequence;
    let options = Vec::new();
    let status = DaoStatus::REJECTED;
    let refusal = DaoAck { instance: 0, sequence, status, dodag_id: None, options };
    script.hear(0, &Message::DaoAck(refusal));
    assert_eq!(script.parent(), Some(2));
}

/// Whether a node takes a route to `target` over `child`, and the targets that it gives up.
fn takes(script: &mut Script, child: usize, target: usize) -> (bool, Vec<[u8; 16]>) {
    let outputs = script.hear(child, &Message::Dao(dao(target, 241, 30)));
    let is_refused = sent(&outputs).iter().any(|(_, message)| match message {
        Message::DaoAck(ack) => ack.status.is_rejection(),
        _ => false,
    });
    let removed = outputs.iter().filter_map(|output| match output {
        Output::RouteRemoved { target } => Some(*target),
        _ => None,
    });
    (!is_refused, removed.collect())
}

#[test]
fn a_child_that_fills_the_table_keeps_no_other_child_out() {
    let mut root = Script::of(Config { routes_max: 4, ..Config::root(link_local(0), global(0)) });
    for target in [14, 13, 12, 11] {
        assert_eq!(takes(&mut root, 1, target), (true, vec![]));
        root.pass(Duration::from_secs(1));
    }
    assert_eq!(takes(&mut root, 2, 21), (true, vec![global(14)]), "the one that ends first");
    assert_eq!(takes(&mut root, 2, 22), (true, vec![global(13)]));
    // Each next hop has two routes, no more than a new one would have.
    for (child, target) in [(2, 23), (1, 14)] {
        assert_eq!(takes(&mut root, child, target), (false, vec![]));
    }
    assert_eq!(takes(&mut root, 1, 11), (true, vec![]), "what is known stays so");
    assert_eq!(takes(&mut root, 3, 31), (true, vec![global(21)]), "the next hop with most is 2");
    assert_eq!(root.node.routes().count(), 4);
}

#[test]
fn the_parent_hears_of_a_route_that_gave_way() {
    let mut script = Script::of(Config { routes_max: 2, ..Config::router(link_local(1)) });
    script.hear(0, &Message::Dio(dio(128)));
    for target in [5, 6] {
        assert_eq!(takes(&mut script, 2, target), (true, vec![]));
    }
    let told = script.pass(Duration::from_secs(8));
    let (sequence, status) = (daos(&told)[0].sequence, DaoStatus::ACCEPTED);
    let ack = DaoAck { instance: 0, sequence, status, dodag_id: None, options: Vec::new() };
    script.hear(0, &Message::DaoAck(ack));
    assert_eq!(takes(&mut script, 3, 7), (true, vec![global(5)]));
    let outputs = script.pass(Duration::from_secs(20));
    let no_path = |dao: &&Dao| {
        dao.options.windows(2).any(|pair| match pair {
            [RplOption::Target(target), RplOption::TransitInformation(transit)] => {
                target.prefix == global(5) && transit.path_lifetime == 0
            }
            _ => false,
        })
    };
    assert!(daos(&outputs).iter().any(no_path));
}

#[test]
fn a_non_storing_root_has_no_shares_because_the_sender_names_the_parent() {
    let config = Config::root(link_local(0), global(0)).with_mode(Mode::NonStoring);
    let mut root = Script::of(Config { routes_max: 2, ..config });
    let mut taken = Vec::new();
    for (target, parent) in [(11, 1), (12, 1), (21, 2)] {
        let mut told = dao(target, 241, 30);
        if let RplOption::TransitInformation(transit) = &mut told.options[1] {
            transit.parent = Some(global(parent));
        }
        let outputs = root.hear(target, &Message::Dao(told));
        taken.push(outputs.iter().any(|output| matches!(output, Output::RouteAdded { .. })));
    }
    assert_eq!(taken, [true, true, false]);
}

#[test]
fn the_root_is_below_nobody() {
    let mut script = Script::joined();
    assert_eq!(takes(&mut script, 2, 0), (true, vec![]), "ignored");
    assert_eq!(script.node.routes().count(), 0);
}

#[test]
fn a_dao_from_the_parent_ends_the_loop_of_two() {
    let mut script = Script::joined();
    script.hear(2, &Message::Dio(dio(200)));
    script.hear(0, &Message::Dao(dao(0, 241, 30)));
    assert_ne!(script.parent(), Some(0));
}

#[test]
fn a_membership_goes_up_and_its_end_too() {
    let mut script = joined_with_groups();
    script.give(Input::Join { group: GROUP });
    let told = told_of_group(&script.pass(Duration::from_secs(20)));
    assert!(!told.is_empty() && told.iter().all(|lifetime| *lifetime > 0), "{told:?}");
    let ack = DaoAck {
        instance: 0,
        sequence: 240,
        status: DaoStatus::ACCEPTED,
        dodag_id: None,
        options: Vec::new(),
    };
    for sequence in 240..=255 {
        script.hear(0, &Message::DaoAck(DaoAck { sequence, ..ack.clone() }));
    }
    script.give(Input::Leave { group: GROUP });
    assert_eq!(told_of_group(&script.pass(Duration::from_secs(5))).first(), Some(&0));
}

#[test]
fn a_node_that_joins_a_dodag_tells_of_its_groups() {
    let mode = Mode::StoringMulticast;
    let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
    script.give(Input::Join { group: GROUP });
    assert!(told_of_group(&script.pass(Duration::from_secs(20))).is_empty());
    script.hear(0, &Message::Dio(Dio { mode, ..dio(128) }));
    assert!(!told_of_group(&script.pass(Duration::from_secs(20))).is_empty());
}

#[test]
fn a_child_registers_for_a_group_and_leaves_it() {
    let mut script = joined_with_groups();
    let subscribed = |script: &Script| script.node.subscribed(&GROUP).copied().collect::<Vec<_>>();
    script.hear(2, &group_dao(240, 30));
    assert_eq!(subscribed(&script), [link_local(2)]);
    let told = told_of_group(&script.pass(Duration::from_secs(20)));
    assert!(told.first().is_some_and(|lifetime| *lifetime > 0), "{told:?}");
    script.hear(2, &group_dao(241, 0));
    assert_eq!(subscribed(&script), [[0; 16]; 0]);
    assert_eq!(script.node.children().count(), 0, "a group makes no child");
}

#[test]
fn the_mode_without_multicast_takes_no_groups() {
    let mut script = Script::joined();
    script.hear(2, &group_dao(240, 30));
    script.give(Input::Join { group: GROUP });
    assert_eq!(script.node.subscribed(&GROUP).count(), 0);
    assert!(told_of_group(&script.pass(Duration::from_secs(20))).is_empty());
}

/// The DTSN of the last DIO to all neighbours.
fn told_dtsn(outputs: &[Output]) -> Option<u8> {
    let dtsn = |(_, message): (Destination, &Message)| match message {
        Message::Dio(dio) => Some(dio.dtsn),
        _ => None,
    };
    sent(outputs).into_iter().filter_map(dtsn).next_back()
}

#[test]
fn a_new_dtsn_of_the_parent_is_passed_down_in_both_modes() {
    for mode in [Mode::Storing, Mode::NonStoring] {
        let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
        let dio_with = |dtsn| Message::Dio(Dio { dtsn, mode, ..dio(128) });
        script.hear(0, &dio_with(240));
        assert_eq!(told_dtsn(&script.pass(Duration::from_secs(60))), Some(240));
        script.hear(0, &dio_with(241));
        assert_eq!(told_dtsn(&script.pass(Duration::from_secs(10))), Some(241), "{mode:?}");
        // The next one has to wait, and is not forgotten.
        script.hear(0, &dio_with(242));
        assert_ne!(told_dtsn(&script.pass(Duration::from_secs(9))), Some(242));
        script.pass(Duration::from_secs(5));
        script.hear(0, &dio_with(242));
        assert_eq!(told_dtsn(&script.pass(Duration::from_secs(10))), Some(242), "{mode:?}");
    }
}

#[test]
fn a_dtsn_from_before_a_neighbour_was_the_parent_is_answered_when_it_is() {
    let mode = Mode::NonStoring;
    let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
    let told = |dtsn, rank| Message::Dio(Dio { dtsn, mode, ..dio(rank) });
    script.hear(2, &told(240, 256));
    script.hear(3, &told(240, 300));
    script.hear(3, &told(241, 300));
    assert_eq!(script.parent(), Some(2));
    assert_eq!(told_dtsn(&script.pass(Duration::from_secs(60))), Some(240));
    script.hear(2, &told(240, 0xffff));
    assert_eq!(script.parent(), Some(3));
    assert_eq!(told_dtsn(&script.pass(Duration::from_secs(10))), Some(241));
}

#[test]
fn a_root_that_restarts_continues_its_version_and_asks_for_daos() {
    let config = Config::root(link_local(0), global(0));
    let mut before = Script::of(config.clone());
    before.give(Input::GlobalRepair);
    let kept = before.node.advertised().expect("it is a root");
    let mut node = crate::Rpl::new(config, super::network::rng(2, 2));
    node.resume(kept);
    // It may lose its power again before its link layer is up.
    assert_eq!(node.advertised().map(|kept| kept.version.0), Some(241));
    let mut after = Script { node, now: before.now };
    after.give(Input::Start);
    let outputs = after.pass(Duration::from_secs(10));
    let dio = sent(&outputs).into_iter().find_map(|(_, message)| match message {
        Message::Dio(dio) => Some((dio.version, dio.dtsn)),
        _ => None,
    });
    assert_eq!(dio, Some((241, 241)));
    assert_eq!(Script::joined().node.advertised(), None, "routers keep nothing");
}
