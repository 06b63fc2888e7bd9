//! Way E2E: this node's own packets are cut down to what fits into one frame, and put together where they are for.
//!
//! A fragment is a packet of its own under the name of the whole. The book counts it as a copy: cutting makes
//! copies, reassembly takes them in.

use lowmesh_ipv6::params::{COMPRESSION_GAIN, COMPRESSION_GAIN_FRAGMENT};
use lowmesh_ipv6::reassemble::{self, Reassembly};
use lowmesh_lowpan::{Config, Manner, Way};
use lowmesh_units::Rng;

/// The ends of way E2E.
#[derive(Debug)]
pub(crate) struct EndToEnd {
    /// What packets are cut to; none where the layer below takes them as they are.
    limit: Option<Limit>,
    /// Of the next packet that is cut.
    identification: u32,
    pub(crate) reassembly: Reassembly,
}

/// Octets that fit into one frame when compressed.
#[derive(Clone, Copy, Debug)]
struct Limit {
    packet: usize,
    fragment: usize,
}

impl EndToEnd {
    /// The ends at one node; `rng` is a stream of purpose `Lowpan`.
    pub fn new(config: &Config, rng: &mut Rng) -> Self {
        let frame = config.frame_payload;
        let limit =
            Limit { packet: frame + COMPRESSION_GAIN, fragment: frame + COMPRESSION_GAIN_FRAGMENT };
        let timeout = config.reassembly_timeout;
        let packets = config.reassembly_buffers;
        let manner = match config.manner {
            Manner::Own => reassemble::Manner::Own,
            Manner::Gnrc => reassemble::Manner::Gnrc,
        };
        let reassembly = reassemble::Config { packets, timeout, manner, ..Default::default() };
        Self {
            limit: (config.way == Way::EndToEnd).then_some(limit),
            identification: rng.next_u32(),
            reassembly: Reassembly::new(reassembly),
        }
    }

    /// What a packet that was made here is cut to, if it is too large, and under which identification.
    pub fn cut(&mut self, packet: &[u8]) -> Option<(usize, u32)> {
        let limit = self.limit.filter(|limit| packet.len() > limit.packet)?;
        // RFC 8200 s4.5: an identification other than that of any packet sent recently between the two.
        let identification = self.identification;
        self.identification = identification.wrapping_add(1);
        Some((limit.fragment, identification))
    }
}
