//! The backbone: what carries packets from one mesh to another, and between wired hosts.
//!
//! ```text
//!   border router ─┐
//!   border router ─┼─ wire: every packet takes the delay     near ── line: link or serial ── far
//!   wired host ────┘                                          (on the wire)        (behind the line alone)
//! ```
//! The wire loses no packet and has unlimited capacity. Lines have their own bounds (crate `wired`). A packet takes the
//! path of fewest lines and wires; what is between its ends passes it on without delay. A packet for a prefix that no
//! border router has goes to the uplink sink; without a sink it has no route. A packet to a group goes to each border
//! router behind which the group has members, as over routers that snoop MLD (RFC 4541), and to the sink.
//!
//! A wired host is a border router without a mesh behind it: it has a prefix of its own and no neighbours.

mod line;
mod routes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Instant, NodeId, Seed};
use lowmesh_wire::ipv6::Address;
use lowmesh_wired::{ConfigError, Counters, QueueSample};

pub use line::LineParts;
use line::{Line, Step, Transit};
use routes::{Hop, Routes};

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

/// The traffic of a link between two nodes in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LineRecord {
    /// The near end.
    pub near: NodeId,
    /// The far end.
    pub far: NodeId,
    /// What was carried out and back.
    pub counters: [Counters; 2],
    /// The queues of both directions over time.
    pub queues: [QueueRecord; 2],
}

/// The queue of one direction of a link over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRecord {
    /// Its changes, as many as the link keeps.
    pub samples: Vec<QueueSample>,
    /// The mean of waiting octets over time.
    pub mean_octets: f64,
    /// The most octets that waited at once.
    pub most_octets: u64,
}

/// A packet that crosses to a node.
#[derive(Debug)]
pub(crate) struct Crossing {
    arrives: Instant,
    /// The end that the packet is for.
    to: NodeId,
    pub(crate) handle: Handle,
    pub(crate) packet: Vec<u8>,
}

/// The wire, its ends, the lines, and what is on them.
#[derive(Default)]
pub(crate) struct Backbone {
    wire: Option<Wire>,
    /// Border routers by the prefix behind them.
    ends: BTreeMap<[u8; 8], NodeId>,
    lines: Vec<Line>,
    routes: Routes,
    /// Packets on the wire to each node, in the order of arrival.
    crossing: BTreeMap<NodeId, VecDeque<Crossing>>,
    sink: Option<UplinkSink>,
}

impl std::fmt::Debug for Backbone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wire, ends, lines, crossing, .. } = self;
        f.debug_struct("Backbone")
            .field("wire", wire)
            .field("ends", ends)
            .field("lines", lines)
            .field("crossing", crossing)
            .finish_non_exhaustive()
    }
}

/// The fate of a packet that left a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A wire or a line carries it. The deadline of this node changes.
    Crosses(NodeId),
    /// The sink took it.
    Gone,
    /// No border router and no sink takes it.
    NoRoute,
}

/// What happened on the lines of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The deadline of this node changes.
    Wake(NodeId),
    /// A packet was lost on its path from this node.
    Lost(NodeId, Handle, DropReason),
}

impl Backbone {
    /// A backbone between the border routers of these prefixes. The wire connects all but the far ends of lines.
    pub(crate) fn new(
        wire: Option<Wire>,
        ends: impl Iterator<Item = ([u8; 8], NodeId)>,
        lines: Vec<(NodeId, NodeId, LineParts)>,
        sink: Option<UplinkSink>,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let ends: BTreeMap<[u8; 8], NodeId> = ends.collect();
        let make = |(near, far, parts)| Line::new(near, far, &parts, seed);
        let lines: Vec<Line> = lines.into_iter().map(make).collect::<Result<_, _>>()?;
        let far: BTreeSet<NodeId> = lines.iter().map(|line| line.ends()[1]).collect();
        let wired = ends.values().copied().filter(|end| !far.contains(end));
        let wired = if wire.is_some() { wired.collect() } else { BTreeSet::new() };
        let routes = Routes::new(lines.iter().map(Line::ends).collect(), wired);
        Ok(Self { wire, ends, lines, routes, crossing: BTreeMap::new(), sink })
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
        match end {
            Some(to) => self.carry(now, from, to, packet, handle),
            None if self.offer(now, from, &packet) => Fate::Gone,
            None => Fate::NoRoute,
        }
    }

    /// Takes a packet from one border router to another.
    pub(crate) fn carry(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        packet: Vec<u8>,
        handle: Handle,
    ) -> Fate {
        match self.routes.next(from, to).filter(|_| to != from) {
            Some(hop) => Fate::Crosses(self.pass(now, from, hop, Transit { to, handle, packet })),
            None => Fate::NoRoute,
        }
    }

    /// Shows a packet to the sink; false if there is none.
    pub(crate) fn offer(&mut self, now: Instant, from: NodeId, packet: &[u8]) -> bool {
        match &mut self.sink {
            Some(sink) => {
                sink(now, from, packet);
                true
            }
            None => false,
        }
    }

    /// All border routers but one.
    pub(crate) fn others(&self, node: NodeId) -> Vec<NodeId> {
        self.ends.values().copied().filter(|end| *end != node).collect()
    }

    /// Sends a packet over one wire or line; returns the node whose deadline changes.
    fn pass(&mut self, now: Instant, from: NodeId, hop: Hop, transit: Transit) -> NodeId {
        match hop {
            Hop::Wire(next) => {
                let delay = self.wire.map_or(Duration::ZERO, |wire| wire.delay);
                self.cross(now + delay, next, transit);
                next
            }
            Hop::Line(index) => {
                let line = &mut self.lines[index];
                line.send(now, from, transit);
                line.owner()
            }
        }
    }

    fn cross(&mut self, arrives: Instant, next: NodeId, transit: Transit) {
        let Transit { to, handle, packet } = transit;
        let crossing = Crossing { arrives, to, handle, packet };
        let queue = self.crossing.entry(next).or_default();
        let place = queue.partition_point(|other| other.arrives <= arrives);
        queue.insert(place, crossing);
    }

    /// When something happens at `node` next.
    pub(crate) fn next(&self, node: NodeId) -> Option<Instant> {
        if self.crossing.is_empty() && self.lines.is_empty() {
            return None;
        }
        let crossing = self.crossing.get(&node).and_then(|queue| Some(queue.front()?.arrives));
        let own = self.lines.iter().filter(|line| line.owner() == node);
        crossing.into_iter().chain(own.filter_map(Line::next_deadline)).min()
    }

    /// The radio of `node` begins to send, or has finished.
    pub(crate) fn note_radio(&mut self, now: Instant, node: NodeId, is_sending: bool) {
        for line in self.lines.iter_mut().filter(|line| line.owner() == node) {
            line.note_radio(now, is_sending);
        }
    }

    /// Does what is due on the lines of `node`, and passes on what came for others.
    pub(crate) fn advance(&mut self, now: Instant, node: NodeId) -> Vec<Effect> {
        let mut effects = Vec::new();
        for index in 0..self.lines.len() {
            if self.lines[index].owner() != node {
                continue;
            }
            self.lines[index].advance(now);
            while let Some(step) = self.lines[index].poll() {
                match step {
                    Step::Arrived(end, transit) => {
                        self.cross(now, end, transit);
                        effects.push(Effect::Wake(end));
                    }
                    Step::Lost(end, handle, reason) => {
                        effects.push(Effect::Lost(end, handle, reason));
                    }
                }
            }
        }
        while let Some(Crossing { to, handle, packet, .. }) = self.take_foreign(now, node) {
            let transit = Transit { to, handle, packet };
            effects.push(match self.routes.next(node, to) {
                Some(hop) => Effect::Wake(self.pass(now, node, hop, transit)),
                None => Effect::Lost(node, handle, DropReason::NoRoute),
            });
        }
        effects
    }

    /// Takes a packet that has arrived at `node` and is for another end.
    fn take_foreign(&mut self, now: Instant, node: NodeId) -> Option<Crossing> {
        let queue = self.crossing.get_mut(&node)?;
        let is_foreign = |crossing: &Crossing| crossing.arrives <= now && crossing.to != node;
        let place = queue.iter().position(is_foreign)?;
        queue.remove(place)
    }

    /// Takes a packet for `node` that has arrived there.
    pub(crate) fn arrived(&mut self, now: Instant, node: NodeId) -> Option<Crossing> {
        let crossing = self.crossing.get_mut(&node)?;
        if crossing.front()?.arrives > now {
            return None;
        }
        crossing.pop_front()
    }

    /// The packets that are on the wire and on the lines.
    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> {
        let crossing = self.crossing.values().flatten().map(|crossing| crossing.handle);
        crossing.chain(self.lines.iter().flat_map(Line::handles))
    }

    /// What each link has carried.
    pub(crate) fn records(&self, end: Instant) -> Vec<LineRecord> {
        let record = |line: &Line| {
            let [near, far] = line.ends();
            let (counters, queues) = (line.counters()?, line.queues(end)?);
            Some(LineRecord { near, far, counters, queues })
        };
        self.lines.iter().filter_map(record).collect()
    }
}

/// The destination of a packet.
pub(crate) fn destination(packet: &[u8]) -> Option<Address> {
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
        let ends = [([1; 8], NodeId(0)), ([2; 8], NodeId(5))];
        Backbone::new(wire, ends.into_iter(), Vec::new(), sink, Seed(1)).expect("no lines")
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

    /// Clients 1 and 2 on a wire with router 0, and server 3 behind a slow link of the router.
    fn star() -> Backbone {
        let ends = (0..4).map(|n| ([n as u8 + 1; 8], NodeId(n)));
        let parts =
            LineParts::Link { out: line::slow(60_000), back: line::slow(30_000), saved_octets: 0 };
        let lines = vec![(NodeId(0), NodeId(3), parts)];
        Backbone::new(Some(Wire::ethernet()), ends, lines, None, Seed(1)).expect("a link")
    }

    /// Runs all nodes until nothing is left; the arrivals with their time in milliseconds, and the losses.
    fn run(backbone: &mut Backbone) -> (Vec<(u64, NodeId, Handle)>, Vec<Effect>) {
        let (mut arrived, mut lost) = (Vec::new(), Vec::new());
        let mut now = Instant::ZERO;
        while let Some((due, node)) =
            (0..4).filter_map(|n| Some((backbone.next(NodeId(n))?, NodeId(n)))).min()
        {
            now = now.max(due);
            lost.extend(
                backbone.advance(now, node).into_iter().filter(|e| matches!(e, Effect::Lost(..))),
            );
            while let Some(crossing) = backbone.arrived(now, node) {
                arrived.push((now.as_nanos() / 1_000_000, node, crossing.handle));
            }
        }
        (arrived, lost)
    }

    #[test]
    fn a_packet_takes_the_wire_and_the_line_behind_it() {
        let mut backbone = star();
        // 41 octets of payload and 48 of headers take 11.9 ms at 60 kbit/s and 23.7 ms at 30 kbit/s.
        let sent = |backbone: &mut Backbone, from, prefix, handle| {
            let flow = Flow {
                source: Address([9; 16]),
                destination: Address([prefix; 16]),
                source_port: 1,
                destination_port: 2,
            };
            let packet = udp(&flow, 64, &[0; 41], |_| ());
            backbone.take(Instant::ZERO, NodeId(from), packet, Handle(handle))
        };
        assert_eq!(sent(&mut backbone, 1, 4, 7), Fate::Crosses(NodeId(0)));
        assert_eq!(sent(&mut backbone, 3, 3, 8), Fate::Crosses(NodeId(0)));
        assert_eq!(sent(&mut backbone, 1, 3, 9), Fate::Crosses(NodeId(2)));
        assert_eq!(backbone.handles().count(), 3);
        let (arrived, lost) = run(&mut backbone);
        let expected =
            [(0, NodeId(2), Handle(9)), (211, NodeId(3), Handle(7)), (223, NodeId(2), Handle(8))];
        assert_eq!((&arrived[..], lost), (&expected[..], vec![]));
        assert_eq!(backbone.handles().count(), 0);
        let [record] = &backbone.records(Instant::from_secs(1))[..] else { panic!("one link") };
        assert_eq!(record.counters.map(|counters| counters.arrived), [1, 1]);
    }

    #[test]
    fn packets_beyond_the_queue_of_a_line_are_lost_at_its_near_end() {
        let mut backbone = star();
        for handle in 0..100 {
            backbone.take(Instant::ZERO, NodeId(1), packet(4), Handle(handle));
        }
        let (arrived, lost) = run(&mut backbone);
        // One in the serialiser, and 2,500 octets of packets of 49 behind it.
        assert_eq!((arrived.len(), lost.len()), (52, 48));
        assert_eq!(lost[0], Effect::Lost(NodeId(0), Handle(52), DropReason::QueueFull));
    }
}
