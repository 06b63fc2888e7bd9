//! A member whose answer never ends is left after the octets that the manager keeps of one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lowmesh_gateway::entities::{self, Setup};
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_net::client::Client;
use lowmesh_net::clock::{Clock, fresh_rng};
use lowmesh_net::server::{Limits, Server};
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, OptionNumber};

/// A member with one link and a body without an end, in blocks of the wanted size; its address, and its blocks so far.
fn member() -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    let blocks = Arc::new(AtomicUsize::new(0));
    let count = blocks.clone();
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
                let format = ContentFormat::LINK_FORMAT.0;
                answer.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.into());
                answer.payload = b"</s/t>;ct=0".to_vec();
            } else {
                count.fetch_add(1, Ordering::Relaxed);
                // RFC 7959 s2.2: number, more, size exponent.
                let wanted = request.options.get_uint(OptionNumber::BLOCK2).unwrap_or(6);
                let size = 16 << (wanted & 7);
                answer.options.insert_uint(OptionNumber::BLOCK2, wanted | 8);
                answer.payload = vec![b'x'; size];
            }
            let mut bytes = Vec::new();
            answer.emit(&mut bytes);
            let _gone = socket.send_to(&bytes, from);
        }
    });
    (address, blocks)
}

#[tokio::test]
async fn a_member_that_never_ends_fails_with_its_own_reason() {
    let (member, blocks) = member();
    let clock = Clock::start();
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now()).expect("empty");
    let mut server = Server::new(Limits::default()).expect("settings");
    let asking = Client::builder().build().expect("settings");
    tokio::spawn(entities::serve(&mut server, manager, asking, Setup::new(clock)).0);
    let manager = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    let client = Client::builder().build().expect("settings");
    let document = format!("{{\"name\":\"room\",\"er\":[\"coap://{member}/s/t\"]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    let before = blocks.load(Ordering::Relaxed);
    let answer = client.get(format!("coap://{manager}/e/room")).await;
    let text = match answer {
        Ok(answer) => answer.text().into_owned(),
        Err(error) => format!("{error:?}"),
    };
    assert!(text.contains("longer than 2048 octets"), "{text}");
    let asked = blocks.load(Ordering::Relaxed) - before;
    assert!((2..=3).contains(&asked), "{asked} blocks");
}
