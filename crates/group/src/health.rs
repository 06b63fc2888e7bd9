//! Which nodes answer, and which are known to be down.
//!
//! ```text
//!   up ── a CON without any answer, or three requests given up while silent ──► down
//!    ▲                                                                           │ a query: one probe at a time; others fail at once
//!    └──────────────────────── any sign of life of the node ─────────────────────┘
//! ```
//! Clients decide how long they wait, so the end of a request alone says nothing of its node. A request that is given up counts
//! only if its node has given no sign of life since the request left: no answer to any request, no notification and no empty
//! ACK. After [`ALIVE_FOR`] a sign is too old to count.
//!
//! A query waits a short time for a probe, and the probe goes on behind it. The requests of validations, observations and
//! memberships have their own pace, are never refused here, and show as well whether a node answers.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use lowmesh_units::Instant;

use crate::params::{ALIVE_FOR, DOWN_AFTER, HEALTH_MAX, PROBE_LIFE, PROBE_LONG, PROBE_WAIT};
use crate::target::Authority;

/// What is known of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When its latest answer came.
    pub answered: Option<Instant>,
    /// Since when requests have had no answer.
    pub failing: Option<Instant>,
    /// Whether queries of it fail at once.
    pub is_down: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    standing: Standing,
    misses: u8,
    /// Its latest sign of life.
    seen: Option<Instant>,
    /// The request that finds out whether it is up again.
    probe: Option<(u64, Instant)>,
    probes: u32,
}

/// What becomes of a request of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ask,
    /// It is the probe, and its query waits for it until the first time. It ends at the second.
    Probe {
        wait: Instant,
        end: Option<Instant>,
    },
    /// A probe is under way, and queries still wait for it.
    Join {
        wait: Instant,
    },
    Fail,
}

/// How a request without an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// After all copies.
    Whole,
    /// Given up before.
    Part,
}

/// All nodes that were asked.
#[derive(Debug, Default)]
pub(crate) struct Health {
    nodes: BTreeMap<Authority, Node>,
}

impl Health {
    pub(crate) fn standing(&self, node: &Authority) -> Standing {
        self.nodes.get(node).map(|node| node.standing).unwrap_or_default()
    }
    /// The probe of a node.
    pub(crate) fn probe(&self, node: &Authority) -> Option<u64> {
        self.nodes.get(node)?.probe.map(|(probe, _)| probe)
    }
    /// How many nodes are known, and how many are down.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.nodes.len(), self.nodes.values().filter(|node| node.standing.is_down).count())
    }
    /// The nodes whose latest requests had no answer.
    pub(crate) fn failing(&self) -> impl Iterator<Item = (&Authority, Standing)> {
        let failing = self.nodes.iter().filter(|(_, node)| node.standing.failing.is_some());
        failing.map(|(authority, node)| (authority, node.standing))
    }
    pub(crate) fn judge(&mut self, node: &Authority, number: u64, now: Instant) -> Verdict {
        let Some(node) = self.nodes.get_mut(node).filter(|node| node.standing.is_down) else {
            return Verdict::Ask;
        };
        if let Some((_, since)) = node.probe {
            let wait = since + PROBE_WAIT;
            return if now < wait { Verdict::Join { wait } } else { Verdict::Fail };
        }
        node.probe = Some((number, now));
        node.probes += 1;
        let is_long = node.probes.is_multiple_of(PROBE_LONG);
        Verdict::Probe { wait: now + PROBE_WAIT, end: (!is_long).then_some(now + PROBE_LIFE) }
    }
    pub(crate) fn on_answer(&mut self, node: &Authority, now: Instant) {
        if let Some(node) = self.entry(node) {
            let standing = Standing { answered: Some(now), ..Standing::default() };
            *node = Node { standing, seen: Some(now), ..Node::default() };
        }
    }
    /// A node shows that it is there, and has not answered.
    pub(crate) fn on_sign(&mut self, node: &Authority, now: Instant) {
        if let Some(node) = self.entry(node) {
            let standing = Standing { answered: node.standing.answered, ..Standing::default() };
            *node = Node { standing, seen: Some(now), ..Node::default() };
        }
    }
    /// A request that left at `sent` has ended without an answer.
    pub(crate) fn on_miss(&mut self, node: &Authority, miss: Miss, sent: Instant, now: Instant) {
        let Some(node) = self.entry(node) else { return };
        if node.seen.is_some_and(|seen| sent <= seen && now < seen + ALIVE_FOR) {
            return;
        }
        node.misses = node.misses.saturating_add(1);
        node.standing.failing.get_or_insert(now);
        node.standing.is_down |= miss == Miss::Whole || node.misses >= DOWN_AFTER;
    }
    /// A request has ended; if it was the probe, the next one may leave.
    pub(crate) fn on_end(&mut self, node: &Authority, number: u64) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.probe = node.probe.filter(|(probe, _)| *probe != number);
        }
    }
    fn entry(&mut self, node: &Authority) -> Option<&mut Node> {
        if self.nodes.len() >= HEALTH_MAX && !self.nodes.contains_key(node) {
            self.nodes.retain(|_, node| node.standing.is_down);
            if self.nodes.len() >= HEALTH_MAX {
                return None;
            }
        }
        Some(self.nodes.entry(node.clone()).or_default())
    }
}

impl Standing {
    /// What people read of it, if anything is known.
    pub fn text(&self, now: Instant) -> Option<String> {
        let seconds = |then: Instant| now.since(then).as_millis() / 1000;
        let answered = self.answered.map(|at| format!("answered {} s ago", seconds(at)));
        let failing = self.failing.map(|since| {
            let what = if self.is_down { "down" } else { "silent" };
            format!("{what} for {} s", seconds(since))
        });
        failing.or(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use lowmesh_units::Duration;

    fn node() -> Authority {
        Authority::of(&"coap://[fd00::1]/".parse().expect("a URI"))
    }

    #[test]
    fn a_node_without_answers_is_probed_by_one_request_at_a_time_until_it_answers() {
        let (node, now) = (node(), Instant::from_secs(100));
        let mut health = Health::default();
        assert_eq!(health.judge(&node, 1, now), Verdict::Ask);
        health.on_miss(&node, Miss::Whole, now, now);
        let (wait, end) = (now + PROBE_WAIT, Some(now + PROBE_LIFE));
        assert_eq!(health.judge(&node, 2, now), Verdict::Probe { wait, end });
        assert_eq!(health.judge(&node, 3, now), Verdict::Join { wait });
        assert_eq!(health.judge(&node, 4, wait), Verdict::Fail);
        health.on_end(&node, 3);
        assert_eq!(health.judge(&node, 5, wait), Verdict::Fail, "the probe goes on");
        health.on_end(&node, 2);
        assert!(matches!(health.judge(&node, 6, wait), Verdict::Probe { .. }));
        assert_eq!(health.count(), (1, 1));
        health.on_answer(&node, wait);
        assert_eq!(health.judge(&node, 7, wait), Verdict::Ask);
        let standing = Standing { answered: Some(wait), ..Standing::default() };
        assert_eq!((health.standing(&node), health.count()), (standing, (1, 0)));
    }

    #[test]
    fn requests_that_are_given_up_count_until_an_answer() {
        let (node, now) = (node(), Instant::from_secs(100));
        let mut health = Health::default();
        for _ in 0..10 {
            (1..DOWN_AFTER).for_each(|_| health.on_miss(&node, Miss::Part, now, now));
            assert_eq!(health.judge(&node, 1, now), Verdict::Ask);
            health.on_answer(&node, now);
        }
        let sent = now + Duration::from_secs(1);
        (0..DOWN_AFTER).for_each(|_| health.on_miss(&node, Miss::Part, sent, sent));
        assert!(health.standing(&node).is_down);
    }

    #[test]
    fn what_is_given_up_counts_only_if_the_node_was_silent_since_it_left() {
        let (node, sent) = (node(), Instant::from_secs(100));
        let (sign, end) = (sent + Duration::from_secs(1), sent + Duration::from_secs(3));
        for miss in [Miss::Part, Miss::Whole] {
            let mut health = Health::default();
            health.on_sign(&node, sign);
            (0..10).for_each(|_| health.on_miss(&node, miss, sent, end));
            assert_eq!(health.standing(&node), Standing::default(), "{miss:?}");
            let late = sign + ALIVE_FOR;
            (0..DOWN_AFTER).for_each(|_| health.on_miss(&node, miss, sent, late));
            assert!(health.standing(&node).is_down, "{miss:?}: the sign is old");
            health.on_sign(&node, late);
            assert!(!health.standing(&node).is_down, "{miss:?}: it is there");
        }
    }

    #[test]
    fn a_standing_says_since_when() {
        let (node, now) = (node(), Instant::from_secs(100));
        let mut health = Health::default();
        let text = |health: &Health, second| {
            health.standing(&node).text(Instant::from_secs(second)).unwrap_or_default()
        };
        assert_eq!(text(&health, 100), "");
        health.on_answer(&node, now);
        assert_eq!(text(&health, 112), "answered 12 s ago");
        health.on_miss(&node, Miss::Part, Instant::from_secs(117), Instant::from_secs(120));
        assert_eq!(text(&health, 125), "silent for 5 s");
        health.on_miss(&node, Miss::Whole, Instant::from_secs(122), Instant::from_secs(125));
        assert_eq!(text(&health, 190), "down for 70 s");
        assert_eq!(health.failing().count(), 1);
    }

    #[test]
    fn one_probe_of_some_lasts_as_long_as_any_request() {
        let (node, now) = (node(), Instant::from_secs(100));
        let mut health = Health::default();
        health.on_miss(&node, Miss::Whole, now, now);
        let mut long = 0;
        for number in 0..PROBE_LONG.into() {
            let verdict = health.judge(&node, number, now);
            long += usize::from(matches!(verdict, Verdict::Probe { end: None, .. }));
            health.on_end(&node, number);
        }
        assert_eq!(long, 1);
    }
}
