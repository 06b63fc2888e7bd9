//! A CoAP endpoint on a UDP socket, with DTLS in between if there are keys.
//!
//! ```text
//!   application  ── handle(input) ──►  machine  ── Send ──►  (sessions)  ──►  socket
//!                ◄── next().await ──            ◄── Datagram ──
//! ```
//! The machine is that of the simulator: an `Endpoint`, or a `Host` above one.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Instant as SystemInstant;

use lowmesh_coap::exchange::{self, GroupInput};
use lowmesh_coap::{Endpoint, Host, Input, Output, PeerAddress as _, Transport};
use lowmesh_machine::{Machine, Rejected, debug_assert_accepted};
use lowmesh_units::Instant;

use crate::clock::Clock;
use crate::dtls::{Event, LossCause, Sessions};
use crate::params::{
    BATCH, LOSSES_MAX, READ_IN_A_ROW_MAX, SEND_TRIES, UNREACHABLE_MAX, UNREACHABLE_PERIOD,
    UNSENT_MAX, UNSENT_PER_SOURCE_MAX,
};
use crate::peer::Peer;
use crate::tap::{Direction, Tap, show};
use crate::udp::Udp;

/// What a driver can drive: exchanges over datagrams, or a host above them. No input of these is ever refused.
pub trait Datagrams: Machine {
    /// A datagram came, to this end alone or to a group that it belongs to.
    fn on_datagram(&mut self, now: Instant, from: Peer, bytes: &[u8], to_group: bool);
    /// The network says that a peer cannot be reached.
    fn on_unreachable(&mut self, now: Instant, peer: Peer);
    /// The DTLS session with a peer has ended, or another one has its place. If it `reopens`, the next message opens
    /// another one.
    fn on_session_end(&mut self, now: Instant, peer: Peer, reopens: bool);
    /// The time of [`Machine::next_deadline`] has come.
    fn on_deadline(&mut self, now: Instant);
    /// The datagram that an output wants sent, or else the output.
    fn datagram(output: Self::Output) -> Result<(Peer, Vec<u8>), Self::Output>;
    /// The peer whose session the machine ends with an output, because the peer is silent.
    fn silent(output: &Self::Output) -> Option<Peer>;
}

impl Datagrams for Endpoint<Peer> {
    fn on_datagram(&mut self, now: Instant, from: Peer, bytes: &[u8], to_group: bool) {
        let input = if to_group {
            exchange::Input::Group(GroupInput::Datagram { from, bytes })
        } else {
            exchange::Input::Datagram { from, bytes }
        };
        debug_assert_accepted(self.handle(now, input));
    }
    fn on_unreachable(&mut self, now: Instant, peer: Peer) {
        debug_assert_accepted(self.handle(now, exchange::Input::Unreachable { peer }));
    }
    fn on_session_end(&mut self, now: Instant, peer: Peer, reopens: bool) {
        let input = exchange::Input::SessionEnded { peer, reopens };
        debug_assert_accepted(self.handle(now, input));
    }
    fn on_deadline(&mut self, now: Instant) {
        debug_assert_accepted(self.handle(now, exchange::Input::Deadline));
    }
    fn datagram(output: Self::Output) -> Result<(Peer, Vec<u8>), Self::Output> {
        match output {
            exchange::Output::Send { to, bytes, .. } => Ok((to, bytes)),
            other => Err(other),
        }
    }
    fn silent(output: &Self::Output) -> Option<Peer> {
        match output {
            exchange::Output::SessionOver { peer } => Some(*peer),
            _ => None,
        }
    }
}

impl<T: Transport<Peer>> Datagrams for Host<Peer, T> {
    fn on_datagram(&mut self, now: Instant, from: Peer, bytes: &[u8], to_group: bool) {
        let input = if to_group {
            Input::Group(GroupInput::Datagram { from, bytes })
        } else {
            Input::Datagram { from, bytes }
        };
        debug_assert_accepted(self.handle(now, input));
    }
    fn on_unreachable(&mut self, now: Instant, peer: Peer) {
        debug_assert_accepted(self.handle(now, Input::Unreachable { peer }));
    }
    fn on_session_end(&mut self, now: Instant, peer: Peer, reopens: bool) {
        debug_assert_accepted(self.handle(now, Input::SessionEnded { peer, reopens }));
    }
    fn on_deadline(&mut self, now: Instant) {
        debug_assert_accepted(self.handle(now, Input::Deadline));
    }
    fn datagram(output: Self::Output) -> Result<(Peer, Vec<u8>), Self::Output> {
        match output {
            Output::Send { to, bytes, .. } => Ok((to, bytes)),
            other => Err(other),
        }
    }
    fn silent(output: &Self::Output) -> Option<Peer> {
        match output {
            Output::SessionOver { peer } => Some(*peer),
            _ => None,
        }
    }
}

/// Connects the machine `M` to a socket. Dropping it drops what has not been sent yet.
pub struct Driver<M: Machine> {
    udp: Udp,
    sessions: Option<Sessions>,
    machine: M,
    clock: Clock,
    /// The clock's time 0 to the microsecond, in the form that dimpl and tokio take.
    epoch: SystemInstant,
    unsent: VecDeque<(Peer, Vec<u8>)>,
    /// What is unsent has not been tried yet.
    deferred: bool,
    outputs: VecDeque<M::Output>,
    /// Datagrams that were read since the other tasks had their turn.
    read_in_a_row: usize,
    hints: Hints,
    lost: u64,
    losses: VecDeque<SessionLoss>,
    tap: Option<Tap>,
}

impl<M: Datagrams + fmt::Debug> fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// A DTLS session that ended by itself. The endpoint is told that its peer cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLoss {
    /// The peer.
    pub peer: Peer,
    /// What the loss means.
    pub cause: LossCause,
    /// Why, for people.
    pub reason: String,
}

impl<M: Datagrams> Driver<M> {
    /// A driver over plain UDP.
    #[allow(clippy::disallowed_methods, reason = "this is the driver's clock")]
    pub fn new(udp: Udp, machine: M) -> Self {
        let clock = Clock::start();
        Self {
            udp,
            sessions: None,
            machine,
            clock,
            epoch: SystemInstant::now(),
            unsent: VecDeque::new(),
            deferred: false,
            outputs: VecDeque::new(),
            read_in_a_row: 0,
            hints: Hints::default(),
            lost: 0,
            losses: VecDeque::new(),
            tap: None,
        }
    }
    /// A driver over DTLS.
    pub fn secure(udp: Udp, sessions: Sessions, machine: M) -> Self {
        Self { sessions: Some(sessions), ..Self::new(udp, machine) }
    }
    /// True over DTLS.
    pub const fn is_secure(&self) -> bool {
        self.sessions.is_some()
    }
    /// Passes every message to `tap`.
    pub fn tapped(self, tap: Option<Tap>) -> Self {
        Self { tap, ..self }
    }
    /// The socket, for joining groups or reading its port.
    pub const fn udp(&self) -> &Udp {
        &self.udp
    }
    /// The machine, for reading.
    pub const fn machine(&self) -> &M {
        &self.machine
    }
    /// Changes the machine other than by an input, and performs the resulting outputs.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut M) -> R) -> R {
        let result = change(&mut self.machine);
        self.work(self.clock.now());
        result
    }
    /// The time of the machine, for a change that asks for it.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// Number of datagrams lost because the queue was full.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// How the DTLS session with a peer was lost, if it was; of many losses that nobody asks for the oldest are forgotten.
    pub fn take_session_loss(&mut self, peer: Peer) -> Option<SessionLoss> {
        let place = self.losses.iter().position(|loss| loss.peer == peer)?;
        self.losses.remove(place)
    }
    /// The oldest failure of a DTLS handshake that nobody has asked for.
    pub fn take_failed_handshake(&mut self) -> Option<SessionLoss> {
        let place = self.losses.iter().position(|loss| loss.cause == LossCause::Handshake)?;
        self.losses.remove(place)
    }
    /// By which identity the client of a DTLS session is known.
    pub fn identity(&self, peer: Peer) -> Option<&[u8]> {
        self.sessions.as_ref()?.identity(peer)
    }
    /// True while the DTLS handshake with a peer that has answered is not complete.
    pub fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.is_shaking_hands(peer))
    }
    /// Passes an input to the machine, such as a request or a response. What it sends leaves at once, or, while
    /// [`Driver::poll`] has more to say, with what comes of that; [`Driver::next`] sends all before it waits.
    pub fn handle(&mut self, input: M::Input<'_>) -> Result<(), Rejected> {
        let now = self.clock.now();
        let result = self.machine.handle(now, input);
        self.work(now);
        result
    }
    /// The next event for the application, if there is one already.
    pub fn poll(&mut self) -> Option<M::Output> {
        self.outputs.pop_front()
    }
    /// Waits for the next event for the application. May be dropped and called again at any time.
    ///
    /// An error is one of the socket, after which nothing works any more.
    pub async fn next(&mut self) -> io::Result<M::Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Ok(output);
            }
            self.step().await?;
        }
    }
    /// Sends what is left, or waits for the socket or a deadline, and does what follows from it.
    pub(crate) async fn step(&mut self) -> io::Result<()> {
        if self.deferred {
            self.send(self.clock.now());
            return Ok(());
        }
        if self.read_in_a_row >= READ_IN_A_ROW_MAX {
            // A flood that never pauses would leave no time to the timers and the other tasks of this thread.
            self.read_in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let deadline = self.next_deadline();
        if deadline.is_some_and(|due| due <= self.clock.now()) {
            self.wake();
            self.work(self.clock.now());
            return Ok(());
        }
        let until = deadline.map(|due| tokio::time::Instant::from_std(self.system(due)));
        let sleep = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            readable = self.udp.readable() => { readable?; self.receive()?; }
            writable = self.udp.writable(), if !self.unsent.is_empty() => writable?,
            () = sleep => self.wake(),
        }
        self.work(self.clock.now());
        Ok(())
    }
    /// Sends what can be sent without waiting, and ends all sessions.
    pub fn close(mut self) {
        let now = self.clock.now();
        let at = self.system(now);
        if let Some(sessions) = &mut self.sessions {
            sessions.close(at);
        }
        self.exchange(now);
        self.send(now);
    }

    fn system(&self, then: Instant) -> SystemInstant {
        self.epoch + then.since(Instant::ZERO).into()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let handshakes = self
            .sessions
            .as_ref()
            .and_then(Sessions::next_deadline)
            .map(|due| Instant::ZERO + due.saturating_duration_since(self.epoch).into());
        handshakes.into_iter().chain(self.machine.next_deadline()).min()
    }
    fn wake(&mut self) {
        let now = self.clock.now();
        let at = self.system(now);
        if let Some(sessions) = &mut self.sessions {
            sessions.on_deadline(at);
        }
        if self.machine.next_deadline().is_some_and(|due| due <= now) {
            self.machine.on_deadline(now);
        }
    }
    /// Reads a batch.
    fn receive(&mut self) -> io::Result<()> {
        // The errors first, or they come instead of a datagram.
        let undelivered = self.udp.unreachable();
        self.read_in_a_row += undelivered.len();
        self.lose(&undelivered);
        let now = self.clock.now();
        let at = self.system(now);
        let (machine, sessions, tap) = (&mut self.machine, &mut self.sessions, self.tap.as_ref());
        let read_in_a_row = &mut self.read_in_a_row;
        let read = self.udp.receive(|arrival| {
            let (from, bytes) = (arrival.peer, arrival.bytes);
            *read_in_a_row += 1;
            if sessions.is_none() {
                show(tap, Direction::In, from, None, bytes);
            }
            match sessions {
                Some(sessions) => sessions.on_datagram(at, from, bytes),
                None => machine.on_datagram(now, from, bytes, arrival.to_group),
            }
        });
        match read {
            Err(error) if !is_of_a_peer(error.kind()) => Err(error),
            _ => Ok(()),
        }
    }
    /// Gives up peers that cannot be reached according to ICMP; true if there are any. Their number within a period is
    /// bounded, so that forged messages cannot keep us busy; timeouts find the others.
    fn lose(&mut self, addresses: &[SocketAddr]) -> bool {
        let now = self.clock.now();
        let mut any = false;
        for (place, address) in addresses.iter().enumerate() {
            // Several datagrams to the same peer have come to nothing.
            if addresses[..place].contains(address) {
                continue;
            }
            if !self.hints.take(now) {
                break;
            }
            if let Ok(peer) = self.udp.peer(*address) {
                self.unreachable(peer);
                any = true;
            }
        }
        any
    }
    /// The network says that a peer cannot be reached: of secure ones their sessions decide.
    fn unreachable(&mut self, peer: Peer) {
        match &mut self.sessions {
            Some(sessions) => sessions.on_unreachable(peer),
            None => self.give_up(peer),
        }
    }
    fn give_up(&mut self, peer: Peer) {
        let now = self.clock.now();
        self.machine.on_unreachable(now, peer);
    }
    /// Does what machine and sessions want until they want nothing. While there is more that the application has not seen,
    /// its answers wait for each other, to be sent with one call.
    fn work(&mut self, now: Instant) {
        let more = !self.outputs.is_empty();
        self.exchange(now);
        self.deferred = more && self.unsent.len() < BATCH;
        if !self.deferred {
            self.send(now);
        }
    }
    fn send(&mut self, now: Instant) {
        self.deferred = false;
        // A peer that cannot be reached may make them send something again.
        while self.flush() {
            self.exchange(now);
        }
    }
    fn exchange(&mut self, now: Instant) {
        let at = self.system(now);
        loop {
            let mut idle = true;
            while let Some(output) = self.machine.poll_output() {
                idle = false;
                match M::datagram(output) {
                    Ok((to, bytes)) => {
                        show(self.tap.as_ref(), Direction::Out, to, None, &bytes);
                        match &mut self.sessions {
                            Some(sessions) => sessions.send(at, to, &bytes),
                            None => self.queue(to, bytes),
                        }
                    }
                    Err(output) => {
                        if let (Some(peer), Some(sessions)) =
                            (M::silent(&output), &mut self.sessions)
                        {
                            sessions.end(at, peer);
                        }
                        self.outputs.push_back(output);
                    }
                }
            }
            while let Some(event) = self.sessions.as_mut().and_then(Sessions::poll_event) {
                idle = false;
                match event {
                    Event::Transmit { to, bytes } => self.queue(to, bytes),
                    Event::Received { from, bytes } => {
                        show(self.tap.as_ref(), Direction::In, from, None, &bytes);
                        self.machine.on_datagram(now, from, &bytes, false);
                    }
                    Event::Lost { peer, cause, reason } => {
                        if self.losses.len() == LOSSES_MAX {
                            self.losses.pop_front();
                        }
                        self.losses.push_back(SessionLoss { peer, cause, reason });
                        // A handshake that fails would fail again at once.
                        let opens = self.sessions.as_ref().is_some_and(Sessions::opens);
                        let reopens = opens && cause == LossCause::Closed;
                        self.machine.on_session_end(now, peer, reopens);
                    }
                    Event::Renewed { peer } => self.machine.on_session_end(now, peer, false),
                }
            }
            if idle {
                break;
            }
        }
    }
    fn queue(&mut self, to: Peer, bytes: Vec<u8>) {
        let unsent = &self.unsent;
        let of_source = || unsent.iter().filter(|(one, _)| one.source() == to.source()).count();
        let share = unsent.len() >= UNSENT_PER_SOURCE_MAX && of_source() >= UNSENT_PER_SOURCE_MAX;
        if unsent.len() < UNSENT_MAX && !share {
            self.unsent.push_back((to, bytes));
        } else {
            self.lost += 1;
        }
    }
    /// Sends what there is room for; true if that showed that a peer cannot be reached.
    fn flush(&mut self) -> bool {
        let (mut event, mut tries) = (false, 0);
        while let Some((to, _)) = self.unsent.front() {
            let to = *to;
            match self.udp.send(self.unsent.iter().map(|(to, bytes)| (*to, bytes.as_slice()))) {
                Ok(sent) => {
                    self.unsent.drain(..sent);
                    tries = 0;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What became of an earlier datagram is told in place of sending this one, and while others flood us, again
                // when it is tried again.
                Err(_) if tries < SEND_TRIES => {
                    let undelivered = self.udp.unreachable_now();
                    event |= self.lose(&undelivered);
                    tries += 1;
                    continue;
                }
                Err(error) if is_unreachable(error.kind()) => {
                    self.unreachable(to);
                    event = true;
                }
                // Too long for the path, or without permission: lost, as on the path.
                Err(_) => self.lost += 1,
            }
            self.unsent.pop_front();
            tries = 0;
        }
        event
    }
}

/// How many messages of ICMP have been followed in this period.
#[derive(Debug, Default)]
struct Hints {
    since: Instant,
    count: u32,
}

impl Hints {
    /// True if one more may be followed.
    fn take(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= UNREACHABLE_PERIOD.into() {
            *self = Self { since: now, count: 0 };
        }
        self.count += 1;
        self.count <= UNREACHABLE_MAX
    }
}

/// Errors that say something of one peer, and nothing of the socket.
fn is_of_a_peer(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) || is_unreachable(kind)
}

fn is_unreachable(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

#[cfg(test)]
mod tests;
