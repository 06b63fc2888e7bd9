//! The end of a run: what is left in the nodes becomes the outcome.

use lowmesh_stack::event::Class;
use lowmesh_units::{Instant, NodeId};

use crate::error::Error;
use crate::record::Outcome;
use crate::world::{ROOT, World};

impl World {
    /// Closes the books at `end`.
    pub(crate) fn finish(mut self, end: Instant) -> Result<Outcome, Error> {
        let held = self.nodes.iter().flat_map(lowmesh_stack::Node::held);
        self.ledger.check(held).map_err(Error::Books)?;
        for index in 0..self.nodes.len() {
            self.summarise(end, NodeId(index as u16));
        }
        let mut outcome = self.outcome;
        outcome.simulated = end.since(Instant::ZERO);
        outcome.up = self.ledger.packets(Class::Request);
        outcome.down = self.ledger.packets(Class::Response);
        outcome.control = self.ledger.packets(Class::Control);
        outcome.drops.clone_from(self.ledger.drops());
        self.trace.finish().map_err(Error::Trace)?;
        outcome.trace_hash = self.trace.hash();
        if let Some(error) = self.capture_error {
            return Err(Error::Capture(error));
        }
        if let Some(capture) = self.capture {
            capture.finish().map_err(Error::Capture)?;
        }
        Ok(outcome)
    }

    fn summarise(&mut self, end: Instant, id: NodeId) {
        let index = id.index();
        let hops = self.hops(id);
        let node = &self.nodes[index];
        let radio = node.radio_time(end);
        let summary = &mut self.outcome.nodes[index];
        summary.hops = hops;
        if let Some(joined) = summary.joined {
            let before = self.joined_radio[index].on();
            let span = end.since(joined).as_secs_f64();
            if span > 0.0 {
                summary.duty_cycle = (radio.on() - before).as_secs_f64() / span;
            }
        }
        summary.charge_mc = self.config.currents.charge_mc(radio, end.as_secs_f64());
        let counters = node.counters();
        summary.frames_sent = counters.frames_sent;
        summary.frames_acked = counters.frames_acked;
        summary.negotiated_cells = node.negotiated_cells();
    }

    /// Hops from `node` to the root over preferred parents; none while there is a loop or a gap.
    fn hops(&self, node: NodeId) -> Option<u32> {
        let (mut at, mut hops) = (node, 0);
        while at != ROOT {
            let parent = self.nodes[at.index()].parent()?;
            at = self.ids().find(|id| id.eui64() == parent)?;
            hops += 1;
            if hops > self.nodes.len() as u32 {
                return None;
            }
        }
        Some(hops)
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u16).map(NodeId)
    }
}
