//! Connections that take places, read nothing, or write slowly do not keep others from being served.

use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{TOKEN_LEN_MAX, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::params::{OUTGOING_MAX, REQUEST_OVERHEAD, SERVED_SEND_BUFFER, STREAM_MESSAGE_MAX};
use crate::stream::Connection;

/// Octets of a long answer.
const LONG: usize = 60_000;

fn frame(message: &StreamMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(Framing::Stream, &mut bytes);
    bytes
}

fn csm() -> Vec<u8> {
    let (max_message_size, block_wise) = (Some(70_000), true);
    let most = Capabilities { max_message_size, block_wise, ..Capabilities::default() };
    frame(&Signal::Csm(most).into_message(Token::EMPTY))
}

fn get(path: &str, token: u64, observes: bool) -> Vec<u8> {
    let mut message = StreamMessage::new(Code::GET);
    message.token = Token::from_number(token, 4.min(TOKEN_LEN_MAX));
    if observes {
        message.options.insert_uint(OptionNumber::OBSERVE, 0);
    }
    message.options.insert_path(path);
    frame(&message)
}

/// A server at one port of `coap+tcp`, and how often its `/long` has been executed.
async fn long_server(limits: Limits) -> (Running, SocketAddr, &'static AtomicU32) {
    let mut server = server(limits);
    let executed: &AtomicU32 = Box::leak(Box::default());
    let long = Handler::new(|_| {
        executed.fetch_add(1, Ordering::Relaxed);
        ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; LONG])
    });
    server.insert("/long", Resource::new(Methods::GET, long).observable());
    let never = Handler::later(async |_| std::future::pending().await);
    server.insert("/never", Resource::new(Methods::GET, never));
    let later = Handler::later(async |_| {
        tokio::time::sleep(Duration::from_millis(100)).await;
        ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; LONG])
    });
    server.insert("/later-long", Resource::new(Methods::GET, later));
    let any = "127.0.0.1:0".parse().expect("an address");
    let tcp = server.listen_connections(any, Scheme::CoapTcp, None).await.expect("free");
    (run(server), tcp, executed)
}

async fn raw(to: SocketAddr, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.expect("the system accepts");
    stream.write_all(first).await.expect("open");
    stream
}

async fn client(to: SocketAddr) -> Client<Connected> {
    let uri = format!("coap+tcp://{to}/").parse().expect("a URI");
    connected(StreamTransport::connect(&uri, None).await.expect("our own server"))
}

/// All that comes until the server ends the connection, which it has to within 10 s.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes)).await;
    // A connection that is reset has ended too.
    let _ended = end.expect("an end within 10 s");
    bytes
}

#[tokio::test]
async fn idle_connections_of_one_address_shut_nobody_out() {
    let (running, tcp, _) = long_server(Limits { connections_max: 3, ..Limits::default() }).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut one = client(tcp).await;
        assert_eq!(one.ask(RequestTemplate::get("/hello")).await.1, "hello");
        idle.push(one);
    }
    let mut newcomer = client(tcp).await;
    newcomer.check().await;
    assert!(!idle[0].is_served().await, "the longest idle one has made room");
    for one in &mut idle[1..] {
        assert_eq!(one.ask(RequestTemplate::get("/hello")).await.1, "hello");
    }
    ended(running).await;
}

#[tokio::test]
async fn a_connection_that_observes_or_waits_for_an_answer_is_not_evicted() {
    let (running, tcp, _) = long_server(Limits {
        connections_max: 2,
        grace: Duration::from_millis(200),
        ..Limits::default()
    })
    .await;
    let mut observer = client(tcp).await;
    observer.observe("/counter");
    observer.hear().await.expect("a state");
    let mut waiting = client(tcp).await;
    waiting.send(RequestTemplate::get("/never"));
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting.hear()).await.is_err());
    assert!(!client(tcp).await.is_served().await);
    running.changes.tell("/counter");
    assert_eq!(observer.hear().await.expect("a state").payload, b"1");
    ended(running).await;
}

#[tokio::test]
async fn an_evicted_connection_that_does_not_read_is_cut_at_once() {
    let limits = Limits {
        connections_max: 1,
        // One connection that leaves keeps the next one out.
        opening_max: 1,
        opening_per_source: 1,
        ..Limits::default()
    };
    let (running, tcp, executed) = long_server(limits).await;
    let mut unread = raw(tcp, &csm()).await;
    let requests: Vec<u8> = (0..500).flat_map(|token| get("/long", token, false)).collect();
    unread.write_all(&requests).await.expect("room for requests");
    // The buffers of the system are full when no more answers are made.
    let mut made = u32::MAX;
    while made != executed.load(Ordering::Relaxed) {
        made = executed.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(0 < made && made < 500, "{made} answers are made");
    let mut newcomer = client(tcp).await;
    newcomer.check().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    client(tcp).await.check().await;
    drop(unread);
    ended(running).await;
}

#[tokio::test]
async fn connections_without_csm_shut_nobody_out_and_end() {
    let limits = Limits {
        opening_max: 4,
        opening_per_source: 2,
        connection: ConnectionLimits {
            csm_timeout: Duration::from_millis(500).into(),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    };
    let (running, tcp, _) = long_server(limits).await;
    let mut served = client(tcp).await;
    served.check().await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(raw(tcp, &[]).await);
    }
    client(tcp).await.check().await;
    served.check().await;
    for one in silent {
        rest(one).await;
    }
    ended(running).await;
}

#[tokio::test]
async fn handshakes_that_do_not_go_on_end_with_their_time() {
    let mut server =
        server(Limits { handshake_max: Duration::from_millis(200), ..Limits::default() });
    let any = "127.0.0.1:0".parse().expect("an address");
    let mut ports = Vec::new();
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp, Scheme::CoapWs, Scheme::CoapsWs] {
        let tls = TlsServer::new(CHAIN, KEY).expect("our own");
        let bound = server.listen_connections(any, scheme, Some(tls)).await.expect("free");
        ports.push(bound);
    }
    let running = run(server);
    for port in ports {
        rest(raw(port, &[]).await).await;
        // The first octets of a ClientHello, and of a request.
        rest(raw(port, &[22, 3, 1, 2, 0, 1]).await).await;
        rest(raw(port, b"GET /.well-known/coap HTTP/1.1\r\nHost: ").await).await;
    }
    ended(running).await;
}

#[tokio::test]
async fn a_message_that_comes_octet_by_octet_ends_its_connection() {
    let limits = Limits { receive_max: Duration::from_millis(300), ..Limits::default() };
    let (running, tcp, _) = long_server(limits).await;
    let (mut reading, mut writing) = raw(tcp, &csm()).await.into_split();
    let slow = tokio::spawn(async move {
        for octet in get("/hello", 1, false).into_iter().chain([0; 1000]) {
            if writing.write_all(&[octet]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(10), reading.read_to_end(&mut bytes)).await;
    let _reset_or_closed = end.expect("an end within 10 s");
    let said = String::from_utf8_lossy(&bytes).into_owned();
    assert!(said.contains("did not finish its message in time"), "{said:?}");
    slow.abort();
    // A connection between two messages is not slow.
    let mut patient = client(tcp).await;
    for _ in 0..2 {
        patient.ask(RequestTemplate::get("/hello")).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    patient.check().await;
    ended(running).await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_not_read_and_ends() {
    let limits = Limits { send_max: Duration::from_millis(700), ..Limits::default() };
    let (running, tcp, executed) = long_server(limits).await;
    let mut stream = raw(tcp, &csm()).await;
    let requests: Vec<u8> = (0..5000).flat_map(|token| get("/long", token, false)).collect();
    // What the server does not read fills the socket buffers, so this may block.
    let _full = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&requests)).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // Buffers of the system hold some megabytes.
    let answered = executed.load(Ordering::Relaxed) as usize;
    assert!(answered < 1000, "{answered} of 5000 answers are made for nobody");
    let read = rest(stream).await;
    assert!(read.len() < requests.len() + 1000 * LONG);
    client(tcp).await.check().await;
    ended(running).await;
}

#[tokio::test]
async fn the_system_keeps_little_for_a_peer_that_does_not_read() {
    let (running, tcp, executed) = long_server(Limits::default()).await;
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 << 10).expect("possible");
    let mut stream = socket.connect(tcp).await.expect("the system accepts");
    let requests: Vec<u8> = (0..200).flat_map(|token| get("/long", token, false)).collect();
    stream.write_all(&[csm(), requests].concat()).await.expect("room for requests");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let kept = executed.load(Ordering::Relaxed) as usize * LONG;
    let most = 2 * SERVED_SEND_BUFFER + OUTGOING_MAX + (64 << 10);
    assert!(0 < kept && kept < most, "{kept} octets are made for it");
    drop(stream);
    ended(running).await;
}

#[tokio::test]
async fn answers_that_are_ready_at_once_all_leave_although_there_is_no_room_for_all() {
    const COUNT: u64 = 8 * (OUTGOING_MAX / LONG) as u64;
    // Also where other connections have all the room that there is.
    let full = Limits { outgoing_max: 0, outgoing_per_source: 0, ..Limits::default() };
    for limits in [Limits::default(), full] {
        let (running, tcp, _) = long_server(limits).await;
        let requests: Vec<u8> =
            (0..COUNT).flat_map(|token| get("/later-long", token, false)).collect();
        // The client sends nothing more that would wake the server.
        let mut connection = Connection::new(raw(tcp, &[csm(), requests].concat()).await);
        for _ in 0..COUNT {
            assert_eq!(response(&mut connection).await.code, Code::CONTENT);
        }
        ended(running).await;
    }
}

#[tokio::test]
async fn observers_that_do_not_read_gather_no_notifications() {
    let (running, tcp, executed) = long_server(Limits::default()).await;
    let observes: Vec<u8> = [csm()]
        .into_iter()
        .chain((0..8).map(|token| get("/long", token, true)))
        .flatten()
        .collect();
    let mut connection = Connection::new(raw(tcp, &observes).await);
    for _ in 0..8 {
        assert_eq!(response(&mut connection).await.code, Code::CONTENT);
    }
    for _ in 0..1000 {
        running.changes.tell("/long");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let made = executed.load(Ordering::Relaxed) as usize;
    assert!(made > 8, "some were made");
    let most = (16 << 20) / LONG + OUTGOING_MAX / LONG;
    assert!(made < most, "{made} states are made for a peer that does not read");
    drop(connection);
    ended(running).await;
}

/// Registers an observer of `/counter` on a connection; whether it is one.
async fn observes(connection: &mut Connection<TcpStream>, token: u64) -> bool {
    let get = StreamMessage::parse(&get("/counter", token, true), Framing::Stream);
    connection.send(&get.expect("our own")).await.expect("open");
    let answer = response(connection).await;
    assert_eq!(answer.code, Code::CONTENT);
    answer.options.get(OptionNumber::OBSERVE).is_some()
}

#[tokio::test]
async fn observers_on_many_connections_have_a_total_and_a_share_of_each_source() {
    let host = HostLimits { observers_max: 4, observers_per_source: 3, ..HostLimits::default() };
    let (running, tcp, _) = long_server(Limits { host, ..Limits::default() }).await;
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(Connection::new(raw(tcp, &csm()).await));
    }
    let mut registered = Vec::new();
    for token in 0..2 {
        for connection in &mut connections {
            registered.push(observes(connection, token).await);
        }
    }
    assert_eq!(registered, [true, true, true, false, false, false]);
    // One that registers again keeps its place.
    assert!(observes(&mut connections[0], 0).await);
    let other = tokio::net::TcpSocket::new_v4().expect("a socket");
    other.bind("127.0.0.2:0".parse().expect("an address")).expect("free");
    let mut other = Connection::new(other.connect(tcp).await.expect("the system accepts"));
    let most = StreamMessage::parse(&csm(), Framing::Stream).expect("our own");
    other.send(&most).await.expect("open");
    assert!(observes(&mut other, 0).await, "another source has a place");
    assert!(!observes(&mut other, 1).await, "the total is reached");
    drop(connections.remove(0));
    // The server learns of the end of a connection a little later.
    let admitted = async {
        while !observes(&mut other, 2).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), admitted).await.expect("there is room again");
    ended(running).await;
}

#[tokio::test]
async fn a_silent_observer_is_asked_whether_it_is_there() {
    let limits = Limits {
        idle_max: Duration::from_millis(200),
        pong_max: Duration::from_millis(200),
        ..Limits::default()
    };
    let (running, tcp, _) = long_server(limits).await;
    let observes = [csm(), get("/counter", 1, true)].concat();
    let gone = raw(tcp, &observes).await;
    let bytes = rest(gone).await;
    let ping = Code::PING;
    assert!(bytes.windows(2).any(|pair| pair[1] == ping.0), "{bytes:?}");
    // A client that answers stays.
    let mut there = client(tcp).await;
    there.observe("/counter");
    there.hear().await.expect("a state");
    let silence = tokio::time::timeout(Duration::from_secs(1), there.hear()).await;
    assert!(silence.is_err(), "{silence:?}");
    running.changes.tell("/counter");
    there.hear().await.expect("a state");
    ended(running).await;
}

#[tokio::test]
async fn a_server_ends_in_time_whatever_its_peers_and_functions_do() {
    let grace = Duration::from_secs(1);
    let (running, tcp, executed) = long_server(Limits { grace, ..Limits::default() }).await;
    let mut unread = raw(tcp, &csm()).await;
    let requests: Vec<u8> = (0..500).flat_map(|token| get("/long", token, false)).collect();
    let _full = tokio::time::timeout(Duration::from_millis(200), unread.write_all(&requests)).await;
    let mut endless = client(tcp).await;
    endless.send(RequestTemplate::get("/never"));
    let half = raw(tcp, &csm()[..1]).await;
    let silent = raw(tcp, &[]).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), endless.hear()).await.is_err());
    assert!(executed.load(Ordering::Relaxed) > 0);
    let asked = tokio::time::Instant::now();
    ended(running).await;
    assert!(asked.elapsed() < grace + Duration::from_millis(500), "{:?}", asked.elapsed());
    drop((unread, half, silent));
}

/// A block of a body of 2048 octets.
fn half(number: u32) -> Vec<u8> {
    let mut message = StreamMessage::new(Code::POST);
    message.token = Token::from_number(number.into(), 1);
    message.options.insert_path("/len");
    let more = u32::from(number == 0);
    message.options.insert_uint(OptionNumber::BLOCK1, number << 4 | more << 3 | 6);
    message.payload = vec![7; 1024];
    frame(&message)
}

/// The next response on a connection.
async fn response(connection: &mut Connection<TcpStream>) -> StreamMessage {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), connection.receive()).await;
        let message = next.expect("an answer within 10 s").expect("an open connection");
        if message.code != Code::CSM {
            return message;
        }
    }
}

#[tokio::test]
async fn bodies_that_are_left_unfinished_on_many_connections_give_way_to_others() {
    let host = HostLimits { body_max: 4096, ..HostLimits::default() };
    // Room for two bodies of the longest kind, whatever the bound says.
    let (running, tcp, _) =
        long_server(Limits { host, bodies_max: 0, bodies_per_source: 0, ..Limits::default() })
            .await;
    let mut uploads = Vec::new();
    for _ in 0..20 {
        let mut connection = Connection::new(raw(tcp, &[csm(), half(0)].concat()).await);
        assert_eq!(response(&mut connection).await.code, Code::CONTINUE);
        uploads.push(connection);
    }
    let mut codes = Vec::new();
    for upload in &mut uploads {
        // The longest idle ones have been told meanwhile.
        let last = StreamMessage::parse(&half(1), Framing::Stream).expect("our own");
        upload.send(&last).await.expect("open");
        codes.push(response(upload).await.code);
    }
    let lost = codes.iter().take_while(|code| **code == Code::REQUEST_ENTITY_INCOMPLETE).count();
    assert!((8..18).contains(&lost), "{codes:?}");
    assert!(codes[lost..].iter().all(|code| *code == Code::CONTENT), "{codes:?}");
    ended(running).await;
}

#[tokio::test]
async fn slow_requests_on_many_connections_have_a_total_and_leave_it_with_their_connection() {
    let limits = Limits {
        host: HostLimits { body_max: 1024, ..HostLimits::default() },
        requests_max: 0,
        requests_per_source: 0,
        grace: Duration::from_millis(200),
        ..Limits::default()
    };
    let (running, tcp, _) = long_server(limits).await;
    let most = (1024 + STREAM_MESSAGE_MAX + REQUEST_OVERHEAD) / REQUEST_OVERHEAD;
    let never = |count: usize| -> Vec<u8> {
        (0..count as u64).flat_map(|token| get("/never", token, false)).collect()
    };
    let full = raw(tcp, &[csm(), never(most + 10)].concat()).await;
    let mut full = Connection::new(full);
    let busy = response(&mut full).await;
    assert_eq!(busy.code, Code::SERVICE_UNAVAILABLE);
    assert!(busy.options.get_uint(OptionNumber::MAX_AGE).is_some());
    let mut other = client(tcp).await;
    assert_eq!(other.ask(RequestTemplate::get("/never")).await.0, Code::SERVICE_UNAVAILABLE);
    assert_eq!(other.ask(RequestTemplate::get("/hello")).await.1, "hello", "quick ones go on");
    drop(full);
    // The server learns of the end of a connection a little later.
    let admitted = async {
        loop {
            other.send(RequestTemplate::get("/never"));
            if tokio::time::timeout(Duration::from_millis(300), other.hear()).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), admitted).await.expect("there is room again");
    ended(running).await;
}
