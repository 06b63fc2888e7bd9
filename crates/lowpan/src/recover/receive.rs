//! The reassembling end: puts recoverable fragments together and acknowledges them (RFC 8931 s6), bounded in
//! datagrams, octets and time.
//!
//! ```text
//!   first fragment --> Open --all octets there--> Complete --linger--> forgotten
//!                       |  \--abort, contradiction--> forgotten
//!                       |\--evicted--> forgotten, NULL bitmap
//!                       \--nothing new for the timeout--> forgotten, NULL bitmap
//! ```
//!
//! A datagram that is complete stays known for a while, so that a fragment whose acknowledgement was lost is
//! acknowledged again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_reassembly::{self as reassembly, Arrival, Entry, Newcomer, PartialDatagram, Table};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::lowpan::rfrag::{Bitmap, FRAGMENTS_MAX, Part, Rfrag, RfragAck};

use crate::params::Config;

/// What names a datagram on a link: who sent the frame, and its tag (RFC 8931 s6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    source: Eui64,
    datagram_tag: u8,
}

impl reassembly::Name for Name {
    type Source = Eui64;

    fn source(&self) -> Eui64 {
        self.source
    }
}

/// How far a datagram has come; its arrivals have sequence numbers.
#[derive(Debug)]
enum State {
    Open { partial: PartialDatagram<u8>, handle: Handle },
    Complete { datagram_size: usize },
}

/// One datagram.
#[derive(Debug)]
struct Datagram {
    state: State,
    /// A fragment with E came since the last acknowledgement.
    congestion: bool,
}

/// What a fragment did to its datagram.
enum TakenIn {
    Nothing,
    News,
    Completes(Vec<u8>, Handle),
    /// Its octets or sizes do not agree with those before it; nothing says which are true.
    Contradicts(Handle),
}

impl Datagram {
    /// The packet, while it is incomplete.
    const fn open(&self) -> Option<Handle> {
        match self.state {
            State::Open { handle, .. } => Some(handle),
            State::Complete { .. } => None,
        }
    }

    fn take_in(&mut self, fragment: &Received<'_>) -> TakenIn {
        self.congestion |= fragment.header.congestion;
        let State::Open { partial, handle } = &mut self.state else { return TakenIn::Nothing };
        let handle = *handle;
        let Ok(is_new) = place(partial, fragment) else { return TakenIn::Contradicts(handle) };
        if !partial.is_whole() {
            return if is_new { TakenIn::News } else { TakenIn::Nothing };
        }
        let datagram = core::mem::take(partial).into_bytes();
        self.state = State::Complete { datagram_size: datagram.len() };
        TakenIn::Completes(datagram, handle)
    }

    /// All fragments that have arrived.
    fn bitmap(&self) -> Bitmap {
        let State::Open { partial, .. } = &self.state else { return Bitmap::FULL };
        let mut bitmap = Bitmap::NULL;
        for arrival in partial.arrived() {
            bitmap.insert(arrival.tag);
        }
        bitmap
    }
}

impl reassembly::Datagram for Datagram {
    fn octets(&self) -> usize {
        match &self.state {
            State::Open { partial, .. } => partial.octets(),
            State::Complete { .. } => 0,
        }
    }
    fn is_open(&self) -> bool {
        self.open().is_some()
    }
}

/// What became of a fragment, or of a deadline.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Kept, or not needed.
    Waiting,
    /// The compressed datagram is whole.
    Complete {
        /// The datagram, from its dispatch on.
        datagram: Vec<u8>,
        /// Names the packet.
        handle: Handle,
    },
    /// The datagram ended here without arriving.
    Dropped {
        /// Names the packet.
        handle: Handle,
        /// Why.
        reason: DropReason,
    },
    /// A later fragment of a datagram that is not known here.
    Unknown,
}

/// A fragment as it came from a link.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its header.
    pub header: Rfrag,
    /// What is behind the header.
    pub data: &'a [u8],
    /// Who sent the frame.
    pub source: Eui64,
    /// Names the packet that it is a part of.
    pub handle: Handle,
    /// The sender is known to hear this node.
    pub is_proven: bool,
}

/// All datagrams of recoverable fragments that end here.
#[derive(Debug)]
pub struct Receiving {
    table: Table<Name, Datagram>,
    complete_max: usize,
    linger: Duration,
    matches_first_fragments: bool,
    /// Datagrams that gave up their places to others.
    evicted: VecDeque<(Handle, Name)>,
}

impl Receiving {
    /// Octets of state for one datagram without its octets, all 32 fragments set aside.
    pub const STATIC_OCTETS: usize =
        size_of::<Entry<Name, Datagram>>() + FRAGMENTS_MAX * size_of::<Arrival<u8>>();

    /// No datagram yet; `config` sets the bounds.
    pub fn new(config: &Config) -> Self {
        let choices = config.choices();
        Self {
            table: Table::new(config.reassembly_limits(), choices.recovery),
            complete_max: config.complete_max(),
            linger: config.recovery.linger,
            matches_first_fragments: choices.matches_first_fragments,
            evicted: VecDeque::new(),
        }
    }

    /// Octets held in buffers.
    pub const fn octets(&self) -> usize {
        self.table.octets()
    }
    /// How many datagrams are being put together.
    pub const fn datagrams(&self) -> usize {
        self.table.taken()
    }
    /// The datagrams that are being put together.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.table.iter().filter_map(|entry| entry.datagram.open())
    }
    /// True when a fragment belongs to a datagram that is known here. A complete datagram does not keep its tag
    /// from another of another size. GNRC never knows a first fragment: it looks for the size that this tells, and has
    /// put that of the decompressed datagram in its place.
    pub fn expects(&self, source: Eui64, header: &Rfrag) -> bool {
        if !self.matches_first_fragments && matches!(header.part, Part::First { .. }) {
            return false;
        }
        let name = Name { source, datagram_tag: header.datagram_tag };
        let known = self.table.position(&name).map(|at| &self.table.get(at).datagram.state);
        known.is_some_and(|known| match (known, header.part) {
            (State::Complete { datagram_size: known }, Part::First { datagram_size }) => {
                *known == usize::from(datagram_size)
            }
            _ => true,
        })
    }
    /// True while no datagram more can be put together.
    pub const fn is_full(&self) -> bool {
        self.table.is_full()
    }
    /// When an entry has to be looked at.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.table.next_deadline()
    }

    /// Takes in a fragment, while the layer has `room` octets for another datagram; the acknowledgement is for
    /// the fragment's source.
    pub fn accept(
        &mut self,
        now: Instant,
        fragment: &Received<'_>,
        room: usize,
    ) -> (Outcome, Option<RfragAck>) {
        let Received { header, source, .. } = *fragment;
        let name = Name { source, datagram_tag: header.datagram_tag };
        let at = self.table.position(&name);
        match (header.part, at) {
            (Part::Abort, at) => self.abort(at, &header),
            (Part::First { .. }, Some(at)) if self.expects(source, &header) => {
                self.take_in(now, at, fragment)
            }
            (Part::First { datagram_size }, at) => {
                if let Some(at) = at.filter(|_| self.matches_first_fragments) {
                    self.table.remove(at);
                }
                self.open(now, name, datagram_size, fragment, room)
            }
            (Part::Next { .. }, Some(at)) => self.take_in(now, at, fragment),
            (Part::Next { .. }, None) => (Outcome::Unknown, Some(null(header.datagram_tag))),
        }
    }

    /// RFC 8931 s6.3: a pseudo fragment takes the datagram down; a NULL bitmap confirms it when asked.
    fn abort(&mut self, at: Option<usize>, header: &Rfrag) -> (Outcome, Option<RfragAck>) {
        let ack = header.ack_request.then(|| null(header.datagram_tag));
        let handle = at.and_then(|at| self.table.remove(at).datagram.open());
        match handle {
            Some(handle) => (Outcome::Dropped { handle, reason: DropReason::GaveUp }, ack),
            None => (Outcome::Waiting, ack),
        }
    }

    fn open(
        &mut self,
        now: Instant,
        name: Name,
        datagram_size: u16,
        fragment: &Received<'_>,
        room: usize,
    ) -> (Outcome, Option<RfragAck>) {
        let &Received { handle, is_proven, .. } = fragment;
        let size = usize::from(datagram_size);
        let newcomer = Newcomer { name, octets: size, room, is_proven };
        let Some(evicted) = self.table.admit(now, &newcomer) else {
            // RFC 8931 s6.3: an end that is out of buffers SHOULD say so with a NULL bitmap.
            let outcome = Outcome::Dropped { handle, reason: DropReason::BufferFull };
            return (outcome, Some(null(name.datagram_tag)));
        };
        let of = |entry: Entry<Name, Datagram>| Some((entry.datagram.open()?, entry.name));
        self.evicted.extend(evicted.into_iter().filter_map(of));
        let state = State::Open { partial: PartialDatagram::new(size), handle };
        let at = self.table.insert(now, name, Datagram { state, congestion: false });
        self.take_in(now, at, fragment)
    }

    /// Takes one datagram that gave up its place to another, with the NULL acknowledgement that takes down
    /// its path (RFC 8931 s6.3).
    pub fn take_evicted(&mut self) -> Option<(Handle, Eui64, RfragAck)> {
        let (handle, Name { source, datagram_tag }) = self.evicted.pop_front()?;
        Some((handle, source, null(datagram_tag)))
    }

    fn take_in(
        &mut self,
        now: Instant,
        at: usize,
        fragment: &Received<'_>,
    ) -> (Outcome, Option<RfragAck>) {
        let header = &fragment.header;
        if fragment.is_proven {
            self.table.prove(at);
        }
        let linger = now + self.linger;
        let taken = self.table.update(at, |entry| {
            let taken = entry.datagram.take_in(fragment);
            if matches!(taken, TakenIn::Completes(..)) {
                entry.deadline = linger;
            }
            taken
        });
        let outcome = match taken {
            TakenIn::Contradicts(handle) => {
                self.table.remove(at);
                let outcome = Outcome::Dropped { handle, reason: DropReason::Malformed };
                return (outcome, Some(null(header.datagram_tag)));
            }
            TakenIn::Completes(datagram, handle) => Outcome::Complete { datagram, handle },
            TakenIn::News => {
                // Only news prolong the wait, so 32 fragments at most can.
                self.table.on_news(at, now);
                Outcome::Waiting
            }
            TakenIn::Nothing => Outcome::Waiting,
        };
        let ack = header.ack_request.then(|| self.acknowledge(at));
        self.bound_complete();
        (outcome, ack)
    }

    /// RFC 8931 s6: upon X the reassembling end MUST acknowledge all it has received.
    fn acknowledge(&mut self, at: usize) -> RfragAck {
        self.table.update(at, |Entry { name, datagram, .. }| {
            // RFC 8931 s6: the end MUST echo E, at most once, in the next acknowledgement.
            let congestion = core::mem::take(&mut datagram.congestion);
            RfragAck { congestion, datagram_tag: name.datagram_tag, bitmap: datagram.bitmap() }
        })
    }

    /// Forgets the oldest of too many complete datagrams.
    fn bound_complete(&mut self) {
        let is_complete = |entry: &Entry<Name, Datagram>| entry.datagram.open().is_none();
        let complete = self.table.iter().filter(|entry| is_complete(entry)).count();
        let oldest = self.table.iter().position(is_complete);
        if let Some(oldest) = oldest.filter(|_| complete > self.complete_max) {
            self.table.remove(oldest);
        }
    }

    /// Takes one datagram whose time is over, with the NULL acknowledgement that takes down its path.
    pub fn expire(&mut self, now: Instant) -> Option<(Handle, Eui64, RfragAck)> {
        while let Some(entry) = self.table.expire(now) {
            let Name { source, datagram_tag } = entry.name;
            if let Some(handle) = entry.datagram.open() {
                return Some((handle, source, null(datagram_tag)));
            }
        }
        None
    }
}

/// A fragment that does not agree with those before it.
struct Contradiction;

/// Puts a fragment where it belongs; true when it is new.
fn place(
    partial: &mut PartialDatagram<u8>,
    fragment: &Received<'_>,
) -> Result<bool, Contradiction> {
    let Received { header: Rfrag { part, .. }, data, .. } = *fragment;
    let start = usize::from(part.offset());
    let arrival = Arrival { start, end: start + data.len(), tag: part.sequence() };
    let other_size = match part {
        Part::First { datagram_size } => usize::from(datagram_size) != partial.octets(),
        Part::Next { .. } | Part::Abort => false,
    };
    if other_size || arrival.end > partial.octets() {
        return Err(Contradiction);
    }
    for other in partial.arrived() {
        let same_sequence = other.tag == arrival.tag;
        if !partial.agrees(other, start, data) || same_sequence && *other != arrival {
            return Err(Contradiction);
        }
        if *other == arrival {
            return Ok(false);
        }
    }
    partial.insert(start, data, arrival.tag);
    Ok(true)
}

/// The acknowledgement that gives a datagram up.
pub const fn null(datagram_tag: u8) -> RfragAck {
    RfragAck { congestion: false, datagram_tag, bitmap: Bitmap::NULL }
}
