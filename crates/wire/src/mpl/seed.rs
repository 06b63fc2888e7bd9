//! Seed identifiers and the two bits S that tell their length (RFC 7731 s5.3, s6.1, s6.3).

use alloc::vec::Vec;

use crate::ipv6::Address;
use crate::{DecodeError, Reader};

/// The name of the node that brought a message into an MPL domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeedId {
    /// S = 0: the IPv6 source address of the packet, which is not repeated.
    Source,
    /// S = 1: 16 bits.
    Short(u16),
    /// S = 2: 64 bits.
    Extended([u8; 8]),
    /// S = 3: 128 bits.
    Long([u8; 16]),
}

impl SeedId {
    /// The two bits S.
    pub const fn size_bits(&self) -> u8 {
        match self {
            Self::Source => 0,
            Self::Short(_) => 1,
            Self::Extended(_) => 2,
            Self::Long(_) => 3,
        }
    }
    /// Octets on the air.
    pub const fn octets(&self) -> usize {
        match self {
            Self::Source => 0,
            Self::Short(_) => 2,
            Self::Extended(_) => 8,
            Self::Long(_) => 16,
        }
    }
    /// The same seed without reference to a packet: [`SeedId::Source`] becomes the 128 bits of `source`.
    pub const fn resolve(self, source: Address) -> Self {
        match self {
            Self::Source => Self::Long(source.0),
            other => other,
        }
    }
    /// Reads a seed identifier whose length the lowest two bits of `size_bits` tell.
    pub(super) fn parse(reader: &mut Reader<'_>, size_bits: u8) -> Result<Self, DecodeError> {
        const FIELD: &str = "seed-id";
        Ok(match size_bits & 0b11 {
            0 => Self::Source,
            1 => Self::Short(reader.u16_be(FIELD)?),
            2 => Self::Extended(reader.array(FIELD)?),
            _ => Self::Long(reader.array(FIELD)?),
        })
    }
    /// Writes the octets of the identifier.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Source => {}
            Self::Short(short) => out.extend_from_slice(&short.to_be_bytes()),
            Self::Extended(octets) => out.extend_from_slice(octets),
            Self::Long(octets) => out.extend_from_slice(octets),
        }
    }
}
