//! Objective Function Zero (RFC 6552), with the step of rank that 6TiSCH gives it (RFC 8180 s5.1):
//! 3 * ETX - 2, so that a perfect link is one step and a bad one counts for several hops.

use alloc::boxed::Box;

use lowmesh_registry::{Parameter, Row};
use lowmesh_units::{Duration, Rank};

use super::{ObjectiveFunction, max_link_metric, rank_of};
use crate::neighbour::Etx;
use crate::params;

/// OF0.
pub static OF0: Row<dyn ObjectiveFunction> = Row {
    name: "of0",
    summary: "Path with the fewest hops over good links (RFC 6552)",
    section: "of0",
    parameters: &[
        max_link_metric(params::OF0_MAX_LINK_METRIC).source("ours: RFC 6552 has no limit"),
        Parameter::number(
            "switch_threshold",
            params::OF0_SWITCH_THRESHOLD as f64 / HOP,
            0.0,
            THRESHOLD_MAX,
            "Gain in rank above which a node moves to another parent",
        )
        .unit("hops")
        .source("simulations of 6TiSCH: RFC 6552 has none"),
    ],
    make: |choice| {
        let max_link_metric = Etx::from_f64(choice.number("max_link_metric"));
        let switch_threshold = libm::round(choice.number("switch_threshold") * HOP) as u32;
        Box::new(Of0 { max_link_metric, switch_threshold })
    },
};

/// A hop over a perfect link, in rank.
const HOP: f64 = params::MIN_HOP_RANK_INCREASE_OF0 as f64;
/// Largest threshold that a user can ask for: ours, as many hops as the largest step of rank.
const THRESHOLD_MAX: f64 = 9.0;

/// Objective Function Zero.
#[derive(Clone, Copy, Debug)]
pub struct Of0 {
    max_link_metric: Etx,
    switch_threshold: u32,
}

impl ObjectiveFunction for Of0 {
    fn name(&self) -> &'static str {
        OF0.name
    }
    fn code_point(&self) -> u16 {
        0
    }
    fn min_hop_rank_increase(&self) -> u16 {
        params::MIN_HOP_RANK_INCREASE_OF0
    }
    fn max_link_metric(&self) -> Etx {
        self.max_link_metric
    }
    fn rank_through(&self, neighbour: Rank, etx: Etx, min_hop: u16) -> Rank {
        if neighbour == Rank::INFINITE || etx.0 > params::LAST_RESORT_LINK_METRIC {
            return Rank::INFINITE;
        }
        let min_hop = u32::from(min_hop);
        // RFC 6552 s4.1: rank_increase = (Rf * Sp + Sr) * MinHopRankIncrease, here with Rf 1 and Sr 0; Sp is
        // kept between its bounds, so that a poor link is a long way rather than no way.
        let (least, most) = params::OF0_STEP_OF_RANK;
        let increase = (3 * u32::from(etx.0) * min_hop / 128).saturating_sub(2 * min_hop);
        rank_of(u32::from(neighbour.0) + increase.clamp(least * min_hop, most * min_hop))
    }
    fn switch_threshold(&self) -> u32 {
        self.switch_threshold
    }
    fn switch_after(&self) -> Option<Duration> {
        None
    }
    fn measures_first(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_of_rank_is_three_etx_less_two() {
        let of0 = super::super::make(&(&OF0).into());
        assert_eq!((of0.max_link_metric(), of0.switch_threshold()), (Etx::from_f64(8.0), 640));
        let step = |etx| of0.rank_through(Rank(256), Etx::from_f64(etx), 256).0;
        assert_eq!([step(1.0), step(1.5), step(2.0), step(3.0)], [512, 896, 1280, 2048]);
        assert_eq!(step(7.0), 256 + 9 * 256, "a step is at most nine hops");
    }
}
