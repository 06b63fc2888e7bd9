//! DIS and DIO in (RFC 6550 s8.3): what counts as news, and what follows from it.

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{Address, Dio, Dis, Message, RplOption, SolicitedInformation};

use crate::base::Base;
use crate::dodag::{Dodag, State, Unsuitable};
use crate::downward::Downward;
use crate::event::Destination;
use crate::membership::Membership;
use crate::{Order, Sequence};

impl Membership {
    pub(crate) fn on_dis(
        &mut self,
        now: Instant,
        from: Address,
        multicast: bool,
        dis: &Dis,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        if multicast
            && is_search(dis)
            && let Some(neighbour) = self.neighbours.get_mut(&from)
        {
            neighbour.rank = Rank::INFINITE;
            self.reconsider(now, downward, base);
        }
        let Some(dodag) = self.known(now) else { return };
        let asks_for_another = dis.options.iter().any(|option| match option {
            RplOption::SolicitedInformation(asked) => !matches(asked, dodag, base.config.instance),
            _ => false,
        });
        if asks_for_another {
            return;
        }
        if !multicast {
            // RFC 6550 s8.3: a unicast DIS is answered by a unicast DIO, and Trickle is left alone.
            self.unicast_dio(now, from, base);
        } else if self.member().is_some() {
            // RFC 6550 s8.3: a multicast DIS that does not ask for another DODAG resets Trickle.
            self.hear_inconsistent(now, base);
        }
    }

    pub(crate) fn on_dio(
        &mut self,
        now: Instant,
        from: Address,
        multicast: bool,
        dio: &Dio,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        // RFC 6550 s8.5: a node joins as router only where it can follow the mode of operation.
        if dio.instance != base.config.instance || dio.mode != base.config.mode {
            return;
        }
        let (id, version) = match &self.state {
            State::Stopped => return,
            State::Seeking => return self.consider_joining(now, from, dio, downward, base),
            State::Member(dodag) | State::Poisoning(dodag) => (dodag.id, dodag.version),
        };
        if dio.dodag_id != id {
            return;
        }
        match Sequence(dio.version).order(version) {
            Order::Same => {
                self.on_dio_of_version(now, from, multicast, dio, downward, base);
            }
            Order::Newer => self.on_newer_version(now, from, dio, downward, base),
            // RFC 6550 s8.3: who is behind shall hear of the version soon.
            Order::Older => {
                self.note_rank(from, Rank::INFINITE, dio);
                self.hear_inconsistent(now, base);
                self.reconsider(now, downward, base);
            }
            Order::Incomparable => {}
        }
    }

    fn consider_joining(
        &mut self,
        now: Instant,
        from: Address,
        dio: &Dio,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        if dio.rank == Rank::INFINITE {
            return;
        }
        match Dodag::of_dio(dio, &base.config) {
            Ok(mut dodag) => {
                dodag.lowest = self.lowest_in(now, &dodag);
                self.note_rank(from, dio.rank, dio);
                if self.chooser(now, downward.routes(), base).choose(&dodag).is_some() {
                    self.enter(now, dodag, base);
                    self.reconsider(now, downward, base);
                } else {
                    self.note_rank(from, Rank::INFINITE, dio);
                }
            }
            // RFC 6550 s6.7.6: a node may ask by unicast DIS for the configuration.
            Err(Unsuitable::NoConfiguration) => {
                base.send(Destination::Unicast(from), Message::Dis(Dis::default()));
            }
            Err(Unsuitable::Foreign) => {}
        }
    }

    fn on_newer_version(
        &mut self,
        now: Instant,
        from: Address,
        dio: &Dio,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        if base.config.is_root() {
            // Only the root makes versions (RFC 6550 s3.2.2): this one is from before it lost its memory.
            if let State::Member(dodag) = &mut self.state {
                dodag.version = Sequence(dio.version).next();
            }
            self.neighbours.forget_ranks();
            self.hear_inconsistent(now, base);
            return;
        }
        if dio.rank == Rank::INFINITE {
            // RFC 6550 s8.2.2.5: a neighbour that advertises INFINITE_RANK is not a parent, in either version.
            self.note_rank(from, Rank::INFINITE, dio);
            self.reconsider(now, downward, base);
            return;
        }
        let Ok(mut newer) = Dodag::of_dio(dio, &base.config) else { return };
        // The present parent may be a last resort, and stays eligible in the new version.
        newer.parent = self.preferred_parent();
        // RFC 6550 s8.2.2.4 (2): with a new version the old ranks mean nothing, and L starts again.
        let present = self.neighbours.clone();
        self.neighbours.forget_ranks();
        self.note_rank(from, dio.rank, dio);
        if self.chooser(now, downward.routes(), base).choose(&newer).is_none() {
            // The node stays in its version and keeps the ranks. Only the sender has left this version.
            self.neighbours = present;
            self.note_rank(from, Rank::INFINITE, dio);
            self.reconsider(now, downward, base);
            return;
        }
        if let State::Member(dodag) = &self.state {
            newer.advertised = dodag.advertised;
            self.state = State::Member(newer);
            self.hear_inconsistent(now, base);
        } else {
            self.enter(now, newer, base);
        }
        self.reconsider(now, downward, base);
    }

    fn on_dio_of_version(
        &mut self,
        now: Instant,
        from: Address,
        multicast: bool,
        dio: &Dio,
        downward: &mut Downward,
        base: &mut Base,
    ) {
        let known = self.neighbours.get(&from).map(|neighbour| neighbour.rank);
        self.note_rank(from, dio.rank, dio);
        if base.config.is_root() {
            return;
        }
        let from_parent = self.preferred_parent() == Some(from);
        if from_parent {
            self.follow_parent(dio, base);
        }
        let changed = self.reconsider(now, downward, base);
        // RFC 6550 s8.3: a DIO of a lesser DAGRank that changes nothing here is consistent. Those of deeper nodes say nothing
        // about what this node has to tell.
        let same = known.is_none_or(|rank| rank == dio.rank);
        let is_above = self
            .member()
            .is_some_and(|dodag| dodag.dag_rank(dio.rank) < dodag.dag_rank(dodag.rank));
        if multicast && !changed && is_above && (same || !from_parent) {
            self.trickle.hear_consistent();
        }
    }

    /// Adopts the configuration that the parent passes down from the root.
    fn follow_parent(&mut self, dio: &Dio, base: &Base) {
        if let State::Member(dodag) = &mut self.state
            && dodag.follow(dio, &base.config)
        {
            self.trickle.configure(dodag.trickle_settings());
        }
    }
}

/// True for a DIS to all neighbours that asks for any DODAG (RFC 6550 s8.3): its sender is in none.
fn is_search(dis: &Dis) -> bool {
    let is_choosy = |option: &RplOption| matches!(option, RplOption::SolicitedInformation(_));
    !dis.options.iter().any(is_choosy)
}

/// RFC 6550 s6.7.9: whether this DODAG meets all predicates of a DIS.
fn matches(asked: &SolicitedInformation, dodag: &Dodag, instance: u8) -> bool {
    asked.version.is_none_or(|version| version == dodag.version.0)
        && asked.instance.is_none_or(|asked| asked == instance)
        && asked.dodag_id.is_none_or(|id| id == dodag.id)
}
