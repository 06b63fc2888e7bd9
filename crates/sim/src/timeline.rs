//! The timelines of datagrams in recoverable fragments: what happened at the node that cut them, step by step.
//!
//! A run has thousands of them and a figure shows two, so only what is under way and the two that show most are kept:
//! one that arrived and one that was given up.

use std::collections::BTreeMap;

use lowmesh_lowpan::recover::{Ending, Event, Step};
use lowmesh_machine::Handle;
use lowmesh_units::{Instant, NodeId};

/// Steps of a timeline; longer ones, which only large numbers of retries make, are not kept.
const STEPS_MAX: usize = 1000;

/// One datagram in recoverable fragments, as its sender saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramTimeline {
    /// The sender.
    pub node: NodeId,
    /// How the datagram ended.
    pub ending: Ending,
    /// What happened and when, from the first fragment to the end.
    pub steps: Vec<(Instant, Step)>,
}

impl DatagramTimeline {
    fn count(&self, counted: impl Fn(Event) -> usize) -> usize {
        self.steps.iter().map(|(_, step)| counted(step.event)).sum()
    }

    /// How much a timeline shows, in the order of Lenders et al. (2021, figure 19): up to two timeouts, a gap that
    /// changes, a mark of congestion; then the fragments that were lost.
    fn shows(&self) -> (usize, bool, bool, usize) {
        let timeouts = self.count(|event| usize::from(event == Event::TimedOut));
        let marks = self.count(|event| usize::from(event == Event::Marked));
        let lost = self.count(|event| match event {
            Event::Lost(lost) => usize::from(lost),
            _ => 0,
        });
        let mut pairs = self.steps.windows(2);
        let gap_changes = pairs.any(|pair| pair[0].1.gap != pair[1].1.gap);
        (timeouts.min(2), gap_changes, marks > 0, lost)
    }
}

/// The timelines of a run.
#[derive(Debug, Default)]
pub(crate) struct DatagramTimelines {
    open: BTreeMap<(NodeId, Handle), Vec<(Instant, Step)>>,
    delivered: Option<DatagramTimeline>,
    given_up: Option<DatagramTimeline>,
}

impl DatagramTimelines {
    /// Takes a step of a datagram of `node`.
    pub fn note(&mut self, now: Instant, node: NodeId, step: Step) {
        let key = (node, step.handle);
        let steps = self.open.entry(key).or_default();
        if steps.len() < STEPS_MAX {
            steps.push((now, step));
        }
        let Event::Ended(ending) = step.event else { return };
        let steps = self.open.remove(&key).unwrap_or_default();
        if steps.len() < STEPS_MAX {
            self.weigh(DatagramTimeline { node, ending, steps });
        }
    }

    fn weigh(&mut self, timeline: DatagramTimeline) {
        let best = match timeline.ending {
            Ending::Delivered => &mut self.delivered,
            Ending::Refused | Ending::GaveUp | Ending::Unasked => &mut self.given_up,
        };
        if best.as_ref().is_none_or(|best| timeline.shows() > best.shows()) {
            *best = Some(timeline);
        }
    }

    /// Those that show most: of those that arrived, and of the others.
    pub fn chosen(self) -> Vec<DatagramTimeline> {
        [self.delivered, self.given_up].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Duration;

    use super::*;

    const GAP: Duration = Duration::from_millis(1);
    const NODE: NodeId = NodeId(3);

    fn step(handle: u64, event: Event) -> Step {
        Step { handle: Handle(handle), event, window: 2, gap: GAP }
    }

    /// Tells the events of a datagram, a second apart.
    fn tell(timelines: &mut DatagramTimelines, handle: u64, events: &[Event]) {
        for (second, event) in events.iter().enumerate() {
            timelines.note(Instant::from_secs(second as u64), NODE, step(handle, *event));
        }
    }

    fn handles(timelines: DatagramTimelines) -> Vec<u64> {
        timelines.chosen().iter().map(|timeline| timeline.steps[0].1.handle.0).collect()
    }

    #[test]
    fn one_that_arrived_and_one_that_was_given_up_are_kept_with_all_their_steps() {
        let mut timelines = DatagramTimelines::default();
        tell(&mut timelines, 1, &[Event::Sent, Event::Acked(1), Event::Ended(Ending::Delivered)]);
        tell(&mut timelines, 2, &[Event::Sent, Event::TimedOut, Event::Ended(Ending::GaveUp)]);
        tell(&mut timelines, 3, &[Event::Sent]);
        let chosen = timelines.chosen();
        let endings: Vec<Ending> = chosen.iter().map(|timeline| timeline.ending).collect();
        assert_eq!(endings, [Ending::Delivered, Ending::GaveUp]);
        let acked = (Instant::from_secs(1), step(1, Event::Acked(1)));
        assert_eq!((chosen[0].node, chosen[0].steps[1]), (NODE, acked));
    }

    #[test]
    fn timeouts_show_more_than_marks_and_marks_more_than_losses() {
        let end = Event::Ended(Ending::Delivered);
        let mut timelines = DatagramTimelines::default();
        tell(&mut timelines, 1, &[Event::Sent, Event::Lost(9), end]);
        tell(&mut timelines, 2, &[Event::Sent, Event::Marked, end]);
        tell(&mut timelines, 3, &[Event::Sent, Event::Lost(8), end]);
        assert_eq!(handles(timelines), [2]);
        let mut timelines = DatagramTimelines::default();
        tell(&mut timelines, 1, &[Event::Sent, Event::TimedOut, end]);
        tell(&mut timelines, 2, &[Event::Sent, Event::Marked, Event::Lost(9), end]);
        assert_eq!(handles(timelines), [1]);
    }

    #[test]
    fn a_gap_that_changes_shows_more_than_a_mark() {
        let mut timelines = DatagramTimelines::default();
        tell(&mut timelines, 1, &[Event::Sent, Event::Marked, Event::Ended(Ending::Delivered)]);
        let wide = Step { gap: GAP * 2, ..step(2, Event::Ended(Ending::Delivered)) };
        timelines.note(Instant::ZERO, NODE, step(2, Event::Sent));
        timelines.note(Instant::ZERO, NODE, wide);
        assert_eq!(handles(timelines), [2]);
    }

    #[test]
    fn of_two_that_show_as_much_the_first_stays() {
        let mut timelines = DatagramTimelines::default();
        for handle in [1, 2] {
            tell(&mut timelines, handle, &[Event::Sent, Event::Ended(Ending::Delivered)]);
        }
        assert_eq!(handles(timelines), [1]);
    }

    #[test]
    fn a_timeline_without_end_holds_no_more_than_its_bound_and_is_not_kept() {
        let mut timelines = DatagramTimelines::default();
        tell(&mut timelines, 1, &[Event::Resent; STEPS_MAX * 2]);
        assert_eq!(timelines.open.values().map(Vec::len).sum::<usize>(), STEPS_MAX);
        tell(&mut timelines, 1, &[Event::Ended(Ending::GaveUp)]);
        assert_eq!(timelines.open.len() + timelines.chosen().len(), 0);
    }
}
