//! Requests to members that are under way, and which of their ends the manager gets.
//!
//! A gate may cancel a request and repeat it under the same name. The end of the cancelled one can wait in the mailbox
//! already, and says nothing about the repetition. So each attempt has a number, and an end without a response counts
//! only for the latest attempt. A response is one, whichever attempt it answers.

use std::collections::HashMap;

use lowmesh_group::{ExchangeId, Input};
use tokio::task::AbortHandle;

/// Names one attempt of one request.
pub(super) type Attempt = u64;

/// The latest attempt of a request.
#[derive(Debug)]
struct Latest {
    attempt: Attempt,
    running: AbortHandle,
    /// Notifications may follow its response.
    observes: bool,
}

/// The latest attempt of each request that is not over.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    serial: Attempt,
    latest: HashMap<ExchangeId, Latest>,
}

/// A manager that ends waits for no member.
impl Drop for Attempts {
    fn drop(&mut self) {
        self.latest.values().for_each(|latest| latest.running.abort());
    }
}

impl Attempts {
    /// Starts an attempt with its number; `observes` says that notifications may follow the response.
    pub(super) fn begin(
        &mut self,
        exchange: ExchangeId,
        observes: bool,
        start: impl FnOnce(Attempt) -> AbortHandle,
    ) {
        self.serial += 1;
        let (attempt, running) = (self.serial, start(self.serial));
        self.latest.insert(exchange, Latest { attempt, running, observes });
    }
    /// The end of a request is no longer of interest.
    pub(super) fn cancel(&mut self, exchange: ExchangeId) {
        if let Some(latest) = self.latest.remove(&exchange) {
            latest.running.abort();
        }
    }
    /// Whether the manager gets what an attempt leads to.
    pub(super) fn admits(&mut self, attempt: Attempt, input: &Input) -> bool {
        match input {
            Input::Response { exchange, .. } => {
                match self.latest.get(exchange) {
                    Some(latest) if latest.attempt == attempt && latest.observes => {}
                    // Its own attempt has ended already; a later one has no more use.
                    _ => self.cancel(*exchange),
                }
                true
            }
            Input::Over { exchange }
            | Input::Failed { exchange, .. }
            | Input::Faulty { exchange, .. } => {
                let is_latest = self.is_latest(*exchange, attempt);
                if is_latest {
                    self.latest.remove(exchange);
                }
                is_latest
            }
            Input::Notification { exchange, .. } | Input::GroupResponse { exchange, .. } => {
                self.is_latest(*exchange, attempt)
            }
            _ => true,
        }
    }
    fn is_latest(&self, exchange: ExchangeId, attempt: Attempt) -> bool {
        self.latest.get(&exchange).is_some_and(|latest| latest.attempt == attempt)
    }
}
