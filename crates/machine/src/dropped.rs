//! The closed list of ways in which a packet can end without arriving.

use core::fmt;

/// Names a datagram inside one run, from birth to end: the msduHandle of IEEE 802.15.4 s8.3.1, never on the air.
///
/// A driver that does not trace packets gives every datagram [`Handle::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Handle(pub u64);

impl Handle {
    /// No name: not traced.
    pub const NONE: Self = Self(0);
}

/// The layer that gave a packet up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Medium access: queues, retries, synchronisation.
    Mac,
    /// 6LoWPAN adaptation: compression, fragmentation, reassembly.
    Lowpan,
    /// IPv6: forwarding, checks.
    Ipv6,
    /// UDP demultiplexing.
    Udp,
    /// CoAP message layer.
    Coap,
    /// The application's own buffer.
    Application,
}

/// Why a packet ended. A new reason goes last: the places of the others stand in the hashes of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A bounded queue was full.
    QueueFull,
    /// The link layer gave up after its last retry without an acknowledgement.
    NoAck,
    /// The node lost synchronisation and emptied its queues.
    Desynchronised,
    /// The node is not part of a network yet.
    NotJoined,
    /// The next hop left before its queue was empty.
    NeighbourLost,
    /// No route to the destination.
    NoRoute,
    /// The hop limit came to zero.
    HopLimit,
    /// RPL found a loop: the rank went the wrong way twice (RFC 6550 s11.2.2.2).
    RankLoop,
    /// No fragment buffer or reassembly buffer was free.
    BufferFull,
    /// A datagram was not complete when its reassembly timer ran out.
    ReassemblyTimeout,
    /// Larger than this layer can carry.
    TooLarge,
    /// Bytes that do not decode.
    Malformed,
    /// The transport checksum is wrong.
    Checksum,
    /// Nobody listens on the destination port.
    NoListener,
    /// Not for this node, and not to be forwarded.
    NotForUs,
    /// No retransmission is left, here (RFC 7252 s4.2) or at the other end, which said so (RFC 8931 s6.3).
    GaveUp,
    /// The peer answered with a Reset (RFC 7252 s4.2), or refused the datagram (RFC 8931 s6.3).
    Reset,
    /// The channel was busy each time that the node wanted to send (IEEE 802.15.4-2015 s6.2.5.1).
    ChannelAccess,
    /// A newer message with the same purpose took its place before it was sent.
    Superseded,
    /// An IPv6 option that is not known here and says that such a packet is discarded (RFC 8200 s4.2).
    UnknownOption,
    /// A copy of a packet to a group that came before, or that is too old to tell.
    Duplicate,
    /// A packet to a group that came from another neighbour than the preferred parent (SMRF).
    NotFromParent,
    /// Neighbours sent the same packet to a group, so this node kept silent (RFC 6206 s4.2).
    Suppressed,
    /// No copy of a packet to a group came to a member, though a neighbour of it had one.
    Unheard,
    /// A wired link lost it.
    LineLoss,
    /// The node that held it lost its power, and with it its memory.
    PowerLost,
}

impl DropReason {
    /// Every reason, in the order of reports.
    pub const ALL: [Self; 26] = [
        Self::QueueFull,
        Self::NoAck,
        Self::Desynchronised,
        Self::NotJoined,
        Self::NeighbourLost,
        Self::NoRoute,
        Self::HopLimit,
        Self::RankLoop,
        Self::BufferFull,
        Self::ReassemblyTimeout,
        Self::TooLarge,
        Self::Malformed,
        Self::Checksum,
        Self::NoListener,
        Self::NotForUs,
        Self::GaveUp,
        Self::Reset,
        Self::ChannelAccess,
        Self::Superseded,
        Self::UnknownOption,
        Self::Duplicate,
        Self::NotFromParent,
        Self::Suppressed,
        Self::Unheard,
        Self::LineLoss,
        Self::PowerLost,
    ];

    /// The name that users see in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::NoAck => "no_ack",
            Self::Desynchronised => "desynchronised",
            Self::NotJoined => "not_joined",
            Self::NeighbourLost => "neighbour_lost",
            Self::NoRoute => "no_route",
            Self::HopLimit => "hop_limit",
            Self::RankLoop => "rank_loop",
            Self::BufferFull => "buffer_full",
            Self::ReassemblyTimeout => "reassembly_timeout",
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Checksum => "checksum",
            Self::NoListener => "no_listener",
            Self::NotForUs => "not_for_us",
            Self::GaveUp => "gave_up",
            Self::Reset => "reset",
            Self::ChannelAccess => "channel_access",
            Self::Superseded => "superseded",
            Self::UnknownOption => "unknown_option",
            Self::Duplicate => "duplicate",
            Self::NotFromParent => "not_from_parent",
            Self::Suppressed => "suppressed",
            Self::Unheard => "unheard",
            Self::LineLoss => "line_loss",
            Self::PowerLost => "power_lost",
        }
    }
}

impl Layer {
    /// The name that users see in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mac => "mac",
            Self::Lowpan => "lowpan",
            Self::Ipv6 => "ipv6",
            Self::Udp => "udp",
            Self::Coap => "coap",
            Self::Application => "application",
        }
    }
}

/// One packet that ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The packet that ended.
    pub handle: Handle,
    /// Which layer gave it up.
    pub layer: Layer,
    /// The reason for its end.
    pub reason: DropReason,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.layer.name(), self.reason.name())
    }
}
