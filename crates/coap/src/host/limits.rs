//! The user's bounds for a host.

use crate::blockwise::Exponent;
use crate::params;

/// How much a host keeps, and how far it trusts an address. [`HostLimits::default`] suits a server
/// on the open Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// The largest blocks, both ways, as far as the transport takes them: with [`Exponent::BERT`]
    /// 1024 octets on datagrams, and several such blocks a message on connections.
    pub exponent: Exponent,
    /// The longest body that is put together, of a request or of a response, octets.
    pub body_max: usize,
    /// Octets of unfinished request bodies over all peers.
    pub assemblies_max: usize,
    /// Octets of representations that are kept for their later blocks.
    pub representations_max: usize,
    /// Octets of responses that a client keeps for requests to come (RFC 7252 s5.6); 0 keeps none.
    pub cache_max: usize,
    /// Requests that the application is answering, over all peers; past it the oldest is answered without what a host
    /// adds: blocks, observers, conditions. Not less than the transport's own bound.
    pub requests_max: usize,
    /// Observers over all resources.
    pub observers_max: usize,
    /// Observers with one peer's address.
    pub observers_per_peer: usize,
    /// An answer to an address that is not proven is at most this many times its request (RFC 9175
    /// s2.4); `None` trusts every address.
    pub amplification_max: Option<usize>,
    /// Peers remembered as proven, and as many that are to prove themselves.
    pub echo_peers_max: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            exponent: Exponent::BERT,
            body_max: params::BODY_MAX,
            assemblies_max: params::ASSEMBLIES_MAX,
            representations_max: params::REPRESENTATIONS_MAX,
            cache_max: 0,
            requests_max: params::INCOMING_MAX,
            observers_max: params::OBSERVERS_MAX,
            observers_per_peer: params::OBSERVERS_PER_PEER,
            amplification_max: Some(params::AMPLIFICATION_MAX),
            echo_peers_max: params::ECHO_PEERS_MAX,
        }
    }
}
