//! One NULL bitmap for each datagram that is refused, not one for each of its fragments (RFC 8931 s6.3).
//!
//! ```text
//!   first refused fragment               : NULL
//!   later ones                           : nothing
//!   X, half an ARQ timeout after the NULL: NULL again, for the first one was lost
//! ```
//!
//! A window of fragments is on its way before the first refusal is back; answering each would double what the link carries.
//!
//! A refusal is advice (RFC 8931 s6.3: SHOULD): without it the sender waits for its ARQ timeout. Among strangers it has one
//! copy and a rate, because a fragment that nobody wants must not cost its receiver the air.
//!
//! | bound | total | share of one neighbour | the next one |
//! |---|---|---|---|
//! | refusals | `refusals_per_second` | three quarters | does not leave |

use alloc::collections::VecDeque;

use lowmesh_shares::SharedRate;
use lowmesh_units::{Duration, Eui64, Instant};

use crate::forward::Label;
use crate::params::{COMPLETE_LINGER, REFUSAL_SHARE, REFUSAL_SOURCES, REFUSED_DATAGRAMS, Recovery};

/// The datagrams that were refused lately.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// With the time of the latest NULL bitmap; in that order.
    told: VecDeque<(Label, Instant)>,
    again_after: Duration,
    /// `None`: no bound.
    rate: Option<SharedRate<Eui64>>,
}

impl Refusals {
    /// None yet.
    pub fn new(config: &Recovery) -> Self {
        let again_after = config.arq.timeout() / REFUSAL_SHARE;
        let rate = |per_second| SharedRate::new(per_second, REFUSAL_SOURCES);
        Self { told: VecDeque::new(), again_after, rate: config.refusals_per_second.map(rate) }
    }

    /// Whether the MAC need not repeat them.
    pub const fn are_advice(&self) -> bool {
        self.rate.is_some()
    }

    /// True when the refusal of a fragment has to be told; `asks` is its X.
    pub fn tells(&mut self, now: Instant, label: Label, asks: bool) -> bool {
        while self.told.front().is_some_and(|(_, at)| now.since(*at) >= COMPLETE_LINGER) {
            self.told.pop_front();
        }
        if let Some(place) = self.told.iter().position(|(known, _)| *known == label) {
            if !asks || now.since(self.told[place].1) < self.again_after {
                return false;
            }
            self.told.remove(place);
        }
        // RFC 8931 s6.3: the reassembling end SHOULD, so it may let others go first.
        if self.rate.as_mut().is_some_and(|rate| !rate.take(now, label.neighbour)) {
            return false;
        }
        if self.told.len() == REFUSED_DATAGRAMS {
            self.told.pop_front();
        }
        self.told.push_back((label, now));
        true
    }

    /// The label is used for a datagram that is not refused.
    pub fn forget(&mut self, label: Label) {
        self.told.retain(|(known, _)| *known != label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Arq;
    use lowmesh_units::NodeId;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn refusals(refusals_per_second: Option<u32>) -> Refusals {
        let arq = Arq::fixed(Duration::from_millis(700));
        Refusals::new(&Recovery { arq, refusals_per_second, ..Recovery::default() })
    }
    fn label(tag: u16) -> Label {
        Label { neighbour: NodeId(1).eui64(), tag }
    }

    #[test]
    fn a_datagram_is_refused_once_and_again_when_its_sender_still_asks() {
        let mut refusals = refusals(None);
        assert!(refusals.tells(at(0), label(1), false));
        for (ms, asks) in [(1, false), (2, true), (349, true), (350, false)] {
            assert!(!refusals.tells(at(ms), label(1), asks), "at {ms} ms");
        }
        assert!(refusals.tells(at(5), label(2), false), "another datagram");
        assert!(refusals.tells(at(350), label(1), true));
        assert!(!refusals.tells(at(351), label(1), true));
        refusals.forget(label(1));
        assert!(refusals.tells(at(352), label(1), false));
    }

    #[test]
    fn no_more_datagrams_are_known_than_there_is_room_for() {
        let mut refusals = refusals(None);
        for tag in 0..1000 {
            assert!(refusals.tells(at(0), label(tag), false));
            assert!(refusals.told.len() <= REFUSED_DATAGRAMS);
        }
        assert!(refusals.tells(at(5000), label(999), false), "its time is over");
        assert_eq!(refusals.told.len(), 1);
    }

    #[test]
    fn among_strangers_refusals_have_a_rate_and_a_neighbour_leaves_a_quarter_to_others() {
        let mut refusals = refusals(Some(10));
        let told = |refusals: &mut Refusals, node: u16| {
            let of = |tag| Label { neighbour: NodeId(node).eui64(), tag };
            (0..100).filter(|tag| refusals.tells(at(0), of(*tag), false)).count()
        };
        assert_eq!([1, 2, 3].map(|node| told(&mut refusals, node)), [8, 2, 0]);
        assert!(refusals.are_advice());
    }
}
