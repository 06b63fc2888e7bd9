//! A publication to reproduce, as its two TOML files describe it, and the runs that it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lowmesh_units::Seed;
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::claim::{Claim, Op, Settings};
use super::measured::Measured;
use super::probe;
use crate::command::Provenance;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::scenario::{BUILTINS, ConfigErrors};

/// The publications that come with the program: name, paper, claims.
pub const PAPERS: &[(&str, &str, &str)] = &[
    (
        "righetti2023",
        include_str!("../../papers/righetti2023/paper.toml"),
        include_str!("../../papers/righetti2023/claims.toml"),
    ),
    (
        "lenders2021",
        include_str!("../../papers/lenders2021/paper.toml"),
        include_str!("../../papers/lenders2021/claims.toml"),
    ),
    (
        "ishaq2016",
        include_str!("../../papers/ishaq2016/paper.toml"),
        include_str!("../../papers/ishaq2016/claims.toml"),
    ),
    (
        "pesola2020",
        include_str!("../../papers/pesola2020/paper.toml"),
        include_str!("../../papers/pesola2020/claims.toml"),
    ),
];

/// Tables that others measured, by the name of the publication.
const MEASURED: &[(&str, &str)] =
    &[("pesola2020", include_str!("../../papers/pesola2020/kernel.toml"))];

/// A publication.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name to reproduce it by.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// The journal or conference.
    pub venue: String,
    /// The year.
    pub year: u16,
    /// Its digital object identifier.
    pub doi: String,
    /// Its subject, in a few words.
    #[serde(default)]
    pub subject: String,
    /// How the publication itself judges its results, in a few words; empty if that is unknown.
    #[serde(default)]
    pub criterion: String,
    /// Why some findings do not hold, in a sentence.
    #[serde(default)]
    pub why_not: String,
    /// The assumptions, in sentences.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// The runs that its claims need.
    #[serde(rename = "sweep", default)]
    pub sweeps: Vec<Sweep>,
    /// Its claims.
    #[serde(skip)]
    pub claims: Vec<Claim>,
    /// Values that others measured at its points.
    #[serde(skip)]
    pub measured: Option<Measured>,
}

/// Scenarios to be run, under a name that tests refer to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub purpose: String,
    /// Its parts, run one after the other.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
    /// The full extent of its runs.
    pub full: Extent,
    /// The extent with `--quick`; absent if the sweep is then not run.
    pub quick: Option<Extent>,
}

/// Some scenarios of a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The built-in scenarios of the part; each point has the name as its setting `scenario`.
    pub scenarios: Vec<String>,
    /// Additional settings of the points of this part.
    #[serde(default)]
    pub labels: Settings,
    /// Overrides of the form `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The swept keys with their values, each a list or a range as in a scenario's `[sweep]`.
    #[serde(default)]
    pub sweep: BTreeMap<String, toml::Value>,
    /// Settings with a name of their own. Each value of one has overrides, which may be of several keys.
    #[serde(default)]
    pub cases: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// The extent to which a sweep is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Overrides for all its points.
    pub set: Vec<String>,
    /// Values of swept keys that replace those of the parts.
    #[serde(default)]
    pub sweep: BTreeMap<String, toml::Value>,
}

/// The selection of a publication's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Whether the quick extent of each sweep is run.
    pub quick: bool,
    /// The first seed; if absent, that of the publication's file.
    pub first_seed: Option<Seed>,
}

impl Scope {
    /// Its flags of `lowmesh reproduce`, each after a blank.
    pub fn flags(self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let seed = self.first_seed.map_or_else(String::new, |seed| format!(" --seed {}", seed.0));
        format!("{quick}{seed}")
    }

    /// The overrides of `extent` in this scope.
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

/// A fault in a publication's files. For a built-in publication, this is a fault of the program.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A file is not of this form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A sweep does not give valid scenarios.
    #[error("sweep `{0}`: {1}")]
    Sweep(String, ConfigErrors),
    /// A file names something that does not exist.
    #[error("{0}: there is no {1} `{2}`")]
    Unknown(String, &'static str, String),
    /// A test lacks a value that its op needs.
    #[error("{0}: {1}")]
    Incomplete(String, &'static str),
}

impl Paper {
    /// Reads a publication from the texts of its two files.
    pub fn parse(paper: &str, claims: &str) -> Result<Self, PaperError> {
        let mut paper: Self = toml::from_str(paper)?;
        paper.claims = toml::from_str::<ClaimsFile>(claims)?.claims;
        let digests = digests(claims)?;
        for (claim, digest) in paper.claims.iter_mut().zip(digests) {
            claim.digest = digest;
        }
        paper.check()?;
        Ok(paper)
    }

    /// The built-in publication called `name`.
    pub fn find(name: &str) -> Option<Self> {
        let (_, paper, claims) = PAPERS.iter().find(|(known, ..)| *known == name)?;
        let mut paper = Self::parse(paper, claims).expect("the built-in ones are tested");
        let measured = MEASURED.iter().find(|(known, _)| *known == name);
        paper.measured =
            measured.map(|(_, text)| toml::from_str(text).expect("the built-in ones are tested"));
        Some(paper)
    }

    /// The claim called `id`.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// The sweeps that `claims` need, by name.
    pub fn needs<'p>(&'p self, claims: &[&'p Claim]) -> BTreeSet<&'p str> {
        let mut needed = BTreeSet::new();
        for test in claims.iter().flat_map(|claim| claim.tests.iter().chain(&claim.criteria)) {
            if !test.sweep.is_empty() {
                needed.insert(test.sweep.as_str());
            }
            let others: Vec<&Claim> = test.claims.iter().filter_map(|id| self.claim(id)).collect();
            needed.extend(self.needs(&others));
        }
        needed
    }

    /// The origin of the runs of the sweep called `name`; each point names its own scenario.
    pub fn provenance(&self, name: &str, scope: Scope) -> Provenance {
        let sweep = self.sweeps.iter().find(|sweep| sweep.name == name);
        let extent = sweep.and_then(|sweep| sweep.extent(scope.quick));
        let overrides = extent.map_or_else(Vec::new, |extent| scope.overrides(extent));
        Provenance { overrides, ..Provenance::default() }
    }

    /// The plans of a sweep, one for each part, scenario and combination of cases. The settings of points let tests select them.
    pub fn plans(&self, sweep: &Sweep, scope: Scope) -> Result<Vec<Plan>, PaperError> {
        let Some(extent) = sweep.extent(scope.quick) else { return Ok(Vec::new()) };
        let extent = &Extent { set: scope.overrides(extent), ..extent.clone() };
        let mut plans = Vec::new();
        for part in &sweep.parts {
            for scenario in &part.scenarios {
                for case in part.combinations() {
                    plans.push(plan(sweep, part, extent, scenario, &case)?);
                }
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
            for test in claim.tests.iter().chain(&claim.criteria) {
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
                let is_of_orderings = |id: &String| {
                    let claim = self.claim(id);
                    claim.is_some_and(|c| c.tests.iter().any(|test| test.op == Op::SameOrderings))
                };
                if test.claims.iter().any(is_of_orderings) {
                    let what = "orderings compare claims that are not about orderings themselves";
                    return Err(PaperError::Incomplete(claim.id.clone(), what));
                }
                if let Some(name) = test.probe.as_ref().filter(|name| !probe::is_known(name)) {
                    return Err(missing("probe", name));
                }
            }
            claim.check().map_err(|what| PaperError::Incomplete(claim.id.clone(), what))?;
        }
        Ok(())
    }
}

/// The digest of the tests of each claim in the text of `claims.toml`: a hash over their values, so that neither comments
/// nor the order of keys count.
fn digests(claims: &str) -> Result<Vec<String>, toml::de::Error> {
    let table: toml::Table = toml::from_str(claims)?;
    let claims = table.get("claim").and_then(toml::Value::as_array);
    let of = |claim: &toml::Value| {
        let tests = ["test", "criterion"].map(|key| claim.get(key).map(toml::Value::to_string));
        let hash = xxh3_64(format!("{tests:?}").as_bytes());
        format!("{:08x}", hash >> 32)
    };
    Ok(claims.into_iter().flatten().map(of).collect())
}

impl Sweep {
    /// The extent of its runs; none if `quick` leaves it out.
    fn extent(&self, quick: bool) -> Option<&Extent> {
        if quick { self.quick.as_ref() } else { Some(&self.full) }
    }
}

/// One value of each case of a part.
#[derive(Clone, Debug, Default)]
struct Case {
    settings: Vec<(String, String)>,
    set: Vec<String>,
}

impl Part {
    /// Every combination of the cases: their settings and overrides; a single empty one without cases.
    fn combinations(&self) -> Vec<Case> {
        let mut all = vec![Case::default()];
        for (key, values) in &self.cases {
            let with = |case: &Case| {
                let one = |(value, own): (&String, &Vec<String>)| {
                    let setting = (key.clone(), value.clone());
                    Case {
                        settings: case.settings.iter().cloned().chain([setting]).collect(),
                        set: case.set.iter().chain(own).cloned().collect(),
                    }
                };
                values.iter().map(one).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }
}

fn plan(
    sweep: &Sweep,
    part: &Part,
    extent: &Extent,
    scenario: &str,
    case: &Case,
) -> Result<Plan, PaperError> {
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
    let overrides: Vec<String> =
        part.set.iter().chain(&case.set).chain(&extent.set).cloned().collect();
    let mut plan = Plan::parse(scenario, &text, &overrides)
        .map_err(|errors| PaperError::Sweep(sweep.name.clone(), errors))?;
    for point in &mut plan.points {
        point.settings.insert(0, ("scenario".to_owned(), scenario.to_owned()));
        point.settings.extend(case.settings.iter().cloned());
        point.settings.extend(part.labels.clone());
        let pair = |set: &String| set.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        point.settings.extend(part.set.iter().filter_map(pair));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests;
