//! A client that reports readings to a collector, as CoAP requests or as UDP datagrams.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_stack::application::{Application, HostHandle, Input, Report, RequestId, Snapshot};
use lowmesh_stack::{COAP_PORT, DATAGRAM_PORT};
use lowmesh_units::Instant;
use lowmesh_wire::coap::Code;
use lowmesh_wire::ipv6::Address;

use crate::arrivals::Schedule;
use crate::params::NUMBER_OCTETS;

/// What carries the readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// POST requests.
    Requests {
        /// The resource of the collector, with slashes between segments.
        path: String,
        /// CON or NON (RFC 7252 s2.1).
        confirmable: bool,
        /// Requests from the oldest that is not over to the newest; a reading that finds no room among them is left
        /// out.
        window: Option<usize>,
    },
    /// UDP datagrams from and to [`DATAGRAM_PORT`], which nobody answers. The first four octets are the number of the
    /// datagram.
    Datagrams,
}

/// A client that sends a reading at each event of its schedule, which begins when the node joins.
#[derive(Debug)]
pub struct Client {
    collector: Address,
    carrier: Carrier,
    payload_octets: usize,
    schedule: Schedule,
    /// Requests from the oldest that is not over on, and which of them are over.
    open: VecDeque<(RequestId, bool)>,
    /// Number of its first datagram.
    first: u32,
    sent: u64,
    answered: u64,
}

impl Client {
    /// A client of the collector at an address; payloads have `payload_octets`, of datagrams at least four.
    pub fn new(
        collector: Address,
        carrier: Carrier,
        payload_octets: usize,
        schedule: Schedule,
    ) -> Self {
        let payload_octets = match carrier {
            Carrier::Requests { .. } => payload_octets,
            Carrier::Datagrams => payload_octets.max(NUMBER_OCTETS),
        };
        let open = VecDeque::new();
        let first = 0;
        Self { collector, carrier, payload_octets, schedule, open, first, sent: 0, answered: 0 }
    }

    /// The number of its first datagram: a client that starts again after a loss of memory repeats none.
    #[must_use]
    pub fn numbered_from(self, first: u32) -> Self {
        Self { first, ..self }
    }

    fn send(&mut self, event: u64, host: &mut HostHandle<'_>) {
        let mut payload = reading(event, self.payload_octets);
        match &self.carrier {
            Carrier::Requests { path, confirmable, window } => {
                if window.is_some_and(|window| self.open.len() >= window) {
                    return;
                }
                let mut message = RequestTemplate::new(Code::POST, path).with_payload(payload);
                message.confirmable = *confirmable;
                let request = host.request((self.collector, COAP_PORT), message);
                self.open.push_back((request, false));
            }
            Carrier::Datagrams => {
                let number = self.first.wrapping_add(self.sent as u32);
                payload[..NUMBER_OCTETS].copy_from_slice(&number.to_be_bytes());
                host.report(Report::Published { number });
                host.send_datagram(DATAGRAM_PORT, (self.collector, DATAGRAM_PORT), payload);
            }
        }
        self.sent += 1;
    }

    fn end(&mut self, request: RequestId) {
        if let Some(entry) = self.open.iter_mut().find(|(open, _)| *open == request) {
            entry.1 = true;
        }
        while self.open.front().is_some_and(|(_, over)| *over) {
            self.open.pop_front();
        }
    }
}

/// A text of `octets` octets that starts with the number of the reading.
fn reading(number: u64, octets: usize) -> Vec<u8> {
    let mut text = number.to_string().into_bytes();
    text.resize(octets, b'.');
    text
}

impl Application for Client {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(host.address()) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Joined => self.schedule.begin(now),
            Input::Deadline => {
                if let Some(event) = self.schedule.take(now) {
                    self.send(event, host);
                }
            }
            Input::Response { request, .. } => {
                self.answered += 1;
                self.end(request);
            }
            Input::Failed { request, .. }
            | Input::Refused { request, .. }
            | Input::Over { request } => self.end(request),
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.schedule.next()
    }
    fn snapshot(&self) -> Snapshot {
        let counters = [("sent", self.sent), ("answered", self.answered)];
        Snapshot { name: "client", counters: counters.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use lowmesh_machine::{DropReason, Outbox};
    use lowmesh_stack::application::Action;
    use lowmesh_units::{Duration, Eui64, NodeId, Purpose, Rng, Seed};

    /// A client on a bench.
    struct Bench {
        client: Client,
        requests: u64,
        actions: Outbox<Action>,
    }

    impl Bench {
        fn new(carrier: Carrier) -> Self {
            let rng = Rng::stream(Seed(1), NodeId(3), Purpose::Traffic);
            let arrivals = Arrivals::Periodic { period: Duration::from_secs(10), jitter: 0.1 };
            let schedule = Schedule::new(arrivals, Duration::ZERO, None, rng);
            let collector = Address::link_local(Eui64([1; 8]));
            let client = Client::new(collector, carrier, 20, schedule);
            let mut bench = Self { client, requests: 0, actions: Outbox::new() };
            bench.tell(Instant::ZERO, Input::Joined);
            bench
        }
        fn tell(&mut self, now: Instant, input: Input) {
            let here = Address::link_local(Eui64([2; 8]));
            let mut host = HostHandle::new(0, here, &mut self.requests, &mut self.actions);
            self.client.handle(now, input, &mut host);
        }
        /// The actions of the next event.
        fn next(&mut self) -> Vec<Action> {
            let due = self.client.next_deadline().expect("no bound");
            self.tell(due, Input::Deadline);
            core::iter::from_fn(|| self.actions.pop()).collect()
        }
        fn next_request(&mut self) -> Option<RequestId> {
            match self.next().pop() {
                Some(Action::Request { request, .. }) => Some(request),
                _ => None,
            }
        }
    }

    #[test]
    fn a_window_stays_shut_until_its_oldest_request_is_over() {
        let path = "sensor".into();
        let mut bench = Bench::new(Carrier::Requests { path, confirmable: true, window: Some(2) });
        let (first, second) = (bench.next_request(), bench.next_request());
        let ends = |request: Option<RequestId>| Input::Failed {
            request: request.expect("sent"),
            reason: DropReason::GaveUp,
        };
        bench.tell(Instant::ZERO, ends(second));
        assert_eq!(bench.next_request(), None, "left out, not kept for later");
        bench.tell(Instant::ZERO, ends(first));
        assert!(bench.next_request().is_some());
    }

    #[test]
    fn a_datagram_begins_with_its_number() {
        let mut bench = Bench::new(Carrier::Datagrams);
        for number in 0..3_u32 {
            let actions = bench.next();
            assert_eq!(actions[0], Action::Report(Report::Published { number }));
            let Action::Datagram { payload, .. } = &actions[1] else { panic!("{actions:?}") };
            assert_eq!((&payload[..4], payload.len()), (&number.to_be_bytes()[..], 20));
        }
    }
}
