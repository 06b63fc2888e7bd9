//! The answer to a claim: its verdict and the measurements behind it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::claim::{Basis, Claim, Grade};
use super::compare::Outcome;
use crate::digits::{Digits, with_ends, with_interval};
use crate::statistics::Estimate;

/// Whether the software confirms a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

    /// The number of `answers` with this verdict.
    pub fn count(self, answers: &[Answer]) -> usize {
        answers.iter().filter(|answer| answer.verdict == self).count()
    }
}

/// The number of claims with each verdict, counted separately for settings and findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Claims about settings.
    pub settings: Counts,
    /// Claims about results.
    pub findings: Counts,
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
    fn of<'a>(answers: impl Iterator<Item = &'a Answer>) -> Self {
        let mut counts = Self::default();
        for answer in answers {
            let count = match answer.verdict {
                Verdict::Reproduced => &mut counts.reproduced,
                Verdict::NotReproduced => &mut counts.not_reproduced,
                Verdict::Undecided => &mut counts.undecided,
            };
            *count += 1;
        }
        counts
    }

    const fn all(self) -> usize {
        self.reproduced + self.not_reproduced + self.undecided
    }
}

impl Summary {
    /// Counts `answers`.
    pub fn of(answers: &[Answer]) -> Self {
        let on = |basis| Counts::of(answers.iter().filter(move |one| one.basis == basis));
        Self { settings: on(Basis::Setting), findings: on(Basis::Finding) }
    }

    /// The counts in one line; a kind without claims is left out.
    pub fn words(self) -> String {
        let Self { settings, findings } = self;
        let mut parts = Vec::new();
        if findings.all() > 0 {
            let Counts { reproduced, not_reproduced, undecided } = findings;
            let all = findings.all();
            parts.push(format!(
                "findings: {reproduced} of {all} hold, {not_reproduced} {} not, {undecided} open",
                if not_reproduced == 1 { "does" } else { "do" }
            ));
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
    /// What the verdict rests on.
    pub basis: Basis,
    /// The verdict.
    pub verdict: Verdict,
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
            basis: claim.basis(),
            verdict: Verdict::Undecided,
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
