//! The Minimum Rank with Hysteresis Objective Function (RFC 6719) over ETX, which the rank itself carries:
//! with ETX no metric container is sent (RFC 6719 s3.5).

use alloc::boxed::Box;

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::{Duration, Rank};

use super::{ObjectiveFunction, max_link_metric, rank_of};
use crate::neighbour::Etx;
use crate::params;

/// MRHOF with the threshold of RFC 6719 s5; a smaller gain counts once it has lasted.
pub static MRHOF: Row<dyn ObjectiveFunction> = Row {
    name: "mrhof",
    summary: "Path with the lowest ETX, with hysteresis (RFC 6719)",
    section: "mrhof",
    parameters: &[
        max_link_metric(params::MRHOF_MAX_LINK_METRIC).source("RFC 6719 s5: MAX_LINK_METRIC"),
        switch_threshold(params::MRHOF_SWITCH_THRESHOLD)
            .source("RFC 6719 s5: PARENT_SWITCH_THRESHOLD"),
        switch_after(params::MRHOF_SWITCH_AFTER).source("RPL Lite of Contiki-NG"),
        measures_first(false).source("RFC 6719 has no such rule"),
    ],
    make: |choice| Box::new(Mrhof::of(MRHOF.name, choice)),
};

/// MRHOF as in RPL Classic of Contiki-NG, its implementation with storing mode.
pub static CLASSIC: Row<dyn ObjectiveFunction> = Row {
    name: "mrhof/classic",
    summary: "MRHOF as in RPL Classic of Contiki-NG, with less hysteresis and measured links first",
    section: "mrhof",
    parameters: &[
        max_link_metric(params::CLASSIC_MAX_LINK_METRIC).source(CONTIKI),
        switch_threshold(params::CLASSIC_SWITCH_THRESHOLD).source(CONTIKI),
        switch_after(Duration::ZERO).source(CONTIKI),
        measures_first(true).source(CONTIKI),
    ],
    make: |choice| Box::new(Mrhof::of(CLASSIC.name, choice)),
};

const CONTIKI: &str = "RPL Classic of Contiki-NG";

/// ETX 1 in the unit of [`Etx`].
const ETX_ONE: f64 = 128.0;
/// Largest threshold that a user can ask for: ours, as many transmissions as the worst link takes.
const THRESHOLD_MAX: f64 = params::LAST_RESORT_LINK_METRIC as f64 / ETX_ONE;
/// Longest time that a user can ask for: ours, a day.
const AFTER_MAX: Duration = Duration::from_secs(86_400);

const fn switch_threshold(default: u32) -> Parameter {
    let summary = "Gain in rank above which a node moves to another parent at once";
    Parameter::number("switch_threshold", default as f64 / ETX_ONE, 0.0, THRESHOLD_MAX, summary)
        .unit("ETX")
}

const fn switch_after(default: Duration) -> Parameter {
    let summary = "Time after which a smaller lasting gain is sufficient; 0 for never";
    Parameter::time("switch_after", default, Duration::ZERO, AFTER_MAX, summary)
}

const fn measures_first(default: bool) -> Parameter {
    let summary =
        "Whether a neighbour needs a fresh link estimate to be chosen while some neighbour has one";
    Parameter::flag("measures_first", default, summary)
}

/// Minimum rank with hysteresis.
#[derive(Clone, Copy, Debug)]
pub struct Mrhof {
    name: &'static str,
    max_link_metric: Etx,
    switch_threshold: u32,
    switch_after: Option<Duration>,
    measures_first: bool,
}

impl Mrhof {
    fn of(name: &'static str, choice: &Choice<dyn ObjectiveFunction>) -> Self {
        let after = choice.time("switch_after");
        Self {
            name,
            max_link_metric: Etx::from_f64(choice.number("max_link_metric")),
            switch_threshold: libm::round(choice.number("switch_threshold") * ETX_ONE) as u32,
            switch_after: (after > Duration::ZERO).then_some(after),
            measures_first: choice.flag("measures_first"),
        }
    }
}

impl ObjectiveFunction for Mrhof {
    fn name(&self) -> &'static str {
        self.name
    }
    fn code_point(&self) -> u16 {
        1
    }
    fn min_hop_rank_increase(&self) -> u16 {
        params::MIN_HOP_RANK_INCREASE_MRHOF
    }
    fn max_link_metric(&self) -> Etx {
        self.max_link_metric
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
    use super::super::make;
    use super::*;

    fn mrhof() -> Box<dyn ObjectiveFunction> {
        make(&(&MRHOF).into())
    }

    #[test]
    fn rank_adds_up_etx() {
        assert_eq!(mrhof().rank_through(Rank(128), Etx::from_f64(1.5), 128), Rank(320));
        assert_eq!(mrhof().rank_through(Rank(128), Etx(1), 128), Rank(256));
    }

    #[test]
    fn mrhof_prefers_links_of_four_transmissions_at_most_and_classic_of_eight() {
        let limits = [&MRHOF, &CLASSIC].map(|row| make(&row.into()).max_link_metric());
        assert_eq!(limits, [4.0, 8.0].map(Etx::from_f64));
    }

    #[test]
    fn the_rows_have_the_numbers_of_their_sources() {
        let [rfc, classic] = [&MRHOF, &CLASSIC].map(|row| make(&row.into()));
        assert_eq!((rfc.switch_threshold(), classic.switch_threshold()), (192, 96));
        assert_eq!(
            (rfc.switch_after(), classic.switch_after()),
            (Some(Duration::from_secs(600)), None)
        );
        assert_eq!((rfc.measures_first(), classic.measures_first()), (false, true));
        let choice = Choice::from(&MRHOF).with("switch_threshold", 0.25).expect("within bounds");
        assert_eq!(make(&choice).switch_threshold(), 32);
    }

    #[test]
    fn a_path_beyond_the_largest_cost_will_not_do() {
        assert_eq!(mrhof().rank_through(Rank(32700), Etx(128), 128), Rank::INFINITE);
    }
}
