//! Requests through proxies: our client through libcoap's and aiocoap's, their clients through ours, forward and reverse, to
//! our server and to theirs.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::capture::Port;
use super::case::{Stage, Wants};
use super::material::{IDENTITY, KEY};
use super::peer::{HOST, Peer, base, two_free_ports};
use super::{Group, aiocoap, libcoap};
use crate::process;

/// Of the programs that are there, each through the proxies of the others.
pub fn groups<'a>(stage: Stage<'a>, libcoap: bool, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    if libcoap {
        groups.push(Box::new(move || libcoap_through_ours(&stage)));
        groups.push(Box::new(move || ours_through_libcoaps(&stage)));
        groups.push(Box::new(move || observed_through_proxies(&stage)));
        groups.push(Box::new(move || secure_behind_ours(&stage)));
    }
    if let Some(python) = python {
        groups.push(Box::new(move || aiocoap_through_ours(&stage, python)));
        groups.push(Box::new(move || ours_through_aiocoaps(&stage, python)));
    }
    groups
}

/// A server that all are asked for, and what it has.
struct Origin {
    name: &'static str,
    port: u16,
    _server: Peer,
    /// A path, and what its representation begins with.
    hello: (&'static str, &'static str),
    /// Keeps what is put there.
    long: &'static str,
}

impl Origin {
    fn ours(binary: &Path) -> Result<Self> {
        let (port, server) = started(binary, &["serve", "--demo"])?;
        let (hello, long) = (("/hello", "hello world"), "/large-update");
        Ok(Self { name: "lowmesh", port, _server: server, hello, long })
    }
    fn libcoaps() -> Result<Self> {
        let port = two_free_ports()?;
        let server = Peer::start(libcoap::server(port, &[]), port)?;
        let (hello, long) = (("/example_data", "a123456789b"), "/long");
        Ok(Self { name: "libcoap", port, _server: server, hello, long })
    }
}

/// One of our servers or proxies, for datagrams and connections.
fn started(binary: &Path, args: &[&str]) -> Result<(u16, Peer)> {
    let port = two_free_ports()?;
    let number = port.to_string();
    let args = [args, &["--address", "::1", "--port", &number]].concat();
    Ok((port, Peer::start(process::command(binary, &args), port)?))
}

/// Has a proxy of ours ask targets on this machine.
const LOCAL: [&str; 2] = ["--allow-target", "::1"];

/// Our proxies: a forward one, and a reverse one for each origin, which it asks over TCP.
struct Ours {
    forward: u16,
    reverse: Vec<u16>,
    _peers: Vec<Peer>,
}

impl Ours {
    fn start(binary: &Path, origins: &[u16]) -> Result<Self> {
        let (forward, peer) = started(binary, &[&["proxy"][..], &LOCAL].concat())?;
        let (mut reverse, mut peers) = (Vec::new(), vec![peer]);
        for origin in origins {
            let (port, peer) = started(binary, &["proxy", "--to", &base("coap+tcp", *origin)])?;
            reverse.push(port);
            peers.push(peer);
        }
        Ok(Self { forward, reverse, _peers: peers })
    }
    fn ports(&self) -> impl Iterator<Item = u16> {
        self.reverse.iter().copied().chain([self.forward])
    }
}

/// libcoap's client through our proxies, to our server and to libcoap's; the ports that were used.
fn libcoap_through_ours(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let origins = [Origin::ours(stage.binary)?, Origin::libcoaps()?];
    let ports = [origins[0].port, origins[1].port];
    let ours = Ours::start(stage.binary, &ports)?;
    for (origin, reverse) in origins.iter().zip(&ours.reverse) {
        for (way, target) in [("coap", "coap+tcp"), ("coap+tcp", "coap"), ("coap", "coap")] {
            let (forward, target) = (base(way, ours.forward), base(target, origin.port));
            let title =
                format!("libcoap asks {} at {target} through our proxy over {way}", origin.name);
            libcoap_asks(stage, &title, &["-P", &forward], &target, origin)?;
        }
        for way in ["coap", "coap+tcp"] {
            let title = format!("libcoap asks our reverse proxy of {} over {way}", origin.name);
            libcoap_asks(stage, &title, &[], &base(way, *reverse), origin)?;
        }
    }
    Ok(Port::in_the_open(ports.into_iter().chain(ours.ports())))
}

/// libcoap's client: a short answer, a long body up and down, and an error.
fn libcoap_asks(
    stage: &Stage<'_>,
    title: &str,
    args: &[&str],
    base: &str,
    origin: &Origin,
) -> Result<()> {
    let (path, text) = origin.hello;
    let (hello, none) = (format!("{base}{path}"), format!("{base}/none"));
    let args = [&["-B", "10"], args].concat();
    let ask = |what: &str, more: &[&str], wants: &Wants<'_>| {
        let (title, args) = (format!("{title}: {what}"), [&args, more].concat());
        stage.tally.ask(&title, libcoap::client(), &args, wants)
    };
    ask("get", &["-m", "get", &hello], &Wants::Says(text))?;
    ask("an error", &["-m", "get", &none], &Wants::Warns("4.04"))?;
    let long = format!("{base}{}", origin.long);
    libcoap::long_body(stage, title, libcoap::client(), &args, &long)
}

/// Our client through libcoap's proxy, to our server and to libcoap's; the ports that were used.
fn ours_through_libcoaps(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let proxy = two_free_ports()?;
    // Behind the comma: the name under which it is meant itself, which is no proxying.
    let _proxy = Peer::start(libcoap::server(proxy, &["-P", ",itself"]), proxy)?;
    let origins = [Origin::ours(stage.binary)?, Origin::libcoaps()?];
    for origin in &origins {
        for (way, target) in [("coap", "coap+tcp"), ("coap+tcp", "coap"), ("coap", "coap")] {
            let (proxy, target) = (base(way, proxy), base(target, origin.port));
            let title =
                format!("lowmesh asks {} at {target} through libcoap over {way}", origin.name);
            we_ask(stage, &title, &["-P", &proxy], &target, origin)?;
        }
    }
    Ok(Port::in_the_open([proxy, origins[0].port, origins[1].port]))
}

/// Observations through our proxy of libcoap's server, and through libcoap's of ours; the ports that were used.
fn observed_through_proxies(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let origins = [Origin::ours(stage.binary)?, Origin::libcoaps()?];
    let (ours, _ours) = started(stage.binary, &[&["proxy"][..], &LOCAL].concat())?;
    let theirs = two_free_ports()?;
    let _theirs = Peer::start(libcoap::server(theirs, &["-P", ",itself"]), theirs)?;
    let time = |origin: &Origin| base("coap", origin.port) + "/time";
    let through = base("coap", ours);
    let args = ["-B", "10", "-s", "2", "-P", &through, "-m", "get", &time(&origins[1])];
    let title = "libcoap observes libcoap through our proxy";
    stage.tally.ask(title, libcoap::client(), &args, &Wants::Says(":"))?;
    for (whose, proxy, origin) in [("our", ours, &origins[1]), ("libcoap's", theirs, &origins[0])] {
        let title = format!("lowmesh observes {} through {whose} proxy", origin.name);
        let args = ["observe", &time(origin), "-P", &base("coap", proxy), "--count", "2"];
        stage.tally.ask(&title, stage.binary, &args, &Wants::Lines(2))?;
    }
    Ok(Port::in_the_open([origins[0].port, origins[1].port, ours, theirs]))
}

/// Our proxy asks libcoap's server over DTLS; the ports that were used.
fn secure_behind_ours(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let target = two_free_ports()?;
    let server = format!("coap-server-{}", libcoap::SECURE[0]);
    let args = ["-A", "::1", "-p", &target.to_string(), "-d", "10", "-k", KEY];
    let _server = Peer::start(process::command(server, &args), target)?;
    let keys = ["proxy", "--target-identity", IDENTITY, "--target-psk", KEY];
    let keys = [&keys[..], &LOCAL].concat();
    let (proxy, _proxy) = started(stage.binary, &keys)?;
    let secure = base("coaps", target + 1) + "/";
    let args = ["get", "-P", &base("coap", proxy), &secure];
    let title = "our proxy asks libcoap over DTLS";
    stage.tally.ask(title, stage.binary, &args, &Wants::Says("libcoap"))?;
    let mut ports = Port::in_the_open([target, proxy]);
    ports.push(Port { number: target + 1, secure: true });
    Ok(ports)
}

/// Our client through aiocoap's proxies, forward and reverse, to our server; the ports that were used.
fn ours_through_aiocoaps(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let origin = Origin::ours(stage.binary)?;
    let forward = two_free_ports()?;
    let _forward = Peer::start(aiocoap::proxy(python, forward, &["--forward"])?, forward)?;
    for (way, scheme) in [("coap", "coap+tcp"), ("coap+tcp", "coap")] {
        let title = format!("lowmesh asks over {scheme} through aiocoap over {way}");
        // It takes no Proxy-Uri, which `-P` would send (RFC 7252 s5.10.2 has both).
        let host = format!("uri-host,{HOST}");
        let (scheme, port) =
            (format!("proxy-scheme,{scheme}"), format!("uri-port,{}", origin.port));
        let named = ["-O", &scheme, "-O", &host, "-O", &port];
        we_ask(stage, &title, &named, &base(way, forward), &origin)?;
    }
    let (reverse, target) = (two_free_ports()?, base("coap+tcp", origin.port));
    let rules = ["--reverse", "--unconditional", &target];
    let _reverse = Peer::start(aiocoap::proxy(python, reverse, &rules)?, reverse)?;
    for way in ["coap", "coap+tcp"] {
        let title = format!("lowmesh asks aiocoap's reverse proxy over {way}");
        we_ask(stage, &title, &[], &base(way, reverse), &origin)?;
    }
    Ok(Port::in_the_open([origin.port, forward, reverse]))
}

/// Our client: a short answer, a long body up and down, and an error.
fn we_ask(
    stage: &Stage<'_>,
    title: &str,
    args: &[&str],
    base: &str,
    origin: &Origin,
) -> Result<()> {
    let ((path, text), body) = (origin.hello, stage.material.path("body"));
    let (hello, none) = (format!("{base}{path}"), format!("{base}/none"));
    let long = format!("{base}{}", origin.long);
    let ask = |what: &str, more: &[&str], wants: &Wants<'_>| {
        stage.tally.ask(&format!("{title}: {what}"), stage.binary, &[more, args].concat(), wants)
    };
    ask("get", &["get", &hello], &Wants::Says(text))?;
    ask("an error", &["get", &none], &Wants::Ends(4, "4.04"))?;
    ask("long body up", &["put", &long, "-f", &body], &Wants::Octets(b""))?;
    ask("long body down", &["get", &long], &Wants::Octets(&stage.material.body))
}

/// aiocoap's client through our proxies, to our server and to aiocoap's; the ports that were used.
fn aiocoap_through_ours(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let origin = Origin::ours(stage.binary)?;
    let (theirs, _server) = aiocoap::served(python, None)?;
    let ours = Ours::start(stage.binary, &[origin.port, theirs])?;
    for (name, at, reverse) in
        [("lowmesh", origin.port, ours.reverse[0]), ("aiocoap", theirs, ours.reverse[1])]
    {
        let ask = |title: &str, base: &str, more: &[&str]| {
            let args = [&["--server", name], more].concat();
            let client: Command = aiocoap::client(python, base, stage.material, &args);
            stage.tally.run(title, client, &Wants::Says("all as it should be"))
        };
        for (way, target) in [("coap", "coap+tcp"), ("coap+tcp", "coap")] {
            let title = format!("aiocoap asks {name} over {target} through our proxy over {way}");
            ask(&title, &base(target, at), &["--through", &base(way, ours.forward)])?;
        }
        for way in ["coap", "coap+tcp"] {
            let title = format!("aiocoap asks our reverse proxy of {name} over {way}");
            ask(&title, &base(way, reverse), &[])?;
        }
    }
    Ok(Port::in_the_open([origin.port, theirs].into_iter().chain(ours.ports())))
}
