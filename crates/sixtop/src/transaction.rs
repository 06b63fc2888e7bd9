//! 6P transactions: who may ask whom, and which number comes next (RFC 8480 s3.4).
//!
//! ```text
//!            request sent            response with our SeqNum, timeout, or request undelivered
//!   Idle ────────────────> Requesting ───────────────────────────────────────────────> Idle
//!    │    request received             response acknowledged, or given up
//!    ├───────────────────> Responding ───────────────────────────────────────────────> Idle
//!    │    request without cells        confirmation with our SeqNum, timeout, or response undelivered
//!    └───────────────────> Offering ─────────────────────────────────────────────────> Idle
//! ```
//!
//! A requester commits when the response comes, a responder when its response is acknowledged by the link
//! layer; but it listens in the new cells at once ([`Commit::early`]). Where those two come apart, sequence numbers or an unexpected response show it, and the
//! scheduling function clears. A request without cells begins a transaction of three steps (RFC 8480 s3.1.2): the
//! responder offers cells, and commits when the confirmation comes. What cells a message speaks of is [`crate::negotiation`]'s business.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::CellOptions;
use lowmesh_machine::Handle;
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::sixp::{Cell, Command, ReturnCode};

use crate::params::PEERS_MAX;

/// What a scheduling function asks of a neighbour; options are as this node sees the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// More cells; the candidates are drawn from what is free.
    Add {
        /// Transmit or receive.
        options: CellOptions,
        /// How many.
        count: u8,
    },
    /// Fewer cells, the youngest first.
    Delete {
        /// Transmit or receive.
        options: CellOptions,
        /// How many.
        count: u8,
    },
    /// Other places for these cells.
    Relocate {
        /// Transmit or receive.
        options: CellOptions,
        /// The cells to move.
        cells: Vec<Cell>,
    },
    /// No cells at all, and sequence numbers from the start.
    Clear,
}

/// How a transaction that this node began came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Agreed on so many cells, maybe none.
    Agreed(usize),
    /// The peer answered with an error.
    Refused(ReturnCode),
    /// No response in time.
    TimedOut,
    /// The link layer could not deliver the request.
    Undelivered,
    /// Not even sent: there is nothing to offer.
    NotSent,
    /// Not sent: a transaction with this peer is open.
    Engaged,
    /// The peer cleared in the middle of it.
    Aborted,
}

/// What a responder does to its schedule once its response has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Nothing.
    Nothing,
    /// Adds cells, with options as the responder sees them.
    Add { options: CellOptions, cells: Vec<Cell> },
    /// Removes cells.
    Delete { options: CellOptions, cells: Vec<Cell> },
    /// Moves cells, pairwise.
    Relocate { options: CellOptions, from: Vec<Cell>, to: Vec<Cell> },
}

impl Commit {
    /// How many cells it speaks of.
    pub fn cells(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Add { cells, .. } | Self::Delete { cells, .. } => cells.len(),
            Self::Relocate { to, .. } => to.len(),
        }
    }
    /// True when it changes the schedule.
    pub fn changes(&self) -> bool {
        self.cells() > 0
    }
    /// The cells in which the responder listens as soon as its response leaves: the requester sends in them once it has the
    /// response, and the acknowledgement of that may be lost, for seconds in a shared cell. A cell in which the
    /// responder sends too waits for the acknowledgement. As additions.
    pub fn early(&self) -> Self {
        match self {
            Self::Add { options, cells } | Self::Relocate { options, to: cells, .. }
                if options.has(CellOptions::RX) && !options.has(CellOptions::TX) =>
            {
                Self::Add { options: *options, cells: cells.clone() }
            }
            _ => Self::Nothing,
        }
    }
    /// What is left to do when the response is acknowledged.
    pub fn late(&self) -> Self {
        match self {
            Self::Add { .. } if self.early().changes() => Self::Nothing,
            Self::Relocate { options, from, .. } if self.early().changes() => {
                Self::Delete { options: *options, cells: from.clone() }
            }
            other => other.clone(),
        }
    }
    /// What takes back [`Commit::early`].
    pub fn undo(&self) -> Self {
        match self.early() {
            Self::Add { options, cells } => Self::Delete { options, cells },
            _ => Self::Nothing,
        }
    }
}

/// Where a node stands with one neighbour; see the picture above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No transaction.
    Idle,
    /// Waits for a response.
    Requesting { frame: Frame, command: Command, deadline: Instant },
    /// Waits for its response to arrive.
    Responding { handle: Handle, commit: Commit, deadline: Instant },
    /// Waits for the confirmation of some of the cells in its response; the offer is a command as this node sees the cells.
    Offering { frame: Frame, offer: Command, deadline: Instant },
}

/// Where the frame with a request or an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// In the MAC, under this name.
    Waiting(Handle),
    /// Acknowledged by the peer.
    Delivered,
}

impl Outcome {
    /// Whether both sides count the transaction (RFC 8480 s3.4.6), given that the link layer has sent the request.
    /// A peer that refuses to begin one does not count it.
    pub(crate) fn counts(self) -> bool {
        use ReturnCode::{Busy, SeqNum, Sfid, Version};
        !matches!(self, Self::Undelivered | Self::Refused(Busy | SeqNum | Sfid | Version))
    }
}

/// 6P with one neighbour.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Number of the next transaction.
    pub seqnum: u8,
    /// What is going on.
    pub state: State,
    /// When it last had a turn, counted in turns of all neighbours.
    turn: u64,
}

impl Peer {
    const fn new() -> Self {
        Self { seqnum: 0, state: State::Idle, turn: 0 }
    }
    /// RFC 8480 s3.4.6: 0 after a reset only, then 1 to 255 and again 1.
    pub fn advance(&mut self) {
        self.seqnum = if self.seqnum == u8::MAX { 1 } else { self.seqnum + 1 };
    }
    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::Requesting { deadline, .. }
            | State::Responding { deadline, .. }
            | State::Offering { deadline, .. } => Some(deadline),
        }
    }
    /// The name of the frame that the MAC still has of the open transaction.
    pub fn waiting(&self) -> Option<Handle> {
        match self.state {
            State::Idle => None,
            State::Responding { handle, .. } => Some(handle),
            State::Requesting { frame, .. } | State::Offering { frame, .. } => match frame {
                Frame::Waiting(handle) => Some(handle),
                Frame::Delivered => None,
            },
        }
    }
}

/// 6P with all neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transactions {
    peers: BTreeMap<Eui64, Peer>,
    /// Counts turns, so that the neighbour used longest ago is known.
    turn: u64,
}

impl Transactions {
    /// The state with `peer`, begun if new; `None` when there are too many neighbours, all with cells or busy.
    pub fn peer(&mut self, peer: Eui64, has_cells: impl Fn(Eui64) -> bool) -> Option<&mut Peer> {
        if !self.peers.contains_key(&peer) {
            if self.peers.len() >= PEERS_MAX {
                self.peers.retain(|_, p| p.seqnum != 0 || p.state != State::Idle);
            }
            if self.peers.len() >= PEERS_MAX {
                self.forget_idle(has_cells)?;
            }
        }
        self.turn += 1;
        let state = self.peers.entry(peer).or_insert_with(Peer::new);
        state.turn = self.turn;
        Some(state)
    }
    /// Forgets the idle neighbour without cells that was used longest ago. RFC 8480 s3.4.6: if it returns,
    /// RC_ERR_SEQNUM and a CLEAR restore consistency. A neighbour with cells stays, because its cells would be lost.
    fn forget_idle(&mut self, has_cells: impl Fn(Eui64) -> bool) -> Option<()> {
        let idle = self.peers.iter().filter(|(_, p)| p.state == State::Idle);
        let (oldest, _) = idle.filter(|(eui, _)| !has_cells(**eui)).min_by_key(|(_, p)| p.turn)?;
        let oldest = *oldest;
        self.peers.remove(&oldest).map(|_| ())
    }
    /// The state with `peer`, if there is any.
    pub fn get(&mut self, peer: Eui64) -> Option<&mut Peer> {
        self.peers.get_mut(&peer)
    }
    /// Forgets everything, as a reset does.
    pub fn clear(&mut self) {
        self.peers.clear();
    }
    /// The peer whose open transaction waits for the frame named `handle`.
    pub fn by_handle(&self, handle: Handle) -> Option<Eui64> {
        self.peers.iter().find(|(_, p)| p.waiting() == Some(handle)).map(|(eui, _)| *eui)
    }
    /// A peer whose transaction is overdue.
    pub fn overdue(&self, now: Instant) -> Option<Eui64> {
        let due = |p: &Peer| p.deadline().is_some_and(|d| d <= now);
        self.peers.iter().find(|(_, p)| due(p)).map(|(eui, _)| *eui)
    }
    /// When the next transaction is overdue.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.peers.values().filter_map(Peer::deadline).min()
    }
    /// Slots that open transactions may still turn into cells; they are locked (RFC 8480 s3.4.3).
    pub fn locked_slots(&self) -> Vec<u16> {
        let mut slots = Vec::new();
        for peer in self.peers.values() {
            let cells = match &peer.state {
                State::Requesting { command, .. } | State::Offering { offer: command, .. } => {
                    match command {
                        Command::Add { cells, .. } => cells,
                        Command::Relocate { candidates, .. } => candidates,
                        _ => continue,
                    }
                }
                State::Responding { commit: Commit::Add { cells, .. }, .. } => cells,
                State::Responding { commit: Commit::Relocate { to, .. }, .. } => to,
                State::Responding { .. } | State::Idle => continue,
            };
            slots.extend(cells.iter().map(|c| c.slot));
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_are_zero_only_once() {
        let mut peer = Peer::new();
        assert_eq!(peer.seqnum, 0);
        for expected in (1..=255).chain([1, 2]) {
            peer.advance();
            assert_eq!(peer.seqnum, expected);
        }
    }

    fn eui(n: usize) -> Eui64 {
        Eui64((n as u64).to_be_bytes())
    }
    /// The largest number of neighbours, each after a transaction.
    fn full() -> Transactions {
        let mut all = Transactions::default();
        for n in 0..PEERS_MAX {
            all.peer(eui(n), |_| false).expect("room").seqnum = 1;
        }
        all
    }

    #[test]
    fn fresh_neighbours_make_room_first() {
        let mut all = full();
        all.get(eui(3)).expect("known").seqnum = 0;
        assert!(all.peer(eui(PEERS_MAX), |_| false).is_some());
        assert!(all.get(eui(3)).is_none() && all.get(eui(0)).is_some());
        assert_eq!(all.peers.len(), PEERS_MAX);
    }

    #[test]
    fn the_idle_neighbour_without_cells_that_was_used_longest_ago_makes_room() {
        let mut all = full();
        assert!(all.peer(eui(0), |_| false).is_some(), "used again");
        let deadline = Instant::from_secs(3);
        let open = State::Responding { handle: Handle(9), commit: Commit::Nothing, deadline };
        all.get(eui(1)).expect("known").state = open;
        let has_cells = |peer| peer == eui(2);
        for (newcomer, gone) in [(PEERS_MAX, 3), (PEERS_MAX + 1, 4)] {
            let fresh = all.peer(eui(newcomer), has_cells).expect("room");
            assert_eq!(fresh.seqnum, 0);
            fresh.seqnum = 1;
            assert!(all.get(eui(gone)).is_none());
            assert_eq!(all.peers.len(), PEERS_MAX);
        }
        assert!((0..3).all(|n| all.get(eui(n)).is_some()));
        assert!(all.peer(eui(500), |_| true).is_none(), "all have cells");
    }

    #[test]
    fn cells_of_open_transactions_are_locked() {
        let mut all = Transactions::default();
        let cell = Cell { slot: 7, channel_offset: 2 };
        let commit = Commit::Add { options: CellOptions::RX, cells: [cell].into() };
        let deadline = Instant::from_secs(3);
        let peer = all.peer(Eui64::default(), |_| false).expect("room");
        peer.state = State::Responding { handle: Handle(9), commit, deadline };
        assert_eq!(all.locked_slots(), [7]);
        assert_eq!(all.next_deadline(), Some(deadline));
        assert_eq!(all.overdue(Instant::from_secs(2)), None);
        assert_eq!(all.by_handle(Handle(9)), Some(Eui64::default()));
    }
}
