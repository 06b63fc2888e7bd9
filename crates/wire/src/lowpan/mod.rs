//! 6LoWPAN: header compression (RFC 6282, RFC 8138) and fragment headers (RFC 4944, RFC 8931).
//!
//! - [`Dispatch`]: what a frame's first octet announces.
//! - [`compress`] and [`decompress`]: IPHC and NHC over whole packets.
//! - [`RoutingContext`], [`without_visited`]: 6LoRH, which `compress` writes for [`Extent::Routed`].
//! - [`fragment`]: FRAG1 and FRAGN headers.
//! - [`rfrag`]: recoverable fragments and their acknowledgements.
//!
//! Cutting datagrams up and putting them together again is left to the crate `lowpan`.

mod context;
mod decode;
mod encode;
pub mod fragment;
mod nhc;
mod packet;
mod prefix;
pub mod rfrag;
mod routing;

#[cfg(test)]
mod tests;

pub use context::{Contexts, RoutingContext};
pub use encode::Extent;
pub use packet::{compress, decompress};
pub use routing::without_visited;

/// First octet of an uncompressed IPv6 packet (RFC 4944 s5.1).
pub const DISPATCH_IPV6: u8 = 0x41;
/// Page 1 (RFC 8025), which has 6LoRH and LOWPAN_IPHC (RFC 8138 s3).
pub const DISPATCH_PAGE_1: u8 = 0xf1;

/// What the first octet of a frame's payload announces (RFC 4944 s5.1, RFC 6282 s2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// `00xxxxxx`: not a LoWPAN frame.
    NotLowpan,
    /// `01000001`: an IPv6 packet as it is.
    Ipv6,
    /// `011xxxxx`: LOWPAN_IPHC.
    Iphc,
    /// `11000xxx`: the first fragment of a datagram.
    First,
    /// `11100xxx`: a later fragment of a datagram.
    Next,
    /// `1110100x`: a recoverable fragment (RFC 8931 s5.1).
    Rfrag,
    /// `1110101x`: an acknowledgement of recoverable fragments (RFC 8931 s5.2).
    RfragAck,
    /// `11110001`: page 1, for a packet with 6LoRH (RFC 8138 s3).
    Routed,
    /// Something else: mesh, broadcast, or not assigned.
    Other,
}

impl Dispatch {
    /// The dispatch of a frame that starts with `octet`.
    pub const fn of(octet: u8) -> Self {
        match octet {
            0x00..=0x3f => Self::NotLowpan,
            DISPATCH_IPV6 => Self::Ipv6,
            0x60..=0x7f => Self::Iphc,
            0xc0..=0xc7 => Self::First,
            0xe0..=0xe7 => Self::Next,
            0xe8 | 0xe9 => Self::Rfrag,
            0xea | 0xeb => Self::RfragAck,
            DISPATCH_PAGE_1 => Self::Routed,
            _ => Self::Other,
        }
    }
}
