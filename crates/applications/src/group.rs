//! Groups: a client that sends requests to all members of one, and the members.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Report, Snapshot};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;
use lowmesh_wire::ipv6::Address;

use crate::arrivals::Schedule;
use crate::params::NUMBER_OCTETS;

/// An application that sends an unconfirmed POST to a group at each event of its schedule, which begins when its node joins
/// the network. The first four octets of the payload are its number. Members do not answer.
#[derive(Debug)]
pub struct GroupClient {
    group: Address,
    path: String,
    payload_octets: usize,
    schedule: Schedule,
    sent: u32,
    refused: u64,
}

impl GroupClient {
    /// A client of the resource `path` of all members, whose payload has `payload_octets`, at least four.
    pub fn new(group: Address, path: String, payload_octets: usize, schedule: Schedule) -> Self {
        let payload_octets = payload_octets.max(NUMBER_OCTETS);
        Self { group, path, payload_octets, schedule, sent: 0, refused: 0 }
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = self.sent.to_be_bytes().to_vec();
        payload.resize(self.payload_octets, b'.');
        payload
    }
}

impl Application for GroupClient {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(host.address()) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Joined => self.schedule.begin(now),
            Input::Deadline if self.schedule.take(now).is_some() => {
                let message = RequestTemplate::new(Code::POST, &self.path);
                let message = message.with_payload(self.payload());
                // Nobody answers, so nothing waits for answers.
                host.request_group((self.group, COAP_PORT), message, Duration::ZERO);
                self.sent += 1;
            }
            Input::Refused { .. } => self.refused += 1,
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.schedule.next()
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("sent", self.sent.into()), ("refused", self.refused)];
        Snapshot { name: "group_client", counters }
    }
}

/// An application that joins a group and takes its requests, without an answer (RFC 7252 s8.2).
#[derive(Debug)]
pub struct Member {
    group: Address,
    path: String,
    received: u64,
    refused: u64,
}

impl Member {
    /// A member with the resource `path`.
    pub const fn new(group: Address, path: String) -> Self {
        Self { group, path, received: 0, refused: 0 }
    }
}

impl Application for Member {
    fn claims(&self) -> Claims {
        Claims { paths: vec![self.path.clone()], ports: Vec::new() }
    }
    fn handle(&mut self, _now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Started => host.join(self.group),
            Input::NotJoined { .. } => self.refused += 1,
            Input::Request { exchange, .. } => {
                self.received += 1;
                host.report(Report::Executed);
                host.decline(exchange);
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("received", self.received), ("refused", self.refused)];
        Snapshot { name: "member", counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_machine::Outbox;
    use lowmesh_stack::application::Action;
    use lowmesh_units::{NodeId, Purpose, Rng, Seed};

    use crate::arrivals::Arrivals;

    const GROUP: Address = Address([0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd]);

    fn acts(application: &mut dyn Application, now: Instant, input: Input) -> Vec<Action> {
        let (mut requests, mut actions) = (0, Outbox::new());
        let mut host = HostHandle::new(0, Address::UNSPECIFIED, &mut requests, &mut actions);
        application.handle(now, input, &mut host);
        core::iter::from_fn(|| actions.pop()).collect()
    }

    #[test]
    fn a_client_sends_numbered_posts_to_its_group() {
        let arrivals = Arrivals::Periodic { period: Duration::from_secs(1), jitter: 0.0 };
        let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Traffic);
        let schedule = Schedule::new(arrivals, Duration::ZERO, Some(2), rng);
        let mut client = GroupClient::new(GROUP, "lamp".into(), 6, schedule);
        assert!(acts(&mut client, Instant::ZERO, Input::Joined).is_empty());
        let mut payloads = Vec::new();
        while let Some(due) = client.next_deadline() {
            let acts = acts(&mut client, due, Input::Deadline);
            let [Action::GroupRequest { group, message, .. }] = &acts[..] else {
                panic!("{acts:?}")
            };
            assert_eq!((*group, message.code), ((GROUP, COAP_PORT), Code::POST));
            payloads.push(message.payload.clone());
        }
        assert_eq!(payloads, [b"\0\0\0\0..", b"\0\0\0\x01.."]);
    }

    #[test]
    fn a_member_joins_at_its_start() {
        let mut member = Member::new(GROUP, "lamp".into());
        assert_eq!(acts(&mut member, Instant::ZERO, Input::Started), [Action::Join(GROUP)]);
    }
}
