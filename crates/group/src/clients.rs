//! Requests of clients: each is answered once, and no client takes the places of all.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use lowmesh_coap::ResponseTemplate;
use lowmesh_machine::Rejected;
use lowmesh_wire::coap::ContentFormat;

use crate::dispatch::{Dispatch, Output, RequestId};
use crate::params::{REQUESTS_A_CLIENT_MAX, REQUESTS_MAX};
use crate::refusal::Refusal;

/// The requests that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    open: BTreeMap<RequestId, (IpAddr, Option<ContentFormat>)>,
    shares: BTreeMap<IpAddr, usize>,
}

impl Clients {
    /// Takes a request in. Without a place it is answered with 5.03 at once, and the result is false.
    pub(crate) fn admit(
        &mut self,
        request: RequestId,
        client: IpAddr,
        dispatch: &mut Dispatch,
    ) -> Result<bool, Rejected> {
        if self.open.contains_key(&request) {
            return Err(Rejected::Taken { what: "request", why: "another one has this name" });
        }
        let share = self.shares.get(&client).copied().unwrap_or(0);
        if self.open.len() >= REQUESTS_MAX || share >= REQUESTS_A_CLIENT_MAX {
            let response = ResponseTemplate::busy();
            dispatch.push(Output::Respond { request, response });
            return Ok(false);
        }
        self.open.insert(request, (client, None));
        *self.shares.entry(client).or_insert(0) += 1;
        Ok(true)
    }
    /// Notes the format that the client of a request wants.
    pub(crate) fn set_accept(&mut self, request: RequestId, accept: Option<ContentFormat>) {
        if let Some((_, format)) = self.open.get_mut(&request) {
            *format = accept;
        }
    }
    /// The address of the client of a request.
    pub(crate) fn address(&self, request: RequestId) -> Option<IpAddr> {
        self.open.get(&request).map(|(client, _)| *client)
    }
    pub(crate) fn accept(&self, request: RequestId) -> Option<ContentFormat> {
        self.open.get(&request).and_then(|(_, format)| *format)
    }
    /// Answers a request.
    pub(crate) fn respond(
        &mut self,
        dispatch: &mut Dispatch,
        request: RequestId,
        response: ResponseTemplate,
    ) {
        let Some((client, _)) = self.open.remove(&request) else { return };
        if let Some(share) = self.shares.get_mut(&client) {
            *share -= 1;
            if *share == 0 {
                self.shares.remove(&client);
            }
        }
        dispatch.push(Output::Respond { request, response });
    }
    /// Answers a request with a refusal.
    pub(crate) fn refuse(&mut self, dispatch: &mut Dispatch, request: RequestId, refusal: Refusal) {
        self.respond(dispatch, request, refusal.into_response());
    }
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
