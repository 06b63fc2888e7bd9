//! What all connections of a server keep in bodies and in requests that are being answered: a total, and a share for one
//! source.
//!
//! ```text
//!   bodies     unfinished requests, and responses whose later blocks may be asked for. Past a bound the longest idle
//!              connection that keeps any loses them: of the same source at its share, else of the source that keeps most.
//!   requests   those that take the application time. Past a bound one more is answered with 5.03 (RFC 7252 s5.9.3.4).
//! ```
//! A connection is never left unread for its share: a body that nobody reads on would never be whole, and would keep its
//! octets for ever.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_coap::params::BODY_OVERHEAD;
use tokio::sync::Notify;

use super::limits::Limits;
use crate::params::{REQUEST_OVERHEAD, STREAM_MESSAGE_MAX};
use crate::source::Source;

/// How many octets all connections may keep, and those of one source.
#[derive(Clone, Copy, Debug)]
struct Bound {
    total: usize,
    share: usize,
}

/// The octets of all connections of a server.
#[derive(Clone, Debug)]
pub(super) struct Bodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bodies: Bound,
    requests: Bound,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    serial: u64,
    all: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    source: Source,
    bodies: usize,
    requests: usize,
    /// Grows with each message, so that the longest idle connection is known without a clock.
    used: u64,
    /// It has been told to forget its bodies, and has not done so yet.
    loses: bool,
    lost: Arc<Notify>,
}

/// What one connection keeps; nothing when this is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    shared: Arc<Shared>,
    id: u64,
    /// Octets of bodies.
    bodies: usize,
    lost: Arc<Notify>,
}

impl Bodies {
    /// As many octets as the limits say; two bodies of the longest kind always fit, and a request with one.
    pub(super) fn new(limits: &Limits) -> Self {
        let body_max = limits.host.body_max;
        let bound = |total: usize, share: usize, least: usize| {
            let share = share.max(least);
            Bound { total: total.max(share), share }
        };
        let (two, request) =
            (2 * (body_max + BODY_OVERHEAD), body_max + STREAM_MESSAGE_MAX + REQUEST_OVERHEAD);
        let bodies = bound(limits.bodies_max, limits.bodies_per_source, two);
        let requests = bound(limits.requests_max, limits.requests_per_source, request);
        Self(Arc::new(Shared { bodies, requests, table: Mutex::default() }))
    }
    /// The account of a connection, which keeps nothing yet.
    pub(super) fn open(&self, from: SocketAddr) -> Kept {
        let (source, lost) = (Source::of(from), Arc::new(Notify::new()));
        let mut table = self.0.table();
        let id = table.next();
        let entry =
            Entry { source, bodies: 0, requests: 0, used: id, loses: false, lost: lost.clone() };
        table.all.insert(id, entry);
        Kept { shared: self.0.clone(), id, bodies: 0, lost }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two operations.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    const fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
    /// The sum over all connections, or over those of one source.
    fn sum(&self, source: Option<Source>, octets: impl Fn(&Entry) -> usize) -> usize {
        let of_source = |entry: &&Entry| source.is_none_or(|source| entry.source == source);
        self.all.values().filter(of_source).map(octets).sum()
    }
    /// Tells the longest idle connection with bodies to forget them: of this source, or of the source that keeps most.
    fn displace(&mut self, source: Option<Source>) -> bool {
        let mut held: BTreeMap<Source, usize> = BTreeMap::new();
        for entry in self.all.values() {
            *held.entry(entry.source).or_default() += entry.staying();
        }
        let keeps = self.all.values_mut().filter(|entry| {
            entry.staying() > 0 && source.is_none_or(|source| entry.source == source)
        });
        let rank = |entry: &&mut Entry| {
            let held = held.get(&entry.source).copied().unwrap_or_default();
            (held, std::cmp::Reverse(entry.used))
        };
        let Some(entry) = keeps.max_by_key(rank) else { return false };
        entry.loses = true;
        entry.lost.notify_one();
        true
    }
}

impl Entry {
    /// Octets of bodies that are not about to be forgotten.
    const fn staying(&self) -> usize {
        if self.loses { 0 } else { self.bodies }
    }
}

impl Kept {
    /// The connection keeps so many octets of bodies now. Others, or itself, may lose theirs for it.
    pub(crate) fn set_bodies(&mut self, octets: usize) {
        if self.bodies == octets {
            return;
        }
        self.bodies = octets;
        let (mut table, bound) = (self.shared.table(), self.shared.bodies);
        let used = table.next();
        let Some(entry) = table.all.get_mut(&self.id) else { return };
        // What has been told to forget its bodies counts again once they are gone.
        entry.loses &= octets > 0;
        (entry.bodies, entry.used) = (octets, used);
        let source = Some(entry.source);
        while table.sum(source, Entry::staying) > bound.share && table.displace(source) {}
        while table.sum(None, Entry::staying) > bound.total && table.displace(None) {}
    }
    /// A message of the peer has come. A download that is read on changes no octets, and is not idle.
    pub(crate) fn heard(&self) {
        if self.bodies > 0 {
            let mut table = self.shared.table();
            let used = table.next();
            if let Some(entry) = table.all.get_mut(&self.id) {
                entry.used = used;
            }
        }
    }
    /// A request takes the application time; false if there is no room for it.
    #[must_use]
    pub(crate) fn admit_request(&self, octets: usize) -> bool {
        let (mut table, bound) = (self.shared.table(), self.shared.requests);
        let Some(entry) = table.all.get(&self.id) else { return false };
        let source = Some(entry.source);
        let requests = |entry: &Entry| entry.requests;
        let fits = table.sum(source, requests) + octets <= bound.share
            && table.sum(None, requests) + octets <= bound.total;
        if let Some(entry) = table.all.get_mut(&self.id).filter(|_| fits) {
            entry.requests += octets;
        }
        fits
    }
    /// A request of so many octets is answered.
    pub(crate) fn end_request(&self, octets: usize) {
        if let Some(entry) = self.shared.table().all.get_mut(&self.id) {
            entry.requests = entry.requests.saturating_sub(octets);
        }
    }
    /// Waits until the bodies of this connection have to be forgotten.
    pub(crate) async fn lost(&self) {
        loop {
            self.lost.notified().await;
            // They may have come to an end by themselves meanwhile.
            if self.shared.table().all.get(&self.id).is_some_and(|entry| entry.loses) {
                return;
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shared.table().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use lowmesh_coap::HostLimits;

    use super::*;

    /// Octets of one unit below, more than the least share.
    const UNIT: usize = 1 << 20;

    /// Room for `total` units, `share` of them of one source.
    fn bodies(total: usize, share: usize) -> Bodies {
        Bodies::new(&Limits {
            host: HostLimits { body_max: 1, ..HostLimits::default() },
            bodies_max: total * UNIT,
            bodies_per_source: share * UNIT,
            requests_max: total * UNIT,
            requests_per_source: share * UNIT,
            ..Limits::default()
        })
    }

    fn keeping(bodies: &Bodies, host: u8, units: usize) -> Kept {
        let mut kept = bodies.open(([192, 0, 2, host], 1).into());
        kept.set_bodies(units * UNIT);
        kept
    }

    fn has_lost(kept: &mut Kept) -> bool {
        let lost = kept.lost().now_or_never().is_some();
        if lost {
            kept.set_bodies(0);
        }
        lost
    }

    #[test]
    fn past_its_share_a_source_loses_its_longest_idle_bodies_and_others_keep_theirs() {
        let bodies = bodies(100, 4);
        let mut other = keeping(&bodies, 1, 4);
        let [mut first, mut second] = [(); 2].map(|()| keeping(&bodies, 2, 2));
        first.heard();
        let mut third = keeping(&bodies, 2, 2);
        assert!(has_lost(&mut second), "the longest idle one");
        assert!(![&mut other, &mut first, &mut third].into_iter().any(has_lost));
    }

    #[test]
    fn past_the_total_the_source_that_keeps_most_gives_way() {
        let bodies = bodies(10, 5);
        let (mut honest, mut greedy) = (keeping(&bodies, 1, 1), keeping(&bodies, 2, 5));
        let [mut one, mut other] = [3, 4].map(|host| keeping(&bodies, host, 2));
        assert!(![&mut honest, &mut greedy].into_iter().any(has_lost), "ten fit");
        let mut newcomer = keeping(&bodies, 5, 2);
        assert!(has_lost(&mut greedy));
        let others = [&mut honest, &mut newcomer, &mut one, &mut other];
        assert!(!others.into_iter().any(has_lost));
    }

    #[test]
    fn one_prefix_of_ipv6_has_one_share() {
        let bodies = bodies(100, 4);
        let mut kept: Vec<Kept> = (0..8)
            .map(|host: u16| {
                let mut kept = bodies.open(([0x2001, 0xdb8, 0, 1, 0, 0, 0, host], 1).into());
                kept.set_bodies(UNIT);
                kept
            })
            .collect();
        assert_eq!(kept.iter_mut().map(has_lost).filter(|lost| *lost).count(), 4);
    }

    #[test]
    fn what_has_been_told_to_forget_is_told_once_and_may_begin_again() {
        let bodies = bodies(4, 4);
        let mut old = keeping(&bodies, 1, 3);
        let _new = keeping(&bodies, 2, 3);
        // It has not heard yet, and keeps one block more.
        old.set_bodies(4 * UNIT);
        assert!(has_lost(&mut old) && !has_lost(&mut old));
        old.set_bodies(UNIT);
        assert!(!has_lost(&mut old), "there is room for it");
    }

    #[test]
    fn requests_past_the_share_or_the_total_wait_for_others_to_be_answered() {
        let bodies = bodies(4, 2);
        let open = |host| bodies.open(([192, 0, 2, host], 1).into());
        let [one, same, two, three] = [1, 1, 2, 3].map(open);
        assert!(one.admit_request(UNIT) && same.admit_request(UNIT));
        assert!(!same.admit_request(UNIT), "the share of both connections");
        assert!(two.admit_request(2 * UNIT));
        assert!(!three.admit_request(UNIT), "the total");
        one.end_request(UNIT);
        assert!(three.admit_request(UNIT));
        drop(two);
        assert!(three.admit_request(UNIT), "what is closed keeps nothing");
    }
}
