//! `bench flows`: TCP transfers of 100 KiB at once over one link, whose rate and queue grow with their number. The cost is
//! linear if a segment costs about the same however many flows there are.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::{Measured, measured};
use crate::product;

/// Flows of each row.
const FLOWS: [u32; 3] = [10, 100, 1_000];
/// How much more a segment may cost with the most flows than with the fewest. A hundred times as many nodes do not fit into
/// the caches of a processor, which alone costs about as much as the work.
const GROWTH_MAX: f64 = 3.0;

/// Prints the table, and fails if the cost of a segment grows.
pub(super) fn run(binary: &PathBuf) -> Result<()> {
    println!(
        "{:<12} {:>10} {:>9} {:>9} {:>13} {:>8}",
        "TCP flows", "segments", "wall s", "CPU s", "us a segment", "peak MB"
    );
    let mut costs = Vec::new();
    for flows in FLOWS {
        let one = measure(binary, flows).with_context(|| format!("{flows} flows"))?;
        let usage = one.usage.unwrap_or_default();
        let cost = usage.cpu_s * 1e6 / one.segments.max(1.0);
        println!(
            "{flows:<12} {:>10.0} {:>9.2} {:>9.2} {cost:>13.1} {:>8.1}",
            one.segments, one.wall_s, usage.cpu_s, usage.peak_mb
        );
        costs.push(cost);
    }
    if let [few, .., many] = costs[..]
        && many > GROWTH_MAX * few
    {
        bail!("a segment costs {many:.1} us with the most flows, and {few:.1} us with the fewest");
    }
    Ok(())
}

fn measure(binary: &PathBuf, flows: u32) -> Result<Measured> {
    let file = product::target()?.join(format!("bench-flows-{flows}.toml"));
    fs::write(&file, scenario(flows))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let file = file.to_str().context("the path of the target folder is not UTF-8")?;
    let one = measured(binary, &[file])?;
    ensure!(one.open == 0.0, "{} requests have no answer; the link is too slow", one.open);
    Ok(one)
}

/// A server, a gateway and a client for each flow; each flow has 30 kbit/s and a queue of 14,100 octets, as in `nb-iot`.
fn scenario(flows: u32) -> String {
    let mut text = format!(
        r#"name = "flows-{flows}"
duration = "150s"
warmup = "0s"

[topology]
kind = "line"
nodes = {nodes}
spacing_m = 10000.0

[radio]
medium = "unit-disk"

[mac]
kind = "csma"

[coap]
transport = "tcp"
queue = 400

[tcp]
profile = "pesola"
connections = {connections}
response_timeout = "150s"

[traffic]
application = "fetch"
start = "1s"
period = "10ms"
arrivals = "bursts"
burst = 400
packets = 400
path = "data"
payload_bytes = 256
silent = [1]
clients = {flows}

[backbone]
delay = "0s"

[[link]]
near = 1
far = 0
rate_bps = {up}
delay = "200ms"
back_rate_bps = {down}
back_delay = "400ms"
jitter_min = "10ms"
jitter = "20ms"
queue_octets = {queue}
ipv4_sizes = true
"#,
        nodes = flows + 2,
        // A quarter of them may be half open at once.
        connections = 8 * flows,
        up = 60_000 * flows,
        down = 30_000 * flows,
        queue = 14_100 * flows,
    );
    for node in 1..flows + 2 {
        // Writing to a String cannot fail.
        _ = write!(text, "\n[[border_router]]\nnode = {node}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::scenario;

    #[test]
    fn every_client_has_a_place_on_the_wire_and_a_share_of_the_link() {
        let text = scenario(3);
        assert_eq!(text.matches("[[border_router]]").count(), 4, "the gateway, too");
        assert!(text.contains("nodes = 5") && text.contains("back_rate_bps = 90000"));
    }
}
