//! Members that are dead cost the others nothing, on real sockets: an entity of silent members is created and polled while
//! another entity answers each of its queries within a second.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Config as CoapConfig, CongestionControl, ResponseTemplate};
use lowmesh_net::client::Client;
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::Code;
use tokio::time::{Instant, sleep_until, timeout};

use crate::rig;

/// Sockets that take datagrams and never read them.
const SILENT: usize = 40;
const QUERIES: u32 = 20;
const PERIOD: Duration = Duration::from_millis(250);
/// One poll of the silent entity for so many queries of the other.
const POLLED: u32 = 4;
const ANSWER_MAX: Duration = Duration::from_secs(1);

fn member() -> SocketAddr {
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor =
        Handler::new(|_| ResponseTemplate::new(Code::CONTENT).with_payload(b"21".to_vec()));
    server.insert("/s/t", Resource::new(Methods::GET, sensor));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

/// A manager that gives a silent member up after two seconds, so that the test does not wait for minutes.
fn manager() -> SocketAddr {
    let ack_timeout = Duration::from_millis(300).into();
    let congestion = CongestionControl { ack_timeout, ..CongestionControl::default() };
    let datagrams = CoapConfig { congestion, max_retransmit: 2, ..CoapConfig::default() };
    rig::manager(Client::builder().datagrams(datagrams).build().expect("settings"), |setup| setup)
}

fn document(name: &str, members: &[SocketAddr]) -> String {
    let members: Vec<_> = members.iter().map(|one| format!("\"coap://{one}/s/t\"")).collect();
    format!("{{\"name\":\"{name}\",\"missing\":\"allow\",\"er\":[{}]}}", members.join(","))
}

/// A client of its own: what one waits for holds up its next request (NSTART of RFC 7252 s4.7), which is not the manager's
/// doing.
fn asker() -> Client {
    Client::builder().patience(Duration::from_secs(60)).build().expect("settings")
}

/// Queries the healthy entity again and again; those that got no answer in time. Another client asks for the wing meanwhile.
async fn query(manager: SocketAddr, wing: Option<&Client>) -> Vec<String> {
    let client = asker();
    let (start, mut failed) = (Instant::now(), Vec::new());
    for number in 0..QUERIES {
        sleep_until(start + PERIOD * number).await;
        if let Some(wing) = wing.filter(|_| number % POLLED == 0) {
            let (client, uri) = (wing.clone(), format!("coap://{manager}/e/wing"));
            tokio::spawn(async move { client.get(uri).await });
        }
        let asking = client.get(format!("coap://{manager}/e/healthy?eo=avg"));
        match timeout(ANSWER_MAX, asking).await {
            Ok(Ok(answer)) if answer.text() == "21" => {}
            other => failed.push(format!("{number}: {other:?}")),
        }
    }
    failed
}

#[tokio::test]
async fn an_entity_of_dead_members_is_created_and_polled_while_another_answers() {
    let silent: Vec<UdpSocket> =
        (0..SILENT).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let dead: Vec<_> = silent.iter().map(|one| one.local_addr().expect("bound")).collect();
    let (healthy, manager) = ([member(), member()], manager());
    let client = asker();
    let post = |document| client.post(format!("coap://{manager}/e")).payload(document);
    let created = post(document("healthy", &healthy)).await.expect("an answer");
    assert_eq!(created.code(), Code::CREATED, "{}", created.text());
    let wing = post(document("wing", &dead));
    let (created, failed) = tokio::join!(wing, query(manager, None));
    let created = created.expect("an answer");
    assert_eq!(created.code(), Code::CREATED, "{}", created.text());
    assert!(failed.is_empty(), "while the wing is created: {failed:?}");
    let failed = query(manager, Some(&client)).await;
    assert!(failed.is_empty(), "while the wing is polled: {failed:?}");
}
