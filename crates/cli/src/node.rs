//! `lowmesh node`: one node in real time over ZEP, together with native builds of other stacks.
//!
//! | module | holds |
//! |---|---|
//! | `options` | the node and its air |
//! | `watch` | captures, drops and counters |
//! | `session` | a node from its start to its end |
//! | `target` | whom a verb asks |
//! | `ping`, `udp`, `request` | the verbs |
//! | `forwarder` | the application of a verb |

mod forwarder;
mod options;
mod ping;
mod request;
mod session;
mod target;
mod udp;
mod watch;

use std::io::Write;

use clap::Subcommand;
use lowmesh_applications::Clock;
use lowmesh_stack::{COAP_PORT, ECHO_PORT};
use lowmesh_wire::coap::Code;
use lowmesh_wire::ipv6::Address;

use self::options::Options;
use self::session::{Session, SessionEvent, Until};
use crate::failure::Failure;

/// Run one node in real time over ZEP (IEEE 802.15.4 frames in UDP)
///
/// It answers ping, UDP echo on port 7, neighbour solicitations, and CoAP requests for /clock and
/// /.well-known/core, and forwards packets, until Ctrl-C. With a verb it performs one operation and ends.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What the node does instead of waiting for others.
#[derive(Debug, Subcommand)]
enum Verb {
    Ping(ping::Args),
    Udp(udp::Args),
    /// Get a resource and print it (GET)
    Get(request::Args),
    /// Create or replace a resource (PUT)
    Put(request::Args),
    /// Send data for a resource to process (POST)
    Post(request::Args),
    /// Delete a resource (DELETE)
    Delete(request::Args),
    /// Get a part of a resource (FETCH, RFC 8132)
    Fetch(request::Args),
    /// Change a part of a resource (PATCH, RFC 8132)
    Patch(request::Args),
    /// Change a part of a resource idempotently (iPATCH, RFC 8132)
    Ipatch(request::Args),
}

/// A node, and what is shown of it.
#[derive(Debug, clap::Args)]
#[group(id = "setup")]
pub struct Setup {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    watch: watch::Args,
}

/// Runs the node until its verb is done, without one until Ctrl-C.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let setup = &args.setup;
    match &args.verb {
        None => serve(setup, out),
        Some(Verb::Ping(args)) => ping::execute(setup, args, out),
        Some(Verb::Udp(args)) => udp::execute(setup, args, out),
        Some(Verb::Get(args)) => request::execute(Code::GET, setup, args, out),
        Some(Verb::Put(args)) => request::execute(Code::PUT, setup, args, out),
        Some(Verb::Post(args)) => request::execute(Code::POST, setup, args, out),
        Some(Verb::Delete(args)) => request::execute(Code::DELETE, setup, args, out),
        Some(Verb::Fetch(args)) => request::execute(Code::FETCH, setup, args, out),
        Some(Verb::Patch(args)) => request::execute(Code::PATCH, setup, args, out),
        Some(Verb::Ipatch(args)) => request::execute(Code::IPATCH, setup, args, out),
    }
}

/// A node that answers others.
fn serve(setup: &Setup, out: &mut impl Write) -> Result<(), Failure> {
    let options = &setup.options;
    let clock = Box::new(Clock::default());
    let mut session = Session::start(setup, &options.config(), vec![clock], Until::Interrupted)?;
    if !setup.watch.json {
        let (here, peer) = (session.local_addr()?, options.peer()?);
        writeln!(out, "node {} on {here}, ZEP to {peer}", options.eui64)?;
        writeln!(out, "  link-local {}", Address::link_local(options.eui64))?;
        for global in &options.address {
            writeln!(out, "  global     {}", global.address)?;
        }
        writeln!(out, "  CoAP on port {COAP_PORT}, echo on port {ECHO_PORT}")?;
        out.flush()?;
    }
    while !matches!(session.next(None)?, SessionEvent::Stopped) {}
    session.finish(out)
}
