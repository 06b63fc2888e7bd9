//! Parent choice and its consequences (RFC 6550 s8.2.2): rank, detaching, poisoning, probing.
//!
//! The parent set is implied: every candidate whose DAGRank is below this node's (RFC 6550 s8.2.1). So the
//! rank follows from the preferred parent alone, and no member of the set can be below this node.

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{Address, Dis, Message};

use crate::config::Probe;
use crate::dodag::{Dodag, State};
use crate::event::{Destination, Output};
use crate::neighbour::{Etx, Neighbour};
use crate::node::Rpl;
use crate::objective::ObjectiveFunction as _;
use crate::params;
use crate::timer::Timer;

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

impl Rpl {
    /// The parent that this node should have in `dodag`, if any will do.
    pub(crate) fn choose(&self, dodag: &Dodag, now: Instant) -> Option<Choice> {
        let choice = self.best(dodag, now, |_| true)?;
        let stale = |address| self.neighbours.get(&address).is_some_and(|n| n.fresh_until <= now);
        if !self.config.objective.measures_first() || !stale(choice.parent) {
            return Some(choice);
        }
        let fresh = self.best(dodag, now, |neighbour| neighbour.fresh_until > now);
        Some(Choice { unmeasured: Some(choice.parent), ..fresh.unwrap_or(choice) })
    }

    /// The best of those neighbours that `may` be chosen, with hysteresis.
    fn best(
        &self,
        dodag: &Dodag,
        now: Instant,
        may: impl Fn(&Neighbour) -> bool,
    ) -> Option<Choice> {
        let mut best: Option<Candidate> = None;
        let mut current = None;
        for neighbour in self.neighbours.iter().filter(|neighbour| may(neighbour)) {
            let Some(rank) = self.rank_below(dodag, neighbour) else { continue };
            let last_resort = neighbour.refused_until > now || self.is_beyond_limit(neighbour);
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
            let after = self.config.objective.switch_after();
            after.is_some_and(|span| now.since(since) >= span)
        };
        let switch = current.0 != best.0
            || gain > self.config.objective.switch_threshold()
            || (gain > 0 && dodag.better_since.is_some_and(lasting));
        let parent = if switch { best.2 } else { current.2 };
        Some(Choice { parent, better_waits: !switch && gain > 0, unmeasured: None })
    }

    /// Whether the link to `neighbour` is too bad for a parent.
    fn is_beyond_limit(&self, neighbour: &Neighbour) -> bool {
        neighbour.etx > self.config.objective.max_link_metric()
    }

    /// The rank this node would have below `neighbour`; `None` when it must not be a parent.
    fn rank_below(&self, dodag: &Dodag, neighbour: &Neighbour) -> Option<Rank> {
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let rank = self.config.objective.rank_through(neighbour.rank, neighbour.etx, min_hop);
        if !dodag.allows(rank) {
            return None;
        }
        let is_parent = dodag.parent == Some(neighbour.address);
        if !is_parent && self.is_beyond_limit(neighbour) {
            return None;
        }
        if !is_parent && dodag.rank != Rank::INFINITE {
            // RFC 6550 s8.2.1: no parent of equal or greater rank, it may be below this node.
            if dodag.dag_rank(neighbour.rank) >= dodag.dag_rank(dodag.rank) {
                return None;
            }
            // Nor one that routes say is below, whatever rank it told last.
            if self.config.is_storing() && self.routes.is_child(&neighbour.address) {
                return None;
            }
        }
        Some(rank)
    }

    /// Looks at the parents again after something changed; true when the parent or DAGRank did.
    pub(crate) fn reconsider(&mut self, now: Instant) -> bool {
        if self.is_root() {
            return false;
        }
        match &self.state {
            State::Member(dodag) => {
                if let Some(choice) = self.choose(dodag, now) {
                    return self.settle(now, choice);
                }
                self.detach(now);
                true
            }
            State::Poisoning(dodag) => {
                // Only above its old place a node is sure not to join its own sub-DODAG.
                let mut again = Dodag { rank: dodag.lowest, ..dodag.clone() };
                let Some(choice) = self.choose(&again, now) else { return false };
                again.rank = Rank::INFINITE;
                self.enter(now, again);
                self.settle(now, choice)
            }
            State::Stopped | State::Seeking => false,
        }
    }

    fn settle(&mut self, now: Instant, choice: Choice) -> bool {
        if choice.unmeasured.is_some() && self.config.probe_period.is_some() {
            let soon = self.jittered(params::URGENT_PROBE / 2);
            self.timers.set_no_later(Timer::Probe, now + soon);
        }
        let Some(dodag) = self.member_mut() else { return false };
        dodag.better_since = choice.better_waits.then(|| dodag.better_since.unwrap_or(now));
        let old = dodag.parent;
        dodag.parent = Some(choice.parent);
        let moved = old != Some(choice.parent);
        if moved {
            dodag.better_since = None;
            self.outbox.push(Output::ParentChanged { old, new: Some(choice.parent) });
            self.advertise_to_new_parent(now, old, choice.parent);
        }
        self.update_rank(now) || moved
    }

    /// Takes the rank that the parent gives; true when the DAGRank changed.
    fn update_rank(&mut self, now: Instant) -> bool {
        let objective = self.config.objective;
        let State::Member(dodag) = &mut self.state else { return false };
        let Some(parent) = dodag.parent.and_then(|address| self.neighbours.get(&address)) else {
            return false;
        };
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let old = core::mem::replace(
            &mut dodag.rank,
            objective.rank_through(parent.rank, parent.etx, min_hop),
        );
        let rank = dodag.rank;
        dodag.lowest = dodag.lowest.min(rank);
        let changed = dodag.dag_rank(old) != dodag.dag_rank(rank);
        let advertised = dodag.advertised;
        let hops = if rank > advertised {
            params::SIGNIFICANT_RISE_HOPS
        } else {
            params::SIGNIFICANT_FALL_HOPS
        };
        if rank.0.abs_diff(advertised.0) >= hops.saturating_mul(min_hop) {
            self.trickle.hear_inconsistent(now, &mut self.rng);
        }
        if changed {
            self.outbox.push(Output::RankChanged { rank });
        }
        changed
    }

    /// Gives up the place in the DODAG and poisons the sub-DODAG (RFC 6550 s8.2.2.5).
    pub(crate) fn detach(&mut self, now: Instant) {
        let State::Member(mut dodag) = core::mem::replace(&mut self.state, State::Seeking) else {
            return;
        };
        self.tell_loss(dodag.parent);
        let hold = dodag.trickle_settings().imin * params::POISON_INTERVALS;
        dodag.parent = None;
        dodag.better_since = None;
        self.state = State::Poisoning(dodag);
        // The next parent is told everything anyway.
        self.advertiser.clear();
        for timer in [Timer::Dao, Timer::DaoAck, Timer::Refresh, Timer::Probe] {
            self.timers.clear(timer);
        }
        self.timers.set(Timer::Poison, now + hold);
        self.multicast_dio();
        self.trickle.start(now, &mut self.rng);
    }

    /// From here on any DIO will do. Ranks from before may be those of the own sub-DODAG, so they are
    /// forgotten, and so is the old place: RFC 6550 s8.2.2.4 would bind it to L for the whole version, which
    /// would leave a node whose neighbourhood changed without a parent until the root repairs.
    pub(crate) fn end_poisoning(&mut self, now: Instant) {
        if let State::Poisoning(_) = self.state {
            self.state = State::Seeking;
            self.trickle.stop();
            self.neighbours.forget_ranks();
            self.neighbours.forgive_links(self.config.objective.max_link_metric());
            self.solicit(now);
        }
    }

    /// Tells the driver that this node has no place any more.
    pub(crate) fn tell_detached(&mut self) {
        let parent = self.preferred_parent();
        self.tell_loss(parent);
    }

    fn tell_loss(&mut self, parent: Option<Address>) {
        if parent.is_some() {
            self.outbox.push(Output::ParentChanged { old: parent, new: None });
        }
        self.outbox.push(Output::RankChanged { rank: Rank::INFINITE });
        self.outbox.push(Output::Detached);
    }

    pub(crate) fn on_etx(&mut self, now: Instant, address: Address, etx: Etx, fresh: bool) {
        if self.state == State::Stopped {
            return;
        }
        let keep = self.preferred_parent();
        let Some(neighbour) = self.neighbours.entry(address, Rank::INFINITE, keep) else { return };
        let worse = etx > neighbour.etx;
        let measured = fresh && neighbour.fresh_until <= now;
        neighbour.fresh_until = if fresh { now + params::FRESH_FOR } else { Instant::ZERO };
        if etx == neighbour.etx && !measured {
            return;
        }
        neighbour.etx = etx;
        let without_place = neighbour.rank == Rank::INFINITE;
        // The hot path: a parent that got better stays, another neighbour that got worse is not chosen.
        match (keep == Some(address), worse) {
            (true, false) => {
                self.update_rank(now);
            }
            (false, _) if without_place => {}
            (true, true) | (false, false) => {
                self.reconsider(now);
            }
            (false, true) if measured => {
                self.reconsider(now);
            }
            (false, true) => {}
        }
    }

    /// The link is down. Routes over the neighbour stay until their lifetime ends, a No-Path comes, or a
    /// packet comes back: a link that is down for a while is common, and a child that left says so
    /// through its new parent.
    pub(crate) fn on_unreachable(&mut self, now: Instant, address: Address) {
        if let Some(neighbour) = self.neighbours.get_mut(&address) {
            (neighbour.etx, neighbour.rank) = (Etx::DEAD, Rank::INFINITE);
            neighbour.fresh_until = Instant::ZERO;
            self.reconsider(now);
        }
    }

    pub(crate) fn schedule_probe(&mut self, now: Instant) {
        if let Some(period) = self.config.probe_period {
            let wait = self.jittered(period);
            self.timers.set(Timer::Probe, now + wait);
        }
    }

    /// Sends a probe over the link most worth knowing: that of the parent to be, then the parent's, then
    /// the one that could give the best rank; in turn. The link layer measures it and reports back.
    pub(crate) fn probe(&mut self, now: Instant) {
        self.schedule_probe(now);
        self.reconsider(now);
        let Some(dodag) = self.member() else { return };
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let unmeasured = self.choose(dodag, now).and_then(|choice| choice.unmeasured);
        let candidate = self
            .neighbours
            .iter()
            .filter(|neighbour| neighbour.fresh_until <= now)
            .filter(|neighbour| dodag.dag_rank(neighbour.rank) < dodag.dag_rank(dodag.rank))
            .min_by_key(|neighbour| {
                let address = Some(neighbour.address);
                // A link is worth what a perfect one would give: its own guess may be what is wrong.
                let hope = neighbour.rank.0.saturating_add(min_hop);
                (unmeasured != address, dodag.parent != address, neighbour.probed, hope)
            })
            .map(|neighbour| neighbour.address);
        if let Some(address) = candidate {
            if let Some(neighbour) = self.neighbours.get_mut(&address) {
                neighbour.probed = now;
            }
            match self.config.probe {
                Probe::Dis => {
                    self.send(Destination::Unicast(address), Message::Dis(Dis::default()));
                }
                Probe::Dio => self.unicast_dio(address),
            }
        }
    }
}
