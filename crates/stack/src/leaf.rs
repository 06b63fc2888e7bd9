//! A leaf that runs no RPL: a host of the mesh, which finds a router among its neighbours, registers its address with it, and
//! renews the registration (RFC 6775 s5.3 to s5.5, RFC 8505 s5.6, RFC 9010 s9.2.1).
//!
//! ```text
//!   Off ──start──> Seeking ──wait over, routers heard──> Asking ──answer, R──> Registered
//!                     ^  └── nobody: ask again             │ ^                   │
//!                     └───── refused, or no answer ────────┘ └── time to renew ──┘
//! ```
//! It takes the router with the best link, of those that advertise themselves as default routers for its prefix. That router
//! is also its time source and its default route. A router that did not answer, or refused, comes after all others for a while.

use alloc::vec::Vec;

use lowmesh_machine::Outbox;
use lowmesh_sixtop::Event;
use lowmesh_units::{Duration, Eui64, Instant, Rng, Sequence};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};
use lowmesh_wire::router::{RouterAdvertisement, RouterSolicitation};

use crate::params;
use crate::routing::Output;

/// Status of a registration that a later one overtook: RFC 8505 s4.1, table 1.
const MOVED: u8 = 3;

/// A router that was heard.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    router: Eui64,
    /// The ETX of the link to it, and its level in dBm.
    link: (u16, f64),
}

/// What it does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its link layer is down.
    Off,
    /// It has asked for routers so often.
    Seeking { asked: u32 },
    /// It has asked this router so often for the registration.
    Asking { router: Eui64, asked: u32 },
    /// Nothing is to do until it renews the registration.
    Registered { router: Eui64 },
}

/// The routing of a leaf.
#[derive(Debug)]
pub(crate) struct Leaf {
    node: Eui64,
    address: Address,
    phase: Phase,
    /// The router that it chose: its parent.
    router: Option<Eui64>,
    /// Whether it is registered there, also while it renews that.
    is_registered: bool,
    candidates: Vec<Candidate>,
    /// Routers that come last, and until when.
    avoided: Vec<(Eui64, Instant)>,
    /// TID.
    number: Sequence,
    due: Option<Instant>,
    rng: Rng,
    outbox: Outbox<Output>,
}

impl Leaf {
    /// A leaf that is off.
    pub(crate) const fn new(node: Eui64, address: Address, rng: Rng) -> Self {
        Self {
            node,
            address,
            phase: Phase::Off,
            router: None,
            is_registered: false,
            candidates: Vec::new(),
            avoided: Vec::new(),
            number: Sequence::START,
            due: None,
            rng,
            outbox: Outbox::new(),
        }
    }

    /// The router that it chose.
    pub(crate) const fn router(&self) -> Option<Eui64> {
        self.router
    }
    /// The router that it is registered with.
    pub(crate) fn registered(&self) -> Option<Eui64> {
        self.router.filter(|_| self.is_registered)
    }
    pub(crate) const fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    /// The link layer is up.
    pub(crate) fn start(&mut self, now: Instant) {
        self.seek(now);
    }
    /// The link layer is down.
    pub(crate) fn stop(&mut self) {
        (self.phase, self.due) = (Phase::Off, None);
        self.candidates.clear();
        self.leave_router();
    }
    /// The link layer gave a neighbour up.
    pub(crate) fn on_gone(&mut self, now: Instant, neighbour: Eui64) {
        self.candidates.retain(|one| one.router != neighbour);
        if self.current() == Some(neighbour) {
            self.give_up(now, neighbour);
        }
    }

    /// A neighbour advertises itself as a router, over a link of this ETX and level.
    pub(crate) fn on_router(
        &mut self,
        router: Eui64,
        link: (u16, f64),
        said: &RouterAdvertisement,
    ) {
        let is_own =
            |bits: u8, prefix: &Address| bits == 64 && prefix.prefix() == self.address.prefix();
        let serves =
            said.prefixes.iter().any(|one| one.autonomous && is_own(one.bits, &one.prefix));
        self.candidates.retain(|one| one.router != router);
        // RFC 4861 s4.2: with a lifetime of zero it is no default router.
        if serves && said.lifetime > 0 && self.candidates.len() < params::LEAF_CANDIDATES {
            self.candidates.push(Candidate { router, link });
        }
    }

    /// A neighbour answers a registration, or takes it back.
    pub(crate) fn on_answer(&mut self, now: Instant, from: Eui64, said: &Advertisement) {
        let Some(answer) = said.registration.filter(|one| one.node == self.node) else { return };
        let is_latest = answer.number() == Some(self.number);
        if said.target != self.address || self.current() != Some(from) || !is_latest {
            return;
        }
        match answer.status {
            0 if answer.is_routed() => self.on_registered(now, from),
            MOVED => {
                // The leaf lost its memory, and counts from the start again: it leaves the window of the old number.
                for _ in 0..params::LEAF_NUMBERS_SKIPPED {
                    self.number = self.number.next();
                }
                let asked = match self.phase {
                    Phase::Asking { asked, .. } => asked,
                    _ => 0,
                };
                if asked < params::LEAF_TRIES {
                    self.ask(now, from, asked);
                } else {
                    self.give_up(now, from);
                }
            }
            _ => self.give_up(now, from),
        }
    }

    /// The time of [`Leaf::next_deadline`] has come.
    pub(crate) fn on_deadline(&mut self, now: Instant) {
        self.due = None;
        match self.phase {
            Phase::Off => {}
            Phase::Seeking { asked } => match self.best(now) {
                Some(router) => {
                    self.number = self.number.next();
                    self.ask(now, router, 0);
                }
                None => self.solicit(now, asked),
            },
            Phase::Registered { router } => {
                self.number = self.number.next();
                self.ask(now, router, 0);
            }
            Phase::Asking { router, asked } if asked < params::LEAF_TRIES => {
                self.ask(now, router, asked);
            }
            Phase::Asking { router, .. } => self.give_up(now, router),
        }
    }

    /// The router that it is registered with, or asks.
    const fn current(&self) -> Option<Eui64> {
        match self.phase {
            Phase::Asking { router, .. } | Phase::Registered { router } => Some(router),
            Phase::Off | Phase::Seeking { .. } => None,
        }
    }

    fn seek(&mut self, now: Instant) {
        self.candidates.clear();
        self.phase = Phase::Seeking { asked: 0 };
        // RFC 4861 s6.3.7: hosts that start together do not all ask at once.
        self.due = Some(now + self.rng.duration(Duration::ZERO, params::LEAF_START_MAX));
    }
    fn solicit(&mut self, now: Instant, asked: u32) {
        let message = RouterSolicitation { source_node: Some(self.node) };
        let message = Icmpv6::RouterSolicitation(message);
        self.outbox.push(Output::Discover { to: Address::ALL_ROUTERS, message });
        self.phase = Phase::Seeking { asked: asked.saturating_add(1) };
        // RFC 6775 s5.3: the first few at one interval, then ever longer ones.
        let doublings = (asked + 1).saturating_sub(params::LEAF_SOLICITATIONS).min(8);
        let wait = (params::LEAF_SOLICITATION_WAIT * (1 << doublings))
            .min(params::LEAF_SOLICITATION_WAIT_MAX);
        self.due = Some(now + wait);
    }

    /// The router to ask: one that is not avoided, with the least ETX, and of those the one heard best.
    fn best(&mut self, now: Instant) -> Option<Eui64> {
        self.avoided.retain(|(_, until)| *until > now);
        let is_avoided = |router: Eui64| self.avoided.iter().any(|(one, _)| *one == router);
        let better = |a: &&Candidate, b: &&Candidate| {
            let key = |one: &Candidate| (is_avoided(one.router), one.link.0);
            let level = b.link.1.total_cmp(&a.link.1);
            key(a).cmp(&key(b)).then(level).then(a.router.cmp(&b.router))
        };
        self.candidates.iter().min_by(better).map(|one| one.router)
    }

    /// Asks a router to register the address, for one more time than `asked`.
    fn ask(&mut self, now: Instant, router: Eui64, asked: u32) {
        if self.router != Some(router) {
            // Before the question: its cells are where the answer comes, as with a RPL parent and a DAO.
            let old = self.router.replace(router);
            self.is_registered = false;
            self.outbox.push(Output::Parent { old, new: Some(router), is_root: false });
        }
        let registration = Registration {
            status: 0,
            opaque: 0,
            flags: Registration::COUNTS | Registration::ROUTED,
            transaction_id: self.number.0,
            lifetime_minutes: params::LEAF_LIFETIME_MINUTES,
            node: self.node,
        };
        let message = Icmpv6::NeighbourSolicitation(Solicitation {
            target: self.address,
            source_node: Some(self.node),
            registration: Some(registration),
        });
        self.outbox.push(Output::Discover { to: Address::link_local(router), message });
        self.phase = Phase::Asking { router, asked: asked + 1 };
        let wait = params::LEAF_ANSWER_WAIT * (1 << asked.min(8));
        self.due = Some(now + self.rng.duration(wait, wait + wait / 2));
    }

    fn on_registered(&mut self, now: Instant, router: Eui64) {
        self.phase = Phase::Registered { router };
        self.is_registered = true;
        let lifetime = Duration::from_secs(60 * u64::from(params::LEAF_LIFETIME_MINUTES));
        // Halfway, so that an exchange lost with all its repeats has a second chance.
        self.due = Some(now + self.rng.duration(lifetime * 2 / 5, lifetime / 2));
        self.outbox.push(Output::Scheduling(Event::KnownToParent(router)));
    }

    /// The router does not answer, or refuses: another one shall do.
    fn give_up(&mut self, now: Instant, router: Eui64) {
        self.avoided.retain(|(one, _)| *one != router);
        if self.avoided.len() >= params::LEAF_CANDIDATES {
            self.avoided.remove(0);
        }
        self.avoided.push((router, now + params::LEAF_AVOIDS));
        self.leave_router();
        self.seek(now);
    }
    fn leave_router(&mut self) {
        self.is_registered = false;
        if let Some(router) = self.router.take() {
            self.outbox.push(Output::Parent { old: Some(router), new: None, is_root: false });
        }
    }
}

#[cfg(test)]
mod tests;
