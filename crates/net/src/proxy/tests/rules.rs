//! The rules of a proxy before those of an endpoint, in both directions (RFC 7252 s5.4.1, s5.7).

use lowmesh_wire::coap::{Kind, MessageId};

use super::*;

/// Critical, and safe to forward.
const SAFE: OptionNumber = OptionNumber(65_001);
/// Elective, and unsafe to forward.
const UNSAFE: OptionNumber = OptionNumber(65_002);
/// Critical, and unsafe to forward.
const CRITICAL_UNSAFE: OptionNumber = OptionNumber(65_003);

/// An origin that answers every request with one more option, and tells the paths that it was asked for.
async fn odd_origin(
    option: OptionNumber,
) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<Message>) {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("bound");
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let Ok(request) = Message::parse(&buffer[..len]) else { continue };
            let mut answer =
                Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(request.message_id.0));
            answer.token = request.token.clone();
            answer.options.insert_uint(OptionNumber::MAX_AGE, 0);
            answer.options.insert(option, b"v");
            answer.payload = b"ok".to_vec();
            let _gone = tell.send(request);
            let _sent = socket.send_to(&answer.to_vec(), from).await;
        }
    });
    (address, told)
}

/// What a client hears that takes whatever comes, over UDP.
async fn raw(to: SocketAddr, request: RequestTemplate) -> Message {
    let socket = tokio::net::UdpSocket::bind("[::1]:0").await.expect("a free port");
    let mut message = Message::new(Kind::Confirmable, request.code, MessageId(77));
    (message.options, message.payload) = (request.options, request.payload);
    socket.send_to(&message.to_vec(), to).await.expect("a route");
    let mut buffer = [0; 2048];
    let heard = tokio::time::timeout(Duration::from_secs(20), socket.recv(&mut buffer)).await;
    let len = heard.expect("an answer within 20 s").expect("an open socket");
    Message::parse(&buffer[..len]).expect("a message")
}

#[tokio::test]
async fn a_response_passes_with_what_is_safe_to_forward_and_is_refused_with_what_is_not() {
    let proxy = proxy_server(None).await;
    for option in [SAFE, UNSAFE, CRITICAL_UNSAFE] {
        let (origin, _told) = odd_origin(option).await;
        let get = request(Code::GET, &format!("coap://{origin}/r"));
        let answer = raw(proxy.udp, get).await;
        if option == SAFE {
            assert_eq!((answer.code, text(&answer)), (Code::CONTENT, "ok"));
            assert_eq!(answer.options.get(option), Some(&b"v"[..]));
            continue;
        }
        assert_eq!(answer.code, Code::BAD_GATEWAY, "{option:?}");
        let says = text(&answer);
        assert!(
            says.starts_with("lowmesh-proxy: ") && says.contains("unsafe to forward"),
            "{says}"
        );
    }
}

#[tokio::test]
async fn a_request_passes_with_what_is_safe_to_forward_through_a_reverse_proxy_too() {
    for reverse in [false, true] {
        let (origin, mut told) = odd_origin(OptionNumber(65_000)).await;
        let proxy = if reverse {
            let mut server = Server::new(Limits::default()).expect("the defaults");
            let own = Handler::new(|_| ResponseTemplate::new(Code::CONTENT));
            server.insert("/own", Resource::new(Methods::GET, own));
            reverse_proxy(&format!("coap://{origin}")).serve(&mut server);
            run(server).await
        } else {
            proxy_server(None).await
        };
        let get = |path: &str| {
            if reverse {
                RequestTemplate::new(Code::GET, path)
            } else {
                request(Code::GET, &format!("coap://{origin}{path}"))
            }
        };
        let with = |path: &str, option| {
            let mut request = get(path);
            request.options.insert(option, b"v");
            request
        };
        assert_eq!(raw(proxy.udp, with("/r", SAFE)).await.code, Code::CONTENT, "{reverse}");
        let seen = told.recv().await.expect("the origin is there");
        assert_eq!(seen.options.get(SAFE), Some(&b"v"[..]));
        for option in [UNSAFE, CRITICAL_UNSAFE] {
            assert_eq!(raw(proxy.udp, with("/r", option)).await.code, Code::BAD_OPTION);
        }
        if reverse {
            // For its own resources it is an endpoint as any other.
            assert_eq!(raw(proxy.udp, with("/own", SAFE)).await.code, Code::BAD_OPTION);
            assert_eq!(raw(proxy.udp, with("/own", UNSAFE)).await.code, Code::CONTENT);
        }
        assert!(told.try_recv().is_err(), "nothing else has left");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_that_of_the_target() {
    let (origin, mut told) = odd_origin(OptionNumber(65_000)).await;
    let proxy = proxy_server(Some(&format!("coap://{origin}/base"))).await;
    let forward = proxy_server(None).await;
    for dots in ["..", "."] {
        let mut get = RequestTemplate::new(Code::GET, "");
        for segment in [dots, "secret"] {
            get.options.insert(OptionNumber::URI_PATH, segment.as_bytes());
        }
        assert_eq!(raw(proxy.udp, get.clone()).await.code, Code::BAD_OPTION);
        assert_eq!(ask_over_tcp(proxy.tcp, get.clone()).await.code, Code::BAD_OPTION);
        get.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
        get.options.insert(OptionNumber::URI_HOST, b"127.0.0.1");
        get.options.insert_uint(OptionNumber::URI_PORT, origin.port().into());
        assert_eq!(raw(forward.udp, get).await.code, Code::BAD_OPTION);
    }
    assert!(told.try_recv().is_err(), "the target was not asked");
}

#[tokio::test]
async fn a_client_that_validates_nothing_gets_no_2_03() {
    let mut server = origin();
    let asked = std::sync::Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    // A client that validates hears of another tag.
    let odd = Handler::new(move |request: &Request| {
        count.fetch_add(1, Ordering::Relaxed);
        let validates = request.message.options.get(OptionNumber::ETAG).is_some();
        let (code, tag) =
            if validates { (Code::VALID, &b"v2"[..]) } else { (Code::CONTENT, &b"v1"[..]) };
        let mut response = ResponseTemplate::new(code).with_option(OptionNumber::ETAG, tag);
        response.options.insert_uint(OptionNumber::MAX_AGE, 0);
        if !validates {
            response.payload = b"whole".to_vec();
        }
        response
    });
    server.insert("/odd", Resource::new(Methods::GET, odd));
    let (origin, proxy) = (run(server).await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap://{}/odd", origin.udp));
    for _ in 0..3 {
        let answer = ask(proxy.udp, get()).await;
        assert_eq!((answer.code, text(&answer)), (Code::CONTENT, "whole"));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 5, "once, and then with and without the tag");
    let mut own = get();
    own.options.insert(OptionNumber::ETAG, b"v2");
    assert_eq!(ask(proxy.udp, own).await.code, Code::VALID, "it has asked about this tag");
}

#[tokio::test]
async fn the_first_observation_of_a_long_state_is_kept_although_the_origin_wants_a_proof() {
    let mut server = origin();
    let state = AtomicU32::new(0);
    let long = Handler::new(move |_| {
        let number = state.fetch_add(1, Ordering::Relaxed);
        let payload = format!("{number} {}", "x".repeat(5000)).into_bytes();
        ResponseTemplate::new(Code::CONTENT).with_payload(payload)
    });
    server.insert("/long", Resource::new(Methods::GET, long).observable());
    // Neither the proxy nor its port is known to the origin.
    let (origin, proxy) = (run(server).await, proxy_server(None).await);
    let get = request(Code::GET, &format!("coap://{}/long", origin.udp));
    let mut observer = observe(proxy.udp, get);
    let number = |state: Result<String, Code>| {
        let state = state.expect("a notification");
        assert!(state.len() > 5000);
        state.split(' ').next().expect("a number").parse::<u32>().expect("a number")
    };
    let before = number(observer.state().await);
    for _ in 0..2 {
        origin.changes.tell("/long");
        assert!(number(observer.state().await) > before);
    }
}
