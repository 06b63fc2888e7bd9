//! What figures show of one run beyond its metrics, in a few kilobytes.
//!
//! Times are kept to a tenth of a millisecond and in single precision, so that a run survives a store as text
//! without a bit changed. As in the metrics, only transactions issued after the warm-up are measured, except
//! in the series, which shows a node's whole life.

mod timeline;
mod transfer;

use std::collections::BTreeMap;

use lowmesh_sim::record::{Ending, Outcome, Reading, Transaction, Unsent};
use lowmesh_units::{Duration, Instant, NodeId};
use serde::{Deserialize, Serialize};

use crate::statistics::percentile;

pub use timeline::{DatagramTimeline, Kind, Step};
pub use transfer::{Received, Transfer};

/// Percentiles kept of the delays of one number of hops.
pub const HOP_PERCENTILES: [u8; 5] = [5, 25, 50, 75, 95];

/// Steps between the percentiles kept of latencies.
pub const LATENCY_STEP: usize = 5;

/// Samples of a series at most; of more, the slowest of each stretch of time is kept.
pub const SAMPLES_MAX: usize = 300;

/// The data of one run for the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Percentiles 0 to 100 of the delay of acknowledged transactions, in ms; empty without any.
    pub delays_ms: Vec<f32>,
    /// Delays of the nodes of each number of hops (at the end of the run), the nearest first.
    pub hops: Vec<HopDelays>,
    /// Latencies of datagrams from the nodes of each number of hops, the nearest first.
    #[serde(default)]
    pub latencies: Vec<HopLatencies>,
    /// Packets that ended without arriving, by layer and reason.
    pub drops: Vec<Drops>,
    /// One entry a node, root first.
    pub nodes: Vec<NodeDetail>,
    /// Negotiated cells, each told once, by the node that sends in it.
    pub cells: Vec<Cell>,
    /// The life of one node: the farthest that had anything to say.
    pub series: Option<Series>,
    /// Datagrams in recoverable fragments whose timeline shows most: one that arrived, then one that did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<DatagramTimeline>,
    /// Clients and queue over time, if there is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// Delays of the nodes of one number of hops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopDelays {
    /// Hops to the root.
    pub hops: u32,
    /// Acknowledged transactions.
    pub n: u64,
    /// Their [`HOP_PERCENTILES`], in ms.
    pub delays_ms: [f32; HOP_PERCENTILES.len()],
}

/// Latencies of the datagrams from the nodes of one number of hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopLatencies {
    /// Hops to the root.
    pub hops: u32,
    /// Datagrams that arrived.
    pub n: u64,
    /// Every fifth percentile of the time from socket to socket, 0 to 100, in ms.
    pub ms: Vec<f32>,
}

/// Packets that ended in one layer for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The layer's name.
    pub layer: String,
    /// The reason's name.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// One node at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeDetail {
    /// Its preferred parent.
    pub parent: Option<u16>,
    /// Its hops to the root.
    pub hops: Option<u32>,
    /// Its transaction delivery ratio.
    pub tdr: Option<f32>,
    /// Its share of time with the radio on; absent if it never joined.
    pub duty_cycle: Option<f32>,
}

/// A negotiated cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u16, u16, u16, u16, bool)", into = "(u16, u16, u16, u16, bool)")]
pub struct Cell {
    /// Who sends.
    pub node: u16,
    /// Who listens.
    pub peer: u16,
    /// Slot in the slotframe.
    pub slot: u16,
    /// Channel offset.
    pub channel_offset: u16,
    /// Whether others may send in it too.
    pub shared: bool,
}

impl From<(u16, u16, u16, u16, bool)> for Cell {
    fn from((node, peer, slot, channel_offset, shared): (u16, u16, u16, u16, bool)) -> Self {
        Self { node, peer, slot, channel_offset, shared }
    }
}
impl From<Cell> for (u16, u16, u16, u16, bool) {
    fn from(cell: Cell) -> Self {
        (cell.node, cell.peer, cell.slot, cell.channel_offset, cell.shared)
    }
}

/// Transactions of one node over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The node.
    pub node: u16,
    /// Its transactions that ended, by the time of their first copy.
    pub samples: Vec<Sample>,
}

/// One transaction of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f32, Option<f32>, Option<f32>, u8)", into = "(f32, Option<f32>, Option<f32>, u8)")]
pub struct Sample {
    /// When its first copy was sent, in seconds from the start.
    pub t_s: f32,
    /// From the first copy to the acknowledgement, in ms; absent if that never came.
    pub rtt_ms: Option<f32>,
    /// The timeout chosen for the first copy, in ms.
    pub rto_ms: Option<f32>,
    /// Copies after the first.
    pub retransmissions: u8,
}

impl From<(f32, Option<f32>, Option<f32>, u8)> for Sample {
    fn from((t_s, rtt_ms, rto_ms, retransmissions): (f32, Option<f32>, Option<f32>, u8)) -> Self {
        Self { t_s, rtt_ms, rto_ms, retransmissions }
    }
}
impl From<Sample> for (f32, Option<f32>, Option<f32>, u8) {
    fn from(sample: Sample) -> Self {
        (sample.t_s, sample.rtt_ms, sample.rto_ms, sample.retransmissions)
    }
}

impl Detail {
    /// The detail of a run whose first `warmup` is not measured.
    pub fn of(outcome: &Outcome, warmup: Duration) -> Self {
        let measured: Vec<&Transaction> = outcome
            .transactions
            .iter()
            .filter(|transaction| transaction.issued >= Instant::ZERO + warmup)
            .collect();
        let delays = sorted_delays(&measured);
        let drops = outcome.drops.iter().map(|(&(layer, reason), &count)| Drops {
            layer: layer.name().to_owned(),
            reason: reason.name().to_owned(),
            count,
        });
        Self {
            delays_ms: percentiles(&delays),
            hops: by_hops(outcome, &delays),
            latencies: latencies(outcome, warmup),
            drops: drops.collect(),
            nodes: nodes(outcome, &measured, Instant::ZERO + warmup),
            cells: cells(outcome),
            series: series(outcome),
            timelines: outcome.timelines.iter().map(DatagramTimeline::of).collect(),
            transfer: Transfer::of(outcome),
        }
    }
}

/// To a tenth, in single precision.
fn tenth(value: f64) -> f32 {
    (libm::round(value * 10.0) / 10.0) as f32
}

/// Delays in milliseconds with the nodes of their transactions, in order.
fn sorted_delays(measured: &[&Transaction]) -> Vec<(f64, NodeId)> {
    let delay = |one: &&Transaction| Some((one.delay()?.as_millis_f64(), one.node));
    let mut delays: Vec<(f64, NodeId)> = measured.iter().filter_map(delay).collect();
    delays.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    delays
}

fn percentiles(delays: &[(f64, NodeId)]) -> Vec<f32> {
    let delays: Vec<f64> = delays.iter().map(|(delay, _)| *delay).collect();
    (0..=100).filter_map(|p| percentile(&delays, f64::from(p)).map(tenth)).collect()
}

fn by_hops(outcome: &Outcome, delays: &[(f64, NodeId)]) -> Vec<HopDelays> {
    let mut by_hops: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (delay, node) in delays {
        if let Some(hops) = outcome.nodes.get(node.index()).and_then(|node| node.hops) {
            by_hops.entry(hops).or_default().push(*delay);
        }
    }
    // The root answers itself in no hop.
    by_hops.remove(&0);
    let of = |(hops, delays): (u32, Vec<f64>)| {
        let at = |p| percentile(&delays, f64::from(p)).map_or(0.0, tenth);
        HopDelays { hops, n: delays.len() as u64, delays_ms: HOP_PERCENTILES.map(at) }
    };
    by_hops.into_iter().map(of).collect()
}

fn latencies(outcome: &Outcome, warmup: Duration) -> Vec<HopLatencies> {
    let mut by_hops: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for datagram in outcome.datagrams.iter().filter(|one| one.sent >= Instant::ZERO + warmup) {
        let hops = outcome.nodes.get(datagram.node.index()).and_then(|node| node.hops);
        if let (Some(hops), Some(arrived)) = (hops, datagram.arrived) {
            let latency = arrived.since(datagram.sent).as_millis_f64();
            by_hops.entry(hops).or_default().push(latency);
        }
    }
    let of = |(hops, mut all): (u32, Vec<f64>)| {
        all.sort_unstable_by(f64::total_cmp);
        let percents = (0..=100).step_by(LATENCY_STEP);
        let ms = percents.filter_map(|p| percentile(&all, f64::from(p)).map(tenth)).collect();
        HopLatencies { hops, n: all.len() as u64, ms }
    };
    by_hops.into_iter().map(of).collect()
}

fn nodes(outcome: &Outcome, measured: &[&Transaction], start: Instant) -> Vec<NodeDetail> {
    // Acknowledged and ended transactions of each node.
    let mut counts = vec![(0_u32, 0_u32); outcome.nodes.len()];
    for transaction in measured {
        let Some((acknowledged, ended)) = counts.get_mut(transaction.node.index()) else {
            continue;
        };
        *acknowledged += u32::from(transaction.ending == Ending::Acknowledged);
        *ended += u32::from(transaction.ending != Ending::Open);
    }
    let is_counted = |one: &&Unsent| one.due >= start && one.reading == Reading::Transaction;
    for unsent in outcome.unsent.iter().filter(is_counted) {
        if let Some((_, ended)) = counts.get_mut(unsent.node.index()) {
            *ended += 1;
        }
    }
    let of = |(node, (acknowledged, ended)): (&lowmesh_sim::record::NodeSummary, (u32, u32))| {
        let tdr = f64::from(acknowledged) / f64::from(ended);
        let joined = node.joined.is_some() && node.duty_cycle.is_finite();
        NodeDetail {
            parent: node.parent.map(|parent| parent.0),
            hops: node.hops,
            tdr: (ended > 0).then_some(tdr as f32),
            duty_cycle: joined.then_some(node.duty_cycle as f32),
        }
    };
    outcome.nodes.iter().zip(counts).map(of).collect()
}

fn cells(outcome: &Outcome) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (node, summary) in outcome.nodes.iter().enumerate() {
        cells.extend(summary.sending_cells.iter().map(|cell| Cell {
            node: node as u16,
            peer: cell.peer.0,
            slot: cell.slot,
            channel_offset: cell.channel_offset,
            shared: cell.shared,
        }));
    }
    cells.sort_unstable();
    cells
}

/// The life of the farthest node that ended a transaction; of several, the first.
fn series(outcome: &Outcome) -> Option<Series> {
    let mut spoke = vec![false; outcome.nodes.len()];
    for transaction in &outcome.transactions {
        if let (Some(said), Some(_)) =
            (spoke.get_mut(transaction.node.index()), sample(transaction))
        {
            *said = true;
        }
    }
    let hops = |node: usize| outcome.nodes[node].hops;
    let candidates = (0..spoke.len()).filter(|&node| spoke[node]);
    let node = candidates.max_by_key(|&node| (hops(node), std::cmp::Reverse(node)))? as u16;
    let own = outcome.transactions.iter().filter(|t| t.node == NodeId(node));
    let samples: Vec<Sample> = own.filter_map(sample).collect();
    Some(Series { node, samples: thinned(&samples) })
}

fn sample(transaction: &Transaction) -> Option<Sample> {
    let sent = transaction.sent.filter(|_| transaction.ending != Ending::Open)?;
    Some(Sample {
        t_s: tenth(sent.as_secs_f64()),
        rtt_ms: transaction.delay().map(|delay| tenth(delay.as_millis_f64())),
        rto_ms: transaction.rto.map(|rto| tenth(rto.as_millis_f64())),
        retransmissions: transaction.retransmissions,
    })
}

/// At most [`SAMPLES_MAX`] samples: of each group of neighbours the slowest, and a lost one is the slowest of all.
fn thinned(samples: &[Sample]) -> Vec<Sample> {
    let group = samples.len().div_ceil(SAMPLES_MAX).max(1);
    let slow = |sample: &Sample| sample.rtt_ms.unwrap_or(f32::INFINITY);
    let slowest = |group: &[Sample]| {
        group.iter().copied().reduce(|a, b| if slow(&b) > slow(&a) { b } else { a })
    };
    samples.chunks(group).filter_map(slowest).collect()
}

#[cfg(test)]
mod tests {
    use lowmesh_machine::{DropReason, Layer};
    use lowmesh_sim::record::{Datagram, NegotiatedCell, NodeSummary};

    use super::*;

    fn transaction(node: u16, sent_s: u64, delay_ms: u64, ending: Ending) -> Transaction {
        let sent = Instant::from_secs(sent_s);
        Transaction {
            node: NodeId(node),
            issued: sent,
            sent: Some(sent),
            ended: Some(sent + Duration::from_millis(delay_ms)),
            ending,
            retransmissions: 1,
            rto: Some(Duration::from_millis(2345)),
        }
    }

    fn node(hops: u32, parent: u16) -> NodeSummary {
        NodeSummary {
            joined: Some(Instant::ZERO),
            hops: Some(hops),
            parent: Some(NodeId(parent)),
            duty_cycle: 0.25,
            ..NodeSummary::default()
        }
    }

    fn line(transactions: Vec<Transaction>) -> Outcome {
        let root = NodeSummary { hops: Some(0), ..NodeSummary::default() };
        Outcome { nodes: vec![root, node(1, 0), node(2, 1)], transactions, ..Outcome::default() }
    }

    #[test]
    fn a_run_without_anything_has_an_empty_detail() {
        assert_eq!(Detail::of(&Outcome::default(), Duration::ZERO), Detail::default());
    }

    #[test]
    fn delays_are_percentiles_of_the_acknowledged_after_the_warm_up() {
        let ack = Ending::Acknowledged;
        let mut transactions = vec![transaction(1, 1, 9000, ack)];
        transactions.extend((1..=100).map(|i| transaction(1, 10, i * 10, ack)));
        transactions.push(transaction(1, 11, 9000, Ending::Failed(DropReason::GaveUp)));
        let detail = Detail::of(&line(transactions), Duration::from_secs(5));
        assert_eq!(detail.delays_ms.len(), 101);
        let some = [0, 50, 95, 100].map(|p| detail.delays_ms[p]).to_vec();
        assert_eq!(some, vec![10.0, 500.0, 950.0, 1000.0]);
        let hops = HopDelays { hops: 1, n: 100, delays_ms: [50.0, 250.0, 500.0, 750.0, 950.0] };
        assert_eq!(detail.hops, [hops]);
        assert_eq!(detail.nodes[1].tdr, Some(100.0 / 101.0));
        assert_eq!((detail.nodes[2].tdr, detail.nodes[2].parent), (None, Some(1)));
    }

    #[test]
    fn latencies_of_datagrams_are_told_by_hops() {
        let datagram = |node: u16, sent_s: u64, latency_ms: Option<u64>| {
            let sent = Instant::from_secs(sent_s);
            let arrived = latency_ms.map(|ms| sent + Duration::from_millis(ms));
            Datagram { node: NodeId(node), sent, arrived, is_open: false }
        };
        let mut outcome = line(Vec::new());
        outcome.datagrams = vec![datagram(2, 1, Some(7000)), datagram(1, 10, None)];
        outcome.datagrams.extend((1..=20).map(|i| datagram(2, 10, Some(i * 100))));
        let latencies = Detail::of(&outcome, Duration::from_secs(5)).latencies;
        assert_eq!((latencies.len(), latencies[0].hops, latencies[0].n), (1, 2, 20));
        let picked: Vec<f32> = [0, 10, 20].iter().map(|at| latencies[0].ms[*at]).collect();
        assert_eq!(picked, [100.0, 1000.0, 2000.0]);
    }

    #[test]
    fn the_series_is_of_the_farthest_node_that_spoke_and_starts_before_the_warm_up() {
        let ack = Ending::Acknowledged;
        let lost = Ending::Failed(DropReason::GaveUp);
        let transactions = vec![
            transaction(1, 1, 10, ack),
            transaction(2, 2, 20, ack),
            transaction(2, 3, 30, lost),
            transaction(2, 4, 0, Ending::Open),
        ];
        let detail = Detail::of(&line(transactions), Duration::from_secs(60));
        let series = detail.series.expect("node 2 spoke");
        assert_eq!(series.node, 2);
        let points: Vec<_> = series.samples.iter().map(|s| (s.t_s, s.rtt_ms, s.rto_ms)).collect();
        assert_eq!(points, [(2.0, Some(20.0), Some(2345.0)), (3.0, None, Some(2345.0))]);
    }

    #[test]
    fn a_long_series_keeps_the_slowest_of_each_stretch() {
        let delays = (0..2 * SAMPLES_MAX as u64).map(|i| 10 + i % 2);
        let transactions = delays
            .enumerate()
            .map(|(i, delay)| transaction(2, i as u64, delay, Ending::Acknowledged))
            .collect();
        let series = Detail::of(&line(transactions), Duration::ZERO).series.expect("it spoke");
        assert_eq!(series.samples.len(), SAMPLES_MAX);
        assert!(series.samples.iter().all(|sample| sample.rtt_ms == Some(11.0)));
    }

    #[test]
    fn a_detail_survives_a_store_as_text_and_is_small() {
        let mut outcome = line(
            (0..5000).map(|i| transaction(2, i, 1000 + i * 7, Ending::Acknowledged)).collect(),
        );
        outcome.drops.insert((Layer::Mac, DropReason::NoAck), 3);
        outcome.nodes[2].sending_cells =
            vec![NegotiatedCell { peer: NodeId(1), slot: 9, channel_offset: 3, shared: false }];
        let detail = Detail::of(&outcome, Duration::ZERO);
        let cell = Cell { node: 2, peer: 1, slot: 9, channel_offset: 3, shared: false };
        assert_eq!(detail.cells, [cell]);
        assert_eq!(detail.drops[0].reason, "no_ack");
        let text = serde_json::to_string(&detail).expect("plain data");
        assert!(text.len() < 12_000, "{} bytes", text.len());
        assert_eq!(serde_json::from_str::<Detail>(&text).expect("own output"), detail);
    }
}
