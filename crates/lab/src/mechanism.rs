//! Why a network behaves as it does: what losses come of, how long congestion lasts, what a loss does to the timeout.
//!
//! These numbers decide claims about mechanisms. Each is computed from the records of one run, as the other
//! metrics are; `docs/topics/results.md` defines each for readers of results.

use std::collections::BTreeMap;

use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::{Duration, Instant, NodeId};

use crate::statistics::{mean, percentile};

/// Two packets that find a queue of one node full belong to one episode of congestion if no more than this
/// lies between them: ours, a little less than B-MSF needs with one cell to see MAX_NEC = 48 slotframes of 29 slots.
const EPISODE_GAP: Duration = Duration::from_secs(10);

/// For so long after a loss, transactions are "after" it.
const AFTERMATH: Duration = Duration::from_secs(600);

/// Share of the packets of applications that ended without arriving which found a queue full. Routing is left
/// out: it probes links that are bad, and loses on them what no queue has to do with.
pub fn queue_loss_share(outcome: &Outcome) -> Option<f64> {
    let lost = outcome.up.dropped + outcome.down.dropped;
    let full = outcome.up.overflowed + outcome.down.overflowed;
    (lost > 0).then(|| full as f64 / lost as f64)
}

/// Share of frames to one neighbour that were lost because another node sent.
pub fn collision_share(outcome: &Outcome) -> Option<f64> {
    let frames = outcome.frames;
    (frames.sent > 0).then(|| frames.collided as f64 / frames.sent as f64)
}

/// Share of frames to one neighbour that it could not hear because it sent itself.
pub fn deaf_share(outcome: &Outcome) -> Option<f64> {
    let frames = outcome.frames;
    (frames.sent > 0).then(|| frames.deaf as f64 / frames.sent as f64)
}

/// Median length of the episodes of congestion that began after the warm-up, in seconds.
///
/// An episode is a stretch of time in which packets find a queue of one node full, with no more than
/// ten seconds between two of them. An episode of a single packet has no length and counts as zero.
pub fn episode_median_s(outcome: &Outcome, warmup: Duration) -> Option<f64> {
    let mut open: BTreeMap<NodeId, (Instant, Instant)> = BTreeMap::new();
    let mut lengths = Vec::new();
    let mut close = |(first, last): (Instant, Instant)| {
        if first >= Instant::ZERO + warmup {
            lengths.push(last.since(first).as_secs_f64());
        }
    };
    for &(at, node) in &outcome.overflows {
        match open.get_mut(&node) {
            Some(episode) if at.since(episode.1) <= EPISODE_GAP => episode.1 = at,
            Some(episode) => {
                close(*episode);
                *episode = (at, at);
            }
            None => _ = open.insert(node, (at, at)),
        }
    }
    open.into_values().for_each(close);
    lengths.sort_unstable_by(f64::total_cmp);
    percentile(&lengths, 50.0)
}

/// What losses do to the timeouts of the nodes that are farthest from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aftermath {
    /// Share of losses after which the next timeout was longer than the last one before.
    pub raised: Option<f64>,
    /// Mean gap of timeout less round-trip time in the ten minutes after a loss, divided by the mean gap at other times.
    pub gap_ratio: Option<f64>,
}

/// The aftermath of losses at the nodes that are seven hops from the root, or as far as any is.
///
/// A loss is a transaction that needed a second copy. Gaps are those of transactions that did not.
pub fn aftermath(outcome: &Outcome, warmup: Duration) -> Aftermath {
    /// The leaf of the paper's figure 7.
    const HOPS: u32 = 7;
    let hops = |node: NodeId| outcome.nodes.get(node.index()).and_then(|node| node.hops);
    let farthest = outcome.nodes.iter().filter_map(|node| node.hops).max().unwrap_or_default();
    let mut told: BTreeMap<NodeId, Vec<&Transaction>> = BTreeMap::new();
    for transaction in &outcome.transactions {
        let measured = transaction.issued >= Instant::ZERO + warmup && transaction.sent.is_some();
        if measured && hops(transaction.node) == Some(farthest.min(HOPS)) {
            told.entry(transaction.node).or_default().push(transaction);
        }
    }
    let mut losses = Losses::default();
    for transactions in told.values() {
        losses.add(transactions);
    }
    let (after, before) = (mean(&losses.after), mean(&losses.before));
    Aftermath {
        raised: (losses.count > 0).then(|| losses.raised as f64 / losses.count as f64),
        gap_ratio: after.zip(before.filter(|gap| *gap > 0.0)).map(|(after, before)| after / before),
    }
}

#[derive(Default)]
struct Losses {
    count: u32,
    raised: u32,
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Losses {
    /// Takes the transactions of one node in order of time.
    fn add(&mut self, transactions: &[&Transaction]) {
        let mut last_loss: Option<Instant> = None;
        let mut last_rto: Option<Duration> = None;
        let mut waiting: Option<Duration> = None;
        for transaction in transactions {
            let (Some(sent), Some(rto)) = (transaction.sent, transaction.rto) else { continue };
            if let Some(before) = waiting.take() {
                self.count += 1;
                self.raised += u32::from(rto > before);
            }
            if transaction.retransmissions > 0 {
                waiting = last_rto.or(Some(rto));
                last_loss = transaction.ended.or(Some(sent));
            } else if let (Ending::Acknowledged, Some(rtt)) =
                (transaction.ending, transaction.delay())
            {
                let gap = rto.as_secs_f64() - rtt.as_secs_f64();
                match last_loss {
                    Some(loss) if sent.since(loss) <= AFTERMATH => self.after.push(gap),
                    _ => self.before.push(gap),
                }
            }
            last_rto = Some(rto);
        }
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::{Frames, NodeSummary, Packets};

    use super::*;

    fn overflow(at_s: u64, node: u16) -> (Instant, NodeId) {
        (Instant::from_secs(at_s), NodeId(node))
    }

    fn transaction(sent_s: u64, rto_s: u64, rtt_s: u64, retransmissions: u8) -> Transaction {
        let sent = Instant::from_secs(sent_s);
        Transaction {
            node: NodeId(1),
            issued: sent,
            sent: Some(sent),
            ended: Some(sent + Duration::from_secs(rtt_s)),
            ending: Ending::Acknowledged,
            retransmissions,
            rto: Some(Duration::from_secs(rto_s)),
        }
    }

    fn with(transactions: Vec<Transaction>) -> Outcome {
        let node = |hops| NodeSummary { hops: Some(hops), ..NodeSummary::default() };
        Outcome { nodes: vec![node(0), node(1)], transactions, ..Outcome::default() }
    }

    #[test]
    fn a_run_without_losses_has_none_of_these_numbers() {
        let outcome = Outcome::default();
        assert_eq!(queue_loss_share(&outcome), None);
        assert_eq!(collision_share(&outcome), None);
        assert_eq!(deaf_share(&outcome), None);
        assert_eq!(episode_median_s(&outcome, Duration::ZERO), None);
        assert_eq!(aftermath(&outcome, Duration::ZERO), Aftermath::default());
    }

    #[test]
    fn losses_are_split_by_cause() {
        let up = Packets { dropped: 3, overflowed: 2, ..Packets::default() };
        let down = Packets { dropped: 5, overflowed: 4, ..Packets::default() };
        let control = Packets { dropped: 90, ..Packets::default() };
        let frames = Frames { sent: 100, collided: 3, deaf: 2, ..Frames::default() };
        let outcome = Outcome { up, down, control, frames, ..Outcome::default() };
        assert_eq!(queue_loss_share(&outcome), Some(0.75));
        assert_eq!(collision_share(&outcome), Some(0.03));
        assert_eq!(deaf_share(&outcome), Some(0.02));
    }

    #[test]
    fn an_episode_ends_after_ten_seconds_without_a_full_queue_at_that_node() {
        let overflows = vec![
            overflow(5, 1),
            overflow(100, 1),
            overflow(105, 2),
            overflow(110, 1),
            overflow(120, 1),
            overflow(131, 1),
        ];
        let outcome = Outcome { overflows, ..Outcome::default() };
        // Node 1: 100 to 120 s and 131 s; node 2: 105 s. The one at 5 s is of the warm-up.
        assert_eq!(episode_median_s(&outcome, Duration::from_secs(60)), Some(0.0));
        let longer = Outcome { overflows: outcome.overflows[..4].to_vec(), ..Outcome::default() };
        assert_eq!(episode_median_s(&longer, Duration::from_secs(110)), None);
        let one = [overflow(100, 1), overflow(110, 1), overflow(120, 1)].to_vec();
        let one = Outcome { overflows: one, ..Outcome::default() };
        assert_eq!(episode_median_s(&one, Duration::ZERO), Some(20.0));
    }

    #[test]
    fn a_loss_that_lengthens_the_timeout_widens_the_gap() {
        let outcome = with(vec![
            transaction(10, 2, 1, 0),
            transaction(20, 2, 3, 1),
            transaction(30, 5, 1, 0),
            transaction(700, 2, 1, 0),
        ]);
        let found = aftermath(&outcome, Duration::ZERO);
        assert_eq!(found, Aftermath { raised: Some(1.0), gap_ratio: Some(4.0) });
    }

    #[test]
    fn a_loss_that_leaves_the_timeout_is_counted_as_such() {
        let outcome = with(vec![transaction(10, 2, 3, 1), transaction(20, 2, 1, 0)]);
        let found = aftermath(&outcome, Duration::ZERO);
        assert_eq!((found.raised, found.gap_ratio), (Some(0.0), None));
    }
}
