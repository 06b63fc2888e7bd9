//! What the parts of a node have in common, lent to each for the length of a call: settings, the one stream of random
//! numbers, deadlines, and what comes out.

use lowmesh_machine::Outbox;
use lowmesh_units::{Duration, Rng};
use lowmesh_wire::rpl::Message;

use crate::config::Config;
use crate::event::{Destination, Output};
use crate::timer::Timers;

#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox<Output>,
}

impl Base {
    pub(crate) const fn new(config: Config, rng: Rng) -> Self {
        Self { config, rng, timers: Timers::new(), outbox: Outbox::new() }
    }
    pub(crate) fn send(&mut self, to: Destination, message: Message) {
        self.outbox.push(Output::Send { to, message });
    }
    /// Half to one and a half times `mean`.
    pub(crate) fn jittered(&mut self, mean: Duration) -> Duration {
        self.rng.duration(mean / 2, mean + mean / 2)
    }
}
