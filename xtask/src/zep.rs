//! `zep`: what three of our nodes send each other over ZEP, read by an independent dissector (tshark).
//!
//! The conversation is a test of the crate `net`, which writes its datagrams to a file on request.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::{capture, check, process, product};

/// What tshark must be told: the protocol of the port.
const PREFERENCES: &[&str] = &["-d", "udp.port==17754,zep"];

/// One column a datagram, in the order in which [`judge`] takes them.
const COLUMNS: &[&str] = &[
    "frame.number",
    "frame.protocols",
    "_ws.malformed",
    "wpan.fcs_ok",
    "6lowpan.rfrag.ack_bitmask",
];

/// The test of `lowmesh-realtime` that leaves a capture.
const CONVERSATION: &str = "requests_and_datagrams_go_over_a_forwarder_and_come_back_in_three_ways";

/// What must occur at least once.
const WANTED: &[&str] = &["zep", "wpan", "6lowpan", "coap", "echo"];

/// Converses, captures, reads and judges.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("zep takes no argument, but got {unknown:?}");
    }
    let file = std::env::temp_dir().join(format!("lowmesh-zep-{}.pcap", std::process::id()));
    let mut test = process::cargo(&["test", "--quiet", "--profile", product::PROFILE]);
    // As the gate builds it: with other features cargo would compile half of the workspace again.
    test.args(["--workspace", "--test", "suite"]).args(check::FEATURES).arg(CONVERSATION);
    test.env("LOWMESH_ZEP_PCAP", &file);
    process::execute(test)?;
    // A failed capture stays for a look with Wireshark.
    let report = judge(&capture::dissect(&file, PREFERENCES, COLUMNS)?)
        .with_context(|| format!("the capture is {}", file.display()))?;
    println!("{report}");
    fs::remove_file(&file)?;
    Ok(())
}

/// What was seen, in a line; an error names the datagrams that were not read.
fn judge(dissection: &str) -> Result<String> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut faults = Vec::new();
    for line in dissection.lines() {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (number, stack, malformed, fcs_ok, recovery) = (next(), next(), next(), next(), next());
        for name in stack.split(':') {
            *seen.entry(name).or_default() += 1;
        }
        // tshark 4.0 calls every RFRAG acknowledgement malformed after it has read all of its fields.
        let malformed = !malformed.is_empty() && recovery.is_empty();
        if malformed || !matches!(fcs_ok, "1" | "True") {
            faults.push(format!("datagram {number}: {stack}"));
        }
    }
    ensure!(faults.is_empty(), "tshark found faults:\n{}", faults.join("\n"));
    for name in WANTED {
        ensure!(seen.contains_key(name), "no datagram carries {name}");
    }
    let counts: Vec<String> = seen.iter().map(|(name, count)| format!("{name} {count}")).collect();
    Ok(counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "1\traw:ip:udp:zep:wpan:6lowpan:ipv6:udp:coap\t\t1\t\n\
        2\traw:ip:udp:zep:wpan\t\t1\t\n\
        3\traw:ip:udp:zep:wpan:6lowpan\t1\t1\t0xffffffff\n\
        4\traw:ip:udp:zep:wpan:6lowpan:ipv6:udp:echo\t\t1\t\n";

    #[test]
    fn a_good_capture_is_counted_and_passes() {
        let report = judge(GOOD).expect("nothing is wrong");
        assert!(report.contains("6lowpan 3") && report.contains("zep 4"), "{report}");
    }

    #[test]
    fn a_malformed_datagram_or_a_wrong_fcs_fails_and_is_named() {
        for line in ["5\tzep:wpan\t1\t1\t\n", "5\tzep:wpan\t\t0\t\n", "5\tzep\t\t\t\n"] {
            let error = judge(&format!("{GOOD}{line}")).expect_err("datagram 5 is bad");
            assert!(error.to_string().contains("datagram 5"), "{error}");
        }
    }

    #[test]
    fn a_protocol_that_never_occurs_fails() {
        let text: Vec<&str> = GOOD.lines().filter(|line| !line.contains("coap")).collect();
        let error = judge(&text.join("\n")).expect_err("no CoAP");
        assert!(error.to_string().contains("coap"), "{error}");
    }
}
