//! Numbers of the adaptation layer, each with its source, unit and bounds.

use alloc::boxed::Box;

use lowmesh_congestion::timer::fixed;
use lowmesh_congestion::{Timer, WindowSpec};
use lowmesh_reassembly::Limits;
use lowmesh_registry::{Registry, Row, Unknown};
use lowmesh_units::Duration;

/// IPv6's least MTU: RFC 8200 s5, 1280 octets; RFC 4944 s4 gives the link no more.
pub const MTU: usize = 1280;

/// How long fragments wait for the rest: RFC 4944 s5.3 allows at most 60 s. 10 s is what RIOT's evaluation of
/// fragment forwarding used; Contiki-NG has 0.5 s, which a slotframe of 1 s does not meet.
pub const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest reassembly timeout that RFC 4944 s5.3 allows.
pub const REASSEMBLY_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Datagrams in reassembly at once: no RFC; Contiki-NG has 2, at least 1.
pub const REASSEMBLY_BUFFERS: usize = 4;

/// Octets of all reassembly buffers together: no RFC; two packets of the MTU.
pub const REASSEMBLY_OCTETS: usize = 2 * MTU;

/// Part of the reassembly timeout without a new fragment after which a datagram may lose its place to another: ours, an
/// eighth. 1.25 s of 10 s, longer than a slotframe; at least 1.
pub const STALE_SHARE: u64 = 8;

/// Finished datagrams whose late fragments are still known: no RFC; at least 1.
pub const CLOSED_DATAGRAMS: usize = 8;

/// Datagrams being sent in fragments at once: no RFC; Contiki-NG keeps 12 fragments.
pub const FRAGMENTED_DATAGRAMS: usize = 8;

/// Fragments of one datagram handed to the MAC and not yet confirmed: no RFC; at least 1. With 1 a datagram
/// that fails has no fragment left in the MAC's queue.
pub const FRAGMENTS_IN_FLIGHT: usize = 1;

/// Datagrams whose fragments pass through at once: no RFC; RIOT has 16, at least 1.
pub const FORWARDED_DATAGRAMS: usize = 16;

/// First fragments whose route is asked for and not yet told: ours; a driver answers before the next frame.
pub const ROUTE_REQUESTS: usize = 8;

/// Octets of everything that waits in the layer or in the MAC's queue on its behalf: no RFC; RIOT's packet
/// buffer has 6 KiB. At least one packet of the MTU and one frame.
pub const PACKET_BUFFER_OCTETS: usize = 6144;

/// Octets that a frame leaves for 6LoWPAN: 127 (IEEE 802.15.4 s11.3) less FCS, frame control, sequence number,
/// PAN and two EUI-64 (23) and a margin for a MAC header's information elements; at least 64.
pub const FRAME_PAYLOAD: usize = 96;

/// Room that the first recoverable fragment leaves for headers that grow on the path: RFC 8931 s4.1 asks for it without
/// a number. 16 octets: both interface identifiers, when a forwarder has to carry them in line.
pub const FIRST_FRAGMENT_SLACK: usize = 16;

/// OptWindowSize: RFC 8931 s7.1 leaves it to the network, 1 to 32 fragments. 1 had the best delivery ratio in Lenders et
/// al. 2021 (s IV); RIOT has 16.
pub const WINDOW_FRAGMENTS: u32 = 1;

/// OptARQTimeOut: RFC 8931 s7.1 leaves it to the network. 2.5 s is what Lenders et al. 2021 (table 4) had; RIOT has 0.7 s.
pub const ARQ_TIMEOUT: Duration = Duration::from_millis(2500);

/// MaxFragRetries: RFC 8931 s7.1 leaves it to the network, from 0. 4 is what Lenders et al. 2021 (table 4) had; RIOT has 2.
pub const FRAGMENT_RETRIES: u8 = 4;

/// MaxDatagramRetries: RFC 8931 s7.1 leaves it to the network, from 0.
pub const DATAGRAM_RETRIES: u8 = 0;

/// Inter-frame gap: RFC 8931 s4.2 wants the fragment before to be out of range on a single channel. 100 us as RIOT: the
/// MAC's own turn-taking is the gap unless a network asks for more.
pub const INTER_FRAME_GAP: Duration = Duration::from_micros(100);

/// How long a datagram that is complete stays known, at its end and on its path: RFC 8931 s6.2, a short time, in which the
/// last fragment may come again because its acknowledgement was lost.
pub const COMPLETE_LINGER: Duration = Duration::from_secs(5);

/// How long GNRC keeps the entry of a datagram that is through
/// (`CONFIG_GNRC_SIXLOWPAN_FRAG_RBUF_DEL_TIMER` in table 4 of Lenders et al. 2021).
pub const GNRC_LINGER: Duration = Duration::from_micros(250);

/// Complete datagrams that stay known at most: ours, at least 1.
pub const COMPLETE_DATAGRAMS: usize = 16;

/// Frames that wait for the inter-frame gap at most: no RFC; 16 at 170 ms take as long as the ARQ timeout. RIOT has room for
/// 80 (4 datagrams of windows of 16, and 16 that pass). At least 2, so that an abort has room beside an acknowledgement.
pub const RECOVERY_QUEUE_FRAMES: usize = 16;

/// Refused datagrams that are known as such at most: ours, at least 1.
pub const REFUSED_DATAGRAMS: usize = 16;

/// Part of the ARQ timeout after which a datagram is refused again if its sender still asks: ours, a half. The first refusal
/// was lost, since a sender that receives it stops asking.
pub const REFUSAL_SHARE: u64 = 2;

/// Neighbours whose share of refusals is kept apart, where these have a rate: ours, at least 1.
pub const REFUSAL_SOURCES: usize = 8;

/// What GNRC's packet buffer takes for each part of a packet beside its octets: a `gnrc_pktsnip_t` of 20, in steps of 8
/// (`gnrc_pktbuf_static`).
pub const GNRC_SNIP_OCTETS: usize = 24;

/// What stands before each packet there: a `gnrc_netif_hdr_t` of 8 octets and a neighbour's address.
pub const GNRC_INTERFACE_HEADER_OCTETS: usize = 16;

/// Frames in the queues at which a forwarder marks what passes: RFC 8931 s7.1 (UseECN) leaves it to the network. Half a
/// queue, as Lenders et al. 2021 (s V): 4 of the 8 frames of their interface; from 1, and never when no queue is so long.
pub const MARK_FRAMES: usize = 4;

/// How to carry a packet that is larger than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FragmentMode {
    /// HWR: every hop reassembles the packet and cuts it again (RFC 4944 s5.3).
    #[default]
    HopWise,
    /// FF: fragments go on as they come (RFC 8930).
    Forwarded,
    /// SFR: fragments go on as they come, and the ends recover those that are lost (RFC 8931).
    Recovered,
    /// E2E: no fragments here; the IPv6 layer cuts packets down to what fits into a frame (RFC 8200 s4.5).
    EndToEnd,
}

impl FragmentMode {
    /// Every mode, in the order of reports.
    pub const ALL: [Self; 4] = [Self::HopWise, Self::Forwarded, Self::Recovered, Self::EndToEnd];

    /// The name that users see in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HopWise => "hwr",
            Self::Forwarded => "ff",
            Self::Recovered => "sfr",
            Self::EndToEnd => "e2e",
        }
    }
}

/// What a node does where the RFCs leave it the choice, and stacks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StackProfile {
    /// Ours: what cannot be completed any more holds nothing and costs nothing.
    #[default]
    Native,
    /// That of GNRC, the stack of RIOT (`gnrc_sixlowpan_frag` of 2019 to 2025), which Lenders et al. 2021 measured (for the
    /// ends of mode E2E the stack takes `lowmesh_ipv6::reassemble::StackProfile`):
    ///
    /// - a datagram goes on when the MAC could not deliver one of its fragments;
    /// - all fragments of a datagram are handed to the interface at once, and the datagram is let go;
    /// - the packet buffer also holds what [`GNRC_SNIP_OCTETS`] and [`GNRC_INTERFACE_HEADER_OCTETS`] tell;
    /// - no datagram in reassembly gives up its place before its time is over;
    /// - a datagram that was refused, or is over, is not known any more: its next fragment takes a buffer;
    /// - every fragment of a datagram that was refused is answered with a NULL bitmap;
    /// - a first recoverable fragment that comes again takes another buffer;
    /// - each fragment gives its datagram a whole reassembly timeout again;
    /// - a first fragment passes only while a reassembly buffer is free, though it takes none;
    /// - a fragmenting end that gives a datagram up does not take down its path;
    /// - a fragmenting end marks its own fragments, too, when its queues are long;
    /// - frames of recoverable fragments leave at once: neither the inter-frame gap nor a window's pacing is kept. (The
    ///   time since the last frame is computed as the last less now, in unsigned arithmetic, and is never below the gap.)
    RiotGnrc,
}

impl StackProfile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Native, Self::RiotGnrc];

    /// The name that users see in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::RiotGnrc => "riot-gnrc",
        }
    }
}

/// What a network can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How packets larger than a frame go.
    pub mode: FragmentMode,
    /// Octets that a frame leaves for 6LoWPAN, [`FRAME_PAYLOAD`].
    pub frame_payload: usize,
    /// [`REASSEMBLY_TIMEOUT`]; cut to [`REASSEMBLY_TIMEOUT_MAX`].
    pub reassembly_timeout: Duration,
    /// [`REASSEMBLY_BUFFERS`].
    pub reassembly_buffers: usize,
    /// [`REASSEMBLY_OCTETS`].
    pub reassembly_octets: usize,
    /// [`FRAGMENTED_DATAGRAMS`].
    pub fragmented_datagrams: usize,
    /// Whether a next hop may hold no more of them than are free, so that one that is silent leaves places to others.
    pub shares_fragmentation: bool,
    /// [`FRAGMENTS_IN_FLIGHT`]; 0 is taken as 1.
    pub fragments_in_flight: usize,
    /// What the RFCs leave open.
    pub profile: StackProfile,
    /// [`FORWARDED_DATAGRAMS`].
    pub forwarded_datagrams: usize,
    /// [`PACKET_BUFFER_OCTETS`].
    pub packet_buffer_octets: usize,
    /// Whether the rest of a datagram is let go once the MAC has no acknowledgement for one of its fragments. Where many
    /// acknowledgements are lost, most of those fragments arrived, and the datagram is worth finishing. Profile `riot-gnrc` never
    /// lets go.
    pub abandons: bool,
    /// Recoverable fragments.
    pub recovery: Recovery,
    /// Whether every step of a datagram in recoverable fragments is told, for plots; no protocol setting, and off.
    pub tell_steps: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: FragmentMode::default(),
            frame_payload: FRAME_PAYLOAD,
            reassembly_timeout: REASSEMBLY_TIMEOUT,
            reassembly_buffers: REASSEMBLY_BUFFERS,
            reassembly_octets: REASSEMBLY_OCTETS,
            fragmented_datagrams: FRAGMENTED_DATAGRAMS,
            shares_fragmentation: false,
            fragments_in_flight: FRAGMENTS_IN_FLIGHT,
            profile: StackProfile::Native,
            forwarded_datagrams: FORWARDED_DATAGRAMS,
            packet_buffer_octets: PACKET_BUFFER_OCTETS,
            abandons: true,
            recovery: Recovery::default(),
            tell_steps: false,
        }
    }
}

impl Config {
    /// Whether one more datagram may be fragmented, where `all` are and `own` of them go to the same next hop.
    pub(crate) const fn may_fragment(&self, own: usize, all: usize) -> bool {
        let free = self.fragmented_datagrams.saturating_sub(all);
        free > 0 && (own < free || !self.shares_fragmentation)
    }
    /// What datagrams in reassembly may take.
    pub(crate) fn reassembly_limits(&self) -> Limits {
        // RFC 4944 s5.3: the reassembly timeout is at most 60 s.
        let timeout = self.reassembly_timeout.min(REASSEMBLY_TIMEOUT_MAX);
        Limits {
            places: self.reassembly_buffers,
            octets: self.reassembly_octets,
            timeout,
            stale_after: timeout / STALE_SHARE,
        }
    }
}

/// What a network can choose about recoverable fragments (RFC 8931 s7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The window of one datagram; a static one of [`WINDOW_FRAGMENTS`] by default.
    pub window: WindowSpec,
    /// The timer of one datagram; a fixed one of [`ARQ_TIMEOUT`] by default.
    pub arq: Arq,
    /// [`FRAGMENT_RETRIES`].
    pub fragment_retries: u8,
    /// [`DATAGRAM_RETRIES`].
    pub datagram_retries: u8,
    /// Datagrams to one neighbour that have begun and are not finished; `None` sets no bound. With one, a neighbour with a
    /// single buffer never has to refuse the second.
    pub unfinished_per_neighbour: Option<usize>,
    /// NULL bitmaps that refuse datagrams, in a second and at once; each is then sent in one copy. `None`: a planned network,
    /// in which each is sent, and repeated like any other frame.
    pub refusals_per_second: Option<u32>,
    /// [`INTER_FRAME_GAP`].
    pub inter_frame_gap: Duration,
    /// [`MARK_FRAMES`].
    pub mark_frames: usize,
    /// [`COMPLETE_LINGER`].
    pub linger: Duration,
    /// [`COMPLETE_DATAGRAMS`].
    pub complete_max: usize,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            window: WindowSpec::fixed(WINDOW_FRAGMENTS),
            arq: Arq::fixed(ARQ_TIMEOUT),
            fragment_retries: FRAGMENT_RETRIES,
            datagram_retries: DATAGRAM_RETRIES,
            unfinished_per_neighbour: None,
            refusals_per_second: None,
            inter_frame_gap: INTER_FRAME_GAP,
            mark_frames: MARK_FRAMES,
            linger: COMPLETE_LINGER,
            complete_max: COMPLETE_DATAGRAMS,
        }
    }
}

/// The timer behind the acknowledgements of recoverable fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arq {
    timer: &'static Row<dyn Timer>,
    timeout: Duration,
}

impl Arq {
    /// The built-in timer called `name`, which starts at `timeout`.
    pub fn new(name: &str, timeout: Duration) -> Result<Self, Unknown> {
        Registry::builtin().row(name).map(|timer| Self { timer, timeout })
    }
    /// A timer that never changes.
    pub const fn fixed(timeout: Duration) -> Self {
        Self { timer: &fixed::ROW, timeout }
    }
    /// Where it starts.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
    /// A new timer.
    pub fn timer(&self) -> Box<dyn Timer> {
        (self.timer.make)(&self.timer.into(), self.timeout)
    }
}
