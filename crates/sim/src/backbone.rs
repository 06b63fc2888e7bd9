//! The backbone between border routers: a wire with a delay that carries packets from one mesh to another.
//!
//! The wire loses no packet and has unlimited capacity; each packet takes the delay. A packet for a prefix that no border
//! router has goes to the uplink sink; without a sink it has no route.

use std::collections::{BTreeMap, VecDeque};

use lowmesh_machine::Handle;
use lowmesh_units::{Duration, Instant, NodeId};
use lowmesh_wire::ipv6::Address;

/// The wire between all border routers of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// From one border router to another.
    pub delay: Duration,
}

impl Wire {
    /// A switched Ethernet in one building: a tenth of a millisecond.
    pub const fn ethernet() -> Self {
        Self { delay: Duration::from_micros(100) }
    }
}

/// The sink of packets for other networks: the time, the border router, and the packet.
pub type UplinkSink = Box<dyn FnMut(Instant, NodeId, &[u8]) + Send>;

/// A packet on the wire.
#[derive(Debug)]
pub(crate) struct Crossing {
    pub(crate) arrives: Instant,
    pub(crate) handle: Handle,
    pub(crate) packet: Vec<u8>,
}

/// The wire, its ends, and what is on it.
#[derive(Default)]
pub(crate) struct Backbone {
    wire: Option<Wire>,
    /// Border routers by the prefix behind them.
    ends: BTreeMap<[u8; 8], NodeId>,
    /// Packets on the wire to each node, in the order of arrival.
    crossing: BTreeMap<NodeId, VecDeque<Crossing>>,
    sink: Option<UplinkSink>,
}

impl std::fmt::Debug for Backbone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wire, ends, crossing, .. } = self;
        f.debug_struct("Backbone")
            .field("wire", wire)
            .field("ends", ends)
            .field("crossing", crossing)
            .finish_non_exhaustive()
    }
}

/// The fate of a packet that left a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The wire carries it to this border router.
    Crosses(NodeId),
    /// The sink took it.
    Gone,
    /// No border router and no sink takes it.
    NoRoute,
}

impl Backbone {
    /// A backbone between the border routers of these prefixes.
    pub(crate) fn new(
        wire: Option<Wire>,
        ends: impl Iterator<Item = ([u8; 8], NodeId)>,
        sink: Option<UplinkSink>,
    ) -> Self {
        Self { wire, ends: ends.collect(), crossing: BTreeMap::new(), sink }
    }

    /// Takes a packet from the border router `from`.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        from: NodeId,
        packet: Vec<u8>,
        handle: Handle,
    ) -> Fate {
        let end = destination(&packet).and_then(|to| self.ends.get(&to.0[..8])).copied();
        if let (Some(wire), Some(to)) = (self.wire, end.filter(|to| *to != from)) {
            let arrives = now + wire.delay;
            let crossing = Crossing { arrives, handle, packet };
            self.crossing.entry(to).or_default().push_back(crossing);
            return Fate::Crosses(to);
        }
        match &mut self.sink {
            Some(sink) if end.is_none() => {
                sink(now, from, &packet);
                Fate::Gone
            }
            _ => Fate::NoRoute,
        }
    }

    /// When a packet arrives at `node` next.
    pub(crate) fn next(&self, node: NodeId) -> Option<Instant> {
        Some(self.crossing.get(&node)?.front()?.arrives)
    }

    /// Takes a packet that has arrived at `node`.
    pub(crate) fn arrived(&mut self, now: Instant, node: NodeId) -> Option<Crossing> {
        let crossing = self.crossing.get_mut(&node)?;
        if crossing.front()?.arrives > now {
            return None;
        }
        crossing.pop_front()
    }

    /// The packets that are on the wire.
    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> {
        self.crossing.values().flatten().map(|crossing| crossing.handle)
    }
}

/// The destination of a packet.
fn destination(packet: &[u8]) -> Option<Address> {
    lowmesh_wire::ipv6::Header::parse(packet).ok().map(|header| header.destination)
}

#[cfg(test)]
mod tests {
    use lowmesh_ipv6::packet::{Flow, udp};

    use super::*;

    fn packet(prefix: u8) -> Vec<u8> {
        let destination = Address([prefix; 16]);
        let flow =
            Flow { source: Address([9; 16]), destination, source_port: 1, destination_port: 2 };
        udp(&flow, 64, b"x", |_| ())
    }

    fn backbone(wire: Option<Wire>, sink: Option<UplinkSink>) -> Backbone {
        Backbone::new(wire, [([1; 8], NodeId(0)), ([2; 8], NodeId(5))].into_iter(), sink)
    }

    #[test]
    fn a_packet_crosses_to_the_border_router_of_its_prefix_after_the_delay() {
        let mut backbone = backbone(Some(Wire { delay: Duration::from_millis(3) }), None);
        let (now, later) = (Instant::from_millis(10), Instant::from_millis(13));
        assert_eq!(backbone.take(now, NodeId(0), packet(2), Handle(7)), Fate::Crosses(NodeId(5)));
        assert_eq!(backbone.handles().collect::<Vec<_>>(), [Handle(7)]);
        assert_eq!(backbone.next(NodeId(5)), Some(later));
        assert!(backbone.arrived(Instant::from_millis(12), NodeId(5)).is_none());
        assert!(backbone.arrived(later, NodeId(0)).is_none());
        let crossing = backbone.arrived(later, NodeId(5)).expect("it is there");
        assert_eq!((crossing.handle, crossing.packet), (Handle(7), packet(2)));
        assert_eq!((backbone.next(NodeId(5)), backbone.handles().count()), (None, 0));
    }

    #[test]
    fn other_prefixes_go_to_the_sink_and_without_a_wire_or_a_sink_there_is_no_route() {
        let (wire, now) = (Some(Wire::ethernet()), Instant::ZERO);
        let sink = || -> UplinkSink { Box::new(|_, node, _| assert_eq!(node, NodeId(0))) };
        let fate = |wire, sink, prefix| {
            backbone(wire, sink).take(now, NodeId(0), packet(prefix), Handle(1))
        };
        assert_eq!(fate(wire, Some(sink()), 3), Fate::Gone);
        assert_eq!(fate(wire, None, 3), Fate::NoRoute);
        assert_eq!(fate(None, Some(sink()), 2), Fate::NoRoute);
        assert_eq!(fate(wire, None, 1), Fate::NoRoute);
    }
}
