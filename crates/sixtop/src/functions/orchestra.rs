//! Orchestra: cells from the addresses of RPL neighbours, without negotiation.
//!
//! Duquennoy, Al Nahas, Landsiedel, Watteyne, "Orchestra", SenSys 2015; slotframes and numbers as in
//! Contiki-NG. Three slotframes in order of priority: beacons, unicast, a common shared cell. What tells
//! the rules apart is whose address says where a unicast frame goes, and who is known to listen.
//!
//! A unicast cell has the slot of its owner, who is the receiver or, by the sender-based rule, the sender. The channel offset
//! is always the receiver's. A fourth slotframe, off by default, is for frames to the root: each sender has the slot of
//! its own address there, and the root listens in every slot in which it has nothing better to do.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::Eui64;

use super::alice::{follow_beacons, install_beacons};
use super::autonomous::{address_hash, address_slot};
use super::{Children, Context, Event, SECTION, SchedulingFunction, slots};
use crate::params::OrchestraParams;

const CONTIKI: &str = "Contiki-NG 5.0, orchestra-conf.h";

/// The names of `variant`.
const VARIANTS: [&str; 2] = ["receiver", "sender"];

/// The row of [`Orchestra`].
pub static ROW: Row<dyn SchedulingFunction> = Row {
    name: "orchestra",
    summary: "Autonomous node-based cells (Duquennoy et al. 2015)",
    section: SECTION,
    parameters: &const {
        let set = OrchestraParams::CONTIKI;
        let (first, last) = set.unicast_channel_offsets;
        [
            slots("beacon_length", set.beacon_length, 1, "Length of the beacons' slotframe")
                .source(CONTIKI),
            slots("common_length", set.common_length, 1, "Length of the slotframe for broadcast")
                .source(CONTIKI),
            slots("unicast_length", set.unicast_length, 1, "Length of the slotframe for unicast")
                .source(CONTIKI),
            offset("beacon_channel_offset", set.beacon_channel_offset, "Channel offset of beacon cells"),
            offset(
                "common_channel_offset",
                set.common_channel_offset,
                "Channel offset of the cell for broadcast",
            ),
            offset(
                "unicast_channel_offset_min",
                first,
                "First channel offset of unicast cells; the receiver's address chooses one",
            )
            .not_above("unicast_channel_offset_max"),
            offset("unicast_channel_offset_max", last, "Last channel offset of unicast cells"),
            slots(
                "root_length",
                set.root_length,
                0,
                "Length of a slotframe for frames to the root only; the root then always listens; 0 for none",
            )
            .source("Contiki-NG 5.0: special_for_root, off by default"),
            Parameter::name(
                "variant",
                &VARIANTS,
                "Address that determines a unicast cell: the receiver's, with one Rx cell and contention among senders, or the sender's, with more Rx cells and no contention",
            )
            .source(CONTIKI),
        ]
    },
    make: |choice, children| Box::new(Orchestra::new(rule(choice, children), params(choice))),
};

/// A channel offset as a parameter.
const fn offset(key: &'static str, default: u16, summary: &'static str) -> Parameter {
    Parameter::whole(key, default as u64, 0, 255, summary).source(CONTIKI)
}

fn rule(choice: &Choice<dyn SchedulingFunction>, children: Children) -> Rule {
    match (choice.text("variant") == VARIANTS[0], children) {
        (true, Children::Known) => Rule::ReceiverStoring,
        (true, Children::Unknown) => Rule::ReceiverNonStoring,
        (false, _) => Rule::SenderStoring,
    }
}

fn params(choice: &Choice<dyn SchedulingFunction>) -> OrchestraParams {
    OrchestraParams {
        beacon_length: choice.whole("beacon_length"),
        unicast_length: choice.whole("unicast_length"),
        common_length: choice.whole("common_length"),
        beacon_channel_offset: choice.whole("beacon_channel_offset"),
        common_channel_offset: choice.whole("common_channel_offset"),
        unicast_channel_offsets: (
            choice.whole("unicast_channel_offset_min"),
            choice.whole("unicast_channel_offset_max"),
        ),
        root_length: choice.whole("root_length"),
    }
}

const BEACONS: u8 = 0;
const UNICAST: u8 = 1;
/// For frames to the root, where that is wanted.
const TO_ROOT: u8 = 2;
const COMMON: u8 = 3;
/// Where the root listens when no other slotframe needs it.
const AT_ROOT: u8 = 4;

/// Where unicast frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// In the receiver's cell, to the parent and to each child (RPL storing mode tells who they are).
    ReceiverStoring,
    /// In the sender's cell; the parent and each child listen to each other there.
    SenderStoring,
    /// In the receiver's cell, to any node with frames waiting for it (in non-storing mode children are unknown).
    ReceiverNonStoring,
}

/// One unicast cell a node.
#[derive(Clone, Debug)]
pub struct Orchestra {
    rule: Rule,
    params: OrchestraParams,
    synchronised: bool,
    is_root: bool,
    /// The root, once known as a neighbour; only the rule for frames to it asks.
    root: Option<Eui64>,
    parent: Option<Eui64>,
    /// The parent has heard of its child; only the sender-based rule asks.
    known: bool,
    children: BTreeSet<Eui64>,
    /// Neighbours with frames queued; only the non-storing rule asks.
    waiting: BTreeSet<Eui64>,
}

impl Orchestra {
    /// The function with this rule and these parameters.
    pub const fn new(rule: Rule, params: OrchestraParams) -> Self {
        Self {
            rule,
            params,
            synchronised: false,
            is_root: false,
            root: None,
            parent: None,
            known: false,
            children: BTreeSet::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn install(&mut self, context: &mut Context<'_>) {
        self.synchronised = true;
        context.restart();
        let params = self.params;
        install_beacons(context, BEACONS, params.beacon_length, params.beacon_channel_offset);
        context.slotframe(UNICAST, params.unicast_length);
        let (length, channel_offset) = (params.common_length, params.common_channel_offset);
        super::minimal::install(context, COMMON, length, channel_offset);
        if self.rule != Rule::SenderStoring {
            self.add(context, (context.me, context.me), CellOptions::RX, None);
        }
        if params.root_length > 0 {
            context.slotframe(TO_ROOT, params.root_length);
        }
        if params.root_length > 0 && self.is_root {
            context.slotframe(AT_ROOT, 1);
            let channel_offset = self.channel_offset(context.me);
            context.cell(CellSpec {
                slotframe: AT_ROOT,
                placement: Placement::Fixed { slot: 0, channel_offset },
                options: CellOptions::RX,
                kind: CellKind::Autonomous,
                peer: None,
            });
        }
        let peers: BTreeSet<Eui64> =
            self.children.iter().chain(self.parent.iter()).copied().collect();
        for peer in peers {
            self.update(context, peer);
        }
    }

    /// The channel offset of frames to `receiver`.
    fn channel_offset(&self, receiver: Eui64) -> u16 {
        let (first, last) = self.params.unicast_channel_offsets;
        first + address_hash(receiver) % (last.saturating_sub(first) + 1)
    }

    /// A unicast cell in the slot of `owner`, with the channel offset of `receiver`.
    fn add(
        &self,
        context: &mut Context<'_>,
        (owner, receiver): (Eui64, Eui64),
        options: CellOptions,
        peer: Option<Eui64>,
    ) {
        context.cell(CellSpec {
            slotframe: UNICAST,
            placement: Placement::Fixed {
                slot: address_slot(owner, self.params.unicast_length),
                channel_offset: self.channel_offset(receiver),
            },
            options,
            kind: CellKind::Autonomous,
            peer,
        });
    }

    /// `parent` listens in this node's cell: it sends to it in its own, or said so.
    fn learn(&mut self, context: &mut Context<'_>, parent: Eui64) {
        if self.parent != Some(parent) || self.known {
            return;
        }
        self.known = true;
        context.remove_where(|c| c.slotframe == UNICAST && c.peer == Some(parent));
        self.update(context, parent);
    }

    /// Makes the cells with `peer` what they should be.
    fn update(&self, context: &mut Context<'_>, peer: Eui64) {
        if !self.synchronised {
            return;
        }
        let related = self.parent == Some(peer) || self.children.contains(&peer);
        // Before the parent listens in this node's cell, the common one carries what goes up.
        let sends = self.known || self.parent != Some(peer);
        let has_own_rule = self.params.root_length > 0 && self.root == Some(peer);
        self.update_root_cell(context, peer, has_own_rule && related);
        let wanted = match self.rule {
            Rule::ReceiverNonStoring | Rule::ReceiverStoring if has_own_rule => false,
            Rule::ReceiverStoring | Rule::SenderStoring => related,
            Rule::ReceiverNonStoring => self.parent == Some(peer) || self.waiting.contains(&peer),
        };
        let present = context.schedule.cells_in(UNICAST).any(|c| c.peer == Some(peer));
        if wanted == present {
            return;
        }
        if !wanted {
            context.remove_where(|c| c.slotframe == UNICAST && c.peer == Some(peer));
            return;
        }
        let shared = CellOptions::TX.with(CellOptions::SHARED);
        match self.rule {
            Rule::ReceiverStoring | Rule::ReceiverNonStoring => {
                self.add(context, (peer, peer), shared, Some(peer));
            }
            Rule::SenderStoring => {
                // Neighbours of neighbours may hash to the same slot, so backoff applies here too.
                if sends && !has_own_rule {
                    self.add(context, (context.me, peer), shared, Some(peer));
                }
                self.add(context, (peer, context.me), CellOptions::RX, Some(peer));
            }
        }
    }

    /// The cell for frames to the root, which takes the place of a unicast cell to it.
    fn update_root_cell(&self, context: &mut Context<'_>, root: Eui64, wanted: bool) {
        let present = context.schedule.cells_in(TO_ROOT).any(|c| c.peer == Some(root));
        if wanted && !present {
            context.cell(CellSpec {
                slotframe: TO_ROOT,
                placement: Placement::Fixed {
                    slot: address_slot(context.me, self.params.root_length),
                    channel_offset: self.channel_offset(root),
                },
                options: CellOptions::TX.with(CellOptions::SHARED),
                kind: CellKind::Autonomous,
                peer: Some(root),
            });
        } else if present && !wanted {
            context.remove_where(|c| c.slotframe == TO_ROOT && c.peer == Some(root));
        }
    }
}

impl SchedulingFunction for Orchestra {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn needs_children(&self) -> bool {
        self.rule == Rule::SenderStoring
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        match *event {
            Event::Started { root: true } => {
                self.is_root = true;
                self.install(context);
            }
            Event::Synchronised => self.install(context),
            Event::Desynchronised => {
                *self = Self::new(self.rule, self.params);
                context.schedule.clear();
            }
            Event::TimeSource(source) => {
                follow_beacons(context, BEACONS, source, self.params.beacon_channel_offset);
            }
            Event::RootKnown(root) => self.root = Some(root),
            Event::ParentChanged { new, .. } => {
                let old = core::mem::replace(&mut self.parent, new);
                self.known = false;
                for peer in old.into_iter().chain(new) {
                    self.update(context, peer);
                }
            }
            Event::KnownToParent(parent) => self.learn(context, parent),
            Event::Received { from, cell } if context.is_link(cell, UNICAST, from) => {
                self.learn(context, from);
            }
            Event::ChildAdded(child) => {
                self.children.insert(child);
                self.update(context, child);
            }
            Event::ChildRemoved(child) => {
                self.children.remove(&child);
                self.update(context, child);
            }
            Event::QueueBusy(peer) if self.rule == Rule::ReceiverNonStoring => {
                self.waiting.insert(peer);
                self.update(context, peer);
            }
            Event::QueueEmpty(peer) if self.rule == Rule::ReceiverNonStoring => {
                self.waiting.remove(&peer);
                self.update(context, peer);
            }
            _ => {}
        }
    }
}
