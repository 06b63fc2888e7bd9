//! Way E2E: this node's own packets are cut down to what fits into one frame, and put together where they are for.
//!
//! A fragment is a packet of its own under the name of the whole. The book counts it as a copy: cutting makes
//! copies, reassembly takes them in.

use alloc::vec::Vec;

use lowmesh_ipv6::fragment::fragments;
use lowmesh_ipv6::params::{COMPRESSION_GAIN, COMPRESSION_GAIN_FRAGMENT};
use lowmesh_ipv6::reassemble::{self, Outcome, Reassembly};
use lowmesh_lowpan::Way;
use lowmesh_machine::{DropReason, Handle, Layer};
use lowmesh_units::{Eui64, Instant, Rng};

use crate::config::Config;
use crate::event::Packet;
use crate::node::Node;

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
        let frame = config.lowpan.frame_payload;
        let limit =
            Limit { packet: frame + COMPRESSION_GAIN, fragment: frame + COMPRESSION_GAIN_FRAGMENT };
        let timeout = config.lowpan.reassembly_timeout;
        let packets = config.lowpan.reassembly_buffers;
        let reassembly = reassemble::Config { packets, timeout, ..Default::default() };
        Self {
            limit: (config.lowpan.way == Way::EndToEnd).then_some(limit),
            identification: rng.next_u32(),
            reassembly: Reassembly::new(reassembly),
        }
    }
}

impl Node {
    /// Sends a packet that was made here.
    pub(crate) fn send_own(
        &mut self,
        now: Instant,
        packet: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let limit = self.end_to_end.limit;
        let Some(limit) = limit.filter(|limit| packet.len() > limit.packet) else {
            return self.send_packet(now, packet, destination, handle);
        };
        // RFC 8200 s4.5: an identification other than that of any packet sent recently between the two.
        let identification = self.end_to_end.identification;
        self.end_to_end.identification = identification.wrapping_add(1);
        match fragments(&packet, limit.fragment, identification) {
            Ok(fragments) => {
                for (index, fragment) in fragments.enumerate() {
                    if index > 0 {
                        self.note_packet(Packet::Accepted(handle));
                    }
                    self.send_packet(now, fragment, destination, handle);
                }
            }
            Err(reason) => self.dropped(handle, Layer::Ipv6, reason),
        }
    }

    /// Takes a packet that is for this node, or a fragment of one.
    pub(crate) fn deliver(&mut self, now: Instant, packet: Vec<u8>, handle: Handle) {
        match self.end_to_end.reassembly.accept(now, packet, handle) {
            Outcome::Whole(packet) => self.deliver_whole(now, &packet, handle),
            Outcome::Begun => {}
            Outcome::Merged => self.merged(handle),
            Outcome::Complete { packet, kept } => {
                if kept.is_some() {
                    self.merged(handle);
                }
                self.deliver_whole(now, &packet, kept.unwrap_or(handle));
            }
            Outcome::Dropped { reason, kept } => {
                self.refuse(handle, Layer::Ipv6, reason);
                if let Some(kept) = kept {
                    self.refuse(kept, Layer::Ipv6, reason);
                }
            }
        }
    }

    /// The copy of a fragment is part of another one now.
    fn merged(&mut self, handle: Handle) {
        if handle != Handle::NONE {
            self.note_packet(Packet::PassedOn(handle));
        }
    }

    /// Ends the packets whose fragments did not all come.
    pub(crate) fn expire_reassembly(&mut self, now: Instant) {
        while let Some(handle) = self.end_to_end.reassembly.expire(now) {
            self.refuse(handle, Layer::Ipv6, DropReason::ReassemblyTimeout);
        }
    }
}
