//! A border router between the mesh and another network.

use lowmesh_wire::ipv6::Scope;

use super::*;

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

#[test]
fn a_packet_to_a_wide_group_leaves_over_the_uplink_and_one_that_comes_in_does_not_leave_again() {
    let mut host = Host::new(|config| config.uplink = true);
    let class = Class::Request;
    let send = |host: &mut Host, group: Address| {
        host.tell(Event::Datagram { source_port: 9, to: (group, PORT), payload: b"", class })
    };
    let leaves = |outputs: &[Output]| {
        outputs.iter().filter(|output| matches!(output, Output::Uplink { .. })).count()
    };
    let enters = |outputs: &[Output]| {
        outputs.iter().filter(|output| matches!(output, Output::Group { from: None, .. })).count()
    };
    let wide = Address::ALL_COAP_NODES.in_scope(Scope::SITE_LOCAL);
    let outputs = send(&mut host, wide);
    assert_eq!((leaves(&outputs), enters(&outputs)), (1, 1), "{outputs:?}");
    let outputs = send(&mut host, Address::ALL_COAP_NODES.in_scope(Scope::REALM_LOCAL));
    assert_eq!((leaves(&outputs), enters(&outputs)), (0, 1), "{outputs:?}");

    let packet = datagram(far(), wide, PORT, 9);
    let outputs = host.tell(Event::Uplink { packet, handle: Handle(7) });
    assert_eq!((leaves(&outputs), enters(&outputs)), (0, 1), "{outputs:?}");
    let over = |output: &&Output| matches!(output, Output::Packet(Packet::PassedOn(Handle(7))));
    assert_eq!(outputs.iter().filter(over).count(), 1, "its copy on the uplink is over");
}
