//! A proxy between all transports: forward, for requests that name their target, and reverse, for one that is set (RFC
//! 7252 s5.7, RFC 8768).
//!
//! ```text
//!   client ── coap, coaps, coap+tcp, ... ──► Server ── relay ──► Proxy ──► Cache
//!                                                                 └──► Upstream ── coap, coap+tcp, ... ──► origin
//!                                                                        Queue, Gate
//! ```
//! `Gate` checks targets and `Queue` shares the path to them among clients. Which options are removed, added or refused, `lowmesh_coap::proxy` says. What several clients observe is observed
//! once at its origin (RFC 7641 s5).

mod access;
mod challenged;
mod gate;
mod limits;
mod observations;
mod queue;
mod refusal;
mod registration;
mod upstream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lowmesh_coap::cache::{Cache, Lookup, is_understood, validating};
use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::params::{MAX_AGE_DEFAULT, OBSERVED_REQUEST_MAX};
use lowmesh_coap::proxy::{Forward, back, forward, is_for_proxy, reverse};
use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, Message, OptionNumber};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::client::origin;
use crate::clock::Clock;
use crate::peer::Peer;
use crate::server::{Changes, Handler, Relay, Request, Server, ServerEvent};
pub use access::{Access, Network, NetworkError, Networks};
pub use limits::{ProxyError, ProxyLimits};
use observations::{Begun, Key, Observations, State};
use refusal::{Refusal, signed};
use registration::Registration;
use upstream::{Asked, Upstream};

/// A proxy. It lives as long as its server.
#[derive(Debug)]
pub struct Proxy {
    upstream: Upstream,
    /// Where requests go that name no target of their own.
    target: Option<Uri>,
    /// Requests that name one are forwarded there.
    forwards: bool,
    cache: Mutex<Cache<String>>,
    observations: Observations,
    clock: Clock,
}

impl Proxy {
    /// A forward proxy.
    pub fn new(limits: ProxyLimits) -> Result<Self, ProxyError> {
        let cache = Mutex::new(Cache::of_origins(limits.cache_max, String::capacity));
        let observations = Observations::new(limits.observations_max, limits.states_max);
        let clock = Clock::start();
        let upstream = Upstream::open(limits)?;
        Ok(Self { upstream, target: None, forwards: true, cache, observations, clock })
    }
    /// Makes it a reverse proxy: all requests go to this target, whose path precedes theirs. One that names a target of
    /// its own is answered with 5.05.
    #[must_use]
    pub fn in_front_of(self, target: Uri) -> Self {
        Self { target: Some(target), forwards: false, ..self }
    }
    /// Makes it a forward proxy too.
    #[must_use]
    pub fn forwarding(self) -> Self {
        Self { forwards: true, ..self }
    }
    /// Lets it contact `coaps` targets, all with this identity and its key.
    pub fn with_key(self, identity: &[u8], key: &[u8]) -> Result<Self, ProxyError> {
        Ok(Self { upstream: self.upstream.with_key(identity, key)?, ..self })
    }
    /// Gives it the requests of a server: those that name a target, and with a target of its own all that no resource of the
    /// server is for. Within a tokio runtime.
    pub fn serve(self, server: &mut Server) {
        let (all, forwards, access) = (self.target.is_some(), self.forwards, self.access());
        let places = self.upstream.places();
        let mut proxy = self;
        proxy.upstream.gate.listening = server.listening();
        proxy.upstream.set_ack_delay(server.ack_delay());
        let (proxy, changes) = (Arc::new(proxy), server.changes());
        tokio::spawn(inspections(Arc::downgrade(&proxy), changes.clone()));
        let handler = Handler::later(move |request: Request| {
            let (proxy, changes) = (proxy.clone(), changes.clone());
            async move { proxy.answer(&request, &changes).await }
        });
        let denied = move |peer: &Peer| {
            let admitted = access.admits_client(peer.address.ip());
            let reason = "clients at this address are not served";
            (!admitted).then(|| Refusal::new(Code::FORBIDDEN, reason).response())
        };
        server.relay(Relay { handler, all, forwards, denied: Box::new(denied), places });
    }

    fn access(&self) -> Access {
        self.upstream.gate.access.clone()
    }
    async fn answer(self: &Arc<Self>, request: &Request, changes: &Changes) -> ResponseTemplate {
        match self.relay(request, changes).await {
            Ok(response) => response,
            Err(refusal) => refusal.response(),
        }
    }
    async fn relay(
        self: &Arc<Self>,
        from_client: &Request,
        changes: &Changes,
    ) -> Result<ResponseTemplate, Refusal> {
        let message = &from_client.message;
        let asked = self.asked(from_client)?;
        if registers(message) && !self.may_observe(from_client, &asked, changes) {
            return Ok(ResponseTemplate::challenge());
        }
        if registers(message)
            && let Some(mut states) = self.joined(message, &asked)
        {
            let gone = || Refusal::silent(&asked.name);
            let state = states.wait_for(|state| !matches!(state, State::Pending)).await;
            let state = state.map_err(|_| gone())?.clone();
            return match state {
                State::Current { message, at } => self.current(&asked, *message, at),
                State::Over(Ok(message)) => self.take(&asked, *message),
                State::Over(Err(refusal)) => Err(refusal),
                State::Pending => Err(gone()),
            };
        }
        let (mut request, mut validates) = (asked.request.clone(), false);
        match self.cache().lookup(&asked.origin, &request, self.now()) {
            Lookup::Fresh(stored) => return returned(&asked, stored),
            Lookup::Stale(tag) => validates = validating(&mut request, &tag).is_some(),
            Lookup::Missing => {}
        }
        let response = self.upstream.ask(&asked, request).await?;
        let mut response = self.keep(&asked, response);
        if validates && !is_understood(&asked.request, &response) {
            // The origin has another tag than the cache, and the client none: its own request alone has an answer for it.
            let again = self.upstream.ask(&asked, asked.request.clone()).await?;
            response = self.keep(&asked, again);
        }
        returned(&asked, response)
    }
    /// What the client gets of a response, which the cache may keep or know better.
    fn take(&self, asked: &Asked, response: Message) -> Result<ResponseTemplate, Refusal> {
        returned(asked, self.keep(asked, response))
    }
    fn keep(&self, asked: &Asked, response: Message) -> Message {
        self.cache().take(&asked.origin, &asked.request, response, self.now())
    }
    /// Registers at the origin for the first client that observes something, if there is room. False if there is room
    /// once the client has proven its address.
    fn may_observe(
        self: &Arc<Self>,
        from_client: &Request,
        asked: &Asked,
        changes: &Changes,
    ) -> bool {
        let (key, now) = (Key::new(&asked.origin, &asked.request), self.now());
        let (states, coming) = watch::channel(State::Pending);
        let client = (asked.asker.client, from_client.proven);
        match self.observations.begin(key.clone(), client, coming, now) {
            Begun::Now => {
                let (proxy, changes) = (Arc::downgrade(self), changes.clone());
                let asked = asked.clone();
                tokio::spawn(Registration { proxy, key, asked, states, changes }.follow());
                true
            }
            Begun::Before | Begun::NoRoom => true,
            Begun::Unproven => false,
        }
    }
    /// The states of what a client observes; `None` if there was no room for it.
    fn joined(&self, message: &Message, asked: &Asked) -> Option<watch::Receiver<State>> {
        let key = Key::new(&asked.origin, &asked.request);
        self.observations.join(&key, message, self.now())
    }
    /// What an observer is told now.
    fn current(
        &self,
        asked: &Asked,
        message: Message,
        at: Instant,
    ) -> Result<ResponseTemplate, Refusal> {
        let mut state = returned(asked, message)?;
        let fresh_for = state.options.get_uint(OptionNumber::MAX_AGE);
        let fresh_for = fresh_for.map_or(MAX_AGE_DEFAULT, |age| Duration::from_secs(age.into()));
        // RFC 7252 s5.7.1: Max-Age MUST be decremented by the time here, in seconds.
        let left = fresh_for.as_secs().saturating_sub(self.now().since(at).as_secs());
        state.options.set_uint(OptionNumber::MAX_AGE, left as u32);
        Ok(state)
    }
    /// Where a request goes, and what is asked there.
    fn asked(&self, from_client: &Request) -> Result<Asked, Refusal> {
        let Request { peer, message, proven, .. } = from_client;
        let asker = queue::Asker::new(peer, *proven);
        let chosen = !is_for_proxy(&message.options);
        let forwarded = match &self.target {
            Some(target) if chosen => reverse(message, target.clone(), knows),
            _ if !chosen && self.forwards => forward(message, knows),
            _ => Err(Code::PROXYING_NOT_SUPPORTED),
        };
        let Forward { target, request } = forwarded.map_err(Refusal::of_request)?;
        let named = origin(&target);
        // A client that names the target of the reverse proxy does not find what only the reverse proxy may ask.
        let (origin, name) = if chosen {
            (format!("to {named}"), "the server behind this proxy".to_owned())
        } else {
            (named.clone(), named)
        };
        Ok(Asked { asker, target, chosen, origin, name, request: alone(request) })
    }
    fn cache(&self) -> MutexGuard<'_, Cache<String>> {
        // The cache is whole between any two of its operations.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// The response as the client gets it.
fn returned(asked: &Asked, response: Message) -> Result<ResponseTemplate, Refusal> {
    let name = &asked.name;
    let reads = matches!(asked.request.code, Code::GET | Code::FETCH);
    if reads && !is_understood(&asked.request, &response) {
        let reason = format!("{name} confirms a tag that nobody has asked about");
        return Err(Refusal::new(Code::BAD_GATEWAY, reason));
    }
    // RFC 7252 s5.7.1: an unsafe option that the proxy does not know MUST lead to 5.02.
    let reason = format!("the response of {name} has an option that is unsafe to forward");
    back(signed(response), knows).map_err(|code| Refusal::new(code, reason))
}

/// No unsafe option beyond those that are known everywhere here.
const fn knows(_: OptionNumber) -> bool {
    false
}

/// Whether a request is observed. As at a server, a longer one is forwarded once without Observe, because it would be
/// stored.
fn registers(message: &Message) -> bool {
    let reads = matches!(message.code, Code::GET | Code::FETCH);
    let octets = message.options.as_bytes().len() + message.payload.len();
    reads
        && octets <= OBSERVED_REQUEST_MAX
        && message.options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER)
}

/// Reports the numbers of the transports to the origins whenever the server is asked.
async fn inspections(proxy: Weak<Proxy>, changes: Changes) {
    let mut event = changes.subscribe();
    drop(changes);
    loop {
        let inspected = match event.recv().await {
            Ok(ServerEvent::Inspected(tell)) => Some(tell),
            Ok(_) | Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        let Some(proxy) = proxy.upgrade() else { return };
        if let Some(tell) = inspected {
            for report in proxy.upstream.reports().await {
                // The caller may be gone.
                let _gone = tell.send(report);
            }
        }
    }
}

/// What this proxy settles between itself and its client is not asked of the origin: observing, and which answers
/// are not wanted (RFC 7967 s2.1: the option is for one hop).
fn alone(request: RequestTemplate) -> RequestTemplate {
    let mut request = request;
    request.options.remove(OptionNumber::OBSERVE);
    request.options.remove(OptionNumber::NO_RESPONSE);
    request
}

#[cfg(test)]
mod tests;
