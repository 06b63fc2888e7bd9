//! Numbers of the drivers, and the bounds that are ours.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// All CoAP Nodes, IPv4: RFC 7252 s12.8.
pub const ALL_COAP_NODES_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 187);
/// All CoAP Nodes, link-local: RFC 7252 s12.8.
pub const ALL_COAP_NODES_LINK: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd);
/// All CoAP Nodes, site-local: RFC 7252 s12.8.
pub const ALL_COAP_NODES_SITE: Ipv6Addr = Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd);
/// Datagrams read with one call of the system; ours.
pub const BATCH: usize = 32;
/// The same while no more than one comes at a time; ours: a second place shows that more come.
pub const BATCH_QUIET: usize = 2;
/// Octets of the buffer for one datagram, or for several of one sender that the system has put
/// together: a UDP datagram at most.
pub const BUFFER_LEN: usize = 65_536;
/// Datagrams that wait for room in the socket; ours. More are lost, as in any queue on the path.
pub const UNSENT_MAX: usize = 1024;
/// Of these, at most so many to one source; ours, a quarter. A path that takes nothing leaves room for the others.
pub const UNSENT_PER_SOURCE_MAX: usize = 256;
/// Datagrams that are read before the other tasks and the timers have their turn; ours, less than a millisecond of work.
pub const READ_IN_A_ROW_MAX: usize = 4 * BATCH;
/// Unreachable addresses that ICMP names and that are looked up, within [`UNREACHABLE_PERIOD`]; ours. Each costs five
/// calls of the system, and anybody can cause it; past it a peer that is gone is found by timeouts.
pub const UNREACHABLE_MAX: u32 = 64;
/// The period of [`UNREACHABLE_MAX`]; ours.
pub const UNREACHABLE_PERIOD: Duration = Duration::from_secs(1);
/// How often a datagram is tried again when the system reports errors of earlier datagrams in its place; ours.
pub const SEND_TRIES: usize = 4;
/// Open DTLS sessions at once; ours, at some 10 kB each.
pub const SESSIONS_MAX: usize = 1024;
/// Open DTLS sessions of one source, an IPv4 address or an IPv6 /64; ours, a quarter.
pub const SESSIONS_PER_SOURCE_MAX: usize = 256;
/// DTLS handshakes in progress, behind the cookie; ours.
pub const HANDSHAKES_MAX: usize = 256;
/// The same of one source; ours, a quarter.
pub const HANDSHAKES_PER_SOURCE_MAX: usize = 64;
/// How long a DTLS server makes cookies with one secret; ours. Cookies of the secret before still count (RFC 6347 s4.2.1).
pub const COOKIE_SECRET_LIFETIME: Duration = Duration::from_secs(60);
/// Cookie exchanges that a ClientHello may have behind it; ours: a change of the secret takes a second one.
pub const COOKIE_EXCHANGES_MAX: u16 = 4;
/// Lost sessions that are remembered until a caller asks for their cause; ours.
pub const LOSSES_MAX: usize = 16;
/// Datagrams that wait for a handshake, each session; ours.
pub const WAITING_MAX: usize = 16;
/// Octets of a DTLS datagram: IPv6's least MTU less the headers of IPv6 and UDP.
pub const DTLS_MTU: usize = 1280 - 48;
/// First retransmission of a handshake: RFC 7925 s11 wants 9 s in constrained networks, RFC 6347
/// s4.2.4.1 1 s; ours is the latter.
pub const HANDSHAKE_RTO: Duration = Duration::from_secs(1);
/// A handshake is given up after: RFC 6347 leaves it open; dimpl's default.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(40);
/// A client's handshake is given up so long after the peer's first answer: ours; four copies of a flight with the timers
/// of RFC 6347 s4.2.4.1. A server that cannot read the client's last flight says nothing (s4.1.2.7).
pub const HANDSHAKE_STALL: Duration = Duration::from_secs(15);
/// Longest identity and key: RFC 4279 s5.3 asks for identities of 128 and keys of 64 octets.
pub const IDENTITY_LEN_MAX: usize = 128;
/// Longest pre-shared key, octets: RFC 4279 s5.3.
pub const KEY_LEN_MAX: usize = 64;
/// The largest message that is taken from a byte stream, octets; ours, several blocks of BERT.
pub const STREAM_MESSAGE_MAX: usize = 65_536 + 1152;
/// Octets of memory that an empty buffer of a connection keeps, each way; ours. Most messages are shorter.
pub const STREAM_BUFFER_KEPT: usize = 4 << 10;
/// Connections that a server takes at once; ours: each may hold two bodies.
pub const SERVED_CONNECTIONS_MAX: usize = 256;
/// The same of one source, an IPv4 address or an IPv6 /64; ours, a quarter.
pub const SERVED_PER_SOURCE_MAX: usize = 64;
/// How long a connection that observes or waits for an answer keeps its place while others wait for one; ours: an observer
/// that has lost its place can register again, and then has as long once more.
pub const SERVED_BUSY_MAX: Duration = Duration::from_secs(60);
/// Connections whose handshakes or CSM are not complete; ours: a client 200 ms away needs some 600 ms for TLS, in which a
/// flood of other sources takes as few places as possible from it.
pub const OPENING_MAX: usize = 256;
/// The same of one source; ours, a quarter.
pub const OPENING_PER_SOURCE_MAX: usize = 64;
/// Connections that wait until the server accepts them; ours. Linux has 128 by default, and where they are full drops the
/// next SYN, which costs that client a second (RFC 6298 s2.1). The system may have a lower bound.
pub const LISTEN_BACKLOG: u32 = 1024;
/// Octets of datagrams that wait until a server reads them; ours: some 20 ms of the shortest at 100,000 a second. Linux takes
/// twice as much for its own records, up to its own bound.
pub const SERVED_RECEIVE_BUFFER: usize = 1 << 20;
/// Connections that have lost their place, and leave in order; ours.
pub const LEAVING_MAX: usize = 64;
/// Octets of bodies that all connections of a server keep, with what each costs beside its octets: unfinished requests, and
/// responses whose later blocks may be asked for; ours, some more than one UDP address keeps.
pub const SERVED_BODIES_MAX: usize = 32 << 20;
/// The same of one source; ours, a quarter: four connections with a body of the longest kind each way.
pub const SERVED_BODIES_PER_SOURCE_MAX: usize = 8 << 20;
/// Octets of requests that take the application time, over all connections of a server; ours: 16 with the longest body, or
/// 16,384 without one.
pub const SERVED_REQUESTS_MAX: usize = 16 << 20;
/// The same of one source; ours, a quarter.
pub const SERVED_REQUESTS_PER_SOURCE_MAX: usize = 4 << 20;
/// Octets that such a request costs beside its body and its options; ours.
pub const REQUEST_OVERHEAD: usize = 1024;
/// How long a client may take from its connection to its CSM, the handshakes of TLS and WebSockets included; ours.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be silent; ours: others may want its place.
pub const IDLE_MAX: Duration = Duration::from_secs(600);
/// How long a peer that was silent, an observer for [`IDLE_MAX`] or a server for [`CLIENT_SILENCE`], may take to answer a
/// Ping (RFC 8323 s5.4); ours.
pub const PONG_MAX: Duration = Duration::from_secs(30);
/// How long a message may take from its first octet to its last; ours: the longest one at 1 kB a second.
pub const RECEIVE_MAX: Duration = Duration::from_secs(60);
/// How long what is queued for a peer may take until all of it has left; ours.
pub const SEND_MAX: Duration = Duration::from_secs(60);
/// Octets of the buffer of the system for a served connection; ours. Linux takes twice as much for its own records, and by
/// default lets the buffer grow to 4 MiB.
pub const SERVED_SEND_BUFFER: usize = 128 << 10;
/// Octets that wait for one peer before nothing more is made for it; ours: several of the longest messages.
pub const OUTGOING_MAX: usize = 256 << 10;
/// Of these, octets that may wait on any connection, whatever waits on others; ours: most messages are shorter, and a longer
/// one may begin as long as fewer wait.
pub const OUTGOING_FREE: usize = 16 << 10;
/// Octets beyond [`OUTGOING_FREE`] that wait on all connections of a server; ours: 136 connections may have [`OUTGOING_MAX`].
pub const SERVED_OUTGOING_MAX: usize = 32 << 20;
/// The same of one source; ours, a quarter.
pub const SERVED_OUTGOING_PER_SOURCE_MAX: usize = 8 << 20;
/// How long a connection that is being released may last; ours.
pub const RELEASE_MAX: Duration = Duration::from_secs(5);
/// How long a server that ends waits for the answers that are being made; ours.
pub const GRACE: Duration = Duration::from_secs(5);
/// How often a server that ends looks whether it is done; ours.
pub const END_LOOK: Duration = Duration::from_millis(20);
/// How long a server waits when the system gives it no connection, as without file descriptors; ours.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Changes of resources that a server has not looked at yet; ours. Past it every resource counts as changed.
pub const CHANGES_MAX: usize = 256;
/// Octets of a path that a log of requests is told; ours.
pub const LOGGED_PATH_MAX: usize = 256;
/// Octets of answers that a proxy keeps; ours.
pub const PROXY_CACHE_MAX: usize = 4 << 20;
/// Connections of a proxy to origins; ours.
pub const PROXY_CONNECTIONS_MAX: usize = 64;
/// The name of a proxy in its diagnostics: RFC 8768 s4, without a space.
pub const PROXY_NAME: &str = "lowmesh-proxy";
/// Requests of a proxy to origins, waiting ones included; ours, as many as one address of its server answers at a time.
pub const PROXY_PENDING_MAX: usize = 256;
/// The same to one origin; ours: a quarter.
pub const PROXY_PENDING_PER_ORIGIN: usize = 64;
/// Requests of a proxy to one origin that are not acknowledged, at most and at first; ours: one of them is slow, and others do
/// not wait for it. RFC 7252 s4.7 gives an NSTART of 1, and s4.8.1 allows more only with a mechanism that keeps congestion
/// control safe: the window of RFC 5681, which a timeout makes one request.
pub const PROXY_WINDOW_MESSAGES: u32 = 2;
/// How long a request of a proxy waits until it leaves for its origin; ours: a few retransmissions to a lossy origin.
pub const PROXY_QUEUE_WAIT: Duration = Duration::from_secs(15);
/// How long a request of a proxy keeps its place while others wait for one, from its arrival and from its departure, without
/// an acknowledgement of its origin; ours: a round trip in a slow mesh, as with separate responses of an endpoint.
pub const PROXY_UNACKNOWLEDGED_GRACE: Duration = Duration::from_millis(1500);
/// The same from the acknowledgement on; ours: an origin that has the request is expected to answer it.
pub const PROXY_ACKNOWLEDGED_GRACE: Duration = Duration::from_secs(30);
/// Clients that a proxy remembers because it has asked them for a proof; ours, twice [`PROXY_PENDING_MAX`].
pub const PROXY_CHALLENGED_MAX: usize = 2 * PROXY_PENDING_MAX;
/// The same of one subscriber, an IPv6 /56 or an IPv4 address; ours: the hosts of a house.
pub const PROXY_CHALLENGED_PER_SOURCE: usize = 16;
/// How long a client has to return an Echo value; ours, a round trip in a slow mesh. What comes from its port in that time was
/// under way together. Afterwards its place goes to another if places are short.
pub const PROXY_PROOF_TIME: Duration = Duration::from_secs(1);
/// How long a proxy remembers that it has asked a client for a proof; ours: most clients that poll ask again by then.
pub const PROXY_CHALLENGED_KEPT: Duration = Duration::from_secs(60);
/// An unproven request whose turn comes sooner waits for it, before anybody asks its client for a proof; ours: a proof takes a
/// round trip to a client that knows Echo, and others do not understand the question.
pub const PROXY_UNPROVEN_SOON: Duration = Duration::from_secs(1);
/// Requests of unproven clients that wait for their turn at one origin; ours: others are asked for a proof, with which they
/// come first.
pub const PROXY_UNPROVEN_WAITING_MAX: usize = 2;
/// How long an unproven request waits for its turn before the proxy responds with Echo; ours: less than most clients wait, and
/// longer than [`PROXY_UNPROVEN_PAUSE`] times the third of a second in which an origin acknowledges.
pub const PROXY_UNPROVEN_WAIT: Duration = Duration::from_secs(4);
/// After an unproven client has held the window of an origin, others like it wait so many times as long if proven clients ask
/// the origin too; ours: forged requests for a slow resource get a thirteenth of the time, and clients without Echo
/// wait less than [`PROXY_UNPROVEN_WAIT`] where origins acknowledge soon.
pub const PROXY_UNPROVEN_PAUSE: u64 = 12;
/// How long after its last request a proven client counts as asking an origin; ours.
pub const PROXY_PROVEN_RECENT: Duration = Duration::from_secs(10);
/// How long a connection that a proxy keeps for an observation keeps its place while others wait for one; ours.
pub const PROXY_OBSERVING_GRACE: Duration = Duration::from_secs(60);
/// Of the places for connections to origins one more in so many is for those that have just lost theirs; ours.
pub const PROXY_ENDING_DIVISOR: usize = 4;
/// How long a proxy waits for an answer of an origin that has not gone silent: EXCHANGE_LIFETIME (RFC 7252 s4.8.2), as
/// an endpoint does over UDP.
pub const PROXY_ANSWER_WAIT: Duration = Duration::from_secs(247);
/// After how long a client is to ask a busy proxy again (RFC 7252 s5.9.3.4); ours.
pub const PROXY_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Sockets that a client opens, one after another, as the message IDs of those before are used up; ours. Each has 65,536
/// for every destination and 247 s (RFC 7252 s4.4).
pub const CLIENT_SOCKETS_MAX: usize = 8;
/// Message IDs that have to be left for a request, or it goes through the next socket; ours, so that the blocks of a long
/// body still have theirs.
pub const MESSAGE_IDS_SPARE: u32 = 4096;
/// What a proxy observes at origins for its clients, registrations; ours, each with the state that came last.
pub const PROXY_OBSERVATIONS_MAX: usize = 256;
/// Octets of the states that a proxy keeps of what it observes, options and bodies; ours, half of what a server keeps
/// of states for its observers. A client has as many as are free: half if it is alone, which is four of the longest
/// bodies. Beyond it the proxy answers once and keeps no state.
pub const PROXY_STATES_MAX: usize = 8 << 20;
/// What a proxy observes at one origin for clients with unproven addresses; ours, a quarter of what a server of ours gives
/// one peer.
pub const PROXY_UNPROVEN_PER_ORIGIN_MAX: usize = 16;
/// How many different requests of its clients a proxy joins to one observation; ours: with Proxy-Uri, with Proxy-Scheme,
/// and room.
pub const PROXY_REQUESTS_MAX: usize = 8;
/// How long a proxy keeps an observation that none of its clients asks for any more; ours: clients ask at once.
pub const PROXY_UNHEEDED_MAX: Duration = Duration::from_secs(2);
/// How long a client waits for an answer unless it is told otherwise: MAX_TRANSMIT_WAIT (RFC 7252 s4.8.2).
pub const PATIENCE: Duration = Duration::from_secs(93);
/// How long a client waits for the answer to its deregistration: one retransmission with the timers of RFC 7252 s4.8.
pub const FAREWELL: Duration = Duration::from_secs(5);
/// How long nothing may come on a connection on which an answer is due, before the client sends a Ping; ours. With
/// [`PONG_MAX`] a dead server is noticed about as soon as over UDP, MAX_TRANSMIT_WAIT (RFC 7252 s4.8.2).
pub const CLIENT_SILENCE: Duration = Duration::from_secs(60);
/// How long a client keeps a connection that nobody needs; ours.
pub const CLIENT_IDLE: Duration = Duration::from_secs(60);
/// Requests that wait for a client's socket or for one of its connections; ours. The callers of more wait.
pub const COMMANDS_MAX: usize = 256;
/// Connections of a client at once; ours.
pub const CLIENT_CONNECTIONS_MAX: usize = 256;
/// Answers of one request that a client keeps until they are looked at; ours.
pub const MAILBOX_MAX: usize = 256;
/// How long a transport may take to report its numbers; ours: it does so between two requests.
pub const REPORT_WAIT: Duration = Duration::from_secs(1);
/// ALPN identifier of CoAP over TLS: RFC 8323 s8.2.
pub const ALPN: &[u8] = b"coap";
/// ALPN identifier of WebSockets over TLS: their handshake is a request of HTTP/1.1 (RFC 6455 s4.1, RFC 7301 s6), and
/// browsers name no other. RFC 8323 s8.2 is about coaps+tcp alone.
pub const ALPN_WEB: &[u8] = b"http/1.1";
/// Path of CoAP over WebSockets: RFC 8323 s8.3.
pub const WEBSOCKET_PATH: &str = "/.well-known/coap";
/// Octets that a WebSocket reads at once, and that it gathers before it writes them; ours. A message is flushed behind its
/// last octet anyway.
pub const WEBSOCKET_BUFFER: usize = 16 << 10;
/// Subprotocol of CoAP over WebSockets: RFC 8323 s4.1.
pub const WEBSOCKET_PROTOCOL: &str = "coap";
