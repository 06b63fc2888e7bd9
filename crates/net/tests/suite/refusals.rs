//! What a server's log says of clients that it refuses, and of the keys of those that it serves.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_net::client::Client;
use lowmesh_net::dtls::Keys;
use lowmesh_net::oscore::{Contexts, Plain};
use lowmesh_net::server::{Handler, Limits, RequestLog, Served, Server};
use lowmesh_wire::coap::Code;

type Lines = Arc<Mutex<Vec<Served>>>;

/// A server over UDP and DTLS that accepts requests under OSCORE, and its log.
fn server(plain: Plain, contexts: Contexts) -> (SocketAddr, SocketAddr, Lines) {
    let lines = Lines::default();
    let mut server = Server::new(Limits::default()).expect("settings");
    let hello = Handler::new(|_| ResponseTemplate::new(Code::CONTENT));
    server.insert("/hello", Resource::new(Methods::GET, hello));
    server.protect(contexts, plain);
    let log = lines.clone();
    server.log(RequestLog::new(move |one| log.lock().expect("no panic").push(one.clone())));
    let any = "127.0.0.1:0".parse().expect("an address");
    let udp = server.listen_udp(any).expect("a port");
    let keys = Keys::new().with(b"lamp 1", b"secret").expect("a short key");
    let dtls = server.listen_dtls(any, keys, None).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    (udp, dtls, lines)
}

/// Waits for the next line.
async fn line(lines: &Lines) -> Served {
    for _ in 0..200 {
        if let Some(one) = lines.lock().expect("no panic").pop() {
            return one;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no line")
}

#[tokio::test]
async fn a_request_without_protection_is_in_the_log_with_the_reason_of_its_refusal() {
    let (udp, _, lines) = server(Plain::Refused, Contexts::default());
    let client = Client::builder().build().expect("settings");
    let answer = client.get(format!("coap://{udp}/hello")).await.expect("an answer");
    assert_eq!(answer.code(), Code::UNAUTHORIZED);
    let line = line(&lines).await;
    assert_eq!((line.method, line.path.as_str()), (Code::GET, "/hello"));
    assert_eq!(line.code, Some(Code::UNAUTHORIZED));
    assert_eq!(line.refused.as_deref(), Some("the request is not protected"));
}

#[tokio::test]
async fn the_identity_of_a_client_is_in_the_log_and_so_is_a_handshake_that_fails() {
    let (_, dtls, lines) = server(Plain::Served, Contexts::default());
    let uri = format!("coaps://{dtls}/hello");
    let client = Client::builder().key(b"lamp 1", b"secret").build().expect("a short key");
    client.get(&uri).await.expect("an answer");
    let served = line(&lines).await;
    assert_eq!((served.identity.as_deref(), served.refused), (Some("lamp 1"), None));
    let stranger = Client::builder().key(b"lamp \x1b", b"secret").build().expect("a short key");
    let asked = stranger.get(&uri).within(Duration::from_secs(2)).await;
    assert!(asked.is_err());
    let refused = line(&lines).await;
    let why = refused.refused.expect("the reason");
    assert!(why.contains("lamp \\x1b"), "{why}");
    assert_eq!((refused.code, refused.path.as_str()), (None, "-"));
}
