//! One run's outcome becomes numbers.
//!
//! What a transaction's metrics count: transactions issued at or after the end of the warm-up. What packets,
//! drops and nodes' metrics count: the whole run, because a packet does not tell when it was born. The root is
//! in none of the nodes' metrics. `docs/topics/results.md` defines each for readers of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lowmesh_machine::DropReason;
use lowmesh_sim::record::{Ending, Fate, Groups, NodeSummary, Outcome, Packets, Transaction};
use lowmesh_units::{Duration, Instant, NodeId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::mechanism;
use crate::statistics::{mean, percentile, slope};

/// The numbers of one run; an absent one had nothing to be computed from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Transaction delivery ratio: acknowledged / (acknowledged + failed).
    pub tdr: Option<f64>,
    /// Packet delivery ratio of requests: delivered / (delivered + dropped).
    pub pdr_up: Option<f64>,
    /// Packet delivery ratio of responses.
    pub pdr_down: Option<f64>,
    /// Mean delay from the first transmission of a request to its acknowledgement, of those acknowledged.
    pub delay_mean_ms: Option<f64>,
    /// Its median (nearest rank).
    pub delay_p50_ms: Option<f64>,
    /// Its 95th percentile (nearest rank).
    pub delay_p95_ms: Option<f64>,
    /// Mean number of retransmissions of a transaction that ended.
    pub retransmissions_per_transaction: Option<f64>,
    /// Nodes that joined.
    pub joined: u64,
    /// When half of the nodes that joined had done so (median, nearest rank).
    pub join_time_s: Option<f64>,
    /// When the last of the nodes that joined had done so.
    pub join_last_s: Option<f64>,
    /// Mean hops to the root at the end, of nodes with a way to it.
    pub hops_mean: Option<f64>,
    /// Mean share of time with the radio on, of nodes that joined.
    pub duty_cycle: Option<f64>,
    /// Mean charge drawn by the radio of a node, in millicoulombs.
    pub charge_mc: Option<f64>,
    /// Mean changes of preferred parent of a node that joined.
    pub parent_changes: Option<f64>,
    /// Frames that all nodes sent, the root and retries included.
    pub frames: u64,
    /// Nodes, without the root.
    pub nodes: u64,
    /// Transactions issued, also those that did not end.
    pub transactions: u64,
    /// Of these, those that were acknowledged.
    pub acknowledged: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Of these, those still under way at the end; in no ratio.
    pub open: u64,
    /// Of the packets that ended without arriving, those that found a queue full.
    pub queue_loss_share: Option<f64>,
    /// Of the frames to one neighbour, those lost because another node sent.
    pub collision_share: Option<f64>,
    /// Of the frames to one neighbour, those that it could not hear because it sent itself.
    pub deaf_share: Option<f64>,
    /// Median length of the episodes of congestion.
    pub episode_median_s: Option<f64>,
    /// Of the losses of the farthest nodes, those after which the timeout was longer than before.
    pub loss_raises_rto: Option<f64>,
    /// Gap of timeout and round-trip time after losses, divided by that at other times, at the farthest nodes.
    pub rto_gap_ratio: Option<f64>,
    /// Frames that carried 6P.
    pub sixp_frames: u64,
    /// Datagrams that applications sent.
    pub datagrams: u64,
    /// Of these, those that reached the collector.
    pub datagram_pdr: Option<f64>,
    /// Median time of a datagram from socket to socket, of those that arrived.
    pub latency_p50_ms: Option<f64>,
    /// Its 95th percentile.
    pub latency_p95_ms: Option<f64>,
    /// Mean copies after the first of a node's frames to one neighbour, the root included.
    pub link_retransmissions: Option<f64>,
    /// Of the frames to one neighbour, every copy counted, those whose acknowledgement came.
    pub link_success: Option<f64>,
    /// Growth of a datagram's latency with each hop (least squares), of those that arrived.
    #[serde(default)]
    pub latency_per_hop_ms: Option<f64>,
    /// Mean octets in a node's packet buffer, the root included.
    #[serde(default)]
    pub packet_buffer_mean_octets: Option<f64>,
    /// The most octets in a node's packet buffer, mean of all nodes but the root.
    #[serde(default)]
    pub packet_buffer_peak_octets: Option<f64>,
    /// The most octets in any node's packet buffer.
    #[serde(default)]
    pub packet_buffer_most_octets: Option<f64>,
    /// Fragments sent by the nodes that cut packets.
    #[serde(default)]
    pub fragments_sent: u64,
    /// Recoverable fragments sent again.
    #[serde(default)]
    pub fragments_resent: u64,
    /// Fragments that passed through nodes.
    #[serde(default)]
    pub fragments_forwarded: u64,
    /// Packets that a node reassembled though their fragments were to pass through.
    #[serde(default)]
    pub fallbacks: u64,
    /// Fragments marked as having met congestion.
    #[serde(default)]
    pub marks_set: u64,
    /// Of these, those that no acknowledgement of their own brought to the fragmenting end.
    #[serde(default)]
    pub marks_unreported: u64,
    /// Of the packets sent in recoverable fragments, those during which the gap between fragments changed.
    #[serde(default)]
    pub gap_changes: Option<f64>,
    /// Packets that were sent to groups.
    #[serde(default)]
    pub group_packets: u64,
    /// Copies of them that members were to get: one for each packet and member.
    #[serde(default)]
    pub group_copies: u64,
    /// Of these, those that were delivered.
    #[serde(default)]
    pub group_delivered: u64,
    /// Of these, those that were lost.
    #[serde(default)]
    pub group_lost: u64,
    /// Of these, those that could still come when the run ended; in no ratio.
    #[serde(default)]
    pub group_open: u64,
    /// Delivery ratio of packets to groups: delivered / (delivered + lost).
    #[serde(default)]
    pub group_pdr: Option<f64>,
    /// The same at the member where it is lowest.
    #[serde(default)]
    pub group_pdr_worst: Option<f64>,
    /// Median time from the sender to a member, of copies that were delivered.
    #[serde(default)]
    pub group_latency_p50_ms: Option<f64>,
    /// Its 95th percentile.
    #[serde(default)]
    pub group_latency_p95_ms: Option<f64>,
    /// Frames of all nodes with packets to groups, for each packet.
    #[serde(default)]
    pub group_frames_per_packet: Option<f64>,
    /// Control messages of multicast engines, for each packet.
    #[serde(default)]
    pub group_controls_per_packet: Option<f64>,
    /// Packets that ended without arriving, by reason, over all layers.
    #[serde(deserialize_with = "read_drops")]
    pub drops: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// What transactions come to; the first says how many there were.
    pub const OF_TRANSACTIONS: [&'static str; 10] = [
        "transactions",
        "tdr",
        "pdr_down",
        "delay_mean_ms",
        "delay_p50_ms",
        "delay_p95_ms",
        "retransmissions_per_transaction",
        "acknowledged",
        "failed",
        "open",
    ];

    /// What datagrams of UDP traffic come to; the first says how many there were.
    pub const OF_DATAGRAMS: [&'static str; 4] =
        ["datagrams", "datagram_pdr", "latency_p50_ms", "latency_p95_ms"];

    /// What packets to groups come to; the first says how many there were.
    pub const OF_GROUPS: [&'static str; 11] = [
        "group_packets",
        "group_copies",
        "group_delivered",
        "group_lost",
        "group_open",
        "group_pdr",
        "group_pdr_worst",
        "group_latency_p50_ms",
        "group_latency_p95_ms",
        "group_frames_per_packet",
        "group_controls_per_packet",
    ];

    /// Measures of mechanisms, which claims about them ask for. The table for people leaves them out; JSON and
    /// CSV have them.
    pub const MECHANISMS: [&'static str; 20] = [
        "queue_loss_share",
        "collision_share",
        "deaf_share",
        "episode_median_s",
        "loss_raises_rto",
        "rto_gap_ratio",
        "sixp_frames",
        "link_retransmissions",
        "link_success",
        "latency_per_hop_ms",
        "packet_buffer_mean_octets",
        "packet_buffer_peak_octets",
        "packet_buffer_most_octets",
        "fragments_sent",
        "fragments_resent",
        "fragments_forwarded",
        "fallbacks",
        "marks_set",
        "marks_unreported",
        "gap_changes",
    ];

    /// The metrics of a run whose first `warmup` is not measured.
    pub fn of(outcome: &Outcome, warmup: Duration) -> Self {
        let measured = outcome
            .transactions
            .iter()
            .filter(|transaction| transaction.issued >= Instant::ZERO + warmup);
        let aftermath = mechanism::aftermath(outcome, warmup);
        let mut metrics = Self {
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
            ..Self::default()
        };
        metrics.add_transactions(measured);
        metrics.add_datagrams(outcome, warmup);
        metrics.add_fragments(outcome);
        metrics.add_groups(&outcome.groups, warmup);
        metrics.add_nodes(outcome.nodes.get(1..).unwrap_or_default());
        for ((_, reason), count) in &outcome.drops {
            *metrics.drops.entry(reason.name()).or_default() += count;
        }
        metrics
    }

    fn add_transactions<'t>(&mut self, transactions: impl Iterator<Item = &'t Transaction>) {
        let mut delays = Vec::new();
        let mut retransmissions = 0_u64;
        for transaction in transactions {
            self.transactions += 1;
            match transaction.ending {
                Ending::Acknowledged => self.acknowledged += 1,
                Ending::Failed(_) => self.failed += 1,
                Ending::Open => {
                    self.open += 1;
                    continue;
                }
            }
            retransmissions += u64::from(transaction.retransmissions);
            delays.extend(transaction.delay().map(Duration::as_millis_f64));
        }
        delays.sort_unstable_by(f64::total_cmp);
        let ended = self.acknowledged + self.failed;
        self.tdr = ratio(self.acknowledged, ended);
        self.retransmissions_per_transaction = ratio(retransmissions, ended);
        self.delay_mean_ms = mean(&delays);
        self.delay_p50_ms = percentile(&delays, 50.0);
        self.delay_p95_ms = percentile(&delays, 95.0);
    }

    fn add_datagrams(&mut self, outcome: &Outcome, warmup: Duration) {
        let start = Instant::ZERO + warmup;
        let mut latencies = Vec::new();
        let mut by_hops = Vec::new();
        for datagram in outcome.datagrams.iter().filter(|datagram| datagram.sent >= start) {
            self.datagrams += 1;
            let latency = datagram.arrived.map(|arrived| arrived.since(datagram.sent));
            let latency = latency.map(Duration::as_millis_f64);
            latencies.extend(latency);
            let hops = outcome.nodes.get(datagram.node.index()).and_then(|node| node.hops);
            by_hops.extend(hops.map(f64::from).zip(latency));
        }
        latencies.sort_unstable_by(f64::total_cmp);
        self.latency_per_hop_ms = slope(&by_hops);
        self.datagram_pdr = ratio(latencies.len() as u64, self.datagrams);
        self.latency_p50_ms = percentile(&latencies, 50.0);
        self.latency_p95_ms = percentile(&latencies, 95.0);
        let copies: u64 = outcome.links.values().map(|link| link.retransmissions).sum();
        self.link_retransmissions = ratio(copies, outcome.nodes.len() as u64);
        let acked: u64 = outcome.nodes.iter().map(|node| node.frames_acked).sum();
        self.link_success = ratio(acked, outcome.frames.sent);
    }

    fn add_fragments(&mut self, outcome: &Outcome) {
        let fragments = outcome.fragments;
        self.fragments_sent = fragments.sent;
        self.fragments_resent = fragments.resent;
        self.fragments_forwarded = fragments.forwarded;
        self.fallbacks = fragments.fallbacks;
        self.gap_changes = ratio(fragments.gaps_changed, fragments.recovered);
        self.marks_set = fragments.marked;
        self.marks_unreported = fragments.marked.saturating_sub(fragments.marks_reported);
        let means: Vec<f64> = outcome.nodes.iter().map(|node| node.buffer_mean_octets).collect();
        self.packet_buffer_mean_octets = mean(&means);
        let others = outcome.nodes.get(1..).unwrap_or_default();
        let peaks: Vec<f64> = others.iter().map(|node| node.buffer_most_octets as f64).collect();
        self.packet_buffer_peak_octets = mean(&peaks);
        let most = outcome.nodes.iter().map(|node| node.buffer_most_octets).max();
        self.packet_buffer_most_octets = most.map(|octets| octets as f64);
    }

    fn add_groups(&mut self, groups: &Groups, warmup: Duration) {
        let start = Instant::ZERO + warmup;
        let mut latencies = Vec::new();
        let mut by_member: BTreeMap<NodeId, (u64, u64)> = BTreeMap::new();
        for packet in groups.packets.iter().filter(|packet| packet.sent >= start) {
            self.group_packets += 1;
            for member in &packet.members {
                self.group_copies += 1;
                let (delivered, ended) = by_member.entry(member.node).or_default();
                match member.fate {
                    Fate::Delivered(at) => {
                        *delivered += 1;
                        *ended += 1;
                        latencies.push(at.since(packet.sent).as_millis_f64());
                    }
                    Fate::Lost(..) => *ended += 1,
                    Fate::Open => self.group_open += 1,
                }
            }
        }
        latencies.sort_unstable_by(f64::total_cmp);
        self.group_delivered = latencies.len() as u64;
        self.group_lost = self.group_copies - self.group_delivered - self.group_open;
        self.group_pdr = ratio(self.group_delivered, self.group_delivered + self.group_lost);
        let ratios = by_member.values().filter_map(|(delivered, ended)| ratio(*delivered, *ended));
        self.group_pdr_worst = ratios.min_by(f64::total_cmp);
        self.group_latency_p50_ms = percentile(&latencies, 50.0);
        self.group_latency_p95_ms = percentile(&latencies, 95.0);
        // Frames do not tell when their packet was sent.
        let sent = groups.packets.len() as u64;
        self.group_frames_per_packet = ratio(groups.frames, sent);
        self.group_controls_per_packet = ratio(groups.controls, sent);
    }

    fn add_nodes(&mut self, nodes: &[NodeSummary]) {
        let mut joins: Vec<f64> =
            nodes.iter().filter_map(|node| node.joined).map(Instant::as_secs_f64).collect();
        joins.sort_unstable_by(f64::total_cmp);
        self.nodes = nodes.len() as u64;
        self.joined = joins.len() as u64;
        self.join_time_s = percentile(&joins, 50.0);
        self.join_last_s = joins.last().copied();
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
        self.hops_mean = mean_of(&|node| node.hops.map(f64::from));
        self.duty_cycle = mean_of(&|node| joined(node).then_some(node.duty_cycle));
        self.charge_mc = mean_of(&|node| Some(node.charge_mc));
        self.parent_changes = mean_of(&|node| joined(node).then(|| f64::from(node.parent_changes)));
    }

    /// Adds its fields to a line of CSV, each behind a comma: the numbers, then the drops by reason.
    pub fn add_fields(&self, csv: &mut String) {
        for (_, value) in self.numbers() {
            csv.push(',');
            if let Some(value) = value {
                // Writing to a String cannot fail.
                _ = write!(csv, "{value}");
            }
        }
        for reason in DropReason::ALL {
            _ = write!(csv, ",{}", self.drops.get(reason.name()).unwrap_or(&0));
        }
    }

    /// Every metric that is one number, with its name, in the order of reports.
    pub fn numbers(&self) -> [(&'static str, Option<f64>); 55] {
        let count = |count: u64| Some(count as f64);
        [
            ("tdr", self.tdr),
            ("pdr_up", self.pdr_up),
            ("pdr_down", self.pdr_down),
            ("delay_mean_ms", self.delay_mean_ms),
            ("delay_p50_ms", self.delay_p50_ms),
            ("delay_p95_ms", self.delay_p95_ms),
            ("retransmissions_per_transaction", self.retransmissions_per_transaction),
            ("joined", count(self.joined)),
            ("join_time_s", self.join_time_s),
            ("join_last_s", self.join_last_s),
            ("hops_mean", self.hops_mean),
            ("duty_cycle", self.duty_cycle),
            ("charge_mc", self.charge_mc),
            ("parent_changes", self.parent_changes),
            ("frames", Some(self.frames as f64)),
            ("nodes", count(self.nodes)),
            ("transactions", count(self.transactions)),
            ("acknowledged", count(self.acknowledged)),
            ("failed", count(self.failed)),
            ("open", count(self.open)),
            ("queue_loss_share", self.queue_loss_share),
            ("collision_share", self.collision_share),
            ("deaf_share", self.deaf_share),
            ("episode_median_s", self.episode_median_s),
            ("loss_raises_rto", self.loss_raises_rto),
            ("rto_gap_ratio", self.rto_gap_ratio),
            ("sixp_frames", count(self.sixp_frames)),
            ("datagrams", count(self.datagrams)),
            ("datagram_pdr", self.datagram_pdr),
            ("latency_p50_ms", self.latency_p50_ms),
            ("latency_p95_ms", self.latency_p95_ms),
            ("link_retransmissions", self.link_retransmissions),
            ("link_success", self.link_success),
            ("latency_per_hop_ms", self.latency_per_hop_ms),
            ("packet_buffer_mean_octets", self.packet_buffer_mean_octets),
            ("packet_buffer_peak_octets", self.packet_buffer_peak_octets),
            ("packet_buffer_most_octets", self.packet_buffer_most_octets),
            ("fragments_sent", count(self.fragments_sent)),
            ("fragments_resent", count(self.fragments_resent)),
            ("fragments_forwarded", count(self.fragments_forwarded)),
            ("fallbacks", count(self.fallbacks)),
            ("marks_set", count(self.marks_set)),
            ("marks_unreported", count(self.marks_unreported)),
            ("gap_changes", self.gap_changes),
            ("group_packets", count(self.group_packets)),
            ("group_copies", count(self.group_copies)),
            ("group_delivered", count(self.group_delivered)),
            ("group_lost", count(self.group_lost)),
            ("group_open", count(self.group_open)),
            ("group_pdr", self.group_pdr),
            ("group_pdr_worst", self.group_pdr_worst),
            ("group_latency_p50_ms", self.group_latency_p50_ms),
            ("group_latency_p95_ms", self.group_latency_p95_ms),
            ("group_frames_per_packet", self.group_frames_per_packet),
            ("group_controls_per_packet", self.group_controls_per_packet),
        ]
    }
}

/// Drops by the names of the closed list of reasons.
fn read_drops<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<&'static str, u64>, D::Error> {
    let drops = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let known = |(name, count): (String, u64)| {
        let reason = DropReason::ALL.into_iter().find(|reason| reason.name() == name);
        let unknown = || D::Error::custom(format!("`{name}` is no reason of a drop"));
        Ok((reason.ok_or_else(unknown)?.name(), count))
    };
    drops.into_iter().map(known).collect()
}

fn delivery_ratio(packets: Packets) -> Option<f64> {
    ratio(packets.delivered, packets.delivered + packets.dropped)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_machine::Layer;
    use lowmesh_sim::record::{Datagram, GroupPacket, MemberFate};
    use lowmesh_wire::ipv6::Address;

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
        let metrics = Metrics::of(&Outcome::default(), Duration::ZERO);
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
        let metrics = Metrics::of(&outcome, Duration::from_secs(10));
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
        let metrics = Metrics::of(&outcome, Duration::ZERO);
        assert_eq!((metrics.nodes, metrics.joined), (3, 2));
        assert_eq!((metrics.join_time_s, metrics.join_last_s), (Some(10.0), Some(30.0)));
        assert_eq!(metrics.hops_mean, Some(1.5));
        assert!((metrics.duty_cycle.expect("two joined") - 0.15).abs() < 1e-12);
    }

    #[test]
    fn datagrams_of_the_warm_up_are_not_measured_and_lost_ones_have_no_latency() {
        let datagram = |sent_s: u64, latency_ms: Option<u64>| {
            let sent = Instant::from_secs(sent_s);
            let arrived = latency_ms.map(|ms| sent + Duration::from_millis(ms));
            let node = NodeId(if sent_s == 13 { 2 } else { 1 });
            Datagram { node, sent, arrived }
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
        let metrics = Metrics::of(&outcome, Duration::from_secs(10));
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
        assert_eq!(Metrics::of(&outcome, Duration::ZERO).pdr_up, Some(0.75));
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
        let metrics = Metrics::of(&outcome, Duration::from_secs(10));
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
        let metrics = Metrics::of(&Outcome { drops, ..Outcome::default() }, Duration::ZERO);
        assert_eq!(metrics.drops, BTreeMap::from([("no_ack", 1), ("queue_full", 5)]));
    }

    #[test]
    fn every_number_is_a_field_of_the_json_under_the_same_name() {
        let json = serde_json::to_value(Metrics::default()).expect("plain data");
        let fields: Vec<&str> =
            Metrics::default().numbers().iter().map(|(name, _)| *name).collect();
        for name in &fields {
            assert!(json.get(name).is_some(), "{name}");
        }
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(fields.len() + 1));
    }
}
