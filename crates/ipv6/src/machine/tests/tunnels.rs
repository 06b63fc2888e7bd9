//! Encapsulation: which node encapsulates a packet, and which decapsulates it (RFC 9008 s7 and s8).

use lowmesh_wire::ipv6::{Extensions, UpperLayer};

use super::*;
use crate::{source_route, tunnel};

const DOWN: HopByHopOption =
    HopByHopOption { skippable: true, down: true, sender_rank: 1, ..OPTION };

/// Node 1 as the root, of which node 2 is a child; the route to node 5 goes over nodes 2 and 3.
fn root() -> Host {
    let mut host = Host::new(|config| config.uplink = true);
    host.routing.root = Some(global(1));
    host.routing.source_route = Some(vec![global(2), global(3), global(5)]);
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(2), option: Some(DOWN) });
    host
}
/// Node 1 as a router below the root, node 0.
fn router() -> Host {
    let mut host = Host::new(|_| ());
    host.routing.root = Some(global(0));
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(0), option: None });
    host
}
/// A packet from one node to another, which the root encapsulates.
fn carried(source: Address, destination: Address, hop_limit: u8) -> Vec<u8> {
    let flow = Flow { source, destination, source_port: 9, destination_port: PORT };
    let option = HopByHopOption { sender_rank: 4, ..OPTION };
    udp(&flow, hop_limit, b"data", |out| option.emit(out))
}
fn wrapped(source: Address, destination: Address, inner: &[u8]) -> Vec<u8> {
    tunnel::Tunnel { source, destination, hop_limit: 64, option: DOWN }.wrap(inner)
}
/// The outer header, whether there is a source route, RPL's option, and the inner packet.
fn parts(outer: &[u8]) -> (Header, bool, HopByHopOption, &[u8]) {
    let headers = Headers::of_packet(outer).expect("own packet");
    let UpperLayer { next_header, offset } = headers.upper_layer().expect("a whole packet");
    assert_eq!(next_header, next_header::IPV6);
    let option = HopByHopOption::parse(&outer[headers.rpl_option().expect("an option")]);
    (headers.ip, headers.routing().is_some(), option.expect("a good one"), &outer[offset..])
}
fn sent(outputs: &[Output]) -> (&[u8], Eui64) {
    match outputs {
        [.., Output::Send { bytes, next_hop: Some(next_hop), .. }] => (bytes, *next_hop),
        other => panic!("nothing is sent: {other:?}"),
    }
}
/// The receiver of an error, and the error.
fn told(outputs: &[Output]) -> Option<(Address, Icmpv6)> {
    outputs.iter().find_map(|output| match output {
        Output::Send { bytes, .. } | Output::Uplink { packet: bytes, .. } => {
            let headers = Headers::of_packet(bytes).expect("own packet");
            let upper = headers.upper_layer().expect("a whole packet");
            let (source, to) = (headers.ip.source, headers.ip.destination);
            Some((to, Icmpv6::parse(&bytes[upper.offset..], &source.0, &to.0).ok()?))
        }
        _ => None,
    })
}

#[test]
fn the_root_encapsulates_a_packet_between_two_nodes_with_the_source_route() {
    let mut host = root();
    let outputs = host.receive(2, carried(global(4), global(5), 9));
    let (outer, next_hop) = sent(&outputs);
    let (ip, is_routed, option, inner) = parts(outer);
    assert_eq!((ip.source, ip.destination, ip.hop_limit), (global(1), global(2), HOP_LIMIT));
    assert_eq!((next_hop, is_routed, option), (eui(2), true, DOWN));
    // One hop here, and two more on the route; nothing else is changed.
    assert_eq!(inner, carried(global(4), global(5), 6));
    assert_eq!(outputs.len(), 1, "the packet keeps its name");
}

#[test]
fn a_packet_to_a_child_of_the_root_needs_no_route_and_its_option_is_renewed() {
    let mut host = root();
    host.routing.source_route = Some(vec![global(5)]);
    let renewed = HopByHopOption { sender_rank: 1, down: true, ..OPTION };
    host.routing.verdict = Some(Verdict::Forward { next_hop: eui(5), option: Some(renewed) });
    let outputs = host.receive(2, carried(global(4), global(5), 9));
    let (bytes, next_hop) = sent(&outputs);
    let flow =
        Flow { source: global(4), destination: global(5), source_port: 9, destination_port: PORT };
    assert_eq!(bytes, udp(&flow, 8, b"data", |out| renewed.emit(out)));
    assert_eq!(next_hop, eui(5));
}

#[test]
fn the_beginning_of_a_packet_that_needs_a_route_stays_as_it_came() {
    let mut host = root();
    let mut bytes = carried(global(4), global(5), 9);
    bytes.truncate(56);
    let event = Event::Beginning { bytes: bytes.clone(), from: eui(2), handle: Handle(7) };
    let route = Output::Route { beginning: bytes, route: Route::Here };
    assert_eq!(host.tell(event), [route]);
}

#[test]
fn the_root_encapsulates_a_packet_from_elsewhere_and_changes_its_hop_limit_alone() {
    for (route, hop_limit) in
        [(None, 8), (Some(vec![global(5)]), 8), (root().routing.source_route, 6)]
    {
        let mut host = root();
        host.routing.source_route = route.clone();
        // RFC 9008 s7.2.2: an option of another network is left as it is.
        let packet = carried(far(), global(5), 9);
        let outputs = host.tell(Event::Uplink { packet, handle: Handle(7) });
        let (ip, is_routed, option, inner) = parts(sent(&outputs).0);
        assert_eq!((ip.source, option), (global(1), DOWN));
        assert_eq!(is_routed, hop_limit == 6);
        assert_eq!(inner, carried(far(), global(5), hop_limit), "{route:?}");
    }
}

#[test]
fn a_packet_as_large_as_the_mesh_carries_enters_in_two_that_are_not_larger() {
    let mut host = root();
    let flow =
        Flow { source: far(), destination: global(5), source_port: 9, destination_port: PORT };
    let packet = udp(&flow, 9, &[7; 1232], |_| ());
    assert_eq!(packet.len(), 1280);
    let outputs = host.tell(Event::Uplink { packet: packet.clone(), handle: Handle(7) });
    let fragments: Vec<Vec<u8>> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Send { bytes, .. } => Some(bytes.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(fragments.len(), 2);
    assert!(fragments.iter().all(|fragment| fragment.len() <= 1280));

    // The last node of the route reassembles and decapsulates the packet.
    let mut last = router();
    let mut seen = Vec::new();
    for mut bytes in fragments {
        for hop in [2, 3] {
            let headers = Headers::of_packet(&bytes).expect("own packet");
            let addresses = Addresses::new(eui(hop), PREFIX);
            source_route::step(&mut bytes, &headers, &addresses).expect("a good route");
        }
        // Node 1 is the last hop here, and node 0 the root.
        bytes[8..24].copy_from_slice(&global(0).0);
        bytes[24..40].copy_from_slice(&global(1).0);
        seen.extend(last.receive(0, bytes));
    }
    let told = told(&seen).expect("the inner packet is for another node");
    let Icmpv6::DestinationUnreachable { invoking, .. } = told.1 else { panic!("{told:?}") };
    assert_eq!((told.0, invoking[..6].to_vec()), (far(), packet[..6].to_vec()));
}

#[test]
fn a_packet_of_the_root_is_opened_by_its_last_node_and_one_of_anybody_else_is_not() {
    let inner = carried(global(4), global(1), 9);
    for (source, opens) in [(global(0), true), (global(4), false), (far(), false)] {
        let mut host = router();
        let outputs = host.receive(0, wrapped(source, global(1), &inner));
        let opened = matches!(&outputs[..], [Output::Datagram(one), last]
            if one.from() == (global(4), 9) && *last == delivered());
        assert_eq!(opened, opens, "{source}");
        if !opens {
            // RFC 4443 s3.4: the next header is not recognised; the source of the outer packet hears of it.
            let told = told(&outputs).map(|(to, _)| to);
            let end = dropped(Handle(7), Layer::Ipv6, DropReason::NoListener);
            assert_eq!((told, outputs.last()), (Some(source), Some(&end)));
        }
    }
}

#[test]
fn without_rpl_no_packet_is_opened() {
    let mut host = Host::new(|_| ());
    let inner = carried(global(4), global(1), 9);
    let outputs = host.receive(0, wrapped(global(0), global(1), &inner));
    assert_eq!(outputs.last(), Some(&dropped(Handle(7), Layer::Ipv6, DropReason::NoListener)));
}

#[test]
fn a_packet_is_opened_once() {
    let mut host = router();
    let mut packet = carried(global(4), global(1), 9);
    // A stranger outside gives the root as the source of his own outer packets.
    for _ in 0..3 {
        packet = wrapped(global(0), global(1), &packet);
    }
    let outputs = host.receive(0, packet);
    assert_eq!(outputs.last(), Some(&dropped(Handle(7), Layer::Ipv6, DropReason::NoListener)));
}

#[test]
fn a_decapsulated_packet_for_another_node_is_not_forwarded_and_its_source_is_told() {
    for (hop_limit, is_expired) in [(9, false), (1, true)] {
        let mut host = router();
        let inner = carried(far(), global(5), hop_limit);
        let outputs = host.receive(0, wrapped(global(0), global(1), &inner));
        let (to, error) = told(&outputs).expect("an error");
        assert_eq!(
            (to, matches!(error, Icmpv6::TimeExceeded { code: 0, .. })),
            (far(), is_expired)
        );
    }
    let mut host = router();
    let group = carried(far(), Address::ALL_NODES, 9);
    let outputs = host.receive(0, wrapped(global(0), global(1), &group));
    assert_eq!(outputs, [dropped(Handle(7), Layer::Ipv6, DropReason::NotForUs)]);
}

#[test]
fn the_root_decapsulates_packets_of_its_mesh_and_forwards_them() {
    let to_root =
        |destination, source| wrapped(source, global(1), &carried(source, destination, 9));
    let outputs = root().receive(2, to_root(far(), global(4)));
    let packet = carried(global(4), far(), 8);
    assert_eq!(outputs, [Output::Uplink { packet, handle: Handle(7) }]);

    let outputs = root().receive(2, to_root(global(1), global(4)));
    assert!(matches!(&outputs[..], [Output::Datagram(_), last] if *last == delivered()));

    let outputs = root().receive(2, to_root(global(5), global(4)));
    assert_eq!(parts(sent(&outputs).0).3, carried(global(4), global(5), 6));

    let unopened = dropped(Handle(7), Layer::Ipv6, DropReason::NoListener);
    let outputs = root().receive(2, to_root(global(5), far()));
    assert_eq!(outputs.last(), Some(&unopened), "a node of another network");
    let packet = to_root(global(5), global(4));
    let outputs = root().tell(Event::Uplink { packet, handle: Handle(7) });
    assert_eq!(outputs.last(), Some(&unopened), "from another network");
}

#[test]
fn a_source_route_neither_enters_nor_leaves() {
    let routed = |source, destination, hop| {
        let mut packet = carried(source, destination, 9);
        assert!(source_route::insert(&mut packet, &[hop]));
        packet
    };
    let refused = [dropped(Handle(7), Layer::Ipv6, DropReason::NotForUs)];
    for hop in [global(1), global(2)] {
        let packet = routed(far(), global(5), hop);
        assert_eq!(root().tell(Event::Uplink { packet, handle: Handle(7) }), refused);
    }
    let mut host = root();
    host.routing.verdict = Some(Verdict::Drop(DropReason::NoRoute));
    assert_eq!(host.receive(2, routed(global(4), far(), far())), refused);
}

#[test]
fn an_error_about_a_packet_of_the_root_comes_to_the_source_of_the_packet_in_it() {
    let inner = carried(far(), global(5), 9);
    let error = |source: Address| {
        let invoking = wrapped(global(1), global(5), &inner);
        message_packet(source, global(1), 64, &Icmpv6::TimeExceeded { code: 0, invoking })
    };
    let root = || {
        let mut host = root();
        (host.routing.verdict, host.routing.source_route) = (None, None);
        host
    };
    let outputs = root().receive(2, error(global(3)));
    let (to, Icmpv6::DestinationUnreachable { reason, invoking }) =
        told(&outputs).expect("an error")
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((to, reason, invoking), (far(), Unreachable::Address, inner.clone()));

    // Nobody outside can make the root send errors to others.
    assert_eq!(told(&root().receive(2, error(far()))), None);
    let packet = error(global(3));
    assert_eq!(told(&root().tell(Event::Uplink { packet, handle: Handle(7) })), None);
}

#[test]
fn a_packet_that_leaves_the_mesh_with_option_0x63_is_encapsulated_to_the_root() {
    let send = |skippable, to| {
        let mut host = router();
        let option = Some(HopByHopOption { skippable, ..OPTION });
        host.routing.verdict = Some(Verdict::Forward { next_hop: eui(0), option });
        let to = (to, PORT);
        host.tell(Event::Datagram { source_port: 9, to, payload: b"", class: Class::Request })
    };
    let outputs = send(false, far());
    let (ip, is_routed, _, inner) = parts(sent(&outputs).0);
    assert_eq!((ip.source, ip.destination, is_routed), (global(1), global(0), false));
    assert_eq!(Extensions::new(inner).expect("own packet").count(), 0);
    for (skippable, to) in [(true, far()), (true, global(5)), (false, global(5))] {
        let outputs = send(skippable, to);
        let headers = Headers::of_packet(sent(&outputs).0).expect("own packet");
        assert_eq!(headers.ip.destination, to);
        assert!(headers.rpl_option().is_some());
    }
}
