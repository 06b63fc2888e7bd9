//! Settings hold for all ports, whatever comes first.

use super::*;
use crate::proxy::{Proxy, ProxyLimits};

/// A folder with a security context.
fn contexts(name: &str) -> (std::path::PathBuf, Contexts) {
    let folder = std::env::temp_dir().join(format!("lowmesh-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a place for files");
    let file = folder.join("server.conf");
    let text = "master_secret,ascii,0123456789abcdef\nsender_id,ascii,server\n\
                recipient_id,ascii,client\n";
    std::fs::write(&file, text).expect("a place for files");
    let contexts = Contexts::open(&file).expect("a context");
    (folder, contexts)
}

#[tokio::test]
async fn protection_that_is_asked_for_after_the_ports_holds_for_them() {
    let (folder, contexts) = contexts("order");
    let mut server = server(Limits::default());
    let udp = server.listen_udp(loopback()).expect("free");
    let keys = Keys::new().with(b"me", b"secret").expect("short");
    let secure = server.listen_dtls(loopback(), keys, None).expect("free");
    let tcp = server.listen_connections(loopback(), Scheme::CoapTcp, None).await.expect("free");
    server.protect(contexts, Plain::Refused);
    let running = run(server);
    let hello = || RequestTemplate::get("/hello");
    assert_eq!(datagrams(udp, None).ask(hello()).await.0, Code::UNAUTHORIZED);
    let sessions = Sessions::client(b"me", b"secret").expect("short");
    assert_eq!(datagrams(secure, Some(sessions)).ask(hello()).await.0, Code::UNAUTHORIZED);
    let uri = format!("coap+tcp://{tcp}/").parse().expect("a URI");
    let mut line = connected(StreamTransport::connect(&uri, None).await.expect("our own server"));
    assert_eq!(line.ask(hello()).await.0, Code::UNAUTHORIZED);
    ended(running).await;
    let _left_behind = std::fs::remove_dir_all(&folder);
}

#[tokio::test]
async fn a_proxy_that_begins_to_serve_after_the_ports_serves_at_them() {
    let mut origin = server(Limits::default());
    let at = origin.listen_udp(loopback()).expect("free");
    let origin = run(origin);
    let mut server = server(Limits::default());
    let udp = server.listen_udp(loopback()).expect("free");
    let mut limits = ProxyLimits::default();
    limits.access.targets.allowed.push("::1".parse().expect("a range"));
    let proxy = Proxy::new(limits).expect("possible limits");
    proxy.serve(&mut server);
    let running = run(server);
    let mut request = RequestTemplate::new(Code::GET, "");
    request.options.insert(OptionNumber::PROXY_URI, format!("coap://{at}/hello").as_bytes());
    let answer = datagrams(udp, None).ask(request).await;
    assert_eq!(answer, (Code::CONTENT, "hello".to_owned()));
    for one in [running, origin] {
        one.stop.send(()).expect("it runs");
        one.task.await.expect("no panic").expect("no failure");
    }
}

#[tokio::test]
async fn metrics_show_what_is_inserted_and_opened_behind_them() {
    let mut server = server(Limits::default());
    let metrics = server.metrics();
    server.insert("/metrics", metrics.resource());
    let udp = server.listen_udp(loopback()).expect("free");
    let late = Handler::new(|_| text("late"));
    server.insert("/late", Resource::new(Methods::GET, late));
    let running = run(server);
    let mut client = datagrams(udp, None);
    assert_eq!(client.ask(RequestTemplate::get("/late")).await.1, "late");
    let (code, text) = client.ask(RequestTemplate::get("/metrics")).await;
    assert_eq!(code, Code::CONTENT);
    assert!(text.contains(&udp.to_string()), "{text}");
    ended(running).await;
}
