//! Hosts that run no RPL: what a router takes, announces and forwards for them (RFC 9010), and what a node does that is one.

use lowmesh_units::{Duration, Sequence};
use lowmesh_wire::ipv6::UpperLayer;
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use super::*;
use crate::params::REGISTRATIONS_PER_NODE;
use crate::tunnel;

const DOWN: HopByHopOption =
    HopByHopOption { skippable: true, down: true, sender_rank: 1, ..OPTION };
const ROUTED: u8 = Registration::COUNTS | Registration::ROUTED;

/// Node 1 as a router below the root, node 0; every packet that RPL decides about goes up.
fn router() -> Host {
    let mut host = Host::new(|_| ());
    host.routing.root = Some(global(0));
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(0), option: Some(OPTION) });
    host
}
/// The same, with node 6 as its leaf.
fn with_leaf() -> Host {
    let mut host = router();
    register(&mut host, 6, 1, 5, ROUTED);
    host
}
/// Node 1 as the root, which reaches node 7 through its child, node 2.
fn root() -> Host {
    let mut host = Host::new(|_| ());
    host.routing.root = Some(global(1));
    host.routing.router = Some((global(7), global(2)));
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(2), option: Some(DOWN) });
    host
}
fn register(host: &mut Host, node: u16, number: u8, minutes: u16, flags: u8) -> Vec<Output> {
    let registration = Registration {
        status: 0,
        opaque: 0,
        flags,
        transaction_id: number,
        lifetime_minutes: minutes,
        node: eui(node),
    };
    let question = Solicitation {
        target: global(node),
        source_node: Some(eui(node)),
        registration: Some(registration),
    };
    let message = Icmpv6::NeighbourSolicitation(question);
    host.hear(node, link_local(node), link_local(1), &message)
}
fn found(outputs: &[Output]) -> Option<(Address, Eui64, u8, u16)> {
    outputs.iter().find_map(|output| match output {
        Output::LeafFound { address, node, number: Sequence(number), lifetime_minutes } => {
            Some((*address, *node, *number, *lifetime_minutes))
        }
        _ => None,
    })
}
fn lost(outputs: &[Output]) -> Option<Address> {
    outputs.iter().find_map(|output| match output {
        Output::LeafLost { address, .. } => Some(*address),
        _ => None,
    })
}
/// The advertisement that leaves, and to whom.
fn told(outputs: &[Output]) -> Option<(Advertisement, Eui64)> {
    outputs.iter().find_map(|output| match output {
        Output::Send { bytes, next_hop: Some(next_hop), .. } => match read(bytes).2 {
            Icmpv6::NeighbourAdvertisement(said) => Some((said, *next_hop)),
            _ => None,
        },
        _ => None,
    })
}
fn sent(outputs: &[Output]) -> (&[u8], Eui64) {
    match outputs {
        [.., Output::Send { bytes, next_hop: Some(next_hop), .. }] => (bytes, *next_hop),
        other => panic!("nothing is sent: {other:?}"),
    }
}
/// The ends of a tunnel, whether it has RPL's option, and the inner packet.
fn opened(outer: &[u8]) -> (Address, Address, bool, &[u8]) {
    let headers = Headers::of_packet(outer).expect("own packet");
    let UpperLayer { next_header, offset } = headers.upper_layer().expect("a whole packet");
    assert_eq!(next_header, next_header::IPV6);
    let has_option = headers.rpl_option().is_some();
    (headers.ip.source, headers.ip.destination, has_option, &outer[offset..])
}
fn has_rpl(packet: &[u8]) -> bool {
    let headers = Headers::of_packet(packet).expect("own packet");
    headers.rpl_option().is_some() || headers.routing().is_some()
}
/// A packet with RPL's option of either type.
fn with_option(source: Address, destination: Address, skippable: bool) -> Vec<u8> {
    let flow = Flow { source, destination, source_port: 9, destination_port: PORT };
    udp(&flow, 9, b"data", |out| HopByHopOption { skippable, ..OPTION }.emit(out))
}

#[test]
fn a_leaf_is_announced_as_often_as_it_registers_until_its_time_is_over() {
    let mut host = router();
    let outputs = register(&mut host, 6, 1, 5, ROUTED);
    assert_eq!(found(&outputs), Some((global(6), eui(6), 1, 5)));
    let (said, to) = told(&outputs).expect("an answer");
    let option = said.registration.expect("about the registration");
    assert_eq!((to, option.status, option.flags), (eui(6), 0, ROUTED));
    host.now = NOW + Duration::from_secs(200);
    assert_eq!(found(&register(&mut host, 6, 2, 5, ROUTED)).map(|(.., number, _)| number), Some(2));
    let due = host.ipv6.next_deadline();
    assert_eq!(due, Some(NOW + Duration::from_secs(500)));
    host.now = NOW + Duration::from_secs(500);
    assert_eq!(lost(&host.tell(Event::Deadline)), Some(global(6)));
    assert_eq!((host.ipv6.leaf(&global(6)), host.ipv6.next_deadline()), (None, None));
}

#[test]
fn a_leaf_that_ends_its_registration_or_wants_no_route_is_announced_no_longer() {
    for (minutes, flags) in [(0, ROUTED), (5, Registration::COUNTS)] {
        let mut host = with_leaf();
        let outputs = register(&mut host, 6, 2, minutes, flags);
        assert_eq!((lost(&outputs), found(&outputs)), (Some(global(6)), None));
    }
}

#[test]
fn who_has_no_route_to_give_says_so() {
    let mut adrift = router();
    adrift.routing.role = Some(Role::Adrift);
    // Where routes are given, nobody announces hosts.
    let given = Host::new(|_| ());
    for mut host in [adrift, given] {
        let outputs = register(&mut host, 6, 1, 5, ROUTED);
        let option = told(&outputs).and_then(|(said, _)| said.registration).expect("an answer");
        assert_eq!((option.status, option.flags), (0, Registration::COUNTS));
        assert_eq!(found(&outputs), None);
    }
}

#[test]
fn one_host_is_no_more_leaves_than_its_share() {
    let mut host = router();
    let mut count = 0;
    for address in 0..3 * REGISTRATIONS_PER_NODE as u16 {
        let registration = Registration {
            status: 0,
            opaque: 0,
            flags: ROUTED,
            transaction_id: 1,
            lifetime_minutes: 5,
            node: eui(6),
        };
        let target = Address::global(PREFIX, eui(100 + address));
        let (source_node, registration) = (Some(eui(6)), Some(registration));
        let question = Solicitation { target, source_node, registration };
        let message = Icmpv6::NeighbourSolicitation(question);
        let outputs = host.hear(6, link_local(6), link_local(1), &message);
        count += usize::from(found(&outputs).is_some());
    }
    assert!((1..=REGISTRATIONS_PER_NODE).contains(&count), "{count}");
}

#[test]
fn what_a_leaf_sends_goes_to_the_root_in_a_packet_of_its_router() {
    for to in [global(0), global(5), far()] {
        let mut host = with_leaf();
        let packet = datagram(global(6), to, PORT, 9);
        let outputs = host.receive(6, packet.clone());
        let (outer, next_hop) = sent(&outputs);
        let (source, destination, has_option, inner) = opened(outer);
        assert_eq!((source, destination, next_hop), (global(1), global(0), eui(0)), "{to}");
        assert!(has_option && !has_rpl(inner));
        assert_eq!(inner[HOP_LIMIT_OFFSET], packet[HOP_LIMIT_OFFSET] - 1);
        // The rest of it may come in other frames.
        let bytes = packet[..48].to_vec();
        let outputs = host.tell(Event::Beginning { bytes, from: eui(6), handle: Handle(7) });
        assert!(matches!(outputs[..], [Output::Route { route: Route::Here, .. }]), "{outputs:?}");
    }
    let mut host = with_leaf();
    let last = host.receive(6, datagram(global(6), global(5), PORT, 1));
    assert_eq!(last.last(), Some(&dropped(Handle(7), Layer::Ipv6, DropReason::HopLimit)));
}

#[test]
fn nothing_of_rpl_goes_to_a_leaf() {
    let plain = datagram(global(0), global(6), PORT, 9);
    for skippable in [true, false] {
        let marked = with_option(global(5), global(6), skippable);
        for inner in [&plain, &marked] {
            let mut host = with_leaf();
            let tunnel = tunnel::Tunnel {
                source: global(0),
                destination: global(1),
                hop_limit: 64,
                option: DOWN,
            };
            for packet in [inner.clone(), tunnel.wrap(inner)] {
                let outputs = host.receive(0, packet);
                let (bytes, next_hop) = sent(&outputs);
                assert_eq!(next_hop, eui(6));
                assert_eq!(bytes, datagram_like(inner, 8), "one hop less, and nothing else");
            }
        }
    }
    // Its router's own packets.
    let mut host = with_leaf();
    let (source_port, to, payload, class) = (9, (global(6), PORT), &b"data"[..], Class::Request);
    let outputs = host.tell(Event::Datagram { source_port, to, payload, class });
    assert!(!has_rpl(sent(&outputs).0));
    assert_eq!(sent(&outputs).1, eui(6));
}
/// The datagram without options, with another hop limit.
fn datagram_like(packet: &[u8], hop_limit: u8) -> Vec<u8> {
    let header = Header::parse_packet(packet).expect("own packet");
    datagram(header.source, header.destination, PORT, hop_limit)
}

#[test]
fn two_leaves_of_one_router_need_no_root() {
    let mut host = with_leaf();
    register(&mut host, 5, 1, 5, ROUTED);
    let outputs = host.receive(6, datagram(global(6), global(5), PORT, 9));
    assert_eq!(sent(&outputs), (&datagram(global(6), global(5), PORT, 8)[..], eui(5)));
}

#[test]
fn the_root_sends_what_is_for_a_leaf_in_a_packet_to_its_router() {
    let mut host = root();
    let (source_port, to, payload, class) = (9, (global(7), PORT), &b"data"[..], Class::Request);
    let own = host.tell(Event::Datagram { source_port, to, payload, class });
    let of_another = host.receive(2, with_option(global(5), global(7), true));
    for outputs in [own, of_another] {
        let (outer, next_hop) = sent(&outputs);
        let (source, destination, has_option, inner) = opened(outer);
        assert_eq!((source, destination, next_hop), (global(1), global(2), eui(2)));
        assert!(has_option);
        assert_eq!(Header::parse_packet(inner).expect("own").destination, global(7));
    }
    // In non-storing mode over a route to the router.
    host.routing.source_route = Some(vec![global(2), global(3)]);
    host.routing.router = Some((global(7), global(3)));
    let outputs = host.tell(Event::Datagram { source_port, to, payload, class });
    let headers = Headers::of_packet(sent(&outputs).0).expect("own packet");
    assert!(headers.routing().is_some() && headers.ip.destination == global(2));
}

#[test]
fn a_leaf_of_the_root_gets_what_comes_from_the_mesh_and_the_mesh_what_it_sends() {
    let mut host = root();
    register(&mut host, 6, 1, 5, ROUTED);
    let outputs = host.receive(2, with_option(global(5), global(6), false));
    assert_eq!(sent(&outputs), (&datagram(global(5), global(6), PORT, 8)[..], eui(6)));
    let outputs = host.receive(6, datagram(global(6), global(5), PORT, 9));
    let (source, destination, has_option, inner) = opened(sent(&outputs).0);
    assert_eq!((source, destination, has_option), (global(1), global(5), true));
    assert_eq!(inner, datagram(global(6), global(5), PORT, 8));
}

#[test]
fn a_packet_of_a_leaf_of_the_root_leaves_the_mesh_with_one_hop_less() {
    let mut host = Host::new(|config| config.uplink = true);
    host.routing.root = Some(global(1));
    register(&mut host, 6, 1, 5, ROUTED);
    let outputs = host.receive(6, datagram(global(6), far(), PORT, 9));
    let [Output::Uplink { packet, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(*packet, datagram(global(6), far(), PORT, 8));
}

#[test]
fn a_leaf_that_the_routing_protocol_gives_up_is_told_and_is_here_no_longer() {
    let mut host = with_leaf();
    let outputs = host.tell(Event::Refuse { address: global(6), status: 3 });
    let (said, to) = told(&outputs).expect("an advertisement");
    let option = said.registration.expect("about the registration");
    assert_eq!((to, option.status, option.transaction_id), (eui(6), 3, 1));
    assert!(!option.is_routed() && !said.solicited);
    assert_eq!((lost(&outputs), host.ipv6.leaf(&global(6))), (None, None));
    assert_eq!(host.tell(Event::Refuse { address: global(6), status: 3 }), []);
}

#[test]
fn a_host_is_no_router_to_its_neighbours() {
    let mut host = Host::new(|_| ());
    host.routing.role = Some(Role::Host);
    let message = Icmpv6::RouterSolicitation(RouterSolicitation { source_node: Some(eui(6)) });
    assert_eq!(host.hear(6, link_local(6), Address::ALL_ROUTERS, &message), [delivered()]);
    assert_eq!(host.ipv6.next_deadline(), None, "no advertisement waits");
    assert_eq!(told(&register(&mut host, 6, 1, 5, ROUTED)), None);
    assert_eq!(host.ipv6.leaf(&global(6)), None);
    let said = Advertisement {
        router: true,
        solicited: true,
        overriding: false,
        target: global(1),
        target_node: None,
        registration: None,
    };
    let message = Icmpv6::NeighbourAdvertisement(said);
    let outputs = host.hear(2, link_local(2), link_local(1), &message);
    assert_eq!(
        outputs,
        [Output::Discovery { from: eui(2), message: message.clone() }, delivered()]
    );
    let from_afar = message_packet(link_local(2), link_local(1), 254, &message);
    let refused = [dropped(Handle(7), Layer::Ipv6, DropReason::Malformed)];
    assert_eq!(host.receive(2, from_afar), refused);
}

#[test]
fn a_router_without_a_dodag_is_no_default_router() {
    for (role, lifetime) in [(Role::Router, 1800), (Role::Adrift, 0)] {
        let mut host = router();
        host.routing.role = Some(role);
        let message = Icmpv6::RouterSolicitation(RouterSolicitation { source_node: Some(eui(6)) });
        host.hear(6, link_local(6), Address::ALL_ROUTERS, &message);
        let outputs = host.after_delay();
        let Icmpv6::RouterAdvertisement(said) = read(answer(&outputs).0).2 else {
            panic!("{outputs:?}")
        };
        assert_eq!(said.lifetime, lifetime);
    }
}
