//! What a proxy does to requests and responses on their way (RFC 7252 s5.7, RFC 8768).
//!
//! [`forward`] says where a request that came to a proxy is meant for and what to send there;
//! [`back`] makes the response for the client of what came back. Between the two a driver that
//! knows addresses resolves the host, asks with a [`Host`](crate::Host) of the right scheme, and turns a failure into
//! [`failure`]. The rules of a proxy come before those of an endpoint, in both directions (RFC 7252 s5.4.1), so the
//! transports on both sides have [`Config::proxy`](crate::Config::proxy) set.
//!
//! ```
//! use lowmesh_coap::proxy::{Forward, forward};
//! use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};
//! let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
//! get.options.insert(OptionNumber::PROXY_URI, b"coap://example.net/temp");
//! let Forward { target, request } = forward(&get, |_| false).expect("a request for a proxy");
//! assert_eq!(target.to_string(), "coap://example.net/temp");
//! assert_eq!(request.options.get(OptionNumber::URI_PATH), Some(&b"temp"[..]));
//! ```

use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use lowmesh_machine::DropReason;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use lowmesh_wire::coap::{Code, Message, OptionNumber, Options};

use crate::event::{RequestTemplate, ResponseTemplate};
use crate::params::HOP_LIMIT_DEFAULT;
use crate::refusal;

/// A request on its way to its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The URI that it asks for.
    pub target: Uri,
    /// The request to send there.
    pub request: RequestTemplate,
}

/// Whether a request asks for a forward proxy.
pub fn is_for_proxy(options: &Options) -> bool {
    refusal::is_for_proxy(options.iter())
}

/// Handles a request for which [`is_for_proxy`] is true, as a forward proxy; `Err` is the code to answer with. `knows`
/// says which unsafe options beyond RFC 7252 the proxy processes.
pub fn forward(request: &Message, knows: impl Fn(OptionNumber) -> bool) -> Result<Forward, Code> {
    let target = target(&request.options)?;
    let mut options = Options::new();
    target.insert_into(&mut options);
    relay(request, target, options, knows)
}

/// Handles a request as a reverse proxy: it goes to `target`, whose path precedes that of the request.
pub fn reverse(
    request: &Message,
    target: Uri,
    knows: impl Fn(OptionNumber) -> bool,
) -> Result<Forward, Code> {
    let mut target = target;
    target.path.extend(path(&request.options)?);
    target.query.extend(texts(&request.options, OptionNumber::URI_QUERY)?);
    let mut options = Options::new();
    target.insert_into(&mut options);
    relay(request, target, options, knows)
}

/// The request for the next hop: `options` name its target, the others are taken over.
fn relay(
    request: &Message,
    target: Uri,
    options: Options,
    knows: impl Fn(OptionNumber) -> bool,
) -> Result<Forward, Code> {
    let mut options = options;
    for option in &request.options {
        match option.number {
            // What names the target, or is for this hop alone.
            OptionNumber::URI_HOST
            | OptionNumber::URI_PORT
            | OptionNumber::URI_PATH
            | OptionNumber::URI_QUERY
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME
            | OptionNumber::HOP_LIMIT
            | OptionNumber::BLOCK1
            | OptionNumber::BLOCK2
            | OptionNumber::REQUEST_TAG
            | OptionNumber::ECHO => {}
            number if is_forwarded(number, &knows) => options.insert(number, option.value),
            // RFC 7252 s5.7.1: an unsafe option that the proxy does not know MUST lead to 4.02.
            _ => return Err(Code::BAD_OPTION),
        }
    }
    let hops = request.options.get_uint(OptionNumber::HOP_LIMIT).unwrap_or(HOP_LIMIT_DEFAULT);
    // RFC 8768 s3: each proxy takes one away, and forwards nothing that has none left.
    let left = hops.saturating_sub(1);
    if left == 0 {
        return Err(Code::HOP_LIMIT_REACHED);
    }
    options.insert_uint(OptionNumber::HOP_LIMIT, left);
    let request = RequestTemplate {
        code: request.code,
        // RFC 7252 s4 and s5.7: the type of a message is between neighbours. To a target that does
        // not answer, NON requests leave at PROBING_RATE only (s4.7); a CON waits for no longer than its copies take.
        confirmable: true,
        options,
        payload: request.payload.clone(),
        token: None,
        body_max: None,
    };
    Ok(Forward { target, request })
}

/// The response for the client, with every option that is safe to forward, critical or not. `Err` is the code to answer
/// with: 5.02 if it has an unsafe option that the proxy does not know (RFC 7252 s5.7.1).
pub fn back(
    response: Message,
    knows: impl Fn(OptionNumber) -> bool,
) -> Result<ResponseTemplate, Code> {
    let mut options = response.options;
    if !options.iter().all(|one| is_forwarded(one.number, &knows)) {
        return Err(Code::BAD_GATEWAY);
    }
    // Blocks and challenges are between neighbours.
    options.retain(|one| {
        let number = one.number;
        !matches!(number, OptionNumber::BLOCK1 | OptionNumber::BLOCK2 | OptionNumber::ECHO)
    });
    let template = ResponseTemplate::new(response.code);
    Ok(ResponseTemplate { options, payload: response.payload, ..template })
}

/// The response to the client if the next hop gave none.
pub const fn failure(reason: DropReason) -> Code {
    match reason {
        // RFC 7252 s5.9.3.5: no timely response.
        DropReason::GaveUp => Code::GATEWAY_TIMEOUT,
        // RFC 7252 s5.9.3.4: the proxy cannot serve it now.
        DropReason::QueueFull => Code::SERVICE_UNAVAILABLE,
        // RFC 7252 s5.9.3.3: the next hop's answer is no good, or it cannot be reached.
        _ => Code::BAD_GATEWAY,
    }
}

/// An option of RFC 7252 or of the other RFCs that this crate processes, one that `knows` says yes
/// to, or one that is safe to forward unknown (RFC 7252 s5.4.2).
fn is_forwarded(number: OptionNumber, knows: &impl Fn(OptionNumber) -> bool) -> bool {
    number.definition().is_some() || knows(number) || !number.is_unsafe()
}

/// Where a request for a forward proxy is meant for (RFC 7252 s5.7.2, s5.10.2).
fn target(options: &Options) -> Result<Uri, Code> {
    if let Some(uri) = options.get(OptionNumber::PROXY_URI) {
        // RFC 7252 s5.10.2: Proxy-Uri goes before all the others.
        let uri = str::from_utf8(uri).map_err(|_| Code::BAD_OPTION)?;
        return uri.parse().map_err(|_| Code::PROXYING_NOT_SUPPORTED);
    }
    let scheme = options.get(OptionNumber::PROXY_SCHEME).ok_or(Code::BAD_OPTION)?;
    let known = Scheme::ALL.into_iter().find(|one| one.name().as_bytes() == scheme);
    // RFC 7252 s5.10.2: a scheme that the proxy does not serve is 5.05.
    let scheme = known.ok_or(Code::PROXYING_NOT_SUPPORTED)?;
    let host = options.get(OptionNumber::URI_HOST).ok_or(Code::BAD_OPTION)?;
    let host = str::from_utf8(host).map_err(|_| Code::BAD_OPTION)?;
    let port = options.get_uint(OptionNumber::URI_PORT).map(u16::try_from);
    let explicit_port = port.transpose().map_err(|_| Code::BAD_OPTION)?;
    let path = path(options)?;
    let query = texts(options, OptionNumber::URI_QUERY)?;
    Ok(Uri { scheme, host: host_of(host)?, explicit_port, path, query })
}

/// The host that a Uri-Host names: an address is written as in a URI (RFC 7252 s5.10.1).
fn host_of(text: &str) -> Result<Host, Code> {
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = inside {
        return address
            .parse()
            .map(|address| Host::V6(address, None))
            .map_err(|_| Code::BAD_OPTION);
    }
    Ok(text.parse().map_or_else(|_| Host::Name(text.to_ascii_lowercase()), Host::V4))
}

/// The segments of the path. One that a URI cannot have would lead out of the path of a reverse proxy's target.
fn path(options: &Options) -> Result<Vec<String>, Code> {
    let path = texts(options, OptionNumber::URI_PATH)?;
    // RFC 7252 s5.10.1: the value of a Uri-Path MUST NOT be "." or "..". What a critical option says wrongly counts as
    // not recognised (s5.4.3).
    if path.iter().any(|segment| matches!(&**segment, "." | "..")) {
        return Err(Code::BAD_OPTION);
    }
    Ok(path)
}

/// The values of an option as text.
fn texts(options: &Options, number: OptionNumber) -> Result<Vec<String>, Code> {
    let text = |value| str::from_utf8(value).map(String::from).map_err(|_| Code::BAD_OPTION);
    options.iter().values(number).map(text).collect()
}

#[cfg(test)]
mod tests;
