//! Entity tags: short names for representations (RFC 7252 s5.10.6).

use core::fmt;

/// Longest tag: RFC 7252 s5.10.6, 8 octets.
const LEN_MAX: usize = 8;

/// 1 to 8 octets that identify one representation of a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityTag {
    len: u8,
    octets: [u8; LEN_MAX],
}

impl EntityTag {
    /// The tag of these octets, if they are 1 to 8.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut tag = Self { len: octets.len() as u8, octets: [0; LEN_MAX] };
        if octets.is_empty() {
            return None;
        }
        tag.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(tag)
    }
    /// A tag derived from the octets of a representation: their 64-bit FNV-1a hash.
    ///
    /// Good against accidents, not against somebody who looks for two bodies with one tag.
    pub fn of(representation: &[u8]) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let hash = representation
            .iter()
            .fold(OFFSET, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(PRIME));
        Self { len: LEN_MAX as u8, octets: hash.to_be_bytes() }
    }
    /// The octets of the tag.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

impl fmt::Debug for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ETag(")?;
        self.as_bytes().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_one_to_eight_octets() {
        assert_eq!(EntityTag::new(&[]), None);
        assert_eq!(EntityTag::new(&[0; 9]), None);
        for len in 1..=8 {
            let octets = vec![3; len];
            let tag = EntityTag::new(&octets).expect("in bounds");
            assert_eq!(tag.as_bytes(), octets);
        }
        assert_ne!(EntityTag::new(&[0]), EntityTag::new(&[0, 0]));
    }

    #[test]
    fn the_tag_of_a_representation_is_its_published_fnv_1a_hash() {
        // Test vectors of the FNV authors: "" and "a".
        assert_eq!(EntityTag::of(b"").as_bytes(), 0xcbf2_9ce4_8422_2325_u64.to_be_bytes());
        assert_eq!(EntityTag::of(b"a").as_bytes(), 0xaf63_dc4c_8601_ec8c_u64.to_be_bytes());
    }
}
