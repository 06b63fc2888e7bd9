//! Ten thousand confirmable exchanges over sockets and a path that loses, doubles and reorders: each request is answered
//! rightly, and executed once.
//!
//! ```text
//!   client ── socket ──► path ──► socket ── server        a path for each client; both ways are as bad
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::exchange::{ExchangeId, Input, Name, Output};
use lowmesh_coap::{Config, CongestionControl, Endpoint, RequestTemplate, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::driver::Driver;
use lowmesh_net::peer::Peer;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::Code;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

const CLIENTS: u16 = 64;
const EXCHANGES: u16 = 157;
/// Share of datagrams that are lost, each way.
const LOSS: f64 = 0.3;
/// Share of datagrams that come twice.
const DOUBLED: f64 = 0.2;
/// Longest delay of a datagram: those that leave within it change places.
const DELAY_MAX_MS: f64 = 20.0;
/// Share of requests that are answered when their ACK has left already.
const LATE: f64 = 0.25;
/// When such an answer is there.
const LATE_MS: u64 = 40;

type End = Driver<Endpoint<Peer>>;

/// Quick, and too stubborn to lose a request: half of all attempts fail, and so do 60 in a row never.
fn config() -> Config {
    let congestion = CongestionControl::new("fixed").expect("a listed name").with_nstart(4);
    Config {
        congestion: congestion.with_ack_timeout(lowmesh_units::Duration::from_millis(60)),
        max_retransmit: 60,
        ack_delay: lowmesh_units::Duration::from_millis(10),
        queue_max: 4096,
        open_max: 4096,
        incoming_max: 4096,
        ..Config::default()
    }
}

fn end(seed: u64, node: u16) -> End {
    let udp = Udp::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let rng = Rng::stream(Seed(seed), NodeId(node), Purpose::Coap);
    Driver::new(udp, Endpoint::new(config(), rng).expect("possible"))
}

/// Carries datagrams from one socket to another for ever.
async fn carry(from: Arc<UdpSocket>, to: Arc<UdpSocket>, mut rng: Rng) {
    let mut buffer = [0; 2048];
    while let Ok(len) = from.recv(&mut buffer).await {
        if rng.chance(LOSS) {
            continue;
        }
        for _ in 0..=u32::from(rng.chance(DOUBLED)) {
            let (bytes, to) = (buffer[..len].to_vec(), to.clone());
            let delay = Duration::from_secs_f64(rng.between(0.0, DELAY_MAX_MS) / 1000.0);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                // What does not get through here is lost, as any other.
                let _lost = to.send(&bytes).await;
            });
        }
    }
}

/// A path between two addresses; where the client sends to.
async fn path(client: SocketAddr, server: SocketAddr, seed: u64, node: u16) -> SocketAddr {
    let socket = async |peer| {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        socket.connect(peer).await.expect("a route to ourselves");
        Arc::new(socket)
    };
    let (front, back) = (socket(client).await, socket(server).await);
    let rng = |direction| Rng::stream(Seed(seed ^ direction), NodeId(node), Purpose::Reception);
    tokio::spawn(carry(front.clone(), back.clone(), rng(1)));
    tokio::spawn(carry(back, front.clone(), rng(2)));
    front.local_addr().expect("it is bound")
}

/// How often each request was executed, by its payload.
type Executed = BTreeMap<Vec<u8>, u32>;

/// Answers each request with its payload turned round, some at once and some late, until it is stopped.
async fn serve(mut server: End, seed: u64, mut stop: oneshot::Receiver<()>) -> (Executed, u64) {
    let mut rng = Rng::stream(Seed(seed), NodeId(0), Purpose::Traffic);
    let mut executed = Executed::new();
    let (tell, mut late) = mpsc::unbounded_channel::<(ExchangeId, ResponseTemplate)>();
    loop {
        let (exchange, response) = tokio::select! {
            output = server.next() => {
                let Output::Request { exchange, message, .. } = output.expect("a socket") else {
                    continue;
                };
                *executed.entry(message.payload.clone()).or_default() += 1;
                let turned = message.payload.into_iter().rev().collect();
                let response = ResponseTemplate::new(Code::CHANGED).with_payload(turned);
                if rng.chance(LATE) {
                    let tell = tell.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(LATE_MS)).await;
                        let _stopped = tell.send((exchange, response));
                    });
                    continue;
                }
                (exchange, response)
            }
            Some(answer) = late.recv() => answer,
            _ = &mut stop => return (executed, server.machine().counters().forgotten_early),
        };
        let handle = Name::NONE;
        server.handle(Input::Respond { exchange, response, handle }).expect("it is still open");
    }
}

/// Asks all that a client has to ask; what came back, by handle, and how many copies that took beyond the first.
async fn ask(mut client: End, to: SocketAddr, node: u16) -> (BTreeMap<u64, Vec<u8>>, u32) {
    let peer = client.udp().peer(to).expect("a route to ourselves");
    for number in 0..EXCHANGES {
        let message = RequestTemplate::new(Code::POST, "/turn").with_payload(payload(node, number));
        let handle = Name::Application(Handle(u64::from(number) + 1));
        client.handle(Input::Request { peer, message, handle }).expect("room for all");
    }
    let (mut answers, mut copies) = (BTreeMap::new(), 0);
    while answers.len() < usize::from(EXCHANGES) {
        match client.next().await.expect("a socket") {
            Output::Response { handle, message, retransmissions, .. } => {
                let Name::Application(handle) = handle else { panic!("no host is here") };
                copies += u32::from(retransmissions);
                let before = answers.insert(handle.0, message.payload);
                assert_eq!(before, None, "one request has one response");
            }
            Output::Failed { handle, reason } => panic!("{handle:?} of {node}: {}", reason.name()),
            _ => {}
        }
    }
    (answers, copies)
}

fn payload(node: u16, number: u16) -> Vec<u8> {
    format!("{node}/{number}").into_bytes()
}

#[tokio::test]
async fn ten_thousand_exchanges_over_a_bad_path_are_whole_and_executed_once() {
    let seed = 2026;
    let server = end(seed, 0);
    let address = server.udp().local_addr();
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(serve(server, seed, stopped));
    let mut clients = JoinSet::new();
    for node in 1..=CLIENTS {
        let client = end(seed, node);
        let to = path(client.udp().local_addr(), address, seed, node).await;
        clients.spawn(async move { (node, ask(client, to, node).await) });
    }
    let answered = async {
        let mut all_copies = 0;
        while let Some(client) = clients.join_next().await {
            let (node, (answers, copies)) = client.expect("no panic");
            all_copies += copies;
            for (handle, answer) in answers {
                let turned: Vec<u8> = answer.into_iter().rev().collect();
                assert_eq!(turned, payload(node, handle as u16 - 1), "a wrong answer");
            }
        }
        all_copies
    };
    let copies = tokio::time::timeout(Duration::from_secs(300), answered).await.expect("an end");
    let requests = u32::from(CLIENTS) * u32::from(EXCHANGES);
    assert!(copies > requests / 2, "{copies} copies of {requests}: the path was not bad");
    stop.send(()).expect("it serves");
    let (executed, forgotten_early) = serving.await.expect("no panic");
    assert_eq!(executed.len(), requests as usize);
    assert!(executed.values().all(|times| *times == 1), "executed again");
    assert_eq!(forgotten_early, 0);
}
