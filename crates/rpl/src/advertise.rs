//! DIS and DIO, out and in (RFC 6550 s8.3): Trickle decides when to speak, this file what to say and what
//! counts as news.

use alloc::vec;

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{Address, Dio, Dis, Message, RplOption, SolicitedInformation};

use crate::dodag::{Dodag, State, Unsuitable, sender_address};
use crate::event::{Destination, Output};
use crate::neighbour::Etx;
use crate::node::Rpl;
use crate::params;
use crate::timer::Timer;
use crate::{Order, Sequence};

impl Rpl {
    /// Asks all neighbours for DIOs, again and again until one comes.
    pub(crate) fn solicit(&mut self, now: Instant) {
        if self.state == State::Seeking {
            self.send(Destination::AllRplNodes, Message::Dis(Dis::default()));
            let wait = self.jittered(self.config.dis_period);
            self.timers.set(Timer::Dis, now + wait);
        }
    }

    pub(crate) fn on_dis(&mut self, now: Instant, from: Address, multicast: bool, dis: &Dis) {
        let Some(dodag) = self.member() else { return };
        let asks_for_another = dis.options.iter().any(|option| match option {
            RplOption::SolicitedInformation(asked) => !matches(asked, dodag, self.config.instance),
            _ => false,
        });
        if asks_for_another {
            return;
        }
        if multicast {
            // RFC 6550 s8.3: a multicast DIS that does not ask for another DODAG resets Trickle.
            self.trickle.hear_inconsistent(now, &mut self.rng);
        } else {
            // RFC 6550 s8.3: a unicast DIS is answered by a unicast DIO, and Trickle is left alone.
            self.unicast_dio(from);
        }
    }

    pub(crate) fn multicast_dio(&mut self) {
        let Some(dio) = self.dio() else { return };
        if let State::Member(dodag) | State::Poisoning(dodag) = &mut self.state {
            dodag.advertised = dio.rank;
        }
        self.send(Destination::AllRplNodes, Message::Dio(dio));
    }

    pub(crate) fn unicast_dio(&mut self, to: Address) {
        if let Some(dio) = self.dio() {
            self.send(Destination::Unicast(to), Message::Dio(dio));
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

    fn dio(&self) -> Option<Dio> {
        let (dodag, rank) = match &self.state {
            State::Member(dodag) => (dodag, dodag.rank),
            State::Poisoning(dodag) => (dodag, Rank::INFINITE),
            State::Stopped | State::Seeking => return None,
        };
        Some(Dio {
            instance: self.config.instance,
            version: dodag.version.0,
            rank,
            grounded: dodag.grounded,
            mode: self.config.mode,
            preference: dodag.preference,
            dtsn: self.dtsn.0,
            dodag_id: dodag.id,
            options: vec![
                RplOption::DodagConfiguration(dodag.configuration),
                RplOption::PrefixInformation(dodag.prefix_information()),
            ],
        })
    }

    pub(crate) fn on_dio(&mut self, now: Instant, from: Address, multicast: bool, dio: &Dio) {
        // RFC 6550 s8.5: a node joins as router only where it can follow the mode of operation.
        if dio.instance != self.config.instance || dio.mode != self.config.mode {
            return;
        }
        let (id, version) = match &self.state {
            State::Stopped => return,
            State::Seeking => return self.consider_joining(now, from, dio),
            State::Member(dodag) | State::Poisoning(dodag) => (dodag.id, dodag.version),
        };
        if dio.dodag_id != id {
            return;
        }
        match Sequence(dio.version).order(version) {
            Order::Same => self.on_dio_of_version(now, from, multicast, dio),
            Order::Newer => self.on_newer_version(now, from, dio),
            // RFC 6550 s8.3: who is behind shall hear of the version soon.
            Order::Older => {
                self.note_rank(from, Rank::INFINITE, dio);
                self.trickle.hear_inconsistent(now, &mut self.rng);
                self.reconsider(now);
            }
            Order::Incomparable => {}
        }
    }

    fn consider_joining(&mut self, now: Instant, from: Address, dio: &Dio) {
        if dio.rank == Rank::INFINITE {
            return;
        }
        match Dodag::of_dio(dio, &self.config) {
            Ok(dodag) => {
                self.note_rank(from, dio.rank, dio);
                if self.choose(&dodag, now).is_some() {
                    self.enter(now, dodag);
                    self.reconsider(now);
                } else {
                    self.note_rank(from, Rank::INFINITE, dio);
                }
            }
            // RFC 6550 s6.7.6: a node may ask by unicast DIS for the configuration.
            Err(Unsuitable::NoConfiguration) => {
                self.send(Destination::Unicast(from), Message::Dis(Dis::default()));
            }
            Err(Unsuitable::Foreign) => {}
        }
    }

    fn on_newer_version(&mut self, now: Instant, from: Address, dio: &Dio) {
        if self.is_root() {
            // Only the root makes versions (RFC 6550 s3.2.2): this one is from before it lost its memory.
            if let State::Member(dodag) = &mut self.state {
                dodag.version = Sequence(dio.version).next();
            }
            self.neighbours.forget_ranks();
            self.trickle.hear_inconsistent(now, &mut self.rng);
            return;
        }
        let Ok(mut newer) = Dodag::of_dio(dio, &self.config) else { return };
        if dio.rank == Rank::INFINITE {
            return;
        }
        // RFC 6550 s8.2.2.4 (2): with a new version the old ranks mean nothing, and L starts again.
        self.neighbours.forget_ranks();
        self.note_rank(from, dio.rank, dio);
        if self.choose(&newer, now).is_none() {
            return;
        }
        if let State::Member(dodag) = &self.state {
            (newer.parent, newer.advertised) = (dodag.parent, dodag.advertised);
            self.state = State::Member(newer);
            self.trickle.hear_inconsistent(now, &mut self.rng);
        } else {
            self.enter(now, newer);
        }
        self.reconsider(now);
    }

    fn on_dio_of_version(&mut self, now: Instant, from: Address, multicast: bool, dio: &Dio) {
        let known = self.neighbours.get(&from).map(|neighbour| (neighbour.rank, neighbour.dtsn));
        self.note_rank(from, dio.rank, dio);
        if self.is_root() {
            return;
        }
        let from_parent = self.preferred_parent() == Some(from);
        if from_parent {
            self.follow_parent(now, known.map(|(_, dtsn)| dtsn), dio);
        }
        let changed = self.reconsider(now);
        // RFC 6550 s8.3: a DIO of a lesser DAGRank that changes nothing here is consistent. Those of deeper nodes say nothing
        // about what this node has to tell.
        let same = known.is_none_or(|(rank, _)| rank == dio.rank);
        let is_above = self
            .member()
            .is_some_and(|dodag| dodag.dag_rank(dio.rank) < dodag.dag_rank(dodag.rank));
        if multicast && !changed && is_above && (same || !from_parent) {
            self.trickle.hear_consistent();
        }
    }

    /// Takes over what the parent passes down from the root, and its wish for DAOs.
    fn follow_parent(&mut self, now: Instant, known_dtsn: Option<Sequence>, dio: &Dio) {
        if let State::Member(dodag) = &mut self.state
            && dodag.follow(dio, &self.config)
        {
            self.trickle.configure(dodag.trickle_settings());
        }
        let newer = |dtsn| Sequence(dio.dtsn).order(dtsn) == Order::Newer;
        if known_dtsn.is_some_and(newer) {
            // RFC 6550 s9.6: the parent wants DAOs; in non-storing mode the wish goes on down.
            if !self.config.is_storing() {
                self.dtsn = self.dtsn.next();
                self.trickle.hear_inconsistent(now, &mut self.rng);
            }
            self.advertise_all(now);
        }
    }

    fn note_rank(&mut self, from: Address, rank: Rank, dio: &Dio) {
        let keep = self.preferred_parent();
        if let Some(neighbour) = self.neighbours.entry(from, rank, keep) {
            neighbour.rank = rank;
            neighbour.dtsn = Sequence(dio.dtsn);
            neighbour.global = sender_address(dio, &from);
            if neighbour.etx == Etx::DEAD && rank != Rank::INFINITE {
                // It was given up, and is heard again: worth a try, after all others.
                (neighbour.etx, neighbour.fresh_until) =
                    (Etx(params::ETX_AFTER_LOSS), Instant::ZERO);
            }
        }
    }

    /// Takes a place in `dodag`; for a router the parent is chosen next.
    pub(crate) fn enter(&mut self, now: Instant, dodag: Dodag) {
        let (dodag_id, address) = (dodag.id, dodag.address);
        self.timers.clear(Timer::Dis);
        self.timers.clear(Timer::Poison);
        self.trickle.configure(dodag.trickle_settings());
        self.state = State::Member(dodag);
        self.trickle.start(now, &mut self.rng);
        self.outbox.push(Output::Joined { dodag_id, address });
        if self.is_root() {
            self.outbox.push(Output::RankChanged { rank: self.rank() });
        } else {
            self.schedule_probe(now);
        }
    }
}

/// RFC 6550 s6.7.9: whether this DODAG meets all predicates of a DIS.
fn matches(asked: &SolicitedInformation, dodag: &Dodag, instance: u8) -> bool {
    asked.version.is_none_or(|version| version == dodag.version.0)
        && asked.instance.is_none_or(|asked| asked == instance)
        && asked.dodag_id.is_none_or(|id| id == dodag.id)
}
