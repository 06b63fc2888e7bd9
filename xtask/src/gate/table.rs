//! The table of stages in CONTRIBUTING.md: what is proved at each push, and what each night.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};

use super::record::Record;
use super::stage::{STAGES, When};
use crate::process;

/// The page with the table, and the lines around it.
const PAGE: &str = "CONTRIBUTING.md";
const BEGIN: &str = "<!-- The gate writes this table. -->";
const END: &str = "<!-- End of the table. -->";

/// `stages`: prints the table; `--write` writes it into the page.
pub fn show(args: &[String]) -> Result<()> {
    let record = Record::read()?;
    match args {
        [] => {
            print!("{}", rows(&record));
            Ok(())
        }
        [flag] if flag == "--write" => rewrite(&record),
        other => bail!("unknown arguments {other:?}; allowed: --write"),
    }
}

/// Writes the table into the page.
pub fn rewrite(record: &Record) -> Result<()> {
    let path = process::root().join(PAGE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let new = with_table(&text, &rows(record))?;
    fs::write(&path, new).with_context(|| format!("cannot write {PAGE}"))
}

/// Whether the page has the table of the stages and of the record.
pub fn is_current() -> Result<bool> {
    let path = process::root().join(PAGE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let record = Record::read()?;
    Ok(with_table(&text, &rows(&record))? == text)
}

fn with_table(text: &str, rows: &str) -> Result<String> {
    let place = || format!("{PAGE} has no lines {BEGIN:?} and {END:?}");
    let (head, rest) = text.split_once(BEGIN).with_context(place)?;
    let (_, tail) = rest.split_once(END).with_context(place)?;
    Ok(format!("{head}{BEGIN}\n{rows}{END}{tail}"))
}

fn rows(record: &Record) -> String {
    let mut rows =
        "| stage | what it proves | at a push | in the nightly gate |\n|---|---|---|---|\n"
            .to_owned();
    for stage in STAGES {
        let push = match stage.when {
            When::Push => "always",
            When::Reached(_) => "if its files changed",
            When::Nightly => "never",
        };
        let long = stage.long.map_or_else(String::new, |long| format!("`{}`, ", long.join(" ")));
        let time = record
            .proof(stage.name)
            .map_or_else(|| "-".to_owned(), |one| format!("{} s", one.seconds));
        // Writing to a String cannot fail.
        _ = writeln!(rows, "| `{}` | {} | {push} | {long}{time} |", stage.name, stage.proves);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_replaces_what_was_between_its_lines() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = with_table(&text, "| x |\n").expect("both lines are there");
        assert_eq!(new, format!("a\n{BEGIN}\n| x |\n{END}\nb\n"));
        assert!(with_table("a\n", "").is_err());
    }

    #[test]
    fn every_stage_has_a_row() {
        let rows = rows(&Record::default());
        for stage in STAGES {
            assert!(rows.contains(&format!("| `{}` | {}", stage.name, stage.proves)));
        }
    }
}
