//! Numbers of a node that belong to none of its layers, each with its source, unit and bounds.

use lowmesh_tcp::KeepAlive;
use lowmesh_units::Duration;

pub use lowmesh_ipv6::params::ECHO_PORT;

/// How long a node stays synchronised without a DODAG before it looks for a network again: no RFC,
/// ours is 180 s, longer than RPL's local repair takes. Nodes cut off together give each other the time; they
/// would drift away from the network as one and never hear it again. Of TSCH only.
pub const ORPHAN_MAX: Duration = Duration::from_secs(180);

/// The join metric in beacons of a node that left the DODAG: the largest one. Joining nodes ignore
/// such beacons ([`JOIN_METRIC_MAX`](lowmesh_mac::params::JOIN_METRIC_MAX)), as RFC 8180 s6.1 derives the metric from a
/// rank that is infinite now.
pub const JOIN_METRIC_INFINITE: u8 = u8::MAX;

/// Longest wait of a leaf before it first asks for routers: RFC 4861 s10, `MAX_RTR_SOLICITATION_DELAY`, 1 s.
pub const LEAF_START_MAX: Duration = Duration::from_secs(1);

/// Solicitations of a leaf at the first interval: RFC 6775 s9, `MAX_RTR_SOLICITATIONS`, 3.
pub const LEAF_SOLICITATIONS: u32 = 3;

/// That interval, in which the leaf also collects answers: RFC 6775 s9, `RTR_SOLICITATION_INTERVAL`, 10 s.
pub const LEAF_SOLICITATION_WAIT: Duration = Duration::from_secs(10);

/// The longest interval: RFC 6775 s9, `MAX_RTR_SOLICITATION_INTERVAL`, 60 s.
pub const LEAF_SOLICITATION_WAIT_MAX: Duration = Duration::from_secs(60);

/// Minutes for which a leaf registers: RFC 6775 s5.5 leaves it to the host; ours, 10: a router that died is noticed by then,
/// and a renewal is one exchange and one DAO in four to five minutes.
pub const LEAF_LIFETIME_MINUTES: u16 = 10;

/// The first wait of a leaf for the answer to a registration: ours, 10 s, some slotframes of a router that is busy. RFC 4861
/// s10 has 1 s (`RETRANS_TIMER`), in which a slotted network of several neighbours may answer nobody. It doubles.
pub const LEAF_ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Times that a leaf asks a router: RFC 4861 s10, `MAX_UNICAST_SOLICIT`, 3.
pub const LEAF_TRIES: u32 = 3;

/// How long a router that did not answer, or refused, comes after the others: ours, 10 min, as for a RPL parent that refuses.
pub const LEAF_AVOIDS: Duration = Duration::from_secs(600);

/// Routers that a leaf chooses from, and those that it avoids: ours, 16.
pub const LEAF_CANDIDATES: usize = 16;

/// Numbers that a leaf skips when its registration is old news: half of SEQUENCE_WINDOW (RFC 6550 s7.2), so that two answers
/// leave the window of any number.
pub const LEAF_NUMBERS_SKIPPED: u8 = 8;

/// Applications of one node: ours, one for each other node of a large mesh; one more is refused.
pub const APPLICATIONS_MAX: u16 = 1024;

/// The port of CoAP without security: RFC 7252 s6.1.
pub const COAP_PORT: u16 = 5683;

/// The port on which a node's application takes UDP datagrams: 61616, the first of those that RFC 6282 s4.3.3
/// compresses to four bits.
pub const DATAGRAM_PORT: u16 = 0xf0b0;

/// The ports of own TCP connections: the dynamic ports of RFC 6335 s6, 49152 to 65535.
pub const EPHEMERAL_PORTS: (u16, u16) = (49_152, 65_535);

/// TCP connections of one node: ours, one for each other node of a large mesh and its next one.
pub const STREAMS_MAX: usize = 2048;

/// TCP connections of one node with one address: ours, a few behind each other.
pub const STREAMS_PER_ADDRESS: usize = 4;

/// Time in FIN-WAIT-2 after which a connection that the node has closed ends: Linux (tcp_fin_timeout), 60 s.
pub const STREAM_FIN_WAIT: Duration = Duration::from_secs(60);

/// Silence after which a peer that the node did not call is asked whether it is there, and the probes: RFC 9293 s3.8.4
/// and Linux, 2 h, then nine probes 75 s apart.
pub const STREAM_KEEP_ALIVE: KeepAlive = KeepAlive::LINUX;

/// Octets of a TCP connection that wait for room in its send buffer: ours, 256 KiB, twice the buffer of a Linux host.
pub const STREAM_WAITING_OCTETS: usize = 256 * 1024;

/// Octets that all TCP connections of a node hold: ours, 128 MiB, an eighth of what all can hold by their own bounds.
pub const STREAMS_OCTETS_MAX: usize = 128 * 1024 * 1024;

/// The same with one address: ours, 4 MiB, twice what four connections of a Linux host hold.
pub const STREAMS_OCTETS_PER_ADDRESS: usize = 4 * 1024 * 1024;

/// Connections whose peers have not finished the handshake: ours, a quarter of the table, and at least so many, so that
/// peers behind slow links do not replace each other in a small table.
pub const STREAMS_HALF_OPEN_MIN: usize = 16;
