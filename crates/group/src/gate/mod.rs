//! Gates: when the next request to a member may leave.
//!
//! All members behind one border router share one radio channel, a domain. One gate serves one domain, whatever entity,
//! client or membership its requests are for. Below it, RFC 7252 still allows one exchange at a time to each member.
//!
//! | row | decides by |
//! |---|---|
//! | `fixed` | a constant gap between requests, as S002 |
//! | `gate-aimd` | answers that come back, and how much later than the fastest |
//! | `gate-climb` | the time for each answer, with a window one larger and one smaller |
//! | `gate-route` | the air time of each path, and one exchange for each first hop |
//! | `hybrid` | `gate-aimd`; members of a group that stay silent are asked again one by one |

pub mod aimd;
pub mod climb;
pub mod conformance;
pub mod fixed;
pub mod hybrid;
mod patience;
pub mod route;

use alloc::boxed::Box;
use core::fmt::Debug;

use lowmesh_registry::{Algorithm, Breach, Choice, Row};
use lowmesh_units::{Duration, Instant};

/// Decides when requests to the members of one domain are sent.
///
/// Each request that was sent has exactly one of three ends: [`Gate::on_answer`], [`Gate::on_lost`] or
/// [`Gate::on_discarded`].
pub trait Gate: Debug + Send {
    /// Whether a request over `path` may leave. One always may, sooner or later, when none is under way.
    fn permits(&self, path: &Path, now: Instant) -> Permit;
    /// A request over `path` leaves.
    fn on_sent(&mut self, path: &Path, now: Instant);
    /// The answer came.
    fn on_answer(&mut self, path: &Path, sample: Sample, now: Instant);
    /// No answer came, after all retransmissions or after [`Gate::patience`].
    fn on_lost(&mut self, path: &Path, now: Instant);
    /// The answer is no longer of interest.
    fn on_discarded(&mut self, path: &Path, now: Instant);
    /// After how long without an answer the place of a request is free, while its retransmissions go on. `None` waits for
    /// the end of the exchange.
    fn patience(&self) -> Option<Duration> {
        None
    }
    /// The answer came after its place was free.
    fn on_late(&mut self, _path: &Path, _sample: Sample, _now: Instant) {}
    /// How long to wait for an answer before a request over `path` is repeated with a new message ID, if it was repeated so
    /// many times before. `None` leaves all copies to CoAP. Only idempotent requests are repeated.
    fn again(&self, _path: &Path, _times: u8) -> Option<Duration> {
        None
    }
    /// A request over `path` is repeated; it keeps its place, if it has one.
    fn on_again(&mut self, _path: &Path, _now: Instant) {}
    /// The place of a request over `path` among those that wait: lower ones leave first.
    fn order(&self, _path: &Path) -> u8 {
        0
    }
    /// What to do for the `silent` of `asked` members of a group after so many rounds of requests to the group.
    fn repair(&self, _silent: usize, _asked: usize, _rounds: u8) -> Repair {
        Repair::None
    }
    /// What it believes, for plots.
    fn snapshot(&self) -> Snapshot;
    /// The name in its row.
    fn name(&self) -> &'static str;
}

/// Makes a gate.
pub type MakeGate = fn(&Choice<dyn Gate>) -> Box<dyn Gate>;

impl Algorithm for dyn Gate {
    const NOUN: &'static str = "gate";
    const KEY: &'static str = "groups.gate";
    const BUILTIN: &'static [&'static Row<Self>] =
        &[&fixed::ROW, &aimd::ROW, &climb::ROW, &route::ROW, &hybrid::ROW];
    type Make = MakeGate;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}

/// A new gate of the kind that `choice` names, with its numbers.
pub fn make(choice: &Choice<dyn Gate>) -> Box<dyn Gate> {
    (choice.row().make)(choice)
}

/// The route to a member, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Path {
    /// Hops from the border router; 0 if that is not known.
    pub hops: u8,
    /// The neighbour of the border router that forwards to the member; 0 if that is not known.
    pub first_hop: u64,
}

impl Path {
    /// Hops, at least one.
    pub(crate) fn hops(&self) -> u64 {
        u64::from(self.hops.max(1))
    }
}

/// An answer as a gate sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// From the first copy of the request to the answer.
    pub rtt: Duration,
    /// Copies after the first; with any, the time says little.
    pub retransmissions: u8,
}

/// Whether and when a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It leaves.
    Now,
    /// No request leaves before that time.
    At(Instant),
    /// This one waits for another on its path; one over another path may leave.
    OtherPath,
    /// No request leaves before an answer or a loss.
    Blocked,
}

/// How to repair missing answers of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing: they count as silent.
    None,
    /// The group is asked once more, with a new message ID.
    Group,
    /// Each of them is asked by CON.
    Unicast,
}

/// The state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How many requests may be under way; `None` without a bound.
    pub window: Option<u32>,
    /// How many are.
    pub outstanding: u32,
    /// The least time between two requests.
    pub gap: Duration,
}

#[cfg(test)]
mod tests {
    use lowmesh_registry::Registry;

    use super::*;

    #[test]
    fn every_gate_keeps_the_rules() {
        assert_eq!(Registry::<dyn Gate>::builtin().breaches(), []);
    }
}
