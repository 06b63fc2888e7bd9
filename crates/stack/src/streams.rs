//! TCP at a node, as one part: segments, writes and deadlines go in; segments, octets and the beginnings and ends of
//! connections come out (RFC 9293).
//!
//! ```text
//!            open, write, close                  Connected, Octets, Gone
//!                   v                                      ^
//!   Streams:  peer -> Stream { Connection, octets that wait for its send buffer }
//!                   v                                      ^
//!                Segment                               on_segment
//! ```
//! A connection is named by its peer's address and port. A SYN for the listening port makes one; any other segment
//! without a connection is answered with a reset. A connection that is over leaves the table at once, but for TIME-WAIT,
//! which ends early when its peer or this node needs the name again (RFC 6191).
//!
//! | bound | total | share of a peer's address | the next one |
//! |---|---|---|---|
//! | connections | [`StreamLimits::connections_max`] | [`StreamLimits::connections_per_address`] | an own request fails; a SYN gets a reset, or beyond a share replaces another one of its address |
//! | handshakes that a peer has not finished | a quarter of all, at least 16 | as for connections, and one | replaces the oldest |
//! | octets that wait for a send buffer | [`StreamLimits::waiting_octets_max`] a connection | its own connection | the connection is aborted |
//! | buffers of a connection | those of its [`Profile`] | its own connection | see `lowmesh-tcp` |
//! | octets that all hold | [`StreamLimits::octets_max`] | [`StreamLimits::octets_per_address`] | see `bounds` |
//!
//! A peer that is gone keeps its place until keep-alive gives it up, or for a minute in FIN-WAIT-2. A peer that was restarted
//! gets through at once: beyond the share of an address, a SYN replaces the oldest unfinished handshake of that address, and
//! the end of a handshake, which proves the address, the established connection that has been silent longest.
//!
//! An accepted connection is not read while half of its waiting octets are taken, so a peer that asks and does not read
//! the answers is slowed down by its own window.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use lowmesh_ipv6::event::Segment as Received;
use lowmesh_machine::{DropReason, Machine as _, Outbox, debug_assert_accepted, earliest};
pub use lowmesh_tcp::SendCounters;
use lowmesh_tcp::{
    Config, ConfigError, Connection, Ending, InitialNumbers, Input, Output as Done, Profile, State,
    Transmit, reset_for,
};
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::tcp::{Ends, Header, Segment};

use crate::event::{Class, Peer};
use crate::params::{COAP_PORT, EPHEMERAL_PORTS, STREAM_FIN_WAIT, STREAM_KEEP_ALIVE};

pub use bounds::StreamLimits;

mod bounds;
#[cfg(test)]
mod tests;

/// What the part has to say.
#[derive(Debug)]
pub(crate) enum Output {
    /// Send a segment.
    Segment { source: Address, to: Address, octets: Vec<u8>, class: Class },
    /// A connection is there; this end or its peer opened it.
    Connected { peer: Peer },
    /// Octets have come.
    Octets { peer: Peer, octets: Vec<u8> },
    /// A connection is over, or there is none; nothing more comes or goes.
    Gone { peer: Peer, reason: DropReason },
}

/// What TCP did at a node, all its connections together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StreamCounters {
    /// Connections that were established.
    pub established: u64,
    /// Segments that did not decode, or whose checksum is wrong.
    pub malformed: u64,
    /// Segments that were answered with a reset.
    pub refused: u64,
    /// Segments with data of which every octet had arrived before.
    pub repeats: u64,
    /// What the senders counted.
    pub sent: SendCounters,
}

/// One connection.
struct Stream {
    connection: Box<Connection>,
    own_address: Address,
    own_port: u16,
    /// When it came into the table.
    since: Instant,
    /// This end opened it.
    is_own: bool,
    /// Octets for the send buffer.
    waiting: VecDeque<u8>,
    /// It is to be closed when they have left.
    closes: bool,
    /// When it ends for lack of the peer's FIN.
    fin_wait: Option<Instant>,
    /// Octets that it held when it was last quiet.
    held: usize,
    /// When the part is to call it.
    due: Option<Instant>,
}

/// The connections of a node.
pub(crate) struct Streams {
    profile: Profile,
    limits: StreamLimits,
    rng: Rng,
    secret: [u8; 32],
    next_port: u16,
    all: BTreeMap<Peer, Stream>,
    deadlines: BTreeSet<(Instant, Peer)>,
    /// Connections whose peers have not finished the handshake, the oldest first.
    half_open: BTreeSet<(Instant, Peer)>,
    /// Octets that all connections hold.
    held: usize,
    counters: StreamCounters,
    outbox: Outbox<Output>,
}

impl Streams {
    /// No connections; `rng` is a stream of purpose `Tcp`.
    pub fn new(profile: Profile, limits: StreamLimits, mut rng: Rng) -> Result<Self, ConfigError> {
        profile.check()?;
        let mut secret = [0; 32];
        rng.fill(&mut secret);
        let ports = u32::from(EPHEMERAL_PORTS.1 - EPHEMERAL_PORTS.0) + 1;
        let next_port = EPHEMERAL_PORTS.0 + rng.below(ports) as u16;
        Ok(Self {
            profile,
            limits,
            rng,
            secret,
            next_port,
            all: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            half_open: BTreeSet::new(),
            held: 0,
            counters: StreamCounters::default(),
            outbox: Outbox::new(),
        })
    }
    /// What it counted, with the senders of connections that there are.
    pub fn counters(&self) -> StreamCounters {
        let mut counters = self.counters;
        for stream in self.all.values() {
            counters.sent.merge(&stream.connection.counters());
            counters.repeats += stream.connection.repeats();
        }
        counters
    }
    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Connects `own_address` to a peer. [`Output::Gone`] says when that is not possible.
    pub fn open(&mut self, now: Instant, own_address: Address, peer: Peer) {
        let resting = |stream: &Stream| stream.connection.state() == State::TimeWait;
        if self.all.get(&peer).is_some_and(resting) {
            self.remove(peer);
        }
        if self.all.contains_key(&peer) {
            return;
        }
        if !self.takes(peer) {
            self.outbox.push(Output::Gone { peer, reason: DropReason::QueueFull });
            return;
        }
        let own_port = self.ephemeral_port();
        self.insert(now, (own_address, own_port), peer, true);
        self.input(now, peer, Input::Open);
    }
    /// Sends octets to a peer; those that do not fit into the send buffer wait.
    pub fn write(&mut self, now: Instant, peer: Peer, octets: &[u8]) {
        let limit = self.limits.waiting_octets_max;
        let Some(stream) = self.all.get_mut(&peer) else { return };
        stream.waiting.extend(octets);
        self.settle(now, peer);
        if self.all.get(&peer).is_some_and(|stream| stream.waiting.len() > limit) {
            // The peer does not take what it asked for.
            self.input(now, peer, Input::Abort);
        }
        self.keep_bounds(now, peer.0);
    }
    /// Ends a connection in order, behind the octets that wait.
    pub fn close(&mut self, now: Instant, peer: Peer) {
        if let Some(stream) = self.all.get_mut(&peer) {
            stream.closes = true;
            self.settle(now, peer);
        }
    }
    /// Calls every connection whose deadline has come.
    pub fn deadline(&mut self, now: Instant) {
        while let Some((_, peer)) = self.deadlines.first().copied().filter(|(due, _)| *due <= now) {
            let fin_wait = self.all.get(&peer).and_then(|stream| stream.fin_wait);
            let is_over = fin_wait.is_some_and(|at| at <= now);
            self.input(now, peer, if is_over { Input::Abort } else { Input::Deadline });
        }
    }
    /// A segment came to this node.
    pub fn on_segment(&mut self, now: Instant, received: &Received) {
        self.on_octets(now, received.source, received.destination, received.octets());
        self.keep_bounds(now, received.source);
    }
    fn on_octets(&mut self, now: Instant, source: Address, destination: Address, octets: &[u8]) {
        let ends = Ends::V6(source, destination);
        let Ok(Segment { header, payload }) = Segment::parse(&ends, octets) else {
            self.counters.malformed += 1;
            return;
        };
        let own = (destination, header.destination_port);
        let peer = (source, header.source_port);
        let of_peer = self.all.get(&peer).filter(|one| (one.own_address, one.own_port) == own);
        let yields = of_peer.is_some_and(|one| one.connection.yields_to(&header));
        if of_peer.is_some() && !yields {
            return self.input(now, peer, Input::Segment { header: &header, payload });
        }
        if yields {
            self.remove(peer);
        }
        if self.accepts(own.1, peer, &header) {
            self.admit_half_open(now, peer);
            self.insert(now, own, peer, false);
            self.input(now, peer, Input::Listen);
            return self.input(now, peer, Input::Segment { header: &header, payload });
        }
        if let Some(reset) = reset_for(&header, payload) {
            self.counters.refused += 1;
            self.send(own.0, peer.0, &reset, Class::Response);
        }
    }

    /// Whether a segment that belongs to no connection makes one.
    fn accepts(&self, own_port: u16, peer: Peer, header: &Header) -> bool {
        let control = header.control;
        let opens = control.syn && !control.ack && !control.rst;
        opens && own_port == COAP_PORT && !self.all.contains_key(&peer) && self.takes_call(peer)
    }
    /// Notes a connection whose handshake begins. The oldest ones give way; their peers get a reset if they go on.
    fn admit_half_open(&mut self, now: Instant, peer: Peer) {
        if let Some(displaced) = self.displaced(peer) {
            self.remove(displaced);
        }
        while self.half_open.len() >= self.limits.half_open_max() {
            let Some((_, oldest)) = self.half_open.pop_first() else { break };
            self.remove(oldest);
        }
        self.half_open.insert((now, peer));
    }
    /// Aborts connections until the share of an address and the total are kept.
    fn keep_bounds(&mut self, now: Instant, address: Address) {
        while self.held_by(address) > self.limits.octets_per_address {
            self.abort_largest(now, address);
        }
        while self.held > self.limits.octets_max {
            let Some(largest) = self.largest_address() else { break };
            self.abort_largest(now, largest);
        }
    }
    fn abort_largest(&mut self, now: Instant, address: Address) {
        let Some(peer) = self.largest_of(address) else { return };
        self.input(now, peer, Input::Abort);
        self.remove(peer);
    }
    fn ephemeral_port(&mut self) -> u16 {
        // RFC 6335 s6: a peer's name has one connection, so a port that is used twice has two peers.
        let port = self.next_port;
        let (first, last) = EPHEMERAL_PORTS;
        self.next_port = if port >= last { first } else { port + 1 };
        port
    }
    fn insert(&mut self, now: Instant, own: Peer, peer: Peer, is_own: bool) {
        let (own_address, own_port) = own;
        let ends = Ends::V6(own_address, peer.0);
        let numbers = InitialNumbers::of(&self.secret, &ends, (own_port, peer.1), now);
        let asks = if is_own { None } else { Some(STREAM_KEEP_ALIVE) };
        let profile = Profile { keep_alive: self.profile.keep_alive.or(asks), ..self.profile };
        let config = Config { initial: Some(numbers), ..Config::new(profile, own_port, peer.1) };
        let connection = Connection::new(config, &mut self.rng).expect("the profile was checked");
        let connection = Box::new(connection);
        let stream = Stream {
            connection,
            own_address,
            own_port,
            since: now,
            is_own,
            waiting: VecDeque::new(),
            closes: false,
            fin_wait: None,
            held: 0,
            due: None,
        };
        self.all.insert(peer, stream);
    }
    fn remove(&mut self, peer: Peer) {
        let Some(stream) = self.all.remove(&peer) else { return };
        if let Some(due) = stream.due {
            self.deadlines.remove(&(due, peer));
        }
        self.half_open.remove(&(stream.since, peer));
        self.held -= stream.held;
        self.counters.sent.merge(&stream.connection.counters());
        self.counters.repeats += stream.connection.repeats();
    }

    /// Gives a connection an input that its state allows, and does what it wants.
    fn input(&mut self, now: Instant, peer: Peer, input: Input<'_>) {
        let Some(stream) = self.all.get_mut(&peer) else { return };
        debug_assert_accepted(stream.connection.handle(now, input));
        self.settle(now, peer);
    }
    /// Takes the outputs of a connection, reads and writes, until it is quiet; then notes its deadline.
    fn settle(&mut self, now: Instant, peer: Peer) {
        while let Some(stream) = self.all.get_mut(&peer) {
            if let Some(done) = stream.connection.poll_output() {
                self.take(now, peer, done);
            } else if !stream.advance(now, self.limits.waiting_octets_max) {
                let held = stream.waiting.len() + stream.connection.held();
                self.held = self.held - stream.held + held;
                stream.held = held;
                let rests = stream.connection.state() == State::FinWait2;
                stream.fin_wait = rests.then(|| stream.fin_wait.unwrap_or(now + STREAM_FIN_WAIT));
                let due = earliest(stream.connection.next_deadline(), stream.fin_wait);
                if due != stream.due {
                    let old = core::mem::replace(&mut stream.due, due);
                    old.map(|old| self.deadlines.remove(&(old, peer)));
                    due.map(|due| self.deadlines.insert((due, peer)));
                }
                return;
            }
        }
    }
    fn take(&mut self, now: Instant, peer: Peer, done: Done) {
        match done {
            Done::Segment(segment) => {
                let Some(stream) = self.all.get(&peer) else { return };
                let class = if stream.is_own { Class::Request } else { Class::Response };
                self.send(stream.own_address, peer.0, &segment, class);
            }
            Done::Established => {
                self.counters.established += 1;
                if let Some(stream) = self.all.get(&peer) {
                    self.half_open.remove(&(stream.since, peer));
                }
                // The place is free before the newcomer is announced: users of both count connections, too.
                if let Some(surplus) = self.surplus(peer) {
                    self.input(now, surplus, Input::Abort);
                }
                if self.all.contains_key(&peer) {
                    self.outbox.push(Output::Connected { peer });
                }
            }
            Done::Data(octets) => self.outbox.push(Output::Octets { peer, octets }),
            Done::Closed(ending) => {
                let reason = match ending {
                    Ending::Finished | Ending::Aborted => DropReason::NoRoute,
                    Ending::Refused | Ending::Reset => DropReason::Reset,
                    Ending::TimedOut => DropReason::GaveUp,
                };
                self.remove(peer);
                self.outbox.push(Output::Gone { peer, reason });
            }
            // A peer that closes its half is not answered any more: `advance` closes ours. CoAP knows no half-closed
            // connection; a peer that wants answers first sends Release (RFC 8323 s5.5).
            Done::Readable | Done::PeerClosed => {}
        }
    }
    fn send(&mut self, source: Address, to: Address, segment: &Transmit, class: Class) {
        let mut octets = Vec::new();
        let segment = Segment { header: segment.header, payload: &segment.payload };
        segment.emit(&Ends::V6(source, to), &mut octets);
        self.outbox.push(Output::Segment { source, to, octets, class });
    }
}

impl Stream {
    /// Reads, writes or closes once; false if there is nothing to do.
    fn advance(&mut self, now: Instant, waiting_max: usize) -> bool {
        let connection = &mut self.connection;
        let may_read = self.is_own || self.waiting.len() < waiting_max.div_ceil(2);
        if may_read && connection.readable() > 0 {
            debug_assert_accepted(connection.handle(now, Input::Read(usize::MAX)));
            return true;
        }
        let count = connection.room().min(self.waiting.len());
        if count > 0 {
            let octets: Vec<u8> = self.waiting.drain(..count).collect();
            debug_assert_accepted(connection.handle(now, Input::Write(&octets)));
            return true;
        }
        let ends = match connection.state() {
            State::SynSent | State::SynReceived | State::Established => self.closes,
            State::CloseWait => true,
            _ => false,
        };
        if ends && self.waiting.is_empty() {
            self.closes = false;
            debug_assert_accepted(connection.handle(now, Input::Close));
            return true;
        }
        false
    }
}

impl core::fmt::Debug for Streams {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Streams").field("connections", &self.all.len()).finish_non_exhaustive()
    }
}
