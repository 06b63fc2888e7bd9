//! Security contexts in memory, for simulated nodes, which never restart.

use core::cell::RefCell;

use lowmesh_wire::coap::stream::StreamMessage;

use super::{Answer, Failure, SecurityContexts, unprotect_with_any};
use crate::{Contexts, Opened, Pending, Received, Refusal, ResponseError, SecurityContext};

/// Contexts without storage of sequence numbers. A device that restarts must not use them: it would reuse nonces
/// (RFC 8613 appendix B.1.1).
#[derive(Debug)]
pub struct VolatileContexts(RefCell<Contexts>);

impl VolatileContexts {
    /// Holds contexts that have not been used before.
    pub const fn new(contexts: Contexts) -> Self {
        Self(RefCell::new(contexts))
    }
    /// Calls `act` with a context, after reserving a sequence number.
    fn with<R>(
        &self,
        context: usize,
        act: impl FnOnce(&mut SecurityContext) -> R,
    ) -> Result<R, Failure> {
        let mut contexts = self.0.borrow_mut();
        if let Some(reservation) = contexts.reservation_needed(context) {
            contexts.confirm(context, reservation);
        }
        contexts.get_mut(context).map(act).ok_or(Failure::Closed)
    }
}

impl SecurityContexts for VolatileContexts {
    fn protect_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), Failure> {
        self.with(context, |context| context.protect_request(request))?.map_err(Failure::Protect)
    }
    fn unprotect_response(
        &self,
        context: usize,
        requests: &mut [Pending],
        outer: &StreamMessage,
    ) -> Result<Result<Answer, ResponseError>, Failure> {
        self.with(context, |context| {
            unprotect_with_any(requests, |pending| {
                Ok(context.unprotect_response(pending, outer).map(Answer::Response))
            })
        })?
    }
    fn unprotect_request(&self, outer: &StreamMessage) -> Result<Result<Opened, Refusal>, Failure> {
        Ok(self.0.borrow_mut().unprotect_request(outer))
    }
    fn protect_response(
        &self,
        context: usize,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, Failure> {
        self.with(context, |context| context.protect_response(received, response))?
            .map_err(Failure::Protect)
    }
}
