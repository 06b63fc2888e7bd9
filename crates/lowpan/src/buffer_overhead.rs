//! What the packet buffer holds beside the octets of packets.

use crate::params::{GNRC_INTERFACE_HEADER_OCTETS, GNRC_SNIP_OCTETS};

/// Octets beside those of packets, by what they are for: nothing of ours, and GNRC's own headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferOverhead {
    /// For a datagram that is being put together.
    pub reassembly: usize,
    /// For a packet: interface, compressed headers, payload.
    pub packet: usize,
    /// For a fragment: interface, and the rest in one part.
    pub fragment: usize,
}

impl BufferOverhead {
    pub const NONE: Self = Self { reassembly: 0, packet: 0, fragment: 0 };
    pub const GNRC: Self = {
        let (snip, interface) = (GNRC_SNIP_OCTETS, GNRC_SNIP_OCTETS + GNRC_INTERFACE_HEADER_OCTETS);
        Self { reassembly: snip, packet: interface + 2 * snip, fragment: interface + snip }
    };
}
