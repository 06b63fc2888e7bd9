//! The user's bounds for a host.

use crate::blockwise::Exponent;
use crate::params;

/// The bounds of a host, and its trust in addresses. [`HostLimits::default`] suits a server on the open Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// The largest blocks, both ways, as far as the transport takes them: with [`Exponent::BERT`]
    /// 1024 octets on datagrams, and several such blocks a message on connections.
    pub exponent: Exponent,
    /// Own requests that read say this size to the server with the first message (RFC 7959 s2.4). A server that knows no
    /// blocks refuses such a request.
    pub negotiates: bool,
    /// The longest body that is put together, of a request or of a response, octets.
    pub body_max: usize,
    /// Octets of unfinished request bodies over all peers, with what each costs beside its octets. Past it
    /// the body that waits longest for its next block leaves, unproven addresses first.
    pub assemblies_max: usize,
    /// The same of one source ([`PeerAddress::source`](crate::PeerAddress::source)); one body of the longest kind always
    /// fits.
    pub assemblies_per_source: usize,
    /// Octets of representations that are kept for their later blocks, with what each costs beside its
    /// octets. Past it the least recently used leaves, unproven addresses first.
    pub representations_max: usize,
    /// The same of one source.
    pub representations_per_source: usize,
    /// Octets of responses that a client keeps for requests to come (RFC 7252 s5.6); 0 keeps none.
    pub cache_max: usize,
    /// Requests that take the application time ([`Host::defer`](crate::Host::defer)), over all peers, with 16 MiB of
    /// options and bodies. One source has at most a quarter of both. Unproven addresses have at most half of the total,
    /// and half of each share. One more is answered with 5.03, or with 4.01 and Echo if a proof of the address helps.
    pub requests_max: usize,
    /// Observers over all resources. For one more the oldest unproven observer gives way; if there is none,
    /// the client gets one response without Observe.
    pub observers_max: usize,
    /// Observers of one source.
    pub observers_per_source: usize,
    /// What leaves to an unproven address is at most this many times what came from it, IP and UDP headers
    /// counted, copies and notifications included (RFC 9175 s2.4); `None` trusts every address.
    pub amplification_max: Option<usize>,
    /// A request that came to a group from an unproven address is answered with 4.01 and Echo alone, except for
    /// `/.well-known/core` (RFC 10020 s6.3): one request may bring an answer of each member to a forged address.
    pub challenge_groups: bool,
    /// The largest block of an answer to a group, as for networks whose frames are short (RFC 10020 s3.6). The client asks
    /// for the rest by unicast.
    pub group_block: Option<Exponent>,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            exponent: Exponent::BERT,
            negotiates: false,
            body_max: params::BODY_MAX,
            assemblies_max: params::ASSEMBLIES_MAX,
            assemblies_per_source: params::ASSEMBLIES_PER_SOURCE,
            representations_max: params::REPRESENTATIONS_MAX,
            representations_per_source: params::REPRESENTATIONS_PER_SOURCE,
            cache_max: 0,
            requests_max: params::REQUESTS_MAX,
            observers_max: params::OBSERVERS_MAX,
            observers_per_source: params::OBSERVERS_PER_SOURCE,
            amplification_max: Some(params::AMPLIFICATION_MAX),
            challenge_groups: false,
            group_block: None,
        }
    }
}
