//! Hosts over datagrams and over connections, and connections alone, among peers that say anything: also what looks like
//! an answer to what was asked of them.
//!
//! ```text
//!   a step:  | peer (4 bits), what (4 bits) | length (1) | octets |
//!   an answer has type, code, options and payload in its octets; message ID and token are those of a request
//! ```

use std::collections::BTreeSet;

use lowmesh_coap::exchange::{ConnectionInput, GroupInput, Repetition};
use lowmesh_coap::{
    Config, CongestionControl, ConnectionLimits, Connections, Host, HostLimits, IncomingId, Input,
    Output, RequestTemplate, ResponseTemplate,
};
use lowmesh_machine::{Handle, Machine, Rejected};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::alone::Alone;
use crate::target::Target;

pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "coap_host", corpus: conversations(), accepts: over_datagrams },
        Target { name: "coap_host_reliable", corpus: conversations(), accepts: over_connections },
        Target { name: "coap_connections", corpus: conversations(), accepts: connections_alone },
    ]
}

/// What may be kept, small so that a case can reach it.
const LIMITS: HostLimits = HostLimits {
    exponent: lowmesh_coap::blockwise::Exponent::BERT,
    body_max: 4096,
    assemblies_max: 16_384,
    assemblies_per_source: 8192,
    representations_max: 16_384,
    representations_per_source: 8192,
    cache_max: 4096,
    requests_max: 8,
    observers_max: 4,
    observers_per_source: 2,
    amplification_max: Some(3),
    challenge_groups: true,
    group_block: None,
    negotiates: true,
};

fn rng() -> Rng {
    Rng::stream(Seed(1), NodeId(1), Purpose::Coap)
}

fn over_datagrams(octets: &[u8]) -> bool {
    let congestion = CongestionControl::new("cocoa").and_then(|cocoa| cocoa.with_window("quic", 2));
    let config = Config {
        congestion: congestion.expect("listed names"),
        open_max: 8,
        queue_max: 4,
        incoming_max: 4,
        peers_max: 4,
        dedup_per_peer: 8,
        dedup_total: 16,
        ..Config::default()
    };
    let host = Host::over_datagrams(config, LIMITS, rng()).expect("possible bounds");
    Talk::new(host, Shape::Datagrams, |host, now| host.changed("/t", now)).play(octets)
}

fn limits() -> ConnectionLimits {
    let connections_max = 3;
    ConnectionLimits {
        connections_max,
        open_max: 8,
        incoming_max: 4,
        ..ConnectionLimits::default()
    }
}

fn over_connections(octets: &[u8]) -> bool {
    let host: Host<u16, Connections<u16>> = Host::over_connections(limits(), LIMITS, rng());
    Talk::new(host, Shape::Connections, |host, now| host.changed("/t", now)).play(octets)
}

fn connections_alone(octets: &[u8]) -> bool {
    let engine = Alone(Connections::new(limits(), rng()));
    Talk::new(engine, Shape::Connections, |_, _| {}).play(octets)
}

fn step(peer: u8, what: u8, octets: &[u8]) -> Vec<u8> {
    [&[peer << 4 | what, octets.len() as u8][..], octets].concat()
}

/// Conversations that reach blocks, observations, challenges and signals on both sides.
fn conversations() -> Vec<Vec<u8>> {
    // GET /t, with Observe 0; type and code first, then token and options.
    let observe: &[u8] = b"\x42\x01\x00\x01\xaa\xbb\x60\x51t";
    let get: &[u8] = b"\x40\x01\x00\x02\xb1t";
    let content: &[u8] = b"\x20\x45\xffhello";
    let first_block: &[u8] = b"\x20\x45\xd1\x0a\x08\xff0123456789abcdef";
    let notification: &[u8] = b"\x10\x45\x61\x05\xffnews";
    let continued: &[u8] = b"\x20\x5f\xd1\x0e\x0e";
    let challenge: &[u8] = b"\x20\x81\xd4\xef12345678";
    let stream: &[u8] = b"\x01\x01\xaa";
    vec![
        [step(1, 0, get), step(1, 8, &[4; 90]), step(1, 0, observe), step(1, 8, &[3; 2])].concat(),
        [step(1, 13, b""), step(1, 0, b"\x00\xe1"), step(1, 0, stream), step(1, 8, b"x")].concat(),
        [step(1, 5, b"x"), step(1, 2, content), step(1, 5, b""), step(1, 2, first_block)].concat(),
        [step(1, 5, b"xx"), step(1, 2, notification), step(1, 12, b""), step(1, 2, content)]
            .concat(),
        [step(1, 5, &[1; 60]), step(1, 2, continued), step(1, 7, b""), step(1, 2, challenge)]
            .concat(),
        [step(1, 0, observe), step(1, 8, b"o"), step(0, 9, b""), step(1, 8, b"o"), step(1, 7, b"")]
            .concat(),
        [step(2, 15, b""), step(3, 2, content), step(0, 7, b""), step(1, 6, b""), step(1, 10, b"")]
            .concat(),
        [step(1, 13, b""), step(1, 14, b""), step(1, 11, b""), step(1, 4, get)].concat(),
        [step(1, 13, b"w"), step(1, 0, b"\x00\xe1"), step(1, 5, b""), step(1, 2, content)].concat(),
        [step(1, 13, b""), step(1, 0, b"\x00\xe1"), step(1, 5, b"xx"), step(1, 2, b"\x01\x45\x60")]
            .concat(),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Datagrams,
    Connections,
}

/// A request that has left, which a peer may answer.
struct Left {
    to: u16,
    message_id: [u8; 2],
    token: Vec<u8>,
}

/// Requests that a peer may still answer in a case.
const LEFT_MAX: usize = 8;
/// Requests of peers that the application may still answer in a case.
const ASKED_MAX: usize = 64;
/// More than any one input may bring about.
const OUTPUTS_MAX: usize = 4096;

/// A machine, its application, its peers and its clock.
struct Talk<M> {
    machine: M,
    shape: Shape,
    changed: fn(&mut M, Instant),
    now: Instant,
    serial: u64,
    /// Own requests without an end.
    open: BTreeSet<Handle>,
    asked: Vec<IncomingId>,
    left: Vec<Left>,
}

impl<M> Talk<M>
where
    M: for<'a> Machine<Input<'a> = Input<'a, u16>, Output = Output<u16>>,
{
    fn new(machine: M, shape: Shape, changed: fn(&mut M, Instant)) -> Self {
        let (now, serial, open) = (Instant::ZERO, 0, BTreeSet::new());
        let (asked, left) = (Vec::new(), Vec::new());
        Self { machine, shape, changed, now, serial, open, asked, left }
    }
    /// Plays a case; true if no step was cut off.
    fn play(&mut self, octets: &[u8]) -> bool {
        let mut rest = octets;
        while let [what, len, tail @ ..] = rest {
            let Some((octets, next)) = tail.split_at_checked(usize::from(*len)) else {
                return false;
            };
            self.step(u16::from(*what >> 4), *what & 0x0f, octets);
            rest = next;
        }
        rest.is_empty()
    }
    fn step(&mut self, peer: u16, what: u8, octets: &[u8]) {
        self.serial += 1;
        let (now, handle) = (self.now, Handle(self.serial));
        // A rejected input is one that cannot be now.
        let _rejected = match what {
            0 | 1 => self.machine.handle(now, Input::Datagram { from: peer, bytes: octets }),
            2 | 3 => self.reply(peer, octets),
            4 => self
                .machine
                .handle(now, Input::Group(GroupInput::Datagram { from: peer, bytes: octets })),
            5 => self.ask(peer, octets, handle),
            6 => self.begin(handle, Input::Ping { peer, handle }),
            7 => self.wake(),
            8 => self.answer(octets),
            9 => {
                (self.changed)(&mut self.machine, self.now);
                Ok(())
            }
            10 if octets.is_empty() => self.machine.handle(now, Input::Unreachable { peer }),
            10 => {
                let reopens = octets.len().is_multiple_of(2);
                self.machine.handle(now, Input::SessionEnded { peer, reopens })
            }
            11 => self.cancel(),
            12 => self.deregister(),
            13 => {
                let framing = if octets.is_empty() { Framing::Stream } else { Framing::WebSocket };
                self.machine
                    .handle(now, Input::Connection(ConnectionInput::Connected { peer, framing }))
            }
            14 => self.machine.handle(now, Input::Connection(ConnectionInput::Release { peer })),
            _ if octets.len() > 1 => self.repeat(octets[0]),
            _ => {
                let mut message = RequestTemplate::get("/t");
                if let [observe] = octets {
                    message.options.insert_uint(OptionNumber::OBSERVE, u32::from(*observe & 1));
                }
                let wait = Duration::from_secs(5);
                self.begin(
                    handle,
                    Input::Group(GroupInput::Request { group: peer, message, wait, handle }),
                )
            }
        };
        self.drain();
    }
    /// Repeats the request under some open name, if it went to a group.
    fn repeat(&mut self, choice: u8) -> Result<(), Rejected> {
        let same = choice & 1 == 0;
        let repetition = if same { Repetition::SameMessage } else { Repetition::NewMessage };
        let place = usize::from(choice >> 1) % self.open.len().max(1);
        let Some(handle) = self.open.iter().nth(place).copied() else { return Ok(()) };
        let wait = Duration::from_secs(5);
        let input = GroupInput::Repeat { handle, repetition, wait };
        self.machine.handle(self.now, Input::Group(input))
    }
    fn begin(&mut self, handle: Handle, input: Input<'_, u16>) -> Result<(), Rejected> {
        self.open.insert(handle);
        let taken = self.machine.handle(self.now, input);
        if taken.is_err() {
            self.open.remove(&handle);
        }
        taken
    }
    fn ask(&mut self, peer: u16, octets: &[u8], handle: Handle) -> Result<(), Rejected> {
        let body = octets.repeat(37);
        let mut message = RequestTemplate::new(Code::GET, "/t");
        match octets.len() {
            0 => {}
            1 => message.options.insert_uint(OptionNumber::ACCEPT, 50),
            2 => message.options.insert_uint(OptionNumber::OBSERVE, 0),
            3 => message = message.non_confirmable(),
            _ => message = RequestTemplate::new(Code::PUT, "/t").with_payload(body),
        }
        self.begin(handle, Input::Request { peer, message, handle })
    }
    /// An answer to one of the requests that have left; from whom it was sent to, or from someone else.
    fn reply(&mut self, peer: u16, octets: &[u8]) -> Result<(), Rejected> {
        let [kind, code, rest @ ..] = octets else { return Ok(()) };
        let Some(left) = self.left.get(usize::from(peer) % self.left.len().max(1)) else {
            return Ok(());
        };
        let from = if peer == 15 { peer } else { left.to };
        let len = left.token.len() as u8;
        let bytes = match self.shape {
            Shape::Datagrams => {
                let head =
                    [0x40 | kind & 0x30 | len, *code, left.message_id[0], left.message_id[1]];
                [&head[..], &left.token, rest].concat()
            }
            Shape::Connections => {
                // On a byte stream the header says how long the rest is, in WebSockets it does not.
                let rest_len = if kind & 1 == 0 { 0 } else { rest.len().min(12) as u8 };
                [&[rest_len << 4 | len, *code][..], &left.token, rest].concat()
            }
        };
        self.machine.handle(self.now, Input::Datagram { from, bytes: &bytes })
    }
    fn wake(&mut self) -> Result<(), Rejected> {
        let later = self.now + Duration::from_secs(1);
        self.now = self.machine.next_deadline().map_or(later, |due| due.max(self.now));
        let taken = self.machine.handle(self.now, Input::Deadline);
        self.drain();
        let due = self.machine.next_deadline();
        assert!(due.is_none_or(|due| due > self.now), "what is due has been done");
        taken
    }
    fn answer(&mut self, octets: &[u8]) -> Result<(), Rejected> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let exchange = self.asked.remove(0);
        let code = if octets.len() == 3 { Code::NOT_FOUND } else { Code::CONTENT };
        let mut response = ResponseTemplate::new(code).with_payload(octets.repeat(29));
        if octets.len() < 4 {
            response.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        let handle = Handle::NONE;
        self.machine.handle(self.now, Input::Respond { exchange, response, handle })
    }
    fn cancel(&mut self) -> Result<(), Rejected> {
        let Some(handle) = self.open.pop_first() else { return Ok(()) };
        self.machine.handle(self.now, Input::Cancel { handle })
    }
    fn deregister(&mut self) -> Result<(), Rejected> {
        let Some(handle) = self.open.first().copied() else { return Ok(()) };
        let taken = self.machine.handle(self.now, Input::Deregister { handle });
        if taken.is_err() && self.shape == Shape::Datagrams {
            self.open.remove(&handle);
        }
        taken
    }
    fn drain(&mut self) {
        for count in 0.. {
            assert!(count < OUTPUTS_MAX, "one input brings about a bounded number of outputs");
            let Some(output) = self.machine.poll_output() else { return };
            self.hear(output);
        }
    }
    fn hear(&mut self, output: Output<u16>) {
        match output {
            Output::Send { to, bytes, .. } => self.on_sent(to, &bytes),
            Output::Request { exchange, .. } => {
                if self.asked.len() == ASKED_MAX {
                    self.asked.remove(0);
                }
                self.asked.push(exchange);
            }
            Output::Response { handle, .. }
            | Output::Pong { handle, .. }
            | Output::Over { handle }
            | Output::Failed { handle, .. } => {
                let ended = handle == Handle::NONE || self.open.remove(&handle);
                assert!(ended, "{handle:?} has ended before, or never began");
            }
            Output::Notification { handle, .. } | Output::GroupResponse { handle, .. } => {
                assert!(self.open.contains(&handle), "{handle:?} is over");
            }
            _ => {}
        }
    }
    fn on_sent(&mut self, to: u16, bytes: &[u8]) {
        let (code, message_id, token) = match self.shape {
            Shape::Datagrams => {
                let message = Message::parse(bytes).expect("what is sent is valid");
                (message.code, message.message_id.0.to_be_bytes(), message.token)
            }
            Shape::Connections => {
                let message = StreamMessage::parse(bytes, Framing::WebSocket)
                    .or_else(|_| StreamMessage::parse(bytes, Framing::Stream));
                let message = message.expect("what is sent is valid");
                (message.code, [0; 2], message.token)
            }
        };
        if code.is_request() {
            if self.left.len() == LEFT_MAX {
                self.left.remove(0);
            }
            self.left.push(Left { to, message_id, token: token.as_bytes().to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many own requests have begun and how many are open, and what a peer has asked, after a case.
    fn after<M>(mut talk: Talk<M>, conversation: usize) -> (usize, usize)
    where
        M: for<'a> Machine<Input<'a> = Input<'a, u16>, Output = Output<u16>>,
    {
        assert!(talk.play(&conversations()[conversation]));
        (talk.open.len(), talk.left.len())
    }

    fn host() -> Talk<Host<u16, lowmesh_coap::Endpoint<u16>>> {
        let host = Host::over_datagrams(Config::default(), LIMITS, rng());
        Talk::new(host.expect("possible bounds"), Shape::Datagrams, |host, now| {
            host.changed("/t", now);
        })
    }

    #[test]
    fn what_a_case_answers_is_answered() {
        assert_eq!(after(host(), 2), (1, 3), "one is over, one asks for its second block");
        assert_eq!(after(host(), 3), (0, 2), "an observation is deregistered");
        let connections =
            Talk::new(Alone(Connections::new(limits(), rng())), Shape::Connections, |_, _| {});
        assert_eq!(after(connections, 8), (0, 1));
    }

    #[test]
    fn what_a_peer_asks_comes_to_the_application() {
        let mut whole = host();
        assert!(whole.play(&step(1, 0, b"\x42\x01\x00\x01\xaa\xbb\x60\x51t")));
        assert_eq!(whole.asked.len(), 1);
    }
}
