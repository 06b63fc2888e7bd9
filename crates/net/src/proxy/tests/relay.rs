//! Where requests go, over what, and what comes back.

use super::*;
use crate::dtls::Keys;

#[tokio::test]
async fn a_request_goes_from_any_transport_to_any_other_with_its_whole_body() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let body = vec![b'x'; 5000];
    let targets = [("coap", origin.udp), ("coap+tcp", origin.tcp)];
    for (scheme, address) in targets {
        let put = || {
            let uri = format!("{scheme}://{address}/echo");
            request(Code::PUT, &uri).with_payload(body.clone())
        };
        assert_eq!(ask(proxy.udp, put()).await.payload, body, "coap to {scheme}");
        assert_eq!(ask_over_tcp(proxy.tcp, put()).await.payload, body, "coap+tcp to {scheme}");
    }
}

#[tokio::test]
async fn a_proxy_scheme_goes_with_uri_host_and_uri_port() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let mut get = RequestTemplate::new(Code::GET, "/count");
    get.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
    get.options.insert(OptionNumber::URI_HOST, b"[::1]");
    get.options.insert_uint(OptionNumber::URI_PORT, origin.udp.port().into());
    assert_eq!(text(&ask(proxy.udp, get).await), "1");
}

#[tokio::test]
async fn what_is_fresh_is_answered_without_the_origin_whatever_it_came_over() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap://{}/count", origin.udp));
    assert_eq!(text(&ask(proxy.udp, get()).await), "1");
    let again = ask_over_tcp(proxy.tcp, get()).await;
    assert_eq!(text(&again), "1");
    let left = again.options.get_uint(OptionNumber::MAX_AGE).expect("the proxy's own");
    assert!((55..=60).contains(&left), "{left}");
}

#[tokio::test]
async fn what_is_stale_is_validated_by_its_tag() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap://{}/kept", origin.udp));
    for _ in 0..3 {
        let answer = ask(proxy.udp, get()).await;
        assert_eq!((answer.code, text(&answer)), (Code::CONTENT, "1"), "the stored body");
    }
    let direct = ask(origin.udp, RequestTemplate::get("/kept")).await;
    assert_eq!(text(&direct), "4", "the origin was asked each time");
}

#[tokio::test]
async fn a_reverse_proxy_puts_its_target_before_every_path_and_serves_no_group_through_others() {
    let origin = origin_server().await;
    let proxy = proxy_server(Some(&format!("coap+tcp://{}", origin.tcp))).await;
    assert_eq!(text(&ask(proxy.udp, RequestTemplate::get("/count")).await), "1");
    let list = ask(proxy.udp, RequestTemplate::get("/.well-known/core")).await;
    assert!(text(&list).contains("</echo>"), "the origin's own: {}", text(&list));
    let mut open = limits();
    open.access.targets.allowed.push("224.0.0.0/4".parse().expect("a range"));
    let group = request(Code::GET, "coap://224.0.1.187/count");
    let proxy = serve(forward_proxy(open)).await;
    assert_eq!(ask(proxy.udp, group).await.code, Code::PROXYING_NOT_SUPPORTED);
}

#[tokio::test]
async fn what_cannot_be_reached_or_spoken_has_its_code() {
    let proxy = proxy_server(None).await;
    for (uri, code) in [
        ("http://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coaps://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coaps+tcp://[::1]/", Code::PROXYING_NOT_SUPPORTED),
        ("coap+tcp://[::1]:1/", Code::BAD_GATEWAY),
        ("coap://[::1]:1/", Code::BAD_GATEWAY),
        ("coap://nobody.invalid/", Code::BAD_GATEWAY),
    ] {
        assert_eq!(ask(proxy.udp, request(Code::GET, uri)).await.code, code, "{uri}");
    }
    let plain = ask(proxy.udp, RequestTemplate::get("/hello")).await;
    assert_eq!(plain.code, Code::NOT_FOUND, "a forward proxy has no resources of its own");
}

#[tokio::test]
async fn a_target_over_dtls_is_asked_with_the_key_of_the_proxy() {
    let mut server = origin();
    let keys = Keys::new().with(b"proxy", b"secret").expect("short");
    let address = server.listen_dtls(loopback(), keys, None).expect("free");
    let _origin = run(server).await;
    let proxy = serve(forward_proxy(limits()).with_key(b"proxy", b"secret").expect("short")).await;
    let get = request(Code::GET, &format!("coaps://{address}/state"));
    assert_eq!(text(&ask(proxy.udp, get).await), "0");
}

#[tokio::test]
async fn a_server_and_its_proxy_tell_what_congestion_control_believes_of_clients_and_targets() {
    let origin = origin_server().await;
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let metrics = server.metrics();
    server.insert("/metrics", metrics.resource());
    let target = format!("coap://{}", origin.udp).parse().expect("a URI");
    let proxy = Proxy::new(ProxyLimits::default()).expect("the defaults").in_front_of(target);
    proxy.serve(&mut server);
    let proxy = run(server).await;
    assert_eq!(text(&ask(proxy.udp, RequestTemplate::get("/count")).await), "1");
    assert_eq!(ask(proxy.udp, RequestTemplate::get("/none")).await.code, Code::NOT_FOUND);
    let metrics = ask(proxy.udp, RequestTemplate::get("/metrics")).await;
    let text = text(&metrics);
    let rto = format!(
        "lowmesh_coap_rto_seconds{{endpoint=\"upstream coap\",peer=\"{}\",timer=\"default\"",
        origin.udp
    );
    assert!(text.contains(&rto), "{rto} is not in\n{text}");
    assert!(text.contains("lowmesh_coap_responses_total{class=\"4\"} 1\n"), "{text}");
}
