//! What several tests start: a manager on a socket, and a member that answers each GET with one datagram of its own making.

use std::net::{SocketAddr, UdpSocket};

use lowmesh_gateway::entities::{self, Setup};
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_net::client::Client;
use lowmesh_net::clock::{Clock, fresh_rng};
use lowmesh_net::server::{Limits, Server};
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, OptionNumber};

/// A manager without entities, which asks members with `client`, and is set up as `change` says.
pub fn manager(client: Client, change: impl FnOnce(Setup) -> Setup) -> SocketAddr {
    let clock = Clock::start();
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now()).expect("empty");
    let mut server = Server::new(Limits::default()).expect("settings");
    tokio::spawn(entities::serve(&mut server, manager, client, change(Setup::new(clock))).0);
    let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    tokio::spawn(server.run(std::future::pending()));
    address
}

/// A member with the resource `/s/t`, listed without fault, to whose responses `fill` gives options and a payload.
pub fn member(mut fill: impl FnMut(&Message, &mut Message) + Send + 'static) -> SocketAddr {
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
                let format = ContentFormat::LINK_FORMAT.0;
                answer.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.into());
                answer.payload = b"</s/t>;ct=0".to_vec();
            } else {
                fill(&request, &mut answer);
            }
            let _gone = socket.send_to(&answer.to_vec(), from);
        }
    });
    address
}
