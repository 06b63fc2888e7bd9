//! Fair order of clients in one domain: they take turns, however many requests one of them has.
//!
//! A request gets the turn after the latest one of its client, or after the one that is served. The requests of one client
//! keep their order.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use crate::params::{REQUESTS_MAX, TURNS_OF_MANAGER};

/// The turns of one domain.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    served: u64,
    /// The latest of all that wait.
    latest: u64,
    clients: BTreeMap<IpAddr, u64>,
}

impl Turns {
    /// The turn of a request for a client. A request of the manager itself comes after those that wait, but after
    /// [`TURNS_OF_MANAGER`] turns at most.
    pub(crate) fn next(&mut self, client: Option<IpAddr>) -> u64 {
        let Some(client) = client else {
            return self.latest.max(self.served).min(self.served + TURNS_OF_MANAGER);
        };
        if self.clients.len() >= REQUESTS_MAX {
            let served = self.served;
            self.clients.retain(|_, turn| *turn > served);
        }
        let before = self.clients.get(&client).copied().unwrap_or_default();
        let turn = 1 + before.max(self.served);
        self.clients.insert(client, turn);
        self.latest = self.latest.max(turn);
        turn
    }
    /// A request of this turn leaves.
    pub(crate) fn serve(&mut self, turn: u64) {
        self.served = self.served.max(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns_and_the_manager_waits_for_a_bounded_number() {
        let client = |last| Some(IpAddr::from([192, 0, 2, last]));
        let mut turns = Turns::default();
        let greedy: [u64; 4] = core::array::from_fn(|_| turns.next(client(1)));
        assert_eq!(greedy, [1, 2, 3, 4]);
        turns.serve(1);
        assert_eq!([turns.next(client(2)), turns.next(client(2))], [2, 3]);
        assert_eq!(turns.next(None), 4, "behind those that wait");
        let many: u64 = (0..1000).map(|_| turns.next(client(1))).last().expect("some");
        assert_eq!(many, 1004);
        assert_eq!(turns.next(None), 1 + TURNS_OF_MANAGER);
        assert_eq!(turns.next(client(3)), 2);
    }
}
