//! Router Advertisements that wait for their delay (RFC 4861 s6.2.6): routers that hear one solicitation do not all answer
//! it at once.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Eui64, Instant, Rng};

use crate::error::Message;
use crate::params::{ADVERTISEMENTS_WAITING, MAX_RA_DELAY_TIME};

/// The advertisements that wait, at most [`ADVERTISEMENTS_WAITING`].
#[derive(Debug)]
pub(crate) struct Advertisements {
    rng: Rng,
    waiting: Vec<(Instant, Message, Option<Eui64>)>,
}

impl Advertisements {
    pub const fn new(rng: Rng) -> Self {
        Self { rng, waiting: Vec::new() }
    }
    /// Lets `message` to `node` wait for a random delay. One advertisement answers all solicitations that came since it began
    /// to wait. When too many wait, the message is lost, and the host asks again.
    pub fn push(&mut self, now: Instant, message: Message, node: Option<Eui64>) {
        let to = message.destination;
        let waits = self.waiting.iter().any(|(_, other, _)| other.destination == to);
        if waits || self.waiting.len() >= ADVERTISEMENTS_WAITING {
            return;
        }
        let delay = MAX_RA_DELAY_TIME.mul_f64(self.rng.unit());
        self.waiting.push((now + delay.max(Duration::from_nanos(1)), message, node));
    }
    /// Takes a message whose delay is over.
    pub fn take(&mut self, now: Instant) -> Option<(Message, Option<Eui64>)> {
        let place = self.waiting.iter().position(|(due, ..)| *due <= now)?;
        let (_, message, node) = self.waiting.remove(place);
        Some((message, node))
    }
    /// When the next one leaves.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|(due, ..)| *due).min()
    }
}
