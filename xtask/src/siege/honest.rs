//! Honest clients: what an ordinary user of a server does while others attack it.
//!
//! They are no part of the product: datagrams with the retransmissions of RFC 7252 s4.2, DTLS, and messages on a byte
//! stream (RFC 8323), each with long bodies (RFC 7959), an observation (RFC 7641) and proofs of address (RFC 9175).

mod carrier;
mod datagrams;
mod secure;
mod stream;
mod team;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lowmesh_wire::coap::{Code, OptionNumber};

use super::request::{Answer, BLOCK_OF_512, Request};
use carrier::Carrier;
pub use datagrams::{Datagrams, Path, Plain};
pub use secure::{Secure, hello};
pub use stream::{Stream, connection, frame, signal};
pub use team::{Doors, Kind, OPENING_FAR, Sample, Team, WHOLE_TURN, Work};

/// How long an answer is waited for. RFC 7252 allows more, but a user does not.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Octets of a block of an upload.
const UPLOAD_BLOCK: usize = 16 << BLOCK_OF_512;
/// Blocks of a body at most, so that a server that never ends a body ends the request.
const BLOCKS_MAX: u32 = 64;

/// What carries a client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// coap: datagrams as they are.
    Udp,
    /// coap+tcp: a byte stream.
    Tcp,
    /// coaps+tcp: the same over TLS.
    Tls,
    /// coap+ws: WebSockets.
    Ws,
    /// coaps+ws: the same over TLS.
    Wss,
    /// coaps: datagrams over DTLS.
    Dtls,
}

/// A client that has a way to a server.
pub trait Client: Send {
    /// One request and its answer; with `observe` the token stays that of the observation.
    fn ask(&mut self, request: &Request, observe: bool) -> Result<Answer>;
    /// Waits, and takes what comes in the meantime.
    fn wait(&mut self, span: Duration) -> Result<()>;
    /// Notifications so far.
    fn notified(&self) -> u64;
}

/// Opens a client's way.
pub fn connect(
    transport: Transport,
    from: Ipv4Addr,
    to: SocketAddrV4,
    seed: u64,
) -> Result<Box<dyn Client>> {
    Ok(match transport {
        Transport::Udp => Box::new(Datagrams::new(Plain::open(from, to)?, seed)),
        Transport::Dtls => Box::new(Datagrams::new(Secure::open(from, to)?, seed)),
        Transport::Tcp => Box::new(Stream::open(Carrier::tcp(connection(from, to)?)?)?),
        Transport::Tls => Box::new(Stream::open(Carrier::tls(connection(from, to)?)?)?),
        Transport::Ws => Box::new(Stream::open(Carrier::web(connection(from, to)?)?)?),
        Transport::Wss => Box::new(Stream::open(Carrier::secure_web(connection(from, to)?)?)?),
    })
}

/// One request, repeated with the Echo value that the server asks for (RFC 9175 s2.3).
pub fn ask(client: &mut dyn Client, request: &Request, observe: bool) -> Result<Answer> {
    let answer = client.ask(request, observe)?;
    match answer.options.get(OptionNumber::ECHO) {
        Some(echo) if answer.code == Code::UNAUTHORIZED => {
            client.ask(&request.clone().with(OptionNumber::ECHO, echo), observe)
        }
        _ => Ok(answer),
    }
}

/// GET of a whole body (RFC 7959 s2.4).
pub fn fetch(client: &mut dyn Client, path: &str) -> Result<Vec<u8>> {
    let mut answer = ask(client, &Request::get(path), false)?;
    let mut body = Vec::new();
    // A server that does not trust an address sends small blocks and an Echo value. Small blocks would take far more round
    // trips than the return of the value, and each is a wait for who is far away.
    if let Some(echo) = answer.options.get(OptionNumber::ECHO)
        && answer.block2().is_some_and(|(_, more, _)| more)
    {
        let again = Request::get(path).with(OptionNumber::ECHO, echo);
        answer = client.ask(&again, false)?;
    }
    for number in 1..=BLOCKS_MAX {
        ensure!(answer.code == Code::CONTENT, "{path} answers {}", answer.code);
        body.extend_from_slice(&answer.payload);
        let Some((_, true, szx)) = answer.block2() else { return Ok(body) };
        let next = u32::try_from(body.len() >> (szx.min(6) + 4))?;
        ensure!(next >= number, "{path} sends blocks without octets");
        let next = Request::get(path).with_block(OptionNumber::BLOCK2, next, false, szx);
        answer = ask(client, &next, false)?;
    }
    bail!("{path} does not end")
}

/// PUT of a whole body, block by block (RFC 7959 s2.5).
pub fn upload(client: &mut dyn Client, path: &str, body: &[u8]) -> Result<()> {
    let blocks = body.len().div_ceil(UPLOAD_BLOCK);
    for (number, block) in body.chunks(UPLOAD_BLOCK).enumerate() {
        let more = number + 1 < blocks;
        let request = Request::new(Code::PUT, path)
            .with_block(OptionNumber::BLOCK1, u32::try_from(number)?, more, BLOCK_OF_512)
            .with_payload(block);
        let answer = ask(client, &request, false)?;
        let wanted = if more { &[Code::CONTINUE][..] } else { &[Code::CHANGED, Code::CREATED] };
        ensure!(wanted.contains(&answer.code), "PUT {path} answers {}", answer.code);
    }
    Ok(())
}

/// Registers as an observer.
pub fn observe(client: &mut dyn Client, path: &str) -> Result<()> {
    let answer = ask(client, &Request::get(path).observing(), true)?;
    ensure!(answer.code == Code::CONTENT, "observing {path} answers {}", answer.code);
    ensure!(answer.options.get(OptionNumber::OBSERVE).is_some(), "{path} takes no observer");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::Options;

    /// Answers in their order, and the requests that they were for.
    struct Script {
        answers: Vec<Answer>,
        asked: Vec<Request>,
    }

    impl Client for Script {
        fn ask(&mut self, request: &Request, _: bool) -> Result<Answer> {
            self.asked.push(request.clone());
            Ok(self.answers.remove(0))
        }
        fn wait(&mut self, _: Duration) -> Result<()> {
            Ok(())
        }
        fn notified(&self) -> u64 {
            0
        }
    }

    /// Code, one option, and octets of the payload.
    type Line = (Code, Option<(OptionNumber, u32)>, usize);

    fn script(answers: &[Line]) -> Script {
        let answer = |(code, option, len): &Line| {
            let mut options = Options::new();
            if let Some((number, value)) = option {
                options.insert_uint(*number, *value);
            }
            Answer { code: *code, options, payload: vec![0; *len] }
        };
        Script { answers: answers.iter().map(answer).collect(), asked: Vec::new() }
    }

    #[test]
    fn a_body_of_two_blocks_is_put_together_in_the_size_of_the_server() {
        let block = |value| Some((OptionNumber::BLOCK2, value));
        // 512 octets and more, then the rest.
        let mut script =
            script(&[(Code::CONTENT, block(0x0d), 512), (Code::CONTENT, block(0x15), 100)]);
        assert_eq!(fetch(&mut script, "/large").expect("whole").len(), 612);
        assert_eq!(script.asked[1].options.get_uint(OptionNumber::BLOCK2), Some(0x15));
    }

    #[test]
    fn a_request_is_repeated_with_the_echo_value() {
        let echo = Some((OptionNumber::ECHO, 0xabcd));
        let mut script = script(&[(Code::UNAUTHORIZED, echo, 0), (Code::CONTENT, None, 3)]);
        assert_eq!(fetch(&mut script, "/hello").expect("an answer"), [0; 3]);
        assert_eq!(script.asked[1].options.get_uint(OptionNumber::ECHO), Some(0xabcd));
    }

    #[test]
    fn small_blocks_with_an_echo_value_are_asked_for_again_with_it() {
        let block = |value| Some((OptionNumber::BLOCK2, value));
        let mut small = script(&[
            (Code::CONTENT, block(0x09), 32),
            (Code::CONTENT, block(0x0e), 1024),
            (Code::CONTENT, block(0x16), 976),
        ]);
        small.answers[0].options.insert(OptionNumber::ECHO, &[0xab, 0xcd]);
        assert_eq!(fetch(&mut small, "/large").expect("whole").len(), 2000);
        let echo = small.asked[1].options.get(OptionNumber::ECHO);
        assert_eq!((echo, small.asked.len()), (Some(&[0xab, 0xcd][..]), 3));
    }

    #[test]
    fn an_upload_stops_at_the_first_refusal() {
        let refusal = (Code::REQUEST_ENTITY_TOO_LARGE, None, 0);
        let mut refused = script(&[(Code::CONTINUE, None, 0), refusal]);
        let error = upload(&mut refused, "/u", &[0; 1500]).expect_err("refused");
        assert!(error.to_string().contains("4.13"), "{error}");
        let go_on = (Code::CONTINUE, None, 0);
        let mut accepted = script(&[go_on, go_on, (Code::CHANGED, None, 0)]);
        upload(&mut accepted, "/u", &[0; 1500]).expect("accepted");
        let last = &accepted.asked[2];
        assert_eq!(
            (last.options.get_uint(OptionNumber::BLOCK1), last.payload.len()),
            (Some(0x25), 476)
        );
    }

    #[test]
    fn an_answer_without_observe_is_no_registration() {
        assert!(observe(&mut script(&[(Code::CONTENT, None, 1)]), "/time").is_err());
        let with = Some((OptionNumber::OBSERVE, 7));
        assert!(observe(&mut script(&[(Code::CONTENT, with, 1)]), "/time").is_ok());
    }
}
