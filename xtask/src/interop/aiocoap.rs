//! aiocoap, in an environment of its own under `target`: its server asked by our client, its client at our server; UDP, TCP,
//! WebSockets and OSCORE, and its client over DTLS.
//!
//! Left out: its DTLS server. tinydtls asks for the sign of RFC 5746 in a client's hello, which dimpl does not put there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Group;
use super::capture::Port;
use super::case::{Stage, Tally, Wants};
use super::material::{IDENTITY, KEY, Material};
use super::observation::Watch;
use super::peer::{HOST, Peer, WEBSOCKETS_ABOVE, two_free_ports};
use crate::{process, python};

/// What pip installs.
const PACKAGE: &str = "aiocoap[oscore,ws,linkheader]==0.4.17";
/// What its DTLS stands on, tinydtls, is compiled.
const DTLS: &str = "DTLSSocket==0.2.3";
const DTLS_TOOLS: &[(&str, &str)] =
    &[("autoreconf", "autoconf"), ("aclocal", "automake"), ("make", "make"), ("cc", "gcc")];

/// The Python with aiocoap; `None` if it cannot be installed.
pub fn python(tally: &Tally) -> Option<PathBuf> {
    let python = python::environment(PACKAGE, "aiocoap, cbor2, websockets");
    python.map_err(|why| tally.skip("aiocoap", &format!("{why:#}"))).ok()
}

/// Whether it has DTLS, which is installed if missing.
pub fn has_dtls(python: &Path, tally: &Tally) -> bool {
    let built = python::compiled(python, DTLS, "DTLSSocket.dtls", DTLS_TOOLS);
    built.map_err(|why| tally.skip("aiocoap over DTLS", &format!("{why:#}"))).is_ok()
}

/// Both directions.
pub fn groups<'a>(stage: Stage<'a>, python: &'a Path, secure: bool) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = vec![
        Box::new(move || ask(&stage, python)),
        Box::new(move || answer(&stage, python, secure)),
    ];
    groups.extend(watches(&stage, python).map(|watch| watch.into_group(stage)));
    groups
}

/// Its server at a free port, with the security context of a folder, which no other process may have.
pub fn served(python: &Path, context: Option<&str>) -> Result<(u16, Peer)> {
    let port = two_free_ports()?;
    Ok((port, Peer::start_until(server(python, port, context), "ready")?))
}

fn server(python: &Path, port: u16, context: Option<&str>) -> Command {
    let mut command = process::command(python, &[&script("aiocoap_server.py"), &port.to_string()]);
    command.args(context);
    command
}

/// Its proxy at a port.
pub fn proxy(python: &Path, port: u16, args: &[&str]) -> Result<Command> {
    let bind = format!("{HOST}:{port}");
    let program = python.parent().context("it lies in a folder")?.join("aiocoap-proxy");
    Ok(process::command(program, &[&["--bind", &bind], args].concat()))
}

/// Its client.
pub fn client(python: &Path, base: &str, material: &Material, args: &[&str]) -> Command {
    let (script, body) = (script("aiocoap_client.py"), material.path("body"));
    process::command(python, &[&[&script, base, &body], args].concat())
}

/// Observation over a bad path, theirs and ours.
fn watches(stage: &Stage<'_>, python: &Path) -> impl Iterator<Item = Watch> + use<> {
    let ours = |port: u16| {
        let args = ["serve", "--demo", "--address", "::1", "--port", &port.to_string()];
        process::command(stage.binary, &args)
    };
    let theirs = |port| server(python, port, None);
    let observer = process::command(python, &[&script("aiocoap_observer.py")]);
    let mine = process::command(stage.binary, &["observe"]);
    [
        Watch::new("aiocoap observes lowmesh", ours, "/obs", observer).seed(49),
        Watch::new("lowmesh observes aiocoap", theirs, "/state", mine).seed(7),
    ]
    .into_iter()
}

/// The path of a script beside the gates.
pub fn script(name: &str) -> String {
    process::root().join("xtask").join("interop").join(name).to_string_lossy().into_owned()
}

/// Our client, their server.
fn ask(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let (port, _server) = served(python, Some(&material.path("server")))?;
    let (body, context) = (material.path("body"), material.path("client.conf"));
    let protected = ["-E", &context];
    for (scheme, port, extra) in [
        ("coap", port, &[][..]),
        ("coap+tcp", port, &[]),
        ("coap+ws", port + WEBSOCKETS_ABOVE, &[]),
        ("coap", port, &protected),
        ("coap+tcp", port, &protected),
    ] {
        let how = if extra.is_empty() { "" } else { " with OSCORE" };
        let title = |what: &str| format!("lowmesh asks aiocoap over {scheme}{how}: {what}");
        let base = format!("{scheme}://{HOST}:{port}");
        let uri = |path: &str| format!("{base}{path}");
        let ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            tally.ask(&title(what), binary, &[args, extra].concat(), wants)
        };
        ask("get", &["get", &uri("/hello")], &Wants::Octets(b"hello world"))?;
        ask("separate response", &["get", &uri("/slow")], &Wants::Octets(b"at last"))?;
        ask("long body up", &["put", &uri("/body"), "-f", &body], &Wants::Octets(b"20000"))?;
        ask("long body down", &["get", &uri("/body")], &Wants::Octets(&material.body))?;
        ask("an error", &["get", &uri("/none")], &Wants::Ends(4, "4.04"))?;
        let count = uri("/count");
        ask("observe", &["observe", &count, "--count", "3"], &Wants::Lines(3))?;
        ask("it is deregistered", &["get", &uri("/observers")], &Wants::Octets(b"0"))?;
        if extra.is_empty() {
            let large = uri("/large-count");
            ask("observe long bodies", &["observe", &large, "--count", "2"], &Wants::Lines(2))?;
            ask("ping", &["ping", &base, "-c", "2", "-i", "0.1"], &Wants::Says("2 answered"))?;
            ask("discover", &["discover", &base], &Wants::Says("/large-count"))?;
        }
    }
    Ok(Port::in_the_open([port]))
}

/// Their client, our server.
fn answer(stage: &Stage<'_>, python: &Path, has_dtls: bool) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let (port, websockets) = (two_free_ports()?, two_free_ports()?);
    let numbers = [port, websockets].map(|port| port.to_string());
    let args =
        ["serve", "--demo", "--address", "::1", "--port", &numbers[0], "--ws-port", &numbers[1]];
    let mut server = process::command(binary, &args);
    server.args(["-E", &material.path("server.conf"), "-u", IDENTITY, "-k", KEY]);
    let _server = Peer::start_at(server, websockets, port)?;
    let context = material.path("client");
    let (protected, keys) = (["--oscore", &context], ["--psk", IDENTITY, KEY]);
    let secure = Port { number: port + 1, secure: true };
    let mut ways = vec![
        ("coap", port, &[][..]),
        ("coap+tcp", port, &[]),
        ("coap+ws", websockets, &[]),
        ("coap", port, &protected),
        ("coap+tcp", port, &protected),
    ];
    if has_dtls {
        ways.push(("coaps", secure.number, &keys));
    }
    for (scheme, port, extra) in ways {
        let base = format!("{scheme}://{HOST}:{port}");
        let how = if extra.contains(&"--oscore") { " with OSCORE" } else { "" };
        let title = format!("aiocoap asks lowmesh over {scheme}{how}");
        let client = client(python, &base, material, extra);
        tally.run(&title, client, &Wants::Says("all as it should be"))?;
    }
    Ok([Port::in_the_open([port]), vec![secure]].concat())
}
