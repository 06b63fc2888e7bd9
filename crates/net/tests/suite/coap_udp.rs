//! The simulator's endpoint on real sockets: loopback, groups, DTLS, a peer that is not there.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use lowmesh_coap::exchange::{GroupInput, Input, Name, Output};
use lowmesh_coap::{Config, Endpoint, RequestTemplate, ResponseTemplate};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::dtls::{Keys, Sessions};
use lowmesh_net::multicast::Interface;
use lowmesh_net::peer::Peer;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::Code;

type End = Driver<Endpoint<Peer>>;

fn endpoint() -> Endpoint<Peer> {
    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    Endpoint::new(Config::default(), rng).expect("the defaults")
}

fn plain(address: &str) -> End {
    let udp = Udp::bind(address.parse().expect("an address")).expect("a free port");
    Driver::new(udp, endpoint())
}

/// Where a socket at any address is reached on this machine.
fn reached(end: &End, ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, end.udp().local_addr().port())
}

/// Answers requests with their path for ever.
async fn serve(mut server: End) {
    loop {
        if let Output::Request { exchange, message, .. } = server.next().await.expect("a socket") {
            let path = message.options.iter().next().expect("a path").value.to_vec();
            let response = ResponseTemplate::new(Code::CONTENT).with_payload(path);
            let handle = Name::NONE;
            server.handle(Input::Respond { exchange, response, handle }).expect("just asked");
        }
    }
}

async fn get(client: &mut End, address: SocketAddr, path: &str) -> Result<Vec<u8>, DropReason> {
    let peer = client.udp().peer(address).expect("a route to ourselves");
    let message = RequestTemplate::get(path);
    client
        .handle(Input::Request { peer, message, handle: Name::Application(Handle(1)) })
        .expect("room for one");
    let answer = async {
        loop {
            match client.next().await.expect("a socket") {
                Output::Response { message, .. } => return Ok(message.payload),
                Output::Failed { reason, .. } => return Err(reason),
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), answer).await.expect("an end within 30 s")
}

#[tokio::test]
async fn a_request_over_ipv4_and_ipv6_is_answered_from_the_address_that_was_asked() {
    let server = plain("[::]:0");
    let v6 = reached(&server, Ipv6Addr::LOCALHOST.into());
    // Not the address that the system would answer from by itself.
    let v4 = reached(&server, [127, 0, 0, 2].into());
    let served = tokio::spawn(serve(server));
    for peer in [v6, v4] {
        let mut client = Driver::new(Udp::ephemeral().expect("a free port"), endpoint());
        assert_eq!(get(&mut client, peer, "/temp").await, Ok(b"temp".to_vec()));
    }
    served.abort();
}

#[tokio::test]
async fn a_peer_whose_port_is_closed_is_found_at_once() {
    let gone = plain("127.0.0.1:0");
    let peer = reached(&gone, [127, 0, 0, 1].into());
    drop(gone);
    let mut client = Driver::new(Udp::ephemeral().expect("a free port"), endpoint());
    let asked = tokio::time::timeout(Duration::from_secs(2), get(&mut client, peer, "/temp"));
    assert_eq!(asked.await.expect("within 2 s"), Err(DropReason::NoRoute));
}

#[tokio::test]
async fn that_one_peer_is_gone_takes_nothing_from_the_next_that_is_asked() {
    let gone = plain("127.0.0.1:0");
    let nobody = reached(&gone, [127, 0, 0, 1].into());
    drop(gone);
    let server = plain("127.0.0.1:0");
    let somebody = reached(&server, [127, 0, 0, 1].into());
    let served = tokio::spawn(serve(server));
    let mut client = Driver::new(Udp::ephemeral().expect("a free port"), endpoint());
    for (address, handle) in
        [(nobody, Name::Application(Handle(1))), (somebody, Name::Application(Handle(2)))]
    {
        let peer = client.udp().peer(address).expect("a route to ourselves");
        let message = RequestTemplate::get("/temp");
        // The system tells of the first, as soon as it knows, by an error for the second.
        client.handle(Input::Request { peer, message, handle }).expect("room for one");
    }
    let mut ends = Vec::new();
    let ended = async {
        while ends.len() < 2 {
            match client.next().await.expect("a socket") {
                Output::Response { handle, .. } => ends.push((handle, None)),
                Output::Failed { handle, reason } => ends.push((handle, Some(reason))),
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("two ends within 30 s");
    ends.sort_unstable_by_key(|(handle, _)| *handle);
    assert_eq!(
        ends,
        [
            (Name::Application(Handle(1)), Some(DropReason::NoRoute)),
            (Name::Application(Handle(2)), None)
        ]
    );
    served.abort();
}

/// How many of `clients` get their answer, each from the address that it has asked, when all ask before the server looks.
async fn answered_together(server: &str, asked: &[&str], clients: usize) -> usize {
    let mut server = plain(server);
    let sockets: Vec<std::net::UdpSocket> = (0..clients)
        .map(|number| {
            // In runs, so that some answers leave from the same address and some do not.
            let ip: IpAddr = asked[number / 5 % asked.len()].parse().expect("an address");
            let any = if ip.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let socket = std::net::UdpSocket::bind(any).expect("a free port");
            // A connected socket receives only from the peer that it has asked.
            socket.connect(reached(&server, ip)).expect("a route to ourselves");
            socket.send(&[0x40, 0x01, 0, 1, 0xb1, b'x']).expect("room");
            socket
        })
        .collect();
    let mut left = clients;
    while left > 0 {
        let output = match server.poll() {
            Some(output) => output,
            None => server.next().await.expect("a socket"),
        };
        if let Output::Request { exchange, .. } = output {
            let (response, handle) = (ResponseTemplate::new(Code::CONTENT), Name::NONE);
            server.handle(Input::Respond { exchange, response, handle }).expect("just asked");
            left -= 1;
        }
    }
    let answered = |socket: &&std::net::UdpSocket| {
        let mut buffer = [0; 64];
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("above zero");
        socket.recv(&mut buffer).is_ok_and(|len| buffer[..len] == [0x60, 0x45, 0, 1])
    };
    sockets.iter().filter(answered).count()
}

#[tokio::test]
async fn requests_that_come_together_are_each_answered_from_the_address_that_was_asked() {
    let v4 = ["127.0.0.1", "127.0.0.2"];
    for (server, asked) in
        [("[::]:0", &v4[..]), ("0.0.0.0:0", &v4), ("[::]:0", &["::1"]), ("[::1]:0", &["::1"])]
    {
        assert_eq!(answered_together(server, asked, 70).await, 70, "{server}, {asked:?}");
    }
}

/// An interface that carries groups of IPv6, if this machine has one.
fn link_with_groups() -> Option<Interface> {
    let socket = std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok()?;
    let group: Ipv6Addr = "ff02::fd".parse().expect("an address");
    // Connecting a datagram socket sends nothing; it asks the routing table.
    let carries = |one: &Interface| socket.connect(SocketAddrV6::new(group, 9, 0, one.0)).is_ok();
    Interface::all().into_iter().find(carries)
}

#[tokio::test]
async fn a_member_of_a_group_answers_from_its_own_address() {
    let Some(link) = link_with_groups() else {
        println!("no interface here carries groups of IPv6");
        return;
    };
    let server = plain("[::]:0");
    let group: Ipv6Addr = "ff02::fd".parse().expect("an address");
    server.udp().join(group.into(), link).expect("the interface carries groups");
    let port = server.udp().local_addr().port();
    let served = tokio::spawn(serve(server));
    let mut client = Driver::new(Udp::ephemeral().expect("a free port"), endpoint());
    let address = SocketAddrV6::new(group, port, 0, link.0);
    let message = RequestTemplate::get("/everybody");
    let wait = lowmesh_units::Duration::from_secs(20);
    let (group, handle) =
        (client.udp().peer(address.into()).expect("a group"), Name::Application(Handle(7)));
    client
        .handle(Input::Group(GroupInput::Request { group, message, wait, handle }))
        .expect("room for one");
    let answer = async {
        loop {
            if let Output::GroupResponse { message, from, .. } =
                client.next().await.expect("a socket")
            {
                return (message.payload, from.is_group());
            }
        }
    };
    let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
    assert_eq!(answer.expect("within the leisure"), (b"everybody".to_vec(), false));
    served.abort();
}

#[tokio::test]
async fn over_dtls_the_right_key_is_answered() {
    let keys = Keys::new().with(b"me", b"secret").expect("short");
    let udp = Udp::bind("[::1]:0".parse().expect("an address")).expect("a free port");
    let server = Driver::secure(udp, Sessions::server(keys, None), endpoint());
    let peer = reached(&server, Ipv6Addr::LOCALHOST.into());
    let served = tokio::spawn(serve(server));
    let sessions = Sessions::client(b"me", b"secret").expect("short");
    let udp = Udp::ephemeral().expect("a free port");
    let mut client = Driver::secure(udp, sessions, endpoint());
    assert_eq!(get(&mut client, peer, "/secret").await, Ok(b"secret".to_vec()));
    let known = client.udp().peer(peer).expect("a way to ourselves");
    assert_eq!(client.take_session_loss(known), None);
    client.close();
    served.abort();
}

#[tokio::test]
async fn over_dtls_a_server_that_is_gone_is_told_with_a_reason() {
    let gone = plain("127.0.0.1:0");
    let address = reached(&gone, [127, 0, 0, 1].into());
    let sessions = Sessions::client(b"me", b"secret").expect("short");
    let mut client = Driver::secure(Udp::ephemeral().expect("a free port"), sessions, endpoint());
    drop(gone);
    let asked = tokio::time::timeout(Duration::from_secs(2), get(&mut client, address, "/secret"));
    assert_eq!(asked.await.expect("within 2 s"), Err(DropReason::NoRoute));
    let peer = client.udp().peer(address).expect("a way to ourselves");
    assert!(client.take_session_loss(peer).is_some_and(|loss| loss.reason.contains("reached")));
}

#[tokio::test]
async fn a_port_in_use_and_an_address_that_is_not_ours_are_told_apart() {
    let first = plain("127.0.0.1:0");
    let error = Udp::bind(first.udp().local_addr()).expect_err("taken").to_string();
    assert!(error.contains("in use"), "{error}");
    let error = Udp::bind("192.0.2.1:0".parse().expect("an address")).expect_err("not ours");
    assert!(error.to_string().contains("not an address of this machine"), "{error}");
}
