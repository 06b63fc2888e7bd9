//! The numbers of one run that are about transfers: completion times of clients, what TCP did, and the queues of links.

use std::collections::{BTreeMap, BTreeSet};

use lowmesh_sim::record::{Ending, Outcome, StreamCounters, Transaction};
use lowmesh_units::{Instant, NodeId};
use serde::{Deserialize, Serialize};

use crate::medians::Sample;

/// The numbers about transfers; an absent one had nothing to be computed from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfers {
    /// Median time of a client from its first request to the end of its last one; absent while one is under way, and if
    /// all requests of a client failed: a client that gives up at once is not fast.
    #[serde(default)]
    pub completion_s: Option<f64>,
    /// The time of the fastest client.
    #[serde(default)]
    pub completion_min_s: Option<f64>,
    /// The time of the slowest client.
    #[serde(default)]
    pub completion_max_s: Option<f64>,
    /// TCP segments with data, copies included, over all nodes.
    #[serde(default)]
    pub tcp_segments: Option<f64>,
    /// Copies of TCP segments.
    #[serde(default)]
    pub tcp_retransmissions: Option<f64>,
    /// Copies of TCP segments that arrived and brought no new octet.
    #[serde(default)]
    pub tcp_repeats: Option<f64>,
    /// Copies from a sender's first fast recovery to its second.
    #[serde(default)]
    pub tcp_first_recovery: Option<f64>,
    /// Expiries of retransmission timers of TCP.
    #[serde(default)]
    pub tcp_timeouts: Option<f64>,
    /// The most doublings of such a timer.
    #[serde(default)]
    pub tcp_backoff_max: Option<f64>,
    /// Packets that found the queue of a link full.
    #[serde(default)]
    pub line_dropped: Option<f64>,
    /// Packets that a link lost.
    #[serde(default)]
    pub line_lost: Option<f64>,
    /// The most octets that waited for a link.
    #[serde(default)]
    pub line_queue_most_octets: Option<f64>,
}

impl Transfers {
    /// The numbers of a run; transactions count from `start` on.
    pub fn of(outcome: &Outcome, start: Instant) -> Self {
        let mut numbers = Self::default();
        let unsent = outcome.unsent.iter().filter(|one| one.due >= start).map(|one| one.node);
        let measured = outcome.transactions.iter().filter(|one| one.issued >= start);
        numbers.add_completions(measured, &unsent.collect());
        numbers.add_streams(outcome);
        numbers.add_lines(outcome);
        numbers
    }

    /// `unsent` are the clients that could not send some of their requests.
    fn add_completions<'t>(
        &mut self,
        measured: impl Iterator<Item = &'t Transaction>,
        unsent: &BTreeSet<NodeId>,
    ) {
        let mut spans: BTreeMap<NodeId, (Instant, Instant)> = BTreeMap::new();
        let mut served: BTreeSet<NodeId> = BTreeSet::new();
        for transaction in measured {
            let Some(ended) = transaction.ended.filter(|_| transaction.ending != Ending::Open)
            else {
                return;
            };
            let span = spans.entry(transaction.node).or_insert((transaction.issued, ended));
            *span = (span.0.min(transaction.issued), span.1.max(ended));
            if transaction.ending == Ending::Acknowledged {
                served.insert(transaction.node);
            }
        }
        if served.len() < spans.len() || !unsent.is_subset(&served) {
            return;
        }
        let span = |(first, last): &(Instant, Instant)| last.since(*first).as_secs_f64();
        let Some(times) = Sample::of(spans.values().map(span)) else { return };
        self.completion_s = Some(times.median());
        self.completion_min_s = Some(times.least());
        self.completion_max_s = Some(times.most());
    }

    fn add_streams(&mut self, outcome: &Outcome) {
        let mut all: Option<StreamCounters> = None;
        for streams in outcome.nodes.iter().filter_map(|node| node.streams) {
            let all = all.get_or_insert_default();
            all.sent.merge(&streams.sent);
            all.repeats += streams.repeats;
        }
        let Some(StreamCounters { sent, repeats, .. }) = all else { return };
        self.tcp_repeats = Some(repeats as f64);
        self.tcp_segments = Some(sent.segments as f64);
        self.tcp_retransmissions = Some(sent.retransmissions as f64);
        self.tcp_first_recovery = Some(sent.first_recovery_copies as f64);
        self.tcp_timeouts = Some(sent.timeouts as f64);
        self.tcp_backoff_max = Some(sent.backoff_max.into());
    }

    fn add_lines(&mut self, outcome: &Outcome) {
        if outcome.lines.is_empty() {
            return;
        }
        let counters = || outcome.lines.iter().flat_map(|line| line.counters);
        self.line_dropped = Some(counters().map(|one| one.dropped).sum::<u64>() as f64);
        self.line_lost = Some(counters().map(|one| one.lost).sum::<u64>() as f64);
        let queues = outcome.lines.iter().flat_map(|line| &line.queues);
        self.line_queue_most_octets =
            queues.map(|queue| queue.most_octets).max().map(|most| most as f64);
    }

    /// Every number with its name, in the order of reports.
    pub const fn numbers(&self) -> [(&'static str, Option<f64>); 12] {
        [
            ("completion_s", self.completion_s),
            ("completion_min_s", self.completion_min_s),
            ("completion_max_s", self.completion_max_s),
            ("tcp_segments", self.tcp_segments),
            ("tcp_retransmissions", self.tcp_retransmissions),
            ("tcp_repeats", self.tcp_repeats),
            ("tcp_first_recovery", self.tcp_first_recovery),
            ("tcp_timeouts", self.tcp_timeouts),
            ("tcp_backoff_max", self.tcp_backoff_max),
            ("line_dropped", self.line_dropped),
            ("line_lost", self.line_lost),
            ("line_queue_most_octets", self.line_queue_most_octets),
        ]
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_machine::DropReason;

    use super::*;

    fn transaction(node: u16, issued: u64, ended: Option<u64>) -> Transaction {
        Transaction {
            node: NodeId(node),
            issued: Instant::from_secs(issued),
            sent: None,
            ended: ended.map(Instant::from_secs),
            ending: ended.map_or(Ending::Open, |_| Ending::Acknowledged),
            retransmissions: 0,
            rto: None,
        }
    }

    fn of(all: &[Transaction]) -> Transfers {
        let outcome = Outcome { transactions: all.to_vec(), ..Outcome::default() };
        Transfers::of(&outcome, Instant::ZERO)
    }

    #[test]
    fn a_client_takes_from_its_first_request_to_the_end_of_its_last() {
        let all = [
            transaction(1, 10, Some(12)),
            transaction(1, 11, Some(40)),
            transaction(2, 10, Some(20)),
            transaction(3, 12, Some(26)),
        ];
        let numbers = of(&all);
        assert_eq!(numbers.completion_s, Some(14.0));
        assert_eq!((numbers.completion_min_s, numbers.completion_max_s), (Some(10.0), Some(30.0)));
        assert_eq!((numbers.tcp_segments, numbers.line_lost), (None, None));
    }

    #[test]
    fn a_client_all_of_whose_requests_failed_has_no_completion_time() {
        let failed = Transaction {
            ending: Ending::Failed(DropReason::GaveUp),
            ..transaction(2, 10, Some(21))
        };
        let mut all = vec![transaction(1, 10, Some(12)), failed, failed];
        assert_eq!(of(&all), Transfers::default());
        // One that was answered is enough: some of many requests may be lost.
        all.push(transaction(2, 11, Some(15)));
        let numbers = of(&all);
        assert_eq!(numbers.completion_max_s, Some(11.0));
    }

    #[test]
    fn a_transfer_under_way_has_no_completion_time() {
        let all = [transaction(1, 10, Some(12)), transaction(2, 10, None)];
        assert_eq!(of(&all), Transfers::default());
    }
}
