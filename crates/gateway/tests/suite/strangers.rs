//! Datagrams of addresses that nobody has proven make the manager send nothing to members (RFC 9175 s2.4).

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_gateway::entities::{Proof, Setup};
use lowmesh_net::client::Client;
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};

use crate::rig;

/// A member that counts its requests.
fn member() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let mut server = Server::new(Limits::default()).expect("settings");
    let sensor = Handler::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        ResponseTemplate::new(Code::CONTENT).with_payload(b"21".to_vec())
    });
    server.insert("/s/t", Resource::new(Methods::GET, sensor));
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    (address, asked)
}

fn manager(proof: Proof) -> SocketAddr {
    let client = Client::builder().build().expect("settings");
    rig::manager(client, |setup| Setup { proof, ..setup })
}

/// What answers one datagram of a new address.
async fn answer_to(manager: SocketAddr, code: Code, path: &str, id: u16) -> Option<Message> {
    let path = path.to_owned();
    let asking = tokio::task::spawn_blocking(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        let mut request = Message::new(Kind::NonConfirmable, code, MessageId(id));
        request.options.insert_path(&path);
        let mut bytes = Vec::new();
        request.emit(&mut bytes);
        socket.send_to(&bytes, manager).expect("loopback");
        let mut octets = [0; 1500];
        let len = socket.recv(&mut octets).ok()?;
        Message::parse(&octets[..len]).ok()
    });
    asking.await.expect("no panic")
}

#[tokio::test]
async fn one_datagram_of_an_unproven_address_reaches_no_member() {
    for (proof, reaches) in [(Proof::Needed, 0), (Proof::Unneeded, 1)] {
        let ((member, asked), manager) = (member(), manager(proof));
        let client = Client::builder().build().expect("settings");
        let document = format!("{{\"name\":\"room\",\"er\":[\"coap://{member}/s/t\"]}}");
        let created = client.post(format!("coap://{manager}/e")).payload(document).await;
        // Our client returns the Echo value.
        assert_eq!(created.expect("an answer").code(), Code::CREATED);
        let before = asked.load(Ordering::Relaxed);
        for (id, code) in [(1, Code::GET), (2, Code::FETCH), (3, Code::PUT), (4, Code::POST)] {
            let answer = answer_to(manager, code, "/e/room", id).await.expect("an answer");
            let is_challenge = answer.code == Code::UNAUTHORIZED
                && answer.options.get(OptionNumber::ECHO).is_some();
            // A long error can ask for a proof, too: it is more than three times the request.
            let may_be_long = proof == Proof::Unneeded && code != Code::GET;
            assert!(is_challenge == (proof == Proof::Needed) || may_be_long, "{answer:?}");
        }
        let made = asked.load(Ordering::Relaxed) - before;
        assert!((made > 0) == (reaches > 0), "{made} requests to the member");
        // What the manager knows itself needs no proof.
        let list = answer_to(manager, Code::GET, "/e", 5).await.expect("an answer");
        assert_eq!(list.code, Code::CONTENT);
        let members = answer_to(manager, Code::GET, "/e/room/members", 6).await;
        assert_eq!(members.expect("an answer").code, Code::CONTENT);
        // And a proven client is served.
        let value = client.get(format!("coap://{manager}/e/room?eo=avg")).await;
        assert_eq!(value.expect("an answer").text(), "21");
    }
}

#[tokio::test]
async fn a_query_of_a_new_client_asks_each_member_once_however_long_its_answer_is() {
    for proof in [Proof::Needed, Proof::Unneeded] {
        let (members, manager) = ([(); 12].map(|()| member()), manager(proof));
        let resources: Vec<_> =
            members.iter().map(|(member, _)| format!("\"coap://{member}/s/t\"")).collect();
        let document = format!("{{\"name\":\"room\",\"er\":[{}]}}", resources.join(","));
        let client = Client::builder().build().expect("settings");
        let created = client.post(format!("coap://{manager}/e")).payload(document).await;
        assert_eq!(created.expect("an answer").code(), Code::CREATED);
        let before = members.each_ref().map(|(_, asked)| asked.load(Ordering::Relaxed));
        let new = Client::builder().build().expect("settings");
        let values = new.get(format!("coap://{manager}/e/room")).await.expect("an answer");
        assert!(values.payload().len() > 200, "no short answer");
        for ((_, asked), before) in members.iter().zip(before) {
            assert_eq!(asked.load(Ordering::Relaxed) - before, 1, "{proof:?}");
        }
    }
}

#[tokio::test]
async fn a_new_client_creates_an_entity_with_a_document_of_several_blocks() {
    let ((member, _), manager) = (member(), manager(Proof::Needed));
    let spaces = " ".repeat(3000);
    let document = format!("{{\"name\":\"room\",{spaces}\"er\":[\"coap://{member}/s/t\"]}}");
    let client = Client::builder().build().expect("settings");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    // The manager challenges the last block; the blocks before it are still there when the client repeats it.
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
}
