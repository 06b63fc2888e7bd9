//! `-n`: what a command would run, and how long it would take.

use std::io::Write;

use lowmesh_lab::batch::Batch;
use lowmesh_lab::plan::Plan;
use lowmesh_lab::simulate::Simulate;
use lowmesh_lab::store::Store;
use serde_json::json;

use crate::failure::Failure;

/// How the verb was called.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Runs at a time; 0 for one a core.
    pub jobs: usize,
    /// Whether to write JSON.
    pub json: bool,
}

/// Writes how many runs there are, and how long the missing ones take.
pub fn execute(
    how: How,
    plan: &Plan,
    batch: &Batch<'_>,
    store: Option<&Store>,
    simulate: &Simulate<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (runs, points, missing) = (batch.len(), plan.points.len(), batch.missing().len());
    let seconds = batch.estimate(how.jobs, simulate);
    let others = store.map(Store::others).transpose()?.unwrap_or_default();
    if how.json {
        let others: Vec<_> = others
            .iter()
            .map(|one| json!({ "build": one.build, "commit": one.commit, "runs": one.runs }))
            .collect();
        let dry = json!({
            "schema": 1, "scenario": plan.name, "points": points, "runs": runs,
            "stored": runs - missing, "missing": missing, "other_builds": others, "estimated_s": seconds,
        });
        writeln!(out, "{dry:#}")?;
        return Ok(());
    }
    let plural = if points == 1 { "" } else { "s" };
    writeln!(out, "{}: {points} point{plural}, {runs} runs", plan.name)?;
    if let Some(store) = store {
        let folder = store.folder().display();
        writeln!(out, "stored: {} in {folder}", runs - missing)?;
        for other in &others {
            writeln!(out, "not used: {} of {other}", other.runs)?;
        }
    }
    if missing == 0 {
        writeln!(out, "to run: 0")?;
        return Ok(());
    }
    let time = seconds.map_or_else(|| "unknown time".to_owned(), about);
    let jobs = match how.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    writeln!(out, "to run: {missing}, {time} with {jobs} at a time")?;
    Ok(())
}

/// A number of seconds in words.
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "less than 1 s".to_owned(),
        s if s < 90.0 => format!("about {s:.0} s"),
        s if s < 5400.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_a_unit_that_suits_it() {
        let told = [0.2, 12.4, 130.0, 7300.0].map(about);
        assert_eq!(told, ["less than 1 s", "about 12 s", "about 2 min", "about 2.0 h"]);
    }
}
