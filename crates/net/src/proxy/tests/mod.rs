//! A proxy on loopback between a client and an origin.

mod access;
mod fairness;
mod loops;
mod observation;
mod protected;
mod relay;
mod rules;

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
use crate::oscore::{over_connections, over_datagrams};
use crate::peer::Peer;
use crate::server::{Limits, Metrics};
use crate::stream_transport::StreamTransport;
use crate::transport::{Connected, Datagrams, Transport};
use crate::udp::Udp;

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

/// Of a proxy that asks this machine.
fn limits() -> ProxyLimits {
    let allowed = ["::1", "127.0.0.0/8"].map(|range| range.parse().expect("a range"));
    let targets = Networks { allowed: allowed.to_vec(), denied: Vec::new() };
    ProxyLimits { access: Access { targets, ..Access::default() }, ..ProxyLimits::default() }
}

fn forward_proxy(limits: ProxyLimits) -> Proxy {
    Proxy::new(limits).expect("possible limits")
}

fn reverse_proxy(target: &str) -> Proxy {
    let proxy = forward_proxy(ProxyLimits::default());
    proxy.in_front_of(target.parse().expect("a URI"))
}

async fn serve(proxy: Proxy) -> Running {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    proxy.serve(&mut server);
    run(server).await
}

async fn proxy_server(target: Option<&str>) -> Running {
    serve(target.map_or_else(|| forward_proxy(limits()), reverse_proxy)).await
}

async fn ask(to: SocketAddr, message: RequestTemplate) -> Message {
    ask_with(Udp::ephemeral().expect("a free port"), to, message).await
}

async fn ask_with(udp: Udp, to: SocketAddr, message: RequestTemplate) -> Message {
    let peer = udp.peer(to).expect("a route to ourselves");
    let host = over_datagrams(Config::default(), HostLimits::default(), None, fresh_rng());
    let transport: Datagrams = Driver::new(udp, host.expect("the defaults"));
    hear(transport, peer, message).await
}

async fn ask_over_tcp(to: SocketAddr, message: RequestTemplate) -> Message {
    let (transport, peer) = over_tcp(to).await;
    hear(transport, peer, message).await
}

async fn over_tcp(to: SocketAddr) -> (impl Transport, Peer) {
    let uri = format!("coap+tcp://{to}").parse().expect("a URI");
    let line = StreamTransport::connect(&uri, None).await.expect("it listens");
    let peer = Peer::new(line.peer, None);
    let host =
        over_connections(ConnectionLimits::default(), HostLimits::default(), None, fresh_rng());
    (Connected::new(line, host), peer)
}

async fn hear(transport: impl Transport, peer: Peer, message: RequestTemplate) -> Message {
    Box::pin(hear_within(Duration::from_secs(20), transport, peer, message)).await
}

async fn hear_within(
    most: Duration,
    mut transport: impl Transport,
    peer: Peer,
    message: RequestTemplate,
) -> Message {
    transport.handle(Input::Request { peer, message, handle: Handle(1) }).expect("room for one");
    let heard = async {
        loop {
            match transport.next().await.expect("an open transport") {
                Output::Response { message, .. } => return message,
                Output::Failed { reason, .. } => panic!("{}", reason.name()),
                _ => {}
            }
        }
    };
    tokio::time::timeout(most, heard).await.expect("an end in time")
}

fn request(code: Code, uri: &str) -> RequestTemplate {
    let mut request = RequestTemplate::new(code, "");
    request.options.insert(OptionNumber::PROXY_URI, uri.as_bytes());
    request
}

fn text(message: &Message) -> &str {
    std::str::from_utf8(&message.payload).expect("text")
}

/// An observer.
struct Observer<W> {
    transport: W,
}

impl<W: Transport> Observer<W> {
    fn begin(mut transport: W, peer: Peer, mut message: RequestTemplate) -> Self {
        message.options.insert_uint(OptionNumber::OBSERVE, 0);
        transport
            .handle(Input::Request { peer, message, handle: Handle(1) })
            .expect("room for one");
        Self { transport }
    }
    /// The next state; an end is its code.
    async fn state(&mut self) -> Result<String, Code> {
        let heard = async {
            loop {
                match self.transport.next().await.expect("an open transport") {
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
    observe_with(Udp::ephemeral().expect("a free port"), to, message)
}

fn observe_with(udp: Udp, to: SocketAddr, message: RequestTemplate) -> Observer<Datagrams> {
    let peer = udp.peer(to).expect("a route to ourselves");
    let host = over_datagrams(Config::default(), HostLimits::default(), None, fresh_rng());
    Observer::begin(Driver::new(udp, host.expect("the defaults")), peer, message)
}

async fn observe_over_tcp(to: SocketAddr, message: RequestTemplate) -> Observer<Connected> {
    let uri = format!("coap+tcp://{to}").parse().expect("a URI");
    let line = StreamTransport::connect(&uri, None).await.expect("it listens");
    let peer = Peer::new(line.peer, None);
    let host =
        over_connections(ConnectionLimits::default(), HostLimits::default(), None, fresh_rng());
    Observer::begin(Connected::new(line, host), peer, message)
}
