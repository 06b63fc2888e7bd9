//! `lowmesh emulate`: a constrained link between two network namespaces, for any real program.

mod children;
mod link;
mod node;
mod view;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lowmesh_net::clock;
use lowmesh_realtime::emulate::{Capture, Emulator, End, OpenError, Plan};
use lowmesh_realtime::params::EMULATED_NODE;
use lowmesh_units::{Duration, Instant, Seed};

use self::children::Children;
use crate::channel::wait;
use crate::console::say;
use crate::failure::Failure;
use crate::ports::interrupted;

/// Emulate a slow, lossy link between two network namespaces, for real programs (Linux, root)
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: link::Options,
    /// Largest packet in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 1500,
          value_parser = clap::value_parser!(u16).range(68..))]
    mtu: u16,
    /// Seed of jitter and loss; by default a new one, which is printed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Name of the link; several links at a time need different names
    #[arg(long, value_name = "NAME", default_value = "lowmesh")]
    name: String,
    /// Add IPv6 addresses (fd00:6c6d::1 and ::2); neighbour discovery then uses the link too
    #[arg(long)]
    ipv6: bool,
    /// Command that starts in namespace b through `sh -c`, half a second before COMMAND, and ends with the link
    #[arg(long, value_name = "COMMAND")]
    peer: Option<String>,
    #[command(flatten)]
    node: node::Options,
    /// Capture the packets that namespace a sends and receives in a pcap file
    #[arg(long, value_name = "FILE")]
    pcap_a: Option<PathBuf>,
    /// Capture the packets that namespace b sends and receives in a pcap file
    #[arg(long, value_name = "FILE")]
    pcap_b: Option<PathBuf>,
    /// Time between two status lines on stderr; 0s prints none
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Print the totals as one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Program to run in namespace a, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The longest time between two looks whether the programs have ended.
const LOOK: Duration = Duration::from_millis(50);

/// Emulates until Ctrl-C, or until the command ends.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let seed = args.seed.map_or_else(clock::fresh_seed, Seed);
    let plan = Plan {
        name: args.name.clone(),
        mtu: args.mtu,
        ipv6: args.ipv6,
        links: args.link.configs()?,
        seed,
    };
    let stop = stop_at_interrupt()?;
    let mut emulator = if args.node.node {
        let config = args.node.config(args.mtu)?;
        Emulator::open_with_node(&plan, &config, node::Options::applications())?
    } else {
        Emulator::open(&plan)?
    };
    for (end, file) in [(End::A, &args.pcap_a), (End::B, &args.pcap_b)] {
        if let Some(file) = file {
            let unwritable = |error| Failure::own(format!("{}: {error}", file.display()));
            let out = BufWriter::new(File::create(file).map_err(unwritable)?);
            emulator.capture(end, Capture::new(Box::new(out)).map_err(unwritable)?);
        }
    }
    let [a, b] = End::BOTH.map(|end| emulator.namespace(end));
    match (a, b) {
        (Some(a), Some(b)) => say!("{a} (10.9.0.1) and {b} (10.9.0.2), seed {}", seed.0),
        (a, b) => {
            let name = a.or(b).unwrap_or_default();
            say!("{name} (fd00:6c6d::1) and a node ({EMULATED_NODE}), seed {}", seed.0);
        }
    }
    let peer = b.zip(args.peer.clone());
    let mut children = Children::new(a, peer, args.command.clone());
    let status = run(&mut emulator, &mut children, args.interval, &stop)?;
    if args.interval > Duration::ZERO {
        view::summary(&emulator);
    }
    if args.json {
        writeln!(out, "{}", view::json(&emulator, seed))?;
    }
    match status {
        0 => Ok(()),
        status => Err(Failure::Ended(status)),
    }
}

/// Carries packets until the command has ended; its exit code, or 0 after Ctrl-C.
fn run(
    emulator: &mut Emulator,
    children: &mut Children,
    interval: Duration,
    stop: &AtomicBool,
) -> Result<u8, Failure> {
    let mut meter = view::Meter::new(emulator);
    let mut next_line = Instant::ZERO + interval;
    while !stop.load(Ordering::Relaxed) {
        emulator.step(LOOK).map_err(|error| Failure::own(format!("the link failed: {error}")))?;
        if interval > Duration::ZERO && emulator.now() >= next_line {
            meter.line(emulator);
            next_line += interval;
        }
        if let Some(status) = children.watch(emulator.now())? {
            return Ok(status);
        }
    }
    Ok(0)
}

/// True once Ctrl-C or SIGTERM has come, so that the namespaces are removed before the end.
fn stop_at_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let waited = wait(async {
            let interrupted = interrupted().map_err(Failure::own)?;
            // The receiver exists until this message arrives.
            let _ = ready.send(());
            interrupted.await;
            Ok(())
        });
        flag.store(true, Ordering::Relaxed);
        waited
    });
    is_ready.recv().map_err(|_| Failure::own("cannot wait for signals"))?;
    Ok(stop)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::Config(_) | OpenError::Node(_) => {
                "`lowmesh emulate --help` shows the form of each value"
            }
            OpenError::Name(_) => "choose another with --name",
            OpenError::Rights => "run it as root, or with sudo",
            OpenError::NoTun(_) => {
                "`modprobe tun` loads it; a container takes `--device /dev/net/tun`"
            }
            OpenError::NoIp => "install iproute2",
            OpenError::Exists(_) => {
                "choose another with --name; `ip netns delete` removes a namespace that a killed program has left"
            }
            OpenError::Command { .. } => "are you root, and is /run/netns writable?",
        };
        Self::usage(error, hint)
    }
}

#[cfg(test)]
mod tests;
