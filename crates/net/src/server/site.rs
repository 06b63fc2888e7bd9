//! The resources of a server, as all its transports see them: from a request to its answer.

use std::sync::Arc;

use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::proxy::is_for_proxy;
use lowmesh_coap::resource::{Route, Router};
use lowmesh_coap::{Notifications, ResponseTemplate};
use lowmesh_wire::coap::uri::percent_decode;
use lowmesh_wire::coap::{Class, Message, OptionNumber};
use tokio::sync::broadcast;

use super::handler::{Handler, Reply, Request};
use crate::params::CHANGES_MAX;
use crate::peer::Peer;

/// Says that resources have changed, from anywhere: from a handler, a task, a thread.
#[derive(Clone, Debug)]
pub struct Changes(broadcast::Sender<Arc<str>>);

impl Changes {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(CHANGES_MAX))
    }
    /// The state of the resource at `path` has changed: its observers are told the new one, which its handler is
    /// asked for (RFC 7641).
    pub fn tell(&self, path: &str) {
        // Without anybody who listens there is nobody to tell.
        let _listeners = self.0.send(path.into());
    }
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.0.subscribe()
    }
}

/// The resources, and news of them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) router: Router<Handler>,
    pub(super) changes: Changes,
    pub(super) relay: Option<Relay>,
}

/// A proxy.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) handler: Handler,
    /// It gets every request, also those that are not for a proxy.
    pub(super) all: bool,
}

/// What becomes of a request.
pub(super) enum Outcome {
    /// An answer, or the way to it; with what has to be done to it before it leaves.
    Reply(Reply, Finish),
    /// No answer.
    Silence,
}

/// What the server adds to an application's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// Nothing.
    Plain,
    /// The client is registered as observer, if it succeeds, and told of changes like this.
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

impl Site {
    /// Finds who answers a request, and has it begin.
    pub(super) fn ask(&self, peer: Peer, message: Message, multicast: bool) -> Outcome {
        if let Some(relay) = &self.relay
            && (relay.all || is_for_proxy(&message.options))
        {
            // What one of a group would ask for others, all of them would.
            if multicast {
                return Outcome::Silence;
            }
            let request = Request { peer, message, multicast, depth: 0 };
            return Outcome::Reply(relay.handler.call(request), Finish::Plain);
        }
        match self.router.route(&message, multicast) {
            Route::Resource { resource, depth } => {
                let registers = message.options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER);
                let finish = if registers && resource.is_observable() {
                    Finish::Observed(resource.notifications())
                } else {
                    Finish::Plain
                };
                let request = Request { peer, message, multicast, depth };
                Outcome::Reply(resource.value().call(request), finish)
            }
            Route::Answer(response) => Outcome::Reply(Reply::Now(response), Finish::Plain),
            Route::Ignore => Outcome::Silence,
        }
    }
    /// The paths of all resources that can be observed.
    pub(super) fn observable(&self) -> impl Iterator<Item = String> {
        let all = self.router.resources().into_iter();
        let observable = all.filter(|(_, resource)| resource.is_observable());
        // The router lists paths as URIs have them.
        observable.filter_map(|(path, _)| String::from_utf8(percent_decode(&path)?).ok())
    }
}
