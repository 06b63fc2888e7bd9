//! Extension headers as views (RFC 8200 s4) and the options in two of them (s4.2).
//!
//! Nothing is copied: a view says where in the packet a header stands, so that a forwarder can edit in place.

use alloc::vec::Vec;

use super::{HEADER_OCTETS, NEXT_HEADER_OFFSET, next_header};
use crate::{DecodeError, Problem, Reader};

/// Option type of one octet of padding (RFC 8200 s4.2).
pub const OPTION_PAD1: u8 = 0;
/// Option type of two or more octets of padding (RFC 8200 s4.2).
pub const OPTION_PAD_N: u8 = 1;

/// Which extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionKind {
    /// RFC 8200 s4.3.
    HopByHop,
    /// RFC 8200 s4.4.
    Routing,
    /// RFC 8200 s4.5.
    Fragment,
    /// RFC 8200 s4.6.
    DestinationOptions,
}

impl ExtensionKind {
    /// The extension header that a Next Header value names, if it does.
    pub const fn from_next_header(value: u8) -> Option<Self> {
        match value {
            next_header::HOP_BY_HOP => Some(Self::HopByHop),
            next_header::ROUTING => Some(Self::Routing),
            next_header::FRAGMENT => Some(Self::Fragment),
            next_header::DESTINATION_OPTIONS => Some(Self::DestinationOptions),
            _ => None,
        }
    }
    /// The Next Header value that names it.
    pub const fn next_header(self) -> u8 {
        match self {
            Self::HopByHop => next_header::HOP_BY_HOP,
            Self::Routing => next_header::ROUTING,
            Self::Fragment => next_header::FRAGMENT,
            Self::DestinationOptions => next_header::DESTINATION_OPTIONS,
        }
    }
    /// True when it is made of options.
    pub const fn has_options(self) -> bool {
        matches!(self, Self::HopByHop | Self::DestinationOptions)
    }
}

/// One extension header in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Which one.
    pub kind: ExtensionKind,
    /// What follows it.
    pub next_header: u8,
    /// Octets from the start of the packet to its first octet.
    pub offset: usize,
    /// All its octets, Next Header and length included; a multiple of eight.
    pub bytes: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Reads the header `kind` that stands at `offset` of `packet`.
    pub fn parse(
        kind: ExtensionKind,
        packet: &'a [u8],
        offset: usize,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("IPv6 extension header", packet.get(offset..).unwrap_or(&[]));
        let mut whole = reader;
        let next_header = reader.u8("next header")?;
        let length = reader.u8("length")?;
        // RFC 8200 s4.5: the fragment header has eight octets, and a reserved octet in the length's place.
        let octets = match kind {
            ExtensionKind::Fragment => 8,
            _ => 8 + 8 * usize::from(length),
        };
        let bytes = whole.take(octets, "body")?;
        Ok(Self { kind, next_header, offset, bytes })
    }

    /// The options of a hop-by-hop or destination options header.
    pub fn options(&self) -> Options<'a> {
        Options::new(&self.bytes[2..])
    }
}

/// The extension headers of a packet, in order; ends at the upper layer or at the first bad header.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    packet: &'a [u8],
    next_header: u8,
    at: usize,
}

impl<'a> Extensions<'a> {
    /// The extension headers of `packet`, which starts with the fixed header.
    pub fn new(packet: &'a [u8]) -> Result<Self, DecodeError> {
        if packet.len() < HEADER_OCTETS {
            return Err(Reader::new("IPv6", packet).error("fixed header", Problem::Truncated));
        }
        Ok(Self { packet, next_header: packet[NEXT_HEADER_OFFSET], at: HEADER_OCTETS })
    }
    /// What stands at the cursor: after the last item, the upper layer.
    pub const fn upper_layer(&self) -> UpperLayer {
        UpperLayer { next_header: self.next_header, offset: self.at }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = ExtensionKind::from_next_header(self.next_header)?;
        let item = Extension::parse(kind, self.packet, self.at);
        match &item {
            Ok(extension) => {
                self.next_header = extension.next_header;
                self.at += extension.bytes.len();
            }
            Err(_) => self.next_header = next_header::NONE,
        }
        Some(item)
    }
}

/// Where the extension headers end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// What follows, one of [`next_header`].
    pub next_header: u8,
    /// Octets from the start of the packet to it.
    pub offset: usize,
}

/// Walks the extension headers of `packet` to the upper layer.
pub fn upper_layer(packet: &[u8]) -> Result<UpperLayer, DecodeError> {
    let mut extensions = Extensions::new(packet)?;
    for extension in extensions.by_ref() {
        extension?;
    }
    Ok(extensions.upper_layer())
}

/// One option of a hop-by-hop or destination options header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderOption<'a> {
    /// Its type; [`OPTION_PAD1`] and [`OPTION_PAD_N`] are padding.
    pub kind: u8,
    /// Octets from the first option to this one's type.
    pub offset: usize,
    /// Its data; empty for Pad1.
    pub data: &'a [u8],
}

impl HeaderOption<'_> {
    /// Octets of type, length and data together.
    pub const fn octets(&self) -> usize {
        if self.kind == OPTION_PAD1 { 1 } else { 2 + self.data.len() }
    }
    /// True for Pad1 and PadN.
    pub const fn is_padding(&self) -> bool {
        matches!(self.kind, OPTION_PAD1 | OPTION_PAD_N)
    }
}

/// The options in an options header, padding included; ends after the first bad one.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    reader: Reader<'a>,
    bad: bool,
}

impl<'a> Options<'a> {
    /// The options in `bytes`: an options header without its first two octets.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new("IPv6 option", bytes), bad: false }
    }

    fn read(&mut self) -> Result<HeaderOption<'a>, DecodeError> {
        let offset = self.reader.position();
        let kind = self.reader.u8("type")?;
        let data = if kind == OPTION_PAD1 {
            &[]
        } else {
            let length = self.reader.u8("length")?;
            self.reader.take(usize::from(length), "data")?
        };
        Ok(HeaderOption { kind, offset, data })
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<HeaderOption<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bad || self.reader.is_empty() {
            return None;
        }
        let item = self.read();
        self.bad = item.is_err();
        Some(item)
    }
}

/// Pads the options header that begins at `start` of `out` to a multiple of eight octets (RFC 8200 s4.2).
pub fn pad_to_eight(out: &mut Vec<u8>, start: usize) {
    let missing = (out.len() - start).wrapping_neg() % 8;
    match missing {
        0 => {}
        1 => out.push(OPTION_PAD1),
        _ => {
            out.extend_from_slice(&[OPTION_PAD_N, missing as u8 - 2]);
            out.resize(out.len() + missing - 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::{Address, Header};

    fn packet(first: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Header {
            traffic_class: 0,
            flow_label: 0,
            payload_length: rest.len() as u16,
            next_header: first,
            hop_limit: 1,
            source: Address::UNSPECIFIED,
            destination: Address::ALL_NODES,
        }
        .emit(&mut bytes);
        bytes.extend_from_slice(rest);
        bytes
    }

    /// Hop-by-hop with one option of type 0x63, then a fragment header, then UDP.
    fn chain() -> Vec<u8> {
        let mut rest = alloc::vec![next_header::FRAGMENT, 0, 0x63, 4, 1, 2, 3, 4];
        rest.extend_from_slice(&[next_header::UDP, 0xff, 0, 0, 9, 9, 9, 9]);
        rest.extend_from_slice(&[0; 8]);
        packet(next_header::HOP_BY_HOP, &rest)
    }

    #[test]
    fn the_chain_is_walked_to_the_upper_layer() {
        let bytes = chain();
        let kinds: Vec<_> = Extensions::new(&bytes)
            .expect("whole header")
            .map(|extension| extension.expect("whole chain").kind)
            .collect();
        assert_eq!(kinds, [ExtensionKind::HopByHop, ExtensionKind::Fragment]);
        assert_eq!(
            upper_layer(&bytes),
            Ok(UpperLayer { next_header: next_header::UDP, offset: 56 })
        );
    }

    #[test]
    fn every_prefix_of_a_chain_is_an_error() {
        let bytes = chain();
        for end in 0..56 {
            assert!(upper_layer(&bytes[..end]).is_err(), "{end} octets");
        }
    }

    #[test]
    fn options_are_read_with_their_padding() {
        let bytes = [0x63, 1, 7, OPTION_PAD1, OPTION_PAD_N, 1, 0];
        let read: Vec<_> = Options::new(&bytes).map(|option| option.expect("whole")).collect();
        assert_eq!(read[0], HeaderOption { kind: 0x63, offset: 0, data: &[7] });
        assert_eq!(read[1].octets(), 1);
        assert_eq!(read[2], HeaderOption { kind: OPTION_PAD_N, offset: 4, data: &[0] });
        assert!(!read[0].is_padding() && read[1].is_padding() && read[2].is_padding());
    }

    #[test]
    fn an_option_cut_short_ends_the_walk_with_one_error() {
        let mut options = Options::new(&[0x63, 9, 0]);
        assert!(options.next().expect("one item").is_err());
        assert_eq!(options.next(), None);
    }

    #[test]
    fn padding_fills_up_to_eight_octets() {
        for octets in 2..=10usize {
            let mut bytes = alloc::vec![0xaa];
            bytes.resize(1 + octets, 0x77);
            pad_to_eight(&mut bytes, 1);
            assert_eq!((bytes.len() - 1) % 8, 0);
            let padding = Options::new(&bytes[1 + octets..]).map(|option| option.expect("whole"));
            assert!(padding.clone().all(|option| option.is_padding()));
            assert!(padding.count() <= 1);
        }
    }
}
