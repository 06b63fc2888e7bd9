//! One frame that comes in: IEEE 802.15.4-2015 s6.7.2 (filtering, duplicates) and s6.7.4.2 (acknowledgement).

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::{Dbm, Eui64, Instant, PanId};
use lowmesh_wire::ieee802154::{Address, Frame, FrameType, Header, Version};

use super::config::{Acknowledgement, Radio};
use super::event::Output;
use super::machine::{Csma, Progress, Receiver};
use crate::frame::{self, airtime};
use crate::params::{CSMA_DUPLICATE_WINDOW, TURNAROUND};

impl Csma {
    pub(super) fn on_incoming(&mut self) -> Result<(), Rejected> {
        if !self.listens() {
            return Err(Rejected::WrongState {
                what: "incoming",
                why: "the radio does not listen now",
            });
        }
        self.receiver = Receiver::Incoming;
        Ok(())
    }

    /// A frame broke off. The thin MAC's driver gets no sign of it.
    pub(super) fn on_lost(&mut self) -> Result<(), Rejected> {
        if self.receiver != Receiver::Incoming {
            return Err(Rejected::WrongState { what: "lost", why: "no frame was coming in" });
        }
        self.receiver = Receiver::Open;
        Ok(())
    }

    pub(super) fn on_frame(&mut self, now: Instant, octets: &[u8], rssi: Dbm, handle: Handle) {
        if self.receiver == Receiver::Incoming {
            self.receiver = Receiver::Open;
        }
        if !self.listens() {
            return;
        }
        // What does not decode, or is secured, is noise to this node.
        let Ok(frame) = Frame::parse(octets) else {
            self.counters.malformed += 1;
            return;
        };
        match frame.header.frame_type {
            FrameType::Ack => self.on_ack(now, frame.header.sequence, rssi),
            FrameType::Data => self.on_data(now, &frame, rssi, handle),
            FrameType::Beacon | FrameType::Command => self.counters.filtered += 1,
        }
    }

    fn on_data(&mut self, now: Instant, frame: &Frame<'_>, rssi: Dbm, handle: Handle) {
        let header = &frame.header;
        let Some((source, broadcast)) = self.addressed(header) else {
            self.counters.filtered += 1;
            return;
        };
        if !self.take_buffer(now) {
            return;
        }
        self.links.note_heard(now, source, rssi);
        let repeated = !broadcast
            && header.sequence.is_some_and(|sequence| {
                self.links.is_duplicate(now, source, sequence, rssi, CSMA_DUPLICATE_WINDOW)
            });
        self.counters.duplicates += u64::from(repeated);
        let rejected = repeated && self.config.rejects_duplicates;
        self.counters.accepted += u64::from(!rejected);
        if !rejected && !frame.payload.is_empty() {
            let payload = frame.payload.to_vec();
            self.outbox.push(Output::Received { source, broadcast, payload, handle });
        }
        // s6.7.4.2: a repetition is acknowledged too, since its acknowledgement was lost. Frames of the 2015
        // edition want an enhanced acknowledgement, which this MAC does not send.
        if let Some(sequence) = header.sequence
            && header.ack_request
            && !broadcast
            && header.version != Version::V2015
        {
            self.acknowledge(now, source, sequence);
        }
    }

    /// The sender of a frame to this node, and whether it is to everyone; `None` for frames that are not for this node.
    fn addressed(&self, header: &Header) -> Option<(Eui64, bool)> {
        let source = header.source.and_then(frame::node_of)?;
        let broadcast = match header.destination? {
            Address::Extended(to) if to == self.me => false,
            Address::BROADCAST => true,
            Address::Short(to) if self.config.short == Some(to) => false,
            _ => return None,
        };
        let pan = header.destination_pan?;
        (pan == self.config.pan || pan == PanId::BROADCAST).then_some((source, broadcast))
    }

    /// The thin MAC has one buffer. False when it is not for this frame.
    fn take_buffer(&mut self, now: Instant) -> bool {
        let Radio::Thin { busy_max, .. } = self.config.radio else { return true };
        let waits_for_ack = self.outgoing.as_ref().map(|outgoing| outgoing.progress);
        if matches!(waits_for_ack, Some(Progress::AckWait { .. })) {
            return false;
        }
        self.buffer_until = Some(now + busy_max.mul_f64(self.rng.unit()));
        true
    }

    fn acknowledge(&mut self, now: Instant, source: Eui64, sequence: u8) {
        let delay = match self.config.acknowledgement {
            Acknowledgement::Hardware => TURNAROUND,
            Acknowledgement::Software { delay } => delay,
            Acknowledgement::None => return,
        };
        let octets = frame::immediate_ack(sequence);
        self.counters.acknowledgements += 1;
        self.tx_time += airtime(octets.len());
        self.receiver = Receiver::Acknowledging;
        self.outbox.push(Output::Acknowledge { at: now + delay, octets, destination: source });
    }
}
