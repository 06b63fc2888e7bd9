//! Packets that start here: their options and routes, and their fragments in mode E2E.

use super::*;

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
    assert_eq!(host.tell(Event::Deadline), [end], "no Time Exceeded without the first fragment");
}
