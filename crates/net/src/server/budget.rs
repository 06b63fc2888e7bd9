//! What all connections of a server keep together: for each kind a total, and a share for one source.
//!
//! ```text
//!   bodies     unfinished requests, responses whose later blocks may be asked for, and states that wait to be sent. Past a
//!              bound the longest idle connection that keeps any loses them: of the same source at its share, else of the
//!              source that keeps most.
//!   requests   those that take the application time. Past a bound one more is answered with 5.03 (RFC 7252 s5.9.3.4).
//!   observers  Past a bound one more gets one response without Observe (RFC 7641 s4.1).
//!   outgoing   octets that wait to leave, without the first 16 KiB of each connection. Past a bound a connection gets its
//!              next message once fewer than 16 KiB wait on it.
//! ```
//! A connection is read however much its source keeps: an unfinished body could otherwise never be completed, and would
//! keep its octets for ever.

use std::net::SocketAddr;
use std::sync::Arc;

use lowmesh_coap::params::BODY_OVERHEAD;
use tokio::sync::Notify;

use super::ledger::{Account, Accounts, Ledger};
use super::limits::Limits;
use crate::params::{OUTGOING_FREE, REQUEST_OVERHEAD, STREAM_MESSAGE_MAX};
use crate::share::Bound;
use crate::source::Source;

/// What connections may keep.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Octets of bodies.
    bodies: Bound,
    /// Octets of requests.
    requests: Bound,
    observers: Bound,
    /// Octets that wait to leave beyond [`OUTGOING_FREE`] of each connection.
    outgoing: Bound,
}

/// The budget of all connections of a server.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    bounds: Bounds,
    ledger: Ledger<Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    bodies: usize,
    requests: usize,
    observers: usize,
    outgoing: usize,
    /// Grows with each message, so that the longest idle connection is known without a clock.
    used: u64,
    /// It has to forget its bodies, and has not done so yet.
    loses: bool,
    lost: Arc<Notify>,
}

/// What one connection keeps; nothing when this is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    bounds: Bounds,
    account: Account<Entry>,
    /// Octets of bodies.
    bodies: usize,
    observers: usize,
    /// Octets that wait to leave beyond [`OUTGOING_FREE`].
    outgoing: usize,
    lost: Arc<Notify>,
}

impl Budget {
    /// As much as the limits say; two bodies of the longest kind always fit, and a request with one.
    pub(super) fn new(limits: &Limits) -> Self {
        let body_max = limits.host.body_max;
        let bound = |total: usize, share: usize, least: usize| {
            let share = share.max(least);
            Bound { total: total.max(share), share }
        };
        let (two, request) =
            (2 * (body_max + BODY_OVERHEAD), body_max + STREAM_MESSAGE_MAX + REQUEST_OVERHEAD);
        let bounds = Bounds {
            bodies: bound(limits.bodies_max, limits.bodies_per_source, two),
            requests: bound(limits.requests_max, limits.requests_per_source, request),
            observers: Bound {
                total: limits.host.observers_max,
                share: limits.host.observers_per_source,
            },
            outgoing: Bound { total: limits.outgoing_max, share: limits.outgoing_per_source },
        };
        Self { bounds, ledger: Ledger::default() }
    }
    /// The account of a connection, which keeps nothing yet.
    pub(super) fn open(&self, from: SocketAddr) -> Kept {
        let lost = Arc::new(Notify::new());
        let mut accounts = self.ledger.lock();
        let entry = Entry { used: accounts.tick(), lost: lost.clone(), ..Entry::default() };
        let account = self.ledger.open(&mut accounts, Source::of(from.ip()), entry);
        Kept { bounds: self.bounds, account, bodies: 0, observers: 0, outgoing: 0, lost }
    }
}

impl Accounts<Entry> {
    /// Lets connections lose their bodies until those of a source fit, and those of all.
    fn displace(&mut self, bound: Bound, source: Source) {
        loop {
            let held = self.held(Entry::staying);
            let Some(crowd) = held.crowd(bound, source, 0) else { return };
            let longest =
                self.longest_idle(&held, crowd, |one| (one.staying() > 0).then_some(one.used));
            let Some(entry) = longest else { return };
            entry.loses = true;
            entry.lost.notify_one();
        }
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
        let mut accounts = self.account.lock();
        let used = accounts.tick();
        let entry = accounts.of(&self.account);
        // A connection that has to forget its bodies counts again once they are gone.
        entry.loses &= octets > 0;
        (entry.bodies, entry.used) = (octets, used);
        accounts.displace(self.bounds.bodies, self.account.source());
    }
    /// A message of the peer has come. A download that goes on changes no octets, and is not idle.
    pub(crate) fn heard(&self) {
        if self.bodies > 0 {
            let mut accounts = self.account.lock();
            accounts.of(&self.account).used = accounts.tick();
        }
    }
    /// A request takes the application time; false if there is no room for it.
    #[must_use]
    pub(crate) fn admit_request(&self, octets: usize) -> bool {
        let mut accounts = self.account.lock();
        let held = accounts.held(|one| one.requests);
        let fits = held.crowd(self.bounds.requests, self.account.source(), octets).is_none();
        if fits {
            accounts.of(&self.account).requests += octets;
        }
        fits
    }
    /// A request of so many octets is answered.
    pub(crate) fn end_request(&self, octets: usize) {
        let mut accounts = self.account.lock();
        let entry = accounts.of(&self.account);
        entry.requests = entry.requests.saturating_sub(octets);
    }
    /// One more observer may register; false if there is no room for it. [`Kept::set_observers`] says whether it has.
    #[must_use]
    pub(crate) fn admit_observer(&mut self) -> bool {
        let mut accounts = self.account.lock();
        let held = accounts.held(|one| one.observers);
        let fits = held.crowd(self.bounds.observers, self.account.source(), 1).is_none();
        if fits {
            self.observers += 1;
            accounts.of(&self.account).observers = self.observers;
        }
        fits
    }
    /// The connection has so many observers now.
    pub(crate) fn set_observers(&mut self, observers: usize) {
        if self.observers != observers {
            self.observers = observers;
            self.account.lock().of(&self.account).observers = observers;
        }
    }
    /// Octets that may be queued on the connection while so many wait to leave.
    pub(crate) fn outgoing_room(&self, waiting: usize) -> usize {
        match OUTGOING_FREE.saturating_sub(waiting) {
            0 => {
                let held = self.account.lock().held(|one| one.outgoing);
                held.room(self.bounds.outgoing, self.account.source())
            }
            free => free,
        }
    }
    /// So many octets wait to leave on the connection now.
    pub(crate) fn set_outgoing(&mut self, waiting: usize) {
        let octets = waiting.saturating_sub(OUTGOING_FREE);
        if self.outgoing != octets {
            self.outgoing = octets;
            self.account.lock().of(&self.account).outgoing = octets;
        }
    }
    /// Waits until the bodies of this connection have to be forgotten.
    pub(crate) async fn lost(&self) {
        loop {
            self.lost.notified().await;
            // They may have come to an end by themselves meanwhile.
            if self.account.lock().of(&self.account).loses {
                return;
            }
        }
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
    fn budget(total: usize, share: usize) -> Budget {
        Budget::new(&Limits {
            host: HostLimits { body_max: 1, ..HostLimits::default() },
            bodies_max: total * UNIT,
            bodies_per_source: share * UNIT,
            requests_max: total * UNIT,
            requests_per_source: share * UNIT,
            ..Limits::default()
        })
    }

    fn keeping(budget: &Budget, host: u8, units: usize) -> Kept {
        let mut kept = budget.open(([192, 0, 2, host], 1).into());
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
        let budget = budget(100, 4);
        let mut other = keeping(&budget, 1, 4);
        let [mut first, mut second] = [(); 2].map(|()| keeping(&budget, 2, 2));
        first.heard();
        let mut third = keeping(&budget, 2, 2);
        assert!(has_lost(&mut second), "the longest idle one");
        assert!(![&mut other, &mut first, &mut third].into_iter().any(has_lost));
    }

    #[test]
    fn past_the_total_the_source_that_keeps_most_gives_way() {
        let budget = budget(10, 5);
        let (mut honest, mut greedy) = (keeping(&budget, 1, 1), keeping(&budget, 2, 5));
        let [mut one, mut other] = [3, 4].map(|host| keeping(&budget, host, 2));
        assert!(![&mut honest, &mut greedy].into_iter().any(has_lost), "ten fit");
        let mut newcomer = keeping(&budget, 5, 2);
        assert!(has_lost(&mut greedy));
        let others = [&mut honest, &mut newcomer, &mut one, &mut other];
        assert!(!others.into_iter().any(has_lost));
    }

    #[test]
    fn one_prefix_of_ipv6_has_one_share() {
        let budget = budget(100, 4);
        let mut kept: Vec<Kept> = (0..8)
            .map(|host: u16| {
                let mut kept = budget.open(([0x2001, 0xdb8, 0, 1, 0, 0, 0, host], 1).into());
                kept.set_bodies(UNIT);
                kept
            })
            .collect();
        assert_eq!(kept.iter_mut().map(has_lost).filter(|lost| *lost).count(), 4);
    }

    #[test]
    fn what_has_been_told_to_forget_is_told_once_and_may_begin_again() {
        let budget = budget(4, 4);
        let mut old = keeping(&budget, 1, 3);
        let _new = keeping(&budget, 2, 3);
        // It has not heard yet, and keeps one block more.
        old.set_bodies(4 * UNIT);
        assert!(has_lost(&mut old) && !has_lost(&mut old));
        old.set_bodies(UNIT);
        assert!(!has_lost(&mut old), "there is room for it");
    }

    #[test]
    fn observers_have_a_total_and_a_share_and_leave_with_their_connection() {
        let host =
            HostLimits { observers_max: 3, observers_per_source: 2, ..HostLimits::default() };
        let budget = Budget::new(&Limits { host, ..Limits::default() });
        let open = |host| budget.open(([192, 0, 2, host], 1).into());
        let [mut one, mut same, mut two] = [1, 1, 2].map(open);
        assert!(one.admit_observer() && same.admit_observer());
        assert!(!same.admit_observer(), "the share of both connections");
        assert!(two.admit_observer() && !two.admit_observer(), "the total");
        // The response did not register it.
        same.set_observers(0);
        assert!(two.admit_observer());
        drop(two);
        assert!(same.admit_observer());
    }

    #[test]
    fn octets_that_wait_have_a_total_and_a_share_but_each_connection_may_have_a_few() {
        let limits = Limits { outgoing_max: 300, outgoing_per_source: 200, ..Limits::default() };
        let budget = Budget::new(&limits);
        let open = |host| budget.open(([192, 0, 2, host], 1).into());
        let [mut one, same, mut two] = [1, 1, 2].map(open);
        assert_eq!(one.outgoing_room(0), OUTGOING_FREE);
        assert_eq!(one.outgoing_room(OUTGOING_FREE), 200);
        one.set_outgoing(OUTGOING_FREE + 150);
        assert_eq!(same.outgoing_room(OUTGOING_FREE), 50, "the share of both connections");
        assert_eq!(same.outgoing_room(OUTGOING_FREE - 1), 1, "a few are always free");
        two.set_outgoing(OUTGOING_FREE + 150);
        assert_eq!(two.outgoing_room(OUTGOING_FREE + 150), 0, "the total");
        drop(one);
        assert_eq!(two.outgoing_room(OUTGOING_FREE + 150), 50);
        two.set_outgoing(0);
        assert_eq!(same.outgoing_room(OUTGOING_FREE), 200);
    }

    #[test]
    fn requests_past_the_share_or_the_total_wait_for_others_to_be_answered() {
        let budget = budget(4, 2);
        let open = |host| budget.open(([192, 0, 2, host], 1).into());
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
