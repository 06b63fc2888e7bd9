//! The resources of a server, as all its transports see them: from a request to its answer.

use std::fmt;

use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::proxy::is_for_proxy;
use lowmesh_coap::resource::{Route, Router};
use lowmesh_coap::{Notifications, ResponseTemplate, host};
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber};

use super::event::{Changes, Totals};
use super::handler::{Handler, Reply, Request};
use super::log::RequestLog;
use crate::peer::Peer;

/// The resources, and news of them.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) router: Router<Handler>,
    pub(super) changes: Changes,
    pub(super) totals: std::sync::Arc<Totals>,
    pub(super) relay: Option<Relay>,
    pub(super) log: Option<RequestLog>,
}

/// The response to a client that is not served, or `None` if it is served.
type Denied = dyn Fn(&Peer) -> Option<ResponseTemplate> + Send + Sync;

/// A proxy.
pub(crate) struct Relay {
    pub(crate) handler: Handler,
    /// It gets every request that is not for a resource of the server itself.
    pub(crate) all: bool,
    /// It gets requests that name a target.
    pub(crate) forwards: bool,
    /// Which clients it does not serve, and what they get.
    pub(crate) denied: Box<Denied>,
    /// How many requests it takes at once.
    pub(crate) places: usize,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

/// What becomes of a request.
pub(super) enum Outcome {
    /// An answer, or the future that makes it, and what the server adds before it leaves.
    Reply(Reply, Finish),
    /// No answer.
    Silence,
}

/// What the server adds to an application's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// Nothing.
    Plain,
    /// A success registers the client as observer, with this type of notifications.
    Observed(Notifications),
}

impl Finish {
    pub(super) fn apply(self, mut response: ResponseTemplate) -> ResponseTemplate {
        // RFC 7641 s4.1: an answer with Observe says that its client is registered; only a success registers.
        if let Self::Observed(notifications) = self
            && response.code.class() == Class::Success
        {
            response.options.set_uint(OptionNumber::OBSERVE, 0);
            response.notifications = notifications;
        }
        response
    }
}

impl ServerState {
    /// Finds the resource or the proxy for a request, and starts the answer.
    pub(super) fn ask(
        &self,
        peer: Peer,
        proven: bool,
        message: Message,
        multicast: bool,
        refresh: bool,
    ) -> Outcome {
        if let Some(response) = self.relay.as_ref().and_then(|relay| (relay.denied)(&peer)) {
            // RFC 7252 s8.2: an error has nothing for a group to hear.
            if multicast {
                return Outcome::Silence;
            }
            return Outcome::Reply(Reply::Now(response), Finish::Plain);
        }
        if let Some(relay) = &self.relay
            && (is_for_proxy(&message.options) || relay.all && !self.has(&message))
        {
            // A forwarded group request would be forwarded by every member of the group.
            if multicast {
                return Outcome::Silence;
            }
            let request = Request { peer, message, proven, multicast, refresh, depth: 0 };
            return Outcome::Reply(relay.handler.call(request), Finish::Plain);
        }
        if self.relay.as_ref().is_some_and(|relay| relay.all) && !is_recognised(&message) {
            // RFC 7252 s5.4.1: for its own resources the server is an endpoint as any other.
            if multicast {
                return Outcome::Silence;
            }
            let response = ResponseTemplate::new(Code::BAD_OPTION);
            return Outcome::Reply(Reply::Now(response), Finish::Plain);
        }
        match self.router.route(&message, multicast) {
            Route::Resource { resource, depth } => {
                let registers = message.options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER);
                let finish = if registers && resource.is_observable() {
                    Finish::Observed(resource.notifications())
                } else {
                    Finish::Plain
                };
                let request = Request { peer, message, proven, multicast, refresh, depth };
                Outcome::Reply(resource.value().call(request), finish)
            }
            Route::Answer(response) => Outcome::Reply(Reply::Now(response), Finish::Plain),
            Route::Ignore => Outcome::Silence,
        }
    }
    fn has(&self, message: &Message) -> bool {
        matches!(self.router.route(message, false), Route::Resource { .. })
    }
}

/// Whether an endpoint knows all critical options of a request.
fn is_recognised(message: &Message) -> bool {
    let recognition = message.options.iter().recognise(|one| host::EXTENSIONS.contains(&one));
    recognition.critical.is_none()
}
