//! `capture`: ten minutes of the Grenoble mesh as a pcap file, read by an independent dissector (tshark).
//!
//! Every frame must be dissected down to what it carries, none may be malformed, and every protocol of the
//! stack must be seen. What our own codecs agree on among themselves is thereby checked from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::{process, product};

/// Formation, 6P and some minutes of requests.
const RUN: &[&str] = &[
    "grenoble-50",
    "--seeds",
    "1",
    "--jobs",
    "1",
    "--set",
    "duration=10min",
    "--set",
    "warmup=2min",
    "--set",
    "traffic.start=5min",
];

/// What tshark must be told: the mesh's prefix, which header compression leaves out.
const PREFERENCES: &[&str] = &["-o", "6lowpan.context0:fd00::/64"];

/// One column a frame, in the order in which [`tally`] takes them.
const COLUMNS: &[&str] = &[
    "frame.number",
    "frame.protocols",
    "_ws.malformed",
    "wpan.frame_type",
    "wpan.6top_version",
    "icmpv6.type",
    "6lowpan.frag.tag",
];

/// ICMPv6 type of RPL control messages (RFC 6550 s6).
const ICMPV6_RPL: &str = "155";

/// What must occur at least once.
const WANTED: &[&str] = &["6lowpan", "6top", "rpl", "coap"];

/// Simulates, captures, reads and counts.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("capture takes no argument, but got {unknown:?}");
    }
    let binary = product::build()?;
    let file = std::env::temp_dir().join(format!("lowmesh-capture-{}.pcap", std::process::id()));
    let path = file.to_string_lossy().into_owned();
    let args: Vec<&str> = RUN.iter().copied().chain(["--pcap", &path]).collect();
    product::report(product::run(&binary, &args))?;
    let dissection = dissect(&file)?;
    let tally = tally(&dissection);
    let counts: Vec<String> = tally.seen.iter().map(|(name, n)| format!("{name} {n}")).collect();
    println!("{} frames: {}", tally.frames, counts.join(", "));
    // A failed capture stays for a look with Wireshark.
    judge(&tally).with_context(|| format!("the capture is {path}"))?;
    fs::remove_file(&file)?;
    Ok(())
}

fn dissect(file: &Path) -> Result<String> {
    let mut command = process::command("tshark", &["-n", "-r"]);
    command.arg(file).args(PREFERENCES).args(["-T", "fields", "-E", "occurrence=f"]);
    for column in COLUMNS {
        command.args(["-e", column]);
    }
    process::read(command)
}

/// What a dissection says in sum.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    frames: u64,
    /// Frames in which each protocol occurs.
    seen: BTreeMap<String, u64>,
    /// First frames that tshark could not read, with what it made of them.
    faults: Vec<String>,
}

/// At most so many faults are told.
const FAULTS_TOLD: usize = 10;

fn tally(dissection: &str) -> Tally {
    let mut tally = Tally::default();
    for line in dissection.lines() {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (number, stack, malformed) = (next(), next(), next());
        let (frame_type, sixtop, icmpv6, fragment) = (next(), next(), next(), next());
        tally.frames += 1;
        let mut names: Vec<&str> = stack.split(':').collect();
        names.extend((!sixtop.is_empty()).then_some("6top"));
        names.extend((icmpv6 == ICMPV6_RPL).then_some("rpl"));
        names.sort_unstable();
        names.dedup();
        for name in &names {
            *tally.seen.entry((*name).to_owned()).or_default() += 1;
        }
        // "data" is what tshark calls octets that no dissector claimed: our readings inside CoAP are such,
        // and fragments until their last; anything else is not.
        let unread = names.contains(&"data") && !names.contains(&"coap") && fragment.is_empty();
        let unread = unread || frame_type.is_empty();
        if (unread || !malformed.is_empty()) && tally.faults.len() < FAULTS_TOLD {
            let what = if unread { "not dissected" } else { "malformed" };
            tally.faults.push(format!("frame {number} {what}: {stack}"));
        }
    }
    tally
}

fn judge(tally: &Tally) -> Result<()> {
    ensure!(tally.frames > 0, "the capture is empty");
    ensure!(tally.faults.is_empty(), "tshark found faults:\n{}", tally.faults.join("\n"));
    for name in WANTED {
        ensure!(tally.seen.contains_key(*name), "no frame carries {name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "1\twpan-tap\t\t0x0000\t\t\n\
        2\twpan-tap:6lowpan:ipv6:udp:coap:data\t\t0x0001\t\t\n\
        3\twpan-tap:6lowpan:ipv6:icmpv6\t\t0x0001\t\t155\n\
        4\twpan-tap\t\t0x0001\t0x00\t\t\n\
        5\twpan-tap:6lowpan:data\t\t0x0001\t\t\t0x0007\n";

    #[test]
    fn a_good_capture_is_counted_and_passes() {
        let tally = tally(GOOD);
        assert_eq!(tally.frames, 5);
        assert_eq!((tally.seen["6lowpan"], tally.seen["rpl"], tally.seen["6top"]), (3, 1, 1));
        assert!(judge(&tally).is_ok());
    }

    #[test]
    fn a_malformed_frame_fails_and_is_named() {
        let text = format!("{GOOD}5\twpan-tap:6lowpan\t1\t0x0001\t\t\n");
        let error = judge(&tally(&text)).expect_err("frame 5 is bad");
        assert!(error.to_string().contains("frame 5 malformed"), "{error}");
    }

    #[test]
    fn octets_that_nobody_claims_fail() {
        let text = format!("{GOOD}5\twpan-tap:data\t\t0x0001\t\t\n");
        assert!(judge(&tally(&text)).is_err());
    }

    #[test]
    fn a_protocol_that_never_occurs_fails() {
        let text: String =
            GOOD.lines().filter(|line| !line.contains("coap")).collect::<Vec<_>>().join("\n");
        let error = judge(&tally(&text)).expect_err("no CoAP");
        assert!(error.to_string().contains("coap"), "{error}");
        assert!(judge(&Tally::default()).is_err());
    }
}
