//! A poller: reads the sensors of other nodes, downwards from the root.

use alloc::string::String;
use alloc::vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, HostHandle, Input, Snapshot};
use lowmesh_units::Instant;
use lowmesh_wire::ipv6::Address;

use crate::arrivals::Schedule;

/// An application that reads one sensor with a GET at each event of its schedule, which begins when its node joins.
#[derive(Debug)]
pub struct Poller {
    sensor: Address,
    path: String,
    confirmable: bool,
    schedule: Schedule,
    sent: u64,
    answered: u64,
}

impl Poller {
    /// A poller of the resource `path` of the node that has an address.
    pub const fn new(sensor: Address, path: String, confirmable: bool, schedule: Schedule) -> Self {
        Self { sensor, path, confirmable, schedule, sent: 0, answered: 0 }
    }
}

impl Application for Poller {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(self.sensor) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Joined => self.schedule.begin(now),
            Input::Deadline if self.schedule.take(now).is_some() => {
                let mut message = RequestTemplate::get(&self.path);
                message.confirmable = self.confirmable;
                host.request((self.sensor, COAP_PORT), message);
                self.sent += 1;
            }
            Input::Response { .. } => self.answered += 1,
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.schedule.next()
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("sent", self.sent), ("answered", self.answered)];
        Snapshot { name: "poller", counters }
    }
}
