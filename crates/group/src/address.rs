//! Group addresses: those of one manager have a block in common, and a number in sequence (S002 s4.2).
//!
//! ```text
//!   ff1e:0:0:0:0:00BB:BBBB:NNNN      B: the block, 24 bits     N: the number
//!   ff1e::89:N                       the block of S002
//! ```
//! A manager draws its block at random, so two managers on one network, or one that has lost its state, have different
//! addresses. The form is the longest whose octets 6LoWPAN writes in six (RFC 6282 s3.1.1).

use core::net::Ipv6Addr;

use lowmesh_units::Rng;

use crate::params::{GROUP_BLOCK_DYNAMIC, GROUP_FLAGS, GROUP_IDENTIFIER, GROUP_NUMBER_MAX};

/// The block of addresses of one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block(u32);

impl Block {
    /// That of S002.
    pub const PUBLISHED: Self = Self(GROUP_IDENTIFIER as u32);

    /// A block at random.
    pub fn draw(rng: &mut Rng) -> Self {
        // RFC 3307 s4.3: the highest of the last 32 bits is set in group IDs that are allocated dynamically.
        Self(rng.next_u32() & 0x00ff_ffff | GROUP_BLOCK_DYNAMIC)
    }
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
    pub(crate) fn of_bits(bits: u32) -> Option<Self> {
        (bits <= 0x00ff_ffff).then_some(Self(bits))
    }
    /// The group address with this number and scope.
    pub const fn address(self, scope: u8, number: u16) -> Ipv6Addr {
        let first = 0xff00 | (GROUP_FLAGS as u16) << 4 | (scope & 0x0f) as u16;
        let [high, low] = [(self.0 >> 16) as u16, self.0 as u16];
        Ipv6Addr::new(first, 0, 0, 0, 0, high, low, number)
    }
    /// The scope and number of an address of this block.
    pub fn number_of(self, address: Ipv6Addr) -> Option<(u8, u16)> {
        let [first, .., number] = address.segments();
        let scope = (first & 0x0f) as u8;
        (self.address(scope, number) == address).then_some((scope, number))
    }
}

/// Allocator of the numbers of group addresses. None is given out twice before all of them have been (S002 s5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number that is tried next.
    next: u16,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { next: 1 }
    }
}

impl Numbers {
    /// Goes on from where numbers that were stored ended.
    pub(crate) const fn from_next(next: u16) -> Self {
        Self { next: if next == 0 { 1 } else { next } }
    }
    pub(crate) const fn next(self) -> u16 {
        self.next
    }
    /// A number that is not in use; `None` if all are.
    pub(crate) fn allocate(&mut self, is_used: impl Fn(u16) -> bool) -> Option<u16> {
        for _ in 0..GROUP_NUMBER_MAX {
            let number = self.next;
            self.next = if number == GROUP_NUMBER_MAX { 1 } else { number + 1 };
            if !is_used(number) {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{NodeId, Purpose, Seed};

    use super::*;

    #[test]
    fn addresses_are_those_of_the_publication() {
        // Ishaq et al. 2016, s4.2: ff1e::89:1 is the first.
        assert_eq!(Block::PUBLISHED.address(0xe, 1).to_string(), "ff1e::89:1");
        assert_eq!(Block::PUBLISHED.address(3, 0x1234).to_string(), "ff13::89:1234");
    }

    #[test]
    fn managers_have_blocks_of_their_own_and_know_their_addresses() {
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Coap);
        let blocks: Vec<Block> = (0..100).map(|_| Block::draw(&mut rng)).collect();
        for (place, block) in blocks.iter().enumerate() {
            assert!(!blocks[..place].contains(block));
            let address = block.address(5, 7);
            let octets = address.octets();
            assert!(octets[2..11].iter().all(|octet| *octet == 0), "{address}");
            assert!(octets[12] & 0x80 != 0, "RFC 3307 s4.3: {address}");
            assert_eq!(block.number_of(address), Some((5, 7)));
            assert_eq!(Block::PUBLISHED.number_of(address), None);
            assert_eq!(Block::of_bits(block.bits()), Some(*block));
        }
        let other = "ff05::1".parse().expect("an address");
        assert_eq!(Block::PUBLISHED.number_of(other), None);
    }

    #[test]
    fn a_number_comes_again_only_after_all_others() {
        let mut numbers = Numbers::default();
        let held = [3, 7];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..usize::from(GROUP_NUMBER_MAX) - held.len() {
            let number = numbers.allocate(|number| held.contains(&number)).expect("a free one");
            assert!(seen.insert(number), "{number} came twice");
        }
        assert_eq!(numbers.allocate(|number| held.contains(&number)), Some(1));
        assert_eq!(numbers.allocate(|_| true), None);
    }
}
