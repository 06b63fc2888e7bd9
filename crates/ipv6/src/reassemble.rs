//! Way E2E, the destination's side: packets put together again (RFC 8200 s4.5), bounded in number, octets and time.
//!
//! Fragments that overlap end their packet for good (RFC 5722); a packet that has a fragment header and is whole
//! does not wait for others (RFC 6946).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::{
    Address, ExtensionKind, Extensions, FRAGMENT_HEADER_OCTETS, FRAGMENT_OFFSET_UNIT,
    FragmentHeader, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET, PAYLOAD_LENGTH_OFFSET,
};

use crate::params::{ENDED_PACKETS, REASSEMBLED_OCTETS, REASSEMBLIES, REASSEMBLY_TIMEOUT};

/// What a destination sets aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// [`REASSEMBLIES`].
    pub packets: usize,
    /// [`REASSEMBLED_OCTETS`], of each packet.
    pub octets: usize,
    /// [`REASSEMBLY_TIMEOUT`].
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { packets: REASSEMBLIES, octets: REASSEMBLED_OCTETS, timeout: REASSEMBLY_TIMEOUT }
    }
}

/// What became of a packet that is for this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has no fragment header.
    Whole(Vec<u8>),
    /// The first fragment of a packet that came; the others are waited for.
    Begun,
    /// A further fragment, kept or not needed; its own copy is over.
    Merged,
    /// Nothing is missing.
    Complete {
        /// The packet as if it had never been cut.
        packet: Vec<u8>,
        /// The name under which its other fragments waited; none when it came in one.
        kept: Option<Handle>,
    },
    /// It ends here, and with it all that came of its packet: `kept`, if something was.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The name of the packet that was waiting.
        kept: Option<Handle>,
    },
}

/// What names a fragmented packet (RFC 8200 s4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    source: Address,
    destination: Address,
    identification: u32,
}

/// A packet with holes.
#[derive(Clone, Debug)]
struct Buffer {
    name: Name,
    handle: Handle,
    deadline: Instant,
    /// The headers of the first fragment, up to its fragment header and as if that were not there.
    headers: Option<Vec<u8>>,
    /// The fragmentable part as far as it has come.
    data: Vec<u8>,
    /// Offset and octets of each fragment that came.
    received: Vec<(usize, usize)>,
    received_octets: usize,
    /// Octets of the fragmentable part, known from its last fragment.
    total: Option<usize>,
}

/// A fragment and where its packet's parts lie.
struct Part<'a> {
    packet: &'a [u8],
    /// Where the fragment header stands.
    at: usize,
    /// Where the type that announces it stands.
    pointer: usize,
    header: FragmentHeader,
}

impl<'a> Part<'a> {
    /// The fragment header of a packet, if it has one.
    fn find(packet: &'a [u8]) -> Result<Option<Self>, DropReason> {
        const MALFORMED: DropReason = DropReason::Malformed;
        let mut pointer = NEXT_HEADER_OFFSET;
        for extension in Extensions::new(packet).map_err(|_| MALFORMED)? {
            let extension = extension.map_err(|_| MALFORMED)?;
            if extension.kind == ExtensionKind::Fragment {
                let header = FragmentHeader::parse(extension.bytes).map_err(|_| MALFORMED)?;
                return Ok(Some(Self { packet, at: extension.offset, pointer, header }));
            }
            pointer = extension.offset;
        }
        Ok(None)
    }
    fn data(&self) -> &'a [u8] {
        &self.packet[self.at + FRAGMENT_HEADER_OCTETS..]
    }
    /// The headers before the fragment header, which announce what comes behind it.
    fn headers(&self) -> Vec<u8> {
        let mut headers = self.packet[..self.at].to_vec();
        headers[self.pointer] = self.header.next_header;
        headers
    }
    fn is_regular(&self, octets_max: usize) -> bool {
        let octets = self.data().len();
        let end = usize::from(self.header.offset) + octets;
        // RFC 8200 s4.5: a fragment that is not the last is a multiple of eight octets long.
        let whole = !self.header.more || octets.is_multiple_of(FRAGMENT_OFFSET_UNIT);
        whole && octets > 0 && self.at + end <= octets_max
    }
}

/// All packets that are put together at a node.
#[derive(Clone, Debug)]
pub struct Reassembly {
    config: Config,
    /// In the order of their deadlines, for all have the same timeout.
    buffers: Vec<Buffer>,
    /// Packets that ended, and until when their late fragments are known; in that order.
    ended: VecDeque<(Name, Instant)>,
}

impl Reassembly {
    /// Nothing waits yet.
    pub const fn new(config: Config) -> Self {
        Self { config, buffers: Vec::new(), ended: VecDeque::new() }
    }

    /// Takes a packet that is for this node.
    pub fn accept(&mut self, now: Instant, packet: Vec<u8>, handle: Handle) -> Outcome {
        let refused = |reason| Outcome::Dropped { reason, kept: None };
        let part = match Part::find(&packet) {
            Ok(Some(part)) => part,
            Ok(None) => return Outcome::Whole(packet),
            Err(reason) => return refused(reason),
        };
        let Ok(ip) = Header::parse_packet(&packet) else { return refused(DropReason::Malformed) };
        if part.header.is_atomic() {
            // RFC 6946 s4: a packet that is whole does not meet fragments with its identification.
            let packet = assemble(part.headers(), part.data());
            return Outcome::Complete { packet, kept: None };
        }
        let name = Name {
            source: ip.source,
            destination: ip.destination,
            identification: part.header.identification,
        };
        if self.is_ended(&name, now) {
            return Outcome::Merged;
        }
        let place = self.buffers.iter().position(|buffer| buffer.name == name);
        if !part.is_regular(self.config.octets) {
            return self.give_up(now, name, place, DropReason::Malformed);
        }
        match place {
            Some(at) => self.merge(now, at, &part),
            None if self.buffers.len() >= self.config.packets => {
                self.give_up(now, name, None, DropReason::BufferFull)
            }
            None => {
                let deadline = now + self.config.timeout;
                self.buffers.push(Buffer::new(name, handle, deadline));
                let at = self.buffers.len() - 1;
                match self.merge(now, at, &part) {
                    Outcome::Merged => Outcome::Begun,
                    other => other,
                }
            }
        }
    }

    fn merge(&mut self, now: Instant, at: usize, part: &Part<'_>) -> Outcome {
        let buffer = &mut self.buffers[at];
        match buffer.fit(part) {
            Fit::Duplicate => Outcome::Merged,
            Fit::Overlap => {
                // RFC 5722 s3: the packet is discarded, with the fragments that are still to come.
                let name = buffer.name;
                self.give_up(now, name, Some(at), DropReason::Malformed)
            }
            Fit::New => {
                buffer.store(part);
                if !buffer.is_complete() {
                    return Outcome::Merged;
                }
                let buffer = self.buffers.remove(at);
                self.remember(buffer.name, now);
                let headers = buffer.headers.expect("a complete packet has its first fragment");
                let packet = assemble(headers, &buffer.data);
                Outcome::Complete { packet, kept: Some(buffer.handle) }
            }
        }
    }

    fn give_up(
        &mut self,
        now: Instant,
        name: Name,
        place: Option<usize>,
        reason: DropReason,
    ) -> Outcome {
        let kept = place.map(|at| self.buffers.remove(at).handle);
        self.remember(name, now);
        Outcome::Dropped { reason, kept }
    }

    /// Takes one packet whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Handle> {
        (self.next_deadline()? <= now).then(|| {
            let buffer = self.buffers.remove(0);
            self.remember(buffer.name, now);
            buffer.handle
        })
    }
    /// When the oldest packet has waited long enough.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.buffers.first().map(|buffer| buffer.deadline)
    }
    /// The packets that wait, oldest first.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.buffers.iter().map(|buffer| buffer.handle)
    }
    /// Octets that wait.
    pub fn octets(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.data.len()).sum()
    }

    fn remember(&mut self, name: Name, now: Instant) {
        if self.ended.len() == ENDED_PACKETS {
            self.ended.pop_front();
        }
        self.ended.push_back((name, now + self.config.timeout));
    }
    fn is_ended(&mut self, name: &Name, now: Instant) -> bool {
        while self.ended.front().is_some_and(|(_, until)| *until <= now) {
            self.ended.pop_front();
        }
        self.ended.iter().any(|(ended, _)| ended == name)
    }
}

/// How a fragment lies to those that came before it.
enum Fit {
    New,
    Duplicate,
    Overlap,
}

impl Buffer {
    const fn new(name: Name, handle: Handle, deadline: Instant) -> Self {
        Self {
            name,
            handle,
            deadline,
            headers: None,
            data: Vec::new(),
            received: Vec::new(),
            received_octets: 0,
            total: None,
        }
    }

    fn fit(&self, part: &Part<'_>) -> Fit {
        let (offset, octets) = (usize::from(part.header.offset), part.data().len());
        let end = offset + octets;
        if self.received.contains(&(offset, octets)) {
            return Fit::Duplicate;
        }
        let overlaps = |&(other, length): &(usize, usize)| offset < other + length && other < end;
        // An end that moves contradicts what came before as well.
        let ends_elsewhere = match self.total {
            Some(total) => end > total || !part.header.more,
            None => !part.header.more && self.data.len() > end,
        };
        if ends_elsewhere || self.received.iter().any(overlaps) { Fit::Overlap } else { Fit::New }
    }

    fn store(&mut self, part: &Part<'_>) {
        let (offset, data) = (usize::from(part.header.offset), part.data());
        let end = offset + data.len();
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[offset..end].copy_from_slice(data);
        self.received.push((offset, data.len()));
        self.received_octets += data.len();
        if !part.header.more {
            self.total = Some(end);
        }
        if offset == 0 {
            // RFC 8200 s4.5: headers and the type behind them come from the first fragment.
            self.headers = Some(part.headers());
        }
    }

    fn is_complete(&self) -> bool {
        self.total == Some(self.received_octets)
    }
}

/// The packet of `headers` and what follows them.
fn assemble(headers: Vec<u8>, data: &[u8]) -> Vec<u8> {
    let mut packet = headers;
    packet.extend_from_slice(data);
    let length = (packet.len() - HEADER_OCTETS) as u16;
    packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&length.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests;
