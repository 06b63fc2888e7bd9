//! Hosts that are members of one group, over a link that loses and delays datagrams, in virtual time (RFC 10021 s7 to s9).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use lowmesh_coap::exchange::GroupInput;
use lowmesh_coap::{
    Config, Host, HostLimits, IncomingId, Input, Leisure, Output, RequestTemplate, ResponseTemplate,
};
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Code, Message, OptionNumber};
use proptest::prelude::*;

use super::*;
use crate::group::{Configuration, Group, GroupState, SignatureAlgorithm, credential_of};
use crate::params::FORGED_BURST;
use crate::{Challenge, Contexts};

mod bodies;
mod bounds;
mod order;
mod outer;

/// The address of all members.
const GROUP: u8 = 200;
const CLIENT: u8 = 0;
/// What nobody outside the group may read.
const SECRET: &[u8] = b"what nobody else may read";
/// Longer than all that takes part in one exchange.
const LONG: Duration = Duration::from_secs(300);

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().concat()
}

/// A member of a group of so many, under a master secret.
fn member(number: u8, count: u8, secret: &str, more: &str) -> Group {
    let key = |number: u8| [number + 1; 32];
    let credential =
        |number| hex(&credential_of(SignatureAlgorithm::EdDsa, &key(number)).expect("a key"));
    let text = format!(
        "master_secret,ascii,{secret}\ngroup_id,hex,0a\nsender_id,hex,{number:02x}\n\
         private_key,hex,{}\ncredential,hex,{}\n{more}",
        hex(&key(number)),
        credential(number)
    );
    let others = (0..count).filter(|other| *other != number).map(|other| {
        format!("member_id,hex,{other:02x}\nmember_credential,hex,{}\n", credential(other))
    });
    let text = text + &others.collect::<Vec<_>>().concat();
    Configuration::parse(&text).expect("our own").group()
}

type Side = DatagramHost<u8, VolatileContexts>;

fn side(number: u8, group: Group, limits: HostLimits) -> Side {
    side_to(number, group, limits, ToOne::GroupMode)
}

fn side_to(number: u8, group: Group, limits: HostLimits, to_one: ToOne) -> Side {
    let contexts = VolatileContexts::new(Contexts::default()).with_groups(vec![group]);
    let own_requests = OwnRequests::Group(0, to_one);
    let protection = Protection { contexts, own_requests, plain_requests: Plain::Refused };
    let rng = Rng::stream(Seed(5), NodeId(number.into()), Purpose::Coap);
    let leisure = Leisure::Fixed(Duration::from_secs(1));
    let config = Config { leisure, ..Config::default() };
    over_datagrams(config, limits, Some(protection), rng).expect("possible")
}

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Datagram {
    from: u8,
    to: u8,
    bytes: Vec<u8>,
}

/// The client, number 0, and its members.
struct World {
    hosts: Vec<Side>,
    now: Instant,
    loss: f64,
    rng: Rng,
    arrivals: BTreeMap<(Instant, u64), Datagram>,
    sent: u64,
    wire: Vec<Datagram>,
    /// What the applications of members were asked.
    asked: Vec<(u8, Message)>,
    /// What the application of the client hears.
    heard: Vec<Output<u8>>,
    state: Vec<u8>,
}

impl World {
    fn of(groups: Vec<Group>) -> Self {
        let limits = || HostLimits { amplification_max: None, ..HostLimits::default() };
        let hosts =
            groups.into_iter().zip(0..).map(|(group, number)| side(number, group, limits()));
        Self {
            hosts: hosts.collect(),
            now: Instant::from_secs(1),
            loss: 0.0,
            rng: Rng::stream(Seed(5), NodeId(9), Purpose::Reception),
            arrivals: BTreeMap::new(),
            sent: 0,
            wire: Vec::new(),
            asked: Vec::new(),
            heard: Vec::new(),
            state: SECRET.to_vec(),
        }
    }
    /// A client and so many members, with this line in their files.
    fn new(members: u8, more: &str) -> Self {
        Self::of((0..=members).map(|one| member(one, members + 1, "secret", more)).collect())
    }
    fn ask(&mut self, peer: u8, message: RequestTemplate, name: u64) {
        let handle = Handle(name);
        let input = if peer == GROUP {
            let wait = Duration::from_secs(60);
            Input::Group(GroupInput::Request { group: GROUP, message, wait, handle })
        } else {
            Input::Request { peer, message, handle }
        };
        self.hosts[0].handle(self.now, input).expect("acceptable");
    }
    /// Asks, and lets all happen; what the client hears.
    fn exchange(&mut self, peer: u8, message: RequestTemplate) -> Vec<Output<u8>> {
        self.ask(peer, message, 7);
        self.run(self.now + LONG);
        core::mem::take(&mut self.heard)
    }
    fn transmit(&mut self, datagram: &Datagram) {
        self.wire.push(datagram.clone());
        let Datagram { from, to, .. } = *datagram;
        let receivers = if to == GROUP { 0..self.hosts.len() as u8 } else { to..to + 1 };
        let hosts = self.hosts.len();
        let is_other = |one: &u8| *one != from && usize::from(*one) < hosts;
        for receiver in receivers.filter(is_other) {
            if !self.rng.chance(self.loss) {
                let delay = self.rng.duration(Duration::from_millis(5), Duration::from_millis(80));
                self.sent += 1;
                // The address that it was sent to stays; the key says who gets it.
                let key = (self.now + delay, self.sent << 8 | u64::from(receiver));
                self.arrivals.insert(key, datagram.clone());
            }
        }
    }
    fn serve(&mut self, number: u8, exchange: IncomingId, message: Message) {
        let mut response = ResponseTemplate::new(Code::CONTENT);
        if message.code == Code::PUT {
            response.code = Code::CHANGED;
        } else {
            response.payload.clone_from(&self.state);
            if message.options.get(OptionNumber::OBSERVE).is_some() {
                response.options.insert_uint(OptionNumber::OBSERVE, 0);
            }
        }
        self.asked.push((number, message));
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        self.hosts[usize::from(number)].handle(self.now, input).expect("acceptable");
    }
    fn drain(&mut self) {
        for number in 0..self.hosts.len() as u8 {
            while let Some(output) = self.hosts[usize::from(number)].poll_output() {
                match output {
                    Output::Send { to, bytes, .. } => {
                        self.transmit(&Datagram { from: number, to, bytes });
                    }
                    Output::Request { exchange, message, .. } => {
                        self.serve(number, exchange, message);
                    }
                    Output::Started { .. } => {}
                    heard if number == CLIENT => self.heard.push(heard),
                    _ => {}
                }
            }
        }
    }
    /// Runs to `end`.
    fn run(&mut self, end: Instant) {
        loop {
            self.drain();
            let due: Vec<_> = self.hosts.iter().map(Host::next_deadline).collect();
            let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
            let Some(next) = due.iter().copied().flatten().chain(arrival).min() else { break };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            for (host, due) in self.hosts.iter_mut().zip(due) {
                if due.is_some_and(|due| due <= self.now) {
                    host.handle(self.now, Input::Deadline).expect("never fails");
                }
            }
            if arrival.is_some_and(|at| at <= self.now) {
                let ((_, key), datagram) = self.arrivals.pop_first().expect("just seen");
                self.arrive((key & 0xff) as u8, &datagram);
            }
        }
        self.now = end;
    }
    fn arrive(&mut self, receiver: u8, datagram: &Datagram) {
        let Datagram { from, to, bytes } = datagram;
        let from = *from;
        let input = if *to == GROUP {
            Input::Group(GroupInput::Datagram { from, bytes })
        } else {
            Input::Datagram { from, bytes }
        };
        self.hosts[usize::from(receiver)].handle(self.now, input).expect("never fails");
    }
    /// The messages that were sent, without empty ones.
    fn messages(&self) -> impl Iterator<Item = (u8, u8, Message)> {
        let parsed = self.wire.iter().map(|Datagram { from, to, bytes }| {
            (*from, *to, Message::parse(bytes).expect("our own"))
        });
        parsed.filter(|(.., message)| message.code != Code::EMPTY)
    }
    /// The requests that the client sent, each as whether it is in group mode.
    fn modes(&self) -> Vec<bool> {
        let requests = self.messages().filter(|(from, ..)| *from == CLIENT);
        requests.map(|(.., message)| is_of_group(&message)).collect()
    }
}

/// Who has answered a request to the group, and what.
fn answers(heard: &[Output<u8>]) -> BTreeMap<u8, Vec<u8>> {
    let answers = heard.iter().filter_map(|output| match output {
        Output::GroupResponse { from, message, .. } => Some((*from, message.payload.clone())),
        _ => None,
    });
    answers.collect()
}

/// The answer of the one that was asked.
fn answer(heard: &[Output<u8>]) -> Option<&Message> {
    heard.iter().find_map(|output| match output {
        Output::Response { message, .. } => Some(message),
        _ => None,
    })
}

#[test]
fn every_member_answers_a_request_to_the_group_in_the_mode_of_the_file() {
    for (more, of_group) in [("", false), ("responses,text,group\n", true)] {
        let mut world = World::new(3, more);
        let heard = world.exchange(GROUP, RequestTemplate::get("/secret"));
        let wanted = (1..=3).map(|number| (number, SECRET.to_vec())).collect();
        assert_eq!(answers(&heard), wanted, "{more:?}");
        for (from, _, message) in world.messages() {
            assert_eq!(is_of_group(&message), from == CLIENT || of_group, "{more:?} {message:?}");
        }
        for Datagram { bytes, .. } in &world.wire {
            assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET), "in the open");
            assert!(!bytes.windows(6).any(|part| part == b"secret"), "the path in the open");
        }
    }
}

#[test]
fn one_member_is_asked_in_group_mode_until_it_has_answered() {
    let mut world = World::new(2, "");
    for (peer, modes) in [(1, &[true][..]), (1, &[true, false]), (2, &[true, false, true])] {
        let heard = world.exchange(peer, RequestTemplate::get("/secret"));
        assert_eq!(answer(&heard).map(|one| &one.payload[..]), Some(SECRET), "{peer}");
        assert_eq!(world.modes(), modes);
    }
}

#[test]
fn a_request_to_one_waits_for_a_name_and_leaves_in_pairwise_mode() {
    let limits = || HostLimits { amplification_max: None, ..HostLimits::default() };
    let mut world = World::new(2, "");
    world.hosts[0] = side_to(0, member(0, 3, "secret", ""), limits(), ToOne::default());
    let input =
        || Input::Request { peer: 1, message: RequestTemplate::get("/secret"), handle: Handle(7) };
    assert_eq!(world.hosts[0].handle(world.now, input()), Err(NO_MEMBER));
    world.drain();
    assert!(world.wire.is_empty(), "{:?}", world.wire);
    // A group is asked in group mode, and shows who is at which address.
    assert_eq!(answers(&world.exchange(GROUP, RequestTemplate::get("/secret"))).len(), 2);
    let heard = world.exchange(1, RequestTemplate::get("/secret"));
    assert_eq!(answer(&heard).map(|one| &one.payload[..]), Some(SECRET));
    assert_eq!(world.modes(), [true, false]);
    // Sent on to another member by who has seen it, it does nothing.
    let request = world.wire.iter().rev().find(|one| one.from == CLIENT && one.to == 1);
    let stolen = Datagram { to: 2, ..request.expect("a request").clone() };
    let before = world.asked.len();
    world.arrive(2, &stolen);
    world.drain();
    assert_eq!(world.asked.len(), before);
}

#[test]
fn a_member_with_other_keys_is_silent() {
    for secret in ["secret", "another"] {
        let mut world = World::of(vec![member(0, 3, secret, ""), member(1, 3, "secret", "")]);
        let heard = world.exchange(1, RequestTemplate::get("/secret"));
        assert_eq!(answer(&heard).is_some(), secret == "secret", "{heard:?}");
        let from_member = world.messages().filter(|(from, ..)| *from == 1).count();
        assert_eq!(from_member, usize::from(secret == "secret"), "no error answers a group");
        let heard = world.exchange(GROUP, RequestTemplate::get("/secret"));
        assert_eq!(answers(&heard).len(), usize::from(secret == "secret"), "{heard:?}");
    }
}

#[test]
fn members_that_lost_their_windows_are_asked_again_in_pairwise_mode() {
    for peer in [GROUP, 1] {
        let lost = |number| {
            let mut group = member(number, 3, "secret", "");
            group.resume(&GroupState::reserved(100), || Challenge([number; 8]));
            group
        };
        let mut world = World::of(vec![member(0, 3, "secret", ""), lost(1), lost(2)]);
        let heard = world.exchange(peer, RequestTemplate::get("/secret"));
        if peer == GROUP {
            let wanted = (1..=2).map(|number| (number, SECRET.to_vec())).collect();
            assert_eq!(answers(&heard), wanted, "{heard:?}");
            assert_eq!(world.modes(), [true, false, false]);
        } else {
            assert_eq!(answer(&heard).map(|one| &one.payload[..]), Some(SECRET));
            assert_eq!(world.modes(), [true, false]);
        }
        // What was asked first reached no application.
        assert_eq!(world.asked.len(), world.modes().len() - 1);
    }
}

#[test]
fn a_replay_reaches_no_application_and_has_no_answer_in_group_mode() {
    for peer in [GROUP, 1] {
        let mut world = World::new(1, "");
        world.exchange(peer, RequestTemplate::get("/secret"));
        let mut replay = world.wire[0].clone();
        // Another message ID, so that the message layer does not know it.
        replay.bytes[3] ^= 0x55;
        let before = (world.asked.len(), world.messages().count());
        for from in [CLIENT, 77] {
            world.arrive(1, &Datagram { from, ..replay.clone() });
            world.run(world.now + LONG);
        }
        assert_eq!((world.asked.len(), world.messages().count()), before, "{peer}");
    }
}

#[test]
fn an_observation_of_all_members_brings_each_change_once() {
    let mut world = World::new(2, "");
    let mut observe = RequestTemplate::get("/state");
    observe.options.insert_uint(OptionNumber::OBSERVE, 0);
    world.ask(GROUP, observe, 7);
    world.run(world.now + Duration::from_secs(20));
    assert_eq!(answers(&world.heard).len(), 2, "{:?}", world.heard);
    for state in [b"first".to_vec(), b"second".to_vec()] {
        world.heard.clear();
        world.state.clone_from(&state);
        for number in 1..=2 {
            world.hosts[number].changed("/state", world.now);
        }
        world.run(world.now + Duration::from_secs(20));
        let wanted = (1..=2).map(|number| (number, state.clone())).collect();
        assert_eq!(answers(&world.heard), wanted, "{:?}", world.heard);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the link loses: a request ends once, a body arrives whole, and no upload is performed twice.
    #[test]
    fn bodies_arrive_whole_or_their_requests_fail(
        seed in any::<u64>(), loss in 0.0..0.3, len in 0_usize..4000,
        asks in prop::collection::vec((prop_oneof![Just(GROUP), 1..=2_u8], any::<bool>()), 1..6),
    ) {
        let mut world = World::new(2, "");
        world.loss = loss;
        world.rng = Rng::stream(Seed(seed), NodeId(9), Purpose::Reception);
        world.state = (0..len).map(|at| at as u8).collect();
        for (name, (peer, uploads)) in asks.into_iter().enumerate() {
            let uploads = uploads && peer != GROUP;
            let message = if uploads {
                RequestTemplate::new(Code::PUT, "/up").with_payload(world.state.clone())
            } else {
                RequestTemplate::get("/long")
            };
            world.asked.clear();
            world.ask(peer, message, name as u64);
            world.run(world.now + LONG);
            let heard = core::mem::take(&mut world.heard);
            if peer == GROUP {
                for (from, payload) in answers(&heard) {
                    prop_assert_eq!(&payload, &world.state, "from {}", from);
                }
                let over = heard.iter().filter(|one| matches!(one, Output::Over { .. })).count();
                prop_assert_eq!(over, 1, "{:?}", heard);
                continue;
            }
            let failures = heard.iter().filter(|one| matches!(one, Output::Failed { .. })).count();
            prop_assert_eq!(failures + usize::from(answer(&heard).is_some()), 1, "{:?}", heard);
            if uploads {
                prop_assert!(world.asked.len() <= 1, "performed twice");
                for (_, message) in &world.asked {
                    prop_assert_eq!(&message.payload, &world.state);
                }
            } else if let Some(answer) = answer(&heard) {
                prop_assert_eq!(&answer.payload, &world.state);
            }
        }
    }
}
