//! What IPv6 asks of a routing protocol in the middle of its work; the driver lends it with each input.

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::rpl::HopByHopOption;

/// A packet that passes this node or starts here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardContext {
    /// The neighbour that it came from; `None` when it starts here.
    pub from: Option<Eui64>,
    /// Its destination (with a source route: the next segment).
    pub destination: Address,
    /// Whether a source routing header gives the path.
    pub source_routed: bool,
    /// Its RPL option, if it has one.
    pub option: Option<HopByHopOption>,
    /// The next hop that the route table or the source route names.
    pub route: Option<Address>,
}

/// What shall become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to this neighbour.
    Forward {
        /// The EUI-64 of the next hop.
        next_hop: Eui64,
        /// In place of the option that it had, or new where it starts.
        option: Option<HopByHopOption>,
    },
    /// It ends here.
    Drop(DropReason),
}

/// What a node is to the hosts on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It forwards their packets.
    Router,
    /// It would, and has no way to the rest of the network now.
    Adrift,
    /// It is a host itself: it forwards nothing, and takes no registration.
    Host,
}

/// Decides where packets go.
///
/// A node whose routes are all in its table needs no more than this:
///
/// ```
/// use lowmesh_ipv6::{ForwardContext, Routing, Verdict};
/// use lowmesh_machine::DropReason;
/// use lowmesh_units::Instant;
/// use lowmesh_wire::ipv6::Address;
///
/// #[derive(Debug)]
/// struct Table;
/// impl Routing for Table {
///     fn forward(&mut self, _: Instant, packet: &ForwardContext) -> Verdict {
///         match packet.route {
///             Some(next) => Verdict::Forward { next_hop: next.eui64(), option: None },
///             None => Verdict::Drop(DropReason::NoRoute),
///         }
///     }
///     fn source_route(&self, _: &Address) -> Option<Vec<Address>> {
///         None
///     }
/// }
/// ```
pub trait Routing: core::fmt::Debug {
    /// Decides about a packet to a node that is not on this link.
    fn forward(&mut self, now: Instant, packet: &ForwardContext) -> Verdict;
    /// The hops to `destination`, the first hop first and the destination last, that a packet from here carries
    /// (RFC 6554); `None` if it needs no such route.
    fn source_route(&self, destination: &Address) -> Option<Vec<Address>>;
    /// The root of the network, at which tunnels begin and end (RFC 9008 s7 and s8); `None` where packets need
    /// no RPL option.
    fn root(&self) -> Option<Address> {
        None
    }
    /// At the root: the router of a leaf that runs no RPL, at which a tunnel to the leaf ends (RFC 9010 s9.2.2, RFC 9008
    /// s4.1.1).
    fn router_of(&self, _leaf: &Address) -> Option<Address> {
        None
    }
    /// What this node is to the hosts on its link.
    fn role(&self) -> Role {
        Role::Router
    }
}
