//! The metrics of one run, computed from its outcome.
//!
//! What a transaction's metrics count: transactions issued at or after the end of the warm-up. What packets,
//! drops and nodes' metrics count: the whole run, because a packet does not tell when it was born. The root is
//! in none of the nodes' metrics.

use std::collections::BTreeMap;

use lowmesh_sim::record::{Fate, NodeSummary, Outcome, Packets};
use lowmesh_units::{Duration, Instant, NodeId};

use super::{Metrics, delivery, queries, recovery};
use crate::mechanism;
use crate::statistics::{mean, percentile, ratio};
use crate::transfer::Transfers;

/// The metrics of a run, as far as they are computed.
pub(super) struct Measurement<'a> {
    outcome: &'a Outcome,
    /// The end of the warm-up.
    start: Instant,
    metrics: Metrics,
}

impl<'a> Measurement<'a> {
    /// Of a run whose first `warmup` is not measured.
    pub fn new(outcome: &'a Outcome, warmup: Duration) -> Self {
        let aftermath = mechanism::aftermath(outcome, warmup);
        let start = Instant::ZERO + warmup;
        let metrics = Metrics {
            pdr_up: delivery_ratio(outcome.up),
            pdr_down: delivery_ratio(outcome.down),
            frames: outcome.nodes.iter().map(|node| node.frames_sent).sum(),
            queue_loss_share: mechanism::queue_loss_share(outcome),
            collision_share: mechanism::collision_share(outcome),
            deaf_share: mechanism::deaf_share(outcome),
            episode_median_s: mechanism::episode_median_s(outcome, warmup),
            loss_raises_rto: aftermath.raised,
            rto_gap_ratio: aftermath.gap_ratio,
            sixp_frames: outcome.frames.sixtop,
            transfers: Transfers::of(outcome, start),
            ..Metrics::default()
        };
        Self { outcome, start, metrics }
    }

    /// All of them.
    pub fn metrics(mut self) -> Metrics {
        delivery::add(&mut self.metrics, self.outcome, self.start);
        self.add_fragments();
        self.add_groups();
        queries::add(&mut self.metrics, self.outcome, self.start);
        recovery::add(&mut self.metrics, self.outcome);
        self.add_nodes();
        for ((_, reason), count) in &self.outcome.drops {
            *self.metrics.drops.entry(reason.name()).or_default() += count;
        }
        self.metrics
    }

    fn add_fragments(&mut self) {
        let Self { outcome, metrics, .. } = self;
        let fragments = outcome.fragments;
        metrics.fragments_sent = fragments.sent;
        metrics.fragments_resent = fragments.resent;
        metrics.fragments_forwarded = fragments.forwarded;
        metrics.fallbacks = fragments.fallbacks;
        metrics.gap_changes = ratio(fragments.gaps_changed, fragments.recovered);
        metrics.marks_set = fragments.marked;
        metrics.marks_unreported = fragments.marked.saturating_sub(fragments.marks_reported);
        let means: Vec<f64> = outcome.nodes.iter().map(|node| node.buffer_mean_octets).collect();
        metrics.packet_buffer_mean_octets = mean(&means);
        let others = outcome.nodes.get(1..).unwrap_or_default();
        let peaks: Vec<f64> = others.iter().map(|node| node.buffer_most_octets as f64).collect();
        metrics.packet_buffer_peak_octets = mean(&peaks);
        let most = outcome.nodes.iter().map(|node| node.buffer_most_octets).max();
        metrics.packet_buffer_most_octets = most.map(|octets| octets as f64);
    }

    fn add_groups(&mut self) {
        let Self { outcome, start, metrics } = self;
        let groups = &outcome.groups;
        let mut latencies = Vec::new();
        let mut by_member: BTreeMap<NodeId, (u64, u64)> = BTreeMap::new();
        for packet in groups.packets.iter().filter(|packet| packet.sent >= *start) {
            metrics.group_packets += 1;
            for member in &packet.members {
                metrics.group_copies += 1;
                let (delivered, ended) = by_member.entry(member.node).or_default();
                match member.fate {
                    Fate::Delivered(at) => {
                        *delivered += 1;
                        *ended += 1;
                        latencies.push(at.since(packet.sent).as_millis_f64());
                    }
                    Fate::Lost(..) => *ended += 1,
                    Fate::Open => metrics.group_open += 1,
                }
            }
        }
        latencies.sort_unstable_by(f64::total_cmp);
        metrics.group_delivered = latencies.len() as u64;
        metrics.group_lost = metrics.group_copies - metrics.group_delivered - metrics.group_open;
        metrics.group_pdr =
            ratio(metrics.group_delivered, metrics.group_delivered + metrics.group_lost);
        let ratios = by_member.values().filter_map(|(delivered, ended)| ratio(*delivered, *ended));
        metrics.group_pdr_worst = ratios.min_by(f64::total_cmp);
        metrics.group_latency_p50_ms = percentile(&latencies, 50.0);
        metrics.group_latency_p95_ms = percentile(&latencies, 95.0);
        // Frames do not tell when their packet was sent.
        let sent = groups.packets.len() as u64;
        metrics.group_frames_per_packet = ratio(groups.frames, sent);
        metrics.group_controls_per_packet = ratio(groups.controls, sent);
    }

    fn add_nodes(&mut self) {
        let Self { outcome, metrics, .. } = self;
        let nodes = outcome.nodes.get(1..).unwrap_or_default();
        let mut joins: Vec<f64> =
            nodes.iter().filter_map(|node| node.joined).map(Instant::as_secs_f64).collect();
        joins.sort_unstable_by(f64::total_cmp);
        metrics.nodes = nodes.len() as u64;
        metrics.joined = joins.len() as u64;
        let has_waited = |node: &NodeSummary| node.booted.is_some() && node.joined.is_none();
        let numbered = (1..).zip(nodes);
        metrics.never_joined_nodes =
            numbered.filter(|(_, node)| has_waited(node)).map(|(id, _)| id).collect();
        metrics.never_joined = metrics.never_joined_nodes.len() as u64;
        metrics.join_time_s = percentile(&joins, 50.0);
        metrics.join_last_s = joins.last().copied();
        let mean_of = |value: &dyn Fn(&NodeSummary) -> Option<f64>| {
            mean(
                &nodes
                    .iter()
                    .filter_map(value)
                    .filter(|value| value.is_finite())
                    .collect::<Vec<_>>(),
            )
        };
        let joined = |node: &NodeSummary| node.joined.is_some();
        metrics.hops_mean = mean_of(&|node| node.hops.map(f64::from));
        metrics.duty_cycle = mean_of(&|node| joined(node).then_some(node.duty_cycle));
        metrics.charge_mc = mean_of(&|node| Some(node.charge_mc));
        metrics.parent_changes =
            mean_of(&|node| joined(node).then(|| f64::from(node.parent_changes)));
        let rootless = nodes.iter().map(|node| node.rootless.as_secs_f64());
        metrics.rootless_node_s = (!nodes.is_empty()).then(|| rootless.sum());
    }
}

fn delivery_ratio(packets: Packets) -> Option<f64> {
    ratio(packets.delivered, packets.delivered + packets.dropped)
}

#[cfg(test)]
mod tests {
    use lowmesh_machine::{DropReason, Layer};
    use lowmesh_sim::record::{Datagram, Ending, GroupPacket, Groups, MemberFate, Transaction};
    use lowmesh_wire::ipv6::Address;

    use super::*;

    fn measured(outcome: &Outcome, warmup: Duration) -> Metrics {
        Measurement::new(outcome, warmup).metrics()
    }

    fn transaction(issued_s: u64, delay_ms: u64, ending: Ending) -> Transaction {
        let sent = Instant::from_secs(issued_s);
        Transaction {
            node: NodeId(1),
            issued: sent,
            sent: Some(sent),
            ended: Some(sent + Duration::from_millis(delay_ms)),
            ending,
            retransmissions: u8::from(delay_ms > 1000),
            rto: None,
        }
    }

    #[test]
    fn a_run_without_anything_has_no_ratios_and_no_nan() {
        let metrics = measured(&Outcome::default(), Duration::ZERO);
        let present: Vec<_> = metrics
            .numbers()
            .into_iter()
            .filter(|(_, value)| value.is_some_and(|v| v != 0.0))
            .collect();
        assert_eq!(present, []);
        assert_eq!((metrics.tdr, metrics.pdr_up, metrics.duty_cycle), (None, None, None));
    }

    #[test]
    fn transactions_of_the_warm_up_are_not_measured_and_open_ones_are_in_no_ratio() {
        let failed = Ending::Failed(DropReason::GaveUp);
        let outcome = Outcome {
            transactions: vec![
                transaction(9, 1, failed),
                transaction(10, 100, Ending::Acknowledged),
                transaction(11, 300, Ending::Acknowledged),
                transaction(12, 2000, Ending::Acknowledged),
                transaction(13, 5000, failed),
                transaction(14, 0, Ending::Open),
            ],
            ..Outcome::default()
        };
        let metrics = measured(&outcome, Duration::from_secs(10));
        assert_eq!(metrics.tdr, Some(0.75));
        assert_eq!((metrics.transactions, metrics.acknowledged), (5, 3));
        assert_eq!((metrics.failed, metrics.open), (1, 1));
        assert_eq!(metrics.delay_mean_ms, Some(800.0));
        assert_eq!((metrics.delay_p50_ms, metrics.delay_p95_ms), (Some(300.0), Some(2000.0)));
        assert_eq!(metrics.retransmissions_per_transaction, Some(0.5));
    }

    #[test]
    fn the_root_is_in_no_metric_of_nodes() {
        let node = |joined: Option<u64>, hops, duty_cycle| NodeSummary {
            joined: joined.map(Instant::from_secs),
            hops,
            duty_cycle,
            ..NodeSummary::default()
        };
        let outcome = Outcome {
            nodes: vec![
                node(Some(0), Some(0), 0.9),
                node(Some(10), Some(1), 0.1),
                node(Some(30), Some(2), 0.2),
                node(None, None, f64::NAN),
            ],
            ..Outcome::default()
        };
        let metrics = measured(&outcome, Duration::ZERO);
        assert_eq!((metrics.nodes, metrics.joined), (3, 2));
        assert_eq!(metrics.never_joined, 0, "the last node was never switched on");
        assert_eq!((metrics.join_time_s, metrics.join_last_s), (Some(10.0), Some(30.0)));
        assert_eq!(metrics.hops_mean, Some(1.5));
        assert!((metrics.duty_cycle.expect("two joined") - 0.15).abs() < 1e-12);
    }

    #[test]
    fn nodes_that_were_on_and_never_joined_are_counted_and_named() {
        let node = |booted: u64, joined: Option<u64>| NodeSummary {
            booted: Some(Instant::from_secs(booted)),
            joined: joined.map(Instant::from_secs),
            ..NodeSummary::default()
        };
        let nodes = vec![node(0, Some(0)), node(0, None), node(1, Some(9)), node(1, None)];
        let metrics = measured(&Outcome { nodes, ..Outcome::default() }, Duration::ZERO);
        assert_eq!((metrics.nodes, metrics.joined, metrics.never_joined), (3, 1, 2));
        assert_eq!(metrics.never_joined_nodes, [1, 3]);
    }

    #[test]
    fn datagrams_of_the_warm_up_are_not_measured_and_lost_ones_have_no_latency() {
        let datagram = |sent_s: u64, latency_ms: Option<u64>| {
            let sent = Instant::from_secs(sent_s);
            let arrived = latency_ms.map(|ms| sent + Duration::from_millis(ms));
            let node = NodeId(if sent_s == 13 { 2 } else { 1 });
            Datagram { node, sent, arrived, is_open: false }
        };
        let datagrams = vec![
            datagram(9, Some(1)),
            datagram(10, Some(20)),
            datagram(11, None),
            datagram(12, Some(90)),
            datagram(13, Some(40)),
        ];
        let hops = |hops| NodeSummary { hops: Some(hops), ..NodeSummary::default() };
        let nodes = vec![hops(0), hops(2), hops(4)];
        let outcome = Outcome { datagrams, nodes, ..Outcome::default() };
        let metrics = measured(&outcome, Duration::from_secs(10));
        assert_eq!((metrics.datagrams, metrics.datagram_pdr), (4, Some(0.75)));
        assert_eq!((metrics.latency_p50_ms, metrics.latency_p95_ms), (Some(40.0), Some(90.0)));
        // 55 ms in the mean over two hops, 40 ms over four.
        assert_eq!(metrics.latency_per_hop_ms, Some(-7.5));
    }

    #[test]
    fn packets_in_queues_are_in_no_delivery_ratio() {
        let outcome = Outcome {
            up: Packets { sent: 10, delivered: 6, dropped: 2, queued: 2, ..Packets::default() },
            ..Outcome::default()
        };
        assert_eq!(measured(&outcome, Duration::ZERO).pdr_up, Some(0.75));
    }

    #[test]
    fn packets_to_groups_are_counted_at_each_member() {
        let member = |node, fate| MemberFate { node: NodeId(node), fate };
        let packet = |sent_s, members| GroupPacket {
            node: NodeId(0),
            group: Address::ALL_MPL_FORWARDERS,
            sent: Instant::from_secs(sent_s),
            members,
        };
        let lost = Fate::Lost(Layer::Mac, DropReason::Unheard);
        let delivered = |ms| Fate::Delivered(Instant::from_millis(ms));
        let packets = vec![
            packet(9, vec![member(1, lost), member(2, lost)]),
            packet(10, vec![member(1, delivered(10_020)), member(2, delivered(10_040))]),
            packet(20, vec![member(1, delivered(20_060)), member(2, lost)]),
            packet(30, vec![member(1, Fate::Open), member(2, lost)]),
        ];
        let groups = Groups { packets, frames: 6, controls: 2 };
        let outcome = Outcome { groups, ..Outcome::default() };
        let metrics = measured(&outcome, Duration::from_secs(10));
        assert_eq!((metrics.group_packets, metrics.group_copies), (3, 6));
        let ends = (metrics.group_delivered, metrics.group_lost, metrics.group_open);
        assert_eq!(ends, (3, 2, 1));
        assert_eq!((metrics.group_pdr, metrics.group_pdr_worst), (Some(0.6), Some(1.0 / 3.0)));
        assert_eq!(metrics.group_latency_p50_ms, Some(40.0));
        assert_eq!(metrics.group_frames_per_packet, Some(1.5));
        assert_eq!(metrics.group_controls_per_packet, Some(0.5));
    }

    #[test]
    fn drops_are_summed_over_layers_by_reason() {
        let drops = BTreeMap::from([
            ((Layer::Mac, DropReason::QueueFull), 2),
            ((Layer::Ipv6, DropReason::QueueFull), 3),
            ((Layer::Mac, DropReason::NoAck), 1),
        ]);
        let metrics = measured(&Outcome { drops, ..Outcome::default() }, Duration::ZERO);
        assert_eq!(metrics.drops, BTreeMap::from([("no_ack", 1), ("queue_full", 5)]));
    }
}
