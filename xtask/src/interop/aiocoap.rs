//! aiocoap, in an environment of its own under `target`: its server asked by our client, its client at our server; UDP, TCP,
//! WebSockets and OSCORE.

use std::path::Path;

use anyhow::Result;

use super::capture::Port;
use super::case::{Tally, Wants};
use super::material::Material;
use super::peer::{HOST, Peer, two_free_ports};
use crate::{process, python};

/// What pip installs. DTLS is left out: its library has to be compiled, with tools that few machines have.
const PACKAGE: &str = "aiocoap[oscore,ws,linkheader]==0.4.17";
/// Where aiocoap serves WebSockets, above its other port.
const WEBSOCKETS_ABOVE: u16 = 3000;

/// Both directions; the ports that were used.
pub fn run(binary: &Path, material: &Material, tally: &mut Tally) -> Result<Vec<Port>> {
    match python::environment(PACKAGE, "aiocoap, cbor2, websockets") {
        Ok(python) => Ok(vec![
            ask(&python, binary, material, tally)?,
            answer(&python, binary, material, tally)?,
        ]),
        Err(why) => {
            tally.skip("aiocoap", &format!("{why:#}"));
            Ok(Vec::new())
        }
    }
}

fn script(name: &str) -> String {
    process::root().join("xtask").join("interop").join(name).to_string_lossy().into_owned()
}

/// Our client, their server.
fn ask(python: &Path, binary: &Path, material: &Material, tally: &mut Tally) -> Result<Port> {
    let port = two_free_ports_below(u16::MAX - WEBSOCKETS_ABOVE)?;
    let args = [&script("aiocoap_server.py"), &port.to_string(), &material.path("server")];
    let server = process::command(python, &args.map(String::as_str));
    let _server = Peer::start_until(server, "ready")?;
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
        let mut ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
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
    Ok(Port { number: port, secure: false })
}

fn two_free_ports_below(limit: u16) -> Result<u16> {
    loop {
        let port = two_free_ports()?;
        if port < limit {
            return Ok(port);
        }
    }
}

/// Their client, our server.
fn answer(python: &Path, binary: &Path, material: &Material, tally: &mut Tally) -> Result<Port> {
    let (port, websockets) = (two_free_ports()?, two_free_ports()?);
    let numbers = [port, websockets].map(|port| port.to_string());
    let args =
        ["serve", "--demo", "--address", "::1", "--port", &numbers[0], "--ws-port", &numbers[1]];
    let mut server = process::command(binary, &args);
    server.args(["-E", &material.path("server.conf")]);
    let _server = Peer::start(server, websockets)?;
    let (script, body, context) =
        (script("aiocoap_client.py"), material.path("body"), material.path("client"));
    let protected = [context.as_str()];
    for (scheme, port, extra) in [
        ("coap", port, &[][..]),
        ("coap+tcp", port, &[]),
        ("coap+ws", websockets, &[]),
        ("coap", port, &protected),
        ("coap+tcp", port, &protected),
    ] {
        let base = format!("{scheme}://{HOST}:{port}");
        let how = if extra.is_empty() { "" } else { " with OSCORE" };
        let title = format!("aiocoap asks lowmesh over {scheme}{how}");
        let args = [&[script.as_str(), &base, &body][..], extra].concat();
        tally.ask(&title, python, &args, &Wants::Says("all as it should be"))?;
    }
    Ok(Port { number: port, secure: false })
}
