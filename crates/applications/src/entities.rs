//! The Entity Manager (crate `group`) on a node: its resources are those below `/e`, and the node asks the members.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use core::net::{IpAddr, Ipv6Addr};

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_group::store::{Memory, StoreError};
use lowmesh_group::{Authority, Config, ExchangeId, Input as In, Manager, Output, params};
use lowmesh_machine::{DropReason, Machine as _, earliest};
use lowmesh_stack::application::{
    Application, Claims, Exchange, HostHandle, Input, Report, RequestId, Snapshot,
};
use lowmesh_stack::event::Peer;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::uri::{Host, Scheme};
use lowmesh_wire::coap::{Class, OptionNumber};
use lowmesh_wire::ipv6::Address;

/// An application that manages entities. It forgets them with its node.
#[derive(Debug)]
pub struct Entities {
    manager: Manager,
    /// How long the node takes to make a response to a client of what it knows.
    service: Duration,
    /// Responses that are being made, with the times at which they are ready.
    working: VecDeque<(Instant, Exchange, ResponseTemplate)>,
    /// Requests of clients, by the names that the manager knows them by.
    clients: BTreeMap<lowmesh_group::RequestId, Exchange>,
    serial: u64,
    /// Requests to members and groups, by both names.
    asked: BTreeMap<RequestId, (ExchangeId, bool)>,
    requests: BTreeMap<ExchangeId, RequestId>,
    queried: u64,
    answered: u64,
}

impl Entities {
    /// A manager without entities, whose node takes the time `service` to make a response to a client. `rng` spreads its
    /// later looks at members.
    pub fn new(config: Config, service: Duration, rng: Rng) -> Result<Self, StoreError> {
        let manager = Manager::open(config, Box::new(Memory::default()), rng, Instant::ZERO)?;
        Ok(Self {
            manager,
            service,
            working: VecDeque::new(),
            clients: BTreeMap::new(),
            serial: 0,
            asked: BTreeMap::new(),
            requests: BTreeMap::new(),
            queried: 0,
            answered: 0,
        })
    }

    /// What the node has to say, as an input of the manager.
    fn input(&mut self, input: Input, host: &mut HostHandle<'_>) -> Option<In> {
        Some(match input {
            // A manager is no member of groups.
            Input::Request { exchange, multicast: true, .. } => {
                host.decline(exchange);
                return None;
            }
            Input::Request { exchange, from, message, .. } => {
                self.serial += 1;
                self.queried += 1;
                let request = lowmesh_group::RequestId(self.serial);
                self.clients.insert(request, exchange);
                In::Request { request, client: ip(from.0), message }
            }
            Input::Response { request, message, rtt, retransmissions, .. } => {
                let (exchange, is_of_member) = self.close(request)?;
                if is_of_member && message.code.class() == Class::Success {
                    self.answered += 1;
                    host.report(Report::MemberAnswered);
                }
                In::Response { exchange, message, rtt, retransmissions }
            }
            Input::GroupResponse { request, from, message } => {
                let (exchange, _) = *self.asked.get(&request)?;
                if message.code.class() == Class::Success {
                    self.answered += 1;
                    host.report(Report::MemberAnswered);
                }
                let host = Host::V6(from.0.into(), None);
                let from = Authority { scheme: Scheme::Coap, host, port: from.1 };
                In::GroupResponse { exchange, from, message }
            }
            Input::Over { request } => In::Over { exchange: self.close(request)?.0 },
            Input::Failed { request, reason } => {
                In::Failed { exchange: self.close(request)?.0, reason }
            }
            Input::Refused { request, .. } => {
                In::Failed { exchange: self.close(request)?.0, reason: DropReason::QueueFull }
            }
            Input::Deadline => In::Deadline,
            _ => return None,
        })
    }

    fn close(&mut self, request: RequestId) -> Option<(ExchangeId, bool)> {
        let asked = self.asked.remove(&request)?;
        self.requests.remove(&asked.0);
        Some(asked)
    }

    /// Does what the manager wants.
    fn carry_out(&mut self, now: Instant, host: &mut HostHandle<'_>) {
        while let Some(output) = self.manager.poll_output() {
            match output {
                Output::Request { exchange, to, message } => match peer(&to) {
                    Some(to) => {
                        let is_of_member = !is_of_membership(&message);
                        if is_of_member {
                            host.report(Report::MembersAsked);
                        }
                        let request = host.request(to, message);
                        self.open(request, exchange, is_of_member);
                    }
                    None => self.fail(now, exchange),
                },
                Output::Group { exchange, to, message, wait } => match peer(&to) {
                    Some(to) => {
                        host.report(Report::MembersAsked);
                        let request = host.request_group(to, message, wait);
                        self.open(request, exchange, true);
                    }
                    None => self.fail(now, exchange),
                },
                Output::Cancel { exchange } => {
                    if let Some(request) = self.requests.remove(&exchange) {
                        self.asked.remove(&request);
                        host.cancel(request);
                    }
                }
                Output::Respond { request, response } => {
                    if let Some(exchange) = self.clients.remove(&request) {
                        self.working.push_back((now + self.service, exchange, response));
                    }
                }
            }
        }
    }

    /// Sends the responses that are ready.
    fn respond(&mut self, now: Instant, host: &mut HostHandle<'_>) {
        while self.working.front().is_some_and(|(ready, ..)| *ready <= now) {
            if let Some((_, exchange, response)) = self.working.pop_front() {
                host.respond(exchange, response);
            }
        }
    }

    fn open(&mut self, request: RequestId, exchange: ExchangeId, is_of_member: bool) {
        self.asked.insert(request, (exchange, is_of_member));
        self.requests.insert(exchange, request);
    }

    /// A node has IPv6 addresses alone.
    fn fail(&mut self, now: Instant, exchange: ExchangeId) {
        let failed = In::Failed { exchange, reason: DropReason::NoRoute };
        let taken = self.manager.handle(now, failed);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }
}

fn ip(address: Address) -> IpAddr {
    Ipv6Addr::from(address).into()
}

fn peer(to: &Authority) -> Option<Peer> {
    match &to.host {
        Host::V6(address, _) => Some((Address::from(*address), to.port)),
        Host::V4(_) | Host::Name(_) => None,
    }
}

/// Whether a request is about the groups of a node (`/mc`).
fn is_of_membership(message: &RequestTemplate) -> bool {
    let path = message.options.iter().values(OptionNumber::URI_PATH);
    path.eq([params::MEMBERSHIPS.as_bytes()])
}

impl Application for Entities {
    fn claims(&self) -> Claims {
        let paths = vec![[params::ROOT, "/*"].concat()];
        Claims { paths, ..Claims::default() }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(input) = self.input(input, host) {
            let taken = self.manager.handle(now, input);
            debug_assert!(taken.is_ok(), "{taken:?}");
        }
        self.carry_out(now, host);
        self.respond(now, host);
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.manager.next_deadline(), self.working.front().map(|(ready, ..)| *ready))
    }
    fn snapshot(&self) -> Snapshot {
        let entities = self.manager.names().count() as u64;
        let counters =
            vec![("entities", entities), ("requests", self.queried), ("answers", self.answered)];
        Snapshot { name: "entities", counters }
    }
}
