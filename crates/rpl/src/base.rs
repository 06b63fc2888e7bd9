//! What the parts of a node have in common, lent to each for the length of a call: settings, the objective function, the
//! one stream of random numbers, deadlines, and what comes out.

use alloc::boxed::Box;

use lowmesh_machine::Outbox;
use lowmesh_units::{Duration, Rng};
use lowmesh_wire::rpl::Message;

use crate::config::Config;
use crate::event::{Destination, Output};
use crate::objective::{ObjectiveFunction, make};
use crate::timer::Timers;

#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) config: Config,
    pub(crate) objective: Box<dyn ObjectiveFunction>,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox<Output>,
}

impl Base {
    pub(crate) fn new(config: Config, rng: Rng) -> Self {
        let objective = make(&config.objective);
        Self { config, objective, rng, timers: Timers::new(), outbox: Outbox::new() }
    }
    pub(crate) fn send(&mut self, to: Destination, message: Message) {
        self.outbox.push(Output::Send { to, message });
    }
    /// Half to one and a half times `mean`.
    pub(crate) fn jittered(&mut self, mean: Duration) -> Duration {
        self.rng.duration(mean / 2, mean + mean / 2)
    }
}
