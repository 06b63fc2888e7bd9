//! What the figures need of a run's trace: who joined when, who is whose parent, and how long requests took
//! from how many hops away.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use anyhow::{Context, Result};
use serde_json::Value;

/// Index of a node; 0 is the root.
pub type Node = usize;

/// An acknowledged request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// When its first copy was sent, in seconds.
    pub sent_s: f64,
    /// From then to the acknowledgement, in seconds.
    pub took_s: f64,
    /// Hops from its node to the root over the parents of that moment; none while there was no way.
    pub hops: Option<usize>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The node with each EUI-64 that has booted.
    pub named: BTreeMap<String, Node>,
    /// When each node first had both a synchronised clock and a parent, in seconds.
    pub joined_s: BTreeMap<Node, f64>,
    /// The parents at the end.
    pub parents: BTreeMap<Node, Node>,
    /// The acknowledged requests.
    pub delays: Vec<Delay>,
    /// Nodes with a synchronised clock at the end.
    pub synchronised: BTreeSet<Node>,
    /// Requests that had no acknowledgement at the end, by name: when sent, and from how many hops away.
    pub under_way: BTreeMap<String, (f64, Option<usize>)>,
}

impl Run {
    /// Reads a trace; lines about other events are passed over unread.
    pub fn read(mut lines: impl BufRead) -> Result<Self> {
        let mut run = Self::default();
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if wanted(&line) {
                let fact: Value = serde_json::from_str(&line).context("a line is not JSON")?;
                run.note(&fact).with_context(|| format!("unexpected line {}", line.trim_end()))?;
            }
            line.clear();
        }
        Ok(run)
    }

    fn note(&mut self, fact: &Value) -> Option<()> {
        let now = fact["t_s"].as_f64()?;
        let node = usize::try_from(fact["node"].as_u64()?).ok()?;
        let transaction = || fact["transaction"].as_str();
        match fact["event"].as_str()? {
            "booted" => _ = self.named.insert(fact["eui64"].as_str()?.to_owned(), node),
            "synchronised" => _ = self.synchronised.insert(node),
            "desynchronised" => _ = self.synchronised.remove(&node),
            "parent" => match fact["parent"].as_str() {
                Some(parent) => _ = self.parents.insert(node, *self.named.get(parent)?),
                None => _ = self.parents.remove(&node),
            },
            "transaction_sent" => {
                let sent = (now, self.hops(node));
                self.under_way.insert(transaction()?.to_owned(), sent);
            }
            "transaction_acknowledged" => {
                let (sent_s, hops) = self.under_way.remove(transaction()?)?;
                self.delays.push(Delay { sent_s, took_s: now - sent_s, hops });
            }
            _ => {}
        }
        if self.synchronised.contains(&node) && self.parents.contains_key(&node) {
            self.joined_s.entry(node).or_insert(now);
        }
        Some(())
    }

    /// Hops to the root; none while parents lead nowhere or in a circle.
    pub fn hops(&self, node: Node) -> Option<usize> {
        let (mut at, mut hops) = (node, 0);
        while at != 0 {
            at = *self.parents.get(&at)?;
            hops += 1;
            if hops > self.parents.len() {
                return None;
            }
        }
        Some(hops)
    }

    /// The children of each of `nodes` nodes at the end, in order, of nodes that have a way to the root.
    pub fn tree(&self, nodes: usize) -> Vec<Vec<Node>> {
        let mut children = vec![Vec::new(); nodes];
        for (&node, &parent) in &self.parents {
            if node < nodes && parent < nodes && self.hops(node).is_some() {
                children[parent].push(node);
            }
        }
        children
    }
}

/// Most lines are about frames; looking for a word is cheaper than parsing them.
fn wanted(line: &str) -> bool {
    const EVENTS: [&str; 6] = [
        "\"event\":\"booted\"",
        "\"event\":\"parent\"",
        "\"event\":\"synchronised\"",
        "\"event\":\"desynchronised\"",
        "\"event\":\"transaction_sent\"",
        "\"event\":\"transaction_acknowledged\"",
    ];
    // The event stands near the front; frames are long.
    let head = line.get(..80).unwrap_or(line);
    EVENTS.iter().any(|event| head.contains(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"
{"t_s":0.0,"node":0,"event":"booted","eui64":"02-4c-4d-00-00-00-00-00"}
{"t_s":0.5,"node":3,"event":"booted","eui64":"ca-31-07-aa-50-1e-9b-64"}
{"t_s":0.7,"node":258,"event":"booted","eui64":"02-4c-4d-00-00-00-01-02"}
{"t_s":1.5,"node":3,"event":"heard","from":0,"rssi_dbm":-71.4,"length":95}
{"t_s":2.0,"node":3,"event":"synchronised"}
{"t_s":3.0,"node":3,"event":"parent","parent":"02-4c-4d-00-00-00-00-00"}
{"t_s":4.0,"node":258,"event":"parent","parent":"ca-31-07-aa-50-1e-9b-64"}
{"t_s":5.0,"node":258,"event":"synchronised"}
{"t_s":6.0,"node":258,"event":"transaction_sent","transaction":"1","rto_ms":2000.0}
{"t_s":6.5,"node":258,"event":"parent","parent":null}
{"t_s":7.0,"node":258,"event":"transaction_acknowledged","transaction":"1","rtt_ms":1000.0,"retransmissions":0}
{"t_s":8.0,"node":258,"event":"parent","parent":"02-4c-4d-00-00-00-01-02"}
"#;

    fn run() -> Run {
        Run::read(TRACE.trim_start().as_bytes()).expect("a good trace")
    }

    #[test]
    fn a_node_has_joined_once_it_has_both_a_clock_and_a_parent() {
        assert_eq!(run().joined_s, BTreeMap::from([(3, 3.0), (258, 5.0)]));
    }

    #[test]
    fn a_request_has_the_hops_of_the_moment_it_was_sent() {
        assert_eq!(run().delays, [Delay { sent_s: 6.0, took_s: 1.0, hops: Some(2) }]);
    }

    #[test]
    fn a_node_in_a_circle_hangs_on_no_tree() {
        let tree = run().tree(300);
        assert_eq!(tree[0], [3]);
        assert!(tree[3].is_empty() && tree[258].is_empty());
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_is_an_error() {
        let line = r#"{"t_s":7.0,"node":2,"event":"transaction_acknowledged","transaction":"9"}"#;
        assert!(Run::read(line.as_bytes()).is_err());
    }
}
