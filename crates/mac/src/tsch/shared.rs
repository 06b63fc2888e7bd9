//! What the parts of a TSCH MAC have in common, lent to each for the length of a call.

use lowmesh_machine::{DropReason, Dropped, Layer, Outbox};
use lowmesh_units::{Asn, Eui64, Instant, Rng};

use super::burst::Burst;
use super::cell::{CellId, CellOptions};
use super::event::Output;
use super::schedule::Schedule;
use crate::account::RadioTime;
use crate::config::Config;
use crate::link::LinkTable;
use crate::queue::QueuedFrame;

/// Settings, the one stream of random numbers, the time in slots, cells, neighbours, and what comes out.
#[derive(Debug)]
pub(super) struct Shared {
    pub config: Config,
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
    pub time: RadioTime,
    pub outbox: Outbox<Output>,
}

impl Shared {
    pub fn new(config: Config, me: Eui64, rng: Rng) -> Self {
        Self {
            config,
            me,
            rng,
            origin: Instant::ZERO,
            next_slot: Asn(0),
            schedule: Schedule::new(),
            burst: None,
            links: LinkTable::default(),
            time: RadioTime::default(),
            outbox: Outbox::new(),
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
    /// A frame to `peer` has ended after so many copies.
    pub fn note_link(&mut self, peer: Eui64, transmissions: u8, acked: bool) {
        let now = self.slot_start(self.next_slot);
        let etx = self.links.note_sent(now, peer, transmissions, acked);
        self.outbox.extend(etx.map(|etx| Output::LinkEtx { peer, etx }));
    }
}
