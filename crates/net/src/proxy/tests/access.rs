//! Which clients may ask a proxy, and which targets it asks.

use super::*;

async fn asked(origin: &Running) -> String {
    origin.number("lowmesh_coap_requests_total").await
}

#[tokio::test]
async fn without_permission_a_proxy_asks_no_address_of_this_machine_or_its_networks() {
    let (origin, proxy) =
        (origin_server().await, { serve(forward_proxy(ProxyLimits::default())).await });
    let port = origin.udp.port();
    for uri in [
        format!("coap://[::1]:{port}/count"),
        format!("coap://localhost:{port}/count"),
        format!("coap://[::ffff:127.0.0.1]:{port}/count"),
        format!("coap+tcp://[::1]:{}/count", origin.tcp.port()),
        "coap://169.254.169.254/latest".to_owned(),
        "coap://[64:ff9b::a00:1]/".to_owned(),
        "coap://0.0.0.0/".to_owned(),
    ] {
        let answer = ask(proxy.udp, request(Code::GET, &uri)).await;
        assert_eq!(answer.code, Code::FORBIDDEN, "{uri}");
        assert!(text(&answer).contains("--allow-target"), "{uri}: {}", text(&answer));
        let mut observer = observe(proxy.udp, request(Code::GET, &uri));
        assert_eq!(observer.state().await, Err(Code::FORBIDDEN), "{uri}");
    }
    assert_eq!(asked(&origin).await, "0");
}

#[tokio::test]
async fn what_is_denied_is_not_asked_although_it_is_allowed_too() {
    let origin = origin_server().await;
    let mut strict = limits();
    strict.access.targets.denied.push("::/0".parse().expect("a range"));
    let proxy = serve(forward_proxy(strict)).await;
    let answer = ask(proxy.udp, request(Code::GET, &format!("coap://{}/count", origin.udp))).await;
    assert_eq!(answer.code, Code::FORBIDDEN);
    assert_eq!(asked(&origin).await, "0");
}

#[tokio::test]
async fn a_reverse_proxy_asks_its_target_alone_unless_it_forwards_too() {
    let (target, other) = (origin_server().await, origin_server().await);
    let reverse = || reverse_proxy(&format!("coap://{}", target.udp));
    let closed = serve(reverse()).await;
    let named = || request(Code::GET, &format!("coap://{}/count", other.udp));
    assert_eq!(text(&ask(closed.udp, RequestTemplate::get("/count")).await), "1");
    assert_eq!(ask(closed.udp, named()).await.code, Code::PROXYING_NOT_SUPPORTED);
    assert_eq!(ask_over_tcp(closed.tcp, named()).await.code, Code::PROXYING_NOT_SUPPORTED);
    let open = serve(reverse().forwarding()).await;
    assert_eq!(ask(open.udp, named()).await.code, Code::FORBIDDEN, "as any forward proxy");
    assert_eq!(asked(&other).await, "0");
}

#[tokio::test]
async fn what_only_the_reverse_proxy_may_ask_is_not_told_to_a_client_that_names_its_target() {
    let target = origin_server().await;
    let proxy = reverse_proxy(&format!("coap://{}", target.udp)).forwarding();
    let proxy = serve(proxy).await;
    assert_eq!(text(&ask(proxy.udp, RequestTemplate::get("/count")).await), "1");
    let named = request(Code::GET, &format!("coap://{}/count", target.udp));
    assert_eq!(ask(proxy.udp, named).await.code, Code::FORBIDDEN, "not from the cache either");
}

#[tokio::test]
async fn a_client_without_access_is_refused_whatever_it_asks_for() {
    let origin = origin_server().await;
    let mut closed = limits();
    closed.access.clients.allowed.push("192.0.2.0/24".parse().expect("a range"));
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let metrics = server.metrics();
    server.insert("/metrics", metrics.resource());
    forward_proxy(closed).serve(&mut server);
    let proxy = run(server).await;
    let named = request(Code::GET, &format!("coap://{}/count", origin.udp));
    for message in [named, RequestTemplate::get("/metrics")] {
        assert_eq!(ask(proxy.udp, message.clone()).await.code, Code::FORBIDDEN);
        assert_eq!(ask_over_tcp(proxy.tcp, message).await.code, Code::FORBIDDEN);
    }
    assert_eq!(asked(&origin).await, "0");
}

#[tokio::test]
async fn a_diagnostic_names_the_hop_but_not_what_is_behind_a_reverse_proxy() {
    let forward = proxy_server(None).await;
    let answer = ask(forward.udp, request(Code::GET, "coap://[::1]:1/")).await;
    assert_eq!(answer.code, Code::BAD_GATEWAY);
    assert_eq!(text(&answer), "lowmesh-proxy: coap://[::1]:1/ cannot be reached");
    let reverse = serve(reverse_proxy("coap://[::1]:1/secret")).await;
    let answer = ask(reverse.udp, RequestTemplate::get("/a")).await;
    assert_eq!(answer.code, Code::BAD_GATEWAY);
    assert_eq!(text(&answer), "lowmesh-proxy: the server behind this proxy cannot be reached");
}
