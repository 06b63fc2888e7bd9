//! DTLS 1.2 with pre-shared keys (RFC 6347, RFC 4279; RFC 7252 s9.1.3.1): a session for each peer, between a socket
//! and a CoAP endpoint that both see datagrams.
//!
//! ```text
//!   endpoint -- send --> Sessions -- Event::Transmit --> socket
//!   endpoint <-- Event::Received -- Sessions <-- on_datagram -- socket
//! ```
//! The handshakes, records and their timers are dimpl's; the cookie exchange before a server's handshake is ours
//! (`cookie`), so that nothing is kept for an address that is not proven. Nothing here waits or reads a clock.

mod cookie;
mod keys;
mod limits;
mod session;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use dimpl::{Config, Dtls};
use lowmesh_shares::{Newcomer, Source, Table};
use lowmesh_units::Rng;

use crate::params::{DTLS_MTU, HANDSHAKE_RTO, HANDSHAKE_TIMEOUT, WAITING_MAX};
use crate::peer::Peer;
use cookie::{Cookies, Hello};
use keys::Clients;
pub use keys::{KeyError, Keys};
pub use limits::SessionLimits;
use session::{Outcome, Session, State};

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Send this datagram.
    Transmit {
        /// The peer that gets it.
        to: Peer,
        /// Records.
        bytes: Vec<u8>,
    },
    /// A datagram came, and verifies.
    Received {
        /// The peer that sent it.
        from: Peer,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The peer has begun again: from here on, datagrams belong to another session (RFC 7252 s9.1.1).
    Renewed {
        /// The peer.
        peer: Peer,
    },
    /// A session ended without being asked to: nothing sent to the peer arrives.
    Lost {
        /// The peer.
        peer: Peer,
        /// What the loss means.
        cause: LossCause,
        /// Why, for people.
        reason: String,
    },
}

/// Why a session was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// The peer was not heard at all.
    Unheard,
    /// The peer shook hands, and did not come to an end: the keys do not fit.
    Handshake,
    /// It was open, or could have been, and has ended.
    Closed,
}

/// A peer may begin a new handshake while its old session is open, as after a restart. The old session stays until the new
/// one is open, since anybody can send a ClientHello in its name (RFC 6347 s4.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Settled,
    Renewing,
}

type Key = (Peer, Standing);

/// The server's part: what its sessions are made of, and what decides whether one is made.
struct Server {
    config: Arc<Config>,
    clients: Arc<Clients>,
    cookies: Cookies,
}

/// All sessions of a socket.
pub struct Sessions {
    client: Option<Arc<Config>>,
    server: Option<Server>,
    /// Sessions in their handshake.
    handshakes: Table<Key>,
    /// Sessions that are open.
    open: Table<Key>,
    all: BTreeMap<Key, Session>,
    /// When which session has something to do.
    due: BTreeSet<(Instant, Key)>,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("peers", &self.all.keys()).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Sessions that this end opens, as `identity`.
    pub fn client(identity: &[u8], key: &[u8]) -> Result<Self, KeyError> {
        let keys = Arc::new(Keys::new().with(identity, key)?);
        let client = configuration(|builder| builder.with_psk_client(identity.to_vec(), keys));
        Ok(Self::new(Some(client), None).bounded(SessionLimits::OURS))
    }
    /// Sessions that peers open with one of the keys.
    pub fn server(keys: Keys, hint: Option<&[u8]>) -> Self {
        let (clients, hint) = (Arc::new(Clients::new(keys)), hint.map(<[u8]>::to_vec));
        let config = configuration(|builder| {
            builder.with_psk_server(hint, clients.clone()).with_crypto_provider(cookie::provider())
        });
        Self::new(None, Some(Server { config, clients, cookies: Cookies::default() }))
    }
    fn new(client: Option<Arc<Config>>, server: Option<Server>) -> Self {
        let limits = SessionLimits::default();
        let (handshakes, open) = (Table::new(limits.handshakes()), Table::new(limits.open()));
        let (all, due) = (BTreeMap::new(), BTreeSet::new());
        let (events, buffer) = (VecDeque::new(), vec![0; 2 * DTLS_MTU]);
        Self { client, server, handshakes, open, all, due, events, buffer }
    }
    /// The same with other limits.
    pub fn bounded(self, limits: SessionLimits) -> Self {
        let (handshakes, open) = (Table::new(limits.handshakes()), Table::new(limits.open()));
        Self { handshakes, open, ..self }
    }
    /// The same, where a handshake gives way by lot: the oldest would be that of the client farthest away.
    pub fn by_lot(self, lots: Rng) -> Self {
        Self { handshakes: self.handshakes.by_lot(lots), ..self }
    }
    /// The number of sessions, including those in their handshake.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// True if there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The next event of a session.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    /// When [`Sessions::on_deadline`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }
    /// Time has passed.
    pub fn on_deadline(&mut self, now: Instant) {
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let due: Vec<Key> = due.map(|(_, key)| *key).collect();
        for key in due {
            self.with(key, now, |_| Ok(()));
        }
    }
    /// A datagram came from the socket.
    pub fn on_datagram(&mut self, now: Instant, from: Peer, bytes: &[u8]) {
        if self.server.is_some() && cookie::is_hello(bytes) {
            return self.on_hello(now, from, bytes);
        }
        // A handshake goes on with its records; data is of the session that is open.
        let renewing = (from, Standing::Renewing);
        let renews = is_handshake(bytes) && self.all.contains_key(&renewing);
        let key = if renews { renewing } else { (from, Standing::Settled) };
        self.receive(now, key, bytes);
    }
    /// A client begins. Without the right cookie nothing is kept of it.
    fn on_hello(&mut self, now: Instant, from: Peer, bytes: &[u8]) {
        let Some(server) = &mut self.server else { return };
        // Without state the fragments of a ClientHello cannot be joined.
        let Some(hello) = Hello::parse(bytes) else { return };
        if !server.cookies.prove(now, from, &hello) {
            // RFC 6347 s4.2.1: an invalid cookie is none. s4.2.4: the answer is sent once for each ClientHello.
            let bytes = hello.verify_request(&server.cookies.make(now, from, &hello));
            self.events.push_back(Event::Transmit { to: from, bytes });
            return;
        }
        let config = server.config.clone();
        let Some(key) = self.key_for_hello(now, from, &hello, config) else { return };
        cookie::proven(&hello, || self.receive(now, key, bytes));
    }
    fn receive(&mut self, now: Instant, key: Key, bytes: &[u8]) {
        let Some(session) = self.all.get_mut(&key) else { return };
        let was_open = matches!(session.state, State::Open);
        self.open.touch(&key);
        let before = self.events.len();
        self.with(key, now, |session| {
            session.heard = session.heard.or(Some(now));
            session.dtls.handle_packet(bytes)
        });
        self.identify(key);
        let is_open = |session: &Session| matches!(session.state, State::Open);
        if !was_open && self.all.get(&key).is_some_and(is_open) {
            self.settle(now, key, before);
        }
    }
    /// Notes the identity that a client has said, in its session or in the reason of its loss.
    fn identify(&mut self, key: Key) {
        let latest = self.server.as_ref().and_then(|server| server.clients.take_latest());
        let Some(identity) = latest else { return };
        if let Some(session) = self.all.get_mut(&key) {
            session.identity = Some(identity);
        } else if let Some(Event::Lost { peer, reason, .. }) = self.events.back_mut()
            && *peer == key.0
        {
            *reason = named(reason, &identity);
        }
    }
    /// By which identity a client is known.
    pub fn identity(&self, peer: Peer) -> Option<&[u8]> {
        self.all.get(&(peer, Standing::Settled))?.identity.as_deref()
    }
    /// The session that a ClientHello with the right cookie belongs to, which may be a new one.
    fn key_for_hello(
        &mut self,
        now: Instant,
        from: Peer,
        hello: &Hello<'_>,
        config: Arc<Config>,
    ) -> Option<Key> {
        let [settled, renewing] = [(from, Standing::Settled), (from, Standing::Renewing)];
        let random = *hello.random();
        let known = |key: &Key| self.all.get(key).is_some_and(|one| one.random == Some(random));
        if let Some(key) = [settled, renewing].into_iter().find(known) {
            return Some(key);
        }
        let open = |session: &Session| matches!(session.state, State::Open);
        let key = if self.all.get(&settled).is_some_and(open) { renewing } else { settled };
        let mut dtls = Dtls::new_12_psk(config, now);
        hello.replay_exchanges(&mut dtls, now, &mut self.buffer).ok()?;
        self.insert(key, dtls, Some(hello)).then_some(key)
    }
    /// A session has opened. If it replaces an old one, `Renewed` goes in front of the events after the first `before`.
    /// Beyond a bound another session ends.
    fn settle(&mut self, now: Instant, key: Key, before: usize) {
        let (peer, standing) = key;
        let settled = (peer, Standing::Settled);
        if standing == Standing::Renewing
            && let Some(session) = self.remove(key)
        {
            if self.remove(settled).is_some() {
                self.events.insert(before.min(self.events.len()), Event::Renewed { peer });
            }
            self.all.insert(settled, session);
            self.index(settled);
        }
        self.handshakes.leave(&settled);
        let entered = self.open.enter(settled, newcomer(settled), UNTIMED);
        let victim = entered.unwrap_or(Some(settled));
        if let Some(victim) = victim {
            // RFC 5246 s7.2.1: the peer gets to know that nothing more comes.
            self.with(victim, now, |session| session.dtls.close());
            self.lose(victim, LossCause::Closed, "too many sessions".to_owned());
        }
    }
    /// The endpoint sends a datagram. To a peer without session one is opened; what is sent then
    /// waits for its end, up to a bound.
    pub fn send(&mut self, now: Instant, to: Peer, bytes: &[u8]) {
        let key = (to, Standing::Settled);
        if !self.all.contains_key(&key) {
            let Some(config) = self.client.clone() else {
                // A server cannot call its clients back.
                let reason = "the client's session is over".to_owned();
                let cause = LossCause::Closed;
                self.events.push_back(Event::Lost { peer: to, cause, reason });
                return;
            };
            let mut dtls = Dtls::new_12_psk(config, now);
            dtls.set_active(true);
            self.insert(key, dtls, None);
        }
        self.open.touch(&key);
        self.with(key, now, |session| match &mut session.state {
            State::Open => session.dtls.send_application_data(bytes).map(|_| ()),
            State::Handshake(waiting) => {
                if waiting.len() < WAITING_MAX {
                    waiting.push_back(bytes.to_vec());
                }
                Ok(())
            }
        });
    }
    /// The network says that a peer cannot be reached. Anybody can say so, so a session that is open
    /// does not mind.
    pub fn on_unreachable(&mut self, peer: Peer) {
        let opening = |session: &Session| matches!(session.state, State::Handshake(_));
        let key = (peer, Standing::Settled);
        if self.all.get(&key).is_some_and(opening) {
            self.lose(key, LossCause::Unheard, "the peer cannot be reached".to_owned());
        }
    }
    /// True while the handshake with a peer that has answered is not complete, as with keys that do not match.
    pub fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.all.get(&(peer, Standing::Settled)).is_some_and(|session| {
            matches!(session.state, State::Handshake(_)) && session.heard.is_some()
        })
    }
    /// True if this end opens sessions.
    pub const fn opens(&self) -> bool {
        self.client.is_some()
    }
    /// The endpoint hears nothing from a peer any more, which may have lost its session: the session is over, and the next
    /// datagram opens another one. A handshake in progress has a timeout of its own.
    pub fn end(&mut self, now: Instant, peer: Peer) {
        let key = (peer, Standing::Settled);
        if self.all.get(&key).is_some_and(|session| matches!(session.state, State::Open)) {
            // RFC 5246 s7.2.1: the peer may be there after all, and gets to know.
            self.with(key, now, |session| session.dtls.close());
            self.remove(key);
        }
    }
    /// Closes all sessions with an alert.
    pub fn close(&mut self, now: Instant) {
        let keys: Vec<Key> = self.all.keys().copied().collect();
        for key in keys {
            self.with(key, now, |session| session.dtls.close());
            self.remove(key);
        }
    }

    /// A handshake begins; false if none gives way to it.
    fn insert(&mut self, key: Key, dtls: Dtls, hello: Option<&Hello<'_>>) -> bool {
        // A handshake in the same place is over: its client has begun another one.
        self.remove(key);
        let Ok(victim) = self.handshakes.enter(key, newcomer(key), UNTIMED) else { return false };
        if let Some(victim) = victim {
            self.lose(victim, LossCause::Closed, "too many handshakes".to_owned());
        }
        let session = Session {
            dtls,
            deadline: None,
            indexed: None,
            state: State::Handshake(VecDeque::new()),
            random: hello.map(|hello| *hello.random()),
            ahead: hello.map_or(0, Hello::ahead),
            heard: None,
            identity: None,
        };
        self.all.insert(key, session);
        true
    }
    fn remove(&mut self, key: Key) -> Option<Session> {
        self.handshakes.leave(&key);
        self.open.leave(&key);
        let mut session = self.all.remove(&key)?;
        if let Some(due) = session.indexed.take() {
            self.due.remove(&(due, key));
        }
        Some(session)
    }
    /// Brings the index up to date.
    fn index(&mut self, key: Key) {
        let Some(session) = self.all.get_mut(&key) else { return };
        let due = session.due();
        if session.indexed == due {
            return;
        }
        if let Some(before) = std::mem::replace(&mut session.indexed, due) {
            self.due.remove(&(before, key));
        }
        if let Some(due) = due {
            self.due.insert((due, key));
        }
    }
    /// Does something with a session, and then what it wants.
    fn with(
        &mut self,
        key: Key,
        now: Instant,
        act: impl FnOnce(&mut Session) -> Result<(), dimpl::Error>,
    ) {
        let Some(session) = self.all.get_mut(&key) else { return };
        if session.stalls_from().is_some_and(|stall| stall <= now) {
            let reason = "the DTLS handshake timed out".to_owned();
            return self.lose(key, LossCause::Handshake, reason);
        }
        let events = &mut self.events;
        let done = session
            .dtls
            .handle_timeout(now)
            .and_then(|()| session.drain(key.0, &mut self.buffer, events))
            .and_then(|_| act(session))
            .and_then(|()| session.drain(key.0, &mut self.buffer, events));
        match done {
            Ok(Outcome::Lives) => self.index(key),
            Ok(Outcome::Closed) => {
                self.lose(key, LossCause::Closed, "the peer has closed the session".to_owned());
            }
            Err(error) => {
                let cause = match (&session.state, session.heard) {
                    (State::Open, _) => LossCause::Closed,
                    (State::Handshake(_), Some(_)) => LossCause::Handshake,
                    (State::Handshake(_), None) => LossCause::Unheard,
                };
                self.lose(key, cause, error.to_string());
            }
        }
    }
    /// Nobody misses a session that was to replace one which still stands.
    fn lose(&mut self, key: Key, cause: LossCause, reason: String) {
        let lost = self.remove(key);
        if let (Some(session), (peer, Standing::Settled)) = (lost, key) {
            let identity = session.identity.filter(|_| cause == LossCause::Handshake);
            let reason = match identity {
                Some(one) => named(&reason, &one),
                None => reason,
            };
            self.events.push_back(Event::Lost { peer, cause, reason });
        }
    }
}

/// The places of sessions have no grace, so that they need no time.
const UNTIMED: lowmesh_units::Instant = lowmesh_units::Instant::ZERO;

/// RFC 6347 s4.2.1: the cookie has proven its address.
fn newcomer((peer, _): Key) -> Newcomer {
    Newcomer { source: Source::of(peer.address.ip()), proven: true }
}

/// A reason with the identity of the client. Octets that are no text do not reach a terminal.
fn named(reason: &str, identity: &[u8]) -> String {
    format!("{reason} (identity \"{}\")", identity.escape_ascii())
}

/// Content type of handshake records, and of ChangeCipherSpec among them (RFC 6347 s4.1).
const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;

fn is_handshake(record: &[u8]) -> bool {
    matches!(record.first(), Some(&HANDSHAKE | &CHANGE_CIPHER_SPEC))
}

fn configuration(keys: impl FnOnce(dimpl::ConfigBuilder) -> dimpl::ConfigBuilder) -> Arc<Config> {
    let builder = Config::builder()
        .mtu(DTLS_MTU)
        .flight_start_rto(HANDSHAKE_RTO)
        .handshake_timeout(HANDSHAKE_TIMEOUT)
        // RFC 7252 s9.1.3.1: TLS_PSK_WITH_AES_128_CCM_8, the one that must be implemented.
        .dtls12_cipher_suites(&[dimpl::crypto::Dtls12CipherSuite::PSK_AES128_CCM_8])
        .dtls13_cipher_suites(&[]);
    Arc::new(keys(builder).build().expect("all numbers are constants"))
}

#[cfg(test)]
mod tests;
