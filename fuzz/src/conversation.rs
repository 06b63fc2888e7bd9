//! A CoAP endpoint among peers that say anything: datagrams, answers of the application and the passing of time in
//! the order that a case spells out.
//!
//! ```text
//!   a step:  | what (1) | length (1) | octets of a datagram |
//! ```

use lowmesh_coap::exchange::{ExchangeId, GroupInput, Input, Name, Output};
use lowmesh_coap::{Config, Endpoint, RequestTemplate, ResponseTemplate};
use lowmesh_machine::{Handle, Machine};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::target::{Target, unhex};

pub fn targets() -> Vec<Target> {
    vec![Target { name: "coap_endpoint", corpus: conversations(), accepts: converse }]
}

/// The endpoint's bounds, small so that a case can reach them.
fn config() -> Config {
    Config {
        open_max: 8,
        queue_max: 4,
        incoming_max: 4,
        peers_max: 4,
        dedup_per_peer: 8,
        dedup_total: 16,
        ..Config::default()
    }
}

fn step(what: u8, datagram: &str) -> Vec<u8> {
    let octets = unhex(datagram);
    [&[what, octets.len() as u8][..], &octets].concat()
}

fn conversations() -> Vec<Vec<u8>> {
    let get = "40017d34bb74656d7065726174757265";
    let observe = "42010001aabb60546f6273";
    vec![
        [step(0, get), step(0, get), step(8, ""), step(0x11, get)].concat(),
        [step(5, ""), step(1, "60457d34ff32"), step(7, ""), step(7, "")].concat(),
        [step(0, observe), step(8, ""), step(9, ""), step(0, "70000001"), step(7, "")].concat(),
        [step(4, get), step(0, "40000002"), step(6, ""), step(7, "")].concat(),
    ]
}

/// Plays a case; true if no step was cut off.
fn converse(octets: &[u8]) -> bool {
    let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
    let mut endpoint = Endpoint::new(config(), rng).expect("possible bounds");
    let mut talk = Talk { now: Instant::ZERO, asked: Vec::new(), open: 0, serial: 0 };
    let mut rest = octets;
    while let [what, len, tail @ ..] = rest {
        let Some((datagram, next)) = tail.split_at_checked(usize::from(*len)) else { return false };
        talk.play(&mut endpoint, *what, datagram);
        rest = next;
    }
    rest.is_empty()
}

/// What the application and the clock know.
struct Talk {
    now: Instant,
    /// Requests of peers that wait for an answer.
    asked: Vec<(ExchangeId, u16, Message)>,
    /// Own requests without an end yet.
    open: usize,
    serial: u64,
}

impl Talk {
    fn play(&mut self, endpoint: &mut Endpoint<u16>, what: u8, bytes: &[u8]) {
        let peer = u16::from(what >> 4);
        self.serial += 1;
        let handle = Name::Application(Handle(self.serial));
        // A rejected input is one that cannot be now; it changes nothing.
        let taken = match what & 0x0f {
            0..=3 => endpoint.handle(self.now, Input::Datagram { from: peer, bytes }),
            4 => {
                endpoint.handle(self.now, Input::Group(GroupInput::Datagram { from: peer, bytes }))
            }
            5 => self.ask(endpoint, peer, bytes, handle),
            6 => endpoint.handle(self.now, Input::Ping { peer, handle }),
            7 => self.wake(endpoint),
            8 => self.answer(endpoint, handle),
            9 => self.notify(endpoint, peer, handle),
            10 if bytes.is_empty() => endpoint.handle(self.now, Input::Unreachable { peer }),
            10 => {
                let reopens = bytes.len().is_multiple_of(2);
                endpoint.handle(self.now, Input::SessionEnded { peer, reopens })
            }
            _ => endpoint
                .handle(self.now, Input::Cancel { handle: Handle(u64::from(what >> 4)).into() }),
        };
        let _ = taken;
        self.drain(endpoint);
        if let Some(due) = endpoint.next_deadline() {
            assert!(due >= self.now || endpoint.handle(self.now, Input::Deadline).is_ok());
        }
        assert!(endpoint.open() <= 8 + 4, "own exchanges are bounded");
    }
    fn ask(
        &mut self,
        endpoint: &mut Endpoint<u16>,
        peer: u16,
        bytes: &[u8],
        handle: Name,
    ) -> Result<(), lowmesh_machine::Rejected> {
        let mut message = RequestTemplate::get("/t").with_payload(bytes.to_vec());
        if bytes.len() % 2 == 1 {
            message.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        self.open += 1;
        endpoint.handle(self.now, Input::Request { peer, message, handle })
    }
    fn wake(&mut self, endpoint: &mut Endpoint<u16>) -> Result<(), lowmesh_machine::Rejected> {
        let later = self.now + Duration::from_secs(1);
        self.now = endpoint.next_deadline().map_or(later, |due| due.max(self.now));
        endpoint.handle(self.now, Input::Deadline)
    }
    fn answer(
        &mut self,
        endpoint: &mut Endpoint<u16>,
        handle: Name,
    ) -> Result<(), lowmesh_machine::Rejected> {
        let Some((exchange, ..)) = self.asked.pop() else { return Ok(()) };
        let response = ResponseTemplate::new(Code::CONTENT).with_payload(b"x".to_vec());
        endpoint.handle(self.now, Input::Respond { exchange, response, handle })
    }
    fn notify(
        &mut self,
        endpoint: &mut Endpoint<u16>,
        peer: u16,
        handle: Name,
    ) -> Result<(), lowmesh_machine::Rejected> {
        let Some((.., message)) = self.asked.last() else { return Ok(()) };
        let (token, confirmable) = (message.token.clone(), self.serial.is_multiple_of(2));
        let mut response = ResponseTemplate::new(Code::CONTENT);
        response.options.insert_uint(OptionNumber::OBSERVE, 3);
        let input = Input::Notify { peer, token, response, confirmable, handle };
        endpoint.handle(self.now, input)
    }
    fn drain(&mut self, endpoint: &mut Endpoint<u16>) {
        while let Some(output) = endpoint.poll_output() {
            match output {
                Output::Send { bytes, .. } => {
                    Message::parse(&bytes).expect("what an endpoint sends is valid");
                }
                Output::Request { exchange, from, message, .. } => {
                    self.asked.push((exchange, from, message));
                    assert!(self.asked.len() <= 4096, "unanswered requests are bounded");
                }
                Output::Response { .. } | Output::Failed { .. } | Output::Over { .. } => {
                    self.open = self.open.saturating_sub(1);
                }
                _ => {}
            }
        }
    }
}
