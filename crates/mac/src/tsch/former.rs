//! The network that a coordinator started before it lost its memory, and how it finds it again.
//!
//! A network goes on without its coordinator, whose clock it follows. A coordinator that starts a new network beside it
//! would have no nodes until they leave the former one. IEEE 802.15.4-2015 gives no procedure: this one is ours.

use lowmesh_units::{Asn, Channel, Duration, Instant};

use super::cell::{CellKind, CellOptions, Placement};
use super::hopping::HoppingSequence;
use super::schedule::Schedule;
use crate::params::RESUME_CLOCK_ERROR;

/// How a TSCH MAC starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It looks for a network.
    Scan,
    /// A coordinator begins a network, whose slot 0 begins now.
    New,
    /// A coordinator looks for its former network and continues it; if it hears nothing of it for
    /// [`Config::resume`](crate::config::Config::resume), it begins a new one.
    Resume(FormerNetwork),
}

/// What a coordinator keeps of its network where a restart does not lose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerNetwork {
    /// When its slot 0 began, by the clock of the coordinator, which runs on.
    pub origin: Instant,
    /// Where nodes send their beacons; `None` if each has other cells for them.
    minimal: Option<MinimalCell>,
}

/// A cell in which all nodes send beacons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MinimalCell {
    /// Length of its slotframe.
    length: u16,
    slot: u16,
    channel_offset: u16,
}

impl FormerNetwork {
    /// The network that began at `origin` and has this schedule at its coordinator.
    pub(super) fn new(origin: Instant, schedule: &Schedule) -> Self {
        let is_minimal = CellOptions::RX.with(CellOptions::SHARED);
        let mut cells = schedule
            .cells()
            .filter(|cell| cell.kind == CellKind::Minimal && cell.options.has(is_minimal));
        let cell = cells.next().filter(|_| !schedule.has_beacon_cells());
        let minimal = cell.and_then(|cell| match cell.placement {
            Placement::Fixed { slot, channel_offset } => {
                let length = schedule.slotframe(cell.slotframe)?.length;
                Some(MinimalCell { length, slot, channel_offset })
            }
            Placement::Hashed { .. } => None,
        });
        Self { origin, minimal }
    }

    /// The channel of that minimal cell which is nearest to `now`: the clock may be wrong by up to half a slotframe.
    pub(super) fn channel(
        &self,
        now: Instant,
        slot: Duration,
        hopping: &HoppingSequence,
    ) -> Option<Channel> {
        let MinimalCell { length, slot: offset, channel_offset } = self.minimal?;
        let (length, asn) =
            (u64::from(length), now.since(self.origin).as_nanos() / slot.as_nanos());
        let repetition = (asn + length / 2).saturating_sub(offset.into()) / length;
        Some(hopping.channel(Asn(repetition * length + u64::from(offset)), channel_offset))
    }

    /// Whether a network whose slot 0 began at `origin` is this one.
    pub(super) fn is(&self, origin: Instant) -> bool {
        let error = self.origin.since(origin).max(origin.since(self.origin));
        error <= RESUME_CLOCK_ERROR
    }
}
