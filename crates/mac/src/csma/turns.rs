//! The queue of a node among strangers: a share for each neighbour, and neighbours that acknowledge go first.
//!
//! A frame to a neighbour that does not acknowledge takes the air for all its copies, some forty times as long as another.
//! Without a share, any peer that a node answers could stop it.
//!
//! | bound | total | share | the next one |
//! |---|---|---|---|
//! | frames in the queue | `queue_frames_max` | a neighbour has as many as are free; all to which no frame has ended, together as many; all that did not acknowledge, together as many | to a neighbour that acknowledges: displaces the last frame to a silent neighbour, or else to an untried one; to any other: is dropped, `queue_full` |
//! | turns | | one frame in [`TURNS_BEFORE_SILENT`] to a neighbour that does not acknowledge | waits |
//! | copies of frames | | [`SILENT_COPIES`](crate::params::SILENT_COPIES) a second, to all that do not acknowledge | the first copy waits; a later one does not leave |
//!
//! Broadcasts count as acknowledged, and have a share like a neighbour's. A frame to a neighbour that does not acknowledge
//! waits behind all others, whatever its priority, and one to a neighbour that was not tried goes before those that failed.

use lowmesh_shares::Rate;
use lowmesh_units::{Eui64, Instant};

use crate::link::LinkTable;
use crate::params::TURNS_BEFORE_SILENT;
use crate::queue::{FrameQueue, Priority, QueuedFrame, free_places};

/// Who has had turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// Frames that went before the first one to a neighbour that does not acknowledge.
    before_silent: u8,
    /// When a frame to such a neighbour may leave, if all that wait are of them.
    resumes: Option<Instant>,
}

/// What is known of a destination; the first go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Acknowledges,
    /// No frame to it has ended yet.
    Untried,
    Silent,
}

fn standing(links: &LinkTable, destination: Option<Eui64>) -> Standing {
    let Some(peer) = destination else { return Standing::Acknowledges };
    match links.get(peer) {
        Some(link) if link.acknowledges() => Standing::Acknowledges,
        Some(link) if !link.is_untried() => Standing::Silent,
        _ => Standing::Untried,
    }
}

/// Whether frames to `destination` are acknowledged.
pub(super) fn acknowledges(links: &LinkTable, destination: Option<Eui64>) -> bool {
    standing(links, destination) == Standing::Acknowledges
}

/// Whether another frame to `destination` may wait.
pub(super) fn admits(
    queue: &FrameQueue,
    links: &LinkTable,
    frames_max: usize,
    destination: Option<Eui64>,
    priority: Priority,
) -> bool {
    let free = free_places(queue.len(), frames_max, priority);
    let held = |is_one: &dyn Fn(&QueuedFrame) -> bool| queue.iter().filter(|f| is_one(f)).count();
    let own = held(&|frame| frame.destination == destination);
    let class = standing(links, destination);
    let is_alike = |frame: &QueuedFrame| standing(links, frame.destination) == class;
    own < free && (class == Standing::Acknowledges || held(&is_alike) < free)
}

/// The index of the frame that a frame to `destination` displaces, if `destination` acknowledges: the last one to a silent
/// neighbour, or else to an untried one.
pub(super) fn displaced(
    queue: &FrameQueue,
    links: &LinkTable,
    destination: Option<Eui64>,
) -> Option<usize> {
    if !acknowledges(links, destination) {
        return None;
    }
    let standings = queue.iter().map(|frame| standing(links, frame.destination)).enumerate();
    let (place, last) = standings.max_by_key(|(place, standing)| (*standing, *place))?;
    (last != Standing::Acknowledges).then_some(place)
}

impl Turns {
    /// When to ask again, if [`Turns::next`] let frames wait.
    pub const fn resumes(&self) -> Option<Instant> {
        self.resumes
    }

    /// Takes the frame whose turn it is; `copies` are those that may leave to neighbours that do not acknowledge.
    pub fn next(
        &mut self,
        now: Instant,
        queue: &mut FrameQueue,
        links: &LinkTable,
        copies: &mut Rate,
    ) -> Option<QueuedFrame> {
        self.resumes = None;
        let place = |class: Standing| {
            queue.iter().position(|frame| standing(links, frame.destination) == class)
        };
        let others = place(Standing::Untried).or_else(|| place(Standing::Silent));
        let place = match (place(Standing::Acknowledges), others) {
            (Some(first), Some(_)) if self.before_silent < TURNS_BEFORE_SILENT => {
                self.before_silent += 1;
                first
            }
            (_, Some(silent)) if copies.take(now) => {
                self.before_silent = 0;
                silent
            }
            (None, Some(_)) => {
                self.resumes = copies.next(now);
                return None;
            }
            (first, _) => first?,
        };
        queue.take(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lowmesh_machine::Handle;
    use lowmesh_units::{Dbm, Duration, NodeId};

    const FRAMES_MAX: usize = 16;

    fn eui(node: u16) -> Eui64 {
        NodeId(node).eui64()
    }

    /// A table in which `known` acknowledge.
    fn links(known: &[u16]) -> LinkTable {
        let mut links = LinkTable::default();
        for &node in known {
            links.note_heard(Instant::ZERO, eui(node), Dbm(-60.0));
            links.note_sent(Instant::ZERO, eui(node), 1, true);
        }
        links
    }

    fn fill(queue: &mut FrameQueue, links: &LinkTable, to: Option<u16>, count: usize) -> usize {
        let before = queue.len();
        for _ in 0..count {
            let (destination, priority) = (to.map(eui), Priority::Data);
            if admits(queue, links, FRAMES_MAX, destination, priority) {
                let (octets, handle) = (Vec::new(), Handle::NONE);
                let (is_advertisement, is_advice) = (false, false);
                let frame = QueuedFrame {
                    octets,
                    destination,
                    handle,
                    priority,
                    is_advertisement,
                    is_advice,
                    transmissions: 0,
                    refusals: 0,
                };
                queue.insert(frame);
            }
        }
        queue.len() - before
    }

    #[test]
    fn a_neighbour_holds_no_more_than_is_free() {
        let (mut queue, links) = (FrameQueue::default(), links(&[1, 2]));
        assert_eq!(fill(&mut queue, &links, Some(1), 99), 8);
        assert_eq!(fill(&mut queue, &links, Some(2), 99), 4);
        assert_eq!(fill(&mut queue, &links, None, 99), 2);
    }

    #[test]
    fn neighbours_that_do_not_acknowledge_leave_half_of_the_queue() {
        let (mut queue, links) = (FrameQueue::default(), links(&[1]));
        let silent: usize = (100..200).map(|n| fill(&mut queue, &links, Some(n), 99)).sum();
        assert_eq!(silent, 8);
        assert_eq!(fill(&mut queue, &links, Some(1), 99), 4);
    }

    #[test]
    fn a_frame_to_a_neighbour_that_acknowledges_displaces_others_the_silent_first() {
        let (mut queue, mut links) = (FrameQueue::default(), links(&[1]));
        links.note_heard(Instant::ZERO, eui(9), Dbm(-60.0));
        links.note_sent(Instant::ZERO, eui(9), 1, false);
        for (to, count) in [(9, 2), (1, 1), (100, 1), (101, 1)] {
            assert_eq!(fill(&mut queue, &links, Some(to), count), count);
        }
        for stranger in [9, 100, 102] {
            assert_eq!(displaced(&queue, &links, Some(eui(stranger))), None);
        }
        let order: Vec<_> = core::iter::from_fn(|| {
            let place = displaced(&queue, &links, Some(eui(1)))?;
            queue.take(place)?.destination
        })
        .collect();
        assert_eq!(order, [9, 9, 101, 100].map(eui));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn frames_to_silent_neighbours_wait_for_eight_others_and_no_longer() {
        let (mut queue, links) = (FrameQueue::default(), links(&[1]));
        fill(&mut queue, &links, Some(9), 2);
        let (mut turns, mut copies) = (Turns::default(), Rate::new(9, Duration::from_secs(1)));
        let mut order = Vec::new();
        for _ in 0..20 {
            fill(&mut queue, &links, Some(1), 1);
            let frame = turns.next(Instant::ZERO, &mut queue, &links, &mut copies);
            let frame = frame.expect("a frame waits");
            order.push(frame.destination == Some(eui(9)));
        }
        let silent: Vec<_> = (0..20).filter(|at| order[*at]).collect();
        assert_eq!(silent, [8, 17]);
    }

    #[test]
    fn without_copies_left_frames_to_silent_neighbours_wait_and_others_do_not() {
        let (mut queue, links) = (FrameQueue::default(), links(&[1]));
        fill(&mut queue, &links, Some(9), 3);
        let (mut turns, mut copies) = (Turns::default(), Rate::new(2, Duration::from_secs(1)));
        let now = Instant::from_secs(5);
        let mut next = |queue: &mut FrameQueue, turns: &mut Turns| {
            turns.next(now, queue, &links, &mut copies).and_then(|frame| frame.destination)
        };
        assert_eq!(next(&mut queue, &mut turns), Some(eui(9)));
        assert_eq!(next(&mut queue, &mut turns), Some(eui(9)));
        assert_eq!(
            (next(&mut queue, &mut turns), turns.resumes()),
            (None, Some(now + Duration::from_millis(500)))
        );
        fill(&mut queue, &links, Some(1), 1);
        assert_eq!((next(&mut queue, &mut turns), turns.resumes()), (Some(eui(1)), None));
    }

    #[test]
    fn a_neighbour_that_was_not_tried_goes_before_those_that_failed_and_has_places_of_its_own() {
        let (mut queue, mut links) = (FrameQueue::default(), LinkTable::default());
        links.note_heard(Instant::ZERO, eui(9), Dbm(-60.0));
        links.note_sent(Instant::ZERO, eui(9), 1, false);
        assert_eq!(fill(&mut queue, &links, Some(9), 99), 8);
        assert_eq!(fill(&mut queue, &links, Some(1), 99), 4);
        let (mut turns, mut copies) = (Turns::default(), Rate::new(9, Duration::from_secs(1)));
        let next = turns.next(Instant::ZERO, &mut queue, &links, &mut copies);
        assert_eq!(next.and_then(|frame| frame.destination), Some(eui(1)));
    }
}
