//! What the layer needs of memory: octets in use now, and the state that a device would set aside for good.

use core::mem::size_of;

use crate::forward::Entry;
use crate::fragment::Fragmented;
use crate::params::{Config, FragmentMode};
use crate::reassemble::Buffer;
use crate::recover::path::Path;
use crate::recover::{Receiving, Sending};
use crate::transit::TransitDatagram;

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
        let forwarded = match config.mode {
            FragmentMode::Forwarded | FragmentMode::Recovered => config.forwarded_datagrams,
            FragmentMode::HopWise | FragmentMode::EndToEnd => 0,
        };
        let (fragmented, reassembled) = match config.mode {
            FragmentMode::EndToEnd => (0, 0),
            FragmentMode::HopWise | FragmentMode::Forwarded | FragmentMode::Recovered => {
                (config.fragmented_datagrams, config.reassembly_buffers)
            }
        };
        let (fragmenting, reassembling, passing) = match config.mode {
            FragmentMode::HopWise | FragmentMode::Forwarded | FragmentMode::EndToEnd => {
                (size_of::<Fragmented>(), size_of::<Buffer>(), size_of::<Entry<TransitDatagram>>())
            }
            FragmentMode::Recovered => {
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
        let state = |mode| StaticState::of(&Config { mode, ..Config::default() });
        let (hop_wise, forwarded) = (state(FragmentMode::HopWise), state(FragmentMode::Forwarded));
        assert_eq!(hop_wise.virtual_reassembly_buffer, 0);
        assert!(forwarded.total() > hop_wise.total());
        assert_eq!(state(FragmentMode::EndToEnd).total(), 0);
    }

    #[test]
    fn recovery_costs_its_ends_more_and_its_forwarders_less_than_forwarding() {
        let state = |mode| StaticState::of(&Config { mode, ..Config::default() });
        let (forwarded, recovered) =
            (state(FragmentMode::Forwarded), state(FragmentMode::Recovered));
        assert!(recovered.fragmentation_buffer > forwarded.fragmentation_buffer);
        assert!(recovered.reassembly_buffer > forwarded.reassembly_buffer);
        assert!(recovered.virtual_reassembly_buffer < forwarded.virtual_reassembly_buffer);
    }

    #[test]
    fn an_entry_that_forwards_is_a_fraction_of_a_packet() {
        // The point of RFC 8930: no datagram is held. RFC 4944 would hold 1280 octets.
        assert!(size_of::<Entry<TransitDatagram>>() * 8 <= 1280);
    }
}
