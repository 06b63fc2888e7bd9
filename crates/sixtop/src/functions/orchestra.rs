//! Orchestra: cells from the addresses of RPL neighbours, without negotiation.
//!
//! Duquennoy, Al Nahas, Landsiedel, Watteyne, "Orchestra", SenSys 2015; slotframes and numbers as in
//! Contiki-NG. Three slotframes in order of priority: beacons, unicast, a common shared cell. What tells
//! the rules apart is whose address says where a unicast frame goes, and who is known to listen.

use alloc::collections::BTreeSet;

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
use lowmesh_units::Eui64;

use super::alice::{follow_beacons, install_beacons};
use super::autonomous::address_slot;
use super::{Context, Event, SchedulingFunction};
use crate::params::OrchestraParams;

const BEACONS: u8 = 0;
const UNICAST: u8 = 1;
const COMMON: u8 = 2;

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
            parent: None,
            known: false,
            children: BTreeSet::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn install(&mut self, context: &mut Context<'_>) {
        self.synchronised = true;
        context.schedule.clear();
        install_beacons(context, BEACONS, self.params.beacon_length);
        context.slotframe(UNICAST, self.params.unicast_length);
        super::minimal::install(context, COMMON, self.params.common_length);
        if self.rule != Rule::SenderStoring {
            self.add(context, context.me, CellOptions::RX, None);
        }
        let peers: BTreeSet<Eui64> =
            self.children.iter().chain(self.parent.iter()).copied().collect();
        for peer in peers {
            self.update(context, peer);
        }
    }

    /// A unicast cell where the address of `owner` says.
    fn add(
        &self,
        context: &mut Context<'_>,
        owner: Eui64,
        options: CellOptions,
        peer: Option<Eui64>,
    ) {
        context.cell(CellSpec {
            slotframe: UNICAST,
            placement: Placement::Fixed {
                slot: address_slot(owner, self.params.unicast_length),
                channel_offset: self.params.unicast_channel_offset,
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
        let wanted = match self.rule {
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
                self.add(context, peer, shared, Some(peer));
            }
            Rule::SenderStoring => {
                // Neighbours of neighbours may hash to the same slot, so backoff applies here too.
                if sends {
                    self.add(context, context.me, shared, Some(peer));
                }
                self.add(context, peer, CellOptions::RX, Some(peer));
            }
        }
    }
}

impl SchedulingFunction for Orchestra {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::ReceiverStoring => "orchestra",
            Rule::SenderStoring => "orchestra/sender-based",
            Rule::ReceiverNonStoring => "orchestra/non-storing",
        }
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        match *event {
            Event::Started { root: true } | Event::Synchronised => self.install(context),
            Event::Desynchronised => {
                *self = Self::new(self.rule, self.params);
                context.schedule.clear();
            }
            Event::TimeSource(source) => follow_beacons(context, BEACONS, source),
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
