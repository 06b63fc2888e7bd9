//! What a server does when its transport does not take an answer, over a transport that notes all of them.

use std::net::SocketAddr;

use lowmesh_coap::resource::{Methods, Resource, Router};
use lowmesh_coap::{Config, ConfigError, CongestionControl, Host, HostLimits, RequestTemplate};
use lowmesh_machine::{Machine as _, Rejected};
use lowmesh_units::Instant;
use lowmesh_wire::coap::Message;

use super::*;
use crate::clock::fresh_rng;
use crate::metrics::{Kind, Report};
use crate::server::event::Totals;
use crate::server::{Changes, Handler};

/// Takes no answer, for the same reason each time.
struct Refusing {
    refusal: Rejected,
    answers: Vec<Code>,
}

impl Transport for Refusing {
    fn poll(&mut self) -> Option<Output<Peer>> {
        None
    }
    async fn step(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        if let Input::Respond { response, .. } = input {
            self.answers.push(response.code);
        }
        Err(self.refusal)
    }
    fn defer(&mut self, _exchange: IncomingId) -> Result<(), ResponseTemplate> {
        Ok(())
    }
    fn changed(&mut self, _path: &str) {}
    fn request_changed(&mut self, _request: &Message) {}
    fn all_changed(&mut self) {}
    fn report(&self) -> Report {
        Report { observers: 0, kind: Kind::Connection }
    }
    fn release(&mut self) {}
    async fn end(self) {}
    fn peer(&self, address: SocketAddr) -> io::Result<Peer> {
        Ok(Peer::new(address, None))
    }
    fn choose_congestion_control(
        &mut self,
        _peer: Peer,
        _chosen: Option<CongestionControl>,
    ) -> Result<(), ConfigError> {
        Ok(())
    }
    fn is_done(&self) -> bool {
        true
    }
}

/// A request, as a host hands it to its server.
fn request(from: Peer) -> Output<Peer> {
    let host = || Host::over_datagrams(Config::default(), HostLimits::default(), fresh_rng());
    let (mut client, mut server) = (host().expect("the defaults"), host().expect("the defaults"));
    let message = RequestTemplate::get("/hello");
    let input = Input::Request { peer: from, message, handle: Handle(1) };
    client.handle(Instant::ZERO, input).expect("room for one");
    while let Some(output) = client.poll_output() {
        if let Output::Send { bytes, .. } = output {
            let input = Input::Datagram { from, bytes: &bytes };
            server.handle(Instant::ZERO, input).expect("a datagram is always taken");
        }
    }
    server.poll_output().expect("the request")
}

/// The answers that a transport gets to one request while it refuses each.
fn answers(refusal: Rejected) -> Vec<Code> {
    let mut router = Router::new();
    let hello = Handler::new(|_| ResponseTemplate::new(Code::CONTENT));
    router.insert("/hello", Resource::new(Methods::GET, hello));
    let (changes, totals) = (Changes::new(), Arc::new(Totals::default()));
    let server = ServerState { router, changes, totals, relay: None, log: None };
    let transport = Refusing { refusal, answers: Vec::new() };
    let mut task = TransportTask::new(transport, Scheme::Coap, Arc::new(server));
    let from = Peer::new("[::1]:5683".parse().expect("an address"), None);
    task.on_output(request(from));
    task.transport.answers
}

#[test]
fn a_request_that_has_expired_is_not_answered_a_second_time() {
    let gone = Rejected::Gone { what: "response", why: "its request has expired" };
    assert_eq!(answers(gone), [Code::CONTENT]);
}

#[test]
fn a_response_that_is_too_long_gives_way_to_an_error() {
    let too_long = Rejected::TooLong { what: "message", why: "longer than the path allows" };
    assert_eq!(answers(too_long), [Code::CONTENT, Code::INTERNAL_SERVER_ERROR]);
}
