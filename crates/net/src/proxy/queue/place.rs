//! The place of one request: it waits for its turn, leaves, and is acknowledged.

use std::sync::{Arc, Mutex, PoisonError};

use lowmesh_shares::Newcomer;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;
use tokio::sync::oneshot;

use super::origin::Origin;
use super::{Id, Notice, Permit, Port, Queue};
use crate::params::{
    PROXY_ACKNOWLEDGED_GRACE, PROXY_UNACKNOWLEDGED_GRACE, PROXY_UNPROVEN_PAUSE,
    PROXY_UNPROVEN_SOON, PROXY_UNPROVEN_WAIT,
};

/// How often an unproven request that waits looks whether it may be its turn.
const UNPROVEN_LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// A request has it from its arrival to its answer.
#[derive(Debug)]
pub(in crate::proxy) struct Place {
    pub(super) queue: Queue,
    pub(super) asker: Port,
    pub(super) newcomer: Newcomer,
    pub(super) arrived: Instant,
    /// It has been asked for a proof before, and has none.
    pub(super) patient: bool,
    pub(super) origin: Arc<str>,
    pub(super) born: Id,
    pub(super) id: Id,
    pub(super) notice: Notice,
    /// Since when the request holds the window.
    pub(super) sent: Mutex<Option<Instant>>,
}

impl Place {
    /// Waits until it is the client's turn at this origin.
    pub(in crate::proxy) async fn permit(&self) -> Permit {
        let mut waiting = {
            let (mut state, now) = (self.queue.lock(), self.queue.clock.now());
            let may = |origin: &Origin| self.newcomer.proven || origin.is_for_unproven(now);
            match state.origin(&self.origin, self.born) {
                Some(origin) if origin.taken || !may(origin) => {
                    let (sender, receiver) = oneshot::channel();
                    origin.turns.wait(sender, self.newcomer);
                    Some(receiver)
                }
                Some(origin) => {
                    origin.taken = true;
                    origin.turns.taken_by(self.newcomer);
                    None
                }
                // It has lost its place, and there is no turn that it could pass on.
                None => return Permit { queue: self.queue.clone(), origin: None },
            }
        };
        let permit = |origin| Permit { queue: self.queue.clone(), origin };
        let Some(receiver) = &mut waiting else {
            return permit(Some((self.origin.clone(), self.born)));
        };
        loop {
            tokio::select! {
                biased;
                // With its origin a sender is forgotten, and the place is lost.
                permitted = &mut *receiver => return permitted.unwrap_or_else(|_| permit(None)),
                // Time alone may make it the turn of an unproven client.
                () = tokio::time::sleep(UNPROVEN_LOOK), if !self.newcomer.proven => {
                    self.queue.offer(&self.origin, self.born);
                }
            }
        }
    }
    /// Resolves when an unproven request has waited for more than [`PROXY_UNPROVEN_WAIT`], or will. The proxy then sends Echo
    /// (RFC 9175 s2.3): a client that has proven its address comes first. A client that returns no value waits on, and so does
    /// one that may not be asked any more.
    pub(in crate::proxy) async fn out_of_patience(&self, method: Code) {
        if self.newcomer.proven || self.patient || !self.may_ask(method) {
            std::future::pending::<()>().await;
        }
        let until = self.queue.clock.now() + Duration::from(PROXY_UNPROVEN_WAIT);
        loop {
            // The last time to ask is before the next look.
            let is_last = !self.may_ask_in(method, UNPROVEN_LOOK.into());
            let most = if is_last { PROXY_UNPROVEN_SOON } else { PROXY_UNPROVEN_WAIT };
            if self.is_late(until, most.into()) {
                break;
            }
            if is_last {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(UNPROVEN_LOOK).await;
        }
        let is_due = self.queue.lock().challenged.is_due(self.asker, self.queue.clock.now());
        if !is_due {
            std::future::pending::<()>().await;
        }
    }
    /// Whether the answer may be nothing but the question for a proof. libcoap repeats a request that changes something with the
    /// value of the acknowledgement, and not with that of a separate response: its user would hear of a failure.
    pub(in crate::proxy) fn may_ask(&self, method: Code) -> bool {
        self.may_ask_in(method, Duration::ZERO)
    }
    fn may_ask_in(&self, method: Code, wait: Duration) -> bool {
        let reads = matches!(method, Code::GET | Code::FETCH);
        let acknowledged = self.arrived + self.queue.bounds.ack_delay;
        reads || self.queue.clock.now() + wait < acknowledged
    }
    /// Whether a proof would have been better than to wait until now.
    fn is_late(&self, until: Instant, most: Duration) -> bool {
        let (mut state, now) = (self.queue.lock(), self.queue.clock.now());
        let origin = state.origin(&self.origin, self.born);
        now >= until || origin.is_some_and(|one| one.unproven_wait(now) > most)
    }
    /// The request has left for its origin, which has a while to acknowledge it.
    pub(in crate::proxy) fn sent(&self) {
        self.keep(PROXY_UNACKNOWLEDGED_GRACE);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.newcomer.proven && sent.is_none() {
            *sent = Some(self.queue.clock.now());
            if let Some(origin) = self.queue.lock().origin(&self.origin, self.born) {
                origin.unproven_sent += 1;
                origin.unproven_sent_at = self.queue.clock.now();
            }
        }
    }
    /// The origin has the request, and has longer to answer it.
    pub(in crate::proxy) fn acknowledged(&self) {
        self.keep(PROXY_ACKNOWLEDGED_GRACE);
        self.release();
    }
    /// The request of an unproven client no longer holds the window.
    fn release(&self) {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(sent), now) = (sent, self.queue.clock.now()) else { return };
        if let Some(origin) = self.queue.lock().origin(&self.origin, self.born) {
            origin.unproven_sent = origin.unproven_sent.saturating_sub(1);
            origin.unproven_from = now + now.since(sent).saturating_mul(PROXY_UNPROVEN_PAUSE);
        }
        self.queue.offer(&self.origin, self.born);
    }
    fn keep(&self, grace: std::time::Duration) {
        let then = self.queue.clock.now() + Duration::from(grace);
        let mut state = self.queue.lock();
        state.requests.yield_at(&self.id, then);
        if let Some(origin) = state.origin(&self.origin, self.born) {
            origin.requests.yield_at(&self.id, then);
        }
    }
    /// Waits until the place is another's.
    pub(in crate::proxy) async fn lost(&self) {
        self.notice.lost().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
        let mut state = self.queue.lock();
        state.all.remove(&self.id);
        state.requests.leave(&self.id);
        state.forget(&self.origin, self.id);
    }
}
