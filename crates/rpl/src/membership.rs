//! Membership in a DODAG, with its own state: the DODAG of this node, its neighbours, and the DIOs that it sends (RFC 6550
//! s8.3). `advertise` handles DIOs, `parent` chooses among the neighbours.

use alloc::vec;

use lowmesh_trickle::{Settings, Trickle};
use lowmesh_units::{Duration, Instant, Rank};
use lowmesh_wire::rpl::{Address, Dio, Dis, Message, RplOption};

use crate::Sequence;
use crate::base::Base;
use crate::choice::Chooser;
use crate::config::Config;
use crate::dao::Upward;
use crate::dodag::{Dodag, Former, State, sender_address};
use crate::event::{Destination, Output};
use crate::neighbour::{Etx, Neighbours};
use crate::params;
use crate::route::Routes;
use crate::timer::Timer;

/// The DODAG of this node, and its neighbours.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) state: State,
    pub(crate) neighbours: Neighbours,
    pub(crate) trickle: Trickle,
    pub(crate) dtsn: Sequence,
    /// When this node last incremented its DTSN to ask its sub-DODAG for DAOs.
    pub(crate) renewed: Option<Instant>,
    /// At a root: a restart lost the routes, and the root has not started since.
    pub(crate) has_lost_routes: bool,
    /// At a root, the DODAG version with which it starts.
    pub(crate) first_version: Sequence,
    /// The DODAG that this node left last, while it is in none.
    former: Option<Former>,
    /// This node has not joined any DODAG yet.
    is_new: bool,
}

impl Membership {
    /// A node that is not started.
    pub(crate) fn new(config: &Config) -> Self {
        let imin =
            Duration::from_millis(1 << config.interval_min.min(params::DIO_INTERVAL_MIN_MAX));
        let settings =
            Settings { imin, doublings: config.interval_doublings, redundancy: config.redundancy };
        Self {
            state: State::Stopped,
            neighbours: Neighbours::new(config.neighbours_max),
            trickle: Trickle::new(settings),
            dtsn: Sequence::START,
            renewed: None,
            has_lost_routes: false,
            first_version: Sequence::START,
            former: None,
            is_new: true,
        }
    }

    /// This node's place, if it has one.
    pub(crate) const fn member(&self) -> Option<&Dodag> {
        match &self.state {
            State::Member(dodag) => Some(dodag),
            _ => None,
        }
    }
    /// This node's place, if it has one.
    pub(crate) const fn member_mut(&mut self) -> Option<&mut Dodag> {
        match &mut self.state {
            State::Member(dodag) => Some(dodag),
            _ => None,
        }
    }
    /// The DODAG that this node is in, or left less than five minutes ago.
    pub(crate) fn known(&self, now: Instant) -> Option<&Dodag> {
        match &self.state {
            State::Member(dodag) | State::Poisoning(dodag) => Some(dodag),
            State::Seeking => {
                self.former.as_ref().filter(|former| former.until > now).map(|former| &former.dodag)
            }
            State::Stopped => None,
        }
    }
    /// Remembers the DODAG that this node leaves. L binds the node until the version ends or [`params::LIMIT_HOLD`] is over,
    /// and neighbours that still have it as parent get poison.
    pub(crate) fn remember(&mut self, now: Instant, dodag: Dodag) {
        self.former = Some(Former { dodag, until: now + params::LIMIT_HOLD });
    }
    /// L of RFC 6550 s8.2.2.4 in the version of `dodag`, which this node is about to join.
    pub(crate) fn lowest_in(&self, now: Instant, dodag: &Dodag) -> Rank {
        let same = |former: &&Dodag| (former.id, former.version) == (dodag.id, dodag.version);
        self.known(now).filter(same).map_or(Rank::INFINITE, |former| former.lowest)
    }
    pub(crate) fn preferred_parent(&self) -> Option<Address> {
        self.member()?.parent
    }
    /// Where DAOs go.
    pub(crate) const fn upward(&self) -> Upward<'_> {
        Upward { dodag: self.member(), neighbours: &self.neighbours }
    }
    /// What the parent of this node is chosen from.
    pub(crate) fn chooser<'a>(
        &'a self,
        now: Instant,
        routes: &'a Routes,
        base: &'a Base,
    ) -> Chooser<'a> {
        let objective = base.objective.as_ref();
        Chooser { config: &base.config, objective, neighbours: &self.neighbours, routes, now }
    }
    /// Something does not fit: DIOs come soon (RFC 6206 s4.2).
    pub(crate) fn hear_inconsistent(&mut self, now: Instant, base: &mut Base) {
        self.trickle.hear_inconsistent(now, &mut base.rng);
    }

    /// Sends a multicast DIS periodically until a DIO comes. Over a poor link the DIS and the multicast DIO are both lost
    /// often. So the neighbour with the best link also gets a unicast DIS: it answers by unicast (RFC 6550 s8.3), which the
    /// link layer repeats. A node that was in the DODAG before sends none, because that neighbour may be in its sub-DODAG.
    pub(crate) fn solicit(&self, now: Instant, base: &mut Base) {
        if self.state == State::Seeking {
            base.send(Destination::AllRplNodes, Message::Dis(Dis::default()));
            let linked = self.neighbours.iter().filter(|one| one.etx != Etx::DEAD);
            if let Some(best) = linked.min_by_key(|one| one.etx)
                && self.is_new
            {
                base.send(Destination::Unicast(best.address), Message::Dis(Dis::default()));
            }
            let wait = base.jittered(base.config.dis_period);
            base.timers.set(Timer::Dis, now + wait);
        }
    }

    pub(crate) fn multicast_dio(&mut self, now: Instant, base: &mut Base) {
        let Some(dio) = self.dio(now, &base.config) else { return };
        if let State::Member(dodag) | State::Poisoning(dodag) = &mut self.state {
            dodag.advertised = dio.rank;
        }
        base.send(Destination::AllRplNodes, Message::Dio(dio));
    }

    pub(crate) fn unicast_dio(&self, now: Instant, to: Address, base: &mut Base) {
        if let Some(dio) = self.dio(now, &base.config) {
            base.send(Destination::Unicast(to), Message::Dio(dio));
        }
    }

    /// True when the last DIO says another place than this node has now. Suppression is for what others
    /// said too; nobody else says this.
    pub(crate) fn has_news(&self) -> bool {
        match &self.state {
            State::Member(dodag) => dodag.dag_rank(dodag.rank) != dodag.dag_rank(dodag.advertised),
            State::Poisoning(_) => true,
            State::Stopped | State::Seeking => false,
        }
    }

    /// The DIO of this node; of a DODAG that it left, with infinite rank (RFC 6550 s8.2.2.5).
    fn dio(&self, now: Instant, config: &Config) -> Option<Dio> {
        let dodag = self.known(now)?;
        let rank = self.member().map_or(Rank::INFINITE, |member| member.rank);
        Some(Dio {
            instance: config.instance,
            version: dodag.version.0,
            rank,
            grounded: dodag.grounded,
            mode: config.mode,
            preference: dodag.preference,
            dtsn: self.dtsn.0,
            dodag_id: dodag.id,
            options: vec![
                RplOption::DodagConfiguration(dodag.configuration),
                RplOption::PrefixInformation(dodag.prefix_information()),
            ],
        })
    }

    pub(crate) fn note_rank(&mut self, from: Address, rank: Rank, dio: &Dio) {
        let keep = self.preferred_parent();
        if let Some(neighbour) = self.neighbours.entry(from, rank, keep) {
            neighbour.rank = rank;
            neighbour.dtsn = Sequence(dio.dtsn);
            neighbour.answered.get_or_insert(neighbour.dtsn);
            neighbour.global = sender_address(dio, &from);
            if neighbour.etx == Etx::DEAD && rank != Rank::INFINITE {
                // It was given up, and is heard again: worth a try, after all others.
                (neighbour.etx, neighbour.fresh_until) =
                    (Etx(params::ETX_AFTER_LOSS), Instant::ZERO);
            }
        }
    }

    /// Joins `dodag`; a router chooses its parent next.
    pub(crate) fn enter(&mut self, now: Instant, dodag: Dodag, base: &mut Base) {
        let (dodag_id, address, rank) = (dodag.id, dodag.address, dodag.rank);
        base.timers.clear(Timer::Dis);
        base.timers.clear(Timer::Poison);
        self.trickle.configure(dodag.trickle_settings());
        self.state = State::Member(dodag);
        self.former = None;
        self.is_new = false;
        self.trickle.start(now, &mut base.rng);
        base.outbox.push(Output::Joined { dodag_id, address });
        if base.config.is_root() {
            base.outbox.push(Output::RankChanged { rank });
        } else {
            schedule_probe(now, base);
        }
    }
}

/// Tells the driver that this node is in no DODAG any more.
pub(crate) fn tell_loss(parent: Option<Address>, base: &mut Base) {
    if parent.is_some() {
        base.outbox.push(Output::ParentChanged { old: parent, new: None });
    }
    base.outbox.push(Output::RankChanged { rank: Rank::INFINITE });
    base.outbox.push(Output::Detached);
}

pub(crate) fn schedule_probe(now: Instant, base: &mut Base) {
    if let Some(period) = base.config.probe_period {
        let wait = base.jittered(period);
        base.timers.set(Timer::Probe, now + wait);
    }
}
