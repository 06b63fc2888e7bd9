//! What happens to a node over ZEP, and why what came to it went no further.

use std::fmt;

use lowmesh_stack::event::Output;
use lowmesh_units::Dbm;

/// Something that happened to a node.
#[derive(Clone, Debug)]
pub enum Event {
    /// The node says something.
    Said(Output),
    /// This frame, without its FCS, has left.
    Sent(Vec<u8>),
    /// A frame has come, for this node or for another one.
    Heard {
        /// The frame without FCS.
        octets: Vec<u8>,
        /// How strong, as far as ZEP tells.
        level: Dbm,
    },
    /// A datagram or frame goes no further.
    Lost(Loss),
}

/// Why a datagram or frame is lost. The loss of a frame does not always end its packet: a fragment may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Datagrams came faster than the node takes them.
    InboxFull,
    /// A datagram that is not of ZEP version 2.
    NotZep,
    /// A frame of another channel.
    OtherChannel,
    /// Too many frames came while the node sent.
    EarlyFull,
    /// A frame that does not decode, or is secured.
    Malformed,
    /// A frame for another node or another PAN, or one that means nothing here.
    NotForUs,
    /// A frame that came before.
    Duplicate,
    /// A frame of this node without an acknowledgement after its last copy.
    NoAck,
    /// A frame of this node that never found the channel idle.
    ChannelAccess,
    /// A frame of this node that the MAC did not take.
    Refused,
    /// A frame of this node that the socket did not send, for example without a route to the peer.
    NotSent,
}

impl Loss {
    /// Every reason, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::InboxFull,
        Self::NotZep,
        Self::OtherChannel,
        Self::EarlyFull,
        Self::Malformed,
        Self::NotForUs,
        Self::Duplicate,
        Self::NoAck,
        Self::ChannelAccess,
        Self::Refused,
        Self::NotSent,
    ];

    /// The name that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InboxFull => "inbox_full",
            Self::NotZep => "not_zep",
            Self::OtherChannel => "other_channel",
            Self::EarlyFull => "early_full",
            Self::Malformed => "malformed",
            Self::NotForUs => "not_for_us",
            Self::Duplicate => "duplicate",
            Self::NoAck => "no_ack",
            Self::ChannelAccess => "channel_access",
            Self::Refused => "refused",
            Self::NotSent => "not_sent",
        }
    }
    /// True for a frame that this node wanted to send, false for a received one.
    pub const fn is_outgoing(self) -> bool {
        matches!(self, Self::NoAck | Self::ChannelAccess | Self::Refused | Self::NotSent)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
