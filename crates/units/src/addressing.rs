//! How the nodes of a planned network get their EUI-64s.

use crate::ident::{Eui64, NodeId, ShortAddr};
use crate::rng::{Purpose, Seed, draw};

/// How the nodes of a network get their EUI-64s: unique, locally administered, unicast.
///
/// Autonomous schedules hash addresses. Consecutive addresses spread over slots more evenly than those of real devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Addressing {
    /// Anything, by the seed; no two nodes of a network have the same.
    #[default]
    Random,
    /// Those of [`NodeId::eui64`], which count up with the node's number.
    Consecutive,
    /// Short addresses, which the root gives out: anything, by the seed, below [`SHORT_ADDRESSES`]; no two nodes have the same.
    /// A node has the EUI-64 that stands for its short address.
    Short,
}

impl Addressing {
    /// Whether frames between nodes have short addresses.
    pub const fn is_short(self) -> bool {
        matches!(self, Self::Short)
    }
    /// The address of `node` in the network of `seed`.
    pub fn eui64(self, seed: Seed, node: NodeId) -> Eui64 {
        match self {
            Self::Random => random(seed, node),
            Self::Consecutive => node.eui64(),
            Self::Short => short(seed, node).eui64(),
        }
    }
}

/// Short addresses of nodes: RFC 4944 s9, those whose first bit is 0. Others are of groups, or reserved.
pub const SHORT_ADDRESSES: u32 = 1 << 15;

/// A permutation of the numbers below [`SHORT_ADDRESSES`], another for each seed, as [`scattered`] is. A node beyond has the
/// address of another one.
fn short(seed: Seed, node: NodeId) -> ShortAddr {
    const MASK: u16 = (SHORT_ADDRESSES - 1) as u16;
    let mut state = node.0 & MASK;
    for (round, factor) in FACTORS.into_iter().enumerate() {
        let key = draw(seed, Purpose::Address, round as u64, 0) as u16;
        state = state.wrapping_add(key).wrapping_mul(factor as u16) & MASK;
        state ^= state >> 8;
    }
    ShortAddr(state)
}

/// Numbers of seven octets.
const MASK: u64 = (1 << 56) - 1;
/// Odd factors of the SplitMix64 finaliser (Steele, Lea, Flood 2014), for [`scattered`].
const FACTORS: [u64; 3] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15];
/// The first octet's bit of a group, and that of a local administrator (IEEE 802-2014 s8.2).
const GROUP: u8 = 0x01;
const LOCAL: u8 = 0x02;

fn random(seed: Seed, node: NodeId) -> Eui64 {
    let mut octets = scattered(seed, node.0.into()).to_be_bytes();
    let first = draw(seed, Purpose::Address, FACTORS.len() as u64, node.0.into()) as u8;
    octets[0] = first & !GROUP | LOCAL;
    Eui64(octets)
}

/// A permutation of the numbers of seven octets, another for each seed: each step can be undone, so different
/// numbers stay different.
fn scattered(seed: Seed, number: u64) -> u64 {
    let mut state = number;
    for (round, factor) in FACTORS.into_iter().enumerate() {
        let key = draw(seed, Purpose::Address, round as u64, 0);
        state = state.wrapping_add(key).wrapping_mul(factor) & MASK;
        state ^= state >> 29;
    }
    state
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(seed: u64) -> impl Iterator<Item = Eui64> {
        (0..=u16::MAX).map(move |node| Addressing::Random.eui64(Seed(seed), NodeId(node)))
    }

    #[test]
    fn as_many_nodes_as_there_can_be_have_addresses_of_their_own() {
        for seed in 0..3 {
            // Even without the first octet.
            let distinct: BTreeSet<[u8; 7]> =
                all(seed).filter_map(|eui| eui.0[1..].try_into().ok()).collect();
            assert_eq!(distinct.len(), 1 << 16);
        }
    }

    #[test]
    fn every_address_is_one_node_s_and_locally_administered() {
        assert!(all(1).all(|eui| eui.0[0] & (GROUP | LOCAL) == LOCAL));
        // RFC 4291 app. A: the bit is inverted in the interface identifier.
        assert!(all(1).all(|eui| eui.interface_identifier()[0] & LOCAL == 0));
    }

    #[test]
    fn the_seed_alone_decides_and_neighbouring_nodes_have_nothing_in_common() {
        assert!(all(1).eq(all(1)));
        assert!(all(1).zip(all(2)).take(1000).all(|(one, two)| one != two));
        // Every bit but those two is set in about half of the addresses.
        for bit in (0..64).filter(|bit| ![56, 57].contains(bit)) {
            let set = all(1).filter(|eui| eui.as_u64() >> bit & 1 == 1).count();
            assert!((32_000..33_600).contains(&set), "bit {bit}: {set}");
        }
    }

    #[test]
    fn random_addresses_share_slots_as_chance_has_it_and_consecutive_ones_do_not() {
        // 25 addresses in 31 slots: 31 (1 - (30/31)^25) = 17.3 taken on average.
        let taken = |addressing: Addressing, seed| {
            let slot = |node| addressing.eui64(Seed(seed), NodeId(node)).as_u64() % 31;
            (0..25).map(slot).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(taken(Addressing::Consecutive, 1), 25);
        let sum: usize = (0..200).map(|seed| taken(Addressing::Random, seed)).sum();
        assert!((3_360..3_560).contains(&sum), "{sum}");
    }

    #[test]
    fn short_addresses_are_as_many_as_there_can_be_and_name_no_group() {
        let of = |seed| {
            let nodes = 0..SHORT_ADDRESSES as u16;
            nodes.map(move |node| Addressing::Short.eui64(Seed(seed), NodeId(node)))
        };
        for seed in 0..3 {
            let short: BTreeSet<u16> =
                of(seed).filter_map(ShortAddr::from_eui64).map(|short| short.0).collect();
            assert_eq!(short.len(), SHORT_ADDRESSES as usize);
            assert!(short.last().is_some_and(|last| *last < 0x8000));
        }
        assert!(of(1).zip(of(2)).take(1000).filter(|(one, two)| one == two).count() < 10);
    }
}
