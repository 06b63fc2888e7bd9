//! How the mesh recovers from what happens to it.
//!
//! A node *needs* routes after an event if it is on, and a path of usable links leads over nodes that are on to the border
//! router of its mesh. It *has* them while its preferred parents lead to the border router, and the routes of the border
//! router and of the nodes between lead to it. The mesh has recovered when all nodes that needed routes have them at the
//! same time.

use lowmesh_units::{Instant, NodeId};

use crate::event::Event;
use crate::params::RECOVERY_LOOK;
use crate::record::EventRecord;

/// The events of a run, and those whose recovery is not over.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    records: Vec<EventRecord>,
    /// Indices of records with the nodes that needed a route.
    open: Vec<(usize, Vec<NodeId>)>,
    /// The parent or membership of a node has changed since the last check.
    has_changed: bool,
    /// When that was.
    looked: Instant,
}

impl Recovery {
    /// The parent or membership of a node has changed.
    pub(crate) const fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// An event has happened; of the nodes that need a route, so many have none.
    pub(crate) fn begin(&mut self, now: Instant, event: Event, needing: Vec<NodeId>, cut_off: u32) {
        let recovered = (cut_off == 0).then_some(now);
        if recovered.is_none() {
            self.open.push((self.records.len(), needing));
        }
        self.records.push(EventRecord { at: now, event, cut_off, recovered });
    }

    /// Whether it is time to check which nodes have routes.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        // A downward route changes without a change of parent.
        let is_time = self.has_changed || now >= self.looked + RECOVERY_LOOK;
        let is_due = !self.open.is_empty() && is_time;
        if is_due {
            (self.has_changed, self.looked) = (false, now);
        }
        is_due
    }

    /// The recovery from an event is over when `has` is true of all nodes that needed a route.
    pub(crate) fn look(&mut self, now: Instant, has: impl Fn(&NodeId) -> bool) {
        let Self { records, open, .. } = self;
        open.retain(|(place, needing)| {
            let is_over = needing.iter().all(&has);
            if is_over {
                records[*place].recovered = Some(now);
            }
            !is_over
        });
    }

    /// The records at the end of the run.
    pub(crate) fn finish(self) -> Vec<EventRecord> {
        self.records
    }
}
