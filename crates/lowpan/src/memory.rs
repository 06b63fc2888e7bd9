//! What the layer needs of memory: octets in use now, and the state that a device would set aside for good.

use core::mem::size_of;

use crate::forward::Entry;
use crate::fragment::Fragmented;
use crate::params::{Config, Way};
use crate::passage::Passage;
use crate::reassemble::Buffer;
use crate::recover::path::Path;
use crate::recover::{Receiving, Sending};

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
        let (fragmenting, reassembling, passing) = match config.way {
            Way::HopWise | Way::Forwarded | Way::EndToEnd => {
                (size_of::<Fragmented>(), size_of::<Buffer>(), size_of::<Entry<Passage>>())
            }
            Way::Recovered => {
                (Sending::STATIC_OCTETS, Receiving::STATIC_OCTETS, size_of::<Entry<Path>>())
            }
        };
        Self {
            fragmentation_buffer: fragmented * fragmenting,
            reassembly_buffer: reassembled * reassembling,
            virtual_reassembly_buffer: forwarded * passing,
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
    fn recovery_costs_its_ends_more_and_its_forwarders_less_than_forwarding() {
        let state = |way| StaticState::of(&Config { way, ..Config::default() });
        let (forwarded, recovered) = (state(Way::Forwarded), state(Way::Recovered));
        assert!(recovered.fragmentation_buffer > forwarded.fragmentation_buffer);
        assert!(recovered.reassembly_buffer > forwarded.reassembly_buffer);
        assert!(recovered.virtual_reassembly_buffer < forwarded.virtual_reassembly_buffer);
    }

    #[test]
    fn an_entry_that_forwards_is_a_fraction_of_a_packet() {
        // The point of RFC 8930: no datagram is held. RFC 4944 would hold 1280 octets.
        assert!(size_of::<Entry<Passage>>() * 8 <= 1280);
    }
}
