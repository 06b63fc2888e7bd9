//! The metrics of events: how long the network needs to recover, and what is lost meanwhile.

use lowmesh_sim::record::{Ending, EventRecord, Outcome};
use lowmesh_units::{Duration, Instant, NodeId};
use serde::{Deserialize, Serialize};

use super::Metrics;
use crate::statistics::{mean, ratio};

/// How long after an event requests and changes of parents are counted for it. Ours: an event whose recovery takes longer
/// has its own number for that, and a fixed time compares events of different recovery.
pub const EVENT_WINDOW: Duration = Duration::from_secs(300);

/// One event of a run, with what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventMetrics {
    /// When it happened.
    pub at_s: f64,
    /// Its name.
    pub event: String,
    /// The node that it happened to; absent for all nodes.
    pub node: Option<u16>,
    /// The other node, of an event about two.
    pub peer: Option<u16>,
    /// Nodes without routes right after it, of those that have a path to their border router.
    pub cut_off: u32,
    /// Time until all of these have routes; absent if they never had them at the same time.
    pub recovery_s: Option<f64>,
    /// Requests and datagrams of the five minutes after it that ended.
    pub ended: u64,
    /// Of these, those that failed or did not arrive.
    pub lost: u64,
    /// Changes of preferred parent in these five minutes.
    pub parent_changes: u64,
}

/// Adds the metrics of the events of a run.
pub(super) fn add(metrics: &mut Metrics, outcome: &Outcome) {
    let all: Vec<EventMetrics> = outcome.events.iter().map(|one| of(one, outcome)).collect();
    metrics.events = all.len() as u64;
    let cutting = || all.iter().filter(|event| event.cut_off > 0);
    let times: Vec<f64> = cutting().filter_map(|event| event.recovery_s).collect();
    metrics.recovery_mean_s = mean(&times);
    metrics.recovery_most_s = times.iter().copied().max_by(f64::total_cmp);
    metrics.unrecovered = cutting().filter(|event| event.recovery_s.is_none()).count() as u64;
    // Windows that overlap count a request once.
    let starts: Vec<Instant> = outcome.events.iter().map(|event| event.at).collect();
    let (ended, lost) = losses(outcome, &starts);
    metrics.event_loss = ratio(lost, ended);
    let changes = changes(outcome, &starts);
    metrics.event_parent_changes = ratio(changes, metrics.events);
    metrics.event_list = all;
}

fn of(record: &EventRecord, outcome: &Outcome) -> EventMetrics {
    let EventRecord { at, event, cut_off, recovered } = record;
    let number = |node: NodeId| node.0;
    let (ended, lost) = losses(outcome, &[*at]);
    EventMetrics {
        at_s: at.as_secs_f64(),
        event: event.name().to_owned(),
        node: event.node().map(number),
        peer: event.peer().map(number),
        cut_off: *cut_off,
        recovery_s: recovered.map(|recovered| recovered.since(*at).as_secs_f64()),
        ended,
        lost,
        parent_changes: changes(outcome, &[*at]),
    }
}

/// Whether a time is within the window of one of these, which ascend.
fn is_within(starts: &[Instant], time: Instant) -> bool {
    let before = starts.partition_point(|start| *start <= time);
    before.checked_sub(1).is_some_and(|last| time < starts[last] + EVENT_WINDOW)
}

/// Requests and datagrams of the windows that ended, and those of them that were lost. What was due at a node that had not
/// joined was lost.
fn losses(outcome: &Outcome, starts: &[Instant]) -> (u64, u64) {
    let (mut ended, mut lost) = (0, 0);
    for one in outcome.transactions.iter().filter(|one| is_within(starts, one.issued)) {
        ended += u64::from(one.ending != Ending::Open);
        lost += u64::from(matches!(one.ending, Ending::Failed(_)));
    }
    for one in outcome.datagrams.iter().filter(|one| is_within(starts, one.sent)) {
        ended += u64::from(!one.is_open);
        lost += u64::from(one.arrived.is_none() && !one.is_open);
    }
    let unsent = outcome.unsent.iter().filter(|one| is_within(starts, one.due)).count() as u64;
    (ended, lost) = (ended + unsent, lost + unsent);
    (ended, lost)
}

fn changes(outcome: &Outcome, starts: &[Instant]) -> u64 {
    outcome.parent_changes.iter().filter(|(at, _)| is_within(starts, *at)).count() as u64
}

#[cfg(test)]
mod tests {
    use lowmesh_machine::DropReason;
    use lowmesh_sim::event::{Event, Memory};
    use lowmesh_sim::record::{Datagram, Transaction};

    use super::*;

    const fn at(s: u64) -> Instant {
        Instant::from_secs(s)
    }

    fn transaction(issued: u64, ending: Ending) -> Transaction {
        Transaction {
            node: NodeId(1),
            issued: at(issued),
            sent: None,
            ended: None,
            ending,
            retransmissions: 0,
            rto: None,
        }
    }

    #[test]
    fn recovery_is_of_events_that_cut_nodes_off_and_losses_are_of_five_minutes() {
        let node = NodeId(4);
        let record = |s, event, cut_off, recovered: Option<u64>| EventRecord {
            at: at(s),
            event,
            cut_off,
            recovered: recovered.map(at),
        };
        let failed = Ending::Failed(DropReason::GaveUp);
        let outcome = Outcome {
            events: vec![
                record(1000, Event::Off { node, memory: Memory::Lost }, 2, Some(1030)),
                record(1100, Event::On { node }, 1, Some(1150)),
                record(1200, Event::Cut { node, peer: NodeId(5) }, 0, Some(1200)),
                record(3000, Event::Reboot { node, dark: Duration::from_secs(1) }, 3, None),
            ],
            transactions: vec![
                transaction(999, failed),
                transaction(1000, failed),
                transaction(1299, Ending::Acknowledged),
                transaction(1499, Ending::Acknowledged),
                transaction(1500, failed),
                transaction(3100, Ending::Open),
            ],
            datagrams: vec![Datagram { node, sent: at(3200), arrived: None, is_open: false }],
            parent_changes: vec![(at(500), node), (at(1010), node), (at(1210), node)],
            ..Outcome::default()
        };
        let mut metrics = Metrics::default();
        add(&mut metrics, &outcome);
        assert_eq!((metrics.events, metrics.unrecovered), (4, 1));
        assert_eq!((metrics.recovery_mean_s, metrics.recovery_most_s), (Some(40.0), Some(50.0)));
        // Of four in the windows two are lost; the open one is neither.
        assert_eq!((metrics.event_loss, metrics.event_parent_changes), (Some(0.5), Some(0.5)));
        let [off, .., reboot] = &metrics.event_list[..] else { panic!("four events") };
        assert_eq!((off.ended, off.lost, off.parent_changes), (2, 1, 2));
        assert_eq!((off.event.as_str(), off.node, off.recovery_s), ("off", Some(4), Some(30.0)));
        assert_eq!((reboot.ended, reboot.lost, reboot.recovery_s), (1, 1, None));
    }
}
