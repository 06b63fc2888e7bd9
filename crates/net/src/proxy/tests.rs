//! A proxy on loopback between a client and an origin.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Config, ConnectionLimits, HostLimits, Input, Output};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::uri::Scheme;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::fresh_rng;
use crate::driver::Driver;
use crate::dtls::Keys;
use crate::line::Line;
use crate::oscore::{over_connections, over_datagrams};
use crate::peer::Peer;
use crate::server::{Limits, Metrics};
use crate::udp::Udp;
use crate::way::{Connected, Datagrams, Way};

/// A server that runs until it is dropped.
struct Running {
    changes: Changes,
    metrics: Metrics,
    udp: SocketAddr,
    tcp: SocketAddr,
    _stop: oneshot::Sender<()>,
    _task: JoinHandle<io::Result<()>>,
}

fn loopback() -> SocketAddr {
    "[::1]:0".parse().expect("an address")
}

async fn run(mut server: Server) -> Running {
    let udp = server.listen_udp(loopback()).expect("free");
    let tcp = server.listen_connections(loopback(), Scheme::CoapTcp, None).await.expect("free");
    let (changes, metrics) = (server.changes(), server.metrics());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async {
        let _dropped = stopped.await;
    }));
    Running { changes, metrics, udp, tcp, _stop: stop, _task: task }
}

impl Running {
    /// A number of its metrics.
    async fn number(&self, name: &str) -> String {
        let text = self.metrics.text().await;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).to_owned()
    }
}

/// An origin whose `/count` tells how often it was asked, `/kept` the same with a tag and a Max-Age of nothing, and whose
/// `/echo` gives back what it gets.
fn origin() -> Server {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let counter = |max_age: u32, tag: &'static [u8]| {
        let count = AtomicU32::new(0);
        Handler::new(move |request: &Request| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let validates = request.message.options.get(OptionNumber::ETAG) == Some(tag);
            let code = if validates { Code::VALID } else { Code::CONTENT };
            let mut response = ResponseTemplate::new(code);
            if !validates {
                response.payload = number.to_string().into();
            }
            response.options.insert_uint(OptionNumber::MAX_AGE, max_age);
            if !tag.is_empty() {
                response.options.insert(OptionNumber::ETAG, tag);
            }
            response
        })
    };
    server.insert("/count", Resource::new(Methods::GET, counter(60, b"")));
    server.insert("/kept", Resource::new(Methods::GET, counter(0, b"v1")));
    let echo = Handler::new(|request: &Request| {
        let content = ResponseTemplate::new(Code::CONTENT);
        content.with_payload(request.payload().to_vec())
    });
    server.insert("/echo", Resource::new(Methods::ALL, echo));
    let state = AtomicU32::new(0);
    let state = Handler::new(move |_| {
        let number = state.fetch_add(1, Ordering::Relaxed);
        ResponseTemplate::new(Code::CONTENT).with_payload(number.to_string().into())
    });
    server.insert("/state", Resource::new(Methods::GET, state).observable());
    server
}

async fn origin_server() -> Running {
    run(origin()).await
}

async fn proxy_server(target: Option<&str>) -> Running {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let proxy = Proxy::new(ProxyLimits::default()).expect("the defaults");
    let proxy = match target {
        Some(target) => proxy.in_front_of(target.parse().expect("a URI")),
        None => proxy,
    };
    proxy.serve(&mut server);
    run(server).await
}

async fn ask(to: SocketAddr, message: RequestTemplate) -> Message {
    let udp = Udp::ephemeral().expect("a free port");
    let peer = udp.peer(to).expect("a route to ourselves");
    let host = over_datagrams(Config::default(), HostLimits::default(), None, fresh_rng());
    let way: Datagrams = Driver::new(udp, host.expect("the defaults"));
    hear(way, peer, message).await
}

async fn ask_over_tcp(to: SocketAddr, message: RequestTemplate) -> Message {
    let uri = format!("coap+tcp://{to}").parse().expect("a URI");
    let line = Line::connect(&uri, None).await.expect("it listens");
    let peer = Peer::new(line.peer, None);
    let host =
        over_connections(ConnectionLimits::default(), HostLimits::default(), None, fresh_rng());
    hear(Connected::new(line, host), peer, message).await
}

async fn hear(mut way: impl Way, peer: Peer, message: RequestTemplate) -> Message {
    way.handle(Input::Request { peer, message, handle: Handle(1) }).expect("room for one");
    let heard = async {
        loop {
            match way.next().await.expect("an open way") {
                Output::Response { message, .. } => return message,
                Output::Failed { reason, .. } => panic!("{}", reason.name()),
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("an end within 20 s")
}

fn request(code: Code, uri: &str) -> RequestTemplate {
    let mut request = RequestTemplate::new(code, "");
    request.options.insert(OptionNumber::PROXY_URI, uri.as_bytes());
    request
}

fn text(message: &Message) -> &str {
    std::str::from_utf8(&message.payload).expect("text")
}

#[tokio::test]
async fn a_request_goes_from_any_transport_to_any_other_with_its_whole_body() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let body = vec![b'x'; 5000];
    let targets = [("coap", origin.udp), ("coap+tcp", origin.tcp)];
    for (scheme, address) in targets {
        let put = || {
            let uri = format!("{scheme}://{address}/echo");
            request(Code::PUT, &uri).with_payload(body.clone())
        };
        assert_eq!(ask(proxy.udp, put()).await.payload, body, "coap to {scheme}");
        assert_eq!(ask_over_tcp(proxy.tcp, put()).await.payload, body, "coap+tcp to {scheme}");
    }
}

#[tokio::test]
async fn a_proxy_scheme_goes_with_uri_host_and_uri_port() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let mut get = RequestTemplate::new(Code::GET, "/count");
    get.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
    get.options.insert(OptionNumber::URI_HOST, b"[::1]");
    get.options.insert_uint(OptionNumber::URI_PORT, origin.udp.port().into());
    assert_eq!(text(&ask(proxy.udp, get).await), "1");
}

#[tokio::test]
async fn what_is_fresh_is_answered_without_the_origin_whatever_it_came_over() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap://{}/count", origin.udp));
    assert_eq!(text(&ask(proxy.udp, get()).await), "1");
    let again = ask_over_tcp(proxy.tcp, get()).await;
    assert_eq!(text(&again), "1");
    let left = again.options.get_uint(OptionNumber::MAX_AGE).expect("the proxy's own");
    assert!((55..=60).contains(&left), "{left}");
}

#[tokio::test]
async fn what_is_stale_is_validated_by_its_tag() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap://{}/kept", origin.udp));
    for _ in 0..3 {
        let answer = ask(proxy.udp, get()).await;
        assert_eq!((answer.code, text(&answer)), (Code::CONTENT, "1"), "the stored body");
    }
    let direct = ask(origin.udp, RequestTemplate::get("/kept")).await;
    assert_eq!(text(&direct), "4", "the origin was asked each time");
}

#[tokio::test]
async fn a_proxy_that_asks_itself_ends_with_5_08() {
    let proxy = proxy_server(Some("coap://127.0.0.1:1/")).await;
    let mut get = request(Code::GET, &format!("coap://{}/a", proxy.udp));
    // One hop to itself, and from there none is left.
    get.options.insert_uint(OptionNumber::HOP_LIMIT, 2);
    let answer = ask(proxy.udp, get).await;
    assert_eq!((answer.code, text(&answer)), (Code::HOP_LIMIT_REACHED, "lowmesh proxy"));
}

#[tokio::test]
async fn a_reverse_proxy_puts_its_target_before_every_path_and_serves_no_group_through_others() {
    let origin = origin_server().await;
    let proxy = proxy_server(Some(&format!("coap+tcp://{}", origin.tcp))).await;
    assert_eq!(text(&ask(proxy.udp, RequestTemplate::get("/count")).await), "1");
    let list = ask(proxy.udp, RequestTemplate::get("/.well-known/core")).await;
    assert!(text(&list).contains("</echo>"), "the origin's own: {}", text(&list));
    let group = request(Code::GET, "coap://224.0.1.187/count");
    assert_eq!(ask(proxy.udp, group).await.code, Code::PROXYING_NOT_SUPPORTED);
}

#[tokio::test]
async fn what_cannot_be_reached_or_spoken_has_its_code() {
    let proxy = proxy_server(None).await;
    for (uri, code) in [
        ("http://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coaps://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coaps+tcp://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coap+tcp://[::1]:1/", Code::BAD_GATEWAY),
        ("coap://[::1]:1/", Code::BAD_GATEWAY),
        ("coap://nobody.invalid/", Code::BAD_GATEWAY),
    ] {
        assert_eq!(ask(proxy.udp, request(Code::GET, uri)).await.code, code, "{uri}");
    }
    let plain = ask(proxy.udp, RequestTemplate::get("/hello")).await;
    assert_eq!(plain.code, Code::NOT_FOUND, "a forward proxy has no resources of its own");
}

/// Somebody who observes.
struct Observer<W> {
    way: W,
}

impl<W: Way> Observer<W> {
    fn begin(mut way: W, peer: Peer, mut message: RequestTemplate) -> Self {
        message.options.insert_uint(OptionNumber::OBSERVE, 0);
        way.handle(Input::Request { peer, message, handle: Handle(1) }).expect("room for one");
        Self { way }
    }
    /// The next state; an end is its code.
    async fn state(&mut self) -> Result<String, Code> {
        let heard = async {
            loop {
                match self.way.next().await.expect("an open way") {
                    Output::Notification { message, .. } => return Ok(text(&message).to_owned()),
                    Output::Response { message, .. } => return Err(message.code),
                    Output::Failed { reason, .. } => panic!("{}", reason.name()),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.expect("news within 20 s")
    }
}

fn observe(to: SocketAddr, message: RequestTemplate) -> Observer<Datagrams> {
    let udp = Udp::ephemeral().expect("a free port");
    let peer = udp.peer(to).expect("a route to ourselves");
    let host = over_datagrams(Config::default(), HostLimits::default(), None, fresh_rng());
    Observer::begin(Driver::new(udp, host.expect("the defaults")), peer, message)
}

async fn observe_over_tcp(to: SocketAddr, message: RequestTemplate) -> Observer<Connected> {
    let uri = format!("coap+tcp://{to}").parse().expect("a URI");
    let line = Line::connect(&uri, None).await.expect("it listens");
    let peer = Peer::new(line.peer, None);
    let host =
        over_connections(ConnectionLimits::default(), HostLimits::default(), None, fresh_rng());
    Observer::begin(Connected::new(line, host), peer, message)
}

#[tokio::test]
async fn what_several_clients_observe_is_observed_once_and_told_to_all() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    for (scheme, address) in [("coap", origin.udp), ("coap+tcp", origin.tcp)] {
        let get = || request(Code::GET, &format!("{scheme}://{address}/state"));
        let mut first = observe(proxy.udp, get());
        let before: u32 = first.state().await.expect("a state").parse().expect("a number");
        let mut second = observe_over_tcp(proxy.tcp, get()).await;
        assert_eq!(second.state().await, Ok(before.to_string()), "the origin was not asked again");
        assert_eq!(origin.number("lowmesh_coap_observers").await, "1");
        for number in before + 1..before + 4 {
            origin.changes.tell("/state");
            let state = Ok(number.to_string());
            assert_eq!((first.state().await, second.state().await), (state.clone(), state));
        }
        let plain = ask(proxy.udp, get()).await;
        assert_eq!(
            (text(&plain), plain.options.get(OptionNumber::OBSERVE)),
            (&*(before + 3).to_string(), None)
        );
        // What is over here is not told any more, so the next scheme begins alone.
        drop((first, second));
        leave(&origin).await;
    }
}

/// Changes the state until nobody observes it.
async fn leave(origin: &Running) {
    let left = async {
        while origin.number("lowmesh_coap_observers").await != "0" {
            origin.changes.tell("/state");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("an end within 20 s");
}

#[tokio::test]
async fn where_the_origin_does_not_observe_the_client_hears_one_answer_without_observe() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = request(Code::GET, &format!("coap://{}/count", origin.udp));
    let mut observer = observe(proxy.udp, get);
    assert_eq!(observer.state().await, Err(Code::CONTENT));
    assert_eq!(proxy.number("lowmesh_coap_observers").await, "0");
}

#[tokio::test]
async fn when_the_origin_ends_its_observers_behind_the_proxy_are_told() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap+tcp://{}/state", origin.tcp));
    let mut observer = observe(proxy.udp, get());
    assert_eq!(observer.state().await, Ok("0".to_owned()));
    drop(origin);
    let end = observer.state().await.expect_err("no more states");
    assert!([Code::SERVICE_UNAVAILABLE, Code::BAD_GATEWAY].contains(&end), "{end}");
}

#[tokio::test]
async fn an_observation_that_goes_round_ends_with_5_08_and_waits_not_for_itself() {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let address = server.listen_udp(loopback()).expect("free");
    let proxy = Proxy::new(ProxyLimits::default()).expect("the defaults");
    proxy.in_front_of(format!("coap://{address}").parse().expect("a URI")).serve(&mut server);
    let _proxy = run(server).await;
    let mut get = RequestTemplate::get("/a");
    get.options.insert_uint(OptionNumber::HOP_LIMIT, 4);
    assert_eq!(observe(address, get).state().await, Err(Code::HOP_LIMIT_REACHED));
}

#[tokio::test]
async fn without_room_an_observation_is_answered_once() {
    let origin = origin_server().await;
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let limits = ProxyLimits { observations_max: 0, ..ProxyLimits::default() };
    Proxy::new(limits).expect("the defaults").serve(&mut server);
    let proxy = run(server).await;
    let mut observer =
        observe(proxy.udp, request(Code::GET, &format!("coap://{}/state", origin.udp)));
    assert_eq!(observer.state().await, Err(Code::CONTENT));
}

#[tokio::test]
async fn a_target_over_dtls_is_asked_with_the_key_of_the_proxy() {
    let mut server = origin();
    let keys = Keys::new().with(b"proxy", b"secret").expect("short");
    let address = server.listen_dtls(loopback(), keys, None).expect("free");
    let _origin = run(server).await;
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let proxy = Proxy::new(ProxyLimits::default()).expect("the defaults");
    proxy.with_key(b"proxy", b"secret").expect("short").serve(&mut server);
    let proxy = run(server).await;
    let get = request(Code::GET, &format!("coaps://{address}/state"));
    assert_eq!(text(&ask(proxy.udp, get).await), "0");
}

#[tokio::test]
async fn a_server_and_its_proxy_tell_what_congestion_control_believes_of_clients_and_targets() {
    let origin = origin_server().await;
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let metrics = server.metrics();
    server.insert("/metrics", metrics.resource());
    let target = format!("coap://{}", origin.udp).parse().expect("a URI");
    let proxy = Proxy::new(ProxyLimits::default()).expect("the defaults").in_front_of(target);
    proxy.serve(&mut server);
    let proxy = run(server).await;
    assert_eq!(text(&ask(proxy.udp, RequestTemplate::get("/count")).await), "1");
    assert_eq!(ask(proxy.udp, RequestTemplate::get("/none")).await.code, Code::NOT_FOUND);
    let metrics = ask(proxy.udp, RequestTemplate::get("/metrics")).await;
    let text = text(&metrics);
    let rto = format!(
        "lowmesh_coap_rto_seconds{{endpoint=\"upstream coap\",peer=\"{}\",timer=\"default\"",
        origin.udp
    );
    assert!(text.contains(&rto), "{rto} is not in\n{text}");
    assert!(text.contains("lowmesh_coap_responses_total{class=\"4\"} 1\n"), "{text}");
}
