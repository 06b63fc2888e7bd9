//! The end of a run: what is left in the nodes becomes the outcome.

use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions, Placement};
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_stack::Node;
use lowmesh_units::{Eui64, Instant, NodeId};

use crate::error::Error;
use crate::lives::fragments;
use crate::record::{NegotiatedCell, Outcome};
use crate::unsent::Unsents;
use crate::world::World;

impl World {
    /// Closes the books at `end`.
    pub(crate) fn finish(mut self, end: Instant) -> Result<Outcome, Error> {
        let held = self.nodes.iter().flat_map(Node::held).chain(self.backbone.handles());
        self.books.ledger.check(held).map_err(Error::Books)?;
        for index in 0..self.nodes.len() {
            self.summarise(end, NodeId(index as u16));
        }
        self.books.outcome.unsent =
            std::mem::replace(&mut self.unsent, Unsents::new(0)).finish(end);
        self.books.outcome.events = std::mem::take(&mut self.recovery).finish();
        self.books.outcome.lines = self.backbone.records(end);
        self.books.close(end)
    }

    fn summarise(&mut self, end: Instant, id: NodeId) {
        let index = id.index();
        // The radio of a node without power draws nothing.
        let off = self.dark[index].map_or(end, |dark| dark.since);
        let hops = self.hops(id);
        let parent = self.nodes[index].parent().and_then(|parent| self.find(parent));
        let sending_cells = self.sending_cells(id);
        let buffer = self.books.buffers[index];
        let node = &self.nodes[index];
        let lives = &self.books.lives[index];
        let radio = lives.radio_with(node, off);
        let summary = &mut self.books.outcome.nodes[index];
        summary.hops = hops;
        summary.rootless = self.rootless.time(id, end);
        summary.parent = parent;
        summary.sending_cells = sending_cells;
        if let Some(joined) = summary.joined {
            let before = self.books.joined_radio[index].on();
            let span = (off.since(joined) - lives.dark_since_joined).as_secs_f64();
            if span > 0.0 {
                summary.duty_cycle = (radio.on() - before).as_secs_f64() / span;
            }
        }
        let powered = off.since(Instant::ZERO) - lives.dark;
        summary.charge_mc = self.parts[index].energy.charge_mc(radio, powered.as_secs_f64());
        let counters = node.counters();
        summary.frames_sent = lives.frames_sent + counters.frames_sent;
        summary.frames_acked = lives.frames_acked + counters.frames_acked;
        summary.streams = lives.streams_with(node);
        summary.negotiated_cells = node.negotiated_cells();
        summary.buffer_mean_octets = buffer.mean(end);
        summary.buffer_most_octets = buffer.most();
        self.books.outcome.fragments.add(lives.fragments);
        self.books.outcome.fragments.add(fragments(node));
        self.books.outcome.groups.controls += lives.controls + node.multicast().controls_sent;
    }

    /// Hops from `node` to its border router over preferred parents; none while there is a loop or a gap.
    pub(crate) fn hops(&self, node: NodeId) -> Option<u32> {
        let (mut at, mut hops) = (node, 0);
        while !self.is_root(at) {
            let parent = self.nodes[at.index()].parent()?;
            at = self.find(parent)?;
            hops += 1;
            if hops > self.nodes.len() as u32 {
                return None;
            }
        }
        Some(hops)
    }

    /// The negotiated cells in which `node` may send.
    fn sending_cells(&self, node: NodeId) -> Vec<NegotiatedCell> {
        let summary = |cell: &Cell| match cell.placement {
            Placement::Fixed { slot, channel_offset }
                if cell.kind == CellKind::Negotiated && cell.options.has(CellOptions::TX) =>
            {
                let shared = cell.options.has(CellOptions::SHARED);
                let peer = self.find(cell.peer?)?;
                Some(NegotiatedCell { peer, slot, channel_offset, shared })
            }
            _ => None,
        };
        let schedule = self.nodes[node.index()].schedule();
        schedule.into_iter().flat_map(Schedule::cells).filter_map(summary).collect()
    }

    pub(crate) fn find(&self, address: Eui64) -> Option<NodeId> {
        self.names.node(address)
    }
}
