//! One connection as a transport: messages to and from its host, and how long its peer may take for each step.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

use futures_util::FutureExt as _;
use lowmesh_coap::blockwise::Block;
use lowmesh_coap::exchange::ConnectionInput;
use lowmesh_coap::{
    ConfigError, CongestionControl, Connections, Host, IncomingId, Input, Output, ResponseTemplate,
};
use lowmesh_machine::{Handle, Machine as _, Rejected, debug_assert_accepted, earliest};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Token};

use super::Transport;
use crate::clock::Clock;
use crate::metrics::{Kind, Report};
use crate::oscore::Protected;
use crate::params::{
    CLIENT_SILENCE, HANDSHAKE_MAX, OUTGOING_MAX, PONG_MAX, RELEASE_MAX, REQUEST_OVERHEAD,
};
use crate::peer::Peer;
use crate::server::{Kept, Place};
use crate::stream::StreamError;
use crate::stream_transport::StreamTransport;
use crate::tap::{Direction, Tap, show};

/// A line has whole messages, as WebSockets have, whatever it is made of.
const FRAMING: Framing = Framing::WebSocket;

type ConnectionHost = Host<Peer, Protected<Peer, Connections<Peer>>>;

/// The transport over one connection.
pub(crate) struct Connected {
    line: StreamTransport,
    peer: Peer,
    host: ConnectionHost,
    clock: Clock,
    /// What the application has not seen yet.
    outputs: VecDeque<Output<Peer>>,
    /// Since when octets have waited for the peer without a moment in which none did.
    unsent_since: Option<Instant>,
    /// Octets of responses and signals that were queued since the line was last empty.
    answering: usize,
    /// Until when a connection that is being released may last.
    leaves: Option<Instant>,
    /// The peer does not read and its place is another's, so nothing more is sent.
    cut: bool,
    guard: Option<Guard>,
    due: Due,
    /// Since when the peer's CSM is awaited.
    greeting: Option<Instant>,
    tap: Option<Tap>,
}

/// How long a server waits for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For its next message.
    pub(crate) silence: std::time::Duration,
    /// For its answer to a Ping.
    pub(crate) pong: std::time::Duration,
    /// Until it has read what is queued for it.
    pub(crate) sending: std::time::Duration,
}

/// What a server keeps of a client to bound it.
struct Guard {
    silence: Duration,
    pong: Duration,
    sending: Duration,
    place: Place,
    kept: Kept,
    /// The request that the application sees now, and what it costs if that takes time.
    asked: Option<(IncomingId, usize)>,
    /// What requests cost that take the application time.
    deferred: BTreeMap<IncomingId, usize>,
    /// The client has sent its CSM.
    greeted: bool,
    /// When its silence is too long.
    until: Instant,
    /// It was asked whether it is there.
    pinged: bool,
}

/// How long a client waits where an answer is due. A server that has lost its power cannot end the connection, and the
/// system would repeat its segments for a quarter of an hour.
///
/// ```text
///   request ── silence ──► Ping ── pong ──► the connection is over
/// ```
#[derive(Debug)]
struct Due {
    /// Since when an answer has been due and nothing has come.
    since: Option<Instant>,
    /// The server was asked since then whether it is there.
    pinged: bool,
    silence: Duration,
    pong: Duration,
}

impl Default for Due {
    fn default() -> Self {
        let (silence, pong) = (CLIENT_SILENCE.into(), PONG_MAX.into());
        Self { since: None, pinged: false, silence, pong }
    }
}

impl Due {
    /// When the Ping leaves, or the connection ends.
    fn next_deadline(&self) -> Option<Instant> {
        let wait = if self.pinged { self.silence + self.pong } else { self.silence };
        Some(self.since? + wait)
    }
}

/// What the line has done.
enum Moved {
    In(Result<StreamMessage, StreamError>),
    Out(io::Result<()>),
}

impl Connected {
    /// Greets the peer at the other end of `line`.
    pub(crate) fn new(line: StreamTransport, host: ConnectionHost) -> Self {
        let (peer, mut host, clock) = (Peer::new(line.peer, None), host, Clock::start());
        let greeting = Input::Connection(ConnectionInput::Connected { peer, framing: FRAMING });
        debug_assert_accepted(host.handle(clock.now(), greeting));
        Self {
            line,
            peer,
            host,
            clock,
            outputs: VecDeque::new(),
            unsent_since: None,
            answering: 0,
            leaves: None,
            cut: false,
            guard: None,
            due: Due::default(),
            greeting: Some(clock.now()),
            tap: None,
        }
    }
    /// Shows every message to `tap`.
    pub(crate) fn tapped(self, tap: Option<Tap>) -> Self {
        Self { tap, ..self }
    }
    /// The peer is a client of a server, which has bounds.
    pub(crate) fn served(mut self, patience: Patience, place: Place, kept: Kept) -> Self {
        let Patience { silence, pong, sending } = patience;
        let (silence, pong, sending) = (silence.into(), pong.into(), sending.into());
        let until = self.clock.now() + silence;
        let (greeted, pinged) = (false, false);
        let (asked, deferred) = (None, BTreeMap::new());
        self.guard = Some(Guard {
            silence,
            pong,
            sending,
            place,
            kept,
            asked,
            deferred,
            greeted,
            until,
            pinged,
        });
        self
    }
    /// Sends what is left, and closes. A connection that is cut is dropped with what is left.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        if self.cut {
            return Ok(());
        }
        self.drain();
        self.line.flush().await?;
        self.line.close().await
    }

    /// Requests of the peer that are being answered, or observations.
    fn is_busy(&self) -> bool {
        self.host.observers() > 0 || self.host.transport().transport().incoming() > 0
    }
    /// Takes the outputs of the host. Notifications have the room that other messages leave.
    fn drain(&mut self) {
        self.take_outputs();
        self.host.set_room(self.room(), self.clock.now());
        self.take_outputs();
        self.await_answers();
        let (busy, octets) = (self.is_busy(), self.host.body_octets());
        let observers = self.host.observers();
        if let Some(guard) = &mut self.guard {
            guard.place.set_busy(busy);
            guard.kept.set_bodies(octets);
            guard.kept.set_observers(observers);
        }
    }
    /// Notes since when an answer is due. A request that is cancelled stays due until the peer is heard, so that callers
    /// of little patience do not keep a dead connection.
    fn await_answers(&mut self) {
        if self.guard.is_none() && self.host.transport().transport().open() > 0 {
            let now = self.clock.now();
            self.due.since.get_or_insert(now);
        }
    }
    /// Octets that may be queued for the peer.
    fn room(&self) -> usize {
        let waiting = self.line.waiting();
        let room = self.guard.as_ref().map_or(usize::MAX, |one| one.kept.outgoing_room(waiting));
        room.min(OUTGOING_MAX.saturating_sub(waiting))
    }
    /// Messages go to the line, the rest to the application.
    fn take_outputs(&mut self) {
        while let Some(output) = self.host.poll_output() {
            match output {
                Output::Send { bytes, .. } => {
                    show(self.tap.as_ref(), Direction::Out, self.peer, Some(FRAMING), &bytes);
                    let message = StreamMessage::parse(&bytes, FRAMING);
                    self.queue(&message.expect("a host sends whole messages"));
                }
                other => self.outputs.push_back(other),
            }
        }
        if let Some(guard) = &mut self.guard {
            guard.kept.set_outgoing(self.line.waiting());
        }
    }
    /// A response may register an observer, if there is room among those of all connections.
    fn admit_observer(&mut self, input: &Input<'_, Peer>) {
        let Some(guard) = &mut self.guard else { return };
        if let Input::Respond { exchange, response, .. } = input
            && !exchange.is_refresh()
            && response.options.get(OptionNumber::OBSERVE).is_some()
        {
            let room = guard.kept.admit_observer();
            // One that registers again keeps its place.
            self.host.set_observers_max(self.host.observers() + usize::from(room));
        }
    }
    fn queue(&mut self, message: &StreamMessage) {
        let before = self.line.waiting();
        self.line.queue(message);
        if message.code.class() != Class::Request {
            self.answering += self.line.waiting().saturating_sub(before);
        }
        let now = self.clock.now();
        self.unsent_since.get_or_insert(now);
    }
    /// If it could be sent, nothing waits for the peer.
    fn sent(&mut self, sent: io::Result<()>) -> io::Result<()> {
        sent?;
        (self.unsent_since, self.answering) = (None, 0);
        Ok(())
    }
    /// A client reads while its requests leave: a server that does not read before its answers are read would wait for it,
    /// and it for the server. What it answers to the server is bounded by [`OUTGOING_MAX`].
    fn reads_while_it_sends(&self) -> bool {
        self.guard.is_none() && self.answering < OUTGOING_MAX
    }
    /// Releases the peer, which has [`RELEASE_MAX`] to end what it has begun.
    fn leave(&mut self) {
        self.leaves.get_or_insert(self.clock.now() + RELEASE_MAX.into());
        self.release();
    }
    /// The place is another's. A peer that reads is released; one that does not is cut, so that it leaves at once.
    fn on_evicted(&mut self) -> io::Result<()> {
        self.leave();
        // Outside the task's budget, whose end looks like a peer that does not read.
        let flush = tokio::task::unconstrained(self.line.flush()).now_or_never();
        self.cut = flush.is_none();
        match flush {
            Some(sent) => self.sent(sent),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")),
        }
    }
    /// Until when the peer may go without reading.
    fn sending_until(&self) -> Option<Instant> {
        Some(self.unsent_since? + self.guard.as_ref()?.sending)
    }
    fn next_deadline(&self) -> Option<Instant> {
        let silent = self.guard.as_ref().map(|guard| guard.until);
        let silent = earliest(silent, self.due.next_deadline());
        let ours = earliest(earliest(self.sending_until(), silent), self.leaves);
        earliest(self.host.next_deadline(), ours)
    }
    fn on_deadline(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let is_past = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        if is_past(self.sending_until()) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read"));
        }
        if is_past(self.leaves) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the peer does not close the connection",
            ));
        }
        if is_past(self.guard.as_ref().map(|guard| guard.until)) {
            self.on_silence(now);
        }
        if is_past(self.due.next_deadline()) {
            if self.due.pinged {
                let silent = Silent((self.due.silence + self.due.pong).into());
                return Err(io::Error::new(io::ErrorKind::TimedOut, silent));
            }
            // RFC 8323 s5.4: a peer that is there answers at once, however long it takes over the request.
            self.due.pinged = true;
            let ping = Input::Ping { peer: self.peer, handle: Handle::NONE };
            debug_assert_accepted(self.handle(ping));
        }
        debug_assert_accepted(self.handle(Input::Deadline));
        Ok(())
    }
    fn on_silence(&mut self, now: Instant) {
        let (observes, busy) = (self.host.observers() > 0, self.is_busy());
        let Some(guard) = &mut self.guard else { return };
        guard.until = now + guard.silence;
        match (observes, busy, guard.pinged) {
            (true, _, false) => {
                // An observer is silent because nothing changes, or because it is gone: a Ping tells (RFC 8323 s5.4).
                guard.pinged = true;
                guard.until = now + guard.pong;
                let ping = Input::Ping { peer: self.peer, handle: Handle::NONE };
                debug_assert_accepted(self.handle(ping));
            }
            // The answer is ours to make.
            (false, true, _) => {}
            (true, _, true) | (false, false, _) => self.leave(),
        }
    }
    /// A message of the peer has been dealt with.
    fn heard(&mut self) {
        let now = self.clock.now();
        let connections = self.host.transport().transport();
        let (is_open, waits) = (connections.is_open(self.peer), connections.open() > 0);
        self.due.since = (self.guard.is_none() && waits).then_some(now);
        self.due.pinged = false;
        let Some(guard) = &mut self.guard else { return };
        guard.until = now + guard.silence;
        guard.pinged = false;
        guard.place.heard();
        guard.kept.heard();
        if is_open && !guard.greeted {
            guard.greeted = true;
            if !guard.place.serve() {
                self.leave();
            }
        }
    }
    fn on_message(&mut self, message: Result<StreamMessage, StreamError>) -> io::Result<()> {
        let greeted = self.greeting.is_none();
        match message {
            Ok(message) => {
                let mut bytes = Vec::new();
                message.emit(FRAMING, &mut bytes);
                show(self.tap.as_ref(), Direction::In, self.peer, Some(FRAMING), &bytes);
                match message.code {
                    Code::CSM => self.greeting = None,
                    // RFC 8323 s3.4: an Empty message can always be sent.
                    Code::EMPTY => {}
                    // RFC 8323 s5.3: a missing or invalid CSM is a connection error.
                    _ if !greeted => {
                        self.abort("the first message is not a CSM");
                        return Err(not_coap("the first message is not a CSM"));
                    }
                    _ => {}
                }
                debug_assert_accepted(
                    self.handle(Input::Datagram { from: self.peer, bytes: &bytes }),
                );
                self.heard();
                Ok(())
            }
            Err(StreamError::Malformed(error)) => {
                self.abort(&error.to_string());
                Err(if greeted {
                    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
                } else {
                    not_coap("the first octets are not a CSM")
                })
            }
            Err(StreamError::Slow) => {
                self.abort(&StreamError::Slow.to_string());
                Err(io::Error::new(io::ErrorKind::TimedOut, StreamError::Slow))
            }
            Err(StreamError::Closed | StreamError::Broken(_)) if !greeted => {
                Err(not_coap("the connection ended without a CSM"))
            }
            Err(StreamError::Closed) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(StreamError::Broken(error)) => Err(error),
        }
    }
    /// RFC 8323 s5.6: an end that cannot go on says why in an Abort.
    fn abort(&mut self, diagnostic: &str) {
        let abort = Signal::Abort { bad_csm_option: None, diagnostic: diagnostic.to_owned() };
        self.line.queue(&abort.into_message(Token::EMPTY));
    }
    /// Waits for the line, a deadline, or the loss of the place or the bodies.
    async fn step(&mut self) -> io::Result<()> {
        let due = self.next_deadline().map(|due| self.clock.until(due));
        let sleep = async {
            match due {
                Some(due) => tokio::time::sleep(due).await,
                None => std::future::pending().await,
            }
        };
        let reads = self.reads_while_it_sends();
        let (line, guard, stays) = (&mut self.line, self.guard.as_ref(), self.leaves.is_none());
        let evicted = async {
            match guard.filter(|_| stays) {
                Some(guard) => guard.place.evicted().await,
                None => std::future::pending().await,
            }
        };
        let lost = async {
            match guard {
                Some(guard) => guard.kept.lost().await,
                None => std::future::pending().await,
            }
        };
        let moved = moved(line, reads);
        tokio::select! {
            moved = moved => match moved {
                Moved::In(message) => self.on_message(message)?,
                Moved::Out(sent) => self.sent(sent)?,
            },
            () = evicted => self.on_evicted()?,
            () = lost => {
                self.host.forget_bodies();
                self.drain();
            }
            () = sleep => self.on_deadline()?,
        }
        Ok(())
    }
}

/// The peer is silent although an answer is due, and a Pong.
#[derive(Debug, thiserror::Error)]
#[error("nothing has come for {} s, not even an answer to a Ping", .0.as_secs())]
pub(crate) struct Silent(pub(crate) std::time::Duration);

/// What the line does next. A peer that does not read its answers is not read either (back-pressure), unless this end
/// `reads` while it sends. It is cancel-safe, as are the functions that it calls.
async fn moved(line: &mut StreamTransport, reads: bool) -> Moved {
    poll_fn(|context| {
        if !line.is_flushed() {
            if let Poll::Ready(sent) = pin!(line.flush()).poll(context) {
                return Poll::Ready(Moved::Out(sent));
            }
            if !reads {
                return Poll::Pending;
            }
        }
        pin!(line.receive()).poll(context).map(Moved::In)
    })
    .await
}

/// Octets that a request takes while the application works on it.
fn cost(request: &Message) -> usize {
    REQUEST_OVERHEAD + request.options.as_bytes().len() + request.payload.len()
}

/// The error of a peer that does not send a CSM first (RFC 8323 s5.3).
fn not_coap(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, misgreeting(what))
}

/// The message for a peer that does not send a CSM first: what it did, and what that means.
pub(crate) fn misgreeting(what: &str) -> String {
    format!("{what} (RFC 8323 s5.3); it speaks another protocol, or none")
}

impl Transport for Connected {
    fn poll(&mut self) -> Option<Output<Peer>> {
        self.drain();
        // What a client hears makes room: it is what the other end waits for.
        let takes = self.has_room() || self.reads_while_it_sends();
        let output = if takes { self.outputs.pop_front() } else { None };
        if let (Some(guard), Some(Output::Request { exchange, message, .. })) =
            (&mut self.guard, &output)
        {
            guard.asked = Some((*exchange, cost(message)));
        }
        output
    }
    async fn step(&mut self) -> io::Result<()> {
        self.step().await
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        if let (Some(guard), Input::Respond { exchange, .. } | Input::Decline { exchange }) =
            (&mut self.guard, &input)
            && let Some(octets) = guard.deferred.remove(exchange)
        {
            guard.kept.end_request(octets);
        }
        self.admit_observer(&input);
        let result = self.host.handle(self.clock.now(), input);
        self.drain();
        result
    }
    fn identity(&self, exchange: IncomingId, _peer: Peer) -> Option<String> {
        self.host.identity(exchange).map(super::kid)
    }
    fn request_block(&self, exchange: IncomingId) -> Option<Block> {
        self.host.request_block(exchange)
    }
    fn response_block(&self) -> Option<Block> {
        self.host.response_block()
    }
    fn defer(&mut self, exchange: IncomingId) -> Result<(), ResponseTemplate> {
        self.host.defer(exchange)?;
        let Some(guard) = &mut self.guard else { return Ok(()) };
        // States are asked for a few at a time, so they have places of their own.
        if let Some((_, octets)) = guard.asked.take_if(|(asked, _)| *asked == exchange)
            && !exchange.is_refresh()
        {
            if !guard.kept.admit_request(octets) {
                return Err(ResponseTemplate::busy());
            }
            guard.deferred.insert(exchange, octets);
        }
        Ok(())
    }
    fn changed(&mut self, path: &str) {
        self.host.changed(path, self.clock.now());
    }
    fn request_changed(&mut self, request: &Message) {
        self.host.request_changed(request, self.clock.now());
    }
    fn all_changed(&mut self) {
        self.host.all_changed(self.clock.now());
    }
    fn report(&self) -> Report {
        Report { observers: self.host.observers(), kind: Kind::Connection }
    }
    fn release(&mut self) {
        debug_assert_accepted(
            self.handle(Input::Connection(ConnectionInput::Release { peer: self.peer })),
        );
    }
    async fn end(self) {
        // It makes no difference whether the peer has still received it.
        let _heard = tokio::time::timeout(HANDSHAKE_MAX, self.close()).await;
    }
    fn peer(&self, _address: SocketAddr) -> io::Result<Peer> {
        Ok(self.peer)
    }
    fn choose_congestion_control(
        &mut self,
        peer: Peer,
        chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError> {
        self.host.choose_congestion_control(peer, chosen, self.clock.now())
    }
    fn awaits_csm(&self) -> Option<std::time::Duration> {
        self.greeting.map(|since| self.clock.now().since(since).into())
    }
    fn is_done(&self) -> bool {
        false
    }
    fn has_room(&self) -> bool {
        self.room() > 0
    }
}

#[cfg(test)]
mod tests;
