//! The node as a machine: which input and which timer goes to which part.
//!
//! | input | part |
//! |---|---|
//! | DIS, DIO | `advertise` |
//! | link estimates, repair | `parent` |
//! | DAO | `downward`, `external` about leaves, then `parent` if it came from the parent |
//! | leaves that run no RPL | `external` |
//! | DCO | `external` if it is about leaves, else `downward` |
//! | DAO-ACK | `dao`, then `parent` if it refuses |

use lowmesh_machine::{Machine, Rejected, earliest};
use lowmesh_trickle::Expiry;
use lowmesh_units::{Duration, Instant, Rank};
use lowmesh_wire::rpl::{Address, Dao, DaoAck, Message};

use crate::config::Role;
use crate::dodag::{Dodag, State};
use crate::downward::Place;
use crate::event::{Input, Output};
use crate::membership::{Membership, tell_loss};
use crate::node::Rpl;
use crate::params;
use crate::timer::{TIMERS, Timer, Timers};

impl Rpl {
    fn start(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.membership.state != State::Stopped {
            return Err(Rejected::WrongState {
                what: "start",
                why: "RPL runs already; stop it first",
            });
        }
        let (base, membership) = (&mut self.base, &mut self.membership);
        match base.config.role {
            Role::Root { dodag_id } => {
                let mut dodag = Dodag::of_root(dodag_id, &base.config);
                dodag.version = membership.first_version;
                membership.renewed =
                    core::mem::take(&mut membership.has_lost_routes).then_some(now);
                membership.enter(now, dodag, base);
            }
            Role::Router => {
                membership.state = State::Seeking;
                let wait = base.rng.duration(Duration::ZERO, base.config.dis_start);
                base.timers.set(Timer::Dis, now + wait);
            }
        }
        Ok(())
    }

    fn stop(&mut self, now: Instant) {
        let (base, membership) = (&mut self.base, &mut self.membership);
        if membership.member().is_some() {
            tell_loss(membership.preferred_parent(), base);
        }
        self.downward.clear(base);
        membership.neighbours.clear();
        membership.trickle.stop();
        base.timers = Timers::new();
        // RFC 6550 s9.6: what this node forgets, its children shall advertise again.
        membership.dtsn = membership.dtsn.next();
        let state = core::mem::replace(&mut membership.state, State::Stopped);
        if let State::Member(dodag) | State::Poisoning(dodag) = state {
            membership.remember(now, dodag);
        }
    }

    fn on_message(&mut self, now: Instant, from: Address, multicast: bool, message: &Message) {
        if self.membership.state == State::Stopped || from == self.base.config.link_local {
            return;
        }
        let (base, downward) = (&mut self.base, &mut self.downward);
        match message {
            Message::Dis(dis) => self.membership.on_dis(now, from, multicast, dis, downward, base),
            Message::Dio(dio) => {
                self.membership.on_dio(now, from, multicast, dio, downward, base);
            }
            Message::Dao(dao) => self.on_dao(now, from, dao),
            Message::DaoAck(ack) => self.on_dao_ack(now, from, ack),
            Message::Dco(dco) if !multicast => {
                if let Some(dodag) = self.membership.member() {
                    downward.on_dco(from, dco, dodag, base);
                }
            }
            // No DCO of this node asks for one.
            Message::Dco(_) | Message::DcoAck(_) => {}
        }
    }

    fn on_dao(&mut self, now: Instant, from: Address, dao: &Dao) {
        if self.member().is_none() {
            // The sender has this node as its parent.
            return self.correct(now, from);
        }
        let (base, downward) = (&mut self.base, &mut self.downward);
        let Membership { state: State::Member(dodag), trickle, .. } = &mut self.membership else {
            return;
        };
        if !downward.on_dao(now, from, dao, &mut Place { dodag, trickle }, base) {
            // A parent that is a child. Believe its DAO, not its rank.
            if let Some(neighbour) = self.membership.neighbours.get_mut(&from) {
                neighbour.rank = Rank::INFINITE;
            }
            self.membership.reconsider(now, downward, base);
        }
    }

    fn on_dao_ack(&mut self, now: Instant, from: Address, ack: &DaoAck) {
        let (base, downward) = (&mut self.base, &mut self.downward);
        if downward.external().on_ack(now, from, ack, self.membership.member(), base) {
            return;
        }
        let upward = self.membership.upward();
        if downward.advertiser().on_ack(now, from, ack, upward, base) {
            if let Some(neighbour) = self.membership.neighbours.get_mut(&from) {
                neighbour.refused_until = now + params::REFUSAL;
            }
            self.membership.reconsider(now, downward, base);
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        let Self { base, membership, downward } = self;
        // Each timer at most once, so that not even a period of zero keeps this call from its end.
        for _ in TIMERS {
            let Some(timer) = base.timers.take_due(now) else { break };
            match timer {
                Timer::Dis => membership.solicit(now, base),
                Timer::Poison => membership.end_poisoning(now, base),
                Timer::RouteExpiry => {
                    downward.expire_routes(now, membership.member(), base);
                }
                Timer::Refresh => {
                    if let Some(dodag) = membership.member() {
                        downward.refresh(now, dodag, base);
                    }
                }
                Timer::DaoAck => downward.advertiser().on_timeout(now, membership.upward(), base),
                Timer::Dao => downward.advertiser().send(now, membership.upward(), base),
                Timer::Probe => membership.probe(now, downward, base),
                Timer::ExternalAck => {
                    downward.external().on_timeout(now, membership.member(), base);
                }
                Timer::External => downward.announce_leaf(now, membership.member(), base),
            }
        }
        match membership.trickle.expire(now, &mut base.rng) {
            Some(Expiry::Transmit) => membership.multicast_dio(now, base),
            Some(Expiry::Suppressed) if membership.has_news() => {
                membership.multicast_dio(now, base);
            }
            Some(Expiry::Suppressed) | None => {}
        }
    }

    fn global_repair(&mut self, now: Instant) -> Result<(), Rejected> {
        let rejected =
            Rejected::WrongState { what: "global repair", why: "only a started root can do it" };
        if !self.is_root() {
            return Err(rejected);
        }
        let dodag = self.membership.member_mut().ok_or(rejected)?;
        dodag.version = dodag.version.next();
        self.membership.neighbours.forget_ranks();
        self.membership.hear_inconsistent(now, &mut self.base);
        Ok(())
    }

    fn local_repair(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.is_root() || self.member().is_none() {
            return Err(Rejected::WrongState {
                what: "local repair",
                why: "only a joined router can do it",
            });
        }
        self.membership.detach(now, &mut self.downward, &mut self.base);
        Ok(())
    }
}

impl Machine for Rpl {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        match input {
            Input::Start => return self.start(now),
            Input::Stop => self.stop(now),
            Input::Message { from, multicast, message } => {
                self.on_message(now, from, multicast, message);
            }
            Input::LinkEtx { neighbour, etx, fresh } => {
                let (base, downward) = (&mut self.base, &mut self.downward);
                self.membership.on_etx(now, neighbour, etx, fresh, downward, base);
            }
            Input::NeighbourUnreachable { neighbour } => {
                let (base, downward) = (&mut self.base, &mut self.downward);
                self.membership.on_unreachable(now, neighbour, downward, base);
            }
            Input::NeighbourSilent { neighbour } => self.membership.on_silent(neighbour),
            Input::NeighbourReachable { neighbour } => {
                self.membership.on_reachable(neighbour, &mut self.base);
            }
            Input::Join { group } => {
                self.downward.join(now, group, self.membership.member(), &mut self.base);
            }
            Input::Leave { group } => {
                self.downward.leave(now, &group, self.membership.member(), &mut self.base);
            }
            Input::Attach { leaf, sequence, lifetime } => {
                let (dodag, base) = (self.membership.member(), &mut self.base);
                self.downward.external().attach(now, leaf, (sequence, lifetime), dodag, base);
            }
            Input::Detach { leaf } => {
                let (dodag, base) = (self.membership.member(), &mut self.base);
                self.downward.external().detach(now, &leaf, dodag, base);
            }
            Input::GlobalRepair => return self.global_repair(now),
            Input::LocalRepair => return self.local_repair(now),
            Input::Deadline => self.on_deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.base.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.base.timers.next_deadline(), self.membership.trickle.next_deadline())
    }
}
