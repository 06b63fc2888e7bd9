//! A claim with its tests, as `claims.toml` states them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings by their names.
pub type Settings = BTreeMap<String, String>;

/// How much a claim matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It is stated clearly.
    Hard,
    /// It is stated in passing, or leaves room.
    Soft,
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The value of a setting.
    Parameter,
    /// A rule of an algorithm.
    Formula,
    /// A number that came out.
    Number,
    /// Which of two is higher.
    Ordering,
    /// How one quantity moves with another.
    Trend,
    /// Why something happens.
    Mechanism,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// How much it matters.
    pub grade: Grade,
    /// What it is about.
    pub kind: Kind,
    /// Where the publication says so.
    pub place: String,
    /// The claim in our words.
    pub text: String,
    /// What should come out, in a few words.
    pub claimed: String,
    /// How it is read, where the publication leaves that open.
    #[serde(default)]
    pub note: String,
    /// All of them must hold.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The code alone: what the publication sets is what the program does.
    Setting,
    /// Simulations: what the publication finds is what comes out.
    Finding,
}

/// How numbers are held against a claim; [`super::judge`] defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Equal, up to the tolerance.
    Eq,
    /// Within a range that stands around a stated number.
    Approx,
    /// Within a range.
    Between,
    /// Lower.
    Lt,
    /// Not higher.
    Le,
    /// Higher.
    Gt,
    /// Not lower.
    Ge,
    /// About the same.
    Similar,
    /// Does not fall along an axis.
    MonotoneInc,
    /// Higher at the upper end of an axis than at the lower.
    Trend,
    /// Higher somewhere.
    Exists,
    /// Other claims have the same answer with other settings.
    SameOrderings,
}

/// What a probed value should be.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// This number, up to the tolerance.
    Number(f64),
    /// A number from the first to the second.
    Range(f64, f64),
}

/// One test of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// How numbers are held against the claim.
    pub op: Op,
    /// The metric, as `docs/topics/results.md` defines it.
    #[serde(default)]
    pub metric: String,
    /// The sweep whose points are looked at.
    #[serde(default)]
    pub sweep: String,
    /// Settings that points must have; of a list, any.
    #[serde(default)]
    pub at: BTreeMap<String, Vec<String>>,
    /// The one side of a comparison; all other settings of the two sides are equal unless both name them.
    pub left: Option<Settings>,
    /// The other side.
    pub right: Option<Settings>,
    /// Each side is its gain over the point that differs in these settings.
    #[serde(default)]
    pub over: Settings,
    /// The difference is divided by the right side.
    #[serde(default)]
    pub relative: bool,
    /// The axis of a trend, or of a knee.
    pub along: Option<String>,
    /// Each side is the largest value on the axis at which the metric is still below this; zero if it never is.
    pub knee_below: Option<f64>,
    /// The number of the claim; of a comparison, of the difference.
    #[serde(default)]
    pub value: f64,
    /// Its tolerance.
    #[serde(default)]
    pub tolerance: f64,
    /// Lower end of a range.
    pub low: Option<f64>,
    /// Upper end of a range.
    pub high: Option<f64>,
    /// Share of the comparisons that must hold.
    #[serde(default = "one")]
    pub share: f64,
    /// The mean over all comparisons is judged, instead of each.
    #[serde(default)]
    pub on_average: bool,
    /// The probe of the code, with its subject.
    pub probe: Option<String>,
    /// What its values should be.
    #[serde(default)]
    pub expect: BTreeMap<String, Wanted>,
    /// Claims whose answers are compared.
    #[serde(default)]
    pub claims: Vec<String>,
    /// A table of measured values that stands for the right side or the number: a name the caller gives.
    pub reference: Option<String>,
}

impl Claim {
    /// What its verdict rests on: the code, if all its tests are probes.
    pub fn basis(&self) -> Basis {
        let probed = self.tests.iter().all(|test| test.probe.is_some());
        if probed { Basis::Setting } else { Basis::Finding }
    }
}

impl Test {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let bounds = self.low.is_some() && self.high.is_some();
        let demands = [
            (
                self.probe.is_none() && self.op != Op::SameOrderings && self.metric.is_empty(),
                "a test needs a metric or a probe",
            ),
            (
                self.probe.is_some() && self.expect.is_empty(),
                "a probe needs something to expect of it",
            ),
            (self.left.is_some() != self.right.is_some(), "a side is missing"),
            (
                matches!(self.op, Op::Approx | Op::Between) && self.probe.is_none() && !bounds,
                "a range needs both ends",
            ),
            (
                matches!(self.op, Op::MonotoneInc | Op::Trend) && self.along.is_none(),
                "a trend needs an axis",
            ),
            (
                self.op == Op::SameOrderings && (self.claims.is_empty() || self.along.is_none()),
                "orderings need claims and an axis",
            ),
            (!(0.0..=1.0).contains(&self.share), "a share is from 0 to 1"),
        ];
        demands.into_iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, what)| Err(what))
    }
}

const fn one() -> f64 {
    1.0
}
