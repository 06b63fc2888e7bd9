//! The checksum of upper layers over IPv6 (RFC 8200 s8.1) and over IPv4 (RFC 9293 s3.1); the sum is that of RFC 1071.

/// The one's complement of the sum over the pseudo-header and `payload`.
///
/// With a checksum field of zero in `payload` this is the checksum; with the checksum in place it is 0.
pub fn pseudo_header_checksum(
    src: &[u8; 16],
    dst: &[u8; 16],
    next_header: u8,
    payload: &[u8],
) -> u16 {
    over(src, dst, next_header, payload)
}

/// The same over the pseudo-header of IPv4, for the protocol `protocol`.
pub fn pseudo_header_checksum_v4(src: [u8; 4], dst: [u8; 4], protocol: u8, payload: &[u8]) -> u16 {
    over(&src, &dst, protocol, payload)
}

/// Both pseudo-headers have the same words but for the length of the addresses.
fn over(src: &[u8], dst: &[u8], next_header: u8, payload: &[u8]) -> u16 {
    let length = payload.len() as u64;
    let mut sum = length + u64::from(next_header) + sum(src) + sum(dst) + sum(payload);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of the 16-bit words; an odd last octet counts as the upper half of a word (RFC 1071 s4.1).
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut sum = 0u64;
    for word in &mut words {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    sum + words.remainder().first().map_or(0, |last| u64::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_in_its_place_sums_to_zero() {
        let (src, dst) = ([0x20; 16], [0xfd; 16]);
        let mut payload = [0xf0, 0xb1, 0xf0, 0xb2, 0, 11, 0, 0, 1, 2, 3];
        let checksum = pseudo_header_checksum(&src, &dst, 17, &payload);
        payload[6..8].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(pseudo_header_checksum(&src, &dst, 17, &payload), 0);
        payload[10] ^= 1;
        assert_ne!(pseudo_header_checksum(&src, &dst, 17, &payload), 0);
    }
}
