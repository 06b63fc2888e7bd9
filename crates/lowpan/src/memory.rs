//! What the layer needs of memory: octets in use now, and the state that a device would set aside for good.

use core::mem::size_of;

use crate::forward::Entry;
use crate::fragment::Fragmented;
use crate::params::{Config, Way};
use crate::passage::Passage;
use crate::reassemble::Buffer;

/// Octets of packet data that wait, by where they wait. The packet buffer bounds their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PacketBuffer {
    /// In datagrams that are being put together.
    pub reassembly: usize,
    /// In packets that are being sent in fragments.
    pub fragmentation: usize,
    /// In frames in the MAC's queue.
    pub frames: usize,
}

impl PacketBuffer {
    /// All octets.
    pub const fn total(&self) -> usize {
        self.reassembly + self.fragmentation + self.frames
    }
}

/// Octets of state without packet data, if every entry that the configuration allows is set aside.
///
/// Sizes are this library's on the machine that asks: 32-bit devices need less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticState {
    /// Of packets that are being sent in fragments.
    pub fragmentation_buffer: usize,
    /// Of datagrams that are being put together.
    pub reassembly_buffer: usize,
    /// Of datagrams whose fragments pass through.
    pub virtual_reassembly_buffer: usize,
}

impl StaticState {
    /// What a node with these settings sets aside.
    pub const fn of(config: &Config) -> Self {
        let forwarded = match config.way {
            Way::Forwarded | Way::Recovered => config.forwarded_datagrams,
            Way::HopWise | Way::EndToEnd => 0,
        };
        let (fragmented, reassembled) = match config.way {
            Way::EndToEnd => (0, 0),
            Way::HopWise | Way::Forwarded | Way::Recovered => {
                (config.fragmented_datagrams, config.reassembly_buffers)
            }
        };
        Self {
            fragmentation_buffer: fragmented * size_of::<Fragmented>(),
            reassembly_buffer: reassembled * size_of::<Buffer>(),
            virtual_reassembly_buffer: forwarded * size_of::<Entry<Passage>>(),
        }
    }
    /// All octets.
    pub const fn total(&self) -> usize {
        self.fragmentation_buffer + self.reassembly_buffer + self.virtual_reassembly_buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_adds_its_entries_and_end_to_end_needs_none() {
        let state = |way| StaticState::of(&Config { way, ..Config::default() });
        let (hop_wise, forwarded) = (state(Way::HopWise), state(Way::Forwarded));
        assert_eq!(hop_wise.virtual_reassembly_buffer, 0);
        assert!(forwarded.total() > hop_wise.total());
        assert_eq!(state(Way::EndToEnd).total(), 0);
    }

    #[test]
    fn an_entry_that_forwards_is_a_fraction_of_a_packet() {
        // The point of RFC 8930: no datagram is held. RFC 4944 would hold 1280 octets.
        assert!(size_of::<Entry<Passage>>() * 8 <= 1280);
    }
}
