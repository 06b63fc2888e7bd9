//! The receiver's side of hop-wise fragmentation (RFC 4944 s5.3), bounded in datagrams, octets and time.
//!
//! A datagram that is complete, refused or bad stays known for one timeout, so that its late fragments
//! neither open a new buffer nor count as a second loss.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::lowpan::fragment::{FragmentHeader, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, decompress};

use crate::params::{CLOSED_DATAGRAMS, Config, REASSEMBLY_TIMEOUT_MAX};

/// What names a datagram on the air (RFC 4944 s5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    source: Eui64,
    destination: Option<Eui64>,
    datagram_size: u16,
    datagram_tag: u16,
}

/// A datagram with holes.
#[derive(Debug)]
struct Buffer {
    name: Name,
    handle: Handle,
    deadline: Instant,
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
    /// In the order of their deadlines, for all have the same timeout.
    buffers: Vec<Buffer>,
    /// Datagrams that ended, and until when they stay known; in that order.
    closed: VecDeque<(Name, Instant)>,
    /// A first fragment's bytes after decompression; kept for its allocation.
    scratch: Vec<u8>,
    octets: usize,
    octets_max: usize,
    buffers_max: usize,
    timeout: Duration,
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
        }
    }

    /// When the oldest datagram has waited long enough.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.buffers.first().map(|buffer| buffer.deadline)
    }

    /// True while the datagram `handle` from `source` is being put together.
    pub fn holds(&self, source: Eui64, handle: Handle) -> bool {
        self.buffers.iter().any(|b| b.handle == handle && b.name.source == source)
    }
    /// The datagrams that are being put together.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.buffers.iter().map(|buffer| buffer.handle)
    }

    /// Octets held in buffers.
    pub fn octets(&self) -> usize {
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

    /// Takes in a fragment with its header.
    pub fn accept(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        contexts: &Contexts,
    ) -> Outcome {
        let &Fragment { frame, source, destination, handle } = fragment;
        let malformed = Outcome::Dropped { handle, reason: DropReason::Malformed };
        let Ok(header) = FragmentHeader::parse(frame) else { return malformed };
        let FragmentHeader { datagram_size, datagram_tag, offset } = header;
        let name = Name { source, destination, datagram_size, datagram_tag };
        if self.is_closed(&name, now) {
            return Outcome::Waiting;
        }
        let place = self.buffers.iter().position(|buffer| buffer.name == name);
        let mut scratch = core::mem::take(&mut self.scratch);
        let data = data_of(header, fragment, contexts, &mut scratch);
        let outcome = match (data, place) {
            (Some(data), _) => self.place(now, place, name, usize::from(offset), data, handle),
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

    fn place(
        &mut self,
        now: Instant,
        place: Option<usize>,
        name: Name,
        offset: usize,
        data: &[u8],
        handle: Handle,
    ) -> Outcome {
        let mut outcome = Outcome::Waiting;
        let at = match place.map(|at| (at, self.buffers[at].fit(offset, data.len()))) {
            Some((_, Fit::Duplicate)) => return outcome,
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
                let octets = self.octets + usize::from(name.datagram_size);
                if self.buffers.len() >= self.buffers_max || octets > self.octets_max {
                    self.remember(name, now);
                    return Outcome::Dropped { handle, reason: DropReason::BufferFull };
                }
                self.open(now, name, handle)
            }
        };
        let buffer = &mut self.buffers[at];
        buffer.store(offset, data);
        if buffer.received_octets == buffer.bytes.len() {
            let Buffer { bytes, handle, .. } = self.close(at, now);
            return Outcome::Complete { bytes, handle };
        }
        outcome
    }

    fn open(&mut self, now: Instant, name: Name, handle: Handle) -> usize {
        let size = usize::from(name.datagram_size);
        self.octets += size;
        self.buffers.push(Buffer {
            name,
            handle,
            deadline: now + self.timeout,
            bytes: vec![0; size],
            received: Vec::new(),
            received_octets: 0,
        });
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

    fn remember(&mut self, name: Name, now: Instant) {
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
