//! One NULL bitmap for each datagram that is refused, not one for each of its fragments (RFC 8931 s6.3).
//!
//! ```text
//!   first refused fragment               : NULL
//!   later ones                           : nothing
//!   X, half an ARQ timeout after the NULL: NULL again, for the first one was lost
//! ```
//!
//! A window of fragments is on its way before the first refusal is back; answering each would double what the link carries.

use alloc::collections::VecDeque;

use lowmesh_units::{Duration, Instant};

use crate::forward::Label;
use crate::params::{COMPLETE_LINGER, REFUSED_DATAGRAMS};

/// The datagrams that were refused lately.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// With the time of the latest NULL bitmap; in that order.
    told: VecDeque<(Label, Instant)>,
    again_after: Duration,
}

impl Refusals {
    /// None yet; a NULL bitmap is taken as lost when its sender asks `again_after` it.
    pub const fn new(again_after: Duration) -> Self {
        Self { told: VecDeque::new(), again_after }
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
    use lowmesh_units::NodeId;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn label(tag: u16) -> Label {
        Label { neighbour: NodeId(1).eui64(), tag }
    }

    #[test]
    fn a_datagram_is_refused_once_and_again_when_its_sender_still_asks() {
        let mut refusals = Refusals::new(Duration::from_millis(350));
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
        let mut refusals = Refusals::new(Duration::from_secs(1));
        for tag in 0..1000 {
            assert!(refusals.tells(at(0), label(tag), false));
            assert!(refusals.told.len() <= REFUSED_DATAGRAMS);
        }
        assert!(refusals.tells(at(5000), label(999), false), "its time is over");
        assert_eq!(refusals.told.len(), 1);
    }
}
