//! When a silent member is asked again: the second copy of a request, long before that of CoAP.
//!
//! ```text
//!   sent ── timeout ──> again ── 2 timeouts ──> again ── 4 ──> again ── the copies of CoAP ──> lost
//!                              └ 1.5: its place is free, the request goes on
//! ```
//! A request that is asked again has a new message ID, so each answer is a sample without doubt. Only requests that do the
//! same twice as once are asked again.

use lowmesh_units::Duration;

use super::patience::Patience;

/// How often a request is asked again; ours. The last one has all copies of CoAP, so no member is given up earlier.
const TIMES_MAX: u8 = 3;

/// The wait before the next time, after so many earlier ones. `None` leaves the rest to CoAP.
pub(super) fn wait(patience: &Patience, times: u8) -> Option<Duration> {
    if times >= TIMES_MAX {
        return None;
    }
    // The timeout itself doubles with each loss.
    patience.timeout()
}

/// How long a request keeps its place after it was sent or asked again, if there is an estimate. It is longer than the
/// first wait and shorter than the second.
pub(super) fn patience(patience: &Patience) -> Option<Duration> {
    patience.timeout().map(|timeout| timeout * 3 / 2)
}
