//! What can happen to a node, and what it asks of its driver.

use lowmesh_units::{Duration, Rank};
use lowmesh_wire::rpl::{Address, Message};

use crate::Sequence;
use crate::neighbour::Etx;

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The link layer is up: join a DODAG, or as root make one.
    Start,
    /// The link layer is down (lost synchronisation): forget neighbours, parent and routes.
    Stop,
    /// A RPL control message came in.
    Message {
        /// The link-local address of the neighbour; in non-storing mode for DAO and DAO-ACK the global
        /// address of the far end.
        from: Address,
        /// Whether it was sent to all RPL nodes.
        multicast: bool,
        /// The message.
        message: &'a Message,
    },
    /// The link layer has a new estimate.
    LinkEtx {
        /// Which neighbour.
        neighbour: Address,
        /// Expected transmissions.
        etx: Etx,
        /// Whether enough recent frames stand behind it, so that no probe is needed.
        fresh: bool,
    },
    /// The link layer gave the neighbour up.
    NeighbourUnreachable {
        /// Which neighbour.
        neighbour: Address,
    },
    /// The neighbour has been silent for several of its periods: it is not chosen as parent.
    NeighbourSilent {
        /// Which neighbour.
        neighbour: Address,
    },
    /// A neighbour that the link layer gave up, or that was silent, is heard again.
    NeighbourReachable {
        /// Which neighbour.
        neighbour: Address,
    },
    /// The root makes a new DODAG version (RFC 6550 s3.2.2); only at the root.
    GlobalRepair,
    /// A router leaves the DODAG, poisons, and joins again (RFC 6550 s3.2.3).
    LocalRepair,
    /// This node joins a group (RFC 6550 s12), which it advertises in a mode with multicast.
    Join {
        /// The address of the group.
        group: Address,
    },
    /// This node leaves a group.
    Leave {
        /// The address of the group.
        group: Address,
    },
    /// A leaf that runs no RPL registered with this node, or did so again (RFC 9010 s9.2.2).
    Attach {
        /// Its global address.
        leaf: Address,
        /// How it counts its registrations (TID).
        sequence: Sequence,
        /// How long the registration holds.
        lifetime: Duration,
    },
    /// The registration of a leaf is over.
    Detach {
        /// Its global address.
        leaf: Address,
    },
    /// The time of [`next_deadline`](lowmesh_machine::Machine::next_deadline) came.
    Deadline,
}

/// Where a control message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// ff02::1a.
    AllRplNodes,
    /// One neighbour (link-local), or in non-storing mode the far end of a DAO or DAO-ACK (global).
    Unicast(Address),
}

/// What the driver shall do or know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a control message.
    Send {
        /// Where to.
        to: Destination,
        /// The control message.
        message: Message,
    },
    /// The node belongs to a DODAG and has an address in it.
    Joined {
        /// Which DODAG.
        dodag_id: Address,
        /// The global address of this node.
        address: Address,
    },
    /// The node belongs to no DODAG any more.
    Detached,
    /// The node looks for a parent again: the link layer resets the ETX of bad links.
    BadLinksReset,
    /// The preferred parent is another one, or none.
    ParentChanged {
        /// The one before.
        old: Option<Address>,
        /// The one now.
        new: Option<Address>,
    },
    /// The preferred parent has this node's DAO, by its DAO-ACK: it knows the path down to this node. Never
    /// reported without DAO-ACKs.
    KnownToParent {
        /// Its link-local address.
        parent: Address,
    },
    /// The DAGRank is another one: changes within one hop's worth of rank are not told.
    RankChanged {
        /// The whole rank.
        rank: Rank,
    },
    /// A route is new or has a new next hop (in storing mode) or parent (at the root in non-storing mode).
    RouteAdded {
        /// The global address it leads to.
        target: Address,
        /// The link-local address of the next hop, or the global address of the target's parent.
        via: Address,
        /// How long it holds without news; [`Duration::MAX`] for ever.
        lifetime: Duration,
    },
    /// A route ended.
    RouteRemoved {
        /// The global address it led to.
        target: Address,
    },
    /// The root refuses a leaf of this node, or the leaf is with another router: its registration here is over.
    LeafRefused {
        /// Its global address.
        leaf: Address,
        /// What the leaf is told (RFC 8505 s4.1); 0 when it has no route.
        status: u8,
    },
    /// Routes lead over a neighbour that had none: it is a child (storing mode only).
    ChildAdded {
        /// Its link-local address.
        child: Address,
    },
    /// No route leads over the neighbour any more.
    ChildRemoved {
        /// Its link-local address.
        child: Address,
    },
}
