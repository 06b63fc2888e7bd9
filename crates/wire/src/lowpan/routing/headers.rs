//! 6LoRH headers: an outline as octets and back (RFC 8138 s4, s6, s7).
//!
//! ```text
//!   critical   1 0 0 | TSE (5)    | type |    0 to 4: SRH-6LoRH, 5: RPI-6LoRH
//!   elective   1 0 1 | length (5) | type |    6: IP-in-IP-6LoRH; unknown ones are skipped
//! ```

use alloc::vec::Vec;

use super::outline::{Outline, Tunnel};
use super::path::{self, CRITICAL, Entries, SIZE_MASK, TYPE_MAX};
use crate::ipv6::Address;
use crate::lowpan::{DISPATCH_PAGE_1, RoutingContext};
use crate::rpl::HopByHopOption;
use crate::{DecodeError, Problem, Reader};

/// A header that a node skips if it does not know it (RFC 8138 s4.1).
const ELECTIVE: u8 = 0b1010_0000;
const FORM_MASK: u8 = 0b1110_0000;
/// 6LoRH type of the RPI-6LoRH, critical (RFC 8138 s6.3).
const RPI: u8 = 5;
/// 6LoRH type of the IP-in-IP-6LoRH, elective (RFC 8138 s7).
const IP_IN_IP: u8 = 6;
/// Flags of an RPI-6LoRH.
const DOWN: u8 = 0b1_0000;
const RANK_ERROR: u8 = 0b1000;
const FORWARDING_ERROR: u8 = 0b100;
/// I: the RPLInstanceID is 0 and left away.
const INSTANCE_ELIDED: u8 = 0b10;
/// K: SenderRank has one octet, and its low octet is 0 and left away (RFC 8138 s6.2). OpenWSN reads it so too.
/// A SenderRank that counts hops hardly ever has that form.
const SHORT_RANK: u8 = 0b1;

/// Appends the dispatch and the headers of an outline, whose packet or tunnel has this `source`; `None`, and nothing
/// appended, if one of them cannot say it.
pub(super) fn emit(
    outline: &Outline,
    source: &Address,
    context: Option<&RoutingContext>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let skippable = context.is_none_or(|context| context.skippable);
    // RFC 8138 s6 has no place for the type of the option.
    if outline.option.is_some_and(|option| option.skippable != skippable) {
        return None;
    }
    let reference = outline.tunnel.as_ref().map_or(source, |tunnel| &tunnel.source);
    // RFC 8138 s3.2.2: SRH-6LoRH first, IP-in-IP-6LoRH last.
    out.push(DISPATCH_PAGE_1);
    path::emit(reference, &outline.path, out);
    if let Some(option) = outline.option {
        emit_option(option, out);
    }
    if let Some(tunnel) = &outline.tunnel {
        emit_tunnel(tunnel, context, out);
    }
    Some(())
}

fn emit_option(option: HopByHopOption, out: &mut Vec<u8>) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let [high, low] = option.sender_rank.to_be_bytes();
    let flags = flag(option.down, DOWN)
        | flag(option.rank_error, RANK_ERROR)
        | flag(option.forwarding_error, FORWARDING_ERROR)
        | flag(option.instance == 0, INSTANCE_ELIDED)
        | flag(low == 0, SHORT_RANK);
    out.extend_from_slice(&[CRITICAL | flags, RPI]);
    if option.instance != 0 {
        out.push(option.instance);
    }
    out.push(high);
    if low != 0 {
        out.push(low);
    }
}

fn emit_tunnel(tunnel: &Tunnel, context: Option<&RoutingContext>, out: &mut Vec<u8>) {
    let source = &tunnel.source.0;
    // RFC 8138 s7: the encapsulator is left away where it is the root, and compressed against its address elsewhere.
    let shared = context
        .map_or(0, |context| context.root.0.iter().zip(source).take_while(|(a, b)| a == b).count());
    let length = 1 + source.len() - shared;
    out.extend_from_slice(&[ELECTIVE | length as u8, IP_IN_IP, tunnel.hop_limit]);
    out.extend_from_slice(&source[shared..]);
}

/// The 6LoRH headers of a frame, before the addresses that they are compressed against are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain<'a> {
    route: Vec<Entries<'a>>,
    option: Option<HopByHopOption>,
    /// Hop limit and encapsulator of an IP-in-IP-6LoRH.
    tunnel: Option<(u8, &'a [u8])>,
}

impl Chain<'_> {
    pub fn option(&self, context: Option<&RoutingContext>) -> Option<HopByHopOption> {
        let skippable = context.is_none_or(|context| context.skippable);
        self.option.map(|option| HopByHopOption { skippable, ..option })
    }

    /// The hops of the route, of which `reference` is the source.
    pub fn path(
        &self,
        reference: &Address,
        reader: &Reader<'_>,
    ) -> Result<Vec<Address>, DecodeError> {
        path::expand(reference, &self.route, reader)
    }

    pub fn tunnel(
        &self,
        reader: &Reader<'_>,
        context: Option<&RoutingContext>,
    ) -> Result<Option<Tunnel>, DecodeError> {
        const FIELD: &str = "encapsulator";
        let Some((hop_limit, inline)) = self.tunnel else { return Ok(None) };
        // Neither the encapsulator nor the end can be left away where nobody knows the root.
        let is_whole = inline.len() == 16 && !self.route.is_empty();
        let root = match context {
            Some(context) => context.root,
            None if is_whole => Address::UNSPECIFIED,
            None => return Err(reader.error(FIELD, Problem::Unsupported)),
        };
        let mut source = root;
        source.0[16 - inline.len()..].copy_from_slice(inline);
        Ok(Some(Tunnel { source, hop_limit }))
    }
}

/// Reads the dispatch and all 6LoRH headers; what follows is LOWPAN_IPHC.
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Chain<'a>, DecodeError> {
    let mut chain = Chain::default();
    if reader.u8("page dispatch")? != DISPATCH_PAGE_1 {
        return Err(Reader::new("6LoRH", &[]).error("page dispatch", Problem::Unsupported));
    }
    loop {
        let start = *reader;
        let form = start.peek_rest().first().map_or(0, |octet| octet & FORM_MASK);
        if form != CRITICAL && form != ELECTIVE {
            return Ok(chain);
        }
        let [first, kind] = reader.array("6LoRH")?;
        match (form, kind) {
            (CRITICAL, 0..=TYPE_MAX) => chain.route.push(Entries::read(reader, first, kind)?),
            (CRITICAL, RPI) if chain.option.is_none() => {
                chain.option = Some(read_option(reader, first)?);
            }
            // RFC 8138 s4.2: a packet with a critical header that the node does not know is dropped.
            (CRITICAL, _) => return Err(start.error("6LoRH type", Problem::Unsupported)),
            (_, IP_IN_IP) if chain.tunnel.is_none() => {
                chain.tunnel = Some(read_tunnel(reader, first)?);
            }
            (_, IP_IN_IP) => return Err(start.error("IP-in-IP-6LoRH", Problem::Unsupported)),
            // RFC 8138 s4.1: an elective header that the node does not know is skipped.
            _ => {
                reader.take(usize::from(first & SIZE_MASK), "6LoRH")?;
            }
        }
    }
}

fn read_option(reader: &mut Reader<'_>, flags: u8) -> Result<HopByHopOption, DecodeError> {
    let instance = if flags & INSTANCE_ELIDED != 0 { 0 } else { reader.u8("RPLInstanceID")? };
    let sender_rank = if flags & SHORT_RANK != 0 {
        u16::from(reader.u8("SenderRank")?) << 8
    } else {
        reader.u16_be("SenderRank")?
    };
    Ok(HopByHopOption {
        skippable: true,
        down: flags & DOWN != 0,
        rank_error: flags & RANK_ERROR != 0,
        forwarding_error: flags & FORWARDING_ERROR != 0,
        instance,
        sender_rank,
    })
}

fn read_tunnel<'a>(reader: &mut Reader<'a>, first: u8) -> Result<(u8, &'a [u8]), DecodeError> {
    let length = usize::from(first & SIZE_MASK);
    if !(1..=17).contains(&length) {
        return Err(reader.error("IP-in-IP-6LoRH length", Problem::Length));
    }
    let hop_limit = reader.u8("hop limit")?;
    Ok((hop_limit, reader.take(length - 1, "encapsulator")?))
}
