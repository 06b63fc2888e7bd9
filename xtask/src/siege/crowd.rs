//! Many honest observers, each at an address of its own, that share few sockets: they register, prove their addresses
//! (RFC 9175), acknowledge what is confirmable, and remember the newest state.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber};

use super::forged::{Sources, address};
use super::request::Request;
use crate::process::Stopwatch;

/// Observers of one socket: a burst of notifications for all of them fits what the system keeps for a socket.
const PER_SOCKET: u64 = 100;
/// How long a datagram is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// After so long a client that is not registered asks again.
const AGAIN: Duration = Duration::from_secs(2);
/// Between two registrations of one socket.
const GAP: Duration = Duration::from_micros(500);

/// What an observer knows: the newest representation; `None` until it is registered.
type States = Arc<Mutex<BTreeMap<Ipv4Addr, Option<Vec<u8>>>>>;

/// The observers; they are gone with the value.
pub struct Crowd {
    states: States,
    over: Arc<AtomicBool>,
    members: Vec<JoinHandle<Result<()>>>,
}

impl Crowd {
    /// So many observers of a path, from 127.`net`.0.0 on.
    pub fn gather(count: u64, net: u8, to: SocketAddrV4, path: &str) -> Result<Self> {
        let all = (0..count).map(|number| (address(net, number), None)).collect();
        let (states, over): (States, _) = (Arc::new(Mutex::new(all)), Arc::default());
        let mut crowd = Self { states, over, members: Vec::new() };
        for first in (0..count).step_by(PER_SOCKET as usize) {
            let ours = (first..count.min(first + PER_SOCKET)).map(|number| address(net, number));
            let member = Member {
                sources: Sources::open()?,
                to,
                request: Request::get(path).observing(),
                ours: ours.collect(),
                next_id: 0,
                states: crowd.states.clone(),
                over: crowd.over.clone(),
            };
            crowd.members.push(std::thread::spawn(move || member.run()));
        }
        Ok(crowd)
    }
    /// Waits until as many as possible satisfy a condition; how many do not.
    pub fn missing(&self, limit: Duration, knows: impl Fn(&Option<Vec<u8>>) -> bool) -> usize {
        let clock = Stopwatch::start();
        loop {
            let missing = lock(&self.states).values().filter(|state| !knows(state)).count();
            if missing == 0 || clock.elapsed() >= limit {
                return missing;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for member in self.members.drain(..) {
            // Without its socket a member is as good as absent, which is seen in its states.
            _ = member.join();
        }
    }
}

fn lock<T>(states: &Mutex<T>) -> MutexGuard<'_, T> {
    states.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The observers of one socket.
struct Member {
    sources: Sources,
    to: SocketAddrV4,
    request: Request,
    ours: Vec<Ipv4Addr>,
    next_id: u16,
    states: States,
    over: Arc<AtomicBool>,
}

impl Member {
    /// All of them have the token 1: their addresses differ.
    const TOKEN: [u8; 1] = [1];

    fn run(mut self) -> Result<()> {
        while !self.over.load(Ordering::Relaxed) {
            let waiting: Vec<Ipv4Addr> = {
                let states = lock(&self.states);
                self.ours.iter().filter(|one| states[*one].is_none()).copied().collect()
            };
            for one in waiting {
                self.register(one, &self.request.clone())?;
                self.take(GAP)?;
            }
            let clock = Stopwatch::start();
            while clock.elapsed() < AGAIN && !self.over.load(Ordering::Relaxed) {
                self.take(LOOK)?;
            }
        }
        Ok(())
    }
    fn register(&mut self, one: Ipv4Addr, request: &Request) -> Result<()> {
        self.next_id = self.next_id.wrapping_add(1);
        self.sources.send(one, self.to, &request.confirmable(self.next_id, &Self::TOKEN))
    }
    /// What comes to one of them.
    fn take(&mut self, wait: Duration) -> Result<()> {
        let Some((one, bytes)) = self.sources.receive(wait)? else { return Ok(()) };
        let Ok(message) = Message::parse(&bytes) else { return Ok(()) };
        if message.kind == Kind::Confirmable {
            let ack = Message::empty(Kind::Acknowledgement, message.message_id);
            self.sources.send(one, self.to, &ack)?;
        }
        if let Some(echo) = message.options.get(OptionNumber::ECHO)
            && message.code == Code::UNAUTHORIZED
        {
            // RFC 9175 s2.3: the request again, with the value.
            let request = self.request.clone().with(OptionNumber::ECHO, echo);
            return self.register(one, &request);
        }
        let observed = message.options.get(OptionNumber::OBSERVE).is_some();
        if message.code == Code::CONTENT
            && observed
            && let Some(state) = lock(&self.states).get_mut(&one)
        {
            *state = Some(message.payload);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{MessageId, Token};
    use std::net::{SocketAddr, UdpSocket};

    /// Registers an observer once it brings back the Echo value, then notifies it with a confirmable message.
    fn serve(socket: &UdpSocket) -> usize {
        let mut acknowledged = 0;
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let request = Message::parse(&buffer[..len]).expect("well formed");
            if request.kind == Kind::Acknowledgement {
                acknowledged += 1;
                continue;
            }
            let answer = |kind, code, id| {
                let mut answer = Message::new(kind, code, id);
                answer.token = Token::new(&Member::TOKEN).expect("one octet");
                answer
            };
            let mut first = answer(Kind::Acknowledgement, Code::UNAUTHORIZED, request.message_id);
            if request.options.get(OptionNumber::ECHO) != Some(b"echo") {
                first.options.insert(OptionNumber::ECHO, b"echo");
                socket.send_to(&first.to_vec(), from).expect("sent");
                continue;
            }
            first.code = Code::CONTENT;
            first.options.insert_uint(OptionNumber::OBSERVE, 1);
            socket.send_to(&first.to_vec(), from).expect("sent");
            let mut news = answer(Kind::Confirmable, Code::CONTENT, MessageId(7));
            news.options.insert_uint(OptionNumber::OBSERVE, 2);
            news.payload = b"new".to_vec();
            socket.send_to(&news.to_vec(), from).expect("sent");
        }
        acknowledged
    }

    #[test]
    fn everybody_registers_with_a_proof_and_learns_what_is_new() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(3))).expect("possible");
        let SocketAddr::V4(to) = socket.local_addr().expect("bound") else { panic!("IPv4") };
        let server = std::thread::spawn(move || serve(&socket));
        let crowd = Crowd::gather(5, 60, to, "/obs").expect("sockets");
        let knows = |state: &Option<Vec<u8>>| state.as_deref() == Some(b"new");
        assert_eq!(crowd.missing(Duration::from_secs(10), knows), 0);
        assert_eq!(crowd.missing(Duration::ZERO, Option::is_none), 5);
        drop(crowd);
        assert_eq!(server.join().expect("no panic"), 5);
    }
}
