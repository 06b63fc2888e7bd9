//! Mode FF: fragments go on as they come (RFC 8930 s5), and never reach the IPv6 layer.
//!
//! ```text
//!   first fragment, unknown --RouteRequest--> driver --RouteReply--> for us    : reassembled here
//!                                                                    next hop  : entry opened, fragment goes on
//!                                                                    none      : forgotten, the driver counts it
//!   later fragment with an entry   : goes on under our tag
//!   later fragment without one, or the virtual reassembly buffer is full: reassembled here, then fragmented again
//! ```

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_reassembly::Name as _;
use lowmesh_units::Instant;
use lowmesh_wire::ipv6::upper_layer;
use lowmesh_wire::lowpan::decompress;
use lowmesh_wire::lowpan::fragment::FragmentHeader;

use super::Adaptation;
use super::recovered::RouteClient;
use crate::event::{Output, Route};
use crate::forward::Label;
use crate::frames::{End, Part};
use crate::params::{FragmentMode, ROUTE_REQUESTS};
use crate::reassemble::{Fragment, Name};
use crate::transit::{Onward, TransitDatagram, first_frames, next_frame};

/// A first fragment whose route the driver was asked for.
#[derive(Debug)]
pub(super) struct PendingRoute {
    name: Name,
    incoming: Label,
    datagram_size: u16,
    handle: Handle,
    /// The fragment as it came, kept when there is no entry left for it.
    original: Option<Vec<u8>>,
}

impl PendingRoute {
    pub const fn handle(&self) -> Handle {
        self.handle
    }
}

impl Adaptation {
    /// Takes a fragment of RFC 4944.
    pub(super) fn on_fragment(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let unicast = fragment.destination.is_some();
        if self.config.mode == FragmentMode::Forwarded
            && unicast
            && let Ok(header) = FragmentHeader::parse(fragment.frame)
            && self.relay(now, fragment, header)
        {
            return;
        }
        self.reassemble(now, fragment);
    }

    /// Lets a fragment pass, or asks where to; false if it has to be reassembled.
    fn relay(&mut self, now: Instant, fragment: &Fragment<'_>, header: FragmentHeader) -> bool {
        let incoming = Label { neighbour: fragment.source, tag: header.datagram_tag };
        if self.passing.find(incoming).is_some() {
            // A copy of the first fragment is of no use, and the entry knows only one size.
            if header.offset != 0 {
                self.relay_next(now, incoming, header, &fragment.frame[header.octets()..]);
            }
            return true;
        }
        if self.pending_routes.iter().any(|pending| pending.incoming == incoming) {
            // The driver answers before the next frame; what comes earlier has no place yet.
            self.counters.fragments_refused += 1;
            return true;
        }
        let name = Name::of(fragment, header);
        let known = self.reassembly.knows(&name, now);
        if header.offset != 0 || known {
            self.counters.fallbacks_order += u64::from(!known);
            return false;
        }
        self.ask(fragment, header, name, incoming)
    }

    /// Asks where a first fragment goes; false if that cannot be told from it.
    fn ask(
        &mut self,
        fragment: &Fragment<'_>,
        header: FragmentHeader,
        name: Name,
        incoming: Label,
    ) -> bool {
        let &Fragment { frame, source, destination, handle } = fragment;
        let has_no_buffer =
            self.config.choices().passes_only_with_buffer && self.reassembly.is_full();
        if has_no_buffer || self.pending_routes.len() >= ROUTE_REQUESTS {
            return false;
        }
        let datagram_size = header.datagram_size;
        let size = Some(usize::from(datagram_size));
        let mut beginning = Vec::with_capacity(frame.len() + 64);
        let body = &frame[header.octets()..];
        let result = decompress(body, source, destination, &self.contexts, size, &mut beginning);
        // A route may stand in headers that are not all in the first fragment.
        if result.is_err() || upper_layer(&beginning).is_err() {
            return false;
        }
        let original = self.passing.is_full().then(|| beginning.clone());
        self.pending_routes.push_back(PendingRoute {
            name,
            incoming,
            datagram_size,
            handle,
            original,
        });
        self.outbox.push(Output::Accepted { handle });
        self.route_clients.push_back(RouteClient::Forwarded);
        self.outbox.push(Output::RouteRequest { beginning, source, handle });
        true
    }

    /// The driver's answer to the oldest question.
    pub(super) fn on_route_reply(
        &mut self,
        now: Instant,
        beginning: &[u8],
        route: Route,
    ) -> Result<(), Rejected> {
        let Some(pending) = self.pending_routes.pop_front() else {
            return Err(Rejected::Gone { what: "route", why: "no first fragment waits for one" });
        };
        let PendingRoute { name, handle, .. } = pending;
        match route {
            Route::None => self.reassembly.remember(name, now),
            Route::Via(next_hop) if !self.passing.is_full() => {
                let outgoing = Label { neighbour: next_hop, tag: self.next_datagram_tag() };
                self.begin_passage(now, &pending, beginning, outgoing);
            }
            Route::Via(_) => {
                self.counters.fallbacks_full += 1;
                match &pending.original {
                    Some(original) => self.place_first(now, name, original, handle),
                    None => self.drop_packet(handle, DropReason::BufferFull),
                }
            }
            Route::Here => self.place_first(now, name, beginning, handle),
        }
        Ok(())
    }

    fn place_first(&mut self, now: Instant, name: Name, data: &[u8], handle: Handle) {
        let room = self.room();
        let outcome = self.reassembly.place(now, name, 0, data, handle, room);
        self.on_outcome(name.source(), name.is_broadcast(), outcome);
    }

    fn begin_passage(
        &mut self,
        now: Instant,
        pending: &PendingRoute,
        beginning: &[u8],
        outgoing: Label,
    ) {
        let &PendingRoute { name, incoming, handle, .. } = pending;
        let mut transit = TransitDatagram::new(pending.datagram_size);
        let frames = match self.onward_frames(&mut transit, beginning, outgoing) {
            Ok(frames) => frames,
            Err(reason) => {
                self.reassembly.remember(name, now);
                self.drop_packet(handle, reason);
                return;
            }
        };
        self.counters.refragmented += u64::from(frames.len() > 1);
        transit.in_flight = frames.len();
        let complete = transit.is_complete();
        let opened = self.passing.open(now, incoming, outgoing, handle, transit);
        debug_assert!(opened.is_ok(), "asked for once, and answered while an entry was free");
        let mut left = frames.len();
        for payload in frames {
            left -= 1;
            self.send_forwarded(payload, outgoing, handle, complete && left == 0);
        }
    }

    /// The first fragment as it goes on; `passage` then knows of its octets.
    fn onward_frames(
        &self,
        transit: &mut TransitDatagram,
        beginning: &[u8],
        outgoing: Label,
    ) -> Result<Vec<Vec<u8>>, DropReason> {
        let link = Onward {
            here: self.address,
            next_hop: outgoing.neighbour,
            tag: outgoing.tag,
            contexts: &self.contexts,
            frame_payload: self.config.frame_payload,
        };
        if !transit.claim(0, beginning.len()) {
            return Err(DropReason::Malformed);
        }
        let frames = first_frames(beginning, transit.datagram_size, &link)
            .map_err(|_| DropReason::Malformed)?
            .ok_or(DropReason::TooLarge)?;
        let buffer_overhead = self.buffer_overhead().fragment;
        let octets: usize = frames.iter().map(|frame| frame.len() + buffer_overhead).sum();
        if octets > self.room() { Err(DropReason::BufferFull) } else { Ok(frames) }
    }

    fn relay_next(&mut self, now: Instant, incoming: Label, header: FragmentHeader, data: &[u8]) {
        let room = self.room();
        let Some(entry) = self.passing.find(incoming) else { return };
        let (outgoing, handle) = (entry.outgoing, entry.handle);
        let transit = &mut entry.state;
        let offset = usize::from(header.offset);
        if header.datagram_size != transit.datagram_size || !transit.claim(offset, data.len()) {
            self.counters.fragments_refused += 1;
            return;
        }
        let payload = next_frame(header, data, outgoing.tag);
        if payload.len() > room {
            self.end_passage(now, incoming, End::Dropped(DropReason::BufferFull));
            return;
        }
        transit.in_flight += 1;
        let complete = transit.is_complete();
        self.send_forwarded(payload, outgoing, handle, complete);
    }

    fn send_forwarded(&mut self, payload: Vec<u8>, to: Label, handle: Handle, last: bool) {
        self.counters.fragments_forwarded += 1;
        self.frames.push(handle, Part::Forwarded, payload.len() + self.buffer_overhead().fragment);
        let destination = Some(to.neighbour);
        self.outbox.push(Output::Frame { payload, destination, handle, last });
    }

    /// The MAC is done with a fragment that passed through.
    pub(super) fn on_forwarded(&mut self, now: Instant, handle: Handle, delivered: bool) {
        let waits = |transit: &TransitDatagram| transit.in_flight > 0;
        // Without an entry the datagram has ended while its frame was in the queue.
        let Some(entry) = self.passing.find_handle(handle, waits) else { return };
        let incoming = entry.incoming;
        let transit = &mut entry.state;
        transit.in_flight -= 1;
        transit.lossy |= !delivered;
        let over = transit.is_complete() && transit.in_flight == 0;
        // One lost fragment makes the others useless.
        if transit.lossy && (over || self.config.abandons()) {
            self.end_passage(now, incoming, End::Failed);
        } else if over {
            self.end_passage(now, incoming, End::PassedOn);
        }
    }

    /// Forgets a datagram but for its late fragments.
    fn end_passage(&mut self, now: Instant, incoming: Label, end: End) {
        if let Some(entry) = self.passing.close(incoming) {
            self.end_copy(entry.handle, Part::Forwarded, end);
            let Label { neighbour, tag } = incoming;
            let size = entry.state.datagram_size;
            self.reassembly.remember(Name::unicast(neighbour, self.address, size, tag), now);
        }
    }
}
