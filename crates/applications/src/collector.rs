//! The collector receives the readings of all clients.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_stack::DATAGRAM_PORT;
use lowmesh_stack::application::{
    Application, Claims, Exchange, HostHandle, Input, Report, Snapshot,
};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;

use crate::params::NUMBER_OCTETS;

/// An application that answers every request for its path with 2.04 and receives datagrams on [`DATAGRAM_PORT`].
#[derive(Debug)]
pub struct Collector {
    path: String,
    service: Duration,
    /// Requests in service, with the times of their responses.
    working: VecDeque<(Instant, Exchange)>,
    executed: u64,
    datagrams: u64,
}

impl Collector {
    /// A collector with the resource `path` that answers a request after the time `service`.
    pub const fn new(path: String, service: Duration) -> Self {
        Self { path, service, working: VecDeque::new(), executed: 0, datagrams: 0 }
    }
}

/// RFC 7252 s5.9.1.4: 2.04 Changed.
fn answer(exchange: Exchange, host: &mut HostHandle<'_>) {
    host.respond(exchange, ResponseTemplate::new(Code::CHANGED));
}

impl Application for Collector {
    fn claims(&self) -> Claims {
        Claims { paths: vec![self.path.clone()], ports: vec![DATAGRAM_PORT] }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Request { exchange, .. } => {
                self.executed += 1;
                host.report(Report::Executed);
                if self.service.is_zero() {
                    answer(exchange, host);
                } else {
                    self.working.push_back((now + self.service, exchange));
                }
            }
            Input::Deadline => {
                while self.working.front().is_some_and(|(due, _)| *due <= now) {
                    if let Some((_, exchange)) = self.working.pop_front() {
                        answer(exchange, host);
                    }
                }
            }
            Input::Datagram { from, payload, .. } => {
                if let Some(number) = payload.first_chunk::<NUMBER_OCTETS>() {
                    self.datagrams += 1;
                    let number = u32::from_be_bytes(*number);
                    host.report(Report::Received { from: from.0, number });
                }
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.working.front().map(|(due, _)| *due)
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("executed", self.executed), ("datagrams", self.datagrams)];
        Snapshot { name: "collector", counters }
    }
}
