//! Numbers of the adaptation layer, each with its source, unit and bounds.

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

/// The ways of carrying a packet that is larger than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Way {
    /// HWR: every hop reassembles the packet and cuts it again (RFC 4944 s5.3).
    #[default]
    HopWise,
    /// FF: fragments go on as they come (RFC 8930).
    Forwarded,
    /// E2E: no fragments here; the IPv6 layer cuts packets down to what fits into a frame (RFC 8200 s4.5).
    EndToEnd,
}

impl Way {
    /// Every way, in the order of reports.
    pub const ALL: [Self; 3] = [Self::HopWise, Self::Forwarded, Self::EndToEnd];

    /// The name that users see in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HopWise => "hwr",
            Self::Forwarded => "ff",
            Self::EndToEnd => "e2e",
        }
    }
}

/// What a network can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How packets larger than a frame go.
    pub way: Way,
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
    /// [`FRAGMENTS_IN_FLIGHT`]; 0 is taken as 1.
    pub fragments_in_flight: usize,
    /// [`FORWARDED_DATAGRAMS`].
    pub forwarded_datagrams: usize,
    /// [`PACKET_BUFFER_OCTETS`].
    pub packet_buffer_octets: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            way: Way::default(),
            frame_payload: FRAME_PAYLOAD,
            reassembly_timeout: REASSEMBLY_TIMEOUT,
            reassembly_buffers: REASSEMBLY_BUFFERS,
            reassembly_octets: REASSEMBLY_OCTETS,
            fragmented_datagrams: FRAGMENTED_DATAGRAMS,
            fragments_in_flight: FRAGMENTS_IN_FLIGHT,
            forwarded_datagrams: FORWARDED_DATAGRAMS,
            packet_buffer_octets: PACKET_BUFFER_OCTETS,
        }
    }
}
