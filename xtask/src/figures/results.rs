//! The table of the built-in scenarios: a block between two markers is replaced by what the product prints now. README
//! has one of its speeds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, product};

/// The page with the table.
const PAGE: &str = "docs/topics/results.md";
/// The built-in scenarios that are compared in one line each.
const COMPARED: [&str; 5] = ["grenoble-50", "pister-26", "pister-64", "grid-25", "grid-64"];
/// The page with the speed of one of them, in the row that starts like this.
const README: &str = "README.md";
const README_SCENARIO: &str = "pister-26";
const README_ROW: &str = "| Lowmesh (`pister-26`) | speed ";
/// Metrics with a column.
const METRICS: [&str; 6] = ["nodes", "joined", "tdr", "delay_p50_ms", "delay_p95_ms", "duty_cycle"];

/// Runs the scenarios and rewrites the table.
pub fn rewrite(binary: &PathBuf) -> Result<()> {
    let path = process::root().join(PAGE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let text = replaced(&text, "scenarios", &comparison(binary)?)?;
    std::fs::write(&path, &text).with_context(|| format!("cannot write {PAGE}"))?;
    let path = process::root().join(README);
    let readme = std::fs::read_to_string(&path).with_context(|| format!("cannot read {README}"))?;
    let readme = with_speed(&readme, &text)?;
    std::fs::write(&path, readme).with_context(|| format!("cannot write {README}"))?;
    println!("{PAGE}: {} scenarios; {README}: speed of {README_SCENARIO}", COMPARED.len());
    Ok(())
}

/// Whether README has the speed of the table.
pub fn is_current() -> Result<bool> {
    let read = |page: &str| {
        std::fs::read_to_string(process::root().join(page))
            .with_context(|| format!("cannot read {page}"))
    };
    let readme = read(README)?;
    Ok(with_speed(&readme, &read(PAGE)?)? == readme)
}

/// README with the speed in the table of `page`.
fn with_speed(readme: &str, page: &str) -> Result<String> {
    let scenario = format!("| `{README_SCENARIO}` |");
    let row = page.lines().find(|line| line.starts_with(&scenario));
    let speed = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit(' ').next());
    let speed: u64 = speed
        .and_then(|speed| speed.parse().ok())
        .with_context(|| format!("{PAGE} has no speed of {README_SCENARIO}"))?;
    let Some((head, rest)) = readme.split_once(README_ROW) else {
        bail!("{README} has no row {README_ROW:?}")
    };
    let Some((_, tail)) = rest.split_once("; ") else { bail!("{README}: the row has no speed") };
    Ok(format!("{head}{README_ROW}{},{:03}; {tail}", speed / 1000, speed % 1000))
}

/// One line a scenario.
fn comparison(binary: &PathBuf) -> Result<String> {
    let mut block = format!(
        "| scenario | {} | simulated s per s |\n",
        METRICS.map(|name| format!("`{name}`")).join(" | ")
    );
    let _ = writeln!(block, "|---|{}", "---:|".repeat(METRICS.len() + 1));
    let store = product::target()?.join("figures-store").display().to_string();
    for scenario in COMPARED {
        // The second call reads the runs of the first from the store.
        let timed = product::run(binary, &[scenario, "--jobs", "1", "--store", &store, "--force"]);
        let speed = speed(&product::report(timed)?)?;
        let table = process::command(binary, &["run", scenario, "--quiet", "--store", &store]);
        let _ = writeln!(block, "{}", row(scenario, &process::read(table)?, speed)?);
    }
    Ok(block)
}

/// Simulated seconds in a second of one thread.
fn speed(report: &Value) -> Result<f64> {
    let runs = report["runs"].as_array().context("a report has runs")?;
    let sum = |key: &str| runs.iter().filter_map(|run| run[key].as_f64()).sum::<f64>();
    Ok((sum("sim_s") / sum("wall_s").max(1e-3) / 100.0).round() * 100.0)
}

/// The estimates of a scenario, with the digits of the product's own table.
fn row(scenario: &str, table: &str, speed: f64) -> Result<String> {
    let estimates: BTreeMap<&str, String> = table.lines().filter_map(estimate).collect();
    let mut cells = vec![format!("`{scenario}`")];
    for name in METRICS {
        cells.push(
            estimates.get(name).with_context(|| format!("{scenario} has no {name}"))?.clone(),
        );
    }
    cells.push(speed.to_string());
    Ok(format!("| {} |", cells.join(" | ")))
}

/// Name and estimate in a line such as ` tdr  0.981  ± 0.042  10`; an interval of zero is left out.
fn estimate(line: &str) -> Option<(&str, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [name, mean, "±", "0", _] => Some((name, mean.to_owned())),
        [name, mean, "±", half, _] => Some((name, format!("{mean} ± {half}"))),
        _ => None,
    }
}

/// `text` with the lines between the markers of `name` replaced.
fn replaced(text: &str, name: &str, block: &str) -> Result<String> {
    let (open, close) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let Some((head, rest)) = text.split_once(&open) else { bail!("the page has no {open:?}") };
    let Some((_, tail)) = rest.split_once(&close) else { bail!("the page has no {close:?}") };
    Ok(format!("{head}{open}{}\n{close}{tail}", block.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = "a\n<!-- begin run -->\nold\n<!-- end run -->\nz\n";
        let new = replaced(text, "run", "new\n").expect("markers");
        assert_eq!(new, "a\n<!-- begin run -->\nnew\n<!-- end run -->\nz\n");
        assert_eq!(replaced(&new, "run", "new").expect("markers"), new, "twice is once");
        assert!(replaced(text, "speed", "").is_err());
    }

    #[test]
    fn readme_has_the_speed_of_the_table() {
        let page = "| `pister-64` | 63 | 3400 |\n| `pister-26` | 25 | 0.99 ± 0.01 | 12000 |\n";
        let readme = "a\n| Lowmesh (`pister-26`) | speed 16,000; 22 probes | | |\nz\n";
        let new = with_speed(readme, page).expect("both rows");
        assert_eq!(new, "a\n| Lowmesh (`pister-26`) | speed 12,000; 22 probes | | |\nz\n");
        assert!(with_speed("a\n", page).is_err() && with_speed(readme, "a\n").is_err());
    }

    #[test]
    fn a_row_has_the_digits_of_the_table() {
        let line = |name| format!(" {name}   0.981  ± 0.042    10\n");
        let table: String = METRICS.iter().map(|name| line(*name)).collect();
        let table = table.replace("nodes   0.981  ± 0.042", "nodes   49  ± 0");
        let row = row("x", &table, 7200.0).expect("all metrics");
        assert!(
            row.starts_with("| `x` | 49 | 0.981 ± 0.042 |") && row.ends_with("| 7200 |"),
            "{row}"
        );
        assert!(super::row("x", "", 1.0).is_err());
    }
}
