//! The adaptation layer of one node as a machine: composition of `compress`, `fragment` and `reassemble`.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine, Outbox, Rejected};
use lowmesh_units::{Eui64, Instant, Rng};
use lowmesh_wire::lowpan::fragment::{NEXT_OCTETS, OFFSET_UNIT};
use lowmesh_wire::lowpan::{Contexts, Dispatch, decompress};

use crate::compress::{Form, form};
use crate::fragment::Fragmented;
use crate::params::{Config, MTU};
use crate::reassemble::{Fragment, Outcome, Reassembly};

/// What can happen to the adaptation layer.
#[derive(Debug)]
pub enum Input<'a> {
    /// An IPv6 packet is to go to a neighbour, or to all of them.
    Packet {
        /// The packet from its IPv6 header on.
        bytes: Vec<u8>,
        /// The next hop; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet.
        handle: Handle,
    },
    /// The MAC received a data frame.
    Frame {
        /// What is behind the MAC header.
        payload: &'a [u8],
        /// Who sent the frame.
        source: Eui64,
        /// Whom it is for; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet that the frame is, or is a part of.
        handle: Handle,
    },
    /// The MAC is done with a frame out of [`Output::Frame`]; due once for each.
    FrameDone {
        /// The frame's handle.
        handle: Handle,
        /// Acknowledged; for a broadcast, sent.
        delivered: bool,
    },
    /// The time of [`Machine::next_deadline`] has come.
    Deadline,
}

/// What the adaptation layer wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a frame. Fragments of one packet come one after the other as the MAC confirms them.
    Frame {
        /// What goes behind the MAC header.
        payload: Vec<u8>,
        /// The next hop; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet; the same for all its fragments.
        handle: Handle,
        /// No more frames of this packet will follow.
        last: bool,
    },
    /// All frames of a packet are confirmed, or it was given up after one of them.
    PacketDone {
        /// Names the packet.
        handle: Handle,
        /// Every frame was delivered.
        delivered: bool,
    },
    /// A neighbour's packet, or the first of its fragments, was taken over; `Packet` or `Dropped` follows,
    /// at once or later.
    Accepted {
        /// Names the packet.
        handle: Handle,
    },
    /// A neighbour sent an IPv6 packet.
    Packet {
        /// The packet from its IPv6 header on.
        bytes: Vec<u8>,
        /// The neighbour.
        source: Eui64,
        /// It came in broadcast frames.
        broadcast: bool,
        /// Names the packet.
        handle: Handle,
    },
    /// A packet ended here.
    Dropped(Dropped),
}

/// The adaptation layer of one node.
#[derive(Debug)]
pub struct Adaptation {
    address: Eui64,
    contexts: Contexts,
    config: Config,
    datagram_tag: u16,
    fragmented: Vec<Fragmented>,
    reassembly: Reassembly,
    outbox: Outbox<Output>,
}

impl Adaptation {
    /// The layer of the node `address`, whose links share `contexts`; `rng` is the stream of purpose `Lowpan`.
    pub fn new(address: Eui64, contexts: Contexts, config: Config, rng: &mut Rng) -> Self {
        Self {
            address,
            contexts,
            config,
            // RFC 4944 s5.3: the first datagram_tag is not defined; a random one tells a restarted node's
            // fragments from its earlier ones.
            datagram_tag: rng.next_u32() as u16,
            fragmented: Vec::new(),
            reassembly: Reassembly::new(&config),
            outbox: Outbox::new(),
        }
    }

    /// Octets that datagrams in reassembly hold now; at most the configured bound.
    pub fn reassembly_octets(&self) -> usize {
        self.reassembly.octets()
    }
    /// The packets that wait here: in reassembly, or being sent in fragments.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.reassembly.handles().chain(self.fragmented.iter().map(|datagram| datagram.handle))
    }
    /// Packets that are being sent in fragments now; at most the configured bound.
    pub fn fragmented_datagrams(&self) -> usize {
        self.fragmented.len()
    }

    fn on_packet(
        &mut self,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) -> Result<(), Rejected> {
        const MALFORMED: Rejected = Rejected {
            what: "packet to send",
            why: "it has no IPv6 header whose payload length is that of the packet",
        };
        if bytes.len() > MTU {
            self.drop_packet(handle, DropReason::TooLarge);
            return Ok(());
        }
        let payload = self.config.frame_payload;
        let form = form(&bytes, self.address, destination, &self.contexts, payload)
            .map_err(|_| MALFORMED)?;
        match form {
            Form::Whole(payload) => {
                self.outbox.push(Output::Frame { payload, destination, handle, last: true });
            }
            Form::Fragments { headers, covered } if payload >= NEXT_OCTETS + OFFSET_UNIT => {
                self.send_fragmented(bytes, destination, handle, headers, covered);
            }
            Form::Fragments { .. } | Form::TooLarge => {
                self.drop_packet(handle, DropReason::TooLarge);
            }
        }
        Ok(())
    }

    fn send_fragmented(
        &mut self,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
        headers: Vec<u8>,
        covered: usize,
    ) {
        if self.fragmented.len() >= self.config.fragmented_datagrams {
            self.drop_packet(handle, DropReason::BufferFull);
            return;
        }
        // RFC 4944 s5.3: the sender increments datagram_tag for successive datagrams.
        let tag = self.datagram_tag;
        self.datagram_tag = tag.wrapping_add(1);
        self.fragmented.push(Fragmented::new(handle, destination, bytes, headers, covered, tag));
        self.advance(self.fragmented.len() - 1);
    }

    /// Sends what the datagram `at` may have on the way.
    fn advance(&mut self, at: usize) {
        let datagram = &mut self.fragmented[at];
        while datagram.in_flight() < self.config.fragments_in_flight.max(1) {
            let Some((payload, last)) = datagram.next_fragment(self.config.frame_payload) else {
                break;
            };
            let (destination, handle) = (datagram.destination, datagram.handle);
            self.outbox.push(Output::Frame { payload, destination, handle, last });
        }
    }

    fn on_frame_done(&mut self, handle: Handle, delivered: bool) {
        let waiting = |datagram: &Fragmented| datagram.handle == handle && datagram.in_flight() > 0;
        let Some(at) = self.fragmented.iter().position(waiting) else {
            // A packet in a single frame: nothing to sum up.
            self.outbox.push(Output::PacketDone { handle, delivered });
            return;
        };
        self.fragmented[at].on_confirmed(delivered);
        match self.fragmented[at].result() {
            Some(delivered) => {
                self.fragmented.remove(at);
                self.outbox.push(Output::PacketDone { handle, delivered });
            }
            None => self.advance(at),
        }
    }

    fn on_frame(&mut self, now: Instant, fragment: &Fragment<'_>) {
        let &Fragment { frame, source, destination, handle } = fragment;
        let broadcast = destination.is_none();
        let dispatch = frame.first().map_or(Dispatch::NotLowpan, |octet| Dispatch::of(*octet));
        match dispatch {
            Dispatch::Ipv6 | Dispatch::Iphc => {
                self.outbox.push(Output::Accepted { handle });
                let mut bytes = Vec::with_capacity(frame.len() + 64);
                match decompress(frame, source, destination, &self.contexts, None, &mut bytes) {
                    Ok(()) => {
                        self.outbox.push(Output::Packet { bytes, source, broadcast, handle });
                    }
                    Err(_) => self.drop_packet(handle, DropReason::Malformed),
                }
            }
            Dispatch::First | Dispatch::Next => {
                let held = self.reassembly.holds(source, handle);
                let outcome = self.reassembly.accept(now, fragment, &self.contexts);
                let late = outcome == Outcome::Waiting && !self.reassembly.holds(source, handle);
                if !held && !late {
                    self.outbox.push(Output::Accepted { handle });
                }
                match outcome {
                    Outcome::Waiting => {}
                    Outcome::Complete { bytes, handle } => {
                        self.outbox.push(Output::Packet { bytes, source, broadcast, handle });
                    }
                    Outcome::Dropped { handle, reason } => self.drop_packet(handle, reason),
                }
            }
            // RFC 4944 s5.1: a frame that is not LoWPAN is discarded.
            Dispatch::NotLowpan | Dispatch::Other | Dispatch::Rfrag | Dispatch::RfragAck => {
                self.outbox.push(Output::Accepted { handle });
                self.drop_packet(handle, DropReason::Malformed);
            }
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        // RFC 4944 s5.3: when the timeout comes, what has accumulated is discarded.
        while let Some(handle) = self.reassembly.expire(now) {
            self.drop_packet(handle, DropReason::ReassemblyTimeout);
        }
    }

    fn drop_packet(&mut self, handle: Handle, reason: DropReason) {
        self.outbox.push(Output::Dropped(Dropped { handle, layer: Layer::Lowpan, reason }));
    }
}

impl Machine for Adaptation {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        match input {
            Input::Packet { bytes, destination, handle } => {
                return self.on_packet(bytes, destination, handle);
            }
            Input::Frame { payload, source, destination, handle } => {
                self.on_frame(now, &Fragment { frame: payload, source, destination, handle });
            }
            Input::FrameDone { handle, delivered } => self.on_frame_done(handle, delivered),
            Input::Deadline => self.on_deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.reassembly.next_deadline()
    }
}

#[cfg(test)]
mod tests;
