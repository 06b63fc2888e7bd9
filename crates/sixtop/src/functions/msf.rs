//! MSF (RFC 9033), `msf/backlog` (ours) and B-MSF (Righetti et al. 2023, algorithm 1).
//!
//! Three slotframes: the shared cell of RFC 8180, autonomous cells, negotiated cells. A node keeps at
//! least one cell to send to its preferred parent, and one more or one less as they are used. B-MSF is the
//! same with other numbers, and with cells towards each child, adapted by the child's own counters
//! (line 10 of the algorithm prints `>` for `<`; counters restart when they are evaluated).
//!
//! RFC 9033 s5.1 has the child ask for cells from its parent, by what it receives. A child cannot see what does not come
//! through, and a way down that is full is quiet at its end. So in `msf/backlog` a parent asks for a cell to a child, once,
//! each time that frames have waited for it for some slotframes without a break; when to give it back is the child's
//! business, by the RFC's rule after a hold.
//!
//! Where routing names no children ([`Children::Unknown`]), a neighbour that has cells to send to this node is taken for
//! a child: RFC 9033 s4.6 gives each node one such cell to its parent as soon as it has chosen it, and s5.2 removes it
//! when the node has another parent.
//!
//! The counters of a direction also restart when its cells change. RFC 9033 s5.1 does not say so, but its thresholds
//! are about a window over one set of cells.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::{CellId, CellKind, CellOptions, CellSpec};
use lowmesh_machine::earliest;
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::sixp::ReturnCode;

use super::autonomous::autonomous_place;
use super::link::{AutoRx, Hold, Leave, Link, Quality, Role, SEND};
use super::{Action, Children, Context, Event, SchedulingFunction, minimal};
use crate::negotiation::{cells_with, has_cells, place_of};
use crate::params::{
    MINIMAL_CHANNEL_OFFSET, MacTiming, MsfParams, SLOTFRAME_AUTONOMOUS, SLOTFRAME_MINIMAL,
    SLOTFRAME_NEGOTIATED,
};
use crate::transaction::Outcome;

mod rows;

pub use rows::{B_MSF, BACKLOG, MSF};

/// Negotiated cells that follow the traffic.
#[derive(Clone, Debug)]
pub struct Msf {
    params: MsfParams,
    naming: Children,
    auto_rx: Option<AutoRx>,
    parent: Option<Eui64>,
    children: BTreeSet<Eui64>,
    links: BTreeMap<Eui64, Link>,
    /// Neighbours with frames queued in the MAC, each with the moment from which on that is a backlog.
    waiting: BTreeMap<Eui64, Instant>,
    quality: BTreeMap<CellId, Quality>,
    housekeeping: Option<Instant>,
    deadline: Option<Instant>,
}

impl Msf {
    /// The function with these parameters: [`MsfParams::MSF`], [`MsfParams::BMSF`], or others. `naming` says whether routing
    /// names children.
    pub const fn new(params: MsfParams, naming: Children) -> Self {
        Self {
            params,
            naming,
            auto_rx: None,
            parent: None,
            children: BTreeSet::new(),
            links: BTreeMap::new(),
            waiting: BTreeMap::new(),
            quality: BTreeMap::new(),
            housekeeping: None,
            deadline: None,
        }
    }

    /// RFC 9033 s2 and s3: the shared cell, and a cell in which anyone may reach this node.
    fn install(&mut self, context: &mut Context<'_>) {
        *self = Self::new(self.params, self.naming);
        context.restart();
        let length = self.params.minimal_length;
        minimal::install(context, SLOTFRAME_MINIMAL, length, MINIMAL_CHANNEL_OFFSET);
        context.slotframe(SLOTFRAME_AUTONOMOUS, self.params.autonomous_length);
        context.slotframe(SLOTFRAME_NEGOTIATED, self.params.negotiated_length);
        // RFC 9033 s3: the AutoRxCell is always there, TX=0 RX=1 SHARED=0.
        let cell = context.cell(CellSpec {
            slotframe: SLOTFRAME_AUTONOMOUS,
            placement: autonomous_place(context.me, self.params.autonomous_length),
            options: CellOptions::RX,
            kind: CellKind::Autonomous,
            peer: None,
        });
        self.auto_rx = cell.map(|cell| AutoRx { cell, heard: 0 });
        self.housekeeping = Some(context.now + self.params.housekeeping);
    }

    fn link(&mut self, now: Instant, peer: Eui64) -> &mut Link {
        self.links.entry(peer).or_insert_with(|| Link::new(now))
    }

    /// RFC 9033 s3: the AutoTxCell to a neighbour exists while there are frames for it and no negotiated
    /// cell to send them in.
    fn update_auto_tx(&self, context: &mut Context<'_>, peer: Eui64) {
        let wanted = self.waiting.contains_key(&peer) && !context.schedule.has_dedicated_tx(peer);
        let present = context.schedule.cells_in(SLOTFRAME_AUTONOMOUS).any(|c| c.peer == Some(peer));
        if wanted && !present && self.auto_rx.is_some() {
            context.cell(CellSpec {
                slotframe: SLOTFRAME_AUTONOMOUS,
                placement: autonomous_place(peer, self.params.autonomous_length),
                options: CellOptions::TX.with(CellOptions::SHARED),
                kind: CellKind::Autonomous,
                peer: Some(peer),
            });
        } else if !wanted && present {
            context.remove_where(|c| c.slotframe == SLOTFRAME_AUTONOMOUS && c.peer == Some(peer));
        }
    }

    /// After the cells with `peer` changed.
    fn cells_changed(&mut self, context: &mut Context<'_>, peer: Eui64) {
        self.update_auto_tx(context, peer);
        let (params, auto) = (self.params, self.auto_rx);
        self.link(context.now, peer).refresh(context, peer, &params, auto);
        self.infer_child(context, peer);
    }

    /// RFC 9033 s5.2: as many cells with the new parent, then none with the old one.
    fn switch_parent(&mut self, context: &mut Context<'_>, new: Option<Eui64>) {
        let old = core::mem::replace(&mut self.parent, new);
        if old == new {
            return;
        }
        let (now, params) = (context.now, self.params);
        let (mut tx, mut rx) = (1, 0);
        let mut holds = [Hold::default(); 2];
        if let Some(old) = old {
            let is_child = self.children.contains(&old);
            let link = self.link(now, old);
            tx = link.tx.wanted.unwrap_or(1).max(1);
            rx = link.rx.wanted.unwrap_or(0);
            holds = [link.tx.hold, link.rx.hold];
            link.role = if is_child { Role::Child } else { Role::Guest };
            link.tx.wanted = (is_child && params.downward).then_some(1);
            link.rx.wanted = None;
            link.leave = Leave::OnceSwitched(match new {
                Some(_) => now + params.leave_after,
                None => now,
            });
            self.cells_changed(context, old);
        }
        if let Some(new) = new {
            let link = self.link(now, new);
            link.role = Role::Parent;
            link.leave = Leave::No;
            // RFC 9033 s4.6: the first negotiated cell is asked for as soon as there is a parent.
            link.tx.wanted = Some(tx);
            link.rx.wanted = params.receive_cells.then_some(rx);
            [link.tx.hold, link.rx.hold] = holds;
            self.cells_changed(context, new);
        }
    }

    fn add_child(&mut self, context: &mut Context<'_>, child: Eui64) {
        self.children.insert(child);
        let downward = self.params.downward;
        let link = self.link(context.now, child);
        if link.role == Role::Parent {
            return;
        }
        if matches!(link.leave, Leave::At(_)) {
            link.leave = Leave::No;
        }
        link.role = Role::Child;
        if downward && link.tx.wanted.is_none() {
            // Righetti 2023 s II-B: one cell with each child to begin with.
            link.tx.wanted = Some(1);
            self.cells_changed(context, child);
        }
    }

    fn remove_child(&mut self, context: &mut Context<'_>, child: Eui64) {
        self.children.remove(&child);
        let leave_at = context.now + self.params.leave_after;
        if let Some(link) = self.links.get_mut(&child)
            && link.role == Role::Child
        {
            link.role = Role::Guest;
            link.tx.wanted = None;
            link.leave = Leave::At(leave_at);
        }
    }

    /// Where routing names no children, cells to receive in show them, and their absence shows that they are gone.
    fn infer_child(&mut self, context: &mut Context<'_>, peer: Eui64) {
        if self.naming == Children::Known {
            return;
        }
        let (params, schedule) = (self.params, &*context.schedule);
        let Some(link) = self.links.get_mut(&peer) else { return };
        let sends = link.rx.have(schedule, peer) > 0;
        match link.role {
            Role::Guest if sends && link.leave == Leave::No => {
                link.role = Role::Sender;
                link.tx.wanted = params.downward.then_some(1);
                let auto = self.auto_rx;
                link.refresh(context, peer, &params, auto);
            }
            Role::Sender if !has_cells(schedule, SLOTFRAME_NEGOTIATED, peer) => {
                link.role = Role::Guest;
                link.tx.wanted = None;
            }
            _ => {}
        }
    }

    /// RFC 9033 s12, table 1: what to do after each return code. It has a long pause after RC_ERR_BUSY and
    /// RC_ERR_LOCKED alone, and so has a schedule that is full here; elsewhere what is asked for is needed.
    fn transaction_ended(
        &mut self,
        context: &mut Context<'_>,
        peer: Eui64,
        clear: bool,
        outcome: Outcome,
    ) {
        let (params, now) = (self.params, context.now);
        let pause = match outcome {
            Outcome::Agreed(cells) if clear || cells > 0 => None,
            Outcome::Refused(ReturnCode::SeqNum | ReturnCode::CellList) => None,
            Outcome::Refused(_) | Outcome::NotSent => Some(params.wait_retry),
            // None of the cells offered was free there (others may be), or the words were lost.
            _ => Some(params.wait_lost),
        };
        let wait = pause.map_or(Duration::ZERO, |(min, max)| context.rng.duration(min, max));
        let downward = params.downward;
        let link = self.link(now, peer);
        link.asked = false;
        if link.role.is_below() && !downward {
            // A backlog is asked about once; if it stays, there is another question.
            link.tx.wanted = None;
        }
        link.hold = link.hold.max(now + wait);
        link.relocate.clear();
        match outcome {
            Outcome::Agreed(_) if clear => link.clear = 0,
            // There is no room here: what there is must do until the counters ask again.
            Outcome::NotSent => link.content_itself(context.schedule, peer),
            Outcome::Refused(ReturnCode::SeqNum | ReturnCode::CellList) if !clear => {
                link.clear = params.clear_attempts;
            }
            Outcome::Refused(
                ReturnCode::Error | ReturnCode::Reset | ReturnCode::Version | ReturnCode::Sfid,
            ) => {
                link.clear = u8::from(!clear);
                link.hold = now + params.quarantine;
                let until = link.hold;
                context.actions.push(Action::Drop(peer));
                context.actions.push(Action::Quarantine(peer, until));
            }
            _ => {}
        }
        if outcome != Outcome::NotSent {
            self.cells_changed(context, peer);
        }
    }

    /// The peer's side is empty, and so is ours: what is wanted is asked for again, a little later.
    fn cleared(&mut self, context: &mut Context<'_>, peer: Eui64) {
        let wait = self.params.wait_lost;
        let pause = context.rng.duration(wait.0 / 4, wait.1 / 4);
        let now = context.now;
        let link = self.link(now, peer);
        link.clear = 0;
        link.hold = link.hold.max(now + pause);
        self.cells_changed(context, peer);
    }

    /// How long frames wait for a parent or child before that is a backlog; `None` when it never is.
    fn patience(&self, slot: Duration) -> Option<Duration> {
        let slotframes = u64::from(self.params.backlog_slotframes);
        (slotframes > 0).then(|| slot * u64::from(self.params.negotiated_length) * slotframes)
    }

    /// The parent and the children for which frames wait, and when that becomes a backlog.
    fn backlogs(&self) -> impl Iterator<Item = (Eui64, Instant)> + '_ {
        let is_relative = |peer| {
            self.links.get(&peer).is_some_and(|l| l.role == Role::Parent || l.role.is_below())
        };
        let MsfParams { receive_cells, downward, backlog_slotframes, .. } = self.params;
        // Nobody gives cells back whose receiver does not count them.
        let watched = receive_cells && !downward && backlog_slotframes > 0;
        let waiting = self.waiting.iter().filter(move |_| watched).map(|(peer, due)| (*peer, *due));
        waiting.filter(move |(peer, _)| is_relative(*peer))
    }

    /// Wants one cell more to each neighbour with a backlog, and looks again when it has lasted as long once more.
    fn relieve(&mut self, context: &Context<'_>) {
        let Some(patience) = self.patience(context.slot) else { return };
        let (now, params) = (context.now, self.params);
        let late: Vec<Eui64> =
            self.backlogs().filter(|(_, due)| *due <= now).map(|(peer, _)| peer).collect();
        for peer in late {
            self.waiting.insert(peer, now + patience);
            let most = params.cells_per_peer_max;
            let link = self.link(now, peer);
            let have = link.tx.have(context.schedule, peer);
            if have < most && !link.asked {
                link.tx.wanted = Some(have + 1);
                link.tx.hold.extend(now, params.hold);
            }
        }
    }

    fn on_deadline(&mut self, context: &mut Context<'_>) {
        let (params, auto) = (self.params, self.auto_rx);
        self.relieve(context);
        for (peer, link) in &mut self.links {
            link.evaluate(context, *peer, &params, auto);
        }
        if self.housekeeping.is_some_and(|at| at <= context.now) {
            self.housekeeping = Some(context.now + params.housekeeping);
            self.keep_house(context);
        }
    }

    /// RFC 9033 s5.3, and the cells whose other end is gone.
    fn keep_house(&mut self, context: &mut Context<'_>) {
        let params = self.params;
        let mut quality = BTreeMap::new();
        for (peer, link) in &mut self.links {
            let mut cells = Vec::new();
            let mut is_deaf = false;
            for cell in cells_with(context.schedule, SLOTFRAME_NEGOTIATED, *peer, SEND) {
                let mut of_cell = self.quality.get(&cell.id).copied().unwrap_or_default();
                of_cell.note(cell, &params);
                is_deaf |= of_cell.is_deaf(&params);
                quality.insert(cell.id, of_cell);
                cells.extend(of_cell.percent().zip(place_of(cell)));
            }
            if is_deaf || link.is_silent(context, *peer, &params) {
                // RFC 9033 s13: schedules that differ are cleared.
                link.clear = link.clear.max(params.clear_attempts);
                continue;
            }
            let best = cells.iter().map(|(percent, _)| *percent).max().unwrap_or(0);
            if link.tx.wanted.is_some() {
                // RFC 9033 s5.3 step 3: far worse than the best means that someone else is in it too.
                let bad = cells.iter().filter(|(p, _)| best - p > params.relocate_percent);
                link.relocate = bad.map(|(_, place)| *place).take(params.cell_list).collect();
            }
        }
        // Cells that are gone are not carried over.
        self.quality = quality;
    }

    /// Asks what there is to ask, and works out when to look again.
    fn settle(&mut self, context: &mut Context<'_>) {
        let params = self.params;
        let switched = self.parent.is_none_or(|parent| {
            self.links.get(&parent).is_none_or(|link| {
                let wanted = link.tx.wanted.unwrap_or(0);
                link.tx.have(context.schedule, parent) >= wanted
            })
        });
        let mut deadline = self.housekeeping;
        self.links.retain(|peer, link| {
            let leaves = match link.leave {
                Leave::No => false,
                Leave::At(at) => at <= context.now,
                Leave::OnceSwitched(at) => switched || at <= context.now,
            };
            if leaves {
                link.leave = Leave::No;
                if has_cells(context.schedule, SLOTFRAME_NEGOTIATED, *peer) {
                    link.clear = params.clear_attempts;
                }
            }
            if link.is_over(context.schedule, *peer) {
                return false;
            }
            let ask = link.next_ask(context.schedule, *peer, &params);
            let pending = ask.is_some();
            if let Some(ask) = ask
                && !link.asked
                && link.hold <= context.now
            {
                link.asked = true;
                link.clear = link.clear.saturating_sub(1);
                context.ask(*peer, ask);
            }
            deadline = deadline.into_iter().chain(link.next_deadline(pending)).min();
            true
        });
        self.deadline = deadline;
    }
}

impl SchedulingFunction for Msf {
    fn name(&self) -> &'static str {
        self.params.name
    }
    fn sfid(&self) -> Option<u8> {
        Some(self.params.sfid)
    }
    fn cell_list(&self) -> usize {
        self.params.cell_list
    }
    fn cells_per_peer_max(&self) -> u16 {
        self.params.cells_per_peer_max
    }
    fn timeout(&self, mac: MacTiming) -> Duration {
        self.params.timeout(mac)
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.deadline, self.backlogs().map(|(_, due)| due).min())
    }

    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        // These two come with frames, so they do their work and no more.
        match *event {
            Event::QueueBusy(peer) => {
                // Without patience the moment is never looked at.
                let patience = self.patience(context.slot).unwrap_or(Duration::ZERO);
                self.waiting.insert(peer, context.now + patience);
                return self.update_auto_tx(context, peer);
            }
            Event::QueueEmpty(peer) => {
                self.waiting.remove(&peer);
                let downward = self.params.downward;
                if let Some(link) = self.links.get_mut(&peer)
                    && link.role.is_below()
                    && !link.asked
                    && !downward
                {
                    link.tx.wanted = None;
                }
                return self.update_auto_tx(context, peer);
            }
            Event::Received { from, cell } => {
                if let Some(auto) = &mut self.auto_rx
                    && auto.cell == cell
                    && self.parent == Some(from)
                {
                    auto.heard += 1;
                }
                return;
            }
            _ => {}
        }
        match *event {
            Event::Started { root: true } | Event::Synchronised => self.install(context),
            Event::Desynchronised => {
                *self = Self::new(self.params, self.naming);
                context.schedule.clear();
            }
            // Nothing to negotiate before there is a slotframe to do it in.
            _ if self.auto_rx.is_none() => return,
            Event::ParentChanged { new, .. } => self.switch_parent(context, new),
            Event::ChildAdded(child) => self.add_child(context, child),
            Event::ChildRemoved(child) => self.remove_child(context, child),
            Event::Deadline => self.on_deadline(context),
            Event::TransactionEnded { peer, clear, outcome } => {
                self.transaction_ended(context, peer, clear, outcome);
            }
            Event::CellsChanged(peer) => {
                if let Some(link) = self.links.get_mut(&peer) {
                    link.accept(context, peer, &self.params);
                }
                self.cells_changed(context, peer);
            }
            Event::Cleared(peer) => self.cleared(context, peer),
            Event::StartedAgain(peer) => self.link(context.now, peer).clear = 0,
            Event::Inconsistent(peer) => {
                let attempts = self.params.clear_attempts;
                self.link(context.now, peer).clear = attempts;
            }
            _ => {}
        }
        self.settle(context);
    }
}
