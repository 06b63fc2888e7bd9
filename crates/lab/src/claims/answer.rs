//! The answer to a claim: its verdict and the measurements behind it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::claim::{Basis, Claim, Grade};
use super::compare::Outcome;
use crate::digits::{Digits, with_ends, with_interval};
use crate::statistics::Estimate;

/// Whether the software confirms a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The software confirms the claim.
    Reproduced,
    /// The software contradicts the claim.
    NotReproduced,
    /// The runs are too few or too uncertain to decide, or there are none.
    Undecided,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::NotReproduced, Self::Undecided];

    /// The verdict in words.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
        }
    }
}

/// The number of claims with each verdict, counted separately for each [`Basis`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Claims about results: the evidence.
    pub findings: Counts,
    /// Claims to which the model was fitted.
    pub calibrations: Counts,
    /// Claims about settings, and those that hold by a definition.
    pub settings: Counts,
}

/// The number of claims with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Reproduced claims.
    pub reproduced: usize,
    /// Claims that are not reproduced.
    pub not_reproduced: usize,
    /// Undecided claims.
    pub undecided: usize,
}

impl Counts {
    pub(super) fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            let count = match verdict {
                Verdict::Reproduced => &mut counts.reproduced,
                Verdict::NotReproduced => &mut counts.not_reproduced,
                Verdict::Undecided => &mut counts.undecided,
            };
            *count += 1;
        }
        counts
    }

    /// All of them.
    pub const fn all(self) -> usize {
        self.reproduced + self.not_reproduced + self.undecided
    }
}

impl Summary {
    /// Counts `answers`.
    pub fn of(answers: &[Answer]) -> Self {
        Self::count(&answers.iter().map(|one| (one.basis, one.verdict)))
    }

    /// Counts verdicts on claims of some kind.
    pub(super) fn count(all: &(impl Iterator<Item = (Basis, Verdict)> + Clone)) -> Self {
        let on = |basis| Counts::of(all.clone().filter(|one| one.0 == basis).map(|one| one.1));
        Self {
            findings: on(Basis::Finding),
            calibrations: on(Basis::Calibration),
            settings: on(Basis::Setting),
        }
    }

    /// The counts in one line; a kind without claims is left out.
    pub fn words(self) -> String {
        let Self { findings, calibrations, settings } = self;
        let mut parts = Vec::new();
        if findings.all() > 0 {
            let Counts { reproduced, not_reproduced, undecided } = findings;
            let all = findings.all();
            parts.push(format!(
                "findings: {reproduced} of {all} hold, {not_reproduced} {} not, {undecided} open",
                if not_reproduced == 1 { "does" } else { "do" }
            ));
        }
        if calibrations.all() > 0 {
            let Counts { reproduced, .. } = calibrations;
            let all = calibrations.all();
            parts.push(format!("calibrated, no evidence: {reproduced} of {all} met"));
        }
        if settings.all() > 0 {
            let Counts { reproduced, not_reproduced, undecided } = settings;
            let some = |n: usize, what: &str| match n {
                0 => String::new(),
                n => format!(", {n} {what}"),
            };
            parts.push(format!(
                "settings: {reproduced} of {} checked{}{}",
                settings.all(),
                some(not_reproduced, "differ"),
                some(undecided, "open")
            ));
        }
        parts.join("; ")
    }
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Holds => Self::Reproduced,
            Outcome::Fails => Self::NotReproduced,
            Outcome::Unclear => Self::Undecided,
        }
    }
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// No value.
    Nothing,
    /// A mean or a median; for a comparison, the difference.
    Number(f64),
    /// The values of a probe.
    Values(BTreeMap<String, f64>),
}

/// How narrow the interval of the shown comparison must be to decide it. Only an undecided claim has this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// Half the width of the interval, widened for the number of comparisons.
    pub half: f64,
    /// The half width that decides at the same mean.
    pub wanted: f64,
    /// The number of runs that gives this half width at the same spread; absent above a million.
    pub runs: Option<usize>,
    /// Whether there is a mean at which an interval of this width holds.
    pub can_hold: bool,
}

impl Power {
    /// The same in words.
    pub fn words(&self) -> String {
        let Self { half, wanted, runs, can_hold } = *self;
        let [half, wanted] = [half, wanted].map(|value| Digits::significant(value, 2).show(value));
        let runs = match runs {
            Some(runs) => format!("about {runs} runs"),
            None => "over a million runs".to_owned(),
        };
        let none = if can_hold { "" } else { "; no mean holds with so few runs" };
        format!(
            "the interval is ± {half}; ± {wanted} would decide, after {runs} with this mean and spread{none}"
        )
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The claim's name.
    pub id: String,
    /// How much it matters.
    pub grade: Grade,
    /// The place in the publication.
    pub place: String,
    /// What the verdict says.
    pub basis: Basis,
    /// The number that was fitted to the claim, or the constant or definition by which it holds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the claim holds by the publication's own criterion; absent if that is unknown or there are too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_its_own: Option<bool>,
    /// What is claimed, with the claim's own thresholds.
    pub claimed: String,
    /// The measured value that speaks most against the claim.
    pub measured: Measured,
    /// Half the 95 % confidence interval of a measured mean.
    pub ci95: Option<f64>,
    /// The 95 % confidence interval of a measured median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Runs behind the value; for a comparison, pairs of runs.
    pub n: usize,
    /// The runs that would decide an undecided claim about results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// Why the verdict is what it is.
    pub why: String,
    /// The command that shows the result again.
    pub command: String,
    /// The claim in full.
    pub text: String,
    /// How the claim is interpreted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Measured {
    /// The value in words, with its interval and the number of runs behind it.
    fn words(&self, answer: &Answer, runs: Option<usize>) -> String {
        match self {
            Self::Nothing => "-".to_owned(),
            Self::Number(centre) => {
                let behind = runs.map_or_else(String::new, |n| format!(" (n = {n})"));
                let estimate = Estimate { mean: *centre, ci95: answer.ci95, n: answer.n };
                let number = match answer.interval {
                    Some(interval) => with_ends(*centre, Some(interval)),
                    None => with_interval(estimate),
                };
                number + &behind
            }
            Self::Values(values) => {
                let pairs = values.iter().map(|(key, value)| format!("{key} {}", plain(*value)));
                pairs.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// At most four digits after the point, without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Answer {
    /// The measured value in words, with its interval and the number of runs behind it.
    pub fn measured_words(&self) -> String {
        self.measured.words(self, Some(self.n))
    }

    /// Whether the claim holds by the publication's own criterion, in words.
    pub fn by_its_own_words(&self) -> Option<&'static str> {
        self.by_its_own.map(|holds| if holds { "holds" } else { "does not hold" })
    }

    /// The measured value for a cell of a table: a mean with its interval, or the number of checked values.
    pub fn measured_short(&self) -> String {
        match &self.measured {
            Measured::Nothing => "-".to_owned(),
            Measured::Number(_) => self.measured.words(self, None),
            Measured::Values(values) if values.len() == 1 => self.measured_words(),
            Measured::Values(values) => format!("{} values", values.len()),
        }
    }

    pub(super) fn undecided(claim: &Claim, why: &str) -> Self {
        Self {
            id: claim.id.clone(),
            grade: claim.grade,
            place: claim.place.clone(),
            basis: claim.basis,
            because: claim.because.clone(),
            verdict: Verdict::Undecided,
            by_its_own: None,
            claimed: claim.claimed.clone(),
            measured: Measured::Nothing,
            ci95: None,
            interval: None,
            n: 0,
            power: None,
            why: why.to_owned(),
            command: String::new(),
            text: claim.text.clone(),
            note: claim.note.clone(),
        }
    }
}
