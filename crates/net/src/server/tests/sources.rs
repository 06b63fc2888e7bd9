//! One machine with many UDP ports has one share, and other machines are served.

use lowmesh_wire::coap::MessageId;
use tokio::net::UdpSocket;

use super::*;

const GREEDY: &str = "127.0.0.1:0";
const OTHER: &str = "127.0.0.2:0";

async fn sockets(address: &str, count: usize) -> Vec<UdpSocket> {
    let mut sockets = Vec::new();
    for _ in 0..count {
        sockets.push(UdpSocket::bind(address).await.expect("a free port"));
    }
    sockets
}

/// A request, with the Echo value of an earlier answer if there is one.
fn get(path: &str, id: u16, challenge: Option<&Message>) -> Vec<u8> {
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(id));
    get.options.insert_path(path);
    if let Some(value) = challenge.and_then(|one| one.options.get(OptionNumber::ECHO)) {
        get.options.insert(OptionNumber::ECHO, value);
    }
    get.to_vec()
}

/// The next message: an answer, or after a second the empty ACK of a request that has a place.
async fn hear(socket: &UdpSocket) -> Message {
    let mut buffer = [0; 2048];
    let len = tokio::time::timeout(Duration::from_secs(10), socket.recv(&mut buffer)).await;
    let len = len.expect("something within 10 s").expect("an open socket");
    Message::parse(&buffer[..len]).expect("our own server's")
}

fn count(answers: &[Message], code: Code) -> usize {
    answers.iter().filter(|one| one.code == code).count()
}

#[tokio::test]
async fn many_ports_of_one_address_have_one_share_and_other_addresses_are_served() {
    let limits = HostLimits { requests_max: 16, ..HostLimits::default() };
    let grace = Duration::from_millis(100);
    let mut server = server(Limits { host: limits, grace, ..Limits::default() });
    let never = Handler::later(async |_| std::future::pending().await);
    server.insert("/never", Resource::new(Methods::GET, never));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("free");
    let running = run(server);
    let greedy = sockets(GREEDY, 24).await;
    for socket in &greedy {
        socket.connect(address).await.expect("a route to ourselves");
        socket.send(&get("/never", 1, None)).await.expect("room");
    }
    let mut answers = Vec::new();
    for socket in &greedy {
        answers.push(hear(socket).await);
    }
    // A quarter of 16 is for one address, and half of that without a proof.
    let of = |answers: &[Message]| {
        [Code::EMPTY, Code::UNAUTHORIZED, Code::SERVICE_UNAVAILABLE]
            .map(|code| count(answers, code))
    };
    assert_eq!(of(&answers), [2, 22, 0]);
    let challenged: Vec<_> = greedy
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.code == Code::UNAUTHORIZED)
        .collect();
    for (socket, challenge) in &challenged {
        socket.send(&get("/never", 2, Some(challenge))).await.expect("room");
    }
    let mut answers = Vec::new();
    for (socket, _) in &challenged {
        answers.push(hear(socket).await);
    }
    assert_eq!(of(&answers), [2, 0, 20]);
    // Quick requests need no place: all ports are answered, as many more as there may be.
    let more = sockets(GREEDY, 100).await;
    for socket in &more {
        socket.connect(address).await.expect("a route to ourselves");
    }
    let all: Vec<_> = greedy.iter().chain(&more).collect();
    for socket in &all {
        socket.send(&get("/hello", 3, None)).await.expect("room");
    }
    for socket in all {
        assert_eq!(hear(socket).await.code, Code::CONTENT);
    }
    // Another address has a place of its own for what takes time.
    let other = sockets(OTHER, 1).await.remove(0);
    other.connect(address).await.expect("a route to ourselves");
    other.send(&get("/later", 1, None)).await.expect("room");
    let answer = hear(&other).await;
    assert_eq!((answer.code, &answer.payload[..]), (Code::CONTENT, &b"at last"[..]));
    ended(running).await;
}
