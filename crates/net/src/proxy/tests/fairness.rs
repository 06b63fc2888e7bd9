//! Slow and silent targets, and clients that ask for much, beside others.

use std::net::UdpSocket;
use std::time::Instant;

use lowmesh_coap::CongestionControl;
use lowmesh_wire::coap::{Kind, MessageId};
use tokio::task::JoinSet;

use super::*;

/// A server whose `/slow` takes so long.
async fn slow_origin(wait: Duration) -> Running {
    let mut server = origin();
    let slow = Handler::later(move |_| async move {
        tokio::time::sleep(wait).await;
        // Each is asked for.
        ResponseTemplate::new(Code::CONTENT).with_option(OptionNumber::MAX_AGE, b"")
    });
    server.insert("/slow", Resource::new(Methods::ALL, slow));
    run(server).await
}

/// A target that takes everything and says nothing.
fn silent() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("[::1]:0").expect("free");
    let uri = format!("coap://{}", socket.local_addr().expect("bound"));
    (socket, uri)
}

#[allow(clippy::disallowed_methods, reason = "a test of how long something takes")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn a_silent_target_takes_nothing_from_a_healthy_one_and_what_is_too_much_hears_it_at_once() {
    let (origin, proxy, (_socket, silence)) =
        (origin_server().await, proxy_server(None).await, silent());
    let mut waiting = JoinSet::new();
    let begun = now();
    for number in 0..60 {
        let get = request(Code::GET, &format!("{silence}/{number}"));
        waiting.spawn(ask(proxy.udp, get));
    }
    // What finds no room is refused before anybody waits for long.
    let mut refused = Vec::new();
    while refused.len() < 28 {
        let answer = waiting.join_next().await.expect("more are asked").expect("no panic");
        refused.push(answer);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    for answer in refused {
        assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
        assert_eq!(answer.options.get_uint(OptionNumber::MAX_AGE), Some(5));
        let why = text(&answer);
        // One that has waited for long gives way to a later one of its client.
        let older = why.contains("a later request needs the place of this one");
        assert!(older || why.contains("too many requests wait for coap://[::1]"), "{why}");
    }
    for number in 0..10 {
        let get = request(Code::GET, &format!("coap://{}/echo?{number}", origin.udp));
        assert_eq!(ask(proxy.udp, get).await.code, Code::CONTENT, "request {number}");
    }
    // The others have the patience of the proxy: 15 s.
    while let Some(answer) = waiting.join_next().await.filter(|_| waiting.len() > 1) {
        assert_eq!(answer.expect("no panic").code, Code::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn nstart_towards_targets_lets_slow_answers_be_made_at_once() {
    let origin = slow_origin(Duration::from_millis(700)).await;
    let with_nstart = |number| {
        let mut limits = limits();
        limits.datagrams.congestion = CongestionControl::default().with_nstart(number);
        serve(forward_proxy(limits))
    };
    let (one, four) = (with_nstart(1).await, with_nstart(4).await);
    for (proxy, least, most) in [(&one, 2.7, 20.0), (&four, 0.6, 2.0)] {
        let (begun, mut asking) = (now(), JoinSet::new());
        for number in 0..4 {
            let get = request(Code::GET, &format!("coap://{}/slow?{number}", origin.udp));
            asking.spawn(ask(proxy.udp, get));
        }
        while let Some(answer) = asking.join_next().await {
            assert_eq!(answer.expect("no panic").code, Code::CONTENT);
        }
        let took = begun.elapsed().as_secs_f64();
        assert!((least..most).contains(&took), "{took} s");
    }
}

#[tokio::test]
async fn a_slow_request_of_an_unproven_client_leaves_a_place_at_its_target_for_others() {
    let origin = slow_origin(Duration::from_millis(1500)).await;
    let proxy = proxy_server(None).await;
    // Nobody with a proven address has asked so far.
    let slow = request(Code::GET, &format!("coap://{}/slow", origin.udp));
    let asking = tokio::spawn(ask(proxy.udp, slow));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = now();
    let quick = request(Code::GET, &format!("coap://{}/count", origin.udp));
    assert_eq!(ask_over_tcp(proxy.tcp, quick).await.code, Code::CONTENT);
    assert!(begun.elapsed() < Duration::from_millis(600), "{:?}", begun.elapsed());
    assert_eq!(asking.await.expect("no panic").code, Code::CONTENT);
}

/// What a client that knows no Echo hears from its one port: the code, and whether it gets an Echo value.
async fn hear_raw(
    client: &tokio::net::UdpSocket,
    id: u16,
    request: RequestTemplate,
) -> (Code, bool) {
    let mut message = Message::new(Kind::Confirmable, request.code, MessageId(id));
    message.options = request.options;
    client.send(&message.to_vec()).await.expect("a route");
    let mut buffer = [0; 2048];
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(20), client.recv(&mut buffer)).await;
        let len = heard.expect("an answer within 20 s").expect("an open socket");
        let answer = Message::parse(&buffer[..len]).expect("a message");
        if answer.code != Code::EMPTY {
            let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, answer.message_id);
            client.send(&ack.to_vec()).await.expect("a route");
            return (answer.code, answer.options.get(OptionNumber::ECHO).is_some());
        }
    }
}

#[tokio::test]
async fn a_client_without_echo_that_waits_in_vain_hears_in_the_end_that_a_proof_would_help() {
    let (proxy, (_socket, silence)) = (proxy_server(None).await, silent());
    let client = tokio::net::UdpSocket::bind("[::1]:0").await.expect("free");
    client.connect(proxy.udp).await.expect("a route");
    // Two of proven clients fill the window, the next ones stand before everybody else.
    let to = proxy.tcp;
    let mut proven = JoinSet::new();
    for (number, wait) in [0, 0, 0, 10].into_iter().enumerate() {
        let get = request(Code::GET, &format!("{silence}/{number}"));
        proven.spawn(async move {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            let (transport, peer) = over_tcp(to).await;
            Box::pin(hear_within(Duration::from_secs(60), transport, peer, get)).await
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let get = || request(Code::GET, &format!("{silence}/raw"));
    let (begun, asked) = (now(), hear_raw(&client, 1, get()).await);
    assert_eq!(asked, (Code::UNAUTHORIZED, true));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    tokio::time::sleep(crate::params::PROXY_PROOF_TIME).await;
    let begun = now();
    assert_eq!(hear_raw(&client, 2, get()).await, (Code::UNAUTHORIZED, true));
    let waited = begun.elapsed();
    let most = crate::params::PROXY_QUEUE_WAIT;
    assert!((most / 2..most + Duration::from_secs(2)).contains(&waited), "{waited:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_with_one_request_does_not_wait_for_all_of_another_with_many() {
    let origin = slow_origin(Duration::from_millis(300)).await;
    let mut server = Server::new(Limits::default()).expect("the defaults");
    forward_proxy(limits()).serve(&mut server);
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("free");
    let _proxy = run(server).await;
    let ask = |from: &str, number: usize| {
        let from = format!("{from}:0").parse().expect("an address");
        let get = request(Code::GET, &format!("coap://{}/slow?{number}", origin.udp));
        ask_with(Udp::bind(from).expect("loopback"), address, get)
    };
    let (mut many, begun) = (JoinSet::new(), now());
    for number in 0..16 {
        many.spawn(ask("127.0.0.1", number));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ask("127.0.0.2", 100).await.code, Code::CONTENT);
    // One is under way, one stands in the window's queue, and then it is the other client's turn.
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(2100), "{took:?} of the 4.8 s of the others");
}

#[tokio::test]
async fn a_request_goes_to_its_target_as_con_whatever_it_came_as() {
    let (proxy, (socket, silence)) = (proxy_server(None).await, silent());
    let mut get = request(Code::GET, &format!("{silence}/a"));
    get.confirmable = false;
    let asking = tokio::spawn(ask(proxy.udp, get));
    let heard = tokio::task::spawn_blocking(move || {
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("possible");
        let mut bytes = [0; 100];
        let len = socket.recv(&mut bytes).expect("a request");
        Message::parse(&bytes[..len]).expect("a message").kind
    });
    assert_eq!(heard.await.expect("no panic"), lowmesh_wire::coap::Kind::Confirmable);
    asking.abort();
}

#[tokio::test]
async fn targets_that_take_connections_and_say_nothing_leave_room_for_others() {
    let (origin, proxy) = (origin_server().await, {
        serve(forward_proxy(ProxyLimits { connections_max: 4, ..limits() })).await
    });
    let mut silent = Vec::new();
    let mut asking = JoinSet::new();
    for _ in 0..4 {
        let listener = tokio::net::TcpListener::bind("[::1]:0").await.expect("free");
        let address = listener.local_addr().expect("bound");
        silent.push(listener);
        asking.spawn(ask(proxy.udp, request(Code::GET, &format!("coap+tcp://{address}/a"))));
    }
    // One client has two of four; what it asks more of is refused, and others are served.
    for _ in 0..2 {
        let refused = asking.join_next().await.expect("four are asked").expect("no panic");
        assert_eq!(refused.code, Code::SERVICE_UNAVAILABLE);
    }
    let get = request(Code::GET, &format!("coap://{}/count", origin.udp));
    assert_eq!(ask(proxy.udp, get).await.code, Code::CONTENT);
    assert_eq!(asking.len(), 2);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_observes_targets_over_connections_leaves_some_for_others() {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    forward_proxy(ProxyLimits { connections_max: 4, ..limits() }).serve(&mut server);
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("free");
    let _proxy = run(server).await;
    let from = |from: &str| Udp::bind(format!("{from}:0").parse().expect("an address"));
    let (mut origins, mut observers, mut registered) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..4 {
        let origin = origin_server().await;
        let get = request(Code::GET, &format!("coap+tcp://{}/state", origin.tcp));
        let mut observer = observe_with(from("127.0.0.1").expect("loopback"), address, get);
        registered.push(observer.state().await.map(drop));
        observers.push(observer);
        origins.push(origin);
    }
    // Two of four for one client, although all that is observed is silent now.
    let refused = Err(Code::SERVICE_UNAVAILABLE);
    assert_eq!(registered, [Ok(()), Ok(()), refused, refused]);
    let get = request(Code::GET, &format!("coap+tcp://{}/count", origins[3].tcp));
    let answer = ask_with(from("127.0.0.2").expect("loopback"), address, get).await;
    assert_eq!(answer.code, Code::CONTENT);
}
