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

impl Answer {
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
