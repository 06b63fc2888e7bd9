//! `lowmesh node udp`: a UDP datagram over the node and what comes back, or whatever comes to a port.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::mpsc::Receiver;

use lowmesh_machine::Handle;
use lowmesh_stack::DATAGRAM_PORT;
use lowmesh_stack::application::Input as Arrival;
use lowmesh_stack::event::{Input, Output, Packet, Peer};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::Address;

use super::Setup;
use super::forwarder::Forwarder;
use super::session::{Session, SessionEvent, Until};
use super::target::{reachable, words};
use crate::body::plain;
use crate::console::say;
use crate::diagnostic::hex;
use crate::duration;
use crate::failure::Failure;
use crate::template::decoded;

/// Octets of data in the largest packet: 1280 (RFC 4944 s5) without the headers of IPv6 and UDP.
const DATA_OCTETS_MAX: usize = 1280 - 40 - 8;
/// How long an answer is waited for: ours, longer than a packet and its answer take with all their retries.
const WAIT: Duration = Duration::from_secs(10);
const HINT: &str = "does the peer listen on this port? `--drops` shows what this node drops";

/// Send a UDP datagram and print the replies, or print datagrams to a port
#[derive(Debug, clap::Args)]
#[command(override_usage = "lowmesh node <NODE OPTIONS> udp [OPTIONS] [ADDRESS] [PORT] [DATA]")]
pub struct Args {
    /// Destination IPv6 address of the datagram
    #[arg(value_name = "ADDRESS", required_unless_present = "listen", requires = "data")]
    target: Option<Ipv6Addr>,
    /// Destination port of the datagram
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Content of the datagram; %XX is one octet
    data: Option<String>,
    /// Local port, which receives datagrams [default: 61616]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    listen: Option<u16>,
    /// Datagrams to wait for [default: 1 after a datagram was sent, else all until Ctrl-C]; 0 waits until the datagram is sent
    #[arg(short, long, value_name = "NUMBER")]
    count: Option<u64>,
    /// Time to wait for them [default: 10s after a datagram was sent]
    #[arg(short = 'B', long, value_name = "TIME", value_parser = duration::wait)]
    timeout: Option<Duration>,
}

/// Sends the datagram and shows what comes.
pub fn execute(setup: &Setup, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let order = order(setup, args)?;
    let port = args.listen.unwrap_or(DATAGRAM_PORT);
    let (forwarder, arrivals) = Forwarder::listening(port);
    let config = setup.options.config();
    let session = Session::start(setup, &config, vec![Box::new(forwarder)], Until::Unread)?;
    let mut wait = Wait { session, arrivals, sent: None, came: 0, json: setup.watch.json };
    if order.is_none() {
        say!("listening on UDP port {port}; Ctrl-C ends");
    }
    let result = exchange(&mut wait, args, port, order, out);
    // What was shown comes before what was counted.
    wait.session.finish(out)?;
    result
}

/// The datagram to send, if there is one.
fn order(setup: &Setup, args: &Args) -> Result<Option<(Peer, Vec<u8>)>, Failure> {
    let (Some(target), Some(port), Some(data)) = (args.target, args.port, &args.data) else {
        return Ok(None);
    };
    let to = Address::from(target);
    reachable(&setup.options, to)?;
    let payload = decoded("DATA ", data)?;
    if payload.len() > DATA_OCTETS_MAX {
        let message = format!("DATA has {} octets", payload.len());
        return Err(Failure::usage(message, "a node sends datagrams of up to 1232 octets"));
    }
    Ok(Some(((to, port), payload)))
}

/// Datagrams that are waited for.
struct Wait {
    session: Session,
    arrivals: Receiver<Arrival>,
    /// The datagram that was sent, and when.
    sent: Option<(Handle, Instant)>,
    came: u64,
    json: bool,
}

fn exchange(
    wait: &mut Wait,
    args: &Args,
    source_port: u16,
    order: Option<(Peer, Vec<u8>)>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let timeout = args.timeout.or(order.is_some().then_some(WAIT));
    let count = args.count.or(order.is_some().then_some(1));
    let peer = order.as_ref().map(|(peer, _)| peer.0);
    if let Some((peer, payload)) = order {
        let began = wait.session.now();
        let Some(packet) = wait.session.send(Input::Datagram { source_port, peer, payload })?
        else {
            return Ok(());
        };
        wait.sent = Some((packet, began));
    }
    let until = timeout.map(|timeout| wait.session.now() + timeout);
    while wait.sent.is_some() && count == Some(0) || count.is_none_or(|count| wait.came < count) {
        match wait.session.next(until)? {
            SessionEvent::Said(_, Output::Packet(Packet::PassedOn(packet)))
                if count == Some(0) && wait.is_sent(packet) =>
            {
                return Ok(());
            }
            SessionEvent::Said(_, Output::Packet(Packet::Dropped(dropped)))
                if wait.is_sent(dropped.handle) =>
            {
                let message = format!("this node dropped the datagram, {dropped}");
                return Err(Failure::no_answer(message, HINT));
            }
            SessionEvent::Said(_, Output::Trouble { from, to, problem }) if peer == Some(to) => {
                let message = format!("{from} says: {}", words(problem));
                return Err(Failure::no_answer(message, HINT));
            }
            SessionEvent::Said(at, _) => wait.show(at, out)?,
            SessionEvent::Due if wait.came == 0 => {
                let waited = timeout.unwrap_or_default().as_secs_f64();
                let message = format!("no datagram arrived within {waited} s");
                return Err(Failure::no_answer(message, HINT));
            }
            SessionEvent::Due | SessionEvent::Stopped => break,
        }
    }
    Ok(())
}

impl Wait {
    fn is_sent(&self, packet: Handle) -> bool {
        self.sent.is_some_and(|(sent, _)| sent == packet)
    }

    /// Prints the datagrams that have come by the time `at`.
    fn show(&mut self, at: Instant, out: &mut impl Write) -> Result<(), Failure> {
        while let Ok(arrival) = self.arrivals.try_recv() {
            let Arrival::Datagram { from: (address, port), payload, .. } = arrival else {
                continue;
            };
            self.came += 1;
            let from = SocketAddr::new(Ipv6Addr::from(address).into(), port);
            let after = self.sent.map(|(_, sent)| at.since(sent).as_secs_f64() * 1000.0);
            if self.json {
                let text = std::str::from_utf8(&payload).ok();
                let object = serde_json::json!({
                    "schema": 1,
                    "from": from.to_string(),
                    "after_ms": after,
                    "payload": text,
                    "payload_hex": text.is_none().then(|| hex(&payload)),
                });
                writeln!(out, "{object}")?;
            } else {
                let after = after.map(|ms| format!(" after {ms:.1} ms")).unwrap_or_default();
                say!("from {from}{after}");
                writeln!(out, "{}", plain(&payload))?;
            }
            out.flush()?;
        }
        Ok(())
    }
}
