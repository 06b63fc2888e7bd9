//! The forwarder in a node: opens paths, lets fragments go on and acknowledgements back (RFC 8931 s6.1, s6.2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::upper_layer;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};
use lowmesh_wire::lowpan::{Contexts, Extent};

use super::super::Received;
use super::super::path::{Link, Path, beginning, first_onward, next_onward};
use super::outgoing::Outgoing;
use super::senders::Senders;
use super::{Counters, Output};
use crate::compress::settled;
use crate::forward::{Label, VirtualReassembly};
use crate::params::{Config, FragmentMode, ROUTE_REQUESTS};

/// A first fragment whose route the driver was asked for.
#[derive(Debug)]
pub(super) struct PendingRoute {
    header: Rfrag,
    data: Vec<u8>,
    source: Eui64,
    size: usize,
    handle: Handle,
    is_proven: bool,
}

impl PendingRoute {
    /// How the fragment came.
    pub fn incoming(&self) -> Label {
        Label { neighbour: self.source, tag: self.header.datagram_tag.into() }
    }
    /// The fragment as it came.
    pub fn received(&self) -> Received<'_> {
        let &Self { header, ref data, source, handle, is_proven, .. } = self;
        Received { header, data, source, handle, is_proven }
    }
}

/// The datagrams that pass through.
#[derive(Debug)]
pub(super) struct Forwarder {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    paths: VirtualReassembly<Path>,
    pending_routes: VecDeque<PendingRoute>,
    counters: Counters,
}

impl Forwarder {
    pub fn new(address: Eui64, contexts: Contexts, config: Config) -> Self {
        let timeout = config.reassembly_limits().timeout;
        Self {
            address,
            contexts,
            config,
            paths: VirtualReassembly::new(config.forwarded_datagrams, timeout),
            pending_routes: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What both ends of a link know from now on.
    pub fn set_contexts(&mut self, contexts: Contexts) {
        self.contexts = contexts;
    }
    pub const fn paths(&self) -> &VirtualReassembly<Path> {
        &self.paths
    }
    pub fn next_deadline(&self) -> Option<Instant> {
        self.paths.next_deadline()
    }
    /// What was counted of fragments that pass.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// The packets that pass and are not through.
    pub fn open(&self) -> impl Iterator<Item = Handle> + '_ {
        let open = self.paths.iter().filter(|entry| !entry.state.is_complete);
        open.map(|entry| entry.handle)
    }
    /// The packets that wait for a route.
    pub fn asked(&self) -> impl Iterator<Item = Handle> + '_ {
        self.pending_routes.iter().map(|pending| pending.handle)
    }
    /// True when a path takes the fragments under this label.
    pub fn knows(&self, incoming: Label) -> bool {
        self.paths.iter().any(|entry| entry.incoming == incoming)
    }

    /// Asks where a first fragment goes; false if that cannot be told from it.
    pub fn ask(&mut self, fragment: &Received<'_>, has_buffer: bool, out: &mut Outgoing) -> bool {
        let &Received { header, data, source, handle, is_proven } = fragment;
        let has_no_buffer = self.config.choices().passes_only_with_buffer && !has_buffer;
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
            is_proven,
        });
        out.tell(Output::Accepted { handle });
        out.tell(Output::RouteRequest { beginning, source, handle });
        true
    }

    /// The oldest fragment that waits for a route.
    pub fn take_pending(&mut self) -> Option<PendingRoute> {
        self.pending_routes.pop_front()
    }

    /// Opens a path, or finds the one there is, and lets the first fragment go on; false if it has to stay here.
    pub fn forward_first(
        &mut self,
        now: Instant,
        pending: &PendingRoute,
        beginning: &[u8],
        next_hop: Eui64,
        senders: &mut Senders,
        out: &mut Outgoing,
    ) -> bool {
        let &PendingRoute { size, handle, .. } = pending;
        let header = marked(&pending.header, out);
        let incoming = pending.incoming();
        let known = self.paths.find(incoming).map(|entry| entry.outgoing);
        let is_complete = self.paths.find(incoming).is_some_and(|entry| entry.state.is_complete);
        let same = known.filter(|outgoing| outgoing.neighbour == next_hop);
        if known.is_some() && same.is_none() {
            // RFC 8931 s6: the first fragment, sent again, establishes a new path.
            self.close(incoming, DropReason::NeighbourLost, out);
        }
        if same.is_none() && self.paths.is_full() {
            self.close_complete_path();
        }
        let label = |tag: u8| Label { neighbour: next_hop, tag: tag.into() };
        let outgoing = same.or_else(|| senders.free_tag(next_hop, &self.paths).map(label));
        let Some(outgoing) = outgoing else {
            self.counters.fallbacks += 1;
            return false;
        };
        let link = Link { source: self.address, destination: next_hop, contexts: &self.contexts };
        let tag = outgoing.tag as u8;
        let payload = self.config.frame_payload;
        // With 6LoRH an entry of the source route may be consumed here; offsets count the compressed form.
        let extent = Extent::of(&pending.data);
        let onward_beginning = settled(beginning.to_vec(), extent);
        let size = size - (beginning.len() - onward_beginning.len());
        let onward = first_onward(&header, &onward_beginning, (size, extent), tag, link, payload);
        let state = onward.as_ref().map(|(_, shift)| Path { shift: *shift, is_complete: false });
        let opened = match (same, state) {
            (Some(_), Some(_)) => {
                // The copy of a fragment is no second copy of the packet.
                out.end(handle, None);
                true
            }
            (None, Some(state)) => self.paths.open(now, incoming, outgoing, handle, state).is_ok(),
            (_, None) => false,
        };
        let Some((frame, _)) = onward.filter(|_| opened) else {
            self.counters.fallbacks += 1;
            return false;
        };
        self.count_forwarded(&pending.header, &header);
        out.push(frame, next_hop, name(handle, is_complete && same.is_some()));
        true
    }

    /// Lets a later fragment go on along its path.
    pub fn forward_next(
        &mut self,
        now: Instant,
        incoming: Label,
        fragment: &Received<'_>,
        out: &mut Outgoing,
    ) {
        let Some(entry) = self.paths.find(incoming) else { return };
        let (to, handle, path) = (entry.outgoing, entry.handle, entry.state);
        let header = marked(&fragment.header, out);
        let Some(frame) = next_onward(&header, fragment.data, to.tag as u8, path.shift) else {
            return;
        };
        if header.part == Part::Abort && !header.ack_request {
            // RFC 8931 s6.3: the path and all associated state are destroyed.
            self.close(incoming, DropReason::GaveUp, out);
            out.push(frame, to.neighbour, Handle::NONE);
            return;
        }
        if !path.is_complete {
            self.paths.refresh(incoming, now);
        }
        self.count_forwarded(&fragment.header, &header);
        out.push(frame, to.neighbour, name(handle, path.is_complete));
    }

    fn count_forwarded(&mut self, before: &Rfrag, after: &Rfrag) {
        self.counters.forwarded += 1;
        self.counters.marked += u64::from(after.congestion && !before.congestion);
    }

    /// Ends the copy that passed, unless it is through.
    pub fn close(&mut self, incoming: Label, reason: DropReason, out: &mut Outgoing) {
        if let Some(entry) = self.paths.close(incoming)
            && !entry.state.is_complete
        {
            out.end_with_frames(entry.handle, Some(reason));
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
    pub fn pass_back(&mut self, now: Instant, ack: RfragAck, from: Eui64, out: &mut Outgoing) {
        let outgoing = Label { neighbour: from, tag: ack.datagram_tag.into() };
        // RFC 8931 s6.2: without a path for it the acknowledgement MUST be dropped silently.
        let Some(entry) = self.paths.find_outgoing(outgoing) else { return };
        let (back, handle, was_complete) = (entry.incoming, entry.handle, entry.state.is_complete);
        match ack.bitmap {
            Bitmap::FULL if !was_complete => {
                // RFC 8931 s6.2: a short timer, upon which the path is destroyed.
                entry.state.is_complete = true;
                self.paths.expire_at(back, now + self.config.linger());
                out.end_with_frames(handle, None);
            }
            Bitmap::FULL => {}
            Bitmap::NULL => self.close(back, DropReason::Reset, out),
            _ if was_complete => {}
            _ => self.paths.refresh(back, now),
        }
        out.acknowledge(back.neighbour, RfragAck { datagram_tag: back.tag as u8, ..ack });
    }

    /// Ends the copies whose time is over.
    pub fn expire(&mut self, now: Instant, out: &mut Outgoing) {
        while let Some(entry) = self.paths.expire(now) {
            if !entry.state.is_complete {
                out.end_with_frames(entry.handle, Some(DropReason::ReassemblyTimeout));
            }
        }
    }
}

/// The header of a fragment that passes: marked when the queues are long.
fn marked(header: &Rfrag, out: &Outgoing) -> Rfrag {
    // RFC 8931 s5.1: E is set by routers where the fragment meets congestion.
    Rfrag { congestion: header.congestion || out.is_congested(), ..*header }
}

/// The name that a fragment goes on under: none when its packet is through, so that it is no copy of it.
const fn name(handle: Handle, is_complete: bool) -> Handle {
    if is_complete { Handle::NONE } else { handle }
}
