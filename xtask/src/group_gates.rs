//! `group-gates`: adaptive gates of the Entity Manager beside every fixed delay, cell by cell, with the same seeds.
//!
//! A cell is a MAC, a size of the group and a load of Wi-Fi. Each arm runs in it with the same seeds, so that differences
//! are those of pairs. The best fixed delay is chosen in hindsight, in each cell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, product};

/// Runs of an arm in a cell, each with about ten queries, and the 0.975 quantile of Student's t with one degree of freedom
/// less. The first is the default.
const RUNS: [(usize, f64); 4] = [(5, 2.776), (10, 2.262), (20, 2.093), (50, 2.010)];
/// Members of the group.
const MEMBERS: [u32; 5] = [5, 10, 20, 29, 40];
/// Load of Wi-Fi in Mbit/s.
const LOADS: [&str; 3] = ["0.0", "15.0", "28.5"];
/// The fixed delays.
const DELAYS: &str = "0ms,10ms,20ms,50ms,100ms,200ms,500ms,1s";
/// The adaptive arms: values of `groups.gate`, and the window that is its largest.
const GATES: [(&str, &str); 2] = [("gate-climb", "8"), ("gate-climb", "1")];
/// How much worse a gate may be.
const WORSE_MAX: f64 = 1.2;

/// A MAC with what its scenario needs beside that of `wilab-40`.
struct Mac {
    name: &'static str,
    settings: &'static [&'static str],
}

const MACS: [Mac; 3] = [
    Mac { name: "contiki2014", settings: &["duration=600s"] },
    Mac { name: "ieee", settings: &["duration=600s", "mac.kind=csma"] },
    Mac {
        name: "tsch",
        settings: &[
            "mac.kind=tsch",
            "schedule.function=orchestra",
            "border_router=[{node=1},{node=2}]",
            "groups.setup=600s",
            "warmup=900s",
            "traffic.start=900s",
            "traffic.period=60s",
            "duration=1500s",
            "radio.wifi=[{channel=13,x_m=0.0,y_m=16.0,tx_power_dbm=-30.7,exponent=3.0,start=\"880s\"}]",
        ],
    },
];

/// The command, and how often it runs each arm.
struct Program {
    binary: PathBuf,
    runs: usize,
}

/// What the seeds of an arm in a cell measured, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Arm {
    median_ms: Vec<f64>,
    reliability: Vec<f64>,
    frames: Vec<f64>,
}

/// The verdict on a gate in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Better,
    Open,
    Worse,
}

/// Runs all cells; `--quick` runs those of one load, `--runs` changes the number of runs, words choose MACs.
pub fn run(args: &[String]) -> Result<()> {
    let (mut quick, mut runs, mut chosen) = (false, RUNS[0].0, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--quick" => quick = true,
            "--runs" => {
                let value = rest.next().and_then(|value| value.parse().ok());
                let known = value.filter(|value| RUNS.iter().any(|(runs, _)| runs == value));
                runs = known.context("--runs needs 5, 10, 20 or 50")?;
            }
            name if MACS.iter().any(|mac| mac.name == name) => chosen.push(name),
            unknown => bail!(
                "unknown argument {unknown:?}; allowed: --quick, --runs N, contiki2014, ieee, tsch"
            ),
        }
    }
    let program = &Program { binary: product::optimised()?, runs };
    let loads = if quick { &LOADS[..1] } else { &LOADS[..] };
    println!(
        "| MAC | members | Wi-Fi | best fixed delay | {} |",
        GATES.map(|(gate, most)| format!("{gate}, window-max {most}")).join(" | ")
    );
    println!("|---|---|---|---|{}", "---|".repeat(GATES.len()));
    let mut totals = BTreeMap::new();
    for mac in MACS.iter().filter(|mac| chosen.is_empty() || chosen.contains(&mac.name)) {
        for members in MEMBERS {
            for load in loads {
                let row = cell(program, mac, members, load, &mut totals)?;
                println!("{row}");
            }
        }
    }
    println!();
    for (gate, total) in &totals {
        println!("{gate}: {}", total.line());
    }
    hybrid(program, loads)
}

/// Cells of a gate.
#[derive(Clone, Debug, Default)]
struct Total {
    cells: u32,
    better: u32,
    /// More than [`WORSE_MAX`] times the best fixed delay.
    far_worse: u32,
    less_reliable: u32,
}

impl Total {
    fn line(&self) -> String {
        let Self { cells, better, far_worse, less_reliable } = self;
        format!(
            "better in {better} of {cells} cells, more than 20 % worse in {far_worse}, less reliable in {less_reliable}"
        )
    }
}

fn cell(
    program: &Program,
    mac: &Mac,
    members: u32,
    load: &str,
    totals: &mut BTreeMap<String, Total>,
) -> Result<String> {
    let place = format!("{}, {members} members, {load} Mbit/s", mac.name);
    let fixed = arms(program, mac, members, load, &[&format!("sweep.groups.delay={DELAYS}")])?;
    let is_shorter = |a: &&(String, Arm), b: &&(String, Arm)| {
        mean(&a.1.median_ms).total_cmp(&mean(&b.1.median_ms))
    };
    let (delay, best) = fixed.iter().min_by(is_shorter).with_context(|| place.clone())?;
    let first = format!(
        "| {} | {members} | {load} | {delay}: {} ms |",
        mac.name,
        whole(mean(&best.median_ms))
    );
    let mut row = vec![first];
    for (gate, most) in GATES {
        let window = format!("{gate}.window-max={most}");
        let name = format!("{gate}, window-max {most}");
        let mut found = arms(
            program,
            mac,
            members,
            load,
            &["groups.delay=0ms", &format!("groups.gate={gate}"), &window],
        )?;
        let (_, arm) = found.pop().with_context(|| format!("{place}: no runs of {gate}"))?;
        let total = totals.entry(name).or_default();
        let ratio = mean(&arm.median_ms) / mean(&best.median_ms);
        let verdict = judge(&arm.median_ms, &best.median_ms);
        let is_less_reliable = judge(&arm.reliability, &best.reliability) == Verdict::Better;
        total.cells += 1;
        total.better += u32::from(verdict == Verdict::Better && !is_less_reliable);
        total.far_worse += u32::from(ratio > WORSE_MAX);
        total.less_reliable += u32::from(is_less_reliable);
        let word = match verdict {
            Verdict::Better => "better",
            Verdict::Open => "open",
            Verdict::Worse => "worse",
        };
        let less = if is_less_reliable { ", less reliable" } else { "" };
        row.push(format!(" {} ms ({ratio:.2}, {word}{less}) |", whole(mean(&arm.median_ms))));
    }
    Ok(row.concat())
}

/// The groups with multicast first, beside those by unicast at the paper's delay of 100 ms.
fn hybrid(program: &Program, loads: &[&str]) -> Result<()> {
    println!("\n| MAC | members | Wi-Fi | unicast | hybrid | frames of hybrid | below half |");
    println!("|---|---|---|---|---|---|---|");
    for mac in &MACS[..2] {
        for members in MEMBERS.into_iter().filter(|members| *members >= 20) {
            for load in loads {
                let of = |settings: &[&str]| -> Result<Arm> {
                    let mut found = arms(program, mac, members, load, settings)?;
                    Ok(found.pop().context("no runs")?.1)
                };
                let unicast = of(&["groups.delay=100ms"])?;
                let hybrid = of(&["groups.gate=hybrid", "groups.ect=multicast"])?;
                let ratio = mean(&hybrid.frames) / mean(&unicast.frames);
                println!(
                    "| {} | {members} | {load} | {:.4}, {} frames | {:.4}, {} frames | {ratio:.2} | {} |",
                    mac.name,
                    mean(&unicast.reliability),
                    whole(mean(&unicast.frames)),
                    mean(&hybrid.reliability),
                    whole(mean(&hybrid.frames)),
                    if ratio < 0.5 { "yes" } else { "no" },
                );
            }
        }
    }
    Ok(())
}

/// The arms that a sweep makes of settings, by the swept value.
fn arms(
    program: &Program,
    mac: &Mac,
    members: u32,
    load: &str,
    settings: &[&str],
) -> Result<Vec<(String, Arm)>> {
    let nodes = format!("topology.nodes={}", members + 3);
    let load = format!("radio.wifi_load_mbps={load}");
    let seeds = program.runs.to_string();
    let mut args = vec!["wilab-40", "--seeds", &seeds];
    for setting in [&nodes[..], &load].iter().chain(mac.settings).chain(settings) {
        args.extend(["--set", setting]);
    }
    let command = product::run(&program.binary, &args);
    let line = process::line(&command);
    let report = product::report(command)?;
    read(&report).with_context(|| line)
}

/// The arms of a report, of a sweep or of one point.
fn read(report: &Value) -> Result<Vec<(String, Arm)>> {
    let alone = vec![report.clone()];
    let points = report["points"].as_array().unwrap_or(&alone);
    let mut found = Vec::new();
    for point in points {
        let name = point["settings"]["groups.delay"].as_str().unwrap_or_default().to_owned();
        let mut arm = Arm::default();
        for run in point["runs"].as_array().context("a point has no runs")? {
            let number = |key: &str| {
                let value = run["metrics"][key].as_f64();
                value.with_context(|| format!("a run has no {key}"))
            };
            arm.median_ms.push(number("query_p50_ms")?);
            arm.reliability.push(number("member_reliability")?);
            arm.frames.push(number("query_frames")?);
        }
        found.push((name, arm));
    }
    Ok(found)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Whether `ours` is below `theirs`, by the 95 % confidence interval of the differences of pairs.
fn judge(ours: &[f64], theirs: &[f64]) -> Verdict {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    let (count, middle) = (differences.len() as f64, mean(&differences));
    let squares: f64 = differences.iter().map(|one| (one - middle).powi(2)).sum();
    let quantile = RUNS.iter().find(|(runs, _)| *runs == differences.len());
    let half =
        quantile.map_or(f64::INFINITY, |(_, t)| *t) * (squares / (count - 1.0) / count).sqrt();
    if middle + half < 0.0 {
        Verdict::Better
    } else if middle - half > 0.0 {
        Verdict::Worse
    } else {
        Verdict::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_decide_where_the_whole_interval_does() {
        let theirs: Vec<f64> = (0..5).map(|seed| 100.0 * f64::from(seed)).collect();
        let ours: Vec<f64> =
            theirs.iter().enumerate().map(|(n, one)| one - 5.0 - n as f64).collect();
        assert_eq!(judge(&ours, &theirs), Verdict::Better);
        assert_eq!(judge(&theirs, &ours), Verdict::Worse);
        let mixed: Vec<f64> = theirs
            .iter()
            .enumerate()
            .map(|(n, one)| one + if n % 2 == 0 { 9.0 } else { -9.0 })
            .collect();
        assert_eq!(judge(&mixed, &theirs), Verdict::Open);
    }

    #[test]
    fn the_arms_of_a_report_are_read_with_their_seeds() {
        let run = serde_json::json!({
            "metrics": {"query_p50_ms": 5.0, "member_reliability": 1.0, "query_frames": 20.0}
        });
        let point = serde_json::json!({"settings": {"groups.delay": "10ms"}, "runs": [run.clone(), run.clone()]});
        let found = read(&serde_json::json!({"points": [point]})).expect("well formed");
        assert_eq!(
            (found[0].0.as_str(), found[0].1.frames.as_slice()),
            ("10ms", &[20.0, 20.0][..])
        );
        assert_eq!(
            read(&serde_json::json!({"runs": [run]})).expect("one point")[0].1.median_ms,
            [5.0]
        );
        assert!(read(&serde_json::json!({"runs": [{"metrics": {}}]})).is_err());
    }
}
