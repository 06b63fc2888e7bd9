//! Two hosts over a link that loses, doubles and reorders datagrams, in virtual time; and one host
//! that gets whatever comes.
//!
//! Whatever the link does: a body arrives whole or its request fails, no upload is performed twice,
//! and an observer ends up with the newest state.

use std::collections::BTreeMap;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::exchange::ConnectionInput;
use lowmesh_coap::{
    Config, CongestionControl, ConnectionLimits, Endpoint, Host, HostLimits, IncomingId, Input,
    Output, RequestTemplate, ResponseTemplate,
};
use lowmesh_machine::{Handle, Machine};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::stream::Framing;
use lowmesh_wire::coap::{Code, Message, OptionNumber, Token};
use proptest::prelude::*;

const CLIENT: u8 = 0;
const SERVER: u8 = 1;

enum Event {
    Arrival { to: u8, bytes: Vec<u8> },
    Ask { name: u64, message: RequestTemplate },
    Change,
}

/// A body that says whose it is and of which version.
fn body(version: u64, len: usize) -> Vec<u8> {
    let seed = version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len as u64).map(|at| (seed.rotate_left((at % 64) as u32) ^ at) as u8).collect()
}

struct World {
    loss: f64,
    rng: Rng,
    hosts: [Host<u8, Endpoint<u8>>; 2],
    events: BTreeMap<(Instant, u64), Event>,
    planned: u64,
    now: Instant,
    version: u64,
    /// How often each upload was performed, by name.
    performed: BTreeMap<u64, u32>,
    answers: BTreeMap<u64, Message>,
    failures: BTreeMap<u64, u32>,
    notified: Vec<Vec<u8>>,
}

impl World {
    fn new(loss: f64, seed: u64, limits: &HostLimits) -> Self {
        let rng = |node| Rng::stream(Seed(seed), NodeId(node), Purpose::Coap);
        let congestion = CongestionControl::default().with_nstart(4);
        let config = Config { congestion, queue_max: 1000, ..Config::default() };
        let host = |node| {
            Host::over_datagrams(config.clone(), limits.clone(), rng(node)).expect("possible")
        };
        Self {
            loss,
            rng: Rng::stream(Seed(seed), NodeId(9), Purpose::Reception),
            hosts: [host(1), host(2)],
            events: BTreeMap::new(),
            planned: 0,
            now: Instant::ZERO,
            version: 0,
            performed: BTreeMap::new(),
            answers: BTreeMap::new(),
            failures: BTreeMap::new(),
            notified: Vec::new(),
        }
    }
    fn plan(&mut self, at: Instant, event: Event) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }
    fn transmit(&mut self, to: u8, bytes: &[u8]) {
        for _ in 0..=u32::from(self.rng.chance(0.1)) {
            if !self.rng.chance(self.loss) {
                let delay = self.rng.duration(Duration::from_millis(5), Duration::from_millis(400));
                self.plan(self.now + delay, Event::Arrival { to, bytes: bytes.to_vec() });
            }
        }
    }
    fn serve(&mut self, exchange: IncomingId, message: &Message) {
        let mut response = ResponseTemplate::new(Code::CONTENT);
        if message.code == Code::PUT {
            // An upload is its name, then the body of that name.
            let (name, rest) = message.payload.split_at(8);
            let name = u64::from_be_bytes(name.try_into().expect("eight octets"));
            assert_eq!(rest, body(name, rest.len()), "the body of another upload");
            *self.performed.entry(name).or_default() += 1;
            response.code = Code::CHANGED;
        } else {
            response.payload = body(self.version, 1000 + 37 * self.version as usize);
            if message.options.get(OptionNumber::OBSERVE).is_some() {
                response.options.insert_uint(OptionNumber::OBSERVE, 0);
            }
        }
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        self.hosts[1].handle(self.now, input).expect("acceptable");
    }
    fn drain(&mut self, end: u8) {
        while let Some(output) = self.hosts[usize::from(end)].poll_output() {
            match output {
                Output::Send { to, bytes, .. } => self.transmit(to, &bytes),
                Output::Request { exchange, message, .. } => self.serve(exchange, &message),
                Output::Response { handle, message, .. } => {
                    assert!(self.answers.insert(handle.0, message).is_none(), "answered twice");
                }
                Output::Failed { handle, .. } if end == CLIENT => {
                    *self.failures.entry(handle.0).or_default() += 1;
                }
                Output::Notification { message, .. } => self.notified.push(message.payload),
                _ => {}
            }
        }
    }
    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival { to, bytes } => {
                let input = Input::Datagram { from: 1 - to, bytes: &bytes };
                self.hosts[usize::from(to)].handle(self.now, input).expect("never fails");
            }
            Event::Ask { name, message } => {
                let input = Input::Request { peer: SERVER, message, handle: Handle(name) };
                self.hosts[0].handle(self.now, input).expect("acceptable");
            }
            Event::Change => {
                self.version += 1;
                self.hosts[1].changed("/state", self.now);
            }
        }
    }
    /// Runs to `end`.
    fn run(&mut self, end: Instant) {
        loop {
            self.drain(CLIENT);
            self.drain(SERVER);
            let due = [0, 1].map(|end| self.hosts[end].next_deadline());
            let event = self.events.keys().next().map(|(at, _)| *at);
            let Some(next) = due.into_iter().flatten().chain(event).min() else { return };
            if next > end {
                return;
            }
            self.now = self.now.max(next);
            for (host, due) in self.hosts.iter_mut().zip(due) {
                if due.is_some_and(|due| due <= self.now) {
                    host.handle(self.now, Input::Deadline).expect("never fails");
                }
            }
            if event.is_some_and(|at| at <= self.now) {
                let (_, event) = self.events.pop_first().expect("just seen");
                self.happen(event);
            }
        }
    }
}

fn upload(name: u64, len: usize) -> RequestTemplate {
    let payload = [&name.to_be_bytes()[..], &body(name, len)].concat();
    RequestTemplate::new(Code::PUT, "/up").with_payload(payload)
}

/// A hundred uploads and downloads; the share that was answered.
fn exchange_bodies(loss: f64, seed: u64, limits: &HostLimits) -> f64 {
    let mut world = World::new(loss, seed, limits);
    let count = 100;
    for name in 0..count {
        let message = match name % 2 {
            0 => upload(name, 50 * name as usize),
            _ => RequestTemplate::get("/state"),
        };
        world.plan(Instant::from_secs(name * 20), Event::Ask { name, message });
    }
    world.run(Instant::from_secs(20_000));
    for name in 0..count {
        let answers = u32::from(world.answers.contains_key(&name));
        let failures = world.failures.get(&name).copied().unwrap_or(0);
        assert_eq!(answers + failures, 1, "request {name} has to end once");
    }
    assert!(world.performed.values().all(|times| *times == 1), "{:?}", world.performed);
    for (name, answer) in &world.answers {
        match name % 2 {
            0 => assert_eq!(answer.code, Code::CHANGED),
            _ => assert_eq!(answer.payload, body(0, 1000)),
        }
    }
    world.answers.len() as f64 / count as f64
}

#[test]
fn over_a_calm_link_every_body_arrives_whole() {
    assert!((exchange_bodies(0.0, 1, &HostLimits::default()) - 1.0).abs() < 1e-9);
}

#[test]
fn over_a_bad_link_bodies_arrive_whole_or_fail_and_uploads_are_performed_once() {
    let small = HostLimits { exponent: Exponent::fitting(256), ..HostLimits::default() };
    for seed in 0..4 {
        let answered = exchange_bodies(0.3, seed, &small);
        assert!(answered > 0.3, "{answered} of the requests answered");
    }
}

#[test]
fn under_loss_an_observer_ends_up_with_the_newest_state() {
    for seed in 0..6 {
        let mut world = World::new(0.2, seed, &HostLimits::default());
        let mut message = RequestTemplate::get("/state");
        message.options.insert_uint(OptionNumber::OBSERVE, 0);
        world.plan(Instant::ZERO, Event::Ask { name: 1, message });
        for change in 0..40 {
            world.plan(Instant::from_secs(20 + 7 * change), Event::Change);
        }
        world.run(Instant::from_secs(2_000));
        let newest = body(40, 1000 + 37 * 40);
        // A client whose observation the server gave up is told so, and would ask again.
        let given_up = world.failures.contains_key(&1) || world.answers.contains_key(&1);
        assert!(world.notified.last() == Some(&newest) || given_up, "seed {seed}");
        let known: Vec<Vec<u8>> = (0..=40).map(|v| body(v, 1000 + 37 * v as usize)).collect();
        let order = world.notified.iter().map(|one| known.iter().position(|state| state == one));
        let order: Vec<usize> = order.map(|version| version.expect("whole")).collect();
        assert!(order.is_sorted(), "seed {seed}: {order:?}");
        assert!(order.len() > 5, "seed {seed}: {order:?}");
    }
}

/// Anything that can happen to a machine.
#[derive(Clone, Debug)]
enum Step {
    Octets(Vec<u8>),
    Message(u8, Vec<(u16, Vec<u8>)>, Vec<u8>),
    Ask(u8, Vec<u8>),
    Cancel(u64),
    Ping,
    Answer(Vec<u8>),
    Changed,
    Lost,
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let octets = || prop::collection::vec(any::<u8>(), 0..40);
    let numbers = prop::sample::select(vec![1, 4, 5, 6, 11, 12, 14, 17, 23, 27, 28, 60, 252, 258]);
    let options = prop::collection::vec((numbers, prop::collection::vec(any::<u8>(), 0..4)), 0..5);
    prop_oneof![
        octets().prop_map(Step::Octets),
        (any::<u8>(), options, octets())
            .prop_map(|(code, options, payload)| { Step::Message(code, options, payload) }),
        (1_u8..8, prop::collection::vec(any::<u8>(), 0..3000))
            .prop_map(|(code, payload)| Step::Ask(code, payload)),
        (0_u64..20).prop_map(Step::Cancel),
        Just(Step::Ping),
        prop::collection::vec(any::<u8>(), 0..3000).prop_map(Step::Answer),
        Just(Step::Changed),
        Just(Step::Lost),
        Just(Step::Wait),
    ]
}

/// Puts a machine through `steps`; `wrap` makes the bytes of a message.
fn endure<M>(
    machine: &mut M,
    steps: Vec<Step>,
    changed: impl Fn(&mut M, Instant),
    wrap: impl Fn(Code, Vec<(u16, Vec<u8>)>, Vec<u8>) -> Vec<u8>,
) where
    M: for<'a> Machine<Input<'a> = Input<'a, u8>, Output = Output<u8>>,
{
    let (mut now, mut open, mut names) = (Instant::ZERO, Vec::new(), 0);
    for step in steps {
        // What is refused must change nothing, and everything else must not panic: nothing else is
        // asked for here.
        let _refused = match step {
            Step::Octets(bytes) => machine.handle(now, Input::Datagram { from: 1, bytes: &bytes }),
            Step::Message(code, options, payload) => {
                let bytes = wrap(Code(code), options, payload);
                machine.handle(now, Input::Datagram { from: 1, bytes: &bytes })
            }
            Step::Ask(code, payload) => {
                names += 1;
                let mut message = RequestTemplate::new(Code(code), "/t").with_payload(payload);
                if names % 2 == 0 {
                    message.options.insert_uint(OptionNumber::OBSERVE, 0);
                }
                machine.handle(now, Input::Request { peer: 1, message, handle: Handle(names) })
            }
            Step::Cancel(name) => machine.handle(now, Input::Cancel { handle: Handle(name) }),
            Step::Ping => machine.handle(now, Input::Ping { peer: 1, handle: Handle(1000) }),
            Step::Answer(payload) => match open.pop() {
                None => Ok(()),
                Some(exchange) => {
                    let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(payload);
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let handle = Handle::NONE;
                    machine.handle(now, Input::Respond { exchange, response, handle })
                }
            },
            Step::Changed => {
                changed(machine, now);
                Ok(())
            }
            Step::Lost => machine.handle(now, Input::Unreachable { peer: 1 }),
            Step::Wait => {
                if let Some(due) = machine.next_deadline() {
                    now = now.max(due);
                    machine.handle(now, Input::Deadline).expect("never fails");
                    let again = machine.next_deadline();
                    assert!(again.is_none_or(|again| again > now), "time has to pass");
                }
                Ok(())
            }
        };
        while let Some(output) = machine.poll_output() {
            if let Output::Request { exchange, .. } = output {
                open.push(exchange);
            }
        }
    }
}

fn message(code: Code, options: Vec<(u16, Vec<u8>)>, payload: Vec<u8>) -> Message {
    let kind = lowmesh_wire::coap::Kind::from_bits(payload.first().copied().unwrap_or(0) % 2);
    let id = lowmesh_wire::coap::MessageId(u16::from(code.0) << 3 | payload.len() as u16 & 7);
    let mut message = Message::new(kind, code, id);
    message.token = Token::from_number(u64::from(code.0), 1);
    for (number, value) in options {
        message.options.insert(OptionNumber(number), &value);
    }
    message.payload = payload;
    message
}

proptest! {
    #[test]
    fn a_host_over_datagrams_endures_whatever_happens(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let rng = Rng::stream(Seed(4), NodeId(1), Purpose::Coap);
        let host = Host::over_datagrams(Config::default(), HostLimits::default(), rng);
        let mut host = host.expect("possible");
        endure(&mut host, steps, |host, now| host.changed("/t", now), |code, options, payload| {
            message(code, options, payload).to_vec()
        });
    }

    #[test]
    fn a_host_over_connections_endures_whatever_happens(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let rng = Rng::stream(Seed(4), NodeId(1), Purpose::Coap);
        let limits = ConnectionLimits::default();
        let mut host = Host::over_connections(limits, HostLimits::default(), rng);
        let framing = Framing::WebSocket;
        host.handle(Instant::ZERO, Input::Connection(ConnectionInput::Connected { peer: 1, framing })).expect("fine");
        let csm = [0_u8, 0xe1];
        host.handle(Instant::ZERO, Input::Datagram { from: 1, bytes: &csm }).expect("fine");
        endure(&mut host, steps, |host, now| host.changed("/t", now), |code, options, payload| {
            let Message { code, token, options, payload, .. } = message(code, options, payload);
            let mut bytes = Vec::new();
            lowmesh_wire::coap::stream::StreamMessage { code, token, options, payload }
                .emit(framing, &mut bytes);
            bytes
        });
    }
}
