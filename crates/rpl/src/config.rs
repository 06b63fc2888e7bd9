//! What a node is told before it starts.

use lowmesh_registry::Choice;
use lowmesh_units::Duration;
use lowmesh_wire::rpl::{Address, DodagConfiguration, Mode};

use crate::objective::{MRHOF, ObjectiveFunction, make};
use crate::params;

/// The message by which a node measures a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Probe {
    /// A unicast DIS: the neighbour answers with a unicast DIO (RFC 6550 s8.3), so its rank is fresh too.
    #[default]
    Dis,
    /// A unicast DIO, as Contiki-NG has by default: only the link is measured.
    Dio,
}

/// Root or router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that makes the DODAG; `dodag_id` is its global address, whose first 64 bits are the prefix of
    /// the network.
    Root {
        /// DODAGID.
        dodag_id: Address,
    },
    /// Joins, and lets others join below it.
    Router,
}

/// The settings of one node. What the root decides for all (Trickle, rank and lifetime numbers) counts only
/// at the root; routers take it from the DODAG Configuration option.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This node's link-local address.
    pub link_local: Address,
    /// Root or router.
    pub role: Role,
    /// Mode of operation, of which both sides must have the same.
    pub mode: Mode,
    /// RPLInstanceID, 0 to 127.
    pub instance: u8,
    /// Root: the RPL option in packets has the type 0x23 (RFC 9008 s4.1.3), else 0x63.
    pub rpi_0x23: bool,
    /// Root: packets have 6LoRH (RFC 8138), as flag T says (RFC 9035).
    pub sixlorh: bool,
    /// Objective function.
    pub objective: Choice<dyn ObjectiveFunction>,
    /// Root: Imin is 2 to this power, in milliseconds.
    pub interval_min: u8,
    /// Root: doublings up to Imax.
    pub interval_doublings: u8,
    /// Root: redundancy constant, 0 for no suppression.
    pub redundancy: u8,
    /// Root: MinHopRankIncrease.
    pub min_hop_rank_increase: u16,
    /// Root: DAGMaxRankIncrease, 0 for no limit.
    pub max_rank_increase: u16,
    /// Root: path lifetime in lifetime units, 255 for ever.
    pub path_lifetime: u8,
    /// Root: lifetime unit in seconds.
    pub lifetime_unit: u16,
    /// Mean wait before the first DAO to a new parent.
    pub dao_delay: Duration,
    /// Mean wait of targets from below before they are passed on.
    pub dao_forward_delay: Duration,
    /// Whether DAOs ask for a DAO-ACK.
    pub dao_ack: bool,
    /// Storing mode: whether DAOs have the flag I, by which a DCO ends the old path to this node after a move (RFC 9009 s4.2).
    pub dco: bool,
    /// Wait for a DAO-ACK.
    pub dao_ack_timeout: Duration,
    /// Retransmissions of a DAO.
    pub dao_retries: u8,
    /// Targets in one DAO, at least 1.
    pub dao_targets: usize,
    /// Latest first DIS.
    pub dis_start: Duration,
    /// Time between DIS.
    pub dis_period: Duration,
    /// Mean time between probes of links without fresh ETX; `None` for no probing.
    pub probe_period: Option<Duration>,
    /// What a probe is.
    pub probe: Probe,
    /// Neighbours kept, at least 1.
    pub neighbours_max: usize,
    /// Routes kept.
    pub routes_max: usize,
    /// Hops of the longest source route.
    pub source_route_hops_max: usize,
}

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
pub struct ConfigError {
    /// The setting.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// What is allowed.
    pub allowed: &'static str,
}

impl Config {
    /// A root in storing mode with MRHOF, at the global address `dodag_id`.
    pub fn root(link_local: Address, dodag_id: Address) -> Self {
        Self { role: Role::Root { dodag_id }, ..Self::router(link_local) }
    }

    /// A router in storing mode with MRHOF.
    pub fn router(link_local: Address) -> Self {
        Self {
            link_local,
            role: Role::Router,
            mode: Mode::Storing,
            instance: params::INSTANCE,
            rpi_0x23: params::RPI_0X23,
            sixlorh: params::SIXLORH,
            objective: Choice::from(&MRHOF),
            interval_min: params::DIO_INTERVAL_MIN,
            interval_doublings: params::DIO_INTERVAL_DOUBLINGS,
            redundancy: params::DIO_REDUNDANCY,
            min_hop_rank_increase: params::MIN_HOP_RANK_INCREASE_MRHOF,
            max_rank_increase: params::MAX_RANK_INCREASE_HOPS * params::MIN_HOP_RANK_INCREASE_MRHOF,
            path_lifetime: params::PATH_LIFETIME,
            lifetime_unit: params::LIFETIME_UNIT,
            dao_delay: params::DAO_DELAY,
            dao_forward_delay: params::DAO_FORWARD_DELAY,
            dao_ack: true,
            dco: params::DCO,
            dao_ack_timeout: params::DAO_ACK_TIMEOUT,
            dao_retries: params::DAO_RETRIES,
            dao_targets: params::DAO_TARGETS,
            dis_start: params::DIS_START,
            dis_period: params::DIS_PERIOD,
            probe_period: Some(params::PROBE_PERIOD),
            probe: Probe::Dis,
            neighbours_max: params::NEIGHBOURS_MAX,
            routes_max: params::ROUTES_MAX,
            source_route_hops_max: params::SOURCE_ROUTE_HOPS_MAX,
        }
    }

    /// The same with another mode of operation.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same with another objective function, a row or a choice, and the rank numbers that go with it.
    #[must_use]
    pub fn with_objective(mut self, objective: impl Into<Choice<dyn ObjectiveFunction>>) -> Self {
        self.objective = objective.into();
        self.min_hop_rank_increase = make(&self.objective).min_hop_rank_increase();
        self.max_rank_increase = params::MAX_RANK_INCREASE_HOPS * self.min_hop_rank_increase;
        self
    }

    /// Checks what a user may have written.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |key, value: u64, allowed| Err(ConfigError { key, value, allowed });
        if self.mode == Mode::NoDownward {
            let allowed = "1 (non-storing), 2 (storing) or 3 (storing with multicast)";
            return error("mode", self.mode as u64, allowed);
        }
        if self.instance > 127 {
            return error("instance", self.instance.into(), "0 to 127");
        }
        if self.interval_min > params::DIO_INTERVAL_MIN_MAX {
            return error("interval_min", self.interval_min.into(), "0 to 24 (2^n ms)");
        }
        if self.interval_doublings > params::DIO_INTERVAL_DOUBLINGS_MAX {
            return error("interval_doublings", self.interval_doublings.into(), "0 to 20");
        }
        if self.min_hop_rank_increase == 0 {
            return error("min_hop_rank_increase", 0, "at least 1");
        }
        if self.path_lifetime == 0 || self.lifetime_unit == 0 {
            return error("path_lifetime", 0, "at least 1, and so the lifetime unit");
        }
        for (key, period) in [
            ("dao_delay", self.dao_delay),
            ("dao_ack_timeout", self.dao_ack_timeout),
            ("dis_period", self.dis_period),
            ("probe_period", self.probe_period.unwrap_or(params::PROBE_PERIOD)),
        ] {
            if period < params::PERIOD_MIN {
                return error(key, period.as_millis(), "at least 10 ms");
            }
        }
        if self.dao_targets == 0 || self.neighbours_max == 0 {
            return error("dao_targets, neighbours_max", 0, "at least 1");
        }
        Ok(())
    }

    /// What the root says in its DIOs.
    pub(crate) fn dodag_configuration(&self) -> DodagConfiguration {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        DodagConfiguration {
            flags: flag(self.rpi_0x23, DodagConfiguration::RPI_0X23)
                | flag(self.sixlorh, DodagConfiguration::SIXLORH),
            authentication: false,
            path_control_size: 0,
            interval_doublings: self.interval_doublings,
            interval_min: self.interval_min,
            redundancy: self.redundancy,
            max_rank_increase: self.max_rank_increase,
            min_hop_rank_increase: self.min_hop_rank_increase.max(1),
            objective_code_point: self.code_point(),
            default_lifetime: self.path_lifetime,
            lifetime_unit: self.lifetime_unit,
        }
    }

    /// Objective Code Point of the objective function.
    pub(crate) fn code_point(&self) -> u16 {
        make(&self.objective).code_point()
    }

    pub(crate) const fn is_root(&self) -> bool {
        matches!(self.role, Role::Root { .. })
    }

    pub(crate) fn is_storing(&self) -> bool {
        matches!(self.mode, Mode::Storing | Mode::StoringMulticast)
    }
    /// Whether DAOs carry memberships in groups (RFC 6550 s12).
    pub(crate) fn has_groups(&self) -> bool {
        self.mode == Mode::StoringMulticast
    }
}

/// The global address that the node with `link_local` has under the first 64 bits of `prefix`.
pub(crate) fn global_address(prefix: &Address, link_local: &Address) -> Address {
    let mut address = *link_local;
    address[..8].copy_from_slice(&prefix[..8]);
    address
}

/// The link-local address with the interface identifier of `address`.
pub(crate) fn link_local_address(address: &Address) -> Address {
    let mut link_local = [0; 16];
    link_local[..2].copy_from_slice(&[0xfe, 0x80]);
    link_local[8..].copy_from_slice(&address[8..]);
    link_local
}
