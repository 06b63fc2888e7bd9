//! A server on loopback, asked over every transport.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lowmesh_coap::params::BUSY_MAX_AGE_S;
use lowmesh_coap::resource::Methods;
use lowmesh_coap::{
    Config, ConnectionLimits, HostLimits, Input, Output, RequestTemplate, ResponseTemplate,
};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::oscore::over_connections;
use crate::peer::Peer;
use crate::stream_transport::StreamTransport;
use crate::transport::{Connected, Transport};

mod groups;
mod order;
mod shares;
mod sources;

/// The server's own authority is one for these tests only.
const AUTHORITY: &[u8] = include_bytes!("../../tests/tls/ca.pem");
const CHAIN: &[u8] = include_bytes!("../../tests/tls/server.pem");
const KEY: &[u8] = include_bytes!("../../tests/tls/server.key");

fn text(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT).with_payload(text.into())
}

/// A server with a few resources, and what ends it.
struct Running {
    changes: Changes,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

fn resources(server: &mut Server) {
    server.insert("/hello", Resource::new(Methods::GET, Handler::new(|_| text("hello"))));
    let later = Handler::later(async |_| {
        tokio::time::sleep(Duration::from_millis(200)).await;
        text("at last")
    });
    server.insert("/later", Resource::new(Methods::GET, later));
    let len = Handler::new(|request| text(&request.payload().len().to_string()));
    server.insert("/len", Resource::new(Methods::POST, len));
    let below = Handler::new(|request| text(&format!("{} below", request.below().count())));
    server.insert("/tree", Resource::new(Methods::GET, below).subtree());
    let count = AtomicU32::new(0);
    let count = Handler::new(move |_| text(&count.fetch_add(1, Ordering::Relaxed).to_string()));
    server.insert("/counter", Resource::new(Methods::GET, count).observable());
    let reading = Handler::new(|_| text("a reading"));
    server.insert("/reading", Resource::new(Methods::GET, reading).notify_non());
}

fn run(mut server: Server) -> Running {
    resources(&mut server);
    let (stop, stopped) = oneshot::channel();
    let changes = server.changes();
    let task = tokio::spawn(server.run(async {
        let _either_way = stopped.await;
    }));
    Running { changes, stop, task }
}

/// Ends the server, which has to end without a failure.
async fn ended(running: Running) {
    running.stop.send(()).expect("it runs");
    running.task.await.expect("no panic").expect("no failure");
}

fn server(limits: Limits) -> Server {
    Server::new(limits).expect("possible limits")
}

fn loopback() -> SocketAddr {
    "[::1]:0".parse().expect("an address")
}

/// A client over one transport, with at most one request open.
struct Client<W> {
    transport: W,
    peer: Peer,
}

fn datagrams(to: SocketAddr, sessions: Option<Sessions>) -> Client<Datagrams> {
    protected(to, sessions, None)
}

fn protected(
    to: SocketAddr,
    sessions: Option<Sessions>,
    protection: Option<Protection>,
) -> Client<Datagrams> {
    let udp = Udp::ephemeral().expect("a free port");
    let peer = udp.peer(to).expect("a route to ourselves");
    let host = over_datagrams(Config::default(), HostLimits::default(), protection, fresh_rng());
    let host = host.expect("the defaults");
    let transport = match sessions {
        Some(sessions) => Driver::secure(udp, sessions, host),
        None => Driver::new(udp, host),
    };
    Client { transport, peer }
}

fn connected(line: StreamTransport) -> Client<Connected> {
    let peer = Peer::new(line.peer, None);
    let limits = HostLimits::default();
    let host = over_connections(ConnectionLimits::default(), limits, None, fresh_rng());
    Client { transport: Connected::new(line, host), peer }
}

impl<W: Transport> Client<W> {
    fn send(&mut self, message: RequestTemplate) {
        let input = Input::Request { peer: self.peer, message, handle: Handle(1) };
        self.transport.handle(input).expect("room for one");
    }
    fn observe(&mut self, path: &str) {
        let mut observe = RequestTemplate::get(path);
        observe.options.insert_uint(OptionNumber::OBSERVE, 0);
        self.send(observe);
    }
    async fn hear(&mut self) -> Result<Message, DropReason> {
        let heard = async {
            loop {
                match self.transport.next().await.expect("an open transport") {
                    Output::Response { message, .. } | Output::Notification { message, .. } => {
                        return Ok(message);
                    }
                    Output::Failed { reason, .. } => return Err(reason),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.expect("an end within 20 s")
    }
    /// False once the transport is closed.
    async fn is_served(&mut self) -> bool {
        self.send(RequestTemplate::get("/hello"));
        loop {
            match self.transport.next().await {
                Ok(Output::Response { .. }) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
    async fn ask(&mut self, message: RequestTemplate) -> (Code, String) {
        self.send(message);
        let message = self.hear().await.expect("an answer");
        (message.code, String::from_utf8(message.payload).expect("text"))
    }
    async fn check(&mut self) {
        let hello = self.ask(RequestTemplate::get("/hello")).await;
        assert_eq!(hello, (Code::CONTENT, "hello".to_owned()));
        let long = RequestTemplate::new(Code::POST, "/len").with_payload(vec![7; 20_000]);
        assert_eq!(self.ask(long).await.1, "20000");
        assert_eq!(self.ask(RequestTemplate::get("/tree/a/b")).await.1, "2 below");
        assert_eq!(self.ask(RequestTemplate::get("/none")).await.0, Code::NOT_FOUND);
        assert_eq!(self.ask(RequestTemplate::get("/later")).await.1, "at last");
    }
}

#[tokio::test]
async fn one_server_answers_over_two_udp_addresses_and_dtls() {
    let mut server = server(Limits::default());
    let v4 = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("free");
    let v6 = server.listen_udp(loopback()).expect("free");
    let keys = Keys::new().with(b"me", b"secret").expect("short");
    let secure = server.listen_dtls(loopback(), keys, Some(b"try me")).expect("free");
    let running = run(server);
    datagrams(v4, None).check().await;
    datagrams(v6, None).check().await;
    let sessions = Sessions::client(b"me", b"secret").expect("short");
    datagrams(secure, Some(sessions)).check().await;
    ended(running).await;
}

#[tokio::test]
async fn a_server_with_contexts_answers_clients_with_one_and_refuses_others() {
    let folder = std::env::temp_dir().join(format!("lowmesh-server-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a place for files");
    let contexts = |ours, theirs| {
        let text = format!(
            "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{ours}\n\
             recipient_id,ascii,{theirs}\nssn_freq,integer,100\n"
        );
        let file = folder.join(ours);
        std::fs::write(&file, text).expect("a disk");
        Contexts::open(&file).expect("our own")
    };
    let mut server = server(Limits::default());
    let kept = contexts("server", "client");
    server.protect(kept.clone(), Plain::Refused);
    let address = server.listen_udp(loopback()).expect("free");
    let running = run(server);
    let protection = Protection {
        contexts: contexts("client", "server"),
        own_requests: crate::oscore::OwnRequests::Context(0),
        plain_requests: Plain::Refused,
    };
    protected(address, None, Some(protection)).check().await;
    let (code, _) = datagrams(address, None).ask(RequestTemplate::get("/hello")).await;
    assert_eq!(code, Code::UNAUTHORIZED);
    ended(running).await;
    kept.close().expect("a disk");
    let state = std::fs::read_to_string(folder.join("server.736572766572-636c69656e74.state"));
    assert!(state.expect("beside its file").contains("replay_seen"));
    let _left_behind = std::fs::remove_dir_all(&folder);
}

#[tokio::test]
async fn one_server_answers_over_connections_of_every_scheme() {
    let mut server = server(Limits::default());
    let mut uris = Vec::new();
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp, Scheme::CoapWs, Scheme::CoapsWs] {
        let tls = TlsServer::new(CHAIN, KEY).expect("our own");
        let any = "127.0.0.1:0".parse().expect("an address");
        let bound = server.listen_connections(any, scheme, Some(tls)).await.expect("free");
        uris.push(format!("{}://localhost:{}/", scheme.name(), bound.port()));
    }
    let running = run(server);
    let trust = crate::tls::TlsClient::trusting(AUTHORITY).expect("our own");
    for uri in &uris {
        let line = StreamTransport::connect(&uri.parse().expect("a URI"), Some(&trust)).await;
        connected(line.expect("our own server")).check().await;
    }
    ended(running).await;
}

#[tokio::test]
async fn observers_hear_of_changes_and_of_the_end() {
    let mut server = server(Limits::default());
    let address = server.listen_udp(loopback()).expect("free");
    let running = run(server);
    let mut client = datagrams(address, None);
    client.observe("/counter");
    for state in ["0", "1", "2"] {
        let heard = client.hear().await.expect("a state");
        assert_eq!(heard.payload, state.as_bytes());
        running.changes.tell("/counter");
    }
    assert_eq!(client.hear().await.expect("a state").payload, b"3");
    running.stop.send(()).expect("it runs");
    let end = client.hear().await.expect("the end");
    assert_eq!(end.code, Code::SERVICE_UNAVAILABLE);
    assert_eq!(end.options.get_uint(OptionNumber::MAX_AGE), Some(BUSY_MAX_AGE_S));
    running.task.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn a_handler_sees_whether_it_is_asked_for_a_notification() {
    let mut server = server(Limits::default());
    let text = |refresh| if refresh { "refreshed" } else { "first" };
    let handler = Handler::new(move |request| {
        ResponseTemplate::new(Code::CONTENT).with_payload(text(request.refresh).into())
    });
    server.insert("/who", Resource::new(Methods::GET, handler).observable());
    let address = server.listen_udp(loopback()).expect("free");
    let running = run(server);
    let mut client = datagrams(address, None);
    client.observe("/who");
    assert_eq!(client.hear().await.expect("a state").payload, b"first");
    running.changes.tell("/who");
    assert_eq!(client.hear().await.expect("a change").payload, b"refreshed");
    assert_eq!(client.ask(RequestTemplate::get("/who")).await.1, "first");
    ended(running).await;
}

#[tokio::test]
async fn a_resource_says_that_its_observers_are_told_with_non() {
    let mut server = server(Limits::default());
    let address = server.listen_udp(loopback()).expect("free");
    let running = run(server);
    for (path, kind) in [("/reading", Kind::NonConfirmable), ("/counter", Kind::Confirmable)] {
        let mut client = datagrams(address, None);
        client.observe(path);
        assert_eq!(client.hear().await.expect("a state").kind, Kind::Acknowledgement);
        running.changes.tell(path);
        // Nothing has proven the address yet.
        assert_eq!(client.hear().await.expect("a change").kind, Kind::Confirmable, "{path}");
        // RFC 7641 s4.5.1: one NON every 3 s.
        running.changes.tell(path);
        assert_eq!(client.hear().await.expect("a change").kind, kind, "{path}");
    }
    ended(running).await;
}

#[tokio::test]
async fn a_server_that_ends_finishes_what_it_has_begun() {
    let mut server = server(Limits::default());
    let address = server.listen_udp(loopback()).expect("free");
    let any = "127.0.0.1:0".parse().expect("an address");
    let tcp = server.listen_connections(any, Scheme::CoapTcp, None).await.expect("free");
    let running = run(server);
    let uri = format!("coap+tcp://{tcp}/").parse().expect("a URI");
    let mut line = connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    let mut client = datagrams(address, None);
    client.send(RequestTemplate::get("/later"));
    line.send(RequestTemplate::get("/later"));
    // The requests arrive; the answers take longer.
    let both = async { tokio::join!(client.hear(), line.hear()) };
    assert!(tokio::time::timeout(Duration::from_millis(50), both).await.is_err());
    running.stop.send(()).expect("it runs");
    // The server learns of it. RFC 7252 s5.9.3.4: Max-Age says when to try again.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut late = datagrams(address, None);
    late.send(RequestTemplate::get("/hello"));
    let refused = late.hear().await.expect("an answer");
    assert_eq!(refused.code, Code::SERVICE_UNAVAILABLE);
    assert_eq!(refused.options.get_uint(OptionNumber::MAX_AGE), Some(BUSY_MAX_AGE_S));
    assert_eq!(client.hear().await.expect("an answer").payload, b"at last");
    assert_eq!(line.hear().await.expect("an answer").payload, b"at last");
    running.task.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn requests_and_bodies_beyond_the_limits_are_refused() {
    let limits = Limits {
        datagrams: Config { incoming_max: 1, ..Config::default() },
        host: HostLimits { body_max: 2000, ..HostLimits::default() },
        ..Limits::default()
    };
    let mut server = server(limits);
    let address = server.listen_udp(loopback()).expect("free");
    let running = run(server);
    let mut client = datagrams(address, None);
    let long = RequestTemplate::new(Code::POST, "/len").with_payload(vec![7; 3000]);
    assert_eq!(client.ask(long).await.0, Code::REQUEST_ENTITY_TOO_LARGE);
    ended(running).await;
}

#[tokio::test]
async fn a_connection_beyond_the_limit_is_closed_and_one_that_leaves_makes_room() {
    let mut server = server(Limits { connections_max: 1, ..Limits::default() });
    let any = "127.0.0.1:0".parse().expect("an address");
    let tcp = server.listen_connections(any, Scheme::CoapTcp, None).await.expect("free");
    let running = run(server);
    let uri = format!("coap+tcp://{tcp}/").parse().expect("a URI");
    let mut first = connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    // An observer keeps its place.
    first.observe("/counter");
    first.hear().await.expect("a state");
    let mut second =
        connected(StreamTransport::connect(&uri, None).await.expect("the system accepts"));
    assert!(!second.is_served().await);
    first.transport.close().await.expect("open");
    let mut third = loop {
        // The place is free once the server has seen the end.
        let mut third =
            connected(StreamTransport::connect(&uri, None).await.expect("the system accepts"));
        if third.is_served().await {
            break third;
        }
    };
    third.check().await;
    ended(running).await;
}

#[tokio::test]
async fn a_silent_connection_is_released_unless_it_observes() {
    let mut server = server(Limits { idle_max: Duration::from_millis(100), ..Limits::default() });
    let any = "127.0.0.1:0".parse().expect("an address");
    let tcp = server.listen_connections(any, Scheme::CoapTcp, None).await.expect("free");
    let running = run(server);
    let uri = format!("coap+tcp://{tcp}/").parse().expect("a URI");
    let mut observer =
        connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    let mut silent = connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    observer.observe("/counter");
    observer.hear().await.expect("a state");
    assert_eq!(silent.ask(RequestTemplate::get("/hello")).await.1, "hello");
    let released = tokio::time::timeout(Duration::from_secs(10), silent.transport.next()).await;
    assert!(matches!(released.expect("within 10 s"), Ok(Output::Close { .. })));
    running.changes.tell("/counter");
    assert_eq!(observer.hear().await.expect("a state").payload, b"1");
    ended(running).await;
}

#[tokio::test]
async fn a_function_that_panics_ends_its_request_and_nothing_else() {
    let mut server = server(Limits::default());
    let at_once = Handler::new(|_| panic!("on purpose"));
    server.insert("/at-once", Resource::new(Methods::GET, at_once));
    let later = Handler::later(async |request| {
        tokio::task::yield_now().await;
        assert!(request.payload().len() > 9, "on purpose");
        text("not reached")
    });
    server.insert("/later-on", Resource::new(Methods::GET, later));
    let any = "127.0.0.1:0".parse().expect("an address");
    let udp = server.listen_udp(any).expect("free");
    let tcp = server.listen_connections(any, Scheme::CoapTcp, None).await.expect("free");
    let running = run(server);
    let uri = format!("coap+tcp://{tcp}/").parse().expect("a URI");
    let mut line = connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    let mut datagrams = datagrams(udp, None);
    for path in ["/at-once", "/later-on"] {
        let broken = (Code::INTERNAL_SERVER_ERROR, String::new());
        assert_eq!(datagrams.ask(RequestTemplate::get(path)).await, broken, "{path}");
        assert_eq!(line.ask(RequestTemplate::get(path)).await, broken, "{path}");
    }
    datagrams.check().await;
    line.check().await;
    ended(running).await;
}

#[tokio::test]
async fn limits_that_are_not_possible_are_refused() {
    let datagrams = Config { peers_max: 0, ..Config::default() };
    let refused = Server::new(Limits { datagrams, ..Limits::default() });
    assert!(refused.expect_err("nobody").to_string().contains("peers_max"));
}
