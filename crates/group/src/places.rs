//! Places of requests that are under way: a total, with shares for a client and for a node.
//!
//! A request without an answer for [`SUSPECT_AFTER`] is *suspect*: its node may be off. If the manager spares those that
//! answer ([`Config::fail_fast`](crate::Config::fail_fast)), suspect requests leave them a reserve:
//!
//! ```text
//!   has room    all < 1024, or those that are not suspect < 256        of a client: all < 256, or not suspect < 64
//!   of a node   32, and none behind a suspect one: what waits behind it is not on the air
//!   at most     1024 + 256, of a client 256 + 64: then the oldest suspect one gives way
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;

use lowmesh_units::Instant;

use crate::params::{
    RESERVE, RESERVE_A_CLIENT, SUSPECT_AFTER, UNDER_WAY_A_CLIENT_MAX, UNDER_WAY_A_NODE_MAX,
    UNDER_WAY_MAX,
};
use crate::target::Authority;

/// What keeps a request from leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// Other requests to the same node.
    Node,
    /// Requests to any nodes.
    Others,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    taken: usize,
    fresh: usize,
}

impl Share {
    const fn has_room(self, max: usize, reserve: usize) -> bool {
        self.taken < max || self.fresh < reserve
    }
}

#[derive(Debug)]
struct Place {
    client: Option<IpAddr>,
    node: Authority,
    since: Instant,
}

/// The places that are taken. Requests that the manager makes by itself have the share of one client.
#[derive(Debug)]
pub(crate) struct Places {
    /// Whether there is a reserve.
    spares: bool,
    open: BTreeMap<u64, Place>,
    all: Share,
    clients: BTreeMap<Option<IpAddr>, Share>,
    nodes: BTreeMap<Authority, BTreeSet<(Instant, u64)>>,
    /// Those that are not suspect, and those that are.
    fresh: BTreeSet<(Instant, u64)>,
    suspect: BTreeSet<(Instant, u64)>,
}

impl Places {
    pub(crate) fn new(spares: bool) -> Self {
        let (open, clients, nodes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (fresh, suspect) = (BTreeSet::new(), BTreeSet::new());
        Self { spares, open, all: Share::default(), clients, nodes, fresh, suspect }
    }
    /// Whether a request for this client to this node may leave.
    pub(crate) fn room(&self, client: Option<IpAddr>, node: &Authority, now: Instant) -> Room {
        let of_node = self.nodes.get(node);
        let oldest = of_node.and_then(|all| all.first()).map(|(since, _)| *since);
        let is_silent = self.spares && oldest.is_some_and(|oldest| oldest + SUSPECT_AFTER <= now);
        if is_silent || of_node.map_or(0, BTreeSet::len) >= UNDER_WAY_A_NODE_MAX {
            return Room::Node;
        }
        let (reserve, reserve_a_client) =
            if self.spares { (RESERVE, RESERVE_A_CLIENT) } else { (0, 0) };
        let of_client = self.clients.get(&client).copied().unwrap_or_default();
        let has_room = self.all.has_room(UNDER_WAY_MAX, reserve)
            && of_client.has_room(UNDER_WAY_A_CLIENT_MAX, reserve_a_client);
        if has_room { Room::Free } else { Room::Others }
    }
    /// The suspect request that gives way if one more leaves for this client.
    pub(crate) fn gives_way(&self, client: Option<IpAddr>) -> Option<u64> {
        let of_client = self.clients.get(&client).copied().unwrap_or_default();
        if of_client.taken >= UNDER_WAY_A_CLIENT_MAX + RESERVE_A_CLIENT {
            let is_of_client =
                |number: &u64| self.open.get(number).is_some_and(|place| place.client == client);
            return self.suspect.iter().map(|(_, number)| *number).find(is_of_client);
        }
        let oldest = self.suspect.first().filter(|_| self.all.taken >= UNDER_WAY_MAX + RESERVE);
        oldest.map(|(_, number)| *number)
    }
    /// A request leaves.
    pub(crate) fn take(
        &mut self,
        number: u64,
        client: Option<IpAddr>,
        node: &Authority,
        now: Instant,
    ) {
        self.nodes.entry(node.clone()).or_default().insert((now, number));
        self.fresh.insert((now, number));
        for share in [&mut self.all, self.clients.entry(client).or_default()] {
            share.taken += 1;
            share.fresh += 1;
        }
        self.open.insert(number, Place { client, node: node.clone(), since: now });
    }
    /// A request has ended.
    pub(crate) fn free(&mut self, number: u64) {
        let Some(Place { client, node, since }) = self.open.remove(&number) else { return };
        if let Some(of_node) = self.nodes.get_mut(&node) {
            of_node.remove(&(since, number));
            if of_node.is_empty() {
                self.nodes.remove(&node);
            }
        }
        let was_fresh = self.fresh.remove(&(since, number));
        self.suspect.remove(&(since, number));
        self.change(client, |share| {
            share.taken -= 1;
            share.fresh -= usize::from(was_fresh);
        });
        if self.clients.get(&client).is_some_and(|share| share.taken == 0) {
            self.clients.remove(&client);
        }
    }
    /// When the first copy of a request left.
    pub(crate) fn since(&self, number: u64) -> Option<Instant> {
        self.open.get(&number).map(|place| place.since)
    }
    /// Requests become suspect with time.
    pub(crate) fn age(&mut self, now: Instant) {
        while let Some((since, number)) = self.fresh.first().copied()
            && since + SUSPECT_AFTER <= now
        {
            self.fresh.pop_first();
            self.suspect.insert((since, number));
            if let Some(client) = self.open.get(&number).map(|place| place.client) {
                self.change(client, |share| share.fresh -= 1);
            }
        }
    }
    /// When the next request becomes suspect, if that can make room.
    pub(crate) fn next_suspect(&self) -> Option<Instant> {
        let next = self.fresh.first().filter(|_| self.spares);
        next.map(|(since, _)| *since + SUSPECT_AFTER)
    }
    fn change(&mut self, client: Option<IpAddr>, change: impl Fn(&mut Share)) {
        change(&mut self.all);
        if let Some(share) = self.clients.get_mut(&client) {
            change(share);
        }
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Duration;

    use super::*;

    fn node(number: usize) -> Authority {
        Authority::of(
            &format!("coap://[fd00::{:x}:{:x}]/", number >> 16, number & 0xffff)
                .parse()
                .expect("a URI"),
        )
    }

    /// Takes places for a client from node `first` on, until there is none; how many.
    fn fill(places: &mut Places, client: Option<IpAddr>, first: usize, now: Instant) -> usize {
        places.age(now);
        let free = (first..).take_while(|number| {
            let is_free = places.room(client, &node(*number), now) == Room::Free;
            if is_free {
                if let Some(oldest) = places.gives_way(client) {
                    places.free(oldest);
                }
                places.take(*number as u64, client, &node(*number), now);
            }
            is_free
        });
        free.count()
    }

    #[test]
    fn suspect_requests_leave_a_reserve_and_their_node_waits() {
        let client = Some(IpAddr::from([192, 0, 2, 1]));
        let start = Instant::from_secs(1);
        let mut places = Places::new(true);
        assert_eq!(fill(&mut places, client, 1, start), UNDER_WAY_A_CLIENT_MAX);
        let (soon, later) = (start + Duration::from_secs(2), start + SUSPECT_AFTER);
        assert_eq!(fill(&mut places, client, 1001, soon), 0);
        assert_eq!(places.next_suspect(), Some(later));
        assert_eq!(fill(&mut places, client, 1001, later), RESERVE_A_CLIENT);
        assert_eq!(places.room(client, &node(1), later), Room::Node);
        // An answer makes room.
        places.free(1001);
        assert_eq!(fill(&mut places, client, 2001, later), 1);
        for number in (1..=UNDER_WAY_A_CLIENT_MAX).chain(1002..1001 + RESERVE_A_CLIENT) {
            places.free(number as u64);
        }
        places.free(2001);
        assert!(places.clients.is_empty() && places.nodes.is_empty() && places.fresh.is_empty());
    }

    #[test]
    fn without_a_reserve_time_makes_no_room() {
        let (start, later) = (Instant::from_secs(1), Instant::from_secs(50));
        let mut places = Places::new(false);
        assert_eq!(fill(&mut places, None, 1, start), UNDER_WAY_A_CLIENT_MAX);
        assert_eq!(fill(&mut places, None, 1001, later), 0);
        assert_eq!(
            (places.next_suspect(), places.room(None, &node(1), later)),
            (None, Room::Others)
        );
    }

    #[test]
    fn beyond_the_reserve_the_oldest_suspect_requests_give_way() {
        for clients in [1, 250_u8] {
            let mut places = Places::new(true);
            let mut now = Instant::from_secs(1);
            for round in 0..250_u8 {
                now += SUSPECT_AFTER;
                let client = Some(IpAddr::from([192, 0, 2, round % clients]));
                let taken = fill(&mut places, client, usize::from(round) * 1000 + 1, now);
                assert!(taken >= RESERVE_A_CLIENT, "{round}: {taken}");
                assert!(places.all.taken <= UNDER_WAY_MAX + RESERVE);
                let most = places.clients.values().map(|share| share.taken).max();
                assert!(most <= Some(UNDER_WAY_A_CLIENT_MAX + RESERVE_A_CLIENT));
            }
        }
    }
}
