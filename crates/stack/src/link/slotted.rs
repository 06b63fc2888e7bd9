//! The coordinated link layer: TSCH and the 6top sublayer over it, as one part.
//!
//! What the MAC tells 6top (frames in cells, full and empty queues, synchronisation) and 6top the MAC
//! (messages, a changed schedule) stays in here; the node hears the rest as [`LinkEvent`]s.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_mac::frame::Content;
use lowmesh_mac::params::ETX_FRESH;
use lowmesh_mac::queue::Priority;
use lowmesh_mac::tsch::cell::{CellOptions, Placement};
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_mac::tsch::{self, FormerNetwork, Start, Tsch};
use lowmesh_machine::{Handle, Machine as _, Outbox, debug_assert_accepted, earliest};
use lowmesh_sixtop::machine::{Change, SixtopEvent};
use lowmesh_sixtop::params::{HANDLE_FIRST, MacTiming};
use lowmesh_sixtop::{Event, SchedulingFunction, Sixtop};
use lowmesh_units::{Duration, Eui64, Instant, Rng};

use super::event::LinkEvent;
use crate::config::Config;
use crate::event::{Network, Output};

/// TSCH with its scheduling function.
#[derive(Debug)]
pub(crate) struct Slotted {
    pub(crate) mac: Tsch,
    sixtop: Sixtop,
    /// Number of the schedule's last change that the MAC knows.
    seen_schedule: u64,
    /// Since when the node is synchronised without a parent.
    orphan_since: Option<Instant>,
    orphan_max: Duration,
    is_root: bool,
    /// The network of a root from before it lost its memory.
    former: Option<FormerNetwork>,
}

impl Slotted {
    /// A link layer that is off; the streams are those of purposes `Mac` and `Sixtop`.
    pub(crate) fn new(
        config: &Config,
        function: Box<dyn SchedulingFunction>,
        me: Eui64,
        is_root: bool,
        (mac_rng, sixtop_rng): (Rng, Rng),
    ) -> Self {
        let mac = &config.mac;
        let timing = MacTiming {
            slot: mac.slot,
            retries_max: mac.retries_max,
            backoff_exponent_max: mac.be_max,
        };
        Self {
            mac: Tsch::new(mac.clone(), me, mac_rng),
            sixtop: Sixtop::new(me, timing, function, sixtop_rng),
            seen_schedule: 0,
            orphan_since: None,
            orphan_max: config.orphan_max,
            is_root,
            former: None,
        }
    }

    /// What a root has to keep of its network over a restart.
    pub(crate) fn network(&self) -> Option<FormerNetwork> {
        self.mac.network().or(self.former)
    }
    /// The network of this root from before it lost its memory.
    pub(crate) const fn remember(&mut self, network: FormerNetwork) {
        self.former = Some(network);
    }

    pub(crate) fn boot(&mut self, now: Instant) {
        let start = match self.former {
            Some(former) => Start::Resume(former),
            None if self.is_root => Start::New,
            None => Start::Scan,
        };
        self.tell_mac(now, tsch::Input::Start(start));
        self.tell_sixtop(now, Event::Started { root: self.is_root });
    }

    /// Another hopping sequence.
    pub(crate) fn set_hopping(&mut self, now: Instant, hopping: HoppingSequence) {
        self.mac.set_hopping(hopping);
        self.tell_mac(now, tsch::Input::ScheduleChanged);
    }

    pub(crate) fn deadline(&mut self, now: Instant) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if due(self.mac.next_deadline()) {
            self.tell_mac(now, tsch::Input::Deadline);
        }
        if due(self.sixtop.next_deadline()) {
            self.tell_sixtop(now, Event::Deadline);
        }
        if due(self.orphan_deadline()) {
            self.orphan_since = None;
            self.tell_mac(now, tsch::Input::Leave);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let machines = earliest(self.mac.next_deadline(), self.sixtop.next_deadline());
        earliest(machines, self.orphan_deadline())
    }

    /// The time from one shared cell to all neighbours to the next.
    pub(crate) fn broadcast_period(&self) -> Option<Duration> {
        let schedule = self.mac.schedule();
        let shared = CellOptions::TX.with(CellOptions::SHARED);
        let cells = schedule.cells().filter(|cell| cell.peer.is_none() && cell.options.has(shared));
        let frames = cells.filter_map(|cell| schedule.slotframe(cell.slotframe));
        let slots = frames.map(|frame| frame.length).min()?;
        Some(self.mac.slot() * u64::from(slots))
    }

    /// When a node without a parent gives the network up.
    fn orphan_deadline(&self) -> Option<Instant> {
        Some(self.orphan_since? + self.orphan_max)
    }

    /// The next thing that the MAC has to say to the node.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<LinkEvent> {
        loop {
            match self.mac.poll_output()? {
                tsch::Output::Received { source, cell, broadcast, payload, handle } => {
                    if let (Some(cell), false) = (cell, broadcast) {
                        self.tell_sixtop(now, Event::Received { from: source, cell });
                    }
                    return Some(LinkEvent::Received { source, broadcast, payload, handle });
                }
                tsch::Output::Sixtop { source, cell, message } => {
                    if let Some(cell) = cell {
                        self.tell_sixtop(now, Event::Received { from: source, cell });
                    }
                    let event = SixtopEvent::Message { from: source, bytes: &message };
                    self.drive_sixtop(now, event);
                }
                tsch::Output::Sent { handle, destination, .. } => {
                    let acked = destination.is_some();
                    return Some(LinkEvent::Done { handle, acked, dropped: None });
                }
                tsch::Output::Dropped { dropped, .. } => {
                    let handle = dropped.handle;
                    return Some(LinkEvent::Done { handle, acked: false, dropped: Some(dropped) });
                }
                tsch::Output::Synchronised { time_source } => {
                    self.orphan_since = Some(now).filter(|_| !self.is_root);
                    self.tell_sixtop(now, Event::Synchronised);
                    self.tell_sixtop(now, Event::TimeSource(time_source));
                    return Some(LinkEvent::Up);
                }
                tsch::Output::Desynchronised => {
                    self.orphan_since = None;
                    self.tell_sixtop(now, Event::Desynchronised);
                    return Some(LinkEvent::Down);
                }
                tsch::Output::QueueBusy(peer) => self.tell_sixtop(now, Event::QueueBusy(peer)),
                tsch::Output::QueueEmpty(peer) => self.tell_sixtop(now, Event::QueueEmpty(peer)),
                tsch::Output::NeighbourGone(peer) => return Some(LinkEvent::Gone(peer)),
                tsch::Output::NeighbourSilent(peer) => return Some(LinkEvent::Silent(peer)),
                tsch::Output::NeighbourBack(peer) => return Some(LinkEvent::Back(peer)),
                tsch::Output::LinkEtx { peer, etx } => {
                    let link = self.mac.links().get(peer);
                    let fresh = link.is_some_and(|link| link.samples >= ETX_FRESH);
                    return Some(LinkEvent::Etx { peer, etx, fresh });
                }
                tsch::Output::AdjustClock { micros } => {
                    return Some(LinkEvent::Driver(Output::AdjustClock { micros }));
                }
            }
        }
    }

    /// Lets 6top say one thing; false when it is silent.
    pub(crate) fn step_sixtop(&mut self, now: Instant, outbox: &mut Outbox<Output>) -> bool {
        match self.sixtop.poll_output() {
            None => false,
            Some(lowmesh_sixtop::machine::Output::Send { to, bytes, handle }) => {
                let input = tsch::Input::Send {
                    destination: Some(to),
                    content: Content::Sixtop(&bytes),
                    priority: Priority::Control,
                    handle,
                };
                self.tell_mac(now, input);
                true
            }
            Some(lowmesh_sixtop::machine::Output::Withdraw(handle)) => {
                self.tell_mac(now, tsch::Input::Withdraw(handle));
                true
            }
            Some(lowmesh_sixtop::machine::Output::Event(change)) => {
                if let Some(cells) = cells(&change) {
                    outbox.push(Output::Network(cells));
                }
                true
            }
        }
    }

    /// Takes the end of a frame if it was one of 6top's.
    pub(crate) fn take_done(&mut self, now: Instant, handle: Handle, acked: bool) -> bool {
        let own = handle.0 >= HANDLE_FIRST;
        if own {
            self.drive_sixtop(now, SixtopEvent::FrameDone { handle, acked });
        }
        own
    }

    /// The preferred parent is another one, or none.
    pub(crate) fn on_parent(&mut self, now: Instant, old: Option<Eui64>, new: Option<Eui64>) {
        self.orphan_since = if new.is_none() { Some(now) } else { None };
        if let Some(parent) = new {
            self.tell_mac(now, tsch::Input::SetTimeSource(parent));
            self.tell_sixtop(now, Event::TimeSource(Some(parent)));
        }
        self.tell_sixtop(now, Event::ParentChanged { old, new });
    }

    pub(crate) fn tell_mac(&mut self, now: Instant, input: tsch::Input<'_>) {
        debug_assert_accepted(self.mac.handle(now, input));
    }

    pub(crate) fn tell_sixtop(&mut self, now: Instant, event: Event) {
        self.drive_sixtop(now, SixtopEvent::Event(event));
    }

    fn drive_sixtop(&mut self, now: Instant, event: SixtopEvent<'_>) {
        let asn = self.mac.asn(now);
        let schedule = self.mac.schedule_mut(now);
        let input = lowmesh_sixtop::machine::Input { asn, schedule, event };
        debug_assert_accepted(self.sixtop.handle(now, input));
        let generation = self.mac.schedule().generation();
        if generation != self.seen_schedule {
            self.seen_schedule = generation;
            self.tell_mac(now, tsch::Input::ScheduleChanged);
        }
    }
}

/// A change of negotiated cells as a fact for the record.
fn cells(change: &Change) -> Option<Network> {
    let (what, cell) = match change {
        Change::Added(cell) => ("added", cell),
        Change::Removed(cell) => ("removed", cell),
        _ => return None,
    };
    let place = match cell.placement {
        Placement::Fixed { slot, channel_offset } => (slot, channel_offset),
        hashed @ Placement::Hashed { .. } => hashed.at(0, 1),
    };
    let cells = Vec::from([place]);
    cell.peer.map(|peer| Network::Cells { peer, what, cells })
}
