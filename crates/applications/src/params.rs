//! Numbers of the applications, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// Octets of a payload that say its number: ours, 4.
pub const NUMBER_OCTETS: usize = 4;

/// How long an observer waits after a registration that failed before it tries again: ours, 60 s. By then a node that
/// has changed its parent has a new route.
pub const REGISTER_AGAIN: Duration = Duration::from_secs(60);
