//! The Minimum Rank with Hysteresis Objective Function (RFC 6719) over ETX, which the rank itself carries:
//! with ETX no metric container is sent (RFC 6719 s3.5).

use lowmesh_units::{Duration, Rank};

use super::{ObjectiveFunction, rank_of};
use crate::neighbour::Etx;
use crate::params;

/// Minimum rank with hysteresis.
#[derive(Clone, Copy, Debug)]
pub struct Mrhof {
    name: &'static str,
    max_link_metric: u16,
    switch_threshold: u32,
    switch_after: Option<Duration>,
    measures_first: bool,
}

impl Mrhof {
    /// With the threshold of RFC 6719 s5; a smaller gain counts once it has lasted.
    pub const RFC_6719: Self = Self {
        name: "mrhof",
        max_link_metric: params::MRHOF_MAX_LINK_METRIC,
        switch_threshold: params::MRHOF_SWITCH_THRESHOLD,
        switch_after: Some(params::MRHOF_SWITCH_AFTER),
        measures_first: false,
    };
    /// As in RPL Classic of Contiki-NG, its implementation with storing mode.
    pub const CLASSIC: Self = Self {
        name: "mrhof/classic",
        max_link_metric: params::CLASSIC_MAX_LINK_METRIC,
        switch_threshold: params::CLASSIC_SWITCH_THRESHOLD,
        switch_after: None,
        measures_first: true,
    };
}

impl ObjectiveFunction for Mrhof {
    fn name(&self) -> &'static str {
        self.name
    }
    fn code_point(&self) -> u16 {
        1
    }
    fn max_link_metric(&self) -> Etx {
        Etx(self.max_link_metric)
    }
    fn rank_through(&self, neighbour: Rank, etx: Etx, min_hop: u16) -> Rank {
        // RFC 6719 s3.2.2: no path beyond MAX_PATH_COST.
        if neighbour == Rank::INFINITE || etx.0 > params::LAST_RESORT_LINK_METRIC {
            return Rank::INFINITE;
        }
        let cost = u32::from(neighbour.0) + u32::from(etx.0.max(min_hop));
        if cost > params::MAX_PATH_COST { Rank::INFINITE } else { rank_of(cost) }
    }
    fn switch_threshold(&self) -> u32 {
        self.switch_threshold
    }
    fn switch_after(&self) -> Option<Duration> {
        self.switch_after
    }
    fn measures_first(&self) -> bool {
        self.measures_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_adds_up_etx() {
        assert_eq!(Mrhof::RFC_6719.rank_through(Rank(128), Etx::from_f64(1.5), 128), Rank(320));
        assert_eq!(Mrhof::RFC_6719.rank_through(Rank(128), Etx(1), 128), Rank(256));
    }

    #[test]
    fn mrhof_prefers_links_of_four_transmissions_at_most_and_classic_of_eight() {
        let limits = [Mrhof::RFC_6719, Mrhof::CLASSIC].map(|mrhof| mrhof.max_link_metric());
        assert_eq!(limits, [4.0, 8.0].map(Etx::from_f64));
    }

    #[test]
    fn a_path_beyond_the_largest_cost_will_not_do() {
        assert_eq!(Mrhof::RFC_6719.rank_through(Rank(32700), Etx(128), 128), Rank::INFINITE);
    }
}
