//! `bench coap DIR`: our CoAP server beside libcoap's, under the same load in the same run.
//!
//! DIR holds a load generator (`coapload.c`) and a minimal server on libcoap (`servers/libcoap/server.c`), which are
//! compiled here; `gcc`, `pkg-config` and libcoap's headers are asked of the system. With 64 clients server and generator
//! have a core each. With a single client they share one, since a wake-up across cores costs more than either server.
//! Rounds alternate, and medians are compared.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{ports, process, product};

/// Rounds of each load; odd, for the median.
const ROUNDS: usize = 5;
/// Requests behind the last reading of memory, at least.
const REQUESTS: &str = "1000000";
/// Our share of libcoap's requests a second, at least: with 64 clients and with one.
const THROUGHPUT_MIN: [f64; 2] = [1.5, 1.0];
/// Processor time of a request, at most, microseconds.
const CPU_MAX_US: f64 = 8.0;
/// Our share of libcoap's median latency with one client, at most.
const LATENCY_MAX: f64 = 1.3;
/// Memory after a million requests, less than, MB.
const MEMORY_MAX_MB: f64 = 20.0;

/// A server that is running; it ends with its value.
struct Server {
    name: &'static str,
    child: Child,
    port: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// A program on one core.
fn on(core: &str, program: &Path, args: &[&str]) -> Command {
    let mut command = process::command("taskset", &["-c", core]);
    command.arg(program).args(args);
    command
}

/// Medians of a server under one load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// Measures, prints, and fails when a bar is missed.
pub fn run(folder: &Path) -> Result<()> {
    let folder = folder.canonicalize().with_context(|| format!("{}", folder.display()))?;
    let ours = product::optimised()?;
    let load = compile(&folder.join("coapload.c"), "coapload", &[])?;
    let flags =
        process::read(process::command("pkg-config", &["--cflags", "--libs", "libcoap-3-notls"]))?;
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let theirs = compile(&folder.join("servers/libcoap/server.c"), "libcoap-server", &flags)?;
    let start = |core: &str| -> Result<[Server; 2]> {
        let port = free_port()?;
        let args = ["serve", "--demo", "-a", "127.0.0.1", "-p", &port];
        let ours = on(core, &ours, &args);
        let libcoap = free_port()?;
        let theirs = on(core, &theirs, &[&libcoap]);
        Ok([spawn("lowmesh", ours, port)?, spawn("libcoap", theirs, libcoap)?])
    };
    let many = compare(&load, &start("1")?, "0", "64")?;
    let one = compare(&load, &start("1")?, "1", "1")?;
    let server = start("1")?;
    let args = ["-c", "64", "-n", REQUESTS, "-t", "120"];
    let memory = measure(&load, &server[0], "0", &args)?;
    let memory = number(&memory, "rss_kb")? * 1024.0 / 1e6;
    println!(
        "{:<10} {:>7} {:>10} {:>9} {:>9} {:>15}",
        "server", "clients", "requests/s", "p50 us", "p99 us", "CPU us/request"
    );
    for (clients, pair) in [("64", &many), ("1", &one)] {
        for (name, one) in ["lowmesh", "libcoap"].iter().zip(pair) {
            let Measured { per_second, p50_us, p99_us, cpu_us } = one;
            println!(
                "{name:<10} {clients:>7} {per_second:>10.0} {p50_us:>9.1} {p99_us:>9.1} {cpu_us:>15.2}"
            );
        }
    }
    let bars = [
        (
            "64 clients, requests/s, of libcoap's",
            many[0].per_second / many[1].per_second,
            THROUGHPUT_MIN[0],
            true,
        ),
        (
            "1 client, requests/s, of libcoap's",
            one[0].per_second / one[1].per_second,
            THROUGHPUT_MIN[1],
            true,
        ),
        ("64 clients, CPU us/request", many[0].cpu_us, CPU_MAX_US, false),
        ("1 client, p50, of libcoap's", one[0].p50_us / one[1].p50_us, LATENCY_MAX, false),
        ("MB after a million requests", memory, MEMORY_MAX_MB, false),
    ];
    let mut missed = 0;
    for (name, value, bar, at_least) in bars {
        let holds = if at_least { value >= bar } else { value <= bar };
        let (sign, verdict) =
            (if at_least { ">=" } else { "<=" }, if holds { "" } else { "  missed" });
        println!("{name:<40} {value:>8.2}  ({sign} {bar}){verdict}");
        missed += usize::from(!holds);
    }
    ensure!(missed == 0, "{missed} bar(s) missed");
    Ok(())
}

/// Both servers in turn, under the same load.
fn compare(load: &Path, servers: &[Server; 2], core: &str, clients: &str) -> Result<[Measured; 2]> {
    let mut rounds = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (server, rounds) in servers.iter().zip(&mut rounds) {
            let measured =
                measure(load, server, core, &["-c", clients, "-n", "400000", "-t", "3"])?;
            // The first one warms up.
            if round > 0 {
                rounds.push(measured);
            }
        }
    }
    let [ours, theirs] = rounds;
    Ok([medians(&ours)?, medians(&theirs)?])
}

fn medians(rounds: &[Value]) -> Result<Measured> {
    let median = |key| -> Result<f64> {
        let values: Result<Vec<f64>> = rounds.iter().map(|round| number(round, key)).collect();
        let mut values = values?;
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().context("there was no round")
    };
    Ok(Measured {
        per_second: median("rps")?,
        p50_us: median("p50_us")?,
        p99_us: median("p99_us")?,
        cpu_us: median("srv_cpu_us_per_req")?,
    })
}

fn measure(load: &Path, server: &Server, core: &str, args: &[&str]) -> Result<Value> {
    let id = server.child.id().to_string();
    let mut command = on(core, load, &["-p", &server.port, "-P", &id, "-u", "hello"]);
    command.args(args);
    let line = process::read(command)?;
    let round: Value = serde_json::from_str(&line).context("the generator did not write JSON")?;
    let answered = number(&round, "ok")?;
    if answered < 1.0 || number(&round, "bad")? > 0.0 {
        bail!("{} does not answer as it should: {}", server.name, line.trim_end());
    }
    Ok(round)
}

fn number(round: &Value, key: &str) -> Result<f64> {
    round[key].as_f64().with_context(|| format!("the generator says no {key:?}"))
}

/// Compiles one file of C into the target folder.
fn compile(source: &Path, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let folder = process::root().join("target/coap-bench");
    std::fs::create_dir_all(&folder)?;
    let binary = folder.join(name);
    let mut gcc = process::command("gcc", &["-O2", "-w", "-o"]);
    gcc.arg(&binary).arg(source).args(flags);
    process::read(gcc)?;
    Ok(binary)
}

fn spawn(name: &'static str, mut command: Command, port: String) -> Result<Server> {
    let line = process::line(&command);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.with_context(|| format!("cannot start {line}"))?;
    // Until it listens.
    thread::sleep(Duration::from_millis(500));
    ensure!(child.try_wait()?.is_none(), "{line} ended at once");
    Ok(Server { name, child, port })
}

/// A port for one of the servers, and one above it, where ours also listens.
fn free_port() -> Result<String> {
    Ok(ports::free(Ipv4Addr::LOCALHOST, &[1])?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_judged_by_its_median_round() {
        let round = |rps: f64| serde_json::json!({"rps": rps, "p50_us": 1.0, "p99_us": 2.0, "srv_cpu_us_per_req": rps / 10.0});
        let rounds: Vec<Value> = [30.0, 10.0, 20.0].map(round).to_vec();
        let measured = medians(&rounds).expect("whole");
        assert_eq!(measured, Measured { per_second: 20.0, p50_us: 1.0, p99_us: 2.0, cpu_us: 2.0 });
        assert!(medians(&[serde_json::json!({})]).is_err());
    }
}
