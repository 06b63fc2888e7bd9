//! What waits on a connection whose peer does not read.

use lowmesh_wire::coap::signaling::Capabilities;
use tokio::io::DuplexStream;

use super::*;
use crate::clock::fresh_rng;
use crate::oscore::over_connections;
use crate::params::OUTGOING_FREE;
use crate::server::{Limits, first_connection};
use crate::stream::Connection;

/// Observers of one connection.
const OBSERVERS: usize = 200;
/// Octets of a state, which leave in one message.
const LONG: usize = 60_000;

/// A server's end of a connection, and its peer.
fn pair(limits: &Limits) -> (Connected, Connection<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (connection, host) = (limits.connection.clone(), limits.of_connection());
    let host = over_connections(connection, host, None, fresh_rng());
    let from = ([192, 0, 2, 1], 1).into();
    let patience =
        Patience { silence: limits.idle_max, pong: limits.pong_max, sending: limits.send_max };
    let (place, kept) = first_connection(limits, from);
    let transport =
        Connected::new(StreamTransport::over(ours, from), host).served(patience, place, kept);
    (transport, Connection::new(theirs))
}

/// Registers the observers, and reads until each has its answer.
async fn register(mut peer: Connection<DuplexStream>) -> Connection<DuplexStream> {
    let (max_message_size, block_wise) = (Some(70_000), true);
    let most = Capabilities { max_message_size, block_wise, ..Capabilities::default() };
    peer.send(&Signal::Csm(most).into_message(Token::EMPTY)).await.expect("open");
    for token in 0..OBSERVERS as u64 {
        let mut get = StreamMessage::new(Code::GET);
        get.token = Token::from_number(token, 4);
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        get.options.insert_path("/long");
        peer.send(&get).await.expect("open");
        while peer.receive().await.expect("an answer").code != Code::CONTENT {}
    }
    peer
}

/// The application answers with a state of so many octets.
fn tell(transport: &mut Connected, output: &Output<Peer>, octets: usize) {
    if let Output::Request { exchange, .. } = output {
        let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; octets]);
        response.options.insert_uint(OptionNumber::OBSERVE, 0);
        let handle = Handle::NONE;
        transport
            .handle(Input::Respond { exchange: *exchange, response, handle })
            .expect("acceptable");
    }
}

#[tokio::test]
async fn the_notifications_of_one_change_wait_for_room_and_all_arrive() {
    notify_all(&Limits::default(), OUTGOING_MAX).await;
}

#[tokio::test]
async fn where_other_connections_have_all_the_room_notifications_arrive_one_by_one() {
    let limits = Limits { outgoing_max: 0, outgoing_per_source: 0, ..Limits::default() };
    notify_all(&limits, OUTGOING_FREE).await;
}

/// A change that the peer reads late: so many octets wait, and at most one message more.
async fn notify_all(limits: &Limits, most: usize) {
    let (mut transport, peer) = pair(limits);
    let mut registering = tokio::spawn(register(peer));
    let mut peer = loop {
        tokio::select! {
            output = transport.next() => tell(&mut transport, &output.expect("open"), 1),
            peer = &mut registering => break peer.expect("no panic"),
        }
    };
    transport.changed("/long");
    let moment = std::time::Duration::from_millis(5);
    for _ in 0..20 {
        if let Ok(output) = tokio::time::timeout(moment, transport.next()).await {
            tell(&mut transport, &output.expect("open"), LONG);
        }
        let waiting = transport.line.waiting();
        assert!(waiting < most + LONG + 100, "{waiting} octets wait");
    }
    assert!(transport.line.waiting() > 0, "the state has been told");
    let mut reading = tokio::spawn(async move {
        for _ in 0..OBSERVERS {
            assert_eq!(peer.receive().await.expect("a notification").payload.len(), LONG);
        }
        peer
    });
    let all = async {
        loop {
            tokio::select! {
                output = transport.next() => tell(&mut transport, &output.expect("open"), LONG),
                read = &mut reading => return drop(read.expect("all arrive")),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), all).await.expect("within 20 s");
}
