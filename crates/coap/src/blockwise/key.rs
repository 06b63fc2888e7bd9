//! Which requests belong to one transfer: same method, same options but those that change from
//! block to block (RFC 7959 s2.5, RFC 9175 s3.3).

use alloc::vec::Vec;

use lowmesh_wire::coap::{Code, Message, OptionNumber, Options};

use crate::exchange::Association;

/// Which blocks of a peer belong together: those of one sender and of one request.
///
/// RFC 9175 s3.5.1: each block is protected by itself; what two senders protect is never one body. The octets of the
/// association come first. A map with shares has each key three times, so a key is one allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodyKey(Vec<u8>);

impl BodyKey {
    /// The body that requests with this key are about, under the protection of their sender.
    pub fn new(association: &Association, request: &RequestKey) -> Self {
        let mut key = Vec::with_capacity(ASSOCIATION_OCTETS + request.0.len());
        match association {
            Association::Open => key.push(0),
            Association::Context(number) => {
                key.push(1);
                key.extend_from_slice(&number.to_be_bytes());
            }
            Association::Member { group, id } => {
                key.push(2);
                key.extend_from_slice(&group.to_be_bytes());
                // The length keeps what follows apart from the identifier.
                key.extend_from_slice(&id.len().to_be_bytes());
                key.extend_from_slice(id);
            }
        }
        key.extend_from_slice(&request.0);
        key.shrink_to_fit();
        Self(key)
    }
    /// Octets of the key.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// Octets of the longest association beside an identifier: a kind, a number and a length.
const ASSOCIATION_OCTETS: usize = 1 + 2 * size_of::<usize>();

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

    #[test]
    fn no_two_senders_have_one_key() {
        let member = |group, id: &[u8]| Association::Member { group, id: id.to_vec() };
        let senders = [
            Association::Open,
            Association::Context(0),
            Association::Context(1),
            member(0, b""),
            member(1, b""),
            member(0, &[1]),
            member(0, &[1, 0]),
        ];
        let requests = [&[1][..], &[0, 1], &[1, 0, 1]].map(|bytes| RequestKey(bytes.to_vec()));
        let all =
            senders.iter().flat_map(|one| requests.iter().map(move |key| BodyKey::new(one, key)));
        let keys: alloc::collections::BTreeSet<BodyKey> = all.collect();
        assert_eq!(keys.len(), senders.len() * requests.len());
    }

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
