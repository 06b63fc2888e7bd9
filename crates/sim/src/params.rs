//! Numbers of the simulator that no standard gives, with their reasons. Those of the air are in [`air::params`](crate::air::params).

use lowmesh_units::{Dbm, Duration};

/// How often a node can lose its memory in one run: the names of its packets have 12 bits for it.
pub const LOSSES_MAX: u16 = 4095;

/// The shortest restart. Ours: longer than the longest frame (4.3 ms), so that no frame of the life before goes on.
pub const REBOOT_MIN: Duration = Duration::from_millis(10);

/// Power of a link that an event creates between nodes out of reach. Ours: well above the noise.
pub const NEW_LINK: Dbm = Dbm(-80.0);

/// The share of frames that a link must carry both ways for a node to have a path over it, in the definition of recovery.
/// Ours: below this share MRHOF's default limit of ETX 4 refuses it (RFC 6719 s5: 1 / (0.5 x 0.5)).
pub const PATH_PDR: f64 = 0.5;

/// The share of frames that a link must carry both ways, as the mean over the channels in use, for a node to join over it.
/// Ours: of a frame with seven retries (6TiSCH: TSCH_MAX_FRAME_RETRIES 7), more than half then arrive; a link on one of
/// sixteen channels carries a sixteenth at most.
pub const JOIN_PDR: f64 = 0.1;

/// Time after which an open recovery is looked at again, although no node has changed its parent. Ours: routes downwards
/// come seconds after a parent, so that a second is fine enough.
pub const RECOVERY_LOOK: Duration = Duration::from_secs(1);

/// Octets of the frame for which [`PATH_PDR`] is asked: a full one has 127, most have fewer.
pub const PATH_OCTETS: usize = 100;
