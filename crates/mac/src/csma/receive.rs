//! One frame that comes in: IEEE 802.15.4-2015 s6.7.2 (filtering, duplicates) and s6.7.4.2 (acknowledgement).

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::{Dbm, Eui64, Instant, PanId};
use lowmesh_wire::ieee802154::{Address, Frame, FrameType, Header, Version};

use super::config::{Acknowledgement, Radio};
use super::event::Output;
use super::shared::Shared;
use crate::frame;
use crate::params::{CSMA_DUPLICATE_WINDOW, TURNAROUND};

/// What the receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// Nothing.
    #[default]
    Open,
    /// It stays with a frame that has begun.
    Incoming,
    /// An `Acknowledge` is out.
    Acknowledging,
}

/// A frame that came whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    pub octets: &'a [u8],
    pub rssi: Dbm,
    pub handle: Handle,
}

/// An acknowledgement that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub sequence: Option<u8>,
}

/// The receiving half of the radio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    state: State,
    /// Thin: until when the last frame occupies the buffer.
    buffer_until: Option<Instant>,
}

impl Receiver {
    /// True while no frame comes in, and no acknowledgement leaves.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }
    /// True while an acknowledgement leaves.
    pub fn is_acknowledging(&self) -> bool {
        self.state == State::Acknowledging
    }
    /// True while the last frame occupies the buffer.
    pub const fn is_occupied(&self) -> bool {
        self.buffer_until.is_some()
    }
    /// When the buffer is free again.
    pub const fn deadline(&self) -> Option<Instant> {
        self.buffer_until
    }
    /// The buffer is free.
    pub const fn release(&mut self) {
        self.buffer_until = None;
    }

    /// A frame begins; `listens` says whether the radio hears it.
    pub fn on_incoming(&mut self, listens: bool) -> Result<(), Rejected> {
        if !listens {
            return Err(Rejected::WrongState {
                what: "incoming",
                why: "the radio does not listen now",
            });
        }
        self.state = State::Incoming;
        Ok(())
    }

    /// A frame broke off. The thin MAC's driver gets no sign of it.
    pub fn on_lost(&mut self) -> Result<(), Rejected> {
        if self.state != State::Incoming {
            return Err(Rejected::WrongState { what: "lost", why: "no frame was coming in" });
        }
        self.state = State::Open;
        Ok(())
    }

    /// The acknowledgement is out, if one was to leave.
    pub fn on_acknowledged(&mut self) -> bool {
        let is_out = self.is_acknowledging();
        if is_out {
            self.state = State::Open;
        }
        is_out
    }

    /// The frame that came in has ended.
    pub fn end_frame(&mut self) {
        if self.state == State::Incoming {
            self.state = State::Open;
        }
    }

    /// Takes a frame that the radio heard; returns an acknowledgement. `waits` while one is waited for.
    pub fn on_frame(
        &mut self,
        now: Instant,
        heard: &Heard<'_>,
        waits: bool,
        shared: &mut Shared,
    ) -> Option<Ack> {
        // What does not decode, or is secured, is noise to this node.
        let Ok(frame) = Frame::parse(heard.octets) else {
            shared.counters.malformed += 1;
            return None;
        };
        match frame.header.frame_type {
            // An enhanced acknowledgement may say for whom it is.
            FrameType::Ack if frame.header.destination.is_none_or(|to| shared.is_mine(to)) => {
                return Some(Ack { sequence: frame.header.sequence });
            }
            FrameType::Data => self.on_data(now, &frame, heard, waits, shared),
            FrameType::Ack | FrameType::Beacon | FrameType::Command => {
                shared.counters.filtered += 1;
            }
        }
        None
    }

    fn on_data(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        heard: &Heard<'_>,
        waits: bool,
        shared: &mut Shared,
    ) {
        let (header, &Heard { rssi, handle, .. }) = (&frame.header, heard);
        let Some((source, broadcast)) = shared.addressed(header) else {
            shared.counters.filtered += 1;
            return;
        };
        if !self.take_buffer(now, waits, shared) {
            return;
        }
        shared.note_heard(now, source, rssi);
        let repeated = !broadcast
            && header.sequence.is_some_and(|sequence| {
                shared.links.is_duplicate(now, source, sequence, rssi, CSMA_DUPLICATE_WINDOW)
            });
        shared.counters.duplicates += u64::from(repeated);
        let rejected = repeated && shared.config.rejects_duplicates;
        shared.counters.accepted += u64::from(!rejected);
        if !rejected && !frame.payload.is_empty() {
            let payload = frame.payload.to_vec();
            shared.outbox.push(Output::Received { source, broadcast, payload, handle });
        }
        // s6.7.4.2: a repetition is acknowledged too, since its acknowledgement was lost.
        if header.ack_request && !broadcast {
            self.acknowledge(now, source, header, shared);
        }
    }

    /// The thin MAC has one buffer. False when it is not for this frame.
    fn take_buffer(&mut self, now: Instant, waits: bool, shared: &mut Shared) -> bool {
        let Radio::Thin { busy_max, .. } = shared.config.radio else { return true };
        if !waits {
            self.buffer_until = Some(now + busy_max.mul_f64(shared.rng.unit()));
        }
        !waits
    }

    fn acknowledge(&mut self, now: Instant, source: Eui64, header: &Header, shared: &mut Shared) {
        let delay = match shared.config.acknowledgement {
            Acknowledgement::Hardware => TURNAROUND,
            Acknowledgement::Software { delay } => delay,
            Acknowledgement::None => return,
        };
        // s6.7.4.2: a frame of the 2015 edition wants an enhanced acknowledgement. Those before always have a number.
        let octets = match (header.version, header.sequence) {
            (Version::V2015, sequence) => frame::plain_ack(source, sequence),
            (_, Some(sequence)) => frame::immediate_ack(sequence).to_vec(),
            (_, None) => return,
        };
        shared.counters.acknowledgements += 1;
        shared.note_airtime(octets.len());
        self.state = State::Acknowledging;
        shared.outbox.push(Output::Acknowledge { at: now + delay, octets, destination: source });
    }
}

impl Shared {
    fn is_mine(&self, address: Address) -> bool {
        frame::is_mine(address, self.me, self.config.short)
    }
    /// The sender of a frame to this node, and whether it is to everyone; `None` for frames that are not for this node.
    fn addressed(&self, header: &Header) -> Option<(Eui64, bool)> {
        let source = header.source.and_then(frame::node_of)?;
        let broadcast = match header.destination? {
            Address::BROADCAST => true,
            to if self.is_mine(to) => false,
            _ => return None,
        };
        let pan = header.destination_pan?;
        (pan == self.config.pan || pan == PanId::BROADCAST).then_some((source, broadcast))
    }
}
