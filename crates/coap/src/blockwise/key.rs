//! Which requests belong to one transfer: same method, same options but those that change from
//! block to block (RFC 7959 s2.5, RFC 9175 s3.3).

use alloc::vec::Vec;

use lowmesh_wire::coap::{Code, Message, OptionNumber, Options};

use crate::exchange::Association;

/// Which blocks of a peer belong together: those of one sender and of one request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodyKey {
    // RFC 9175 s3.5.1: each block is protected by itself; what two senders protect is never one body.
    association: Association,
    request: RequestKey,
}

impl BodyKey {
    /// The body that requests with this key are about, under the protection of their sender.
    pub const fn new(association: Association, request: RequestKey) -> Self {
        Self { association, request }
    }
    /// Octets of the key.
    pub(crate) const fn len(&self) -> usize {
        let id = match &self.association {
            Association::Member { id, .. } => id.len(),
            Association::Open | Association::Context(_) => 0,
        };
        id + self.request.len()
    }
}

/// What the blocks of one body have in common, Request-Tag included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey(Vec<u8>);

impl RequestKey {
    /// The key of a request.
    pub fn of(request: &Message) -> Self {
        Self::from_parts(request.code, &request.options)
    }
    /// The key of a request with this method and these options.
    pub fn from_parts(code: Code, options: &Options) -> Self {
        let mut kept = options.clone();
        kept.retain(|option| !varies(option.number));
        let mut key = Vec::with_capacity(1 + kept.as_bytes().len());
        key.push(code.0);
        key.extend_from_slice(kept.as_bytes());
        Self(key)
    }
    /// Octets of the key.
    const fn len(&self) -> usize {
        self.0.len()
    }
}

/// Options that differ between the blocks of one body, or do not select a representation.
const fn varies(number: OptionNumber) -> bool {
    // RFC 9175 s3.3: all options but the block options and those that are NoCacheKey have to match.
    // Observe and ETag stand in the first request only, and what a hop does is its own affair.
    matches!(
        number,
        OptionNumber::BLOCK1
            | OptionNumber::BLOCK2
            | OptionNumber::OBSERVE
            | OptionNumber::ETAG
            | OptionNumber::HOP_LIMIT
            | OptionNumber::NO_RESPONSE
    ) || (!number.is_unsafe() && number.is_no_cache_key())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: OptionNumber, value: u32) -> RequestKey {
        let mut options = Options::new();
        options.insert_path("/a");
        options.insert_uint(number, value);
        RequestKey::from_parts(Code::PUT, &options)
    }

    #[test]
    fn blocks_of_one_body_have_one_key() {
        let plain = key(OptionNumber::BLOCK1, 0);
        for number in [OptionNumber::BLOCK1, OptionNumber::SIZE1, OptionNumber::ECHO] {
            assert_eq!(key(number, 7), plain, "{number:?}");
        }
    }

    #[test]
    fn bodies_with_different_tags_queries_or_formats_have_different_keys() {
        let tags = [OptionNumber::REQUEST_TAG, OptionNumber::URI_QUERY, OptionNumber::ACCEPT];
        for number in tags {
            assert_ne!(key(number, 1), key(number, 2), "{number:?}");
        }
    }
}
