//! Members that answer, but not well: each fault has a reason of its own, the one that every client tells.

use std::net::{SocketAddr, UdpSocket};

use lowmesh_gateway::entities::{self, Setup};
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_net::client::Client;
use lowmesh_net::clock::{Clock, fresh_rng};
use lowmesh_net::server::{Limits, Server};
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber};

/// A member whose answers to GET have one more option; its lists of resources have none.
fn member(number: OptionNumber, value: &'static [u8]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut octets = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut octets) {
            let Ok(request) = Message::parse(&octets[..len]) else { continue };
            if !request.code.is_request() {
                continue;
            }
            let mut answer = Message::new(Kind::Acknowledgement, Code::CONTENT, request.message_id);
            answer.token = request.token.clone();
            if request.options.get(OptionNumber::URI_PATH) == Some(b".well-known") {
                answer.options.insert_uint(OptionNumber::CONTENT_FORMAT, 40);
                answer.payload = b"</s/t>;ct=0".to_vec();
            } else {
                answer.options.insert(number, value);
                answer.payload = b"21".to_vec();
            }
            let _gone = socket.send_to(&answer.to_vec(), from);
        }
    });
    address
}

#[tokio::test]
async fn each_fault_of_a_member_has_its_own_reason() {
    let clock = Clock::start();
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now()).expect("empty");
    let mut server = Server::new(Limits::default()).expect("settings");
    let asking = Client::builder().build().expect("settings");
    tokio::spawn(entities::serve(&mut server, manager, asking, Setup::new(clock)).0);
    let manager = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    let client = Client::builder().build().expect("settings");
    let good = member(OptionNumber::MAX_AGE, &[60]);
    for (name, number, value, reason) in [
        ("critical", OptionNumber(65001), &[][..], "the critical option 65001, which is not known"),
        // RFC 7959 s2.2: block 5 and more to come, although block 0 was asked for.
        ("block", OptionNumber::BLOCK2, &[0x5a], "another block than the requested one"),
        ("location", OptionNumber::LOCATION_PATH, b"..", "a segment . or .. in Location-Path"),
    ] {
        let bad = member(number, value);
        let er = format!("\"good=coap://{good}/s/t\",\"bad=coap://{bad}/s/t\"");
        let document = format!("{{\"name\":{name:?},\"er\":[{er}]}}");
        let created = client.post(format!("coap://{manager}/e")).payload(document).await;
        assert_eq!(created.expect("an answer").code(), Code::CREATED);
        let answer = client.get(format!("coap://{manager}/e/{name}")).await.expect("one is good");
        let text = answer.text().into_owned();
        assert!(text.starts_with("good 21\nbad ! 5.02 sent "), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}
