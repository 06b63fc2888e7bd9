//! The application of a verb: it makes one request, claims one port, and hands to the verb what comes of them.

use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};

use lowmesh_coap::RequestTemplate;
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Snapshot};
use lowmesh_stack::event::Peer;
use lowmesh_units::Instant;

/// An application that acts only on behalf of a verb.
#[derive(Debug)]
pub struct Forwarder {
    request: Option<(Peer, RequestTemplate)>,
    port: Option<u16>,
    inputs: Sender<Input>,
}

impl Forwarder {
    /// An application that makes this request once.
    pub fn asking(peer: Peer, request: RequestTemplate) -> (Self, Receiver<Input>) {
        let (inputs, received) = channel();
        (Self { request: Some((peer, request)), port: None, inputs }, received)
    }
    /// An application that claims this port.
    pub fn listening(port: u16) -> (Self, Receiver<Input>) {
        let (inputs, received) = channel();
        (Self { request: None, port: Some(port), inputs }, received)
    }
}

impl Application for Forwarder {
    fn claims(&self) -> Claims {
        Claims { paths: Vec::new(), ports: self.port.into_iter().collect() }
    }
    fn handle(&mut self, _now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Joined => {
                if let Some((peer, request)) = mem::take(&mut self.request) {
                    host.request(peer, request);
                }
            }
            // The verb may have heard enough.
            input => _ = self.inputs.send(input),
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "forwarder", counters: Vec::new() }
    }
}
