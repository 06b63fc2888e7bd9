//! Compares the values that a probe finds in the code with those that a claim expects.

use super::Finding;
use super::words::short;
use crate::claims::answer::Measured;
use crate::claims::claim::{Test, Wanted};
use crate::claims::compare::Outcome;
use crate::claims::probe;

/// Compares the values of a probe with the expected ones.
pub(super) fn probed(test: &Test, name: &str) -> Finding {
    let values = match probe::run(name) {
        Ok(values) => values,
        Err(why) => return Finding::unclear(why),
    };
    let mut wrong = Vec::new();
    for (key, wanted) in &test.expect {
        let found = values.get(key).copied();
        let right = found.is_some_and(|found| match *wanted {
            Wanted::Number(number) => (found - number).abs() <= test.tolerance,
            Wanted::Range(low, high) => (low..=high).contains(&found),
        });
        if !right {
            let shown = found.map_or_else(|| "no value".to_owned(), short);
            wrong.push(format!("{key} is {shown}"));
        }
    }
    let outcome = if wrong.is_empty() { Outcome::Holds } else { Outcome::Fails };
    let why = if wrong.is_empty() {
        format!("the code agrees ({name}: {} values)", test.expect.len())
    } else {
        format!("{name}: {}", wrong.join(", "))
    };
    let asked = values.into_iter().filter(|(key, _)| test.expect.contains_key(key)).collect();
    Finding {
        outcome,
        measured: Measured::Values(asked),
        ci95: None,
        interval: None,
        n: 1,
        power: None,
        why,
        command: None,
    }
}
