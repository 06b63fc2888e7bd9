//! The named parameter sets of CoCoA, and where the sources disagree.
//!
//! | set | alpha / beta | K s/w | lambda s/w | weak takes | VBF | ageing |
//! |---|---|---|---|---|---|---|
//! | `paper-text` | .25 / .125 | 4 / 1 | .5 / .25 | 1 rtx | 3, 2, 1.3 at 1, 3 s | eq 10 |
//! | `table-2` | .125 / .25 | 4 / 1 | .5 / .25 | 1 rtx | 2.5, 2, 1.5 at 1, 3 s | eq 10 |
//! | `draft-03` | .125 / .25 | 4 / 1 | .5 / .25 | 2 rtx | 3, 2, 1.5 at 1, 3 s | draft s4.3 |
//! | `ecoap` | .125 / .25 | 4 / 1 | .5 / .25 | any | 3, 2, 1.3 at 1, 1 s | testbed |
//! | `6cocoa` | .9 / .5 | 2 / .5 | .75 / .1 | 1 rtx | 2.2, 1.5, 1.1 at 20, 50 s | eq 10 |

use lowmesh_units::Duration;

/// One value for each estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// For exchanges without retransmission.
    pub strong: f64,
    /// For exchanges with retransmissions.
    pub weak: f64,
}

/// The variable back-off factor: `below` under `lower`, `above` over `upper`, `between` from one to
/// the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffFactor {
    /// Lower threshold.
    pub lower: Duration,
    /// Upper threshold.
    pub upper: Duration,
    /// For short timeouts, so that retransmissions do not follow each other at once.
    pub below: f64,
    /// For usual timeouts.
    pub between: f64,
    /// For long timeouts, so that a retransmission does not come too late.
    pub above: f64,
}

impl BackoffFactor {
    /// The factor for a timeout.
    pub fn of(&self, rto: Duration) -> f64 {
        if rto < self.lower {
            self.below
        } else if rto > self.upper {
            self.above
        } else {
            self.between
        }
    }
}

/// Which timeout the back-off factor is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorOf {
    /// The dithered first timeout of the message (paper eq 8-9; draft s4.2.1).
    Initial,
    /// The overall RTO of the destination (testbed).
    Overall,
}

/// Whether RTTVAR sees the old or the new RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOrder {
    /// RTT first, then RTTVAR with the new RTT (paper eq 4-5; testbed).
    RttFirst,
    /// RTTVAR first, with the old RTT (RFC 6298 s2.3, which the draft refers to).
    VarianceFirst,
}

/// What the very first sample does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSample {
    /// It starts its own estimator and moves the overall RTO (paper, draft).
    MovesOverall,
    /// It starts both estimators and leaves the overall RTO at 2 s (testbed).
    InitialisesBoth,
}

/// Which ageing rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ageing {
    /// Righetti et al. 2023, eq 10 and after.
    PaperText,
    /// draft-ietf-core-cocoa-03 s4.3.
    Draft03,
    /// The code of the ECOAP testbed.
    Ecoap,
}

/// Everything in which CoCoA variants differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The timer's name.
    pub name: &'static str,
    /// Gain of RTT.
    pub alpha: f64,
    /// Gain of RTTVAR.
    pub beta: f64,
    /// Weight of RTTVAR in an estimator's RTO (Z in table 2).
    pub k: Pair,
    /// Weight of an estimator's RTO in the overall RTO.
    pub lambda: Pair,
    /// The most retransmissions of an exchange whose RTT the weak estimator takes.
    pub weak_retransmissions_max: u8,
    /// The back-off factors.
    pub backoff: BackoffFactor,
    /// What they are chosen by.
    pub factor_of: FactorOf,
    /// No back-off makes the wait longer than this.
    pub backoff_max: Duration,
    /// Whether waits after retransmissions are dithered like the first.
    pub dithers_retransmissions: bool,
    /// Order of the two updates.
    pub update_order: UpdateOrder,
    /// What the very first sample does.
    pub first_sample: FirstSample,
    /// Ageing rules.
    pub ageing: Ageing,
}

const fn seconds(lower: u64, upper: u64, factors: [f64; 3]) -> BackoffFactor {
    let [below, between, above] = factors;
    let (lower, upper) = (Duration::from_secs(lower), Duration::from_secs(upper));
    BackoffFactor { lower, upper, below, between, above }
}

/// Table 2 of Righetti et al. 2023, column CoCoA; rules of its s II-E. What "cocoa" means here.
///
/// Its alpha and beta agree with the draft, RFC 6298 and the testbed's traces, those of the text do
/// not. The paper gives no truncation of the back-off: 60 s as for the RTO (RFC 6298 s5.5). Nor do its eq 4-5 say
/// whether (5) takes the RTT before or after (4); before, as in RFC 6298 s2.3 and the draft: after, with
/// 6CoCoA's alpha of .9, the deviation would shrink to a tenth and mean nothing.
pub const TABLE_2: Parameters = Parameters {
    name: "cocoa",
    alpha: 0.125,
    beta: 0.25,
    k: Pair { strong: 4.0, weak: 1.0 },
    lambda: Pair { strong: 0.5, weak: 0.25 },
    weak_retransmissions_max: 1,
    backoff: seconds(1, 3, [2.5, 2.0, 1.5]),
    factor_of: FactorOf::Initial,
    backoff_max: crate::params::RTO_MAX,
    dithers_retransmissions: false,
    update_order: UpdateOrder::VarianceFirst,
    first_sample: FirstSample::MovesOverall,
    ageing: Ageing::PaperText,
};

/// The text of Righetti et al. 2023, s II-E with eq 9, and eq 4-5 taken in the order in which they are printed.
pub const PAPER_TEXT: Parameters = Parameters {
    name: "cocoa/paper-text",
    alpha: 0.25,
    beta: 0.125,
    backoff: seconds(1, 3, [3.0, 2.0, 1.3]),
    update_order: UpdateOrder::RttFirst,
    ..TABLE_2
};

/// draft-ietf-core-cocoa-03: two retransmissions for the weak estimator, back-off truncated at 32
/// s, "dithered between 1 x RTO and ACK_RANDOM_FACTOR x RTO" read as holding for retransmissions
/// too.
pub const DRAFT_03: Parameters = Parameters {
    name: "cocoa/draft-03",
    weak_retransmissions_max: 2,
    backoff: seconds(1, 3, [3.0, 2.0, 1.5]),
    backoff_max: Duration::from_secs(32),
    dithers_retransmissions: true,
    ageing: Ageing::Draft03,
    ..TABLE_2
};

/// What ran on the ECOAP testbed (Vallati et al. 2020), read from its traces: a slip in a
/// comparison makes 1 to 3 s use the factor of long timeouts, so both thresholds are 1 s.
pub const ECOAP: Parameters = Parameters {
    name: "cocoa/ecoap",
    weak_retransmissions_max: u8::MAX,
    backoff: seconds(1, 1, [3.0, 2.0, 1.3]),
    factor_of: FactorOf::Overall,
    update_order: UpdateOrder::RttFirst,
    first_sample: FirstSample::InitialisesBoth,
    ageing: Ageing::Ecoap,
    ..TABLE_2
};

/// 6CoCoA: table 2 of Righetti et al. 2023, column 6CoCoA.
pub const SIX_COCOA: Parameters = Parameters {
    name: "6cocoa",
    alpha: 0.9,
    beta: 0.5,
    k: Pair { strong: 2.0, weak: 0.5 },
    lambda: Pair { strong: 0.75, weak: 0.1 },
    backoff: seconds(20, 50, [2.2, 1.5, 1.1]),
    ..TABLE_2
};
