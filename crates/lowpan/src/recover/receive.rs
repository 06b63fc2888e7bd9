//! The reassembling end: puts recoverable fragments together and acknowledges them (RFC 8931 s6), bounded in
//! datagrams, octets and time.
//!
//! ```text
//!   first fragment --> Open --all octets there--> Complete --linger--> forgotten
//!                       |  \--abort, contradiction--> forgotten
//!                       |\--its place is needed (`eviction`)--> forgotten, NULL bitmap
//!                       \--nothing new for the timeout--> forgotten, NULL bitmap
//! ```
//!
//! A datagram that is complete stays known for a while, so that a fragment whose acknowledgement was lost is
//! acknowledged again.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::lowpan::rfrag::{Bitmap, FRAGMENTS_MAX, Part, Rfrag, RfragAck};

use crate::eviction::{Bounds, Held, victims};
use crate::params::{Config, REASSEMBLY_TIMEOUT_MAX, StackProfile};

/// What names a datagram on a link: who sent the frame, and its tag (RFC 8931 s6.1.1).
type Name = (Eui64, u8);

/// A fragment that came: its sequence number, where it begins and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    sequence: u8,
    start: usize,
    end: usize,
}

/// How far a datagram has come.
#[derive(Debug)]
enum State {
    Open { bytes: Vec<u8>, arrivals: Vec<Arrival>, handle: Handle },
    Complete { datagram_size: usize },
}

/// One datagram.
#[derive(Debug)]
struct Entry {
    name: Name,
    state: State,
    /// A fragment with E came since the last acknowledgement.
    congestion: bool,
    deadline: Instant,
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
}

/// All datagrams of recoverable fragments that end here.
#[derive(Debug)]
pub struct Receiving {
    entries: Vec<Entry>,
    octets: usize,
    octets_max: usize,
    buffers_max: usize,
    complete_max: usize,
    timeout: Duration,
    linger: Duration,
    profile: StackProfile,
    /// Datagrams that gave up their places to others.
    evicted: VecDeque<(Handle, Name)>,
}

impl Receiving {
    /// Octets of state for one datagram without its octets, all 32 fragments set aside.
    pub const STATIC_OCTETS: usize = size_of::<Entry>() + FRAGMENTS_MAX * size_of::<Arrival>();

    /// No datagram yet; `config` sets the bounds.
    pub fn new(config: &Config) -> Self {
        Self {
            entries: Vec::new(),
            octets: 0,
            octets_max: config.reassembly_octets,
            buffers_max: config.reassembly_buffers,
            complete_max: config.complete_max(),
            // RFC 4944 s5.3: the reassembly timeout is at most 60 s.
            timeout: config.reassembly_timeout.min(REASSEMBLY_TIMEOUT_MAX),
            linger: config.recovery.linger,
            profile: config.profile,
            evicted: VecDeque::new(),
        }
    }

    /// Octets held in buffers.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// The datagrams that are being put together.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.entries.iter().filter_map(|entry| match entry.state {
            State::Open { handle, .. } => Some(handle),
            State::Complete { .. } => None,
        })
    }
    /// True when a fragment belongs to a datagram that is known here. A complete datagram does not keep its tag
    /// from another of another size. GNRC never knows a first fragment: it looks for the size that this tells, and has
    /// put that of the decompressed datagram in its place.
    pub fn expects(&self, source: Eui64, header: &Rfrag) -> bool {
        if self.profile == StackProfile::RiotGnrc && matches!(header.part, Part::First { .. }) {
            return false;
        }
        let named = |entry: &&Entry| entry.name == (source, header.datagram_tag);
        self.entries.iter().find(named).is_some_and(|entry| match (&entry.state, header.part) {
            (State::Complete { datagram_size: known }, Part::First { datagram_size }) => {
                *known == usize::from(datagram_size)
            }
            _ => true,
        })
    }
    /// True while no datagram more can be put together.
    pub fn is_full(&self) -> bool {
        self.handles().count() >= self.buffers_max
    }
    /// When an entry has to be looked at.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.entries.iter().map(|entry| entry.deadline).min()
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
        let name = (source, header.datagram_tag);
        let at = self.entries.iter().position(|entry| entry.name == name);
        match (header.part, at) {
            (Part::Abort, at) => self.abort(at, &header),
            (Part::First { .. }, Some(at)) if self.expects(source, &header) => {
                self.take_in(now, at, fragment)
            }
            (Part::First { datagram_size }, at) => {
                if let (Some(at), StackProfile::Native) = (at, self.profile) {
                    self.forget(at);
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
        let handle = at.and_then(|at| self.forget(at));
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
        let (size, handle) = (usize::from(datagram_size), fragment.handle);
        if !self.make_place(now, name.0, size, room) {
            // RFC 8931 s6.3: an end that is out of buffers SHOULD say so with a NULL bitmap.
            let outcome = Outcome::Dropped { handle, reason: DropReason::BufferFull };
            return (outcome, Some(null(name.1)));
        }
        self.octets += size;
        let state = State::Open { bytes: vec![0; size], arrivals: Vec::new(), handle };
        let deadline = now + self.timeout;
        self.entries.push(Entry { name, state, congestion: false, deadline });
        self.take_in(now, self.entries.len() - 1, fragment)
    }

    /// True when a datagram may be opened; others may have given up their places for it.
    fn make_place(&mut self, now: Instant, source: Eui64, octets: usize, room: usize) -> bool {
        if self.profile == StackProfile::RiotGnrc {
            return !self.is_full() && octets <= room.min(self.octets_max - self.octets);
        }
        let (buffers, octets_max) = (self.buffers_max, self.octets_max);
        let bounds = Bounds { buffers, octets: octets_max, room, keeps_last: false };
        let newcomer = Held { source, octets, news: now };
        let open: Vec<usize> =
            (0..self.entries.len()).filter(|at| self.held(*at).is_some()).collect();
        let held = open.iter().filter_map(|at| self.held(*at));
        let Some(victims) = victims(held, &newcomer, &bounds, self.timeout) else { return false };
        let mut places: Vec<usize> = victims.into_iter().map(|victim| open[victim]).collect();
        // From the back, so that the other places stay what they are.
        places.sort_unstable();
        for at in places.into_iter().rev() {
            let name = self.entries[at].name;
            if let Some(handle) = self.forget(at) {
                self.evicted.push_back((handle, name));
            }
        }
        true
    }

    /// What an entry holds while its datagram is being put together. Only news move its deadline.
    fn held(&self, at: usize) -> Option<Held> {
        let entry = &self.entries[at];
        let State::Open { bytes, .. } = &entry.state else { return None };
        let age = entry.deadline.since(Instant::ZERO).saturating_sub(self.timeout);
        Some(Held { source: entry.name.0, octets: bytes.len(), news: Instant::ZERO + age })
    }

    /// Takes one datagram that gave up its place to another, with the NULL acknowledgement that takes down
    /// its path (RFC 8931 s6.3).
    pub fn take_evicted(&mut self) -> Option<(Handle, Eui64, RfragAck)> {
        let (handle, (source, datagram_tag)) = self.evicted.pop_front()?;
        Some((handle, source, null(datagram_tag)))
    }

    fn take_in(
        &mut self,
        now: Instant,
        at: usize,
        fragment: &Received<'_>,
    ) -> (Outcome, Option<RfragAck>) {
        let header = &fragment.header;
        let entry = &mut self.entries[at];
        entry.congestion |= header.congestion;
        let mut outcome = Outcome::Waiting;
        if let State::Open { bytes, arrivals, handle } = &mut entry.state {
            match place(bytes, arrivals, fragment) {
                Fit::Contradiction => {
                    // The octets or the sizes do not agree, and nothing says which are true.
                    let handle = *handle;
                    self.forget(at);
                    let outcome = Outcome::Dropped { handle, reason: DropReason::Malformed };
                    return (outcome, Some(null(header.datagram_tag)));
                }
                Fit::Known => {}
                // Only news prolong the wait, so 32 fragments at most can.
                Fit::New => entry.deadline = now + self.timeout,
            }
            if covers(arrivals, bytes.len()) {
                let (datagram, handle) = (core::mem::take(bytes), *handle);
                entry.state = State::Complete { datagram_size: datagram.len() };
                entry.deadline = now + self.linger;
                self.octets -= datagram.len();
                outcome = Outcome::Complete { datagram, handle };
            }
        }
        let ack = header.ack_request.then(|| self.acknowledge(at));
        self.bound_complete();
        (outcome, ack)
    }

    /// RFC 8931 s6: upon X the reassembling end MUST acknowledge all it has received.
    fn acknowledge(&mut self, at: usize) -> RfragAck {
        let entry = &mut self.entries[at];
        let bitmap = match &entry.state {
            State::Complete { .. } => Bitmap::FULL,
            State::Open { arrivals, .. } => {
                let mut bitmap = Bitmap::NULL;
                for arrival in arrivals {
                    bitmap.insert(arrival.sequence);
                }
                bitmap
            }
        };
        // RFC 8931 s6: the end MUST echo E, at most once, in the next acknowledgement.
        let congestion = core::mem::take(&mut entry.congestion);
        RfragAck { congestion, datagram_tag: entry.name.1, bitmap }
    }

    /// Forgets the oldest of too many complete datagrams.
    fn bound_complete(&mut self) {
        let is_complete = |entry: &Entry| matches!(entry.state, State::Complete { .. });
        let complete = self.entries.iter().filter(|entry| is_complete(entry)).count();
        if complete > self.complete_max {
            let oldest = self.entries.iter().position(is_complete).expect("there is one");
            self.entries.remove(oldest);
        }
    }

    /// Removes an entry; the handle of a datagram that was not complete.
    fn forget(&mut self, at: usize) -> Option<Handle> {
        match self.entries.remove(at).state {
            State::Open { bytes, handle, .. } => {
                self.octets -= bytes.len();
                Some(handle)
            }
            State::Complete { .. } => None,
        }
    }

    /// Takes one datagram whose time is over, with the NULL acknowledgement that takes down its path.
    pub fn expire(&mut self, now: Instant) -> Option<(Handle, Eui64, RfragAck)> {
        while let Some(at) = self.entries.iter().position(|entry| entry.deadline <= now) {
            let (source, datagram_tag) = self.entries[at].name;
            if let Some(handle) = self.forget(at) {
                return Some((handle, source, null(datagram_tag)));
            }
        }
        None
    }
}

/// How a fragment lies to those that came before it.
enum Fit {
    New,
    Known,
    Contradiction,
}

/// Puts a fragment where it belongs.
fn place(bytes: &mut [u8], arrivals: &mut Vec<Arrival>, fragment: &Received<'_>) -> Fit {
    let start = usize::from(fragment.header.part.offset());
    let end = start + fragment.data.len();
    let sequence = fragment.header.part.sequence();
    let other_size = match fragment.header.part {
        Part::First { datagram_size } => usize::from(datagram_size) != bytes.len(),
        Part::Next { .. } | Part::Abort => false,
    };
    if other_size || end > bytes.len() {
        return Fit::Contradiction;
    }
    let arrival = Arrival { sequence, start, end };
    for other in arrivals.iter() {
        let (from, to) = (start.max(other.start), end.min(other.end));
        let agree = from >= to || bytes[from..to] == fragment.data[from - start..to - start];
        if !agree || (other.sequence == sequence && *other != arrival) {
            return Fit::Contradiction;
        }
        if *other == arrival {
            return Fit::Known;
        }
    }
    bytes[start..end].copy_from_slice(fragment.data);
    let place = arrivals.partition_point(|other| other.start <= start);
    arrivals.insert(place, arrival);
    Fit::New
}

/// True when arrivals, in the order of their starts, leave no hole in `size` octets.
fn covers(arrivals: &[Arrival], size: usize) -> bool {
    let reach = |reached: usize, arrival: &Arrival| {
        if arrival.start <= reached { reached.max(arrival.end) } else { reached }
    };
    arrivals.iter().fold(0, reach) == size
}

/// The acknowledgement that gives a datagram up.
pub const fn null(datagram_tag: u8) -> RfragAck {
    RfragAck { congestion: false, datagram_tag, bitmap: Bitmap::NULL }
}
