//! What follows from the neighbours (RFC 6550 s8.2.2): another parent, another rank, detaching, poisoning, probing. The
//! choice itself is in `choice`.

use alloc::vec::Vec;

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{Address, Dis, Message};

use crate::base::Base;
use crate::choice::Choice;
use crate::config::Probe;
use crate::dodag::{Dodag, State};
use crate::downward::Downward;
use crate::event::{Destination, Output};
use crate::membership::{Membership, schedule_probe, tell_loss};
use crate::neighbour::{Etx, Neighbour};
use crate::params;
use crate::timer::Timer;

impl Membership {
    /// Looks at the parents again after something changed; true when the parent or DAGRank did.
    pub(crate) fn reconsider(
        &mut self,
        now: Instant,
        downward: &mut Downward,
        base: &mut Base,
    ) -> bool {
        if base.config.is_root() {
            return false;
        }
        match &self.state {
            State::Member(dodag) => {
                if let Some(choice) = self.chooser(now, downward.routes(), base).choose(dodag) {
                    return self.settle(now, choice, downward, base);
                }
                self.detach(now, downward, base);
                true
            }
            State::Poisoning(dodag) => {
                // Below a lower rank than its own was, a node is sure not to join its own sub-DODAG.
                let mut again = Dodag { rank: dodag.lowest, ..dodag.clone() };
                let Some(choice) = self.chooser(now, downward.routes(), base).choose(&again) else {
                    return false;
                };
                again.rank = Rank::INFINITE;
                self.enter(now, again, base);
                self.settle(now, choice, downward, base)
            }
            State::Stopped | State::Seeking => false,
        }
    }

    fn settle(
        &mut self,
        now: Instant,
        choice: Choice,
        downward: &mut Downward,
        base: &mut Base,
    ) -> bool {
        if choice.unmeasured.is_some() && base.config.probe_period.is_some() {
            let soon = base.jittered(params::URGENT_PROBE / 2);
            base.timers.set_no_later(Timer::Probe, now + soon);
        }
        let Some(dodag) = self.member_mut() else { return false };
        dodag.better_since = choice.better_waits.then(|| dodag.better_since.unwrap_or(now));
        let old = dodag.parent;
        dodag.parent = Some(choice.parent);
        let moved = old != Some(choice.parent);
        if moved {
            dodag.better_since = None;
            base.outbox.push(Output::ParentChanged { old, new: Some(choice.parent) });
            downward.on_new_parent(now, old, choice.parent, self.upward(), base);
        }
        self.answer_dtsn(now, downward, base);
        self.update_rank(now, base) || moved
    }

    /// Answers a new DTSN of the parent with DAOs, also one from before it was the parent, and increments its own DTSN.
    /// RFC 6550 s9.6 requires this in non-storing mode. In storing mode routes of this node may have ended as well, while
    /// those above it had none.
    pub(crate) fn answer_dtsn(&mut self, now: Instant, downward: &mut Downward, base: &mut Base) {
        let wanted = self.preferred_parent().is_some_and(|p| self.neighbours.wants_daos(&p));
        let too_soon = |renewed| now < renewed + params::RENEWAL_INTERVAL;
        if !wanted || self.renewed.is_some_and(too_soon) {
            return;
        }
        self.renewed = Some(now);
        self.neighbours.note_answered();
        self.dtsn = self.dtsn.next();
        self.hear_inconsistent(now, base);
        downward.advertise_all(now, self.member(), base);
    }

    /// Takes the rank that the parent gives; true when the DAGRank changed.
    fn update_rank(&mut self, now: Instant, base: &mut Base) -> bool {
        let State::Member(dodag) = &mut self.state else { return false };
        let Some(parent) = dodag.parent.and_then(|address| self.neighbours.get(&address)) else {
            return false;
        };
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let rank = base.objective.rank_through(parent.rank, parent.etx, min_hop);
        let old = dodag.take_rank(now, rank);
        let changed = dodag.dag_rank(old) != dodag.dag_rank(rank);
        let advertised = dodag.advertised;
        let hops = if rank > advertised {
            params::SIGNIFICANT_RISE_HOPS
        } else {
            params::SIGNIFICANT_FALL_HOPS
        };
        if rank.0.abs_diff(advertised.0) >= hops.saturating_mul(min_hop) {
            self.trickle.hear_inconsistent(now, &mut base.rng);
        }
        if changed {
            base.outbox.push(Output::RankChanged { rank });
        }
        changed
    }

    /// Leaves the DODAG and poisons the sub-DODAG (RFC 6550 s8.2.2.5).
    pub(crate) fn detach(&mut self, now: Instant, downward: &mut Downward, base: &mut Base) {
        let State::Member(mut dodag) = core::mem::replace(&mut self.state, State::Seeking) else {
            return;
        };
        tell_loss(dodag.parent, base);
        let hold = dodag.trickle_settings().imin * params::POISON_INTERVALS;
        dodag.parent = None;
        dodag.better_since = None;
        self.state = State::Poisoning(dodag);
        // Ranks from before may be those of nodes that are in the own sub-DODAG by now.
        self.neighbours.forget_ranks();
        // The next parent is told everything anyway.
        downward.forget_news();
        let of_leaves = [Timer::External, Timer::ExternalAck];
        let own = [Timer::Dao, Timer::DaoAck, Timer::Refresh, Timer::Probe];
        for timer in own.into_iter().chain(of_leaves) {
            base.timers.clear(timer);
        }
        base.timers.set(Timer::Poison, now + hold);
        self.multicast_dio(now, base);
        if base.config.is_storing() {
            // Multicast poison is not acknowledged, and a child that misses it keeps this node as its parent.
            let children: Vec<Address> = downward.routes().children().copied().collect();
            for child in children {
                self.unicast_dio(now, child, base);
            }
        }
        self.trickle.start(now, &mut base.rng);
    }

    /// From here on, a DIO of any rank within the limit will do (RFC 6550 s8.2.2.4). Ranks from before may be those of the
    /// own sub-DODAG, so they are forgotten.
    pub(crate) fn end_poisoning(&mut self, now: Instant, base: &mut Base) {
        let state = core::mem::replace(&mut self.state, State::Seeking);
        if let State::Poisoning(dodag) = state {
            self.remember(now, dodag);
            self.trickle.stop();
            self.neighbours.forget_ranks();
            self.neighbours.reset_bad_links(base.objective.max_link_metric());
            base.outbox.push(Output::BadLinksReset);
            self.solicit(now, base);
        } else {
            self.state = state;
        }
    }

    pub(crate) fn on_etx(
        &mut self,
        now: Instant,
        address: Address,
        etx: Etx,
        fresh: bool,
        downward: &mut Downward,
        base: &mut Base,
    ) {
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
                self.update_rank(now, base);
            }
            (false, _) if without_place => {}
            (true, true) | (false, false) => {
                self.reconsider(now, downward, base);
            }
            (false, true) if measured => {
                self.reconsider(now, downward, base);
            }
            (false, true) => {}
        }
    }

    /// The link is down. Routes over the neighbour stay until their lifetime ends, a No-Path comes, or a
    /// packet comes back: a link that is down for a while is common, and a child that left says so
    /// through its new parent.
    pub(crate) fn on_unreachable(
        &mut self,
        now: Instant,
        address: Address,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        if let Some(neighbour) = self.neighbours.get_mut(&address) {
            (neighbour.etx, neighbour.rank) = (Etx::DEAD, Rank::INFINITE);
            neighbour.fresh_until = Instant::ZERO;
            self.reconsider(now, downward, base);
        }
    }

    /// A silent parent is kept, because frames to it show whether it answers.
    pub(crate) fn on_silent(&mut self, address: Address) {
        if let Some(neighbour) = self.neighbours.get_mut(&address) {
            neighbour.is_silent = true;
        }
    }

    /// The link layer hears a neighbour again. Of one that it had given up the rank is forgotten, so a DIS asks for it.
    pub(crate) fn on_reachable(&mut self, address: Address, base: &mut Base) {
        if let Some(neighbour) = self.neighbours.get_mut(&address) {
            neighbour.is_silent = false;
        }
        let is_unknown = |n: &Neighbour| n.etx == Etx::DEAD && n.rank == Rank::INFINITE;
        if self.member().is_some() && self.neighbours.get(&address).is_some_and(is_unknown) {
            base.send(Destination::Unicast(address), Message::Dis(Dis::default()));
        }
    }

    /// Sends a probe over the link most worth knowing: that of the parent to be, then the parent's, then
    /// the one that could give the best rank; in turn. The link layer measures it and reports back.
    pub(crate) fn probe(&mut self, now: Instant, downward: &mut Downward, base: &mut Base) {
        schedule_probe(now, base);
        self.reconsider(now, downward, base);
        let Some(dodag) = self.member() else { return };
        let min_hop = dodag.configuration.min_hop_rank_increase;
        let unmeasured = self
            .chooser(now, downward.routes(), base)
            .choose(dodag)
            .and_then(|choice| choice.unmeasured);
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
            match base.config.probe {
                Probe::Dis => {
                    base.send(Destination::Unicast(address), Message::Dis(Dis::default()));
                }
                Probe::Dio => self.unicast_dio(now, address, base),
            }
        }
    }
}
