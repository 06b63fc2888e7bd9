//! Channel hopping: IEEE 802.15.4-2015 s6.2.6.3 and s6.2.10.

use alloc::vec::Vec;

use lowmesh_units::{Asn, Channel};

/// The order in which channels are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoppingSequence(Vec<Channel>);

impl HoppingSequence {
    /// The default sequence of 16 channels (s6.2.10, and Contiki-NG's 16_16).
    pub fn sixteen() -> Self {
        Self::of(&[16, 17, 23, 18, 26, 15, 25, 22, 19, 11, 12, 13, 24, 14, 20, 21])
    }
    /// Four channels between those of Wi-Fi (Contiki-NG's 4_4).
    pub fn four() -> Self {
        Self::of(&[15, 25, 26, 20])
    }
    /// A sequence of one's own; `None` when it is empty.
    pub fn new(channels: Vec<Channel>) -> Option<Self> {
        (!channels.is_empty()).then_some(Self(channels))
    }
    fn of(numbers: &[u8]) -> Self {
        Self(numbers.iter().filter_map(|n| Channel::new(*n)).collect())
    }
    /// The channels in order.
    pub fn channels(&self) -> &[Channel] {
        &self.0
    }
    /// Channel of a cell with `channel_offset` in slot `asn`: sequence[(ASN + offset) mod length].
    pub fn channel(&self, asn: Asn, channel_offset: u16) -> Channel {
        let place = (asn.0 + u64::from(channel_offset)) % self.0.len() as u64;
        self.0[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_channel_has_its_turn() {
        let sequence = HoppingSequence::sixteen();
        let used: BTreeSet<Channel> = (0..16).map(|n| sequence.channel(Asn(n), 3)).collect();
        assert_eq!(used.len(), Channel::COUNT);
    }

    #[test]
    fn two_offsets_never_meet_in_one_slot() {
        let sequence = HoppingSequence::four();
        assert!((0..9).all(|n| sequence.channel(Asn(n), 0) != sequence.channel(Asn(n), 1)));
    }
}
