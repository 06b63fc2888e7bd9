//! Mode SFR: packets go in recoverable fragments (RFC 8931). What one node does with them is [`crate::recover`]'s; here it
//! meets compression, the packet buffer and the books.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::lowpan::decompress;

use super::Adaptation;
use crate::event::{Output, Route};
use crate::frames::{End, Part};
use crate::reassemble::Fragment;
use crate::recover::node::{self, QueueState};

/// Which way asked for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteClient {
    Forwarded,
    Recovered,
}

impl Adaptation {
    /// Sends a packet whose compressed `headers` stand for its first `covered` octets.
    pub(super) fn send_recovered(
        &mut self,
        now: Instant,
        packet: &[u8],
        next_hop: Eui64,
        handle: Handle,
        mut headers: Vec<u8>,
        covered: usize,
    ) {
        headers.extend_from_slice(&packet[covered..]);
        if headers.len() + self.config.frame_payload > self.room() {
            self.drop_packet(handle, DropReason::BufferFull);
            return;
        }
        let queue = self.queue_state();
        self.recovery.send(now, handle, next_hop, headers, queue);
        self.drain_recovery();
    }

    /// Takes a frame with a dispatch of RFC 8931.
    pub(super) fn on_recoverable(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let &Fragment { frame, source, destination, handle } = fragment;
        let queue = self.queue_state();
        // RFC 8931 s6: fragments are for one neighbour, who acknowledges them.
        let is_taken =
            destination.is_some() && self.recovery.on_frame(now, frame, source, handle, queue);
        if !is_taken {
            self.outbox.push(Output::Accepted { handle });
            self.drop_packet(handle, DropReason::Malformed);
        }
        self.drain_recovery();
    }

    /// The driver's answer to a question out of a recoverable fragment.
    pub(super) fn on_recovered_route(
        &mut self,
        now: Instant,
        beginning: &[u8],
        route: Route,
    ) -> Result<(), Rejected> {
        let queue = self.queue_state();
        self.recovery.on_route_reply(now, beginning, route, queue)?;
        self.drain_recovery();
        Ok(())
    }

    pub(super) fn on_recovery_deadline(&mut self, now: Instant) {
        if self.recovery.next_deadline().is_some_and(|deadline| deadline <= now) {
            let queue = self.queue_state();
            self.recovery.on_deadline(now, queue);
            self.drain_recovery();
        }
    }

    /// The MAC is done with any frame, so that there may be room for another.
    pub(super) fn offer_room(&mut self, now: Instant) {
        if self.recovery.is_sending() {
            let queue = self.queue_state();
            self.recovery.on_frame_done(now, queue);
            self.drain_recovery();
        }
    }

    fn queue_state(&self) -> QueueState {
        QueueState { room: self.room(), backlog: self.frames.len() }
    }

    fn drain_recovery(&mut self) {
        while let Some(output) = self.recovery.poll_output() {
            match output {
                node::Output::Frame { payload, destination, handle } => {
                    let octets = payload.len() + self.buffer_overhead().fragment;
                    self.frames.push(handle, Part::Recovered, octets);
                    let destination = Some(destination);
                    // Whether another follows is known only when it is due.
                    self.outbox.push(Output::Frame { payload, destination, handle, last: false });
                }
                node::Output::Accepted { handle } => self.outbox.push(Output::Accepted { handle }),
                node::Output::RouteRequest { beginning, source, handle } => {
                    self.route_clients.push_back(RouteClient::Recovered);
                    self.outbox.push(Output::RouteRequest { beginning, source, handle });
                }
                node::Output::Datagram { datagram, source, handle } => {
                    self.on_datagram(&datagram, source, handle);
                }
                node::Output::Step(step) => self.outbox.push(Output::Step(step)),
                node::Output::Ended { handle, dropped } => {
                    let end = dropped.map_or(End::PassedOn, End::Dropped);
                    self.end_copy(handle, Part::Recovered, end);
                }
            }
        }
    }

    fn on_datagram(&mut self, datagram: &[u8], source: Eui64, handle: Handle) {
        let mut bytes = Vec::with_capacity(datagram.len() + 64);
        let here = Some(self.address);
        match decompress(datagram, source, here, &self.contexts, None, &mut bytes) {
            Ok(()) => {
                self.outbox.push(Output::Packet { bytes, source, broadcast: false, handle });
            }
            Err(_) => self.drop_packet(handle, DropReason::Malformed),
        }
    }
}

#[cfg(test)]
mod tests;
