//! `lowmesh node ping`: echo requests of ICMPv6 (RFC 4443 s4.1), one after the other.

use std::io::Write;
use std::net::Ipv6Addr;

use lowmesh_net::clock::fresh_seed;
use lowmesh_stack::event::{Input, Output, Packet};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::icmpv6::Echo;
use lowmesh_wire::ipv6::Address;

use super::Setup;
use super::session::{Session, SessionEvent, Until};
use super::target::{reachable, words};
use crate::failure::Failure;
use crate::ping::{Pace, Tally};

/// Octets of an echo request and its IPv6 header.
const HEADER_OCTETS: u16 = 48;
/// Octets of the largest packet: RFC 4944 s5, the MTU of IPv6 over IEEE 802.15.4.
const MTU: u16 = 1280;
/// Octets of data in an echo request by default: as many as other pings send.
const SIZE: u16 = 56;

/// Check whether a node answers ICMPv6 echo requests, and how fast
#[derive(Debug, clap::Args)]
pub struct Args {
    /// IPv6 address of the node to ping
    #[arg(value_name = "ADDRESS")]
    target: Ipv6Addr,
    /// Octets of data in a request
    #[arg(short, long, value_name = "OCTETS", default_value_t = SIZE,
          value_parser = clap::value_parser!(u16).range(..=i64::from(MTU - HEADER_OCTETS)))]
    size: u16,
    #[command(flatten)]
    pace: Pace,
}

/// How a ping ended.
enum End {
    /// An answer came at this time.
    Answered(Instant),
    /// No answer comes any more.
    Lost(String),
    /// The user interrupted the command.
    Stopped,
}

/// Pings, and sums up.
pub fn execute(setup: &Setup, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let to = Address::from(args.target);
    reachable(&setup.options, to)?;
    let config = setup.options.config();
    let mut session = Session::start(setup, &config, Vec::new(), Until::Unread)?;
    let (mut tally, mut loss) = (Tally::default(), None);
    let data: Vec<u8> = (0..args.size).map(|at| at as u8).collect();
    // Who pings twice in a row does not take late answers to the first pings for those to the second.
    let identifier = fresh_seed().0 as u16;
    for number in 1..=args.pace.count {
        let echo = Echo { identifier, sequence: number as u16, data: data.clone() };
        let sent = session.now();
        let (line, rtt_ms) = match ping(&mut session, to, &echo, args.pace.timeout)? {
            End::Stopped => break,
            End::Answered(at) => {
                let rtt_ms = at.since(sent).as_secs_f64() * 1000.0;
                (format!("{rtt_ms:.3} ms"), Some(rtt_ms))
            }
            End::Lost(why) => {
                let line = format!("lost, {why}");
                loss = Some(why);
                (line, None)
            }
        };
        tally.rtts_ms.push(rtt_ms);
        if !setup.watch.json {
            writeln!(out, "{to}: ping {number}: {line}")?;
            out.flush()?;
        }
        let pause = args.pace.interval;
        if number < args.pace.count && !session.rest(pause)? {
            break;
        }
    }
    tally.sum_up(&to, setup.watch.json, out)?;
    session.finish(out)?;
    if tally.answered() > 0 {
        return Ok(());
    }
    let why = loss.unwrap_or_else(|| "the first was interrupted".to_owned());
    let hint =
        "does that node use this --zep, --channel and --pan? `--drops` shows what this node drops";
    Err(Failure::no_answer(format!("no answer from {to}: {why}"), hint))
}

/// Sends one request and waits for its end.
fn ping(
    session: &mut Session,
    to: Address,
    echo: &Echo,
    timeout: Duration,
) -> Result<End, Failure> {
    let Some(request) = session.send(Input::Ping { to, echo: echo.clone() })? else {
        return Ok(End::Stopped);
    };
    let until = session.now() + timeout;
    loop {
        let output = match session.next(Some(until))? {
            SessionEvent::Said(at, Output::Pong { echo: answer, .. }) if answer == *echo => {
                return Ok(End::Answered(at));
            }
            SessionEvent::Said(_, output) => output,
            SessionEvent::Due => {
                return Ok(End::Lost(format!("no answer within {} s", timeout.as_secs_f64())));
            }
            SessionEvent::Stopped => return Ok(End::Stopped),
        };
        match output {
            Output::Packet(Packet::Dropped(dropped)) if dropped.handle == request => {
                return Ok(End::Lost(format!("this node dropped the request, {dropped}")));
            }
            Output::Trouble { from, to: asked, problem } if asked == to => {
                return Ok(End::Lost(format!("{from} says: {}", words(problem))));
            }
            _ => {}
        }
    }
}
