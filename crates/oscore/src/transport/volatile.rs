//! Security contexts in memory, for simulated nodes, which never restart.

use alloc::vec::Vec;
use core::cell::RefCell;

use lowmesh_wire::coap::stream::StreamMessage;

use super::{Answer, Failure, SecurityContexts, unprotect_with_any};
use crate::group::{self, Group};
use crate::params::{GROUP_OVERHEAD, OSCORE_OVERHEAD};
use crate::{
    Contexts, Identity, Opened, Pending, Received, Refusal, ResponseError, SecurityContext,
};

/// Contexts without storage of sequence numbers. A device that restarts must not use them: it would reuse nonces
/// (RFC 8613 appendix B.1.1).
#[derive(Debug)]
pub struct VolatileContexts {
    contexts: RefCell<Contexts>,
    groups: RefCell<Vec<Group>>,
}

impl VolatileContexts {
    /// Holds contexts that have not been used before.
    pub const fn new(contexts: Contexts) -> Self {
        Self { contexts: RefCell::new(contexts), groups: RefCell::new(Vec::new()) }
    }
    /// The same, and groups that have not been used before.
    #[must_use]
    pub fn with_groups(self, groups: Vec<Group>) -> Self {
        Self { groups: RefCell::new(groups), ..self }
    }
    /// Calls `act` with a group, after reserving a sequence number.
    fn with_group<R>(&self, group: usize, act: impl FnOnce(&mut Group) -> R) -> Result<R, Failure> {
        let mut groups = self.groups.borrow_mut();
        let group = groups.get_mut(group).ok_or(Failure::Closed)?;
        if let Some(reservation) = group.reservation_needed() {
            group.confirm(reservation);
        }
        Ok(act(group))
    }
    /// Calls `act` with a context, after reserving a sequence number.
    fn with<R>(
        &self,
        context: usize,
        act: impl FnOnce(&mut SecurityContext) -> R,
    ) -> Result<R, Failure> {
        let mut contexts = self.contexts.borrow_mut();
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
        Ok(self.contexts.borrow_mut().unprotect_request(outer))
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
    fn group_of(&self, outer: &StreamMessage) -> Option<usize> {
        self.groups.borrow().iter().position(|group| group.is_meant_by(outer))
    }
    fn protect_group_request(
        &self,
        group: usize,
        to: Option<Identity>,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, group::Pending), Failure> {
        self.with_group(group, |one| one.protect_request(to, request))?.map_err(Failure::Protect)
    }
    fn unprotect_group_response(
        &self,
        group: usize,
        pending: &mut group::Pending,
        outer: &StreamMessage,
        may_check: group::MayCheck<'_>,
    ) -> Result<Result<group::Answer, ResponseError>, Failure> {
        self.with_group(group, |one| one.unprotect_response_if(pending, outer, may_check))
    }
    fn unprotect_group_request(
        &self,
        group: usize,
        outer: &StreamMessage,
        may_check: group::MayCheck<'_>,
    ) -> Result<Result<(StreamMessage, group::Received), Refusal>, Failure> {
        self.with_group(group, |one| one.unprotect_request_if(outer, may_check))
    }
    fn protect_group_response(
        &self,
        group: usize,
        received: &mut group::Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, Failure> {
        self.with_group(group, |one| one.protect_response(received, response))?
            .map_err(Failure::Protect)
    }
    fn overhead(&self) -> usize {
        if self.groups.borrow().is_empty() { OSCORE_OVERHEAD } else { GROUP_OVERHEAD }
    }
}
