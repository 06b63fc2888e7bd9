//! The receiver's side of hop-wise fragmentation (RFC 4944 s5.3), bounded in datagrams, octets and time.
//!
//! A datagram that is complete, refused or bad stays known for one timeout, so that its late fragments
//! neither open a new buffer nor count as a second loss.
//!
//! Two attacks that Hummen et al. (WiSec 2013) describe, and what is done about them. *Buffer reservation*: first
//! fragments of ever new datagrams fill all buffers. The last free buffer is not given to a neighbour that
//! already holds one, and when none is left `lowmesh_reassembly` chooses the one to evict. *Fragment duplication*: a bogus copy
//! spoils a datagram. The first copy counts, so one of the same place and length changes nothing; one of another
//! length restarts the datagram, as RFC 4944 demands, and the upper layer's checksum guards the rest.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_reassembly::{self as reassembly, Datagram, Fit, Newcomer, PartialDatagram, Table};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::lowpan::fragment::{FragmentHeader, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, Extent, decompress};

use crate::params::Config;

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
    /// True when they went to all neighbours.
    pub const fn is_broadcast(&self) -> bool {
        self.destination.is_none()
    }
}

impl reassembly::Name for Name {
    type Source = Eui64;

    fn source(&self) -> Eui64 {
        self.source
    }
}

/// A datagram with holes.
#[derive(Debug)]
pub(crate) struct Buffer {
    handle: Handle,
    partial: PartialDatagram,
    /// The form of its headers, which the first fragment tells.
    extent: Extent,
}

impl Datagram for Buffer {
    fn octets(&self) -> usize {
        self.partial.octets()
    }
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Kept, or not needed.
    Waiting,
    /// It was the last that was missing.
    Complete { bytes: Vec<u8>, handle: Handle, extent: Extent },
    /// A datagram ended here.
    Dropped { handle: Handle, reason: DropReason },
}

/// A fragment as it came from the link.
pub(crate) struct Fragment<'a> {
    pub frame: &'a [u8],
    pub source: Eui64,
    pub destination: Option<Eui64>,
    pub handle: Handle,
    /// Its sender is known to hear this node.
    pub is_proven: bool,
}

/// The octets of a fragment after decompression.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub offset: usize,
    pub data: &'a [u8],
    /// How they were compressed; counts at offset 0.
    pub extent: Extent,
    /// Their sender is known to hear this node.
    pub is_proven: bool,
}

/// All datagrams in reassembly.
#[derive(Debug)]
pub(crate) struct Reassembly {
    table: Table<Name, Buffer>,
    /// A first fragment's bytes after decompression; kept for its allocation.
    scratch: Vec<u8>,
    opened: u64,
    /// Datagrams that gave up their places to others.
    evicted: VecDeque<Handle>,
}

impl Reassembly {
    pub fn new(config: &Config) -> Self {
        Self {
            table: Table::new(config.reassembly_limits(), config.choices().reassembly),
            scratch: Vec::new(),
            opened: 0,
            evicted: VecDeque::new(),
        }
    }

    /// When a datagram has waited long enough.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.table.next_deadline()
    }

    /// True while the datagram that a fragment names is being put together, and is of the same packet.
    pub fn holds(&self, fragment: &Fragment<'_>) -> bool {
        let name = FragmentHeader::parse(fragment.frame).map(|header| Name::of(fragment, header));
        let at = name.ok().and_then(|name| self.table.position(&name));
        at.is_some_and(|at| self.table.get(at).datagram.handle == fragment.handle)
    }
    /// Datagrams for which there ever was a buffer.
    pub const fn opened(&self) -> u64 {
        self.opened
    }
    /// The datagrams that are being put together.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.table.iter().map(|entry| entry.datagram.handle)
    }
    /// How many datagrams are being put together.
    pub const fn len(&self) -> usize {
        self.table.taken()
    }
    /// True while no datagram more can be put together.
    pub const fn is_full(&self) -> bool {
        self.table.is_full()
    }
    /// Octets held in buffers.
    pub const fn octets(&self) -> usize {
        self.table.octets()
    }

    /// Takes one datagram whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Handle> {
        Some(self.table.expire(now)?.datagram.handle)
    }
    /// Takes one datagram that gave up its place to another.
    pub fn take_evicted(&mut self) -> Option<Handle> {
        self.evicted.pop_front()
    }
    /// True while the datagram is being put together, and for one timeout after.
    pub fn knows(&mut self, name: &Name, now: Instant) -> bool {
        self.table.position(name).is_some() || self.table.has_ended(name, now)
    }
    /// Late fragments of the datagram are not wanted.
    pub fn remember(&mut self, name: Name, now: Instant) {
        self.table.remember(name, now);
    }

    /// Takes in a fragment with its header; a new datagram finds `room` octets in the packet buffer.
    pub fn accept(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        contexts: &Contexts,
        room: usize,
    ) -> Outcome {
        let &Fragment { frame, handle, is_proven, .. } = fragment;
        let malformed = Outcome::Dropped { handle, reason: DropReason::Malformed };
        let Ok(header) = FragmentHeader::parse(frame) else { return malformed };
        let offset = usize::from(header.offset);
        let name = Name::of(fragment, header);
        if self.table.has_ended(&name, now) {
            return Outcome::Waiting;
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        let data = data_of(header, fragment, contexts, &mut scratch);
        let outcome = match (data, self.table.position(&name)) {
            (Some(data), _) => {
                let extent = Extent::of(&frame[header.octets()..]);
                let piece = Piece { offset, data, extent, is_proven };
                self.place(now, name, piece, handle, room)
            }
            (None, Some(at)) => {
                let handle = self.table.end(at, now).datagram.handle;
                Outcome::Dropped { handle, reason: DropReason::Malformed }
            }
            (None, None) => {
                self.table.remember(name, now);
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
        Piece { offset, data, extent, is_proven }: Piece<'_>,
        handle: Handle,
        room: usize,
    ) -> Outcome {
        let mut outcome = Outcome::Waiting;
        let size = usize::from(name.datagram_size);
        let known = self.table.position(&name);
        let fit = known.map(|at| self.table.get(at).datagram.partial.fit(offset, data.len()));
        let at = match known.zip(fit) {
            Some((_, Fit::Duplicate)) => return outcome,
            Some((at, Fit::New)) => at,
            Some((at, Fit::Overlap)) => {
                // RFC 4944 s5.3: an overlap that differs in size or offset discards what has accumulated; a
                // fresh reassembly begins with the fragment at hand.
                let old = self.table.remove(at).datagram;
                if old.handle != handle {
                    outcome =
                        Outcome::Dropped { handle: old.handle, reason: DropReason::Malformed };
                }
                self.open(now, name, handle)
            }
            None => {
                let newcomer = Newcomer { name, octets: size, room, is_proven };
                let Some(evicted) = self.table.admit(now, &newcomer) else {
                    self.table.remember(name, now);
                    return Outcome::Dropped { handle, reason: DropReason::BufferFull };
                };
                self.evicted.extend(evicted.into_iter().map(|entry| entry.datagram.handle));
                self.open(now, name, handle)
            }
        };
        if is_proven {
            self.table.prove(at);
        }
        let is_whole = self.table.update(at, |entry| {
            if offset == 0 {
                entry.datagram.extent = extent;
            }
            entry.datagram.partial.insert(offset, data, ());
            entry.datagram.partial.is_whole()
        });
        if is_whole {
            let Buffer { partial, handle, extent } = self.table.end(at, now).datagram;
            return Outcome::Complete { bytes: partial.into_bytes(), handle, extent };
        }
        self.table.on_news(at, now);
        outcome
    }

    fn open(&mut self, now: Instant, name: Name, handle: Handle) -> usize {
        self.opened += 1;
        let partial = PartialDatagram::new(name.datagram_size.into());
        self.table.insert(now, name, Buffer { handle, partial, extent: Extent::Chain })
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
