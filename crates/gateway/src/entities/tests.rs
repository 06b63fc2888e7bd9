//! The manager between a client and members on loopback.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration as Wait;

use lowmesh_group::gate::Gate;
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_machine::DropReason;
use lowmesh_registry::Registry;
use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, MessageId, OptionNumber};

use super::*;
use lowmesh_net::clock::fresh_rng;
use lowmesh_net::server::Limits;

fn text(value: String) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT)
        .with_payload(value.into_bytes())
        .with_format(ContentFormat::TEXT_PLAIN)
}

/// Starts a member with a sensor; its address.
fn member(value: u16) -> SocketAddr {
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor = Handler::new(move |_| text(value.to_string()));
    server.insert("/s/t", Resource::new(Methods::GET, sensor).format(ContentFormat::TEXT_PLAIN));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

fn manager() -> SocketAddr {
    let clock = Clock::start();
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now()).expect("empty");
    let mut server = Server::new(Limits::default()).expect("settings");
    let client = Client::builder().build().expect("settings");
    tokio::spawn(serve(&mut server, manager, client, Setup::new(clock)).0);
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

#[tokio::test]
async fn a_client_creates_queries_and_deletes_an_entity_of_real_servers() {
    let (members, manager) = ([member(20), member(23)], manager());
    let client = Client::builder().build().expect("settings");
    let er = members.map(|member| format!("\"coap://{member}/s/t\"")).join(",");
    let document = format!("{{\"name\":\"room\",\"er\":[{er}]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    let created = created.expect("an answer");
    assert_eq!(created.code(), Code::CREATED, "{}", created.text());
    let average = client.get(format!("coap://{manager}/e/room?eo=avg")).await.expect("an answer");
    assert_eq!((average.code(), &*average.text()), (Code::CONTENT, "21.5"));
    let list = client.get(format!("coap://{manager}/e/room")).await.expect("an answer");
    assert_eq!(list.text().lines().count(), 2, "{}", list.text());
    let deleted = client.delete(format!("coap://{manager}/e/room")).await.expect("an answer");
    assert_eq!(deleted.code(), Code::DELETED);
}

#[tokio::test]
async fn a_member_that_is_gone_shows_as_failed_and_the_answer_still_comes() {
    let (alive, manager) = (member(20), manager());
    let client = Client::builder().build().expect("settings");
    // It answers the validation, and then no more.
    let (stop, stopped) = oneshot::channel::<()>();
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor = Handler::new(|_| text("5".to_owned()));
    server.insert("/s/t", Resource::new(Methods::GET, sensor));
    let dying = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let running = tokio::spawn(server.run(async move { _ = stopped.await }));
    let document =
        format!("{{\"name\":\"room\",\"er\":[\"coap://{alive}/s/t\",\"coap://{dying}/s/t\"]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    stop.send(()).expect("it runs");
    running.await.expect("no panic").expect("no failure");
    let query = client.get(format!("coap://{manager}/e/room?deadline=1500"));
    let answer = query.within(Wait::from_secs(10)).await.expect("an answer");
    assert_eq!(answer.code(), Code::CONTENT);
    assert!(answer.text().contains(" ! 5.04 "), "{}", answer.text());
}

/// Starts a member whose reading others can change; its address, its value, and the news of it.
fn changing(value: u16) -> (SocketAddr, Arc<AtomicU16>, Changes) {
    let mut server = Server::new(Limits::default()).expect("settings");
    let value = Arc::new(AtomicU16::new(value));
    let shown = value.clone();
    let sensor = Handler::new(move |_| text(shown.load(Ordering::Relaxed).to_string()));
    let sensor = Resource::new(Methods::GET, sensor).format(ContentFormat::TEXT_PLAIN);
    server.insert("/s/t", sensor.observable());
    let changes = server.changes();
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    (address, value, changes)
}

#[tokio::test]
async fn an_observer_of_an_entity_gets_its_mean_when_a_member_changes() {
    let (first, value, changes) = changing(20);
    let (second, fixed, manager) = (changing(23).0, member(26), manager());
    let client = Client::builder().build().expect("settings");
    let er = [first, second, fixed].map(|member| format!("\"coap://{member}/s/t\"")).join(",");
    let document = format!("{{\"name\":\"room\",\"er\":[{er}]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    let mut states = client
        .get(format!("coap://{manager}/e/room?eo=avg&c.st=1"))
        .observe()
        .await
        .expect("a first state");
    let next = async |states: &mut lowmesh_net::client::Observation| {
        let state = tokio::time::timeout(Wait::from_secs(10), states.next()).await;
        state.expect("in time").expect("no end").expect("a state").text().into_owned()
    };
    assert_eq!(next(&mut states).await, "23");
    // Half a degree of the mean is too little to be told.
    for (number, expected) in [(21, None), (26, Some("25")), (17, Some("22"))] {
        value.store(number, Ordering::Relaxed);
        changes.tell("/s/t");
        if let Some(expected) = expected {
            assert_eq!(next(&mut states).await, expected);
        } else {
            let early = tokio::time::timeout(Wait::from_millis(300), states.next()).await;
            assert!(early.is_err(), "{early:?}");
        }
    }
    states.end().await;
    let profile = client.get(format!("coap://{manager}/e/room/profile")).observe().await;
    let mut profile = profile.expect("a profile");
    assert!(profile.next().await.is_some_and(|state| state.is_ok()));
    assert!(profile.next().await.is_none(), "a profile is not observed");
}

/// Makes entities of two managers members of each other; the address of one.
async fn cycle(client: &Client) -> SocketAddr {
    let (sensor, managers) = (member(20), [manager(), manager()]);
    let sensor = format!("\"coap://{sensor}/s/t\"");
    for own in managers {
        let document = format!("{{\"name\":\"room\",\"er\":[{sensor}]}}");
        let created = client.post(format!("coap://{own}/e")).payload(document).await;
        assert_eq!(created.expect("an answer").code(), Code::CREATED);
    }
    for [own, other] in [[managers[1], managers[0]], managers] {
        let profile = format!("{{\"er\":[{sensor},\"coap://{other}/e/room\"]}}");
        let uri = format!("coap://{own}/e/room/profile");
        let changed = client.request(Code::IPATCH, uri).payload(profile).await;
        assert_eq!(changed.expect("an answer").code(), Code::CHANGED);
    }
    managers[0]
}

#[tokio::test]
async fn a_cycle_of_two_managers_ends_after_a_few_hops() {
    let client = Client::builder().build().expect("settings");
    let one = cycle(&client).await;
    let ask = |query: &str| {
        let request = client.get(format!("coap://{one}/e/room{query}"));
        // With 16 hops, each of which waits for the one before (NSTART), it takes a quarter of a minute.
        request.option(OptionNumber::HOP_LIMIT, &[4]).within(Wait::from_secs(30))
    };
    let answer = ask("").await.expect("an answer");
    assert_eq!(answer.code(), Code::CONTENT);
    // The fourth manager refuses, and each of the three before it has its own sensor.
    assert!(answer.text().contains("5.08"), "{}", answer.text());
    assert_eq!(answer.text().matches(" 20").count(), 3, "{}", answer.text());
    let mut states = ask("?eo=max").observe().await.expect("a first state");
    let first = states.next().await.expect("no end").expect("a state");
    assert_eq!(first.text(), "20");
    let more = tokio::time::timeout(Wait::from_secs(1), states.next()).await;
    assert!(more.is_err(), "nothing has changed, but {more:?}");
}

/// A manager's task whose requests go to a socket that answers nothing; the test says what they lead to.
struct Silence {
    task: Task,
    socket: std::net::UdpSocket,
}

impl Silence {
    /// One member in an entity, with a gate that repeats requests early.
    fn new() -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let gate = Registry::<dyn Gate>::builtin().choose("gate-climb").expect("a row");
        let (clock, store) = (Clock::start(), Box::new(Memory::default()));
        let config = Config { gate, ..Config::default() };
        let manager = Manager::open(config, store, fresh_rng(), clock.now()).expect("empty");
        let server = Server::new(Limits::default()).expect("settings");
        let client = Client::builder().build().expect("settings");
        let (task, _answers) = Task::new(manager, client, clock, server.changes());
        let mut silence = Self { task, socket };
        let member = silence.socket.local_addr().expect("bound");
        let document = format!("{{\"name\":\"room\",\"er\":[\"coap://{member}/t\"]}}");
        let mut created = silence.request(Code::POST, "/e", document);
        silence.answer(1, 1, b"</t>;ct=0");
        assert_eq!(created.try_recv().expect("an answer").code, Code::CREATED);
        silence
    }
    fn request(
        &mut self,
        code: Code,
        path: &str,
        payload: String,
    ) -> oneshot::Receiver<ResponseTemplate> {
        let mut message = Message::new(Kind::Confirmable, code, MessageId(1));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        message.options.insert_path(path);
        message.options.insert_query(query);
        message.payload = payload.into_bytes();
        let (reply, response) = oneshot::channel();
        let client = IpAddr::from([127, 0, 0, 1]);
        self.event(Event::Request { client, message, reply });
        response
    }
    fn event(&mut self, event: Event) {
        self.task.take(event);
        self.task.carry_out();
    }
    fn answer(&mut self, attempt: Attempt, exchange: u64, payload: &[u8]) {
        let mut message = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(1));
        message.payload = payload.to_vec();
        if payload.starts_with(b"<") {
            let format = ContentFormat::LINK_FORMAT.0;
            message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.into());
        }
        let (exchange, rtt) = (ExchangeId(exchange), Duration::from_millis(1));
        let input = Input::Response { exchange, message, rtt, retransmissions: 0 };
        self.event(Event::Member { attempt, input });
    }
    fn fail(&mut self, attempt: Attempt, exchange: u64) {
        let (exchange, reason) = (ExchangeId(exchange), DropReason::GaveUp);
        self.event(Event::Member { attempt, input: Input::Failed { exchange, reason } });
    }
    /// Waits until the gate has repeated the request.
    async fn repeat(&mut self) {
        let due = self.task.manager.next_deadline().expect("the gate is not patient");
        tokio::time::sleep(self.task.clock.until(due)).await;
        self.event(Event::Deadline);
    }
}

#[tokio::test]
async fn a_failure_from_before_a_repetition_is_none_of_the_request() {
    let mut silence = Silence::new();
    let mut query = silence.request(Code::GET, "/e/room", String::new());
    silence.repeat().await;
    // Attempt 2 has failed before the gate cancelled it; attempt 3 is under way.
    silence.fail(2, 2);
    assert!(query.try_recv().is_err(), "the manager has given the member up");
    silence.answer(3, 2, b"21");
    let answer = query.try_recv().expect("an answer");
    assert_eq!(answer.code, Code::CONTENT);
    assert!(answer.payload.ends_with(b" 21\n"), "{answer:?}");
}

#[tokio::test]
async fn a_response_counts_whichever_attempt_it_answers_and_a_last_failure_ends_the_request() {
    let mut silence = Silence::new();
    let mut query = silence.request(Code::GET, "/e/room?eo=max", String::new());
    silence.repeat().await;
    silence.answer(2, 2, b"21");
    let answer = query.try_recv().expect("an answer");
    assert_eq!(answer.payload, b"21");
    silence.fail(3, 2);
    let mut query = silence.request(Code::GET, "/e/room", String::new());
    silence.fail(4, 3);
    let answer = query.try_recv().expect("an answer");
    assert_eq!(answer.code, Code::GATEWAY_TIMEOUT);
}
