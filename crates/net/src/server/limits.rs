//! The bounds of a server, all of which have defaults.

use std::time::Duration;

use lowmesh_coap::{Config, ConnectionLimits, HostLimits};

use crate::params::{GRACE, HANDSHAKE_MAX, IDLE_MAX, SERVED_CONNECTIONS_MAX};

/// How much a server takes on.
///
/// | bound | where | default |
/// |---|---|---|
/// | peers remembered, each UDP address | `datagrams.peers_max` | 1024 |
/// | requests that are being answered, each UDP address | `datagrams.incoming_max` | 256 |
/// | the same, each connection | `connection.incoming_max` | 256 |
/// | messages remembered against duplicates, each peer and in all | `datagrams.dedup_per_peer`, `dedup_total` | 256, 16,384 |
/// | connections | `connections_max` | 256 |
/// | longest body | `host.body_max` | 1 MiB |
/// | unfinished bodies, and bodies whose later blocks may be asked for | `host.assemblies_max`, `representations_max` | 4 MiB; 1 MiB each connection |
/// | observers, in all and each peer | `host.observers_max`, `observers_per_peer` | 1024, 64 |
/// | answer to an address that is not proven, in requests | `host.amplification_max` | 3 |
///
/// Past a bound a request over datagrams stays without answer, for its client will send it again; a connection
/// is closed, a body refused with 4.13, an observer answered once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of each UDP address, and its congestion control.
    pub datagrams: Config,
    /// Of each connection.
    pub connection: ConnectionLimits,
    /// Bodies, observers and trust, of each UDP address and each connection.
    pub host: HostLimits,
    /// Connections at once, handshakes included.
    pub connections_max: usize,
    /// How long a handshake of TLS or WebSockets may take.
    pub handshake_max: Duration,
    /// How long a client without observations may be silent on its connection.
    pub idle_max: Duration,
    /// How long a server that ends waits for what it has begun.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            datagrams: Config::default(),
            connection: ConnectionLimits::default(),
            host: HostLimits::default(),
            connections_max: SERVED_CONNECTIONS_MAX,
            handshake_max: HANDSHAKE_MAX,
            idle_max: IDLE_MAX,
            grace: GRACE,
        }
    }
}

impl Limits {
    /// What a host over one connection keeps: it has one peer, so one body of each kind.
    pub(super) fn of_connection(&self) -> HostLimits {
        HostLimits {
            assemblies_max: self.host.assemblies_max.min(self.host.body_max),
            representations_max: self.host.representations_max.min(self.host.body_max),
            ..self.host.clone()
        }
    }
}
