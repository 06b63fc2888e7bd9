//! The forwarder in a node: opens paths, lets fragments go on and acknowledgements back (RFC 8931 s6.1, s6.2).

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::upper_layer;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};

use super::super::Received;
use super::super::path::{Link, Path, beginning, first_onward, next_onward};
use super::{Node, Output, QueueState};
use crate::event::Route;
use crate::forward::Label;
use crate::params::{FragmentMode, ROUTE_REQUESTS};

/// A first fragment whose route the driver was asked for.
#[derive(Debug)]
pub(super) struct PendingRoute {
    header: Rfrag,
    data: Vec<u8>,
    source: Eui64,
    size: usize,
    handle: Handle,
}

impl PendingRoute {
    pub(super) const fn handle(&self) -> Handle {
        self.handle
    }
    fn incoming(&self) -> Label {
        Label { neighbour: self.source, tag: self.header.datagram_tag.into() }
    }
    fn received(&self) -> Received<'_> {
        let Self { header, data, source, handle, .. } = self;
        Received { header: *header, data, source: *source, handle: *handle }
    }
}

impl Node {
    /// Asks where a first fragment goes; false if that cannot be told from it.
    pub(super) fn ask(&mut self, fragment: &Received<'_>) -> bool {
        let &Received { header, data, source, handle } = fragment;
        let has_no_buffer =
            self.config.choices().passes_only_with_buffer && self.receiving.is_full();
        let is_busy = has_no_buffer || self.pending_routes.len() >= ROUTE_REQUESTS;
        if self.config.mode != FragmentMode::Recovered || is_busy {
            return false;
        }
        let link = Link { source, destination: self.address, contexts: &self.contexts };
        let Some((beginning, size)) = beginning(&header, data, link) else { return false };
        // A route may stand in headers that are not all in the first fragment.
        if upper_layer(&beginning).is_err() {
            return false;
        }
        self.pending_routes.push_back(PendingRoute {
            header,
            data: data.to_vec(),
            source,
            size,
            handle,
        });
        self.outbox.push(Output::Accepted { handle });
        self.outbox.push(Output::RouteRequest { beginning, source, handle });
        true
    }

    /// The driver's answer to the oldest question.
    pub fn on_route_reply(
        &mut self,
        now: Instant,
        beginning: &[u8],
        route: Route,
        queue_state: QueueState,
    ) -> Result<(), Rejected> {
        self.queue_state = queue_state;
        let Some(pending) = self.pending_routes.pop_front() else {
            return Err(Rejected::Gone { what: "route", why: "no first fragment waits for one" });
        };
        match route {
            // RFC 8931 s6.1.2: what cannot be forwarded is answered with a NULL bitmap.
            Route::None => {
                self.close_path(pending.incoming(), DropReason::NoRoute);
                let Rfrag { datagram_tag, ack_request, .. } = pending.header;
                self.refuse(now, pending.source, datagram_tag, ack_request);
            }
            Route::Via(next_hop) => self.forward_first(now, &pending, beginning, next_hop),
            Route::Here => self.take_in_accepted(now, &pending.received()),
        }
        self.work(now);
        Ok(())
    }

    /// Opens a path, or finds the one there is, and lets the first fragment go on.
    fn forward_first(
        &mut self,
        now: Instant,
        pending: &PendingRoute,
        beginning: &[u8],
        next_hop: Eui64,
    ) {
        let &PendingRoute { size, handle, .. } = pending;
        let header = self.marked(&pending.header);
        let incoming = pending.incoming();
        let known = self.paths.find(incoming).map(|entry| entry.outgoing);
        let is_complete = self.paths.find(incoming).is_some_and(|entry| entry.state.is_complete);
        let same = known.filter(|outgoing| outgoing.neighbour == next_hop);
        if known.is_some() && same.is_none() {
            // RFC 8931 s6: the first fragment, sent again, establishes a new path.
            self.close_path(incoming, DropReason::NeighbourLost);
        }
        if same.is_none() && self.paths.is_full() {
            self.close_complete_path();
        }
        let label = |tag: u8| Label { neighbour: next_hop, tag: tag.into() };
        let Some(outgoing) = same.or_else(|| self.free_tag(next_hop).map(label)) else {
            self.counters.fallbacks += 1;
            return self.take_in_accepted(now, &pending.received());
        };
        let link = Link { source: self.address, destination: next_hop, contexts: &self.contexts };
        let tag = outgoing.tag as u8;
        let payload = self.config.frame_payload;
        let onward = first_onward(&header, beginning, size, tag, link, payload);
        let state = onward.as_ref().map(|(_, shift)| Path { shift: *shift, is_complete: false });
        let opened = match (same, state) {
            (Some(_), Some(_)) => {
                // The copy of a fragment is no second copy of the packet.
                self.end(handle, None);
                true
            }
            (None, Some(state)) => self.paths.open(now, incoming, outgoing, handle, state).is_ok(),
            (_, None) => false,
        };
        if let Some((frame, _)) = onward.filter(|_| opened) {
            self.count_forwarded(&pending.header, &header);
            self.push(frame, next_hop, name(handle, is_complete && same.is_some()));
        } else {
            self.counters.fallbacks += 1;
            self.take_in_accepted(now, &pending.received());
        }
    }

    pub(super) fn forward_next(&mut self, now: Instant, incoming: Label, fragment: &Received<'_>) {
        let Some(entry) = self.paths.find(incoming) else { return };
        let (to, handle, path) = (entry.outgoing, entry.handle, entry.state);
        let header = self.marked(&fragment.header);
        let Some(frame) = next_onward(&header, fragment.data, to.tag as u8, path.shift) else {
            return;
        };
        if header.part == Part::Abort && !header.ack_request {
            // RFC 8931 s6.3: the path and all associated state are destroyed.
            self.close_path(incoming, DropReason::GaveUp);
            self.push(frame, to.neighbour, Handle::NONE);
            return;
        }
        if !path.is_complete {
            self.paths.refresh(incoming, now);
        }
        self.count_forwarded(&fragment.header, &header);
        self.push(frame, to.neighbour, name(handle, path.is_complete));
    }

    /// The header of a fragment that passes: marked when the queues are long.
    fn marked(&self, header: &Rfrag) -> Rfrag {
        // RFC 8931 s5.1: E is set by routers where the fragment meets congestion.
        Rfrag { congestion: header.congestion || self.is_congested(), ..*header }
    }
    pub(super) fn is_congested(&self) -> bool {
        self.queue_state.backlog + self.queue.len() >= self.config.recovery.mark_frames
    }
    fn count_forwarded(&mut self, before: &Rfrag, after: &Rfrag) {
        self.counters.forwarded += 1;
        self.counters.marked += u64::from(after.congestion && !before.congestion);
    }

    /// Ends the copy that passed, unless it is through.
    pub(super) fn close_path(&mut self, incoming: Label, reason: DropReason) {
        if let Some(entry) = self.paths.close(incoming)
            && !entry.state.is_complete
        {
            self.end_with_frames(entry.handle, Some(reason));
        }
    }

    /// Forgets the oldest path whose datagram is through, to have room.
    fn close_complete_path(&mut self) {
        let oldest = self.paths.iter().find(|entry| entry.state.is_complete);
        if let Some(incoming) = oldest.map(|entry| entry.incoming) {
            self.paths.close(incoming);
        }
    }

    /// Lets an acknowledgement go back along its path.
    pub(super) fn pass_back(&mut self, now: Instant, ack: RfragAck, from: Eui64) {
        let outgoing = Label { neighbour: from, tag: ack.datagram_tag.into() };
        // RFC 8931 s6.2: without a path for it the acknowledgement MUST be dropped silently.
        let Some(entry) = self.paths.find_outgoing(outgoing) else { return };
        let (back, handle, was_complete) = (entry.incoming, entry.handle, entry.state.is_complete);
        match ack.bitmap {
            Bitmap::FULL if !was_complete => {
                // RFC 8931 s6.2: a short timer, upon which the path is destroyed.
                entry.state.is_complete = true;
                self.paths.expire_at(back, now + self.config.linger());
                self.end_with_frames(handle, None);
            }
            Bitmap::FULL => {}
            Bitmap::NULL => self.close_path(back, DropReason::Reset),
            _ if was_complete => {}
            _ => self.paths.refresh(back, now),
        }
        self.acknowledge(back.neighbour, RfragAck { datagram_tag: back.tag as u8, ..ack });
    }
}

/// The name that a fragment goes on under: none when its packet is through, so that it is no copy of it.
const fn name(handle: Handle, is_complete: bool) -> Handle {
    if is_complete { Handle::NONE } else { handle }
}
