//! The choices of a stack where RFC 4944, RFC 8930 and RFC 8931 leave them, each with a name.

use lowmesh_reassembly::{Admission, Policy, Renewal};
use lowmesh_units::Duration;

use crate::buffer_overhead::BufferOverhead;
use crate::params::{CLOSED_DATAGRAMS, Config, GNRC_LINGER, StackProfile};

/// What a node does where the RFCs leave the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    /// Octets that the packet buffer holds beside those of packets.
    pub overhead: BufferOverhead,
    /// Reassembly of RFC 4944: who has a place, and for how long.
    pub reassembly: Policy,
    /// Reassembly of RFC 8931: the same.
    pub recovery: Policy,
    /// The MAC gets all fragments of a datagram at once, and the datagram is let go.
    pub hands_over_all: bool,
    /// A lost fragment may end its datagram.
    pub may_abandon: bool,
    /// A first fragment passes only while a reassembly buffer is free, though it takes none.
    pub passes_only_with_buffer: bool,
    /// A first recoverable fragment that comes again belongs to the datagram that it opened.
    pub matches_first_fragments: bool,
    /// How long a forwarder remembers a datagram of recoverable fragments that is through; `None`: as configured.
    pub linger: Option<Duration>,
    /// The reassembling end remembers complete datagrams.
    pub remembers_complete: bool,
    /// A refused datagram is answered with one NULL bitmap, not with one for each fragment.
    pub refuses_once: bool,
    /// A datagram whose time is over, or that has no retries left, takes down its path (RFC 8931 s6.3).
    pub cleans_up: bool,
    /// A fragmenting end marks its own fragments, too, when its queues are long.
    pub marks_own: bool,
    /// The inter-frame gap and the window's pacing are kept.
    pub paces: bool,
    /// A mark of an acknowledgement counts after its bitmap, when what the bitmap names is no longer on its way.
    pub marks_after_bitmap: bool,
    /// What was sent and is not acknowledged is a list that shrinks with the window (`recover::send::gnrc`).
    pub lists_sent: bool,
}

/// Ours.
const NATIVE: Choices = Choices {
    overhead: BufferOverhead::NONE,
    reassembly: Policy {
        admission: Admission::Evicts { keeps_last: true },
        renewal: Renewal::Never,
        ended_max: CLOSED_DATAGRAMS,
    },
    recovery: Policy {
        admission: Admission::Evicts { keeps_last: false },
        renewal: Renewal::Own,
        ended_max: 0,
    },
    hands_over_all: false,
    may_abandon: true,
    passes_only_with_buffer: false,
    matches_first_fragments: true,
    linger: None,
    remembers_complete: true,
    refuses_once: true,
    cleans_up: true,
    marks_own: false,
    paces: true,
    marks_after_bitmap: false,
    lists_sent: false,
};

/// Those of GNRC; [`StackProfile::RiotGnrc`] has the reasons.
const RIOT_GNRC: Choices = Choices {
    overhead: BufferOverhead::GNRC,
    reassembly: GNRC_POLICY,
    recovery: GNRC_POLICY,
    hands_over_all: true,
    may_abandon: false,
    passes_only_with_buffer: true,
    matches_first_fragments: false,
    linger: Some(GNRC_LINGER),
    remembers_complete: false,
    refuses_once: false,
    cleans_up: false,
    marks_own: true,
    paces: false,
    marks_after_bitmap: true,
    lists_sent: true,
};

const GNRC_POLICY: Policy =
    Policy { admission: Admission::WhileFree, renewal: Renewal::Own, ended_max: 0 };

impl StackProfile {
    pub(crate) const fn choices(self) -> &'static Choices {
        match self {
            Self::Native => &NATIVE,
            Self::RiotGnrc => &RIOT_GNRC,
        }
    }
}

impl Config {
    /// What the RFCs leave open.
    pub(crate) const fn choices(&self) -> &'static Choices {
        self.profile.choices()
    }
    /// Fragments of one datagram that the MAC may have at a time.
    pub(crate) fn in_flight_max(&self) -> usize {
        if self.choices().hands_over_all { usize::MAX } else { self.fragments_in_flight.max(1) }
    }
    /// Whether one fragment without acknowledgement ends its datagram.
    pub(crate) const fn abandons(&self) -> bool {
        self.abandons && self.choices().may_abandon
    }
    /// How long a forwarder remembers a datagram of recoverable fragments that is through.
    pub(crate) fn linger(&self) -> Duration {
        self.choices().linger.unwrap_or(self.recovery.linger)
    }
    /// How many such datagrams the reassembling end remembers.
    pub(crate) const fn complete_max(&self) -> usize {
        if self.choices().remembers_complete { self.recovery.complete_max } else { 0 }
    }
}
