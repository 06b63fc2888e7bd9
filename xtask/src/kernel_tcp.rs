//! `kernel-tcp`: the kernel's TCP over `lowmesh emulate`, as the truth that simulated transfers are compared with.
//!
//! 400 requests of 20 octets are answered with 262 octets each over the link of Pesola 2020, without SACK. Each cell is a
//! congestion control, a queue and a loss; its completion times become one line of [`RUNS`]. The test `kernel` of
//! `lowmesh-tcp` simulates the same cells and compares; `--record` writes what one sender sent, as a vector of that test.

mod cell;
mod end;
mod recording;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::cell::{Cell, LOSSES, QUEUES, WINDOWS};
use crate::{process, product, tools};

/// The recorded completion times.
const RUNS: &str = "crates/tcp/tests/kernel-runs.txt";
const USAGE: &str = "arguments: [--runs N] [--free-runs N] [--parallel N] [--window NAME] [--loss none|2%] [--sack] \
     [--binary FILE] [--out FILE] [--write], or --record FILE --window NAME --queue OCTETS --loss LOSS [--sack] [--seed S]";

/// What the command line asks for.
struct Request {
    /// Runs of a cell with drawn losses, and of one without.
    runs: (u64, u64),
    parallel: usize,
    window: Option<String>,
    queue: Option<u64>,
    loss: Option<String>,
    sack: bool,
    seed: u64,
    binary: Option<PathBuf>,
    out: Option<PathBuf>,
    record: Option<PathBuf>,
}

/// Runs all cells, or records one transfer.
pub fn run(args: &[String]) -> Result<()> {
    if let [role, at, rest @ ..] = args
        && role == "--end"
    {
        return end::run(at, rest);
    }
    let request = parsed(args)?;
    if !tools::is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: network namespaces and TUN devices need Linux, root and /dev/net/tun");
        return Ok(());
    }
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => product::optimised()?,
    };
    if let Some(file) = &request.record {
        return record(&binary, &request, file);
    }
    let cells = cells(&request);
    let times = measure(&binary, &request, &cells)?;
    let mut lines = String::new();
    for (cell, times) in cells.iter().zip(&times) {
        println!("{}", cell.summary(times));
        lines += &cell.line(times);
    }
    let folder = process::root();
    let out = request.out.as_ref().map(|out| folder.join(out));
    let out = out.unwrap_or_else(|| folder.join("target/kernel-runs.txt"));
    std::fs::write(&out, lines).with_context(|| format!("cannot write {}", out.display()))?;
    println!("\nsimulated, compared with these runs:");
    let test = [
        "test",
        "--package",
        "lowmesh-tcp",
        "--test",
        "suite",
        "kernel::simulated",
        "--",
        "--nocapture",
    ];
    let mut compared = process::cargo(&test);
    compared.env("KERNEL_TCP_RUNS", &out);
    process::execute(compared)
}

fn parsed(args: &[String]) -> Result<Request> {
    let mut request = Request {
        runs: (25, 3),
        parallel: 12,
        window: None,
        queue: None,
        loss: None,
        sack: false,
        seed: 1,
        binary: None,
        out: None,
        record: None,
    };
    let mut args = args.iter();
    while let Some(key) = args.next() {
        let mut value = || args.next().with_context(|| format!("{key} takes a value\n{USAGE}"));
        match key.as_str() {
            "--runs" => request.runs.0 = value()?.parse()?,
            "--free-runs" => request.runs.1 = value()?.parse()?,
            "--parallel" => request.parallel = value()?.parse()?,
            "--window" => request.window = Some(value()?.clone()),
            "--queue" => request.queue = Some(value()?.parse()?),
            "--loss" => request.loss = Some(value()?.clone()),
            "--seed" => request.seed = value()?.parse()?,
            "--binary" => request.binary = Some(value()?.into()),
            "--out" => request.out = Some(value()?.into()),
            "--record" => request.record = Some(value()?.into()),
            "--sack" => request.sack = true,
            "--write" => request.out = Some(RUNS.into()),
            other => bail!("unknown argument {other:?}\n{USAGE}"),
        }
    }
    Ok(request)
}

/// The cells that a request leaves of the whole table.
fn cells(request: &Request) -> Vec<Cell> {
    let mut cells = Vec::new();
    for window in WINDOWS {
        for queue in QUEUES {
            for loss in LOSSES {
                let wanted = request.window.as_ref().is_none_or(|name| name == window)
                    && request.queue.is_none_or(|octets| octets == queue)
                    && request.loss.as_ref().is_none_or(|name| name == loss);
                if wanted {
                    let (window, loss) = (window.to_owned(), loss.to_owned());
                    cells.push(Cell { window, queue, loss, sack: request.sack });
                }
            }
        }
    }
    cells
}

/// The completion times of each cell in seconds, sorted.
fn measure(binary: &Path, request: &Request, cells: &[Cell]) -> Result<Vec<Vec<f64>>> {
    let runs = |cell: &Cell| if cell.is_lossy() { request.runs.0 } else { request.runs.1 };
    let mut jobs: VecDeque<(usize, u64)> = VecDeque::new();
    for (index, cell) in cells.iter().enumerate() {
        jobs.extend((0..runs(cell)).map(|seed| (index, request.seed + seed)));
    }
    println!("{} transfers, {} at a time", jobs.len(), request.parallel);
    let jobs = Mutex::new(jobs);
    let results = Mutex::new(vec![Vec::new(); cells.len()]);
    let work = |worker: usize| {
        loop {
            let job = jobs.lock().expect("no worker panics").pop_front();
            let Some((index, seed)) = job else { return };
            let name = format!("kt{}-{worker}", std::process::id() % 10_000);
            match transfer(binary, &cells[index], seed, &name, None) {
                Ok(seconds) => {
                    println!("{} seed {seed}: {seconds:.2} s", cells[index].name());
                    results.lock().expect("no worker panics")[index].push(seconds);
                }
                // The others go on; the cell has a run less.
                Err(error) => println!("{} seed {seed} failed: {error:#}", cells[index].name()),
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..request.parallel {
            scope.spawn(move || work(worker));
        }
    });
    let mut results = results.into_inner().expect("no worker panics");
    for (cell, times) in cells.iter().zip(&mut results) {
        ensure!(!times.is_empty(), "no transfer of {} has ended", cell.name());
        times.sort_by(f64::total_cmp);
    }
    Ok(results)
}

/// One transfer over a link of its own; the seconds from the client's connect to its last octet.
fn transfer(binary: &Path, cell: &Cell, seed: u64, name: &str, pcap: Option<&Path>) -> Result<f64> {
    let me = std::env::current_exe()?;
    let me = me.to_str().context("the path of this program is not UTF-8")?;
    let settings = format!("{} {}", cell.window, u8::from(cell.sack));
    let mut link = process::command(binary, &["emulate", "--interval", "0s", "--json"]);
    link.args(["--rate", "60k,30k", "--delay", "200ms,400ms", "--jitter", "10ms..20ms"]);
    link.args(["--queue", &cell.queue.to_string(), "--loss", cell.loss_value()]);
    link.args(["--mtu", "296", "--seed", &seed.to_string(), "--name", name]);
    if let Some(file) = pcap {
        link.arg("--pcap-b").arg(file);
    }
    link.args(["--peer", &format!("exec '{me}' kernel-tcp --end server {settings}"), "--", me]);
    link.args(["kernel-tcp", "--end", "client", &cell.window, if cell.sack { "1" } else { "0" }]);
    let out = process::read(link)?;
    let line = out.lines().find(|line| line.contains("completed_s")).context("no result")?;
    let result: Value = serde_json::from_str(line)?;
    result["completed_s"].as_f64().context("no time in the result")
}

/// Writes what the server sent and received in one transfer.
fn record(binary: &Path, request: &Request, file: &Path) -> Result<()> {
    let (Some(window), Some(queue), Some(loss)) = (&request.window, request.queue, &request.loss)
    else {
        bail!("--record takes --window, --queue and --loss\n{USAGE}");
    };
    let cell = Cell { window: window.clone(), queue, loss: loss.clone(), sack: request.sack };
    let pcap = file.with_extension("pcap");
    let name = format!("kr{}", std::process::id());
    let seconds = transfer(binary, &cell, request.seed, &name, Some(&pcap))?;
    let lines = recording::of(&std::fs::read(&pcap)?)?;
    std::fs::write(file, &lines).with_context(|| format!("cannot write {}", file.display()))?;
    println!(
        "{}: {seconds:.2} s, {} segments in {}",
        cell.name(),
        lines.lines().count(),
        file.display()
    );
    Ok(())
}
