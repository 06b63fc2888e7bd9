//! One machine with many ports: whom its requests keep from being served.

use super::*;
use crate::params::{BODY_OVERHEAD, QUOTA_ENTRY_OCTETS};

/// An address and a port.
type Port = (u8, u16);
type Server = drive::Server<Port>;

const GREEDY: u8 = 1;
const OTHER: u8 = 2;

fn server(limits: HostLimits) -> Server {
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    Host::over_datagrams(Config::default(), limits, rng).expect("possible")
}

/// A request; returns the exchange, if the application hears of it, and the answers that leave.
fn hear(server: &mut Server, from: Port, request: &Message) -> (Option<IncomingId>, Vec<Message>) {
    drive::hear(server, from, request, T0);
    turn(server)
}

fn turn(server: &mut Server) -> (Option<IncomingId>, Vec<Message>) {
    let (asked, sent) = drive::wants(server);
    (asked.last().map(|(exchange, _)| *exchange), sent.into_iter().map(|(_, one)| one).collect())
}

fn get(id: u16, path: &str) -> Message {
    drive::get(Kind::Confirmable, id, path)
}

/// A request that takes the application time: the error that it is refused with, if it is.
fn ask_slowly(server: &mut Server, from: Port, id: u16) -> Option<Code> {
    let (asked, _) = hear(server, from, &get(id, "/slow"));
    let exchange = asked.expect("room for the question");
    let refusal = server.defer(exchange).err()?;
    Some(respond(server, exchange, refusal))
}

/// A quick request: the code of its answer.
fn ask(server: &mut Server, from: Port, id: u16) -> Code {
    let (asked, _) = hear(server, from, &get(id, "/quick"));
    respond(server, asked.expect("room for the question"), ResponseTemplate::new(Code::CONTENT))
}

fn respond(server: &mut Server, exchange: IncomingId, response: ResponseTemplate) -> Code {
    drive::respond(server, exchange, response, T0);
    turn(server).1[0].code
}

#[test]
fn all_ports_of_a_machine_have_one_share_of_the_places_for_slow_requests() {
    let mut server = server(HostLimits { requests_max: 256, ..TRUSTING });
    let refused: Vec<_> =
        (1..=300).filter_map(|port| ask_slowly(&mut server, (GREEDY, port), 1)).collect();
    // A whole laboratory behind one address has 64 of them.
    assert_eq!(refused, [Code::SERVICE_UNAVAILABLE; 300 - 64]);
    // Quick requests need no place, so all ports of the machine are still answered.
    assert!((1..=300).all(|port| ask(&mut server, (GREEDY, port), 2) == Code::CONTENT));
    assert!((1..=64).all(|port| ask_slowly(&mut server, (OTHER, port), 1).is_none()));
}

#[test]
fn forged_ports_of_a_machine_leave_it_half_of_its_share_for_what_it_proves() {
    let limits = HostLimits { requests_max: 64, amplification_max: Some(3), ..TRUSTING };
    let mut server = server(limits);
    let refused: Vec<_> =
        (100..120).filter_map(|port| ask_slowly(&mut server, (OTHER, port), 1)).collect();
    assert_eq!(refused, [Code::UNAUTHORIZED; 20 - 8], "a proof would help");
    server.layer.transport.prove((OTHER, 1), T0);
    let refused: Vec<_> =
        (1..=10).filter_map(|id| ask_slowly(&mut server, (OTHER, 1), id)).collect();
    assert_eq!(refused, [Code::SERVICE_UNAVAILABLE; 2]);
}

#[test]
fn all_ports_of_a_machine_have_one_share_of_the_places_for_observers() {
    let mut server = server(HostLimits { observers_max: 16, ..TRUSTING });
    let mut observe = |from: Port, id: u16| {
        let mut get = drive::register(Kind::Confirmable, "/t", 7);
        get.message_id = MessageId(id);
        let exchange = hear(&mut server, from, &get).0.expect("room for the question");
        drive::respond(&mut server, exchange, drive::state(b""), T0);
        turn(&mut server).1[0].options.get(OptionNumber::OBSERVE).is_some()
    };
    let taken = (1..=20).filter(|port| observe((GREEDY, *port), 1)).count();
    assert_eq!(taken, TRUSTING.observers_per_source);
    assert!(observe((OTHER, 1), 1));
    // What a port observes is its own: the same again takes no second place.
    assert!(observe((GREEDY, 1), 2));
    let unreachable = Input::Unreachable { peer: (GREEDY, 1) };
    server.handle(T0, unreachable).expect("never fails");
    assert_eq!(server.observers(), TRUSTING.observers_per_source);
}

#[test]
fn bodies_from_all_ports_of_a_machine_leave_those_of_others_alone() {
    let one = 1000 + BODY_OVERHEAD;
    let limits = HostLimits {
        body_max: 1000,
        assemblies_max: 4 * one,
        assemblies_per_source: one,
        representations_max: 4 * one,
        representations_per_source: one,
        ..TRUSTING
    };
    let mut server = server(limits);
    let put = |number: u32, more: bool| {
        let mut put = get(number as u16, "/put");
        put.code = Code::PUT;
        let block = Block { number, more, exponent: Exponent::MIN };
        block.write(&mut put.options, OptionNumber::BLOCK1);
        put.payload = vec![7; 16];
        put
    };
    let later = |number: u32| {
        let mut get = get(100 + number as u16, "/long");
        let block = Block { number, more: false, exponent: Exponent::MIN };
        block.write(&mut get.options, OptionNumber::BLOCK2);
        get
    };
    let long = || ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; 100]);
    let (asked, answers) = hear(&mut server, (OTHER, 1), &put(0, true));
    assert_eq!((asked, answers[0].code), (None, Code::CONTINUE));
    let (asked, _) = hear(&mut server, (OTHER, 1), &later(0));
    assert_eq!(respond(&mut server, asked.expect("the first block"), long()), Code::CONTENT);
    for port in 1..=200 {
        hear(&mut server, (GREEDY, port), &put(0, true));
        let (asked, _) = hear(&mut server, (GREEDY, port), &later(0));
        respond(&mut server, asked.expect("the first block"), long());
    }
    assert!(server.body_octets() <= 2 * one + 4 * (QUOTA_ENTRY_OCTETS + 1000));
    let (asked, answers) = hear(&mut server, (OTHER, 1), &later(1));
    assert_eq!((asked, answers[0].code), (None, Code::CONTENT), "the next block of what is kept");
    assert!(hear(&mut server, (OTHER, 1), &put(1, false)).0.is_some(), "the whole body");
}
