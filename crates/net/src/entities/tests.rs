//! The manager between a client and members on loopback.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration as Wait;

use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_wire::coap::{Code, ContentFormat};

use super::*;
use crate::clock::fresh_rng;
use crate::server::Limits;

fn text(value: String) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT)
        .with_payload(value.into_bytes())
        .with_format(ContentFormat::TEXT_PLAIN)
}

/// Starts a member with a sensor; its address.
fn member(value: u16) -> SocketAddr {
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor = Handler::new(move |_| text(value.to_string()));
    server.insert("/s/t", Resource::new(Methods::GET, sensor).format(ContentFormat::TEXT_PLAIN));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

fn manager() -> SocketAddr {
    let clock = Clock::start();
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now()).expect("empty");
    let mut server = Server::new(Limits::default()).expect("settings");
    let client = Client::builder().build().expect("settings");
    tokio::spawn(serve(&mut server, manager, client, clock));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

#[tokio::test]
async fn a_client_creates_queries_and_deletes_an_entity_of_real_servers() {
    let (members, manager) = ([member(20), member(23)], manager());
    let client = Client::builder().build().expect("settings");
    let er = members.map(|member| format!("\"coap://{member}/s/t\"")).join(",");
    let document = format!("{{\"name\":\"room\",\"er\":[{er}]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    let created = created.expect("an answer");
    assert_eq!(created.code(), Code::CREATED, "{}", created.text());
    let average = client.get(format!("coap://{manager}/e/room?eo=avg")).await.expect("an answer");
    assert_eq!((average.code(), &*average.text()), (Code::CONTENT, "21.5"));
    let list = client.get(format!("coap://{manager}/e/room")).await.expect("an answer");
    assert_eq!(list.text().lines().count(), 2, "{}", list.text());
    let deleted = client.delete(format!("coap://{manager}/e/room")).await.expect("an answer");
    assert_eq!(deleted.code(), Code::DELETED);
}

#[tokio::test]
async fn a_member_that_is_gone_shows_as_failed_and_the_answer_still_comes() {
    let (alive, manager) = (member(20), manager());
    let client = Client::builder().build().expect("settings");
    // It answers the validation, and then no more.
    let (stop, stopped) = oneshot::channel::<()>();
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor = Handler::new(|_| text("5".to_owned()));
    server.insert("/s/t", Resource::new(Methods::GET, sensor));
    let dying = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let running = tokio::spawn(server.run(async move { _ = stopped.await }));
    let document =
        format!("{{\"name\":\"room\",\"er\":[\"coap://{alive}/s/t\",\"coap://{dying}/s/t\"]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    stop.send(()).expect("it runs");
    running.await.expect("no panic").expect("no failure");
    let query = client.get(format!("coap://{manager}/e/room?deadline=1500"));
    let answer = query.within(Wait::from_secs(10)).await.expect("an answer");
    assert_eq!(answer.code(), Code::CONTENT);
    assert!(answer.text().contains(" ! 5.04 "), "{}", answer.text());
}

/// Starts a member whose reading others can change; its address, its value, and the news of it.
fn changing(value: u16) -> (SocketAddr, Arc<AtomicU16>, Changes) {
    let mut server = Server::new(Limits::default()).expect("settings");
    let value = Arc::new(AtomicU16::new(value));
    let shown = value.clone();
    let sensor = Handler::new(move |_| text(shown.load(Ordering::Relaxed).to_string()));
    let sensor = Resource::new(Methods::GET, sensor).format(ContentFormat::TEXT_PLAIN);
    server.insert("/s/t", sensor.observable());
    let changes = server.changes();
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    (address, value, changes)
}

#[tokio::test]
async fn an_observer_of_an_entity_gets_its_mean_when_a_member_changes() {
    let (first, value, changes) = changing(20);
    let (second, fixed, manager) = (changing(23).0, member(26), manager());
    let client = Client::builder().build().expect("settings");
    let er = [first, second, fixed].map(|member| format!("\"coap://{member}/s/t\"")).join(",");
    let document = format!("{{\"name\":\"room\",\"er\":[{er}]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    let mut states = client
        .get(format!("coap://{manager}/e/room?eo=avg&c.st=1"))
        .observe()
        .await
        .expect("a first state");
    let next = async |states: &mut crate::client::Observation| {
        let state = tokio::time::timeout(Wait::from_secs(10), states.next()).await;
        state.expect("in time").expect("no end").expect("a state").text().into_owned()
    };
    assert_eq!(next(&mut states).await, "23");
    // Half a degree of the mean is too little to be told.
    for (number, expected) in [(21, None), (26, Some("25")), (17, Some("22"))] {
        value.store(number, Ordering::Relaxed);
        changes.tell("/s/t");
        if let Some(expected) = expected {
            assert_eq!(next(&mut states).await, expected);
        } else {
            let early = tokio::time::timeout(Wait::from_millis(300), states.next()).await;
            assert!(early.is_err(), "{early:?}");
        }
    }
    states.end().await;
    let profile = client.get(format!("coap://{manager}/e/room/profile")).observe().await;
    let mut profile = profile.expect("a profile");
    assert!(profile.next().await.is_some_and(|state| state.is_ok()));
    assert!(profile.next().await.is_none(), "a profile is not observed");
}
