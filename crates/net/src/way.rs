//! What requests come by and answers leave by: a UDP address with all its peers, or one connection.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use lowmesh_coap::{
    ConfigError, CongestionControl, Connections, Endpoint, ExchangeId, Host, Input, Output,
    ResponseTemplate,
};
use lowmesh_machine::{Machine as _, Rejected, earliest};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, Message, Token};

use crate::clock::Clock;
use crate::driver::{Driver, SessionLoss};
use crate::line::Line;
use crate::metrics::{Kind, Report};
use crate::oscore::Protected;
use crate::params::HANDSHAKE_MAX;
use crate::peer::Peer;
use crate::stream::StreamError;
use crate::tap::{Direction, Tap, show};

/// One of them. What it gives out first is what came first.
pub(crate) trait Way: Send {
    /// What has happened already.
    fn poll(&mut self) -> Option<Output<Peer>>;
    /// The next thing that happens. May be dropped and called again at any time.
    fn next(&mut self) -> impl Future<Output = io::Result<Output<Peer>>> + Send;
    /// The application says something.
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected>;
    /// A request takes the application time: see [`Host::defer`].
    fn defer(&mut self, exchange: ExchangeId) -> Result<(), ResponseTemplate>;
    /// The state of the resource at `path` has changed.
    fn changed(&mut self, path: &str);
    /// The state that this request asks for has changed.
    fn request_changed(&mut self, request: &Message);
    /// Every state may have changed.
    fn all_changed(&mut self);
    /// How it stands, for monitoring.
    fn report(&self) -> Report;
    /// The same of each of its sockets, under a name.
    fn reports(&self, name: &str) -> Vec<Report> {
        let mut report = self.report();
        if let Kind::Endpoint { name: own, .. } = &mut report.kind {
            name.clone_into(own);
        }
        vec![report]
    }
    /// The server ends: says so to whom it can be said.
    fn release(&mut self);
    /// Sends what is left, as far as that goes without waiting long, and ends it.
    fn end(self) -> impl Future<Output = ()> + Send;
    /// The peer at an address.
    fn peer(&self, address: SocketAddr) -> io::Result<Peer>;
    /// A destination has a congestion control of its own from now on, or no more.
    fn choose_congestion_control(
        &mut self,
        peer: Peer,
        chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError>;
    /// How the DTLS session with a peer was lost, if it was.
    fn take_session_loss(&mut self, _peer: Peer) -> Option<SessionLoss> {
        None
    }
    /// True while a peer, who has answered, shakes hands.
    fn is_shaking_hands(&self, _peer: Peer) -> bool {
        false
    }
    /// How long the CSM of a peer is awaited, which MUST be its first message (RFC 8323 s5.3); `None` once it is here.
    fn awaits_csm(&self) -> Option<std::time::Duration> {
        None
    }
    /// Everything that was sent has arrived. A connection says that by itself, with [`Output::Close`].
    fn is_done(&self) -> bool;
}

/// Over UDP or DTLS.
pub(crate) type Datagrams = Driver<DatagramsHost>;

/// What answers and asks there.
pub(crate) type DatagramsHost = Host<Peer, Protected<Peer, Endpoint<Peer>>>;

impl Datagrams {
    /// Message IDs towards a peer that are free.
    pub(crate) fn message_ids_left(&self, peer: Peer) -> u32 {
        self.machine().transport().transport().message_ids_left(peer, self.now())
    }
}

impl Way for Datagrams {
    fn poll(&mut self) -> Option<Output<Peer>> {
        self.poll()
    }
    fn next(&mut self) -> impl Future<Output = io::Result<Output<Peer>>> + Send {
        self.next()
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        self.handle(input)
    }
    fn defer(&mut self, exchange: ExchangeId) -> Result<(), ResponseTemplate> {
        let now = self.now();
        self.change(|host| host.defer(exchange, now))
    }
    fn changed(&mut self, path: &str) {
        let now = self.now();
        self.change(|host| host.changed(path, now));
    }
    fn request_changed(&mut self, request: &Message) {
        let now = self.now();
        self.change(|host| host.request_changed(request, now));
    }
    fn all_changed(&mut self) {
        let now = self.now();
        self.change(|host| host.all_changed(now));
    }
    fn report(&self) -> Report {
        let (host, name) = (self.machine(), self.udp().local_addr().to_string());
        let endpoint = host.transport().transport();
        let (counters, destinations) = (endpoint.counters(), endpoint.destinations().collect());
        let kind = Kind::Endpoint { name, counters, destinations };
        Report { observers: host.observers(), kind }
    }
    fn release(&mut self) {}
    async fn end(self) {
        self.close();
    }
    fn peer(&self, address: SocketAddr) -> io::Result<Peer> {
        self.udp().peer(address)
    }
    fn choose_congestion_control(
        &mut self,
        peer: Peer,
        chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError> {
        let now = self.now();
        self.change(|host| host.choose_congestion_control(peer, chosen, now))
    }
    fn take_session_loss(&mut self, peer: Peer) -> Option<SessionLoss> {
        self.take_session_loss(peer)
    }
    fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.is_shaking_hands(peer)
    }
    fn is_done(&self) -> bool {
        self.machine().transport().transport().is_idle()
    }
}

/// A line has whole messages, as WebSockets have, whatever it is made of.
const FRAMING: Framing = Framing::WebSocket;

/// Over one connection.
pub(crate) struct Connected {
    line: Line,
    peer: Peer,
    host: Host<Peer, Protected<Peer, Connections<Peer>>>,
    clock: Clock,
    /// How long the peer may be silent, and until when.
    silence: Option<(Duration, Instant)>,
    /// Since when the peer's CSM is awaited.
    greeting: Option<Instant>,
    tap: Option<Tap>,
}

impl Connected {
    /// Greets the peer at the other end of `line`.
    pub(crate) fn new(line: Line, host: Host<Peer, Protected<Peer, Connections<Peer>>>) -> Self {
        let peer = Peer::new(line.peer, None);
        let clock = Clock::start();
        let greeting = Some(clock.now());
        let mut connected = Self { line, peer, host, clock, silence: None, greeting, tap: None };
        let greeting = Input::Connected { peer, framing: FRAMING };
        let _always_taken = connected.handle(greeting);
        connected
    }
    /// Shows every message to `tap`.
    pub(crate) fn tapped(self, tap: Option<Tap>) -> Self {
        Self { tap, ..self }
    }
    /// The peer is released after so long a silence.
    pub(crate) fn release_after(mut self, silence: std::time::Duration) -> Self {
        let silence = Duration::from(silence);
        self.silence = Some((silence, self.clock.now() + silence));
        self
    }
    /// Sends what is left, and closes.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        self.line.flush().await?;
        self.line.close().await
    }
    fn on_deadline(&mut self) {
        let now = self.clock.now();
        if self.silence.is_some_and(|(_, until)| until <= now) {
            self.heard();
            // Who observes is silent because nothing changes.
            if self.host.observers() == 0 {
                self.release();
            }
        }
        let _always_taken = self.handle(Input::Deadline);
    }
    fn heard(&mut self) {
        if let Some((silence, until)) = &mut self.silence {
            *until = self.clock.now() + *silence;
        }
    }
    fn on_message(&mut self, message: Result<StreamMessage, StreamError>) -> io::Result<()> {
        let greeted = self.greeting.is_none();
        match message {
            Ok(message) => {
                self.heard();
                let mut bytes = Vec::new();
                message.emit(FRAMING, &mut bytes);
                show(self.tap.as_ref(), Direction::In, self.peer, Some(FRAMING), &bytes);
                match message.code {
                    Code::CSM => self.greeting = None,
                    // RFC 8323 s3.4: an Empty message can always be sent.
                    Code::EMPTY => {}
                    // RFC 8323 s5.3: a missing or invalid CSM is a connection error.
                    _ if !greeted => {
                        self.abort("the first message is no CSM");
                        return Err(not_coap("the first message is no CSM"));
                    }
                    _ => {}
                }
                let _always_taken = self.handle(Input::Datagram { from: self.peer, bytes: &bytes });
                Ok(())
            }
            Err(StreamError::Malformed(error)) => {
                self.abort(&error.to_string());
                Err(if greeted {
                    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
                } else {
                    not_coap("what came first is no CSM")
                })
            }
            Err(StreamError::Closed | StreamError::Broken(_)) if !greeted => {
                Err(not_coap("the connection ended without a CSM"))
            }
            Err(StreamError::Closed) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(StreamError::Broken(error)) => Err(error),
        }
    }
    /// RFC 8323 s5.6: who cannot go on says why in an Abort.
    fn abort(&mut self, diagnostic: &str) {
        let abort = Signal::Abort { bad_csm_option: None, diagnostic: diagnostic.to_owned() };
        self.line.queue(&abort.into_message(Token::EMPTY));
    }
}

/// A peer that does not greet as RFC 8323 s5.3 asks.
fn not_coap(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, misgreeting(what))
}

/// What a peer did in place of greeting, and what that means.
pub(crate) fn misgreeting(what: &str) -> String {
    format!("{what} (RFC 8323 s5.3); it speaks another protocol, or none")
}

impl Way for Connected {
    fn poll(&mut self) -> Option<Output<Peer>> {
        loop {
            match self.host.poll_output()? {
                Output::Send { bytes, .. } => {
                    show(self.tap.as_ref(), Direction::Out, self.peer, Some(FRAMING), &bytes);
                    let message = StreamMessage::parse(&bytes, FRAMING);
                    self.line.queue(&message.expect("a host sends whole messages"));
                }
                other => return Some(other),
            }
        }
    }
    async fn next(&mut self) -> io::Result<Output<Peer>> {
        loop {
            if let Some(output) = self.poll() {
                return Ok(output);
            }
            // Who does not read its answers is not read either (back-pressure).
            self.line.flush().await?;
            let silent = self.silence.map(|(_, until)| until);
            let due = earliest(self.host.next_deadline(), silent).map(|due| self.clock.until(due));
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = self.line.receive() => self.on_message(message)?,
                () = sleep => self.on_deadline(),
            }
        }
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        self.host.handle(self.clock.now(), input)
    }
    fn defer(&mut self, exchange: ExchangeId) -> Result<(), ResponseTemplate> {
        self.host.defer(exchange, self.clock.now())
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
        let _always_taken = self.handle(Input::Release { peer: self.peer });
    }
    async fn end(self) {
        // Whether the other end has still heard it makes no difference any more.
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
}
