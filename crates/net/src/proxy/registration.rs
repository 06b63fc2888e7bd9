//! One registration of a proxy at an origin, from its request to its end (RFC 7641 s5).

use std::sync::Weak;

use lowmesh_coap::Output;
use lowmesh_coap::observe::REGISTER;
use lowmesh_wire::coap::{Message, OptionNumber};
use tokio::sync::watch;

use super::Proxy;
use super::observations::{Key, State};
use super::refusal::Refusal;
use super::upstream::{Asked, Begun};
use crate::params::PROXY_ANSWER_WAIT;
use crate::server::Changes;

/// A registration, and the channels to its clients.
pub(super) struct Registration {
    pub(super) proxy: Weak<Proxy>,
    pub(super) key: Key,
    pub(super) asked: Asked,
    pub(super) states: watch::Sender<State>,
    pub(super) changes: Changes,
}

/// How an observation ended.
enum End {
    /// The origin's doing: an answer without Observe, or what clients get instead of one.
    Theirs(Result<Box<Message>, Refusal>),
    /// Nobody wants to know any more.
    Ours,
}

impl Registration {
    /// Asks the origin, and tells the clients of its states, until it is over or nobody wants to know.
    pub(super) async fn follow(self) {
        let end = match self.begin().await {
            Ok(exchange) => self.tell(exchange).await,
            Err(refusal) => End::Theirs(Err(refusal)),
        };
        let Some(proxy) = self.proxy.upgrade() else { return };
        // A client that comes from now on begins a new one.
        let requests = proxy.observations.end(&self.key);
        if let End::Theirs(answer) = end {
            self.states.send_replace(State::Over(answer));
        }
        // A client that still observes asks again, and gets the answer of the origin.
        for request in requests {
            self.changes.tell_request(request);
        }
    }
    async fn begin(&self) -> Result<Begun, Refusal> {
        let mut request = self.asked.request.clone();
        // What one client has already is not for all.
        request.options.remove(OptionNumber::ETAG);
        request.options.set_uint(OptionNumber::OBSERVE, REGISTER);
        let proxy = self.proxy.upgrade().ok_or_else(|| self.silence())?;
        proxy.upstream.begin(&self.asked, request).await
    }
    /// Dropping it cancels the exchange; the origin learns that with its next notification.
    async fn tell(&self, begun: Begun) -> End {
        let (mut begun, mut first, name) = (begun, true, &self.asked.name);
        loop {
            // States come when they change, but the first is an answer.
            let item = if first {
                let timely = tokio::time::timeout(PROXY_ANSWER_WAIT, begun.next(name)).await;
                timely.unwrap_or(None)
            } else {
                begun.next(name).await
            };
            let Some(item) = item else { return End::Theirs(Err(self.silence())) };
            match item {
                Ok(Output::Notification { message, .. }) => {
                    if let Some(end) = self.on_state(message, std::mem::take(&mut first)) {
                        return end;
                    }
                }
                Ok(Output::Response { message, .. }) => return End::Theirs(Ok(Box::new(message))),
                Ok(Output::Over { .. }) => return End::Theirs(Err(self.silence())),
                Ok(_) => {}
                Err(refusal) => return End::Theirs(Err(refusal)),
            }
        }
    }
    fn silence(&self) -> Refusal {
        Refusal::silent(&self.asked.name)
    }
    /// Notifies the clients. Returns the end if no client observes, or if there is no room for the state.
    fn on_state(&self, message: Message, first: bool) -> Option<End> {
        let Some(proxy) = self.proxy.upgrade() else { return Some(End::Ours) };
        let at = proxy.now();
        let mut plain = message.clone();
        plain.options.remove(OptionNumber::OBSERVE);
        if !proxy.observations.keep(&self.key, &message) {
            // RFC 7641 s4.1: a client that is not registered gets one response without Observe.
            return Some(End::Theirs(Ok(Box::new(plain))));
        }
        // A client that does not observe gets no older state than one that does.
        proxy.keep(&self.asked, plain);
        self.states.send_replace(State::Current { message: Box::new(message), at });
        // The first state answers the registration; later ones are asked for.
        if first {
            return None;
        }
        let Some(requests) = proxy.observations.changed(&self.key, at) else {
            return Some(End::Ours);
        };
        for request in requests {
            self.changes.tell_request(request);
        }
        None
    }
}
