//! Verdicts of full reproductions as the repository records them, and what they come to.
//!
//! `papers/NAME/record.toml` has the verdicts, the commit and day of the runs, and their processor time if it was measured. What kind a claim is
//! ([`super::Basis`]) is declared in `claims.toml` alone, so a claim that turns out to be calibrated needs no new record. An
//! entry names its tests by their digest: after a change of its tests a claim counts as not judged, until
//! `lowmesh reproduce NAME --json` has judged it again, from stored runs if it can, and
//! `cargo xtask manual --record FILE` has read the answer.

use serde::{Deserialize, Serialize};

use super::answer::{Summary, Verdict};
use super::claim::Claim;
use super::paper::Paper;

/// The recorded verdicts, by the name of the publication.
const RECORDS: &[(&str, &str)] = &[
    ("righetti2023", include_str!("../../papers/righetti2023/record.toml")),
    ("lenders2021", include_str!("../../papers/lenders2021/record.toml")),
    ("ishaq2016", include_str!("../../papers/ishaq2016/record.toml")),
    ("pesola2020", include_str!("../../papers/pesola2020/record.toml")),
];

/// The version of the JSON that [`Record::take`] reads.
const TOLD_SCHEMA: u32 = 3;

/// The verdicts of one full reproduction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The commit of the runs.
    pub commit: String,
    /// The day of the runs, as `2026-11-24`.
    pub date: String,
    /// The number of runs.
    pub runs: usize,
    /// Minutes of processor time, rounded, if they were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// The verdicts.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Entry>,
}

/// A recorded verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The claim.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What was measured, in words.
    pub measured: String,
    /// Whether it holds by the publication's own criterion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_its_own: Option<bool>,
    /// The digest of the tests that were judged.
    pub tests: String,
    /// The commit, if the claim was judged after the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What the recorded verdicts on a publication come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// The verdicts that count.
    pub summary: Summary,
    /// Claims without a verdict on their present tests.
    pub unjudged: Vec<String>,
}

/// What cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The text is not the JSON of `lowmesh reproduce`.
    #[error("this is not the JSON of `lowmesh reproduce NAME --json`: {0}")]
    Form(#[from] serde_json::Error),
    /// The verdicts are not those of full runs of a commit.
    #[error("{0}")]
    Refused(String),
}

/// The JSON of `lowmesh reproduce`, as far as it is recorded.
#[derive(Debug, Deserialize)]
struct Told {
    schema: u32,
    paper: String,
    preliminary: bool,
    build: ToldBuild,
    runs: usize,
    claims: Vec<ToldClaim>,
}

#[derive(Debug, Deserialize)]
struct ToldBuild {
    commit: Option<ToldCommit>,
}

#[derive(Debug, Deserialize)]
struct ToldCommit {
    hash: String,
    dirty: bool,
}

#[derive(Debug, Deserialize)]
struct ToldClaim {
    id: String,
    verdict: Verdict,
    measured_words: String,
    by_its_own: Option<bool>,
}

impl Record {
    /// The record of the built-in publication called `name`.
    pub fn find(name: &str) -> Option<Self> {
        let (_, text) = RECORDS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(text).expect("the built-in ones are tested"))
    }

    /// Reads a record from the text of its file.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The entry of `claim`, if its tests are still those that were judged.
    pub fn entry(&self, claim: &Claim) -> Option<&Entry> {
        self.claims.iter().find(|entry| entry.id == claim.id && entry.tests == claim.digest)
    }

    /// What the verdicts come to.
    pub fn tally(&self, paper: &Paper) -> Tally {
        let judged = |claim: &Claim| self.entry(claim).map(|entry| (claim.basis, entry.verdict));
        let is_open = |claim: &&Claim| judged(claim).is_none();
        Tally {
            summary: Summary::count(&paper.claims.iter().filter_map(judged)),
            unjudged: paper.claims.iter().filter(is_open).map(|claim| claim.id.clone()).collect(),
        }
    }

    /// Takes the answers of `told`, the JSON of `lowmesh reproduce`. Answers to all claims replace the record; answers to
    /// some replace those entries.
    pub fn take(&mut self, paper: &Paper, told: &str, date: &str) -> Result<(), RecordError> {
        let told: Told = serde_json::from_str(told)?;
        let commit = commit_of(paper, &told)?;
        let whole = told.claims.len() == paper.claims.len();
        for answer in told.claims {
            let Some(claim) = paper.claim(&answer.id) else {
                return Err(RecordError::Refused(format!("there is no claim {}", answer.id)));
            };
            self.claims.retain(|entry| entry.id != claim.id);
            self.claims.push(Entry {
                id: answer.id,
                verdict: answer.verdict,
                measured: answer.measured_words,
                by_its_own: answer.by_its_own,
                tests: claim.digest.clone(),
                commit: (!whole && commit != self.commit).then(|| commit.clone()),
            });
        }
        self.claims.sort_by(|a, b| a.id.cmp(&b.id));
        if whole {
            (self.commit, self.runs, self.minutes) = (commit, told.runs, None);
            date.clone_into(&mut self.date);
        }
        Ok(())
    }

    /// The record as its file.
    pub fn to_toml(&self) -> String {
        let head = "# Verdicts of the last full reproduction: `cargo xtask manual --record FILE` writes this file from the JSON of\n\
                    # `lowmesh reproduce NAME --json`. An entry counts while its claim has the tests with this digest.\n";
        head.to_owned() + &toml::to_string(self).expect("texts and numbers")
    }
}

/// The first digits of the commit of `told`, if that may be recorded.
fn commit_of(paper: &Paper, told: &Told) -> Result<String, RecordError> {
    let refuse = |why: &str| Err(RecordError::Refused(why.to_owned()));
    if told.schema != TOLD_SCHEMA || told.paper != paper.name {
        return refuse("it is of another publication, or of another version of the JSON");
    }
    if told.preliminary {
        return refuse("verdicts of --quick are preliminary");
    }
    match &told.build.commit {
        Some(commit) if !commit.dirty => Ok(commit.hash.chars().take(7).collect()),
        _ => refuse("its build is of no commit; commit first, the stored runs stay valid"),
    }
}

#[cfg(test)]
mod tests;
