//! The multicast engine of a node, with the account of the copies that it holds.
//!
//! What the engine wants done becomes an [`Act`]. Each copy that leaves it is a copy of its own in the books of a run: it is
//! accepted before the copy that the engine held is over.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_ipv6::Addresses;
use lowmesh_machine::{Handle, Outbox, debug_assert_accepted};
use lowmesh_multicast::{Account, Engine, Event, NodeContext, Output, Receiver, Snapshot, make};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Eui64, Instant, Rng};
use lowmesh_wire::ipv6::Address;

use crate::event::Packet;
use crate::routing::Routing;

/// The multicast part of a node.
#[derive(Debug)]
pub(crate) struct Multicast {
    engine: Box<dyn Engine>,
    outbox: Outbox<Act>,
}

/// What the node does for its engine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Note a moment in the life of a copy.
    Note(Packet),
    /// Send a packet on the link, to one neighbour or to all; a message of the engine itself has no name yet.
    Send { packet: Vec<u8>, to: Option<Eui64>, handle: Handle },
    /// Send a unicast packet where routing says.
    Route { packet: Vec<u8>, handle: Handle },
    /// Deliver a packet to this node.
    Deliver { packet: Vec<u8>, handle: Handle },
}

impl Multicast {
    /// A part with an engine that draws from `rng`, a stream of purpose `Multicast`.
    pub(crate) fn new(choice: &Choice<dyn Engine>, rng: Rng) -> Self {
        Self { engine: make(choice, rng), outbox: Outbox::new() }
    }

    /// Tells the engine what happened; [`Multicast::poll`] then returns what it wants done.
    pub(crate) fn handle(&mut self, now: Instant, event: Event<'_>, context: &dyn NodeContext) {
        let engine = self.engine.as_mut();
        let mut account = Account::open(engine, &event);
        debug_assert_accepted(engine.handle(now, event, context));
        let mut ends = Vec::new();
        while let Some(output) = engine.poll_output() {
            if let Output::Send { handle, .. }
            | Output::Route { handle, .. }
            | Output::Deliver { handle, .. } = &output
                && *handle != Handle::NONE
            {
                self.outbox.push(Act::Note(Packet::Accepted(*handle)));
            }
            match output {
                Output::Send { packet, to, handle } => {
                    let to = match to {
                        Receiver::Broadcast => None,
                        Receiver::Neighbour(neighbour) => Some(neighbour),
                    };
                    self.outbox.push(Act::Send { packet, to, handle });
                }
                Output::Route { packet, handle } => {
                    self.outbox.push(Act::Route { packet, handle });
                }
                Output::Deliver { packet, handle } => {
                    self.outbox.push(Act::Deliver { packet, handle });
                }
                Output::Dropped(dropped) if dropped.handle != Handle::NONE => {
                    if account.drop(dropped.handle) {
                        ends.push(Packet::Dropped(dropped));
                    }
                }
                Output::Dropped(_) => {}
            }
        }
        let gone = account.close(engine);
        ends.extend(gone.into_iter().map(Packet::PassedOn));
        for end in ends {
            self.outbox.push(Act::Note(end));
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Act> {
        self.outbox.pop()
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.engine.next_deadline()
    }
    /// The groups in which the engine hears its neighbours.
    pub(crate) fn listens(&self) -> &'static [Address] {
        self.engine.listens()
    }
    /// The copies that the engine holds.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.engine.handles()
    }
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }
}

/// What the layers of a node know, for its engine.
#[derive(Debug)]
pub(crate) struct Layers<'a> {
    pub(crate) addresses: &'a Addresses,
    pub(crate) routing: &'a Routing,
    /// The time from one cell for broadcasts to the next.
    pub(crate) period: Option<Duration>,
}

impl NodeContext for Layers<'_> {
    fn address(&self) -> Address {
        self.addresses.global()
    }
    fn root(&self) -> Option<Address> {
        self.routing.root(self.addresses)
    }
    fn parent(&self) -> Option<Eui64> {
        self.routing.parent()
    }
    fn children(&self, group: &Address) -> Vec<Eui64> {
        self.routing.subscribed(group)
    }
    fn is_member(&self, group: &Address) -> bool {
        self.addresses.contains(group)
    }
    fn broadcast_period(&self) -> Option<Duration> {
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_ipv6::params::PREFIX;
    use lowmesh_machine::{DropReason, Dropped, Layer};
    use lowmesh_multicast::{mpl, smrf};
    use lowmesh_units::{NodeId, Purpose, Seed};

    use crate::tree::Place;

    const GROUP: Address = Address([0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd]);
    const COPY: Handle = Handle(9);

    /// What the part does about a packet with this hop limit that a parent sends to a node with children.
    fn acts(choice: &Choice<dyn Engine>, hop_limit: u8, children: &[u16]) -> Vec<Act> {
        let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Multicast);
        let mut part = Multicast::new(choice, rng);
        let mut addresses = Addresses::new(NodeId(1).eui64(), PREFIX);
        addresses.join(GROUP).expect("room");
        let children = children.iter().map(|child| NodeId(*child).eui64()).collect();
        let routing =
            Routing::Static(Place { parent: Some(NodeId(0).eui64()), children, ..Place::alone() });
        let layers = Layers { addresses: &addresses, routing: &routing, period: None };
        let flow = lowmesh_ipv6::packet::Flow {
            source: Address::global(PREFIX, NodeId(0).eui64()),
            destination: GROUP,
            source_port: 5683,
            destination_port: 5683,
        };
        let packet = lowmesh_ipv6::packet::udp(&flow, hop_limit, b"on", |_| ());
        let event = Event::Received { packet: &packet, from: NodeId(0).eui64(), handle: COPY };
        part.handle(Instant::ZERO, event, &layers);
        let mut acts: Vec<Act> = core::iter::from_fn(|| part.poll()).collect();
        if let Some(due) = part.next_deadline().filter(|_| !children_of(&layers).is_empty()) {
            part.handle(due, Event::Deadline, &layers);
            acts.extend(core::iter::from_fn(|| part.poll()));
        }
        acts
    }
    fn children_of(layers: &Layers<'_>) -> Vec<Eui64> {
        layers.children(&GROUP)
    }
    fn accepted(act: &Act) -> bool {
        *act == Act::Note(Packet::Accepted(COPY))
    }

    #[test]
    fn a_copy_that_is_delivered_and_sent_on_becomes_two_before_it_is_over() {
        let choice = Choice::from(&smrf::SMRF).with("copy", "unicast").expect("a name");
        let acts = acts(&choice, 9, &[2, 3]);
        assert_eq!(acts.iter().filter(|act| accepted(act)).count(), 3);
        let sent = |act: &&Act| matches!(act, Act::Send { to: Some(_), handle: COPY, .. });
        assert_eq!(acts.iter().filter(sent).count(), 2);
        assert!(matches!(acts[1], Act::Deliver { handle: COPY, .. }));
        assert_eq!(acts.last(), Some(&Act::Note(Packet::PassedOn(COPY))));
    }

    #[test]
    fn a_copy_that_is_delivered_and_may_not_go_on_ends_after_its_delivery() {
        let dropped = Dropped { handle: COPY, layer: Layer::Ipv6, reason: DropReason::HopLimit };
        let acts = acts(&Choice::from(&smrf::SMRF), 1, &[2]);
        assert!(matches!(acts[..2], [_, Act::Deliver { .. }]), "{acts:?}");
        assert_eq!(acts[2..], [Act::Note(Packet::Dropped(dropped))]);
    }

    #[test]
    fn a_copy_that_comes_for_nobody_is_dropped_once() {
        // MPL takes no packet without its option.
        let dropped = Dropped { handle: COPY, layer: Layer::Ipv6, reason: DropReason::NotForUs };
        let acts = acts(&Choice::from(&mpl::ROW), 9, &[]);
        assert_eq!(acts, [Act::Note(Packet::Dropped(dropped))]);
    }
}
