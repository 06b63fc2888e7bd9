//! Clients that a proxy has asked for a proof, so that one without Echo waits for its turn when it asks again.
//!
//! A client is a port of a source, whose number an attacker has to guess: who makes the proxy ask in another's name keeps it
//! from nothing but a quick question.

use std::collections::BTreeMap;

use lowmesh_shares::{Bound, Newcomer, Source, Table};
use lowmesh_units::{Duration, Instant};

use crate::params::{
    PROXY_CHALLENGED_KEPT, PROXY_CHALLENGED_MAX, PROXY_CHALLENGED_PER_SOURCE, PROXY_PROOF_TIME,
};

/// A port of a source.
pub(super) type Port = (Source, u16);

/// Clients, and when each was asked first.
#[derive(Debug)]
pub(super) struct Challenged {
    table: Table<Port>,
    since: BTreeMap<Port, Instant>,
}

impl Challenged {
    pub(super) fn new() -> Self {
        let bound = Bound {
            total: PROXY_CHALLENGED_MAX,
            share: PROXY_CHALLENGED_PER_SOURCE,
            grace: Some(PROXY_PROOF_TIME.into()),
        };
        Self { table: Table::new(bound), since: BTreeMap::new() }
    }
    /// Whether a request of an unproven client is to be answered with Echo: not if the client has had time to return the
    /// value, and has not. It is asked again after a while.
    pub(super) fn is_due(&mut self, client: Port, now: Instant) -> bool {
        let asked = self.since.get(&client).map(|since| now.since(*since));
        match asked {
            // Requests that were under way together.
            Some(age) if age < Duration::from(PROXY_PROOF_TIME) => return true,
            Some(age) if age < Duration::from(PROXY_CHALLENGED_KEPT) => return false,
            Some(_) => self.forget(client),
            None => {}
        }
        let newcomer = Newcomer { source: client.0, proven: false };
        if let Ok(displaced) = self.table.enter(client, newcomer, now) {
            if let Some(displaced) = displaced {
                self.since.remove(&displaced);
            }
            self.since.insert(client, now);
        }
        true
    }
    /// The client has returned a value.
    pub(super) fn forget(&mut self, client: Port) {
        self.table.leave(&client);
        self.since.remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Port = (Source::V4([192, 0, 2, 1]), 5683);

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_client_that_returns_no_echo_is_asked_once_a_minute() {
        let mut challenged = Challenged::new();
        let asked = [0, 10, 2000, 2001, 59_000, 60_000, 60_001, 62_000]
            .map(|ms| challenged.is_due(CLIENT, at(ms)));
        assert_eq!(asked, [true, true, false, false, false, true, true, false]);
        assert!(
            challenged.is_due((CLIENT.0, 61_616), at(62_000)),
            "another port is another client"
        );
    }

    #[test]
    fn a_client_that_has_returned_a_value_is_asked_as_if_it_were_new() {
        let mut challenged = Challenged::new();
        assert!(challenged.is_due(CLIENT, at(0)));
        challenged.forget(CLIENT);
        assert!(challenged.is_due(CLIENT, at(2000)));
    }

    #[test]
    fn forged_networks_are_remembered_within_the_bound_and_give_way_to_another() {
        let mut challenged = Challenged::new();
        // Ten a second, each in a /16 of its own.
        for number in 0..5000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            let forged = (Source::V4([high + 16, low, 0, 1]), 1);
            assert!(challenged.is_due(forged, at(u64::from(number) * 100)));
        }
        assert!(challenged.since.len() <= PROXY_CHALLENGED_MAX);
        assert_eq!(challenged.since.len(), challenged.table.len());
        assert!(challenged.is_due(CLIENT, at(500_000)));
        for number in 0..100_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            let forged = (Source::V4([high + 96, low, 0, 1]), 1);
            assert!(challenged.is_due(forged, at(500_000 + u64::from(number) * 100)));
        }
        assert!(!challenged.is_due(CLIENT, at(510_000)), "it has a place for ten seconds");
    }
}
