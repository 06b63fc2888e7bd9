//! The manager between a client and members on loopback.

use std::net::SocketAddr;
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
