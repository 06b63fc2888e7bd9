//! A handful of nodes in virtual time: frames take a moment, get lost, and so do acknowledgements.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions, Placement};
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_machine::{Handle, Machine};
use lowmesh_units::{Asn, Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};

use crate::functions::{Event, SchedulingFunction};
use crate::machine::{Change, Input, Output, Sixtop, SixtopEvent};
use crate::params::MacTiming;

/// Length of a timeslot.
pub const SLOT: Duration = Duration::from_millis(10);
/// Tries of one frame, as of a MAC with three retries.
const TRIES: usize = 4;
/// Its 6P timeout is 94 s with MSF, 29 s with B-MSF.
const MAC: MacTiming = MacTiming { slot: SLOT, retries_max: 3, backoff_exponent_max: 5 };

/// The address of a node.
pub fn eui(node: usize) -> Eui64 {
    NodeId(node as u16).eui64()
}

/// One node: 6top with its schedule, without a MAC.
#[derive(Debug)]
pub struct Node {
    /// 6top with the function.
    pub sixtop: Sixtop,
    /// The cells.
    pub schedule: Schedule,
    /// What 6top reported.
    pub changes: Vec<Change>,
    /// Frames that were handed over and not taken back.
    pub handed: BTreeSet<Handle>,
    /// All messages that were handed over.
    pub sent: Vec<Vec<u8>>,
}

/// Use of all cells from one node to another: this share of them carries a frame.
#[derive(Debug)]
struct Flow {
    from: usize,
    to: usize,
    share: f64,
    carry: f64,
}

/// The nodes, of which the first is the root.
#[derive(Debug)]
pub struct Net {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The time.
    pub now: Instant,
    /// The share of frames that is lost.
    pub loss: f64,
    /// The MAC finds no slot for any frame.
    pub stuck: bool,
    /// Cells by slot and channel offset in which nothing is ever acknowledged.
    pub jammed: Option<(u16, u16)>,
    flows: Vec<Flow>,
    rng: Rng,
    queue: BTreeMap<(Instant, u64), (usize, Arrival)>,
    sequence: u64,
    counted: Asn,
}

#[derive(Debug)]
enum Arrival {
    Message(Eui64, Vec<u8>),
    Done(Handle, bool),
}

impl Net {
    /// `count` nodes, each with a function that `function` makes: the root has started, and the others are synchronised.
    pub fn new(
        count: usize,
        loss: f64,
        seed: u64,
        function: impl Fn() -> Box<dyn SchedulingFunction>,
    ) -> Self {
        let stream = |n: usize| Rng::stream(Seed(seed), NodeId(n as u16), Purpose::Sixtop);
        let node = |n: usize| Node {
            sixtop: Sixtop::new(eui(n), MAC, function(), stream(n)),
            schedule: Schedule::new(),
            changes: Vec::new(),
            handed: BTreeSet::new(),
            sent: Vec::new(),
        };
        let mut net = Self {
            nodes: (0..count).map(node).collect(),
            now: Instant::ZERO,
            loss,
            stuck: false,
            jammed: None,
            flows: Vec::new(),
            rng: Rng::stream(Seed(seed), NodeId(0), Purpose::Reception),
            queue: BTreeMap::new(),
            sequence: 0,
            counted: Asn(0),
        };
        for n in 0..count {
            net.tell(n, Event::Started { root: n == 0 });
            if n > 0 {
                net.tell(n, Event::Synchronised);
            }
        }
        net
    }

    /// The current slot.
    pub fn asn(&self) -> Asn {
        Asn::containing(self.now, SLOT)
    }

    /// `child` has `parent` from now on, and both are told.
    pub fn attach(&mut self, child: usize, old: Option<usize>, parent: usize) {
        let (old, new) = (old.map(eui), Some(eui(parent)));
        self.tell(child, Event::TimeSource(new));
        self.tell(child, Event::ParentChanged { old, new });
        self.tell(parent, Event::ChildAdded(eui(child)));
    }

    /// Sends from one node to another in this share of its cells.
    pub fn flow(&mut self, from: usize, to: usize, share: f64) {
        self.account();
        self.flows.retain(|f| (f.from, f.to) != (from, to));
        self.flows.push(Flow { from, to, share, carry: 0.0 });
    }

    /// Passes an event to a node's function.
    pub fn tell(&mut self, node: usize, event: Event) {
        self.handle(node, SixtopEvent::Event(event));
    }

    /// Passes an input to a node.
    pub fn handle(&mut self, node: usize, event: SixtopEvent<'_>) {
        let (now, asn) = (self.now, self.asn());
        let at = &mut self.nodes[node];
        let input = Input { asn, schedule: &mut at.schedule, event };
        at.sixtop.handle(now, input).expect("6top accepts every input");
        while let Some(output) = self.nodes[node].sixtop.poll_output() {
            match output {
                Output::Send { to, bytes, handle } => {
                    self.nodes[node].handed.insert(handle);
                    self.nodes[node].sent.push(bytes.clone());
                    if !self.stuck {
                        self.transmit(node, to, &bytes, handle);
                    }
                }
                Output::Withdraw(handle) => {
                    assert!(self.nodes[node].handed.remove(&handle), "it was never handed over");
                }
                Output::Event(change) => self.nodes[node].changes.push(change),
            }
        }
    }

    /// One frame with its retries: the MAC drops copies, so the message arrives once at most.
    fn transmit(&mut self, from: usize, to: Eui64, bytes: &[u8], handle: Handle) {
        let mut at = self.now;
        let (mut heard, mut acked) = (false, false);
        for _ in 0..TRIES {
            at += Duration::from_millis(u64::from(100 + self.rng.below(900)));
            if self.rng.chance(self.loss) {
                continue;
            }
            let receiver = (0..self.nodes.len()).find(|n| eui(*n) == to);
            if let (Some(receiver), false) = (receiver, heard) {
                heard = true;
                self.post(at, receiver, Arrival::Message(eui(from), bytes.to_vec()));
            }
            acked = receiver.is_some() && !self.rng.chance(self.loss / 3.0);
            if acked {
                break;
            }
        }
        self.post(at, from, Arrival::Done(handle, acked));
    }

    fn post(&mut self, at: Instant, node: usize, arrival: Arrival) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), (node, arrival));
    }

    /// Runs until `until`, and at least answers every deadline before it.
    pub fn run_until(&mut self, until: Instant) {
        loop {
            let deadlines = self.nodes.iter().enumerate();
            let due =
                deadlines.filter_map(|(n, node)| Some((node.sixtop.next_deadline()?, n))).min();
            let frame = self.queue.keys().next().copied();
            let next = due.map(|(at, _)| at).into_iter().chain(frame.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            self.account();
            match (frame, due) {
                (Some(key), _) if key.0 == next => {
                    let (node, arrival) = self.queue.remove(&key).expect("its key is there");
                    match arrival {
                        Arrival::Message(from, bytes) => {
                            self.handle(node, SixtopEvent::Message { from, bytes: &bytes });
                        }
                        Arrival::Done(handle, acked) => {
                            self.nodes[node].handed.remove(&handle);
                            self.handle(node, SixtopEvent::FrameDone { handle, acked });
                        }
                    }
                }
                (_, Some((_, node))) => self.tell(node, Event::Deadline),
                (_, None) => break,
            }
        }
        self.now = until;
        self.account();
    }

    /// Runs for so long.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Notes what the flows did in the cells since the last time.
    fn account(&mut self) {
        let (from, until) = (self.counted, self.asn());
        self.counted = until;
        let mut flows = core::mem::take(&mut self.flows);
        for flow in &mut flows {
            for cell in self.tx(flow.from, flow.to) {
                let occurred = self.nodes[flow.from].schedule.occurrences(&cell, from, until);
                flow.carry += occurred as f64 * flow.share;
                let sent = flow.carry as u32;
                flow.carry -= f64::from(sent);
                let jammed = self.jammed.is_some_and(|(slot, channel_offset)| {
                    cell.placement == Placement::Fixed { slot, channel_offset }
                });
                let other = self.rx(flow.to, flow.from);
                let listens = other.iter().find(|c| c.placement == cell.placement && !jammed);
                let acked = if listens.is_some() { sent } else { 0 };
                self.nodes[flow.from].schedule.note_use(cell.id, |u| {
                    u.sent += sent;
                    u.acked += acked;
                });
                if let Some(listens) = listens {
                    self.nodes[flow.to].schedule.note_use(listens.id, |u| u.received += sent);
                }
            }
        }
        self.flows = flows;
    }

    fn negotiated(&self, node: usize, peer: usize, options: CellOptions) -> Vec<Cell> {
        let wanted = |c: &&Cell| {
            c.kind == CellKind::Negotiated && c.peer == Some(eui(peer)) && c.options == options
        };
        self.nodes[node].schedule.cells().filter(wanted).copied().collect()
    }
    /// The negotiated cells in which a node sends to a peer.
    pub fn tx(&self, node: usize, peer: usize) -> Vec<Cell> {
        self.negotiated(node, peer, CellOptions::TX)
    }
    /// The negotiated cells in which a node listens to a peer.
    pub fn rx(&self, node: usize, peer: usize) -> Vec<Cell> {
        self.negotiated(node, peer, CellOptions::RX)
    }

    /// The pairs of nodes whose negotiated cells differ.
    pub fn disagreements(&self) -> Vec<(usize, usize)> {
        let places = |cells: Vec<Cell>| {
            let mut places: Vec<String> =
                cells.iter().map(|c| format!("{:?}", c.placement)).collect();
            places.sort();
            places
        };
        let count = self.nodes.len();
        let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
        pairs.filter(|(a, b)| places(self.tx(*a, *b)) != places(self.rx(*b, *a))).collect()
    }
}
