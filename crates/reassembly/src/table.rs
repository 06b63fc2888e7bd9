//! The incomplete datagrams of one layer: places, shares, timeouts, and the datagrams that ended.
//!
//! | bound | total | share of one source | the next one |
//! |---|---|---|---|
//! | datagrams, octets | [`Limits`] | [`Admission`] | is refused, or another one is evicted |
//! | ended datagrams | [`Policy::ended_max`] | | replaces the oldest |

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};

use crate::ended::Ended;
use crate::eviction::{Bounds, Held, victims};

/// What identifies a datagram.
pub trait Name: Copy + Eq {
    /// The node that its fragments come from.
    type Source: Copy + Ord;

    /// The node that its fragments come from.
    fn source(&self) -> Self::Source;
}

/// What a table asks of the state of a datagram.
pub trait Datagram {
    /// Octets that it holds.
    fn octets(&self) -> usize;
    /// True while fragments are missing; a complete datagram takes no place.
    fn is_open(&self) -> bool {
        true
    }
}

/// Which datagrams a table takes when others hold its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Any, while a place is free.
    WhileFree,
    /// Those of a source that holds fewer places than are free.
    Shares,
    /// Those of a source that holds less than another, which then loses one (`eviction`).
    Evicts {
        /// The last free place is not for a source that holds one already.
        keeps_last: bool,
    },
    /// Any: if no place is free, the datagram with the newest fragment loses its place.
    DisplacesNewest,
}

/// What a new fragment does to timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing: a datagram has one timeout from its first fragment on.
    Never,
    /// Its datagram has a whole timeout again.
    Own,
    /// All datagrams have a whole timeout again.
    All,
}

/// What a table does where the RFCs leave the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which datagrams have a place.
    pub admission: Admission,
    /// What a new fragment does to timeouts.
    pub renewal: Renewal,
    /// Ended datagrams that are remembered for one timeout, so that their late fragments open nothing.
    pub ended_max: usize,
}

/// What a table sets aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Incomplete datagrams.
    pub places: usize,
    /// Octets of all datagrams together.
    pub octets: usize,
    /// How long a datagram waits for its fragments.
    pub timeout: Duration,
    /// A datagram without a new fragment for so long may be evicted.
    pub stale_after: Duration,
}

/// A datagram that needs a place.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<N> {
    /// What identifies it.
    pub name: N,
    /// Octets that it will hold.
    pub octets: usize,
    /// Octets that the memory around the table has left.
    pub room: usize,
    /// Its source is known to hear this node, so nobody forges its address.
    pub is_proven: bool,
}

/// One datagram.
#[derive(Clone, Debug)]
pub struct Entry<N, D> {
    /// What identifies it.
    pub name: N,
    /// What of it has arrived.
    pub datagram: D,
    /// When its time is over.
    pub deadline: Instant,
    /// When its latest new fragment came.
    news: Instant,
    /// Its source is known to hear this node.
    is_proven: bool,
}

/// All datagrams that a layer puts together.
#[derive(Clone, Debug)]
pub struct Table<N, D> {
    /// In the order in which they were opened.
    entries: Vec<Entry<N, D>>,
    ended: Ended<N>,
    limits: Limits,
    policy: Policy,
    /// Octets of all datagrams.
    octets: usize,
    /// Places that are taken.
    taken: usize,
    /// When a datagram's time is over, at the earliest.
    deadline: Option<Instant>,
}

impl<N: Name, D: Datagram> Table<N, D> {
    /// An empty table.
    pub const fn new(limits: Limits, policy: Policy) -> Self {
        let ended = Ended::new(policy.ended_max);
        Self { entries: Vec::new(), ended, limits, policy, octets: 0, taken: 0, deadline: None }
    }

    /// Where the datagram is; of several with one name, the one that was opened first.
    pub fn position(&self, name: &N) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == *name)
    }
    /// The datagram at a position.
    pub fn get(&self, at: usize) -> &Entry<N, D> {
        &self.entries[at]
    }
    /// Changes the datagram at a position.
    pub fn update<R>(&mut self, at: usize, change: impl FnOnce(&mut Entry<N, D>) -> R) -> R {
        self.discount(at);
        let result = change(&mut self.entries[at]);
        self.count(at);
        result
    }
    /// All datagrams, in the order in which they were opened.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<N, D>> + Clone {
        self.entries.iter()
    }
    /// Octets of all datagrams.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// Incomplete datagrams.
    pub const fn taken(&self) -> usize {
        self.taken
    }
    /// True while no place is free.
    pub const fn is_full(&self) -> bool {
        self.free() == 0
    }
    /// When a datagram's time is over, at the earliest.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Finds a place for a datagram. Returns those that lost theirs, or `None` if this one is refused.
    pub fn admit(&mut self, now: Instant, newcomer: &Newcomer<N>) -> Option<Vec<Entry<N, D>>> {
        let &Newcomer { ref name, octets, room, .. } = newcomer;
        let mut evicted = Vec::new();
        match self.policy.admission {
            Admission::WhileFree => {}
            Admission::Shares => {
                let own = self.open().filter(|one| one.name.source() == name.source()).count();
                if own >= self.free() {
                    return None;
                }
            }
            Admission::Evicts { keeps_last } => {
                let mut places = self.victims(now, newcomer, keeps_last)?;
                // From the back, so that the other positions stay valid.
                places.sort_unstable();
                evicted.extend(places.into_iter().rev().map(|at| self.end(at, now)));
                return Some(evicted);
            }
            Admission::DisplacesNewest => {
                let newest = (0..self.entries.len()).max_by_key(|at| self.entries[*at].news);
                evicted.extend(newest.filter(|_| self.is_full()).map(|at| self.end(at, now)));
            }
        }
        let fits = octets <= room && self.octets.saturating_add(octets) <= self.limits.octets;
        (fits && !self.is_full()).then_some(evicted)
    }

    fn victims(
        &self,
        now: Instant,
        newcomer: &Newcomer<N>,
        keeps_last: bool,
    ) -> Option<Vec<usize>> {
        let &Newcomer { ref name, octets, room, is_proven } = newcomer;
        let Limits { places, octets: octets_max, stale_after, .. } = self.limits;
        let bounds = Bounds { places, octets: octets_max, room, keeps_last, stale_after };
        let held = self.open().map(|entry| Held {
            source: entry.name.source(),
            octets: entry.datagram.octets(),
            news: entry.news,
            is_proven: entry.is_proven,
        });
        let newcomer = Held { source: name.source(), octets, news: now, is_proven };
        let mut victims = victims(held, &newcomer, &bounds)?;
        if !victims.is_empty() {
            // From places among the incomplete datagrams to positions in the table.
            let is_open = |at: &usize| self.entries[*at].datagram.is_open();
            let open: Vec<usize> = (0..self.entries.len()).filter(is_open).collect();
            for at in &mut victims {
                *at = open[*at];
            }
        }
        Some(victims)
    }

    /// Adds a datagram that was admitted; returns its position.
    pub fn insert(&mut self, now: Instant, name: N, datagram: D) -> usize {
        let deadline = now + self.limits.timeout;
        self.entries.push(Entry { name, datagram, deadline, news: now, is_proven: false });
        let at = self.entries.len() - 1;
        self.count(at);
        at
    }

    /// A fragment of any datagram came.
    pub fn on_fragment(&mut self, now: Instant) {
        if self.policy.renewal == Renewal::All {
            let deadline = now + self.limits.timeout;
            self.entries.iter_mut().for_each(|entry| entry.deadline = deadline);
            self.find_deadline();
        }
    }
    /// A new fragment of the datagram at a position came.
    pub fn on_news(&mut self, at: usize, now: Instant) {
        let entry = &mut self.entries[at];
        entry.news = now;
        if self.policy.renewal == Renewal::Own {
            entry.deadline = now + self.limits.timeout;
            self.find_deadline();
        }
    }

    /// The source of the datagram at a position is known to hear this node.
    pub fn prove(&mut self, at: usize) {
        self.entries[at].is_proven = true;
    }

    /// Takes a datagram out, as if it had never been.
    pub fn remove(&mut self, at: usize) -> Entry<N, D> {
        self.discount(at);
        let entry = self.entries.remove(at);
        self.find_deadline();
        entry
    }
    /// Takes a datagram out and remembers that it ended.
    pub fn end(&mut self, at: usize, now: Instant) -> Entry<N, D> {
        let entry = self.remove(at);
        self.remember(entry.name, now);
        entry
    }
    /// Takes out one datagram whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Entry<N, D>> {
        let at = self.entries.iter().position(|entry| entry.deadline <= now)?;
        Some(self.end(at, now))
    }
    /// Remembers for one timeout that a datagram ended.
    pub fn remember(&mut self, name: N, now: Instant) {
        self.ended.insert(name, now + self.limits.timeout);
    }
    /// True while a datagram is remembered as ended.
    pub fn has_ended(&mut self, name: &N, now: Instant) -> bool {
        self.ended.contains(name, now)
    }

    fn open(&self) -> impl Iterator<Item = &Entry<N, D>> + Clone {
        self.entries.iter().filter(|entry| entry.datagram.is_open())
    }
    const fn free(&self) -> usize {
        self.limits.places.saturating_sub(self.taken)
    }
    fn count(&mut self, at: usize) {
        let datagram = &self.entries[at].datagram;
        self.octets += datagram.octets();
        self.taken += usize::from(datagram.is_open());
        self.find_deadline();
    }
    fn discount(&mut self, at: usize) {
        let datagram = &self.entries[at].datagram;
        self.octets -= datagram.octets();
        self.taken -= usize::from(datagram.is_open());
    }
    fn find_deadline(&mut self) {
        self.deadline = self.entries.iter().map(|entry| entry.deadline).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source and number.
    impl Name for (u8, u8) {
        type Source = u8;

        fn source(&self) -> u8 {
            self.0
        }
    }
    /// The octets of a datagram; zero when it is complete.
    impl Datagram for usize {
        fn octets(&self) -> usize {
            *self
        }
        fn is_open(&self) -> bool {
            *self > 0
        }
    }

    const LIMITS: Limits = Limits {
        places: 4,
        octets: 1000,
        timeout: Duration::from_secs(10),
        stale_after: Duration::from_secs(1),
    };

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }
    fn table(admission: Admission, renewal: Renewal) -> Table<(u8, u8), usize> {
        Table::new(LIMITS, Policy { admission, renewal, ended_max: 4 })
    }
    fn newcomer(name: (u8, u8), octets: usize, room: usize) -> Newcomer<(u8, u8)> {
        Newcomer { name, octets, room, is_proven: false }
    }
    /// Opens a datagram of 100 octets; the names that lost their places, or `None` if it is refused.
    fn open(table: &mut Table<(u8, u8), usize>, s: u64, name: (u8, u8)) -> Option<Vec<(u8, u8)>> {
        let evicted = table.admit(at(s), &newcomer(name, 100, usize::MAX))?;
        table.insert(at(s), name, 100);
        Some(evicted.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn places_and_octets_and_the_room_around_are_bounds() {
        let mut table = table(Admission::WhileFree, Renewal::Never);
        assert!(table.admit(at(0), &newcomer((1, 0), 1001, usize::MAX)).is_none());
        assert!(table.admit(at(0), &newcomer((1, 0), 100, 99)).is_none());
        assert!((0..4).all(|number| open(&mut table, 0, (1, number)) == Some(vec![])));
        assert_eq!(open(&mut table, 0, (2, 0)), None);
        assert_eq!(table.octets(), 400);
        table.update(0, |entry| entry.datagram = 0);
        assert_eq!(open(&mut table, 0, (2, 0)), Some(vec![]), "complete, so its place is free");
    }

    #[test]
    fn with_shares_a_source_holds_as_many_places_as_are_free() {
        let mut table = table(Admission::Shares, Renewal::Never);
        let taken = (0..4).filter(|number| open(&mut table, 0, (1, *number)).is_some()).count();
        assert_eq!(taken, 2);
        assert_eq!(open(&mut table, 0, (2, 0)), Some(vec![]));
        assert_eq!(open(&mut table, 0, (2, 1)), None);
    }

    #[test]
    fn with_eviction_the_source_that_holds_most_gives_way() {
        let mut table = table(Admission::Evicts { keeps_last: false }, Renewal::Never);
        for number in 0..4 {
            assert_eq!(open(&mut table, number.into(), (1, number)), Some(vec![]));
        }
        table.update(1, |entry| entry.datagram = 0);
        assert_eq!(open(&mut table, 4, (2, 0)), Some(vec![]));
        assert_eq!(open(&mut table, 4, (3, 0)), Some(vec![(1, 0)]));
        assert!(table.has_ended(&(1, 0), at(13)) && !table.has_ended(&(1, 0), at(14)));
    }

    #[test]
    fn with_eviction_strangers_give_way_to_what_is_proven() {
        let mut table = table(Admission::Evicts { keeps_last: false }, Renewal::Never);
        for number in 0..4 {
            open(&mut table, 0, (number, 0));
        }
        table.prove(0);
        let proven = Newcomer { is_proven: true, ..newcomer((0, 1), 100, usize::MAX) };
        let names = |evicted: Option<Vec<Entry<(u8, u8), usize>>>| {
            evicted.map(|all| all.iter().map(|entry| entry.name).collect::<Vec<_>>())
        };
        assert_eq!(names(table.admit(at(0), &proven)), Some(vec![(1, 0)]));
    }

    #[test]
    fn without_a_free_place_the_newest_is_displaced() {
        let mut table = table(Admission::DisplacesNewest, Renewal::Never);
        for number in 0..4 {
            open(&mut table, number.into(), (1, number));
        }
        table.on_news(1, at(5));
        assert_eq!(open(&mut table, 6, (2, 0)), Some(vec![(1, 1)]));
    }

    #[test]
    fn a_new_fragment_renews_what_the_policy_says() {
        for (renewal, deadlines) in
            [(Renewal::Never, [10, 11]), (Renewal::Own, [10, 15]), (Renewal::All, [15, 15])]
        {
            let mut table = table(Admission::WhileFree, renewal);
            for number in 0..2 {
                open(&mut table, number.into(), (1, number));
            }
            table.on_fragment(at(5));
            table.on_news(1, at(5));
            assert!(table.iter().map(|entry| entry.deadline).eq(deadlines.map(at)), "{renewal:?}");
            assert_eq!(table.next_deadline(), Some(at(deadlines[0])));
            assert!(table.expire(at(9)).is_none());
            let expired = table.expire(at(deadlines[0])).map(|entry| entry.name);
            assert_eq!(expired, Some((1, 0)), "{renewal:?}");
        }
    }
}
