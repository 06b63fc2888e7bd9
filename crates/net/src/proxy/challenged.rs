//! Sources that a proxy has asked for a proof, so that a client without Echo waits for its turn the next time.

use std::collections::BTreeMap;

use lowmesh_shares::{Bound, Newcomer, Source, Table};
use lowmesh_units::{Duration, Instant};

use crate::params::{
    PROXY_CHALLENGED_KEPT, PROXY_CHALLENGED_MAX, PROXY_CHALLENGED_PER_SOURCE, PROXY_PROOF_TIME,
};

/// Sources, and when each was asked first.
#[derive(Debug)]
pub(super) struct Challenged {
    table: Table<Source>,
    since: BTreeMap<Source, Instant>,
}

impl Challenged {
    pub(super) fn new() -> Self {
        let bound = Bound {
            total: PROXY_CHALLENGED_MAX,
            share: PROXY_CHALLENGED_PER_SOURCE,
            grace: Some(PROXY_CHALLENGED_KEPT.into()),
        };
        Self { table: Table::new(bound), since: BTreeMap::new() }
    }
    /// Whether a request of an unproven address is to be answered with Echo: not if its source has had time to return the
    /// value and has not. The source is then to be asked again the time after.
    pub(super) fn is_due(&mut self, source: Source, now: Instant) -> bool {
        let asked = self.since.get(&source).map(|since| now.since(*since));
        match asked {
            // Requests that were under way together.
            Some(age) if age < Duration::from(PROXY_PROOF_TIME) => return true,
            Some(age) if age < Duration::from(PROXY_CHALLENGED_KEPT) => {
                self.forget(source);
                return false;
            }
            Some(_) => self.forget(source),
            None => {}
        }
        let newcomer = Newcomer { source, proven: false };
        if let Ok(displaced) = self.table.enter(source, newcomer, now) {
            if let Some(displaced) = displaced {
                self.since.remove(&displaced);
            }
            self.since.insert(source, now);
        }
        true
    }
    fn forget(&mut self, source: Source) {
        self.table.leave(&source);
        self.since.remove(&source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_client_that_returns_no_echo_is_asked_every_other_time() {
        let mut challenged = Challenged::new();
        let client = Source::V4([192, 0, 2, 1]);
        let asked = [0, 10, 2000, 2001, 4000].map(|ms| challenged.is_due(client, at(ms)));
        assert_eq!(asked, [true, true, false, true, false]);
        // Who comes after a minute is asked as if it were new.
        let asked = [5000, 100_000, 102_000].map(|ms| challenged.is_due(client, at(ms)));
        assert_eq!(asked, [true, true, false]);
    }

    #[test]
    fn many_forged_networks_are_remembered_within_the_bound_and_leave_room_for_another() {
        let mut challenged = Challenged::new();
        for number in 0..5000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            assert!(challenged.is_due(Source::V4([10, 0, high, low]), at(0)));
        }
        assert!(challenged.since.len() <= PROXY_CHALLENGED_MAX);
        assert_eq!(challenged.since.len(), challenged.table.len());
        let client = Source::V4([192, 0, 2, 1]);
        assert!(challenged.is_due(client, at(100)));
        assert!(!challenged.is_due(client, at(2000)));
    }
}
