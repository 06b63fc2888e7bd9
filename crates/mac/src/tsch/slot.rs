//! One timeslot, as the radio driver goes through it (IEEE 802.15.4-2015 s6.5.4.2 and Figure 6-30).
//!
//! ```text
//!   sender    | TxOffset |  frame  | ... AckWait | ack |        |
//!   receiver  | guard ........ frame  | TxAckDelay | ack |      |
//!             0         2120us                                  10ms
//! ```
//! The driver asks [`Tsch::next_transmission`], and when that slot comes: [`Tsch::transmit`] at the sender,
//! [`Tsch::listens`] and [`Tsch::receive`] at those around it, and [`Tsch::finish`] at the sender again.
//! A device's driver asks `listens` for each slot; a simulator only when somebody sends.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Asn, Channel, Dbm, Eui64, Instant};
use lowmesh_wire::ieee802154::{Address, Frame, FrameType};

use super::burst::{Burst, InFlight};
use super::cell::{CellId, CellKind, CellOptions, CellUse};
use super::choice::{Choice, Traffic};
use super::machine::{Output, State, Tsch};
use super::spacing::Spacing;
use crate::frame;
use crate::params::{DUPLICATE_WINDOW, NEIGHBOUR_AGE, RX_WAIT};
use crate::queue::NeighbourQueue;

/// A frame that goes out in this slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// On this channel,
    pub channel: Channel,
    /// these octets (FCS left out).
    pub octets: Vec<u8>,
    /// One neighbour is to acknowledge.
    pub destination: Option<Eui64>,
    /// The datagram in it.
    pub handle: Handle,
}

/// What the radio heard.
#[derive(Clone, Copy, Debug)]
pub struct Reception<'a> {
    /// The frame without FCS, which was right.
    pub octets: &'a [u8],
    /// How strong.
    pub rssi: Dbm,
    /// Microseconds after the expected moment, by the local clock.
    pub late_micros: i32,
    /// The datagram in it, where the driver knows.
    pub handle: Handle,
}

impl Tsch {
    /// Takes the frame for the slot that starts now, if there still is one; [`Tsch::finish`] must follow.
    pub fn transmit(&mut self, now: Instant) -> Option<Transmission> {
        let asn = self.asn(now);
        if !self.is_synchronised() || asn < self.next_slot {
            return None;
        }
        self.next_slot = asn + 1;
        let Some(mut departure) = self.departure(asn) else {
            self.look_ahead();
            return None;
        };
        let choice = departure.choice;
        if self.schedule.at(asn).any(|(c, _)| c.options.has(CellOptions::RX)) {
            self.time.listening_slots_used += 1;
        }
        let (mut octets, destination, handle) = match choice.traffic {
            Traffic::Beacon => {
                self.sequence = self.sequence.wrapping_add(1);
                let tsch = self.beacon(asn);
                let octets = frame::beacon(self.config.pan, self.me, self.sequence, &tsch);
                (octets, None, Handle::NONE)
            }
            Traffic::Broadcast => self.take_copy(None)?,
            Traffic::Unicast(peer) => self.take_copy(Some(peer))?,
        };
        if let Some(peer) = destination {
            let waiting = self.queues.get(Some(peer)).map_or(0, NeighbourQueue::len);
            departure.mark(&mut octets, waiting, self.config.burst_frames_max);
        }
        self.time.sent(octets.len());
        if !matches!(choice.traffic, Traffic::Unicast(_)) {
            self.space_out(now, asn, choice);
        }
        if departure.follows == 0 {
            self.schedule.note_use(choice.cell, |u: &mut CellUse| u.sent += 1);
        }
        self.in_flight = Some(departure);
        Some(Transmission { channel: departure.channel, octets, destination, handle })
    }

    /// A beacon or a broadcast goes out: the next one leaves the minimal cell to others for a while.
    fn space_out(&mut self, now: Instant, asn: Asn, choice: Choice) {
        let Some(cell) = self.schedule.get(choice.cell) else { return };
        if cell.kind != CellKind::Minimal || self.config.broadcast_spacing == 0 {
            return;
        }
        let distance = self.schedule.next_occurrence(cell, asn + 1).since(asn);
        let neighbours = self.links.iter().filter(|l| now.since(l.heard) < NEIGHBOUR_AGE).count();
        let share = (distance, self.config.broadcast_spacing, neighbours);
        let beacon = choice.traffic == Traffic::Beacon;
        self.spacing = Spacing::after(asn, beacon, share, &mut self.rng);
    }

    /// What goes out in slot `asn`: the rest of a burst, or what the schedule says.
    fn departure(&mut self, asn: Asn) -> Option<InFlight> {
        if let Some(next) = self.burst.take().and_then(|burst| burst.sends(asn))
            && let Traffic::Unicast(peer) = next.choice.traffic
            && self.queues.get(Some(peer)).is_some_and(|queue| !queue.is_empty())
        {
            return Some(next);
        }
        let choice = self.situation().choose(asn)?;
        Some(InFlight::first(choice, self.config.hopping.channel(asn, choice.channel_offset)))
    }

    /// A frame for this node in slot `asn` said that more follow.
    fn stay_on(&mut self, asn: Asn, channel: Channel, cell: Option<CellId>) {
        // A slot in which the schedule has the node listen is counted already.
        if self.listening_cell(asn + 1).is_none() {
            self.time.rx += RX_WAIT;
        }
        self.burst = Some(Burst::heard(asn, channel, cell));
    }

    fn take_copy(&mut self, peer: Option<Eui64>) -> Option<(Vec<u8>, Option<Eui64>, Handle)> {
        let frame = self.queues.get_mut(peer)?.front_mut()?;
        frame.transmissions += 1;
        Some((frame.octets.clone(), peer, frame.handle))
    }

    /// On which channel the radio listens in the slot that starts at `now`, when nothing is to be sent.
    pub fn listens(&self, now: Instant) -> Option<Channel> {
        match &self.state {
            State::Off => None,
            State::Scanning { since, order } => {
                let periods = now.since(*since).as_nanos() / self.config.scan_period.as_nanos();
                Some(order[periods as usize % order.len()])
            }
            State::Synchronised(_) => {
                let asn = self.asn(now);
                if let Some((channel, _)) = self.burst.and_then(|burst| burst.listens(asn)) {
                    return Some(channel);
                }
                let (_, channel_offset) = self.listening_cell(asn)?;
                Some(self.config.hopping.channel(asn, channel_offset))
            }
        }
    }

    fn listening_cell(&self, asn: Asn) -> Option<(CellId, u16)> {
        self.schedule
            .at(asn)
            .find(|(cell, _)| cell.options.has(CellOptions::RX))
            .map(|(cell, channel_offset)| (cell.id, channel_offset))
    }

    /// A frame was received in the slot that started at `slot_start`. Returns the acknowledgement to send.
    pub fn receive(&mut self, slot_start: Instant, heard: Reception<'_>) -> Option<Vec<u8>> {
        let scanning = matches!(self.state, State::Scanning { .. });
        // A scan counts as a whole.
        if !scanning {
            self.time.received(heard.octets.len());
            self.time.listening_slots_used += 1;
        }
        // What does not decode, or is secured, is noise to this node.
        let frame = Frame::parse(heard.octets).ok()?;
        let Some(Address::Extended(source)) = frame.header.source else { return None };
        if frame.header.destination_pan.is_some_and(|pan| pan != self.config.pan) {
            return None;
        }
        let ack = if scanning {
            self.receive_scanning(slot_start, source, &frame);
            if self.is_synchronised() {
                self.time.joined(heard.octets.len());
            }
            None
        } else {
            self.receive_synchronised(slot_start, source, &frame, heard)
        };
        self.look_ahead();
        ack
    }

    /// A frame of `octets` that this node's radio had found was lost in the slot that [`Tsch::listens`] named, to
    /// noise or to another frame; at a sender, before [`Tsch::finish`], the acknowledgement was.
    pub fn lose(&mut self, octets: usize) {
        if self.in_flight.is_some() {
            self.lost_ack = Some(octets);
        } else if self.is_synchronised() {
            self.time.received(octets);
            self.time.listening_slots_used += 1;
        }
    }

    fn receive_scanning(&mut self, slot_start: Instant, source: Eui64, frame: &Frame<'_>) {
        if frame.header.frame_type != FrameType::Beacon {
            return;
        }
        if let Ok(Some(tsch)) = frame.payload_ies.tsch() {
            self.join(slot_start, slot_start, source, &tsch);
        }
    }

    fn receive_synchronised(
        &mut self,
        slot_start: Instant,
        source: Eui64,
        frame: &Frame<'_>,
        heard: Reception<'_>,
    ) -> Option<Vec<u8>> {
        let asn = self.asn(slot_start);
        self.next_slot = self.next_slot.max(asn + 1);
        let channel = self.listens(slot_start);
        let cell = if let Some((_, cell)) = self.burst.and_then(|burst| burst.listens(asn)) {
            cell
        } else {
            let cell = self.listening_cell(asn).map(|(cell, _)| cell);
            if let Some(cell) = cell {
                self.schedule.note_use(cell, |u| u.received += 1);
            }
            cell
        };
        self.links.note_heard(slot_start, source, heard.rssi);
        if self.time_source() == Some(source) {
            self.correct_clock(slot_start, -heard.late_micros);
        }
        let broadcast = match frame.header.destination {
            Some(Address::Extended(to)) if to == self.me => false,
            Some(Address::BROADCAST) => true,
            _ => return None,
        };
        if frame.header.frame_type != FrameType::Data {
            return None;
        }
        let sequence = frame.header.sequence?;
        if broadcast || !self.is_duplicate(slot_start, source, sequence, heard.rssi) {
            self.deliver(source, cell, broadcast, frame, heard.handle);
        }
        // s6.7.4.2: a repetition is acknowledged too, since its acknowledgement was lost.
        if broadcast || !frame.header.ack_request {
            return None;
        }
        if frame.header.frame_pending
            && let Some(channel) = channel
        {
            self.stay_on(asn, channel, cell);
        }
        let ack = frame::ack(source, sequence, -heard.late_micros);
        self.time.acknowledged(ack.len());
        Some(ack)
    }

    fn is_duplicate(&mut self, now: Instant, source: Eui64, sequence: u8, rssi: Dbm) -> bool {
        self.links.is_duplicate(now, source, sequence, rssi, DUPLICATE_WINDOW)
    }

    fn deliver(
        &mut self,
        source: Eui64,
        cell: Option<CellId>,
        broadcast: bool,
        frame: &Frame<'_>,
        handle: Handle,
    ) {
        if let Some(message) = frame.payload_ies.sixtop() {
            self.outbox.push(Output::Sixtop { source, cell, message: message.to_vec() });
        } else if !frame.payload.is_empty() {
            let payload = frame.payload.to_vec();
            self.outbox.push(Output::Received { source, cell, broadcast, payload, handle });
        }
    }

    fn correct_clock(&mut self, now: Instant, micros: i32) {
        if let State::Synchronised(sync) = &mut self.state {
            sync.refresh(now);
        }
        if micros != 0 {
            self.outbox.push(Output::AdjustClock { micros });
        }
    }

    /// The slot of [`Tsch::transmit`] is over; `ack` is what came back, if anything did.
    pub fn finish(&mut self, slot_start: Instant, ack: Option<Reception<'_>>) {
        let Some(sent) = self.in_flight.take() else { return };
        let choice = sent.choice;
        match choice.traffic {
            Traffic::Beacon => self.schedule_beacon(),
            Traffic::Broadcast => {
                if let Some(frame) = self.queues.pop(None) {
                    let (handle, transmissions) = (frame.handle, frame.transmissions);
                    self.outbox.push(Output::Sent { handle, destination: None, transmissions });
                }
            }
            Traffic::Unicast(peer) => {
                let heard = ack.map(|a| a.octets.len()).or(self.lost_ack.take());
                self.time.waited_for_ack(heard);
                let acked = ack.is_some_and(|a| self.accept_ack(slot_start, peer, a));
                if acked {
                    if sent.follows == 0 {
                        self.schedule.note_use(choice.cell, |u| u.acked += 1);
                    }
                    self.burst = Burst::after(self.asn(slot_start), sent);
                    self.finish_acked(peer, choice.shared);
                } else {
                    self.finish_unacked(peer, choice.shared);
                }
            }
        }
        self.look_ahead();
    }

    /// True when this is the acknowledgement of the frame in front of `peer`'s queue.
    fn accept_ack(&mut self, now: Instant, peer: Eui64, ack: Reception<'_>) -> bool {
        let Ok(frame) = Frame::parse(ack.octets) else { return false };
        let sent = self.queues.get(Some(peer)).and_then(|q| q.front());
        // The sequence number is the third octet of the frames that this MAC makes.
        let sequence = sent.and_then(|f| f.octets.get(2).copied());
        let fits = frame.header.frame_type == FrameType::Ack
            && frame.header.sequence == sequence
            && frame.header.destination == Some(Address::Extended(self.me));
        if !fits {
            return false;
        }
        self.links.note_heard(now, peer, ack.rssi);
        if self.time_source() == Some(peer)
            && let Some(correction) = frame.header_ies.time_correction()
        {
            // It moves this node's slots: to send later is to set the clock back.
            self.correct_clock(now, -i32::from(correction.micros));
        }
        true
    }

    /// As in Contiki-NG (tsch-queue.c), success in a dedicated cell says nothing about the shared ones: it ends the
    /// backoff only where no frame is left to wait.
    fn finish_acked(&mut self, peer: Eui64, shared: bool) {
        let Some(frame) = self.queues.pop(Some(peer)) else { return };
        let be_min = self.config.be_min;
        if let Some(queue) = self.queues.get_mut(Some(peer)).filter(|q| shared || q.is_empty()) {
            queue.backoff.reset(be_min);
        }
        let (handle, transmissions) = (frame.handle, frame.transmissions);
        self.note_link(peer, transmissions, true);
        self.outbox.push(Output::Sent { handle, destination: Some(peer), transmissions });
        self.note_if_empty(peer);
    }

    /// The backoff outlives a frame that is given up: the cell is as busy for the next one.
    fn finish_unacked(&mut self, peer: Eui64, shared: bool) {
        if shared {
            self.back_off(peer);
        }
        let spent = self
            .queues
            .get(Some(peer))
            .and_then(|q| q.front())
            .is_some_and(|f| f.transmissions > self.config.retries_max);
        if !spent {
            return;
        }
        if let Some(frame) = self.queues.pop(Some(peer)) {
            self.note_link(peer, frame.transmissions, false);
            self.drop_frame(&frame, DropReason::NoAck);
        }
        self.note_if_empty(peer);
    }

    fn note_link(&mut self, peer: Eui64, transmissions: u8, acked: bool) {
        if let Some(etx) = self.links.note_sent(peer, transmissions, acked) {
            self.outbox.push(Output::LinkEtx { peer, etx });
        }
    }

    pub(super) fn note_if_empty(&mut self, peer: Eui64) {
        if self.queues.get(Some(peer)).is_none_or(NeighbourQueue::is_empty) {
            self.outbox.push(Output::QueueEmpty(peer));
        }
    }

    /// s6.2.5.3: let a random number of the shared cells to this neighbour pass.
    fn back_off(&mut self, peer: Eui64) {
        let be_max = self.config.be_max;
        let Some(queue) = self.queues.get_mut(Some(peer)) else { return };
        let window = queue.backoff.collide(be_max, &mut self.rng);
        let own = self.schedule.has_tx_to(peer);
        let mut until = self.next_slot;
        for _ in 0..window {
            let shared = self.schedule.cells().filter(|c| {
                c.options.has(CellOptions::TX.with(CellOptions::SHARED))
                    && c.peer == own.then_some(peer)
            });
            match shared.map(|c| self.schedule.next_occurrence(c, until)).min() {
                Some(asn) => until = asn + 1,
                None => break,
            }
        }
        if let Some(queue) = self.queues.get_mut(Some(peer)) {
            queue.backoff.until = until;
        }
    }
}
