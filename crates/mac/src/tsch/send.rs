//! The frames that a node sends: they wait for each neighbour, leave in a timeslot, and end.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Asn, Eui64, Instant};
use lowmesh_wire::ieee802154::{Frame, FrameType};

use super::beacons::Beacons;
use super::burst::{Burst, InFlight};
use super::cell::{CellOptions, CellUse};
use super::choice::{Situation, Traffic};
use super::event::{Output, Reception, Transmission};
use super::membership::Membership;
use super::shared::Shared;
use crate::config::Config;
use crate::frame::{self, Content};
use crate::params::QUEUE_TIME_SOURCE_QUARTERS;
use crate::queue::{NeighbourQueue, Priority, QueuedFrame, Queues};

/// What came back for a frame to one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing that fits.
    Missing,
    /// The neighbour has the frame.
    Taken,
    /// The neighbour heard the frame, and does not accept it now.
    Refused,
}

/// The queues of a node, and the frame in the air.
#[derive(Debug)]
pub(super) struct Sender {
    queues: Queues,
    pub(super) sequence: u8,
    in_flight: Option<InFlight>,
    /// Octets of an acknowledgement that began and was lost, in the slot that is not over.
    lost_ack: Option<usize>,
}

impl Sender {
    /// A sender whose next frame has the sequence number after this.
    pub fn new(config: &Config, sequence: u8) -> Self {
        let queues = Queues::new(config.queue_frames_max, config.be_min);
        Self { queues, sequence, in_flight: None, lost_ack: None }
    }
    pub const fn queues(&self) -> &Queues {
        &self.queues
    }
    /// What the choice of the next frame depends on.
    pub fn situation<'a>(&'a self, beacons: &Beacons, shared: &'a Shared) -> Situation<'a> {
        let (schedule, queues) = (&shared.schedule, &self.queues);
        Situation { schedule, queues, beacon_due: beacons.due, spacing: beacons.spacing }
    }

    /// True when there is no room for a frame that `source` sends to be passed on: none at all, or none to the time source,
    /// where frames of other neighbours go as a rule. Most of what comes to a coordinator is for itself.
    pub fn refuses(&self, source: Eui64, membership: &Membership, config: &Config) -> bool {
        let Some(upward) = membership.upward().filter(|_| config.nack_full) else {
            return false;
        };
        let waiting = self.queues.get(Some(upward)).map_or(0, NeighbourQueue::len);
        self.queues.held() >= config.queue_frames_max
            || source != upward && waiting >= share(config, Some(upward), membership)
    }

    /// Puts a frame in its queue, or drops it.
    pub fn send(
        &mut self,
        destination: Option<Eui64>,
        content: Content<'_>,
        priority: Priority,
        handle: Handle,
        membership: &Membership,
        shared: &mut Shared,
    ) {
        let length = match content {
            Content::Payload(payload) | Content::Advertisement(payload) => payload.len(),
            // Two descriptors and the sub-type of the IETF IE.
            Content::Sixtop(message) => message.len() + 5,
        };
        let refusal = if !membership.is_synchronised() {
            Some(DropReason::NotJoined)
        } else if length > frame::payload_octets_max(shared.me, destination) {
            Some(DropReason::TooLarge)
        } else {
            None
        };
        self.sequence = self.sequence.wrapping_add(1);
        let (pan, me) = (shared.config.pan, shared.me);
        let octets = match refusal {
            Some(_) => Vec::new(),
            None => frame::data(pan, me, destination, self.sequence, content),
        };
        let is_advertisement = matches!(content, Content::Advertisement(_));
        let queued = QueuedFrame {
            octets,
            destination,
            handle,
            priority,
            is_advertisement,
            is_advice: false,
            transmissions: 0,
            refusals: 0,
        };
        if let Some(reason) = refusal {
            shared.drop_frame(&queued, reason);
            return;
        }
        while let Some(old) = self.queues.supersede(&queued) {
            shared.drop_frame(&old, DropReason::Superseded);
        }
        match self.queues.push(queued, share(&shared.config, destination, membership)) {
            Ok(was_empty) => {
                let busy = destination.filter(|_| was_empty).map(Output::QueueBusy);
                shared.outbox.extend(busy);
            }
            Err(queued) => shared.drop_frame(&queued, DropReason::QueueFull),
        }
    }

    /// Asks a silent time source for a frame. Frames that already wait for it will be acknowledged, and so correct the
    /// clock.
    pub fn keep_alive(
        &mut self,
        time_source: Option<Eui64>,
        membership: &Membership,
        shared: &mut Shared,
    ) {
        if self.queues.get(time_source).is_none_or(NeighbourQueue::is_empty) {
            let (nothing, priority) = (Content::Payload(&[]), Priority::Control);
            self.send(time_source, nothing, priority, Handle::NONE, membership, shared);
        }
    }

    /// Gives up what waits for `peer`.
    pub fn flush(&mut self, peer: Eui64, shared: &mut Shared) {
        let frames = self.queues.flush(Some(peer));
        for frame in &frames {
            shared.drop_frame(frame, DropReason::NeighbourLost);
        }
        if !frames.is_empty() {
            shared.outbox.push(Output::QueueEmpty(peer));
        }
    }
    /// Gives up everything: the node is in no network any more.
    pub fn flush_all(&mut self, shared: &mut Shared) {
        self.in_flight = None;
        for frame in self.queues.flush_all() {
            shared.drop_frame(&frame, DropReason::Desynchronised);
        }
    }
    /// Takes a frame that waits out of its queue, without a report.
    pub fn withdraw(&mut self, handle: Handle, shared: &mut Shared) {
        // The end of its slot looks for the frame in front of the queue.
        let on_air = self.in_flight.as_ref().is_some_and(|sent| match sent.choice.traffic {
            Traffic::Unicast(peer) => self.front(peer).is_some_and(|frame| frame.handle == handle),
            Traffic::Beacon | Traffic::Broadcast => false,
        });
        if on_air {
            return;
        }
        if let Some(peer) = self.queues.withdraw(handle).and_then(|frame| frame.destination) {
            self.note_if_empty(peer, shared);
        }
    }
    fn front(&self, peer: Eui64) -> Option<&QueuedFrame> {
        self.queues.get(Some(peer))?.front()
    }

    /// Takes the frame for slot `asn`, which starts now; [`Sender::take_sent`] and [`Sender::finish`] must follow.
    pub fn transmit(
        &mut self,
        now: Instant,
        asn: Asn,
        beacons: &mut Beacons,
        shared: &mut Shared,
    ) -> Option<Transmission> {
        let mut departure = self.departure(asn, beacons, shared)?;
        let choice = departure.choice;
        if shared.listening_cell(asn).is_some() {
            shared.time.listening_slots_used += 1;
        }
        let (mut octets, destination, handle) = match choice.traffic {
            Traffic::Beacon => {
                self.sequence = self.sequence.wrapping_add(1);
                let tsch = beacons.content(asn, shared);
                let octets = frame::beacon(shared.config.pan, shared.me, self.sequence, &tsch);
                (octets, None, Handle::NONE)
            }
            Traffic::Broadcast => self.take_copy(None)?,
            Traffic::Unicast(peer) => self.take_copy(Some(peer))?,
        };
        if let Some(peer) = destination {
            let waiting = self.queues.get(Some(peer)).map_or(0, NeighbourQueue::len);
            departure.mark(&mut octets, waiting, shared.config.burst_frames_max);
        }
        shared.time.sent(octets.len());
        if !matches!(choice.traffic, Traffic::Unicast(_)) {
            beacons.space_out(now, asn, choice, shared);
        }
        if departure.follows == 0 {
            shared.schedule.note_use(choice.cell, |u: &mut CellUse| u.sent += 1);
        }
        self.in_flight = Some(departure);
        Some(Transmission { channel: departure.channel, octets, destination, handle })
    }

    /// What goes out in slot `asn`: the rest of a burst, or what the schedule says.
    fn departure(&self, asn: Asn, beacons: &Beacons, shared: &mut Shared) -> Option<InFlight> {
        if let Some(next) = shared.burst.take().and_then(|burst| burst.sends(asn))
            && let Traffic::Unicast(peer) = next.choice.traffic
            && self.front(peer).is_some()
        {
            return Some(next);
        }
        let choice = self.situation(beacons, shared).choose(asn)?;
        let channel = shared.config.hopping.channel(asn, choice.channel_offset);
        Some(InFlight::first(choice, channel))
    }

    fn take_copy(&mut self, peer: Option<Eui64>) -> Option<(Vec<u8>, Option<Eui64>, Handle)> {
        let frame = self.queues.get_mut(peer)?.front_mut()?;
        frame.transmissions += 1;
        Some((frame.octets.clone(), peer, frame.handle))
    }

    /// The acknowledgement of the frame in the air began and was lost; false if no frame is in the air.
    pub fn lose_ack(&mut self, octets: usize) -> bool {
        let is_sending = self.in_flight.is_some();
        if is_sending {
            self.lost_ack = Some(octets);
        }
        is_sending
    }

    /// Takes the frame in the air, whose slot is over.
    pub fn take_sent(&mut self) -> Option<InFlight> {
        self.in_flight.take()
    }
    /// The slot of a broadcast is over.
    pub fn finish_broadcast(&mut self, shared: &mut Shared) {
        if let Some(frame) = self.queues.pop(None) {
            let (handle, transmissions) = (frame.handle, frame.transmissions);
            shared.outbox.push(Output::Sent { handle, destination: None, transmissions });
        }
    }
    /// The slot of a frame to `peer` is over; `ack` is what came back, if anything did.
    pub fn finish_unicast(
        &mut self,
        slot_start: Instant,
        (peer, sent): (Eui64, InFlight),
        ack: Option<Reception<'_>>,
        membership: &mut Membership,
        shared: &mut Shared,
    ) {
        let heard = ack.map(|a| a.octets.len()).or(self.lost_ack.take());
        shared.time.waited_for_ack(heard);
        let is_shared = sent.choice.shared;
        let answer = ack.map_or(Answer::Missing, |ack| {
            self.read_ack(slot_start, peer, ack, membership, shared)
        });
        if answer != Answer::Missing && sent.follows == 0 {
            // A frame that is refused has come through its cell too.
            shared.schedule.note_use(sent.choice.cell, |u| u.acked += 1);
        }
        match answer {
            Answer::Taken => {
                shared.burst = Burst::after(shared.asn(slot_start), sent);
                self.finish_acked(peer, is_shared, shared);
            }
            Answer::Refused => {
                if let Some(frame) = self.queues.get_mut(Some(peer)).and_then(|q| q.front_mut()) {
                    frame.refusals += 1;
                }
                self.finish_unacked(peer, is_shared, DropReason::QueueFull, shared);
            }
            Answer::Missing => self.finish_unacked(peer, is_shared, DropReason::NoAck, shared),
        }
    }

    /// What `ack` says of the frame in front of `peer`'s queue.
    fn read_ack(
        &self,
        now: Instant,
        peer: Eui64,
        ack: Reception<'_>,
        membership: &mut Membership,
        shared: &mut Shared,
    ) -> Answer {
        let Ok(frame) = Frame::parse(ack.octets) else { return Answer::Missing };
        // The sequence number is the third octet of the frames that this MAC makes.
        let sequence = self.front(peer).and_then(|f| f.octets.get(2).copied());
        let is_mine = |to| frame::is_mine(to, shared.me, shared.config.short);
        let fits = frame.header.frame_type == FrameType::Ack
            && frame.header.sequence == sequence
            && frame.header.destination.is_some_and(is_mine);
        if !fits {
            return Answer::Missing;
        }
        shared.note_heard(now, peer, ack.rssi);
        let Some(correction) = frame.header_ies.time_correction() else { return Answer::Taken };
        if membership.takes_time_from(peer) {
            // It moves this node's slots: to send later is to set the clock back.
            membership.correct_clock(now, -i32::from(correction.micros), shared);
        }
        // IEEE 802.15.4-2015 s7.4.2.7: bit 15 says that the frame came and was not accepted.
        if correction.nack { Answer::Refused } else { Answer::Taken }
    }

    /// As in Contiki-NG (tsch-queue.c), success in a dedicated cell says nothing about the shared ones: it ends the
    /// backoff only where no frame is left to wait.
    fn finish_acked(&mut self, peer: Eui64, is_shared: bool, shared: &mut Shared) {
        let Some(frame) = self.queues.pop(Some(peer)) else { return };
        let be_min = shared.config.be_min;
        if let Some(queue) = self.queues.get_mut(Some(peer)).filter(|q| is_shared || q.is_empty()) {
            queue.backoff.reset(be_min);
        }
        let (handle, transmissions) = (frame.handle, frame.transmissions);
        shared.note_link(peer, frame.tries(), true);
        shared.outbox.push(Output::Sent { handle, destination: Some(peer), transmissions });
        self.note_if_empty(peer, shared);
    }

    /// The backoff outlives a frame that is given up: the cell is as busy for the next one. `reason` is what became of the
    /// last try.
    fn finish_unacked(
        &mut self,
        peer: Eui64,
        is_shared: bool,
        reason: DropReason,
        shared: &mut Shared,
    ) {
        if is_shared {
            self.back_off(peer, shared);
        }
        if reason == DropReason::NoAck {
            shared.note_unanswered(peer);
        }
        let retries_max = shared.config.retries_max;
        if self.front(peer).is_none_or(|frame| frame.transmissions <= retries_max) {
            return;
        }
        if let Some(frame) = self.queues.pop(Some(peer)) {
            // A neighbour that refuses the last try is there.
            shared.note_link(peer, frame.tries(), reason != DropReason::NoAck);
            shared.drop_frame(&frame, reason);
        }
        self.note_if_empty(peer, shared);
    }

    fn note_if_empty(&self, peer: Eui64, shared: &mut Shared) {
        if self.front(peer).is_none() {
            shared.outbox.push(Output::QueueEmpty(peer));
        }
    }

    /// s6.2.5.3: let a random number of the shared cells to this neighbour pass.
    fn back_off(&mut self, peer: Eui64, shared: &mut Shared) {
        let Some(queue) = self.queues.get_mut(Some(peer)) else { return };
        let window = queue.backoff.collide(shared.config.be_max, &mut shared.rng);
        let schedule = &shared.schedule;
        let to = schedule.has_tx_to(peer).then_some(peer);
        let is_shared = CellOptions::TX.with(CellOptions::SHARED);
        let mut until = shared.next_slot;
        for _ in 0..window {
            let cells = schedule.cells().filter(|c| c.options.has(is_shared) && c.peer == to);
            match cells.map(|c| schedule.next_occurrence(c, until)).min() {
                Some(asn) => until = asn + 1,
                None => break,
            }
        }
        queue.backoff.until = until;
    }
}

/// Data frames that may wait for `peer`.
fn share(config: &Config, peer: Option<Eui64>, membership: &Membership) -> usize {
    let each = config.queue_per_neighbour;
    if peer.is_none() || peer != membership.upward() {
        return each;
    }
    each.max(config.queue_frames_max * QUEUE_TIME_SOURCE_QUARTERS / 4)
}
