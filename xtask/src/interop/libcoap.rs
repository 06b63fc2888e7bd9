//! libcoap: its servers asked by our client, its clients at our server; UDP, TCP, DTLS and TLS.

use std::path::Path;

use anyhow::Result;

use super::capture::Port;
use super::case::{Tally, Wants};
use super::material::{IDENTITY, KEY, Material};
use super::peer::{HOST, Peer, two_free_ports};
use crate::{process, tools};

/// How Debian calls its builds: without TLS, and with two libraries for it.
pub const PLAIN: &str = "notls";
pub const SECURE: [&str; 2] = ["openssl", "gnutls"];
/// That whose servers choose a protocol by ALPN.
const ALPN: &str = SECURE[0];

/// Both directions; the ports that were used.
pub fn run(binary: &Path, material: &Material, tally: &mut Tally) -> Result<Vec<Port>> {
    let mut ports = Vec::new();
    let found = process::installed(&format!("coap-server-{PLAIN}"));
    if found || tools::install("libcoap3-bin").is_ok() {
        ports.push(ask_plain(binary, material, tally)?);
        for library in SECURE {
            ports.push(ask_secure(binary, material, library, tally)?);
        }
        ports.extend(answer(binary, material, tally)?);
    } else {
        tally.skip("libcoap", "install it (Debian, Ubuntu: apt-get install libcoap3-bin)");
    }
    Ok(ports)
}

/// Our client, their server, in the open.
fn ask_plain(binary: &Path, material: &Material, tally: &mut Tally) -> Result<Port> {
    let port = two_free_ports()?;
    let server = format!("coap-server-{PLAIN}");
    let args = ["-A", "::1", "-p", &port.to_string(), "-d", "10"];
    let _server = Peer::start(process::command(server, &args), port)?;
    for scheme in ["coap", "coap+tcp"] {
        let title = |what: &str| format!("lowmesh asks libcoap over {scheme}: {what}");
        let base = format!("{scheme}://{HOST}:{port}");
        let uri = |path: &str| format!("{base}{path}");
        let body = material.path("body");
        let mut ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            tally.ask(&title(what), binary, args, wants)
        };
        ask("get", &["get", &uri("/")], &Wants::Says("libcoap"))?;
        ask("NON", &["get", "-N", &uri("/")], &Wants::Says("libcoap"))?;
        ask("separate response", &["get", &uri("/async?1")], &Wants::Says("done"))?;
        ask("long body up", &["put", &uri("/long"), "-f", &body], &Wants::Octets(b""))?;
        ask("long body down", &["get", &uri("/long")], &Wants::Octets(&material.body))?;
        ask("discover", &["discover", &base, "rt=ticks"], &Wants::Says("/time"))?;
        ask("ping", &["ping", &base, "-c", "2"], &Wants::Says("2 sent, 2 answered"))?;
        ask("observe", &["observe", &uri("/time"), "--count", "2"], &Wants::Lines(2))?;
        ask("delete", &["delete", &uri("/long")], &Wants::Octets(b""))?;
        ask("an error", &["get", &uri("/none")], &Wants::Ends(4, "4.04"))?;
    }
    Ok(Port { number: port, secure: false })
}

/// Our client, their server, with keys and with certificates.
fn ask_secure(
    binary: &Path,
    material: &Material,
    library: &str,
    tally: &mut Tally,
) -> Result<Port> {
    let port = two_free_ports()?;
    let (cert, key) = (material.path("cert.pem"), material.path("key.pem"));
    let number = port.to_string();
    let mut args = vec!["-A", "::1", "-p", &number, "-d", "10", "-k", KEY];
    if material.certificates {
        args.extend(["-c", &cert, "-j", &key, "-n"]);
    } else {
        tally.skip(&format!("TLS with libcoap ({library})"), "openssl makes no certificate");
    }
    let server = format!("coap-server-{library}");
    let _server = Peer::start(process::command(server, &args), port)?;
    let secure = port + 1;
    let title = |what: &str| format!("lowmesh asks libcoap with {library}: {what}");
    let base = format!("coaps://{HOST}:{secure}");
    let (time, long) = (format!("{base}/time"), format!("{base}/long"));
    let body = material.path("body");
    let keys = ["-u", IDENTITY, "-k", KEY];
    let mut ask =
        |what: &str, args: &[&str], wants: &Wants<'_>| tally.ask(&title(what), binary, args, wants);
    ask("DTLS", &[&["get", &base][..], &keys].concat(), &Wants::Says("libcoap"))?;
    let up = [&["put", &long, "-f", &body][..], &keys].concat();
    ask("long body up over DTLS", &up, &Wants::Octets(b""))?;
    let down = [&["get", &long][..], &keys].concat();
    ask("long body down over DTLS", &down, &Wants::Octets(&material.body))?;
    let observe = [&["observe", &time, "--count", "2"][..], &keys].concat();
    ask("observe over DTLS", &observe, &Wants::Lines(2))?;
    let wrong = ["get", &base, "-u", IDENTITY, "-k", "another secret", "-B", "1"];
    ask("a wrong key", &wrong, &Wants::Ends(6, "--psk"))?;
    if material.certificates {
        let uri = format!("coaps+tcp://{HOST}:{secure}/");
        // RFC 8323 s8.2: at another port than 5684 a server MUST choose `coap`; libcoap 4.3 with GnuTLS does not.
        let wants =
            if library == ALPN { Wants::Says("libcoap") } else { Wants::Ends(6, "by ALPN") };
        ask("TLS", &["get", &uri, "--cafile", &cert], &wants)?;
    }
    Ok(Port { number: secure, secure: true })
}

/// Their client, our server.
fn answer(binary: &Path, material: &Material, tally: &mut Tally) -> Result<[Port; 2]> {
    let port = two_free_ports()?;
    let (cert, key) = (material.path("cert.pem"), material.path("key.pem"));
    let number = port.to_string();
    let mut args = vec!["serve", "--demo", "--address", "::1", "--port", &number];
    args.extend(["-u", IDENTITY, "-k", KEY]);
    if material.certificates {
        args.extend(["--cert", &cert, "--key", &key]);
    }
    let _server = Peer::start(process::command(binary, &args), port)?;
    let secure = port + 1;
    let keys = ["-u", IDENTITY, "-k", KEY];
    let trust = ["-C", cert.as_str()];
    let mut ways = vec![
        (PLAIN, "coap", port, &[][..]),
        (PLAIN, "coap+tcp", port, &[]),
        (SECURE[0], "coaps", secure, &keys),
        (SECURE[1], "coaps", secure, &keys),
    ];
    if material.certificates {
        ways.extend(SECURE.map(|library| (library, "coaps+tcp", secure, &trust[..])));
    }
    for (library, scheme, port, extra) in ways {
        let client = format!("coap-client-{library}");
        let uri = |path: &str| format!("{scheme}://{HOST}:{port}{path}");
        let mut ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            let title = format!("libcoap ({library}) asks lowmesh over {scheme}: {what}");
            tally.ask(&title, &client, &[&["-B", "10"][..], extra, args].concat(), wants)
        };
        ask("get", &["-m", "get", &uri("/hello")], &Wants::Says("hello world"))?;
        ask("separate response", &["-m", "get", &uri("/separate")], &Wants::Says("of its own"))?;
        let (body, copy) = (material.path("body"), material.path("copy"));
        let update = uri("/large-update");
        ask("long body up", &["-m", "put", "-f", &body, &update], &Wants::Says(""))?;
        ask("long body down", &["-m", "get", "-o", &copy, &update], &Wants::Says(""))?;
        let same = std::fs::read(&copy).is_ok_and(|octets| octets == material.body);
        let verdict = if same { Ok(()) } else { Err("it is not what went up".to_owned()) };
        tally.note(&format!("libcoap ({library}) over {scheme}: the body is the same"), verdict);
        _ = std::fs::remove_file(&copy);
    }
    let args = ["-m", "get", "-s", "2", "-B", "4", &format!("coap://{HOST}:{port}/time")];
    let client = format!("coap-client-{PLAIN}");
    tally.ask("libcoap observes lowmesh", client, &args, &Wants::Says("\n"))?;
    Ok([Port { number: port, secure: false }, Port { number: secure, secure: true }])
}
