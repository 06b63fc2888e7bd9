//! Router Solicitation and Advertisement (RFC 4861 s4.1, s4.2) with the options of a 6LoWPAN: prefix information
//! (RFC 4861 s4.6.2), contexts (RFC 6775 s4.2) and capabilities (RFC 7400 s3.3, RFC 8505 s4.3). Here is what is behind the checksum; the rest is
//! [`icmpv6`](crate::icmpv6). What the messages mean is left to the crate `ipv6`.
//!
//! ```text
//!   solicitation    | reserved 32                                    | options ...
//!   advertisement   | hop limit 8 |M|O| lifetime 16 | reachable 32 | retransmission 32 | options ...
//!
//!   prefix information  | type 3,  length 4 | bits 8 |L|A| valid 32 | preferred 32 | reserved 32 | prefix 128 |
//!   6LoWPAN context     | type 34, length 2 | bits 8 |C| CID 4 | reserved 16 | lifetime 16, in minutes | prefix 64 |
//!   capabilities        | type 36, length 1 | reserved 10 |D|L|B|P|E|G| reserved 32 |
//! ```

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use crate::ipv6::Address;
use crate::neighbour::{SOURCE_LINK_LAYER_ADDRESS, UNIT, UNITS, emit_node, parse_node};
use crate::{DecodeError, Problem, Reader};

const SOLICITATION: &str = "Router Solicitation";
const ADVERTISEMENT: &str = "Router Advertisement";
// Option types: RFC 4861 s4.6.2, RFC 6775 s4.2, RFC 8505 s4.3.
const PREFIX_INFORMATION: u8 = 3;
const CONTEXT: u8 = 34;
const CAPABILITIES: u8 = 36;
const CAPABILITIES_UNITS: u8 = 1;
const PREFIX_UNITS: u8 = 4;

/// A Router Solicitation: which routers are here?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSolicitation {
    /// The link-layer address of the node that asks.
    pub source_node: Option<Eui64>,
}

/// A prefix of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// Bits of the prefix.
    pub bits: u8,
    /// All its addresses are on the link (L).
    pub on_link: bool,
    /// Nodes make addresses of it (A).
    pub autonomous: bool,
    /// Seconds for which it is valid.
    pub valid: u32,
    /// Seconds for which new packets should use it.
    pub preferred: u32,
    /// The prefix.
    pub prefix: Address,
}

/// A context of header compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextInformation {
    /// Its number, 0 to 15.
    pub index: u8,
    /// Packets may be compressed with it, and not only decompressed (C).
    pub compresses: bool,
    /// Minutes for which it is valid.
    pub lifetime_minutes: u16,
    /// Its 64 bits.
    pub prefix: [u8; 8],
}

/// What a router says of its part in a 6LoWPAN (RFC 8505 s4.3), as the flags on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u8);

impl Capabilities {
    /// L: it is a router of the 6LoWPAN.
    pub const ROUTER: Self = Self(0x10);
    /// E: it takes the registrations of RFC 8505.
    pub const REGISTRAR: Self = Self(0x02);

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A Router Advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterAdvertisement {
    /// Hop limit for new packets; 0 says nothing.
    pub hop_limit: u8,
    /// Seconds for which the router is a default router; 0 if it is none.
    pub lifetime: u16,
    /// The link-layer address of the router.
    pub source_node: Option<Eui64>,
    /// Prefixes of the link.
    pub prefixes: Vec<PrefixInformation>,
    /// Contexts of the link.
    pub contexts: Vec<ContextInformation>,
    /// What it can do, if it says so.
    pub capabilities: Option<Capabilities>,
}

impl RouterSolicitation {
    /// Reads what is behind the checksum.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(SOLICITATION, body);
        reader.u32_be("reserved")?;
        let mut source_node = None;
        options(&mut reader, |kind, units, body| {
            if kind == SOURCE_LINK_LAYER_ADDRESS {
                source_node = parse_node(units, body)?;
            }
            Ok(())
        })?;
        Ok(Self { source_node })
    }
    /// Appends what is behind the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 4]);
        emit_node(SOURCE_LINK_LAYER_ADDRESS, self.source_node, out);
    }
}

impl RouterAdvertisement {
    /// Reads what is behind the checksum.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(ADVERTISEMENT, body);
        let hop_limit = reader.u8("hop limit")?;
        reader.u8("flags")?;
        let lifetime = reader.u16_be("router lifetime")?;
        reader.u32_be("reachable time")?;
        reader.u32_be("retransmission timer")?;
        let (mut source_node, mut prefixes, mut contexts) = (None, Vec::new(), Vec::new());
        let mut capabilities = None;
        options(&mut reader, |kind, units, body| {
            match (kind, units) {
                (SOURCE_LINK_LAYER_ADDRESS, _) => source_node = parse_node(units, body)?,
                (PREFIX_INFORMATION, PREFIX_UNITS) => prefixes.push(prefix(body)?),
                (CONTEXT, UNITS) => contexts.push(context(body)?),
                (CAPABILITIES, CAPABILITIES_UNITS) => {
                    let [_, flags] = body.array("capabilities")?;
                    capabilities = Some(Capabilities(flags));
                }
                // RFC 4861 s4.6: what is not known is skipped; so are contexts of more than 64 bits.
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self { hop_limit, lifetime, source_node, prefixes, contexts, capabilities })
    }
    /// Appends what is behind the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.hop_limit, 0]);
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        emit_node(SOURCE_LINK_LAYER_ADDRESS, self.source_node, out);
        for one in &self.prefixes {
            let flags = u8::from(one.on_link) << 7 | u8::from(one.autonomous) << 6;
            out.extend_from_slice(&[PREFIX_INFORMATION, PREFIX_UNITS, one.bits, flags]);
            out.extend_from_slice(&one.valid.to_be_bytes());
            out.extend_from_slice(&one.preferred.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&one.prefix.0);
        }
        for one in &self.contexts {
            let flags = u8::from(one.compresses) << 4 | one.index & 0x0f;
            out.extend_from_slice(&[CONTEXT, UNITS, 64, flags, 0, 0]);
            out.extend_from_slice(&one.lifetime_minutes.to_be_bytes());
            out.extend_from_slice(&one.prefix);
        }
        if let Some(Capabilities(flags)) = self.capabilities {
            out.extend_from_slice(&[CAPABILITIES, CAPABILITIES_UNITS, 0, flags, 0, 0, 0, 0]);
        }
    }
}

fn prefix(body: &mut Reader<'_>) -> Result<PrefixInformation, DecodeError> {
    let bits = body.u8("prefix length")?;
    let flags = body.u8("flags")?;
    let (valid, preferred) = (body.u32_be("valid lifetime")?, body.u32_be("preferred lifetime")?);
    body.u32_be("reserved")?;
    let prefix = Address(body.array("prefix")?);
    let (on_link, autonomous) = (flags >> 7 == 1, flags >> 6 & 1 == 1);
    Ok(PrefixInformation { bits, on_link, autonomous, valid, preferred, prefix })
}

fn context(body: &mut Reader<'_>) -> Result<ContextInformation, DecodeError> {
    body.u8("context length")?;
    let flags = body.u8("flags")?;
    body.u16_be("reserved")?;
    let lifetime_minutes = body.u16_be("valid lifetime")?;
    let prefix = body.array("context prefix")?;
    let (index, compresses) = (flags & 0x0f, flags >> 4 & 1 == 1);
    Ok(ContextInformation { index, compresses, lifetime_minutes, prefix })
}

/// Reads all options: the type, the units and the body of each.
fn options(
    reader: &mut Reader<'_>,
    mut take: impl FnMut(u8, u8, &mut Reader<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !reader.is_empty() {
        let kind = reader.u8("option type")?;
        let wrong = reader.error("option length", Problem::Length);
        let units = reader.u8("option length")?;
        // RFC 4861 s6.1.1, s6.1.2: every option has a length greater than zero.
        let octets = (usize::from(units) * UNIT).checked_sub(2).ok_or(wrong)?;
        take(kind, units, &mut Reader::new("option", reader.take(octets, "option")?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    fn advertisement() -> RouterAdvertisement {
        let prefix = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1];
        RouterAdvertisement {
            hop_limit: 64,
            lifetime: 1800,
            source_node: Some(NodeId(7).eui64()),
            prefixes: [PrefixInformation {
                bits: 64,
                on_link: false,
                autonomous: true,
                valid: 7200,
                preferred: 3600,
                prefix: Address::from_parts(prefix, [0; 8]),
            }]
            .into(),
            contexts: [ContextInformation {
                index: 3,
                compresses: true,
                lifetime_minutes: 60,
                prefix,
            }]
            .into(),
            capabilities: Some(Capabilities::ROUTER.and(Capabilities::REGISTRAR)),
        }
    }

    #[test]
    fn messages_come_back_as_they_were_and_no_beginning_but_between_options() {
        let mut body = Vec::new();
        advertisement().emit(&mut body);
        assert_eq!(RouterAdvertisement::parse(&body), Ok(advertisement()));
        for end in 0..body.len() {
            let is_whole = [12, 28, 60, 76].contains(&end);
            assert_eq!(RouterAdvertisement::parse(&body[..end]).is_ok(), is_whole, "cut at {end}");
        }
        for source_node in [None, Some(NodeId(7).eui64())] {
            let mut body = Vec::new();
            RouterSolicitation { source_node }.emit(&mut body);
            assert_eq!(RouterSolicitation::parse(&body), Ok(RouterSolicitation { source_node }));
        }
    }

    #[test]
    fn the_octets_stand_where_the_rfcs_draw_them() {
        let mut body = Vec::new();
        RouterAdvertisement { source_node: None, ..advertisement() }.emit(&mut body);
        assert_eq!(body[..4], [64, 0, 0x07, 0x08]);
        assert_eq!(body[12..16], [3, 4, 64, 0x40]);
        assert_eq!(body[44..52], [34, 2, 64, 0x13, 0, 0, 0, 60]);
        assert_eq!(body[60..68], [36, 1, 0, 0x12, 0, 0, 0, 0]);
    }

    #[test]
    fn an_option_without_length_is_refused() {
        let mut body = Vec::new();
        RouterSolicitation { source_node: None }.emit(&mut body);
        body.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        let error = RouterSolicitation::parse(&body).expect_err("length 0");
        assert_eq!(error.field, "option length");
    }
}
