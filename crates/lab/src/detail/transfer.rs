//! A run over a link: what each client had received over time, and how long the queue was.

use std::collections::BTreeMap;

use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::{Instant, NodeId};
use serde::{Deserialize, Serialize};

use super::tenth;

/// Steps of a curve at most; of more, the last of each stretch is kept, and of queues the longest.
pub const STEPS_MAX: usize = 240;

/// A transfer over a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Each client with its curve.
    pub clients: Vec<Received>,
    /// Octets that waited in the direction with the longer queue: seconds from the start of the run, and octets.
    pub queue: Vec<(f32, u32)>,
}

/// What one client had received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// The client.
    pub node: u16,
    /// When its first request was issued, in seconds from the start of the run.
    pub issued_s: f32,
    /// Seconds from the start of the run, and answers so far.
    pub steps: Vec<(f32, u32)>,
}

impl Transfer {
    /// The transfer of a run; absent without a link.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        if outcome.lines.is_empty() {
            return None;
        }
        let mut clients: BTreeMap<NodeId, Vec<&Transaction>> = BTreeMap::new();
        for transaction in &outcome.transactions {
            clients.entry(transaction.node).or_default().push(transaction);
        }
        let clients = clients.into_iter().filter_map(|(node, all)| received(node, &all)).collect();
        let queues = outcome.lines.iter().flat_map(|line| &line.queues);
        let longest = queues.max_by_key(|queue| queue.most_octets);
        let samples = longest.map_or(&[][..], |queue| &queue.samples);
        let group = samples.len().div_ceil(STEPS_MAX).max(1);
        let longest = |group: &[lowmesh_wired::QueueSample]| {
            let sample =
                group.iter().copied().reduce(|a, b| if b.octets > a.octets { b } else { a })?;
            Some((tenth(sample.at.as_secs_f64()), u32::try_from(sample.octets).unwrap_or(u32::MAX)))
        };
        Some(Self { clients, queue: samples.chunks(group).filter_map(longest).collect() })
    }
}

fn received(node: NodeId, all: &[&Transaction]) -> Option<Received> {
    let issued = all.iter().map(|one| one.issued).min()?;
    let answered = all.iter().filter(|one| one.ending == Ending::Acknowledged);
    let mut ends: Vec<Instant> = answered.filter_map(|one| one.ended).collect();
    ends.sort_unstable();
    let group = ends.len().div_ceil(STEPS_MAX).max(1);
    let counted: Vec<(usize, &Instant)> = ends.iter().enumerate().collect();
    let last = |group: &[(usize, &Instant)]| {
        let (index, at) = group.last()?;
        Some((tenth(at.as_secs_f64()), u32::try_from(index + 1).unwrap_or(u32::MAX)))
    };
    let steps = counted.chunks(group).filter_map(last).collect();
    Some(Received { node: node.0, issued_s: tenth(issued.as_secs_f64()), steps })
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::LineRecord;
    use lowmesh_units::Duration;
    use lowmesh_wired::{Counters, QueueSample};

    use super::*;

    #[test]
    fn a_run_without_a_link_has_no_transfer_and_one_with_it_has_bounded_curves() {
        assert_eq!(Transfer::of(&Outcome::default()), None);
        let transaction = |second: u64| Transaction {
            node: NodeId(2),
            issued: Instant::from_secs(30),
            sent: Some(Instant::from_secs(30)),
            ended: Some(Instant::from_secs(31 + second)),
            ending: Ending::Acknowledged,
            retransmissions: 0,
            rto: None,
        };
        let sample = |second: u64| QueueSample {
            at: Instant::ZERO + Duration::from_secs(second),
            octets: second % 100,
        };
        let queue = |most_octets: u64| lowmesh_sim::record::QueueRecord {
            samples: (0..1_000).map(sample).collect(),
            mean_octets: 50.0,
            most_octets,
        };
        let line = LineRecord {
            near: NodeId(1),
            far: NodeId(0),
            counters: [Counters::default(); 2],
            queues: [queue(3), queue(99)],
        };
        let outcome = Outcome {
            transactions: (0..400).map(transaction).collect(),
            lines: vec![line],
            ..Outcome::default()
        };
        let transfer = Transfer::of(&outcome).expect("a link");
        let client = &transfer.clients[0];
        assert_eq!(
            (client.node, client.issued_s, client.steps.last()),
            (2, 30.0, Some(&(430.0, 400)))
        );
        assert_eq!(client.steps.len(), 200);
        assert_eq!(transfer.queue.len(), 200);
        assert_eq!(transfer.queue.iter().map(|step| step.1).max(), Some(99));
    }
}
