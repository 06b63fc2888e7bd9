//! Numbers of the IPv6 layer, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// The prefix of a mesh unless a scenario says otherwise: `fd00::/64`, a unique local one (RFC 4193).
pub const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];

/// Bits of the prefix of a mesh: RFC 4291 s2.5.1, 64, since interface identifiers have the others.
pub const PREFIX_BITS: u8 = 64;

/// Global addresses of a node: RFC 4291 s2.8 names no bound; ours, at least 1.
pub const GLOBAL_ADDRESSES: usize = 16;

/// Hop limit of packets that a node makes: 64 (RFC 8200 names none, IANA's "IP Option Numbers" recommends 64,
/// and RFC 6282 s3.1.1 compresses it to nothing); 1 to 255.
pub const HOP_LIMIT: u8 = 64;

/// Hop limit of messages that must not have passed a router: RFC 4861 s4.3 and s7.1, 255.
pub const HOP_LIMIT_ON_LINK: u8 = 255;

/// Routes of a node: no RFC; Contiki-NG's Cooja platform has 300; at least 1 at a root in storing mode.
pub const ROUTES: usize = 300;

/// Registered addresses in the neighbour cache: RFC 6775 s6 leaves it to the router; ours, at least 1.
pub const REGISTRATIONS: usize = 128;

/// Of these, the most of one neighbour: ours; a link-local and a few global ones, at least 1.
pub const REGISTRATIONS_PER_NODE: usize = 8;

/// Seconds for which a router is a default router: RFC 4861 s6.2.1, `AdvDefaultLifetime`, 1800 s; at most 9000.
pub const ROUTER_LIFETIME_S: u16 = 1800;

/// Seconds for which an advertised prefix is valid: RFC 4861 s6.2.1, `AdvValidLifetime`, 30 days.
pub const PREFIX_VALID_S: u32 = 2_592_000;

/// Seconds for which an advertised prefix is preferred: RFC 4861 s6.2.1, `AdvPreferredLifetime`, 7 days.
pub const PREFIX_PREFERRED_S: u32 = 604_800;

/// Minutes for which an advertised context is valid: RFC 6775 s4.2 leaves it to the router; ours, a day.
pub const CONTEXT_LIFETIME_MIN: u16 = 1440;

/// Groups of a node besides the two that it always has: no RFC.
pub const GROUPS: usize = 8;

/// Type of RPL's hop-by-hop option: RFC 6553 s6; RFC 9008 s11.1 has 0x23 for networks that migrated.
pub const RPL_OPTION: u8 = 0x63;
/// The later type of the same option: RFC 9008 s11.1.
pub const RPL_OPTION_RFC9008: u8 = 0x23;

/// ICMPv6 types of multicast engines in Contiki: RFC 4443 s2.1 leaves 200 and 201 to private experimentation.
pub const EXPERIMENTS: [u8; 2] = [200, 201];

/// Routing Type of RPL's source routing header: RFC 6554 s3.
pub const SOURCE_ROUTE_TYPE: u8 = 3;

/// Octets by which 6LoWPAN compresses a packet of IPv6 and UDP whose addresses are in context 0: 22, the sum of
/// table 2 of Lenders et al., IEEE Access 9 (2021): IPHC -2, version to flow label 4, length 2, next header 1,
/// prefixes 16; UDP -1 and length 2. Identifiers and hop limit stay.
pub const COMPRESSION_GAIN: usize = 22;

/// The same for a fragment: 20. Nothing behind its fragment header is compressed, and that takes one octet more
/// than before (RFC 6282 s4.2).
pub const COMPRESSION_GAIN_FRAGMENT: usize = 20;

/// How long fragments wait for the rest: RFC 8200 s4.5, 60 s.
pub const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Packets in reassembly at once: no RFC; RIOT has 1, at least 1.
pub const REASSEMBLIES: usize = 4;

/// Octets of a packet that is put together: RFC 8200 s5 demands 1500.
pub const REASSEMBLED_OCTETS: usize = 1500;

/// Fragments of all waiting packets together, for each of [`REASSEMBLIES`], in GNRC: 2
/// (`CONFIG_GNRC_IPV6_EXT_FRAG_LIMITS_POOL_SIZE`, which table 4 of Lenders et al. 2021 does not change).
pub const GNRC_LIMITS: usize = 2;

/// Ended packets whose late fragments are still known: no RFC; at least 1.
pub const ENDED_PACKETS: usize = 8;

/// The port of the echo service: RFC 862, 7.
pub const ECHO_PORT: u16 = 7;

/// The longest delay of a Router Advertisement that answers a solicitation: RFC 4861 s10, `MAX_RA_DELAY_TIME`, 0.5 s.
pub const MAX_RA_DELAY_TIME: Duration = Duration::from_millis(500);
/// Router Advertisements that wait for their delay: ours, four times what the rate lets through meanwhile.
pub const ADVERTISEMENTS_WAITING: usize = 16;
/// Octets of the largest packet that the mesh carries: RFC 4944 s4, and the least MTU of IPv6 (RFC 8200 s5).
pub const MTU: u32 = 1280;
/// The least time between two Router Advertisements to all nodes: RFC 4861 s10, `MIN_DELAY_BETWEEN_RAS`, 3 s.
pub const MIN_DELAY_BETWEEN_RAS: Duration = Duration::from_secs(3);
/// Router Advertisements to single hosts in a second, all together; a host gets three quarters of them. RFC 4861 s6.2.6
/// delays each by up to half a second instead, so that one answers many.
pub const ADVERTISEMENTS_PER_SECOND: u32 = 8;

/// Sources of bad packets whose share of ICMPv6 errors is kept apart: ours, at least 1. RFC 4443 s2.4 (f) knows no shares.
pub const ERROR_SOURCES: usize = 8;
