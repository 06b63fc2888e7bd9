//! Numbers of the applications, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// Octets of a payload that hold its number: ours, 4.
pub const NUMBER_OCTETS: usize = 4;

/// Time from a failed registration to the next attempt: ours, 60 s. A node that changes its parent has a new route by
/// then.
pub const REGISTER_AGAIN: Duration = Duration::from_secs(60);

/// Time from a failed creation of an entity to the next attempt: ours, 20 s. A mesh that still forms has more routes by
/// then.
pub const CREATE_AGAIN: Duration = Duration::from_secs(20);
