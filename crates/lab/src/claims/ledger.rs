//! The parts of the manual that recorded verdicts make: a table of all publications, the totals of one, and its claims.

use std::fmt::Write as _;

use super::answer::{Counts, Verdict};
use super::claim::{Basis, Claim};
use super::paper::{PAPERS, Paper};
use super::record::{Entry, Record, Tally};

/// A table of all publications. `folder` leads to their pages.
pub fn publications(folder: &str) -> String {
    let mut table = "| publication | findings that hold | do not | open | calibrated | settings | recorded | why some do not hold |\n\
                     |---|---:|---:|---:|---:|---:|---|---|\n"
        .to_owned();
    let mut unjudged = Vec::new();
    for (name, ..) in PAPERS {
        let (Some(paper), Some(record)) = (Paper::find(name), Record::find(name)) else { continue };
        let Tally { summary, unjudged: more } = record.tally(&paper);
        let Counts { reproduced, not_reproduced, undecided } = summary.findings;
        unjudged.extend(more);
        // Writing to a String cannot fail, here and below.
        _ = writeln!(
            table,
            "| [{}]({folder}/{name}.md): {} | {reproduced} | {not_reproduced} | {undecided} | {} | {} of {} | {} | {} |",
            cited(&paper),
            paper.subject,
            paper.claims.iter().filter(|claim| claim.basis == Basis::Calibration).count(),
            summary.settings.reproduced,
            summary.settings.all(),
            recorded(&record),
            paper.why_not,
        );
    }
    if !unjudged.is_empty() {
        _ = writeln!(
            table,
            "\nNot counted, because their tests changed after the runs: {}.",
            unjudged.join(", ")
        );
    }
    table
}

/// The totals of the publication called `name`, in a sentence.
pub fn totals(name: &str) -> Option<String> {
    let (paper, record) = (Paper::find(name)?, Record::find(name)?);
    let Tally { summary, unjudged } = record.tally(&paper);
    let mut words = summary.words();
    if !unjudged.is_empty() {
        _ = write!(words, "; not judged since their tests changed: {}", unjudged.join(", "));
    }
    Some(format!("**{words}.** {} runs at {}.\n", record.runs, recorded(&record)))
}

/// A table of the claims of one kind (`findings`, `calibrations`, `settings`) of the publication called `name`.
pub fn verdicts(kind: &str, name: &str) -> Option<String> {
    let basis = match kind {
        "findings" => Basis::Finding,
        "calibrations" => Basis::Calibration,
        "settings" => Basis::Setting,
        _ => return None,
    };
    let (paper, record) = (Paper::find(name)?, Record::find(name)?);
    let own = basis == Basis::Finding && !paper.criterion.is_empty();
    let mut table = match (basis, own) {
        (Basis::Calibration, _) => "| claim | claimed | measured | met | fitted |\n|---|---|---|---|---|\n",
        (_, true) => "| claim | place | claimed | measured | verdict | by the paper's own criterion |\n|---|---|---|---|---|---|\n",
        (_, false) => "| claim | place | claimed | measured | verdict |\n|---|---|---|---|---|\n",
    }
    .to_owned();
    for claim in paper.claims.iter().filter(|claim| claim.basis == basis) {
        let entry = record.entry(claim);
        let Claim { id, place, claimed, because, .. } = claim;
        let (measured, verdict) = (measured(entry), verdict(entry));
        _ = match basis {
            Basis::Calibration => {
                let met = if verdict == "holds" { "yes" } else { verdict };
                writeln!(table, "| {id} | {claimed} | {measured} | {met} | {because} |")
            }
            _ if own => {
                let own = own_verdict(entry);
                writeln!(table, "| {id} | {place} | {claimed} | {measured} | {verdict} | {own} |")
            }
            _ => writeln!(table, "| {id} | {place} | {claimed} | {measured} | {verdict} |"),
        };
    }
    Some(table)
}

fn measured(entry: Option<&Entry>) -> &str {
    entry.map_or("-", |entry| &entry.measured)
}

fn verdict(entry: Option<&Entry>) -> &'static str {
    match entry.map(|entry| entry.verdict) {
        Some(Verdict::Reproduced) => "holds",
        Some(Verdict::NotReproduced) => "does not hold",
        Some(Verdict::Undecided) => "open",
        None => "not judged",
    }
}

fn own_verdict(entry: Option<&Entry>) -> &'static str {
    match entry.and_then(|entry| entry.by_its_own) {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "-",
    }
}

/// As in "Pesola 2020" or "Ishaq et al. 2016".
fn cited(paper: &Paper) -> String {
    let mut authors = paper.authors.split(", ");
    let first = authors.next().unwrap_or_default();
    let family = first.rsplit(' ').next().unwrap_or_default();
    let others = if authors.next().is_some() { " et al." } else { "" };
    format!("{family}{others} {}", paper.year)
}

/// When and how long the runs of a record were made.
fn recorded(record: &Record) -> String {
    let Record { commit, date, minutes, .. } = record;
    let minutes = minutes.map(|minutes| format!(", {minutes} min of processor time"));
    format!("{commit}, {date}{}", minutes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_publication_has_a_row_with_its_totals_and_a_reason() {
        let table = publications("docs/topics");
        for (name, ..) in PAPERS {
            let (paper, record) = (Paper::find(name).expect("built in"), Record::find(name));
            let findings = record.expect("recorded").tally(&paper).summary.findings;
            let link =
                format!("| [{}](docs/topics/{name}.md): {} | ", cited(&paper), paper.subject);
            let row = table.lines().find(|line| line.starts_with(&link)).expect(name);
            let Counts { reproduced, not_reproduced, undecided } = findings;
            let counts = format!("| {reproduced} | {not_reproduced} | {undecided} |");
            assert!(row.contains(&counts), "{row}");
            assert!(!paper.why_not.is_empty() && row.contains(&paper.why_not), "{row}");
        }
    }

    #[test]
    fn calibrated_claims_stand_apart_with_what_was_fitted() {
        let table = verdicts("calibrations", "pesola2020").expect("built in");
        let rows: Vec<&str> = table.lines().skip(2).map(|line| &line[2..9]).collect();
        assert_eq!(rows, ["S003-07", "S003-13", "S003-22"]);
        assert!(!verdicts("findings", "pesola2020").expect("built in").contains("S003-13"));
        assert!(table.contains("the mean loss (20 %)"), "{table}");
        assert_eq!(verdicts("hopes", "pesola2020"), None);
    }

    #[test]
    fn a_publication_is_cited_by_its_first_author() {
        let names = PAPERS.iter().map(|(name, ..)| cited(&Paper::find(name).expect("built in")));
        let names: Vec<String> = names.collect();
        assert_eq!(names[0], "Righetti et al. 2023");
        assert_eq!(names[3], "Pesola 2020");
    }
}
