//! What the parts of a TSCH MAC have in common, lent to each for the length of a call.

use lowmesh_machine::{DropReason, Dropped, Layer, Outbox};
use lowmesh_units::{Asn, Dbm, Duration, Eui64, Instant, Rng};
use lowmesh_wire::ie::TschBeacon;

use super::burst::Burst;
use super::cell::{CellId, CellKind, CellOptions, CellSpec, Placement};
use super::event::Output;
use super::hopping::HoppingSequence;
use super::schedule::Schedule;
use crate::account::RadioTime;
use crate::config::Config;
use crate::link::LinkTable;
use crate::params::{GONE_SILENCE, SILENT_BEACONS_BESIDE_GONE};
use crate::queue::QueuedFrame;

/// What beacons name by numbers: the timing of slots and the order of channels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timing {
    pub slot: Duration,
    guard: Duration,
    hopping: HoppingSequence,
}

/// The numbers of the standard's own timeslot template (s8.4.2.2.3) and hopping sequence (s6.2.10).
const STANDARD: u8 = 0;
/// The numbers of a node's own, where they are others: ours. Nodes of one network are given the same.
const OWN: u8 = 1;

impl Timing {
    fn of(config: &Config) -> Self {
        Self { slot: config.slot, guard: config.guard, hopping: config.hopping.clone() }
    }
    /// That of the standard.
    fn standard() -> Self {
        Self::of(&Config::default())
    }
    /// The numbers of timeslot and hopping sequence under which beacons name it.
    pub fn ids(&self) -> (u8, u8) {
        let standard = Self::standard();
        let id = |is_standard: bool| if is_standard { STANDARD } else { OWN };
        let is_slot = (self.slot, self.guard) == (standard.slot, standard.guard);
        (id(is_slot), id(self.hopping == standard.hopping))
    }
}

/// Settings, the one stream of random numbers, the time in slots, cells, neighbours, and what comes out.
#[derive(Debug)]
pub(super) struct Shared {
    pub config: Config,
    /// Timeslots and channels of a network that this node starts, or of whose beacons it knows the numbers.
    own_timing: Timing,
    pub me: Eui64,
    pub rng: Rng,
    /// When slot 0 began.
    pub origin: Instant,
    /// First slot that is not over.
    pub next_slot: Asn,
    pub schedule: Schedule,
    /// The slot that a burst claims, at its sender or at its receiver.
    pub burst: Option<Burst>,
    pub links: LinkTable,
    /// The least distance to the coordinator that a beacon of the node has told since it is in the network.
    pub least_metric: Option<u8>,
    /// Mean time between two beacons or broadcasts of a node here, as far as this one knows.
    pub broadcast_interval: Duration,
    pub time: RadioTime,
    pub outbox: Outbox<Output>,
}

impl Shared {
    pub fn new(config: Config, me: Eui64, rng: Rng) -> Self {
        Self {
            own_timing: Timing::of(&config),
            broadcast_interval: config.eb_period,
            config,
            me,
            rng,
            origin: Instant::ZERO,
            next_slot: Asn(0),
            schedule: Schedule::new(),
            burst: None,
            links: LinkTable::default(),
            least_metric: None,
            time: RadioTime::default(),
            outbox: Outbox::new(),
        }
    }

    /// How the node's slots are timed now.
    pub fn timing(&self) -> Timing {
        Timing::of(&self.config)
    }
    /// The timing that a beacon names; `None` if this node does not know it.
    pub fn timing_of(&self, beacon: &TschBeacon) -> Option<Timing> {
        let (standard, own) = (Timing::standard(), &self.own_timing);
        let ids = own.ids();
        let (slot, guard) = match beacon.timeslot_id {
            STANDARD => (standard.slot, standard.guard),
            id if id == ids.0 => (own.slot, own.guard),
            _ => return None,
        };
        let hopping = match beacon.hopping_id {
            STANDARD => standard.hopping,
            id if id == ids.1 => own.hopping.clone(),
            _ => return None,
        };
        Some(Timing { slot, guard, hopping })
    }
    fn set_timing(&mut self, timing: Timing) {
        let Timing { slot, guard, hopping } = timing;
        (self.config.slot, self.config.guard, self.config.hopping) = (slot, guard, hopping);
    }
    /// The node, and the networks that name its hopping sequence, use another one.
    pub fn set_hopping(&mut self, hopping: HoppingSequence) {
        self.own_timing.hopping = hopping.clone();
        self.config.hopping = hopping;
    }
    /// The node is in no network, and has its own timing.
    pub fn reset_timing(&mut self) {
        self.set_timing(self.own_timing.clone());
    }
    /// Installs what the beacon says that the node joins from (s6.3.6.3; RFC 8180 s4.5.2): timing, slotframes and cells.
    pub fn install(&mut self, timing: Timing, beacon: &TschBeacon) {
        self.set_timing(timing);
        self.schedule.begin(beacon.asn);
        for slotframe in &beacon.slotframes {
            // A slotframe without slots, or a second one with the same handle, is a mistake of the beacon's sender.
            let Ok(()) = self.schedule.add_slotframe(slotframe.handle, slotframe.length) else {
                continue;
            };
            for link in &slotframe.links {
                let (slot, channel_offset) = (link.slot, link.channel_offset);
                let spec = CellSpec {
                    slotframe: slotframe.handle,
                    placement: Placement::Fixed { slot, channel_offset },
                    options: CellOptions(link.options & CellOptions::ALL.0),
                    kind: CellKind::Minimal,
                    peer: None,
                };
                // A cell beyond the end of its slotframe never occurs.
                let _added = self.schedule.add(beacon.asn, spec);
            }
        }
    }

    /// The slot that holds `now`.
    pub fn asn(&self, now: Instant) -> Asn {
        Asn(now.since(self.origin).as_nanos() / self.config.slot.as_nanos())
    }
    /// When slot `asn` starts.
    pub fn slot_start(&self, asn: Asn) -> Instant {
        self.origin + self.config.slot * asn.0
    }
    /// The cell in which the schedule has the node listen in slot `asn`, with its channel offset.
    pub fn listening_cell(&self, asn: Asn) -> Option<(CellId, u16)> {
        self.schedule.find_at(asn, CellOptions::RX, |cell, offset| Some((cell.id, offset)))
    }
    /// A frame ends without arriving.
    pub fn drop_frame(&mut self, frame: &QueuedFrame, reason: DropReason) {
        let dropped = Dropped { handle: frame.handle, layer: Layer::Mac, reason };
        self.outbox.push(Output::Dropped { dropped, destination: frame.destination });
    }
    /// Something was heard from `peer`.
    pub fn note_heard(&mut self, now: Instant, peer: Eui64, rssi: Dbm) {
        if self.links.note_heard(now, peer, rssi) {
            self.outbox.push(Output::NeighbourBack(peer));
        }
    }
    /// A copy of a frame to `peer` was not acknowledged.
    pub fn note_unanswered(&mut self, peer: Eui64) {
        let now = self.slot_start(self.next_slot);
        if self.links.note_unanswered(now, peer) {
            let span = self.broadcast_interval * SILENT_BEACONS_BESIDE_GONE;
            self.report_silent(now, span.max(GONE_SILENCE));
            self.outbox.push(Output::NeighbourGone(peer));
        }
    }
    /// Reports neighbours from which nothing has been heard for `span`.
    pub fn report_silent(&mut self, now: Instant, span: Duration) {
        let silent = self.links.take_silent(now, span).map(Output::NeighbourSilent);
        self.outbox.extend(silent);
    }
    /// A frame to `peer` has ended after so many copies.
    pub fn note_link(&mut self, peer: Eui64, transmissions: u8, acked: bool) {
        let now = self.slot_start(self.next_slot);
        let etx = self.links.note_sent(now, peer, transmissions, acked);
        self.outbox.extend(etx.map(|etx| Output::LinkEtx { peer, etx }));
    }
}
