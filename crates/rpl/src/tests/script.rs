//! One node, told step by step what happens; `upward` and `downward` are written in these steps.

use lowmesh_machine::Machine;
use lowmesh_units::{Duration, Instant, Rank};
use lowmesh_wire::rpl::{Dao, Dio, Message, RplOption, Target, TransitInformation};
use proptest::prelude::*;

use super::network::{global, link_local, rng};
use crate::dodag::Dodag;
use crate::{Config, Destination, Etx, Input, Mode, Output, Rpl};

pub(super) fn dio(rank: u16) -> Dio {
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

pub(super) fn dao(target: usize, path_sequence: u8, path_lifetime: u8) -> Dao {
    let transit = TransitInformation {
        external: false,
        invalidates: true,
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

pub(super) struct Script {
    pub node: Rpl,
    pub now: Instant,
}

impl Script {
    pub fn of(config: Config) -> Self {
        let mut script = Self { node: Rpl::new(config, rng(1, 1)), now: Instant::ZERO };
        script.give(Input::Start);
        script
    }
    /// Node 1, which has heard the root (node 0, rank 128).
    pub fn joined() -> Self {
        let mut script = Self::of(Config::router(link_local(1)));
        script.hear(0, &Message::Dio(dio(128)));
        script
    }
    pub fn give(&mut self, input: Input) -> Vec<Output> {
        self.node.handle(self.now, input).expect("possible");
        core::iter::from_fn(|| self.node.poll_output()).collect()
    }
    pub fn hear(&mut self, from: usize, message: &Message) -> Vec<Output> {
        self.give(Input::Message { from: link_local(from), multicast: true, message })
    }
    pub fn etx(&mut self, node: usize, etx: f64) -> Vec<Output> {
        let (neighbour, etx) = (link_local(node), Etx::from_f64(etx));
        self.give(Input::LinkEtx { neighbour, etx, fresh: true })
    }
    /// Goes on to the next deadlines for a while.
    pub fn pass(&mut self, span: Duration) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        while let Some(at) = self.node.next_deadline().filter(|at| *at <= end) {
            self.now = at;
            outputs.extend(self.give(Input::Deadline));
        }
        self.now = end;
        outputs
    }
    pub fn parent(&self) -> Option<usize> {
        self.node.preferred_parent().map(|address| super::network::node_of(&address))
    }
}

pub(super) fn sent(outputs: &[Output]) -> Vec<(Destination, &Message)> {
    let messages = outputs.iter().filter_map(|output| match output {
        Output::Send { to, message } => Some((*to, message)),
        _ => None,
    });
    messages.collect()
}

pub(super) fn daos(outputs: &[Output]) -> Vec<&Dao> {
    let daos = sent(outputs).into_iter().filter_map(|(_, message)| match message {
        Message::Dao(dao) => Some(dao),
        _ => None,
    });
    daos.collect()
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
