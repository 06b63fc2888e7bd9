//! The queue of a node among strangers: a share for each neighbour, and neighbours that acknowledge go first.
//!
//! A frame to a neighbour that does not acknowledge takes the air for all its copies, some forty times as long as another.
//! Without a share, any peer that a node answers could stop it.
//!
//! | bound | total | share | the next one |
//! |---|---|---|---|
//! | frames in the queue | `queue_frames_max` | a neighbour has as many as are free; all that do not acknowledge, together as many | is dropped, `queue_full` |
//! | turns | | one frame in [`TURNS_BEFORE_SILENT`] to a neighbour that does not acknowledge | waits |
//!
//! Broadcasts count as acknowledged, and have a share like a neighbour's.

use lowmesh_units::Eui64;

use crate::link::LinkTable;
use crate::params::TURNS_BEFORE_SILENT;
use crate::queue::{FrameQueue, Priority, QueuedFrame, free_places};

/// Who has had turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// Frames that went before the first one to a neighbour that does not acknowledge.
    before_silent: u8,
}

fn acknowledges(links: &LinkTable, destination: Option<Eui64>) -> bool {
    destination.is_none_or(|peer| links.get(peer).is_some_and(|link| link.acknowledges))
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
    let is_silent = |frame: &QueuedFrame| !acknowledges(links, frame.destination);
    own < free && (acknowledges(links, destination) || held(&is_silent) < free)
}

impl Turns {
    /// Takes the frame whose turn it is.
    pub fn next(&mut self, queue: &mut FrameQueue, links: &LinkTable) -> Option<QueuedFrame> {
        let place = |silent: bool| {
            queue.iter().position(|frame| acknowledges(links, frame.destination) != silent)
        };
        let place = match (place(false), place(true)) {
            (Some(first), Some(_)) if self.before_silent < TURNS_BEFORE_SILENT => {
                self.before_silent += 1;
                first
            }
            (_, Some(silent)) => {
                self.before_silent = 0;
                silent
            }
            (first, None) => first?,
        };
        queue.take(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lowmesh_machine::Handle;
    use lowmesh_units::{Dbm, Instant, NodeId};

    const FRAMES_MAX: usize = 16;

    fn eui(node: u16) -> Eui64 {
        NodeId(node).eui64()
    }

    /// A table in which `known` acknowledge.
    fn links(known: &[u16]) -> LinkTable {
        let mut links = LinkTable::default();
        for &node in known {
            links.note_heard(Instant::ZERO, eui(node), Dbm(-60.0));
            links.note_sent(eui(node), 1, true);
        }
        links
    }

    fn fill(queue: &mut FrameQueue, links: &LinkTable, to: Option<u16>, count: usize) -> usize {
        let before = queue.len();
        for _ in 0..count {
            let (destination, priority) = (to.map(eui), Priority::Data);
            if admits(queue, links, FRAMES_MAX, destination, priority) {
                let (octets, handle) = (Vec::new(), Handle::NONE);
                let is_advertisement = false;
                let frame = QueuedFrame {
                    octets,
                    destination,
                    handle,
                    priority,
                    is_advertisement,
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
    fn frames_to_silent_neighbours_wait_for_eight_others_and_no_longer() {
        let (mut queue, links) = (FrameQueue::default(), links(&[1]));
        fill(&mut queue, &links, Some(9), 2);
        let mut turns = Turns::default();
        let mut order = Vec::new();
        for _ in 0..20 {
            fill(&mut queue, &links, Some(1), 1);
            let frame = turns.next(&mut queue, &links).expect("a frame waits");
            order.push(frame.destination == Some(eui(9)));
        }
        let silent: Vec<_> = (0..20).filter(|at| order[*at]).collect();
        assert_eq!(silent, [8, 17]);
    }
}
