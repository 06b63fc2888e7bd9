//! The node: its parts, and what can be asked about it. What it does is in the files of its acts.

use alloc::vec::Vec;

use lowmesh_machine::Outbox;
use lowmesh_trickle::{Settings, Trickle};
use lowmesh_units::{Duration, Rank, Rng};
use lowmesh_wire::rpl::{Address, Message};

use crate::Sequence;
use crate::advertiser::Advertiser;
use crate::config::Config;
use crate::dodag::{Dodag, State};
use crate::event::{Destination, Output};
use crate::neighbour::Neighbours;
use crate::objective::ObjectiveFunction as _;
use crate::params;
use crate::route::{Route, Routes};
use crate::timer::Timers;

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
}
