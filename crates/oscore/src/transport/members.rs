//! Requests to groups, and what their members answer (RFC 10021 s7).

use lowmesh_coap::exchange::{GroupInput, Input, Name, Output};
use lowmesh_coap::{PeerAddress, RequestTemplate, Transport};
use lowmesh_machine::Rejected;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Message;

use super::client::{Asked, Ties, seal_for};
use super::{Answer, OwnRequests, Protected, SecurityContexts, inside};

/// A request to a group where requests are protected with a context of two.
const NO_GROUP: Rejected = Rejected::Unsupported {
    what: "request",
    why: "its security context has one recipient: a request to a group needs Group OSCORE",
};

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Protected<P, T, C> {
    /// The host asks a group.
    pub(super) fn request_group(
        &mut self,
        group: P,
        message: RequestTemplate,
        wait: Duration,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let sealed = match &self.protection {
            Some(protection) => match &protection.own_requests {
                OwnRequests::Group(number, _) => {
                    // RFC 10021 s7: the group mode SHOULD protect requests for the whole group.
                    let (outer, pending) = seal_for(protection, *number, None, &message)?;
                    Some((
                        outer,
                        Ties::Group { group: *number, to: None, pending: vec_of(pending) },
                    ))
                }
                // What is to be protected does not leave in the open.
                own if own.protects(group) => return Err(NO_GROUP),
                _ => None,
            },
            None => None,
        };
        let Some((outer, ties)) = sealed else {
            let input = GroupInput::Request { group, message, wait, handle };
            return self.transport.handle(now, Input::Group(input));
        };
        let input = GroupInput::Request { group, message: outer, wait, handle };
        self.transport.handle(now, Input::Group(input))?;
        self.forget_token(group, message.token.as_ref(), now);
        self.asked.insert(handle, Asked::of_group(group, message, ties));
        Ok(())
    }
    /// A member has answered. What does not verify is dropped; the others may still answer.
    pub(super) fn on_group_response(
        &mut self,
        handle: Name,
        from: P,
        outer: Message,
        rtt: Duration,
        now: Instant,
    ) {
        let message = match self.open(handle, from, &outer, now) {
            None => outer,
            Some(Ok(Answer::Response(inner))) => inside(&outer, inner),
            Some(Ok(Answer::Again) | Err(_)) => return,
        };
        self.outbox.push(Output::GroupResponse { handle, from, message, rtt });
    }
}

fn vec_of<T>(one: T) -> alloc::vec::Vec<T> {
    alloc::vec![one]
}
