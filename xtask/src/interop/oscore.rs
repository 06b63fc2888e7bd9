//! OSCORE beyond one context: aiocoap's client of the OSCORE plugtests at our server, and contexts that are derived many
//! times (RFC 8613 appendix B.2) with libcoap, both ways.
//!
//! libcoap has OSCORE from 4.3.2 on, which Debian has from version 13 on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Group;
use super::capture::Port;
use super::case::{Stage, Tally, Wants};
use super::libcoap::SECURE;
use super::material::{Material, SALT, SECRET};
use super::peer::{HOST, Peer, two_free_ports};
use crate::process;

/// The source of aiocoap, for the plugtest's client is in no wheel.
const SOURCE: &str = "aiocoap==0.4.17";
/// The folder in it, and the client.
const FOLDER: &str = "aiocoap-0.4.17/contrib/oscore-plugtest";
/// Longest time of a test: the observations take four seconds.
const TEST_MAX: Duration = Duration::from_secs(30);
/// The ID Context of the contexts C and D of the plugtests.
const ID_CONTEXT: &str = "37cbf3210017a2d3";
/// Lets the ends of a file derive contexts many times.
const RENEWS: &str = "rfc8613_b_2,bool,true\n";
/// The plugtests, and the server that each is for.
const TESTS: [(&str, std::ops::RangeInclusive<u8>); 5] =
    [("b", 0..=1), ("d", 2..=2), ("b", 3..=15), ("none", 16..=16), ("b-only", 17..=17)];

/// What there is to try.
pub fn groups<'a>(stage: Stage<'a>, libcoap: bool, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    if let Some(python) = python {
        groups.push(Box::new(move || plugtest(&stage, python)));
    }
    if libcoap && has_oscore(stage.tally) {
        groups.push(Box::new(move || renewal(&stage)));
    }
    groups
}

fn has_oscore(tally: &Tally) -> bool {
    let client = process::command(format!("coap-client-{}", SECURE[0]), &[]);
    let usage = process::watch(client, TEST_MAX);
    let has = usage.is_ok_and(|(usage, _)| {
        [usage.stdout, usage.stderr].concat().windows(11).any(|part| part == b"Have OSCORE")
    });
    if !has {
        tally.skip("OSCORE with libcoap", "libcoap supports it from 4.3.2 on");
    }
    has
}

/// Writes a file of settings for us and libcoap.
fn keys(
    material: &Material,
    name: &str,
    sender: &str,
    recipient: &str,
    more: &str,
) -> Result<String> {
    let path = material.path(&format!("oscore-{name}.conf"));
    let text = format!(
        "master_secret,hex,\"{SECRET}\"\nmaster_salt,hex,\"{SALT}\"\nsender_id,hex,\"{sender}\"\n\
         recipient_id,hex,\"{recipient}\"\n{more}"
    );
    fs::write(&path, text)?;
    Ok(path)
}

/// All tests of aiocoap's client.
fn plugtest(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let source = match source(python, material) {
        Ok(source) => source,
        Err(why) => {
            tally.skip("the OSCORE plugtests", &format!("{why:#}"));
            return Ok(Vec::new());
        }
    };
    let contexts = material.path("plugtest-contexts");
    for (name, id_context) in [("a", None), ("c", Some(ID_CONTEXT))] {
        let mut settings = serde_json::json!({
            "sender-id_hex": "", "recipient-id_hex": "01", "secret_hex": SECRET, "salt_hex": SALT,
        });
        if let Some(id_context) = id_context {
            settings["id-context_hex"] = id_context.into();
        }
        let folder = Path::new(&contexts).join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("settings.json"), settings.to_string())?;
    }
    let id_context = format!("id_context,hex,\"{ID_CONTEXT}\"\n");
    let mut ports = Vec::new();
    for (server, tests) in TESTS {
        let port = two_free_ports()?;
        let number = port.to_string();
        let args = ["serve", "--demo", "--address", "::1", "--port", &number];
        let mut command = process::command(binary, &args);
        match server {
            "none" => &mut command,
            "d" => command.args(["-E", &keys(material, "d", "01", "", &id_context)?]),
            _ => command.args(["-E", &keys(material, "b", "01", "", "")?]),
        };
        if server == "b-only" {
            command.arg("--oscore-only");
        }
        let _server = Peer::start(command, port)?;
        for test in tests {
            let client = process::command(
                python,
                &[&source, &format!("{HOST}:{port}"), &contexts, &test.to_string()],
            );
            judge(tally, test, client)?;
        }
        ports.push(port);
    }
    Ok(Port::in_the_open(ports))
}

/// The client says each thing that it looks at, and whether it is as it should be.
fn judge(tally: &Tally, test: u8, client: Command) -> Result<()> {
    let (output, in_time) = process::watch(client, TEST_MAX)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mut passed = said.contains("assed: ");
    for line in said.lines() {
        passed &= !["Additional verify failed", "Expectation failed", "Failed", "Dubious"]
            .iter()
            .any(|fault| line.starts_with(fault));
    }
    let fits = in_time && output.status.success() && passed;
    let verdict = if fits {
        Ok(())
    } else {
        Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    };
    tally.note(&format!("OSCORE plugtest {test}: aiocoap asks lowmesh"), verdict);
    Ok(())
}

/// Unpacks the client; its path.
fn source(python: &Path, material: &Material) -> Result<String> {
    let folder = material.path("aiocoap-source");
    let quiet = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check"];
    let what = ["--no-deps", "--no-binary", "aiocoap", "--dest", &folder, SOURCE];
    process::read(process::command(python, &[&quiet[..], &what].concat()))
        .context("pip does not bring aiocoap's source")?;
    let archive = fs::read_dir(&folder)?.next().context("pip brings a file")??.path();
    let archive = archive.to_string_lossy();
    process::read(process::command(python, &["-m", "tarfile", "-e", &archive, &folder]))?;
    let client = Path::new(&folder).join(FOLDER).join("plugtest-client");
    Ok(client.to_string_lossy().into_owned())
}

/// Ends that derive contexts many times, and lose them.
fn renewal(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let end = |whose: &str, sender, recipient| {
        keys(material, &format!("renewal-{whose}-{sender}"), sender, recipient, RENEWS)
    };
    let (client, server) =
        (format!("coap-client-{}", SECURE[0]), format!("coap-server-{}", SECURE[0]));
    let (ours, theirs) = (two_free_ports()?, two_free_ports()?);
    let (port, at) = (ours.to_string(), theirs.to_string());
    let context = end("ours", "02", "01")?;
    let args = ["serve", "--demo", "--address", "::1", "--port", &port, "-E", &context];
    let _ours = Peer::start(process::command(binary, &args), ours)?;
    let (context, uri) = (end("theirs", "01", "02")?, format!("coap://{HOST}:{ours}/hello"));
    for run in ["a first context", "another context after it was lost"] {
        let title = format!("libcoap asks lowmesh with OSCORE, {run}");
        let args = ["-m", "get", "-B", "10", "-E", &context, &uri];
        tally.ask(&title, &client, &args, &Wants::Says("hello world"))?;
    }
    let (context, uri) = (end("theirs", "02", "01")?, format!("coap://{HOST}:{theirs}/"));
    let start = || {
        let args = ["-A", "::1", "-p", &at, "-E", &context];
        Peer::start(process::command(&server, &args), theirs)
    };
    let mine = end("ours", "01", "02")?;
    let ask = |what: &str| {
        let title = format!("lowmesh asks libcoap with OSCORE, {what}");
        let args = ["get", "-E", &mine, "-B", "20", &uri];
        tally.ask(&title, binary, &args, &Wants::Says("libcoap"))
    };
    let first = start()?;
    ask("a first context")?;
    ask("the same context")?;
    fs::remove_file(format!("{mine}.01-02.state"))?;
    ask("another context after the client has lost it")?;
    drop(first);
    let _second = start()?;
    ask("another context after the server has lost it")?;
    // tshark knows none of the contexts.
    Ok(Vec::new())
}
