//! The results in README.md: a block between two markers is replaced by what the product prints now.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use lowmesh_lab::digits::with_interval;
use lowmesh_lab::statistics::Estimate;
use serde_json::Value;

use crate::process::{self, Stopwatch};
use crate::product;

/// The built-in scenarios that are compared in one line each.
const COMPARED: [&str; 5] = ["grenoble-50", "pister-26", "pister-64", "grid-25", "grid-64"];

/// Runs what README.md shows and rewrites its blocks.
pub fn rewrite(binary: &PathBuf, scenario: &str) -> Result<()> {
    let path = process::root().join("README.md");
    let text = std::fs::read_to_string(&path).context("cannot read README.md")?;
    let text = replaced(&text, "run", &verbatim(binary, scenario)?)?;
    let text = replaced(&text, "scenarios", &comparison(binary)?)?;
    std::fs::write(&path, text).context("cannot write README.md")
}

/// Command and output of one run, as a terminal shows them.
fn verbatim(binary: &PathBuf, scenario: &str) -> Result<String> {
    let clock = Stopwatch::start();
    let output = process::read(process::command(binary, &["run", scenario, "--quiet"]))?;
    let took = clock.elapsed().as_secs_f64();
    let mut block = format!("```console\n$ lowmesh run {scenario}\n");
    for line in output.lines() {
        let _ = writeln!(block, "{}", line.trim_end());
    }
    let _ = write!(block, "```\n\n({took:.0} s on {})", machine());
    Ok(block)
}

/// One line a scenario, from the summaries.
fn comparison(binary: &PathBuf) -> Result<String> {
    let mut block = String::from(
        "| scenario | nodes | joined | TDR | delay p50 | delay p95 | duty cycle | simulated s per s |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for scenario in COMPARED {
        let report = product::report(product::run(binary, &[scenario, "--jobs", "1"]))?;
        let _ = writeln!(block, "{}", row(scenario, &report)?);
    }
    let _ = write!(
        block,
        "\nTDR: share of transactions that were acknowledged. Means over runs ± half width of their 95 % confidence interval."
    );
    Ok(block)
}

fn row(scenario: &str, report: &Value) -> Result<String> {
    let runs = report["runs"].as_array().context("a report has runs")?;
    let sum = |key: &str| runs.iter().filter_map(|run| run[key].as_f64()).sum::<f64>();
    let speed = sum("sim_s") / sum("wall_s").max(1e-3);
    let mut cells = vec![format!("`{scenario}`")];
    for (name, scale, unit) in [
        ("nodes", 1.0, ""),
        ("joined", 1.0, ""),
        ("tdr", 1.0, ""),
        ("delay_p50_ms", 1e-3, " s"),
        ("delay_p95_ms", 1e-3, " s"),
        ("duty_cycle", 100.0, " %"),
    ] {
        let estimate = &report["summary"][name];
        cells.push(estimated(estimate, scale, unit));
    }
    cells.push(format!("{}", (speed / 100.0).round() * 100.0));
    Ok(format!("| {} |", cells.join(" | ")))
}

/// "0.981 ± 0.042 s", with the digits of the product's own tables; without a spread, the mean alone.
fn estimated(summary: &Value, scale: f64, unit: &str) -> String {
    let number = |key: &str| summary[key].as_f64().map(|value| value * scale);
    let Some(mean) = number("mean") else { return "-".to_owned() };
    let ci95 = number("ci95").filter(|half| *half > 0.0);
    let n = summary["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    with_interval(Estimate { mean, ci95, n }) + unit
}

/// The class of machine: what a reader needs to judge a running time.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{cores} cores of {} {}", std::env::consts::ARCH, std::env::consts::OS)
}

/// `text` with the lines between the markers of `name` replaced.
fn replaced(text: &str, name: &str, block: &str) -> Result<String> {
    let (open, close) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let Some((head, rest)) = text.split_once(&open) else { bail!("README.md has no {open:?}") };
    let Some((_, tail)) = rest.split_once(&close) else { bail!("README.md has no {close:?}") };
    Ok(format!("{head}{open}{}\n{close}{tail}", block.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = "a\n<!-- begin run -->\nold\n<!-- end run -->\nz\n";
        let new = replaced(text, "run", "new\n").expect("markers");
        assert_eq!(new, "a\n<!-- begin run -->\nnew\n<!-- end run -->\nz\n");
        assert_eq!(replaced(&new, "run", "new").expect("markers"), new, "twice is once");
        assert!(replaced(text, "speed", "").is_err());
    }

    #[test]
    fn an_estimate_says_its_interval_only_if_it_has_one() {
        let all = json!({"mean": 0.98149, "ci95": 0.0419, "n": 5});
        assert_eq!(estimated(&all, 1.0, ""), "0.981 ± 0.042");
        let narrow = json!({"mean": 0.99961, "ci95": 0.00072, "n": 5});
        assert_eq!(estimated(&narrow, 1.0, ""), "0.99961 ± 0.00072");
        let still = json!({"mean": 49.0, "ci95": 0.0, "n": 5});
        assert_eq!(estimated(&still, 1.0, ""), "49");
        let one = json!({"mean": 1915.7, "ci95": null, "n": 1});
        assert_eq!(estimated(&one, 1e-3, " s"), "1.916 s");
        assert_eq!(estimated(&json!({"mean": null, "n": 0}), 1.0, " s"), "-");
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let estimate = json!({"mean": 1.0, "ci95": null, "n": 1});
        let names = ["nodes", "joined", "tdr", "delay_p50_ms", "delay_p95_ms", "duty_cycle"];
        let summary: Value =
            names.iter().map(|name| ((*name).to_owned(), estimate.clone())).collect();
        let runs = json!([{"sim_s": 3600.0, "wall_s": 0.5}]);
        let row = row("x", &json!({"runs": runs, "summary": summary})).expect("a report");
        assert_eq!(row, "| `x` | 1 | 1 | 1 | 0.001000 s | 0.001000 s | 100 % | 7200 |");
    }
}
