//! DTLS 1.2 with pre-shared keys (RFC 6347, RFC 4279; RFC 7252 s9.1.3.1): a session for each peer, between a socket
//! and a CoAP endpoint that both see datagrams.
//!
//! ```text
//!   endpoint -- send --> Sessions -- Event::Transmit --> socket
//!   endpoint <-- Event::Received -- Sessions <-- on_datagram -- socket
//! ```
//! The handshakes, records and their timers are dimpl's. Nothing here waits or reads a clock.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use dimpl::{Config, Dtls, Output, PskResolver};
use zeroize::Zeroizing;

use crate::params::{
    DTLS_MTU, HANDSHAKE_RTO, HANDSHAKE_STALL, HANDSHAKE_TIMEOUT, IDENTITY_LEN_MAX, KEY_LEN_MAX,
    SESSIONS_MAX, WAITING_MAX,
};
use crate::peer::Peer;

/// Pre-shared keys by identity; wiped when dropped, and never printed.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} identities)", self.0.len())
    }
}

/// Keys that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Longer than others take.
    #[error("an identity has at most {IDENTITY_LEN_MAX} octets")]
    Identity,
    /// Empty, or longer than others take.
    #[error("a pre-shared key has 1 to {KEY_LEN_MAX} octets")]
    Key,
}

impl Keys {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }
    /// The same with one more.
    pub fn with(mut self, identity: &[u8], key: &[u8]) -> Result<Self, KeyError> {
        if identity.len() > IDENTITY_LEN_MAX {
            return Err(KeyError::Identity);
        }
        if key.is_empty() || key.len() > KEY_LEN_MAX {
            return Err(KeyError::Key);
        }
        self.0.insert(identity.to_vec(), Zeroizing::new(key.to_vec()));
        Ok(self)
    }
}

impl PskResolver for Keys {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        self.0.get(identity).map(|key| key.to_vec())
    }
}

/// What comes of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Send this datagram.
    Transmit {
        /// To whom.
        to: Peer,
        /// Records.
        bytes: Vec<u8>,
    },
    /// A datagram came, and verifies.
    Received {
        /// From whom.
        from: Peer,
        /// What was in it.
        bytes: Vec<u8>,
    },
    /// A session ended without being asked to: nothing sent to the peer arrives.
    Lost {
        /// Which.
        peer: Peer,
        /// What it means.
        cause: LossCause,
        /// Why, for people.
        reason: String,
    },
}

/// What the loss of a session means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// The peer was not heard at all.
    Unheard,
    /// The peer shook hands, and did not come to an end: the keys do not fit.
    Handshake,
    /// It was open, or could have been, and has ended.
    Closed,
}

/// A session, by what it can do.
///
/// ```text
///   Handshake ── finished ──► Open ── an error, or the peer's close ──► gone
///       └── timeout, wrong key ──► gone
/// ```
struct Session {
    dtls: Dtls,
    deadline: Option<Instant>,
    state: State,
    /// What the client has drawn for this handshake; `None` if we are the client.
    random: Option<[u8; RANDOM_LEN]>,
    /// When the peer was heard first.
    heard: Option<Instant>,
    /// Grows with each use, so that the one used longest ago is known.
    used: u64,
}

enum State {
    /// What is to be sent waits.
    Handshake(VecDeque<Vec<u8>>),
    Open,
}

/// A peer may begin anew while its old session still stands, as after a restart. Until the new one is open the old one
/// stays, since anybody can send a ClientHello in its name (RFC 6347 s4.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Settled,
    Renewing,
}

type Key = (Peer, Standing);

/// All sessions of a socket.
pub struct Sessions {
    client: Option<Arc<Config>>,
    server: Option<Arc<Config>>,
    all: BTreeMap<Key, Session>,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
    uses: u64,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("peers", &self.all.keys()).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Sessions that we open, as `identity`.
    pub fn client(identity: &[u8], key: &[u8]) -> Result<Self, KeyError> {
        let keys = Arc::new(Keys::new().with(identity, key)?);
        let client = configuration(|builder| builder.with_psk_client(identity.to_vec(), keys));
        Ok(Self::new(Some(client), None))
    }
    /// Sessions that others open, who know one of the keys.
    pub fn server(keys: Keys, hint: Option<&[u8]>) -> Self {
        let (keys, hint) = (Arc::new(keys), hint.map(<[u8]>::to_vec));
        Self::new(None, Some(configuration(|builder| builder.with_psk_server(hint, keys))))
    }
    fn new(client: Option<Arc<Config>>, server: Option<Arc<Config>>) -> Self {
        let (all, events) = (BTreeMap::new(), VecDeque::new());
        Self { client, server, all, events, buffer: vec![0; 2 * DTLS_MTU], uses: 0 }
    }
    /// Sessions that are open or opening.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// True without any session.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The next thing that came of it.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    /// When [`Sessions::on_deadline`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.all.values().filter_map(Session::due).min()
    }
    /// Time has passed.
    pub fn on_deadline(&mut self, now: Instant) {
        let due = |(key, session): (&Key, &Session)| {
            session.due().is_some_and(|due| due <= now).then_some(*key)
        };
        let due: Vec<Key> = self.all.iter().filter_map(due).collect();
        for key in due {
            self.with(key, now, |_| Ok(()));
        }
    }
    /// A datagram came from the socket.
    pub fn on_datagram(&mut self, now: Instant, from: Peer, bytes: &[u8]) {
        let settled = (from, Standing::Settled);
        let key = match (hello(bytes), &self.server) {
            (Some(random), Some(config)) => {
                let config = config.clone();
                self.key_for_hello(now, from, random, config)
            }
            // A handshake goes on with its records; data is of the session that is open.
            _ if is_handshake(bytes) && self.all.contains_key(&(from, Standing::Renewing)) => {
                (from, Standing::Renewing)
            }
            _ => settled,
        };
        self.with(key, now, |session| {
            session.heard = session.heard.or(Some(now));
            session.dtls.handle_packet(bytes)
        });
        self.settle(from);
    }
    /// The session that a ClientHello belongs to, which may be a new one.
    fn key_for_hello(
        &mut self,
        now: Instant,
        from: Peer,
        random: [u8; RANDOM_LEN],
        config: Arc<Config>,
    ) -> Key {
        let [settled, renewing] = [(from, Standing::Settled), (from, Standing::Renewing)];
        let known = |key: &Key| self.all.get(key).is_some_and(|one| one.random == Some(random));
        if let Some(key) = [settled, renewing].into_iter().find(known) {
            return key;
        }
        let open = |session: &Session| matches!(session.state, State::Open);
        let key = if self.all.get(&settled).is_some_and(open) { renewing } else { settled };
        self.insert(key, Dtls::new_12_psk(config, now), Some(random));
        key
    }
    /// A renewed session that is open takes the place of the old one.
    fn settle(&mut self, peer: Peer) {
        let renewing = (peer, Standing::Renewing);
        if self.all.get(&renewing).is_some_and(|one| matches!(one.state, State::Open))
            && let Some(session) = self.all.remove(&renewing)
        {
            self.all.insert((peer, Standing::Settled), session);
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
    /// True while a peer shakes hands and the end has not come, as with keys that do not fit.
    pub fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.all.get(&(peer, Standing::Settled)).is_some_and(|session| {
            matches!(session.state, State::Handshake(_)) && session.heard.is_some()
        })
    }
    /// Ends all sessions in order.
    pub fn close(&mut self, now: Instant) {
        let keys: Vec<Key> = self.all.keys().copied().collect();
        for key in keys {
            self.with(key, now, |session| session.dtls.close());
            self.all.remove(&key);
        }
    }

    fn insert(&mut self, key: Key, dtls: Dtls, random: Option<[u8; RANDOM_LEN]>) {
        if self.all.len() >= SESSIONS_MAX {
            // A handshake that goes nowhere is given up before a session that works.
            let rank = |(_, session): &(&Key, &Session)| {
                (matches!(session.state, State::Open), session.used)
            };
            if let Some(oldest) = self.all.iter().min_by_key(rank).map(|(key, _)| *key) {
                self.lose(oldest, LossCause::Closed, "too many sessions".to_owned());
            }
        }
        let state = State::Handshake(VecDeque::new());
        let (deadline, heard, used) = (None, None, self.uses);
        self.all.insert(key, Session { dtls, deadline, state, random, heard, used });
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
            let reason = "the peer began the handshake and does not finish it".to_owned();
            return self.lose(key, LossCause::Handshake, reason);
        }
        self.uses += 1;
        session.used = self.uses;
        let events = &mut self.events;
        let done = session
            .dtls
            .handle_timeout(now)
            .and_then(|()| session.drain(key.0, &mut self.buffer, events))
            .and_then(|_| act(session))
            .and_then(|()| session.drain(key.0, &mut self.buffer, events));
        match done {
            Ok(Outcome::Lives) => {}
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
        self.all.remove(&key);
        if let (peer, Standing::Settled) = key {
            self.events.push_back(Event::Lost { peer, cause, reason });
        }
    }
}

/// What is left of a session after it has been drained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Lives,
    Closed,
}

impl Session {
    /// When something has to happen.
    fn due(&self) -> Option<Instant> {
        [self.deadline, self.stalls_from()].into_iter().flatten().min()
    }
    /// From when on our handshake has been without its end for too long.
    fn stalls_from(&self) -> Option<Instant> {
        let ours = matches!(self.state, State::Handshake(_)) && self.random.is_none();
        self.heard.filter(|_| ours).map(|heard| heard + HANDSHAKE_STALL)
    }
    /// Turns what dimpl wants into events. After the handshake sends what has waited.
    fn drain(
        &mut self,
        peer: Peer,
        buffer: &mut Vec<u8>,
        events: &mut VecDeque<Event>,
    ) -> Result<Outcome, dimpl::Error> {
        let mut outcome = Outcome::Lives;
        loop {
            match self.dtls.poll_output(buffer) {
                Output::Packet(bytes) => {
                    events.push_back(Event::Transmit { to: peer, bytes: bytes.to_vec() });
                }
                Output::ApplicationData(bytes) => {
                    events.push_back(Event::Received { from: peer, bytes: bytes.to_vec() });
                }
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Connected => {
                    if let State::Handshake(waiting) =
                        std::mem::replace(&mut self.state, State::Open)
                    {
                        for bytes in waiting {
                            self.dtls.send_application_data(&bytes)?;
                        }
                    }
                }
                Output::CloseNotify => outcome = Outcome::Closed,
                Output::Timeout(deadline) => {
                    self.deadline = Some(deadline);
                    return Ok(outcome);
                }
                // Certificates and keys for media, which pre-shared keys do without.
                _ => {}
            }
        }
    }
}

/// Content type of handshake records, and of ChangeCipherSpec among them (RFC 6347 s4.1).
const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;
/// Octets that a client draws for a handshake (RFC 5246 s7.4.1.2).
const RANDOM_LEN: usize = 32;

fn is_handshake(record: &[u8]) -> bool {
    matches!(record.first(), Some(&HANDSHAKE | &CHANGE_CIPHER_SPEC))
}

/// The client's random of a datagram that is a ClientHello in the clear (RFC 6347 s4.1 and s4.2.2).
///
/// ```text
///   | record header (13): type, version, epoch 0.. | handshake header (12): 1, .. | version (2) | random (32)
/// ```
fn hello(bytes: &[u8]) -> Option<[u8; RANDOM_LEN]> {
    const CLIENT_HELLO: u8 = 1;
    const EPOCH: std::ops::Range<usize> = 3..5;
    const MESSAGE_TYPE: usize = 13;
    const RANDOM: usize = 13 + 12 + 2;
    let in_the_clear = bytes.first() == Some(&HANDSHAKE) && bytes.get(EPOCH) == Some(&[0, 0]);
    let wanted = in_the_clear && bytes.get(MESSAGE_TYPE) == Some(&CLIENT_HELLO);
    bytes.get(RANDOM..)?.first_chunk().copied().filter(|_| wanted)
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
