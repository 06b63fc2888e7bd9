//! The beacons of a node: when the next one is due, what it says, and the share of the minimal cell that beacons and
//! broadcasts take.

use alloc::vec::Vec;

use lowmesh_units::{Asn, Duration, Instant};
use lowmesh_wire::ie::{LinkSpec, SlotframeSpec, TschBeacon};

use super::cell::{CellKind, CellOptions, Placement};
use super::choice::{Choice, Traffic};
use super::shared::Shared;
use super::spacing::Spacing;
use crate::params::{BEACON_GAP_MAX, EB_JITTER, NEIGHBOUR_AGE};

/// The beacons of a node that is in a network.
#[derive(Debug, Default)]
pub(super) struct Beacons {
    /// From when on the next one may go out, if the node sends beacons.
    pub due: Option<Asn>,
    /// When the minimal cell is free for beacons and broadcasts.
    pub spacing: Spacing,
    join_metric: Option<u8>,
}

impl Beacons {
    /// Beacons carry this join metric from now on, or there are none.
    pub fn set(&mut self, join_metric: Option<u8>, shared: &mut Shared) {
        self.join_metric = join_metric;
        shared.least_metric = [shared.least_metric, join_metric].into_iter().flatten().min();
        match (join_metric, self.due) {
            (None, _) => self.due = None,
            (Some(_), None) => self.plan(shared),
            (Some(_), Some(_)) => {}
        }
    }

    /// The next beacon comes after three quarters of the period to the whole of it. With a period near the
    /// distance of shared cells that would leave neighbours no choice of cells, and others no cell at all:
    /// then one to [`BEACON_GAP_MAX`] of them go by, drawn for each beacon.
    pub fn plan(&mut self, shared: &mut Shared) {
        let (slot, jitter) = (shared.config.slot, shared.config.eb_period.mul_f64(EB_JITTER));
        let period = shared.config.eb_period - jitter.mul_f64(shared.rng.unit());
        let slots = |span: Duration| span.as_nanos() / slot.as_nanos();
        let due = shared.next_slot + slots(period);
        let (rng, schedule, from) = (&mut shared.rng, &shared.schedule, shared.next_slot);
        let is_shared = CellOptions::TX.with(CellOptions::SHARED);
        let cells = schedule.cells().filter(|c| c.peer.is_none() && c.options.has(is_shared));
        let occurrences = cells.map(|c| {
            let next = schedule.next_occurrence(c, from);
            (next, schedule.next_occurrence(c, next + 1))
        });
        self.due = Some(match occurrences.min() {
            Some((next, after)) if 2 * slots(jitter) < after.since(next) => {
                let gap = u64::from(rng.below(BEACON_GAP_MAX));
                due.max(next + 1) + gap * after.since(next)
            }
            _ => due,
        });
    }

    /// The beacon for slot `asn`: it tells joining nodes the time and where to be heard.
    pub fn content(&self, asn: Asn, shared: &Shared) -> TschBeacon {
        let (timeslot_id, hopping_id) = shared.timing().ids();
        let schedule = &shared.schedule;
        let slotframes = schedule.slotframes().filter_map(|slotframe| {
            let is_shared =
                |options: CellOptions| options.has(CellOptions::SHARED.with(CellOptions::RX));
            let links: Vec<LinkSpec> = schedule
                .cells_in(slotframe.handle)
                .filter(|c| c.peer.is_none() && is_shared(c.options))
                .filter_map(|c| match c.placement {
                    Placement::Fixed { slot, channel_offset } => {
                        Some(LinkSpec { slot, channel_offset, options: c.options.0 })
                    }
                    Placement::Hashed { .. } => None,
                })
                .collect();
            (!links.is_empty()).then_some(SlotframeSpec {
                handle: slotframe.handle,
                length: slotframe.length,
                links,
            })
        });
        TschBeacon {
            asn,
            join_metric: self.join_metric.unwrap_or(u8::MAX),
            timeslot_id,
            hopping_id,
            slotframes: slotframes.collect(),
        }
    }

    /// A beacon or a broadcast goes out: the next one leaves the minimal cell to others for a while.
    pub fn space_out(&mut self, now: Instant, asn: Asn, choice: Choice, shared: &mut Shared) {
        let Some(cell) = shared.schedule.get(choice.cell) else { return };
        if cell.kind != CellKind::Minimal || shared.config.broadcast_spacing == 0 {
            return;
        }
        let distance = shared.schedule.next_occurrence(cell, asn + 1).since(asn);
        let neighbours = shared.links.iter().filter(|l| now.since(l.heard) < NEIGHBOUR_AGE).count();
        let period = shared.config.slot * distance * u64::from(shared.config.broadcast_spacing);
        shared.broadcast_interval = shared.config.eb_period.max(period * (neighbours as u64 + 1));
        let share = (distance, shared.config.broadcast_spacing, neighbours);
        let beacon = choice.traffic == Traffic::Beacon;
        self.spacing = Spacing::after(asn, beacon, share, &mut shared.rng);
    }
}
