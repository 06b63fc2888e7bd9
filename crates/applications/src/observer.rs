//! An observer of a sensor on another node (RFC 7641).

use alloc::string::String;
use alloc::vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::observe::REGISTER;
use lowmesh_machine::earliest;
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, HostHandle, Input, Report, RequestId, Snapshot};
use lowmesh_units::Instant;
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::ipv6::Address;

use crate::arrivals::Schedule;
use crate::params::{NUMBER_OCTETS, REGISTER_AGAIN};

/// An application that registers at one sensor, at the first event of its schedule, and again after a failure.
#[derive(Debug)]
pub struct Observer {
    sensor: Address,
    path: String,
    confirmable: bool,
    schedule: Schedule,
    again: Option<Instant>,
    observation: Option<RequestId>,
    notified: u64,
}

impl Observer {
    /// An observer of the resource `path` of the node that has an address. The notifications are CON or NON as its
    /// request.
    pub const fn new(sensor: Address, path: String, confirmable: bool, schedule: Schedule) -> Self {
        let (again, observation, notified) = (None, None, 0);
        Self { sensor, path, confirmable, schedule, again, observation, notified }
    }
    fn register(&mut self, host: &mut HostHandle<'_>) {
        let mut message = RequestTemplate::get(&self.path);
        message.options.set_uint(OptionNumber::OBSERVE, REGISTER);
        message.confirmable = self.confirmable;
        self.observation = Some(host.request((self.sensor, COAP_PORT), message));
    }
    fn on_end(&mut self, now: Instant, request: RequestId) {
        if self.observation == Some(request) {
            self.observation = None;
            self.again = Some(now + REGISTER_AGAIN);
        }
    }
}

impl Application for Observer {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(self.sensor) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Joined => self.schedule.begin(now),
            Input::Deadline => {
                let first = self.schedule.take(now).is_some();
                if first || self.again.take_if(|due| *due <= now).is_some() {
                    self.register(host);
                }
            }
            Input::Notification { from, message, .. } => {
                self.notified += 1;
                if let Some(number) = message.payload.first_chunk::<NUMBER_OCTETS>() {
                    let number = u32::from_be_bytes(*number);
                    host.report(Report::Received { from: from.0, number });
                }
            }
            // A response without Observe means that the server does not keep the observation.
            Input::Response { request, .. }
            | Input::Failed { request, .. }
            | Input::Refused { request, .. }
            | Input::Over { request } => self.on_end(now, request),
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.schedule.next(), self.again)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "observer", counters: vec![("notified", self.notified)] }
    }
}
