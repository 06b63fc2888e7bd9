//! The boundary of 6LoWPAN: packets and answers go in, frames and packets come out.

use alloc::vec::Vec;

use lowmesh_ipv6::Event;
use lowmesh_ipv6::event::Route;
use lowmesh_lowpan::{Adaptation, Network};
use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine as _, debug_assert_accepted};
use lowmesh_units::{Eui64, Instant};

use crate::event::{Output, Packet};
use crate::link::FrameKind;
use crate::node::Node;

impl Node {
    /// Handles an output of 6LoWPAN.
    pub(crate) fn on_lowpan(&mut self, now: Instant, output: lowmesh_lowpan::Output) {
        let packet = match output {
            lowmesh_lowpan::Output::Frame { payload, destination, handle, is_advice, .. } => {
                let kind = if is_advice { FrameKind::Advice } else { self.kind_of(handle) };
                return self.link.send(now, &payload, destination, kind, handle);
            }
            lowmesh_lowpan::Output::Packet { bytes, source, handle, .. } => {
                return self.tell_ipv6(now, Event::Packet { bytes, from: source, handle });
            }
            lowmesh_lowpan::Output::RouteRequest { beginning, source, handle } => {
                let event = Event::Beginning { bytes: beginning, from: source, handle };
                return self.tell_ipv6(now, event);
            }
            lowmesh_lowpan::Output::Step(step) => {
                return self.outbox.push(Output::Fragments(step));
            }
            lowmesh_lowpan::Output::Accepted { handle } => Packet::Accepted(handle),
            lowmesh_lowpan::Output::PacketDone { handle, result: Ok(()) } => {
                Packet::PassedOn(handle)
            }
            lowmesh_lowpan::Output::PacketDone { handle, result: Err(reason) } => {
                Packet::Dropped(Dropped { handle, layer: Layer::Mac, reason })
            }
            lowmesh_lowpan::Output::Dropped(dropped) => Packet::Dropped(dropped),
        };
        if packet.handle() != Handle::NONE {
            self.outbox.push(Output::Packet(packet));
        }
    }

    /// What a frame of 6LoWPAN is for, by the packet in it.
    fn kind_of(&self, handle: Handle) -> FrameKind {
        if self.advertisement == Some(handle) {
            FrameKind::Advertisement
        } else if self.ipv6.is_own_control(handle) {
            FrameKind::Control
        } else {
            FrameKind::Data
        }
    }
}

/// Tells 6LoWPAN what the root decides, if that is another thing than before.
pub(crate) fn follow(lowpan: &mut Adaptation, now: Instant, network: Network) {
    if lowpan.network() != network {
        debug_assert_accepted(lowpan.handle(now, lowmesh_lowpan::Input::Network(network)));
    }
}

/// Gives a packet to 6LoWPAN, for one neighbour or for all; its end if it is refused.
pub(crate) fn send(
    lowpan: &mut Adaptation,
    now: Instant,
    bytes: Vec<u8>,
    destination: Option<Eui64>,
    handle: Handle,
) -> Option<Packet> {
    let refused = lowpan.handle(now, lowmesh_lowpan::Input::Packet { bytes, destination, handle });
    let (layer, reason) = (Layer::Lowpan, DropReason::Malformed);
    refused.err().map(|_| Packet::Dropped(Dropped { handle, layer, reason }))
}

/// Answers the oldest question of 6LoWPAN.
pub(crate) fn reply_route(lowpan: &mut Adaptation, now: Instant, beginning: Vec<u8>, route: Route) {
    let route = match route {
        Route::Here => lowmesh_lowpan::Route::Here,
        Route::Via(next_hop) => lowmesh_lowpan::Route::Via(next_hop),
        Route::None => lowmesh_lowpan::Route::None,
    };
    let input = lowmesh_lowpan::Input::RouteReply { beginning, route };
    debug_assert_accepted(lowpan.handle(now, input));
}
