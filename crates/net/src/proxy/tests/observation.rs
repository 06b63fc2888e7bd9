//! What several clients observe through a proxy.

use lowmesh_wire::coap::{Kind, MessageId};

use super::*;

#[tokio::test]
async fn what_several_clients_observe_is_observed_once_and_told_to_all() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    for (scheme, address) in [("coap", origin.udp), ("coap+tcp", origin.tcp)] {
        let get = || request(Code::GET, &format!("{scheme}://{address}/state"));
        let mut first = observe(proxy.udp, get());
        let before: u32 = first.state().await.expect("a state").parse().expect("a number");
        let mut second = observe_over_tcp(proxy.tcp, get()).await;
        assert_eq!(second.state().await, Ok(before.to_string()), "the origin was not asked again");
        assert_eq!(origin.number("lowmesh_coap_observers").await, "1");
        for number in before + 1..before + 4 {
            origin.changes.tell("/state");
            let state = Ok(number.to_string());
            assert_eq!((first.state().await, second.state().await), (state.clone(), state));
        }
        let plain = ask(proxy.udp, get()).await;
        assert_eq!(
            (text(&plain), plain.options.get(OptionNumber::OBSERVE)),
            (&*(before + 3).to_string(), None)
        );
        // What is over here is not told any more, so the next scheme begins alone.
        drop((first, second));
        leave(&origin).await;
    }
}

/// Changes the state until nobody observes it.
async fn leave(origin: &Running) {
    let left = async {
        while origin.number("lowmesh_coap_observers").await != "0" {
            origin.changes.tell("/state");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("an end within 20 s");
}

#[tokio::test]
async fn where_the_origin_does_not_observe_the_client_hears_one_answer_without_observe() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = request(Code::GET, &format!("coap://{}/count", origin.udp));
    let mut observer = observe(proxy.udp, get);
    assert_eq!(observer.state().await, Err(Code::CONTENT));
    assert_eq!(proxy.number("lowmesh_coap_observers").await, "0");
}

#[tokio::test]
async fn when_the_origin_ends_its_observers_behind_the_proxy_are_told() {
    let (origin, proxy) = (origin_server().await, proxy_server(None).await);
    let get = || request(Code::GET, &format!("coap+tcp://{}/state", origin.tcp));
    let mut observer = observe(proxy.udp, get());
    assert_eq!(observer.state().await, Ok("0".to_owned()));
    drop(origin);
    let end = observer.state().await.expect_err("no more states");
    assert!([Code::SERVICE_UNAVAILABLE, Code::BAD_GATEWAY].contains(&end), "{end}");
}

#[tokio::test]
async fn without_room_an_observation_is_answered_once() {
    let origin = origin_server().await;
    let proxy = serve(forward_proxy(ProxyLimits { observations_max: 0, ..limits() })).await;
    let mut observer =
        observe(proxy.udp, request(Code::GET, &format!("coap://{}/state", origin.udp)));
    assert_eq!(observer.state().await, Err(Code::CONTENT));
}

#[tokio::test]
async fn one_client_cannot_take_all_observations() {
    let (origin, proxy) = (origin_server().await, {
        serve(forward_proxy(ProxyLimits { observations_max: 4, ..limits() })).await
    });
    let get = |query: usize| request(Code::GET, &format!("coap://{}/state?{query}", origin.udp));
    let mut observers = Vec::new();
    for number in 0..4 {
        let mut observer = observe(proxy.udp, get(number));
        observers.push((observer.state().await.is_ok(), observer));
    }
    let registered: Vec<bool> = observers.iter().map(|(registered, _)| *registered).collect();
    assert_eq!(registered, [true, true, false, false], "half of all for one");
    let mut joined = observe(proxy.udp, get(0));
    assert!(joined.state().await.is_ok(), "what is observed already takes no more room");
}

#[test]
fn a_long_request_is_asked_once_and_not_observed() {
    let mut fetch = Message::new(Kind::Confirmable, Code::FETCH, MessageId(1));
    fetch.options.insert_uint(OptionNumber::OBSERVE, 0);
    fetch.options.insert(OptionNumber::PROXY_URI, b"coap://[::1]/state");
    fetch.payload = vec![7; OBSERVED_REQUEST_MAX - fetch.options.as_bytes().len()];
    assert!(registers(&fetch));
    fetch.payload.push(7);
    assert!(!registers(&fetch));
}

#[tokio::test]
async fn the_states_of_what_one_client_observes_leave_room_for_those_of_others() {
    let mut server = origin();
    let long = Handler::new(|_| ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; 900]));
    server.insert("/long", Resource::new(Methods::GET, long).observable());
    let origin = run(server).await;
    let proxy = serve(forward_proxy(ProxyLimits { states_max: 4000, ..limits() })).await;
    let mut observers = Vec::new();
    let mut registered = Vec::new();
    for number in 0..4 {
        let get = request(Code::GET, &format!("coap+tcp://{}/long?{number}", origin.tcp));
        let mut observer = observe(proxy.udp, get);
        registered.push(observer.state().await.map(|state| state.len()));
        observers.push(observer);
    }
    // Half of all for one; a further state comes as one answer without Observe.
    let once = Err(Code::CONTENT);
    assert_eq!(registered, [Ok(900), Ok(900), once, once]);
    assert_eq!(proxy.number("lowmesh_coap_observers").await, "2");
    // A change finds its room: the new state takes that of the old.
    origin.changes.tell("/long");
    assert_eq!(observers[0].state().await.map(|state| state.len()), Ok(900));
}
