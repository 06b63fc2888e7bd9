//! What came of a claim.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::Outcome;
use super::paper::{Claim, Grade};

/// Whether the software bears a claim out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Reproduced,
    /// It contradicts it.
    NotReproduced,
    /// The runs are too few or too uncertain to say, or there are none.
    Undecided,
}

impl Verdict {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
        }
    }
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::NotReproduced, Self::Undecided];

    /// How many of `answers` have it.
    pub fn count(self, answers: &[Answer]) -> usize {
        answers.iter().filter(|answer| answer.verdict == self).count()
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

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// Nothing.
    Nothing,
    /// A mean, of a comparison the mean difference.
    Number(f64),
    /// Values of a probe.
    Values(BTreeMap<String, f64>),
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The claim's name.
    pub id: String,
    /// How much it matters.
    pub grade: Grade,
    /// The verdict.
    pub verdict: Verdict,
    /// What is claimed, with the claim's own thresholds.
    pub claimed: String,
    /// What was measured where it speaks most against the claim.
    pub measured: Measured,
    /// Half the 95 % confidence interval of a measured mean.
    pub ci95: Option<f64>,
    /// Runs (pairs of runs, of a comparison) behind it.
    pub n: usize,
    /// Why the verdict is what it is.
    pub why: String,
    /// What shows it again.
    pub command: String,
    /// The claim in full.
    pub text: String,
    /// How it is read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Measured {
    /// In words, with the interval and the number of runs behind it.
    fn words(&self, ci95: Option<f64>, n: usize) -> String {
        match self {
            Self::Nothing => "-".to_owned(),
            Self::Number(mean) => {
                let interval = ci95.map_or_else(String::new, |half| format!(" ± {half:.4}"));
                format!("{mean:.4}{interval} (n = {n})")
            }
            Self::Values(values) => {
                let pairs = values.iter().map(|(key, value)| format!("{key} {}", plain(*value)));
                pairs.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// At most four digits after the point, none that say nothing.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Answer {
    /// What was measured in words, with its interval and the number of runs behind it.
    pub fn measured_words(&self) -> String {
        self.measured.words(self.ci95, self.n)
    }
    pub(super) fn undecided(claim: &Claim, why: &str) -> Self {
        Self {
            id: claim.id.clone(),
            grade: claim.grade,
            verdict: Verdict::Undecided,
            claimed: claim.claimed.clone(),
            measured: Measured::Nothing,
            ci95: None,
            n: 0,
            why: why.to_owned(),
            command: String::new(),
            text: claim.text.clone(),
            note: claim.note.clone(),
        }
    }
}
