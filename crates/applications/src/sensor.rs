//! A sensor: a resource whose state is read, or observed (RFC 7641).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::observe::REGISTER;
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Report, Snapshot};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::arrivals::Schedule;
use crate::params::NUMBER_OCTETS;

/// A resource that answers GET with its state, whose first four octets are its number. The state changes at each event
/// of a schedule, which begins with the first observer.
#[derive(Debug)]
pub struct Sensor {
    path: String,
    payload_octets: usize,
    schedule: Schedule,
    /// Number of its first state.
    first: u32,
    number: u32,
    executed: u64,
}

impl Sensor {
    /// A sensor whose state has `payload_octets`, at least four.
    pub fn new(path: String, payload_octets: usize, schedule: Schedule) -> Self {
        let payload_octets = payload_octets.max(NUMBER_OCTETS);
        Self { path, payload_octets, schedule, first: 0, number: 0, executed: 0 }
    }
    /// The number of its first state: a sensor that starts again after a loss of memory repeats none.
    #[must_use]
    pub fn numbered_from(self, first: u32) -> Self {
        Self { first, number: first, ..self }
    }
    fn state(&self) -> Vec<u8> {
        let mut state = self.number.to_be_bytes().to_vec();
        state.resize(self.payload_octets, b'.');
        state
    }
}

impl Application for Sensor {
    fn claims(&self) -> Claims {
        Claims { paths: vec![self.path.clone()], ports: Vec::new() }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(host.address()) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Request { exchange, message, .. } if message.code == Code::GET => {
                self.executed += 1;
                host.report(Report::Executed);
                let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(self.state());
                if message.options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER) {
                    self.schedule.begin(now);
                    // Any value keeps the observation; the host sets the sequence number.
                    response.options.set_uint(OptionNumber::OBSERVE, REGISTER);
                }
                host.respond(exchange, response);
            }
            Input::Request { exchange, .. } => {
                host.respond(exchange, ResponseTemplate::new(Code::METHOD_NOT_ALLOWED));
            }
            Input::Deadline if self.schedule.take(now).is_some() => {
                self.number += 1;
                host.report(Report::Published { number: self.number });
                host.changed(&self.path);
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.schedule.next()
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![
            ("executed", self.executed),
            ("changes", u64::from(self.number.wrapping_sub(self.first))),
        ];
        Snapshot { name: "sensor", counters }
    }
}
