//! The boundary of the link layer: frames go in, frames and what became of them come out.

use lowmesh_machine::{Dropped, Handle, Machine as _, debug_assert_accepted};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::Address;

use super::FrameKind;
use super::event::LinkEvent;
use crate::event::{Class, Network, Output, RadioOrder};
use crate::node::Node;

impl Node {
    /// What the link layer has to say.
    pub(crate) fn on_link(&mut self, now: Instant, event: LinkEvent) {
        match event {
            LinkEvent::Up => {
                self.outbox.push(Output::Network(Network::Synchronised));
                self.tell_rpl(now, lowmesh_rpl::Input::Start);
                self.take_place(now);
            }
            LinkEvent::Down => {
                self.outbox.push(Output::Network(Network::Desynchronised));
                self.tell_rpl(now, lowmesh_rpl::Input::Stop);
            }
            LinkEvent::Received { source, broadcast, payload, handle } => {
                self.on_frame(now, source, broadcast, &payload, handle);
            }
            LinkEvent::Done { handle, acked, dropped } => {
                self.counters.frames_acked += u64::from(acked);
                self.on_frame_done(now, handle, dropped);
            }
            LinkEvent::Etx { peer, etx, fresh } => {
                let neighbour = Address::link_local(peer).0;
                let etx = lowmesh_rpl::Etx(etx);
                self.tell_rpl(now, lowmesh_rpl::Input::LinkEtx { neighbour, etx, fresh });
            }
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
        // A broadcast has one copy, the sender's; here it is heard, not taken over.
        let handle = match handle {
            _ if broadcast => Handle::NONE,
            // A driver that traces nothing knows no names, but what goes on from here needs one.
            Handle::NONE => self.ipv6.next_handle(Class::Request),
            known => known,
        };
        self.note_rssi(now, source);
        let destination = (!broadcast).then(|| self.ipv6.addresses().node());
        let input = lowmesh_lowpan::Input::Frame { payload, source, destination, handle };
        debug_assert_accepted(self.lowpan.handle(now, input));
    }

    /// RPL wants an estimate of a link before the first frame goes over it.
    fn note_rssi(&mut self, now: Instant, source: Eui64) {
        if let Some(link) = self.link.links().get(source)
            && link.samples == 0
        {
            let neighbour = Address::link_local(source).0;
            let etx = lowmesh_rpl::Etx(link.etx);
            self.tell_rpl(now, lowmesh_rpl::Input::LinkEtx { neighbour, etx, fresh: false });
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

    /// Gives a frame to the MAC.
    pub(crate) fn send_frame(
        &mut self,
        now: Instant,
        payload: &[u8],
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let kind = if self.advertisement == Some(handle) {
            FrameKind::Advertisement
        } else if self.ipv6.is_own_control(handle) {
            FrameKind::Control
        } else {
            FrameKind::Data
        };
        self.link.send(now, payload, destination, kind, handle);
    }
}
