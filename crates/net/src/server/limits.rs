//! The bounds of a server, all of which have defaults.

use std::time::Duration;

use lowmesh_coap::{Config, ConnectionLimits, HostLimits};

use crate::dtls::SessionLimits;
use crate::params::{
    GRACE, HANDSHAKE_MAX, IDLE_MAX, LEAVING_MAX, OPENING_MAX, OPENING_PER_SOURCE_MAX, PONG_MAX,
    RECEIVE_MAX, SEND_MAX, SERVED_BODIES_MAX, SERVED_BODIES_PER_SOURCE_MAX, SERVED_BUSY_MAX,
    SERVED_CONNECTIONS_MAX, SERVED_OUTGOING_MAX, SERVED_OUTGOING_PER_SOURCE_MAX,
    SERVED_PER_SOURCE_MAX, SERVED_REQUESTS_MAX, SERVED_REQUESTS_PER_SOURCE_MAX,
};

/// The limits of a server.
///
/// | bound | where | default |
/// |---|---|---|
/// | peers remembered, in all and each source, each UDP address | `datagrams.peers_max`, `peers_per_source` | 2560, 640 |
/// | requests that take time, each UDP address and connection; a quarter for one source, half for unproven addresses | `host.requests_max` | 256 |
/// | requests that are not answered, in all and each source, each UDP address | `datagrams.incoming_max`, `incoming_per_source` | 768, 192 |
/// | messages remembered against duplicates, each peer and in all | `datagrams.dedup_per_peer`, `dedup_total` | 256, 16,384 |
/// | connections, in all and each source | `connections_max`, `connections_per_source` | 256, 64 |
/// | connections whose handshake or CSM is not complete, in all and each source | `opening_max`, `opening_per_source` | 256, 64 |
/// | connections that have lost their place and leave | `leaving_max` | 64 |
/// | DTLS sessions, in all and each source, each port | `sessions.open_max`, `open_per_source` | 1024, 256 |
/// | DTLS handshakes, in all and each source, each port | `sessions.handshakes_max`, `handshakes_per_source` | 256, 64 |
/// | longest body | `host.body_max` | 1 MiB |
/// | unfinished bodies, in all and each source | `host.assemblies_max`, `assemblies_per_source` | 8 MiB, 2 MiB; 1 MiB each connection |
/// | bodies whose later blocks may be asked for, in all and each source | `host.representations_max`, `representations_per_source` | 16 MiB, 4 MiB; 1 MiB each connection |
/// | octets of bodies on all connections, in all and each source | `bodies_max`, `bodies_per_source` | 32 MiB, 8 MiB |
/// | octets of requests that take time on all connections, in all and each source | `requests_max`, `requests_per_source` | 16 MiB, 4 MiB |
/// | octets that wait to leave on all connections, in all and each source | `outgoing_max`, `outgoing_per_source` | 32 MiB, 8 MiB |
/// | observers, in all and each source, each UDP address and all connections | `host.observers_max`, `observers_per_source` | 1024, 256 |
/// | octets to an unproven address, in octets that came from it | `host.amplification_max` | 3 |
///
/// Past a bound a request is answered with 5.03 and Max-Age, or with 4.01 and Echo where a proof of the address helps; a
/// body that is too long is refused with 4.13, an observer answered once. A source is an IPv4 address or an IPv6 /64. One more connection takes the place of the
/// longest idle one without observations and requests: of its own source if that holds its share, else of a source that
/// holds at least as much. A greedy source, or prefix, gives one that observes too, and everybody one that has done so for
/// `busy_max`; if there is none the new one is closed. One more session takes the place of the one used longest ago, likewise.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of each UDP address, and its congestion control.
    pub datagrams: Config,
    /// Of each connection.
    pub connection: ConnectionLimits,
    /// Bodies, observers and trust, of each UDP address and each connection.
    pub host: HostLimits,
    /// DTLS sessions of each port.
    pub sessions: SessionLimits,
    /// Connections at once whose peers have sent their CSM.
    pub connections_max: usize,
    /// The same of one source.
    pub connections_per_source: usize,
    /// How long a connection that observes or waits for an answer keeps its place while others wait for one.
    pub busy_max: Duration,
    /// Connections at once whose handshakes or CSM are not complete.
    pub opening_max: usize,
    /// The same of one source.
    pub opening_per_source: usize,
    /// Connections that have lost their place and may leave at once.
    pub leaving_max: usize,
    /// Octets of unfinished request bodies, of response bodies kept for later blocks and of states that wait to be sent, over
    /// all connections. Past it the longest idle connection with bodies loses them: its upload is answered with 4.08, its
    /// download begins again.
    pub bodies_max: usize,
    /// The same of one source; two bodies of the longest kind always fit.
    pub bodies_per_source: usize,
    /// Octets of requests that take the application time, over all connections. Past it one more is answered with 5.03.
    pub requests_max: usize,
    /// The same of one source; one with a body of the longest kind always fits.
    pub requests_per_source: usize,
    /// Octets that wait to leave, over all connections, without the first 16 KiB of each. Past it each connection gets its
    /// next message once fewer than 16 KiB wait on it.
    pub outgoing_max: usize,
    /// The same of one source.
    pub outgoing_per_source: usize,
    /// How long a client may take from its connection to its CSM, the handshakes of TLS and WebSockets included.
    pub handshake_max: Duration,
    /// How long a client may be silent on its connection. One that observes is then asked with a Ping whether it is there.
    pub idle_max: Duration,
    /// How long a client may take to answer that Ping.
    pub pong_max: Duration,
    /// How long a message may take from its first octet to its last.
    pub receive_max: Duration,
    /// How long a client may take to read what is sent to it.
    pub send_max: Duration,
    /// How long a server that ends waits for what it has begun.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            datagrams: Config::default(),
            connection: ConnectionLimits::default(),
            host: HostLimits::default(),
            sessions: SessionLimits::default(),
            connections_max: SERVED_CONNECTIONS_MAX,
            connections_per_source: SERVED_PER_SOURCE_MAX,
            busy_max: SERVED_BUSY_MAX,
            opening_max: OPENING_MAX,
            opening_per_source: OPENING_PER_SOURCE_MAX,
            leaving_max: LEAVING_MAX,
            bodies_max: SERVED_BODIES_MAX,
            bodies_per_source: SERVED_BODIES_PER_SOURCE_MAX,
            requests_max: SERVED_REQUESTS_MAX,
            requests_per_source: SERVED_REQUESTS_PER_SOURCE_MAX,
            outgoing_max: SERVED_OUTGOING_MAX,
            outgoing_per_source: SERVED_OUTGOING_PER_SOURCE_MAX,
            handshake_max: HANDSHAKE_MAX,
            idle_max: IDLE_MAX,
            pong_max: PONG_MAX,
            receive_max: RECEIVE_MAX,
            send_max: SEND_MAX,
            grace: GRACE,
        }
    }
}

impl Limits {
    /// What a host over one connection keeps: it has one peer, so one body of each kind.
    pub(crate) fn of_connection(&self) -> HostLimits {
        HostLimits {
            assemblies_max: self.host.assemblies_max.min(self.host.body_max),
            representations_max: self.host.representations_max.min(self.host.body_max),
            ..self.host.clone()
        }
    }
    /// How long answers may take once the server ends; what is left of the grace is for the farewell.
    pub(super) fn answers_within(&self) -> Duration {
        self.grace.mul_f64(0.8)
    }
}
