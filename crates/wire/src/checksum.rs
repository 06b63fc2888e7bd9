//! The Internet checksum (RFC 1071) over the IPv6 pseudo header (RFC 8200 s8.1), for ICMPv6, UDP and TCP.
//!
//! Where the checksum field lies, and that UDP writes 0xffff for 0, is the business of each protocol.

/// The checksum of `payload` (its own checksum field zero) between `src` and `dst`.
///
/// Over a payload whose checksum field is filled in correctly the result is 0.
///
/// ```
/// use lowmesh_wire::checksum::pseudo_header_checksum;
/// let (src, dst) = ([1; 16], [2; 16]);
/// let sum = pseudo_header_checksum(&src, &dst, 58, &[128, 0, 0, 0]);
/// let [high, low] = sum.to_be_bytes();
/// assert_eq!(pseudo_header_checksum(&src, &dst, 58, &[128, 0, high, low]), 0);
/// ```
pub fn pseudo_header_checksum(
    src: &[u8; 16],
    dst: &[u8; 16],
    next_header: u8,
    payload: &[u8],
) -> u16 {
    let length = payload.len() as u64;
    let mut sum = length + u64::from(next_header);
    sum += sum_of_words(src) + sum_of_words(dst) + sum_of_words(payload);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// The plain sum of 16-bit words, an odd last octet padded with zero; carries are folded by the caller.
fn sum_of_words(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum + odd.first().map_or(0, |last| u64::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_payload_counts_as_if_padded_with_zero() {
        let (src, dst) = ([0xfe; 16], [0x80; 16]);
        // The length is part of the sum, so the padded payload differs by exactly one.
        let odd = !pseudo_header_checksum(&src, &dst, 17, &[1, 2, 3]);
        let padded = !pseudo_header_checksum(&src, &dst, 17, &[1, 2, 3, 0]);
        assert_eq!(odd + 1, padded);
    }

    #[test]
    fn one_flipped_bit_is_seen() {
        let (src, dst) = ([3; 16], [4; 16]);
        let mut payload = vec![0x80, 0, 0, 0, 9, 9, 9, 9];
        let sum = pseudo_header_checksum(&src, &dst, 58, &payload);
        payload[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(pseudo_header_checksum(&src, &dst, 58, &payload), 0);
        for bit in 0..payload.len() * 8 {
            payload[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(pseudo_header_checksum(&src, &dst, 58, &payload), 0, "bit {bit}");
            payload[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_sum_known_from_the_definition() {
        // All-zero addresses, one word 0x1234, length 2, next header 17: ~(0x1234 + 2 + 17).
        assert_eq!(pseudo_header_checksum(&[0; 16], &[0; 16], 17, &[0x12, 0x34]), !0x1247);
    }
}
