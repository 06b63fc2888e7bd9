//! The node as a machine: which input and which timer leads to which act.

use alloc::vec::Vec;

use lowmesh_machine::{Machine, Rejected, earliest};
use lowmesh_trickle::Expiry;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::rpl::{Address, Message};

use crate::config::Role;
use crate::dodag::{Dodag, State};
use crate::event::{Input, Output};
use crate::node::Rpl;
use crate::timer::{TIMERS, Timer, Timers};

impl Rpl {
    fn start(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.state != State::Stopped {
            return Err(Rejected::WrongState {
                what: "start",
                why: "RPL runs already; stop it first",
            });
        }
        match self.config.role {
            Role::Root { dodag_id } => self.enter(now, Dodag::of_root(dodag_id, &self.config)),
            Role::Router => {
                self.state = State::Seeking;
                let wait = self.rng.duration(Duration::ZERO, self.config.dis_start);
                self.timers.set(Timer::Dis, now + wait);
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        if self.member().is_some() {
            self.tell_detached();
        }
        let targets: Vec<Address> = self.routes.iter().map(|(target, _)| *target).collect();
        for target in targets {
            self.remove_route(&target);
        }
        self.routes.clear();
        self.neighbours.clear();
        self.advertiser.clear();
        self.trickle.stop();
        self.timers = Timers::new();
        // RFC 6550 s9.6: what this node forgets, its children shall advertise again.
        self.dtsn = self.dtsn.next();
        self.state = State::Stopped;
    }

    fn on_message(&mut self, now: Instant, from: Address, multicast: bool, message: &Message) {
        if self.state == State::Stopped || from == self.config.link_local {
            return;
        }
        match message {
            Message::Dis(dis) => self.on_dis(now, from, multicast, dis),
            Message::Dio(dio) => self.on_dio(now, from, multicast, dio),
            Message::Dao(dao) => self.on_dao(now, from, dao),
            Message::DaoAck(ack) => self.on_dao_ack(now, from, ack),
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        // Each timer at most once, so that not even a period of zero keeps this call from its end.
        for _ in TIMERS {
            let Some(timer) = self.timers.take_due(now) else { break };
            match timer {
                Timer::Dis => self.solicit(now),
                Timer::Poison => self.end_poisoning(now),
                Timer::RouteExpiry => self.expire_routes(now),
                Timer::Refresh => self.advertise_self(now),
                Timer::DaoAck => self.on_dao_timeout(now),
                Timer::Dao => self.send_dao(now),
                Timer::Probe => self.probe(now),
            }
        }
        match self.trickle.expire(now, &mut self.rng) {
            Some(Expiry::Transmit) => self.multicast_dio(),
            Some(Expiry::Suppressed) if self.has_news() => self.multicast_dio(),
            Some(Expiry::Suppressed) | None => {}
        }
    }

    fn global_repair(&mut self, now: Instant) -> Result<(), Rejected> {
        let rejected =
            Rejected::WrongState { what: "global repair", why: "only a started root can do it" };
        if !self.config.is_root() {
            return Err(rejected);
        }
        let dodag = self.member_mut().ok_or(rejected)?;
        dodag.version = dodag.version.next();
        self.neighbours.forget_ranks();
        self.trickle.hear_inconsistent(now, &mut self.rng);
        Ok(())
    }

    fn local_repair(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.config.is_root() || self.member().is_none() {
            return Err(Rejected::WrongState {
                what: "local repair",
                why: "only a joined router can do it",
            });
        }
        self.detach(now);
        Ok(())
    }
}

impl Machine for Rpl {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        match input {
            Input::Start => return self.start(now),
            Input::Stop => self.stop(),
            Input::Message { from, multicast, message } => {
                self.on_message(now, from, multicast, message);
            }
            Input::LinkEtx { neighbour, etx, fresh } => self.on_etx(now, neighbour, etx, fresh),
            Input::NeighbourUnreachable { neighbour } => self.on_unreachable(now, neighbour),
            Input::GlobalRepair => return self.global_repair(now),
            Input::LocalRepair => return self.local_repair(now),
            Input::Deadline => self.on_deadline(now),
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.timers.next_deadline(), self.trickle.next_deadline())
    }
}
