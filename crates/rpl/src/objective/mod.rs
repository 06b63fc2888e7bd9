//! Objective functions (RFC 6550 s14): what a path is worth, and when a better one is worth a switch.

mod mrhof;
mod of0;

pub use mrhof::Mrhof;
pub use of0::Of0;

use lowmesh_units::{Duration, Rank};

use crate::neighbour::Etx;

/// How a node turns its parent's rank and the link to it into its own rank.
pub trait ObjectiveFunction {
    /// The name in scenario files.
    fn name(&self) -> &'static str;
    /// Objective Code Point of the DODAG Configuration option.
    fn code_point(&self) -> u16;
    /// The worst link that may lead to a new parent. A parent whose link becomes worse is kept while no other will do.
    fn max_link_metric(&self) -> Etx;
    /// The rank of a node below a neighbour of rank `neighbour` over a link of `etx`; infinite when the
    /// neighbour, the link or the path will not do. A finite rank is at least `min_hop` above the
    /// neighbour's (RFC 6550 s3.5.1).
    fn rank_through(&self, neighbour: Rank, etx: Etx, min_hop: u16) -> Rank;
    /// A gain in rank that is worth a switch at once; a smaller one is not.
    fn switch_threshold(&self) -> u32;
    /// A smaller gain is worth a switch when it lasts this long, if ever.
    fn switch_after(&self) -> Option<Duration>;
    /// Whether a neighbour must have a fresh link estimate to be chosen, as long as some neighbour has one.
    fn measures_first(&self) -> bool;
}

/// The objective functions by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Objective {
    /// `of0`.
    Of0,
    /// `mrhof`.
    #[default]
    Mrhof,
    /// `mrhof/classic`.
    MrhofClassic,
}

impl Objective {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Of0, Self::Mrhof, Self::MrhofClassic];

    /// The one that scenario files call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|objective| objective.name() == name)
    }

    const fn function(self) -> &'static dyn ObjectiveFunction {
        match self {
            Self::Of0 => &Of0,
            Self::Mrhof => &Mrhof::RFC_6719,
            Self::MrhofClassic => &Mrhof::CLASSIC,
        }
    }
}

impl ObjectiveFunction for Objective {
    fn name(&self) -> &'static str {
        self.function().name()
    }
    fn code_point(&self) -> u16 {
        self.function().code_point()
    }
    fn max_link_metric(&self) -> Etx {
        self.function().max_link_metric()
    }
    fn rank_through(&self, neighbour: Rank, etx: Etx, min_hop: u16) -> Rank {
        self.function().rank_through(neighbour, etx, min_hop)
    }
    fn switch_threshold(&self) -> u32 {
        self.function().switch_threshold()
    }
    fn switch_after(&self) -> Option<Duration> {
        self.function().switch_after()
    }
    fn measures_first(&self) -> bool {
        self.function().measures_first()
    }
}

/// A rank from a sum that may be too large for one.
fn rank_of(sum: u32) -> Rank {
    u16::try_from(sum).map_or(Rank::INFINITE, Rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_child_ranks_at_least_one_hop_below_its_parent(
            index in 0..Objective::ALL.len(), rank: u16, etx: u16, min_hop in 1u16..2048,
        ) {
            let objective = Objective::ALL[index];
            let child = objective.rank_through(Rank(rank), Etx(etx), min_hop);
            let hop = u32::from(rank) + u32::from(min_hop);
            prop_assert!(child == Rank::INFINITE || u32::from(child.0) >= hop);
        }

        #[test]
        fn a_worse_link_never_gives_a_better_rank(
            index in 0..Objective::ALL.len(), rank: u16, etx in 128u16..2000, worse in 0u16..2000,
        ) {
            let objective = Objective::ALL[index];
            let through = |etx| objective.rank_through(Rank(rank), Etx(etx), 256);
            prop_assert!(through(etx) <= through(etx + worse));
        }

        #[test]
        fn a_worse_parent_never_gives_a_better_rank(
            index in 0..Objective::ALL.len(), rank in 0u16..30000, worse in 0u16..30000, etx: u16,
        ) {
            let objective = Objective::ALL[index];
            let through = |rank| objective.rank_through(Rank(rank), Etx(etx), 128);
            prop_assert!(through(rank) <= through(rank + worse));
        }
    }

    #[test]
    fn names_and_code_points_lead_to_the_function() {
        for objective in Objective::ALL {
            assert_eq!(Objective::named(objective.name()), Some(objective));
        }
        assert_eq!(Objective::named("OF0"), None);
        assert_eq!(Objective::ALL.map(|objective| objective.code_point()), [0, 1, 1]);
    }

    #[test]
    fn nothing_lies_below_an_infinite_rank_or_a_dead_link() {
        for objective in Objective::ALL {
            let through = |rank, etx| objective.rank_through(rank, etx, 256);
            assert_eq!(through(Rank::INFINITE, Etx(128)), Rank::INFINITE);
            assert_eq!(through(Rank(256), Etx::DEAD), Rank::INFINITE);
            let worst = Etx(params::LAST_RESORT_LINK_METRIC);
            assert!(objective.max_link_metric() <= worst);
            assert_ne!(through(Rank(256), worst), Rank::INFINITE);
            assert_eq!(through(Rank(256), Etx(worst.0 + 1)), Rank::INFINITE);
        }
    }
}
