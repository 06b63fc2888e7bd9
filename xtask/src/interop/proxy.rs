//! Proxies with libcoap: its client and server with our proxy between them, and our client and server with its proxy between
//! them.

use std::path::Path;

use anyhow::Result;

use super::capture::Port;
use super::case::{Tally, Wants};
use super::libcoap::{PLAIN, SECURE};
use super::material::{IDENTITY, KEY, Material};
use super::peer::{HOST, Peer, two_free_ports};
use crate::process;

/// Both; the ports that were used.
pub fn run(binary: &Path, material: &Material, tally: &mut Tally) -> Result<Vec<Port>> {
    if !process::installed(&format!("coap-server-{PLAIN}")) {
        tally.skip("proxies", "libcoap is not there");
        return Ok(Vec::new());
    }
    let mut ports = ours(binary, material, tally)?;
    ports.extend(theirs(binary, tally)?);
    Ok(ports)
}

/// Their client, our proxy, their server.
fn ours(binary: &Path, material: &Material, tally: &mut Tally) -> Result<Vec<Port>> {
    let (target, port) = (two_free_ports()?, two_free_ports()?);
    let server = format!("coap-server-{}", SECURE[0]);
    let args = ["-A", "::1", "-p", &target.to_string(), "-d", "10", "-k", KEY];
    let _server = Peer::start(process::command(server, &args), target)?;
    let number = port.to_string();
    let mut args = vec!["proxy", "--address", "::1", "--port", &number];
    args.extend(["--target-identity", IDENTITY, "--target-psk", KEY]);
    let _proxy = Peer::start(process::command(binary, &args), port)?;
    let client = format!("coap-client-{PLAIN}");
    let through = format!("coap://{HOST}:{port}");
    for scheme in ["coap", "coap+tcp"] {
        let uri = |path: &str| format!("{scheme}://{HOST}:{target}{path}");
        let mut ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            let title = format!("libcoap asks libcoap over {scheme} through our proxy: {what}");
            tally.ask(&title, &client, &[&["-B", "10", "-P", &through][..], args].concat(), wants)
        };
        ask("get", &["-m", "get", &uri("/")], &Wants::Says("libcoap"))?;
        let (body, copy) = (material.path("body"), material.path("copy"));
        ask("long body up", &["-m", "put", "-f", &body, &uri("/long")], &Wants::Says(""))?;
        ask("long body down", &["-m", "get", "-o", &copy, &uri("/long")], &Wants::Says(""))?;
        let same = std::fs::read(&copy).is_ok_and(|octets| octets == material.body);
        let verdict = if same { Ok(()) } else { Err("it is not what went up".to_owned()) };
        tally.note(&format!("over {scheme} through our proxy: the body is the same"), verdict);
        _ = std::fs::remove_file(&copy);
    }
    let time = format!("coap://{HOST}:{target}/time");
    let observe = ["-B", "10", "-s", "2", "-P", &through, "-m", "get", &time];
    tally.ask(
        "libcoap observes libcoap through our proxy",
        &client,
        &observe,
        &Wants::Says(":"),
    )?;
    let args = ["observe", &time, "-P", &through, "--count", "2"];
    tally.ask("lowmesh observes libcoap through our proxy", binary, &args, &Wants::Lines(2))?;
    let secure = format!("coaps://{HOST}:{}/", target + 1);
    let args = ["get", "-P", &through, &secure];
    tally.ask("our proxy asks libcoap over DTLS", binary, &args, &Wants::Says("libcoap"))?;
    Ok([(target, false), (target + 1, true), (port, false)]
        .map(|(number, secure)| Port { number, secure })
        .into())
}

/// Our client, their proxy, our server.
fn theirs(binary: &Path, tally: &mut Tally) -> Result<Vec<Port>> {
    let (target, port) = (two_free_ports()?, two_free_ports()?);
    let number = target.to_string();
    let serve = ["serve", "--demo", "--address", "::1", "--port", &number];
    let _server = Peer::start(process::command(binary, &serve), target)?;
    // With a name of its own and no next hop libcoap's server passes on what is for others.
    let args = ["-A", "::1", "-p", &port.to_string(), "-P", ",a-name-of-its-own"];
    let _proxy = Peer::start(process::command(format!("coap-server-{PLAIN}"), &args), port)?;
    let through = format!("coap://{HOST}:{port}");
    let uri = |path: &str| format!("coap://{HOST}:{target}{path}");
    let mut ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
        let title = format!("lowmesh asks lowmesh through libcoap's proxy: {what}");
        tally.ask(&title, binary, &[args, &["-P", &through]].concat(), wants)
    };
    ask("get", &["get", &uri("/hello")], &Wants::Octets(b"hello world"))?;
    ask("separate response", &["get", &uri("/separate")], &Wants::Says("of its own"))?;
    ask("several blocks", &["get", &uri("/large")], &Wants::Lines(32))?;
    ask("observe", &["observe", &uri("/time"), "--count", "2"], &Wants::Lines(2))?;
    Ok([target, port].map(|number| Port { number, secure: false }).into())
}
