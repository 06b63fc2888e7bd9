//! Frames that wait for the transmitter, in one of two disciplines.
//!
//! - [`Access::Backoff`]: one queue. The transmitter repeats a frame itself.
//! - [`Access::Neighbours`]: Contiki before NG, CSMA over NullRDC (`core/net/mac/csma.c` and `nullrdc.c` of 2014).
//!
//! ```text
//!   a queue for each neighbour       │ due        while copies succeed: the next of this burst, at once
//!   ┌───┬───┬───┐                    v
//!   │ 3 │ 2 │ 1 ├──> CCA, copy ──────┼── sent ───> free queue, or due again in `unit`
//!   └───┴───┴───┘    ^               └── failed ─> due in unit + uniform [0, 2^k unit), k = copies, at most 3
//!                    └─────────────────────────────┘
//! ```
//! A busy channel is no copy: such a frame is tried again without bound.
//!
//! NullRDC sends inside of the processor: from the CCA to the acknowledgement, and through a burst, the node does nothing
//! else. A frame that comes in this time looks for a queue when the processor is free again.
//!
//! | bound | total | share | the next one |
//! |---|---|---|---|
//! | frames, those that look for a queue included | `queue_frames_max` | none | is dropped, `queue_full` |
//! | queues of neighbours | `queues_max` | one a neighbour | is dropped, `queue_full` |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_shares::Rate;
use lowmesh_units::{Duration, Eui64, Instant, Rng};

use super::config::{Access, Config};
use super::turns::{self, Turns};
use crate::link::LinkTable;
use crate::params::{CONTIKI_BACKOFF_TICKS, CONTIKI_DOUBLINGS_MAX};
use crate::queue::{FrameQueue, Priority, QueuedFrame, has_room};

/// What waits.
#[derive(Debug)]
pub(super) enum Waiting {
    /// In one queue.
    One {
        /// The queue.
        queue: FrameQueue,
        /// Whose turn it is, where neighbours share the queue.
        turns: Turns,
    },
    /// In a queue for each neighbour.
    Neighbours(Neighbours),
}

impl Waiting {
    /// No frames, in the discipline of `config`.
    pub fn new(config: &Config) -> Self {
        match config.access {
            Access::Backoff => Self::One { queue: FrameQueue::default(), turns: Turns::default() },
            Access::Neighbours { queues_max, unit } => {
                let (lines, late) = (Vec::new(), VecDeque::new());
                Self::Neighbours(Neighbours { lines, late, queues_max, unit })
            }
        }
    }

    /// All frames.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedFrame> + '_ {
        let (one, neighbours) = match self {
            Self::One { queue, .. } => (Some(queue), None),
            Self::Neighbours(neighbours) => (None, Some(neighbours)),
        };
        let one = one.into_iter().flat_map(FrameQueue::iter);
        one.chain(neighbours.into_iter().flat_map(Neighbours::iter))
    }

    /// Whether another frame to `destination` may wait; `is_busy` when the transmitter holds one.
    pub fn admits(
        &self,
        config: &Config,
        links: &LinkTable,
        destination: Option<Eui64>,
        priority: Priority,
        is_busy: bool,
    ) -> bool {
        let frames_max = config.queue_frames_max;
        match self {
            Self::One { queue, .. } if config.shares_queue => {
                turns::admits(queue, links, frames_max, destination, priority)
            }
            Self::One { queue, .. } => has_room(queue.len(), frames_max, priority),
            Self::Neighbours(neighbours) => {
                let held = self.iter().count() + usize::from(is_busy);
                held < frames_max && (is_busy || neighbours.admits(destination))
            }
        }
    }

    /// Takes the frame that another one to `destination`, which is not admitted, displaces.
    pub fn displace(
        &mut self,
        config: &Config,
        links: &LinkTable,
        destination: Option<Eui64>,
    ) -> Option<QueuedFrame> {
        match self {
            Self::One { queue, .. } if config.shares_queue => {
                let place = turns::displaced(queue, links, destination)?;
                queue.take(place)
            }
            _ => None,
        }
    }

    /// Adds a frame that was admitted; `is_busy` when the transmitter holds one.
    pub fn insert(
        &mut self,
        now: Instant,
        config: &Config,
        links: &LinkTable,
        frame: QueuedFrame,
        is_busy: bool,
    ) {
        match self {
            Self::One { queue, .. }
                if config.shares_queue && !turns::acknowledges(links, frame.destination) =>
            {
                queue.push_back(frame);
            }
            Self::One { queue, .. } => queue.insert(frame),
            Self::Neighbours(neighbours) if is_busy => neighbours.late.push_back(frame),
            Self::Neighbours(neighbours) => neighbours.insert(now, frame),
        }
    }

    /// The transmitter is free: gives queues to the frames that came while it was not. Returns a frame that finds none;
    /// the caller asks until there is no other.
    pub fn settle_late(&mut self, now: Instant) -> Option<QueuedFrame> {
        let Self::Neighbours(neighbours) = self else { return None };
        if neighbours.lines.iter().any(|line| line.burst > 0) {
            return None;
        }
        while let Some(frame) = neighbours.late.pop_front() {
            if !neighbours.admits(frame.destination) {
                return Some(frame);
            }
            neighbours.insert(now, frame);
        }
        None
    }

    /// Takes the frame whose turn it is; `copies` are those that may leave to neighbours that do not acknowledge.
    pub fn next(
        &mut self,
        now: Instant,
        config: &Config,
        links: &LinkTable,
        copies: &mut Rate,
    ) -> Option<QueuedFrame> {
        match self {
            Self::One { queue, turns } if config.shares_queue => {
                turns.next(now, queue, links, copies)
            }
            Self::One { queue, .. } => queue.pop(),
            Self::Neighbours(neighbours) => neighbours.next(now),
        }
    }

    /// A frame to `destination` came to its end: sent or given up.
    pub fn ended(&mut self, now: Instant, destination: Option<Eui64>, is_sent: bool) {
        if let Self::Neighbours(neighbours) = self {
            neighbours.ended(now, destination, is_sent);
        }
    }

    /// Puts a frame back that is due again after a back-off.
    pub fn defer(&mut self, now: Instant, frame: QueuedFrame, rng: &mut Rng) {
        match self {
            Self::One { queue, .. } => queue.insert(frame),
            Self::Neighbours(neighbours) => neighbours.defer(now, frame, rng),
        }
    }

    /// When the next frame is due, where frames have times or wait for others.
    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::One { turns, .. } => turns.resumes(),
            Self::Neighbours(neighbours) => {
                neighbours.lines.iter().filter_map(|line| line.due).min()
            }
        }
    }
}

/// Queues of neighbours, in the order in which they began.
#[derive(Debug)]
pub(super) struct Neighbours {
    lines: Vec<Line>,
    /// Frames that came while the processor sent.
    late: VecDeque<QueuedFrame>,
    queues_max: usize,
    unit: Duration,
}

/// The frames to one neighbour, or to everyone.
#[derive(Debug)]
struct Line {
    peer: Option<Eui64>,
    /// Without the frame that the transmitter holds.
    frames: VecDeque<QueuedFrame>,
    /// When the first frame has its turn; `None` while the transmitter holds a frame of this queue.
    due: Option<Instant>,
    /// Frames that still follow each other in this burst.
    burst: usize,
}

impl Neighbours {
    fn iter(&self) -> impl Iterator<Item = &QueuedFrame> + '_ {
        self.lines.iter().flat_map(|line| line.frames.iter()).chain(&self.late)
    }

    fn admits(&self, destination: Option<Eui64>) -> bool {
        self.lines.len() < self.queues_max || self.lines.iter().any(|line| line.peer == destination)
    }

    fn insert(&mut self, now: Instant, frame: QueuedFrame) {
        let peer = frame.destination;
        if let Some(line) = self.lines.iter_mut().find(|line| line.peer == peer) {
            line.frames.push_back(frame);
            return;
        }
        let frames = VecDeque::from([frame]);
        self.lines.push(Line { peer, frames, due: Some(now), burst: 0 });
    }

    fn next(&mut self, now: Instant) -> Option<QueuedFrame> {
        let is_due = |line: &&mut Line| line.due.is_some_and(|due| due <= now);
        // Within a burst nothing comes between.
        let key = |line: &&mut Line| (line.burst == 0, line.due);
        let line = self.lines.iter_mut().filter(is_due).min_by_key(key)?;
        line.burst = if line.burst == 0 { line.frames.len() } else { line.burst };
        line.due = None;
        line.frames.pop_front()
    }

    fn ended(&mut self, now: Instant, destination: Option<Eui64>, is_sent: bool) {
        let Some(place) = self.lines.iter().position(|line| line.peer == destination) else {
            return;
        };
        let line = &mut self.lines[place];
        if line.frames.is_empty() {
            self.lines.remove(place);
            return;
        }
        line.burst = if is_sent { line.burst.saturating_sub(1) } else { 0 };
        line.due = Some(if line.burst > 0 { now } else { now + self.unit });
    }

    fn defer(&mut self, now: Instant, frame: QueuedFrame, rng: &mut Rng) {
        let doublings = u32::from(frame.transmissions).min(CONTIKI_DOUBLINGS_MAX);
        let drawn = rng.below(CONTIKI_BACKOFF_TICKS << doublings);
        let delay = self.unit + self.unit * u64::from(drawn) / u64::from(CONTIKI_BACKOFF_TICKS);
        if let Some(line) = self.lines.iter_mut().find(|line| line.peer == frame.destination) {
            line.frames.push_front(frame);
            (line.due, line.burst) = (Some(now + delay), 0);
        }
    }
}
