//! The bounds of a proxy, all of which have defaults, and what of them is not possible.

use lowmesh_coap::{Config, ConnectionLimits, HostLimits};

use crate::client::Error;
use crate::params::{PROXY_CACHE_MAX, PROXY_CONNECTIONS_MAX, PROXY_OBSERVATIONS_MAX};
use crate::tls::TlsClient;

/// How much a proxy takes on beyond what its server does.
///
/// | bound | where | default |
/// |---|---|---|
/// | octets of answers that are kept | `cache_max` | 4 MiB |
/// | connections to origins | `connections_max` | 64 |
/// | observations at origins | `observations_max` | 256 |
/// | requests that wait for an origin over UDP | `datagrams.queue_max`, `open_max` | 32, 256 |
/// | longest body | `host.body_max` | 1 MiB |
///
/// Past a bound a request is answered with 5.03, and one that observes once, without Observe.
#[derive(Clone, Debug)]
pub struct ProxyLimits {
    /// The endpoint that asks origins over UDP, and its congestion control.
    pub datagrams: Config,
    /// Each connection to an origin.
    pub connection: ConnectionLimits,
    /// Bodies.
    pub host: HostLimits,
    /// Octets of answers that are kept; 0 keeps none.
    pub cache_max: usize,
    /// Connections to origins at once.
    pub connections_max: usize,
    /// Observations at origins, each for all the clients that ask the same.
    pub observations_max: usize,
    /// Whom to trust for coaps+tcp and coaps+ws; without it these schemes are answered with 5.05.
    pub tls: Option<TlsClient>,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            datagrams: Config::default(),
            connection: ConnectionLimits::default(),
            host: HostLimits::default(),
            cache_max: PROXY_CACHE_MAX,
            connections_max: PROXY_CONNECTIONS_MAX,
            observations_max: PROXY_OBSERVATIONS_MAX,
            tls: None,
        }
    }
}

/// A proxy that cannot be made: a setting or a key is not possible.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ProxyError(#[from] Error);
