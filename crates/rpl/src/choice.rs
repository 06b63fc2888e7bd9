//! The choice of the preferred parent (RFC 6550 s8.2.1, RFC 6719 s3.2): a function of the neighbours and the DODAG.
//!
//! The parent set is implied: every candidate whose DAGRank is below this node's (RFC 6550 s8.2.1). So the
//! rank follows from the preferred parent alone, and no member of the set can be below this node.

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::Address;

use crate::config::Config;
use crate::dodag::Dodag;
use crate::neighbour::{Neighbour, Neighbours};
use crate::objective::ObjectiveFunction;
use crate::route::Routes;

/// A choice of parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) parent: Address,
    /// Some neighbour is better than the parent, but not by enough to switch at once.
    pub(crate) better_waits: bool,
    /// Some neighbour would be the parent if its link were measured.
    pub(crate) unmeasured: Option<Address>,
}

/// A neighbour that may be the parent, and whether it is the last resort; the least is the best.
type Candidate = (bool, Rank, Address);

/// What a choice depends on beside the DODAG.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chooser<'a> {
    pub(crate) config: &'a Config,
    pub(crate) objective: &'a dyn ObjectiveFunction,
    pub(crate) neighbours: &'a Neighbours,
    pub(crate) routes: &'a Routes,
    pub(crate) now: Instant,
}

impl Chooser<'_> {
    /// The parent that this node should have in `dodag`, if any will do.
    pub(crate) fn choose(&self, dodag: &Dodag) -> Option<Choice> {
        let (choice, now) = (self.best(dodag, |_| true)?, self.now);
        let stale = |address| self.neighbours.get(&address).is_some_and(|n| n.fresh_until <= now);
        if !self.objective.measures_first() || !stale(choice.parent) {
            return Some(choice);
        }
        let fresh = self.best(dodag, |neighbour| neighbour.fresh_until > now);
        Some(Choice { unmeasured: Some(choice.parent), ..fresh.unwrap_or(choice) })
    }

    /// The best of those neighbours that `may` be chosen, with hysteresis.
    fn best(&self, dodag: &Dodag, may: impl Fn(&Neighbour) -> bool) -> Option<Choice> {
        let mut best: Option<Candidate> = None;
        let mut current = None;
        for neighbour in self.neighbours.iter().filter(|neighbour| may(neighbour)) {
            let Some(rank) = self.rank_below(dodag, neighbour) else { continue };
            let last_resort = neighbour.refused_until > self.now || self.is_beyond_limit(neighbour);
            let candidate = (last_resort, rank, neighbour.address);
            if dodag.parent == Some(neighbour.address) {
                current = Some(candidate);
            }
            if best.is_none_or(|best| candidate < best) {
                best = Some(candidate);
            }
        }
        let best = best?;
        let Some(current) = current else {
            return Some(Choice { parent: best.2, better_waits: false, unmeasured: None });
        };
        // RFC 6719 s3.3: hysteresis. A parent that refuses, or whose link is beyond the limit, is left without.
        let gain = u32::from(current.1.0.saturating_sub(best.1.0));
        let lasting = |since: Instant| {
            let after = self.objective.switch_after();
            after.is_some_and(|span| self.now.since(since) >= span)
        };
        let switch = current.0 != best.0
            || gain > self.objective.switch_threshold()
            || (gain > 0 && dodag.better_since.is_some_and(lasting));
        let parent = if switch { best.2 } else { current.2 };
        Some(Choice { parent, better_waits: !switch && gain > 0, unmeasured: None })
    }

    /// Whether the link to `neighbour` is too bad for a parent.
    fn is_beyond_limit(&self, neighbour: &Neighbour) -> bool {
        neighbour.etx > self.objective.max_link_metric()
    }

    /// The rank this node would have below `neighbour`; `None` when it must not be a parent.
    fn rank_below(&self, dodag: &Dodag, neighbour: &Neighbour) -> Option<Rank> {
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let rank = self.objective.rank_through(neighbour.rank, neighbour.etx, min_hop);
        if !dodag.allows(rank) {
            return None;
        }
        let is_parent = dodag.parent == Some(neighbour.address);
        if !is_parent && (neighbour.is_silent || self.is_beyond_limit(neighbour)) {
            return None;
        }
        if !is_parent && dodag.rank != Rank::INFINITE {
            // RFC 6550 s8.2.1: no parent of equal or greater rank, it may be below this node.
            if dodag.dag_rank(neighbour.rank) >= dodag.dag_rank(dodag.settled_rank(self.now)) {
                return None;
            }
            // Nor one that routes say is below, whatever rank it told last.
            if self.config.is_storing() && self.routes.is_child(&neighbour.address) {
                return None;
            }
        }
        Some(rank)
    }
}
