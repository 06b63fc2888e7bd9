//! Answers to Neighbour Solicitations (RFC 4861 s7.2.3, s7.2.4) on a link where every link-local address is made
//! of the node's EUI-64, so that nobody ever has to ask (RFC 6775 s5.6): only other stacks do, before they send and
//! to see whether this node is still there.
//!
//! A registration (RFC 6775 s6.5, RFC 8505 s5.5) is answered with what the neighbour cache says to it, and a router solicitation
//! with the prefix and the contexts of the link.

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_wire::ipv6::{Address, Header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};
use lowmesh_wire::router::{
    Capabilities, ContextInformation, PrefixInformation, RouterAdvertisement, RouterSolicitation,
};

use crate::Addresses;
use crate::cache::Status;
use crate::params::{
    CONTEXT_LIFETIME_MIN, HOP_LIMIT, HOP_LIMIT_ON_LINK, PREFIX_BITS, PREFIX_PREFERRED_S,
    PREFIX_VALID_S, ROUTER_LIFETIME_S,
};

/// An advertisement, with its source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The address of the node that it leaves from.
    pub source: Address,
    /// The address on the link that it goes to.
    pub destination: Address,
    /// The advertisement.
    pub message: Advertisement,
}

/// The answer of a router with these addresses to a solicitation that came under `header`; `register` takes the address
/// that it registers.
pub fn answer(
    addresses: &Addresses,
    header: &Header,
    message: &Solicitation,
    register: impl FnOnce(Address, &Registration) -> Status,
) -> Result<Answer, DropReason> {
    // RFC 4861 s7.1.1: nothing that passed a router, and no address of the sender's where it has none.
    let probe = header.source.is_unspecified();
    let to_group = header.destination == message.target.solicited_node();
    let odd = probe && (message.source_node.is_some() || !to_group);
    // RFC 6775 s6.5: with a status, it is ignored.
    let is_answer = message.registration.is_some_and(|asked| asked.status != 0);
    if header.hop_limit != HOP_LIMIT_ON_LINK || odd || is_answer {
        return Err(DropReason::Malformed);
    }
    // RFC 6775 s6.5: without a source, or the source's link-layer address, the option is ignored.
    let asked = message.registration.filter(|_| !probe && message.source_node.is_some());
    let subject = asked.map(|asked| asked.subject(header.source, message.target));
    let is_here = addresses.contains(&message.target) && !message.target.is_multicast();
    let registers_target = subject == Some(message.target);
    if !is_here && !registers_target {
        return Err(DropReason::NotForUs);
    }
    // RFC 6775 s6.5.2: the same option goes back with a status.
    let registration = asked.zip(subject).map(|(asked, subject)| {
        let is_good = !subject.is_multicast() && !subject.is_unspecified();
        // An address of the router's own is somebody else's to the host.
        let status = if addresses.contains(&subject) || !is_good {
            Status::Duplicate
        } else if asked.is_extended() && !header.source.is_link_local() {
            Status::InvalidSource
        } else if !subject.is_link_local() && !addresses.has_prefix_of(&subject) {
            // Else a host could draw to itself what is for another link.
            Status::Elsewhere
        } else {
            register(subject, &asked)
        };
        Registration { status: status.code(), flags: asked.flags & Registration::FLAGS, ..asked }
    });
    let destination = match registration {
        // RFC 4861 s7.2.4: who has no address yet is answered through the group of all, unsolicited.
        _ if probe => Address::ALL_NODES,
        // RFC 6775 s6.5.2: another node may have the source, so an error goes to the EUI-64. RFC 8505 s5.3: what is in its
        // place there need be none, but the source is link-local.
        Some(said) if said.status != 0 && !said.is_extended() => Address::link_local(said.node),
        _ => header.source,
    };
    let message = Advertisement {
        router: true,
        solicited: !probe,
        // RFC 4861 s7.2.4: nothing is overridden without a link-layer address.
        overriding: is_here,
        target: message.target,
        target_node: is_here.then(|| addresses.node()),
        registration,
    };
    let source = if is_here { message.target } else { addresses.source_for(&destination) };
    Ok(Answer { source, destination, message })
}

/// The advertisement of a router with these addresses on a link with these contexts, and where it goes.
pub fn advertise(
    addresses: &Addresses,
    contexts: &Contexts,
    header: &Header,
    message: &RouterSolicitation,
) -> Result<(Address, RouterAdvertisement), DropReason> {
    // RFC 4861 s6.1.1: nothing that passed a router, and no address of the sender's where it has none.
    let is_new = header.source.is_unspecified();
    if header.hop_limit != HOP_LIMIT_ON_LINK || is_new && message.source_node.is_some() {
        return Err(DropReason::Malformed);
    }
    let mut prefixes: Vec<PrefixInformation> = Vec::new();
    for prefix in addresses.globals().map(|global| global.prefix) {
        let said = PrefixInformation {
            bits: prefix.bits(),
            // RFC 6775 s6.1: hosts of a 6LoWPAN do not take other hosts as on the link.
            on_link: false,
            // RFC 4862 s5.5.3 (d): no address is made under a prefix of another length.
            autonomous: prefix.bits() == PREFIX_BITS,
            valid: PREFIX_VALID_S,
            preferred: PREFIX_PREFERRED_S,
            prefix: prefix.address(),
        };
        if !prefixes.contains(&said) {
            prefixes.push(said);
        }
    }
    let known =
        (0..Contexts::COUNT as u8).filter_map(|index| Some((index, contexts.prefix(index)?)));
    let contexts = known.map(|(index, prefix)| {
        let lifetime_minutes = CONTEXT_LIFETIME_MIN;
        ContextInformation { index, compresses: true, lifetime_minutes, prefix }
    });
    let advertisement = RouterAdvertisement {
        hop_limit: HOP_LIMIT,
        lifetime: ROUTER_LIFETIME_S,
        source_node: Some(addresses.node()),
        prefixes,
        contexts: contexts.collect(),
        // RFC 8505 s6.1: without it, hosts take the router for one of RFC 6775 alone.
        capabilities: Some(Capabilities::ROUTER.and(Capabilities::REGISTRAR)),
    };
    // RFC 6775 s6.3: who has an address is answered alone.
    let destination = if is_new { Address::ALL_NODES } else { header.source };
    Ok((destination, advertisement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Global;
    use crate::params::PREFIX;
    use lowmesh_units::{Eui64, NodeId};

    const PEER: Eui64 = NodeId(2).eui64();

    fn addresses() -> Addresses {
        Addresses::new(NodeId(1).eui64(), PREFIX)
    }
    fn header(source: Address, destination: Address) -> Header {
        Header {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 24,
            next_header: lowmesh_wire::icmpv6::NEXT_HEADER,
            hop_limit: 255,
            source,
            destination,
        }
    }
    fn full(_: Address, _: &Registration) -> Status {
        Status::Full
    }
    fn asking(target: Address) -> Solicitation {
        Solicitation { target, source_node: Some(PEER), registration: None }
    }

    #[test]
    fn both_addresses_of_the_node_are_answered_for_with_its_eui64() {
        let here = addresses();
        for target in [here.link_local(), here.global()] {
            let asked = header(Address::link_local(PEER), target.solicited_node());
            assert!(here.contains(&asked.destination), "the group is heard");
            let answer = answer(&here, &asked, &asking(target), full).expect("it is ours");
            assert_eq!((answer.source, answer.destination), (target, asked.source));
            assert_eq!(answer.message.target_node, Some(here.node()));
            assert!(answer.message.solicited && answer.message.router);
        }
    }

    #[test]
    fn a_node_that_looks_for_a_duplicate_is_answered_through_the_group() {
        let here = addresses();
        let target = here.link_local();
        let asked = header(Address::UNSPECIFIED, target.solicited_node());
        let probe = Solicitation { source_node: None, ..asking(target) };
        let answer = answer(&here, &asked, &probe, full).expect("it is ours");
        assert_eq!(answer.destination, Address::ALL_NODES);
        assert!(!answer.message.solicited);
    }

    #[test]
    fn what_is_asked_about_others_or_from_afar_is_not_answered() {
        let here = addresses();
        let target = here.link_local();
        let asked = header(Address::link_local(PEER), target);
        let other = asking(Address::link_local(NodeId(3).eui64()));
        assert_eq!(answer(&here, &asked, &other, full), Err(DropReason::NotForUs));
        let group = asking(Address::ALL_NODES);
        assert_eq!(answer(&here, &asked, &group, full), Err(DropReason::NotForUs));
        let far = Header { hop_limit: 254, ..asked };
        assert_eq!(answer(&here, &far, &asking(target), full), Err(DropReason::Malformed));
        let odd = Header { source: Address::UNSPECIFIED, ..asked };
        assert_eq!(answer(&here, &odd, &asking(target), full), Err(DropReason::Malformed));
        // A node without an address asks in the group of the target alone.
        let odd = header(Address::UNSPECIFIED, Address::ALL_NODES);
        let probe = Solicitation { source_node: None, ..asking(target) };
        assert_eq!(answer(&here, &odd, &probe, full), Err(DropReason::Malformed));
    }

    /// An ARO (RFC 6775 s4.1) for five minutes.
    const REGISTRATION: Registration = Registration {
        status: 0,
        opaque: 0,
        flags: 0,
        transaction_id: 0,
        lifetime_minutes: 5,
        node: PEER,
    };

    #[test]
    fn the_source_is_registered_and_by_rfc_8505_the_target() {
        let here = addresses();
        let old = REGISTRATION;
        let source = Address::global(PREFIX, NodeId(9).eui64());
        let message = Solicitation { registration: Some(old), ..asking(here.link_local()) };
        let asked = header(source, here.link_local());
        let said = answer(&here, &asked, &message, |subject, _| {
            assert_eq!(subject, source);
            Status::Success
        });
        let said = said.expect("it is ours").message.registration.expect("an answer");
        assert_eq!((said.status, said.node), (0, PEER));

        let new = Registration { flags: 1, transaction_id: 7, ..old };
        let target = Address::global(PREFIX, NodeId(9).eui64());
        let message = Solicitation { registration: Some(new), ..asking(target) };
        let asked = header(Address::link_local(PEER), here.link_local());
        let said = answer(&here, &asked, &message, |subject, _| {
            assert_eq!(subject, target);
            Status::Full
        });
        let said = said.expect("it registers the target");
        assert_eq!((said.source, said.message.target), (here.link_local(), target));
        let option = said.message.registration.expect("an answer");
        assert_eq!((option.status, option.flags, option.transaction_id), (2, 1, 7));
    }

    #[test]
    fn an_error_of_rfc_6775_goes_to_the_eui64_and_not_to_the_address() {
        let here = addresses();
        let source = Address::global(PREFIX, NodeId(9).eui64());
        let message =
            Solicitation { registration: Some(REGISTRATION), ..asking(here.link_local()) };
        let asked = header(source, here.link_local());
        let said = answer(&here, &asked, &message, full).expect("it is ours");
        assert_eq!(said.destination, Address::link_local(PEER));
    }

    #[test]
    fn a_registration_with_a_status_is_ignored_with_its_solicitation() {
        let here = addresses();
        let option = Registration { status: 1, ..REGISTRATION };
        let message = Solicitation { registration: Some(option), ..asking(here.link_local()) };
        let asked = header(Address::link_local(PEER), here.link_local());
        let said = answer(&here, &asked, &message, |_, _| panic!("nothing is registered"));
        assert_eq!(said, Err(DropReason::Malformed));
    }

    #[test]
    fn by_rfc_8505_nothing_is_registered_from_a_global_address() {
        let here = addresses();
        let target = Address::global(PREFIX, NodeId(9).eui64());
        // All flags are set, those without a meaning too.
        let option = Registration { flags: 0xff, ..REGISTRATION };
        let message = Solicitation { registration: Some(option), ..asking(target) };
        let said = answer(&here, &header(target, here.link_local()), &message, |_, _| {
            panic!("nothing is registered")
        });
        let said = said.expect("it is answered");
        assert!(!said.message.overriding, "it has no link-layer address");
        let option = said.message.registration.expect("an answer");
        assert_eq!((option.status, option.flags), (7, 0x0f));
    }

    #[test]
    fn an_address_of_another_link_or_of_the_router_is_not_registered() {
        let here = addresses();
        let option = Registration { flags: 1, ..REGISTRATION };
        for (target, status) in
            [(Address::global([0x20; 8], PEER), 8), (here.global(), 1), (here.link_local(), 1)]
        {
            let message = Solicitation { registration: Some(option), ..asking(target) };
            let asked = header(Address::link_local(PEER), here.link_local());
            let said = answer(&here, &asked, &message, |_, _| panic!("not {target}"));
            let option = said.expect("it is answered").message.registration;
            assert_eq!(option.map(|option| option.status), Some(status));
        }
    }

    #[test]
    fn a_registration_without_the_senders_link_layer_address_is_no_registration() {
        let here = addresses();
        let option = REGISTRATION;
        let message = Solicitation {
            source_node: None,
            registration: Some(option),
            ..asking(here.link_local())
        };
        let asked = header(Address::global(PREFIX, PEER), here.link_local());
        let said = answer(&here, &asked, &message, |_, _| panic!("nothing is registered"));
        assert_eq!(said.expect("it is ours").message.registration, None);
    }

    #[test]
    fn each_prefix_of_several_addresses_is_advertised_once_and_registered_under() {
        let mut here = addresses();
        let given = |text: &str, bits| {
            let address: core::net::Ipv6Addr = text.parse().expect("an address");
            Global::new(address.into(), bits).expect("a global one")
        };
        for global in
            [given("2001:db8::1", 64), given("2001:db8::2", 64), given("2001:db8:5::1", 48)]
        {
            here.add(global).expect("room");
        }
        let asked = header(Address::link_local(PEER), Address::ALL_ROUTERS);
        let message = RouterSolicitation { source_node: Some(PEER) };
        let (_, said) = advertise(&here, &Contexts::new(), &asked, &message).expect("good");
        let prefixes = said.prefixes.iter().map(|prefix| (prefix.bits, prefix.autonomous));
        assert_eq!(prefixes.collect::<Vec<_>>(), [(64, true), (64, true), (48, false)]);

        let target = given("2001:db8:5:7::1", 64).address;
        let option = Registration { flags: 1, ..REGISTRATION };
        let message = Solicitation { registration: Some(option), ..asking(target) };
        let asked = header(Address::link_local(PEER), here.link_local());
        let said = answer(&here, &asked, &message, |_, _| Status::Success).expect("answered");
        assert_eq!(said.message.registration.map(|option| option.status), Some(0));
    }

    #[test]
    fn a_host_that_asks_for_routers_learns_prefix_and_contexts() {
        let here = addresses();
        let contexts = Contexts::new().with(2, PREFIX);
        let asked = header(Address::link_local(PEER), Address::ALL_ROUTERS);
        let message = RouterSolicitation { source_node: Some(PEER) };
        let (to, said) = advertise(&here, &contexts, &asked, &message).expect("a good question");
        assert_eq!(to, asked.source);
        assert_eq!((said.lifetime, said.source_node), (1800, Some(here.node())));
        assert_eq!(said.prefixes.len(), 1);
        assert!(said.prefixes[0].autonomous && !said.prefixes[0].on_link);
        assert_eq!((said.contexts[0].index, said.contexts[0].prefix), (2, PREFIX));
        assert_eq!(said.capabilities, Some(Capabilities(0x12)), "L and E (RFC 8505 s4.3)");
        let new = header(Address::UNSPECIFIED, Address::ALL_ROUTERS);
        let to = advertise(&here, &contexts, &new, &RouterSolicitation { source_node: None });
        assert_eq!(to.map(|(to, _)| to), Ok(Address::ALL_NODES));
        let odd = advertise(&here, &contexts, &new, &message);
        assert_eq!(odd.map(|(to, _)| to), Err(DropReason::Malformed));
        let far = Header { hop_limit: 64, ..asked };
        assert!(advertise(&here, &contexts, &far, &message).is_err());
    }
}
