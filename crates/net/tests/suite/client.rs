//! The client beside servers of this crate, over every transport.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Config, CongestionControl, Output, ResponseTemplate};
use lowmesh_net::client::{self, Client, Error};
use lowmesh_net::dtls::Keys;
use lowmesh_net::oscore::{Contexts, Plain};
use lowmesh_net::proxy::{Access, Networks, Proxy, ProxyLimits};
use lowmesh_net::server::{Changes, Handler, Limits, Server};
use lowmesh_net::tls::{TlsClient, TlsServer};
use lowmesh_net::udp::Udp;
use lowmesh_wire::coap::uri::Scheme;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};
use tokio::sync::oneshot;

const AUTHORITY: &[u8] = include_bytes!("../tls/ca.pem");
const CHAIN: &[u8] = include_bytes!("../tls/server.pem");
const KEY: &[u8] = include_bytes!("../tls/server.key");
/// Long requests at once, more octets than the buffers of the system take in both directions.
const ECHOES: usize = 256;

/// A server that runs until it is dropped.
struct Running {
    udp: SocketAddr,
    dtls: SocketAddr,
    tcp: SocketAddr,
    ws: SocketAddr,
    tls: SocketAddr,
    changes: Changes,
    stop: oneshot::Sender<()>,
}

fn text(text: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT)
        .with_payload(text.into().into_bytes())
        .with_format(ContentFormat::TEXT_PLAIN)
}

fn resources(server: &mut Server) {
    server.insert("/hello", Resource::new(Methods::GET, Handler::new(|_| text("hello"))));
    let len = Handler::new(|request| text(request.payload().len().to_string()));
    server.insert("/len", Resource::new(Methods::POST | Methods::PUT, len));
    let large = Handler::new(|_| text("x".repeat(5000)));
    server.insert("/large", Resource::new(Methods::GET, large));
    let count = AtomicU32::new(0);
    let count = Handler::new(move |_| text(count.fetch_add(1, Ordering::Relaxed).to_string()));
    server.insert("/counter", Resource::new(Methods::GET, count).observable());
    let never = Handler::later(async |_| std::future::pending().await);
    server.insert("/never", Resource::new(Methods::GET, never));
}

fn loopback() -> SocketAddr {
    "[::1]:0".parse().expect("an address")
}

async fn run(prepare: impl FnOnce(&mut Server)) -> Running {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    prepare(&mut server);
    resources(&mut server);
    let udp = server.listen_udp(loopback()).expect("free");
    let keys = Keys::new().with(b"me", b"secret").expect("short");
    let dtls = server.listen_dtls(loopback(), keys, None).expect("free");
    let tcp = server.listen_connections(loopback(), Scheme::CoapTcp, None).await.expect("free");
    let ws = server.listen_connections(loopback(), Scheme::CoapWs, None).await.expect("free");
    let identity = TlsServer::new(CHAIN, KEY).expect("a chain and its key");
    // Where the name in the certificate leads everywhere.
    let localhost = "127.0.0.1:0".parse().expect("an address");
    let tls = server.listen_connections(localhost, Scheme::CoapsTcp, Some(identity)).await;
    let tls = tls.expect("free");
    let (changes, (stop, stopped)) = (server.changes(), oneshot::channel::<()>());
    tokio::spawn(server.run(async {
        let _dropped = stopped.await;
    }));
    Running { udp, dtls, tcp, ws, tls, changes, stop }
}

fn client() -> Client {
    Client::builder().patience(Duration::from_secs(20)).build().expect("the defaults")
}

#[tokio::test]
async fn one_line_asks_one_resource() {
    let server = run(|_| ()).await;
    let answer = client::get(format!("coap://{}/hello", server.udp)).await.expect("an answer");
    assert_eq!((answer.code(), &*answer.text()), (Code::CONTENT, "hello"));
    assert_eq!(answer.format(), Some(ContentFormat::TEXT_PLAIN));
    assert!(answer.rtt.is_some() && answer.is_success());
    let answer = client::post(format!("coap+tcp://{}/len", server.tcp), "four").await;
    assert_eq!(answer.expect("an answer").text(), "4");
    let answer = client::put(format!("coap://{}/len", server.udp), [0; 3000]).await;
    assert_eq!(answer.expect("an answer").text(), "3000");
}

#[tokio::test]
async fn one_client_reaches_every_scheme_at_once() {
    let server = run(|_| ()).await;
    let client = Client::builder()
        .congestion(CongestionControl::new("cocoa").expect("a listed name"))
        .key(b"me", b"secret")
        .trust(TlsClient::trusting(AUTHORITY).expect("an authority"))
        .build()
        .expect("possible settings");
    let tls = format!("coaps+tcp://localhost:{}", server.tls.port());
    let bases = [
        format!("coap://{}", server.udp),
        format!("coaps://{}", server.dtls),
        format!("coap+tcp://{}", server.tcp),
        format!("coap+ws://{}", server.ws),
        tls,
    ];
    let mut asking = tokio::task::JoinSet::new();
    for base in bases {
        for _ in 0..4 {
            let (client, base) = (client.clone(), base.clone());
            asking.spawn(async move {
                let hello = client.get(format!("{base}/hello")).await.expect(&base);
                assert_eq!(hello.text(), "hello", "{base}");
                let large = client.get(format!("{base}/large")).await.expect(&base);
                assert_eq!(large.payload().len(), 5000, "{base}");
            });
        }
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("no panic");
    }
    client.close().await.expect("nothing to store");
}

#[tokio::test]
async fn an_answer_with_an_error_code_is_an_error_on_request() {
    let server = run(|_| ()).await;
    let client = client();
    let answer = client.get(format!("coap://{}/nowhere", server.udp)).await.expect("an answer");
    assert_eq!(answer.code(), Code::NOT_FOUND);
    let error = answer.ok().expect_err("4.04");
    assert!(matches!(&error, Error::Answer(answer) if answer.code() == Code::NOT_FOUND));
    assert!(error.to_string().starts_with("4.04"), "{error}");
}

#[tokio::test]
async fn an_observation_brings_states_until_it_is_ended() {
    let server = run(|_| ()).await;
    let client = client();
    for uri in
        [format!("coap://{}/counter", server.udp), format!("coap+tcp://{}/counter", server.tcp)]
    {
        let mut counter = client.get(&uri).observe().await.expect("an observation");
        let mut before = None;
        for _ in 0..3 {
            let state = counter.next().await.expect("observed").expect("a state");
            let number: u32 = state.text().parse().expect("a number");
            assert!(before < Some(number), "{uri}");
            before = Some(number);
            server.changes.tell("/counter");
        }
        counter.end().await;
    }
}

#[tokio::test]
async fn what_is_not_observable_has_one_state() {
    let server = run(|_| ()).await;
    let client = client();
    let mut hello =
        client.get(format!("coap://{}/hello", server.udp)).observe().await.expect("an answer");
    assert_eq!(hello.next().await.expect("one").expect("a state").text(), "hello");
    assert!(hello.next().await.is_none());
    let refused = client.get(format!("coap://{}/nowhere", server.udp)).observe().await;
    assert!(matches!(refused, Err(Error::Answer(_))));
}

#[tokio::test]
async fn silence_ends_with_the_patience_and_the_error_names_the_peer() {
    let server = run(|_| ()).await;
    let client = client();
    let uri = format!("coap://{}/never", server.udp);
    let error = client.get(&uri).within(Duration::from_millis(100)).await.expect_err("silence");
    assert!(matches!(error, Error::Silence { .. }), "{error}");
    assert!(error.to_string().contains(&server.udp.to_string()), "{error}");
    assert!(error.hint().contains("within"), "{}", error.hint());
    // Nothing of it is left that the next request would have to wait for (NSTART 1).
    let hello = client.get(format!("coap://{}/hello", server.udp)).await.expect("an answer");
    assert_eq!(hello.text(), "hello");
}

#[tokio::test]
async fn a_request_that_is_dropped_makes_room_for_the_next() {
    let server = run(|_| ()).await;
    let client = client();
    for _ in 0..3 {
        let never = client.get(format!("coap://{}/never", server.udp)).send();
        assert!(tokio::time::timeout(Duration::from_millis(50), never).await.is_err());
    }
    let hello = client.get(format!("coap://{}/hello", server.udp)).await.expect("an answer");
    assert_eq!(hello.text(), "hello");
}

#[tokio::test]
async fn a_port_where_nobody_is_says_so() {
    let nobody = Udp::ephemeral().expect("free").local_addr().port();
    let client = client();
    let error = client.get(format!("coap://[::1]:{nobody}/")).await.expect_err("nobody");
    assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let error = client.get(format!("coap+tcp://[::1]:{nobody}/")).await.expect_err("nobody");
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn a_wrong_key_is_told_from_silence() {
    let server = run(|_| ()).await;
    let uri = format!("coaps://{}/hello", server.dtls);
    let wrong = Client::builder().key(b"me", b"guess").build().expect("a short key");
    let error = wrong.get(&uri).within(Duration::from_secs(2)).await.expect_err("a wrong key");
    assert!(matches!(error, Error::Handshake { .. }), "{error:?}");
    assert!(error.hint().contains("key"));
    let none = client().get(&uri).await.expect_err("no key");
    assert!(matches!(none, Error::NoKey), "{none:?}");
    let long = Client::builder().key(b"me", &[0; 65]).build();
    assert!(matches!(long, Err(Error::Key(_))));
}

#[tokio::test]
async fn the_loss_of_one_session_is_not_blamed_on_another_peer() {
    let server = run(|_| ()).await;
    let nobody = Udp::ephemeral().expect("free").local_addr().port();
    let keyed = || Client::builder().key(b"me", b"secret").build().expect("a short key");
    let uri = format!("coaps://[::1]:{nobody}/");
    let alone = keyed().get(&uri).await.expect_err("nobody");
    let client = keyed();
    client.get(format!("coaps://{}/hello", server.dtls)).await.expect("an answer");
    drop(server.stop);
    // The server closes its sessions while nothing is asked.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let error = client.get(&uri).await.expect_err("nobody");
    assert_eq!(error.to_string(), alone.to_string());
}

#[tokio::test]
async fn a_proxy_asks_for_a_client_over_another_transport() {
    let origin = run(|_| ()).await;
    let proxy = run(|server| {
        let allowed = vec!["::1".parse().expect("a range")];
        let targets = Networks { allowed, ..Networks::default() };
        let access = Access { targets, ..Access::default() };
        let limits = ProxyLimits { access, ..ProxyLimits::default() };
        Proxy::new(limits).expect("the defaults").serve(server);
    })
    .await;
    let target = format!("coap+tcp://{}/large", origin.tcp);
    let large = client().get(target).via(format!("coap://{}", proxy.udp)).await.expect("an answer");
    assert_eq!(large.payload().len(), 5000);
}

#[tokio::test]
async fn a_connection_that_its_server_has_ended_is_opened_again() {
    let server = run(|_| ()).await;
    let client = client();
    let uri = format!("coap+tcp://{}/hello", server.tcp);
    assert_eq!(client.get(&uri).await.expect("an answer").text(), "hello");
    drop(server.stop);
    // The server ends in order, and another takes its port.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut second = Server::new(Limits::default()).expect("the defaults");
    resources(&mut second);
    second.listen_connections(server.tcp, Scheme::CoapTcp, None).await.expect("free again");
    tokio::spawn(second.run(std::future::pending()));
    assert_eq!(client.get(&uri).await.expect("an answer").text(), "hello");
}

#[tokio::test]
async fn a_group_has_many_answers_and_one_peer_has_one() {
    let client = client();
    let error = client.get("coap://224.0.1.187/hello").await.expect_err("a group");
    assert!(matches!(error, Error::Group(_)), "{error:?}");
    let error = client.ping("coap://224.0.1.187").await.expect_err("a group");
    assert!(matches!(error, Error::Group(_)), "{error:?}");
    let wait = Duration::from_millis(10);
    let error = client.get("coap://[::1]/hello").gather(wait).await.expect_err("one peer");
    assert!(matches!(error, Error::NoGroup(_)), "{error:?}");
}

#[tokio::test]
async fn a_destination_can_have_a_congestion_control_of_its_own() {
    let (near, far) = (run(|_| ()).await, run(|_| ()).await);
    let client = client();
    let uris = [near.udp, far.udp].map(|address| format!("coap://{address}/hello"));
    let chosen = CongestionControl::new("6cocoa").expect("a listed name");
    client.choose_congestion_control(&uris[1], Some(chosen)).await.expect("a known timer");
    for uri in &uris {
        client.get(uri).await.expect("an answer");
    }
    let metrics = client.metrics().await;
    let told = |server: SocketAddr, timer: &str| {
        metrics.lines().any(|line| line.contains(&server.to_string()) && line.contains(timer))
    };
    assert!(told(far.udp, "\"6cocoa\"") && told(near.udp, "\"default\""), "{metrics}");
    let closed = Some(CongestionControl::default().with_nstart(0));
    let refused = client.choose_congestion_control(&uris[1], closed).await;
    assert!(matches!(refused, Err(Error::Settings(_))), "{refused:?}");
    let line = format!("coap+tcp://{}", near.tcp);
    let refused = client.choose_congestion_control(line, None).await;
    assert!(matches!(refused, Err(Error::Settings(_))), "{refused:?}");
}

#[tokio::test]
async fn a_ping_tells_the_time_there_and_back() {
    let server = run(|_| ()).await;
    let client = client();
    for uri in [format!("coap://{}", server.udp), format!("coap+ws://{}", server.ws)] {
        let pong = client.ping(&uri).await.expect("somebody there");
        assert!(pong.rtt < Duration::from_secs(20), "{uri}");
    }
}

#[tokio::test]
async fn what_is_no_uri_is_told_when_it_is_asked() {
    let error = client::get("http://[::1]/").await.expect_err("not CoAP");
    assert!(matches!(&error, Error::Uri { text, .. } if text == "http://[::1]/"));
    assert!(error.hint().contains("coap://"));
}

/// A new folder with the two ends of one OSCORE context.
fn contexts(test: &str) -> (PathBuf, Contexts, Contexts) {
    let folder = std::env::temp_dir().join(format!("lowmesh-net-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let open = |sender: &str, recipient: &str| {
        let file = folder.join(sender);
        let lines = format!(
            "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{sender}\nrecipient_id,ascii,{recipient}\n"
        );
        std::fs::write(&file, lines).expect("a folder of ours");
        Contexts::open(&file).expect("a context")
    };
    let (client, server) = (open("client", "server"), open("server", "client"));
    (folder, client, server)
}

#[tokio::test]
async fn with_a_security_context_every_request_is_protected() {
    let (folder, ours, theirs) = contexts("client-oscore");
    let server = run(|server| server.protect(theirs, Plain::Refused)).await;
    let uri = format!("coap://{}/large", server.udp);
    let plain = client().get(&uri).await.expect("an answer");
    assert_eq!(plain.code(), Code::UNAUTHORIZED);
    let protected = Client::builder().protect(ours).build().expect("possible settings");
    let large = protected.get(&uri).await.expect("an answer");
    assert_eq!(large.payload().len(), 5000);
    protected.close().await.expect("a folder of ours");
    std::fs::remove_dir_all(folder).expect("a folder of ours");
}

#[tokio::test]
async fn a_watcher_sees_every_block_that_leaves() {
    let server = run(|_| ()).await;
    let blocks = Arc::new(AtomicU32::new(0));
    let seen = blocks.clone();
    let client = Client::builder()
        .block(Exponent::fitting(64))
        .watch(move |output| {
            if matches!(output, Output::Started { .. }) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        })
        .build()
        .expect("possible settings");
    let uri = format!("coap://{}/len", server.udp);
    let answer = client.post(&uri).payload([7; 640]).option(OptionNumber::SIZE1, &[2, 128]).await;
    assert_eq!(answer.expect("an answer").text(), "640");
    assert_eq!(blocks.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn a_client_tells_what_congestion_control_believes_of_its_peers() {
    let server = run(|_| ()).await;
    let client = client();
    client.get(format!("coap://{}/hello", server.udp)).await.expect("an answer");
    client.get(format!("coap+tcp://{}/hello", server.tcp)).await.expect("an answer");
    let reports = client.reports().await;
    assert_eq!(reports.len(), 2, "its socket and its connection");
    let text = client.metrics().await;
    let rto = format!("lowmesh_coap_rto_seconds{{endpoint=\"coap\",peer=\"{}\"", server.udp);
    assert!(text.contains(&rto), "{rto} is not in\n{text}");
}

#[tokio::test]
async fn one_connection_too_many_fails_and_a_known_one_does_not() {
    let (first, second) = (run(|_| ()).await, run(|_| ()).await);
    let client = Client::builder().connections_max(1).build().expect("possible settings");
    let get = |server: &Running| client.get(format!("coap+tcp://{}/hello", server.tcp));
    let counter = client.get(format!("coap+tcp://{}/counter", first.tcp)).observe().await;
    let counter = counter.expect("a state");
    assert!(matches!(get(&second).await, Err(Error::Crowded(1))));
    assert_eq!(get(&first).await.expect("an answer").text(), "hello");
    // What nobody needs any more makes room.
    counter.end().await;
    assert_eq!(get(&second).await.expect("an answer").text(), "hello");
    // So does what has ended.
    drop(second);
    let later = async {
        while get(&first).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), later).await.expect("room within 20 s");
}

#[tokio::test]
async fn long_requests_and_their_long_answers_do_not_wait_for_each_other_on_a_connection() {
    let server = run(|server| {
        let echo = Handler::new(|request| {
            let content = ResponseTemplate::new(Code::CONTENT);
            content.with_payload(request.payload().to_vec())
        });
        server.insert("/echo", Resource::new(Methods::POST, echo));
    });
    let (server, client) = (server.await, client());
    // The CSMs allow whole messages from now on, without the bounds of unfinished bodies.
    client.get(format!("coap+tcp://{}/hello", server.tcp)).await.expect("an answer");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..ECHOES {
        let (client, uri) = (client.clone(), format!("coap+tcp://{}/echo", server.tcp));
        asking.spawn(async move {
            let answer = client.post(uri).payload(vec![7; 64 << 10]);
            let answer = answer.within(Duration::from_secs(60)).await.expect("an answer");
            assert_eq!(answer.ok().expect("an echo").payload().len(), 64 << 10);
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("all are answered");
    }
}

#[tokio::test]
async fn a_ping_and_a_choice_end_with_the_patience_while_a_connection_opens() {
    let silent = tokio::net::TcpListener::bind("[::1]:0").await.expect("free");
    let uri = format!("coap+ws://{}", silent.local_addr().expect("bound"));
    let client = Client::builder().patience(Duration::from_millis(200)).build();
    let client = client.expect("the defaults");
    let surely = Duration::from_secs(5);
    let pong = tokio::time::timeout(surely, client.ping(&uri)).await.expect("an end");
    assert!(matches!(pong, Err(Error::Silence { .. })), "{pong:?}");
    let choice = client.choose_congestion_control(&uri, None);
    let choice = tokio::time::timeout(surely, choice).await.expect("an end");
    assert!(matches!(choice, Err(Error::Silence { .. })), "{choice:?}");
}

/// A server over DTLS that has gone without a word when its task is aborted.
async fn secure(at: SocketAddr) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    resources(&mut server);
    // The port of the server before is free as soon as its tasks have gone.
    let bound = loop {
        let keys = Keys::new().with(b"me", b"secret").expect("short");
        match server.listen_dtls(at, keys, None) {
            Ok(bound) => break bound,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    (bound, tokio::spawn(async move { drop(server.run(std::future::pending::<()>()).await) }))
}

/// RFC 6347 s4.2.8: a server that has lost its sessions says nothing, and its client begins a new handshake.
#[tokio::test]
async fn a_server_that_restarts_without_a_word_is_reached_in_a_new_session() {
    // MAX_TRANSMIT_WAIT of 0.45 s.
    let congestion =
        CongestionControl::default().with_ack_timeout(Duration::from_millis(100).into());
    let datagrams = Config { max_retransmit: 1, ..Config::default() };
    let builder = Client::builder().datagrams(datagrams).congestion(congestion);
    let client = builder.key(b"me", b"secret").build().expect("possible");
    let (at, mut serving) = secure(loopback()).await;
    let uri = format!("coaps://{at}/hello");
    let patience = Duration::from_secs(20);
    for request in [patience, Duration::from_millis(50)] {
        let before = client.get(&*uri).within(patience).await.expect("an answer");
        assert_eq!(before.text(), "hello");
        serving.abort();
        let _aborted = (&mut serving).await;
        (_, serving) = secure(at).await;
        // The requests of the old session fail: at once or, with a caller of little patience, some of them.
        let mut failures = 0;
        while client.get(&*uri).within(request).await.is_err() {
            failures += 1;
            assert!(failures <= if request == patience { 1 } else { 100 }, "{failures} failures");
        }
        assert!(failures > 0);
    }
}
