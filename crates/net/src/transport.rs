//! A transport of requests and answers: a UDP address with all its peers, or one connection.

mod connected;

use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use lowmesh_coap::blockwise::Block;
use lowmesh_coap::{
    ConfigError, CongestionControl, Endpoint, Host, IncomingId, Input, Output, ResponseTemplate,
};
use lowmesh_machine::Rejected;
use lowmesh_wire::coap::Message;

use crate::driver::{Driver, SessionLoss};
use crate::metrics::{Kind, Report};
use crate::oscore::Protected;
use crate::peer::Peer;
pub(crate) use connected::{Connected, Patience, Silent, misgreeting};

/// One transport. Its outputs come in the order of arrival.
pub(crate) trait Transport: Send {
    /// What has happened already.
    fn poll(&mut self) -> Option<Output<Peer>>;
    /// Waits until something happens, and does what follows from it: there may be an output then, or room again. May be
    /// dropped and called again at any time.
    fn step(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// The next output. May be dropped and called again at any time.
    fn next(&mut self) -> impl Future<Output = io::Result<Output<Peer>>> + Send {
        async {
            loop {
                if let Some(output) = self.poll() {
                    return Ok(output);
                }
                self.step().await?;
            }
        }
    }
    /// The application says something.
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected>;
    /// Whether a peer has shown that it receives at its address.
    fn is_proven(&self, _peer: Peer) -> bool {
        true
    }
    /// See [`Host::request_block`].
    fn request_block(&self, _exchange: IncomingId) -> Option<Block> {
        None
    }
    /// See [`Host::response_block`].
    fn response_block(&self) -> Option<Block> {
        None
    }
    /// A request takes the application time: see [`Host::defer`].
    fn defer(&mut self, exchange: IncomingId) -> Result<(), ResponseTemplate>;
    /// The state of the resource at `path` has changed.
    fn changed(&mut self, path: &str);
    /// The state that this request asks for has changed.
    fn request_changed(&mut self, request: &Message);
    /// Every state may have changed.
    fn all_changed(&mut self);
    /// Its numbers, for monitoring.
    fn report(&self) -> Report;
    /// The same of each of its sockets, under a name.
    fn reports(&self, name: &str) -> Vec<Report> {
        let mut report = self.report();
        if let Kind::Endpoint { name: own, .. } = &mut report.kind {
            name.clone_into(own);
        }
        vec![report]
    }
    /// The server ends: releases the connection, if it is one.
    fn release(&mut self);
    /// Sends what is left, without waiting long, and ends it.
    fn end(self) -> impl Future<Output = ()> + Send;
    /// The peer at an address.
    fn peer(&self, address: SocketAddr) -> io::Result<Peer>;
    /// A destination has a congestion control of its own from now on, or with `None` that of the endpoint again.
    fn choose_congestion_control(
        &mut self,
        peer: Peer,
        chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError>;
    /// How the DTLS session with a peer was lost, if it was.
    fn take_session_loss(&mut self, _peer: Peer) -> Option<SessionLoss> {
        None
    }
    /// The oldest failure of a client's DTLS handshake that nobody has asked for.
    fn take_failed_handshake(&mut self) -> Option<SessionLoss> {
        None
    }
    /// By which key the client of a request is known: the kid of OSCORE, or the identity of DTLS.
    fn identity(&self, _exchange: IncomingId, _peer: Peer) -> Option<String> {
        None
    }
    /// True while the DTLS handshake with a peer that has answered is not complete.
    fn is_shaking_hands(&self, _peer: Peer) -> bool {
        false
    }
    /// How long the CSM of a peer, which MUST be its first message (RFC 8323 s5.3), has been awaited; `None` once it is here.
    fn awaits_csm(&self) -> Option<std::time::Duration> {
        None
    }
    /// Everything that was sent has arrived. A connection says so with [`Output::Close`].
    fn is_done(&self) -> bool;
    /// False while so many octets wait for the peer of a connection that nothing more should be made for it.
    fn has_room(&self) -> bool {
        true
    }
}

/// A kid, in the notation of the command line.
pub(crate) fn kid(octets: &[u8]) -> String {
    octets.iter().fold("0x".to_owned(), |mut text, octet| {
        write!(text, "{octet:02x}").expect("a String takes everything");
        text
    })
}

/// Over UDP or DTLS.
pub(crate) type Datagrams = Driver<DatagramsHost>;

/// The host of a UDP address.
pub(crate) type DatagramsHost = Host<Peer, Protected<Peer, Endpoint<Peer>>>;

impl Datagrams {
    /// Message IDs towards a peer that are free.
    pub(crate) fn message_ids_left(&self, peer: Peer) -> u32 {
        self.machine().transport().transport().message_ids_left(peer, self.now())
    }
}

impl Transport for Datagrams {
    fn poll(&mut self) -> Option<Output<Peer>> {
        self.poll()
    }
    fn step(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.step()
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        self.handle(input)
    }
    fn is_proven(&self, peer: Peer) -> bool {
        self.machine().is_proven(peer)
    }
    fn request_block(&self, exchange: IncomingId) -> Option<Block> {
        self.machine().request_block(exchange)
    }
    fn response_block(&self) -> Option<Block> {
        self.machine().response_block()
    }
    fn defer(&mut self, exchange: IncomingId) -> Result<(), ResponseTemplate> {
        self.change(|host| host.defer(exchange))
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
    fn take_failed_handshake(&mut self) -> Option<SessionLoss> {
        self.take_failed_handshake()
    }
    fn identity(&self, exchange: IncomingId, peer: Peer) -> Option<String> {
        let dtls = || self.identity(peer).map(|name| name.escape_ascii().to_string());
        self.machine().identity(exchange).map(kid).or_else(dtls)
    }
    fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.is_shaking_hands(peer)
    }
    fn is_done(&self) -> bool {
        self.machine().transport().transport().is_idle()
    }
}
