//! The places of connections: how many there are, how many one source may hold, and which connection leaves when one
//! more comes.
//!
//! ```text
//!   admit ──► Opening ── serve ──► Served ── evicted ──► Leaving ──► gone
//!                ├── evicted ──────────────────────────────┘  └─ cut ──► gone
//!                └── too slow ──────────────────────────────────────────► gone
//! ```
//! Connections whose handshakes are not complete have places of their own, so they cannot take those of connections that
//! are served. One of them gives way by lot: the oldest would be that of the client farthest away. A connection that has
//! lost its place may end in order; of those that leave the longest idle one is cut when more leave than may. Who gives
//! way, `lowmesh_shares` decides.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_shares::{Bound, Newcomer, Source, Table};
use lowmesh_units::{Duration, Rng};
use tokio::sync::Notify;

use super::limits::Limits;
use crate::clock::Clock;

/// The places of all ports of a server.
#[derive(Clone, Debug)]
pub(super) struct Places {
    tables: Arc<Mutex<Tables>>,
    clock: Clock,
}

type Id = u64;

/// Each connection is in one of the tables.
#[derive(Debug)]
struct Tables {
    last: Id,
    /// Its handshakes or its CSM are not complete.
    opening: Table<Id>,
    /// Its peer has sent its CSM.
    served: Table<Id>,
    /// It has lost its place, and ends in order.
    leaving: Table<Id>,
    /// It ends at once. As many may be here as may leave, or no more are admitted.
    cut: Table<Id>,
    cut_bound: Bound,
    all: BTreeMap<Id, (Newcomer, Arc<Standing>)>,
}

/// What a connection learns.
#[derive(Debug, Default)]
struct Standing {
    evicted: Notify,
    cut: Notify,
}

/// Tells when a connection ends at once.
#[derive(Debug)]
pub(super) struct Cut(Arc<Standing>);

impl Cut {
    /// Waits until the place of a connection that leaves is needed.
    pub(super) async fn wait(&self) {
        self.0.cut.notified().await;
    }
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    id: Id,
    standing: Arc<Standing>,
    /// Its peer observes something, or waits for an answer.
    busy: AtomicBool,
}

impl Places {
    /// As many as the limits say.
    pub(super) fn new(limits: &Limits, lots: Rng) -> Self {
        let (total, share) = (limits.opening_max, limits.opening_per_source);
        let opening = Bound { total, share, grace: Some(Duration::ZERO) };
        let served = Bound {
            total: limits.connections_max,
            share: limits.connections_per_source,
            grace: Some(limits.busy_max.into()),
        };
        let total = limits.leaving_max;
        let share = (total * share / limits.opening_max.max(1)).max(1);
        let leaving = Bound { total, share, grace: Some(Duration::ZERO) };
        let tables = Tables {
            last: 0,
            opening: Table::new(opening).by_lot(lots),
            served: Table::new(served),
            leaving: Table::new(leaving),
            cut: Table::new(Bound::of(usize::MAX)),
            cut_bound: leaving,
            all: BTreeMap::new(),
        };
        Self { tables: Arc::new(Mutex::new(tables)), clock: Clock::start() }
    }
    /// A place for a connection that begins. Past a bound another connection whose handshakes are not complete makes
    /// room, and of those that leave another is cut. `None` while too many that were cut are not gone yet, of this
    /// source or of all.
    pub(super) fn admit(&self, from: SocketAddr) -> Option<Place> {
        let newcomer = Newcomer { source: Source::of(from.ip()), proven: true };
        let mut tables = self.lock();
        if tables.is_clogged(newcomer.source) {
            return None;
        }
        tables.last += 1;
        let id = tables.last;
        let victim = tables.opening.enter(id, newcomer, self.clock.now()).ok()?;
        let standing = Arc::new(Standing::default());
        tables.all.insert(id, (newcomer, standing.clone()));
        self.evict(&mut tables, victim);
        drop(tables);
        Some(Place { places: self.clone(), id, standing, busy: AtomicBool::new(false) })
    }
    /// A connection has lost its place to another, and leaves. One that leaves already may be cut for it.
    fn evict(&self, tables: &mut Tables, victim: Option<Id>) {
        let Some(id) = victim else { return };
        let Some((newcomer, standing)) = tables.all.get(&id).cloned() else { return };
        standing.evicted.notify_one();
        match tables.leaving.enter(id, newcomer, self.clock.now()) {
            Ok(None) => {}
            Ok(Some(slow)) => tables.cut(slow),
            Err(_) => tables.cut(id),
        }
    }
    fn lock(&self) -> MutexGuard<'_, Tables> {
        // The tables are whole between any two operations.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// Whether as many connections that were cut as may leave are not gone yet.
    fn is_clogged(&self, source: Source) -> bool {
        let Bound { total, share, .. } = self.cut_bound;
        self.cut.len() >= total || self.cut.of(source) >= share
    }
    fn cut(&mut self, id: Id) {
        let Some((newcomer, standing)) = self.all.get(&id) else { return };
        standing.cut.notify_one();
        // It has no bound of its own, so nobody gives way.
        let _nobody = self.cut.enter(id, *newcomer, lowmesh_units::Instant::ZERO);
    }
}

impl Place {
    /// Tells when the connection ends at once.
    pub(super) fn cut(&self) -> Cut {
        Cut(self.standing.clone())
    }
    /// The peer's CSM has come: the connection moves to the places of those that are served, where another makes room
    /// past a bound. False if none does, or if this one has lost its place already.
    pub(crate) fn serve(&self) -> bool {
        let mut tables = self.places.lock();
        if tables.served.contains(&self.id) {
            return true;
        }
        let now = self.places.clock.now();
        let Some((newcomer, _)) = tables.all.get(&self.id).cloned() else { return false };
        if !tables.opening.contains(&self.id) {
            return false;
        }
        let Ok(victim) = tables.served.enter(self.id, newcomer, now) else { return false };
        tables.opening.leave(&self.id);
        if !self.busy.load(Ordering::Relaxed) {
            tables.served.rest(&self.id, now);
        }
        self.places.evict(&mut tables, victim);
        true
    }
    /// A message of the peer has come.
    pub(crate) fn heard(&self) {
        let mut tables = self.places.lock();
        tables.served.touch(&self.id);
        tables.leaving.touch(&self.id);
    }
    /// Whether the peer observes something or waits for an answer, which keeps its place for a while.
    pub(crate) fn set_busy(&self, busy: bool) {
        if self.busy.swap(busy, Ordering::Relaxed) == busy {
            return;
        }
        let (mut tables, now) = (self.places.lock(), self.places.clock.now());
        if busy {
            tables.served.work(&self.id, now);
        } else {
            tables.served.rest(&self.id, now);
        }
    }
    /// Waits until another connection has taken the place.
    pub(crate) async fn evicted(&self) {
        self.standing.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut tables = self.places.lock();
        let Tables { opening, served, leaving, cut, all, .. } = &mut *tables;
        for table in [opening, served, leaving, cut] {
            table.leave(&self.id);
        }
        all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use lowmesh_units::{NodeId, Purpose, Seed};

    use super::*;

    fn places(served: (usize, usize), opening: (usize, usize)) -> Places {
        bounded(&Limits {
            connections_max: served.0,
            connections_per_source: served.1,
            opening_max: opening.0,
            opening_per_source: opening.1,
            leaving_max: opening.0,
            ..Limits::default()
        })
    }

    fn bounded(limits: &Limits) -> Places {
        Places::new(limits, Rng::stream(Seed(1), NodeId(0), Purpose::Host))
    }

    fn from(host: u8) -> SocketAddr {
        ([192, 0, 2, host], 1).into()
    }

    fn is_evicted(place: &Place) -> bool {
        place.evicted().now_or_never().is_some()
    }

    fn served(places: &Places, host: u8) -> Place {
        let place = places.admit(from(host)).expect("room to begin");
        assert!(place.serve(), "a place for {host}");
        place
    }

    #[test]
    fn the_source_that_holds_most_gives_its_longest_idle_place() {
        let places = places((4, 3), (8, 8));
        let lonely = served(&places, 1);
        let [first, second, third] = [(); 3].map(|()| served(&places, 2));
        first.heard();
        let _newcomer = served(&places, 3);
        assert!(is_evicted(&second), "longest idle of the source with three places");
        assert!(![&lonely, &first, &third].into_iter().any(is_evicted));
    }

    #[test]
    fn a_source_that_holds_its_share_takes_nothing_from_others() {
        let places = places((8, 2), (8, 8));
        let other = served(&places, 1);
        let [old, young] = [(); 2].map(|()| served(&places, 2));
        let _third = served(&places, 2);
        assert!(is_evicted(&old));
        assert!(!is_evicted(&young) && !is_evicted(&other));
    }

    #[test]
    fn a_connection_that_observes_or_waits_for_an_answer_keeps_its_place_among_modest_sources() {
        let places = places((2, 2), (8, 8));
        let both = [1, 2].map(|host| served(&places, host));
        for place in &both {
            place.set_busy(true);
        }
        let newcomer = places.admit(from(3)).expect("room to begin");
        assert!(!newcomer.serve());
        both[1].set_busy(false);
        assert!(newcomer.serve());
        assert!(!is_evicted(&both[0]) && is_evicted(&both[1]));
    }

    #[test]
    fn the_networks_of_one_subscriber_that_all_observe_give_way_to_another_client() {
        let places = bounded(&Limits::default());
        let subscriber = |network| {
            let from = ([0x2001, 0xdb8, 0, network, 0, 0, 0, 1], 1).into();
            let place = places.admit(from).expect("room to begin");
            assert!(place.serve());
            place.set_busy(true);
            place
        };
        let all: Vec<Place> = (0..256).map(subscriber).collect();
        let mut others = Vec::new();
        for host in 1..=16 {
            let place = served(&places, host);
            place.set_busy(true);
            others.push(place);
            assert!(is_evicted(&all[usize::from(host) - 1]), "the one that observes longest");
        }
        let evicted = all.iter().skip(16).filter(|place| is_evicted(place)).count();
        assert_eq!(evicted, 0);
    }

    #[test]
    fn a_modest_observer_gives_way_after_its_grace() {
        let busy_max = std::time::Duration::ZERO;
        let (connections_max, connections_per_source) = (1, 1);
        let limits =
            Limits { connections_max, connections_per_source, busy_max, ..Limits::default() };
        let places = bounded(&limits);
        let observer = served(&places, 1);
        observer.set_busy(true);
        let _newcomer = served(&places, 2);
        assert!(is_evicted(&observer));
    }

    #[test]
    fn an_observer_that_stops_and_begins_again_has_no_new_grace() {
        let busy_max = std::time::Duration::from_millis(60);
        let (connections_max, connections_per_source) = (1, 1);
        let limits =
            Limits { connections_max, connections_per_source, busy_max, ..Limits::default() };
        let places = bounded(&limits);
        let observer = served(&places, 1);
        for _ in 0..4 {
            observer.set_busy(true);
            std::thread::sleep(busy_max / 3);
            observer.set_busy(false);
            observer.set_busy(true);
        }
        let _newcomer = served(&places, 2);
        assert!(is_evicted(&observer));
    }

    #[test]
    fn a_client_far_away_outlives_a_flood_of_connections_that_say_nothing() {
        let places = bounded(&Limits::default());
        let mut survivors = 0;
        for _ in 0..10 {
            let honest = places.admit(([198, 51, 100, 1], 1).into()).expect("room to begin");
            // 1,000 connections of 250 addresses, while a handshake takes its round trips.
            let mut flood = Vec::new();
            for number in 0..1000_u16 {
                let host = (number % 250) as u8;
                flood.extend(places.admit(([192, 0, 2, host], number).into()));
                flood.retain(|place| !is_evicted(place));
            }
            survivors += usize::from(honest.serve());
        }
        assert_eq!(survivors, 10);
    }

    #[test]
    fn handshakes_take_places_of_handshakes_only() {
        let places = places((2, 2), (3, 2));
        let peer = served(&places, 1);
        let mut two = Vec::from([(); 2].map(|()| places.admit(from(2)).expect("its share")));
        two.push(places.admit(from(2)).expect("in place of one of its own"));
        let evicted: Vec<Place> = two.extract_if(.., |place| is_evicted(place)).collect();
        assert_eq!(evicted.len(), 1);
        assert!(!evicted[0].serve(), "what has lost its place is not served");
        drop(evicted);
        let other = places.admit(from(3)).expect("the last place");
        let _another = places.admit(from(4)).expect("in place of the source with two");
        assert_eq!(two.iter().filter(|place| is_evicted(place)).count(), 1);
        assert!(!is_evicted(&other) && !is_evicted(&peer));
    }

    fn is_cut(place: &Place) -> bool {
        place.cut().wait().now_or_never().is_some()
    }

    #[test]
    fn of_the_connections_that_leave_the_longest_idle_one_is_cut_when_its_place_is_needed() {
        let places = places((1, 1), (2, 2));
        let mut slow: Vec<Place> = (0..4).filter_map(|_| places.admit(from(1))).collect();
        assert_eq!(slow.len(), 4, "two leave, two begin");
        assert!(!slow.iter().any(is_cut));
        let mut cut = Vec::new();
        for count in 1..=2 {
            slow.extend(places.admit(from(1)));
            cut.extend(slow.extract_if(.., |place| is_cut(place)));
            assert_eq!(cut.len(), count);
        }
        assert!(places.admit(from(1)).is_none(), "two that were cut are not gone yet");
        cut.remove(0);
        assert!(places.admit(from(1)).is_some());
    }

    #[test]
    fn a_source_that_evicts_its_own_connections_shuts_out_nobody_else() {
        let places = places((8, 8), (4, 2));
        let slow: Vec<Place> = (0..20).filter_map(|_| places.admit(from(1))).collect();
        assert_eq!(slow.len(), 6, "two are cut, two leave, two begin");
        let other = places.admit(from(2)).expect("its share is its own");
        assert!(!is_evicted(&other));
        let more: Vec<Place> = (0..20).filter_map(|_| places.admit(from(2))).collect();
        assert_eq!(more.len(), 5, "two are cut, two leave, and one more begins");
        assert!(places.admit(from(3)).is_none(), "four were cut, which is the total");
        drop(slow);
        assert!(places.admit(from(3)).is_some());
    }

    #[test]
    fn many_sources_that_leave_slowly_keep_nobody_out() {
        let places = places((8, 8), (4, 2));
        let _slow: Vec<Place> =
            (1..=2).flat_map(|host| [(); 4].map(|()| places.admit(from(host)))).flatten().collect();
        // Four leave, which is the total: the newcomer takes a place of theirs.
        assert!(places.admit(from(3)).is_some());
    }

    #[test]
    fn places_of_connections_that_lose_theirs_while_served_are_bounded_too() {
        let places = places((1, 1), (2, 2));
        let mut all = vec![served(&places, 1)];
        for _ in 0..10 {
            let Some(place) = places.admit(from(1)) else { break };
            place.serve();
            all.push(place);
        }
        let left = all.iter().filter(|place| is_evicted(place)).count();
        let cut = all.iter().filter(|place| is_cut(place)).count();
        assert!(left - cut <= 3, "{left} lost their place, {cut} of them are cut");
    }
}
