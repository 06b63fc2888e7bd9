//! The node: its parts, and what can be asked about it.

use alloc::vec::Vec;

use lowmesh_units::{Rank, Rng};
use lowmesh_wire::rpl::Address;

use crate::Sequence;
use crate::base::Base;
use crate::config::Config;
use crate::dodag::Dodag;
use crate::downward::Downward;
use crate::membership::Membership;
use crate::route::Route;

/// Counters of a root that must not start over after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// The DODAG version.
    pub version: Sequence,
    /// The DTSN; the root increments it to ask for DAOs.
    pub dtsn: Sequence,
}

/// One node's RPL.
#[derive(Debug)]
pub struct Rpl {
    pub(crate) base: Base,
    pub(crate) membership: Membership,
    pub(crate) downward: Downward,
}

impl Rpl {
    /// A node that is not started. `rng` is its stream for Trickle and jitter.
    pub fn new(config: Config, rng: Rng) -> Self {
        let (membership, downward) = (Membership::new(&config), Downward::new(config.routes_max));
        Self { base: Base::new(config, rng), membership, downward }
    }

    /// What a root has to keep where a restart does not lose it; `None` at routers.
    pub fn advertised(&self) -> Option<Advertised> {
        let version = self.dodag_version().map_or(self.membership.first_version, Sequence);
        self.is_root().then_some(Advertised { version, dtsn: self.membership.dtsn })
    }
    /// A root that is not started lost its memory, all but this: it continues its DODAG version, and asks by the next DTSN
    /// for DAOs (RFC 6550 s9.6).
    pub fn resume(&mut self, former: Advertised) {
        self.membership.first_version = former.version;
        self.membership.dtsn = former.dtsn.next();
        self.membership.has_lost_routes = true;
    }

    /// True when this node is in a DODAG.
    pub fn is_joined(&self) -> bool {
        self.member().is_some()
    }
    /// True in a mode in which each router has routes.
    pub fn is_storing(&self) -> bool {
        self.base.config.is_storing()
    }
    /// True for a root.
    pub const fn is_root(&self) -> bool {
        self.base.config.is_root()
    }
    /// This node's rank; infinite when it is in no DODAG.
    pub fn rank(&self) -> Rank {
        self.member().map_or(Rank::INFINITE, |dodag| dodag.rank)
    }
    /// DAGRank of this node's rank: whole hops' worth of it (RFC 6550 s3.5.1); 0 when it is in no DODAG.
    pub fn dag_rank(&self) -> u16 {
        self.member().map_or(0, |dodag| dodag.dag_rank(dodag.rank))
    }
    /// The link-local address of the preferred parent.
    pub fn preferred_parent(&self) -> Option<Address> {
        self.membership.preferred_parent()
    }
    /// True while new RPL options have the type 0x23, as the root decides (RFC 9008 s4.1.3).
    pub fn has_rpi_0x23(&self) -> bool {
        self.member().is_some_and(Dodag::has_rpi_0x23)
    }
    /// True while the packets of this node have 6LoRH, as the root decides (RFC 9035 s4).
    pub fn has_sixlorh(&self) -> bool {
        self.member().is_some_and(Dodag::has_sixlorh)
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
        self.downward.routes().iter()
    }
    /// The neighbours over which routes lead, ordered; only in storing mode.
    pub fn children(&self) -> impl Iterator<Item = &Address> {
        self.downward.routes().children().filter(|_| self.base.config.is_storing())
    }
    /// The neighbours that registered for a group, for themselves or for nodes below them, ordered.
    pub fn subscribed(&self, group: &Address) -> impl Iterator<Item = &Address> {
        self.downward.subscribed(group)
    }
    /// The candidate neighbours with the rank they last advertised, ordered.
    pub fn neighbours(&self) -> impl Iterator<Item = (&Address, Rank)> {
        self.membership.neighbours.iter().map(|neighbour| (&neighbour.address, neighbour.rank))
    }
    /// At the root in non-storing mode: the hops to `target`, first hop first, the target last.
    pub fn source_route(&self, target: &Address) -> Option<Vec<Address>> {
        let dodag = self.member()?;
        if self.base.config.is_storing() || !self.is_root() {
            return None;
        }
        let routes = self.downward.routes();
        routes.source_route(&dodag.address, target, self.base.config.source_route_hops_max)
    }
    /// At the root: the global address of the router of a leaf that runs no RPL (RFC 9010).
    pub fn router_of(&self, leaf: &Address) -> Option<Address> {
        self.member()?;
        self.downward.router_of(leaf).copied().filter(|_| self.is_root())
    }
    /// The name of the objective function.
    pub fn objective_name(&self) -> &'static str {
        self.base.objective.name()
    }

    pub(crate) const fn member(&self) -> Option<&Dodag> {
        self.membership.member()
    }
}
