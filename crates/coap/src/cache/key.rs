//! Which requests one stored response answers: the Cache-Key (RFC 7252 s5.4.6, s5.6).

use alloc::boxed::Box;

use lowmesh_wire::coap::{Code, OptionNumber, Options};

use crate::event::RequestTemplate;

/// Origin, resource and request of an entry, in this order, so that a resource is a range of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<P> {
    pub(super) origin: P,
    /// The options that name the resource, as they are encoded.
    resource: Box<[u8]>,
    /// Method, the other options with the number of their octets, and the body of a FETCH.
    request: Box<[u8]>,
}

impl<P: Clone + PartialEq> Key<P> {
    /// The key of a request that may be answered from a cache.
    pub(super) fn of(origin: &P, request: &RequestTemplate) -> Option<Self> {
        let options = &request.options;
        // For FETCH the body belongs to the request (RFC 8132 s2.1).
        let body: &[u8] = match request.code {
            Code::GET => &[],
            Code::FETCH => &request.payload,
            _ => return None,
        };
        let asks_for_part = options.get(OptionNumber::BLOCK2).is_some();
        let observes = options.get(OptionNumber::OBSERVE).is_some();
        // RFC 8613 s10: a proxy that knows OSCORE SHALL bypass caching.
        let protected = options.get(OptionNumber::OSCORE).is_some();
        if asks_for_part || observes || protected {
            return None;
        }
        let mut others = options.clone();
        others.retain(|option| !names_resource(option.number) && is_of_key(option.number));
        let others = others.as_bytes();
        let len = (others.len() as u64).to_be_bytes();
        let request = [&[request.code.0][..], &len[..], others, body].concat();
        Some(Self { origin: origin.clone(), resource: resource(options), request: request.into() })
    }
    /// A key before all keys of a resource.
    pub(super) fn first_of(origin: &P, resource: Box<[u8]>) -> Self {
        Self { origin: origin.clone(), resource, request: Box::default() }
    }
    /// True for keys of one resource.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.origin == other.origin && self.resource == other.resource
    }
}

impl<P> Key<P> {
    /// Octets on the heap, without those of the origin.
    pub(super) const fn octets(&self) -> usize {
        self.resource.len() + self.request.len()
    }
}

/// The options that name the resource.
pub(super) fn resource(options: &Options) -> Box<[u8]> {
    let mut uri = options.clone();
    uri.retain(|option| names_resource(option.number));
    uri.as_bytes().into()
}

const fn names_resource(number: OptionNumber) -> bool {
    matches!(
        number,
        OptionNumber::URI_HOST
            | OptionNumber::URI_PORT
            | OptionNumber::URI_PATH
            | OptionNumber::URI_QUERY
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME
    )
}

/// RFC 7252 s5.6: all options match, but those that are NoCacheKey and those that the cache
/// interprets: ETag, and No-Response, which the endpoint deals with (RFC 7967 s2.1). Hop-Limit is
/// part of the key (RFC 8768 s3).
const fn is_of_key(number: OptionNumber) -> bool {
    !matches!(number, OptionNumber::ETAG | OptionNumber::NO_RESPONSE)
        && (number.is_unsafe() || !number.is_no_cache_key())
}
