//! How LOWPAN_IPHC shortens an address: the modes SAM and DAM with their contexts (RFC 6282 s3.1.1, s3.2.3).

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use super::Contexts;
use crate::ipv6::Address;
use crate::{DecodeError, Problem, Reader};

/// The middle of an interface identifier made from a short address: `0000:00ff:fe00:` and the address.
const SHORT_IID: [u8; 6] = [0, 0, 0, 0xff, 0xfe, 0];
/// Octets of a context's prefix, and the bits of it as RFC 3306 writes them into a group address.
const PREFIX_OCTETS: usize = 8;
const PREFIX_BITS: u8 = 64;

/// An address as the encoding names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortened {
    /// SAC or DAC: the prefix is in a context.
    pub stateful: bool,
    /// SAM or DAM.
    pub mode: u8,
    /// SCI or DCI; 0 where no context serves.
    pub context: u8,
    inline: [u8; 16],
    inline_octets: usize,
}

impl Shortened {
    fn new(context: Option<u8>, mode: u8, parts: &[&[u8]]) -> Self {
        let mut inline = [0; 16];
        let mut at = 0;
        for part in parts {
            inline[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Self {
            stateful: context.is_some(),
            mode,
            context: context.unwrap_or(0),
            inline,
            inline_octets: at,
        }
    }

    /// Writes what of the address is carried in-line.
    pub fn emit_inline(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.inline[..self.inline_octets]);
    }

    /// The shortest form of a source address, of a frame that `link` sends.
    pub fn source(address: &Address, link: Eui64, contexts: &Contexts) -> Self {
        if address.is_unspecified() {
            // SAC = 1, SAM = 00: the one form that names `::` without an octet.
            return Self { stateful: true, ..Self::new(None, 0b00, &[]) };
        }
        Self::unicast(address, Some(link), contexts)
    }

    /// The shortest form of a unicast destination address, of a frame that goes to `link`.
    pub fn unicast(address: &Address, link: Option<Eui64>, contexts: &Contexts) -> Self {
        let octets = &address.0;
        let context = if octets[..8] == Address::LINK_LOCAL_PREFIX {
            None
        } else {
            match contexts.covering(address) {
                Some(context) => Some(context),
                None => return Self::new(None, 0b00, &[octets]),
            }
        };
        let iid = &octets[8..];
        if link.is_some_and(|link| link.interface_identifier() == iid) {
            Self::new(context, 0b11, &[])
        } else if iid[..6] == SHORT_IID {
            Self::new(context, 0b10, &[&iid[6..]])
        } else {
            Self::new(context, 0b01, &[iid])
        }
    }

    /// The shortest form of a group address (M = 1).
    pub fn multicast(address: &Address, contexts: &Contexts) -> Self {
        let octets = &address.0;
        let zero = |from: usize, to: usize| octets[from..to].iter().all(|octet| *octet == 0);
        if octets[1] == 0x02 && zero(2, 15) {
            return Self::new(None, 0b11, &[&octets[15..]]);
        }
        if zero(2, 13) {
            return Self::new(None, 0b10, &[&octets[1..2], &octets[13..]]);
        }
        if zero(2, 11) {
            return Self::new(None, 0b01, &[&octets[1..2], &octets[11..]]);
        }
        if octets[3] == PREFIX_BITS
            && let Some(context) = contexts.find(&octets[4..4 + PREFIX_OCTETS])
        {
            return Self::new(Some(context), 0b00, &[&octets[1..3], &octets[12..]]);
        }
        Self::new(None, 0b00, &[octets])
    }
}

/// Reads a unicast address of the given mode.
pub(super) fn read_unicast(
    reader: &mut Reader<'_>,
    field: &'static str,
    stateful: Option<[u8; 8]>,
    mode: u8,
    link: Option<Eui64>,
) -> Result<Address, DecodeError> {
    let prefix = stateful.unwrap_or(Address::LINK_LOCAL_PREFIX);
    let iid = match mode {
        0b00 => return Ok(Address(reader.array(field)?)),
        0b01 => reader.array(field)?,
        0b10 => {
            let mut iid = [0; 8];
            iid[..6].copy_from_slice(&SHORT_IID);
            iid[6..].copy_from_slice(reader.take(2, field)?);
            iid
        }
        // A broadcast frame has no EUI-64 to take the identifier from.
        _ => link.ok_or_else(|| reader.error(field, Problem::Value))?.interface_identifier(),
    };
    Ok(Address::from_parts(prefix, iid))
}

/// Reads a group address of the given mode without context (M = 1, DAC = 0).
pub(super) fn read_multicast(reader: &mut Reader<'_>, mode: u8) -> Result<Address, DecodeError> {
    const FIELD: &str = "destination address";
    let mut octets = [0; 16];
    octets[0] = 0xff;
    match mode {
        0b00 => return Ok(Address(reader.array(FIELD)?)),
        0b01 => {
            octets[1] = reader.u8(FIELD)?;
            octets[11..].copy_from_slice(reader.take(5, FIELD)?);
        }
        0b10 => {
            octets[1] = reader.u8(FIELD)?;
            octets[13..].copy_from_slice(reader.take(3, FIELD)?);
        }
        _ => {
            octets[1] = 0x02;
            octets[15] = reader.u8(FIELD)?;
        }
    }
    Ok(Address(octets))
}

/// Reads a group address that is based on a unicast prefix (M = 1, DAC = 1, DAM = 00; RFC 3306).
pub(super) fn read_prefix_multicast(
    reader: &mut Reader<'_>,
    prefix: [u8; 8],
) -> Result<Address, DecodeError> {
    const FIELD: &str = "destination address";
    let mut octets = [0; 16];
    octets[0] = 0xff;
    octets[1..3].copy_from_slice(reader.take(2, FIELD)?);
    octets[3] = PREFIX_BITS;
    octets[4..12].copy_from_slice(&prefix);
    octets[12..].copy_from_slice(reader.take(4, FIELD)?);
    Ok(Address(octets))
}
