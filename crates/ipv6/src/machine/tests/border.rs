//! A border router between the mesh and another network.

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
