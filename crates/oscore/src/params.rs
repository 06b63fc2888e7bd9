//! Numbers of RFC 8613 and RFC 10021, and the bounds that are ours.

use lowmesh_units::Duration;

/// oscore_version: RFC 8613 s5.4.
pub const VERSION: u8 = 1;
/// AES-CCM-16-64-128 in the COSE registry: RFC 8152 s10.2, the one that must be implemented.
pub const AEAD_ALGORITHM: i32 = 10;
/// direct+HKDF-SHA-256 in the COSE registry: RFC 8152 s12.1.2.
pub const HKDF_ALGORITHM: i32 = -10;
/// Octets of a key: RFC 8152 s10.2.
pub const KEY_LEN: usize = 16;
/// Octets of a nonce and of the Common IV: RFC 8152 s10.2.
pub const NONCE_LEN: usize = 13;
/// Octets of the tag behind a ciphertext: RFC 8152 s10.2.
pub const TAG_LEN: usize = 8;
/// Octets of a Partial IV: RFC 8613 s5.2, 1 to 5.
pub const PARTIAL_IV_LEN_MAX: usize = 5;
/// Octets of a Sender or Recipient ID: RFC 8613 s3.3, 0 to the nonce's length less 6.
pub const IDENTITY_LEN_MAX: usize = NONCE_LEN - 6;
/// Octets of an ID Context: RFC 8613 s6.1 has one octet for its length.
pub const ID_CONTEXT_LEN_MAX: usize = 255;
/// Last Sender Sequence Number: RFC 8613 s7.2.1, below 2^40.
pub const SEQUENCE_MAX: u64 = (1 << 40) - 1;
/// Replay window: RFC 8613 s3.2.2, 32 numbers; 1 to 63 as in libcoap, at most 64 fit.
pub const REPLAY_WINDOW: u8 = 32;
/// Largest replay window: libcoap's bound.
pub const REPLAY_WINDOW_MAX: u8 = 63;
/// K of RFC 8613 appendix B.1.1, sequence numbers between two writes; libcoap's `ssn_freq`
/// defaults to 1, which is a write per message.
pub const RESERVATION: u32 = 1;
/// Octets of a challenge in an Echo option: RFC 9175 s2.2.1 allows 1 to 40; ours is 64 bits of
/// randomness, which appendix A of that RFC calls enough.
pub const CHALLENGE_LEN: usize = 8;
/// Octets of R1, of R3 and of the random part of R2: RFC 8613 appendix B.2, typically at least 8.
pub const RENEWAL_NONCE_LEN: usize = 8;
/// Octets of the HMAC behind the random part of R2: RFC 8613 appendix B.2.1.
pub const RENEWAL_TAG_LEN: usize = 8;
/// Octets of the key of that HMAC: as many as SHA-256 gives (RFC 2104 s3).
pub const RENEWAL_KEY_LEN: usize = 32;
/// Octets before a byte string of up to 255 in CBOR: RFC 8949 s3.1.
pub const RENEWAL_WRAPPER_LEN: usize = 2;
/// Octets of a plaintext: RFC 8152 s10.2, the length field of AES-CCM-16-64-128 has 2 octets.
pub const PLAINTEXT_MAX: usize = 65_535;
/// Recipients of one configuration; ours.
pub const RECIPIENTS_MAX: usize = 1024;
/// How often one request is made again because its server has no context for it (RFC 8613 appendix B.2); ours: once for
/// each end that has lost its own, and once for a server that starts in between.
pub const RENEWALS_MAX: u8 = 3;
/// MAX_UNFRAGMENTED_SIZE (RFC 8613 s4.1.3.4.2), octets of a protected message that proxies have cut into blocks; ours: the
/// longest message that travels over a connection, one of 64 KiB with its options.
pub const MAX_UNFRAGMENTED_SIZE: usize = 65_536 + 1152;
/// Octets of such messages whose blocks are on their way, each way, with what each costs beside its octets; ours: some 15 of
/// the longest ones. Nobody has opened them yet, so anybody may have sent them.
pub const OUTER_BLOCKS_MAX: usize = 1 << 20;
/// The same of one source; ours, a quarter.
pub const OUTER_BLOCKS_PER_SOURCE_MAX: usize = 256 << 10;
/// Observations that OSCORE keeps beyond those of the host; ours: an observer whose place another takes is forgotten after
/// the answer to the other has been protected.
pub const OBSERVED_SLACK: usize = 1;
/// Octets that OSCORE adds to a response: the option with a Partial IV (RFC 8613 s6.1), the code, the tag (s5.4),
/// and the payload marker.
pub const OSCORE_OVERHEAD: usize = 24;
/// The same in a group, where a response has a kid and may have a signature: RFC 10021 s3.2 and s4.1.
pub const GROUP_OVERHEAD: usize = OSCORE_OVERHEAD + IDENTITY_LEN_MAX + SIGNATURE_LEN;
/// EdDSA in the COSE registry: RFC 9053 s2.2.
pub const EDDSA: i32 = -8;
/// ES256 in the COSE registry: RFC 9053 s2.1.
pub const ES256: i32 = -7;
/// ECDH-SS + HKDF-256 in the COSE registry: RFC 9053 s6.3.1; RFC 10021 s2.1.10 has it with HKDF SHA-256.
pub const PAIRWISE_AGREEMENT: i32 = -27;
/// Octets of a signature, of both algorithms: RFC 8032 s5.1.6, RFC 9053 s2.1.
pub const SIGNATURE_LEN: usize = 64;
/// Octets of a private key, of both curves: RFC 8032 s5.1.5, SEC 1 s2.3.7.
pub const PRIVATE_KEY_LEN: usize = 32;
/// Octets of a shared secret and of a coordinate: RFC 7748 s5, SEC 1 s2.3.5.
pub const SECRET_LEN: usize = 32;
/// Members of a group that one context knows, beside its own; ours.
pub const GROUP_MEMBERS_MAX: usize = 1024;
/// Octets of an authentication credential; ours.
pub const CREDENTIAL_LEN_MAX: usize = 1024;
/// Forged signatures of one source that are checked at once, and how long until one more is; ours: an attacker gets as much
/// work as one honest member that asks each second.
pub const FORGED_BURST: u64 = 8;
/// See [`FORGED_BURST`].
pub const FORGED_INTERVAL: Duration = Duration::from_secs(1);
/// The same for all sources without a valid signature; ours: eight checks a second cost some 1 % of a small processor.
pub const FORGED_ALL_BURST: u64 = 64;
/// See [`FORGED_ALL_BURST`].
pub const FORGED_ALL_INTERVAL: Duration = Duration::from_millis(125);
/// Checks of one message under different signatures; ours: a copy that a link has damaged does not hide a good one, and the
/// tag, which a stranger cannot change, bounds what it can repeat.
pub const FORGED_COPIES: u8 = 4;
/// Further checks of one such message, one in so long; ours: the genuine message is taken when it comes again, although
/// its altered copies came first. RFC 7252 s4.8: its sender repeats it for some 45 s.
pub const FORGED_AGAIN_INTERVAL: Duration = Duration::from_secs(1);
/// Further checks of all such messages at once, and how long until one more is; ours, as [`FORGED_ALL_INTERVAL`].
pub const FORGED_AGAIN_ALL_BURST: u64 = 8;
/// See [`FORGED_AGAIN_ALL_BURST`].
pub const FORGED_AGAIN_ALL_INTERVAL: Duration = Duration::from_millis(125);
/// Messages whose signatures were wrong that are remembered, the latest ones; ours: two minutes of the checks that
/// [`FORGED_ALL_INTERVAL`] allows.
pub const FORGED_REMEMBERED: usize = 1024;
/// Sources whose signatures are counted; ours.
pub const SIGNATURE_SOURCES_MAX: usize = 1024;
