//! Mode FF: fragments go on as they come (RFC 8930 s5), and never reach the IPv6 layer.
//!
//! ```text
//!   first fragment, unknown --RouteRequest--> driver --RouteReply--> for us    : reassembled here
//!                                                                    next hop  : entry opened, fragment goes on
//!                                                                    none      : forgotten, the driver counts it
//!   later fragment with an entry   : goes on under our tag
//!   later fragment without one, or the virtual reassembly buffer is full: reassembled here, then fragmented again
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::upper_layer;
use lowmesh_wire::lowpan::fragment::FragmentHeader;
use lowmesh_wire::lowpan::{Contexts, Extent, decompress};

use crate::compress::settled;
use crate::event::{Counters, Route};
use crate::forward::{Label, VirtualReassembly};
use crate::frames::End;
use crate::params::{Config, ROUTE_REQUESTS};
use crate::reassemble::{Fragment, Name, Reassembly};
use crate::transit::{Onward, TransitDatagram, first_frames, next_frame};

/// A first fragment whose route the driver was asked for.
#[derive(Debug)]
struct PendingRoute {
    name: Name,
    incoming: Label,
    datagram_size: u16,
    extent: Extent,
    handle: Handle,
    is_proven: bool,
    /// The fragment as it came, kept when there is no entry left for it.
    original: Option<Vec<u8>>,
}

/// What the relay wants done.
#[derive(Debug)]
pub(super) enum Output {
    /// The first fragment of a packet was taken over.
    Accepted { handle: Handle },
    /// Where does the packet go that begins so?
    RouteRequest { beginning: Vec<u8>, source: Eui64, handle: Handle },
    /// Send a fragment; `last` if no other of its packet follows.
    Frame { payload: Vec<u8>, next_hop: Eui64, handle: Handle, last: bool },
    /// A first fragment stays here for reassembly.
    Stays { name: Name, data: Vec<u8>, extent: Extent, handle: Handle, is_proven: bool },
    /// A packet of which no fragment went on ends here.
    Dropped { handle: Handle, reason: DropReason },
    /// A packet that passed is over.
    Ended { handle: Handle, end: End },
}

/// What the layer lends for one call.
pub(super) struct Lent<'a> {
    /// Octets that the packet buffer has left.
    pub room: usize,
    /// The tag of the next datagram.
    pub datagram_tag: &'a mut u16,
    pub reassembly: &'a mut Reassembly,
}

/// RFC 4944 s5.3: the sender increments datagram_tag for successive datagrams; RFC 8930 s5: for those that
/// pass through as well, so that no two on the air have the same.
pub(super) const fn take_tag(next: &mut u16) -> u16 {
    let tag = *next;
    *next = tag.wrapping_add(1);
    tag
}

/// The datagrams whose fragments pass through.
#[derive(Debug)]
pub(super) struct Relay {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    passing: VirtualReassembly<TransitDatagram>,
    pending_routes: VecDeque<PendingRoute>,
    counters: Counters,
    outbox: Outbox<Output>,
}

impl Relay {
    pub fn new(address: Eui64, contexts: Contexts, config: Config) -> Self {
        let timeout = config.reassembly_limits().timeout;
        Self {
            address,
            contexts,
            config,
            passing: VirtualReassembly::new(config.forwarded_datagrams, timeout),
            pending_routes: VecDeque::new(),
            counters: Counters::default(),
            outbox: Outbox::new(),
        }
    }

    /// What both ends of a link know from now on.
    pub fn set_contexts(&mut self, contexts: Contexts) {
        self.contexts = contexts;
    }
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    pub fn next_deadline(&self) -> Option<Instant> {
        self.passing.next_deadline()
    }
    /// Datagrams whose fragments pass through now.
    pub fn len(&self) -> usize {
        self.passing.iter().count()
    }
    /// The packets that pass through or wait for a route, once for each copy.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let passing = self.passing.iter().map(|entry| entry.handle);
        passing.chain(self.pending_routes.iter().map(|pending| pending.handle))
    }
    /// What was counted of fragments that pass.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Lets a fragment pass, or asks where to; false if it has to be reassembled.
    pub fn on_fragment(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        header: FragmentHeader,
        lent: &mut Lent<'_>,
    ) -> bool {
        let incoming = Label { neighbour: fragment.source, tag: header.datagram_tag };
        if self.passing.find(incoming).is_some() {
            // A copy of the first fragment is of no use, and the entry knows only one size.
            if header.offset != 0 {
                let data = &fragment.frame[header.octets()..];
                self.on_next(now, incoming, header, data, lent);
            }
            return true;
        }
        if self.pending_routes.iter().any(|pending| pending.incoming == incoming) {
            // The driver answers before the next frame; what comes earlier has no place yet.
            self.counters.fragments_refused += 1;
            return true;
        }
        let name = Name::of(fragment, header);
        let known = lent.reassembly.knows(&name, now);
        if header.offset != 0 || known {
            self.counters.fallbacks_order += u64::from(!known);
            return false;
        }
        let has_no_buffer =
            self.config.choices().passes_only_with_buffer && lent.reassembly.is_full();
        !has_no_buffer && self.ask(fragment, header, name, incoming)
    }

    /// Asks where a first fragment goes; false if that cannot be told from it.
    fn ask(
        &mut self,
        fragment: &Fragment<'_>,
        header: FragmentHeader,
        name: Name,
        incoming: Label,
    ) -> bool {
        let &Fragment { frame, source, destination, handle, is_proven } = fragment;
        if self.pending_routes.len() >= ROUTE_REQUESTS {
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
            extent: Extent::of(body),
            handle,
            is_proven,
            original,
        });
        self.outbox.push(Output::Accepted { handle });
        self.outbox.push(Output::RouteRequest { beginning, source, handle });
        true
    }

    /// The driver's answer to the oldest question.
    pub fn on_route_reply(
        &mut self,
        now: Instant,
        beginning: Vec<u8>,
        route: Route,
        lent: &mut Lent<'_>,
    ) -> Result<(), Rejected> {
        let Some(pending) = self.pending_routes.pop_front() else {
            return Err(Rejected::Gone { what: "route", why: "no first fragment waits for one" });
        };
        let PendingRoute { name, extent, handle, is_proven, .. } = pending;
        match route {
            Route::None => lent.reassembly.remember(name, now),
            Route::Via(neighbour) if !self.passing.is_full() => {
                let outgoing = Label { neighbour, tag: take_tag(lent.datagram_tag) };
                self.open_entry(now, &pending, beginning, outgoing, lent);
            }
            Route::Via(_) => {
                self.counters.fallbacks_full += 1;
                self.outbox.push(match pending.original {
                    Some(data) => Output::Stays { name, data, extent, handle, is_proven },
                    None => Output::Dropped { handle, reason: DropReason::BufferFull },
                });
            }
            Route::Here => {
                let data = beginning;
                self.outbox.push(Output::Stays { name, data, extent, handle, is_proven });
            }
        }
        Ok(())
    }

    fn open_entry(
        &mut self,
        now: Instant,
        pending: &PendingRoute,
        beginning: Vec<u8>,
        outgoing: Label,
        lent: &mut Lent<'_>,
    ) {
        let &PendingRoute { name, incoming, extent, handle, .. } = pending;
        let mut transit = TransitDatagram::new(pending.datagram_size);
        let to = (outgoing, extent);
        let frames = match self.onward_frames(&mut transit, beginning, to, lent.room) {
            Ok(frames) => frames,
            Err(reason) => {
                lent.reassembly.remember(name, now);
                self.outbox.push(Output::Dropped { handle, reason });
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

    /// The first fragment as it goes on; `transit` then knows of its octets.
    fn onward_frames(
        &self,
        transit: &mut TransitDatagram,
        beginning: Vec<u8>,
        (outgoing, extent): (Label, Extent),
        room: usize,
    ) -> Result<Vec<Vec<u8>>, DropReason> {
        let link = Onward {
            here: self.address,
            next_hop: outgoing.neighbour,
            tag: outgoing.tag,
            contexts: &self.contexts,
            extent,
            frame_payload: self.config.frame_payload,
        };
        if !transit.claim(0, beginning.len()) {
            return Err(DropReason::Malformed);
        }
        let octets = beginning.len();
        let beginning = settled(beginning, extent);
        transit.shrink = (octets - beginning.len()) as u16;
        let frames = first_frames(&beginning, transit.datagram_size - transit.shrink, &link)
            .map_err(|_| DropReason::Malformed)?
            .ok_or(DropReason::TooLarge)?;
        let overhead = self.config.choices().overhead.fragment;
        let octets: usize = frames.iter().map(|frame| frame.len() + overhead).sum();
        if octets > room { Err(DropReason::BufferFull) } else { Ok(frames) }
    }

    fn on_next(
        &mut self,
        now: Instant,
        incoming: Label,
        header: FragmentHeader,
        data: &[u8],
        lent: &mut Lent<'_>,
    ) {
        let Some(entry) = self.passing.find(incoming) else { return };
        let (outgoing, handle) = (entry.outgoing, entry.handle);
        let transit = &mut entry.state;
        let offset = usize::from(header.offset);
        if header.datagram_size != transit.datagram_size || !transit.claim(offset, data.len()) {
            self.counters.fragments_refused += 1;
            return;
        }
        let payload = next_frame(header, data, outgoing.tag, transit.shrink);
        if payload.len() > lent.room {
            let end = End::Dropped(DropReason::BufferFull);
            self.close_entry(now, incoming, end, lent.reassembly);
            return;
        }
        transit.in_flight += 1;
        let complete = transit.is_complete();
        self.send_forwarded(payload, outgoing, handle, complete);
    }

    fn send_forwarded(&mut self, payload: Vec<u8>, to: Label, handle: Handle, last: bool) {
        self.counters.fragments_forwarded += 1;
        self.outbox.push(Output::Frame { payload, next_hop: to.neighbour, handle, last });
    }

    /// The MAC is done with a fragment that passed through.
    pub fn on_fragment_done(
        &mut self,
        now: Instant,
        handle: Handle,
        result: Result<(), DropReason>,
        reassembly: &mut Reassembly,
    ) {
        let waits = |transit: &TransitDatagram| transit.in_flight > 0;
        // Without an entry the datagram has ended while its frame was in the queue.
        let Some(entry) = self.passing.find_handle(handle, waits) else { return };
        let incoming = entry.incoming;
        let transit = &mut entry.state;
        transit.in_flight -= 1;
        transit.lost = transit.lost.or(result.err());
        let lost = transit.lost;
        let over = transit.is_complete() && transit.in_flight == 0;
        // One lost fragment makes the others useless.
        match lost {
            Some(reason) if over || self.config.abandons() => {
                self.close_entry(now, incoming, End::Failed(reason), reassembly);
            }
            None if over => self.close_entry(now, incoming, End::PassedOn, reassembly),
            Some(_) | None => {}
        }
    }

    /// Forgets a datagram but for its late fragments.
    fn close_entry(
        &mut self,
        now: Instant,
        incoming: Label,
        end: End,
        reassembly: &mut Reassembly,
    ) {
        if let Some(entry) = self.passing.close(incoming) {
            self.outbox.push(Output::Ended { handle: entry.handle, end });
            let Label { neighbour, tag } = incoming;
            let size = entry.state.datagram_size;
            reassembly.remember(Name::unicast(neighbour, self.address, size, tag), now);
        }
    }

    /// Ends the datagrams whose time is over.
    pub fn on_deadline(&mut self, now: Instant) {
        while let Some(entry) = self.passing.expire(now) {
            let end = End::Dropped(DropReason::ReassemblyTimeout);
            self.outbox.push(Output::Ended { handle: entry.handle, end });
        }
    }
}
