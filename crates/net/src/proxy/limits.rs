//! The bounds of a proxy, all of which have defaults, and what of them is not possible.

use lowmesh_coap::{Config, CongestionControl, ConnectionLimits, HostLimits};
use lowmesh_congestion::WindowSpec;
use lowmesh_congestion::window::{Limits, reno};

use super::access::Access;
use crate::client::Error;
use crate::params::{
    PROXY_CACHE_MAX, PROXY_CONNECTIONS_MAX, PROXY_OBSERVATIONS_MAX, PROXY_PENDING_MAX,
    PROXY_PENDING_PER_ORIGIN, PROXY_STATES_MAX, PROXY_WINDOW_MESSAGES,
};
use crate::tls::TlsClient;

/// The limits of a proxy, in addition to those of its server.
///
/// | bound | where | default | share |
/// |---|---|---|---|
/// | memory of answers that are kept, octets | `cache_max` | 4 MiB | the least recently used go first |
/// | requests under way or waiting | `pending_max` | 256 | a client half; unproven addresses half |
/// | the same to one origin | `pending_per_origin` | 64 | as above |
/// | connections to origins | `connections_max` | 64 | a client half |
/// | observations at origins | `observations_max` | 256 | a client as many as are still free |
/// | states of these, octets | `states_max` | 8 MiB | a client as many as are still free |
/// | longest body | `host.body_max` | 1 MiB | |
///
/// A client is an IPv4 address or an IPv6 network of 64 bits, and wider prefixes count while places are short. Past a bound a
/// request takes the place of one whose grace is over, or is answered with 5.03 at once; one that observes is answered once,
/// without Observe. Requests of several clients to one origin leave in turn, one of each.
#[derive(Clone, Debug)]
pub struct ProxyLimits {
    /// Which clients may ask, and for which targets.
    pub access: Access,
    /// The endpoint that asks origins over UDP, and its congestion control. By default two requests to one origin may be
    /// without an acknowledgement, and one after a timeout (RFC 5681): so a slow answer does not hold up others. Unproven
    /// clients get all but one of these places. Its `open_max` is made to fit `pending_max` and `observations_max`.
    pub datagrams: Config,
    /// Each connection to an origin.
    pub connection: ConnectionLimits,
    /// Bodies.
    pub host: HostLimits,
    /// Octets of memory for answers that are kept; 0 keeps none.
    pub cache_max: usize,
    /// Requests to origins, waiting ones included.
    pub pending_max: usize,
    /// The same to one origin.
    pub pending_per_origin: usize,
    /// Connections to origins at once.
    pub connections_max: usize,
    /// Observations at origins, each for all the clients that ask the same.
    pub observations_max: usize,
    /// Octets of the states that these keep, one each: options and body.
    pub states_max: usize,
    /// The authorities to trust for coaps+tcp and coaps+ws; without it these schemes are answered with 5.05.
    pub tls: Option<TlsClient>,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            access: Access::default(),
            datagrams: Config { congestion: congestion(), ..Config::default() },
            connection: ConnectionLimits::default(),
            host: HostLimits::default(),
            cache_max: PROXY_CACHE_MAX,
            pending_max: PROXY_PENDING_MAX,
            pending_per_origin: PROXY_PENDING_PER_ORIGIN,
            connections_max: PROXY_CONNECTIONS_MAX,
            observations_max: PROXY_OBSERVATIONS_MAX,
            states_max: PROXY_STATES_MAX,
            tls: None,
        }
    }
}

/// RFC 7252 s4.8.1: NSTART MUST NOT be larger without a mechanism that keeps congestion control safe. The window falls to one
/// request with each timeout (RFC 5681 s3.1), and the timer is that of RFC 7252 s4.2: never below 2 s, and doubled each time.
fn congestion() -> CongestionControl {
    let limits = Limits::messages(PROXY_WINDOW_MESSAGES, PROXY_WINDOW_MESSAGES);
    CongestionControl {
        window: WindowSpec::new(&reno::ROW, limits),
        ..CongestionControl::default()
    }
}

/// A proxy that cannot be made: a setting or a key is not possible.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ProxyError(#[from] Error);
