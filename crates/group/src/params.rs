//! Numbers of the Entity Manager. "S002" is Ishaq et al. 2016, whose entities these are.

use lowmesh_units::Duration;

/// The path of all entities; ours, since S002 names no path.
pub const ROOT: &str = "e";

/// Octets of an entity's name; ours: a name and a number fit into one Uri-Path option beside others.
pub const NAME_LEN_MAX: usize = 32;

/// Members of one entity; ours: six times the largest group of S002 s5.2 (40).
pub const MEMBERS_MAX: usize = 256;

/// Entities of a manager; ours: four times the goal of a thousand.
pub const ENTITIES_MAX: usize = 4096;

/// The share of one client in [`ENTITIES_MAX`]; ours: a quarter. Its next one gets 4.03.
pub const ENTITIES_A_CLIENT_MAX: usize = ENTITIES_MAX / 4;

/// Requests to members, and to sub-entities, that one query may make; ours. It bounds nested entities, whose requests
/// can double with each level.
pub const REQUESTS_A_QUERY_MAX: usize = 4096;

/// Requests of clients that are not answered yet; ours. The next client gets 5.03 with Max-Age.
pub const REQUESTS_MAX: usize = 256;

/// The share of one client in [`REQUESTS_MAX`]; ours: a quarter.
pub const REQUESTS_A_CLIENT_MAX: usize = 64;

/// Requests to members that wait or are under way for all clients; ours: sixteen of the largest queries. The next query
/// gets 5.03 with Max-Age.
pub const EXCHANGES_MAX: usize = 16 * REQUESTS_A_QUERY_MAX;

/// The share of one client in [`EXCHANGES_MAX`]; ours: a quarter, four of the largest queries.
pub const EXCHANGES_A_CLIENT_MAX: usize = EXCHANGES_MAX / 4;

/// Octets of a member's answer that a manager keeps; ours: 32 blocks of 64 octets, two of the largest blocks.
pub const ANSWER_MAX: usize = 2048;

/// Octets of the list of resources of a member; ours: a thousand links of 64 octets.
pub const LIST_MAX: usize = 65_536;

/// Octets that names, units and values of one answer take, base names of SenML applied; ours: four times what the answer
/// may have, since a base name goes before every name.
pub const READINGS_MAX: usize = 4 * ANSWER_MAX;

/// Members of an entity, with those that are leaving, up to which it accepts updates; ours: two full lists of members.
pub const LEAVING_MAX: usize = 2 * MEMBERS_MAX;

/// Levels of entities within entities; ours: twice the levels from a country to a room. While an entity is observed,
/// each level keeps the states of the members below it.
pub const NESTING_MAX: usize = 12;

/// Octets that a client may write to all members; ours: as many as an answer. Each request to a member has a copy.
pub const WRITE_MAX: usize = 2048;

/// Octets of a request for a new entity or profile; ours: 256 members with URIs of 60 octets.
pub const DOCUMENT_MAX: usize = 16_384;

/// Octets of the detail of a problem; ours: what names sixteen members.
pub const DETAIL_MAX: usize = 1024;

/// The block of group addresses in S002 s4.2: `ff1e::89:N`.
pub const GROUP_IDENTIFIER: u16 = 0x0089;

/// Set in blocks that are drawn: RFC 3307 s4.3.
pub const GROUP_BLOCK_DYNAMIC: u32 = 0x8000;

/// Groups of a member that no entity has, and that it must leave at once; ours. The others leave after the next look.
pub const STRAYS_MAX: usize = 16;

/// Flags of group addresses: transient, not assigned by IANA (RFC 4291 s2.7).
pub const GROUP_FLAGS: u8 = 1;

/// Largest number of a group address; S002 s4.2: 16 bits.
pub const GROUP_NUMBER_MAX: u16 = u16::MAX;

/// The port of group requests: RFC 7252 s6.1.
pub const GROUP_PORT: u16 = 5683;

/// Scope of group addresses unless a profile chooses: S002 s4.2, global.
pub const SCOPE_DEFAULT: u8 = 0xe;

/// The path of a member's group memberships (S002 table 4).
pub const MEMBERSHIPS: &str = "mc";

/// Largest delay between requests; ours: five members at this delay are all asked within [`DEADLINE_MAX`].
pub const DELAY_MAX: Duration = Duration::from_secs(60);

/// How long a query takes at most; ours: the longest exchange of RFC 7252 s4.8.2 (EXCHANGE_LIFETIME, 247 s).
pub const DEADLINE_MAX: Duration = Duration::from_secs(247);

/// How long a validation of members takes at most; ours: all are asked within the time of a query, and answer within another.
pub const CHECK_MAX: Duration = Duration::from_secs(2 * 247);

/// How long answers of a group are taken; ours: DEFAULT_LEISURE of RFC 7252 s8.2 (5 s) and as long again for the round
/// trip, since S002 table 8 saw answers after 8.4 s.
pub const GROUP_WAIT: Duration = Duration::from_secs(10);

/// The same for members with Group OSCORE, whose DEFAULT_LEISURE is 20 s (RFC 10020).
pub const SECURED_GROUP_WAIT: Duration = Duration::from_secs(25);

/// First wait before another attempt to join or leave; ours.
pub const RETRY_MIN: Duration = Duration::from_secs(30);

/// Longest wait between two attempts; ours.
pub const RETRY_MAX: Duration = Duration::from_secs(3600);

/// Attempts to let a silent member leave, after which it counts as gone; ours: a week of [`RETRY_MAX`]. The name and the
/// address of its entity are free then.
pub const LEAVE_ATTEMPTS_MAX: u8 = 176;

/// Time between two looks at the memberships of a member; ours: a node that restarted is back in its groups within it.
pub const RECONCILE_INTERVAL: Duration = Duration::from_secs(900);

/// Share by which waits of memberships vary; ours: members of one entity spread out.
pub const JITTER: f64 = 0.2;

/// Requests to a group in a row without an answer of a member, after which its membership is looked at; ours.
pub const MISSES_MAX: u8 = 3;

/// How long a manager waits after its start before it ends memberships; ours: requests that the one before sent have
/// left the mesh by then.
pub const SETTLE: Duration = Duration::from_secs(10);

/// Mean time between two looks at memberships after a start; ours: the looks at a thousand memberships take no more than the
/// [`RECONCILE_INTERVAL`] in which a running manager makes them, which is the longest time for any number.
pub const RESTART_GAP: Duration = Duration::from_secs(1);

/// How long a manager waits before it hands its state to a store again that failed; ours.
pub const STORE_RETRY: Duration = Duration::from_secs(1);

/// Observed requests of clients; ours. The next one gets 5.03.
pub const WATCHES_MAX: usize = 256;

/// The share of one client in [`WATCHES_MAX`]; ours: a quarter.
pub const WATCHES_A_CLIENT_MAX: usize = 64;

/// Members that are observed for all clients; ours: four of the largest queries. An observation of more gets 5.03.
pub const WATCHED_MAX: usize = 4 * REQUESTS_A_QUERY_MAX;

/// The share of one client in [`WATCHED_MAX`]; ours: a quarter, one of the largest queries.
pub const WATCHED_A_CLIENT_MAX: usize = WATCHED_MAX / 4;

/// Time without a change after which observers get the state again; ours: the default of Max-Age (RFC 7252 s5.10.5).
pub const WATCH_KEEP: Duration = Duration::from_secs(60);

/// How long a change waits for the question of an observer, before the observation counts as abandoned; ours.
pub const WATCH_HEARD: Duration = Duration::from_secs(10);

/// How much later than the end of its freshness a notification of a member may come; ours, RFC 7641 s3.3.1 has 5 to 15 s.
pub const WATCH_LEEWAY: Duration = Duration::from_secs(10);

/// Wait before a member that has failed is observed again; ours.
pub const WATCH_RETRY: Duration = Duration::from_secs(30);

/// Shortest time between two requests to a member that cannot be observed; ours.
pub const POLL_MIN: Duration = Duration::from_secs(5);

/// Longest time between two requests to a member that cannot be observed; ours.
pub const POLL_MAX: Duration = Duration::from_secs(60);

/// Shortest time without a change after which observers may ask for the state; ours: shorter ones would keep the manager
/// busy with nothing new.
pub const PERIOD_MIN: Duration = Duration::from_secs(1);

/// Longest period of a conditional attribute; ours: a day.
pub const PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// Attempts to reach a sub-domain of members that hops are counted for; RFC 8138 and Flush (Kim et al. 2007): beyond
/// three hops a path reuses its channel.
pub const INTERFERENCE_HOPS: u64 = 3;

/// Requests to members that are under way; ours: what the default bound of a CoAP endpoint (1536) holds beside observations.
/// The next one waits.
pub const UNDER_WAY_MAX: usize = 1024;

/// The share of one client in [`UNDER_WAY_MAX`]; ours: a quarter, the largest entity at once.
pub const UNDER_WAY_A_CLIENT_MAX: usize = UNDER_WAY_MAX / 4;

/// The share of one node in [`UNDER_WAY_MAX`]; ours: what a CoAP endpoint queues for one peer.
pub const UNDER_WAY_A_NODE_MAX: usize = 32;

/// How long a request has no answer before its node may be off; ours: ACK_TIMEOUT x ACK_RANDOM_FACTOR of RFC 7252 s4.8,
/// after which a second copy leaves.
pub const SUSPECT_AFTER: Duration = Duration::from_secs(3);

/// Places beyond [`UNDER_WAY_MAX`] for requests that are not suspect; ours: a quarter.
pub const RESERVE: usize = UNDER_WAY_MAX / 4;

/// The share of one client in [`RESERVE`], beyond [`UNDER_WAY_A_CLIENT_MAX`]; ours: a quarter.
pub const RESERVE_A_CLIENT: usize = RESERVE / 4;

/// Requests in a row, given up while their node was suspect and without a sign of life, after which it counts as down;
/// ours, as [`MISSES_MAX`]. One CON that was sent to its end is enough.
pub const DOWN_AFTER: u8 = 3;

/// How long a sign of life says that a node is there, whatever requests are given up meanwhile: MAX_TRANSMIT_SPAN of RFC
/// 7252 s4.8.2. A node that is there has received one of the copies by then.
pub const ALIVE_FOR: Duration = Duration::from_secs(45);

/// How long a query waits for the probe of a node that is down; ours: a second copy has left by then.
pub const PROBE_WAIT: Duration = SUSPECT_AFTER;

/// How long a probe lasts; ours: four copies (RFC 7252 s4.8), so that a node that has its power back is asked within 8 s.
pub const PROBE_LIFE: Duration = Duration::from_secs(15);

/// Every so many probes one lasts as long as any request; ours: a node that takes more than [`PROBE_LIFE`] is found too.
pub const PROBE_LONG: u32 = 4;

/// Nodes whose health is known; ours: as many as requests to members. One that answers is forgotten first.
pub const HEALTH_MAX: usize = EXCHANGES_MAX;

/// Turns of clients after which a request of the manager itself leaves in its domain; ours: a floor of lamps.
pub const TURNS_OF_MANAGER: u64 = 64;

/// Requests that a gate looks at for one that may leave; ours. Those behind wait until one before them has left.
pub const LOOK_AHEAD: usize = 64;

/// Domains with a gate; ours: as many border routers. The gate of one that is idle makes room for the next.
pub const DOMAINS_MAX: usize = 256;
