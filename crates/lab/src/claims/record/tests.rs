//! What is recorded, what counts, and what is refused.

use super::*;
use crate::claims::{Counts, PAPERS};

fn record() -> Record {
    Record {
        commit: "1111111".to_owned(),
        date: "2026-11-24".to_owned(),
        runs: 7,
        minutes: Some(3),
        claims: Vec::new(),
    }
}

/// The JSON of a full reproduction with these answers.
fn told(claims: &[(&str, &str)], rest: &str) -> String {
    let claim = |(id, verdict): &(&str, &str)| {
        format!("{{\"id\":\"{id}\",\"verdict\":\"{verdict}\",\"measured_words\":\"1 ± 0\"}}")
    };
    let claims: Vec<String> = claims.iter().map(claim).collect();
    let claims = claims.join(",");
    format!("{{\"schema\":3,\"paper\":\"pesola2020\",\"runs\":9,\"claims\":[{claims}],{rest}}}")
}

const CLEAN: &str =
    "\"preliminary\":false,\"build\":{\"commit\":{\"hash\":\"2222222ab\",\"dirty\":false}}";

#[test]
fn calibrated_and_set_claims_never_count_as_findings() {
    let paper = Paper::find("pesola2020").expect("built in");
    let mut record = record();
    let answers = [
        ("S003-01", "reproduced"),
        ("S003-05", "not_reproduced"),
        ("S003-13", "reproduced"),
        ("S003-20", "reproduced"),
    ];
    record.take(&paper, &told(&answers, CLEAN), "2026-11-29").expect("sound");
    let Tally { summary, unjudged } = record.tally(&paper);
    let counts = |reproduced, not_reproduced| Counts { reproduced, not_reproduced, undecided: 0 };
    assert_eq!(summary.findings, counts(1, 1));
    assert_eq!((summary.calibrations, summary.settings), (counts(1, 0), counts(1, 0)));
    assert_eq!(unjudged.len(), paper.claims.len() - answers.len());
    assert_eq!((record.commit.as_str(), record.runs), ("1111111", 7), "four are not all claims");
    assert_eq!(record.claims[0].commit.as_deref(), Some("2222222"));
}

#[test]
fn a_verdict_on_other_tests_does_not_count() {
    let paper = Paper::find("pesola2020").expect("built in");
    let mut record = record();
    record.take(&paper, &told(&[("S003-01", "reproduced")], CLEAN), "").expect("sound");
    assert!(record.entry(&paper.claims[0]).is_some());
    record.claims[0].tests = "00000000".to_owned();
    assert!(record.entry(&paper.claims[0]).is_none());
    assert!(record.tally(&paper).unjudged.contains(&"S003-01".to_owned()));
}

#[test]
fn a_record_of_all_claims_is_written_and_read_again() {
    let paper = Paper::find("pesola2020").expect("built in");
    let mut record = record();
    let all: Vec<(&str, &str)> =
        paper.claims.iter().map(|claim| (claim.id.as_str(), "undecided")).collect();
    record.take(&paper, &told(&all, CLEAN), "2026-11-29").expect("sound");
    assert_eq!((record.commit.as_str(), record.date.as_str()), ("2222222", "2026-11-29"));
    assert_eq!((record.runs, record.claims.len()), (9, paper.claims.len()));
    assert!(record.claims.iter().all(|entry| entry.commit.is_none()));
    assert_eq!(toml::from_str::<Record>(&record.to_toml()).expect("its own form"), record);
}

#[test]
fn preliminary_and_unknown_verdicts_are_refused() {
    let paper = Paper::find("pesola2020").expect("built in");
    let dirty = CLEAN.replace("\"dirty\":false", "\"dirty\":true");
    let quick = CLEAN.replace("\"preliminary\":false", "\"preliminary\":true");
    let claims = [("S003-01", "reproduced")];
    for (told, why) in [
        (told(&claims, &dirty), "of no commit"),
        (told(&claims, &quick), "preliminary"),
        (told(&[("S003-99", "reproduced")], CLEAN), "no claim S003-99"),
        (told(&claims, CLEAN).replace("pesola2020", "ishaq2016"), "another publication"),
        ("{}".to_owned(), "not the JSON"),
    ] {
        let error = record().take(&paper, &told, "").expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn the_records_are_those_of_known_claims() {
    for (name, ..) in PAPERS {
        let paper = Paper::find(name).expect("built in");
        let record = Record::find(name).expect("every publication has a record");
        assert!(record.claims.iter().all(|entry| paper.claim(&entry.id).is_some()), "{name}");
        assert!(record.tally(&paper).summary.settings.all() > 0, "{name}");
    }
}
