//! The boundary of 6LoWPAN: packets and answers go in, frames and packets come out.

use alloc::vec::Vec;

use lowmesh_ipv6::Event;
use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine as _, debug_assert_accepted};
use lowmesh_units::{Eui64, Instant};

use crate::event::{Output, Packet};
use crate::node::Node;

impl Node {
    /// Handles an output of 6LoWPAN.
    pub(crate) fn on_lowpan(&mut self, now: Instant, output: lowmesh_lowpan::Output) {
        match output {
            lowmesh_lowpan::Output::Frame { payload, destination, handle, .. } => {
                self.send_frame(now, &payload, destination, handle);
            }
            lowmesh_lowpan::Output::Accepted { handle } => {
                if handle != Handle::NONE {
                    self.note_packet(Packet::Accepted(handle));
                }
            }
            lowmesh_lowpan::Output::Packet { bytes, source, handle, .. } => {
                self.tell_ipv6(now, Event::Packet { bytes, from: source, handle });
            }
            lowmesh_lowpan::Output::RouteRequest { beginning, source, handle } => {
                let event = Event::Beginning { bytes: beginning, from: source, handle };
                self.tell_ipv6(now, event);
            }
            lowmesh_lowpan::Output::PacketDone { handle: Handle::NONE, .. } => {}
            lowmesh_lowpan::Output::PacketDone { handle, result: Ok(()) } => {
                self.note_packet(Packet::PassedOn(handle));
            }
            lowmesh_lowpan::Output::PacketDone { handle, result: Err(reason) } => {
                self.dropped(handle, Layer::Mac, reason);
            }
            lowmesh_lowpan::Output::Step(step) => self.outbox.push(Output::Fragments(step)),
            lowmesh_lowpan::Output::Dropped(dropped) => {
                if dropped.handle != Handle::NONE {
                    self.note_packet(Packet::Dropped(dropped));
                }
            }
        }
    }

    /// Gives a packet to 6LoWPAN, for one neighbour or for all.
    pub(crate) fn send_packet(
        &mut self,
        now: Instant,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let input = lowmesh_lowpan::Input::Packet { bytes, destination, handle };
        if self.lowpan.handle(now, input).is_err() {
            self.dropped(handle, Layer::Lowpan, DropReason::Malformed);
        }
    }

    /// Answers the oldest question of 6LoWPAN.
    pub(crate) fn reply_route(
        &mut self,
        now: Instant,
        beginning: Vec<u8>,
        route: lowmesh_ipv6::event::Route,
    ) {
        let route = match route {
            lowmesh_ipv6::event::Route::Here => lowmesh_lowpan::Route::Here,
            lowmesh_ipv6::event::Route::Via(next_hop) => lowmesh_lowpan::Route::Via(next_hop),
            lowmesh_ipv6::event::Route::None => lowmesh_lowpan::Route::None,
        };
        let input = lowmesh_lowpan::Input::RouteReply { beginning, route };
        debug_assert_accepted(self.lowpan.handle(now, input));
    }

    pub(crate) fn note_packet(&mut self, packet: Packet) {
        self.outbox.push(Output::Packet(packet));
    }
    fn dropped(&mut self, handle: Handle, layer: Layer, reason: DropReason) {
        self.note_packet(Packet::Dropped(Dropped { handle, layer, reason }));
    }
}
