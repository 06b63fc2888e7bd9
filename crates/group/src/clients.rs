//! Requests of clients: each is answered once, and no client takes the places of all, nor all requests to members.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::observe::REGISTER;
use lowmesh_machine::Rejected;
use lowmesh_wire::coap::{ContentFormat, OptionNumber};

use crate::collector::response;
use crate::dispatch::Dispatch;
use crate::output::{Output, RequestId};
use crate::params::{EXCHANGES_A_CLIENT_MAX, EXCHANGES_MAX, REQUESTS_A_CLIENT_MAX, REQUESTS_MAX};
use crate::query::Finished;
use crate::refusal::Refusal;

/// One request that is not answered.
#[derive(Debug)]
struct Open {
    client: IpAddr,
    accept: Option<ContentFormat>,
    /// Requests to members that it makes.
    exchanges: usize,
}

/// What a client holds.
#[derive(Debug, Default)]
struct Share {
    requests: usize,
    exchanges: usize,
}

/// What a client gets that asked for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Response,
    /// The client observes: it may get further states.
    Notification,
}

/// The requests that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    open: BTreeMap<RequestId, Open>,
    shares: BTreeMap<IpAddr, Share>,
    exchanges: usize,
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
            return Err(Rejected::Taken { what: "request", why: "another request has this name" });
        }
        let share = self.shares.get(&client).map_or(0, |share| share.requests);
        if self.open.len() >= REQUESTS_MAX || share >= REQUESTS_A_CLIENT_MAX {
            let response = ResponseTemplate::busy();
            dispatch.push(Output::Respond { request, response });
            return Ok(false);
        }
        self.open.insert(request, Open { client, accept: None, exchanges: 0 });
        self.shares.entry(client).or_default().requests += 1;
        Ok(true)
    }
    /// Sets requests to members aside for a request; false if there are not so many left, or not for its client.
    pub(crate) fn set_aside(&mut self, request: RequestId, exchanges: usize) -> bool {
        let Some(open) = self.open.get_mut(&request) else { return false };
        let Some(share) = self.shares.get_mut(&open.client) else { return false };
        if self.exchanges + exchanges > EXCHANGES_MAX
            || share.exchanges + exchanges > EXCHANGES_A_CLIENT_MAX
        {
            return false;
        }
        open.exchanges += exchanges;
        share.exchanges += exchanges;
        self.exchanges += exchanges;
        true
    }
    /// Notes the format that the client of a request wants.
    pub(crate) fn set_accept(&mut self, request: RequestId, accept: Option<ContentFormat>) {
        if let Some(open) = self.open.get_mut(&request) {
            open.accept = accept;
        }
    }
    /// The address of the client of a request.
    pub(crate) fn address(&self, request: RequestId) -> Option<IpAddr> {
        self.open.get(&request).map(|open| open.client)
    }
    /// Answers a request.
    pub(crate) fn respond(
        &mut self,
        dispatch: &mut Dispatch,
        request: RequestId,
        response: ResponseTemplate,
    ) {
        let Some(Open { client, exchanges, .. }) = self.open.remove(&request) else { return };
        self.exchanges -= exchanges;
        if let Some(share) = self.shares.get_mut(&client) {
            share.requests -= 1;
            share.exchanges -= exchanges;
            if share.requests == 0 {
                self.shares.remove(&client);
            }
        }
        dispatch.push(Output::Respond { request, response });
    }
    /// Answers requests whose result is known.
    pub(crate) fn finish(
        &mut self,
        dispatch: &mut Dispatch,
        finished: impl IntoIterator<Item = Finished>,
        kind: Answer,
    ) {
        for (request, result) in finished {
            let accept = self.open.get(&request).and_then(|open| open.accept);
            let response = match result {
                Ok(answer) => {
                    let mut response = response(&answer, accept);
                    if kind == Answer::Notification {
                        response.options.set_uint(OptionNumber::OBSERVE, REGISTER);
                    }
                    response
                }
                Err(refusal) => refusal.into_response(),
            };
            self.respond(dispatch, request, response);
        }
    }
    /// Answers a request with a refusal.
    pub(crate) fn refuse(&mut self, dispatch: &mut Dispatch, request: RequestId, refusal: Refusal) {
        self.respond(dispatch, request, refusal.into_response());
    }
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use lowmesh_registry::Registry;

    use super::*;
    use crate::gate::Gate;

    #[test]
    fn a_client_has_a_quarter_of_the_requests_to_members() {
        let gate = Registry::<dyn Gate>::builtin().choose("fixed").expect("a row");
        let (mut dispatch, mut clients) = (Dispatch::new(gate, true), Clients::default());
        let client = |last| IpAddr::from([192, 0, 2, last]);
        let all: Vec<_> = (1..=5).map(|last| (RequestId(last.into()), client(last))).collect();
        for (request, client) in &all {
            assert_eq!(clients.admit(*request, *client, &mut dispatch), Ok(true));
        }
        let (first, more) = (all[0].0, RequestId(6));
        assert!(clients.set_aside(first, EXCHANGES_A_CLIENT_MAX));
        assert_eq!(clients.admit(more, client(1), &mut dispatch), Ok(true));
        assert!(!clients.set_aside(more, 1), "it has its share");
        assert!((1..4).all(|other| clients.set_aside(all[other].0, EXCHANGES_A_CLIENT_MAX)));
        assert!(!clients.set_aside(all[4].0, 1), "all are taken");
        clients.respond(&mut dispatch, first, ResponseTemplate::busy());
        assert!(clients.set_aside(more, 1));
    }
}
