//! The sockets of a client over UDP or DTLS: one, and more of them when the message IDs of one run out.
//!
//! A message ID towards a destination is used again after EXCHANGE_LIFETIME at the earliest, so one socket sends no more
//! than 65,536 messages to it in 247 s. Another local port is another endpoint, with message IDs of its own (RFC 7252
//! s4.4). Requests go through the first socket that has enough of them left for their destination, so that all but one
//! only finish what they have begun (RFC 7252 s4.7: NSTART is towards a server).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use futures_util::future::select_all;
use lowmesh_coap::exchange::GroupInput;
use lowmesh_coap::{ConfigError, CongestionControl, IncomingId, Input, Output, ResponseTemplate};
use lowmesh_machine::{Handle, Rejected};
use lowmesh_wire::coap::{Code, Message};

use super::error::Error;
use crate::driver::SessionLoss;
use crate::metrics::{Kind, Report};
use crate::params::{CLIENT_SOCKETS_MAX, MESSAGE_IDS_SPARE};
use crate::peer::Peer;
use crate::transport::{Datagrams, Transport};

/// Opens one more socket; `None` if there can be no other, as at a port of the user's choice.
type Open = dyn FnMut() -> Option<Result<Datagrams, Error>> + Send;

/// All sockets, in the order in which they were opened; at least one.
pub(super) struct Sockets {
    all: Vec<Datagrams>,
    open: Box<Open>,
    /// The socket that each request went through, for as long as something may come of it.
    places: BTreeMap<Handle, usize>,
    /// Destinations with a congestion control of their own.
    chosen: BTreeMap<Peer, CongestionControl>,
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").field("open", &self.all.len()).finish_non_exhaustive()
    }
}

impl Sockets {
    pub fn new(
        first: Datagrams,
        open: impl FnMut() -> Option<Result<Datagrams, Error>> + Send + 'static,
    ) -> Self {
        let (places, chosen) = (BTreeMap::new(), BTreeMap::new());
        Self { all: vec![first], open: Box::new(open), places, chosen }
    }
    /// The socket for a new request: the first with spare message IDs, a new one, or that with most of them.
    fn choose(&mut self, peer: Peer) -> usize {
        let left = |one: &Datagrams| one.message_ids_left(peer);
        if let Some(place) = self.all.iter().position(|one| left(one) >= MESSAGE_IDS_SPARE) {
            return place;
        }
        if self.all.len() < CLIENT_SOCKETS_MAX && self.add() {
            return self.all.len() - 1;
        }
        let most = self.all.iter().enumerate().max_by_key(|(_, one)| left(one));
        most.map_or(0, |(place, _)| place)
    }
    /// Opens one more socket, if the system has one.
    fn add(&mut self) -> bool {
        let Some(Ok(mut socket)) = (self.open)() else { return false };
        for (peer, chosen) in &self.chosen {
            // The first socket has taken it, and this one has as much room.
            let _taken = socket.choose_congestion_control(*peer, Some(chosen.clone()));
        }
        self.all.push(socket);
        true
    }
    fn at(&mut self, handle: Handle) -> &mut Datagrams {
        let place = self.places.get(&handle).copied().unwrap_or_default();
        &mut self.all[place]
    }
    /// What the application sees of an output of a socket.
    fn seen(&mut self, place: usize, output: Output<Peer>) -> Option<Output<Peer>> {
        match &output {
            // Nothing is served on this side.
            Output::Request { exchange, .. } => {
                let response = ResponseTemplate::new(Code::NOT_FOUND);
                let (exchange, handle) = (*exchange, Handle::NONE);
                let input = Input::Respond { exchange, response, handle };
                let _expired = self.all[place].handle(input);
                return None;
            }
            Output::Response { handle, .. }
            | Output::Pong { handle, .. }
            | Output::Over { handle }
            | Output::Failed { handle, .. } => drop(self.places.remove(handle)),
            _ => {}
        }
        Some(output)
    }
}

impl Transport for Sockets {
    fn poll(&mut self) -> Option<Output<Peer>> {
        for place in 0..self.all.len() {
            while let Some(output) = self.all[place].poll() {
                if let Some(seen) = self.seen(place, output) {
                    return Some(seen);
                }
            }
        }
        None
    }
    async fn step(&mut self) -> io::Result<()> {
        match &mut self.all[..] {
            [one] => one.step().await,
            all => select_all(all.iter_mut().map(|one| Box::pin(one.step()))).await.0,
        }
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        match input {
            Input::Request { peer, handle, .. }
            | Input::Group(GroupInput::Request { group: peer, handle, .. })
            | Input::Ping { peer, handle } => {
                let place = self.choose(peer);
                self.places.insert(handle, place);
                let taken = self.all[place].handle(input);
                if taken.is_err() {
                    self.places.remove(&handle);
                }
                taken
            }
            Input::Cancel { handle } => {
                let cancelled = self.at(handle).handle(input);
                self.places.remove(&handle);
                cancelled
            }
            Input::Deregister { handle } | Input::Group(GroupInput::Repeat { handle, .. }) => {
                self.at(handle).handle(input)
            }
            // A client says nothing else.
            other => self.all[0].handle(other),
        }
    }
    fn defer(&mut self, exchange: IncomingId) -> Result<(), ResponseTemplate> {
        // Nothing is served on this side.
        self.all[0].defer(exchange)
    }
    fn changed(&mut self, path: &str) {
        self.all.iter_mut().for_each(|one| one.changed(path));
    }
    fn request_changed(&mut self, request: &Message) {
        self.all.iter_mut().for_each(|one| one.request_changed(request));
    }
    fn all_changed(&mut self) {
        self.all.iter_mut().for_each(Transport::all_changed);
    }
    fn report(&self) -> Report {
        self.all[0].report()
    }
    fn reports(&self, name: &str) -> Vec<Report> {
        let numbered = self.all.iter().enumerate().map(|(place, one)| {
            let mut report = one.report();
            if let Kind::Endpoint { name: own, .. } = &mut report.kind {
                *own = if place == 0 { name.to_owned() } else { format!("{name} {}", place + 1) };
            }
            report
        });
        numbered.collect()
    }
    fn release(&mut self) {
        self.all.iter_mut().for_each(Transport::release);
    }
    async fn end(self) {
        for one in self.all {
            one.end().await;
        }
    }
    fn peer(&self, address: SocketAddr) -> io::Result<Peer> {
        Transport::peer(&self.all[0], address)
    }
    fn choose_congestion_control(
        &mut self,
        peer: Peer,
        chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError> {
        for one in &mut self.all {
            one.choose_congestion_control(peer, chosen.clone())?;
        }
        // As many as an endpoint remembers.
        match chosen {
            Some(chosen) => drop(self.chosen.insert(peer, chosen)),
            None => drop(self.chosen.remove(&peer)),
        }
        Ok(())
    }
    fn take_session_loss(&mut self, peer: Peer) -> Option<SessionLoss> {
        self.all.iter_mut().find_map(|one| Transport::take_session_loss(one, peer))
    }
    fn is_shaking_hands(&self, peer: Peer) -> bool {
        self.all.iter().any(|one| Transport::is_shaking_hands(one, peer))
    }
    fn is_done(&self) -> bool {
        self.all.iter().all(Transport::is_done)
    }
}

#[cfg(test)]
mod tests;
