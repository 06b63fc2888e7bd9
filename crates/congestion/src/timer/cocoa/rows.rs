//! The rows of CoCoA: each named parameter set with the numbers of a user laid over it.
//!
//! Only numbers can be replaced. The rules in which the sources differ (ageing, what the factor is
//! chosen by, the order of updates) stay with the named set, because each belongs to its source.

use alloc::boxed::Box;

use lowmesh_registry::{Choice, Parameter, Row, Search};
use lowmesh_units::Duration;

use super::Cocoa;
use super::parameters::{
    BackoffFactor, DRAFT_03, ECOAP, PAPER_TEXT, Pair, Parameters, SIX_COCOA, TABLE_2,
};
use crate::params::{COCOA_FACTOR_MAX, COCOA_K_MAX, COCOA_THRESHOLD_MAX};
use crate::timer::{MakeTimer, Timer};

const RIGHETTI_TABLE_2: &str = "Righetti et al. 2023, table 2";

const fn row(
    name: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    make: MakeTimer,
) -> Row<dyn Timer> {
    Row { name, summary, section: "cocoa", parameters, make }
}

/// The row of [`TABLE_2`].
pub static COCOA: Row<dyn Timer> = row(
    "cocoa",
    "CoCoA as in table 2 of Righetti et al. 2023",
    &const { parameters(&TABLE_2, RIGHETTI_TABLE_2) },
    |choice, ack_timeout| timer(&TABLE_2, choice, ack_timeout),
);
/// The row of [`TABLE_2`] by its full name.
pub static COCOA_TABLE_2: Row<dyn Timer> = Row {
    name: "cocoa/table-2",
    summary: "Another name for cocoa",
    ..row(COCOA.name, COCOA.summary, COCOA.parameters, COCOA.make)
};
/// The row of [`PAPER_TEXT`].
pub static COCOA_PAPER_TEXT: Row<dyn Timer> = row(
    "cocoa/paper-text",
    "CoCoA as in the text of that paper",
    &const { parameters(&PAPER_TEXT, "Righetti et al. 2023, s II-E") },
    |choice, ack_timeout| timer(&PAPER_TEXT, choice, ack_timeout),
);
/// The row of [`DRAFT_03`].
pub static COCOA_DRAFT_03: Row<dyn Timer> = row(
    "cocoa/draft-03",
    "CoCoA as in draft-ietf-core-cocoa-03",
    &const { parameters(&DRAFT_03, "draft-ietf-core-cocoa-03") },
    |choice, ack_timeout| timer(&DRAFT_03, choice, ack_timeout),
);
/// The row of [`ECOAP`].
pub static COCOA_ECOAP: Row<dyn Timer> = row(
    "cocoa/ecoap",
    "CoCoA as in the ECOAP experiments",
    &const { parameters(&ECOAP, "traces of Vallati et al. 2020") },
    |choice, ack_timeout| timer(&ECOAP, choice, ack_timeout),
);
/// The row of [`SIX_COCOA`].
pub static SIX_COCOA_ROW: Row<dyn Timer> = row(
    "6cocoa",
    "CoCoA tuned for 6TiSCH (Righetti et al. 2023)",
    &const { parameters(&SIX_COCOA, RIGHETTI_TABLE_2) },
    |choice, ack_timeout| timer(&SIX_COCOA, choice, ack_timeout),
);

fn timer(set: &Parameters, choice: &Choice<dyn Timer>, ack_timeout: Duration) -> Box<dyn Timer> {
    Box::new(Cocoa::starting_at(&laid(set, choice), ack_timeout))
}

/// `set` with the numbers of `choice`.
fn laid(set: &Parameters, choice: &Choice<dyn Timer>) -> Parameters {
    Parameters {
        alpha: choice.number("alpha"),
        beta: choice.number("beta"),
        k: Pair { strong: choice.number("k_strong"), weak: choice.number("k_weak") },
        lambda: Pair { strong: choice.number("lambda_strong"), weak: choice.number("lambda_weak") },
        backoff: BackoffFactor {
            lower: choice.time("vbf_lower"),
            upper: choice.time("vbf_upper"),
            below: choice.number("vbf_below"),
            between: choice.number("vbf_between"),
            above: choice.number("vbf_above"),
        },
        ..*set
    }
}

/// The numbers of `set` as parameters, with their source. The ranges of search contain every published value with a margin, and exclude
/// values that are known not to work.
const fn parameters(set: &Parameters, source: &'static str) -> [Parameter; 11] {
    let Parameters { k, lambda, backoff, .. } = set;
    let mut all = [
        share("alpha", set.alpha, "Gain of RTT: the weight of a new sample").search(
            Search::linear(0.05, 0.95, "At 0 the timer learns nothing; at 1 it knows only the last sample."),
        ),
        share("beta", set.beta, "Gain of RTTVAR")
            .search(Search::linear(0.05, 0.95, "As `alpha`.")),
        weight("k_strong", k.strong, "Weight of RTTVAR in the strong estimator's RTO").search(
            Search::linear(
                0.5,
                8.0,
                "With a smaller weight, the RTO is close to the mean, which half of the answers exceed; 8 is twice the weight of TCP.",
            ),
        ),
        weight("k_weak", k.weak, "Weight of RTTVAR in the weak estimator's RTO")
            .search(Search::linear(0.1, 4.0, "A weak sample is already too long.")),
        share("lambda_strong", lambda.strong, "Weight of the strong estimator's RTO in the overall RTO")
            .search(Search::linear(
                0.05,
                0.95,
                "At 0 this estimator has no effect; at 1 the other one has none.",
            )),
        share("lambda_weak", lambda.weak, "Weight of the weak estimator's RTO in the overall RTO")
            .search(Search::linear(0.02, 0.95, "As `lambda_strong`.")),
        threshold("vbf_lower", backoff.lower, "First timeouts below this back off by `vbf_below`")
            .not_above("vbf_upper"),
        threshold("vbf_upper", backoff.upper, "First timeouts above this back off by `vbf_above`"),
        factor("vbf_below", backoff.below, "Back-off factor of short timeouts").search(
            Search::linear(
                1.2,
                4.0,
                "With a larger factor, the fourth retransmission after a first timeout of 1 s exceeds the longest wait of 90 s.",
            ),
        ),
        factor("vbf_between", backoff.between, "Back-off factor of usual timeouts")
            .search(Search::linear(1.1, 3.0, "Around the published values.")),
        factor("vbf_above", backoff.above, "Back-off factor of long timeouts")
            .search(Search::linear(1.0, 2.0, "With 1 there is no back-off.")),
    ];
    let mut index = 0;
    while index < all.len() {
        all[index] = all[index].source(source);
        index += 1;
    }
    all
}

/// A gain, or a weight between old and new.
const fn share(key: &'static str, default: f64, summary: &'static str) -> Parameter {
    Parameter::number(key, default, 0.0, 1.0, summary)
}

/// A weight of RTTVAR.
const fn weight(key: &'static str, default: f64, summary: &'static str) -> Parameter {
    Parameter::number(key, default, 0.0, COCOA_K_MAX, summary)
}

/// A back-off factor.
const fn factor(key: &'static str, default: f64, summary: &'static str) -> Parameter {
    Parameter::number(key, default, 1.0, COCOA_FACTOR_MAX, summary)
}

/// A threshold between back-off factors.
const fn threshold(key: &'static str, default: Duration, summary: &'static str) -> Parameter {
    Parameter::time(key, default, Duration::ZERO, COCOA_THRESHOLD_MAX, summary).search(
        Search::logarithmic(0.5, 60.0, "From short round trips of a mesh to the largest RTO."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn without_numbers_a_set_stays_what_it_is() {
        for (row, set) in [(&COCOA, TABLE_2), (&COCOA_DRAFT_03, DRAFT_03), (&COCOA_ECOAP, ECOAP)] {
            assert_eq!(laid(&set, &row.into()), set);
        }
    }

    #[test]
    fn the_numbers_of_6cocoa_over_cocoa_are_6cocoa_but_for_the_name() {
        let mut choice = Choice::from(&COCOA);
        for parameter in SIX_COCOA_ROW.parameters {
            let value = parameter.default().expect("numbers have defaults");
            choice.set(parameter.key, value).expect("the same keys and bounds");
        }
        assert_eq!(laid(&TABLE_2, &choice), Parameters { name: "cocoa", ..SIX_COCOA });
    }

    #[test]
    fn rules_that_are_no_numbers_stay_with_the_set() {
        let choice = Choice::from(&COCOA_DRAFT_03).with("alpha", 0.5).expect("within bounds");
        assert_eq!(laid(&DRAFT_03, &choice), Parameters { alpha: 0.5, ..DRAFT_03 });
    }

    #[test]
    fn numbers_out_of_bounds_are_named() {
        let plain = Choice::from(&COCOA);
        for (key, value) in
            [("alpha", 1.1), ("beta", f64::NAN), ("k_weak", -1.0), ("vbf_above", 0.9)]
        {
            let error = plain.clone().with(key, value).expect_err(key);
            assert!(error.to_string().starts_with(key), "{error}");
        }
        assert!(plain.clone().with("vbf_upper", Duration::from_secs(91)).is_err());
        assert!(plain.clone().with("alpha", Duration::from_secs(1)).is_err());
        let late = plain.with("vbf_lower", Duration::from_secs(4)).expect("within bounds");
        let error = late.check().expect_err("the set's upper threshold is 3 s");
        assert_eq!(error.to_string(), "vbf_lower = 4s is above vbf_upper = 3s");
    }
}
