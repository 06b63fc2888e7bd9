//! `grenoble-50.svg`: the routing tree, joining and the delays of a built-in scenario, from real runs.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::svg::{Anchor, Svg};
use super::trace::Run;
use super::{delay, join, links, tree};
use crate::{process, product};

/// What the figure shows; the link qualities drawn are those of its radio.
const SCENARIO: &str = "grenoble-50";
/// Runs drawn, each with a seed of its own from 1 up.
const SEEDS: u64 = 5;
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 680.0;

/// The figure, from runs of the built command.
pub fn made(binary: &PathBuf) -> Result<String> {
    let scenario = Shown::read(binary)?;
    let runs = (1..=SEEDS).map(|seed| traced(binary, seed)).collect::<Result<Vec<_>>>()?;
    let table = std::fs::read_to_string(process::root().join("crates/sim/data/grenoble.csv"))
        .context("cannot read the link qualities")?;
    draw(&scenario, &runs, &links::Qualities::parse(&table)?)
}

/// What the figure has to know of the scenario.
struct Shown {
    version: String,
    nodes: usize,
    minutes: f64,
    warmup_s: f64,
}

impl Shown {
    /// Asks the product, so that a changed scenario changes the labels.
    fn read(binary: &PathBuf) -> Result<Self> {
        let version = process::read(process::command(binary, &["--version"]))?;
        // Name and number; the lines behind tell build and commit, which are too long for a foot.
        let version = version.lines().next().unwrap_or_default().to_owned();
        let text = process::read(process::command(binary, &["show", SCENARIO]))?;
        let value = |key: &str| -> Result<&str> {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            let value = line.and_then(|line| line.split("  # ").next());
            value
                .map(|value| value.trim_matches('"'))
                .with_context(|| format!("`lowmesh show {SCENARIO}` has no {key}"))
        };
        let nodes = value("nodes")?.parse().context("nodes is no number")?;
        let minutes = seconds(value("duration")?)? / 60.0;
        Ok(Self { version, nodes, minutes, warmup_s: seconds(value("warmup")?)? })
    }
}

/// Seconds of a duration as scenarios write it.
fn seconds(text: &str) -> Result<f64> {
    let unit_at = text.find(|c: char| c.is_alphabetic()).context("a duration without a unit")?;
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "d" => 86_400.0,
        "h" => 3600.0,
        "min" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        _ => bail!("{text:?} has an unknown unit"),
    };
    Ok(number.trim().parse::<f64>().with_context(|| format!("{text:?} is no duration"))? * scale)
}

/// One run with its trace, which is read and thrown away.
fn traced(binary: &PathBuf, seed: u64) -> Result<Run> {
    let folder = binary.parent().context("the binary lies in a folder")?;
    let path = folder.join(format!("figures-{seed}.jsonl"));
    let number = seed.to_string();
    let mut command = product::run(binary, &[SCENARIO, "--seeds", "1", "--seed", &number]);
    command.arg("--trace").arg(&path);
    process::read(command)?;
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let run = Run::read(BufReader::with_capacity(1 << 20, file));
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    run.with_context(|| format!("the trace of seed {seed}"))
}

fn draw(scenario: &Shown, runs: &[Run], links: &links::Qualities) -> Result<String> {
    let first = runs.first().context("no run to draw")?;
    ensure!(runs.iter().all(|run| !run.delays.is_empty()), "a run has no acknowledged transaction");
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let head = format!("Routing tree after {:.0} min (seed 1)", scenario.minutes);
    title(&mut svg, 20.0, "a", &head);
    tree::draw(&mut svg, &first.tree(scenario.nodes), links, (20.0, 44.0, 490.0, 580.0));
    title(&mut svg, 535.0, "b", "Nodes that have joined");
    join::draw(&mut svg, runs, scenario.nodes - 1, (598.0, 48.0, 382.0, 212.0));
    svg.bold(535.0, 348.0, "c", Anchor::Start);
    svg.text(557.0, 348.0, "Delay of requests by hops (bands: all runs)", Anchor::Start);
    delay::draw(&mut svg, runs, scenario.warmup_s, (598.0, 370.0, 382.0, 212.0));
    let foot = format!(
        "{}, scenario {SCENARIO}, seeds 1 to {SEEDS}. Link qualities measured at FIT IoT-LAB Grenoble",
        scenario.version
    );
    svg.small(20.0, HEIGHT - 12.0, &foot, Anchor::Start);
    Ok(svg.finish(&format!("Three views of {SEEDS} simulated runs of the scenario {SCENARIO}")))
}

fn title(svg: &mut Svg, x: f64, letter: &str, words: &str) {
    svg.bold(x, 26.0, letter, Anchor::Start);
    svg.text(x + 22.0, 26.0, words, Anchor::Start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_scenarios_are_read_in_seconds() {
        let whole = |text| seconds(text).expect("a duration").round() as u32;
        assert_eq!(["12min", "1h", "90s"].map(whole), [720, 3600, 90]);
        assert!(seconds("12").is_err() && seconds("5 parsecs").is_err());
    }
}
