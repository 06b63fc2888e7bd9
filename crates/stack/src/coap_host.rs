//! The CoAP host of a node over datagrams (RFC 7252) or over TCP (RFC 8323), with one face to the part above.
//!
//! A request to a peer without a connection opens one and waits for it; with [`Csm::Wait`] also for the peer's
//! capabilities, as libcoap does. As many requests wait as `queue_max` of the CoAP settings says; the next one is
//! refused. All of them are this node's own, so no peer has a share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use lowmesh_coap::exchange::ConnectionInput;
use lowmesh_coap::{Input, Output, RequestTemplate};
use lowmesh_machine::{DropReason, Handle, Machine, Outbox, Rejected, debug_assert_accepted};
use lowmesh_oscore::transport::{ConnectionHost, DatagramHost, VolatileContexts};
use lowmesh_units::Instant;
use lowmesh_wire::coap::stream::Framing;

use crate::peer::Peer;

/// When a client sends the first request on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Csm {
    /// When the peer's CSM has come, a round trip after the handshake, as in libcoap.
    #[default]
    Wait,
    /// At once: RFC 8323 s5.3 lets a client send before the peer's CSM has come.
    Early,
}

/// What the host wants of the transport below it.
#[derive(Debug)]
pub(crate) enum Order {
    /// Connect to a peer.
    Connect(Peer),
    /// End the connection to a peer.
    Disconnect(Peer),
    /// Send octets on the connection to a peer.
    Octets(Peer, Vec<u8>),
}

/// The CoAP host of a node.
#[derive(Debug)]
pub(crate) enum CoapHost {
    /// Messages are datagrams.
    Datagrams(Box<DatagramHost<Peer, VolatileContexts>>),
    /// Messages go over connections.
    Connections(Box<Connected>),
}

/// A host over connections, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct Connected {
    host: ConnectionHost<Peer, VolatileContexts>,
    csm: Csm,
    waiting_max: usize,
    /// Requests by the peer whose connection they wait for; a peer without requests is in it while it connects.
    waiting: BTreeMap<Peer, Waiting>,
    orders: Outbox<Order>,
    /// Requests that came to nothing before the host had them.
    failed: Outbox<(Handle, DropReason)>,
}

#[derive(Debug, Default)]
struct Waiting {
    is_connected: bool,
    requests: VecDeque<(RequestTemplate, Handle)>,
}

impl CoapHost {
    /// A host over connections, of which there are none.
    pub fn over_connections(
        host: ConnectionHost<Peer, VolatileContexts>,
        csm: Csm,
        waiting_max: usize,
    ) -> Self {
        let (waiting, orders, failed) = (BTreeMap::new(), Outbox::new(), Outbox::new());
        Self::Connections(Box::new(Connected { host, csm, waiting_max, waiting, orders, failed }))
    }
    /// The state of the resource at a path has changed.
    pub fn changed(&mut self, path: &str, now: Instant) {
        match self {
            Self::Datagrams(host) => host.changed(path, now),
            Self::Connections(connected) => connected.host.changed(path, now),
        }
    }
    /// What it wants of the transport below it.
    pub fn next_order(&mut self) -> Option<Order> {
        match self {
            Self::Datagrams(_) => None,
            Self::Connections(connected) => connected.orders.pop(),
        }
    }
    /// A connection to a peer is there.
    pub fn on_connected(&mut self, now: Instant, peer: Peer) {
        if let Self::Connections(connected) = self {
            let input = ConnectionInput::Connected { peer, framing: Framing::Stream };
            connected.tell(now, Input::Connection(input));
            if let Some(waiting) = connected.waiting.get_mut(&peer) {
                waiting.is_connected = true;
            }
            connected.release(now, peer);
        }
    }
    /// Octets have come on a connection.
    pub fn on_octets(&mut self, now: Instant, from: Peer, bytes: &[u8]) {
        if let Self::Connections(connected) = self {
            connected.tell(now, Input::Datagram { from, bytes });
            connected.release(now, from);
        }
    }
    /// A connection is over, or there is none.
    pub fn on_gone(&mut self, now: Instant, peer: Peer, reason: DropReason) {
        if let Self::Connections(connected) = self {
            if let Some(waiting) = connected.waiting.remove(&peer) {
                let failed = waiting.requests.into_iter().map(|(_, handle)| (handle, reason));
                connected.failed.extend(failed);
            }
            connected.tell(now, Input::Unreachable { peer });
        }
    }
}

impl Connected {
    fn tell(&mut self, now: Instant, input: Input<'_, Peer>) {
        debug_assert_accepted(self.host.handle(now, input));
    }
    /// Whether a request can leave on the connection to a peer now.
    fn is_usable(&self, peer: Peer) -> bool {
        !self.waiting.contains_key(&peer) && self.has_connection(peer)
    }
    fn has_connection(&self, peer: Peer) -> bool {
        self.host.transport().transport().has(peer)
    }
    /// Gives the host the requests that wait for a peer, once its connection is ready.
    fn release(&mut self, now: Instant, peer: Peer) {
        let is_open = self.host.transport().transport().is_open(peer);
        let is_ready = |waiting: &Waiting| match self.csm {
            Csm::Wait => is_open,
            Csm::Early => waiting.is_connected,
        };
        if !self.waiting.get(&peer).is_some_and(is_ready) {
            return;
        }
        let Some(waiting) = self.waiting.remove(&peer) else { return };
        for (message, handle) in waiting.requests {
            if self.host.handle(now, Input::Request { peer, message, handle }).is_err() {
                self.failed.push((handle, DropReason::QueueFull));
            }
        }
    }
    fn request(
        &mut self,
        now: Instant,
        peer: Peer,
        message: RequestTemplate,
        handle: Handle,
    ) -> Result<(), Rejected> {
        if self.is_usable(peer) {
            return self.host.handle(now, Input::Request { peer, message, handle });
        }
        if self.waiting.values().map(|one| one.requests.len()).sum::<usize>() >= self.waiting_max {
            const WHY: &str = "too many requests wait for a connection; wait for one to end";
            return Err(Rejected::Full { what: "request", why: WHY });
        }
        if !self.waiting.contains_key(&peer) {
            self.orders.push(Order::Connect(peer));
        }
        self.waiting.entry(peer).or_default().requests.push_back((message, handle));
        Ok(())
    }
    fn cancel(&mut self, handle: Handle) {
        for waiting in self.waiting.values_mut() {
            waiting.requests.retain(|(_, waits)| *waits != handle);
        }
    }
    /// The next output that is for the applications; what is for the transport becomes an order.
    fn poll_output(&mut self) -> Option<Output<Peer>> {
        if let Some((handle, reason)) = self.failed.pop() {
            return Some(Output::Failed { handle, reason });
        }
        loop {
            match self.host.poll_output()? {
                Output::Send { to, bytes, .. } => self.orders.push(Order::Octets(to, bytes)),
                Output::Close { peer } => self.orders.push(Order::Disconnect(peer)),
                other => return Some(other),
            }
        }
    }
}

impl Machine for CoapHost {
    type Input<'a> = Input<'a, Peer>;
    type Output = Output<Peer>;

    fn handle(&mut self, now: Instant, input: Input<'_, Peer>) -> Result<(), Rejected> {
        match self {
            Self::Datagrams(host) => host.handle(now, input),
            Self::Connections(connected) => match input {
                Input::Request { peer, message, handle } => {
                    connected.request(now, peer, message, handle)
                }
                Input::Cancel { handle } => {
                    connected.cancel(handle);
                    connected.host.handle(now, Input::Cancel { handle })
                }
                other => connected.host.handle(now, other),
            },
        }
    }
    fn poll_output(&mut self) -> Option<Output<Peer>> {
        match self {
            Self::Datagrams(host) => host.poll_output(),
            Self::Connections(connected) => connected.poll_output(),
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Datagrams(host) => host.next_deadline(),
            Self::Connections(connected) => connected.host.next_deadline(),
        }
    }
}
