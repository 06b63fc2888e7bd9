//! The machine driven alone: packets and messages in, what it wants out.

use lowmesh_units::{Purpose, Seed};
use lowmesh_wire::icmpv6::{Echo, Unreachable};
use lowmesh_wire::ipv6::{HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, Prefix};
use lowmesh_wire::neighbour::{Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use super::*;
use crate::event::Problem;
use crate::packet::{plain, udp};
use crate::params::{HOP_LIMIT, PREFIX};

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
fn a_registered_address_is_reached_over_its_host_until_its_time_is_over() {
    let mut host = Host::new(|_| ());
    // Of the router's prefix, and not made of the host's EUI-64.
    let address = Address::global(PREFIX, eui(0xbee));
    let registration = registration(6);
    let question = Solicitation {
        target: address,
        source_node: Some(eui(6)),
        registration: Some(registration),
    };
    let message = Icmpv6::NeighbourSolicitation(question);
    let outputs = host.hear(6, link_local(6), link_local(1), &message);
    let (bytes, next_hop, rest) = answer(&outputs);
    let (_, destination, Icmpv6::NeighbourAdvertisement(said)) = read(bytes) else {
        panic!("{outputs:?}")
    };
    assert_eq!((destination, said.registration), (link_local(6), Some(registration)));
    assert_eq!((next_hop, rest), (Some(eui(6)), &[delivered()][..]));
    assert_eq!(host.ipv6.routes().host_route(&address), Some(link_local(6)));

    let thief = Solicitation { source_node: Some(eui(5)), ..question };
    let node = eui(5);
    let thief = Solicitation { registration: Some(Registration { node, ..registration }), ..thief };
    let message = Icmpv6::NeighbourSolicitation(thief);
    let status = |outputs: &[Output]| match read(answer(outputs).0).2 {
        Icmpv6::NeighbourAdvertisement(said) => said.registration.map(|option| option.status),
        other => panic!("{other:?}"),
    };
    assert_eq!(status(&host.hear(5, link_local(5), link_local(1), &message)), Some(1));
    host.now = NOW + lowmesh_units::Duration::from_secs(301);
    assert_eq!(status(&host.hear(5, link_local(5), link_local(1), &message)), Some(0));
}

#[test]
fn advertisements_to_all_keep_their_distance() {
    let mut host = Host::new(|_| ());
    let message = Icmpv6::RouterSolicitation(RouterSolicitation { source_node: None });
    // The node has not joined the all-routers group, so the solicitation goes to its link-local address.
    let mut ask = |seconds| {
        host.now = NOW + lowmesh_units::Duration::from_secs(seconds);
        assert_eq!(host.hear(2, Address::UNSPECIFIED, link_local(1), &message), [delivered()]);
        host.after_delay()
    };
    let outputs = ask(0);
    let (bytes, next_hop, _) = answer(&outputs);
    assert!(matches!(read(bytes), (_, Address::ALL_NODES, Icmpv6::RouterAdvertisement(_))));
    assert_eq!(next_hop, None);
    assert_eq!(ask(3), []);
    answer(&ask(4));
}

/// A registration in its first version, for five minutes.
fn registration(owner: u16) -> Registration {
    let (status, opaque, flags, transaction_id) = (0, 0, 1, 3);
    Registration { status, opaque, flags, transaction_id, lifetime_minutes: 5, node: eui(owner) }
}

#[test]
fn a_registration_takes_neither_the_source_nor_the_route_of_another() {
    let mut host = Host::new(|_| ());
    let mut ask = |from, source: Address, target: Address| {
        let (source_node, registration) = (Some(eui(from)), Some(registration(from)));
        let question = Solicitation { target, source_node, registration };
        let message = Icmpv6::NeighbourSolicitation(question);
        let outputs = host.hear(from, source, link_local(1), &message);
        match read(answer(&outputs).0).2 {
            Icmpv6::NeighbourAdvertisement(said) => said.registration.map(|option| option.status),
            other => panic!("{other:?}"),
        }
    };
    let own = Address::global(PREFIX, eui(0xbee));
    assert_eq!(ask(6, link_local(6), link_local(6)), Some(0));
    assert_eq!(ask(5, link_local(6), own), Some(6), "node 6 has this source");
    assert_eq!(ask(6, link_local(6), own), Some(0));
    assert_eq!(ask(5, link_local(5), global(2)), Some(1), "the route leads to node 2");
}

#[test]
fn a_neighbour_speaks_for_itself_alone() {
    let mut host = Host::new(|_| ());
    let mut ask = |from, named: Eui64| {
        let question = Solicitation {
            target: Address::global(PREFIX, eui(0xbee)),
            source_node: Some(named),
            registration: Some(registration(6)),
        };
        let message = Icmpv6::NeighbourSolicitation(question);
        host.hear(from, Address::link_local(named), link_local(1), &message)
    };
    let refused = [dropped(Handle(7), Layer::Ipv6, DropReason::NotForUs)];
    assert_eq!(ask(5, eui(6)), refused, "the frame came from another node");
    answer(&ask(6, eui(6)));
    // The frame shows the EUI-64 of a node that names its short address.
    answer(&ask(6, lowmesh_units::ShortAddr(6).eui64()));
}

#[test]
fn one_host_that_solicits_all_the_time_leaves_advertisements_to_others() {
    let mut host = Host::new(|_| ());
    let mut ask = |node| {
        let message = RouterSolicitation { source_node: Some(eui(node)) };
        let message = Icmpv6::RouterSolicitation(message);
        assert_eq!(host.hear(node, link_local(node), link_local(1), &message), [delivered()]);
    };
    for _ in 0..100 {
        ask(5);
    }
    ask(6);
    let leave = host.after_delay();
    let to = |output: &Output| match output {
        Output::Send { next_hop, .. } => *next_hop,
        _ => None,
    };
    let mut told: Vec<Eui64> = leave.iter().filter_map(to).collect();
    told.sort_unstable();
    assert_eq!(told, [eui(5), eui(6)]);
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
fn packets_that_are_made_here_carry_option_and_source_route() {
    let mut host = Host::new(|_| ());
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(3), option: Some(OPTION) });
    host.routing.source_route = Some(vec![global(3), global(4)]);
    let to = (global(4), PORT);
    let class = Class::Request;
    let outputs = host.tell(Event::Datagram { source_port: 9, to, payload: b"data", class });
    let [
        Output::Packet(Packet::Born(born, Class::Request)),
        Output::Send { bytes, next_hop, handle },
    ] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((born, *handle, *next_hop), (handle, own(class, 1), Some(eui(3))));
    let headers = Headers::of_packet(bytes).expect("own packet");
    assert!(headers.rpl_option().is_some() && headers.routing().is_some());
    assert_eq!((headers.ip.destination, headers.ip.hop_limit), (global(3), HOP_LIMIT));
    let context = host.routing.asked[0];
    assert_eq!((context.from, context.destination), (None, global(4)));
}

#[test]
fn a_packet_without_a_route_is_born_and_ends() {
    let mut host = Host::new(|_| ());
    let class = Class::Request;
    let to = (far(), PORT);
    let outputs = host.tell(Event::Datagram { source_port: 9, to, payload: b"", class });
    let handle = own(class, 1);
    let born = Output::Packet(Packet::Born(handle, class));
    assert_eq!(outputs, [born, dropped(handle, Layer::Ipv6, DropReason::NoRoute)]);
}

#[test]
fn in_mode_e2e_a_packet_is_cut_and_put_together_and_its_parts_share_a_name() {
    let mut source = Host::new(|config| config.frame_payload = Some(80));
    let to = (global(2), PORT);
    let class = Class::Request;
    let payload = &[5; 200][..];
    let outputs = source.tell(Event::Datagram { source_port: 9, to, payload, class });
    let sent = |output: &Output| match output {
        Output::Send { bytes, .. } => Some(bytes.clone()),
        _ => None,
    };
    let fragments: Vec<_> = outputs.iter().filter_map(sent).collect();
    let copies = Output::Packet(Packet::Accepted(own(class, 1)));
    let accepted = outputs.iter().filter(|output| **output == copies).count();
    assert!(fragments.len() > 2 && accepted == fragments.len() - 1, "{outputs:?}");

    let mut host = Host::new(|_| ());
    // The fragments are for node 2; here they come to a node with its address.
    host.ipv6.forwarder.addresses = Addresses::new(eui(2), PREFIX);
    let mut last = Vec::new();
    for fragment in fragments {
        last = host.receive(1, fragment);
    }
    let [Output::Packet(Packet::PassedOn(_)), Output::Datagram(datagram), end] = &last[..] else {
        panic!("{last:?}")
    };
    assert_eq!((datagram.payload(), end), (payload, &delivered()));
}

#[test]
fn fragments_that_wait_too_long_end() {
    let mut host = Host::new(|_| ());
    let packet = udp(
        &Flow { source: global(2), destination: global(1), source_port: 9, destination_port: PORT },
        64,
        &[5; 200],
        |_| (),
    );
    let mut fragments = crate::fragment::fragments(&packet, 120, 1).expect("it fits");
    let first = fragments.next().expect("a fragment");
    assert_eq!(host.receive(2, first.clone()), []);
    assert_eq!(host.ipv6.handles().collect::<Vec<_>>(), [Handle(7)]);
    host.now = host.ipv6.next_deadline().expect("it waits");
    let end = dropped(Handle(7), Layer::Ipv6, DropReason::ReassemblyTimeout);
    let outputs = host.tell(Event::Deadline);
    let (bytes, _, rest) = answer(&outputs);
    let (_, to, Icmpv6::TimeExceeded { code: 1, invoking }) = read(bytes) else { panic!() };
    assert_eq!((to, invoking, rest), (global(2), first, &[end.clone()][..]));
    assert_eq!((host.ipv6.next_deadline(), host.ipv6.reassembly_octets()), (None, 0));

    let second = fragments.next().expect("a fragment");
    let mut host = Host::new(|_| ());
    assert_eq!(host.receive(2, second), []);
    host.now = host.ipv6.next_deadline().expect("it waits");
    assert_eq!(host.tell(Event::Deadline), [end], "without the first fragment nobody is told");
}

#[test]
fn at_a_border_router_packets_leave_and_come_in() {
    let mut host = Host::new(|config| config.uplink = true);
    // The table knows the mesh alone.
    let flow = Flow { source: global(2), destination: far(), source_port: 9, destination_port: 9 };
    let out = host.receive(2, udp(&flow, 9, b"x", |out| OPTION.emit(out)));
    let packet = udp(&flow, 8, b"x", |_| ());
    assert_eq!(out, [Output::Uplink { packet, handle: Handle(7) }]);

    let class = Class::Request;
    let to = (far(), PORT);
    let out = host.tell(Event::Datagram { source_port: 9, to, payload: b"", class });
    assert!(matches!(out[..], [Output::Packet(Packet::Born(..)), Output::Uplink { .. }]));

    let packet = datagram(far(), global(2), PORT, 9);
    let outputs = host.tell(Event::Uplink { packet, handle: Handle::NONE });
    let [Output::Packet(Packet::Born(..)), Output::Send { bytes, next_hop, .. }] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((bytes[HOP_LIMIT_OFFSET], *next_hop), (8, Some(eui(2))));

    let packet = datagram(far(), global(1), PORT, 9);
    let outputs = host.tell(Event::Uplink { packet, handle: Handle(7) });
    assert!(matches!(&outputs[..], [Output::Datagram(_), last] if *last == delivered()));
}

/// A packet with one option header of this kind, whose option is not known here.
fn with_option(header: u8, option: u8) -> Vec<u8> {
    let mut bytes = datagram(global(2), global(1), PORT, 64);
    let upper = std::mem::replace(&mut bytes[6], header);
    bytes[5] += 8;
    bytes.splice(40..40, [upper, 0, option, 4, 0, 0, 0, 0]);
    bytes
}

#[test]
fn an_unknown_option_does_what_its_highest_bits_ask_for() {
    for header in [next_header::HOP_BY_HOP, next_header::DESTINATION_OPTIONS] {
        for (option, reported) in [(0x5e, false), (0x9e, true), (0xde, true)] {
            let mut host = Host::new(|_| ());
            let outputs = host.receive(2, with_option(header, option));
            let end = dropped(Handle(7), Layer::Ipv6, DropReason::UnknownOption);
            assert_eq!(outputs.last(), Some(&end));
            assert_eq!(outputs.len() > 1, reported, "{option:#x}");
            if reported {
                let (_, to, message) = read(answer(&outputs).0);
                let Icmpv6::ParameterProblem { code, pointer, .. } = message else { panic!() };
                assert_eq!((to, code, pointer), (global(2), 2, 42));
            }
        }
        let skipped = Host::new(|_| ()).receive(2, with_option(header, 0x1e));
        assert!(matches!(skipped[0], Output::Datagram(_)), "{skipped:?}");
    }
}

#[test]
fn a_forwarder_looks_at_the_options_of_every_hop_and_at_no_others() {
    let passes = |header| {
        let mut bytes = with_option(header, 0x9e);
        bytes[24..40].copy_from_slice(&global(3).0);
        let outputs = Host::new(|_| ()).receive(2, bytes);
        outputs.iter().any(|output| matches!(output, Output::Send { handle: Handle(7), .. }))
    };
    assert!(passes(next_header::DESTINATION_OPTIONS));
    assert!(!passes(next_header::HOP_BY_HOP));
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

#[test]
fn a_packet_from_elsewhere_that_the_mesh_cannot_carry_is_reported_with_its_mtu() {
    let mut host = Host::new(|config| config.uplink = true);
    let flow = Flow { source: far(), destination: global(2), source_port: 9, destination_port: 10 };
    let fits = |octets: usize| udp(&flow, 64, &vec![0; octets - 48], |_| ());
    let passes = host.tell(Event::Uplink { packet: fits(1280), handle: Handle(7) });
    assert!(passes.iter().any(|output| matches!(output, Output::Send { .. })), "{passes:?}");
    let outputs = host.tell(Event::Uplink { packet: fits(1281), handle: Handle(7) });
    let message = outputs.iter().find_map(|output| match output {
        Output::Uplink { packet, .. } => Some(read(packet)),
        _ => None,
    });
    let Some((_, to, Icmpv6::PacketTooBig { mtu, .. })) = message else { panic!("{outputs:?}") };
    assert_eq!((to, mtu), (far(), 1280));
}
