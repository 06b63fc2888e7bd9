//! A node: every layer a machine of its own, and this the machine made of them.
//!
//! ```text
//!      Request, Respond                 Datagram, Ping, Uplink
//!            v                                    v
//!      applications ── coap ─┬──── udp ───────── ipv6 ── lowpan ── link ── radio
//!                            └── streams (TCP) ──┘ │              TSCH and 6top, or CSMA
//!                                               routing
//! ```
//! Layers do not know each other. Each is a part with its own state, and its outputs are the arms of one function, which
//! calls parts alone. `settle` polls the parts; IPv6 and hosting are polled after each input, too, so that their outputs
//! take effect in the order of their acts.
//!
//! | part | its outputs go to | file |
//! |---|---|---|
//! | link | `on_link` | `link::boundary` |
//! | lowpan | `on_lowpan` | `lowpan` |
//! | ipv6 | `on_ipv6`, at once | `network` |
//! | multicast | `on_multicast`, at once | `network` |
//! | routing | `on_routing` | `network` |
//! | hosting: coap, applications | `on_hosting`, at once | `network` |
//! | streams: TCP | `on_stream`, at once | `network` |
//!
//! Besides packets and messages, this is what one tells another; what TSCH and 6top tell each other stays in
//! `link::slotted`:
//!
//! | from | to | what |
//! |---|---|---|
//! | link: up, down | routing, sixtop | start, stop |
//! | mac: queue busy, queue empty | sixtop | autonomous cells |
//! | mac: ETX | rpl | link metric |
//! | mac: neighbour gone, silent, back | rpl | neighbour unreachable, silent, reachable |
//! | routing: parent | mac, sixtop, ipv6 | time source, cells, default route |
//! | rpl: no parent for long | mac | leave the network |
//! | routing: rank | mac | join metric of beacons |
//! | routing: child, known to parent | sixtop | cells |
//! | rpl: route | ipv6 | route |
//! | ipv6: forward, source route | rpl | a question, answered at once |
//! | ipv6: packet to a group | multicast | a packet that its engine forwards and delivers |
//! | application: join, leave | ipv6, rpl | membership in a group |
//! | ipv6: trouble | coap | an endpoint that cannot be reached |

use lowmesh_ipv6::{Event, Ipv6};
use lowmesh_lowpan::Adaptation;
use lowmesh_machine::{Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::Instant;
use lowmesh_wire::icmpv6::Icmpv6;

use crate::event::{Class, ErrorCounts, Input, Output};
use crate::hosting::Hosting;
use crate::link::{Link, LinkEvent};
use crate::multicast::Multicast;
use crate::routing::Routing;
use crate::streams::Streams;

/// The counters of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames handed to the radio, retries included.
    pub frames_sent: u64,
    /// Frames to one neighbour that were acknowledged.
    pub frames_acked: u64,
    /// ICMPv6 errors that this node sent.
    pub errors_sent: ErrorCounts,
    /// Those that it did not send, since the rate was used up.
    pub errors_withheld: u64,
    /// ICMPv6 errors that came about packets of this node.
    pub errors_received: ErrorCounts,
}

/// One node of a mesh.
#[derive(Debug)]
pub struct Node {
    pub(crate) link: Link,
    pub(crate) lowpan: Adaptation,
    pub(crate) ipv6: Ipv6,
    pub(crate) multicast: Multicast,
    pub(crate) routing: Routing,
    pub(crate) hosting: Hosting,
    /// TCP, where the settings ask for it.
    pub(crate) streams: Option<Streams>,
    pub(crate) outbox: Outbox<Output>,
    pub(crate) counters: Counters,
    /// The last DIO to all neighbours.
    pub(crate) advertisement: Option<Handle>,
    /// The layers above the link as they settled last.
    pub(crate) rest: Rest,
}

/// What a node keeps of the layers above the link while they are silent: most radio events leave them unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Rest {
    /// Their next deadline.
    deadline: Option<Instant>,
    /// What is in the packet buffer.
    pub(crate) packet_buffer_octets: usize,
}

impl Node {
    fn boot(&mut self, now: Instant) {
        self.hosting.start();
        if let Some(event) = self.link.boot(now) {
            self.on_link(now, event);
        }
    }

    fn deadline(&mut self, now: Instant) -> Result<(), Rejected> {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        self.link.deadline(now);
        if !due(self.rest.deadline) {
            self.settle_link(now);
            return Ok(());
        }
        let result = self.deadline_above(now, due);
        self.settle(now);
        result
    }

    /// Handles the deadlines of the layers above the link.
    fn deadline_above(
        &mut self,
        now: Instant,
        due: impl Fn(Option<Instant>) -> bool,
    ) -> Result<(), Rejected> {
        if due(self.lowpan.next_deadline()) {
            self.lowpan.handle(now, lowmesh_lowpan::Input::Deadline)?;
        }
        if due(self.ipv6.next_deadline()) {
            self.tell_ipv6(now, Event::Deadline);
        }
        if due(self.multicast.next_deadline()) {
            self.on_multicast_deadline(now);
        }
        self.routing.deadline(now);
        self.on_streams_deadline(now);
        self.hosting.deadline(now)
    }

    /// Lets every layer say what it has to say, until all are silent.
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(event) = self.link.poll(now) {
                self.on_link(now, event);
            } else if let Some(output) = self.lowpan.poll_output() {
                self.on_lowpan(now, output);
            } else if self.link.step(now, &mut self.outbox) {
                // The MAC has something to send now, which comes first.
            } else if let Some(output) = self.routing.poll_output() {
                self.on_routing(now, output);
            } else if self.step_hosting(now) {
                while let Some(output) = self.hosting.poll_output() {
                    self.on_hosting(now, output);
                }
            } else {
                break;
            }
        }
        self.rest = self.look_above();
    }

    /// Does what [`Node::settle`] does after an event of the link layer. The layers above are silent until the link layer
    /// has something for them.
    pub(crate) fn settle_link(&mut self, now: Instant) {
        while let Some(event) = self.link.poll(now) {
            let is_for_driver = matches!(event, LinkEvent::Driver(_));
            self.on_link(now, event);
            if !is_for_driver {
                return self.settle(now);
            }
        }
        if self.link.step(now, &mut self.outbox) {
            self.settle(now);
        }
    }

    /// What the layers above the link come to.
    pub(crate) fn look_above(&self) -> Rest {
        let packets = earliest(self.lowpan.next_deadline(), self.ipv6.next_deadline());
        let groups = earliest(packets, self.multicast.next_deadline());
        let network = earliest(groups, self.routing.next_deadline());
        let octets = self.lowpan.packet_buffer().total() + self.ipv6.reassembly_octets();
        let streams = self.streams.as_ref().and_then(Streams::next_deadline);
        let hosting = earliest(streams, self.hosting.next_deadline());
        Rest { deadline: earliest(network, hosting), packet_buffer_octets: octets }
    }

    /// Lets the CoAP host or else an application say one thing; false when they are silent.
    fn step_hosting(&mut self, now: Instant) -> bool {
        let address = self.ipv6.addresses().global();
        let (link, routing) = (&self.link, &self.routing);
        let is_joined = || link.is_up() && routing.is_joined();
        self.hosting.step_coap(now) || self.hosting.step_application(now, address, is_joined)
    }
}

impl Machine for Node {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        let result = match input {
            Input::Boot => {
                self.boot(now);
                Ok(())
            }
            Input::Deadline => return self.deadline(now),
            Input::Paced { node, period } => {
                self.hosting.pace(node, period);
                Ok(())
            }
            Input::Resume => {
                self.link.resume(now);
                return self.deadline(now);
            }
            Input::Request { peer, request, handle } => {
                self.hosting.request(now, peer, request, handle)
            }
            Input::Respond { exchange, response } => self.hosting.respond(now, exchange, response),
            Input::Datagram { source_port, peer, payload } => {
                let (to, payload, class) = (peer, &payload[..], Class::Request);
                self.tell_ipv6(now, Event::Datagram { source_port, to, payload, class });
                Ok(())
            }
            Input::Join { group } => self.join_group(now, group),
            Input::Leave { group } => {
                self.leave_group(now, group);
                Ok(())
            }
            Input::Uplink { packet, handle } => {
                self.tell_ipv6(now, Event::Uplink { packet, handle });
                Ok(())
            }
            Input::Ping { to, echo } => {
                let message = Icmpv6::EchoRequest(echo);
                self.tell_ipv6(now, Event::Message { to, message });
                Ok(())
            }
        };
        self.settle(now);
        result
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        debug_assert_eq!(self.rest, self.look_above(), "the layers settled after each event");
        earliest(self.link.next_deadline(), self.rest.deadline)
    }
}
