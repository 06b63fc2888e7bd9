//! More messages than one socket has IDs for, and more connections than there is room for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::params::MESSAGE_IDS;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_wire::coap::uri::Scheme;
use tokio::task::JoinSet;

use super::*;
use crate::client::Client;
use crate::server::{Handler, Limits, Request, Server};

/// The ports that a server was asked from.
type Ports = Arc<Mutex<BTreeSet<u16>>>;

fn server() -> (Server, Ports) {
    let mut server = Server::new(Limits::default()).expect("the defaults");
    let ports = Ports::default();
    let seen = ports.clone();
    let handler = Handler::new(move |request: &Request| {
        seen.lock().expect("no panic").insert(request.peer.address.port());
        ResponseTemplate::new(Code::CONTENT)
    });
    server.insert("/a", Resource::new(Methods::GET, handler));
    (server, ports)
}

/// 65,536 requests within 247 s, and some more.
#[tokio::test]
async fn when_the_message_ids_towards_a_server_are_used_up_another_port_is_taken() {
    let (mut server, ports) = server();
    let address = server.listen_udp("[::1]:0".parse().expect("an address")).expect("free");
    let _serving = tokio::spawn(server.run(std::future::pending()));
    let congestion = CongestionControl::default().with_nstart(32);
    let client = Client::builder().congestion(congestion).build().expect("possible");
    let (mut asking, each) = (JoinSet::new(), (MESSAGE_IDS + 2000) / 16);
    for _ in 0..16 {
        let (client, uri) = (client.clone(), format!("coap://{address}/a"));
        asking.spawn(async move {
            for _ in 0..each {
                let answer = client.get(&*uri).await.expect("an answer");
                assert_eq!(answer.code(), Code::CONTENT);
            }
        });
    }
    let all = async { while asking.join_next().await.is_some_and(|ended| ended.is_ok()) {} };
    tokio::time::timeout(Duration::from_secs(200), all).await.expect("within 247 s");
    assert!(asking.is_empty(), "no request has failed");
    assert_eq!(ports.lock().expect("no panic").len(), 2, "one socket after another");
    let reports = client.reports().await;
    let names: Vec<&str> = reports
        .iter()
        .filter_map(|report| match &report.kind {
            Kind::Endpoint { name, .. } => Some(&**name),
            Kind::Connection => None,
        })
        .collect();
    assert_eq!(names, ["coap", "coap 2"]);
}

#[tokio::test]
async fn a_connection_that_nobody_needs_makes_room_for_one_that_somebody_does() {
    let mut addresses = Vec::new();
    for _ in 0..4 {
        let (mut server, _) = server();
        let any = "[::1]:0".parse().expect("an address");
        let bound = server.listen_connections(any, Scheme::CoapTcp, None).await;
        addresses.push(bound.expect("free"));
        tokio::spawn(server.run(std::future::pending()));
    }
    let client = Client::builder().connections_max(2).build().expect("possible");
    for address in addresses.iter().chain(&addresses) {
        let answer = client.get(format!("coap+tcp://{address}/a")).await;
        assert_eq!(answer.expect("room").code(), Code::CONTENT);
    }
}
