//! Nodes by themselves, which know each other by given routes alone: what a stranger's stack may ask of them.

use std::net::Ipv6Addr;

use lowmesh_ipv6::packet;
use lowmesh_mac::csma::{self, Input as RadioInput};
use lowmesh_mac::frame::airtime;
use lowmesh_mac::params::CCA;
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_units::{Dbm, Eui64, Instant, NodeId, Seed};
use lowmesh_wire::icmpv6::{self, Echo, Icmpv6, Unreachable};
use lowmesh_wire::ieee802154::{self, Frame};
use lowmesh_wire::ipv6::{self, Address, Header, Prefix};
use lowmesh_wire::lowpan::{Contexts, decompress};
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use crate::event::{Input, Output, Problem, RadioOrder, Transaction};
use crate::lowpan;
use crate::{COAP_PORT, Config, DATAGRAM_PORT, ECHO_PORT, Identity, LinkLayer, Node};

const LINKS: [Address; 2] =
    [Address::link_local(NodeId(0).eui64()), Address::link_local(NodeId(1).eui64())];

fn global(index: u16) -> Address {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, index + 1).into()
}

/// Two nodes that hear every frame of each other.
struct Pair {
    now: Instant,
    nodes: Vec<Node>,
    orders: Vec<(Instant, usize, RadioOrder)>,
    /// What reached the applications.
    datagrams: Vec<(usize, (Address, u16), Vec<u8>)>,
    /// What node 0 was told of packets that came to nothing.
    troubles: Vec<(Address, Address, Problem)>,
    /// How requests of node 0 ended.
    ended: Vec<(Instant, Transaction)>,
    /// The frames that node 1 sent.
    answers: Vec<Vec<u8>>,
}

impl Pair {
    fn new() -> Self {
        let csma = csma::Config::default();
        let link = LinkLayer::Csma(csma);
        let config = Config { link, icmpv6_errors: 10, ..Config::default() };
        let node = |index: u16| {
            let other = 1 - index;
            let way = Prefix::new(global(other), 128).expect("128 bits");
            let identity = Identity::new(NodeId(index).eui64())
                .with_address(global(index), 64)
                .expect("a global address")
                .with_route(way, LINKS[usize::from(other)])
                .expect("a neighbour");
            Node::alone(&config, identity, Seed(u64::from(index))).expect("possible settings")
        };
        let nodes = vec![node(0), node(1)];
        let (orders, datagrams) = (Vec::new(), Vec::new());
        let mut pair = Self {
            now: Instant::ZERO,
            nodes,
            orders,
            datagrams,
            troubles: Vec::new(),
            ended: Vec::new(),
            answers: Vec::new(),
        };
        pair.tell(0, Input::Boot);
        pair.tell(1, Input::Boot);
        pair
    }

    fn tell(&mut self, who: usize, input: Input) {
        self.nodes[who].handle(self.now, input).expect("acceptable");
        self.drain(who);
    }
    fn drain(&mut self, who: usize) {
        while let Some(output) = self.nodes[who].poll_output() {
            match output {
                Output::Radio(order) => {
                    let at = match &order {
                        RadioOrder::Sense { at } => *at + CCA,
                        RadioOrder::Transmit { at, octets, .. }
                        | RadioOrder::Acknowledge { at, octets, .. } => *at + airtime(octets.len()),
                    };
                    self.orders.push((at, who, order));
                }
                Output::Datagram { from, payload } => self.datagrams.push((who, from, payload)),
                Output::Trouble { from, to, problem } => self.troubles.push((from, to, problem)),
                Output::Transaction(ended @ Transaction::Failed(..)) => {
                    self.ended.push((self.now, ended));
                }
                _ => {}
            }
        }
    }

    /// Lets things happen until all are at rest.
    fn run(&mut self) {
        for _ in 0..1_000 {
            let order = (0..self.orders.len()).min_by_key(|i| self.orders[*i].0);
            let deadline =
                (0..2).filter_map(|who| Some((self.nodes[who].next_deadline()?, who))).min();
            match (order, deadline) {
                (Some(place), _) if deadline.is_none_or(|(due, _)| self.orders[place].0 <= due) => {
                    let (at, who, order) = self.orders.remove(place);
                    self.now = at;
                    self.obey(who, &order);
                }
                (_, Some((due, who))) => {
                    self.now = due;
                    self.tell(who, Input::Deadline);
                }
                _ => return,
            }
        }
        panic!("they never come to rest");
    }

    fn obey(&mut self, who: usize, order: &RadioOrder) {
        let octets = match order {
            RadioOrder::Sense { .. } => {
                self.nodes[who].radio(self.now, RadioInput::Sensed { busy: false });
                return self.drain(who);
            }
            RadioOrder::Transmit { octets, .. } => {
                if who == 1 {
                    self.answers.push(octets.clone());
                }
                &octets[..]
            }
            RadioOrder::Acknowledge { octets, .. } => &octets[..],
        };
        self.nodes[who].radio(self.now, RadioInput::Sent);
        let heard = RadioInput::Received { octets, rssi: Dbm(-50.0), handle: Handle::NONE };
        self.nodes[1 - who].radio(self.now, heard);
        self.drain(who);
        self.drain(1 - who);
    }

    /// A message of node 0 to node 1, and what came back.
    fn ask(&mut self, source: Address, destination: Address, message: &Icmpv6) -> Vec<Icmpv6> {
        let mut payload = Vec::new();
        message.emit(&source.0, &destination.0, &mut payload);
        let next_header = icmpv6::NEXT_HEADER;
        let packet = packet::plain(source, destination, next_header, 255, &payload, |_| ());
        let to = (!destination.is_multicast()).then(|| NodeId(1).eui64());
        self.send_to(packet, to);
        let answers = std::mem::take(&mut self.answers);
        answers.iter().map(|frame| message_in(&packet_in(frame))).collect()
    }
}

/// The packet in a data frame that carries a whole one from node 1.
fn packet_in(octets: &[u8]) -> Vec<u8> {
    let frame = Frame::parse(octets).expect("a frame of ours");
    let to = match frame.header.destination {
        Some(ieee802154::Address::Extended(node)) => Some(node),
        _ => None,
    };
    let (from, contexts, mut packet) = (NodeId(1).eui64(), Contexts::new(), Vec::new());
    decompress(frame.payload, from, to, &contexts, None, &mut packet).expect("a whole packet");
    packet
}

/// The message in a packet, with its checksum and hop limit checked.
fn message_in(packet: &[u8]) -> Icmpv6 {
    let header = Header::parse(packet).expect("a packet of ours");
    assert_eq!(header.next_header, icmpv6::NEXT_HEADER);
    Icmpv6::parse(&packet[ipv6::HEADER_OCTETS..], &header.source.0, &header.destination.0)
        .expect("a message of ours")
}

#[test]
fn who_asks_for_an_address_is_told_the_node() {
    for target in [LINKS[1], global(1)] {
        let mut pair = Pair::new();
        let question =
            Solicitation { target, source_node: Some(NodeId(0).eui64()), registration: None };
        let message = Icmpv6::NeighbourSolicitation(question);
        let answers = pair.ask(LINKS[0], target.solicited_node(), &message);
        let advertisement = Advertisement {
            router: true,
            solicited: true,
            overriding: true,
            target,
            target_node: Some(NodeId(1).eui64()),
            registration: None,
        };
        assert_eq!(answers, [Icmpv6::NeighbourAdvertisement(advertisement)]);
    }
}

#[test]
fn a_ping_is_answered_from_the_address_that_was_pinged() {
    let echo = Echo { identifier: 1, sequence: 2, data: vec![7; 30] };
    for (source, destination) in [(LINKS[0], LINKS[1]), (global(0), global(1))] {
        let mut pair = Pair::new();
        let answers = pair.ask(source, destination, &Icmpv6::EchoRequest(echo.clone()));
        assert_eq!(answers, [Icmpv6::EchoReply(echo.clone())]);
    }
}

#[test]
fn a_datagram_to_port_7_comes_back() {
    let mut pair = Pair::new();
    for octets in [3, 300] {
        let payload = vec![0x5a; octets];
        let peer = (global(1), ECHO_PORT);
        pair.tell(
            0,
            Input::Datagram { source_port: DATAGRAM_PORT, peer, payload: payload.clone() },
        );
        pair.answers.clear();
        pair.run();
        assert_eq!(pair.datagrams.pop(), Some((0, peer, payload)));
    }
}

#[test]
fn two_echo_services_do_not_keep_each_other_busy() {
    let mut pair = Pair::new();
    let peer = (LINKS[1], ECHO_PORT);
    pair.tell(0, Input::Datagram { source_port: ECHO_PORT, peer, payload: vec![1] });
    pair.run();
    assert_eq!(pair.answers, Vec::<Vec<u8>>::new());
}

impl Pair {
    /// A packet of node 0 to node 1, whatever is in it.
    fn send(&mut self, packet: Vec<u8>) {
        self.send_to(packet, Some(NodeId(1).eui64()));
    }
    /// A packet of node 0 to a neighbour or to all.
    fn send_to(&mut self, packet: Vec<u8>, to: Option<Eui64>) {
        let refused = lowpan::send(&mut self.nodes[0].lowpan, self.now, packet, to, Handle(1));
        assert_eq!(refused, None);
        self.nodes[0].settle(self.now);
        self.drain(0);
        self.run();
    }
}

#[test]
fn a_host_registers_its_address_and_is_reached_by_it() {
    let mut pair = Pair::new();
    // Of the router's prefix, and not made of the host's EUI-64.
    let own: Address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0xbee, 0xbee).into();
    let registration = Registration {
        status: 0,
        opaque: 0,
        flags: 1,
        transaction_id: 3,
        lifetime_minutes: 5,
        node: NodeId(0).eui64(),
    };
    let question = Solicitation {
        target: own,
        source_node: Some(NodeId(0).eui64()),
        registration: Some(registration),
    };
    let answers = pair.ask(LINKS[0], LINKS[1], &Icmpv6::NeighbourSolicitation(question));
    let [Icmpv6::NeighbourAdvertisement(said)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((said.target, said.registration), (own, Some(registration)));
    let echo = Echo { identifier: 1, sequence: 2, data: vec![7; 30] };
    let answers = pair.ask(own, global(1), &Icmpv6::EchoRequest(echo.clone()));
    assert_eq!(answers, [Icmpv6::EchoReply(echo)]);
}

#[test]
fn a_host_that_asks_for_routers_gets_an_advertisement() {
    let mut pair = Pair::new();
    let question = RouterSolicitation { source_node: Some(NodeId(0).eui64()) };
    let message = Icmpv6::RouterSolicitation(question);
    let answers = pair.ask(LINKS[0], Address::ALL_ROUTERS, &message);
    let [Icmpv6::RouterAdvertisement(said)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(said.prefixes[0].prefix, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).into());
}

#[test]
fn an_advertisement_goes_to_the_address_that_asked_and_no_router_passes_it_on() {
    let mut pair = Pair::new();
    let question = RouterSolicitation { source_node: Some(NodeId(0).eui64()) };
    let message = Icmpv6::RouterSolicitation(question);
    // Not made of an EUI-64, and no route leads to it.
    let source: Address = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7).into();
    let mut payload = Vec::new();
    message.emit(&source.0, &LINKS[1].0, &mut payload);
    pair.send(packet::plain(source, LINKS[1], icmpv6::NEXT_HEADER, 255, &payload, |_| ()));
    let packets: Vec<Vec<u8>> = pair.answers.iter().map(|frame| packet_in(frame)).collect();
    let [packet] = &packets[..] else { panic!("{} answers", packets.len()) };
    let header = Header::parse(packet).expect("a packet of ours");
    assert_eq!((header.destination, header.hop_limit), (source, 255));
}

#[test]
fn advertisements_to_all_keep_their_distance() {
    let mut pair = Pair::new();
    let message = Icmpv6::RouterSolicitation(RouterSolicitation { source_node: None });
    let mut answers = 0;
    for _ in 0..20 {
        answers += pair.ask(Address::UNSPECIFIED, Address::ALL_ROUTERS, &message).len();
    }
    assert!(pair.now < Instant::from_secs(3), "{}", pair.now);
    assert_eq!(answers, 1);
    pair.now = Instant::from_secs(10);
    answers += pair.ask(Address::UNSPECIFIED, Address::ALL_ROUTERS, &message).len();
    assert_eq!(answers, 2);
}

/// What node 1 says to a registration of `target` that comes from node 0 and names a node with this EUI-64.
fn register(pair: &mut Pair, source: Address, target: Address, node: u16) -> Option<u8> {
    let option = Registration {
        status: 0,
        opaque: 0,
        flags: 1,
        transaction_id: 250,
        lifetime_minutes: 5,
        node: NodeId(node).eui64(),
    };
    let question = Solicitation {
        target,
        source_node: Some(NodeId(node).eui64()),
        registration: Some(option),
    };
    let mut payload = Vec::new();
    let message = Icmpv6::NeighbourSolicitation(question);
    message.emit(&source.0, &LINKS[1].0, &mut payload);
    pair.send(packet::plain(source, LINKS[1], icmpv6::NEXT_HEADER, 255, &payload, |_| ()));
    let frame = pair.answers.first()?.clone();
    pair.answers.clear();
    match message_in(&packet_in(&frame)) {
        Icmpv6::NeighbourAdvertisement(said) => said.registration.map(|option| option.status),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_registration_takes_no_route_that_was_given() {
    let mut pair = Pair::new();
    // Node 1 has a route to this one over node 0.
    assert_eq!(register(&mut pair, LINKS[0], global(0), 0), Some(0), "its own");
    let thief = Address::link_local(NodeId(6).eui64());
    let mut pair = Pair::new();
    assert_eq!(register(&mut pair, thief, global(0), 6), None, "node 0 speaks for itself alone");
    let echo = Echo { identifier: 1, sequence: 2, data: vec![7; 30] };
    let answers = pair.ask(global(0), global(1), &Icmpv6::EchoRequest(echo.clone()));
    assert_eq!(answers, [Icmpv6::EchoReply(echo)]);
}

#[test]
fn a_closed_port_ends_a_request_at_once() {
    let mut pair = Pair::new();
    let peer = (global(1), 9);
    let request = lowmesh_coap::RequestTemplate::get("/clock");
    pair.tell(0, Input::Request { peer, request, handle: Handle(5) });
    pair.run();
    let problem = Problem::Unreachable(Unreachable::Port);
    assert_eq!(pair.troubles, [(global(1), global(1), problem)]);
    let (at, how) = pair.ended.pop().expect("it has ended");
    assert!(matches!(how, Transaction::Failed(Handle(5), _)), "{how:?}");
    assert!(at < Instant::from_millis(100), "no retransmission was waited for: {at}");
}

#[test]
fn a_port_of_coap_that_answers_is_no_trouble() {
    let mut pair = Pair::new();
    pair.tell(
        0,
        Input::Datagram { source_port: 9, peer: (global(1), COAP_PORT), payload: vec![0] },
    );
    pair.run();
    assert_eq!(pair.troubles, []);
}

#[test]
fn a_router_tells_why_a_packet_does_not_go_on() {
    let away: Address = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1).into();
    for (destination, hop_limit, problem) in
        [(away, 64, Problem::Unreachable(Unreachable::NoRoute)), (global(0), 1, Problem::HopLimit)]
    {
        let mut pair = Pair::new();
        pair.send(packet::plain(global(0), destination, 17, hop_limit, &[0; 40], |_| ()));
        assert_eq!(pair.troubles, [(global(1), destination, problem)]);
        let (here, there) = (pair.nodes[0].counters(), pair.nodes[1].counters());
        assert_eq!(here.errors_received, there.errors_sent);
        let counted = match problem {
            Problem::HopLimit => there.errors_sent.time_exceeded,
            _ => there.errors_sent.unreachable,
        };
        assert_eq!((counted, there.errors_withheld), (1, 0));
    }
}

#[test]
fn an_upper_layer_that_is_not_known_is_a_parameter_problem_where_its_number_stands() {
    let mut pair = Pair::new();
    pair.send(packet::plain(global(0), global(1), 132, 64, &[0; 12], |_| ()));
    // A destination options header in between: its first octet names the upper layer.
    let mut packet = packet::plain(global(0), global(1), 60, 64, &[0; 20], |_| ());
    packet[ipv6::HEADER_OCTETS..][..8].copy_from_slice(&[132, 0, 1, 4, 0, 0, 0, 0]);
    pair.send(packet);
    let problems: Vec<Problem> = pair.troubles.iter().map(|(_, _, problem)| *problem).collect();
    let problem = |pointer| Problem::Parameter { code: 1, pointer };
    assert_eq!(problems, [problem(6), problem(40)]);
}

#[test]
fn no_error_is_told_about_an_error_nor_about_a_packet_to_a_group() {
    let mut pair = Pair::new();
    let away: Address = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1).into();
    let mut error = Vec::new();
    let invoking = vec![0; 48];
    Icmpv6::TimeExceeded { code: 0, invoking }.emit(&global(0).0, &away.0, &mut error);
    pair.send(packet::plain(global(0), away, icmpv6::NEXT_HEADER, 64, &error, |_| ()));
    let flow = packet::Flow {
        source: global(0),
        destination: Address::ALL_NODES,
        source_port: 1,
        destination_port: 9,
    };
    pair.send(packet::udp(&flow, 64, b"x", |_| ()));
    assert_eq!((pair.troubles, pair.answers), (vec![], vec![]));
}

#[test]
fn no_error_is_told_about_a_frame_to_all() {
    let mut pair = Pair::new();
    let away: Address = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1).into();
    for destination in [away, global(1)] {
        let packet = packet::plain(global(0), destination, 132, 64, &[0; 12], |_| ());
        pair.send_to(packet, None);
    }
    assert_eq!((pair.troubles, pair.answers), (vec![], vec![]));
}

#[test]
fn an_error_of_an_unknown_type_reaches_the_application() {
    let mut pair = Pair::new();
    let invoking = packet::plain(global(1), global(0), 17, 64, &[0; 12], |_| ());
    let mut body = vec![0; 4];
    body.extend_from_slice(&invoking);
    let message = Icmpv6::Other { kind: 100, code: 3, body };
    let mut payload = Vec::new();
    message.emit(&global(0).0, &global(1).0, &mut payload);
    pair.send(packet::plain(global(0), global(1), icmpv6::NEXT_HEADER, 64, &payload, |_| ()));
    let problem = Problem::Unknown { kind: 100, code: 3 };
    assert_eq!(pair.troubles, [(global(0), global(0), problem)]);
}

#[test]
fn errors_keep_to_their_rate() {
    let mut pair = Pair::new();
    for _ in 0..30 {
        pair.send(packet::plain(global(0), global(1), 132, 64, &[0; 12], |_| ()));
    }
    assert!((8..12).contains(&pair.troubles.len()), "{}", pair.troubles.len());
    let counters = pair.nodes[1].counters();
    assert_eq!(counters.errors_sent.parameter, pair.troubles.len() as u64);
    assert_eq!(counters.errors_sent.parameter + counters.errors_withheld, 30);
}

#[test]
fn an_error_about_a_packet_of_another_ends_nothing() {
    let mut pair = Pair::new();
    let flow = packet::Flow {
        source: global(7),
        destination: global(1),
        source_port: COAP_PORT,
        destination_port: 9,
    };
    let invoking = packet::udp(&flow, 64, b"x", |_| ());
    let reason = Unreachable::Port;
    pair.ask(global(0), global(1), &Icmpv6::DestinationUnreachable { reason, invoking });
    assert_eq!(pair.troubles, []);
}

#[test]
fn a_route_goes_over_a_neighbour_alone() {
    let way = Prefix::new(global(0), 64).expect("64 bits");
    let given = Identity::new(NodeId(0).eui64()).with_route(way, global(1));
    assert!(given.is_err_and(|refusal| refusal.why().contains("link-local")));
}
