//! The places of connections: how many there are, how many one source may hold, and who leaves when one more comes.
//!
//! ```text
//!   admit ──► Opening ── serve ──► Served ── evicted ──► Leaving ──► gone
//!                └── evicted, too slow ──────────────────► gone
//! ```
//! Connections whose handshakes are not complete have places apart, so they cannot take those of connections that are
//! served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::Limits;
use crate::source::Source;

/// How many places there are.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    served_max: usize,
    served_per_source: usize,
    opening_max: usize,
    opening_per_source: usize,
}

/// The places of all ports of a server.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    table: Mutex<Table>,
    /// Grows with every message of a connection, so that the longest idle one is known without a clock.
    uses: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    serial: u64,
    all: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    source: Source,
    stage: Stage,
    standing: Arc<Standing>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its handshakes or its CSM are not complete.
    Opening,
    /// Its peer has sent its CSM.
    Served,
    /// It has lost its place, and ends.
    Leaving,
}

/// What a connection says of itself.
#[derive(Debug, Default)]
struct Standing {
    /// Its peer observes something, or waits for an answer.
    busy: AtomicBool,
    used: AtomicU64,
    evicted: Notify,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    id: u64,
    standing: Arc<Standing>,
}

impl Places {
    /// As many as the limits say.
    pub(super) fn new(limits: &Limits) -> Self {
        let bounds = Bounds {
            served_max: limits.connections_max,
            served_per_source: limits.connections_per_source,
            opening_max: limits.opening_max,
            opening_per_source: limits.opening_per_source,
        };
        let (table, uses) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Shared { bounds, table, uses }))
    }
    /// A place for a connection that begins. Past a bound the oldest one that has not come further makes room: of the
    /// same source if that holds its share, else of the source that holds most.
    ///
    /// As many may leave at once as may begin: `None` while the share of this source leaves, or the total of all.
    pub(super) fn admit(&self, from: SocketAddr) -> Option<Place> {
        let (source, bounds) = (Source::of(from), self.0.bounds);
        let mut table = self.0.table();
        if table.count(Stage::Leaving, Some(source)) >= bounds.opening_per_source
            || table.count(Stage::Leaving, None) >= bounds.opening_max
        {
            return None;
        }
        if table.count(Stage::Opening, Some(source)) >= bounds.opening_per_source {
            table.evict(Stage::Opening, Some(source));
        } else if table.count(Stage::Opening, None) >= bounds.opening_max {
            table.evict(Stage::Opening, None);
        }
        let standing = Arc::new(Standing::default());
        standing.used.store(self.0.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        table.serial += 1;
        let id = table.serial;
        let entry = Entry { source, stage: Stage::Opening, standing: standing.clone() };
        table.all.insert(id, entry);
        Some(Place { shared: self.0.clone(), id, standing })
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two operations.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn count(&self, stage: Stage, source: Option<Source>) -> usize {
        let of_source = |entry: &&Entry| source.is_none_or(|source| entry.source == source);
        self.all.values().filter(|entry| entry.stage == stage).filter(of_source).count()
    }
    /// Takes the place of an idle connection of this source, or of the source that holds most places; of several
    /// the longest idle one. False if all are busy.
    fn evict(&mut self, stage: Stage, source: Option<Source>) -> bool {
        let mut held: BTreeMap<Source, usize> = BTreeMap::new();
        for entry in self.all.values().filter(|entry| entry.stage == stage) {
            *held.entry(entry.source).or_default() += 1;
        }
        let idle = self.all.values_mut().filter(|entry| {
            entry.stage == stage
                && source.is_none_or(|source| entry.source == source)
                && !entry.standing.busy.load(Ordering::Relaxed)
        });
        let rank = |entry: &&mut Entry| {
            let held = held.get(&entry.source).copied().unwrap_or_default();
            (held, std::cmp::Reverse(entry.standing.used.load(Ordering::Relaxed)))
        };
        let Some(entry) = idle.max_by_key(rank) else { return false };
        entry.stage = Stage::Leaving;
        entry.standing.evicted.notify_one();
        true
    }
}

impl Place {
    /// The peer's CSM has come: the connection moves to the places of those that are served. Past a bound the longest
    /// idle one without observations and requests makes room: of the same source if that holds its share, else of the
    /// source that holds most. False if none is idle, or if this one has lost its place already.
    pub(crate) fn serve(&self) -> bool {
        let bounds = self.shared.bounds;
        let mut table = self.shared.table();
        let Some(entry) = table.all.get(&self.id) else { return false };
        let source = match entry.stage {
            Stage::Opening => entry.source,
            Stage::Served => return true,
            Stage::Leaving => return false,
        };
        let room = if table.count(Stage::Served, Some(source)) >= bounds.served_per_source {
            table.evict(Stage::Served, Some(source))
        } else if table.count(Stage::Served, None) >= bounds.served_max {
            table.evict(Stage::Served, None)
        } else {
            true
        };
        if let Some(entry) = table.all.get_mut(&self.id).filter(|_| room) {
            entry.stage = Stage::Served;
        }
        room
    }
    /// A message of the peer has come.
    pub(crate) fn heard(&self) {
        let use_count = self.shared.uses.fetch_add(1, Ordering::Relaxed);
        self.standing.used.store(use_count, Ordering::Relaxed);
    }
    /// Whether the peer observes something or waits for an answer, which keeps its place.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.standing.busy.store(busy, Ordering::Relaxed);
    }
    /// Waits until the place is lost to somebody else.
    pub(crate) async fn evicted(&self) {
        self.standing.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.table().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn places(served: (usize, usize), opening: (usize, usize)) -> Places {
        Places::new(&Limits {
            connections_max: served.0,
            connections_per_source: served.1,
            opening_max: opening.0,
            opening_per_source: opening.1,
            ..Limits::default()
        })
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
    fn who_observes_or_waits_for_an_answer_keeps_its_place() {
        let places = places((2, 2), (8, 8));
        let both = [(); 2].map(|()| served(&places, 1));
        for place in &both {
            place.set_busy(true);
        }
        let newcomer = places.admit(from(2)).expect("room to begin");
        assert!(!newcomer.serve());
        both[1].set_busy(false);
        assert!(newcomer.serve());
        assert!(!is_evicted(&both[0]) && is_evicted(&both[1]));
    }

    #[test]
    fn handshakes_take_places_of_handshakes_only() {
        let places = places((2, 2), (3, 2));
        let peer = served(&places, 1);
        let [old, young] = [(); 2].map(|()| places.admit(from(2)).expect("its share"));
        let third = places.admit(from(2)).expect("in place of the oldest");
        assert!(is_evicted(&old) && !old.serve(), "what has lost its place is not served");
        drop(old);
        let _other = places.admit(from(3)).expect("the last place");
        let _another = places.admit(from(4)).expect("in place of the source with two");
        assert!(is_evicted(&young) && !is_evicted(&third) && !is_evicted(&peer));
    }

    #[test]
    fn connections_that_leave_are_bounded_too_and_leave_room_when_they_are_gone() {
        let places = places((1, 1), (2, 2));
        let slow = [(); 4].map(|()| places.admit(from(1)));
        assert!(slow[..3].iter().all(Option::is_some));
        let begun = slow.iter().flatten().count();
        assert_eq!(begun, 4, "two leave, two begin");
        assert!(places.admit(from(1)).is_none());
        drop(slow);
        assert!(places.admit(from(1)).is_some());
    }

    #[test]
    fn who_evicts_itself_over_and_over_shuts_out_nobody_else() {
        let places = places((8, 8), (4, 2));
        let slow: Vec<Place> = (0..20).filter_map(|_| places.admit(from(1))).collect();
        assert_eq!(slow.len(), 4, "two leave, two begin");
        let other = places.admit(from(2)).expect("its share is its own");
        assert!(!is_evicted(&other));
        let more: Vec<Place> = (0..20).filter_map(|_| places.admit(from(2))).collect();
        assert_eq!(more.len(), 3, "two leave, two begin");
        assert!(places.admit(from(3)).is_none(), "four leave, which is the total");
        drop(slow);
        assert!(places.admit(from(3)).is_some());
    }
}
