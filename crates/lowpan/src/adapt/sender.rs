//! The fragmenting end of modes HWR and FF: the packets that are being sent in fragments (RFC 4944 s5.3), and how many
//! fragments of each the MAC may have.
//!
//! | bound | total | share of one next hop | the next one |
//! |---|---|---|---|
//! | datagrams | `fragmented_datagrams` | as many as are free, with `shares_fragmentation` | is dropped, `buffer_full` |
//! | datagrams that have begun | | one | waits for its turn |
//!
//! A receiver that holds two datagrams cannot put eight together whose fragments take turns. Contiki-NG and GNRC fragment
//! one datagram after the other, too; the latter hands all fragments of each to the MAC, whose queue keeps their order.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Outbox};
use lowmesh_units::Eui64;

use crate::event::Output;
use crate::fragment::{First, Fragmented};
use crate::params::{Config, FragmentMode};

/// A packet that does not fit into a frame, with its compressed headers.
pub(super) struct Oversized {
    pub bytes: Vec<u8>,
    pub destination: Option<Eui64>,
    pub handle: Handle,
    /// What stands for the first `covered` octets.
    pub headers: Vec<u8>,
    pub covered: usize,
}

/// All packets that are being sent in fragments.
#[derive(Debug)]
pub(super) struct Sender {
    config: Config,
    datagrams: Vec<Fragmented>,
    octets: usize,
    fragments: u64,
    outbox: Outbox<Output>,
}

impl Sender {
    pub const fn new(config: Config) -> Self {
        Self { config, datagrams: Vec::new(), octets: 0, fragments: 0, outbox: Outbox::new() }
    }

    /// What the driver has to do: frames, and packets that are done or dropped.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    /// Octets of the packets, with what the packet buffer holds beside them.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// Packets that are being sent.
    pub const fn len(&self) -> usize {
        self.datagrams.len()
    }
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.datagrams.iter().map(|datagram| datagram.handle)
    }
    /// Fragments that were sent.
    pub const fn fragments(&self) -> u64 {
        self.fragments
    }

    /// Begins with a packet under the tag that `tag` gives, while the packet buffer has `room`.
    pub fn send(&mut self, packet: Oversized, tag: impl FnOnce() -> u16, room: usize) {
        let Oversized { bytes, destination, handle, headers, covered } = packet;
        let own = self.datagrams.iter().filter(|one| one.destination == destination).count();
        let full = !self.config.may_fragment(own, self.datagrams.len());
        if full || bytes.len() + self.config.frame_payload > room {
            self.drop_packet(handle);
            return;
        }
        let first = match self.config.mode {
            FragmentMode::Forwarded => First::Headers,
            FragmentMode::HopWise | FragmentMode::Recovered | FragmentMode::EndToEnd => First::Full,
        };
        let octets = bytes.len() + self.config.choices().overhead.packet;
        self.octets += octets;
        let datagram = Fragmented::new(handle, destination, bytes, headers, covered, first, tag());
        let has_turn = own == 0 || self.config.choices().hands_over_all;
        self.datagrams.push(datagram);
        if has_turn {
            self.advance(self.datagrams.len() - 1, room.saturating_sub(octets));
        }
    }

    /// The next datagram to `destination` has its turn, if none has.
    fn begin_next(&mut self, destination: Option<Eui64>, mut room: usize) {
        if self.config.choices().hands_over_all {
            return;
        }
        let to_same = |one: &Fragmented| one.destination == destination;
        while let Some(at) = self.datagrams.iter().position(to_same) {
            if self.datagrams[at].has_begun() {
                return;
            }
            let (before, octets) = (self.datagrams.len(), self.octets);
            self.advance(at, room);
            if self.datagrams.len() == before {
                return;
            }
            // It found no room for a fragment, and left what it took to the next.
            room += octets - self.octets;
        }
    }

    /// Sends as many fragments of the datagram `at` as may be in flight.
    fn advance(&mut self, at: usize, mut room: usize) {
        while self.datagrams[at].in_flight() < self.config.in_flight_max() {
            if room < self.config.frame_payload {
                if self.datagrams[at].in_flight() == 0 {
                    let handle = self.remove(at).handle;
                    self.drop_packet(handle);
                }
                return;
            }
            let datagram = &mut self.datagrams[at];
            let Some((payload, last)) = datagram.next_fragment(self.config.frame_payload) else {
                return;
            };
            let (destination, handle) = (datagram.destination, datagram.handle);
            self.fragments += 1;
            let octets = payload.len() + self.config.choices().overhead.fragment;
            room = room.saturating_sub(octets);
            let is_advice = false;
            self.outbox.push(Output::Frame { payload, destination, handle, last, is_advice });
        }
    }

    /// The MAC is done with a fragment, and the packet buffer has `room`.
    pub fn on_fragment_done(
        &mut self,
        handle: Handle,
        result: Result<(), DropReason>,
        room: usize,
    ) {
        let waiting = |datagram: &Fragmented| datagram.handle == handle && datagram.in_flight() > 0;
        let Some(at) = self.datagrams.iter().position(waiting) else { return };
        let (octets, destination) = (self.octets, self.datagrams[at].destination);
        self.datagrams[at].on_confirmed(result, self.config.abandons());
        match self.datagrams[at].result() {
            Some(result) => {
                self.remove(at);
                self.outbox.push(Output::PacketDone { handle, result });
            }
            // The packet is cut while its first frame is on the air, and then let go.
            None if self.datagrams[at].is_sent() && self.config.choices().hands_over_all => {
                self.let_go(at);
            }
            None => self.advance(at, room),
        }
        self.begin_next(destination, room + (octets - self.octets));
    }

    /// A packet need not wait itself once it is all in frames.
    fn let_go(&mut self, at: usize) {
        let datagram = &mut self.datagrams[at];
        if !datagram.is_let_go() {
            datagram.let_go();
            self.octets -= datagram.octets() + self.config.choices().overhead.packet;
        }
    }

    fn remove(&mut self, at: usize) -> Fragmented {
        self.let_go(at);
        self.datagrams.remove(at)
    }

    fn drop_packet(&mut self, handle: Handle) {
        let (layer, reason) = (Layer::Lowpan, DropReason::BufferFull);
        self.outbox.push(Output::Dropped(Dropped { handle, layer, reason }));
    }
}
