//! The user's bounds for connections.

use alloc::vec::Vec;

use lowmesh_units::Duration;
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::signaling::Capabilities;

use crate::params;

/// Bounds of [`Connections`](super::Connections).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The largest message that is taken and told to peers (Max-Message-Size), octets.
    pub message_max: usize,
    /// Connections at once.
    pub connections_max: usize,
    /// The same of one source ([`PeerAddress::source`](crate::PeerAddress::source)). One more is closed.
    pub connections_per_source: usize,
    /// Own requests that wait for an answer, over all connections.
    pub open_max: usize,
    /// Unanswered requests of peers, over all connections. One more is answered with 5.03.
    pub incoming_max: usize,
    /// The same of the connections of one source, while there are others.
    pub incoming_per_source: usize,
    /// Octets of the tokens that it makes, 2 to 8.
    pub token_len: usize,
    /// How long the peer's CSM is waited for.
    pub csm_timeout: Duration,
    /// How long a response is waited for.
    pub response_timeout: Duration,
    /// Critical options beyond those of RFC 7252 that the layers above process.
    pub extensions: Vec<OptionNumber>,
    /// Requests for other hosts go to the application; else they are answered with 5.05: see
    /// [`Config::proxy`](crate::Config::proxy).
    pub proxy: bool,
    /// See [`Config::reverse_proxy`](crate::Config::reverse_proxy).
    pub reverse_proxy: bool,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            message_max: params::STREAM_MESSAGE_MAX,
            connections_max: params::CONNECTIONS_MAX,
            connections_per_source: params::CONNECTIONS_PER_SOURCE,
            open_max: params::OPEN_MAX,
            incoming_max: params::INCOMING_MAX,
            incoming_per_source: params::INCOMING_PER_SOURCE,
            token_len: params::TOKEN_LEN,
            csm_timeout: params::CSM_TIMEOUT,
            response_timeout: params::EXCHANGE_LIFETIME,
            extensions: Vec::new(),
            proxy: false,
            reverse_proxy: false,
        }
    }
}

impl ConnectionLimits {
    /// What the CSM says.
    pub(super) fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_message_size: Some(self.message_max as u32),
            block_wise: true,
            extended_token_length: None,
        }
    }
}
