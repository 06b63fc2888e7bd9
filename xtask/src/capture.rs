//! `capture`: ten minutes of the Grenoble mesh, and large packets by each of the four methods, as pcap files
//! read by an independent dissector (tshark).
//!
//! Every frame must be dissected down to what it carries, none may be malformed, and every protocol of the
//! stack must be seen. What our own codecs agree on among themselves is thereby checked from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// Large packets over several contended hops; each run adds its method.
pub const LARGE: &[&str] = &[
    "grenoble-t",
    "--seeds",
    "1",
    "--jobs",
    "1",
    "--set",
    "duration=1min",
    "--set",
    "traffic.payload_bytes=400",
    "--set",
    "traffic.period=4s",
];

/// Bodies in blocks, and observations, all protected.
const FORMS: &[(&str, &[&str])] = &[
    ("blocks", &["--set", "traffic.payload_bytes=1024", "--set", "coap.block=64"]),
    ("observation", &["--set", "traffic.application=observe"]),
];

/// A run of twelve minutes of the grid; each capture adds its keys.
const GRID: &[&str] =
    &["grid-25", "--seeds", "1", "--jobs", "1", "--set", "duration=12min", "--set", "warmup=6min"];

/// The key of the forms of traffic.
const PROTECTED: &[&str] = &["--set", "coap.oscore=true"];

/// What a capture of a form must hold: `oscore` is what tshark has decrypted.
const OF_FORMS: &[&str] = &["6lowpan", "coap", "oscore"];

/// Nodes of the grid, each of which has a context with the root.
const GRID_NODES: u16 = 25;

/// The Master Secret of scenarios, as docs/topics/scenarios.md says.
const MASTER_SECRET: &str = "6c6f776d6573682d7363656e6172696f";

/// Rows of tshark's table of OSCORE contexts.
fn contexts() -> Vec<String> {
    let row = |node: u16| {
        format!(
            "uat:oscore_contexts:\"{node:04x}\",\"0000\",\"{MASTER_SECRET}\",\"\",\"\",\
             \"AES-CCM-16-64-128 (CCM*)\""
        )
    };
    (1..GRID_NODES).flat_map(|node| ["-o".to_owned(), row(node)]).collect()
}

/// Requests from node to node, which the root encapsulates.
const BETWEEN_NODES: &[&str] =
    &["--set", "rpl.mode=non-storing", "--set", "traffic.collector=next"];

/// The methods of carrying a large packet, and what a capture of each must hold.
const MODES: &[(&str, &[&str])] = &[
    ("hwr", &["6lowpan", "fragment", "udp"]),
    ("ff", &["6lowpan", "fragment", "udp"]),
    ("sfr", &["6lowpan", "rfrag", "rfrag_ack"]),
    ("e2e", &["6lowpan", "ipv6.fragment", "udp"]),
];

/// Requests to a group; each run adds its engine.
const GROUP: &[&str] = &[
    "multicast-grid",
    "--seeds",
    "1",
    "--jobs",
    "1",
    "--set",
    "duration=12min",
    "--set",
    "traffic.sender=12",
];

/// The multicast engines with messages or headers of their own, and what a capture of each must hold.
const ENGINES: &[(&str, &[&str])] = &[
    ("esmrf", &["rpl", "coap", "group_control"]),
    ("trickle", &["rpl", "coap", "group_control"]),
    ("mpl", &["rpl", "coap", "mpl"]),
];

/// Settings of tshark: the mesh's prefix, which header compression leaves out.
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
    "6lowpan.rfrag.sequence",
    "6lowpan.rfrag.ack_bitmask",
    "ipv6.fraghdr.offset",
    "6lowpan.rfrag.size",
    "_ws.expert.message",
];

/// Remarks of tshark 4.0 about a packet that is well: it does not know the option Request-Tag (RFC 9175 s3.2) nor RPL's
/// option of type 0x23 (RFC 9008 s4.1.3), and a packet has a frame on each hop.
const KNOWN_REMARKS: &[&str] =
    &["Invalid Option Number 292", "Unknown Data (not interpreted)", "Retransmitted"];

/// ICMPv6 type of RPL control messages (RFC 6550 s6).
const ICMPV6_RPL: &str = "155";
/// ICMPv6 type of MPL control messages (RFC 7731 s6.2).
const ICMPV6_MPL: &str = "159";
/// ICMPv6 types for private experiments (RFC 4443 s2.1): trickle multicast and ESMRF.
const ICMPV6_EXPERIMENTS: [&str; 2] = ["200", "201"];

/// What must occur at least once.
const WANTED: &[&str] = &["6lowpan", "6top", "rpl", "coap"];

/// Simulates, captures, reads and counts.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("capture takes no argument, but got {unknown:?}");
    }
    let binary = product::build()?;
    examine(&binary, "mesh", RUN, WANTED)?;
    for (form, keys) in FORMS {
        examine(&binary, form, &[GRID, PROTECTED, keys].concat(), OF_FORMS)?;
    }
    let args = [GRID, BETWEEN_NODES].concat();
    examine(&binary, "between-nodes", &args, &["6lowpan", "rpl", "coap", "tunnel"])?;
    for (mode, wanted) in MODES {
        let choice = format!("fragments.mode={mode}");
        let args: Vec<&str> = LARGE.iter().copied().chain(["--set", &choice]).collect();
        examine(&binary, mode, &args, wanted)?;
    }
    for (engine, wanted) in ENGINES {
        let choice = format!("multicast.engine={engine}");
        let args: Vec<&str> = GROUP.iter().copied().chain(["--set", &choice]).collect();
        examine(&binary, engine, &args, wanted)?;
    }
    Ok(())
}

/// One run, its capture, and what tshark makes of that.
fn examine(binary: &PathBuf, what: &str, args: &[&str], wanted: &[&str]) -> Result<()> {
    let name = format!("lowmesh-capture-{}-{what}.pcap", std::process::id());
    let file = std::env::temp_dir().join(name);
    let path = file.to_string_lossy().into_owned();
    let args: Vec<&str> = args.iter().copied().chain(["--pcap", &path]).collect();
    product::report(product::run(binary, &args))?;
    let contexts = contexts();
    let preferences: Vec<&str> =
        PREFERENCES.iter().copied().chain(contexts.iter().map(String::as_str)).collect();
    let every = [&preferences[..], &["-E", "occurrence=a", "-E", "aggregator=;"]].concat();
    let dissection = dissect(&file, &every, COLUMNS)?;
    let tally = tally(&dissection);
    let counts: Vec<String> = tally.seen.iter().map(|(name, n)| format!("{name} {n}")).collect();
    println!("{what}: {} frames: {}", tally.frames, counts.join(", "));
    // A failed capture stays for a look with Wireshark.
    judge(&tally, wanted).with_context(|| format!("the capture is {path}"))?;
    fs::remove_file(&file)?;
    Ok(())
}

/// What tshark, told `preferences`, says of each packet in `file`: a line of these columns.
pub fn dissect(file: &Path, preferences: &[&str], columns: &[&str]) -> Result<String> {
    let mut command = process::command("tshark", &["-n", "-r"]);
    command.arg(file).args(["-T", "fields", "-E", "occurrence=f"]).args(preferences);
    for column in columns {
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

/// How many faults are reported at most.
const FAULTS_TOLD: usize = 10;

fn tally(dissection: &str) -> Tally {
    let mut tally = Tally::default();
    for line in dissection.lines() {
        let mut columns = line.split('\t');
        let mut next = || {
            let column = columns.next().unwrap_or_default();
            column.split_once(';').map_or(column, |(first, _)| first)
        };
        let (number, stack, malformed) = (next(), next(), next());
        let (frame_type, sixtop, icmpv6, fragment) = (next(), next(), next(), next());
        let (rfrag, rfrag_ack, fragment_header, rfrag_size) = (next(), next(), next(), next());
        let remarks = columns.next().unwrap_or_default();
        let known =
            !remarks.is_empty() && remarks.split(';').all(|one| KNOWN_REMARKS.contains(&one));
        tally.frames += 1;
        let mut names = protocols(stack);
        names.extend((!sixtop.is_empty()).then_some("6top"));
        names.extend((icmpv6 == ICMPV6_RPL).then_some("rpl"));
        names.extend((icmpv6 == ICMPV6_MPL).then_some("mpl"));
        let is_experiment = ICMPV6_EXPERIMENTS.contains(&icmpv6);
        names.extend(is_experiment.then_some("group_control"));
        // Two IPv6 headers: an encapsulated packet.
        let headers = names.iter().filter(|name| **name == "ipv6").count();
        names.extend((headers > 1).then_some("tunnel"));
        names.extend((!fragment.is_empty()).then_some("fragment"));
        names.extend((!rfrag.is_empty()).then_some("rfrag"));
        names.extend((!rfrag_ack.is_empty()).then_some("rfrag_ack"));
        // RFC 8931 s6.3: a fragment of size 0 takes down a path.
        let abort = rfrag_size == "0";
        names.extend(abort.then_some("rfrag_abort"));
        names.extend((!fragment_header.is_empty()).then_some("ipv6.fragment"));
        names.sort_unstable();
        names.dedup();
        for name in &names {
            *tally.seen.entry((*name).to_owned()).or_default() += 1;
        }
        // "data" is what tshark calls octets that no dissector claimed: our readings inside CoAP and UDP are such,
        // and fragments until their last; anything else is not.
        let carried = ["coap", "udp", "fragment", "rfrag", "ipv6.fragment", "group_control"];
        let claimed = carried.iter().any(|name| names.contains(name));
        let unread = names.contains(&"data") && !claimed || frame_type.is_empty();
        // tshark 4.0 reads every field of a bare acknowledgement or abort of RFC 8931, and then looks for a packet behind it.
        let malformed = !malformed.is_empty() && rfrag_ack.is_empty() && !abort && !known;
        if (unread || malformed) && tally.faults.len() < FAULTS_TOLD {
            let what = if unread { "not dissected" } else { "malformed" };
            tally.faults.push(format!("frame {number} {what}: {stack}"));
        }
    }
    tally
}

/// The protocols in the stack that tshark names. It also calls the octets of an extension header that LOWPAN_NHC compresses
/// "data", before it names the IPv6 packet with that header.
fn protocols(stack: &str) -> Vec<&str> {
    let all: Vec<&str> = stack.split(':').collect();
    let place = |name| all.iter().position(|one| *one == name);
    let headers = match (place("6lowpan"), place("ipv6")) {
        (Some(compressed), Some(packet)) => compressed..packet,
        _ => 0..0,
    };
    let is_header = |place: usize| headers.contains(&place) && all[place] == "data";
    (0..all.len()).filter(|place| !is_header(*place)).map(|place| all[place]).collect()
}

fn judge(tally: &Tally, wanted: &[&str]) -> Result<()> {
    ensure!(tally.frames > 0, "the capture is empty");
    ensure!(tally.faults.is_empty(), "tshark found faults:\n{}", tally.faults.join("\n"));
    for name in wanted {
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
        assert!(judge(&tally, WANTED).is_ok());
    }

    #[test]
    fn a_packet_in_a_packet_is_counted() {
        let line = "6\twpan-tap:6lowpan:ipv6:ipv6.hopopts:ipv6:udp:coap\t\t0x0001\t\t\n";
        assert_eq!(tally(&format!("{GOOD}{line}")).seen["tunnel"], 1);
        assert_eq!(tally(GOOD).seen.get("tunnel"), None);
    }

    #[test]
    fn a_malformed_frame_fails_and_is_named() {
        let text = format!("{GOOD}5\twpan-tap:6lowpan\t1\t0x0001\t\t\n");
        let error = judge(&tally(&text), WANTED).expect_err("frame 5 is bad");
        assert!(error.to_string().contains("frame 5 malformed"), "{error}");
    }

    #[test]
    fn octets_that_nobody_claims_fail() {
        let text = format!("{GOOD}5\twpan-tap:data\t\t0x0001\t\t\n");
        assert!(judge(&tally(&text), WANTED).is_err());
    }

    #[test]
    fn a_bare_acknowledgement_of_fragments_is_no_fault() {
        let text = format!("{GOOD}6\twpan-tap:6lowpan\t1\t0x0001\t\t\t\t\t0xffffffff\t\n");
        let tally = tally(&text);
        assert_eq!((tally.faults.len(), tally.seen["rfrag_ack"]), (0, 1));
    }

    #[test]
    fn a_fragment_of_no_octets_is_an_abort_and_no_fault() {
        let text = format!("{GOOD}6\twpan-tap:6lowpan\t1\t0x0001\t\t\t\t0\t\t\t0\n");
        let tally = tally(&text);
        assert_eq!((tally.faults.len(), tally.seen["rfrag_abort"]), (0, 1));
    }

    #[test]
    fn extension_headers_are_no_data_and_what_is_behind_the_packet_is() {
        let faults = |stack| tally(&format!("{GOOD}6\t{stack}\t\t0x0001\t\t155\n")).faults.len();
        assert_eq!(faults("wpan-tap:6lowpan:data:data:ipv6:ipv6.hopopts:icmpv6"), 0);
        assert_eq!(faults("wpan-tap:6lowpan:data:ipv6:ipv6.hopopts:icmpv6:data"), 1);
        assert_eq!(faults("wpan-tap:6lowpan:data"), 1);
    }

    #[test]
    fn an_option_that_tshark_does_not_know_is_no_fault() {
        let text = |warning| {
            format!(
                "{GOOD}6\twpan-tap:6lowpan:ipv6:udp:coap:oscore\t1\t0x0001\t\t\t\t\t\t\t\t{warning}\n"
            )
        };
        assert!(tally(&text("Retransmitted;Invalid Option Number 292")).faults.is_empty());
        assert_eq!(tally(&text("Invalid Option Number 2")).faults.len(), 1);
    }

    #[test]
    fn a_protocol_that_never_occurs_fails() {
        let text: String =
            GOOD.lines().filter(|line| !line.contains("coap")).collect::<Vec<_>>().join("\n");
        let error = judge(&tally(&text), WANTED).expect_err("no CoAP");
        assert!(error.to_string().contains("coap"), "{error}");
        assert!(judge(&Tally::default(), WANTED).is_err());
    }
}
