//! Groups that a server joins: by its owner, and by its clients.

use std::net::IpAddr;

use lowmesh_coap::Leisure;
use lowmesh_coap::membership::PATH;
use lowmesh_wire::coap::{ContentFormat, OptionNumber};

use super::*;
use crate::client::Client as Asker;
use crate::multicast::Interface;

const GROUP: &str = "224.0.1.200";

fn link() -> Interface {
    Interface::named("lo").expect("every machine has it")
}

/// A server for IPv6 and IPv4 that answers groups at once.
fn member() -> (Server, SocketAddr) {
    let mut limits = Limits::default();
    limits.datagrams.leisure = Leisure::Fixed(lowmesh_units::Duration::ZERO);
    let mut server = server(limits);
    let light = Handler::new(|_| text("on"));
    server.insert("/gp/lights", Resource::new(Methods::GET, light).multicast().observable());
    let mc = server.groups().resource(Some(link()));
    server.insert(PATH, mc);
    let bound = server.listen_udp("[::]:0".parse().expect("an address")).expect("a free port");
    (server, bound)
}

fn asker() -> Asker {
    let local = "127.0.0.1:0".parse().expect("an address");
    Asker::builder().local(local).groups(link(), 1).build().expect("possible settings")
}

#[tokio::test]
async fn a_server_answers_the_groups_that_it_has_joined_and_no_others() {
    let (server, bound) = member();
    let group: IpAddr = GROUP.parse().expect("an address");
    let groups = server.groups();
    groups.join(group, Some(link())).expect("the loopback interface carries groups");
    let (running, client) = (run(server), asker());
    let uri = format!("coap://{GROUP}:{}/gp/lights", bound.port());
    let wait = Duration::from_secs(1);
    let answers = client.get(&*uri).gather(wait).await.expect("a way there");
    let payloads: Vec<_> = answers.iter().map(crate::client::Response::payload).collect();
    assert_eq!(payloads, [b"on"]);
    groups.leave(group, Some(link()));
    let answers = client.get(&*uri).gather(wait).await.expect("a way there");
    assert!(answers.is_empty(), "{answers:?}");
    client.close().await.expect("nothing to keep");
    ended(running).await;
}

#[tokio::test]
async fn clients_make_a_server_join_and_leave_groups() {
    let (server, bound) = member();
    let (running, client) = (run(server), asker());
    let mc = |query: &str| format!("coap://127.0.0.1:{}/mc{query}", bound.port());
    let group: std::net::Ipv6Addr = "ff1e::89:1".parse().expect("an address");
    let change = async |query| {
        client.post(&*mc(query)).payload(group.octets().to_vec()).await.expect("an answer").code()
    };
    let list = async || {
        let request = client.get(&*mc("")).accept(ContentFormat::OCTET_STREAM);
        request.await.expect("an answer").payload().to_vec()
    };
    assert_eq!(change("?act=add").await, Code::CHANGED);
    assert_eq!(list().await, group.octets());
    assert_eq!(change("?act=del").await, Code::CHANGED);
    assert_eq!(list().await, b"");
    assert_eq!(change("?act=join").await, Code::BAD_REQUEST);
    client.close().await.expect("nothing to keep");
    ended(running).await;
}

#[tokio::test]
async fn the_members_of_a_group_are_observed_over_sockets() {
    let (server, bound) = member();
    let group: IpAddr = GROUP.parse().expect("an address");
    server.groups().join(group, Some(link())).expect("the loopback interface carries groups");
    let changes = server.changes();
    let (running, client) = (run(server), asker());
    let uri = format!("coap://{GROUP}:{}/gp/lights", bound.port());
    let request = client.get(&*uri).option(OptionNumber::OBSERVE, &[]);
    let mut exchange = request.begin_group(Duration::from_secs(1)).await.expect("a way there");
    let mut seen = Vec::new();
    while let Ok(Some(item)) = tokio::time::timeout(Duration::from_secs(2), exchange.next()).await {
        seen.extend(crate::client::Response::of(item.expect("no failure")));
        if seen.len() == 1 {
            changes.tell("/gp/lights");
        }
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.iter().all(|one| one.message.options.get(OptionNumber::OBSERVE).is_some()));
    drop(exchange);
    client.close().await.expect("nothing to keep");
    ended(running).await;
}

#[tokio::test]
async fn the_port_of_dtls_takes_no_requests_to_groups() {
    let client = asker();
    let uri = format!("coap://{GROUP}:5684/gp/lights");
    let refused = client.get(&*uri).gather(Duration::from_millis(300)).await;
    assert!(matches!(refused, Err(crate::client::Error::SecurePort(_))), "{refused:?}");
}
