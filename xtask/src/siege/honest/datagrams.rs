//! A client over datagrams: one request at a time, confirmable, repeated as RFC 7252 s4.2 says.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lowmesh_wire::coap::{Code, Kind, Message, MessageId};

use super::{Answer, Client, PATIENCE, Request};
use crate::chance::Chance;
use crate::process::Stopwatch;

/// ACK_TIMEOUT, and ACK_RANDOM_FACTOR less 1 (RFC 7252 s4.8).
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const RANDOM_FACTOR: f64 = 0.5;
/// MAX_RETRANSMIT (RFC 7252 s4.8).
const MAX_RETRANSMIT: u32 = 4;
/// The longest datagram.
const LEN_MAX: usize = 2048;

/// A way for datagrams between a client and its server.
pub trait Path: Send {
    /// Sends one.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;
    /// The next one, if it comes in time.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>>;
}

/// UDP as it is.
#[derive(Debug)]
pub struct Plain(UdpSocket);

impl Plain {
    /// From an address of this machine, at any port.
    pub fn open(from: Ipv4Addr, to: SocketAddrV4) -> Result<Self> {
        let socket = UdpSocket::bind((from, 0)).with_context(|| format!("no port at {from}"))?;
        socket.connect(to)?;
        Ok(Self(socket))
    }
}

impl Path for Plain {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self.0.send(bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => Err(error.into()),
            _ => Ok(()),
        }
    }
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>> {
        self.0.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let mut buffer = [0; LEN_MAX];
        match self.0.recv(&mut buffer) {
            Ok(len) => Ok(Some(buffer[..len].to_vec())),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
                _ => Err(error.into()),
            },
        }
    }
}

/// The request that is under way.
struct Open {
    id: MessageId,
    token: u32,
    /// An empty ACK has come: the answer comes by itself, and no copy is sent any more (RFC 7252 s5.2.2).
    acknowledged: bool,
}

/// A client over a path.
pub struct Datagrams<P> {
    path: P,
    chance: Chance,
    next_id: u16,
    next_token: u32,
    observation: Option<u32>,
    notified: u64,
    /// The token of the answer that came last, which may come again.
    answered: Option<u32>,
}

impl<P: Path> Datagrams<P> {
    /// Message IDs and tokens begin where the seed says.
    pub fn new(path: P, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let (next_id, next_token) = (chance.next() as u16, chance.next() as u32);
        let (observation, answered) = (None, None);
        Self { path, chance, next_id, next_token, observation, notified: 0, answered }
    }

    /// What a datagram means for the open request: its answer, or an error that ends it.
    fn take(&mut self, bytes: &[u8], open: Option<&mut Open>) -> Result<Option<Answer>> {
        let Ok(message) = Message::parse(bytes) else { return Ok(None) };
        let token = message.token.as_bytes().try_into().map(u32::from_be_bytes).ok();
        let (kind, id) = (message.kind, message.message_id);
        let ours = open.filter(|open| match kind {
            Kind::Acknowledgement | Kind::Reset => open.id == id,
            Kind::Confirmable | Kind::NonConfirmable => token == Some(open.token),
        });
        match (kind, ours) {
            (Kind::Reset, Some(_)) => bail!("the server rejects the request"),
            (Kind::Acknowledgement, Some(open)) if message.code == Code::EMPTY => {
                open.acknowledged = true;
                Ok(None)
            }
            (Kind::Acknowledgement | Kind::Reset, None) => Ok(None),
            (Kind::Acknowledgement, Some(open)) if token != Some(open.token) => Ok(None),
            (_, Some(open)) => {
                self.answered = Some(open.token);
                self.acknowledge(kind, id)?;
                Ok(Some(Answer::of(message)))
            }
            (_, None) => {
                let known =
                    token.is_some() && (token == self.observation || token == self.answered);
                if known {
                    self.notified += u64::from(token == self.observation);
                    self.acknowledge(kind, id)?;
                } else if message.code != Code::EMPTY {
                    // RFC 7252 s4.2: what nobody waits for is rejected.
                    self.path.send(&Message::empty(Kind::Reset, id))?;
                }
                Ok(None)
            }
        }
    }
    fn acknowledge(&mut self, kind: Kind, id: MessageId) -> Result<()> {
        if kind == Kind::Confirmable {
            self.path.send(&Message::empty(Kind::Acknowledgement, id))?;
        }
        Ok(())
    }
}

impl<P: Path> Client for Datagrams<P> {
    fn ask(&mut self, request: &Request, observe: bool) -> Result<Answer> {
        self.next_id = self.next_id.wrapping_add(1);
        let known = self.observation.filter(|_| observe);
        let token = known.unwrap_or_else(|| {
            self.next_token = self.next_token.wrapping_add(1);
            self.next_token
        });
        if observe {
            self.observation = Some(token);
        }
        let mut open = Open { id: MessageId(self.next_id), token, acknowledged: false };
        let datagram = request.confirmable(self.next_id, &token.to_be_bytes());
        let clock = Stopwatch::start();
        let random = 1.0 + RANDOM_FACTOR * (self.chance.below(1000) as f64 / 1000.0);
        let mut timeout = ACK_TIMEOUT.mul_f64(random);
        let (mut due, mut copies) = (timeout, 0);
        self.path.send(&datagram)?;
        loop {
            let now = clock.elapsed();
            if now >= PATIENCE {
                bail!("no answer within {} s", PATIENCE.as_secs());
            }
            if now >= due && !open.acknowledged && copies < MAX_RETRANSMIT {
                // RFC 7252 s4.2: the timeout is doubled.
                timeout *= 2;
                (due, copies) = (now + timeout, copies + 1);
                self.path.send(&datagram)?;
            }
            let next = if open.acknowledged { PATIENCE } else { due.min(PATIENCE) };
            if let Some(bytes) = self.path.receive(next.saturating_sub(now))?
                && let Some(answer) = self.take(&bytes, Some(&mut open))?
            {
                return Ok(answer);
            }
        }
    }
    fn wait(&mut self, span: Duration) -> Result<()> {
        let clock = Stopwatch::start();
        while let Some(left) = span.checked_sub(clock.elapsed()).filter(|left| !left.is_zero()) {
            if let Some(bytes) = self.path.receive(left)? {
                self.take(&bytes, None)?;
            }
        }
        Ok(())
    }
    fn notified(&self) -> u64 {
        self.notified
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has come, and what was sent.
    #[derive(Default)]
    struct Script {
        comes: Vec<Vec<u8>>,
        sent: Vec<Vec<u8>>,
    }

    impl Path for Script {
        fn send(&mut self, bytes: &[u8]) -> Result<()> {
            self.sent.push(bytes.to_vec());
            Ok(())
        }
        fn receive(&mut self, _: Duration) -> Result<Option<Vec<u8>>> {
            Ok((!self.comes.is_empty()).then(|| self.comes.remove(0)))
        }
    }

    fn client(comes: &[Vec<u8>]) -> Datagrams<Script> {
        let script = Script { comes: comes.to_vec(), sent: Vec::new() };
        let mut client = Datagrams::new(script, 1);
        (client.next_id, client.next_token) = (0x1233, 0x0000_00ff);
        client
    }

    #[test]
    fn an_answer_that_comes_separately_is_acknowledged_and_so_is_its_copy() {
        let empty = vec![0x60, 0, 0x12, 0x34];
        let answer = b"\x44\x45\x00\x07\x00\x00\x01\x00\xffhi".to_vec();
        let mut client = client(&[empty, answer.clone(), answer]);
        let answered = client.ask(&Request::get("/"), false).expect("an answer");
        assert_eq!((answered.code, &answered.payload[..]), (Code::CONTENT, &b"hi"[..]));
        client.wait(Duration::from_millis(1)).expect("a copy is no fault");
        assert_eq!(client.path.sent[1..], [vec![0x60, 0, 0, 7], vec![0x60, 0, 0, 7]]);
    }

    #[test]
    fn what_nobody_waits_for_is_rejected_and_a_notification_is_counted() {
        let mut client = client(&[
            b"\x54\x45\x00\x08\x00\x00\x01\x00".to_vec(),
            b"\x41\x45\x00\x09\x55".to_vec(),
        ]);
        client.observation = Some(0x100);
        client.wait(Duration::from_millis(1)).expect("both are understood");
        assert_eq!((client.notified, &client.path.sent[..]), (1, &[vec![0x70, 0, 0, 9]][..]));
    }

    #[test]
    fn a_reset_ends_the_request() {
        let mut client = client(&[vec![0x70, 0, 0x12, 0x34]]);
        assert!(client.ask(&Request::get("/"), false).is_err());
    }
}
