//! A client of an Entity Manager: it creates entities, and queries one of them.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_group::params::ROOT;
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, HostHandle, Input, Report, RequestId, Snapshot};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::ipv6::Address;

use crate::arrivals::Schedule;
use crate::params::CREATE_AGAIN;

/// What a client asks an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The name of the entity.
    pub entity: String,
    /// Arguments of the query, which override the profile: `delay=50`.
    pub arguments: Vec<String>,
    /// What is written to all members; without it they are read.
    pub write: Option<String>,
}

/// An application that creates entities one after the other, as JSON documents describe them, and then makes a query at
/// each event of a schedule. While a query is not over, events pass without one.
#[derive(Debug)]
pub struct EntityClient {
    manager: Address,
    documents: Vec<String>,
    query: Query,
    /// When the first entity is created.
    setup: Duration,
    schedule: Schedule,
    created: usize,
    /// When the next entity is created.
    due: Option<Instant>,
    open: Option<RequestId>,
    queried: u64,
    succeeded: u64,
}

impl EntityClient {
    /// A client of the manager at an address. It creates the first entity at `setup` or when its node joins.
    pub fn new(
        manager: Address,
        documents: Vec<String>,
        query: Query,
        setup: Duration,
        schedule: Schedule,
    ) -> Self {
        Self {
            manager,
            documents,
            query,
            setup,
            schedule,
            created: 0,
            due: None,
            open: None,
            queried: 0,
            succeeded: 0,
        }
    }

    fn is_ready(&self) -> bool {
        self.created == self.documents.len()
    }

    fn create(&mut self, host: &mut HostHandle<'_>) {
        let Some(document) = self.documents.get(self.created) else { return };
        let mut message = RequestTemplate::new(Code::POST, ROOT);
        let format = u32::from(ContentFormat::JSON.0);
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
        let message = message.with_payload(document.clone().into_bytes());
        self.open = Some(host.request((self.manager, COAP_PORT), message));
    }

    fn query(&mut self, host: &mut HostHandle<'_>) {
        let method = if self.query.write.is_some() { Code::PUT } else { Code::GET };
        let path = [ROOT, "/", &self.query.entity].concat();
        let mut message = RequestTemplate::new(method, &path);
        for argument in &self.query.arguments {
            message.options.insert_query(argument);
        }
        let payload = self.query.write.clone().unwrap_or_default().into_bytes();
        host.report(Report::Queried);
        let request = host.request((self.manager, COAP_PORT), message.with_payload(payload));
        self.open = Some(request);
        self.queried += 1;
    }

    /// A request is over, with a response or without.
    fn end(&mut self, now: Instant, response: Option<&Message>, host: &mut HostHandle<'_>) {
        self.open = None;
        let is_success = response.is_some_and(|one| one.code.class() == Class::Success);
        if self.is_ready() {
            self.succeeded += u64::from(is_success);
            let (answered, failed) = response.map_or((0, 0), members);
            host.report(Report::QueryEnded { answered, failed, is_success });
            return;
        }
        // 4.09: an earlier attempt has made the entity, and its response was lost.
        if is_success || response.is_some_and(|one| one.code == Code::CONFLICT) {
            self.created += 1;
            self.due = (!self.is_ready()).then_some(now);
        } else {
            self.due = Some(now + CREATE_AGAIN);
        }
        if self.is_ready() {
            self.schedule.begin(now);
        }
    }
}

/// Members that answered and members that failed, by the lines of a result: a failure has a `!` behind its name.
fn members(response: &Message) -> (u16, u16) {
    if response.code.class() != Class::Success {
        return (0, 0);
    }
    let text = core::str::from_utf8(&response.payload).unwrap_or_default();
    let lines = || text.lines().filter(|line| !line.is_empty());
    let failed = lines().filter(|line| line.split(' ').nth(1) == Some("!")).count();
    ((lines().count() - failed) as u16, failed as u16)
}

impl Application for EntityClient {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Some(period) = input.pace_of(host.address()) {
            return self.schedule.pace(now, period);
        }
        match input {
            Input::Joined => self.due = Some(now.max(Instant::ZERO + self.setup)),
            Input::Deadline => {
                if self.due.is_some_and(|due| due <= now) {
                    self.due = None;
                    self.create(host);
                } else if self.schedule.take(now).is_some() && self.open.is_none() {
                    self.query(host);
                }
            }
            Input::Response { request, ref message, .. } if self.open == Some(request) => {
                self.end(now, Some(message), host);
            }
            Input::Failed { request, .. } | Input::Refused { request, .. }
                if self.open == Some(request) =>
            {
                self.end(now, None, host);
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        lowmesh_machine::earliest(self.due, self.schedule.next())
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![
            ("created", self.created as u64),
            ("queried", self.queried),
            ("succeeded", self.succeeded),
        ];
        Snapshot { name: "entity_client", counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use lowmesh_machine::Outbox;
    use lowmesh_stack::application::Action;
    use lowmesh_units::{NodeId, Purpose, Rng, Seed};
    use lowmesh_wire::coap::{Kind, MessageId};

    struct Bench {
        client: EntityClient,
        requests: u64,
        actions: Outbox<Action>,
    }

    impl Bench {
        fn new(documents: &[&str]) -> Self {
            let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Traffic);
            let arrivals = Arrivals::Periodic { period: Duration::from_secs(10), jitter: 0.0 };
            let schedule = Schedule::new(arrivals, Duration::ZERO, None, rng);
            let arguments = vec!["delay=50".into()];
            let query = Query { entity: "room".into(), arguments, write: None };
            let documents = documents.iter().map(|&one| one.into()).collect();
            let setup = Duration::from_secs(60);
            let client = EntityClient::new(Address::UNSPECIFIED, documents, query, setup, schedule);
            Self { client, requests: 0, actions: Outbox::new() }
        }
        fn tell(&mut self, now: Instant, input: Input) -> Vec<Action> {
            let mut host =
                HostHandle::new(0, Address::UNSPECIFIED, &mut self.requests, &mut self.actions);
            self.client.handle(now, input, &mut host);
            core::iter::from_fn(|| self.actions.pop()).collect()
        }
        /// The request of the next deadline, with its time.
        fn next(&mut self) -> (Instant, RequestTemplate, RequestId) {
            let due = self.client.next_deadline().expect("it has something to do");
            let actions = self.tell(due, Input::Deadline);
            let found = actions.into_iter().find_map(|action| match action {
                Action::Request { request, message, .. } => Some((due, message, request)),
                _ => None,
            });
            found.expect("it asks")
        }
        fn answer(
            &mut self,
            now: Instant,
            request: RequestId,
            code: Code,
            text: &str,
        ) -> Vec<Action> {
            let mut message = Message::new(Kind::Acknowledgement, code, MessageId(1));
            message.payload = text.as_bytes().to_vec();
            let from = (Address::UNSPECIFIED, COAP_PORT);
            let (rtt, retransmissions) = (Duration::ZERO, 0);
            let input = Input::Response { request, from, message, rtt, retransmissions };
            self.tell(now, input)
        }
    }

    #[test]
    fn entities_are_created_in_order_until_each_is_there() {
        let mut bench = Bench::new(&["{1}", "{2}"]);
        bench.tell(Instant::from_secs(3), Input::Joined);
        let (at, message, request) = bench.next();
        assert_eq!((at, &message.payload[..]), (Instant::from_secs(60), &b"{1}"[..]));
        bench.answer(at, request, Code::GATEWAY_TIMEOUT, "");
        let (at, message, request) = bench.next();
        assert_eq!(
            (at, &message.payload[..]),
            (Instant::from_secs(60) + CREATE_AGAIN, &b"{1}"[..])
        );
        bench.answer(at, request, Code::CONFLICT, "");
        let (_, message, _) = bench.next();
        assert_eq!(message.payload, b"{2}");
    }

    #[test]
    fn the_end_of_a_query_says_how_many_members_answered() {
        let mut bench = Bench::new(&["{1}"]);
        bench.tell(Instant::ZERO, Input::Joined);
        let (at, _, request) = bench.next();
        bench.answer(at, request, Code::CREATED, "");
        let (at, message, request) = bench.next();
        assert_eq!(message.options.get(OptionNumber::URI_QUERY), Some(&b"delay=50"[..]));
        let actions = bench.answer(at, request, Code::CONTENT, "a 1\nb 2.5 C\nc ! 5.04 silent\n");
        let report = Report::QueryEnded { answered: 2, failed: 1, is_success: true };
        assert_eq!(actions, [Action::Report(report)]);
    }
}
