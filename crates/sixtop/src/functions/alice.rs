//! ALICE: a cell of its own for each link and direction, moved by a hash in every slotframe.
//!
//! Kim, Kim, Paek, Bahk, "ALICE: Autonomous Link-based Cell Scheduling for TSCH", IPSN 2019. Three
//! slotframes: beacons (each node has a cell of its own, its followers listen there), a shared cell for
//! broadcast and for neighbours without a link, and the links. Both ends derive a link's cell from
//! (sender, receiver, direction) and the number of the slotframe, so nothing is negotiated.
//!
//! Two links may come to the same cell, and a sender cannot know. So senders back off after a loss: the cells are
//! SHARED, as in the code of ALICE's authors and in the rules of Orchestra that it stems from.

use alloc::boxed::Box;

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::Eui64;

use super::autonomous::address_slot;
use super::{Context, Event, SECTION, SchedulingFunction, slots};
use crate::params::{ALICE_BEACON_CHANNEL_OFFSET, AliceParams, MINIMAL_CHANNEL_OFFSET};

/// The row of [`Alice`].
pub static ROW: Row<dyn SchedulingFunction> = Row {
    name: "alice",
    summary: "Autonomous link-based cells (Kim et al. 2019)",
    section: SECTION,
    parameters: &const {
        let set = AliceParams::PUBLISHED;
        [
            slots("beacon_length", set.beacon_length, 1, "Length of the beacons' slotframe")
                .source("Contiki-NG Orchestra"),
            slots(
                "broadcast_length",
                set.broadcast_length,
                1,
                "Length of the slotframe for broadcast",
            )
            .source("Contiki-NG Orchestra"),
            slots("unicast_length", set.unicast_length, 1, "Length of the slotframe for unicast")
                .source("Righetti et al. 2023"),
            Parameter::flag(
                "unicast_shared",
                set.unicast_shared,
                "Whether senders back off in unicast cells, which two links may share",
            )
            .source("the authors' code"),
        ]
    },
    make: |choice, _| Box::new(Alice::new(params(choice))),
};

fn params(choice: &Choice<dyn SchedulingFunction>) -> AliceParams {
    AliceParams {
        beacon_length: choice.whole("beacon_length"),
        broadcast_length: choice.whole("broadcast_length"),
        unicast_length: choice.whole("unicast_length"),
        unicast_shared: choice.flag("unicast_shared"),
        ..AliceParams::PUBLISHED
    }
}

const BEACONS: u8 = 0;
const BROADCAST: u8 = 1;
const UNICAST: u8 = 2;

/// Which way along the tree a link leads; part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// One cell a link and direction.
#[derive(Clone, Debug)]
pub struct Alice {
    params: AliceParams,
    synchronised: bool,
    parent: Option<Eui64>,
    /// The parent listens in this node's cell: it has heard of its child.
    known: bool,
    children: alloc::collections::BTreeSet<Eui64>,
}

impl Alice {
    /// The function with these parameters.
    pub const fn new(params: AliceParams) -> Self {
        let children = alloc::collections::BTreeSet::new();
        Self { params, synchronised: false, parent: None, known: false, children }
    }

    fn install(&mut self, context: &mut Context<'_>) {
        self.synchronised = true;
        context.restart();
        install_beacons(context, BEACONS, self.params.beacon_length, ALICE_BEACON_CHANNEL_OFFSET);
        let length = self.params.broadcast_length;
        super::minimal::install(context, BROADCAST, length, MINIMAL_CHANNEL_OFFSET);
        context.slotframe(UNICAST, self.params.unicast_length);
        if let Some(parent) = self.parent {
            self.add_up(context, parent);
        }
        for child in self.children.clone() {
            self.add_down(context, child);
        }
    }

    /// Cells with the parent. Until it knows its child it does not listen to it: what goes up before
    /// (the DAO first of all) takes the shared cell.
    fn add_up(&self, context: &mut Context<'_>, parent: Eui64) {
        self.add(context, CellOptions::RX, key(parent, context.me, Direction::Down), parent);
        if self.known {
            self.add(context, self.send(), key(context.me, parent, Direction::Up), parent);
        }
    }

    /// Cells with a child, which listens since it chose this node.
    fn add_down(&self, context: &mut Context<'_>, child: Eui64) {
        self.add(context, self.send(), key(context.me, child, Direction::Down), child);
        self.add(context, CellOptions::RX, key(child, context.me, Direction::Up), child);
    }

    /// Options of a cell to send in.
    fn send(&self) -> CellOptions {
        if self.params.unicast_shared {
            CellOptions::TX.with(CellOptions::SHARED)
        } else {
            CellOptions::TX
        }
    }

    fn add(&self, context: &mut Context<'_>, options: CellOptions, key: u64, peer: Eui64) {
        context.cell(CellSpec {
            slotframe: UNICAST,
            placement: Placement::Hashed { key, channel_offsets: self.params.channel_offsets },
            options,
            kind: CellKind::Autonomous,
            peer: Some(peer),
        });
    }

    /// `parent` has its cells for this node: it sends in them, or said so.
    fn learn(&mut self, context: &mut Context<'_>, parent: Eui64) {
        if self.parent != Some(parent) || self.known {
            return;
        }
        self.known = true;
        if self.synchronised {
            remove_link(context, parent);
            self.add_up(context, parent);
        }
    }

    fn set_parent(&mut self, context: &mut Context<'_>, new: Option<Eui64>) {
        if self.parent == new {
            return;
        }
        let old = core::mem::replace(&mut self.parent, new);
        self.known = false;
        if !self.synchronised {
            return;
        }
        if let Some(old) = old {
            remove_link(context, old);
            // It may have become a child in the meantime.
            if self.children.contains(&old) {
                self.add_down(context, old);
            }
        }
        if let Some(new) = new {
            remove_link(context, new);
            self.add_up(context, new);
        }
    }
}

fn remove_link(context: &mut Context<'_>, peer: Eui64) {
    context.remove_where(|c| c.slotframe == UNICAST && c.peer == Some(peer));
}

/// The key of a link: any mix that tells sender, receiver and direction apart.
fn key(sender: Eui64, receiver: Eui64, way: Direction) -> u64 {
    let way = if way == Direction::Up { 1 } else { 2 };
    let mixed = sender.as_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (mixed ^ receiver.as_u64()).wrapping_mul(0xff51_afd7_ed55_8ccd).wrapping_add(way)
}

/// The cell for a node's own beacons: sender-based, so neighbours do not collide (Orchestra's EBSF).
pub(crate) fn install_beacons(
    context: &mut Context<'_>,
    handle: u8,
    length: u16,
    channel_offset: u16,
) {
    context.slotframe(handle, length);
    context.cell(CellSpec {
        slotframe: handle,
        placement: Placement::Fixed { slot: address_slot(context.me, length), channel_offset },
        options: CellOptions::TX,
        kind: CellKind::Minimal,
        peer: None,
    });
}

/// The cell in which the time source sends its beacons, in the place of any other.
pub(crate) fn follow_beacons(
    context: &mut Context<'_>,
    handle: u8,
    source: Option<Eui64>,
    channel_offset: u16,
) {
    context.remove_where(|c| c.slotframe == handle && c.options.has(CellOptions::RX));
    let Some((source, frame)) = source.zip(context.schedule.slotframe(handle)) else { return };
    context.cell(CellSpec {
        slotframe: handle,
        placement: Placement::Fixed { slot: address_slot(source, frame.length), channel_offset },
        options: CellOptions::RX.with(CellOptions::TIMEKEEPING),
        kind: CellKind::Minimal,
        peer: Some(source),
    });
}

impl SchedulingFunction for Alice {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn needs_children(&self) -> bool {
        true
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        match *event {
            Event::Started { root: true } | Event::Synchronised => self.install(context),
            Event::Desynchronised => {
                *self = Self::new(self.params);
                context.schedule.clear();
            }
            Event::TimeSource(source) => {
                follow_beacons(context, BEACONS, source, ALICE_BEACON_CHANNEL_OFFSET);
            }
            Event::ParentChanged { new, .. } => self.set_parent(context, new),
            Event::KnownToParent(parent) => self.learn(context, parent),
            Event::Received { from, cell } if context.is_link(cell, UNICAST, from) => {
                self.learn(context, from);
            }
            Event::ChildAdded(child) => {
                let is_new = self.children.insert(child);
                if is_new && self.synchronised && self.parent != Some(child) {
                    self.add_down(context, child);
                }
            }
            Event::ChildRemoved(child) => {
                self.children.remove(&child);
                if self.parent != Some(child) {
                    remove_link(context, child);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    #[test]
    fn both_directions_of_a_link_have_keys_of_their_own() {
        let (a, b) = (NodeId(1).eui64(), NodeId(2).eui64());
        let keys = [
            key(a, b, Direction::Up),
            key(b, a, Direction::Up),
            key(a, b, Direction::Down),
            key(b, a, Direction::Down),
        ];
        for (i, one) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|other| other != one));
        }
    }
}
