//! Answers to Neighbour Solicitations (RFC 4861 s7.2.3, s7.2.4) on a link where every link-local address is made
//! of the node's EUI-64, so that nobody ever has to ask (RFC 6775 s5.6): only other stacks do, before they send and
//! to see whether this node is still there.
//!
//! No cache is kept: a registration (RFC 6775 s6.5) of an address that names its node needs none, and any other is
//! answered with "neighbour cache full". Routes to such addresses are given, or found by RPL.

use lowmesh_machine::DropReason;
use lowmesh_wire::ipv6::{Address, Header};
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};

use crate::Addresses;
use crate::params::HOP_LIMIT_ON_LINK;

/// Statuses of an address registration: RFC 6775 s4.1, table 2.
const SUCCESS: u8 = 0;
const NEIGHBOUR_CACHE_FULL: u8 = 2;

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

/// The answer of a router with these addresses to a solicitation that came under `header`.
pub fn answer(
    addresses: &Addresses,
    header: &Header,
    message: &Solicitation,
) -> Result<Answer, DropReason> {
    // RFC 4861 s7.1.1: nothing that passed a router, and no address of the sender's where it has none.
    let probe = header.source.is_unspecified();
    let odd = probe && (message.source_node.is_some() || !header.destination.is_multicast());
    if header.hop_limit != HOP_LIMIT_ON_LINK || odd {
        return Err(DropReason::Malformed);
    }
    if message.target.is_multicast() || !addresses.contains(&message.target) {
        return Err(DropReason::NotForUs);
    }
    // RFC 4861 s7.2.4: who has no address yet is answered through the group of all, unsolicited.
    let destination = if probe { Address::ALL_NODES } else { header.source };
    let advertisement = Advertisement {
        router: true,
        solicited: !probe,
        overriding: true,
        target: message.target,
        target_node: Some(addresses.node()),
        registration: message.registration.map(|asked| judge(&header.source, asked)),
    };
    Ok(Answer { source: message.target, destination, message: advertisement })
}

/// RFC 6775 s6.5.2: the same option goes back with a status.
fn judge(source: &Address, asked: Registration) -> Registration {
    let names_its_node = source.eui64() == asked.node;
    Registration { status: if names_its_node { SUCCESS } else { NEIGHBOUR_CACHE_FULL }, ..asked }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn asking(target: Address) -> Solicitation {
        Solicitation { target, source_node: Some(PEER), registration: None }
    }

    #[test]
    fn both_addresses_of_the_node_are_answered_for_with_its_eui64() {
        let here = addresses();
        for target in [here.link_local(), here.global()] {
            let asked = header(Address::link_local(PEER), target.solicited_node());
            assert!(here.contains(&asked.destination), "the group is heard");
            let answer = answer(&here, &asked, &asking(target)).expect("it is ours");
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
        let answer = answer(&here, &asked, &probe).expect("it is ours");
        assert_eq!(answer.destination, Address::ALL_NODES);
        assert!(!answer.message.solicited);
    }

    #[test]
    fn what_is_asked_about_others_or_from_afar_is_not_answered() {
        let here = addresses();
        let target = here.link_local();
        let asked = header(Address::link_local(PEER), target);
        let other = asking(Address::link_local(NodeId(3).eui64()));
        assert_eq!(answer(&here, &asked, &other), Err(DropReason::NotForUs));
        let group = asking(Address::ALL_NODES);
        assert_eq!(answer(&here, &asked, &group), Err(DropReason::NotForUs));
        let far = Header { hop_limit: 254, ..asked };
        assert_eq!(answer(&here, &far, &asking(target)), Err(DropReason::Malformed));
        let odd = Header { source: Address::UNSPECIFIED, ..asked };
        assert_eq!(answer(&here, &odd, &asking(target)), Err(DropReason::Malformed));
    }

    #[test]
    fn an_address_that_names_its_node_is_registered_and_another_is_not() {
        let here = addresses();
        let target = here.link_local();
        let asked = Registration { status: 0, lifetime_minutes: 5, node: PEER };
        let message = Solicitation { registration: Some(asked), ..asking(target) };
        let status = |source| {
            let answer = answer(&here, &header(source, target), &message).expect("it is ours");
            answer.message.registration.map(|answered| (answered.status, answered.node))
        };
        assert_eq!(status(Address::global(PREFIX, PEER)), Some((SUCCESS, PEER)));
        let elsewhere = Address::global(PREFIX, NodeId(9).eui64());
        assert_eq!(status(elsewhere), Some((NEIGHBOUR_CACHE_FULL, PEER)));
    }
}
