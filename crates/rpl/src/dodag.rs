//! Membership in a DODAG (RFC 6550 s3.2, s8.2): what is known of it, and this node's rank and parent in it.

use lowmesh_trickle::Settings;
use lowmesh_units::{Duration, Instant, Rank};
use lowmesh_wire::rpl::{Address, Dio, DodagConfiguration, PrefixInformation, RplOption};

use crate::Sequence;
use crate::config::{Config, global_address};
use crate::params;

/// Where a node stands.
///
/// ```text
///   Stopped --Start--> Seeking --DIO--> Member --no parent left--> Poisoning --time--> Seeking (knows its former DODAG)
///   Stopped --Start (root)-----------> Member    Poisoning --DIO from above the old rank--> Member
///   any --Stop--> Stopped
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The link layer is down.
    Stopped,
    /// Listens and asks for DIOs.
    Seeking,
    /// Has a rank, and a parent unless it is the root.
    Member(Dodag),
    /// Lost its last parent, and says so with an infinite rank (RFC 6550 s8.2.2.5).
    Poisoning(Dodag),
}

/// A DODAG, and this node's rank and parent in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dodag {
    pub(crate) id: Address,
    pub(crate) version: Sequence,
    pub(crate) grounded: bool,
    pub(crate) preference: u8,
    pub(crate) configuration: DodagConfiguration,
    /// This node's global address.
    pub(crate) address: Address,
    pub(crate) rank: Rank,
    /// L of RFC 6550 s8.2.2.4: the lowest rank in this version, also before the node left and joined again.
    pub(crate) lowest: Rank,
    /// The rank before its latest rise, and the time of that rise.
    pub(crate) settled: (Rank, Instant),
    /// The rank in the last multicast DIO.
    pub(crate) advertised: Rank,
    pub(crate) parent: Option<Address>,
    /// Since when some neighbour has been better than the parent, by less than the threshold.
    pub(crate) better_since: Option<Instant>,
}

/// The DODAG that a node left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Former {
    pub(crate) dodag: Dodag,
    /// When the node forgets it.
    pub(crate) until: Instant,
}

/// Why a DODAG is not for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsuitable {
    /// The DIO has no DODAG Configuration option; the sender can be asked for it.
    NoConfiguration,
    /// Another objective function, or numbers that make no sense.
    Foreign,
}

impl Dodag {
    /// The DODAG of a root.
    pub(crate) fn of_root(id: Address, config: &Config) -> Self {
        let configuration = config.dodag_configuration();
        // RFC 6550 s8.2.2.1: ROOT_RANK is MinHopRankIncrease.
        let rank = Rank(configuration.min_hop_rank_increase);
        let advertised = Rank::INFINITE;
        Self {
            id,
            version: Sequence::START,
            grounded: true,
            preference: 0,
            configuration,
            address: id,
            rank,
            lowest: rank,
            settled: (rank, Instant::ZERO),
            advertised,
            parent: None,
            better_since: None,
        }
    }

    /// The DODAG that `dio` tells of, as one that is about to join it.
    pub(crate) fn of_dio(dio: &Dio, config: &Config) -> Result<Self, Unsuitable> {
        let configuration = configuration_of(dio).ok_or(Unsuitable::NoConfiguration)?;
        if !is_sane(configuration, config) {
            return Err(Unsuitable::Foreign);
        }
        let prefix = prefix_of(dio).map_or(dio.dodag_id, |information| information.prefix);
        Ok(Self {
            id: dio.dodag_id,
            version: Sequence(dio.version),
            grounded: dio.grounded,
            preference: dio.preference,
            configuration: *configuration,
            address: global_address(&prefix, &config.link_local),
            rank: Rank::INFINITE,
            lowest: Rank::INFINITE,
            settled: (Rank::INFINITE, Instant::ZERO),
            advertised: Rank::INFINITE,
            parent: None,
            better_since: None,
        })
    }

    /// Takes over what the root decides, from the parent's DIO; true when it changed.
    pub(crate) fn follow(&mut self, dio: &Dio, config: &Config) -> bool {
        let before = (self.configuration, self.grounded, self.preference);
        (self.grounded, self.preference) = (dio.grounded, dio.preference);
        if let Some(configuration) = configuration_of(dio)
            && is_sane(configuration, config)
        {
            self.configuration = *configuration;
        }
        before != (self.configuration, self.grounded, self.preference)
    }

    /// DAGRank: RFC 6550 s3.5.1, the whole part of rank over MinHopRankIncrease.
    pub(crate) const fn dag_rank(&self, rank: Rank) -> u16 {
        rank.0 / self.configuration.min_hop_rank_increase
    }

    /// True when the root wants RPL options of the type 0x23 (RFC 9008 s4.1.3).
    pub(crate) const fn has_rpi_0x23(&self) -> bool {
        self.configuration.flags & DodagConfiguration::RPI_0X23 != 0
    }

    /// True when the root wants packets with 6LoRH (RFC 9035 s4).
    pub(crate) const fn has_sixlorh(&self) -> bool {
        self.configuration.flags & DodagConfiguration::SIXLORH != 0
    }

    /// True when RFC 6550 s8.2.2.4 allows this node to take `rank` in this version.
    pub(crate) fn allows(&self, rank: Rank) -> bool {
        let increase = self.configuration.max_rank_increase;
        rank != Rank::INFINITE
            && (increase == 0
                || self.lowest == Rank::INFINITE
                || rank.0 <= self.lowest.0.saturating_add(increase))
    }

    /// Takes `rank`; returns the one before.
    pub(crate) fn take_rank(&mut self, now: Instant, rank: Rank) -> Rank {
        let old = core::mem::replace(&mut self.rank, rank);
        self.lowest = self.lowest.min(rank);
        if rank <= self.settled.0 || now.since(self.settled.1) >= params::RANK_SETTLES {
            self.settled = (old.min(rank), now);
        }
        old
    }
    /// The rank that those below this node have heard of, at least: neighbours of a lower one are not below it. A rank that
    /// rises, as that of a node whose parent dies, soon exceeds what its children said last.
    pub(crate) fn settled_rank(&self, now: Instant) -> Rank {
        let (rank, since) = self.settled;
        if now.since(since) < params::RANK_SETTLES { rank.min(self.rank) } else { self.rank }
    }

    /// When a path lifetime on the air that starts at `now` ends.
    pub(crate) fn expiry(&self, now: Instant, path_lifetime: u8) -> Instant {
        if path_lifetime == params::PATH_FOR_EVER {
            return Instant::FAR_FUTURE;
        }
        now + Duration::from_secs(
            u64::from(path_lifetime) * u64::from(self.configuration.lifetime_unit),
        )
    }

    pub(crate) fn trickle_settings(&self) -> Settings {
        Settings {
            imin: Duration::from_millis(1 << self.configuration.interval_min),
            doublings: self.configuration.interval_doublings,
            redundancy: self.configuration.redundancy,
        }
    }

    /// What DIOs of this node say of the prefix: R is set, so the children learn the whole address.
    pub(crate) const fn prefix_information(&self) -> PrefixInformation {
        PrefixInformation {
            prefix_length: 64,
            on_link: false,
            autonomous: true,
            router_address: true,
            valid_lifetime: u32::MAX,
            preferred_lifetime: u32::MAX,
            prefix: self.address,
        }
    }
}

/// The global address of the sender of `dio`, which came from `link_local`.
pub(crate) fn sender_address(dio: &Dio, link_local: &Address) -> Address {
    match prefix_of(dio) {
        Some(information) if information.router_address => information.prefix,
        Some(information) => global_address(&information.prefix, link_local),
        None => global_address(&dio.dodag_id, link_local),
    }
}

fn configuration_of(dio: &Dio) -> Option<&DodagConfiguration> {
    dio.options.iter().find_map(|option| match option {
        RplOption::DodagConfiguration(configuration) => Some(configuration),
        _ => None,
    })
}

fn prefix_of(dio: &Dio) -> Option<&PrefixInformation> {
    dio.options.iter().find_map(|option| match option {
        RplOption::PrefixInformation(information)
            if information.autonomous && information.prefix_length == 64 =>
        {
            Some(information)
        }
        _ => None,
    })
}

/// A peer's numbers are believed within bounds only: they become intervals, divisors and lifetimes here.
fn is_sane(configuration: &DodagConfiguration, config: &Config) -> bool {
    configuration.objective_code_point == config.code_point()
        && configuration.min_hop_rank_increase > 0
        && configuration.interval_min <= params::DIO_INTERVAL_MIN_MAX
        && configuration.interval_doublings <= params::DIO_INTERVAL_DOUBLINGS_MAX
        && configuration.default_lifetime > 0
        && configuration.lifetime_unit > 0
}
