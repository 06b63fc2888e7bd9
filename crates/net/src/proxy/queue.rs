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

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_shares::{Bound, Full, Newcomer, Source, Table, Turns};
use lowmesh_units::{Duration, Instant};
use tokio::sync::{oneshot, watch};

use crate::clock::Clock;
use crate::params::{
    PROXY_ACKNOWLEDGED_GRACE, PROXY_OBSERVING_GRACE, PROXY_PROVEN_RECENT,
    PROXY_UNACKNOWLEDGED_GRACE, PROXY_UNPROVEN_PAUSE, PROXY_UNPROVEN_SOON, PROXY_UNPROVEN_WAIT,
    PROXY_UNPROVEN_WAITING_MAX,
};
use crate::peer::Peer;

use super::challenged::Challenged;

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
}

impl Bounds {
    /// What unproven clients may hold of the window of one origin: all but one place, so that a proven one has it at once. A
    /// connection has no window.
    fn unproven_sent(&self, reliable: bool) -> usize {
        if reliable { usize::MAX } else { self.window.saturating_sub(1).max(1) }
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

/// How often an unproven request that waits looks whether it may be its turn.
const UNPROVEN_LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Who waits for a turn, until it gets it or gives up.
type Waiting = oneshot::Sender<Permit>;

/// One origin that is being asked.
#[derive(Debug)]
struct Origin {
    /// The request with which it began: an origin that was forgotten and is asked again is another one.
    born: Id,
    /// Requests, waiting ones included.
    requests: Table<Id>,
    /// Somebody has the turn.
    taken: bool,
    turns: Turns<Waiting>,
    /// Requests of unproven clients that hold the window, and how many may.
    unproven_sent: usize,
    unproven_max: usize,
    /// When the latest of them left.
    unproven_sent_at: Instant,
    /// From then on it may be the turn of an unproven client.
    unproven_from: Instant,
    /// When a proven client asked last.
    proven_asked: Option<Instant>,
}

impl Origin {
    fn new(born: Id, requests: Table<Id>, unproven_max: usize) -> Self {
        let (turns, unproven_from, unproven_sent_at) = (Turns::new(), Instant::ZERO, Instant::ZERO);
        let (taken, unproven_sent, proven_asked) = (false, 0, None);
        Self {
            born,
            requests,
            taken,
            turns,
            unproven_sent,
            unproven_max,
            unproven_sent_at,
            unproven_from,
            proven_asked,
        }
    }
    /// Whether it may be the turn of an unproven client: not beyond their part of the window; and if proven ones ask too, not
    /// while another holds the window, nor for a while afterwards.
    fn is_for_unproven(&self, now: Instant) -> bool {
        let rests = || self.unproven_sent == 0 && self.unproven_from <= now;
        self.unproven_sent < self.unproven_max && (!self.serves_proven(now) || rests())
    }
    fn serves_proven(&self, now: Instant) -> bool {
        let recent = |asked: Instant| now.since(asked) < Duration::from(PROXY_PROVEN_RECENT);
        self.proven_asked.is_some_and(recent)
    }
    /// How long at least the next unproven client waits for its turn. While another holds the window, the pause grows with
    /// the time that it takes.
    fn unproven_wait(&self, now: Instant) -> Duration {
        if self.is_for_unproven(now) {
            Duration::ZERO
        } else if self.unproven_sent == 0 {
            self.unproven_from.since(now)
        } else if self.serves_proven(now) {
            now.since(self.unproven_sent_at).saturating_mul(PROXY_UNPROVEN_PAUSE)
        } else {
            Duration::ZERO
        }
    }
    /// Whether a proof would help an unproven client more than to wait.
    fn wants_proof(&self, now: Instant) -> bool {
        let crowded = self.taken && self.turns.unproven() >= PROXY_UNPROVEN_WAITING_MAX;
        crowded || self.unproven_wait(now) > Duration::from(PROXY_UNPROVEN_SOON)
    }
}

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
    /// A place for one more request of `client`, whose address is proven or not, to `origin`, which is asked over a
    /// connection if it is `reliable`. Another request may lose its place for it.
    pub(super) fn enter(
        &self,
        (client, proven): (Client, bool),
        origin: &str,
        reliable: bool,
    ) -> Result<(Place, Option<Line>), NoPlace> {
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
        let mut patient = false;
        if let Some(known) = state.asked.get_mut(&origin) {
            // A client that has proven its address comes first. Who does not know Echo waits, the next time.
            if !proven && known.wants_proof(now) {
                if state.challenged.is_due(client.0, now) {
                    return Err(NoPlace::Unproven);
                }
                patient = true;
            }
            let victim = known.requests.room(newcomer, now);
            let victim = victim.map_err(|full| NoPlace::of(full, NoPlace::Origin))?;
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
        // No origin takes the places of all others.
        let of_origin = self.bounds.origin.min(self.bounds.requests.div_ceil(2));
        let unproven_sent = self.bounds.unproven_sent(reliable);
        let table = || Table::new(halves(of_origin, PROXY_UNACKNOWLEDGED_GRACE));
        let new = || Origin::new(id, table(), unproven_sent);
        let asked = state.asked.entry(origin.clone()).or_insert_with(new);
        let born = asked.born;
        let entered = asked.requests.enter(id, newcomer, now);
        debug_assert_eq!(entered, Ok(None), "its victim has left");
        if proven {
            asked.proven_asked = Some(now);
        }
        let notice = state.register(id, &origin);
        let (queue, sent) = (self.clone(), Mutex::default());
        let place =
            Place { queue, newcomer, patient, origin: origin.clone(), born, id, notice, sent };
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

/// A request has it from its arrival to its answer.
#[derive(Debug)]
pub(super) struct Place {
    queue: Queue,
    newcomer: Newcomer,
    /// It has been asked for a proof before, and has none.
    patient: bool,
    origin: Arc<str>,
    born: Id,
    id: Id,
    notice: Notice,
    /// Since when the request holds the window.
    sent: Mutex<Option<Instant>>,
}

impl Place {
    /// Waits until it is the client's turn at this origin.
    pub(super) async fn permit(&self) -> Permit {
        let mut waiting = {
            let (mut state, now) = (self.queue.lock(), self.queue.clock.now());
            let may = |origin: &Origin| self.newcomer.proven || origin.is_for_unproven(now);
            match state.origin(&self.origin, self.born) {
                Some(origin) if origin.taken || !may(origin) => {
                    let (sender, receiver) = oneshot::channel();
                    origin.turns.wait(sender, self.newcomer);
                    Some(receiver)
                }
                Some(origin) => {
                    origin.taken = true;
                    origin.turns.taken_by(self.newcomer);
                    None
                }
                // It has lost its place, and there is no turn that it could pass on.
                None => return Permit { queue: self.queue.clone(), origin: None },
            }
        };
        let permit = |origin| Permit { queue: self.queue.clone(), origin };
        let Some(receiver) = &mut waiting else {
            return permit(Some((self.origin.clone(), self.born)));
        };
        loop {
            tokio::select! {
                biased;
                // With its origin a sender is forgotten, and the place is lost.
                permitted = &mut *receiver => return permitted.unwrap_or_else(|_| permit(None)),
                // Time alone may make it the turn of an unproven client.
                () = tokio::time::sleep(UNPROVEN_LOOK), if !self.newcomer.proven => {
                    self.queue.offer(&self.origin, self.born);
                }
            }
        }
    }
    /// Resolves when an unproven request has waited for more than [`PROXY_UNPROVEN_WAIT`], or will. The proxy then sends Echo
    /// (RFC 9175 s2.3): a client that has proven its address comes first. A client that returns no value waits on.
    pub(super) async fn out_of_patience(&self) {
        if self.newcomer.proven || self.patient {
            std::future::pending::<()>().await;
        }
        let most = Duration::from(PROXY_UNPROVEN_WAIT);
        let until = self.queue.clock.now() + most;
        while !self.is_late(until, most) {
            tokio::time::sleep(UNPROVEN_LOOK).await;
        }
        let is_due =
            self.queue.lock().challenged.is_due(self.newcomer.source, self.queue.clock.now());
        if !is_due {
            std::future::pending::<()>().await;
        }
    }
    /// Whether a proof would have been better than to wait until now.
    fn is_late(&self, until: Instant, most: Duration) -> bool {
        let (mut state, now) = (self.queue.lock(), self.queue.clock.now());
        let origin = state.origin(&self.origin, self.born);
        now >= until || origin.is_some_and(|one| one.unproven_wait(now) > most)
    }
    /// The request has left for its origin, which has a while to acknowledge it.
    pub(super) fn sent(&self) {
        self.keep(PROXY_UNACKNOWLEDGED_GRACE);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.newcomer.proven && sent.is_none() {
            *sent = Some(self.queue.clock.now());
            if let Some(origin) = self.queue.lock().origin(&self.origin, self.born) {
                origin.unproven_sent += 1;
                origin.unproven_sent_at = self.queue.clock.now();
            }
        }
    }
    /// The origin has the request, and has longer to answer it.
    pub(super) fn acknowledged(&self) {
        self.keep(PROXY_ACKNOWLEDGED_GRACE);
        self.release();
    }
    /// The request of an unproven client no longer holds the window.
    fn release(&self) {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(sent), now) = (sent, self.queue.clock.now()) else { return };
        if let Some(origin) = self.queue.lock().origin(&self.origin, self.born) {
            origin.unproven_sent = origin.unproven_sent.saturating_sub(1);
            origin.unproven_from = now + now.since(sent).saturating_mul(PROXY_UNPROVEN_PAUSE);
        }
        self.queue.offer(&self.origin, self.born);
    }
    fn keep(&self, grace: std::time::Duration) {
        let then = self.queue.clock.now() + Duration::from(grace);
        let mut state = self.queue.lock();
        state.requests.yield_at(&self.id, then);
        if let Some(origin) = state.origin(&self.origin, self.born) {
            origin.requests.yield_at(&self.id, then);
        }
    }
    /// Waits until the place is another's.
    pub(super) async fn lost(&self) {
        self.notice.lost().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
        let mut state = self.queue.lock();
        state.all.remove(&self.id);
        state.requests.leave(&self.id);
        state.forget(&self.origin, self.id);
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
