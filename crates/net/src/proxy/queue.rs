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
    PROXY_ACKNOWLEDGED_GRACE, PROXY_OBSERVING_GRACE, PROXY_UNACKNOWLEDGED_GRACE,
    PROXY_UNPROVEN_WAITING_MAX,
};
use crate::peer::Peer;

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

/// Who waits for a turn, until it gets it or gives up.
type Waiting = oneshot::Sender<Permit>;

/// One origin that is being asked.
#[derive(Debug)]
struct Origin {
    /// Requests, waiting ones included.
    requests: Table<Id>,
    /// Somebody has the turn.
    taken: bool,
    turns: Turns<Waiting>,
}

#[derive(Debug)]
struct State {
    last: Id,
    requests: Table<Id>,
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
        if let Some(known) = state.asked.get_mut(&origin) {
            // Forged requests would wait for every turn, and a client that has proven its address comes first.
            let crowded = known.turns.unproven() >= PROXY_UNPROVEN_WAITING_MAX;
            if known.taken && !proven && crowded {
                return Err(NoPlace::Unproven);
            }
            let victim = known.requests.room(newcomer, now);
            let victim = victim.map_err(|full| NoPlace::of(full, NoPlace::Origin))?;
            victim.into_iter().for_each(|victim| state.evict(victim));
        }
        state.last += 1;
        let id = state.last;
        let victim = state.requests.enter(id, newcomer, now);
        let victim = victim.map_err(|full| NoPlace::of(full, NoPlace::Proxy))?;
        victim.into_iter().for_each(|victim| state.evict(victim));
        // No origin takes the places of all others.
        let of_origin = self.bounds.origin.min(self.bounds.requests.div_ceil(2));
        let requests = || Table::new(halves(of_origin, PROXY_UNACKNOWLEDGED_GRACE));
        let new = || Origin { requests: requests(), taken: false, turns: Turns::new() };
        let asked = state.asked.entry(origin.clone()).or_insert_with(new);
        let entered = asked.requests.enter(id, newcomer, now);
        debug_assert_eq!(entered, Ok(None), "its victim has left");
        let notice = state.register(id, &origin);
        let place = Place { queue: self.clone(), newcomer, origin: origin.clone(), id, notice };
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
    fn pass_on(&self, origin: &Arc<str>) {
        loop {
            let next = {
                let mut state = self.lock();
                let Some(origin) = state.asked.get_mut(origin) else { return };
                // A client that has given up does not wait any more.
                origin.turns.retain(|waiting| !waiting.is_closed());
                let next = origin.turns.pop();
                origin.taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            let permit = Permit { queue: self.clone(), origin: Some(origin.clone()) };
            match next.send(permit) {
                Ok(()) => return,
                // The client that waited is gone: the turn must not be passed on twice.
                Err(mut permit) => permit.origin = None,
            }
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
    origin: Arc<str>,
    id: Id,
    notice: Notice,
}

impl Place {
    /// Waits until it is the client's turn at this origin.
    pub(super) async fn permit(&self) -> Permit {
        let waiting = {
            let mut state = self.queue.lock();
            match state.asked.get_mut(&self.origin) {
                Some(origin) if origin.taken => {
                    let (sender, receiver) = oneshot::channel();
                    origin.turns.wait(sender, self.newcomer);
                    Some(receiver)
                }
                Some(origin) => {
                    origin.taken = true;
                    origin.turns.taken_by(self.newcomer);
                    None
                }
                // It has lost its place, and learns it soon.
                None => None,
            }
        };
        let permit = || Permit { queue: self.queue.clone(), origin: Some(self.origin.clone()) };
        match waiting {
            None => permit(),
            // Only a caller that has found a sender closed drops it.
            Some(receiver) => receiver.await.unwrap_or_else(|_| permit()),
        }
    }
    /// The request has left for its origin, which has a while to acknowledge it.
    pub(super) fn sent(&self) {
        self.keep(PROXY_UNACKNOWLEDGED_GRACE);
    }
    /// The origin has the request, and has longer to answer it.
    pub(super) fn acknowledged(&self) {
        self.keep(PROXY_ACKNOWLEDGED_GRACE);
    }
    fn keep(&self, grace: std::time::Duration) {
        let then = self.queue.clock.now() + Duration::from(grace);
        let mut state = self.queue.lock();
        state.requests.yield_at(&self.id, then);
        if let Some(origin) = state.asked.get_mut(&self.origin) {
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
    origin: Option<Arc<str>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(origin) = self.origin.take() {
            self.queue.pass_on(&origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { requests: 64, origin: 16, connections: 8 };

    fn client(number: u8) -> Client {
        Client(Source::V4([192, 0, number, 1]))
    }

    fn enter(queue: &Queue, who: u8, origin: &str) -> Result<Place, NoPlace> {
        queue.enter((client(who), true), origin, false).map(|(place, _)| place)
    }

    /// As many places as there are.
    fn fill(queue: &Queue, who: u8, origin: &str) -> (Vec<Place>, NoPlace) {
        let mut places = Vec::new();
        loop {
            match enter(queue, who, origin) {
                Ok(place) => places.push(place),
                Err(full) => return (places, full),
            }
        }
    }

    fn has_lost(place: &Place) -> bool {
        *place.notice.0.borrow()
    }

    #[test]
    fn one_client_gets_half_and_the_next_as_much_and_a_third_takes_from_both() {
        let queue = Queue::new(BOUNDS);
        let (first, full) = fill(&queue, 1, "silent");
        assert_eq!((first.len(), full), (8, NoPlace::Origin));
        let (second, _) = fill(&queue, 2, "silent");
        assert_eq!(second.len(), 8);
        let (third, _) = fill(&queue, 3, "silent");
        let left = [&first, &second].map(|all| all.iter().filter(|one| !has_lost(one)).count());
        assert_eq!((left, third.len()), ([5, 6], 5));
    }

    #[test]
    fn silent_origins_cannot_take_the_place_of_others_nor_one_client_that_of_another() {
        let queue = Queue::new(BOUNDS);
        let mut held = Vec::new();
        for origin in 0..40 {
            held.extend(fill(&queue, 1, &format!("silent {origin}")).0);
        }
        assert_eq!(held.len(), 32, "half of all");
        assert_eq!(enter(&queue, 1, "healthy").err(), Some(NoPlace::Proxy));
        let mut others = Vec::new();
        for number in 2..40 {
            let place = enter(&queue, number, "healthy");
            others.push(place.unwrap_or_else(|_| panic!("client {number} with one at a time")));
            others.truncate(8);
        }
        drop((held, others));
        let state = queue.lock();
        assert!(state.asked.is_empty() && state.requests.is_empty() && state.all.is_empty());
    }

    #[test]
    fn one_request_of_each_network_of_a_subscriber_shuts_nobody_out() {
        let queue = Queue::new(BOUNDS);
        let of = |network| Client(Source::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, network]));
        let enter = |who, origin: String| queue.enter((who, true), &origin, false);
        let all = (0..64).map(|network| enter(of(network), format!("silent {network}")));
        let all: Vec<_> = all.map(|one| one.expect("there is room").0).collect();
        let other = enter(client(1), "healthy".to_owned()).expect("the subscriber gives way").0;
        assert_eq!(all.iter().filter(|place| has_lost(place)).count(), 1);
        assert!(!has_lost(&other));
    }

    #[test]
    fn what_an_origin_does_not_acknowledge_gives_way_after_its_grace() {
        let queue = Queue::new(Bounds { requests: 4, ..BOUNDS });
        let enter = |who: u8| enter(&queue, who, &format!("silent {who}"));
        let places: Vec<_> = (1..=4).map(|who| enter(who).expect("there is room")).collect();
        assert_eq!(enter(5).err(), Some(NoPlace::Proxy), "all are as modest, and young");
        places[1..].iter().for_each(Place::acknowledged);
        std::thread::sleep(PROXY_UNACKNOWLEDGED_GRACE);
        let _fifth = enter(5).expect("the first has had its time");
        let lost: Vec<_> = places.iter().map(has_lost).collect();
        assert_eq!(lost, [true, false, false, false]);
    }

    #[test]
    fn unproven_clients_have_half_and_then_are_asked_for_a_proof() {
        let queue = Queue::new(BOUNDS);
        let enter =
            |who, proven| queue.enter((client(who), proven), "slow", false).map(|(place, _)| place);
        let forged: Vec<_> = (0..20).map(|who| enter(who, false)).collect();
        let admitted = forged.iter().filter(|one| one.is_ok()).count();
        assert_eq!(admitted, 8);
        assert!(forged[8..].iter().all(|one| matches!(one, Err(NoPlace::Unproven))));
        assert!((100..108).map(|who| enter(who, true)).all(|one| one.is_ok()));
    }

    #[tokio::test]
    async fn few_unproven_clients_wait_for_a_turn_and_others_are_asked_for_a_proof() {
        let queue = Queue::new(BOUNDS);
        let enter =
            |who, proven| queue.enter((client(who), proven), "slow", false).map(|(place, _)| place);
        let mut waiting = Vec::new();
        for who in 0..3 {
            let place = enter(who, false).expect("it is nobody's turn, or few wait");
            waiting.push(tokio::spawn(async move { (place.permit().await, place) }));
            tokio::task::yield_now().await;
        }
        assert_eq!(enter(3, false).err(), Some(NoPlace::Unproven));
        assert!(enter(3, true).is_ok());
    }

    #[test]
    fn one_client_cannot_take_all_connections() {
        let queue = Queue::new(BOUNDS);
        let enter =
            |who, origin: usize| queue.enter((client(who), true), &origin.to_string(), true);
        let held: Vec<_> = (0..10).map_while(|origin| enter(1, origin).ok()).collect();
        assert_eq!(held.len(), 4);
        assert!(enter(1, 0).is_ok(), "one that is connected already");
        let others: Vec<_> = (2..=5).map(|who| enter(who, 100).expect("room")).collect();
        let _sixth = enter(6, 100).expect("the client with four gives way");
        let lost = |line: &Line| *line.notice.0.borrow();
        let lines = |all: &[(Place, Option<Line>)]| {
            all.iter().filter_map(|(_, line)| line.as_ref()).filter(|line| lost(line)).count()
        };
        assert_eq!((lines(&held), lines(&others)), (1, 0));
        drop((held, others, _sixth));
        let state = queue.lock();
        assert!(state.connections.is_empty() && state.lines.is_empty() && state.all.is_empty());
    }

    #[test]
    fn what_is_answered_and_still_observed_counts_as_a_connection() {
        let queue = Queue::new(BOUNDS);
        let enter = |origin: usize| queue.enter((client(1), true), &origin.to_string(), true);
        let lines: Vec<_> = (0..10).map_while(|origin| Some(enter(origin).ok()?.1)).collect();
        assert_eq!(lines.len(), 4);
        assert!(queue.lock().requests.is_empty(), "all are answered");
        assert_eq!(enter(10).err(), Some(NoPlace::Proxy));
        assert!(enter(0).is_ok(), "one that is connected already");
        drop(lines);
        let state = queue.lock();
        assert!(state.connections.is_empty() && state.lines.is_empty());
    }

    #[tokio::test]
    async fn clients_that_wait_are_served_in_turn_however_many_requests_each_has() {
        let queue = Queue::new(BOUNDS);
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let first = enter(&queue, 9, "origin").expect("room");
        let permit = first.permit().await;
        for (who, proven) in [(1, true), (1, true), (1, true), (2, true), (7, false), (8, false)] {
            let entered = queue.enter((client(who), proven), "origin", false);
            let ((place, _), tell) = (entered.expect("room"), tell.clone());
            tokio::spawn(async move {
                let permit = place.permit().await;
                tell.send(who).expect("the test listens");
                drop(permit);
            });
            tokio::task::yield_now().await;
        }
        drop((permit, tell));
        let mut order = Vec::new();
        while let Some(who) = told.recv().await {
            order.push(who);
        }
        assert_eq!(order, [7, 1, 8, 2, 1, 1]);
    }

    #[tokio::test]
    async fn a_client_that_gives_up_waiting_does_not_block_the_permit() {
        let queue = Queue::new(BOUNDS);
        let places = fill(&queue, 1, "origin").0;
        let permit = places[0].permit().await;
        for place in &places[1..4] {
            let soon = std::time::Duration::from_millis(1);
            assert!(tokio::time::timeout(soon, place.permit()).await.is_err());
        }
        let next = places[4].permit();
        tokio::pin!(next);
        let soon = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(soon, next.as_mut()).await.is_err());
        drop(permit);
        drop(next.await);
        drop(places[5].permit().await);
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_client() {
        let of = |text: &str| Client::of(&Peer::new(text.parse().expect("an address"), None));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:1]:2"));
        assert_ne!(of("[2001:db8:0:1::1]:1"), of("[2001:db8::1]:1"));
        assert_ne!(of("192.0.2.1:1"), of("192.0.2.2:1"));
    }
}
