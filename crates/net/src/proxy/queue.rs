//! Requests to origins: how many are under way for which client, and which one is next.
//!
//! ```text
//!   client A ─► [ ][ ][ ] ─┐
//!   client B ─► [ ]       ─┼─ one of each in turn ──► endpoint: one that waits for the window ──► origin
//!   client C ─► [ ][ ]    ─┘
//! ```
//! One client gets half of each bound at most. When places are short `lowmesh_shares` decides who gives way: a request that
//! its origin has not acknowledged for a while, and any of a client, or a prefix, that has far more than the newcomer. Who
//! gives way hears 5.03.

mod origin;
mod place;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_shares::{Bound, Full, Newcomer, Source, Table};
use lowmesh_units::{Duration, Instant};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::params::{PROXY_OBSERVING_GRACE, PROXY_UNACKNOWLEDGED_GRACE};
use crate::peer::Peer;

use super::challenged::{Challenged, Port};
use origin::Origin;
pub(super) use place::Place;

/// A client, as far as shares go: the source of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Client(Source);

impl Client {
    pub(super) fn of(peer: &Peer) -> Self {
        Self(Source::of(peer.address.ip()))
    }
    const fn newcomer(self, proven: bool) -> Newcomer {
        Newcomer { source: self.0, proven }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) client: Client,
    pub(super) port: u16,
    /// Its address is proven.
    pub(super) proven: bool,
}

impl Asker {
    pub(super) fn new(peer: &Peer, proven: bool) -> Self {
        Self { client: Client::of(peer), port: peer.address.port(), proven }
    }
    const fn port(self) -> Port {
        (self.client.0, self.port)
    }
}

/// How many requests there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// In all.
    pub(super) requests: usize,
    /// To one origin.
    pub(super) origin: usize,
    /// Origins over connections that are being asked or observed.
    pub(super) connections: usize,
    /// The window of one origin, messages.
    pub(super) window: usize,
    /// After so long a request that came in a datagram is acknowledged.
    pub(super) ack_delay: Duration,
}

impl Bounds {
    /// What unproven clients may hold of the window of one origin: all but one place, so that a proven one has it at once. A
    /// connection has no window.
    fn unproven_sent(&self, reliable: bool) -> usize {
        if reliable { usize::MAX } else { self.window.saturating_sub(1).max(1) }
    }
    fn new_origin(&self, born: Id, reliable: bool) -> Origin {
        // No origin takes the places of all others.
        let places = self.origin.min(self.requests.div_ceil(2));
        let table = Table::new(halves(places, PROXY_UNACKNOWLEDGED_GRACE));
        Origin::new(born, table, self.unproven_sent(reliable))
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The proxy has too many requests, or the client too many of them.
    Proxy,
    /// The same for the origin.
    Origin,
    /// There is one for a client that has proven its address.
    Unproven,
}

impl NoPlace {
    const fn of(full: Full, otherwise: Self) -> Self {
        match full {
            Full::Unproven => Self::Unproven,
            Full::Source | Full::All => otherwise,
        }
    }
}

/// Things that are counted by their holders, of which each may have as many as are free.
#[derive(Debug)]
pub(super) struct Shares<K> {
    total: usize,
    by: BTreeMap<K, usize>,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { total: 0, by: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Shares<K> {
    /// True if `who` may have one more of `max`: it has less than is free.
    pub(super) fn admits(&self, who: &K, max: usize) -> bool {
        let has = self.by.get(who).copied().unwrap_or_default();
        self.total < max && has < max - self.total
    }
    pub(super) fn add(&mut self, who: &K) {
        self.total += 1;
        *self.by.entry(who.clone()).or_default() += 1;
    }
    /// True if `who` may have `new` of `max` in the place of `old`: no more than is free. It then has it.
    pub(super) fn replace(&mut self, who: &K, (old, new): (usize, usize), max: usize) -> bool {
        let has = self.by.get(who).copied().unwrap_or_default();
        let (has, total) = (has - old + new, self.total - old + new);
        if new > old && total.saturating_add(has) > max {
            return false;
        }
        self.total = total;
        if has == 0 {
            self.by.remove(who);
        } else {
            self.by.insert(who.clone(), has);
        }
        true
    }
    pub(super) fn remove(&mut self, who: &K) {
        let Some(has) = self.by.get_mut(who) else { return };
        *has -= 1;
        self.total -= 1;
        if *has == 0 {
            self.by.remove(who);
        }
    }
}

type Id = u64;

#[derive(Debug)]
struct State {
    last: Id,
    requests: Table<Id>,
    challenged: Challenged,
    asked: BTreeMap<Arc<str>, Origin>,
    /// Clients that ask an origin over a connection, or observe something there.
    connections: Table<Id>,
    lines: BTreeMap<(Client, Arc<str>), (Id, usize)>,
    /// What has a place or a line, and how it hears that it has lost it.
    all: BTreeMap<Id, (Arc<str>, watch::Sender<bool>)>,
}

/// All requests of a proxy.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    state: Arc<Mutex<State>>,
    bounds: Bounds,
    clock: Clock,
}

/// What one holder of a place or a line hears.
#[derive(Clone, Debug)]
struct Notice(watch::Receiver<bool>);

impl Notice {
    /// Waits until the place is another's.
    async fn lost(&self) {
        let mut told = self.0.clone();
        // Without a sender nobody can lose anything any more.
        if told.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// One client may have half of the places.
fn halves(total: usize, grace: std::time::Duration) -> Bound {
    Bound { total, share: total.div_ceil(2), grace: Some(grace.into()) }
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        let table = |total| Table::new(halves(total, PROXY_UNACKNOWLEDGED_GRACE));
        let state = State {
            last: 0,
            requests: table(bounds.requests),
            challenged: Challenged::new(),
            asked: BTreeMap::new(),
            connections: table(bounds.connections),
            lines: BTreeMap::new(),
            all: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), bounds, clock: Clock::start() }
    }
    /// The server in front acknowledges requests after so long.
    pub(super) const fn set_ack_delay(&mut self, ack_delay: Duration) {
        self.bounds.ack_delay = ack_delay;
    }
    /// A place for one more request of `asker` to `origin`, which is asked over a connection if it is `reliable`. Another
    /// request may lose its place for it.
    pub(super) fn enter(
        &self,
        asker: impl Into<Asker>,
        origin: &str,
        reliable: bool,
    ) -> Result<(Place, Option<Line>), NoPlace> {
        let asker = asker.into();
        let Asker { client, proven, .. } = asker;
        let (newcomer, now) = (client.newcomer(proven), self.clock.now());
        let origin: Arc<str> = origin.into();
        let mut state = self.lock();
        let state = &mut *state;
        let connects = reliable && !state.lines.contains_key(&(client, origin.clone()));
        // First whether all tables have room, so that nobody gives way for nothing.
        let all = state.requests.room(newcomer, now);
        all.map_err(|full| NoPlace::of(full, NoPlace::Proxy))?;
        if connects {
            let line = state.connections.room(newcomer, now);
            line.map_err(|full| NoPlace::of(full, NoPlace::Proxy))?;
        }
        if proven {
            state.challenged.forget(asker.port());
        }
        let mut patient = false;
        if let Some(known) = state.asked.get_mut(&origin) {
            let victim = known.requests.room(newcomer, now);
            let victim = victim.map_err(|full| NoPlace::of(full, NoPlace::Origin))?;
            // A client that has proven its address comes first. Who does not know Echo waits, the next time.
            if !proven && known.wants_proof(now) {
                if state.challenged.is_due(asker.port(), now) {
                    return Err(NoPlace::Unproven);
                }
                patient = true;
            }
            if let Some(victim) = victim {
                state.evict(victim);
            }
        }
        state.last += 1;
        let id = state.last;
        let victim = state.requests.enter(id, newcomer, now);
        let victim = victim.map_err(|full| NoPlace::of(full, NoPlace::Proxy))?;
        if let Some(victim) = victim {
            state.evict(victim);
        }
        let new = || self.bounds.new_origin(id, reliable);
        let asked = state.asked.entry(origin.clone()).or_insert_with(new);
        let born = asked.born;
        let entered = asked.requests.enter(id, newcomer, now);
        debug_assert_eq!(entered, Ok(None), "its victim has left");
        if proven {
            asked.proven_asked = Some(now);
        }
        let notice = state.register(id, &origin);
        let (queue, sent, asker) = (self.clone(), Mutex::default(), asker.port());
        let place = Place {
            queue,
            asker,
            newcomer,
            arrived: now,
            patient,
            origin: origin.clone(),
            born,
            id,
            notice,
            sent,
        };
        let line = reliable.then(|| self.line(state, client, &origin, newcomer, now));
        Ok((place, line))
    }
    /// The line of a client to an origin, which may have one already.
    fn line(
        &self,
        state: &mut State,
        client: Client,
        origin: &Arc<str>,
        newcomer: Newcomer,
        now: Instant,
    ) -> Line {
        let key = (client, origin.clone());
        if let Some((id, holders)) = state.lines.get_mut(&key)
            && let Some((_, tell)) = state.all.get(id)
        {
            *holders += 1;
            let notice = Notice(tell.subscribe());
            return Line { queue: self.clone(), key, id: *id, notice };
        }
        state.last += 1;
        let id = state.last;
        let victim = state.connections.enter(id, newcomer, now);
        // There was room before the request entered, which takes none of these places.
        victim.ok().flatten().into_iter().for_each(|victim| state.evict(victim));
        state.lines.insert(key.clone(), (id, 1));
        let notice = state.register(id, origin);
        Line { queue: self.clone(), key, id, notice }
    }
    /// Gives the turn to the next request that waits for it.
    fn pass_on(&self, name: &Arc<str>, born: Id) {
        loop {
            let next = {
                let mut state = self.lock();
                let Some(origin) = state.origin(name, born) else { return };
                // A client that has given up does not wait any more.
                origin.turns.retain(|waiting| !waiting.is_closed());
                let next = origin.turns.pop(origin.is_for_unproven(self.clock.now()));
                origin.taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            let permit = Permit { queue: self.clone(), origin: Some((name.clone(), born)) };
            match next.send(permit) {
                Ok(()) => return,
                // The client that waited is gone: the turn must not be passed on twice.
                Err(mut permit) => permit.origin = None,
            }
        }
    }
    /// A turn that nobody takes may be that of an unproven client.
    fn offer(&self, name: &Arc<str>, born: Id) {
        let is_free = self.lock().origin(name, born).is_some_and(|one| !one.taken);
        if is_free {
            self.pass_on(name, born);
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two operations.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn register(&mut self, id: Id, origin: &Arc<str>) -> Notice {
        let (tell, told) = watch::channel(false);
        self.all.insert(id, (origin.clone(), tell));
        Notice(told)
    }
    /// The origin of this name, if it has not been forgotten since.
    fn origin(&mut self, name: &Arc<str>, born: Id) -> Option<&mut Origin> {
        self.asked.get_mut(name).filter(|origin| origin.born == born)
    }
    /// A request or a line has lost its place.
    fn evict(&mut self, id: Id) {
        let Some((origin, tell)) = self.all.remove(&id) else { return };
        tell.send_replace(true);
        self.requests.leave(&id);
        self.connections.leave(&id);
        self.lines.retain(|_, (line, _)| *line != id);
        self.forget(&origin, id);
    }
    /// An origin loses a request, and is forgotten with its last one.
    fn forget(&mut self, name: &Arc<str>, id: Id) {
        let Some(origin) = self.asked.get_mut(name) else { return };
        origin.requests.leave(&id);
        if origin.requests.is_empty() {
            self.asked.remove(name);
        }
    }
}

/// A client's share of the connection to an origin. A request holds it while it uses the connection: an observation
/// also after its first response, because the connection stays open for it (RFC 7641 s3.5).
#[derive(Debug)]
pub(super) struct Line {
    queue: Queue,
    key: (Client, Arc<str>),
    id: Id,
    notice: Notice,
}

impl Line {
    /// The origin answers over it.
    pub(super) fn answered(&self) {
        let then = self.queue.clock.now() + Duration::from(PROXY_OBSERVING_GRACE);
        self.queue.lock().connections.yield_at(&self.id, then);
    }
    /// Waits until the place is another's.
    pub(super) async fn lost(&self) {
        self.notice.lost().await;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        // After it has lost its place the client may have another line already.
        let Some((id, holders)) = state.lines.get_mut(&self.key) else { return };
        if *id != self.id {
            return;
        }
        *holders -= 1;
        if *holders == 0 {
            state.lines.remove(&self.key);
            state.connections.leave(&self.id);
            state.all.remove(&self.id);
        }
    }
}

/// The right to have a request wait for the window of an origin. It is given back when the request has left.
#[derive(Debug)]
pub(super) struct Permit {
    queue: Queue,
    /// `None` if it has been passed on, or if the request has lost its place.
    origin: Option<(Arc<str>, Id)>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((origin, born)) = self.origin.take() {
            self.queue.pass_on(&origin, born);
        }
    }
}

#[cfg(test)]
mod tests;
