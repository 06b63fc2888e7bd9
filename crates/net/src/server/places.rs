//! The places of connections: how many there are, how many one source may hold, and which connection leaves when one
//! more comes.
//!
//! ```text
//!   admit ──► Opening ── serve ──► Served ── evicted ──► Leaving ──► gone
//!                ├── evicted ──────────────────────────────┘  └─ cut ──► gone
//!                └── too slow ──────────────────────────────────────────► gone
//! ```
//! Connections whose handshakes are not complete have places of their own, so they cannot take those of connections that
//! are served. A connection that has lost its place may end in order; of those that leave the longest idle one is cut when
//! more leave than may.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

use super::ledger::{Account, Accounts, Ledger};
use super::limits::Limits;
use crate::share::Bound;
use crate::source::Source;

/// How many places there are.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    served: Bound,
    opening: Bound,
    /// As many may leave at once as may begin.
    leaving: Bound,
}

/// The places of all ports of a server.
#[derive(Clone, Debug)]
pub(super) struct Places {
    bounds: Bounds,
    ledger: Ledger<Entry>,
    /// Grows with every message of a connection, so that the longest idle one is known without a clock.
    uses: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Entry {
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
    /// It has lost its place, and ends in order.
    Leaving,
    /// It ends at once.
    Cut,
}

/// What a connection says of itself.
#[derive(Debug, Default)]
struct Standing {
    /// Its peer observes something, or waits for an answer.
    busy: AtomicBool,
    used: AtomicU64,
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
    served: Bound,
    account: Account<Entry>,
    standing: Arc<Standing>,
    uses: Arc<AtomicU64>,
}

impl Places {
    /// As many as the limits say.
    pub(super) fn new(limits: &Limits) -> Self {
        let opening = Bound { total: limits.opening_max, share: limits.opening_per_source };
        let served = Bound { total: limits.connections_max, share: limits.connections_per_source };
        let bounds = Bounds { served, opening, leaving: opening };
        Self { bounds, ledger: Ledger::default(), uses: Arc::default() }
    }
    /// A place for a connection that begins. Past a bound the oldest connection whose handshakes are not complete makes
    /// room: of the same source if that has its share, else of the source with most. When as many are leaving as may, of
    /// this source or of all, one of them is cut. `None` while as many that were cut are not gone yet.
    pub(super) fn admit(&self, from: SocketAddr) -> Option<Place> {
        let (source, bounds) = (Source::of(from), self.bounds);
        let mut accounts = self.ledger.lock();
        if accounts.held(Entry::is(Stage::Cut)).crowd(bounds.leaving, source, 1).is_some() {
            return None;
        }
        accounts.cut(bounds.leaving, source);
        accounts.make_room(Stage::Opening, bounds.opening, source);
        let standing = Arc::new(Standing::default());
        standing.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let entry = Entry { stage: Stage::Opening, standing: standing.clone() };
        let account = self.ledger.open(&mut accounts, source, entry);
        Some(Place { served: bounds.served, account, standing, uses: self.uses.clone() })
    }
}

impl Entry {
    /// Counts the connections in a stage.
    fn is(stage: Stage) -> impl Fn(&Self) -> usize {
        move |entry: &Self| usize::from(entry.stage == stage)
    }
}

impl Accounts<Entry> {
    /// Takes the place of an idle connection in a stage if the next one of a source has none: of the same source if that
    /// has its share, else of the source with most; of several the longest idle one. False if all are busy.
    fn make_room(&mut self, stage: Stage, bound: Bound, source: Source) -> bool {
        let held = self.held(Entry::is(stage));
        let Some(crowd) = held.crowd(bound, source, 1) else { return true };
        let idle = self.longest_idle(&held, crowd, |entry| {
            let idle = entry.stage == stage && !entry.standing.busy.load(Ordering::Relaxed);
            idle.then(|| entry.standing.used.load(Ordering::Relaxed))
        });
        let Some(entry) = idle else { return false };
        entry.stage = Stage::Leaving;
        entry.standing.evicted.notify_one();
        true
    }

    /// Cuts connections until one more of a source may leave: of the same source if that has its share, else of the source
    /// with most; of several the longest idle one.
    fn cut(&mut self, bound: Bound, source: Source) {
        loop {
            let held = self.held(Entry::is(Stage::Leaving));
            let Some(crowd) = held.crowd(bound, source, 1) else { return };
            let first = self.longest_idle(&held, crowd, |entry| {
                let leaves = entry.stage == Stage::Leaving;
                leaves.then(|| entry.standing.used.load(Ordering::Relaxed))
            });
            let Some(entry) = first else { return };
            entry.stage = Stage::Cut;
            entry.standing.cut.notify_one();
        }
    }
}

impl Place {
    /// Tells when the connection ends at once.
    pub(super) fn cut(&self) -> Cut {
        Cut(self.standing.clone())
    }
    /// The peer's CSM has come: the connection moves to the places of those that are served. Past a bound the longest
    /// idle one without observations and requests makes room: of the same source if that has its share, else of the
    /// source with most. False if none is idle, or if this one has lost its place already.
    pub(crate) fn serve(&self) -> bool {
        let mut accounts = self.account.lock();
        match accounts.of(&self.account).stage {
            Stage::Opening => {}
            Stage::Served => return true,
            Stage::Leaving | Stage::Cut => return false,
        }
        let room = accounts.make_room(Stage::Served, self.served, self.account.source());
        if room {
            accounts.of(&self.account).stage = Stage::Served;
        }
        room
    }
    /// A message of the peer has come.
    pub(crate) fn heard(&self) {
        let use_count = self.uses.fetch_add(1, Ordering::Relaxed);
        self.standing.used.store(use_count, Ordering::Relaxed);
    }
    /// Whether the peer observes something or waits for an answer, which keeps its place.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.standing.busy.store(busy, Ordering::Relaxed);
    }
    /// Waits until another connection has taken the place.
    pub(crate) async fn evicted(&self) {
        self.standing.evicted.notified().await;
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
    fn a_connection_that_observes_or_waits_for_an_answer_keeps_its_place() {
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

    fn is_cut(place: &Place) -> bool {
        place.cut().wait().now_or_never().is_some()
    }

    #[test]
    fn of_the_connections_that_leave_the_longest_idle_one_is_cut_when_its_place_is_needed() {
        let places = places((1, 1), (2, 2));
        let mut slow: Vec<Place> = (0..4).filter_map(|_| places.admit(from(1))).collect();
        assert_eq!(slow.len(), 4, "two leave, two begin");
        assert!(!slow.iter().any(is_cut));
        slow.extend(places.admit(from(1)));
        assert_eq!(slow.iter().map(is_cut).collect::<Vec<_>>(), [true, false, false, false, false]);
        slow.extend(places.admit(from(1)));
        assert!(places.admit(from(1)).is_none(), "two that were cut are not gone yet");
        slow.remove(0);
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
