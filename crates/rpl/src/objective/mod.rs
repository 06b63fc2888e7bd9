//! Objective functions (RFC 6550 s14): what a path is worth, and when a better one is worth a switch.
//!
//! A function is a type that implements [`ObjectiveFunction`], and a row with its name, its parameters and its constructor;
//! [`conformance`] tests both.

pub mod conformance;
mod mrhof;
mod of0;

pub use mrhof::{CLASSIC, MRHOF, Mrhof};
pub use of0::{OF0, Of0};

use alloc::boxed::Box;
use core::fmt::Debug;

use lowmesh_registry::{Algorithm, Breach, Choice, Parameter, Row};
use lowmesh_units::{Duration, Rank};

use crate::neighbour::Etx;
use crate::params::LAST_RESORT_LINK_METRIC;

/// How a node turns its parent's rank and the link to it into its own rank.
pub trait ObjectiveFunction: Debug + Send + Sync {
    /// The name in its row.
    fn name(&self) -> &'static str;
    /// Objective Code Point of the DODAG Configuration option.
    fn code_point(&self) -> u16;
    /// The MinHopRankIncrease that a root announces with this function.
    fn min_hop_rank_increase(&self) -> u16;
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

impl Algorithm for dyn ObjectiveFunction {
    const NOUN: &'static str = "objective function";
    const KEY: &'static str = "rpl.objective";
    const BUILTIN: &'static [&'static Row<Self>] = &[&MRHOF, &CLASSIC, &OF0];
    type Make = fn(&Choice<dyn ObjectiveFunction>) -> Box<dyn ObjectiveFunction>;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}

/// A function of the kind that `choice` names, with its parameters.
pub fn make(choice: &Choice<dyn ObjectiveFunction>) -> Box<dyn ObjectiveFunction> {
    (choice.row().make)(choice)
}

/// The worst link that may lead to a new parent, as a parameter; `default` is in the unit of [`Etx`].
const fn max_link_metric(default: u16) -> Parameter {
    let summary = "The worst link that may lead to a new parent";
    Parameter::number(
        "max_link_metric",
        default as f64 / 128.0,
        1.0,
        LAST_RESORT_LINK_METRIC as f64 / 128.0,
        summary,
    )
    .unit("ETX")
}

/// A rank from a sum that may be too large for one.
fn rank_of(sum: u32) -> Rank {
    u16::try_from(sum).map_or(Rank::INFINITE, Rank)
}
