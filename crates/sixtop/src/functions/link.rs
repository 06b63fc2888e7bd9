//! What MSF keeps of one neighbour: how many cells it wants, how well they are used, when it may ask.
//!
//! Counting is lazy: a window remembers where it began, and the elapsed and used cells are worked out of
//! the schedule when it ends (RFC 9033 s5.1 counts cell by cell to the same effect).

use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::{Cell, CellId, CellOptions};
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::sixp::Cell as Place;

use super::Context;
use crate::negotiation::{all_with, cells_with, has_cells, place_of};
use crate::params::{MsfParams, SLOTFRAME_NEGOTIATED};
use crate::transaction::Ask;

/// Options of a negotiated cell to send in.
pub(super) const SEND: CellOptions = CellOptions::TX;
/// Options of a negotiated cell to listen in.
pub(super) const LISTEN: CellOptions = CellOptions::RX;

/// What a neighbour is to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The preferred parent.
    Parent,
    /// Routes through this node.
    Child,
    /// Has cells to send to this node, whose routing does not name children: taken for one until the cells are silent.
    Sender,
    /// Has cells with this node, no more: not yet a child, or no longer a parent.
    Guest,
}

impl Role {
    /// True of a neighbour to which frames go down.
    pub const fn is_below(self) -> bool {
        matches!(self, Self::Child | Self::Sender)
    }
}

/// When a neighbour's cells are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Not foreseen.
    No,
    /// Then, unless it comes back.
    At(Instant),
    /// Once the new parent has granted as many cells, or then (RFC 9033 s5.2).
    OnceSwitched(Instant),
}

/// The auto-receive cell, which stands in while there is no negotiated one (RFC 9033 s5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct AutoRx {
    /// Which cell.
    pub cell: CellId,
    /// Frames that the parent sent in it.
    pub heard: u64,
}

/// NumCellsElapsed and NumCellsUsed of RFC 9033 s5.1, counted from a start.
#[derive(Clone, Debug)]
struct Window {
    used_before: u64,
    /// The cells that count.
    cells: Vec<CellId>,
    due: Instant,
}

/// How long cells stay that a rule beyond RFC 9033 added. The counters of s5.1 see how many frames came, but not how long
/// they waited: alone they would release such a cell, miss it, and add it again, forever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    until: Instant,
    /// How long the next one lasts; zero before the first.
    span: Duration,
    /// A cell was released since the last one was added.
    released: bool,
}

impl Hold {
    /// A rule adds a cell. If one was released before, that was too early.
    pub fn extend(&mut self, now: Instant, (first, longest): (Duration, Duration)) {
        if core::mem::take(&mut self.released) {
            self.span = (self.span * 2).min(longest);
        }
        self.span = self.span.max(first);
        self.until = now + self.span;
    }
    /// Whether a cell may be released; if so, it is. A release that was not missed for a whole hold was right: from then
    /// on holds are short again.
    fn release(&mut self, now: Instant, (first, _): (Duration, Duration)) -> bool {
        if now < self.until {
            return false;
        }
        if core::mem::replace(&mut self.released, true) {
            self.span = first;
        }
        self.until = now + self.span;
        true
    }
}

/// The cells to or from a neighbour.
#[derive(Clone, Debug)]
pub(super) struct CellDirection {
    options: CellOptions,
    /// How many there should be; `None` when that is the neighbour's business.
    pub wanted: Option<u16>,
    /// Until when none is released.
    pub hold: Hold,
    window: Option<Window>,
}

impl CellDirection {
    fn new(options: CellOptions) -> Self {
        Self { options, wanted: None, hold: Hold::default(), window: None }
    }
    /// How many there are.
    pub fn have(&self, schedule: &Schedule, peer: Eui64) -> u16 {
        cells_with(schedule, SLOTFRAME_NEGOTIATED, peer, self.options).count() as u16
    }
    /// RFC 9033 s5.1: at least one negotiated Tx cell stays; receiving falls back to the AutoRxCell.
    fn least(&self) -> u16 {
        u16::from(self.options == SEND)
    }
    /// How often the cells that count for the window were used until now.
    fn used(&self, schedule: &Schedule, peer: Eui64, auto_rx: Option<AutoRx>) -> u64 {
        let used = |c: &Cell| if self.options == SEND { c.used.sent } else { c.used.received };
        let negotiated: u64 = cells_with(schedule, SLOTFRAME_NEGOTIATED, peer, self.options)
            .map(|c| u64::from(used(c)))
            .sum();
        negotiated + auto_rx.map_or(0, |auto| auto.heard)
    }
    /// Restarts the counters if other cells count than before. The two directions of a link do so independently: else
    /// both ends would come to the end of their windows at once, and refuse each other.
    fn refresh(
        &mut self,
        context: &Context<'_>,
        peer: Eui64,
        params: &MsfParams,
        auto: Option<AutoRx>,
    ) {
        let cells = self.counted(context.schedule, peer, auto);
        let same = |window: &Window| window.cells == cells;
        if self.wanted.is_none() || !self.window.as_ref().is_some_and(same) {
            self.restart(context, peer, params, auto);
        }
    }
    /// Restarts the counters.
    fn restart(
        &mut self,
        context: &Context<'_>,
        peer: Eui64,
        params: &MsfParams,
        auto: Option<AutoRx>,
    ) {
        self.window = None;
        if self.wanted.is_none() {
            return;
        }
        let cells = self.counted(context.schedule, peer, auto);
        let counts = |c: &Cell| cells.contains(&c.id);
        let end = context.schedule.when_elapsed(counts, context.asn, params.cells_elapsed_max);
        let used_before = self.used(context.schedule, peer, auto);
        self.window = end.map(|end| Window { used_before, cells, due: context.start_of(end) });
    }
    /// The cells whose passing by counts: the negotiated ones, and `auto` where it stands in for them.
    fn counted(&self, schedule: &Schedule, peer: Eui64, auto: Option<AutoRx>) -> Vec<CellId> {
        let negotiated = cells_with(schedule, SLOTFRAME_NEGOTIATED, peer, self.options);
        negotiated.map(|c| c.id).chain(auto.map(|auto| auto.cell)).collect()
    }
    /// From how many uses on of a window's cells one more is wanted.
    ///
    /// A receiver sees only the frames that arrive, so on a lossy link its full cells never look full to
    /// it. What the peer's frames lose is taken to be what this node's own frames lose: of the share
    /// acknowledged, half the loss (its square root) lies in the forward direction.
    fn high(&self, schedule: &Schedule, peer: Eui64, params: &MsfParams, have: u16) -> u64 {
        if self.options == SEND {
            return params.cells_used_high;
        }
        let high = if have == 0 { params.shared_used_high } else { params.cells_used_high };
        let (mut sent, mut acked) = (0, 0);
        for cell in cells_with(schedule, SLOTFRAME_NEGOTIATED, peer, SEND) {
            sent += u64::from(cell.used.sent);
            acked += u64::from(cell.used.acked);
        }
        let is_judged = params.judged_after.is_some_and(|least| sent >= least);
        let heard_percent = if is_judged { (acked * 10_000 / sent).isqrt() } else { 100 };
        high * heard_percent / 100
    }
    /// RFC 9033 s5.1 step 2: wants one more or one less when the window is over.
    fn evaluate(
        &mut self,
        context: &Context<'_>,
        peer: Eui64,
        params: &MsfParams,
        auto: Option<AutoRx>,
    ) {
        let (Some(window), Some(wanted)) = (&self.window, self.wanted) else {
            self.window = None;
            return;
        };
        if window.due > context.now {
            return;
        }
        let used = self.used(context.schedule, peer, auto).saturating_sub(window.used_before);
        let have = self.have(context.schedule, peer);
        // What was wanted but not granted meanwhile is decided again.
        let is_idle = used < params.cells_used_low && have > self.least();
        self.wanted = Some(if used > self.high(context.schedule, peer, params, have) {
            if used <= params.cells_used_high {
                self.hold.extend(context.now, params.hold);
            }
            wanted.max(have + 1).min(params.cells_per_peer_max.max(have))
        } else if is_idle && self.hold.release(context.now, params.hold) {
            have - 1
        } else {
            have.max(self.least())
        });
        self.restart(context, peer, params, auto);
    }
}

/// One neighbour.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// What it is.
    pub role: Role,
    /// Cells to it.
    pub tx: CellDirection,
    /// Cells from it.
    pub rx: CellDirection,
    /// When its cells are given back.
    pub leave: Leave,
    /// Is a transaction open?
    pub asked: bool,
    /// No transaction before.
    pub hold: Instant,
    /// CLEARs still to be tried.
    pub clear: u8,
    /// Cells to be moved.
    pub relocate: Vec<Place>,
    /// Frames that came in its cells when last looked at, and when that last changed.
    heard: (u64, Instant),
}

impl Link {
    /// A neighbour first met at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            role: Role::Guest,
            tx: CellDirection::new(SEND),
            rx: CellDirection::new(LISTEN),
            leave: Leave::No,
            asked: false,
            hold: Instant::ZERO,
            clear: 0,
            relocate: Vec::new(),
            heard: (0, now),
        }
    }
    /// Restarts the counters of the directions whose cells changed.
    pub fn refresh(
        &mut self,
        context: &Context<'_>,
        peer: Eui64,
        params: &MsfParams,
        auto: Option<AutoRx>,
    ) {
        let auto = auto.filter(|_| self.may_use_auto(context.schedule, peer));
        self.tx.refresh(context, peer, params, None);
        self.rx.refresh(context, peer, params, auto);
    }
    /// Ends the windows that are over.
    pub fn evaluate(
        &mut self,
        context: &Context<'_>,
        peer: Eui64,
        params: &MsfParams,
        auto: Option<AutoRx>,
    ) {
        let auto = auto.filter(|_| self.may_use_auto(context.schedule, peer));
        self.tx.evaluate(context, peer, params, None);
        self.rx.evaluate(context, peer, params, auto);
    }
    /// The AutoRxCell counts only while nothing better is there, or it would water down the rest.
    fn may_use_auto(&self, schedule: &Schedule, peer: Eui64) -> bool {
        self.role == Role::Parent && self.rx.have(schedule, peer) == 0
    }
    /// True when there is nothing left to keep it for.
    pub fn is_over(&self, schedule: &Schedule, peer: Eui64) -> bool {
        self.role == Role::Guest
            && !self.asked
            && self.clear == 0
            && self.leave == Leave::No
            && !has_cells(schedule, SLOTFRAME_NEGOTIATED, peer)
    }
    /// Wants no more than there is, but never less than the one cell that must be.
    pub fn content_itself(&mut self, schedule: &Schedule, peer: Eui64) {
        for way in [&mut self.tx, &mut self.rx] {
            let enough = way.have(schedule, peer).max(way.least());
            way.wanted = way.wanted.map(|wanted| wanted.min(enough));
        }
    }
    /// Wants the cells to listen in that the peer asked for: it knows what waits at its end.
    pub fn accept(&mut self, context: &Context<'_>, peer: Eui64, params: &MsfParams) {
        let have = self.rx.have(context.schedule, peer);
        if self.rx.wanted.is_some_and(|wanted| wanted < have) {
            self.rx.wanted = Some(have);
            self.rx.hold.extend(context.now, params.hold);
        }
    }
    /// What to ask of it next.
    pub fn next_ask(&self, schedule: &Schedule, peer: Eui64, params: &MsfParams) -> Option<Ask> {
        if self.clear > 0 {
            return Some(Ask::Clear);
        }
        for way in [&self.tx, &self.rx] {
            let Some(wanted) = way.wanted else { continue };
            let (have, options) = (way.have(schedule, peer), way.options);
            if have < wanted {
                let count = (wanted - have).min(params.cell_list as u16) as u8;
                return Some(Ask::Add { options, count });
            }
            if have > wanted {
                return Some(Ask::Delete { options, count: 1 });
            }
        }
        let there = |p: &Place| {
            cells_with(schedule, SLOTFRAME_NEGOTIATED, peer, SEND).any(|c| place_of(c) == Some(*p))
        };
        let cells: Vec<Place> = self.relocate.iter().copied().filter(there).collect();
        (!cells.is_empty()).then_some(Ask::Relocate { options: SEND, cells })
    }
    /// When it next wants attention, given whether there is something to ask.
    pub fn next_deadline(&self, pending: bool) -> Option<Instant> {
        let windows = [&self.tx.window, &self.rx.window].into_iter().flatten().map(|w| w.due);
        let hold = (pending && !self.asked).then_some(self.hold);
        let leave = match self.leave {
            Leave::No => None,
            Leave::At(at) | Leave::OnceSwitched(at) => Some(at),
        };
        windows.chain(hold).chain(leave).min()
    }
    /// True when the cells of a guest or a sender have been silent for too long: its other end is gone. Of parents and
    /// children RPL says so.
    pub fn is_silent(&mut self, context: &Context<'_>, peer: Eui64, params: &MsfParams) -> bool {
        let cells = all_with(context.schedule, SLOTFRAME_NEGOTIATED, peer);
        let listens = cells.filter(|c| c.options.has(LISTEN));
        let heard = listens.map(|c| u64::from(c.used.received)).sum();
        if heard != self.heard.0 || !matches!(self.role, Role::Guest | Role::Sender) {
            self.heard = (heard, context.now);
        }
        context.now.since(self.heard.1) >= params.silence_max
    }
}

/// NumTx and NumTxAck of one cell (RFC 9033 s5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quality {
    seen: (u32, u32),
    sent: u32,
    acked: u32,
    /// Frames sent since the last acknowledgement.
    unheard: u32,
    /// NumTx came to MAX_NUMTX at least once, so the ratio means something.
    significant: bool,
}

impl Quality {
    /// Takes in what happened in the cell since the last time.
    pub fn note(&mut self, cell: &Cell, params: &MsfParams) {
        let (sent, acked) =
            (cell.used.sent.wrapping_sub(self.seen.0), cell.used.acked.wrapping_sub(self.seen.1));
        self.seen = (cell.used.sent, cell.used.acked);
        self.unheard = if acked > 0 { 0 } else { self.unheard.saturating_add(sent) };
        self.sent = self.sent.saturating_add(sent);
        self.acked = self.acked.saturating_add(acked);
        // RFC 9033 s5.3: both are halved when NumTx reaches MAX_NUMTX, so that recent frames count more.
        while self.sent >= params.sent_max.max(2) {
            self.significant = true;
            self.sent /= 2;
            self.acked /= 2;
        }
    }
    /// True when nobody seems to listen.
    pub const fn is_deaf(&self, params: &MsfParams) -> bool {
        self.unheard >= params.deaf_after
    }
    /// Share of frames acknowledged, in percent, once there were enough.
    pub fn percent(&self) -> Option<u32> {
        (self.significant && self.sent > 0)
            .then(|| (u64::from(self.acked) * 100 / u64::from(self.sent)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_mac::tsch::cell::{CellKind, CellSpec, Placement};
    use lowmesh_units::{Asn, NodeId};

    #[test]
    fn a_hold_doubles_with_each_early_release_up_to_its_bound_and_starts_again_after_a_right_one() {
        let bounds = (Duration::from_secs(10), Duration::from_secs(40));
        let mut hold = Hold::default();
        assert!(hold.release(Instant::from_secs(1), bounds), "nothing was added yet");
        let mut now = 100;
        for expected in [10, 20, 40, 40] {
            hold.extend(Instant::from_secs(now), bounds);
            // A second backlog before the release begins the same hold again.
            hold.extend(Instant::from_secs(now + 1), bounds);
            assert!(!hold.release(Instant::from_secs(now + expected), bounds), "{expected}");
            assert!(hold.release(Instant::from_secs(now + expected + 1), bounds), "{expected}");
            now += 100;
        }
        // Nothing is missed for a whole hold: the next ones are as short as the first.
        assert!(!hold.release(Instant::from_secs(now - 20), bounds));
        assert!(hold.release(Instant::from_secs(now), bounds));
        assert!(!hold.release(Instant::from_secs(now + 9), bounds));
        assert!(hold.release(Instant::from_secs(now + 10), bounds));
    }

    #[test]
    fn a_neighbour_with_any_negotiated_cell_is_not_forgotten() {
        let (peer, shared) = (NodeId(1).eui64(), CellOptions::SHARED);
        for options in [SEND, LISTEN, SEND.with(LISTEN), SEND.with(shared), LISTEN.with(shared)] {
            let mut schedule = Schedule::new();
            schedule.add_slotframe(SLOTFRAME_NEGOTIATED, 29).expect("new handle");
            let link = Link::new(Instant::ZERO);
            assert!(link.is_over(&schedule, peer));
            let spec = CellSpec {
                slotframe: SLOTFRAME_NEGOTIATED,
                placement: Placement::Fixed { slot: 4, channel_offset: 0 },
                options,
                kind: CellKind::Negotiated,
                peer: Some(peer),
            };
            schedule.add(Asn(0), spec).expect("a free slot");
            assert!(!link.is_over(&schedule, peer), "{options:?}");
        }
    }
}
