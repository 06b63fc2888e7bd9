//! The metrics of transactions and datagrams: how many arrived of those that were due, and how long they took.
//!
//! What was due at a node that had not joined was lost like a request without an answer: a network that half of its nodes
//! cannot join delivers half of the readings.

use lowmesh_sim::record::{Ending, Outcome, Reading, Unsent};
use lowmesh_units::{Duration, Instant};

use super::Metrics;
use crate::statistics::{mean, percentile, ratio, slope};

/// Adds the metrics of what was due at `start`, the end of the warm-up, or later.
pub(super) fn add(metrics: &mut Metrics, outcome: &Outcome, start: Instant) {
    let unsent = |reading: Reading| {
        let is_counted = |one: &&Unsent| one.due >= start && one.reading == reading;
        outcome.unsent.iter().filter(is_counted).count() as u64
    };
    add_transactions(metrics, outcome, start, unsent(Reading::Transaction));
    add_datagrams(metrics, outcome, start, unsent(Reading::Datagram));
    metrics.unsent = outcome.unsent.iter().filter(|one| one.due >= start).count() as u64;
}

fn add_transactions(metrics: &mut Metrics, outcome: &Outcome, start: Instant, unsent: u64) {
    let mut delays = Vec::new();
    let mut retransmissions = 0_u64;
    for transaction in outcome.transactions.iter().filter(|it| it.issued >= start) {
        metrics.transactions += 1;
        match transaction.ending {
            Ending::Acknowledged => metrics.acknowledged += 1,
            Ending::Failed(_) => metrics.failed += 1,
            Ending::Open => {
                metrics.open += 1;
                continue;
            }
        }
        retransmissions += u64::from(transaction.retransmissions);
        delays.extend(transaction.delay().map(Duration::as_millis_f64));
    }
    delays.sort_unstable_by(f64::total_cmp);
    let ended = metrics.acknowledged + metrics.failed;
    metrics.tdr = ratio(metrics.acknowledged, ended + unsent);
    metrics.tdr_joined = ratio(metrics.acknowledged, ended);
    metrics.retransmissions_per_transaction = ratio(retransmissions, ended);
    metrics.delay_mean_ms = mean(&delays);
    metrics.delay_p50_ms = percentile(&delays, 50.0);
    metrics.delay_p95_ms = percentile(&delays, 95.0);
}

fn add_datagrams(metrics: &mut Metrics, outcome: &Outcome, start: Instant, unsent: u64) {
    let mut latencies = Vec::new();
    let mut by_hops = Vec::new();
    for datagram in outcome.datagrams.iter().filter(|datagram| datagram.sent >= start) {
        metrics.datagrams += 1;
        metrics.datagrams_open += u64::from(datagram.is_open);
        let latency = datagram.arrived.map(|arrived| arrived.since(datagram.sent));
        let latency = latency.map(Duration::as_millis_f64);
        latencies.extend(latency);
        let hops = outcome.nodes.get(datagram.node.index()).and_then(|node| node.hops);
        by_hops.extend(hops.map(f64::from).zip(latency));
    }
    latencies.sort_unstable_by(f64::total_cmp);
    metrics.latency_per_hop_ms = slope(&by_hops);
    let (arrived, ended) = (latencies.len() as u64, metrics.datagrams - metrics.datagrams_open);
    metrics.datagram_pdr = ratio(arrived, ended + unsent);
    metrics.datagram_pdr_joined = ratio(arrived, ended);
    metrics.latency_p50_ms = percentile(&latencies, 50.0);
    metrics.latency_p95_ms = percentile(&latencies, 95.0);
    let copies: u64 = outcome.links.values().map(|link| link.retransmissions).sum();
    metrics.link_retransmissions = ratio(copies, outcome.nodes.len() as u64);
    let acked: u64 = outcome.nodes.iter().map(|node| node.frames_acked).sum();
    metrics.link_success = ratio(acked, outcome.frames.sent);
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::{Datagram, Transaction};
    use lowmesh_units::NodeId;

    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_secs(s)
    }

    fn unsent(due: u64, reading: Reading) -> Unsent {
        Unsent { node: NodeId(2), due: at(due), reading }
    }

    fn acknowledged(issued: u64) -> Transaction {
        Transaction {
            node: NodeId(1),
            issued: at(issued),
            sent: Some(at(issued)),
            ended: Some(at(issued + 1)),
            ending: Ending::Acknowledged,
            retransmissions: 0,
            rto: None,
        }
    }

    fn of(outcome: &Outcome) -> Metrics {
        Metrics::of(outcome, Duration::from_secs(10))
    }

    #[test]
    fn transactions_that_were_due_before_a_node_joined_count_as_failed() {
        let outcome = Outcome {
            transactions: vec![acknowledged(10)],
            unsent: [5, 11, 12, 13].map(|due| unsent(due, Reading::Transaction)).to_vec(),
            ..Outcome::default()
        };
        let metrics = of(&outcome);
        assert_eq!((metrics.tdr, metrics.tdr_joined), (Some(0.25), Some(1.0)));
        assert_eq!((metrics.transactions, metrics.failed, metrics.unsent), (1, 0, 3));
        assert_eq!(metrics.transfers.completion_s, None, "one client never began");
    }

    #[test]
    fn a_network_that_nobody_joins_delivers_nothing() {
        let nobody =
            |reading| of(&Outcome { unsent: vec![unsent(12, reading)], ..Outcome::default() });
        let metrics = nobody(Reading::Transaction);
        assert_eq!(
            (metrics.tdr, metrics.tdr_joined, metrics.datagram_pdr),
            (Some(0.0), None, None)
        );
        let metrics = nobody(Reading::Datagram);
        assert_eq!((metrics.datagram_pdr, metrics.datagram_pdr_joined), (Some(0.0), None));
        assert_eq!((metrics.tdr, metrics.unsent), (None, 1));
    }

    #[test]
    fn datagrams_under_way_at_the_end_are_in_no_ratio() {
        let datagram = |sent, arrived: Option<u64>, is_open| Datagram {
            node: NodeId(1),
            sent: at(sent),
            arrived: arrived.map(at),
            is_open,
        };
        let datagrams = vec![
            datagram(10, Some(11), false),
            datagram(11, None, false),
            datagram(12, None, true),
        ];
        let metrics = of(&Outcome { datagrams, ..Outcome::default() });
        assert_eq!((metrics.datagrams, metrics.datagrams_open), (3, 1));
        assert_eq!(metrics.datagram_pdr, Some(0.5));
    }
}
