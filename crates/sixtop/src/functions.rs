//! Scheduling functions: each decides which cells a node should have.
//!
//! A function is a type that implements [`SchedulingFunction`], and a row with its name, its parameters and its constructor;
//! [`conformance`] tests both. It changes the schedule itself where that needs nobody's consent, and asks
//! [`crate::machine`] for 6P transactions where it does.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::Debug;

use lowmesh_mac::tsch::cell::{Cell, CellId, CellKind, CellOptions, CellSpec};
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_registry::{Algorithm, Breach, Choice, Parameter, Row};
use lowmesh_units::{Asn, Duration, Eui64, Instant, Rng};

use crate::params::{MacTiming, MsfParams, SLOTS_MAX};
use crate::transaction::{Ask, Outcome};

pub mod alice;
mod autonomous;
pub mod conformance;
mod link;
pub mod minimal;
pub mod msf;
pub mod orchestra;

/// An event for a scheduling function.
///
/// Relations start from scratch with each [`Event::Synchronised`] and end with [`Event::Desynchronised`]: the
/// driver reports parent, children and queues afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node starts; a root has a schedule at once, the others once they are synchronised.
    Started {
        /// Is it the root?
        root: bool,
    },
    /// The node follows a network's clock.
    Synchronised,
    /// It lost that clock, and every cell with it.
    Desynchronised,
    /// Whose clock it follows.
    TimeSource(Option<Eui64>),
    /// This neighbour is the root; told before it becomes the preferred parent.
    RootKnown(Eui64),
    /// RPL chose another preferred parent.
    ParentChanged {
        /// The one before.
        old: Option<Eui64>,
        /// The one from now on.
        new: Option<Eui64>,
    },
    /// The parent knows this node for its child now, and has made what it makes for children. Not told in
    /// networks without DAO-ACKs: there a frame in a cell that a parent makes for a child shows the same.
    KnownToParent(Eui64),
    /// A node routes through this one directly.
    ChildAdded(Eui64),
    /// It does so no longer.
    ChildRemoved(Eui64),
    /// The MAC has frames for this neighbour.
    QueueBusy(Eui64),
    /// It has none any more.
    QueueEmpty(Eui64),
    /// A frame for this node came in this cell.
    Received {
        /// Its sender.
        from: Eui64,
        /// The cell in which it came.
        cell: CellId,
    },
    /// [`SchedulingFunction::next_deadline`] is due.
    Deadline,
    /// A transaction that the function asked for is over; the schedule is changed already.
    TransactionEnded {
        /// With whom.
        peer: Eui64,
        /// Was it a CLEAR?
        clear: bool,
        /// How.
        outcome: Outcome,
    },
    /// The negotiated cells with this neighbour changed by something that the function did not ask for.
    CellsChanged(Eui64),
    /// The peer cleared: no negotiated cell with it is left, and it expects sequence number 0.
    Cleared(Eui64),
    /// The peer's first transaction since it started, or cleared.
    StartedAgain(Eui64),
    /// The two schedules may differ (RFC 9033 s13).
    Inconsistent(Eui64),
}

/// Whether a cell is one of those that beacons tell of.
pub(crate) fn is_advertised(cell: &Cell) -> bool {
    let shared = CellOptions::SHARED.with(CellOptions::RX);
    cell.kind == CellKind::Minimal && cell.peer.is_none() && cell.options.has(shared)
}

/// What a scheduling function wants of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A transaction.
    Ask(Eui64, Ask),
    /// No negotiated cell with this neighbour any more, without telling it.
    Drop(Eui64),
    /// No transaction with this neighbour before this moment.
    Quarantine(Eui64, Instant),
}

/// What a scheduling function may see and change during one event.
#[derive(Debug)]
pub struct Context<'a> {
    /// The moment of the event.
    pub now: Instant,
    /// The slot of the event.
    pub asn: Asn,
    /// How long a slot is.
    pub slot: Duration,
    /// The schedule.
    pub schedule: &'a mut Schedule,
    /// The node's stream for scheduling.
    pub rng: &'a mut Rng,
    /// The node's address.
    pub me: Eui64,
    pub(crate) actions: Vec<Action>,
}

impl<'a> Context<'a> {
    /// What a function sees of one event at `now`, in slot `asn`.
    pub(crate) fn new(
        (now, asn, slot): (Instant, Asn, Duration),
        schedule: &'a mut Schedule,
        rng: &'a mut Rng,
        me: Eui64,
    ) -> Self {
        Self { now, asn, slot, schedule, rng, me, actions: Vec::new() }
    }
    /// Asks `peer` for a transaction; it ends in one [`Event::TransactionEnded`].
    pub fn ask(&mut self, peer: Eui64, ask: Ask) {
        self.actions.push(Action::Ask(peer, ask));
    }
    /// A slotframe of this length, unless there is one with this handle.
    pub fn slotframe(&mut self, handle: u8, length: u16) {
        if self.schedule.slotframe(handle).is_none() {
            // The handle is free and lengths are at least 1, so nothing is left to refuse.
            let _added = self.schedule.add_slotframe(handle, length.max(1));
        }
    }
    /// Removes all but the cells to all neighbours that a beacon told of, or would tell of, with their slotframes: what a
    /// node has when it has joined a network, or started one.
    pub fn restart(&mut self) {
        self.remove_where(|cell| !is_advertised(cell));
        self.schedule.remove_empty_slotframes();
    }
    /// A cell, if the schedule has room for it; without it the node hears less, but goes on.
    pub fn cell(&mut self, spec: CellSpec) -> Option<CellId> {
        self.schedule.add(self.asn, spec).ok()
    }
    /// True when `cell` is one of those with `peer` in this slotframe.
    pub(crate) fn is_link(&self, cell: CellId, slotframe: u8, peer: Eui64) -> bool {
        let cell = self.schedule.get(cell);
        cell.is_some_and(|c| c.slotframe == slotframe && c.peer == Some(peer))
    }
    /// Removes the cells that `unwanted` picks.
    pub fn remove_where(&mut self, unwanted: impl Fn(&Cell) -> bool) {
        let ids: Vec<CellId> =
            self.schedule.cells().filter(|c| unwanted(c)).map(|c| c.id).collect();
        for id in ids {
            self.schedule.remove(id);
        }
    }
    /// The moment at which slot `asn` starts, as seen from this event.
    pub(crate) fn start_of(&self, asn: Asn) -> Instant {
        self.now + self.slot * asn.since(self.asn)
    }
}

/// Cells with one neighbour, for plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PeerCells {
    /// Cells to send in.
    pub tx: u16,
    /// Cells to listen in.
    pub rx: u16,
}

/// A node's cells by neighbour, for plots; those that anyone may use are not among them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// In order of address.
    pub peers: BTreeMap<Eui64, PeerCells>,
}

/// Decides which cells a node should have.
pub trait SchedulingFunction: Debug + Send {
    /// The name in its row.
    fn name(&self) -> &'static str;
    /// Whether it works only where a node knows its children.
    fn needs_children(&self) -> bool {
        false
    }
    /// Identifier in 6P messages (RFC 8480 s6.2.5); `None` for a function that does not negotiate.
    fn sfid(&self) -> Option<u8> {
        None
    }
    /// The slotframe of its negotiated cells.
    fn negotiated_slotframe(&self) -> u8 {
        crate::params::SLOTFRAME_NEGOTIATED
    }
    /// Cells in a candidate list.
    fn cell_list(&self) -> usize {
        MsfParams::MSF.cell_list
    }
    /// Most negotiated cells that one neighbour gets in one direction when it asks for them.
    fn cells_per_peer_max(&self) -> u16 {
        u16::MAX
    }
    /// How long a transaction may take (RFC 8480 s3.4.4 leaves it to the function).
    fn timeout(&self, mac: MacTiming) -> Duration {
        MsfParams::MSF.timeout(mac)
    }
    /// Something happened.
    fn handle(&mut self, context: &mut Context<'_>, event: &Event);
    /// When it wants [`Event::Deadline`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    /// What it did so far.
    fn snapshot(&self, schedule: &Schedule) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for cell in schedule.cells() {
            if let Some(peer) = cell.peer {
                let cells = snapshot.peers.entry(peer).or_default();
                cells.tx += u16::from(cell.options.has(CellOptions::TX));
                cells.rx += u16::from(cell.options.has(CellOptions::RX));
            }
        }
        snapshot
    }
}

/// Whether a node knows which neighbours route through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// It knows them: routing reports [`Event::ChildAdded`] and [`Event::ChildRemoved`], as RPL's storing mode does.
    Known,
    /// It does not, as in RPL's non-storing mode.
    Unknown,
}

/// Makes a function for one node.
pub type MakeFunction =
    fn(&Choice<dyn SchedulingFunction>, Children) -> Box<dyn SchedulingFunction>;

impl Algorithm for dyn SchedulingFunction {
    const NOUN: &'static str = "scheduling function";
    const KEY: &'static str = "schedule.function";
    const BUILTIN: &'static [&'static Row<Self>] =
        &[&msf::B_MSF, &msf::MSF, &msf::BACKLOG, &minimal::ROW, &alice::ROW, &orchestra::ROW];
    type Make = MakeFunction;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}

/// The scenario section with the parameters of all functions.
pub const SECTION: &str = "schedule";

/// A function for one node, of the kind that `choice` names and with its parameters.
///
/// ```
/// use lowmesh_registry::Registry;
/// use lowmesh_sixtop::SchedulingFunction;
/// use lowmesh_sixtop::functions::{Children, make};
///
/// let functions = Registry::<dyn SchedulingFunction>::builtin();
/// let choice = functions.choose("alice")?.with("unicast_length", 31_u64)?;
/// assert_eq!(make(&choice, Children::Known).name(), "alice");
/// assert!(functions.choose("best").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn make(
    choice: &Choice<dyn SchedulingFunction>,
    children: Children,
) -> Box<dyn SchedulingFunction> {
    (choice.row().make)(choice, children)
}

/// The length of a slotframe as a parameter.
const fn slots(key: &'static str, default: u16, low: u64, summary: &'static str) -> Parameter {
    Parameter::whole(key, default as u64, low, SLOTS_MAX as u64, summary).unit("slots")
}
