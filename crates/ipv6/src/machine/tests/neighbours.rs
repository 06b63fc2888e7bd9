//! Neighbours: registrations, advertisements, and solicitations to all.

use lowmesh_wire::neighbour::{Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use super::*;

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
