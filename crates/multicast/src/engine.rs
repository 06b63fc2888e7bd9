//! The trait of all engines, with what goes in and what comes out.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use lowmesh_machine::{Dropped, Handle, Rejected};
use lowmesh_registry::{Algorithm, Breach, Choice, Row};
use lowmesh_units::{Duration, Eui64, Instant, Rng};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, Header};

/// How packets to groups travel in a mesh; one value serves one node.
pub trait Engine: Debug + Send {
    /// Tells the engine that `event` happened at `now`; `now` never goes back.
    ///
    /// Octets of a peer never make this panic or fail. An error means that the caller asked for what is not possible, and
    /// that nothing changed.
    fn handle(
        &mut self,
        now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected>;
    /// Takes the next thing that the engine wants done; to be called until `None` after each event.
    fn poll_output(&mut self) -> Option<Output>;
    /// When the engine next wants [`Event::Deadline`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    /// The copies that it holds and may still send or drop, once each.
    fn handles(&self) -> Vec<Handle> {
        Vec::new()
    }
    /// The groups in which it hears its neighbours, besides those of applications.
    fn listens(&self) -> &'static [Address] {
        &[]
    }
    /// True if it forwards only to children that registered for the group (RFC 6550 s12).
    fn needs_registrations(&self) -> bool {
        false
    }
    /// What it holds, for tables and plots.
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
    /// Who receives what a node sends to a group.
    fn reach(&self) -> Reach;
    /// The name in its row.
    fn name(&self) -> &'static str;
}

/// Makes an engine that draws from the given stream.
pub type MakeEngine = fn(&Choice<dyn Engine>, Rng) -> Box<dyn Engine>;

impl Algorithm for dyn Engine {
    const NOUN: &'static str = "multicast engine";
    const KEY: &'static str = "multicast.engine";
    const BUILTIN: &'static [&'static Row<Self>] = &[
        &crate::none::ROW,
        &crate::smrf::SMRF,
        &crate::smrf::ESMRF,
        &crate::trickle::ROW,
        &crate::mpl::ROW,
        &crate::flood::ROW,
    ];
    type Make = MakeEngine;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        crate::conformance::check(row)
    }
}

/// A new engine of the kind that `choice` names, with its numbers.
pub fn make(choice: &Choice<dyn Engine>, rng: Rng) -> Box<dyn Engine> {
    (choice.row().make)(choice, rng)
}

/// Something that happened at a node.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An application of this node sends a packet to a group of scope 3 or more.
    Originate {
        /// The whole IPv6 packet, with the hop limit that it leaves with.
        packet: &'a [u8],
        /// Its name in the ledger.
        handle: Handle,
    },
    /// A packet to a group of scope 3 or more came from a neighbour.
    Received {
        /// The whole IPv6 packet, as it came.
        packet: &'a [u8],
        /// The neighbour.
        from: Eui64,
        /// The name of this copy in the ledger.
        handle: Handle,
    },
    /// An ICMPv6 message of an engine came to this node.
    Control {
        /// Its IPv6 header.
        header: &'a Header,
        /// The message.
        message: &'a Icmpv6,
        /// Its name in the ledger: an ESMRF message carries a packet.
        handle: Handle,
    },
    /// The time of [`Engine::next_deadline`] has come.
    Deadline,
}

/// What routing and group membership know at a node while it calls the engine.
pub trait NodeContext {
    /// The address of this node that is valid in the whole mesh.
    fn address(&self) -> Address;
    /// The address of the root of the DODAG (the DODAGID); the node's own address at the root. `None` before joining.
    fn root(&self) -> Option<Address>;
    /// The preferred parent; the root has none.
    fn parent(&self) -> Option<Eui64>;
    /// The neighbours that registered for `group`, for themselves or for their sub-DODAGs (RFC 6550 s12), in a fixed order.
    fn children(&self, group: &Address) -> Vec<Eui64>;
    /// True if an application of this node listens to `group`.
    fn is_member(&self, group: &Address) -> bool;
    /// The time from one cell for broadcasts to the next, where the MAC has such cells; `None` if it can send at any time.
    fn broadcast_period(&self) -> Option<Duration> {
        None
    }
    /// True at the root.
    fn is_root(&self) -> bool {
        self.root() == Some(self.address())
    }
}

/// What an engine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a packet on the link.
    Send {
        /// The whole IPv6 packet.
        packet: Vec<u8>,
        /// Who receives the frame.
        to: Receiver,
        /// The copy that is sent on; [`Handle::NONE`] for a control message.
        handle: Handle,
    },
    /// Send a unicast packet as any other packet of this node: routing finds the next hop.
    Route {
        /// The whole IPv6 packet.
        packet: Vec<u8>,
        /// The packet that it carries.
        handle: Handle,
    },
    /// Give a packet to the applications of this node. It is as its sender made it, but for the hop limit.
    Deliver {
        /// The whole IPv6 packet, without what the engine added.
        packet: Vec<u8>,
        /// The copy.
        handle: Handle,
    },
    /// A copy is not forwarded.
    Dropped(Dropped),
}

/// Who receives a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// All neighbours, without an acknowledgement.
    Broadcast,
    /// One neighbour.
    Neighbour(Eui64),
}

/// Who receives what a node sends to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All members in the mesh.
    Mesh,
    /// The members below the node; from the root, all members.
    SubDodag,
    /// The members among the neighbours of the node.
    Link,
}

/// What an engine holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Packets that it holds.
    pub packets: usize,
    /// The most packets that it holds.
    pub packets_max: usize,
    /// Sources or packets that it remembers to find duplicates.
    pub entries: usize,
    /// The most of them.
    pub entries_max: usize,
    /// Control messages that it has sent.
    pub controls_sent: u64,
    /// Control messages that it has not accepted: another destination or hop limit, or octets that do not decode.
    pub controls_refused: u64,
}
