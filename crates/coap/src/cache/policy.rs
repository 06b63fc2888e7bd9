//! Which responses are stored, and for how long (RFC 7252 s5.6, s5.9).
//!
//! A proxy answers all its clients from one cache, so what is stored has to follow from the
//! Cache-Key alone: neither from who asked, nor from what one request met on its way.

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options};

use crate::blockwise::Block;
use crate::event::RequestTemplate;
use crate::params::{CACHE_ERROR_FRESH_MAX, CACHE_FRESH_MAX, MAX_AGE_DEFAULT};

/// Whether a response to a request may answer others that are like it.
pub(super) fn is_storable(request: &RequestTemplate, response: &Message) -> bool {
    is_of_resource(response.code)
        && !is_part(&response.options)
        && ![&request.options, &response.options].into_iter().any(forbids)
}

/// RFC 7252 s5.9 lets 2.05 and all errors be stored; a success that is not known MUST NOT be. Of the
/// errors those are taken that the origin gives to everybody who asks like this. The others are
/// about the client (4.01, 4.03, 4.29), one request of it (4.00, 4.02, 4.08, 4.12), a moment
/// (5.00), or the path to the origin (5.02, 5.04, 5.05, and 5.08, which is about a Hop-Limit).
const fn is_of_resource(code: Code) -> bool {
    matches!(
        code,
        Code::CONTENT
            | Code::NOT_FOUND
            | Code::METHOD_NOT_ALLOWED
            | Code::NOT_ACCEPTABLE
            | Code::NOT_IMPLEMENTED
            | Code::SERVICE_UNAVAILABLE
    )
}

/// True for one block of a longer body (RFC 7959 s2.10: a cache has whole bodies).
fn is_part(options: &Options) -> bool {
    match Block::read(options.iter(), OptionNumber::BLOCK2) {
        Ok(None) => false,
        Ok(Some(block)) => block.more || block.number > 0,
        Err(_) => true,
    }
}

/// Options that keep a message out of the cache: what is not processed here must not be stored (RFC
/// 7252 s5.4.2), a challenge is for one client (RFC 9175 s2.2), and OSCORE protects for one (RFC
/// 8613 s10).
fn forbids(options: &Options) -> bool {
    options.iter().any(|one| {
        let unknown = one.number.is_unsafe() && one.number.definition().is_none();
        unknown || matches!(one.number, OptionNumber::ECHO | OptionNumber::OSCORE)
    })
}

/// RFC 7252 s5.6.1: how long a response is fresh. A cache may drop it earlier, so that no single
/// response, wrong or forged, stays for the 136 years that Max-Age can say.
pub(super) fn freshness(code: Code, options: &Options) -> Duration {
    let told = options.get_uint(OptionNumber::MAX_AGE);
    let told = told.map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(u64::from(seconds)));
    match code.class() {
        Class::Success => told.min(CACHE_FRESH_MAX),
        _ => told.min(CACHE_ERROR_FRESH_MAX),
    }
}
