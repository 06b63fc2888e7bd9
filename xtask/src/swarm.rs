//! `swarm`: random small scenarios, each drawn from a number, each run twice. A run that breaks one of the
//! simulator's invariants (books that do not balance, a panic), that contradicts itself, or that differs
//! from its repetition is a finding, printed with the command that repeats it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::product;

const COUNT: u64 = 100;

/// Runs `--count` scenarios from number `--seed` on, or that of `--only`.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let is_liveness = args.iter().any(|word| word == "--liveness");
    args.retain(|word| word != "--liveness");
    let (first, count) = bounds(&args)?;
    let (flag, text): (_, fn(u64) -> String) =
        if is_liveness { (" --liveness", liveness_scenario) } else { ("", scenario) };
    let binary = product::build()?;
    let folder = std::env::temp_dir().join(format!("lowmesh-swarm-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut findings = 0;
    for number in first..first.saturating_add(count) {
        let file = folder.join(format!("swarm-{number}.toml"));
        fs::write(&file, text(number))
            .with_context(|| format!("cannot write {}", file.display()))?;
        match examine(&binary, &file, is_liveness) {
            Ok(line) => {
                println!("{number:>5}  {line}");
                fs::remove_file(&file)?;
            }
            Err(error) => {
                findings += 1;
                println!("{number:>5}  FAILED: {error:#}");
                println!("       again: cargo xtask swarm{flag} --only {number}");
                println!("       again: lowmesh run {} --seeds 1", file.display());
            }
        }
    }
    if findings > 0 {
        bail!("{findings} of {count} scenarios failed; their files are in {}", folder.display());
    }
    fs::remove_dir(&folder)?;
    println!("swarm: {count} scenarios from number {first} on, no finding");
    Ok(())
}

fn bounds(args: &[String]) -> Result<(u64, u64)> {
    let (mut first, mut count) = (1, COUNT);
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().with_context(|| format!("{flag} needs a number"))?;
        let value: u64 = value.parse().with_context(|| format!("{flag} {value}: not a number"))?;
        match flag.as_str() {
            "--seed" => first = value,
            "--count" => count = value,
            "--only" => (first, count) = (value, 1),
            _ => bail!(
                "unknown argument {flag:?}; allowed: --liveness, --count N, --seed S, --only S"
            ),
        }
    }
    Ok((first, count))
}

/// Runs the file twice; returns one line with the result.
fn examine(binary: &PathBuf, file: &Path, is_liveness: bool) -> Result<String> {
    let path = file.to_string_lossy();
    let ask = || product::report(product::run(binary, &[&path, "--seeds", "1", "--jobs", "1"]));
    let (report, again) = (ask()?, ask()?);
    let (hash, repeated) = (product::trace_hashes(&report)?, product::trace_hashes(&again)?);
    ensure!(hash == repeated, "the same seed gave {hash:?} and then {repeated:?}");
    let metrics = &report["runs"][0]["metrics"];
    consistent(metrics)?;
    if is_liveness {
        alive(metrics)?;
    }
    let shown = |key: &str| metrics[key].as_f64().map_or("-".to_owned(), |v| format!("{v:.3}"));
    Ok(format!(
        "nodes {} joined {} transactions {} tdr {}",
        metrics["nodes"],
        metrics["joined"],
        metrics["transactions"],
        shown("tdr")
    ))
}

/// What must hold between the numbers of one run.
fn consistent(metrics: &Value) -> Result<()> {
    let count = |key: &str| {
        metrics[key].as_u64().with_context(|| format!("the metrics have no count {key:?}"))
    };
    let (nodes, joined) = (count("nodes")?, count("joined")?);
    ensure!(joined <= nodes, "{joined} of {nodes} nodes joined");
    let (all, acknowledged, failed, open) =
        (count("transactions")?, count("acknowledged")?, count("failed")?, count("open")?);
    ensure!(
        acknowledged + failed + open == all,
        "{all} transactions, but {acknowledged} acknowledged, {failed} failed and {open} open"
    );
    let (copies, delivered, lost, open) = (
        count("group_copies")?,
        count("group_delivered")?,
        count("group_lost")?,
        count("group_open")?,
    );
    ensure!(
        delivered + lost + open == copies,
        "{copies} copies for members, but {delivered} delivered, {lost} lost and {open} open"
    );
    for key in ["tdr", "pdr_up", "pdr_down", "duty_cycle", "group_pdr", "group_pdr_worst"] {
        let share = metrics.get(key).with_context(|| format!("the metrics have no {key:?}"))?;
        let bounded = share.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share));
        ensure!(share.is_null() || bounded, "{key} is {share}, not a share");
    }
    Ok(())
}

/// A stream of numbers out of one (SplitMix64); scenarios need spread, not quality.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// The scenario of a number, as a file.
fn scenario(number: u64) -> String {
    let mut draw = Draw(number);
    let mut toml = format!(
        "name = \"swarm-{number}\"\nduration = \"15min\"\nwarmup = \"5min\"\nseeds = 1\nseed = {number}\n"
    );
    let nodes = network(&mut toml, &mut draw);
    let mac = mac(&mut toml, &mut draw);
    let collector = draw.of(&["own", "own", "own", "first", "next", "next"]);
    traffic(&mut toml, &mut draw, nodes, collector);
    border_routers(&mut toml, &mut draw, nodes, mac);
    // From streams of their own: the scenarios of numbers stay what they were without events and leaves.
    events(&mut toml, &mut Draw(number ^ EVENTS), nodes, 1..13);
    with_leaves(toml, &mut Draw(number ^ LEAVES), nodes)
}

/// What sets the stream of leaves apart from the others.
const LEAVES: u64 = 0x6c65_6166;

/// The scenario with up to three nodes that run no RPL, in one of three that can have them.
fn with_leaves(toml: String, draw: &mut Draw, nodes: u64) -> String {
    // A leaf forwards no packets to groups, and is no border router.
    let can_have = toml.contains("engine = \"none\"") && !toml.contains("[[border_router]]");
    if nodes < 3 || !can_have || draw.below(3) != 0 {
        return toml;
    }
    let mut leaves: Vec<u64> = (0..=draw.below(3)).map(|_| 1 + draw.below(nodes - 1)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    toml.replacen("\n[rpl]\n", &format!("\n[rpl]\nleaves = {leaves:?}\n"), 1)
}

/// What sets the stream of events apart from the others.
const EVENTS: u64 = 0x6576_656e_7473;

/// Up to four events in these minutes, in one scenario of two.
fn events(toml: &mut String, draw: &mut Draw, nodes: u64, minutes: core::ops::Range<u64>) {
    if nodes < 3 || draw.below(2) == 0 {
        return;
    }
    for _ in 0..=draw.below(3) {
        let minute = minutes.start + draw.below(minutes.end - minutes.start);
        // Each node has its power back after a while, so that the network can recover.
        let (node, back) = (draw.below(nodes), minute + 1 + draw.below(2));
        let peer = (node + 1 + draw.below(nodes - 1)) % nodes;
        let memory = draw.of(&["lost", "lost", "kept"]);
        let event = |at: u64, kind: &str, keys: &str| {
            format!("\n[[event]]\nat = \"{at}min\"\nkind = \"{kind}\"\n{keys}\n")
        };
        let (one, two) = (format!("node = {node}"), format!("node = {node}\npeer = {peer}"));
        let (first, second) = match draw.below(6) {
            0 | 1 => (
                event(minute, "off", &format!("{one}\nmemory = \"{memory}\"")),
                event(back, "on", &one),
            ),
            2 => (event(minute, "reboot", &one), String::new()),
            3 => (event(minute, "cut", &two), event(back, "restore", &two)),
            4 => {
                (event(minute, "link", &format!("{two}\npdr = 0.3")), event(back, "restore", &two))
            }
            _ => (
                event(minute, "noise", &format!("{one}\npower_dbm = -60")),
                event(back, "noise", &one),
            ),
        };
        toml.extend([first, second]);
    }
}

/// A scenario of a number in which every network has time to recover: sparse traffic, and no event in the last ten minutes.
fn liveness_scenario(number: u64) -> String {
    let mut draw = Draw(number ^ LIVENESS);
    let mut toml = format!(
        "name = \"liveness-{number}\"\nduration = \"60min\"\nwarmup = \"20min\"\nseeds = 1\nseed = {number}\n"
    );
    let nodes = network(&mut toml, &mut draw);
    let kind = draw.of(&["tsch", "tsch", "csma"]);
    let (mode, objective) = (draw.of(&["storing", "non-storing"]), draw.of(&["mrhof", "of0"]));
    _ = write!(toml, "\n[mac]\nkind = \"{kind}\"\n");
    if kind == "tsch" {
        let schedule = draw.of(&["msf", "b-msf", "orchestra"]);
        // A node that lost the network listens on one channel after the other. With 16 of them, luck alone takes minutes.
        let finding = "eb_period = \"2s\"\nhopping = \"4_4\"";
        _ = write!(toml, "{finding}\n\n[schedule]\nfunction = \"{schedule}\"\n");
    }
    let application = draw.of(&["coap", "udp", "poll"]);
    _ = write!(
        toml,
        "\n[rpl]\nmode = \"{mode}\"\nobjective = \"{objective}\"\n\n[traffic]\napplication = \"{application}\"\n\
         period = \"1min\"\nstart = \"10min\"\n"
    );
    events(&mut toml, &mut draw, nodes, 20..48);
    toml
}

/// What sets the stream of these scenarios apart.
const LIVENESS: u64 = 0x6c69_7665;

/// After the last event all nodes that have a path to their border router have routes within ten minutes.
fn alive(metrics: &Value) -> Result<()> {
    let Some(events) = metrics.get("event_list").and_then(Value::as_array) else { return Ok(()) };
    let Some(last) = events.last() else { return Ok(()) };
    let cut_off = last["cut_off"].as_u64().unwrap_or_default();
    if cut_off == 0 {
        return Ok(());
    }
    let recovery = last["recovery_s"].as_f64();
    ensure!(
        recovery.is_some_and(|span| span <= RECOVERY_MAX_S),
        "{cut_off} nodes were cut off by {} at {} s, and the network recovered {}",
        last["event"],
        last["at_s"],
        recovery.map_or("never".to_owned(), |span| format!("after {span:.0} s"))
    );
    Ok(())
}

/// Time in which a network must recover.
const RECOVERY_MAX_S: f64 = 600.0;

/// The MAC, its schedule, routing, and how packets larger than a frame go; returns the kind of MAC.
fn mac(toml: &mut String, draw: &mut Draw) -> &'static str {
    let kind = draw.of(&["tsch", "tsch", "tsch", "csma", "thin", "contiki2014"]);
    let frames = draw.of(&[2, 4, 16]);
    let modes = ["storing", "non-storing", "storing-multicast"];
    let (mut mode, objective) = (draw.of(&modes), draw.of(&["mrhof", "of0"]));
    let engine = draw.of(&["none", "flood", "smrf", "esmrf", "trickle", "mpl"]);
    if engine.ends_with("smrf") {
        // Only this mode tells who is in a group.
        mode = "storing-multicast";
    }
    // Writing to a String cannot fail.
    _ = write!(toml, "\n[mac]\nkind = \"{kind}\"\nqueue_frames = {frames}\n");
    if kind == "tsch" {
        let schedule = draw.of(&["minimal", "msf", "msf/backlog", "b-msf", "alice", "orchestra"]);
        let hopping = draw.of(&["16_16", "4_4"]);
        // ALICE must know a node's children, which only storing mode tells.
        mode = if (schedule, mode) == ("alice", "non-storing") { "storing" } else { mode };
        _ = write!(toml, "hopping = \"{hopping}\"\n\n[schedule]\nfunction = \"{schedule}\"\n");
    }
    let fragments = draw.of(&["hwr", "hwr", "ff", "sfr", "e2e"]);
    let rpi = draw.of(&[true, true, false]);
    _ = write!(
        toml,
        "\n[rpl]\nmode = \"{mode}\"\nobjective = \"{objective}\"\nrpi_0x23 = {rpi}\n\n[fragments]\nmode = \"{fragments}\"\n\n\
         [multicast]\nengine = \"{engine}\"\n"
    );
    kind
}

/// What the nodes send, and which of them fail.
fn traffic(toml: &mut String, draw: &mut Draw, nodes: u64, collector: &str) {
    let congestion = draw.of(&["default", "cocoa", "cocoa/draft-03", "6cocoa", "rfc6298"]);
    let (queue, block) = (draw.of(&[1, 8, 32]), draw.of(&[1024, 1024, 64]));
    let application =
        draw.of(&["coap", "coap", "coap", "udp", "poll", "observe", "group", "group"]);
    // Nodes send to each other by requests and by datagrams alone.
    let application =
        if collector == "next" && application != "udp" { "coap" } else { application };
    // OSCORE protects CoAP, between a node and its own border router.
    let oscore =
        draw.below(3) == 0 && !["udp", "group"].contains(&application) && collector == "own";
    let arrivals = draw.of(&["periodic", "periodic", "poisson", "bursts"]);
    let (period, payload) = (draw.of(&["500ms", "2s", "10s", "1min"]), draw.of(&[4, 20, 60, 300]));
    let confirmable = draw.below(4) != 0;
    _ = write!(
        toml,
        "\n[coap]\ncongestion = \"{congestion}\"\nqueue = {queue}\nblock = {block}\noscore = {oscore}\n\
         \n[traffic]\napplication = \"{application}\"\narrivals = \"{arrivals}\"\nperiod = \"{period}\"\n\
         start = \"3min\"\npayload_bytes = {payload}\nconfirmable = {confirmable}\n\
         collector = \"{collector}\"\n"
    );
    let (sender, member) = (draw.below(nodes), draw.below(nodes));
    if application == "group" && draw.below(2) == 0 {
        let members = if member == sender { String::new() } else { member.to_string() };
        _ = writeln!(toml, "sender = {sender}\nmembers = [{members}]");
    }
    if nodes > 1 && draw.below(3) == 0 {
        let (node, minute) = (1 + draw.below(nodes - 1), 1 + draw.below(14));
        _ = writeln!(toml, "failures = [\"{node}@{minute}min\"]");
    }
}

/// One scenario in three has a second border router or a third, on channels of its own or on the same.
fn border_routers(toml: &mut String, draw: &mut Draw, nodes: u64, mac: &str) {
    if nodes < 2 || draw.below(3) != 0 {
        return;
    }
    let mut node = 0;
    for _ in 0..=draw.below(2) {
        node += 1 + draw.below(nodes / 2 + 1);
        if node >= nodes {
            break;
        }
        let channels = if mac == "tsch" {
            draw.of(&["", "hopping = [25, 26]\n", "hopping = [11]\n"])
        } else {
            draw.of(&["", "channel = 25\n"])
        };
        _ = write!(toml, "\n[[border_router]]\nnode = {node}\n{channels}");
    }
    let delay = draw.of(&["0s", "100us", "50ms"]);
    _ = write!(toml, "\n[backbone]\ndelay = \"{delay}\"\n");
}

/// Topology and medium, which must fit each other; returns the number of nodes.
fn network(toml: &mut String, draw: &mut Draw) -> u64 {
    let spacing = draw.of(&[10, 33, 40]);
    let (topology, nodes, anywhere) = match draw.below(4) {
        0 => {
            let (rows, cols) = (1 + draw.below(4), 1 + draw.below(4));
            (
                format!("kind = \"grid\"\nrows = {rows}\ncols = {cols}\nspacing_m = {spacing}.0"),
                rows * cols,
                true,
            )
        }
        1 => {
            let nodes = 1 + draw.below(8);
            (format!("kind = \"line\"\nnodes = {nodes}\nspacing_m = {spacing}.0"), nodes, true)
        }
        2 => {
            let nodes = 1 + draw.below(15);
            (format!("kind = \"star\"\nnodes = {nodes}\nradius_m = {spacing}.0"), nodes, true)
        }
        _ => {
            let nodes = 5 + draw.below(12);
            (format!("kind = \"random\"\nnodes = {nodes}\nside_m = 1000.0"), nodes, false)
        }
    };
    let medium = if anywhere {
        draw.of(&["mrm", "unit-disk", "log-distance", "friis", "two-ray"])
    } else {
        "pister-hack"
    };
    _ = write!(toml, "\n[topology]\n{topology}\n\n[radio]\nmedium = \"{medium}\"\n");
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_always_draws_the_same_scenario_and_others_differ() {
        assert_eq!(scenario(7), scenario(7));
        let all: std::collections::BTreeSet<String> = (0..50).map(scenario).collect();
        assert_eq!(all.len(), 50);
        for form in [
            "[[border_router]]",
            "failures = ",
            "kind = \"off\"",
            "kind = \"reboot\"",
            "memory = \"kept\"",
            "mode = \"non-storing\"",
            "application = \"poll\"",
            "application = \"observe\"",
            "oscore = true",
            "kind = \"csma\"",
            "application = \"group\"",
            "engine = \"mpl\"",
            "mode = \"sfr\"",
        ] {
            assert!(all.iter().any(|toml| toml.contains(form)), "no scenario has {form}");
        }
    }

    #[test]
    fn a_network_that_does_not_recover_is_found() {
        let of = |recovery: Value| {
            let event = serde_json::json!({"event": "on", "at_s": 1200.0, "cut_off": 2, "recovery_s": recovery});
            alive(&serde_json::json!({ "event_list": [event] }))
        };
        assert!(of(30.0.into()).is_ok());
        assert!(of(700.0.into()).is_err() && of(Value::Null).is_err());
        assert!(alive(&serde_json::json!({})).is_ok(), "no events");
        assert!((0..20).any(|number| liveness_scenario(number).contains("[[event]]")));
    }

    #[test]
    fn arguments_choose_the_numbers() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(bounds(&[]).expect("no argument"), (1, COUNT));
        assert_eq!(bounds(&words("--seed 5 --count 2")).expect("both"), (5, 2));
        assert_eq!(bounds(&words("--only 9")).expect("one"), (9, 1));
        assert!(bounds(&words("--only")).is_err());
        assert!(bounds(&words("--fast 1")).is_err());
    }

    #[test]
    fn numbers_that_contradict_each_other_are_found() {
        let mut metrics = serde_json::json!({
            "nodes": 5, "joined": 5, "transactions": 10, "acknowledged": 8, "failed": 1, "open": 1,
            "tdr": 0.88, "pdr_up": null, "pdr_down": 1.0, "duty_cycle": 0.1,
            "group_copies": 9, "group_delivered": 6, "group_lost": 2, "group_open": 1,
            "group_pdr": 0.75, "group_pdr_worst": 0.5,
        });
        assert!(consistent(&metrics).is_ok());
        metrics["open"] = 2.into();
        assert!(consistent(&metrics).is_err());
        metrics["open"] = 1.into();
        metrics["duty_cycle"] = 1.5.into();
        assert!(consistent(&metrics).is_err());
        metrics["duty_cycle"] = 0.1.into();
        metrics["group_lost"] = 3.into();
        assert!(consistent(&metrics).is_err());
    }
}
