//! Floods, paths that take nothing, and hints that nobody can check.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lowmesh_coap::{Config, Endpoint, RequestTemplate, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_units::{NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::Code;

use super::*;
use crate::clock::fresh_rng;
use crate::dtls::Keys;

fn driver() -> Driver<Endpoint<Peer>> {
    let udp = Udp::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    Driver::new(udp, Endpoint::new(Config::default(), fresh_rng()).expect("the defaults"))
}

#[tokio::test]
async fn a_flood_leaves_time_to_the_other_tasks() {
    let mut driver = driver();
    let flood = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    flood.connect(driver.udp().local_addr()).expect("a route");
    // What the socket has room for; each is malformed, which the endpoint says.
    for _ in 0..2 * READ_IN_A_ROW_MAX {
        flood.send(b"\x00").expect("a route");
    }
    let heard = Arc::new(AtomicUsize::new(0));
    // The socket is readable from now on.
    driver.next().await.expect("an open socket");
    let other = {
        let heard = heard.clone();
        tokio::spawn(async move { heard.load(Ordering::Relaxed) })
    };
    let hearing = async {
        loop {
            driver.next().await.expect("an open socket");
            heard.fetch_add(1, Ordering::Relaxed);
        }
    };
    let all = tokio::time::timeout(Duration::from_millis(500), hearing).await;
    assert!(all.is_err());
    let (before, all) = (other.await.expect("no panic"), heard.load(Ordering::Relaxed));
    assert!(all > READ_IN_A_ROW_MAX + BATCH, "only {all} have come");
    assert!(before <= READ_IN_A_ROW_MAX + BATCH, "{before} of {all} came first");
}

#[tokio::test]
async fn an_empty_datagram_is_dropped_and_the_next_one_is_heard() {
    let mut driver = driver();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    stranger.connect(driver.udp().local_addr()).expect("a route");
    for bytes in [&b""[..], b"", b"\x00"] {
        stranger.send(bytes).expect("a route");
    }
    let heard = tokio::time::timeout(Duration::from_secs(10), driver.next()).await;
    assert!(matches!(heard, Ok(Ok(exchange::Output::Discarded { .. }))), "{heard:?}");
}

#[tokio::test]
async fn a_machine_that_takes_nothing_leaves_room_for_the_others() {
    let mut driver = driver();
    let of = |host: u16, port: u16| {
        let [upper, lower] = host.to_be_bytes();
        Peer::new(SocketAddr::from(([10, 0, upper, lower], port)), None)
    };
    for port in 1..=2 * UNSENT_PER_SOURCE_MAX as u16 {
        driver.queue(of(1, port), vec![0]);
    }
    assert_eq!(driver.unsent.len(), UNSENT_PER_SOURCE_MAX);
    assert_eq!(driver.lost(), UNSENT_PER_SOURCE_MAX as u64);
    driver.queue(of(2, 1), vec![0]);
    assert_eq!(driver.unsent.len(), UNSENT_PER_SOURCE_MAX + 1);
    for host in 3..2 * UNSENT_MAX as u16 {
        driver.queue(of(host, 1), vec![0]);
    }
    assert_eq!(driver.unsent.len(), UNSENT_MAX);
}

#[test]
fn so_many_hints_are_followed_within_a_period() {
    let mut hints = Hints::default();
    let start = Instant::from_secs(5);
    let taken = |hints: &mut Hints, now| (0..1000).filter(|_| hints.take(now)).count();
    assert_eq!(taken(&mut hints, start), UNREACHABLE_MAX as usize);
    assert_eq!(taken(&mut hints, start + lowmesh_units::Duration::from_millis(999)), 0);
    let next = start + UNREACHABLE_PERIOD.into();
    assert_eq!(taken(&mut hints, next), UNREACHABLE_MAX as usize);
}

/// RFC 7252 s9.1.1: within another session it is another message.
#[tokio::test]
async fn a_client_that_begins_again_is_asked_for_again_although_its_message_is_the_same() {
    // The same message ID and token each time.
    let endpoint = || {
        let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        Endpoint::new(Config::default(), rng).expect("the defaults")
    };
    let mut port: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let udp = Udp::bind(port).expect("a free port");
    let to = udp.local_addr();
    let keys = Keys::new().with(b"me", b"secret").expect("short enough");
    let mut server = Driver::secure(udp, Sessions::server(keys, None), endpoint());
    let mut asked = 0;
    for _ in 0..2 {
        let udp = Udp::bind(port).expect("a free port");
        port = udp.local_addr();
        let peer = udp.peer(to).expect("a route");
        let sessions = Sessions::client(b"me", b"secret").expect("short enough");
        let mut client = Driver::secure(udp, sessions, endpoint());
        let message = RequestTemplate::get("/");
        let handle = exchange::Name::Application(Handle(1));
        let request = exchange::Input::Request { peer, message, handle };
        client.handle(request).expect("room for one");
        let conversation = async {
            loop {
                tokio::select! {
                    output = server.next() => {
                        let output = output.expect("an open socket");
                        if let exchange::Output::Request { exchange, .. } = output {
                            asked += 1;
                            let response = ResponseTemplate::new(Code::CONTENT);
                            let handle = exchange::Name::NONE;
                            let respond = exchange::Input::Respond { exchange, response, handle };
                            server.handle(respond).expect("it waits");
                        }
                    }
                    output = client.next() => match output.expect("an open socket") {
                        exchange::Output::Response { .. } => return,
                        exchange::Output::Failed { reason, .. } => panic!("{}", reason.name()),
                        _ => {}
                    },
                }
            }
        };
        let heard = tokio::time::timeout(Duration::from_secs(20), conversation);
        heard.await.expect("an answer within 20 s");
    }
    assert_eq!(asked, 2);
}
