//! A proxy between all transports: forward, for requests that name their target, and reverse, for one that is set (RFC
//! 7252 s5.7, RFC 8768).
//!
//! ```text
//!   client ── coap, coaps, coap+tcp, ... ──► Server ── relay ──► Proxy ──► Cache
//!                                                                 └──► Upstream ── coap, coap+tcp, ... ──► origin
//! ```
//! What is left out, taken on or refused on the way, `lowmesh_coap::proxy` says. A proxy keeps no observation: it
//! answers one as a plain request, without Observe, as RFC 7641 s4.1 allows.

mod limits;
mod upstream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_coap::cache::{Cache, Lookup};
use lowmesh_coap::proxy::{Forward, back, forward, is_for_proxy, reverse};
use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_units::Instant;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::clock::Clock;
use crate::server::{Handler, Request, Server};
pub use limits::{ProxyError, ProxyLimits};
use upstream::{Upstream, origin};

/// A proxy. It lives as long as its server.
#[derive(Debug)]
pub struct Proxy {
    upstream: Upstream,
    /// Where requests go that name no target of their own.
    target: Option<Uri>,
    cache: Mutex<Cache<String>>,
    clock: Clock,
}

impl Proxy {
    /// A proxy that is ready to ask. Within a tokio runtime.
    pub fn new(limits: ProxyLimits) -> Result<Self, ProxyError> {
        let cache = Mutex::new(Cache::new(limits.cache_max));
        let upstream = Upstream::open(limits)?;
        Ok(Self { upstream, target: None, cache, clock: Clock::start() })
    }
    /// Is a reverse proxy too: what names no target goes to this one, whose path is put before the request's.
    #[must_use]
    pub fn in_front_of(self, target: Uri) -> Self {
        Self { target: Some(target), ..self }
    }
    /// Gives it the requests of a server: those that name a target, and with a target of its own all the others.
    pub fn serve(self, server: &mut Server) {
        let all = self.target.is_some();
        let proxy = Arc::new(self);
        let handler = Handler::later(move |request: Request| {
            let proxy = proxy.clone();
            async move { proxy.answer(&request.message).await }
        });
        server.relay(handler, all);
    }

    async fn answer(&self, request: &Message) -> ResponseTemplate {
        match self.relay(request).await {
            Ok(response) => response,
            Err(code) => refusal(code),
        }
    }
    async fn relay(&self, message: &Message) -> Result<ResponseTemplate, Code> {
        let Forward { target, request } = self.forwarded(message)?;
        let request = alone(request);
        let origin = origin(&target);
        let mut asked = request.clone();
        match self.cache().lookup(&origin, &request, self.now()) {
            Lookup::Fresh(stored) => return Ok(back(stored, knows)),
            Lookup::Stale(tag) => asked.options.insert(OptionNumber::ETAG, &tag),
            Lookup::Missing => {}
        }
        let response = self.upstream.ask(&target, asked).await?;
        Ok(back(self.cache().take(&origin, &request, response, self.now()), knows))
    }
    fn forwarded(&self, message: &Message) -> Result<Forward, Code> {
        if is_for_proxy(&message.options) {
            return forward(message, knows);
        }
        let target = self.target.clone().ok_or(Code::PROXYING_NOT_SUPPORTED)?;
        reverse(message, target, knows)
    }
    fn cache(&self) -> MutexGuard<'_, Cache<String>> {
        // The cache is whole between any two of its operations.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// No unsafe option beyond those that are known everywhere here.
const fn knows(_: OptionNumber) -> bool {
    false
}

/// What this proxy settles between itself and its client is not asked of the origin: observing, and which answers
/// are not wanted (RFC 7967 s2.1: the option is for one hop).
fn alone(request: RequestTemplate) -> RequestTemplate {
    let mut request = request;
    request.options.remove(OptionNumber::OBSERVE);
    request.options.remove(OptionNumber::NO_RESPONSE);
    request
}

fn refusal(code: Code) -> ResponseTemplate {
    let response = ResponseTemplate::new(code);
    if code == Code::HOP_LIMIT_REACHED {
        // RFC 8768 s4: the payload SHOULD tell which proxy it was.
        return response.with_payload(b"lowmesh proxy".to_vec());
    }
    response
}

#[cfg(test)]
mod tests;
