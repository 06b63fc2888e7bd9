//! The machine driven alone: packets and messages in, what it wants out.

use lowmesh_machine::Dropped;
use lowmesh_units::{Purpose, Seed};
use lowmesh_wire::icmpv6::{Echo, Unreachable};
use lowmesh_wire::ipv6::{HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, Prefix, next_header};

use super::*;
use crate::event::{Packet, Problem};
use crate::packet::{Flow, plain, udp};
use crate::params::{HOP_LIMIT, PREFIX};
use crate::routing::Role;

mod border;
mod leaves;
mod neighbours;
mod options;
mod own_packets;
mod tunnels;

const NOW: Instant = Instant::from_secs(100);
const PORT: u16 = 5683;
/// The node under test; node 0 is its parent, node 2 below it.
const NODE: NodeId = NodeId(1);

fn eui(node: u16) -> Eui64 {
    NodeId(node).eui64()
}
fn global(node: u16) -> Address {
    Address::global(PREFIX, eui(node))
}
fn link_local(node: u16) -> Address {
    Address::link_local(eui(node))
}
/// An address of another network.
fn far() -> Address {
    Address::global([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0], eui(9))
}

const OPTION: HopByHopOption = HopByHopOption {
    skippable: false,
    down: false,
    rank_error: false,
    forwarding_error: false,
    instance: 0,
    sender_rank: 3,
};

/// A routing protocol that says what a test wants, or what the table says, and remembers what it was asked.
#[derive(Debug, Default)]
struct Script {
    verdict: Option<Verdict>,
    source_route: Option<Vec<Address>>,
    root: Option<Address>,
    /// The router of each leaf, of which there is one.
    router: Option<(Address, Address)>,
    role: Option<Role>,
    asked: Vec<ForwardContext>,
}

impl Routing for Script {
    fn forward(&mut self, _: Instant, packet: &ForwardContext) -> Verdict {
        self.asked.push(*packet);
        let by_table = |next: Address| Verdict::Forward { next_hop: next.eui64(), option: None };
        let by_table = packet.route.map_or(Verdict::Drop(DropReason::NoRoute), by_table);
        self.verdict.unwrap_or(by_table)
    }
    fn source_route(&self, _: &Address) -> Option<Vec<Address>> {
        self.source_route.clone()
    }
    fn root(&self) -> Option<Address> {
        self.root
    }
    fn router_of(&self, leaf: &Address) -> Option<Address> {
        self.router.filter(|(known, _)| known == leaf).map(|(_, router)| router)
    }
    fn role(&self) -> Role {
        self.role.unwrap_or(Role::Router)
    }
}

struct Host {
    now: Instant,
    ipv6: Ipv6,
    routing: Script,
}

impl Host {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            node: NODE,
            losses: 0,
            hop_limit: HOP_LIMIT,
            frame_payload: None,
            reassembly: reassemble::Config::default(),
            errors: 10,
            uplink: false,
            contexts: Contexts::new().with(0, PREFIX),
        };
        change(&mut config);
        let mut routes = RouteTable::new(8);
        let mesh = Prefix::new(global(0), 64).expect("64 bits");
        routes.insert_prefix(mesh, link_local(0)).expect("room");
        routes.insert(global(2), link_local(2)).expect("room");
        let addresses = Addresses::new(eui(1), PREFIX);
        let mut rng = Rng::stream(Seed(1), NODE, Purpose::Ipv6);
        let mut ipv6 = Ipv6::new(config, addresses, routes, &mut rng);
        ipv6.open(PORT);
        Self { now: NOW, ipv6, routing: Script::default() }
    }

    fn tell(&mut self, event: Event<'_>) -> Vec<Output> {
        let input = Input { routing: &mut self.routing, event };
        self.ipv6.handle(self.now, input).expect("acceptable");
        core::iter::from_fn(|| self.ipv6.poll_output()).collect()
    }
    /// A packet with the name 7 comes from a neighbour.
    fn receive(&mut self, from: u16, bytes: Vec<u8>) -> Vec<Output> {
        self.tell(Event::Packet { bytes, from: eui(from), handle: Handle(7) })
    }
    /// What leaves when the delay of advertisements is over.
    fn after_delay(&mut self) -> Vec<Output> {
        let from = self.now;
        let mut outputs = Vec::new();
        while let Some(due) = self.ipv6.next_deadline() {
            assert!(due > from && due <= from + crate::params::MAX_RA_DELAY_TIME);
            self.now = due;
            outputs.extend(self.tell(Event::Deadline));
        }
        outputs
    }
    /// A message comes from a neighbour with a hop limit of 255.
    fn hear(&mut self, from: u16, source: Address, to: Address, message: &Icmpv6) -> Vec<Output> {
        self.receive(from, message_packet(source, to, 255, message))
    }
}

fn datagram(source: Address, destination: Address, port: u16, hop_limit: u8) -> Vec<u8> {
    let flow = Flow { source, destination, source_port: 9, destination_port: port };
    udp(&flow, hop_limit, b"data", |_| ())
}
fn message_packet(source: Address, to: Address, hop_limit: u8, message: &Icmpv6) -> Vec<u8> {
    let mut payload = Vec::new();
    message.emit(&source.0, &to.0, &mut payload);
    plain(source, to, next_header::ICMPV6, hop_limit, &payload, |_| ())
}
/// The message in a packet without extension headers, from whom and to whom.
fn read(packet: &[u8]) -> (Address, Address, Icmpv6) {
    let Header { source, destination, .. } = Header::parse_packet(packet).expect("own packet");
    let message = Icmpv6::parse(&packet[HEADER_OCTETS..], &source.0, &destination.0);
    (source, destination, message.expect("own message"))
}
/// The name of the n-th packet that was made here.
fn own(class: Class, number: u64) -> Handle {
    Handle((class as u64) << 56 | 1 << 40 | number)
}
fn dropped(handle: Handle, layer: Layer, reason: DropReason) -> Output {
    Output::Packet(Packet::Dropped(Dropped { handle, layer, reason }))
}
fn delivered() -> Output {
    Output::Packet(Packet::Delivered(Handle(7)))
}
/// The answer in `[Born, Send, ...]`, its neighbour and what came behind it.
fn answer(outputs: &[Output]) -> (&[u8], Option<Eui64>, &[Output]) {
    match outputs {
        [
            Output::Packet(Packet::Born(born, Class::Control | Class::Response)),
            Output::Send { bytes, next_hop, handle },
            rest @ ..,
        ] if born == handle => (bytes, *next_hop, rest),
        other => panic!("no answer: {other:?}"),
    }
}

#[test]
fn a_packet_goes_on_by_the_table_with_one_hop_less_and_its_option_renewed() {
    let mut host = Host::new(|_| ());
    let flow =
        Flow { source: global(2), destination: global(5), source_port: 1, destination_port: 2 };
    let packet = udp(&flow, 9, b"x", |out| OPTION.emit(out));
    let renewed = HopByHopOption { sender_rank: 2, ..OPTION };
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(0), option: Some(renewed) });
    let outputs = host.receive(2, packet.clone());
    let mut bytes = udp(&flow, 8, b"x", |out| renewed.emit(out));
    assert_eq!(outputs, [Output::Send { bytes, next_hop: Some(eui(0)), handle: Handle(7) }]);
    let context = ForwardContext {
        from: Some(eui(2)),
        destination: global(5),
        source_routed: false,
        option: Some(OPTION),
        route: Some(link_local(0)),
    };
    assert_eq!(host.routing.asked, [context]);

    // The beginning of the packet goes the same way.
    bytes = packet;
    bytes.truncate(50);
    let outputs = host.tell(Event::Beginning { bytes, from: eui(2), handle: Handle(7) });
    let [Output::Route { beginning, route: Route::Via(next_hop) }] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!((*next_hop, beginning.len(), beginning[HOP_LIMIT_OFFSET]), (eui(0), 50, 8));
}

#[test]
fn a_source_route_is_followed_and_the_routing_protocol_knows_of_it() {
    let mut host = Host::new(|_| ());
    let mut bytes = datagram(global(0), global(2), PORT, 9);
    assert!(crate::source_route::insert(&mut bytes, &[global(1)]));
    let outputs = host.receive(0, bytes);
    assert!(matches!(outputs[..], [Output::Send { next_hop, .. }] if next_hop == Some(eui(2))));
    let asked = host.routing.asked[0];
    assert_eq!((asked.destination, asked.source_routed), (global(2), true));
}

#[test]
fn what_routing_drops_ends_here_and_its_source_is_told_of_a_missing_route_alone() {
    for (reason, is_told) in [(DropReason::NoRoute, true), (DropReason::RankLoop, false)] {
        let mut host = Host::new(|_| ());
        host.routing.verdict = Some(Verdict::Drop(reason));
        // The error is on the link, so that it needs no route.
        let outputs = host.receive(2, datagram(global(2), global(5), PORT, 9));
        assert_eq!(outputs.last(), Some(&dropped(Handle(7), Layer::Ipv6, reason)));
        let born = Output::Packet(Packet::Born(own(Class::Control, 1), Class::Control));
        assert_eq!(outputs.contains(&born), is_told, "{reason:?}");
    }
}

#[test]
fn a_datagram_for_an_open_port_comes_out_and_then_is_delivered() {
    let mut host = Host::new(|_| ());
    let outputs = host.receive(2, datagram(global(2), global(1), PORT, 9));
    let [Output::Datagram(datagram), last] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((datagram.payload(), datagram.from()), (&b"data"[..], (global(2), 9)));
    assert_eq!((datagram.flow.destination_port, last), (PORT, &delivered()));
}

#[test]
fn a_broadcast_has_no_moments_in_its_life() {
    let mut host = Host::new(|_| ());
    let handle = Handle::NONE;
    for (port, outputs) in [(PORT, 1), (99, 0)] {
        let bytes = datagram(link_local(2), Address::ALL_NODES, port, 9);
        assert_eq!(host.tell(Event::Packet { bytes, from: eui(2), handle }).len(), outputs);
    }
}

#[test]
fn a_closed_port_is_told_to_the_source_at_a_bounded_rate() {
    let mut host = Host::new(|config| config.errors = 1);
    let packet = datagram(global(2), global(1), 99, 9);
    let outputs = host.receive(2, packet.clone());
    let (bytes, next_hop, rest) = answer(&outputs);
    let reason = Unreachable::Port;
    let error = Icmpv6::DestinationUnreachable { reason, invoking: packet.clone() };
    assert_eq!((read(bytes), next_hop), ((global(1), global(2), error), Some(eui(2))));
    let end = dropped(Handle(7), Layer::Udp, DropReason::NoListener);
    assert_eq!(rest, core::slice::from_ref(&end));
    assert_eq!(host.receive(2, packet.clone()), [end], "the rate is used up");
    host.now = NOW + lowmesh_units::Duration::from_secs(1);
    answer(&host.receive(2, packet));
}

#[test]
fn a_packet_whose_next_hop_routing_alone_knows_loses_a_hop_too() {
    for (destination, known) in [(global(3), Some(link_local(0))), (far(), None)] {
        let mut host = Host::new(|_| ());
        host.routing.verdict = Some(Verdict::Forward { next_hop: eui(2), option: Some(OPTION) });
        let outputs = host.receive(2, datagram(global(2), destination, PORT, 9));
        assert_eq!(host.routing.asked[0].route, known);
        let [Output::Send { bytes, .. }] = &outputs[..] else { panic!("{outputs:?}") };
        assert_eq!(bytes[HOP_LIMIT_OFFSET], 8);
    }
}

#[test]
fn a_hop_limit_that_comes_to_zero_is_told_and_an_error_is_not_answered() {
    let mut host = Host::new(|_| ());
    let outputs = host.receive(2, datagram(global(2), global(5), PORT, 1));
    let (bytes, _, rest) = answer(&outputs);
    assert!(matches!(read(bytes).2, Icmpv6::TimeExceeded { code: 0, .. }));
    assert_eq!(rest, [dropped(Handle(7), Layer::Ipv6, DropReason::HopLimit)]);
    let error = Icmpv6::TimeExceeded { code: 0, invoking: vec![0; 48] };
    let outputs = host.receive(2, message_packet(global(2), global(5), 1, &error));
    assert_eq!(outputs, [dropped(Handle(7), Layer::Ipv6, DropReason::HopLimit)]);
}

#[test]
fn an_error_about_an_own_packet_is_trouble_and_one_about_anothers_nothing() {
    let mut host = Host::new(|_| ());
    for (source, is_own) in [(global(1), true), (global(2), false)] {
        let invoking = datagram(source, global(5), PORT, 9);
        let message = Icmpv6::DestinationUnreachable { reason: Unreachable::Port, invoking };
        let outputs = host.hear(0, global(5), global(1), &message);
        let trouble = Output::Trouble {
            from: global(5),
            to: global(5),
            problem: Problem::Unreachable(Unreachable::Port),
            ports: Some((9, PORT)),
        };
        let expected = if is_own { vec![trouble, delivered()] } else { vec![delivered()] };
        assert_eq!(outputs, expected);
    }
}

#[test]
fn an_echo_is_answered_from_the_address_that_was_asked() {
    let echo = Echo { identifier: 1, sequence: 2, data: vec![7; 30] };
    for (source, here) in [(global(2), global(1)), (link_local(2), link_local(1))] {
        let mut host = Host::new(|_| ());
        let outputs = host.hear(2, source, here, &Icmpv6::EchoRequest(echo.clone()));
        let (bytes, next_hop, rest) = answer(&outputs);
        assert_eq!(read(bytes), (here, source, Icmpv6::EchoReply(echo.clone())));
        assert_eq!((next_hop, rest), (Some(eui(2)), &[delivered()][..]));
        let outputs = host.hear(2, source, here, &Icmpv6::EchoReply(echo.clone()));
        assert_eq!(outputs, [Output::Pong { from: source, echo: echo.clone() }, delivered()]);
    }
}

#[test]
fn the_echo_service_sends_a_datagram_back_but_not_to_another_one() {
    let mut host = Host::new(|_| ());
    let outputs = host.receive(2, datagram(global(2), global(1), ECHO_PORT, 9));
    let flow = Flow {
        source: global(1),
        destination: global(2),
        source_port: ECHO_PORT,
        destination_port: 9,
    };
    let (bytes, handle) = (udp(&flow, HOP_LIMIT, b"data", |_| ()), own(Class::Response, 1));
    let expected = [
        Output::Packet(Packet::Born(handle, Class::Response)),
        Output::Send { bytes, next_hop: Some(eui(2)), handle },
        delivered(),
    ];
    assert_eq!(outputs, expected);
    let flow = Flow { source_port: ECHO_PORT, destination_port: ECHO_PORT, ..flow };
    let flow = Flow { source: global(2), destination: global(1), ..flow };
    let outputs = host.receive(2, udp(&flow, 9, b"data", |_| ()));
    assert_eq!(outputs, [dropped(Handle(7), Layer::Udp, DropReason::NotForUs)]);
}

#[test]
fn a_packet_to_one_node_that_came_in_a_frame_to_all_goes_no_further() {
    let mut host = Host::new(|_| ());
    let bytes = datagram(far(), global(2), PORT, 64);
    let heard = |bytes| Event::Packet { bytes, from: eui(0), handle: Handle::NONE };
    assert_eq!(host.tell(heard(bytes)), []);
    let here = host.tell(heard(datagram(far(), global(1), PORT, 64)));
    assert!(matches!(here[..], [Output::Datagram(_)]), "{here:?}");
}

#[test]
fn a_packet_without_an_upper_layer_is_no_error() {
    let mut host = Host::new(|_| ());
    let bytes = plain(far(), global(1), next_header::NONE, 64, &[], |_| ());
    assert_eq!(host.receive(0, bytes), [delivered()]);
}

#[test]
fn the_loopback_address_and_the_unspecified_one_get_no_answer() {
    let loopback = Address::LOOPBACK;
    let refused = [dropped(Handle(7), Layer::Ipv6, DropReason::Malformed)];
    for (source, destination) in [(loopback, global(1)), (loopback, far()), (far(), loopback)] {
        let mut host = Host::new(|_| ());
        assert_eq!(host.receive(2, datagram(source, destination, ECHO_PORT, 64)), refused);
    }
    let mut host = Host::new(|_| ());
    let unspecified = datagram(Address::UNSPECIFIED, global(1), ECHO_PORT, 64);
    assert_eq!(
        host.receive(2, unspecified),
        [dropped(Handle(7), Layer::Udp, DropReason::Malformed)]
    );
    let echo = Icmpv6::EchoRequest(Echo { identifier: 1, sequence: 1, data: Vec::new() });
    assert_eq!(host.hear(2, Address::UNSPECIFIED, global(1), &echo), refused);
}
