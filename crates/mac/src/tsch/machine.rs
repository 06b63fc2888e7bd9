//! The TSCH MAC as a machine: what happens outside of its timeslots, and in each of them
//! (IEEE 802.15.4-2015 s6.5.4.2 and Figure 6-30).
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

use lowmesh_machine::{Machine, Rejected};
use lowmesh_units::{Asn, Channel, Duration, Eui64, Instant, Rng};

use super::beacons::Beacons;
use super::burst::Burst;
use super::choice::Traffic;
use super::event::{Input, Output, Reception, Transmission};
use super::former::FormerNetwork;
use super::hopping::HoppingSequence;
use super::membership::{Due, Membership};
use super::receive;
use super::schedule::Schedule;
use super::send::Sender;
use super::shared::Shared;
use crate::account::RadioTime;
use crate::config::Config;
use crate::frame;
use crate::link::LinkTable;
use crate::params::SILENT_BEACONS;
use crate::queue::Queues;

/// A TSCH MAC.
#[derive(Debug)]
pub struct Tsch {
    shared: Shared,
    membership: Membership,
    beacons: Beacons,
    pub(super) sender: Sender,
    /// The slot of the next transmission, recomputed after each change.
    next_transmission: Option<Asn>,
}

impl Tsch {
    /// A MAC that is off.
    pub fn new(config: Config, me: Eui64, mut rng: Rng) -> Self {
        let sender = Sender::new(&config, rng.next_u32() as u8);
        Self {
            shared: Shared::new(config, me, rng),
            membership: Membership::Off,
            beacons: Beacons::default(),
            sender,
            next_transmission: None,
        }
    }

    /// What is known of the neighbours.
    pub const fn links(&self) -> &LinkTable {
        &self.shared.links
    }
    /// The node looks for a parent: see [`LinkTable::reset_bad`].
    pub fn reset_bad_links(&mut self) {
        self.shared.links.reset_bad();
    }
    /// The cells.
    pub const fn schedule(&self) -> &Schedule {
        &self.shared.schedule
    }
    /// The cells, to change them at `now`; [`Input::ScheduleChanged`] must follow.
    pub fn schedule_mut(&mut self, now: Instant) -> &mut Schedule {
        let asn = self.asn(now);
        self.shared.schedule.set_now(asn);
        &mut self.shared.schedule
    }
    /// Sets the hopping sequence, in this network and in those that the node joins later; [`Input::ScheduleChanged`] must
    /// follow. A scan that is under way ends on the channels with which it began.
    pub fn set_hopping(&mut self, hopping: HoppingSequence) {
        self.shared.set_hopping(hopping);
    }
    /// The frames that wait.
    pub const fn queues(&self) -> &Queues {
        self.sender.queues()
    }
    /// Octets that a frame to a node with as long an address can carry.
    pub fn payload_octets_max(&self) -> usize {
        frame::payload_octets_max(self.shared.me, None)
    }
    /// True when the clock is in step with a network.
    pub const fn is_synchronised(&self) -> bool {
        self.membership.is_synchronised()
    }
    /// Who gives the time.
    pub fn time_source(&self) -> Option<Eui64> {
        self.membership.time_source()
    }
    /// What a coordinator has to keep of its network, to continue it after it lost its memory; `None` at others.
    pub fn network(&self) -> Option<FormerNetwork> {
        match &self.membership {
            Membership::Synchronised(sync) if sync.time_source().is_none() => {
                Some(FormerNetwork::new(self.shared.origin, &self.shared.schedule))
            }
            membership => membership.former(),
        }
    }
    /// The slot that holds `now`.
    pub fn asn(&self, now: Instant) -> Asn {
        self.shared.asn(now)
    }
    /// When slot `asn` starts.
    pub fn slot_start(&self, asn: Asn) -> Instant {
        self.shared.slot_start(asn)
    }
    /// Length of a timeslot.
    pub const fn slot(&self) -> Duration {
        self.shared.config.slot
    }
    /// Radio time up to `now`.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        let mut time = self.shared.time;
        self.membership.add_scan(now, &mut time);
        time.with_idle_slots(self.shared.schedule.listening_slots(self.asn(now)))
    }

    /// When the next frame goes out: the start of its slot.
    pub fn next_transmission(&self) -> Option<Instant> {
        Some(self.slot_start(self.next_transmission?))
    }
    /// Looks again for the next slot to send in; to be called after whatever could move it.
    fn look_ahead(&mut self) {
        self.next_transmission = self.search();
    }
    fn search(&self) -> Option<Asn> {
        let (shared, from) = (&self.shared, self.shared.next_slot);
        if !self.membership.is_synchronised() {
            return None;
        }
        let (claimed, free) = shared.burst.map_or((None, from), |burst| burst.ahead(from));
        claimed.or_else(|| self.sender.situation(&self.beacons, shared).next(free))
    }

    /// What the next transmission depends on and a received frame can change, besides the time.
    fn outlook(&self) -> (bool, Option<Burst>, u64) {
        let Shared { burst, schedule, .. } = &self.shared;
        (self.membership.is_synchronised(), *burst, schedule.generation())
    }

    /// Takes the frame for the slot that starts now, if there still is one; [`Tsch::finish`] must follow.
    pub fn transmit(&mut self, now: Instant) -> Option<Transmission> {
        let asn = self.asn(now);
        if !self.is_synchronised() || asn < self.shared.next_slot {
            return None;
        }
        self.shared.next_slot = asn + 1;
        let sent = self.sender.transmit(now, asn, &mut self.beacons, &mut self.shared);
        if sent.is_none() {
            self.look_ahead();
        }
        sent
    }
    /// On which channel the radio listens in the slot that starts at `now`, when nothing is to be sent.
    pub fn listens(&self, now: Instant) -> Option<Channel> {
        if self.is_synchronised() {
            return receive::listens(self.asn(now), &self.shared);
        }
        self.membership.scanned_channel(now, &self.shared.config)
    }
    /// A frame was received in the slot that started at `slot_start`. Returns the acknowledgement to send.
    pub fn receive(&mut self, slot_start: Instant, heard: Reception<'_>) -> Option<Vec<u8>> {
        let before = self.outlook();
        let (membership, shared) = (&mut self.membership, &mut self.shared);
        let heard = receive::on_frame(slot_start, heard, &self.sender, membership, shared);
        let Ok(ack) = heard else {
            self.desynchronise(slot_start);
            self.look_ahead();
            return None;
        };
        // A search that starts later finds no earlier slot, so a slot that is not over stays the next one.
        let ahead = self.next_transmission.is_none_or(|asn| asn >= self.shared.next_slot);
        if ahead && self.outlook() == before {
            debug_assert_eq!(self.next_transmission, self.search(), "nothing moved it");
        } else {
            self.look_ahead();
        }
        ack
    }
    /// A frame of `octets` that this node's radio had found was lost in the slot that [`Tsch::listens`] named, to
    /// noise or to another frame; at a sender, before [`Tsch::finish`], the acknowledgement was.
    pub fn lose(&mut self, octets: usize) {
        if !self.sender.lose_ack(octets) && self.is_synchronised() {
            self.shared.time.received(octets);
            self.shared.time.listening_slots_used += 1;
        }
    }
    /// The slot of [`Tsch::transmit`] is over; `ack` is what came back, if anything did.
    pub fn finish(&mut self, slot_start: Instant, ack: Option<Reception<'_>>) {
        let Some(sent) = self.sender.take_sent() else { return };
        let shared = &mut self.shared;
        match sent.choice.traffic {
            Traffic::Beacon => {
                self.beacons.plan(shared);
                shared.report_silent(slot_start, shared.broadcast_interval * SILENT_BEACONS);
            }
            Traffic::Broadcast => self.sender.finish_broadcast(shared),
            Traffic::Unicast(peer) => {
                let membership = &mut self.membership;
                self.sender.finish_unicast(slot_start, (peer, sent), ack, membership, shared);
            }
        }
        self.look_ahead();
    }

    /// Leaves the network: schedule and queues are empty, the neighbours are forgotten, and a scan begins.
    fn desynchronise(&mut self, now: Instant) {
        let shared = &mut self.shared;
        shared.schedule.set_now(shared.asn(now));
        shared.schedule.clear();
        shared.burst = None;
        self.beacons = Beacons::default();
        shared.least_metric = None;
        self.sender.flush_all(shared);
        // As in Contiki-NG (link_stats_reset in tsch-rpl.c): frames that failed while the clock was off measure no link.
        shared.links.clear();
        shared.outbox.push(Output::Desynchronised);
        self.membership.scan(now, shared);
    }

    fn deadline(&mut self, now: Instant) {
        match self.membership.due(now, &self.shared.config) {
            Some(Due::Desynchronised) => self.desynchronise(now),
            Some(Due::NewNetwork) => self.membership.begin(now, &mut self.shared),
            Some(Due::Keepalive(time_source)) => {
                self.sender.keep_alive(time_source, &self.membership, &mut self.shared);
            }
            None => {}
        }
    }
}

impl Machine for Tsch {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        if self.is_synchronised() {
            // A slot that has begun is over for everything decided from now on.
            let asn = self.asn(now);
            let begun = self.slot_start(asn) < now;
            self.shared.next_slot = self.shared.next_slot.max(asn + u64::from(begun));
        }
        let (membership, shared) = (&mut self.membership, &mut self.shared);
        match input {
            Input::Start(start) => membership.start(now, start, shared)?,
            Input::Send { destination, content, priority, handle } => {
                self.sender.send(destination, content, priority, handle, membership, shared);
            }
            Input::SetTimeSource(peer) => membership.set_time_source(peer),
            Input::SetBeacons(join_metric) => self.beacons.set(join_metric, shared),
            Input::ScheduleChanged => {}
            Input::Flush(peer) => self.sender.flush(peer, shared),
            Input::Withdraw(handle) => self.sender.withdraw(handle, shared),
            Input::Leave => {
                if membership.time_source().is_some() {
                    self.desynchronise(now);
                }
            }
            Input::Deadline => self.deadline(now),
        }
        self.look_ahead();
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.shared.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.membership.next_deadline(&self.shared.config)
    }
}
