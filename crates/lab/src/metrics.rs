//! One run's outcome becomes numbers.
//!
//! `measurement` computes them. `docs/topics/results.md` defines each for readers of results.

mod delivery;
mod measurement;
mod queries;
mod recovery;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lowmesh_machine::DropReason;
use lowmesh_sim::record::Outcome;
use lowmesh_units::Duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use self::measurement::Measurement;
pub use self::recovery::{EVENT_WINDOW, EventMetrics};
use crate::transfer::Transfers;

/// The metrics of one run; a metric without data is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Transaction delivery ratio: acknowledged / (acknowledged + failed + unsent).
    pub tdr: Option<f64>,
    /// The same without those that no node sent: acknowledged / (acknowledged + failed).
    #[serde(default)]
    pub tdr_joined: Option<f64>,
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
    /// Nodes that were switched on and never joined.
    #[serde(default)]
    pub never_joined: u64,
    /// Their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_joined_nodes: Vec<u16>,
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
    /// Sum over nodes of the time with a preferred parent whose own parents led to no root.
    #[serde(default)]
    pub rootless_node_s: Option<f64>,
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
    /// Transactions, datagrams or packets to groups that were due at a node that was on and had not joined.
    #[serde(default)]
    pub unsent: u64,
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
    /// Of these, those still under way at the end; in no ratio.
    #[serde(default)]
    pub datagrams_open: u64,
    /// Of those that ended or were unsent, those that reached the collector.
    pub datagram_pdr: Option<f64>,
    /// The same without those that no node sent.
    #[serde(default)]
    pub datagram_pdr_joined: Option<f64>,
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
    /// Queries of the entity, also those that did not end.
    #[serde(default)]
    pub queries: u64,
    /// Of these, those still open at the end; in no other metric.
    #[serde(default)]
    pub queries_open: u64,
    /// Mean time from a query to its result, at the client.
    #[serde(default)]
    pub query_mean_ms: Option<f64>,
    /// The shortest of these times.
    #[serde(default)]
    pub query_least_ms: Option<f64>,
    /// Their median.
    #[serde(default)]
    pub query_p50_ms: Option<f64>,
    /// Their 95th percentile.
    #[serde(default)]
    pub query_p95_ms: Option<f64>,
    /// The longest of them.
    #[serde(default)]
    pub query_most_ms: Option<f64>,
    /// Of the queries, those that took less than ACK_TIMEOUT, so that no request was sent again.
    #[serde(default)]
    pub query_without_copies: Option<f64>,
    /// Mean time from a query to the last answer that the manager had, of queries with an answer.
    #[serde(default)]
    pub last_answer_mean_ms: Option<f64>,
    /// The shortest of these times.
    #[serde(default)]
    pub last_answer_least_ms: Option<f64>,
    /// The longest of them.
    #[serde(default)]
    pub last_answer_most_ms: Option<f64>,
    /// Answers of members in results, divided by members and queries.
    #[serde(default)]
    pub member_reliability: Option<f64>,
    /// Of the queries, those with the answers of all members.
    #[serde(default)]
    pub entity_reliability: Option<f64>,
    /// Requests of the manager for each query, copies left out.
    #[serde(default)]
    pub query_requests: Option<f64>,
    /// Mean time from a query to its result, divided by the number of members.
    #[serde(default)]
    pub query_member_ms: Option<f64>,
    /// Member reliability less entity reliability.
    #[serde(default)]
    pub reliability_gap: Option<f64>,
    /// Frames of all nodes during a query.
    #[serde(default)]
    pub query_frames: Option<f64>,
    /// Mean hops from a member to its border router at the end.
    #[serde(default)]
    pub entity_hops_mean: Option<f64>,
    /// Most hops of a member.
    #[serde(default)]
    pub entity_hops_most: Option<f64>,
    /// What happened to the network, also during the warm-up.
    #[serde(default)]
    pub events: u64,
    /// Mean time from an event that cut nodes off to the moment when all of them have routes, of events that recovered.
    #[serde(default)]
    pub recovery_mean_s: Option<f64>,
    /// The longest of these times.
    #[serde(default)]
    pub recovery_most_s: Option<f64>,
    /// Events that cut nodes off and did not recover in the run.
    #[serde(default)]
    pub unrecovered: u64,
    /// Of the requests and datagrams of the five minutes after events, those that were lost.
    #[serde(default)]
    pub event_loss: Option<f64>,
    /// Changes of preferred parent in these five minutes, for each event.
    #[serde(default)]
    pub event_parent_changes: Option<f64>,
    /// Each event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_list: Vec<EventMetrics>,
    /// Transfers: completion times, TCP and links.
    #[serde(flatten)]
    pub transfers: Transfers,
    /// Packets that ended without arriving, by reason, over all layers.
    #[serde(deserialize_with = "read_drops")]
    pub drops: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// The metrics of transactions; the first is their number.
    pub const OF_TRANSACTIONS: [&'static str; 11] = [
        "transactions",
        "tdr",
        "tdr_joined",
        "pdr_down",
        "delay_mean_ms",
        "delay_p50_ms",
        "delay_p95_ms",
        "retransmissions_per_transaction",
        "acknowledged",
        "failed",
        "open",
    ];

    /// The metrics of UDP datagrams; the first is their number.
    pub const OF_DATAGRAMS: [&'static str; 6] = [
        "datagrams",
        "datagrams_open",
        "datagram_pdr",
        "datagram_pdr_joined",
        "latency_p50_ms",
        "latency_p95_ms",
    ];

    /// The metrics of packets to groups; the first is their number.
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

    /// The metrics of queries of entities; the first is their number.
    pub const OF_QUERIES: [&'static str; 19] = [
        "queries",
        "queries_open",
        "query_mean_ms",
        "query_least_ms",
        "query_p50_ms",
        "query_p95_ms",
        "query_most_ms",
        "query_without_copies",
        "last_answer_mean_ms",
        "last_answer_least_ms",
        "last_answer_most_ms",
        "member_reliability",
        "entity_reliability",
        "query_member_ms",
        "reliability_gap",
        "query_requests",
        "query_frames",
        "entity_hops_mean",
        "entity_hops_most",
    ];

    /// The metrics of events; the first is their number.
    pub const OF_EVENTS: [&'static str; 6] = [
        "events",
        "recovery_mean_s",
        "recovery_most_s",
        "unrecovered",
        "event_loss",
        "event_parent_changes",
    ];

    /// Measures of mechanisms, which claims about them ask for. The table for people leaves them out; JSON and
    /// CSV have them.
    pub const MECHANISMS: [&'static str; 31] = [
        "tdr_joined",
        "datagram_pdr_joined",
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
        "tcp_segments",
        "tcp_retransmissions",
        "tcp_repeats",
        "tcp_first_recovery",
        "tcp_timeouts",
        "tcp_backoff_max",
        "line_dropped",
        "line_lost",
        "line_queue_most_octets",
    ];

    /// The metrics of a run whose first `warmup` is not measured.
    pub fn of(outcome: &Outcome, warmup: Duration) -> Self {
        Measurement::new(outcome, warmup).metrics()
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
    pub fn numbers(&self) -> Vec<(&'static str, Option<f64>)> {
        let mut numbers = self.numbers_of_the_network().to_vec();
        numbers.extend(self.transfers.numbers());
        numbers.extend(self.numbers_of_queries());
        numbers.extend(self.numbers_of_events());
        numbers
    }

    fn numbers_of_events(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("events", Some(self.events as f64)),
            ("recovery_mean_s", self.recovery_mean_s),
            ("recovery_most_s", self.recovery_most_s),
            ("unrecovered", Some(self.unrecovered as f64)),
            ("event_loss", self.event_loss),
            ("event_parent_changes", self.event_parent_changes),
        ]
    }

    fn numbers_of_the_network(&self) -> [(&'static str, Option<f64>); 61] {
        let count = |count: u64| Some(count as f64);
        [
            ("tdr", self.tdr),
            ("tdr_joined", self.tdr_joined),
            ("pdr_up", self.pdr_up),
            ("pdr_down", self.pdr_down),
            ("delay_mean_ms", self.delay_mean_ms),
            ("delay_p50_ms", self.delay_p50_ms),
            ("delay_p95_ms", self.delay_p95_ms),
            ("retransmissions_per_transaction", self.retransmissions_per_transaction),
            ("joined", count(self.joined)),
            ("never_joined", count(self.never_joined)),
            ("join_time_s", self.join_time_s),
            ("join_last_s", self.join_last_s),
            ("hops_mean", self.hops_mean),
            ("duty_cycle", self.duty_cycle),
            ("charge_mc", self.charge_mc),
            ("parent_changes", self.parent_changes),
            ("rootless_node_s", self.rootless_node_s),
            ("frames", Some(self.frames as f64)),
            ("nodes", count(self.nodes)),
            ("transactions", count(self.transactions)),
            ("acknowledged", count(self.acknowledged)),
            ("failed", count(self.failed)),
            ("open", count(self.open)),
            ("unsent", count(self.unsent)),
            ("queue_loss_share", self.queue_loss_share),
            ("collision_share", self.collision_share),
            ("deaf_share", self.deaf_share),
            ("episode_median_s", self.episode_median_s),
            ("loss_raises_rto", self.loss_raises_rto),
            ("rto_gap_ratio", self.rto_gap_ratio),
            ("sixp_frames", count(self.sixp_frames)),
            ("datagrams", count(self.datagrams)),
            ("datagrams_open", count(self.datagrams_open)),
            ("datagram_pdr", self.datagram_pdr),
            ("datagram_pdr_joined", self.datagram_pdr_joined),
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

    fn numbers_of_queries(&self) -> [(&'static str, Option<f64>); 19] {
        let count = |count: u64| Some(count as f64);
        [
            ("queries", count(self.queries)),
            ("queries_open", count(self.queries_open)),
            ("query_mean_ms", self.query_mean_ms),
            ("query_least_ms", self.query_least_ms),
            ("query_p50_ms", self.query_p50_ms),
            ("query_p95_ms", self.query_p95_ms),
            ("query_most_ms", self.query_most_ms),
            ("query_without_copies", self.query_without_copies),
            ("last_answer_mean_ms", self.last_answer_mean_ms),
            ("last_answer_least_ms", self.last_answer_least_ms),
            ("last_answer_most_ms", self.last_answer_most_ms),
            ("member_reliability", self.member_reliability),
            ("entity_reliability", self.entity_reliability),
            ("query_member_ms", self.query_member_ms),
            ("reliability_gap", self.reliability_gap),
            ("query_requests", self.query_requests),
            ("query_frames", self.query_frames),
            ("entity_hops_mean", self.entity_hops_mean),
            ("entity_hops_most", self.entity_hops_most),
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
        let unknown = || D::Error::custom(format!("`{name}` is not a drop reason"));
        Ok((reason.ok_or_else(unknown)?.name(), count))
    };
    drops.into_iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
