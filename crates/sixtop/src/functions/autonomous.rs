//! Cells that both ends compute from addresses alone (RFC 9033 s3 and app. A; Orchestra's hash).

use lowmesh_mac::tsch::cell::Placement;
use lowmesh_units::Eui64;

use crate::params::{CHANNEL_OFFSETS, SAX};

/// The SAX hash of an address in a table of `length` places: RFC 9033 app. A.
pub fn sax(address: Eui64, length: u16) -> u16 {
    let (mut h, left, right) = SAX;
    let length = u32::from(length.max(1));
    for octet in address.0 {
        let sum = (h << left).wrapping_add(h >> right).wrapping_add(u32::from(octet));
        h = (sum ^ h) % length;
    }
    h as u16
}

/// Where a node listens without having been asked: RFC 9033 s3, in a slotframe of `length` slots.
pub fn autonomous_place(address: Eui64, length: u16) -> Placement {
    // RFC 9033 s3: slotOffset = 1 + hash(EUI64, length - 1), channelOffset = hash(EUI64, NUM_CH_OFFSET).
    let slot = (1 + sax(address, length.saturating_sub(1))).min(length.saturating_sub(1));
    Placement::Fixed { slot, channel_offset: sax(address, CHANNEL_OFFSETS) }
}

/// Orchestra's hash of an address: its last two octets as a number (Contiki-NG takes the last octet, which
/// is the same below 256 nodes with addresses in a row).
pub fn address_hash(address: Eui64) -> u16 {
    let [.., high, low] = address.0;
    u16::from_be_bytes([high, low])
}

/// The slot of an address in a slotframe of Orchestra with `length` slots.
pub fn address_slot(address: Eui64, length: u16) -> u16 {
    address_hash(address) % length.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    #[test]
    fn the_sax_hash_follows_its_steps_by_hand() {
        // Octets 1 and 2 at the end: h = 0+0+1 ^ 0 = 1; then (1 + 0 + 2) ^ 1 = 2.
        assert_eq!(sax(Eui64([0, 0, 0, 0, 0, 0, 1, 2]), 100), 2);
        // One octet 0x0b up front: h = 11; then (11+5)^11 = 27, (27+13)^27 = 51, (51+25)^51 = 127 % 100 = 27,
        // then 51, 27, 51 and 27 again.
        assert_eq!(sax(Eui64([0x0b, 0, 0, 0, 0, 0, 0, 0]), 100), 27);
    }

    #[test]
    fn autonomous_cells_never_lie_in_the_shared_slot_and_always_inside() {
        for length in [2, 11, 31, 101] {
            for node in 0..300 {
                let place = autonomous_place(NodeId(node).eui64(), length);
                let Placement::Fixed { slot, channel_offset } = place else {
                    panic!("autonomous cells stay where they are")
                };
                assert!((1..length).contains(&slot) && channel_offset < CHANNEL_OFFSETS);
            }
        }
    }

    #[test]
    fn the_address_hash_spreads_neighbouring_nodes_over_the_slotframe() {
        let slots: alloc::collections::BTreeSet<u16> =
            (0..17).map(|n| address_slot(NodeId(n).eui64(), 17)).collect();
        assert_eq!(slots.len(), 17);
    }
}
