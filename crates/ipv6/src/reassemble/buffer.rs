//! One packet that is put together: what of it came, and how the next fragment lies to that.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_reassembly::{self as reassembly, Datagram, Fit, PartialDatagram};
use lowmesh_wire::ipv6::{
    Address, ExtensionKind, Extensions, FRAGMENT_HEADER_OCTETS, FRAGMENT_OFFSET_UNIT,
    FragmentHeader, HEADER_OCTETS, NEXT_HEADER_OFFSET, PAYLOAD_LENGTH_OFFSET,
};

/// What names a fragmented packet (RFC 8200 s4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub source: Address,
    pub destination: Address,
    pub identification: u32,
}

impl reassembly::Name for Name {
    type Source = Address;

    fn source(&self) -> Address {
        self.source
    }
}

/// A packet with holes.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub handle: Handle,
    /// The headers of the first fragment.
    pub first: Option<First>,
    /// The fragmentable part as far as it has come.
    pub partial: PartialDatagram,
    /// Octets of the fragmentable part, known from its last fragment.
    total: Option<usize>,
}

impl Datagram for Buffer {
    fn octets(&self) -> usize {
        self.partial.octets()
    }
}

/// The headers of a first fragment, its fragment header last.
#[derive(Clone, Debug)]
pub(super) struct First {
    headers: Vec<u8>,
    /// Where the type that announces the fragment header stands.
    pointer: usize,
}

impl First {
    /// The packet of these headers and all that follows them, as if it had never been cut.
    pub fn assemble(self, data: &[u8]) -> Vec<u8> {
        let Self { headers: mut packet, pointer } = self;
        let fragment_header = packet.len() - FRAGMENT_HEADER_OCTETS;
        // The fragment header begins with the type of what comes behind it.
        packet[pointer] = packet[fragment_header];
        packet.truncate(fragment_header);
        packet.extend_from_slice(data);
        let length = (packet.len() - HEADER_OCTETS) as u16;
        packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&length.to_be_bytes());
        packet
    }
    /// The first fragment as it came; `data` begins with what it carried.
    pub fn fragment(self, data: &[u8]) -> Vec<u8> {
        let Self { headers: mut packet, .. } = self;
        let length = [packet[PAYLOAD_LENGTH_OFFSET], packet[PAYLOAD_LENGTH_OFFSET + 1]];
        let end = HEADER_OCTETS + usize::from(u16::from_be_bytes(length));
        let carried = end.saturating_sub(packet.len()).min(data.len());
        packet.extend_from_slice(&data[..carried]);
        packet
    }
}

/// A fragment and where its packet's parts lie.
pub(super) struct Part<'a> {
    packet: &'a [u8],
    /// Where the fragment header stands.
    at: usize,
    /// Where the type that announces it stands.
    pointer: usize,
    pub header: FragmentHeader,
}

impl<'a> Part<'a> {
    /// The fragment header of a packet, if it has one.
    pub fn find(packet: &'a [u8]) -> Result<Option<Self>, DropReason> {
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
    pub fn data(&self) -> &'a [u8] {
        &self.packet[self.at + FRAGMENT_HEADER_OCTETS..]
    }
    /// The headers up to the fragment header.
    pub fn first(&self) -> First {
        let headers = self.packet[..self.at + FRAGMENT_HEADER_OCTETS].to_vec();
        First { headers, pointer: self.pointer }
    }
    pub fn is_regular(&self, octets_max: usize) -> bool {
        let octets = self.data().len();
        let end = usize::from(self.header.offset) + octets;
        // RFC 8200 s4.5: a fragment that is not the last is a multiple of eight octets long.
        let whole = !self.header.more || octets.is_multiple_of(FRAGMENT_OFFSET_UNIT);
        whole && octets > 0 && self.at + end <= octets_max
    }
}

impl Buffer {
    pub fn new(handle: Handle) -> Self {
        Self { handle, first: None, partial: PartialDatagram::new(0), total: None }
    }

    /// Fragments that wait.
    pub fn fragments(&self) -> usize {
        self.partial.arrived().len()
    }

    pub fn fit(&self, part: &Part<'_>) -> Fit {
        let (offset, octets) = (usize::from(part.header.offset), part.data().len());
        let end = offset + octets;
        // An end that moves contradicts what came before as well.
        let ends_elsewhere = match self.total {
            Some(total) => end > total || !part.header.more,
            None => !part.header.more && self.partial.octets() > end,
        };
        match self.partial.fit(offset, octets) {
            Fit::New if ends_elsewhere => Fit::Overlap,
            fit => fit,
        }
    }

    pub fn store(&mut self, part: &Part<'_>) {
        let (offset, data) = (usize::from(part.header.offset), part.data());
        self.partial.insert(offset, data, ());
        if !part.header.more {
            self.total = Some(offset + data.len());
        }
        if offset == 0 {
            // RFC 8200 s4.5: headers and the type behind them come from the first fragment.
            self.first = Some(part.first());
        }
    }

    pub fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.partial.covers(total))
    }
}
