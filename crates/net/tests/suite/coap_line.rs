//! Connections of all four schemes on loopback, and those that must fail.

use std::net::SocketAddr;

use lowmesh_net::stream::StreamError;
use lowmesh_net::stream_transport::{ConnectError, Listener, StreamTransport};
use lowmesh_net::tls::{TlsClient, TlsServer};
use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::uri::{Scheme, Uri};
use lowmesh_wire::coap::{Code, Token};

/// An authority and a server that it has certified, for localhost and until 2126. Made for these tests only.
const AUTHORITY: &[u8] = include_bytes!("../tls/ca.pem");
const CHAIN: &[u8] = include_bytes!("../tls/server.pem");
const KEY: &[u8] = include_bytes!("../tls/server.key");

fn server_tls() -> TlsServer {
    TlsServer::new(CHAIN, KEY).expect("our own")
}

fn client_tls() -> TlsClient {
    TlsClient::trusting(AUTHORITY).expect("our own")
}

async fn listener(scheme: Scheme) -> (Listener, Uri) {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(any, scheme, Some(server_tls())).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let uri = format!("{}://localhost:{port}/", scheme.name()).parse().expect("a URI");
    (listener, uri)
}

#[tokio::test]
async fn settings_and_a_large_message_cross_connections_of_every_scheme() {
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp, Scheme::CoapWs, Scheme::CoapsWs] {
        let (listener, uri) = listener(scheme).await;
        let server = tokio::spawn(async move {
            let incoming = listener.accept().await.expect("a client");
            let mut line = incoming.open().await.expect("a client that shakes hands");
            while let Ok(message) = line.receive().await {
                line.send(&message).await.expect("open");
            }
        });
        let mut line =
            StreamTransport::connect(&uri, Some(&client_tls())).await.expect("our own server");
        let csm = Signal::Csm(Capabilities { block_wise: true, ..Capabilities::default() });
        let mut put = StreamMessage::new(Code::PUT);
        put.payload = vec![7; 60_000];
        for message in [csm.into_message(Token::EMPTY), put] {
            line.send(&message).await.expect("open");
            assert_eq!(line.receive().await.expect("whole"), message, "{}", scheme.name());
        }
        line.close().await.expect("open");
        server.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_server_that_no_authority_of_ours_has_certified_is_refused() {
    let (listener, uri) = listener(Scheme::CoapsTcp).await;
    let server = tokio::spawn(async move {
        let incoming = listener.accept().await.expect("a client");
        incoming.open().await.is_err()
    });
    // A chain of its own certificate does not make it an authority.
    let stranger = TlsClient::trusting(CHAIN).expect("a certificate");
    let refused = StreamTransport::connect(&uri, Some(&stranger)).await;
    assert!(matches!(refused, Err(ConnectError::Tls(_))));
    assert!(server.await.expect("no panic"));
}

#[tokio::test]
async fn what_cannot_be_connected_is_told_why() {
    let failure = |text: &'static str| async move {
        let uri: Uri = text.parse().expect("a URI");
        StreamTransport::connect(&uri, None).await.expect_err(text).to_string()
    };
    assert!(failure("coap://localhost/").await.contains("no connections"));
    assert!(failure("coaps+tcp://localhost/").await.contains("trust"));
    assert!(failure("coap+tcp://127.0.0.1:1/").await.contains("127.0.0.1:1"));
}

#[tokio::test]
async fn a_peer_that_does_not_speak_coap_is_malformed() {
    let (listener, uri) = listener(Scheme::CoapTcp).await;
    let server = tokio::spawn(async move {
        let mut line = listener.accept().await.expect("one").open().await.expect("no handshake");
        line.receive().await
    });
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", uri.port())).await.expect("open");
    let hello = b"\xff\xff\xff\xff\xffGET / HTTP/1.1\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, hello).await.expect("open");
    let refused = server.await.expect("no panic");
    assert!(matches!(refused, Err(StreamError::Malformed(_))));
}
