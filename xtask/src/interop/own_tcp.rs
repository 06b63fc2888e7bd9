//! Our own TCP with that of the kernel: libcoap and aiocoap put a long body to a node of `lowmesh emulate --node` and get
//! it back, over a link without loss and over one that loses packets in both directions.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::capture::Port;
use super::case::Stage;
use super::{Group, aiocoap, libcoap};
use crate::{process, tools};

/// Octets of the body.
const BODY_OCTETS: usize = 100_000;
/// The resource of the node.
const BASE: &str = "coap+tcp://[fd00:6c6d:0:1::2]";
const PATH: &str = "/body";
/// The link: 100 kB take half a second, and a round trip 20 ms.
const LINK: [&str; 4] = ["--rate", "2M", "--delay", "10ms"];
/// Loss and seed of each link. With these seeds both directions lose some of their first hundred packets.
const LINKS: [(&str, &str); 4] = [("0", "1"), ("2%", "2"), ("2%", "3"), ("2%", "4")];
/// Seconds after which the clients of a link are ended, so that the link ends in order.
const CLIENTS_MAX_S: &str = "25";
/// The longest that a link may be there.
const LINK_MAX: Duration = Duration::from_secs(40);
/// The last line of a client that is content.
const SIGN: &str = "all as it should be";

/// A link for each client and loss.
pub fn groups<'a>(stage: Stage<'a>, libcoap: bool, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    if !libcoap && python.is_none() {
        return groups;
    }
    if let Err(why) = can_emulate(stage.binary) {
        stage.tally.skip("our own TCP with that of the kernel", &why);
        return groups;
    }
    for (loss, seed) in LINKS {
        if libcoap {
            groups.push(Box::new(move || through_libcoap(&stage, loss, seed)));
        }
        if let Some(python) = python {
            groups.push(Box::new(move || through_aiocoap(&stage, python, loss, seed)));
        }
    }
    groups
}

fn through_libcoap(stage: &Stage<'_>, loss: &str, seed: &str) -> Result<Vec<Port>> {
    let (body, copy, uri) = (long_body(stage)?, stage.material.copy(), format!("{BASE}{PATH}"));
    let script = format!(
        "\"$0\" -B 20 -m put -f \"$1\" \"$3\" && \"$0\" -B 20 -m get -o \"$2\" \"$3\" && \
         cmp \"$1\" \"$2\" && echo {SIGN}"
    );
    let client = ["sh", "-c", &script, &libcoap::client(), &body, &copy, &uri];
    transfer(stage, "libcoap", (loss, seed), &client)
}

fn through_aiocoap(stage: &Stage<'_>, python: &Path, loss: &str, seed: &str) -> Result<Vec<Port>> {
    let (python, script) = (python.to_string_lossy(), aiocoap::script("aiocoap_client.py"));
    let body = long_body(stage)?;
    let client = [python.as_ref(), &script, BASE, &body, "--server", "node"];
    transfer(stage, "aiocoap", (loss, seed), &client)
}

/// The file of a body in which no two blocks are the same.
fn long_body(stage: &Stage<'_>) -> Result<String> {
    let (octets, file) = ((0..BODY_OCTETS).map(|at| (at % 251) as u8), stage.material.copy());
    std::fs::write(&file, octets.collect::<Vec<u8>>())?;
    Ok(file)
}

/// Runs a client in the namespace of a link whose other end is the node.
fn transfer(
    stage: &Stage<'_>,
    who: &str,
    (loss, seed): (&str, &str),
    client: &[&str],
) -> Result<Vec<Port>> {
    let mut link = process::command(stage.binary, &["emulate", "--node", "--json"]);
    let name = link_name(&format!("{}{seed}-", &who[..1]));
    link.args(LINK).args(["--loss", loss, "--seed", seed, "--name", &name, "--interval", "0s"]);
    link.args(["--", "timeout", CLIENTS_MAX_S]).args(client);
    let line = process::line(&link);
    let (output, in_time) = process::watch(link, LINK_MAX)?;
    let verdict = if in_time { judge(&output, loss) } else { Err("it does not end".to_owned()) };
    let title = format!(
        "{who} puts and gets {BODY_OCTETS} octets over our own TCP, loss {loss}, seed {seed}"
    );
    stage.tally.note(&title, verdict.map_err(|why| format!("{why}\n    {line}")));
    // The packets are in a namespace, where no capture listens.
    Ok(Vec::new())
}

/// The client is content, both directions carried the body, and the link lost packets if it was to.
fn judge(output: &Output, loss: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.lines().any(|line| line == SIGN) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}, and it said {text:?} {said:?}", output.status));
    }
    let totals = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let totals = totals.ok_or_else(|| format!("no totals in {text:?}"))?;
    for direction in ["a_to_b", "b_to_a"] {
        let number = |key: &str| totals[direction][key].as_u64().unwrap_or_default();
        let (octets, lost) = (number("octets"), number("lost"));
        if octets < BODY_OCTETS as u64 || (lost > 0) == (loss == "0") {
            return Err(format!("{direction}: {octets} octets, {lost} packets lost"));
        }
    }
    Ok(())
}

/// Whether this user may make namespaces and devices here; if not, why.
fn can_emulate(binary: &Path) -> Result<(), String> {
    if !tools::is_root() || !Path::new("/dev/net/tun").exists() {
        return Err("it needs Linux, root and /dev/net/tun".to_owned());
    }
    let name = link_name("probe");
    let args = ["emulate", "--rate", "1M", "--interval", "0s", "--name", &name, "--", "true"];
    process::read(process::command(binary, &args)).map(drop).map_err(|why| format!("{why:#}"))
}

/// A name that no link of another run has.
fn link_name(what: &str) -> String {
    format!("{what}{}", std::process::id() % 100_000)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, sign: &str, octets: u64, lost: u64) -> Output {
        let direction = format!("{{\"octets\":{octets},\"lost\":{lost}}}");
        let text = format!("{sign}\n{{\"a_to_b\":{direction},\"b_to_a\":{direction}}}\n");
        let status = ExitStatus::from_raw(code << 8);
        Output { status, stdout: text.into_bytes(), stderr: Vec::new() }
    }

    #[test]
    fn a_transfer_needs_a_content_client_all_octets_and_the_losses_of_the_link() {
        assert_eq!(judge(&output(0, SIGN, 110_000, 0), "0"), Ok(()));
        assert_eq!(judge(&output(0, SIGN, 110_000, 3), "2%"), Ok(()));
        for (bad, loss) in [
            (output(1, SIGN, 110_000, 0), "0"),
            (output(0, "", 110_000, 0), "0"),
            (output(0, SIGN, 90_000, 0), "0"),
            (output(0, SIGN, 110_000, 3), "0"),
            (output(0, SIGN, 110_000, 0), "2%"),
        ] {
            assert!(judge(&bad, loss).is_err(), "{bad:?}");
        }
    }
}
