//! Upward routes of a node: solicitations and DIOs, parents, probes, the rank.

use lowmesh_units::{Duration, Rank};
use lowmesh_wire::rpl::{Dio, Dis, Message, RplOption, SolicitedInformation};

use super::network::{global, link_local};
use super::script::{Script, dio, sent};
use crate::objective::CLASSIC;
use crate::{Config, Destination, Etx, Input, Mode, Output, Probe};

/// A node that hears no DIO over a poor link has a neighbour that answers frames nevertheless: the one whose clock it has.
#[test]
fn a_router_asks_the_neighbour_with_the_best_link_by_itself_too() {
    let mut script = Script::of(Config::router(link_local(1)));
    for (neighbour, etx) in [(2, Etx(400)), (3, Etx(200)), (4, Etx::DEAD)] {
        script.give(Input::LinkEtx { neighbour: link_local(neighbour), etx, fresh: true });
    }
    let outputs = script.pass(Duration::from_secs(100));
    let dis = Message::Dis(Dis::default());
    let pair = [(Destination::AllRplNodes, &dis), (Destination::Unicast(link_local(3)), &dis)];
    let solicits = sent(&outputs);
    assert!(solicits.len() >= 6, "{solicits:?}");
    assert!(solicits.chunks(2).all(|two| two == pair), "{solicits:?}");
}

#[test]
fn a_router_solicits_until_it_hears_a_dio() {
    let mut script = Script::of(Config::router(link_local(1)));
    let outputs = script.pass(Duration::from_secs(100));
    let solicits = sent(&outputs);
    assert!(solicits.len() >= 3);
    assert!(
        solicits.iter().all(|message| {
            *message == (Destination::AllRplNodes, &Message::Dis(Dis::default()))
        })
    );
    let joined = script.hear(0, &Message::Dio(dio(128)));
    assert_eq!(joined[0], Output::Joined { dodag_id: global(0), address: global(1) });
    let later = script.pass(Duration::from_secs(100));
    let solicits = |(to, message): &(Destination, &Message)| {
        *to == Destination::AllRplNodes && message.name() == "dis"
    };
    assert!(!sent(&later).iter().any(solicits));
}

#[test]
fn a_dio_that_cannot_be_followed_is_ignored() {
    let mut script = Script::of(Config::router(link_local(1)));
    let mut others = [dio(128), dio(128), dio(0xffff), dio(128)];
    others[0].mode = Mode::NonStoring;
    others[1].instance = 1;
    if let RplOption::DodagConfiguration(configuration) = &mut others[3].options[0] {
        configuration.min_hop_rank_increase = 0;
    }
    for other in others {
        assert_eq!(script.hear(0, &Message::Dio(other)), []);
    }
    assert!(!script.node.is_joined());
}

#[test]
fn a_node_passes_on_flags_of_the_configuration_that_it_does_not_know() {
    let mut script = Script::of(Config::router(link_local(1)));
    let mut news = dio(128);
    let RplOption::DodagConfiguration(configuration) = &mut news.options[0] else {
        panic!("it comes first")
    };
    configuration.flags = 0b1110;
    let option = RplOption::DodagConfiguration(*configuration);
    script.hear(0, &Message::Dio(news));
    let (from, message) = (link_local(5), &Message::Dis(Dis::default()));
    let answer = script.give(Input::Message { from, multicast: false, message });
    let [(_, Message::Dio(answer))] = sent(&answer)[..] else { panic!("{answer:?}") };
    // RFC 6550 s6.7.6: nodes other than the root pass the option on as it is.
    assert!(answer.options.contains(&option), "{answer:?}");
}

#[test]
fn a_node_follows_the_root_when_it_turns_6lorh_on_and_off() {
    // RFC 9035 s3: bit 2 of the flags, whatever the node would announce itself.
    let config = Config { sixlorh: true, ..Config::router(link_local(1)) };
    let mut script = Script::of(config);
    assert!(!script.node.has_sixlorh(), "no root has said so");
    for flags in [0b0000, 0b0010, 0b1101, 0b1111] {
        let mut news = dio(128);
        let RplOption::DodagConfiguration(configuration) = &mut news.options[0] else {
            panic!("it comes first")
        };
        configuration.flags = flags;
        script.hear(0, &Message::Dio(news));
        assert_eq!(script.node.has_sixlorh(), flags & 0b0010 != 0, "{flags:04b}");
    }
}

#[test]
fn a_dio_without_configuration_is_answered_by_a_unicast_dis() {
    let mut script = Script::of(Config::router(link_local(1)));
    let bare = Dio { options: Vec::new(), ..dio(128) };
    let outputs = script.hear(0, &Message::Dio(bare));
    let question = Message::Dis(Dis::default());
    assert_eq!(sent(&outputs), [(Destination::Unicast(link_local(0)), &question)]);
}

#[test]
fn a_unicast_dis_gets_a_unicast_dio_and_a_multicast_one_resets_trickle() {
    let mut script = Script::joined();
    script.pass(Duration::from_secs(3600));
    let message = &Message::Dis(Dis::default());
    let from = link_local(5);
    let answer = script.give(Input::Message { from, multicast: false, message });
    assert!(
        matches!(sent(&answer)[..], [(Destination::Unicast(to), Message::Dio(_))] if to == from)
    );
    assert_eq!(script.hear(5, message), []);
    let soon = script.pass(Duration::from_secs(5));
    assert!(sent(&soon).iter().any(|(to, _)| *to == Destination::AllRplNodes));
}

#[test]
fn dios_of_lesser_rank_silence_ones_own_and_those_of_deeper_nodes_do_not() {
    let told = |from: usize, rank: u16| {
        let mut script = Script::joined();
        script.etx(0, 2.0);
        script.pass(Duration::from_secs(3600));
        let mut outputs = Vec::new();
        for _ in 0..720 {
            outputs.extend(script.hear(from, &Message::Dio(dio(rank))));
            outputs.extend(script.pass(Duration::from_secs(10)));
        }
        let to_all = |(to, message): &(Destination, &Message)| {
            *to == Destination::AllRplNodes && message.name() == "dio"
        };
        sent(&outputs).into_iter().filter(to_all).count()
    };
    // Two hours are six intervals of Imax; the node's own rank is 384.
    assert_eq!(told(0, 128), 0);
    assert_eq!(told(5, 256), 0);
    for rank in [384, 900] {
        assert!(told(5, rank) >= 6, "{rank}");
    }
}

#[test]
fn a_dis_for_another_dodag_changes_nothing() {
    let mut script = Script::joined();
    let asked = SolicitedInformation { dodag_id: Some(global(7)), ..Default::default() };
    let message = &Message::Dis(Dis { options: vec![RplOption::SolicitedInformation(asked)] });
    let from = link_local(5);
    assert_eq!(script.give(Input::Message { from, multicast: false, message }), []);
}

#[test]
fn a_small_gain_waits_and_a_large_one_does_not() {
    let mut script = Script::joined();
    script.etx(0, 4.0);
    script.hear(2, &Message::Dio(dio(256)));
    script.etx(2, 2.0);
    // Rank 640 against 512: a gain of one ETX, below the threshold of 1.5.
    assert_eq!(script.parent(), Some(0));
    script.pass(Duration::from_secs(300));
    assert_eq!(script.parent(), Some(0));
    script.pass(Duration::from_secs(600));
    assert_eq!(script.parent(), Some(2), "after ten minutes it is taken");
    script.etx(0, 1.0);
    assert_eq!(script.parent(), Some(0), "a gain of two ETX at once");
}

#[test]
fn a_neighbour_of_equal_or_greater_rank_is_no_parent() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(384)));
    script.etx(2, 1.0);
    let outputs = script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    assert!(outputs.contains(&Output::Detached));
    assert_eq!(script.parent(), None);
    let poison = sent(&outputs);
    assert!(
        matches!(poison[..], [(Destination::AllRplNodes, Message::Dio(dio))] if dio.rank == Rank::INFINITE)
    );
}

#[test]
fn a_parent_whose_link_is_beyond_the_limit_is_kept_until_another_will_do() {
    let mut script = Script::joined();
    assert!(!script.etx(0, 4.5).contains(&Output::Detached));
    assert_eq!(script.parent(), Some(0), "the last resort");
    script.etx(2, 4.5);
    script.hear(2, &Message::Dio(dio(129)));
    assert_eq!(script.parent(), Some(0), "a new parent has to have a link within the limit");
    script.etx(2, 3.5);
    assert_eq!(script.parent(), Some(2), "however small the gain");
    script.etx(2, 8.1);
    assert_eq!(script.parent(), None);
}

#[test]
fn a_node_whose_only_link_was_too_bad_tries_it_again() {
    let mut script = Script::joined();
    assert!(script.etx(0, 9.0).contains(&Output::Detached));
    script.hear(0, &Message::Dio(dio(128)));
    assert!(!script.node.is_joined(), "not while it is as bad as that");
    script.pass(Duration::from_secs(30));
    script.hear(0, &Message::Dio(dio(128)));
    assert_eq!(script.parent(), Some(0));
}

#[test]
fn a_link_without_fresh_estimate_is_probed_by_a_unicast_dis() {
    let mut script = Script::joined();
    let outputs = script.pass(Duration::from_secs(140));
    let probes = |outputs: &[Output]| {
        let to_root = |(to, message): &(Destination, &Message)| {
            *to == Destination::Unicast(link_local(0)) && message.name() == "dis"
        };
        sent(outputs).into_iter().filter(to_root).count()
    };
    assert!(probes(&outputs) >= 1);
    script.etx(0, 1.5);
    assert_eq!(probes(&script.pass(Duration::from_secs(600))), 0);
}

#[test]
fn the_answer_to_a_probe_brings_the_rank_and_a_probe_may_be_a_dio() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(600)));
    assert_eq!(script.parent(), Some(0));
    let (from, message) = (link_local(2), &Message::Dio(dio(128)));
    script.etx(2, 1.0);
    script.pass(Duration::from_secs(700));
    script.etx(0, 3.0);
    script.give(Input::Message { from, multicast: false, message });
    assert_eq!(script.parent(), Some(2));

    let config = Config { probe: Probe::Dio, ..Config::router(link_local(1)) };
    let mut script = Script::of(config);
    script.hear(0, &Message::Dio(dio(128)));
    let outputs = script.pass(Duration::from_secs(140));
    let dio = |(to, message): &(Destination, &Message)| {
        *to == Destination::Unicast(link_local(0)) && message.name() == "dio"
    };
    assert!(sent(&outputs).iter().any(dio));
}

#[test]
fn an_estimate_grows_old_and_the_link_is_probed_again() {
    let mut script = Script::joined();
    script.etx(0, 1.5);
    let later = script.pass(Duration::from_secs(900));
    let dio = |(to, message): &(Destination, &Message)| {
        *to == Destination::Unicast(link_local(0)) && message.name() == "dis"
    };
    assert!(sent(&later).iter().any(dio));
}

#[test]
fn rpl_classic_probes_a_better_neighbour_before_it_moves() {
    let config = Config::router(link_local(1)).with_objective(&CLASSIC);
    let mut script = Script::of(config);
    script.hear(0, &Message::Dio(dio(640)));
    script.etx(0, 1.0);
    script.hear(2, &Message::Dio(dio(128)));
    assert_eq!(script.parent(), Some(0), "the link to 2 is not measured");
    let soon = script.pass(Duration::from_secs(4));
    let probe = |(to, message): &(Destination, &Message)| {
        *to == Destination::Unicast(link_local(2)) && message.name() == "dis"
    };
    assert!(sent(&soon).iter().any(probe));
    script.etx(2, 1.0);
    assert_eq!(script.parent(), Some(2));
}

#[test]
fn rpl_classic_moves_for_three_quarters_of_a_transmission() {
    let parent_after = |gain: u16| {
        let config = Config::router(link_local(1)).with_objective(&CLASSIC);
        let mut script = Script::of(config);
        script.hear(0, &Message::Dio(dio(400)));
        script.etx(0, 1.0);
        script.etx(2, 1.0);
        script.hear(2, &Message::Dio(dio(400 - gain)));
        script.pass(Duration::from_secs(590));
        script.parent()
    };
    assert_eq!((parent_after(96), parent_after(97)), (Some(0), Some(2)));
}

#[test]
fn the_rank_never_grows_beyond_the_limit_in_one_version() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    assert_eq!(script.node.rank(), Rank(256));
    // 256 + 1024 is the limit; the parent's own rank goes past it.
    script.hear(0, &Message::Dio(dio(1100)));
    assert_eq!(script.node.rank(), Rank(1228));
    script.hear(0, &Message::Dio(dio(1200)));
    assert!(!script.node.is_joined());
}

#[test]
fn a_parent_that_poisons_in_a_newer_version_is_left() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    let poison = Dio { version: 241, ..dio(Rank::INFINITE.0) };
    script.hear(0, &Message::Dio(poison.clone()));
    assert_eq!(script.parent(), None);

    // A neighbour in the old version becomes the parent. Poison of a node that is no parent changes nothing.
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(256)));
    script.hear(3, &Message::Dio(poison.clone()));
    assert_eq!(script.parent(), Some(0));
    script.hear(0, &Message::Dio(poison));
    assert_eq!(script.parent(), Some(2));
    assert_eq!(script.node.dodag_version(), Some(240));
}

#[test]
fn a_newer_version_that_will_not_do_leaves_the_ranks_of_the_present_one() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(256)));
    script.etx(2, 4.5);
    script.hear(2, &Message::Dio(Dio { version: 241, ..dio(256) }));
    script.etx(0, 1.5);
    assert_eq!((script.node.dodag_version(), script.parent()), (Some(240), Some(0)));
    assert_eq!(script.node.rank(), Rank(320));
    // The sender has moved to another version, so it is not a candidate parent here.
    script.etx(2, 1.0);
    let outputs = script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    assert!(outputs.contains(&Output::Detached));
    // Now the link is good enough to follow it into its version.
    script.hear(2, &Message::Dio(Dio { version: 241, ..dio(256) }));
    assert_eq!((script.node.dodag_version(), script.parent()), (Some(241), Some(2)));
}

#[test]
fn a_parent_of_last_resort_is_followed_into_a_newer_version() {
    let mut script = Script::joined();
    script.etx(0, 4.5);
    script.hear(0, &Message::Dio(Dio { version: 241, ..dio(128) }));
    assert_eq!((script.node.dodag_version(), script.parent()), (Some(241), Some(0)));
    assert_eq!(script.node.rank(), Rank(704));
}
