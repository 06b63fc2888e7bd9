//! What a node in real time has other than a simulated one: the simulator's numbers are those of publications about slow
//! meshes of small devices, and a node among other stacks has to hold its own under loss.

use lowmesh_coap::HostLimits;
use lowmesh_congestion::WindowSpec;
use lowmesh_lowpan::params::MTU;
use lowmesh_lowpan::{Arq, FragmentMode};
use lowmesh_mac::csma;
use lowmesh_stack::{Config, LinkLayer};
use lowmesh_units::{Duration, PanId};

/// How long an acknowledgement is waited for: ours. The air takes 864 us; between two processes stand two schedulers.
const ACK_WAIT: Duration = Duration::from_millis(20);
/// Frames in the queue of the MAC: ours, four windows.
const QUEUE_FRAMES: usize = 64;
/// Datagrams of others whose fragments pass through: ours.
const FORWARDED_DATAGRAMS: usize = 64;

/// The settings that a user can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// Fragments of one datagram that are on their way: OptWindowSize (RFC 8931 s7.1), 1 to 32. RIOT has 16.
    pub window: u32,
    /// OptARQTimeOut (RFC 8931 s7.1). RIOT has 0.7 s.
    pub arq_timeout: Duration,
    /// MaxFragRetries (RFC 8931 s7.1). RIOT has 2; 4 costs nothing where nothing is lost.
    pub fragment_retries: u8,
    /// MaxDatagramRetries (RFC 8931 s7.1). RIOT has 0. A datagram whose first fragment is lost is refused (RFC 8931 s6.1.2), and
    /// arrives only if it begins again; one whose last acknowledgements were all lost then arrives twice.
    pub datagram_retries: u8,
    /// How long fragments wait for the rest: at most 60 s (RFC 4944 s5.3). RIOT has 3 s.
    pub reassembly_timeout: Duration,
    /// Datagrams that are put together at a time, each of up to 1280 octets. A stranger with many addresses that begins 40 a
    /// second, each of which may lose its place after an eighth of 3 s, holds 15.
    pub reassembly_buffers: usize,
    /// Copies of a frame after the first: macMaxFrameRetries. The standard has 3; here frames of two schedulers are lost too.
    pub mac_retries: u8,
    /// ICMPv6 errors a second at most; 0 sends none. 10 are the example of RFC 4443 s2.4 (f) for a small node.
    pub icmpv6_errors: u32,
    /// Refusals of recoverable fragments a second at most, each in one frame that is not repeated; 0 sends none.
    pub refusals: u32,
}

impl Default for RealTime {
    fn default() -> Self {
        Self {
            window: 16,
            arq_timeout: Duration::from_millis(700),
            fragment_retries: 4,
            datagram_retries: 2,
            reassembly_timeout: Duration::from_secs(3),
            reassembly_buffers: 32,
            mac_retries: 4,
            icmpv6_errors: 10,
            refusals: 10,
        }
    }
}

impl RealTime {
    /// The settings of a node in the network `pan` that carries large packets in this way.
    pub fn config(&self, pan: PanId, mode: FragmentMode) -> Config {
        let csma = csma::Config {
            pan,
            ack_wait: ACK_WAIT,
            retries_max: self.mac_retries,
            queue_frames_max: QUEUE_FRAMES,
            shares_queue: true,
            ..csma::Config::default()
        };
        let mut config = Config { link: LinkLayer::Csma(csma), ..Config::default() };
        config.icmpv6_errors = self.icmpv6_errors;
        // Anybody can write the source address of a packet, other than in a planned network.
        config.host.amplification_max = HostLimits::default().amplification_max;
        let lowpan = &mut config.lowpan;
        lowpan.mode = mode;
        lowpan.abandons = false;
        lowpan.reassembly_timeout = self.reassembly_timeout;
        lowpan.reassembly_buffers = self.reassembly_buffers;
        lowpan.reassembly_octets = self.reassembly_buffers * MTU;
        lowpan.fragmented_datagrams = self.reassembly_buffers;
        lowpan.shares_fragmentation = true;
        lowpan.forwarded_datagrams = FORWARDED_DATAGRAMS;
        // Datagrams that come hop-wise, those that come recoverable, and as many that leave.
        lowpan.packet_buffer_octets = 4 * lowpan.reassembly_octets;
        let recovery = &mut lowpan.recovery;
        recovery.window = WindowSpec::fixed(self.window);
        recovery.arq = Arq::fixed(self.arq_timeout);
        recovery.fragment_retries = self.fragment_retries;
        recovery.datagram_retries = self.datagram_retries;
        recovery.mark_frames = QUEUE_FRAMES / 2;
        recovery.unfinished_per_neighbour = Some(1);
        recovery.refusals_per_second = Some(self.refusals);
        config
    }
}
