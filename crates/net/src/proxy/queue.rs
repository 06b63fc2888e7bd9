//! Requests to origins: how many are under way for which client, and which one is next.
//!
//! ```text
//!   client A ─► [ ][ ][ ] ─┐
//!   client B ─► [ ]       ─┼─ one of each in turn ──► endpoint: one that waits for the window ──► origin
//!   client C ─► [ ][ ]    ─┘
//! ```
//! Every bound is shared by what is still free: a client (or an origin) may have as many requests as there are free
//! places left. Alone it gets half of all, beside `n` others as greedy as it one in `n + 2`, and that much always stays
//! free for the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::peer::Peer;
use crate::source::Source;

/// A client, as far as shares go: the source of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Client(Source);

impl Client {
    pub(super) fn of(peer: &Peer) -> Self {
        Self(Source::of(peer.address))
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
pub(super) enum Full {
    /// The proxy has too many requests, or the client too many of them.
    Proxy,
    /// The same for the origin.
    Origin,
}

/// Things that are counted by their holders.
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

/// One origin that is being asked.
#[derive(Debug, Default)]
struct Origin {
    /// Requests, waiting ones included.
    requests: Shares<Client>,
    /// Somebody has the turn.
    taken: bool,
    /// The requests that wait for the turn; clients in the order in which they are served.
    waiting: VecDeque<(Client, VecDeque<oneshot::Sender<Permit>>)>,
}

impl Origin {
    fn wait(&mut self, client: Client, sender: oneshot::Sender<Permit>) {
        for (_, senders) in &mut self.waiting {
            // A client that has given up does not wait any more.
            senders.retain(|sender| !sender.is_closed());
        }
        self.waiting.retain(|(_, senders)| !senders.is_empty());
        match self.waiting.iter_mut().find(|(one, _)| *one == client) {
            Some((_, senders)) => senders.push_back(sender),
            None => self.waiting.push_back((client, VecDeque::from([sender]))),
        }
    }
    /// The oldest request of the client whose turn it is. The client then goes behind all others.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let (client, mut senders) = self.waiting.pop_front()?;
        let next = senders.pop_front();
        if !senders.is_empty() {
            self.waiting.push_back((client, senders));
        }
        next
    }
}

#[derive(Debug, Default)]
struct State {
    clients: Shares<Client>,
    origins: Shares<Arc<str>>,
    /// Origins over connections, by client.
    connections: Shares<Client>,
    /// The holders of each of these.
    lines: BTreeMap<(Client, Arc<str>), usize>,
    asked: BTreeMap<Arc<str>, Origin>,
}

/// All requests of a proxy.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    state: Arc<Mutex<State>>,
    bounds: Bounds,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { state: Arc::default(), bounds }
    }
    /// A place for one more request of `client` to `origin`, which is asked over a connection if it is `reliable`.
    pub(super) fn enter(
        &self,
        client: Client,
        origin: &str,
        reliable: bool,
    ) -> Result<(Place, Option<Line>), Full> {
        let mut state = self.lock();
        let origin: Arc<str> = origin.into();
        let bounds = self.bounds;
        let known = state.asked.get(&origin);
        let connects = reliable && !state.lines.contains_key(&(client, origin.clone()));
        if !state.clients.admits(&client, bounds.requests)
            || (connects && !state.connections.admits(&client, bounds.connections))
        {
            return Err(Full::Proxy);
        }
        if !state.origins.admits(&origin, bounds.requests)
            || !known.is_none_or(|one| one.requests.admits(&client, bounds.origin))
        {
            return Err(Full::Origin);
        }
        state.clients.add(&client);
        state.origins.add(&origin);
        if connects {
            state.connections.add(&client);
        }
        if reliable {
            *state.lines.entry((client, origin.clone())).or_default() += 1;
        }
        state.asked.entry(origin.clone()).or_default().requests.add(&client);
        drop(state);
        let line = || Line { queue: self.clone(), key: (client, origin.clone()) };
        let line = reliable.then(line);
        Ok((Place { queue: self.clone(), client, origin }, line))
    }
    fn leave(&self, place: &Place) {
        let mut state = self.lock();
        let state = &mut *state;
        state.clients.remove(&place.client);
        state.origins.remove(&place.origin);
        let Some(origin) = state.asked.get_mut(&place.origin) else { return };
        origin.requests.remove(&place.client);
        if origin.requests.total == 0 {
            state.asked.remove(&place.origin);
        }
    }
    fn hang_up(&self, line: &Line) {
        let mut state = self.lock();
        let Some(holders) = state.lines.get_mut(&line.key) else { return };
        *holders -= 1;
        if *holders == 0 {
            state.lines.remove(&line.key);
            state.connections.remove(&line.key.0);
        }
    }
    /// Gives the turn to the next request that waits for it.
    fn pass_on(&self, origin: &Arc<str>) {
        loop {
            let next = {
                let mut state = self.lock();
                let Some(origin) = state.asked.get_mut(origin) else { return };
                let next = origin.next();
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

/// A request has it from its arrival to its answer.
#[derive(Debug)]
pub(super) struct Place {
    queue: Queue,
    client: Client,
    origin: Arc<str>,
}

impl Place {
    /// Waits until it is the client's turn at this origin.
    pub(super) async fn permit(&self) -> Permit {
        let waiting = {
            let mut state = self.queue.lock();
            let origin = state.asked.get_mut(&self.origin).expect("it has a place at its origin");
            if origin.taken {
                let (sender, receiver) = oneshot::channel();
                origin.wait(self.client, sender);
                Some(receiver)
            } else {
                origin.taken = true;
                None
            }
        };
        let permit = || Permit { queue: self.queue.clone(), origin: Some(self.origin.clone()) };
        match waiting {
            None => permit(),
            // Only a caller that has found a sender closed drops it.
            Some(receiver) => receiver.await.unwrap_or_else(|_| permit()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.leave(self);
    }
}

/// A client's share of the connection to an origin. A request holds it while it uses the connection: an observation
/// also after its first response, because the connection stays open for it (RFC 7641 s3.5).
#[derive(Debug)]
pub(super) struct Line {
    queue: Queue,
    key: (Client, Arc<str>),
}

impl Drop for Line {
    fn drop(&mut self) {
        self.queue.hang_up(self);
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
        Client(Source::V4([192, 0, 2, number]))
    }

    /// As many places as there are.
    fn fill(queue: &Queue, client: Client, origin: &str) -> (Vec<Place>, Full) {
        let mut places = Vec::new();
        loop {
            match queue.enter(client, origin, false) {
                Ok((place, _)) => places.push(place),
                Err(full) => return (places, full),
            }
        }
    }

    #[test]
    fn one_client_gets_half_and_the_next_half_of_what_is_left() {
        let queue = Queue::new(BOUNDS);
        let (first, full) = fill(&queue, client(1), "silent");
        assert_eq!((first.len(), full), (8, Full::Origin));
        let (second, _) = fill(&queue, client(2), "silent");
        assert_eq!(second.len(), 4);
        drop(first);
        assert_eq!(fill(&queue, client(3), "silent").0.len(), 6);
    }

    #[test]
    fn silent_origins_cannot_take_the_place_of_others_nor_one_client_that_of_another() {
        let queue = Queue::new(BOUNDS);
        let mut held = Vec::new();
        for origin in 0..40 {
            held.extend(fill(&queue, client(1), &format!("silent {origin}")).0);
        }
        assert_eq!(held.len(), 32, "half of all");
        assert_eq!(queue.enter(client(1), "healthy", false).err(), Some(Full::Proxy));
        for number in 2..20 {
            let place = queue.enter(client(number), "healthy", false);
            assert!(place.is_ok(), "client {number} with one at a time");
        }
        drop(held);
        assert!(queue.lock().asked.is_empty() && queue.lock().clients.by.is_empty());
    }

    #[test]
    fn one_client_cannot_take_all_connections() {
        let queue = Queue::new(BOUNDS);
        let enter = |who, origin: usize| queue.enter(client(who), &origin.to_string(), true);
        let held: Vec<_> = (0..10).map_while(|origin| enter(1, origin).ok()).collect();
        assert_eq!(held.len(), 4);
        assert!(enter(1, 0).is_ok(), "one that is connected already");
        assert!(enter(2, 100).is_ok());
        drop(held);
        assert_eq!(queue.lock().connections.total, 0);
    }

    #[test]
    fn what_is_answered_and_still_observed_counts_as_a_connection() {
        let queue = Queue::new(BOUNDS);
        let enter = |origin: usize| queue.enter(client(1), &origin.to_string(), true);
        let lines: Vec<_> = (0..10).map_while(|origin| Some(enter(origin).ok()?.1)).collect();
        assert_eq!(lines.len(), 4);
        assert!(queue.lock().clients.by.is_empty(), "all are answered");
        assert_eq!(enter(10).err(), Some(Full::Proxy));
        assert!(enter(0).is_ok(), "one that is connected already");
        drop(lines);
        let state = queue.lock();
        assert!(state.connections.total == 0 && state.lines.is_empty());
    }

    #[tokio::test]
    async fn clients_that_wait_are_served_in_turn_however_many_requests_each_has() {
        let queue = Queue::new(BOUNDS);
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (first, _) = queue.enter(client(9), "origin", false).expect("room");
        let permit = first.permit().await;
        for who in [1, 1, 1, 1, 2, 3, 3] {
            let (place, tell) = (queue.enter(client(who), "origin", false), tell.clone());
            let (place, _) = place.expect("room");
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
        assert_eq!(order, [1, 2, 3, 1, 3, 1, 1]);
    }

    #[tokio::test]
    async fn a_client_that_gives_up_waiting_does_not_block_the_permit() {
        let queue = Queue::new(BOUNDS);
        let places = fill(&queue, client(1), "origin").0;
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
