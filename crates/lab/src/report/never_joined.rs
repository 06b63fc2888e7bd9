//! Nodes that never joined: their number and names, and what they did not send.

use crate::runner::Run;
use crate::unreached::listed;
use std::collections::BTreeMap;

/// What to say after runs in which nodes never joined.
pub fn never_joined(runs: &[Run]) -> Option<String> {
    // In how many runs each node never joined.
    let mut nodes: BTreeMap<u16, usize> = BTreeMap::new();
    for node in runs.iter().flat_map(|run| &run.metrics.never_joined_nodes) {
        *nodes.entry(*node).or_default() += 1;
    }
    if nodes.is_empty() {
        return None;
    }
    let of = |(node, count): (&u16, &usize)| match (*count, runs.len()) {
        (count, all) if count == all => node.to_string(),
        (count, all) => format!("{node} (in {count} of {all} runs)"),
    };
    let names: Vec<String> = nodes.iter().map(of).collect();
    let (count, all) = (nodes.len(), runs.iter().map(|run| run.metrics.nodes).max()?);
    let unsent: u64 = runs.iter().map(|run| run.metrics.unsent).sum();
    let cost = match unsent {
        0 => "no request or datagram was due at them".to_owned(),
        1 => "1 request or datagram that nobody sent (`unsent`) counts as failed".to_owned(),
        more => format!("{more} requests or datagrams that nobody sent (`unsent`) count as failed"),
    };
    Some(format!("{count} of {all} nodes never joined: {}; {cost}", listed(&names)))
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Duration, Seed};

    use super::*;
    use crate::detail::Detail;
    use crate::metrics::Metrics;

    fn run(never_joined_nodes: &[u16], unsent: u64) -> Run {
        let never_joined_nodes = never_joined_nodes.to_vec();
        let metrics = Metrics { nodes: 3, never_joined_nodes, unsent, ..Metrics::default() };
        let (seed, simulated, detail) = (Seed(1), Duration::ZERO, Detail::default());
        Run { seed, trace_hash: 0, simulated, wall_s: 0.0, metrics, detail }
    }

    #[test]
    fn nodes_are_named_with_the_runs_that_they_missed() {
        assert_eq!(never_joined(&[run(&[], 4)]), None, "late is not never");
        assert_eq!(
            never_joined(&[run(&[2, 3], 40), run(&[3], 20)]).as_deref(),
            Some(
                "2 of 3 nodes never joined: 2 (in 1 of 2 runs), 3; 60 requests or datagrams that nobody sent (`unsent`) \
                 count as failed"
            )
        );
        let silent = never_joined(&[run(&[1], 0)]).expect("one never joined");
        assert!(silent.ends_with("1; no request or datagram was due at them"), "{silent}");
    }
}
