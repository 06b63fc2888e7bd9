//! The two ends of a transfer, programs on the kernel's TCP that run inside the namespaces.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Stopwatch;

/// Requests, and the octets of one and of its answer.
const REQUESTS: usize = 400;
const REQUEST: [u8; 20] = [b'r'; 20];
const ANSWER: [u8; 262] = [b'd'; 262];
/// The server's end of the link.
const ADDRESS: &str = "10.9.0.2:5683";
/// A transfer that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(900);
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs as `client` or `server`; the rest is the congestion control, and 1 with SACK.
pub fn run(role: &str, rest: &[String]) -> Result<()> {
    let [window, sack] = rest else { bail!("an end takes a congestion control, and 0 or 1") };
    let settings = [
        ("tcp_sack", sack.as_str()),
        ("tcp_dsack", sack),
        ("tcp_timestamps", "1"),
        ("tcp_no_metrics_save", "1"),
    ];
    for (name, value) in settings {
        let file = format!("/proc/sys/net/ipv4/{name}");
        fs::write(&file, value).with_context(|| format!("{file} does not take {value}"))?;
    }
    match role {
        "server" => serve(window),
        "client" => fetch(),
        other => bail!("an end is a client or a server, not {other:?}"),
    }
}

/// Answers the requests of one connection.
fn serve(window: &str) -> Result<()> {
    let listener = socket2::Socket::from(TcpListener::bind(ADDRESS)?);
    // A namespace allows few names as its default; a socket of root takes all that the kernel has.
    listener
        .set_tcp_congestion(window.as_bytes())
        .with_context(|| format!("the kernel has no congestion control {window}"))?;
    let (mut stream, _) = TcpListener::from(listener).accept()?;
    stream.set_nodelay(true)?;
    let (mut received, mut answered) = (0, 0);
    let mut buffer = vec![0; 65_536];
    while answered < REQUESTS {
        let octets = stream.read(&mut buffer)?;
        if octets == 0 {
            break;
        }
        received += octets;
        while answered < REQUESTS.min(received / REQUEST.len()) {
            stream.write_all(&ANSWER)?;
            answered += 1;
        }
    }
    // The client closes first.
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Sends all requests at once, and prints when the last answer has come.
fn fetch() -> Result<()> {
    let (clock, mut stream) = connect()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&REQUEST.repeat(REQUESTS))?;
    let mut left = REQUESTS * ANSWER.len();
    let mut buffer = vec![0; 65_536];
    while left > 0 {
        let octets = stream.read(&mut buffer)?;
        if octets == 0 {
            bail!("the server has closed, {left} octets are missing");
        }
        left -= octets;
    }
    println!("{}", serde_json::json!({ "completed_s": clock.elapsed().as_secs_f64() }));
    Ok(())
}

/// Connects; a server that has not started yet refuses.
fn connect() -> Result<(Stopwatch, TcpStream)> {
    let begin = Stopwatch::start();
    loop {
        let clock = Stopwatch::start();
        match TcpStream::connect(ADDRESS) {
            Ok(stream) => return Ok((clock, stream)),
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => return Err(error.into()),
            Err(error) if begin.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => {}
        }
    }
}
