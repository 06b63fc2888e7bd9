//! A claim with its tests, as `claims.toml` states them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings by their names.
pub type Settings = BTreeMap<String, String>;

/// How firmly the publication states a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The claim is stated clearly.
    Hard,
    /// The claim is stated in passing, or leaves room for interpretation.
    Soft,
}

/// The subject of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The value of a setting.
    Parameter,
    /// A rule of an algorithm.
    Formula,
    /// A measured number.
    Number,
    /// The order of two quantities.
    Ordering,
    /// The trend of one quantity along another.
    Trend,
    /// The cause of an effect.
    Mechanism,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim's name.
    pub id: String,
    /// How firmly it is stated.
    pub grade: Grade,
    /// Its subject.
    pub kind: Kind,
    /// What a verdict on it says.
    pub basis: Basis,
    /// The number that was fitted to it, or the constant or definition by which it holds.
    #[serde(default)]
    pub because: String,
    /// The place in the publication.
    pub place: String,
    /// The claim in our words.
    pub text: String,
    /// The expected result, in a few words.
    pub claimed: String,
    /// The interpretation, where the publication leaves it open.
    #[serde(default)]
    pub note: String,
    /// Its tests, all of which must hold.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
    /// What the publication itself would test, where that differs from `tests`.
    #[serde(rename = "criterion", default)]
    pub criteria: Vec<Test>,
    /// The digest of all its tests. A recorded verdict belongs to tests with the same digest.
    #[serde(skip)]
    pub digest: String,
}

/// What a verdict on a claim says. Each claim declares it, and all totals count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The program gives a result of the publication, or does not. Only this is evidence.
    Finding,
    /// A number of the model was fitted to the claim, so a verdict is no evidence.
    Calibration,
    /// The program has the settings and rules of the publication, or the claim holds by a definition or a constant.
    Setting,
}

impl Basis {
    /// All kinds, evidence first.
    pub const ALL: [Self; 3] = [Self::Finding, Self::Calibration, Self::Setting];

    /// The claims of this kind, as a heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Finding => "findings",
            Self::Calibration => "calibrated, no evidence",
            Self::Setting => "settings",
        }
    }

    /// One claim of this kind, beside its verdict; nothing for a finding.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Finding => "",
            Self::Calibration => "calibrated",
            Self::Setting => "setting",
        }
    }
}

/// The comparison that a test makes; [`super::judge`] defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// The value is equal, up to the tolerance.
    Eq,
    /// The value is within a range around a stated number.
    Approx,
    /// The value is within a range.
    Between,
    /// The value is lower.
    Lt,
    /// The value is not higher.
    Le,
    /// The value is higher.
    Gt,
    /// The value is not lower.
    Ge,
    /// The value is about the same.
    Similar,
    /// The metric does not fall along an axis.
    MonotoneInc,
    /// The value at one place of an axis is higher than at another.
    Trend,
    /// The value is higher in at least one comparison.
    Exists,
    /// Other claims have the same verdict with other settings.
    SameOrderings,
}

/// The expected value of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// This number, up to the tolerance.
    Number(f64),
    /// A number from the first to the second.
    Range(f64, f64),
}

/// The statistic over runs that a test compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean, by differences that are paired by seed.
    #[default]
    Mean,
    /// The median of each side.
    Median,
}

/// One number from the runs of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extreme {
    /// The smallest value.
    Least,
    /// The largest value.
    Most,
    /// The largest value minus the smallest one.
    Range,
    /// The largest value, divided by the median.
    Tail,
}

/// Several runs that a test regards as one experiment, for claims about the fastest or slowest of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Runs of an experiment, with consecutive seeds.
    pub runs: usize,
    /// The number of the left side, or of the only one.
    pub left: Extreme,
    /// The number of the right side.
    pub right: Option<Extreme>,
}

/// One test of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The comparison with the claim.
    pub op: Op,
    /// The metric, as `docs/topics/results.md` defines it.
    #[serde(default)]
    pub metric: String,
    /// The sweep whose points are compared.
    #[serde(default)]
    pub sweep: String,
    /// Settings that points must have, each with its accepted values.
    #[serde(default)]
    pub at: BTreeMap<String, Vec<String>>,
    /// The left side of a comparison. All other settings of the two sides are equal unless both name them.
    pub left: Option<Settings>,
    /// The right side.
    pub right: Option<Settings>,
    /// If set, each side is its gain over the point that differs in these settings.
    #[serde(default)]
    pub over: Settings,
    /// Whether the difference is divided by the right side; with `over`, whether each gain is divided by its base.
    #[serde(default)]
    pub relative: bool,
    /// The statistic over runs.
    #[serde(default)]
    pub statistic: Statistic,
    /// If set, each value is a number of an experiment of several runs instead of one run.
    pub experiment: Option<Experiment>,
    /// The axis of a trend, or of a knee.
    pub along: Option<String>,
    /// Each side is the largest value on the axis at which the metric is still below this; zero if it never is.
    pub knee_below: Option<f64>,
    /// The number that the claim states; with two sides, for their difference.
    #[serde(default)]
    pub value: f64,
    /// The tolerance of that number.
    #[serde(default)]
    pub tolerance: f64,
    /// The lower end of a range.
    pub low: Option<f64>,
    /// The upper end of a range.
    pub high: Option<f64>,
    /// The share of comparisons that must hold.
    #[serde(default = "one")]
    pub share: f64,
    /// Whether the mean over all comparisons is judged instead of each comparison.
    #[serde(default)]
    pub on_average: bool,
    /// The probe of the code, with its subject.
    pub probe: Option<String>,
    /// The expected values of the probe.
    #[serde(default)]
    pub expect: BTreeMap<String, Wanted>,
    /// The claims whose verdicts are compared.
    #[serde(default)]
    pub claims: Vec<String>,
    /// The name of a table of measured values that replaces the right side or the number.
    pub reference: Option<String>,
}

impl Claim {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let probed = self.tests.iter().all(|test| test.probe.is_some());
        let unreasoned = self.because.is_empty();
        let demands = [
            (self.tests.is_empty(), "a claim needs a test"),
            (probed && self.basis == Basis::Finding, "a claim that only probes check is a setting"),
            (
                unreasoned && self.basis == Basis::Calibration,
                "a calibrated claim says `because` of which number",
            ),
            (
                unreasoned && self.basis == Basis::Setting && !probed,
                "a setting that simulations check says `because` of which constant or definition",
            ),
            (!unreasoned && self.basis == Basis::Finding, "a finding has no `because`"),
        ];
        refuse(&demands)?;
        self.tests.iter().chain(&self.criteria).try_for_each(Test::check)
    }
}

impl Test {
    fn check(&self) -> Result<(), &'static str> {
        let bounds = self.low.is_some() && self.high.is_some();
        let demands = [
            (
                self.probe.is_none() && self.op != Op::SameOrderings && self.metric.is_empty(),
                "a test needs a metric or a probe",
            ),
            (self.probe.is_some() && self.expect.is_empty(), "a probe needs an expected value"),
            (self.left.is_some() != self.right.is_some(), "a side is missing"),
            (
                matches!(self.op, Op::Approx | Op::Between) && self.probe.is_none() && !bounds,
                "a range needs both ends",
            ),
            (self.op == Op::MonotoneInc && self.along.is_none(), "a rise needs an axis"),
            (
                self.op == Op::MonotoneInc
                    && (self.statistic != Statistic::Mean || self.experiment.is_some()),
                "a rise compares the means of runs",
            ),
            (self.experiment.is_some_and(|one| one.runs < 2), "an experiment has two runs or more"),
            (
                self.experiment.is_some_and(|one| one.right.is_some() != self.right.is_some()),
                "an experiment has a number for each side",
            ),
            (
                self.op == Op::SameOrderings && (self.claims.is_empty() || self.along.is_none()),
                "orderings need claims and an axis",
            ),
            (!(0.0..=1.0).contains(&self.share), "a share is from 0 to 1"),
        ];
        refuse(&demands)
    }
}

/// The first demand that is not met.
fn refuse(demands: &[(bool, &'static str)]) -> Result<(), &'static str> {
    demands.iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, what)| Err(what))
}

const fn one() -> f64 {
    1.0
}
