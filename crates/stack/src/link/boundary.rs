//! The boundary of the link layer: frames go in, frames and what became of them come out.

use lowmesh_ipv6::Ipv6;
use lowmesh_machine::{Dropped, Handle, Machine as _, debug_assert_accepted};
use lowmesh_units::{Eui64, Instant};

use super::event::LinkEvent;
use crate::event::{Class, Network, Output, RadioOrder};
use crate::lowpan;
use crate::node::Node;

impl Node {
    /// What the link layer has to say.
    pub(crate) fn on_link(&mut self, now: Instant, event: LinkEvent) {
        match event {
            LinkEvent::Up => {
                self.outbox.push(Output::Network(Network::Synchronised));
                for output in self.routing.start(now) {
                    self.on_routing(now, output);
                }
            }
            LinkEvent::Down => {
                self.outbox.push(Output::Network(Network::Desynchronised));
                self.routing.stop(now);
            }
            LinkEvent::Received { source, broadcast, payload, handle } => {
                self.on_frame(now, source, broadcast, &payload, handle);
            }
            LinkEvent::Done { handle, acked, dropped } => {
                self.counters.frames_acked += u64::from(acked);
                self.on_frame_done(now, handle, dropped);
            }
            LinkEvent::Etx { peer, etx, fresh } => {
                self.routing.on_etx(now, peer, etx, fresh);
            }
            LinkEvent::Gone(peer) => self.routing.on_gone(now, peer),
            LinkEvent::Silent(peer) => self.routing.on_silent(now, peer),
            LinkEvent::Back(peer) => self.routing.on_back(now, peer),
            LinkEvent::Driver(order) => {
                if let Output::Radio(RadioOrder::Transmit { .. }) = &order {
                    self.counters.frames_sent += 1;
                }
                self.outbox.push(order);
            }
        }
    }

    fn on_frame(
        &mut self,
        now: Instant,
        source: Eui64,
        broadcast: bool,
        payload: &[u8],
        handle: Handle,
    ) {
        // A broadcast has one copy, the sender's; here it is heard, not taken over. Of a packet to a group each hearer has
        // a copy.
        let handle = match handle {
            _ if broadcast && !Ipv6::is_group(handle) => Handle::NONE,
            // A driver that traces nothing knows no names, but what goes on from here needs one.
            Handle::NONE => self.ipv6.next_handle(Class::Request),
            known => known,
        };
        self.note_rssi(now, source);
        let destination = (!broadcast).then(|| self.ipv6.addresses().node());
        lowpan::follow(&mut self.lowpan, now, self.routing.network());
        let is_proven = self.link.is_proven(source);
        let input =
            lowmesh_lowpan::Input::Frame { payload, source, destination, handle, is_proven };
        debug_assert_accepted(self.lowpan.handle(now, input));
    }

    /// RPL wants an estimate of a link before the first frame goes over it.
    fn note_rssi(&mut self, now: Instant, source: Eui64) {
        if let Some(link) = self.link.links().get(source)
            && link.samples == 0
        {
            self.routing.on_etx(now, source, link.etx, false);
        }
    }

    /// A frame of this node is over; `dropped` tells why it did not arrive.
    fn on_frame_done(&mut self, now: Instant, handle: Handle, dropped: Option<Dropped>) {
        if self.link.take_done(now, handle, dropped.is_none()) {
            return;
        }
        let result = dropped.map_or(Ok(()), |dropped| Err(dropped.reason));
        let input = lowmesh_lowpan::Input::FrameDone { handle, result };
        debug_assert_accepted(self.lowpan.handle(now, input));
    }
}
