//! The receiver's side of hop-wise fragmentation (RFC 4944 s5.3), bounded in datagrams, octets and time.
//!
//! A datagram that is complete, refused or bad stays known for one timeout, so that its late fragments
//! neither open a new buffer nor count as a second loss.
//!
//! Two attacks that Hummen et al. (WiSec 2013) describe, and what is done about them. *Buffer reservation*: first
//! fragments of ever new datagrams fill all buffers. The last free buffer is not given to a neighbour that
//! already holds one, and when none is left `eviction` says whose place is given up. *Fragment duplication*: a bogus copy
//! spoils a datagram. The first copy counts, so one of the same place and length changes nothing; one of another
//! length restarts the datagram, as RFC 4944 demands, and the upper layer's checksum guards the rest.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::lowpan::fragment::{FragmentHeader, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, decompress};

use crate::eviction::{Bounds, Held, victims};
use crate::params::{CLOSED_DATAGRAMS, Config, REASSEMBLY_TIMEOUT_MAX, StackProfile};

/// What names a datagram on the air (RFC 4944 s5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    source: Eui64,
    destination: Option<Eui64>,
    datagram_size: u16,
    datagram_tag: u16,
}

impl Name {
    pub const fn of(fragment: &Fragment<'_>, header: FragmentHeader) -> Self {
        let &Fragment { source, destination, .. } = fragment;
        let FragmentHeader { datagram_size, datagram_tag, .. } = header;
        Self { source, destination, datagram_size, datagram_tag }
    }
    /// A datagram that came from `source` to this node alone, `here`.
    pub const fn unicast(
        source: Eui64,
        here: Eui64,
        datagram_size: u16,
        datagram_tag: u16,
    ) -> Self {
        Self { source, destination: Some(here), datagram_size, datagram_tag }
    }
    /// Who sent its fragments.
    pub const fn source(&self) -> Eui64 {
        self.source
    }
    /// True when they went to all neighbours.
    pub const fn is_broadcast(&self) -> bool {
        self.destination.is_none()
    }
}

/// A datagram with holes.
#[derive(Debug)]
pub(crate) struct Buffer {
    name: Name,
    handle: Handle,
    deadline: Instant,
    /// When its latest fragment came.
    news: Instant,
    bytes: Vec<u8>,
    /// Offset and octets of each fragment that came.
    received: Vec<(usize, usize)>,
    received_octets: usize,
}

/// How a fragment lies to those that came before it.
enum Fit {
    New,
    Duplicate,
    Overlap,
}

impl Buffer {
    fn fit(&self, offset: usize, octets: usize) -> Fit {
        for &(other, length) in &self.received {
            if (other, length) == (offset, octets) {
                return Fit::Duplicate;
            }
            if offset < other + length && other < offset + octets {
                return Fit::Overlap;
            }
        }
        Fit::New
    }
    fn held(&self) -> Held {
        Held { source: self.name.source, octets: self.bytes.len(), news: self.news }
    }
    fn store(&mut self, offset: usize, data: &[u8]) {
        self.bytes[offset..offset + data.len()].copy_from_slice(data);
        self.received.push((offset, data.len()));
        self.received_octets += data.len();
    }
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Kept, or not needed.
    Waiting,
    /// It was the last that was missing.
    Complete { bytes: Vec<u8>, handle: Handle },
    /// A datagram ended here.
    Dropped { handle: Handle, reason: DropReason },
}

/// A fragment as it came from the link.
pub(crate) struct Fragment<'a> {
    pub frame: &'a [u8],
    pub source: Eui64,
    pub destination: Option<Eui64>,
    pub handle: Handle,
}

/// All datagrams in reassembly.
#[derive(Debug)]
pub(crate) struct Reassembly {
    /// In the order of their deadlines.
    buffers: Vec<Buffer>,
    /// Datagrams that ended, and until when they stay known; in that order.
    closed: VecDeque<(Name, Instant)>,
    /// A first fragment's bytes after decompression; kept for its allocation.
    scratch: Vec<u8>,
    octets: usize,
    octets_max: usize,
    buffers_max: usize,
    timeout: Duration,
    profile: StackProfile,
    opened: u64,
    /// Datagrams that gave up their places to others.
    evicted: VecDeque<Handle>,
}

impl Reassembly {
    pub fn new(config: &Config) -> Self {
        Self {
            buffers: Vec::new(),
            closed: VecDeque::new(),
            scratch: Vec::new(),
            octets: 0,
            octets_max: config.reassembly_octets,
            buffers_max: config.reassembly_buffers,
            // RFC 4944 s5.3: the reassembly timeout is at most 60 s.
            timeout: config.reassembly_timeout.min(REASSEMBLY_TIMEOUT_MAX),
            profile: config.profile,
            opened: 0,
            evicted: VecDeque::new(),
        }
    }

    /// When the oldest datagram has waited long enough.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.buffers.first().map(|buffer| buffer.deadline)
    }

    /// True while the datagram that a fragment names is being put together, and is of the same packet.
    pub fn holds(&self, fragment: &Fragment<'_>) -> bool {
        let name = FragmentHeader::parse(fragment.frame).map(|header| Name::of(fragment, header));
        let at = name.ok().and_then(|name| self.position(&name));
        at.is_some_and(|at| self.buffers[at].handle == fragment.handle)
    }
    /// Datagrams for which there ever was a buffer.
    pub const fn opened(&self) -> u64 {
        self.opened
    }
    /// The datagrams that are being put together.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.buffers.iter().map(|buffer| buffer.handle)
    }

    /// True while no datagram more can be put together.
    pub const fn is_full(&self) -> bool {
        self.buffers.len() >= self.buffers_max
    }
    /// Octets held in buffers.
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// Takes one datagram whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Handle> {
        if self.next_deadline()? > now {
            return None;
        }
        let buffer = self.close(0, now);
        Some(buffer.handle)
    }

    /// Takes one datagram that gave up its place to another.
    pub fn take_evicted(&mut self) -> Option<Handle> {
        self.evicted.pop_front()
    }

    /// True while the datagram is being put together, and for one timeout after.
    pub fn knows(&mut self, name: &Name, now: Instant) -> bool {
        self.position(name).is_some() || self.is_closed(name, now)
    }

    fn position(&self, name: &Name) -> Option<usize> {
        self.buffers.iter().position(|buffer| buffer.name == *name)
    }

    /// Takes in a fragment with its header; a new datagram finds `room` octets in the packet buffer.
    pub fn accept(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        contexts: &Contexts,
        room: usize,
    ) -> Outcome {
        let &Fragment { frame, handle, .. } = fragment;
        let malformed = Outcome::Dropped { handle, reason: DropReason::Malformed };
        let Ok(header) = FragmentHeader::parse(frame) else { return malformed };
        let offset = usize::from(header.offset);
        let name = Name::of(fragment, header);
        if self.is_closed(&name, now) {
            return Outcome::Waiting;
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        let data = data_of(header, fragment, contexts, &mut scratch);
        let outcome = match (data, self.position(&name)) {
            (Some(data), _) => self.place(now, name, offset, data, handle, room),
            (None, Some(at)) => {
                let handle = self.close(at, now).handle;
                Outcome::Dropped { handle, reason: DropReason::Malformed }
            }
            (None, None) => {
                self.remember(name, now);
                malformed
            }
        };
        scratch.clear();
        self.scratch = scratch;
        outcome
    }

    /// Takes in the octets of a fragment.
    pub fn place(
        &mut self,
        now: Instant,
        name: Name,
        offset: usize,
        data: &[u8],
        handle: Handle,
        room: usize,
    ) -> Outcome {
        let mut outcome = Outcome::Waiting;
        let at = match self.position(&name).map(|at| (at, self.buffers[at].fit(offset, data.len())))
        {
            Some((_, Fit::Duplicate)) => return outcome,
            Some((at, Fit::New)) if self.profile == StackProfile::RiotGnrc => self.prolong(at, now),
            Some((at, Fit::New)) => at,
            Some((at, Fit::Overlap)) => {
                // RFC 4944 s5.3: an overlap that differs in size or offset discards what has accumulated; a
                // fresh reassembly begins with the fragment at hand.
                let old = self.remove(at);
                if old.handle != handle {
                    outcome =
                        Outcome::Dropped { handle: old.handle, reason: DropReason::Malformed };
                }
                self.open(now, name, handle)
            }
            None => {
                if !self.make_place(now, &name, room) {
                    self.remember(name, now);
                    return Outcome::Dropped { handle, reason: DropReason::BufferFull };
                }
                self.open(now, name, handle)
            }
        };
        let buffer = &mut self.buffers[at];
        buffer.store(offset, data);
        buffer.news = now;
        if buffer.received_octets == buffer.bytes.len() {
            let Buffer { bytes, handle, .. } = self.close(at, now);
            return Outcome::Complete { bytes, handle };
        }
        outcome
    }

    /// True when a buffer may be opened for the datagram; others may have given up theirs for it.
    fn make_place(&mut self, now: Instant, name: &Name, room: usize) -> bool {
        let (source, octets) = (name.source, usize::from(name.datagram_size));
        let (buffers, octets_max) = (self.buffers_max, self.octets_max);
        if self.profile == StackProfile::RiotGnrc {
            let is_free = self.buffers.len() < buffers;
            return is_free && self.octets + octets <= octets_max && octets <= room;
        }
        let bounds = Bounds { buffers, octets: octets_max, room, keeps_last: true };
        let held = self.buffers.iter().map(Buffer::held);
        let newcomer = Held { source, octets, news: now };
        let Some(mut victims) = victims(held, &newcomer, &bounds, self.timeout) else {
            return false;
        };
        // From the back, so that the other places stay what they are.
        victims.sort_unstable();
        for at in victims.into_iter().rev() {
            let buffer = self.close(at, now);
            self.evicted.push_back(buffer.handle);
        }
        true
    }

    fn open(&mut self, now: Instant, name: Name, handle: Handle) -> usize {
        let size = usize::from(name.datagram_size);
        self.octets += size;
        self.opened += 1;
        self.buffers.push(Buffer {
            name,
            handle,
            deadline: now + self.timeout,
            news: now,
            bytes: vec![0; size],
            received: Vec::new(),
            received_octets: 0,
        });
        self.buffers.len() - 1
    }

    /// Gives a datagram a whole timeout again; returns its new place.
    fn prolong(&mut self, at: usize, now: Instant) -> usize {
        let buffer = self.buffers.remove(at);
        self.buffers.push(Buffer { deadline: now + self.timeout, ..buffer });
        self.buffers.len() - 1
    }

    fn remove(&mut self, at: usize) -> Buffer {
        let buffer = self.buffers.remove(at);
        self.octets -= buffer.bytes.len();
        buffer
    }

    fn close(&mut self, at: usize, now: Instant) -> Buffer {
        let buffer = self.remove(at);
        self.remember(buffer.name, now);
        buffer
    }

    /// Late fragments of the datagram are not wanted.
    pub fn remember(&mut self, name: Name, now: Instant) {
        if self.profile == StackProfile::RiotGnrc {
            return;
        }
        if self.closed.len() == CLOSED_DATAGRAMS {
            self.closed.pop_front();
        }
        self.closed.push_back((name, now + self.timeout));
    }

    fn is_closed(&mut self, name: &Name, now: Instant) -> bool {
        while self.closed.front().is_some_and(|(_, until)| *until <= now) {
            self.closed.pop_front();
        }
        self.closed.iter().any(|(closed, _)| closed == name)
    }
}

/// The uncompressed bytes of a fragment; `None` if it is bad.
fn data_of<'a>(
    header: FragmentHeader,
    fragment: &Fragment<'a>,
    contexts: &Contexts,
    scratch: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    let body = &fragment.frame[header.octets()..];
    let size = usize::from(header.datagram_size);
    let data = if header.offset == 0 {
        let Fragment { source, destination, .. } = *fragment;
        decompress(body, source, destination, contexts, Some(size), scratch).ok()?;
        scratch.as_slice()
    } else {
        body
    };
    let end = usize::from(header.offset) + data.len();
    // RFC 4944 s5.3: all fragments but the last are multiples of eight octets long.
    let whole = data.len().is_multiple_of(OFFSET_UNIT) || end == size;
    (whole && !data.is_empty() && end <= size).then_some(data)
}
