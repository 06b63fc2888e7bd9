//! The node: its parts, and which input and which timer leads to which act.

use alloc::vec::Vec;

use lowmesh_machine::{Machine, Outbox, Rejected, earliest};
use lowmesh_trickle::{Expiry, Settings, Trickle};
use lowmesh_units::{Duration, Instant, Rank, Rng};
use lowmesh_wire::rpl::{Address, Message};

use crate::config::{Config, Role};
use crate::dao::Advertiser;
use crate::dodag::{Dodag, State};
use crate::event::{Destination, Input, Output};
use crate::neighbour::Neighbours;
use crate::objective::ObjectiveFunction as _;
use crate::params;
use crate::route::{Route, Routes};
use crate::sequence::Sequence;
use crate::timer::{Timer, Timers};

/// One node's RPL.
#[derive(Debug)]
pub struct Rpl {
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) state: State,
    pub(crate) neighbours: Neighbours,
    pub(crate) routes: Routes,
    pub(crate) advertiser: Advertiser,
    pub(crate) dtsn: Sequence,
    pub(crate) trickle: Trickle,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox<Output>,
}

impl Rpl {
    /// A node that is not started. `rng` is its stream for Trickle and jitter.
    pub fn new(config: Config, rng: Rng) -> Self {
        let imin =
            Duration::from_millis(1 << config.interval_min.min(params::DIO_INTERVAL_MIN_MAX));
        let settings =
            Settings { imin, doublings: config.interval_doublings, redundancy: config.redundancy };
        Self {
            rng,
            state: State::Stopped,
            neighbours: Neighbours::new(config.neighbours_max),
            routes: Routes::new(config.routes_max),
            advertiser: Advertiser::new(),
            dtsn: Sequence::START,
            trickle: Trickle::new(settings),
            timers: Timers::new(),
            outbox: Outbox::new(),
            config,
        }
    }

    /// True when this node has a place in a DODAG.
    pub fn is_joined(&self) -> bool {
        self.member().is_some()
    }
    /// True for a root.
    pub const fn is_root(&self) -> bool {
        self.config.is_root()
    }
    /// This node's rank; infinite when it has no place.
    pub fn rank(&self) -> Rank {
        self.member().map_or(Rank::INFINITE, |dodag| dodag.rank)
    }
    /// DAGRank of this node's rank: whole hops' worth of it (RFC 6550 s3.5.1); 0 when it has no place.
    pub fn dag_rank(&self) -> u16 {
        self.member().map_or(0, |dodag| dodag.dag_rank(dodag.rank))
    }
    /// The link-local address of the preferred parent.
    pub fn preferred_parent(&self) -> Option<Address> {
        self.member()?.parent
    }
    /// The DODAG this node belongs to.
    pub fn dodag_id(&self) -> Option<Address> {
        self.member().map(|dodag| dodag.id)
    }
    /// The DODAG version this node belongs to.
    pub fn dodag_version(&self) -> Option<u8> {
        self.member().map(|dodag| dodag.version.0)
    }
    /// This node's global address in the DODAG.
    pub fn address(&self) -> Option<Address> {
        self.member().map(|dodag| dodag.address)
    }
    /// All routes, ordered by target.
    pub fn routes(&self) -> impl Iterator<Item = (&Address, &Route)> {
        self.routes.iter()
    }
    /// The neighbours over which routes lead, ordered; only in storing mode.
    pub fn children(&self) -> impl Iterator<Item = &Address> {
        self.routes.children().filter(|_| self.config.is_storing())
    }
    /// The candidate neighbours with the rank they last advertised, ordered.
    pub fn neighbours(&self) -> impl Iterator<Item = (&Address, Rank)> {
        self.neighbours.iter().map(|neighbour| (&neighbour.address, neighbour.rank))
    }
    /// At the root in non-storing mode: the hops to `target`, first hop first, the target last.
    pub fn source_route(&self, target: &Address) -> Option<Vec<Address>> {
        let dodag = self.member()?;
        if self.config.is_storing() || !self.is_root() {
            return None;
        }
        self.routes.source_route(&dodag.address, target, self.config.source_route_hops_max)
    }
    /// The name of the objective function.
    pub fn objective_name(&self) -> &'static str {
        self.config.objective.name()
    }

    pub(crate) const fn member(&self) -> Option<&Dodag> {
        match &self.state {
            State::Member(dodag) => Some(dodag),
            _ => None,
        }
    }
    pub(crate) const fn member_mut(&mut self) -> Option<&mut Dodag> {
        match &mut self.state {
            State::Member(dodag) => Some(dodag),
            _ => None,
        }
    }
    pub(crate) fn send(&mut self, to: Destination, message: Message) {
        self.outbox.push(Output::Send { to, message });
    }
    /// Half to one and a half times `mean`.
    pub(crate) fn jittered(&mut self, mean: Duration) -> Duration {
        self.rng.duration(mean / 2, mean + mean / 2)
    }

    fn start(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.state != State::Stopped {
            return Err(Rejected { what: "start", why: "RPL runs already; stop it first" });
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
        while let Some(timer) = self.timers.take_due(now) {
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
        let rejected = Rejected { what: "global repair", why: "only a started root can do it" };
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
            return Err(Rejected { what: "local repair", why: "only a joined router can do it" });
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
