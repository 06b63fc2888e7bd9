//! Options that a node puts into the hop-by-hop header of a packet and takes out again (RFC 8200 s4.3).

use alloc::vec::Vec;

use super::{
    Extension, ExtensionKind, HEADER_OCTETS, Header, HeaderOption, NEXT_HEADER_OFFSET,
    PAYLOAD_LENGTH_OFFSET, next_header, pad_to_eight,
};
use crate::{DecodeError, Problem, Reader};

/// Octets of next header and length before the first option.
const FIXED_OCTETS: usize = 2;

/// The hop-by-hop header of a whole packet, if it has one.
fn hop_by_hop(packet: &[u8]) -> Result<Option<Extension<'_>>, DecodeError> {
    let header = Header::parse_packet(packet)?;
    if header.next_header != next_header::HOP_BY_HOP {
        return Ok(None);
    }
    Extension::parse(ExtensionKind::HopByHop, packet, HEADER_OCTETS).map(Some)
}

/// The first option of type `kind` in the hop-by-hop header of `packet`: all its octets, and where they start in the
/// packet.
pub fn hop_by_hop_option(packet: &[u8], kind: u8) -> Result<Option<(usize, &[u8])>, DecodeError> {
    let Some(extension) = hop_by_hop(packet)? else { return Ok(None) };
    for option in extension.options() {
        let option = option?;
        if option.kind == kind {
            let start = FIXED_OCTETS + option.offset;
            let octets = &extension.bytes[start..start + option.octets()];
            return Ok(Some((extension.offset + start, octets)));
        }
    }
    Ok(None)
}

/// `packet` with `option` as the last option of its hop-by-hop header, which it gets if it has none.
pub fn with_hop_by_hop_option(packet: &[u8], option: &[u8]) -> Result<Vec<u8>, DecodeError> {
    rewrite(packet, |_| true, option)
}

/// `packet` without the options of type `kind`, and without a hop-by-hop header that would be empty.
pub fn without_hop_by_hop_option(packet: &[u8], kind: u8) -> Result<Vec<u8>, DecodeError> {
    rewrite(packet, |option| option.kind != kind, &[])
}

/// The packet with the options that `keeps` chooses, then `last`.
fn rewrite(
    packet: &[u8],
    keeps: impl Fn(&HeaderOption<'_>) -> bool,
    last: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let extension = hop_by_hop(packet)?;
    let mut options = Vec::new();
    for option in extension.iter().flat_map(Extension::options) {
        let option = option?;
        // The padding between options is left away: none of ours has an alignment.
        if !option.is_padding() && keeps(&option) {
            options.extend_from_slice(&[option.kind, option.data.len() as u8]);
            options.extend_from_slice(option.data);
        }
    }
    options.extend_from_slice(last);
    let (next, upper) = match &extension {
        Some(extension) => (extension.next_header, extension.offset + extension.bytes.len()),
        None => (packet[NEXT_HEADER_OFFSET], HEADER_OCTETS),
    };
    let mut out = packet[..HEADER_OCTETS].to_vec();
    if options.is_empty() {
        out[NEXT_HEADER_OFFSET] = next;
    } else {
        out[NEXT_HEADER_OFFSET] = next_header::HOP_BY_HOP;
        out.extend_from_slice(&[next, 0]);
        out.extend_from_slice(&options);
        pad_to_eight(&mut out, HEADER_OCTETS);
        let units = (out.len() - HEADER_OCTETS) / 8 - 1;
        out[HEADER_OCTETS + 1] = u8::try_from(units).map_err(|_| too_long())?;
    }
    out.extend_from_slice(&packet[upper..]);
    let length = u16::try_from(out.len() - HEADER_OCTETS).map_err(|_| too_long())?;
    out[PAYLOAD_LENGTH_OFFSET..PAYLOAD_LENGTH_OFFSET + 2].copy_from_slice(&length.to_be_bytes());
    Ok(out)
}

/// The header or the packet would exceed what its length field counts.
fn too_long() -> DecodeError {
    Reader::new("IPv6 hop-by-hop options", &[]).error("length", Problem::Length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::{Address, upper_layer};

    const OPTION: [u8; 4] = [0x6d, 2, 0x20, 7];

    fn plain() -> Vec<u8> {
        let mut packet = Header {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 5,
            next_header: next_header::UDP,
            hop_limit: 9,
            source: Address::ALL_NODES,
            destination: Address::ALL_NODES,
        }
        .to_bytes()
        .to_vec();
        packet.extend_from_slice(b"lower");
        packet
    }

    #[test]
    fn an_option_goes_in_and_comes_out_again() {
        let with = with_hop_by_hop_option(&plain(), &OPTION).expect("a whole packet");
        assert_eq!(with.len(), plain().len() + 8);
        assert_eq!(with[HEADER_OCTETS..HEADER_OCTETS + 6], [17, 0, 0x6d, 2, 0x20, 7]);
        assert_eq!(hop_by_hop_option(&with, 0x6d), Ok(Some((HEADER_OCTETS + 2, &OPTION[..]))));
        assert_eq!(upper_layer(&with).map(|upper| upper.next_header), Ok(next_header::UDP));
        assert_eq!(without_hop_by_hop_option(&with, 0x6d), Ok(plain()));
    }

    #[test]
    fn other_options_stay() {
        let rpl = [0x63, 4, 0, 0, 1, 0];
        let packet = with_hop_by_hop_option(&plain(), &rpl).expect("a whole packet");
        let both = with_hop_by_hop_option(&packet, &OPTION).expect("a whole packet");
        assert_eq!(hop_by_hop_option(&both, 0x63), Ok(Some((HEADER_OCTETS + 2, &rpl[..]))));
        assert_eq!(hop_by_hop_option(&both, 0x6d), Ok(Some((HEADER_OCTETS + 8, &OPTION[..]))));
        assert_eq!(without_hop_by_hop_option(&both, 0x6d), Ok(packet));
        assert_eq!(hop_by_hop_option(&plain(), 0x6d), Ok(None));
    }

    #[test]
    fn every_prefix_of_a_packet_is_an_error_and_so_is_a_packet_that_is_full() {
        let with = with_hop_by_hop_option(&plain(), &OPTION).expect("a whole packet");
        for end in 0..with.len() {
            assert!(hop_by_hop_option(&with[..end], 0x6d).is_err(), "{end} octets");
            assert!(without_hop_by_hop_option(&with[..end], 0x6d).is_err(), "{end} octets");
        }
        let mut full = plain();
        full.resize(HEADER_OCTETS + usize::from(u16::MAX), 0);
        full[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].fill(0xff);
        let error = with_hop_by_hop_option(&full, &OPTION).expect_err("no octet is left");
        assert_eq!(error.problem, Problem::Length);
    }
}
