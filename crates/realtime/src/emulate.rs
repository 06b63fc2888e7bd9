//! A constrained link between two network namespaces of this machine, for any real program: packets leave one namespace
//! through a TUN device, cross a [`Link`] in real time, and enter the other. Linux only.
//!
//! ```text
//!   namespace a ── TUN ──> Link a to b ──> TUN ── namespace b
//!               <── TUN ── Link b to a <── TUN ──
//! ```
//!
//! [`Emulator::open`] makes both namespaces and removes them when it is dropped. Its caller repeats [`Emulator::step`].
//! Making namespaces and devices needs root; errors say what is missing. [`Emulator::open_with_node`] puts a node of
//! `lowmesh-stack` in place of namespace b, so that programs of others talk with our own IPv6, TCP and CoAP.

mod capture;
mod namespace;
mod node;

use std::io;
use std::os::fd::AsFd as _;

use lowmesh_machine::{Machine as _, earliest};
use lowmesh_stack::{Application, Config};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wired::{self as wired, Counters, Link};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use tun_rs::SyncDevice;

pub use self::capture::Capture;
pub use self::namespace::OpenError;
use self::namespace::{Namespace, tun};
use self::node::EndNode;
use crate::params::{EMULATED_BURST_PACKETS, EMULATED_PACKET_OCTETS_MAX};
use lowmesh_net::clock::Clock;

/// What to emulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The namespaces are named after it: `NAME-a` and `NAME-b`.
    pub name: String,
    /// The largest packet of both devices in octets.
    pub mtu: u16,
    /// Gives both ends IPv6 addresses too; their neighbour discovery then shares the link.
    pub ipv6: bool,
    /// The link from a to b, and the link from b to a.
    pub links: [wired::Config; 2],
    /// Jitter and loss are drawn from it.
    pub seed: Seed,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first.
    A,
    /// The second.
    B,
}

impl End {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    const fn index(self) -> usize {
        self as usize
    }
    const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// The totals of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Packets and octets.
    pub counters: Counters,
    /// Octets in the queue now.
    pub queued_octets: u64,
    /// The most octets that ever waited.
    pub queued_octets_max: u64,
    /// The mean of octets that waited, over time.
    pub queued_octets_mean: f64,
}

/// What is at an end.
enum Place {
    Namespace { namespace: Namespace, device: SyncDevice },
    Node(EndNode),
}

/// One end, and the link that begins here.
struct Side {
    place: Place,
    link: Link<Vec<u8>>,
    capture: Option<Capture>,
}

/// A link between two namespaces, which exist as long as the emulator.
pub struct Emulator {
    sides: [Side; 2],
    ipv6: bool,
    clock: Clock,
}

impl Emulator {
    /// Makes the namespaces, their devices and addresses. What was made before an error is removed.
    pub fn open(plan: &Plan) -> Result<Self, OpenError> {
        Self::between(plan, [namespace(plan, End::A)?, namespace(plan, End::B)?])
    }
    /// Makes namespace a, which has IPv6, and switches on a node with these settings and applications at b. Its address is
    /// [`EMULATED_NODE`](crate::params::EMULATED_NODE).
    pub fn open_with_node(
        plan: &Plan,
        config: &Config,
        applications: Vec<Box<dyn Application>>,
    ) -> Result<Self, OpenError> {
        let node = EndNode::new(config, applications, plan.seed)?;
        let plan = Plan { ipv6: true, ..plan.clone() };
        let near = namespace(&plan, End::A)?;
        if let Place::Namespace { namespace, .. } = &near {
            namespace.route_to_node()?;
        }
        Self::between(&plan, [near, Place::Node(node)])
    }
    fn between(plan: &Plan, [a, b]: [Place; 2]) -> Result<Self, OpenError> {
        let side = |end: End, place: Place| -> Result<Side, OpenError> {
            let rng = Rng::stream(plan.seed, NodeId(end.index() as u16), Purpose::Wired);
            let link = Link::new(plan.links[end.index()], rng)?;
            Ok(Side { place, link, capture: None })
        };
        let sides = [side(End::A, a)?, side(End::B, b)?];
        Ok(Self { sides, ipv6: plan.ipv6, clock: Clock::start() })
    }
    /// The name of the namespace of an end, for `ip netns exec`; `None` for a node.
    pub fn namespace(&self, end: End) -> Option<&str> {
        match &self.sides[end.index()].place {
            Place::Namespace { namespace, .. } => Some(namespace.name()),
            Place::Node(_) => None,
        }
    }
    /// The time since the start.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// Records the packets that leave an end and arrive at it.
    pub fn capture(&mut self, end: End, capture: Capture) {
        self.sides[end.index()].capture = Some(capture);
    }
    /// What the link that begins at `end` has carried.
    pub fn totals(&self, end: End) -> Totals {
        let link = &self.sides[end.index()].link;
        Totals {
            counters: link.counters(),
            queued_octets: link.queued_octets(),
            queued_octets_max: link.history().largest(),
            queued_octets_mean: link.history().mean(self.now()),
        }
    }
    /// Waits for a packet or for a time of a link or a node, at most `wait_max`, and works off what is due.
    pub fn step(&mut self, wait_max: Duration) -> io::Result<()> {
        let due = self.sides.iter().map(Side::next_deadline).fold(None, earliest);
        let wait = due.map_or(wait_max, |due| due.since(self.now()).min(wait_max));
        self.wait(wait)?;
        for end in End::BOTH {
            self.receive(end)?;
            let now = self.now();
            let link = &mut self.sides[end.index()].link;
            if link.next_deadline().is_some_and(|due| due <= now) {
                let taken = link.handle(now, wired::Input::Deadline);
                lowmesh_machine::debug_assert_accepted(taken);
                self.deliver(end)?;
            }
        }
        Ok(())
    }
    fn wait(&self, wait: Duration) -> io::Result<()> {
        let devices = self.sides.iter().filter_map(Side::device);
        let mut watched: Vec<PollFd<'_>> =
            devices.map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect();
        match ppoll(&mut watched, Some(TimeSpec::from_duration(wait.into())), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
    /// Takes the packets that have left an end: all of a node, and of a device as many as fit between two looks at the
    /// clock of the links.
    fn receive(&mut self, end: End) -> io::Result<()> {
        let mut buffer = vec![0; EMULATED_PACKET_OCTETS_MAX];
        let mut burst = 0;
        while burst < EMULATED_BURST_PACKETS {
            let now = self.clock.now();
            let packet = match &mut self.sides[end.index()].place {
                Place::Node(node) => node.next_packet(now),
                Place::Namespace { device, .. } => {
                    burst += 1;
                    match device.recv(&mut buffer) {
                        Ok(octets) => Some(buffer[..octets].to_vec()),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                        Err(error) => return Err(error),
                    }
                }
            };
            let Some(packet) = packet else { return Ok(()) };
            if packet.is_empty() || (packet[0] >> 4 == 6 && !self.ipv6) {
                continue;
            }
            self.send(end, now, packet)?;
        }
        Ok(())
    }
    /// Gives a packet to the link that begins at an end.
    fn send(&mut self, from: End, now: Instant, packet: Vec<u8>) -> io::Result<()> {
        let side = &mut self.sides[from.index()];
        if let Some(capture) = &mut side.capture {
            capture.write(now, &packet)?;
        }
        let octets = packet.len() as u32;
        let taken = side.link.handle(now, wired::Input::Packet { packet, octets });
        lowmesh_machine::debug_assert_accepted(taken);
        self.deliver(from)
    }
    /// Passes what has crossed the link that begins at `from` to the other end.
    fn deliver(&mut self, from: End) -> io::Result<()> {
        while let Some(output) = self.sides[from.index()].link.poll_output() {
            let wired::Output::Arrived(packet) = output else { continue };
            let now = self.clock.now();
            let side = &mut self.sides[from.other().index()];
            if let Some(capture) = &mut side.capture {
                capture.write(now, &packet)?;
            }
            match &mut side.place {
                // The program at that end may have set the device down, which loses the packet.
                Place::Namespace { device, .. } => _ = device.send(&packet),
                Place::Node(node) => node.receive(now, packet),
            }
        }
        Ok(())
    }
}

impl Side {
    const fn device(&self) -> Option<&SyncDevice> {
        match &self.place {
            Place::Namespace { device, .. } => Some(device),
            Place::Node(_) => None,
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        let node = match &self.place {
            Place::Namespace { .. } => None,
            Place::Node(node) => node.next_deadline(),
        };
        earliest(node, self.link.next_deadline())
    }
}

/// Makes the namespace of an end, with a device and addresses.
fn namespace(plan: &Plan, end: End) -> Result<Place, OpenError> {
    let name = format!("{}-{}", plan.name, ["a", "b"][end.index()]);
    let device = tun(&name)?;
    let namespace = Namespace::create(&name)?;
    namespace.adopt(end, plan.mtu, plan.ipv6)?;
    Ok(Place::Namespace { namespace, device })
}

#[cfg(test)]
mod tests;
