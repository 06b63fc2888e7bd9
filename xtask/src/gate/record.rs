//! The record: what each stage took when it passed last, and over which files.
//!
//! `xtask/proofs.txt` is committed. A stage that only some changes reach need not run again while its files are those of
//! the record; the nightly gate writes all rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// The file of the record.
pub const FILE: &str = "xtask/proofs.txt";

/// What stands above the rows.
const HEAD: &str = "\
# Stages of the gate that have passed: seconds, digest of the files that reach the stage (`-`: it runs at each push).
# `cargo xtask nightly` writes all rows, `cargo xtask test` those of the stages that it ran because files had changed.
";

/// A stage that has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How long it took.
    pub seconds: u64,
    /// The digest of its files, if only changes of these make it run.
    pub digest: Option<String>,
}

/// Proofs by the name of the stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, Proof>);

impl Record {
    /// The committed record; an empty one if there is none.
    pub fn read() -> Result<Self> {
        match fs::read_to_string(path()) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
        }
    }

    /// Writes the record.
    pub fn write(&self) -> Result<()> {
        fs::write(path(), self.text()).with_context(|| format!("cannot write {FILE}"))
    }

    /// The row of a stage.
    pub fn proof(&self, name: &str) -> Option<&Proof> {
        self.0.get(name)
    }

    /// Replaces the row of a stage.
    pub fn note(&mut self, name: &str, took: Duration, digest: Option<String>) {
        self.0.insert(name.to_owned(), Proof { seconds: took.as_secs(), digest });
    }

    /// Removes rows of stages that no longer exist.
    pub fn keep(&mut self, exists: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| exists(name));
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, Proof { seconds, digest }) in &self.0 {
            let digest = digest.as_deref().unwrap_or("-");
            // Writing to a String cannot fail.
            _ = writeln!(text, "{name} {seconds} {digest}");
        }
        text
    }

    fn parse(text: &str) -> Result<Self> {
        let mut proofs = BTreeMap::new();
        let rows = text.lines().enumerate();
        for (at, row) in rows.filter(|(_, row)| !row.starts_with('#') && !row.trim().is_empty()) {
            let mut words = row.split_whitespace();
            let mut word = || {
                words.next().with_context(|| format!("{FILE}:{}: a row has three words", at + 1))
            };
            let (name, seconds, digest) = (word()?, word()?, word()?);
            let seconds =
                seconds.parse().with_context(|| format!("{FILE}:{}: bad seconds", at + 1))?;
            let digest = (digest != "-").then(|| digest.to_owned());
            proofs.insert(name.to_owned(), Proof { seconds, digest });
        }
        Ok(Self(proofs))
    }
}

fn path() -> PathBuf {
    process::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::default();
        record.note("tests", Duration::from_secs(90), None);
        record.note("siege", Duration::from_millis(61_900), Some("ab12".to_owned()));
        record.note("gone", Duration::ZERO, None);
        record.keep(|name| name != "gone");
        assert_eq!(Record::parse(&record.text()).expect("well formed"), record);
        let siege = record.proof("siege").expect("noted");
        assert_eq!((siege.seconds, siege.digest.as_deref()), (61, Some("ab12")));
        assert!(Record::parse("tests soon -").is_err());
        assert!(Record::parse("tests 5").is_err());
    }
}
