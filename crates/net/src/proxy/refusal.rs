//! What a client hears of a proxy itself: which hop failed, and how (RFC 7252 s5.5.2, s5.9.3).
//!
//! A diagnostic names the target as the client has named it, and neither the addresses behind a name nor the server
//! behind a reverse proxy.

use std::borrow::Cow;

use lowmesh_coap::proxy::failure;
use lowmesh_coap::{Fault, ResponseTemplate};
use lowmesh_machine::DropReason;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::client::Error;
use crate::params::{PROXY_NAME, PROXY_RETRY_AFTER};
use crate::stream_transport::ConnectError;

/// An answer of the proxy's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    code: Code,
    /// Without one the payload has the name of the proxy alone.
    reason: Option<Cow<'static, str>>,
}

impl Refusal {
    pub(super) fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reason: Some(reason.into()) }
    }
    /// There is no room now; later there may be.
    pub(super) fn busy(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::SERVICE_UNAVAILABLE, reason)
    }
    /// Its place is another's. A proven client would have kept it longer.
    pub(super) fn displaced(proven: bool) -> Self {
        if !proven {
            return Self::unproven();
        }
        Self::busy("a later request needs the place of this one")
    }
    /// The same of a request that has left. RFC 7252 s5.1: POST is not idempotent, and RFC 8132 s3 says it of PATCH; the target
    /// may have done what it asks for. So nothing invites the client to repeat it.
    pub(super) fn displaced_after(method: Code, proven: bool, target: &str) -> Self {
        if matches!(method, Code::POST | Code::PATCH) {
            let reason = format!(
                "a later request needs the place of this one, which {target} may have carried out"
            );
            return Self::new(Code::GATEWAY_TIMEOUT, reason);
        }
        // By then it is acknowledged, and of what changes something no proof is asked for any more.
        Self::displaced(proven || !matches!(method, Code::GET | Code::FETCH))
    }
    /// There is room for a client that has proven its address: it may return an Echo value (RFC 9175).
    pub(super) const fn unproven() -> Self {
        Self { code: Code::UNAUTHORIZED, reason: None }
    }
    /// The request comes to this proxy again and again.
    pub(super) const fn is_loop() -> Self {
        // RFC 8768 s4: the payload of 5.08 is the names of proxies, without a space in any of them.
        Self { code: Code::HOP_LIMIT_REACHED, reason: None }
    }
    /// A request that cannot be forwarded as it is.
    pub(super) fn of_request(code: Code) -> Self {
        match code {
            Code::HOP_LIMIT_REACHED => Self::is_loop(),
            Code::PROXYING_NOT_SUPPORTED => {
                Self::new(code, "this proxy does not serve this scheme or request")
            }
            Code::BAD_OPTION => Self::new(code, "an option is unknown, or names no target"),
            code => Self { code, reason: None },
        }
    }
    /// The origin has given no response.
    pub(super) fn instead(error: &Error, target: &str) -> Self {
        match error {
            // RFC 7252 s5.10.2: what this proxy cannot speak; a group's answers are many, and its client can take one.
            Error::NoKey => Self::new(
                Code::PROXYING_NOT_SUPPORTED,
                "coaps targets need a key, which is not set",
            ),
            Error::Connect(ConnectError::NoTrust(_)) => Self::new(
                Code::PROXYING_NOT_SUPPORTED,
                "targets over TLS need authorities to trust, which are not set",
            ),
            Error::Group(_) | Error::Connect(ConnectError::Group(_)) => Self::new(
                Code::PROXYING_NOT_SUPPORTED,
                "the target is a group, which this proxy does not serve",
            ),
            // RFC 7252 s5.9.3.4: the proxy cannot serve it now.
            Error::Rejected(_) | Error::Crowded(_) => {
                Self::busy(format!("no room for a request to {target}"))
            }
            Error::Failed { reason: DropReason::QueueFull, .. } => {
                Self::busy(format!("too many requests wait for {target}"))
            }
            Error::Silence { .. } | Error::Connect(ConnectError::Late { .. }) => {
                Self::silent(target)
            }
            Error::Failed { reason, .. } if failure(*reason) == Code::GATEWAY_TIMEOUT => {
                Self::silent(target)
            }
            // RFC 7252 s5.9.3.3: the next hop cannot be reached, or is no good.
            Error::Resolve(_) | Error::Connect(ConnectError::Resolve(_)) => {
                Self::new(Code::BAD_GATEWAY, format!("no address for {target}"))
            }
            // The target is there, but what it says is no answer.
            Error::Failed { reason: DropReason::Malformed, .. } => {
                Self::new(Code::BAD_GATEWAY, format!("{target} sends a malformed response"))
            }
            Error::Failed { reason: DropReason::TooLarge, .. } => {
                Self::new(Code::BAD_GATEWAY, format!("the response of {target} is too long"))
            }
            Error::Failed { reason: DropReason::Reset, .. } => {
                Self::new(Code::BAD_GATEWAY, format!("{target} rejects the request"))
            }
            Error::Ended { reason, .. } => {
                Self::new(Code::BAD_GATEWAY, format!("{target} has ended the exchange: {reason}"))
            }
            Error::Handshake { .. } | Error::Connect(ConnectError::Tls(_)) => {
                Self::new(Code::BAD_GATEWAY, format!("no secure session with {target}"))
            }
            // What the next hop says about itself is not for the client.
            Error::Fault { fault: Fault::Aborted(_), .. } => {
                Self::new(Code::BAD_GATEWAY, format!("{target} {}", Fault::Aborted(String::new())))
            }
            Error::Fault { fault, .. } => Self::new(Code::BAD_GATEWAY, format!("{target} {fault}")),
            _ => Self::new(Code::BAD_GATEWAY, format!("{target} cannot be reached")),
        }
    }
    /// RFC 7252 s5.9.3.5: no timely response.
    pub(super) fn silent(target: &str) -> Self {
        Self::new(Code::GATEWAY_TIMEOUT, format!("no answer from {target}"))
    }
    pub(super) fn response(self) -> ResponseTemplate {
        let Self { code, reason } = self;
        if code == Code::UNAUTHORIZED {
            return ResponseTemplate::challenge();
        }
        let payload = match reason {
            Some(reason) => format!("{PROXY_NAME}: {reason}"),
            None => PROXY_NAME.to_owned(),
        };
        let mut response = ResponseTemplate::new(code).with_payload(payload.into_bytes());
        if code == Code::SERVICE_UNAVAILABLE {
            // RFC 7252 s5.9.3.4: Max-Age says after how long to ask again.
            let seconds = PROXY_RETRY_AFTER.as_secs() as u32;
            response.options.set_uint(OptionNumber::MAX_AGE, seconds);
        }
        response
    }
}

/// RFC 8768 s4: each proxy that passes a 5.08 on puts its name before the others.
pub(super) fn signed(response: Message) -> Message {
    let names = response.code == Code::HOP_LIMIT_REACHED
        && response.options.get(OptionNumber::CONTENT_FORMAT).is_none();
    if !names {
        return response;
    }
    let payload = [PROXY_NAME.as_bytes(), b" ", &response.payload].concat();
    Message { payload, ..response }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_is_invited_to_repeat_what_the_target_may_have_done() {
        let code = |method, proven| Refusal::displaced_after(method, proven, "h").response().code;
        for method in [Code::POST, Code::PATCH] {
            assert_eq!(
                [false, true].map(|proven| code(method, proven)),
                [Code::GATEWAY_TIMEOUT; 2]
            );
        }
        for method in [Code::GET, Code::FETCH] {
            assert_eq!(code(method, false), Code::UNAUTHORIZED);
            assert_eq!(code(method, true), Code::SERVICE_UNAVAILABLE);
        }
        for method in [Code::PUT, Code::DELETE, Code::IPATCH] {
            let busy = [Code::SERVICE_UNAVAILABLE; 2];
            assert_eq!([false, true].map(|proven| code(method, proven)), busy);
        }
    }
}
