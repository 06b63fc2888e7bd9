//! Requests that come back to the proxy (RFC 7252 s5.10.2, RFC 8768).

use super::*;

/// Two proxies, each of which is the target of the other.
async fn ring() -> (Running, Running) {
    let server = || Server::new(Limits::default()).expect("the defaults");
    let (mut first, mut second) = (server(), server());
    let addresses = [&mut first, &mut second].map(|one| one.listen_udp(loopback()).expect("free"));
    reverse_proxy(&format!("coap://{}", addresses[1])).serve(&mut first);
    reverse_proxy(&format!("coap://{}", addresses[0])).serve(&mut second);
    let mut running = (run(first).await, run(second).await);
    (running.0.udp, running.1.udp) = (addresses[0], addresses[1]);
    running
}

#[tokio::test]
async fn a_target_that_is_the_proxy_itself_is_answered_with_5_08_at_once() {
    let proxy = proxy_server(None).await;
    for uri in [format!("coap://{}/a", proxy.udp), format!("coap+tcp://{}/a", proxy.tcp)] {
        let answer = ask(proxy.udp, request(Code::GET, &uri)).await;
        let told = (answer.code, text(&answer));
        assert_eq!(told, (Code::HOP_LIMIT_REACHED, "lowmesh-proxy"), "{uri}: one proxy");
    }
}

#[tokio::test]
async fn a_reverse_proxy_in_front_of_itself_asks_itself_nothing() {
    for at in ["[::1]:0", "[::]:0", "127.0.0.1:0"] {
        let mut server = Server::new(Limits::default()).expect("the defaults");
        let address = server.listen_udp(at.parse().expect("an address")).expect("free");
        let host = if at.starts_with('[') { "[::1]" } else { "127.0.0.1" };
        let target = format!("coap://{host}:{}", address.port());
        reverse_proxy(&target).serve(&mut server);
        let metrics = server.metrics();
        let _proxy = run(server).await;
        let to = target.strip_prefix("coap://").expect("it begins so").parse().expect("an address");
        let answer = ask(to, RequestTemplate::get("/a")).await;
        assert_eq!((answer.code, text(&answer)), (Code::HOP_LIMIT_REACHED, "lowmesh-proxy"));
        let text = metrics.text().await;
        assert!(text.contains("lowmesh_coap_requests_total 1\n"), "{at}: {text}");
    }
}

#[tokio::test]
async fn a_loop_of_proxies_ends_with_the_hops_and_each_puts_its_name_before() {
    let (first, _second) = ring().await;
    let mut get = RequestTemplate::get("/a");
    get.options.insert_uint(OptionNumber::HOP_LIMIT, 4);
    let answer = ask(first.udp, get).await;
    let names = ["lowmesh-proxy"; 4].join(" ");
    assert_eq!((answer.code, text(&answer)), (Code::HOP_LIMIT_REACHED, &*names));
}

#[tokio::test]
async fn a_hop_limit_that_one_client_has_chosen_is_nothing_to_others() {
    let origin = origin_server().await;
    let inner = serve(reverse_proxy(&format!("coap://{}", origin.udp))).await;
    let outer = serve(reverse_proxy(&format!("coap://{}", inner.udp))).await;
    let get = |hops: Option<u32>| {
        let mut get = RequestTemplate::get("/count");
        if let Some(hops) = hops {
            get.options.insert_uint(OptionNumber::HOP_LIMIT, hops);
        }
        get
    };
    assert_eq!(ask(outer.udp, get(Some(2))).await.code, Code::HOP_LIMIT_REACHED);
    let answer = ask(outer.udp, get(None)).await;
    assert_eq!((answer.code, text(&answer)), (Code::CONTENT, "1"));
}

#[tokio::test]
async fn an_observation_that_goes_round_ends_with_5_08_and_waits_not_for_itself() {
    let (first, _second) = ring().await;
    let mut get = RequestTemplate::get("/a");
    get.options.insert_uint(OptionNumber::HOP_LIMIT, 4);
    assert_eq!(observe(first.udp, get).state().await, Err(Code::HOP_LIMIT_REACHED));
}
