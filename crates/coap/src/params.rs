//! Numbers of RFC 7252 s4.8, and the bounds that are ours.

use lowmesh_units::Duration;

pub use lowmesh_congestion::params::{ACK_RANDOM_FACTOR, ACK_TIMEOUT, NSTART};

/// MAX_RETRANSMIT: RFC 7252 s4.8, 4 retransmissions; the lifetimes follow from it
/// ([`Lifetimes`](crate::Lifetimes)).
pub const MAX_RETRANSMIT: u8 = 4;
/// DEFAULT_LEISURE: RFC 7252 s4.8, 5 s, over which answers to a multicast request are spread.
pub const DEFAULT_LEISURE: Duration = Duration::from_secs(5);
/// DEFAULT_LEISURE of a group that Group OSCORE protects (also) in group mode: RFC 10020 s3.6.1, 20 s. That is S * G / R of RFC
/// 7252 s8.2 with S = 200 octets, of which 100 are the overhead of security. A group of pairwise mode alone would have 13 s (S =
/// 130); requests to a group here are always in group mode.
pub const SECURED_LEISURE: Duration = Duration::from_secs(20);
/// PROBING_RATE: RFC 7252 s4.7, 1 octet a second to a peer that does not answer.
pub const PROBING_RATE_OCTETS_PER_SECOND: u64 = 1;
/// How long a client waits for the response to a NON request, times 1 to ACK_RANDOM_FACTOR: no RFC gives a time (RFC 7252
/// s4.7 leaves it open); RIOT's gcoap waits 5 s. The random factor keeps senders whose requests collided from
/// sending at the same time again.
pub const NON_TIMEOUT: Duration = Duration::from_secs(5);
/// NON requests in a row without a response or an ACK of their peer, after which it is one that does not answer and
/// PROBING_RATE holds; ours: the copies of a CON request, after which its sender gives up.
pub const SILENCE_AFTER: u8 = 5;
/// MAX_LATENCY: RFC 7252 s4.8.2, 100 s for a datagram from end to end.
pub const MAX_LATENCY: Duration = Duration::from_secs(100);
/// EXCHANGE_LIFETIME with the default parameters: RFC 7252 s4.8.2, 247 s. What depends on a destination asks its
/// [`Lifetimes`](crate::Lifetimes).
pub const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// NON_LIFETIME with the default parameters: RFC 7252 s4.8.2, 145 s.
pub const NON_LIFETIME: Duration = Duration::from_secs(145);

/// Longest message, octets: RFC 7252 s4.6, 1152, which with its headers fits the 1280 octets that
/// every IPv6 link carries.
pub const MESSAGE_LEN_MAX: usize = 1152;
/// A notification that arrives later than this after the newest is newer whatever its number: RFC
/// 7641 s3.4, 128 s.
pub const NOTIFICATION_ORDER_SPAN: Duration = Duration::from_secs(128);
/// The shortest time after which a client registers an observation again that is no longer fresh: RFC 7641 s3.3.1, 5 s.
pub const REGISTER_AGAIN_MIN: Duration = Duration::from_secs(5);
/// The longest such time: RFC 7641 s3.3.1, 15 s.
pub const REGISTER_AGAIN_MAX: Duration = Duration::from_secs(15);
/// After this long without a sign of life a notification is CON: RFC 7641 s4.5, 24 h.
pub const CONFIRM_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How long a proof of an address holds; ours: an observer renews it with the notification that is CON after
/// [`CONFIRM_AFTER`], and other peers prove it again when they come back. The address may be another's by then, and one
/// that was guessed does not stay proven for ever.
pub const PROOF_LIFETIME: Duration = Duration::from_secs(2 * 24 * 3600);
/// Between unconfirmed notifications to one observer, where no RTT is known: RFC 7641 s4.5.1, 3 s.
pub const NOTIFICATION_GAP: Duration = Duration::from_secs(3);
/// Notifications that leave in one burst; ours, a quarter of the datagrams that a Linux socket holds by default.
pub const NOTIFICATIONS_AT_ONCE: u32 = 64;
/// The time between the beginnings of two bursts; ours, enough for the acknowledgements of a local network.
pub const NOTIFICATIONS_PAUSE: Duration = Duration::from_millis(2);
/// Max-Age of a response without the option: RFC 7252 s5.10.5, 60 s.
pub const MAX_AGE_DEFAULT: Duration = Duration::from_secs(60);

/// The longest that a cache takes a representation for fresh, whatever its Max-Age says; ours: a day.
pub const CACHE_FRESH_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest that a cache takes an error for fresh; ours: the default of Max-Age.
pub const CACHE_ERROR_FRESH_MAX: Duration = MAX_AGE_DEFAULT;
/// Octets that an allocator adds to each allocation; ours: 16 on 64-bit machines with the allocators of glibc and
/// musl.
pub const CACHE_ALLOCATION_OVERHEAD: usize = 16;
/// What a place in a table of a cache counts more than its own size; ours: nodes of a B-tree are at least 5/11 full, and
/// inner nodes add a fifth.
pub const CACHE_NODE_SLACK: usize = 3;

/// How often a body is read from the start because it changed under way; ours.
pub const TRANSFER_RESTARTS_MAX: u8 = 3;

/// An answer to an address that is not proven is at most this many times its request, both with
/// [`DATAGRAM_OVERHEAD`]: the bound of RFC 9000 s8.1; RFC 9175 s2.4 asks for one.
pub const AMPLIFICATION_MAX: usize = 3;
/// How long a response is kept for the repetition of its request with the Echo value that came in its place or with its
/// first block; ours. RFC 9175 s2.3: the client repeats at once; the bound covers a lost copy or two.
pub const REPETITION_MAX: Duration = Duration::from_secs(10);
/// Half of the time in which an unproven address may be sent what it has earned; ours.
pub const CREDIT_PERIOD: Duration = Duration::from_secs(60);
/// Octets that IPv6 and UDP put around a message: RFC 8200 s3, 40, and RFC 768, 8.
pub const DATAGRAM_OVERHEAD: usize = 48;
/// The same of IPv4: RFC 791 s3.1, 20 without options, and RFC 768, 8. To count more would let a victim get more than the
/// bound says.
pub const DATAGRAM_OVERHEAD_V4: usize = 28;
/// Octets of an Echo value: RFC 9175 s2.2.1 allows 1 to 40, appendix A wants at least 64 bits.
pub const ECHO_LEN: usize = 8;
/// Octets of the key that Echo values are made with: as many as SHA-256 gives (RFC 2104 s3).
pub const ECHO_KEY_LEN: usize = 32;
/// The period after which Echo values change; a value is valid for one more period. Ours: a client may repeat its
/// request that late.
pub const ECHO_PERIOD: Duration = EXCHANGE_LIFETIME;
/// Octets around a payload for header, token and options, when blocks are chosen: RFC 7252 s4.6
/// leaves 128 between 1024 and 1152.
pub const MESSAGE_OVERHEAD: usize = 128;
/// Octets of header, token and payload marker: RFC 7252 s3, 4, up to 8, and 1.
pub const HEADER_MAX: usize = 13;
/// Octets of the longest Echo option: RFC 9175 s2.2.1, a value of 40, with number and length (RFC 7252 s3.1).
pub const ECHO_OPTION_MAX: usize = 43;
/// Octets that a cut response has more than a whole one: Block2, Size2, `ETag` and Echo; ours.
pub const BLOCK_OPTIONS_OVERHEAD: usize = 28;
/// Octets that the next state of a resource may be longer than this one, where credit is reserved for it; ours.
pub const NOTIFICATION_SLACK: usize = 8;
/// Octets of the smallest block: RFC 7959 s2.2, 16.
pub const BLOCK_MIN: usize = 16;
/// Octets around the payload of a later block: header, token and options; ours.
pub const LATER_BLOCK_OVERHEAD: usize = 48;
/// Longest message on a connection, octets, told as Max-Message-Size; ours, 64 blocks and what is
/// around them. RFC 8323 s5.3.1 has 1152 as base.
pub const STREAM_MESSAGE_MAX: usize = (64 << 10) + MESSAGE_OVERHEAD;
/// How long a connection waits for the peer's CSM; ours. RFC 8323 s5.3: it is the first message of both ends, so it comes one
/// round trip after the connection, or two retransmissions of TCP later (RFC 6298: 1 s and 2 s).
pub const CSM_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at once; ours.
pub const CONNECTIONS_MAX: usize = 1024;
/// Connections of one source at once; ours, a quarter.
pub const CONNECTIONS_PER_SOURCE: usize = CONNECTIONS_MAX / 4;
/// Hop-Limit that a proxy starts with: RFC 8768 s3, 16.
pub const HOP_LIMIT_DEFAULT: u32 = 16;
/// Longest body that is put together, octets; ours.
pub const BODY_MAX: usize = 1 << 20;
/// What a value costs beside its octets in a map with shares, octets; ours: two keys, three index entries.
pub const QUOTA_ENTRY_OCTETS: usize = 512;
/// Octets beside a body of the longest kind: options and [`QUOTA_ENTRY_OCTETS`]; ours.
pub const BODY_OVERHEAD: usize = 4096;
/// Octets of unfinished request bodies over all peers; ours.
pub const ASSEMBLIES_MAX: usize = 8 << 20;
/// Octets of unfinished request bodies of one source; ours, a quarter: two bodies of the longest kind.
pub const ASSEMBLIES_PER_SOURCE: usize = 2 * (BODY_MAX + BODY_OVERHEAD);
/// Octets of representations that are kept for their later blocks; ours.
pub const REPRESENTATIONS_MAX: usize = 16 << 20;
/// Octets of one source's representations that are kept for their later blocks; ours, a quarter.
pub const REPRESENTATIONS_PER_SOURCE: usize = (4 << 20) + BODY_OVERHEAD;
/// Observers over all resources; ours.
pub const OBSERVERS_MAX: usize = 1024;
/// Observers of one source; ours, a quarter: a source may be a reverse proxy, or a network behind one address.
pub const OBSERVERS_PER_SOURCE: usize = 256;
/// Longest request that registers an observer, options and body, octets; ours, a block of 1024 and as much for
/// options: it is kept as long as its observers.
pub const OBSERVED_REQUEST_MAX: usize = 2048;
/// Octets of states that wait to be sent to observers; ours. The application is asked for the next state if one as long
/// as the last state fits; a longer one is asked for once more later.
pub const STATES_MAX: usize = 16 << 20;
/// Observed resources whose new state the application is asked for at a time; ours. Others wait in order.
pub const REFRESHES_MAX: usize = 64;
/// How long an application may take to give a new state before another is asked for in its place; ours,
/// NON_LIFETIME.
pub const REFRESH_MAX: Duration = NON_LIFETIME;
/// Requests that take the application time, over all peers; ours.
pub const REQUESTS_MAX: usize = 256;
/// Octets of the options and bodies of these requests; ours: 16 bodies of the longest kind.
pub const REQUESTS_OCTETS_MAX: usize = 16 << 20;
/// The part of [`REQUESTS_MAX`] and [`REQUESTS_OCTETS_MAX`] for one source, as a divisor; ours.
pub const REQUESTS_SOURCE_DIVISOR: usize = 4;
/// The part of [`REQUESTS_MAX`] and [`REQUESTS_OCTETS_MAX`], and of each source's share of them, for all unproven
/// addresses together, as a divisor; ours.
pub const REQUESTS_UNPROVEN_DIVISOR: usize = 2;
/// Max-Age of a 5.03 for want of room, seconds: RFC 7252 s5.9.3.4 leaves it open; ours.
pub const BUSY_MAX_AGE_S: u32 = 5;

/// Message IDs of one peer: 16 bits (RFC 7252 s3).
pub const MESSAGE_IDS: u32 = 1 << 16;
/// Issued message IDs are counted in steps of this length; ours: 32 counters a busy peer with the default lifetimes, 8 s
/// too careful.
pub const MESSAGE_ID_STEP: Duration = Duration::from_secs(8);

/// Token length, octets: RFC 7252 s5.3.1 wants 32 bits of randomness from a client on the Internet.
pub const TOKEN_LEN: usize = 4;
/// Shortest token that this endpoint makes, octets; ours: with 2 a free one always exists.
pub const TOKEN_LEN_MIN: usize = 2;
/// Longest token of a peer that is carried along, octets; ours: a longer one is answered with 4.00
/// (RFC 8974 s2.2.2).
pub const PEER_TOKEN_LEN_MAX: usize = 64;
/// Unconfirmed notifications per peer whose RST is still understood; ours.
pub const UNCONFIRMED_MAX: usize = 16;
/// The data rate R of all answers to a request to a group: RFC 7252 s8.2, 1000 octets a second, from which with 50 members
/// and 100 octets [`DEFAULT_LEISURE`] follows.
pub const GROUP_RATE_OCTETS_PER_SECOND: u32 = 1000;
/// MAX_SERVER_RESPONSE_DELAY: RFC 10020 s3.1.5, 250 s where it is not known.
pub const MAX_SERVER_RESPONSE_DELAY: Duration = Duration::from_secs(250);
/// Requests to groups that are open at once; ours.
pub const GROUP_REQUESTS_MAX: usize = 64;
/// Tokens of ended requests to groups that are kept from use; ours: two a second for MIN_TOKEN_REUSE_TIME.
pub const GROUP_TOKENS_KEPT: usize = 1024;
/// Groups that clients can make a node join; ours, as many as a simulated node takes.
pub const MEMBERSHIPS_MAX: usize = 8;
/// Groups that the clients of one source can make a node join; ours, three quarters: a manager has many groups, and a
/// second one still finds room.
pub const MEMBERSHIPS_PER_SOURCE: usize = MEMBERSHIPS_MAX / 4 * 3;
/// Members that may answer one request to a group; ours.
pub const GROUP_MEMBERS_MAX: usize = 1024;
/// Members of one source that may answer one request to a group; ours, a quarter.
pub const GROUP_MEMBERS_PER_SOURCE: usize = GROUP_MEMBERS_MAX / 4;
/// Responses of one member to one request to a group; ours: the request may be repeated, each time with one more answer.
pub const GROUP_RESPONSES_PER_MEMBER: usize = 8;
/// Requests waiting for the window of one peer; Table 1 of Righetti et al. 2023 has an application
/// buffer of 32.
pub const QUEUE_MAX: usize = 32;
/// Own exchanges open at once over all peers, waiting ones included; ours.
pub const OPEN_MAX: usize = 1536;
/// The part of the open exchanges for notifications to unproven addresses, as a divisor; ours.
pub const OPEN_UNPROVEN_DIVISOR: usize = 2;
/// How long a message to an unproven address keeps its place while others wait for one; ours, long enough
/// for the acknowledgement of most peers.
pub const UNPROVEN_GRACE: Duration = Duration::from_millis(1500);
/// How long a separate response to a proven address keeps its place while requests wait for one; ours: ACK_TIMEOUT *
/// ACK_RANDOM_FACTOR (RFC 7252 s4.8), after which the first copy or its acknowledgement is lost.
pub const SEPARATE_GRACE: Duration = Duration::from_secs(3);
/// Upper bound of the setting `open_max`; ours: below the number of two-octet tokens.
pub const OPEN_MAX_LIMIT: usize = 16_384;
/// Requests of peers that are not answered yet, and separate responses that are not acknowledged yet; ours:
/// [`REQUESTS_MAX`], and the datagrams that a driver reads at once.
pub const INCOMING_MAX: usize = 768;
/// The part of [`INCOMING_MAX`] for requests by multicast, as a divisor; ours.
pub const INCOMING_MULTICAST_DIVISOR: usize = 4;
/// The part of [`INCOMING_MAX`] for separate responses that nobody has acknowledged yet, as a divisor; ours: requests always
/// find a place, because with it [`REQUESTS_MAX`] leaves some free.
pub const INCOMING_SEPARATE_DIVISOR: usize = 2;
const _: () = assert!(INCOMING_MAX > INCOMING_MAX / INCOMING_SEPARATE_DIVISOR + REQUESTS_MAX);
/// The share of one source in [`INCOMING_MAX`]; ours, a quarter.
pub const INCOMING_PER_SOURCE: usize = INCOMING_MAX / 4;
/// The part of a source's share of [`INCOMING_MAX`] for its unproven addresses, as a divisor; ours: they may be forged.
pub const INCOMING_UNPROVEN_DIVISOR: usize = 2;
/// Entries of the table of shares up to which a source without an open request keeps its own; ours: most sources ask
/// again.
pub const SHARES_KEPT: usize = 64;
/// Interactions that an adaptive window lets be outstanding with one peer at most; ours, as many as wait at
/// most.
pub const WINDOW_MAX: u32 = 32;
/// Peers remembered; ours: more than [`OPEN_MAX`] and [`INCOMING_MAX`] together, so that one is always idle.
pub const PEERS_MAX: usize = 2560;
const _: () = assert!(PEERS_MAX > OPEN_MAX + INCOMING_MAX);
/// Peers of one source remembered; ours, a quarter: a source may be a network behind one address.
pub const PEERS_PER_SOURCE: usize = PEERS_MAX / 4;
const _: () = assert!(PEERS_PER_SOURCE > INCOMING_PER_SOURCE + OBSERVERS_PER_SOURCE);
/// Message IDs of which one is drawn to go on from, after an ACK that may have been guessed; ours: to guess one of them
/// takes many ACKs, and half of all IDs hold the skipped ones of several such ACKs.
pub const MESSAGE_IDS_SKIPPED: u32 = 4096;
/// Peers among which idle ones are looked for; ours.
pub const ADMISSION_LOOK: usize = 64;
/// Idle peers that are looked at to find one to forget; ours.
pub const ADMISSION_SAMPLE: usize = 8;
/// Peers whose expired messages are forgotten when one more message finds no room; ours.
pub const SWEEP_SAMPLE: usize = 8;
/// Pause in the search for expired messages after a round over all peers has found none; ours: an expired message
/// is kept at most this much longer than the memory that it costs another peer.
pub const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// Part of its remembered messages that a peer with most forgets at once, past the total, as a divisor; ours: so that
/// not every message has to look for the peer with most.
pub const FORGET_DIVISOR: usize = 16;
/// Leading bits by which counts of remembered messages are compared; ours: to one part in four or better.
pub const COUNT_BITS: u32 = 3;
/// Messages remembered per peer against duplicates; ours: 247 s of a request every 2 s, doubled up.
pub const DEDUP_PER_PEER: usize = 256;
/// Messages remembered against duplicates over all peers; ours.
pub const DEDUP_TOTAL: usize = 16_384;
/// How long a server waits for its application before it acknowledges with an empty message; ours:
/// half of PROCESSING_DELAY (RFC 7252 s4.8.2: [`ACK_TIMEOUT`]), so that the ACK is back before the first retransmission.
pub const ACK_DELAY: Duration = Duration::from_secs(1);
