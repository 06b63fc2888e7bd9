//! libcoap: its servers asked by our client, its clients at our server; UDP, TCP, DTLS and TLS; observation over a bad path.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;

use super::Group;
use super::capture::Port;
use super::case::{Stage, Tally, Wants};
use super::material::{IDENTITY, KEY};
use super::observation::Watch;
use super::peer::{HOST, Peer, base, two_free_ports};
use crate::{process, tools};

/// How Debian calls its builds: without TLS, and with two libraries for it.
pub const PLAIN: &str = "notls";
pub const SECURE: [&str; 2] = ["openssl", "gnutls"];
/// That whose servers choose a protocol by ALPN.
const ALPN: &str = SECURE[0];

/// Whether it is installed, after an attempt to install it.
pub fn is_there(tally: &Tally) -> bool {
    let found = process::installed(&format!("coap-server-{PLAIN}"));
    if found || tools::install("libcoap3-bin").is_ok() {
        return true;
    }
    tally.skip("libcoap", "install it (Debian, Ubuntu: apt-get install libcoap3-bin)");
    false
}

/// Both directions.
pub fn groups(stage: Stage<'_>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> =
        vec![Box::new(move || ask_plain(&stage)), Box::new(move || answer(&stage))];
    for library in SECURE {
        groups.push(Box::new(move || ask_secure(&stage, library)));
    }
    groups.extend(watches(&stage).map(|watch| watch.into_group(stage)));
    groups
}

/// Its client, without TLS.
pub fn client() -> String {
    format!("coap-client-{PLAIN}")
}

/// Its server at a port, without TLS; PUT makes resources.
pub fn server(port: u16, args: &[&str]) -> Command {
    let common = ["-A", "::1", "-p", &port.to_string(), "-d", "10"];
    process::command(format!("coap-server-{PLAIN}"), &[&common, args].concat())
}

/// Its client: a long body goes up, and comes down as it was.
pub fn long_body(
    stage: &Stage<'_>,
    title: &str,
    client: impl AsRef<OsStr>,
    args: &[&str],
    uri: &str,
) -> Result<()> {
    let (body, copy) = (stage.material.path("body"), stage.material.copy());
    let ask = |what: &str, more: &[&str]| {
        let (title, args) = (format!("{title}: {what}"), [args, more].concat());
        stage.tally.ask(&title, &client, &args, &Wants::Says(""))
    };
    ask("long body up", &["-m", "put", "-f", &body, uri])?;
    ask("long body down", &["-m", "get", "-o", &copy, uri])?;
    let same = std::fs::read(&copy).is_ok_and(|octets| octets == stage.material.body);
    let verdict = if same { Ok(()) } else { Err("it is not what went up".to_owned()) };
    stage.tally.note(&format!("{title}: the body is the same"), verdict);
    Ok(())
}

/// Observation over a bad path, theirs and ours.
fn watches(stage: &Stage<'_>) -> impl Iterator<Item = Watch> + use<> {
    let ours = |port: u16| {
        let args = ["serve", "--demo", "--address", "::1", "--port", &port.to_string()];
        process::command(stage.binary, &args)
    };
    let theirs = process::command(client(), &["-m", "get", "-w", "-s", "120", "-B", "120"]);
    let mine = || process::command(stage.binary, &["observe"]);
    [
        // libcoap's client gives its application what comes, as it comes.
        Watch::new("libcoap observes lowmesh", ours, "/obs", theirs)
            .seed(13)
            .unordered()
            .acknowledging_once(),
        Watch::new("lowmesh observes libcoap", |port| server(port, &[]), "/state", mine()).seed(21),
        Watch::new(
            "lowmesh observes libcoap by NON",
            |port| server(port, &["-N"]),
            "/state",
            mine(),
        )
        .seed(17)
        .unconfirmed(),
    ]
    .into_iter()
}

/// Our client, their server, in the open.
fn ask_plain(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let port = two_free_ports()?;
    let _server = Peer::start(server(port, &[]), port)?;
    for scheme in ["coap", "coap+tcp"] {
        let title = |what: &str| format!("lowmesh asks libcoap over {scheme}: {what}");
        let base = format!("{scheme}://{HOST}:{port}");
        let uri = |path: &str| format!("{base}{path}");
        let body = material.path("body");
        let ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
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
    Ok(Port::in_the_open([port]))
}

/// Our client, their server, with keys and with certificates.
fn ask_secure(stage: &Stage<'_>, library: &str) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
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
    let ask =
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
    Ok(vec![Port { number: secure, secure: true }])
}

/// Their client, our server.
fn answer(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
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
        let title = format!("libcoap ({library}) asks lowmesh over {scheme}");
        let common = [&["-B", "10"][..], extra].concat();
        let uri = |path: &str| format!("{scheme}://{HOST}:{port}{path}");
        let ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            tally.ask(&format!("{title}: {what}"), &client, &[&common, args].concat(), wants)
        };
        ask("get", &["-m", "get", &uri("/hello")], &Wants::Says("hello world"))?;
        ask("separate response", &["-m", "get", &uri("/separate")], &Wants::Says("of its own"))?;
        long_body(stage, &title, &client, &common, &uri("/large-update"))?;
    }
    let observe = |path: &str, seconds: &str, wants: &Wants<'_>| {
        let uri = format!("{}{path}", base("coap", port));
        let args = ["-m", "get", "-v", "7", "-s", seconds, "-B", "20", &uri];
        tally.ask(&format!("libcoap observes lowmesh at {path}"), self::client(), &args, wants)
    };
    observe("/time", "2", &Wants::Says("t:CON c:2.05"))?;
    // It changes every five seconds, and was asked for with CON.
    // The first notification is confirmable, since nothing has proven the client's address; the second one is not.
    observe("/obs-non", "12", &Wants::Says("t:NON c:2.05"))?;
    Ok(vec![Port { number: port, secure: false }, Port { number: secure, secure: true }])
}
