//! What queries of an entity come to: times, reliability, requests and frames (Ishaq et al. 2016, section 5).

use lowmesh_sim::record::{Outcome, Query};
use lowmesh_units::{Duration, Instant};

use super::Metrics;
use crate::statistics::{mean, percentile, ratio};

/// A query whose result comes before this needed no second copy of a request: RFC 7252 s4.8, ACK_TIMEOUT.
const WITHOUT_COPIES: Duration = Duration::from_secs(2);

/// Adds the metrics of the queries that were issued from `start` on.
pub(super) fn add(metrics: &mut Metrics, outcome: &Outcome, start: Instant) {
    let members = outcome.entity_members.len() as u64;
    let hops = outcome.entity_members.iter();
    let hops = hops.filter_map(|id| outcome.nodes.get(id.index()).and_then(|node| node.hops));
    let hops: Vec<f64> = hops.map(f64::from).collect();
    metrics.entity_hops_mean = mean(&hops);
    metrics.entity_hops_most = hops.iter().copied().reduce(f64::max);
    let measured = outcome.queries.iter().filter(|query| query.issued >= start);
    let (ended, open): (Vec<&Query>, Vec<&Query>) =
        measured.partition(|query| query.ended.is_some());
    metrics.queries = (ended.len() + open.len()) as u64;
    metrics.queries_open = open.len() as u64;
    if ended.is_empty() {
        return;
    }
    let sorted = |time: &dyn Fn(&Query) -> Option<Instant>| -> Vec<f64> {
        let since = |query: &&Query| Some(time(query)?.since(query.issued).as_millis_f64());
        let mut times: Vec<f64> = ended.iter().filter_map(since).collect();
        times.sort_unstable_by(f64::total_cmp);
        times
    };
    let times = sorted(&|query| query.ended);
    metrics.query_mean_ms = mean(&times);
    metrics.query_least_ms = times.first().copied();
    metrics.query_p50_ms = percentile(&times, 50.0);
    metrics.query_p95_ms = percentile(&times, 95.0);
    metrics.query_most_ms = times.last().copied();
    let limit = WITHOUT_COPIES.as_millis_f64();
    let quick = times.iter().filter(|time| **time < limit).count();
    metrics.query_without_copies = ratio(quick as u64, ended.len() as u64);
    let last = sorted(&|query| query.last_answer);
    metrics.last_answer_mean_ms = mean(&last);
    metrics.last_answer_least_ms = last.first().copied();
    metrics.last_answer_most_ms = last.last().copied();
    let count = ended.len() as u64;
    let answered: u64 = ended.iter().map(|query| u64::from(query.answered)).sum();
    metrics.member_reliability = ratio(answered, count * members);
    let whole = ended.iter().filter(|query| u64::from(query.answered) == members).count();
    metrics.entity_reliability = ratio(whole as u64, count);
    metrics.query_member_ms = metrics.query_mean_ms.map(|mean| mean / members.max(1) as f64);
    let both = metrics.member_reliability.zip(metrics.entity_reliability);
    metrics.reliability_gap = both.map(|(member, entity)| member - entity);
    metrics.query_requests =
        ratio(ended.iter().map(|query| u64::from(query.requests)).sum(), count);
    metrics.query_frames = ratio(ended.iter().map(|query| query.frames).sum(), count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_sim::record::NodeSummary;
    use lowmesh_units::NodeId;

    fn query(issued: u64, took_ms: Option<u64>, answered: u16) -> Query {
        let issued = Instant::from_secs(issued);
        let ended = took_ms.map(|ms| issued + Duration::from_millis(ms));
        Query {
            node: NodeId(1),
            issued,
            ended,
            last_answer: ended,
            answered,
            failed: 2 - answered,
            is_success: true,
            requests: 2,
            frames: 8,
        }
    }

    #[test]
    fn queries_after_the_warm_up_are_measured_and_open_ones_are_in_no_mean() {
        let queries = vec![
            query(1, Some(9000), 2),
            query(20, Some(100), 2),
            query(30, Some(2500), 1),
            query(40, None, 0),
        ];
        let nodes =
            [0, 1, 3].map(|hops| NodeSummary { hops: Some(hops), ..NodeSummary::default() });
        let (nodes, entity_members) = (nodes.to_vec(), vec![NodeId(1), NodeId(2)]);
        let outcome = Outcome { queries, nodes, entity_members, ..Outcome::default() };
        let metrics = Metrics::of(&outcome, Duration::from_secs(10));
        assert_eq!((metrics.queries, metrics.queries_open), (3, 1));
        assert_eq!((metrics.query_mean_ms, metrics.query_most_ms), (Some(1300.0), Some(2500.0)));
        assert_eq!(
            (metrics.member_reliability, metrics.entity_reliability),
            (Some(0.75), Some(0.5))
        );
        assert_eq!((metrics.query_without_copies, metrics.query_frames), (Some(0.5), Some(8.0)));
        assert_eq!((metrics.entity_hops_mean, metrics.entity_hops_most), (Some(2.0), Some(3.0)));
    }
}
