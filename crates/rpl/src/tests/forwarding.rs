//! Data packets find loops and stale routes.

use lowmesh_machine::DropReason;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::rpl::{Dio, HopByHopOption, Message};

use super::network::{Network, global, link_local};
use super::script::{Script, dio, sent};
use crate::{Config, Destination, Direction, ForwardContext, Input, Mode, Output, Rpl, Verdict};

fn network() -> Network {
    let links = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)];
    let mut network = Network::new(4, &links, 1);
    network.run(Duration::from_secs(120));
    assert_eq!(network.packet(0, 3).1, None);
    network
}

fn check(node: &mut Rpl, context: &ForwardContext) -> Verdict {
    node.check_forward(Instant::from_secs(120), context)
}

/// A packet to the root that node 2 gets from its neighbour `from`, whose DAGRank was `sender_rank`.
fn upward(from: usize, sender_rank: u16) -> ForwardContext {
    let option = HopByHopOption {
        skippable: false,
        down: false,
        rank_error: false,
        forwarding_error: false,
        instance: 0,
        sender_rank,
    };
    let from = Some(link_local(from));
    ForwardContext { from, target: global(0), source_routed: false, option: Some(option) }
}

#[test]
fn a_packet_carries_direction_and_rank_from_hop_to_hop() {
    let mut network = network();
    let start =
        ForwardContext { from: None, target: global(0), source_routed: false, option: None };
    let Verdict::Forward { next, option } = check(&mut network.nodes[3], &start) else {
        panic!("the path up is known");
    };
    assert_eq!((next.address, next.direction), (link_local(2), Direction::Up));
    assert_eq!((option.down, option.sender_rank), (false, 4));
}

#[test]
fn the_root_decides_about_the_type_of_new_options_and_a_forwarder_keeps_that_of_others() {
    for rpi_0x23 in [true, false] {
        // The nodes know it from the root, whatever they would announce themselves.
        let change = |config: Config| {
            let is_root = config.is_root();
            Config { rpi_0x23: rpi_0x23 == is_root, ..config }
        };
        let links = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)];
        let mut network = Network::with(4, &links, 1, change);
        network.run(Duration::from_secs(120));
        let start =
            ForwardContext { from: None, target: global(0), source_routed: false, option: None };
        for node in [0, 3] {
            let target = global(3 - node);
            let verdict = check(&mut network.nodes[node], &ForwardContext { target, ..start });
            let Verdict::Forward { option, .. } = verdict else { panic!("node {node}") };
            assert_eq!(option.skippable, rpi_0x23, "node {node}");
        }
        for skippable in [true, false] {
            let mut context = upward(3, 4);
            context.option = context.option.map(|option| HopByHopOption { skippable, ..option });
            let verdict = check(&mut network.nodes[2], &context);
            let Verdict::Forward { option, .. } = verdict else { panic!("a way up") };
            assert_eq!(option.skippable, skippable);
        }
    }
}

#[test]
fn the_first_step_the_wrong_way_is_marked_and_the_second_ends_the_packet() {
    let mut network = network();
    let node = &mut network.nodes[2];
    let Verdict::Forward { option, .. } = check(node, &upward(1, 2)) else {
        panic!("one inconsistency is tolerated");
    };
    assert!(option.rank_error);
    let again = ForwardContext {
        option: Some(HopByHopOption { sender_rank: 2, ..option }),
        ..upward(1, 2)
    };
    let quiet = lowmesh_machine::Machine::next_deadline(node);
    assert_eq!(check(node, &again), Verdict::Drop(DropReason::RankLoop));
    assert!(lowmesh_machine::Machine::next_deadline(node) <= quiet, "news goes out soon");
}

#[test]
fn a_sender_with_an_old_rank_of_this_node_gets_one_unicast_dio() {
    let mut network = network();
    let node = &mut network.nodes[2];
    check(node, &upward(3, 2));
    let sent: Vec<_> =
        core::iter::from_fn(|| lowmesh_machine::Machine::poll_output(node)).collect();
    assert!(
        matches!(&sent[..], [Output::Send { to: Destination::Unicast(to), message: Message::Dio(_) }]
            if *to == link_local(3)),
        "{sent:?}"
    );
    check(node, &upward(3, 2));
    assert_eq!(lowmesh_machine::Machine::poll_output(node), None, "one in an interval");
}

#[test]
fn a_packet_from_below_is_consistent() {
    let mut network = network();
    let verdict = check(&mut network.nodes[2], &upward(3, 4));
    assert!(matches!(verdict, Verdict::Forward { option, .. } if !option.rank_error));
}

#[test]
fn a_stale_route_sends_the_packet_back_and_is_forgotten() {
    let mut network = network();
    // Node 2 has lost its memory; node 1 still sends down to 3 through it.
    network.input(2, crate::Input::Stop);
    network.input(2, crate::Input::Start);
    let dio = network.nodes[1].next_hop(&global(3));
    assert_eq!(dio.map(|next| next.address), Some(link_local(2)));
    network.run(Duration::from_secs(3));
    while !network.nodes[2].is_joined() {
        network.run(Duration::from_millis(100));
    }
    let (path, reason) = network.packet(1, 3);
    assert_eq!(path[..3], [1, 2, 1], "back to the sender");
    assert_ne!(reason, Some(DropReason::HopLimit));
    let next = network.nodes[1].next_hop(&global(3));
    assert_eq!(next.map(|next| next.direction), Some(Direction::Up));
}

#[test]
fn when_a_node_has_moved_out_of_reach_its_former_neighbours_reach_it_by_the_new_path() {
    for (dco, path) in [(true, vec![5, 2, 1, 0, 4, 3]), (false, vec![5, 2, 3])] {
        let links = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (2, 5, 1.0), (0, 4, 1.0)];
        let mut network = Network::with(6, &links, 1, |config| Config { dco, ..config });
        network.run(Duration::from_secs(120));
        assert_eq!(network.packet(5, 3), (vec![5, 2, 3], None));
        // No farewell reaches node 2.
        network.cut(2, 3);
        network.set_link(3, 4, 1.0);
        network.run(Duration::from_secs(180));
        assert_eq!(network.path_to_root(3), Some(vec![3, 4, 0]));
        // Without a DCO node 2 sends to node 3 as before, over a link that is gone.
        assert_eq!(network.packet(5, 3), (path, None), "dco {dco}");
    }
}

#[test]
fn a_target_that_nobody_knows_ends_at_the_root() {
    let mut network = network();
    assert_eq!(network.packet(3, 77), (vec![3, 2, 1, 0], Some(DropReason::NoRoute)));
}

#[test]
fn a_node_outside_the_dodag_forwards_nothing() {
    let mut network = network();
    network.input(2, crate::Input::Stop);
    let verdict = check(&mut network.nodes[2], &upward(3, 4));
    assert_eq!(verdict, Verdict::Drop(DropReason::NotJoined));
}

#[test]
fn another_instance_has_no_route_here() {
    let mut network = network();
    let mut context = upward(3, 4);
    context.option = context.option.map(|option| HopByHopOption { instance: 5, ..option });
    assert_eq!(check(&mut network.nodes[2], &context), Verdict::Drop(DropReason::NoRoute));
}

#[test]
fn a_source_route_is_followed_down() {
    let mut network = network();
    let context = ForwardContext { source_routed: true, target: global(3), ..upward(1, 2) };
    let down = context.option.map(|option| HopByHopOption { down: true, ..option });
    let verdict = check(&mut network.nodes[2], &ForwardContext { option: down, ..context });
    assert!(matches!(verdict, Verdict::Forward { next, option }
        if next.address == link_local(3) && option.down && !option.rank_error));
}

#[test]
fn a_root_that_restarted_repeats_its_dtsn_while_it_lacks_a_route() {
    let repeats = |resumes: bool, after: u64| {
        let config = Config::root(link_local(0), global(0));
        let mut node = Rpl::new(config, super::network::rng(3, 3));
        if resumes {
            let kept = node.advertised().expect("it is a root");
            node.resume(kept);
        }
        let mut script = Script { node, now: Instant::ZERO };
        script.give(Input::Start);
        script.pass(Duration::from_secs(after));
        let target = global(7);
        let context = ForwardContext { from: None, target, source_routed: false, option: None };
        let verdict = script.node.check_forward(script.now, &context);
        assert_eq!(verdict, Verdict::Drop(DropReason::NoRoute));
        !sent(&script.pass(Duration::from_secs(5))).is_empty()
    };
    // The sixth interval of Trickle begins after 124 s, the seventh after 252 s, and the eighth after 508 s.
    assert!(repeats(true, 130), "it asks again");
    assert!(!repeats(false, 130), "a target without a route may be no node at all");
    assert!(repeats(true, 260));
    assert!(!repeats(true, 520), "for five minutes");
}

#[test]
fn a_neighbour_that_sends_packets_up_is_told_once_that_daos_are_wanted() {
    let mode = Mode::NonStoring;
    let mut script = Script::of(Config::router(link_local(1)).with_mode(mode));
    let told = |dtsn, rank| Message::Dio(Dio { dtsn, mode, ..dio(rank) });
    script.hear(0, &told(240, 128));
    script.hear(3, &told(240, 512));
    let reminders = |script: &mut Script| {
        script.node.check_forward(script.now, &upward(3, 4));
        let outputs = script.give(Input::Deadline);
        let told = |(to, message): &(Destination, &Message)| {
            *to == Destination::Unicast(link_local(3)) && matches!(message, Message::Dio(_))
        };
        sent(&outputs).into_iter().filter(told).count()
    };
    assert_eq!(reminders(&mut script), 0);
    script.hear(0, &told(241, 128));
    assert_eq!((reminders(&mut script), reminders(&mut script)), (1, 0));
}
