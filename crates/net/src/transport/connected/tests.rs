//! What waits on a connection whose peer does not read.

use lowmesh_coap::{ConnectionLimits, HostLimits, RequestTemplate};
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

const SILENCE: Duration = Duration::from_millis(200);
const PONG: Duration = Duration::from_millis(100);

/// A client's end of a connection to a server that sends its CSM, and then what the test sends.
async fn client() -> (Connected, Connection<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (connection, limits) = (ConnectionLimits::default(), HostLimits::default());
    let host = over_connections(connection, limits, None, fresh_rng());
    let mut peer = Connection::new(theirs);
    let csm = Signal::Csm(Capabilities::default()).into_message(Token::EMPTY);
    peer.send(&csm).await.expect("open");
    let line = StreamTransport::over(ours, ([192, 0, 2, 1], 1).into());
    let mut transport = Connected::new(line, host);
    (transport.due.silence, transport.due.pong) = (SILENCE, PONG);
    (transport, peer)
}

fn ask(transport: &mut Connected, number: u64) {
    let message = RequestTemplate::get("/slow");
    let (peer, handle) = (transport.peer, Handle(number));
    transport.handle(Input::Request { peer, message, handle }).expect("open");
}

/// What the connection ends with within so long.
async fn ends(transport: &mut Connected, within: Duration) -> Option<io::Error> {
    let ends = async {
        loop {
            if let Err(error) = transport.next().await {
                return error;
            }
        }
    };
    tokio::time::timeout(within.into(), ends).await.ok()
}

#[tokio::test]
async fn a_server_that_is_silent_and_answers_no_ping_loses_the_connection() {
    let (mut transport, _peer) = client().await;
    let quiet = (SILENCE + PONG) * 2;
    assert!(ends(&mut transport, quiet).await.is_none(), "nothing is due");
    ask(&mut transport, 1);
    let error = ends(&mut transport, Duration::from_secs(20)).await.expect("it ends");
    let silent = error.get_ref().and_then(|inner| inner.downcast_ref::<Silent>());
    assert_eq!(silent.map(|silent| silent.0), Some((SILENCE + PONG).into()), "{error}");
}

#[tokio::test]
async fn callers_of_little_patience_do_not_keep_a_dead_connection() {
    let (mut transport, _peer) = client().await;
    for number in 1..=200 {
        ask(&mut transport, number);
        let moment = SILENCE / 4;
        if ends(&mut transport, moment).await.is_some() {
            return;
        }
        transport.handle(Input::Cancel { handle: Handle(number) }).expect("never fails");
        if ends(&mut transport, moment).await.is_some() {
            return;
        }
    }
    panic!("it is still there");
}

#[tokio::test]
async fn a_server_that_answers_pings_may_take_its_time() {
    let (mut transport, mut peer) = client().await;
    let serving = async {
        let mut pings = 0;
        while pings < 3 {
            let message = peer.receive().await.expect("open");
            if message.code == Code::PING {
                pings += 1;
                let pong = Signal::Pong { custody: false }.into_message(message.token);
                peer.send(&pong).await.expect("open");
            }
        }
    };
    ask(&mut transport, 1);
    tokio::select! {
        ended = ends(&mut transport, Duration::from_secs(20)) => panic!("{ended:?}"),
        () = serving => {}
    }
}
