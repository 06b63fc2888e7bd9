//! What an exchange engine wants done, and how often messages came to nothing; the same over datagrams and connections.

use lowmesh_machine::{DropReason, Outbox};

use crate::event::{Counters, Discard, Fault};
use crate::exchange::{Name, Output};

/// The outputs of an engine, in their order.
#[derive(Debug)]
pub(crate) struct Outputs<P> {
    outbox: Outbox<Output<P>>,
    pub(crate) counters: Counters,
}

impl<P> Outputs<P> {
    /// No outputs.
    pub(crate) const fn new() -> Self {
        Self { outbox: Outbox::new(), counters: Counters::new() }
    }
    /// Adds an output at the end.
    pub(crate) fn push(&mut self, output: Output<P>) {
        self.outbox.push(output);
    }
    /// Takes the oldest output.
    pub(crate) fn pop(&mut self) -> Option<Output<P>> {
        self.outbox.pop()
    }
    /// An own exchange is over without success.
    pub(crate) fn fail(&mut self, handle: Name, reason: DropReason) {
        self.push(Output::Failed { handle, reason });
    }
    /// The same because of what the peer answered.
    pub(crate) fn fail_by(&mut self, handle: Name, reason: DropReason, fault: Fault) {
        self.push(Output::Fault { handle, fault });
        self.fail(handle, reason);
    }
    /// A message came to nothing.
    pub(crate) fn discard(&mut self, from: P, cause: Discard) {
        self.counters.count(cause);
        self.push(Output::Discarded { from, cause });
    }
}
