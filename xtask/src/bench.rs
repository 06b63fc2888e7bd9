//! `bench`: the speed table. Each row is one run of the optimised command on one thread; speed is
//! simulated time over the run's own wall time, memory the peak of the process.

mod coap;
mod flows;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, product};

/// What a row runs, and what is asked of it.
struct Row {
    name: &'static str,
    args: &'static [&'static str],
    /// Simulated seconds a second, at least.
    target: Option<f64>,
}

/// Peak memory that no row may pass, MB.
const MEMORY_MAX_MB: f64 = 100.0;

const SPEED: &[Row] = &[
    Row { name: "pister-26", args: &["pister-26"], target: Some(5000.0) },
    Row { name: "pister-64", args: &["pister-64"], target: Some(1000.0) },
    Row {
        name: "grid-64, one request in 2 s",
        args: &["grid-64", "--set", "traffic.period=2s"],
        target: Some(200.0),
    },
    Row { name: "lille-50", args: &["lille-50"], target: Some(500.0) },
    Row {
        name: "lille-50, 512 octets",
        args: &["lille-50", "--set", "traffic.payload_bytes=512"],
        target: Some(500.0),
    },
    Row {
        name: "nb-iot, a TCP flow",
        args: &[
            "nb-iot",
            "--set",
            "coap.transport=tcp",
            "--set",
            "tcp.profile=pesola",
            "--set",
            "traffic.start=1s",
            "--set",
            "duration=45s",
        ],
        target: Some(2000.0),
    },
    Row {
        name: "wilab-40, SMRF, 1 request/s",
        args: &[
            "wilab-40",
            "--set",
            "traffic.application=group",
            "--set",
            "traffic.sender=1",
            "--set",
            "traffic.group=ff1e::89:1",
            "--set",
            "traffic.members=[3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,\
             23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42]",
            "--set",
            "entity=[]",
            "--set",
            "traffic.period=1s",
        ],
        target: Some(200.0),
    },
    // A query ends with its first answer, and all 40 members answer; a query that is still open delays the next.
    Row {
        name: "wilab-40, SMRF, 40 answers",
        args: &[
            "wilab-40",
            "--set",
            "groups.ect=multicast",
            "--set",
            "groups.arguments=enr=1",
            "--set",
            "traffic.period=1s",
        ],
        target: Some(200.0),
    },
];

/// The same load a node on ever larger grids. A frame is a cell in which something happens, so the column
/// of microseconds a frame tells whether cost grows with active cells alone.
const SCALING: &[Row] = &[
    Row { name: "grid of 8 x 8", args: &["grid-64", "--set", "traffic.period=60s"], target: None },
    Row {
        name: "grid of 16 x 16",
        args: &[
            "grid-64",
            "--set",
            "traffic.period=60s",
            "--set",
            "topology.rows=16",
            "--set",
            "topology.cols=16",
        ],
        target: None,
    },
    Row {
        name: "grid of 32 x 32",
        args: &[
            "grid-64",
            "--set",
            "traffic.period=60s",
            "--set",
            "topology.rows=32",
            "--set",
            "topology.cols=32",
        ],
        target: None,
    },
    Row {
        name: "grid of 32 x 32, CSMA",
        args: &[
            "grid-64",
            "--set",
            "traffic.period=60s",
            "--set",
            "topology.rows=32",
            "--set",
            "topology.cols=32",
            "--set",
            "mac.kind=csma",
            "--set",
            "duration=20min",
        ],
        target: None,
    },
];

/// How often a running row is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the table; `--quick` leaves the scaling rows out. `flows` runs the table of TCP flows, `groups` the bench of the
/// Entity Manager, and `codec`, `server` and `coap DIR` those benches of CoAP instead.
pub fn run(args: &[String]) -> Result<()> {
    let quick = match args {
        [] => false,
        [flag] if flag == "--quick" => true,
        [what] if what == "codec" => return run_bench("lowmesh-wire", "coap"),
        [what] if what == "flows" => return flows::run(&product::optimised()?),
        [what] if what == "groups" => return run_bench("lowmesh-group", "query"),
        [what] if what == "server" => return run_bench("lowmesh-coap", "server"),
        [what, folder] if what == "coap" => return coap::run(Path::new(folder)),
        other => {
            bail!(
                "unknown arguments {other:?}; allowed: --quick, flows, codec, groups, server, coap DIR"
            )
        }
    };
    let binary = product::optimised()?;
    println!(
        "{:<28} {:>9} {:>9} {:>11} {:>9} {:>13} {:>8}",
        "scenario", "sim s", "wall s", "sim-s/s", "target", "us a frame", "peak MB"
    );
    let scaling = if quick { &[][..] } else { SCALING };
    let mut missed = 0;
    for row in SPEED.iter().chain(scaling) {
        let measured = measured(&binary, row.args).with_context(|| row.name)?;
        println!("{}", line(row, &measured));
        missed += usize::from(!measured.holds(row));
    }
    if missed > 0 {
        bail!("{missed} row(s) miss their target (memory: below {MEMORY_MAX_MB} MB)");
    }
    Ok(())
}

/// Runs a bench of one crate.
fn run_bench(package: &str, bench: &str) -> Result<()> {
    process::execute(process::cargo(&["bench", "-q", "-p", package, "--bench", bench]))
}

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    sim_s: f64,
    wall_s: f64,
    frames: f64,
    /// Segments of TCP, where nodes use it.
    segments: f64,
    /// Requests without an answer at the end.
    open: f64,
    /// Processor time and peak memory, where the system reports them.
    usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Default)]
struct Usage {
    cpu_s: f64,
    peak_mb: f64,
}

impl Measured {
    fn speed(&self) -> f64 {
        self.sim_s / self.wall_s.max(1e-9)
    }

    fn holds(&self, row: &Row) -> bool {
        row.target.is_none_or(|target| self.speed() >= target)
            && self.usage.is_none_or(|usage| usage.peak_mb < MEMORY_MAX_MB)
    }
}

fn line(row: &Row, measured: &Measured) -> String {
    let target = row.target.map_or("-".to_owned(), |target| format!("{target:.0}"));
    let (share, peak) = measured.usage.map_or(("-".to_owned(), "-".to_owned()), |usage| {
        let share = usage.cpu_s * 1e6 / measured.frames.max(measured.segments).max(1.0);
        (format!("{share:.2}"), format!("{:.1}", usage.peak_mb))
    });
    let missed = if measured.holds(row) { "" } else { "  missed" };
    format!(
        "{:<28} {:>9.0} {:>9.2} {:>11.0} {target:>9} {share:>13} {peak:>8}{missed}",
        row.name,
        measured.sim_s,
        measured.wall_s,
        measured.speed(),
    )
}

/// Runs one seed of a scenario.
fn measured(binary: &PathBuf, args: &[&str]) -> Result<Measured> {
    let args: Vec<&str> = args.iter().copied().chain(["--seeds", "1", "--jobs", "1"]).collect();
    let (text, usage) = observe(product::run(binary, &args))?;
    let report: Value = serde_json::from_str(&text).context("the run did not write JSON")?;
    let run = &report["runs"][0];
    let number = |value: &Value, key: &str| {
        value[key].as_f64().with_context(|| format!("the run has no number {key:?}"))
    };
    Ok(Measured {
        sim_s: number(run, "sim_s")?,
        wall_s: number(run, "wall_s")?,
        frames: number(&run["metrics"], "frames")?,
        segments: run["metrics"]["tcp_segments"].as_f64().unwrap_or_default(),
        open: number(&run["metrics"], "open")?,
        usage,
    })
}

/// Runs `command` while looking at its processor time and memory; returns its stdout.
fn observe(mut command: Command) -> Result<(String, Option<Usage>)> {
    let shown = process::line(&command);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.with_context(|| format!("cannot start {shown}"))?;
    let id = child.id();
    // The output is drained beside the looking, so that a long report cannot block the child.
    let reader = thread::spawn(move || child.wait_with_output());
    let mut usage = None;
    while !reader.is_finished() {
        if let Some(now) = look(id) {
            let last: Usage = usage.unwrap_or_default();
            usage = Some(Usage {
                cpu_s: now.cpu_s.max(last.cpu_s),
                peak_mb: now.peak_mb.max(last.peak_mb),
            });
        }
        thread::sleep(LOOK);
    }
    let output = reader.join().expect("the reader does not panic")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} ended with {}\n{}", output.status, stderr.trim_end());
    }
    Ok((String::from_utf8(output.stdout).context("the run did not write UTF-8")?, usage))
}

/// What Linux reports about a process; `None` elsewhere and when it is gone.
fn look(id: u32) -> Option<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(Usage { cpu_s: processor_seconds(&stat)?, peak_mb: peak_memory_mb(&status)? })
}

fn peak_memory_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Fields 14 and 15 of /proc/PID/stat, in hundredths of a second; field 2 may itself hold blanks.
fn processor_seconds(stat: &str) -> Option<f64> {
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_and_memory_are_read_from_proc() {
        let stat = "7 (low mesh) S 1 7 7 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 3 0 9 1 2";
        assert_eq!(processor_seconds(stat), Some(1.75));
        assert_eq!(peak_memory_mb("Name:\tx\nVmHWM:\t   12500 kB\n"), Some(12.8));
    }

    #[test]
    fn a_row_holds_when_speed_and_memory_do() {
        let row = Row { name: "a", args: &[], target: Some(1000.0) };
        let usage = Some(Usage { cpu_s: 1.0, peak_mb: 20.0 });
        let (frames, segments, open) = (1e5, 0.0, 0.0);
        let fast = Measured { sim_s: 3600.0, wall_s: 1.0, frames, segments, open, usage };
        assert!(fast.holds(&row));
        assert!(!Measured { wall_s: 4.0, ..fast }.holds(&row));
        let usage = Some(Usage { cpu_s: 1.0, peak_mb: 101.0 });
        assert!(!Measured { usage, ..fast }.holds(&row));
        assert!(line(&row, &fast).contains("10.00"));
    }

    #[test]
    fn a_child_is_observed_to_its_end() {
        let (text, _) = observe(process::command("echo", &["{}"])).expect("echo works");
        assert_eq!(text, "{}\n");
    }
}
