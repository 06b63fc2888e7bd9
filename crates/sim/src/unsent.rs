//! Readings that fall due at nodes that are on and have not joined. Nobody sends them, and they count all the same.
//!
//! An application begins its schedule when its node joins. Until then a schedule with the same random numbers runs here,
//! from the moment when the node is switched on. It says when the application would have acted. It is read at the end of the
//! wait, and changes nothing in the run.

use lowmesh_applications::Schedule;
use lowmesh_units::{Duration, Instant, NodeId};

use crate::record::{Reading, Unsent};

/// The application of a node that waits for its node to join.
#[derive(Debug)]
pub(crate) struct Due {
    /// What carries its readings.
    pub(crate) reading: Reading,
    /// The node whose load sets its period.
    pub(crate) paced_as: NodeId,
    /// When it would act if its node had joined at once.
    pub(crate) schedule: Schedule,
    /// Its own schedule, if its readings are bounded: then it makes up for what it missed.
    pub(crate) later: Option<Schedule>,
}

/// A wait for a node to join, or the time after it in which an application makes up for what it missed.
#[derive(Debug)]
struct Wait {
    due: Due,
    missed: Vec<Instant>,
    /// Readings since the node joined, if it has.
    sent: Option<usize>,
    is_dark: bool,
}

impl Wait {
    /// Notes what is due before `now`.
    fn advance(&mut self, now: Instant) {
        let schedule = &mut self.due.schedule;
        while let Some(due) = schedule.next().filter(|due| *due < now && !self.is_dark) {
            schedule.take(due);
            match &mut self.sent {
                Some(sent) => *sent += 1,
                None => self.missed.push(due),
            }
        }
    }
}

/// The waits of all nodes, and what was missed in those that are over.
#[derive(Debug)]
pub(crate) struct Unsents {
    waits: Vec<Option<Wait>>,
    over: Vec<Unsent>,
}

impl Unsents {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { waits: (0..nodes).map(|_| None).collect(), over: Vec::new() }
    }

    /// A node without memory is switched on.
    pub(crate) fn boot(&mut self, now: Instant, node: NodeId, due: Option<Due>) {
        self.forget(node);
        self.waits[node.index()] = due.map(|mut due| {
            due.schedule.begin(now);
            Wait { due, missed: Vec::new(), sent: None, is_dark: false }
        });
    }

    /// Whether the applications of a node wait for it to join.
    pub(crate) fn is_waiting(&self, node: NodeId) -> bool {
        self.waits[node.index()].as_ref().is_some_and(|wait| wait.sent.is_none())
    }

    /// A node has joined.
    pub(crate) fn join(&mut self, now: Instant, node: NodeId) {
        let Some(wait) = &mut self.waits[node.index()] else { return };
        wait.advance(now);
        match wait.due.later.take() {
            Some(mut later) => {
                later.begin(now);
                wait.due.schedule = later;
                wait.sent = Some(0);
            }
            None => self.forget(node),
        }
    }

    /// The readings of a node, or of all, have another period.
    pub(crate) fn pace(&mut self, now: Instant, node: Option<NodeId>, period: Duration) {
        for wait in self.waits.iter_mut().flatten() {
            if node.is_none_or(|node| node == wait.due.paced_as) {
                wait.advance(now);
                wait.due.schedule.pace(now, period);
                if let Some(later) = &mut wait.due.later {
                    later.pace(now, period);
                }
            }
        }
    }

    /// A node has lost its power: nothing is due until it has it again.
    pub(crate) fn pause(&mut self, now: Instant, node: NodeId) {
        if let Some(wait) = &mut self.waits[node.index()] {
            wait.advance(now);
            wait.is_dark = true;
        }
    }

    /// A node has its power again, and kept its memory. Like the application, it acts once for all that was due meanwhile.
    pub(crate) fn resume(&mut self, now: Instant, node: NodeId) {
        let Some(wait) = &mut self.waits[node.index()] else { return };
        wait.is_dark = false;
        if wait.due.schedule.take(now).is_some() {
            match &mut wait.sent {
                Some(sent) => *sent += 1,
                None => wait.missed.push(now),
            }
        }
    }

    /// A life of a node is over, or the wait in it.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let Some(Wait { due, missed, sent, .. }) = self.waits[node.index()].take() else { return };
        let reading = due.reading;
        // What an application with a bound has sent late, it has not missed.
        let missed = missed.into_iter().skip(sent.unwrap_or_default());
        self.over.extend(missed.map(|due| Unsent { node, due, reading }));
    }

    /// All that was due and that nobody sent, in order of time.
    pub(crate) fn finish(mut self, end: Instant) -> Vec<Unsent> {
        for index in 0..self.waits.len() {
            if let Some(wait) = &mut self.waits[index] {
                wait.advance(end);
            }
            self.forget(NodeId(index as u16));
        }
        self.over.sort_unstable_by_key(|unsent| (unsent.due, unsent.node));
        self.over
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_applications::Arrivals;
    use lowmesh_units::{Purpose, Rng, Seed};

    use super::*;

    const NODE: NodeId = NodeId(0);

    const fn at(s: u64) -> Instant {
        Instant::from_secs(s)
    }

    /// One reading in ten seconds, from 100 s on.
    fn due(most: Option<u64>) -> Due {
        let arrivals = Arrivals::Periodic { period: Duration::from_secs(10), jitter: 0.0 };
        let rng = || Rng::stream(Seed(1), NodeId(3), Purpose::Traffic);
        let schedule = || Schedule::new(arrivals, Duration::from_secs(100), most, rng());
        Due {
            reading: Reading::Transaction,
            paced_as: NODE,
            schedule: schedule(),
            later: most.map(|_| schedule()),
        }
    }

    fn waiting(most: Option<u64>) -> Unsents {
        let mut all = Unsents::new(1);
        all.boot(at(1), NODE, Some(due(most)));
        all
    }

    fn times(all: Unsents, end: u64) -> Vec<Instant> {
        all.finish(at(end)).iter().map(|unsent| unsent.due).collect()
    }

    #[test]
    fn a_node_that_never_joins_misses_one_reading_a_period_from_the_start_on() {
        let missed = times(waiting(None), 200);
        assert_eq!(missed.len(), 10);
        assert!(missed[0] >= at(100) && missed.is_sorted());
        assert_eq!(times(waiting(None), 90), []);
    }

    #[test]
    fn a_node_that_joins_before_the_start_misses_nothing() {
        let mut all = waiting(None);
        assert!(all.is_waiting(NODE));
        all.join(at(99), NODE);
        assert!(!all.is_waiting(NODE));
        assert_eq!(times(all, 1000), []);
    }

    #[test]
    fn a_node_that_joins_late_misses_what_was_due_before() {
        let mut all = waiting(None);
        all.join(at(150), NODE);
        let missed = times(all, 1000);
        assert_eq!(missed.len(), 5);
        assert!(missed.iter().all(|due| *due < at(150)));
    }

    #[test]
    fn nothing_is_due_without_power_and_the_next_life_waits_anew() {
        let mut all = waiting(None);
        all.pause(at(150), NODE);
        assert_eq!(times(all, 1000).len(), 5);
        let mut all = waiting(None);
        all.pause(at(150), NODE);
        all.resume(at(500), NODE);
        // One for all that was due meanwhile, then one each period.
        assert_eq!(times(all, 550).len(), 5 + 1 + 4);
        let mut all = waiting(None);
        all.join(at(50), NODE);
        all.boot(at(300), NODE, Some(due(None)));
        all.join(at(320), NODE);
        assert_eq!(times(all, 1000).len(), 2);
    }

    #[test]
    fn a_bounded_number_of_readings_is_made_up_for_after_joining() {
        let mut all = waiting(Some(8));
        all.join(at(150), NODE);
        assert_eq!(times(all, 1000), [], "all eight went out late");
        let mut all = waiting(Some(8));
        all.join(at(150), NODE);
        assert_eq!(times(all, 170).len(), 3, "five were due, and two went out");
        assert_eq!(times(waiting(Some(8)), 1000).len(), 8);
    }

    #[test]
    fn another_period_holds_for_what_is_missed_too() {
        let mut all = waiting(None);
        all.pace(at(150), Some(NodeId(9)), Duration::from_secs(1));
        assert_eq!(times(all, 200).len(), 10);
        let mut all = waiting(None);
        all.pace(at(150), Some(NODE), Duration::from_secs(1));
        assert_eq!(times(all, 200).len(), 5 + 50);
    }
}
