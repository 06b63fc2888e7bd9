//! A reproduced publication as its two TOML files state it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lowmesh_units::Seed;
use serde::{Deserialize, Serialize};

use super::probe;
use crate::command::Provenance;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::scenario::{BUILTINS, ConfigErrors};

/// The publications that come with the program: name, paper, claims.
pub const PAPERS: &[(&str, &str, &str)] = &[
    (
        "righetti2023",
        include_str!("../../../../papers/righetti2023/paper.toml"),
        include_str!("../../../../papers/righetti2023/claims.toml"),
    ),
    (
        "lenders2021",
        include_str!("../../../../papers/lenders2021/paper.toml"),
        include_str!("../../../../papers/lenders2021/claims.toml"),
    ),
];

/// Settings by their names.
pub type Settings = BTreeMap<String, String>;

/// A publication.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name to reproduce it by.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// Where it appeared.
    pub venue: String,
    /// The year.
    pub year: u16,
    /// Its digital object identifier.
    pub doi: String,
    /// What had to be assumed, in sentences.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// The runs that its claims need.
    #[serde(rename = "sweep", default)]
    pub sweeps: Vec<Sweep>,
    /// What it claims.
    #[serde(skip)]
    pub claims: Vec<Claim>,
}

/// Scenarios to be run, under a name that tests refer to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: String,
    /// Its parts, run one after the other.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
    /// How much of it is run.
    pub full: Extent,
    /// How much of it is run in a hurry; absent if none of it.
    pub quick: Option<Extent>,
}

/// Some scenarios of a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Built-in scenarios to start from; each point has the name as its setting `scenario`.
    pub scenarios: Vec<String>,
    /// Settings that points of this part have besides the swept keys.
    #[serde(default)]
    pub labels: Settings,
    /// Overrides of the form `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The swept keys with their values, each a list or a range as in a scenario's `[sweep]`.
    #[serde(default)]
    pub sweep: BTreeMap<String, toml::Value>,
}

/// How much of a sweep is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Overrides for all its points.
    pub set: Vec<String>,
    /// Values of swept keys that take the place of those of the parts.
    #[serde(default)]
    pub sweep: BTreeMap<String, toml::Value>,
}

/// Which part of a publication's runs is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Whether the quick extent of each sweep is run.
    pub quick: bool,
    /// The first seed, if it is not that of the publication's file.
    pub first_seed: Option<Seed>,
}

impl Scope {
    /// The flags of `lowmesh reproduce` for it, each with a blank before it.
    pub fn flags(self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let seed = self.first_seed.map_or_else(String::new, |seed| format!(" --seed {}", seed.0));
        format!("{quick}{seed}")
    }

    /// The overrides that an extent comes to.
    fn overrides(self, extent: &Extent) -> Vec<String> {
        let seed = self.first_seed.map(|seed| format!("seed={}", seed.0));
        extent.set.iter().cloned().chain(seed).collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsFile {
    #[serde(rename = "claim")]
    claims: Vec<Claim>,
}

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

const fn one() -> f64 {
    1.0
}

/// What is wrong with a publication's files; a fault of the program where they are built in.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A file is not of this form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A sweep does not make scenarios.
    #[error("sweep `{0}`: {1}")]
    Sweep(String, ConfigErrors),
    /// Something is named that is not there.
    #[error("{0}: there is no {1} `{2}`")]
    Unknown(String, &'static str, String),
    /// A test lacks what its operation needs.
    #[error("{0}: {1}")]
    Incomplete(String, &'static str),
}

impl Paper {
    /// Reads a publication from the texts of its two files.
    pub fn parse(paper: &str, claims: &str) -> Result<Self, PaperError> {
        let mut paper: Self = toml::from_str(paper)?;
        paper.claims = toml::from_str::<ClaimsFile>(claims)?.claims;
        paper.check()?;
        Ok(paper)
    }

    /// The built-in publication called `name`.
    pub fn find(name: &str) -> Option<Self> {
        let (_, paper, claims) = PAPERS.iter().find(|(known, ..)| *known == name)?;
        Some(Self::parse(paper, claims).expect("the built-in ones are tested"))
    }

    /// The claim called `id`.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// The sweeps that `claims` need, by name.
    pub fn needs<'p>(&'p self, claims: &[&'p Claim]) -> BTreeSet<&'p str> {
        let mut needed = BTreeSet::new();
        for test in claims.iter().flat_map(|claim| &claim.tests) {
            if !test.sweep.is_empty() {
                needed.insert(test.sweep.as_str());
            }
            let others: Vec<&Claim> = test.claims.iter().filter_map(|id| self.claim(id)).collect();
            needed.extend(self.needs(&others));
        }
        needed
    }

    /// How the runs of the sweep called `name` are made again; each point names its own scenario.
    pub fn provenance(&self, name: &str, scope: Scope) -> Provenance {
        let sweep = self.sweeps.iter().find(|sweep| sweep.name == name);
        let extent = sweep.and_then(|sweep| sweep.extent(scope.quick));
        let overrides = extent.map_or_else(Vec::new, |extent| scope.overrides(extent));
        Provenance { overrides, ..Provenance::default() }
    }

    /// The plans of a sweep, one for each part and scenario, with settings by which tests find their points.
    pub fn plans(&self, sweep: &Sweep, scope: Scope) -> Result<Vec<Plan>, PaperError> {
        let Some(extent) = sweep.extent(scope.quick) else { return Ok(Vec::new()) };
        let extent = &Extent { set: scope.overrides(extent), ..extent.clone() };
        let mut plans = Vec::new();
        for part in &sweep.parts {
            for scenario in &part.scenarios {
                plans.push(plan(sweep, part, extent, scenario)?);
            }
        }
        Ok(plans)
    }

    fn check(&self) -> Result<(), PaperError> {
        for sweep in &self.sweeps {
            for quick in [false, true] {
                self.plans(sweep, Scope { quick, ..Scope::default() })?;
            }
        }
        let metrics = Metrics::default().numbers();
        for claim in &self.claims {
            for test in &claim.tests {
                let missing =
                    |what, name: &str| PaperError::Unknown(claim.id.clone(), what, name.to_owned());
                if !test.metric.is_empty() && !metrics.iter().any(|(name, _)| *name == test.metric)
                {
                    return Err(missing("metric", &test.metric));
                }
                if !test.sweep.is_empty() && !self.sweeps.iter().any(|s| s.name == test.sweep) {
                    return Err(missing("sweep", &test.sweep));
                }
                if let Some(id) = test.claims.iter().find(|id| self.claim(id).is_none()) {
                    return Err(missing("claim", id));
                }
                if let Some(name) = test.probe.as_ref().filter(|name| !probe::is_known(name)) {
                    return Err(missing("probe", name));
                }
                test.check().map_err(|what| PaperError::Incomplete(claim.id.clone(), what))?;
            }
            if claim.tests.is_empty() {
                return Err(PaperError::Incomplete(claim.id.clone(), "a claim needs a test"));
            }
        }
        Ok(())
    }
}

impl Claim {
    /// What its verdict rests on: the code, if all its tests are probes.
    pub fn basis(&self) -> Basis {
        let probed = self.tests.iter().all(|test| test.probe.is_some());
        if probed { Basis::Setting } else { Basis::Finding }
    }
}

impl Sweep {
    /// How much of it is run; nothing, of one that is not run in a hurry.
    fn extent(&self, quick: bool) -> Option<&Extent> {
        if quick { self.quick.as_ref() } else { Some(&self.full) }
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

fn plan(sweep: &Sweep, part: &Part, extent: &Extent, scenario: &str) -> Result<Plan, PaperError> {
    let builtin = BUILTINS.iter().find(|builtin| builtin.name == scenario).ok_or_else(|| {
        PaperError::Unknown(format!("sweep `{}`", sweep.name), "scenario", scenario.to_owned())
    })?;
    let mut keys = part.sweep.clone();
    for (key, values) in &extent.sweep {
        if let Some(old) = keys.get_mut(key) {
            old.clone_from(values);
        }
    }
    let mut text = builtin.text.to_owned();
    if !keys.is_empty() {
        text.push_str("\n[sweep]\n");
        for (key, values) in &keys {
            // Writing to a String cannot fail.
            _ = writeln!(text, "\"{key}\" = {values}");
        }
    }
    let overrides: Vec<String> = part.set.iter().chain(&extent.set).cloned().collect();
    let mut plan = Plan::parse(scenario, &text, &overrides)
        .map_err(|errors| PaperError::Sweep(sweep.name.clone(), errors))?;
    for point in &mut plan.points {
        point.settings.insert(0, ("scenario".to_owned(), scenario.to_owned()));
        point.settings.extend(part.labels.clone());
        let pair = |set: &String| set.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        point.settings.extend(part.set.iter().filter_map(pair));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests;
