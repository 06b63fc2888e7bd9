//! Security contexts in memory alone, for a node that is never switched off: a simulated one.

use core::cell::RefCell;

use lowmesh_wire::coap::stream::StreamMessage;

use super::{Answer, Failure, SecurityContexts};
use crate::{Contexts, Opened, Pending, Received, Refusal, ResponseError, SecurityContext};

/// Contexts whose sequence numbers are taken as stored at once. A device that restarts would use numbers twice with them
/// (RFC 8613 appendix B.1.1).
#[derive(Debug)]
pub struct VolatileContexts(RefCell<Contexts>);

impl VolatileContexts {
    /// These contexts, none of which has been used before.
    pub const fn new(contexts: Contexts) -> Self {
        Self(RefCell::new(contexts))
    }
    /// Does something with a context that has a sequence number left.
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
            let mut result = Err(ResponseError::Forged);
            for pending in requests {
                result = context.unprotect_response(pending, outer).map(Answer::Response);
                if result != Err(ResponseError::Forged) {
                    break;
                }
            }
            result
        })
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
