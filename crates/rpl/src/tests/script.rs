//! One node, told step by step what happens.

use lowmesh_machine::Machine;
use lowmesh_units::{Duration, Instant, Rank};
use lowmesh_wire::rpl::{
    Dao, DaoAck, DaoStatus, Dio, Dis, Message, RplOption, SolicitedInformation, Target,
    TransitInformation,
};
use proptest::prelude::*;

use super::network::{global, link_local, rng};
use crate::dodag::Dodag;
use crate::objective::CLASSIC;
use crate::{Config, Destination, Etx, Input, Mode, Output, Probe, Rpl};

fn dio(rank: u16) -> Dio {
    let dodag = Dodag::of_root(global(0), &Config::root(link_local(0), global(0)));
    Dio {
        instance: 0,
        version: 240,
        rank: Rank(rank),
        grounded: true,
        mode: Mode::Storing,
        preference: 0,
        dtsn: 240,
        dodag_id: global(0),
        options: vec![
            RplOption::DodagConfiguration(dodag.configuration),
            RplOption::PrefixInformation(dodag.prefix_information()),
        ],
    }
}

fn dao(target: usize, path_sequence: u8, path_lifetime: u8) -> Dao {
    let transit = TransitInformation {
        external: false,
        path_control: 0,
        path_sequence,
        path_lifetime,
        parent: None,
    };
    Dao {
        instance: 0,
        ack_wanted: true,
        sequence: 9,
        dodag_id: None,
        options: vec![
            RplOption::Target(Target::host(global(target))),
            RplOption::TransitInformation(transit),
        ],
    }
}

struct Script {
    node: Rpl,
    now: Instant,
}

impl Script {
    fn of(config: Config) -> Self {
        let mut script = Self { node: Rpl::new(config, rng(1, 1)), now: Instant::ZERO };
        script.give(Input::Start);
        script
    }
    /// Node 1, which has heard the root (node 0, rank 128).
    fn joined() -> Self {
        let mut script = Self::of(Config::router(link_local(1)));
        script.hear(0, &Message::Dio(dio(128)));
        script
    }
    fn give(&mut self, input: Input) -> Vec<Output> {
        self.node.handle(self.now, input).expect("possible");
        core::iter::from_fn(|| self.node.poll_output()).collect()
    }
    fn hear(&mut self, from: usize, message: &Message) -> Vec<Output> {
        self.give(Input::Message { from: link_local(from), multicast: true, message })
    }
    fn etx(&mut self, node: usize, etx: f64) -> Vec<Output> {
        let (neighbour, etx) = (link_local(node), Etx::from_f64(etx));
        self.give(Input::LinkEtx { neighbour, etx, fresh: true })
    }
    /// Goes on to the next deadlines for a while.
    fn pass(&mut self, span: Duration) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        while let Some(at) = self.node.next_deadline().filter(|at| *at <= end) {
            self.now = at;
            outputs.extend(self.give(Input::Deadline));
        }
        self.now = end;
        outputs
    }
    fn parent(&self) -> Option<usize> {
        self.node.preferred_parent().map(|address| super::network::node_of(&address))
    }
}

fn sent(outputs: &[Output]) -> Vec<(Destination, &Message)> {
    let messages = outputs.iter().filter_map(|output| match output {
        Output::Send { to, message } => Some((*to, message)),
        _ => None,
    });
    messages.collect()
}

fn daos(outputs: &[Output]) -> Vec<&Dao> {
    let daos = sent(outputs).into_iter().filter_map(|(_, message)| match message {
        Message::Dao(dao) => Some(dao),
        _ => None,
    });
    daos.collect()
}

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

#[test]
fn a_dao_is_repeated_with_its_sequence_until_the_ack_and_then_never() {
    let mut script = Script::joined();
    let outputs = script.pass(Duration::from_secs(60));
    let sequences: Vec<u8> = daos(&outputs).iter().map(|dao| dao.sequence).collect();
    assert!(sequences.len() >= 3 && sequences.iter().all(|s| *s == sequences[0]), "{sequences:?}");
    let ack = DaoAck {
        instance: 0,
        sequence: sequences[0],
        status: DaoStatus::ACCEPTED,
        dodag_id: None,
        options: Vec::new(),
    };
    script.hear(0, &Message::DaoAck(ack));
    assert_eq!(daos(&script.pass(Duration::from_secs(300))), Vec::<&Dao>::new());
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

#[test]
fn a_dao_from_the_parent_ends_the_loop_of_two() {
    let mut script = Script::joined();
    script.hear(2, &Message::Dio(dio(200)));
    script.hear(0, &Message::Dao(dao(0, 241, 30)));
    assert_ne!(script.parent(), Some(0));
}

#[test]
fn repairs_that_are_not_this_nodes_to_make_are_rejected() {
    let mut script = Script::joined();
    assert!(script.node.handle(script.now, Input::GlobalRepair).is_err());
    assert!(script.node.handle(script.now, Input::Start).is_err());
    assert!(script.give(Input::LocalRepair).contains(&Output::Detached));
    assert!(script.node.handle(script.now, Input::LocalRepair).is_err());
}

#[test]
fn impossible_settings_are_named() {
    let router = Config::router(link_local(1));
    assert_eq!(router.check(), Ok(()));
    let wrong = Config { min_hop_rank_increase: 0, ..router.clone() };
    assert_eq!(wrong.check().map_err(|error| error.key), Err("min_hop_rank_increase"));
    let wrong = Config { dis_period: Duration::ZERO, ..router.clone() };
    assert_eq!(wrong.check().map_err(|error| error.key), Err("dis_period"));
    let wrong = router.with_mode(Mode::NoDownward);
    assert_eq!(wrong.check().map_err(|error| error.key), Err("mode"));
}

proptest! {
    /// Whatever peers send, nothing panics and no table grows beyond its bound.
    #[test]
    fn arbitrary_messages_leave_the_node_within_its_bounds(
        root: bool,
        storing: bool,
        steps in prop::collection::vec(
            (0u8..4, prop::collection::vec(any::<u8>(), 0..60), 0usize..60, any::<u16>(), any::<u8>()),
            1..120,
        ),
    ) {
        let config = if root {
            Config::root(link_local(1), global(1))
        } else {
            Config::router(link_local(1))
        };
        let mode = if storing { Mode::Storing } else { Mode::NonStoring };
        let config = Config { neighbours_max: 4, routes_max: 5, ..config.with_mode(mode) };
        let mut script = Script::of(config);
        for (code, bytes, from, number, octet) in steps {
            let mut random = dio(number);
            (random.version, random.dtsn, random.mode) = (octet, octet, mode);
            let transit_parent = (!storing).then(|| global(usize::from(octet) % 60));
            let mut told = dao(from, octet, octet);
            if let RplOption::TransitInformation(transit) = &mut told.options[1] {
                transit.parent = transit_parent;
            }
            script.hear(from, &Message::Dio(random));
            script.hear(from + 1, &Message::Dao(told));
            if let Ok(message) = Message::parse(code, &bytes) {
                script.hear(from, &message);
            }
            script.etx(from, f64::from(octet));
            script.pass(Duration::from_millis(number.into()));
            prop_assert!(script.node.neighbours().count() <= 4);
            prop_assert!(script.node.routes().count() <= 5);
            prop_assert!(script.node.downward.advertiser().waiting() <= 2 * 5 + 1 + 3);
        }
    }
}
