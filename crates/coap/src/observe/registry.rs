//! Who observes what, on the server (RFC 7641 s4).
//!
//! Observers whose requests are the same (method, options, payload) form one [`Observation`]: when
//! the resource changes the application is asked once for all of them. To each observer at most one
//! notification is on its way; what changes meanwhile is told when that one has ended, in its newest
//! state (s4.5.2).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::coap::{Class, Kind, Message, OptionNumber, Token};

use super::SEQUENCE_MODULUS;
use crate::blockwise::RequestKey;
use crate::event::{Notifications, ResponseTemplate};
use crate::params::{CONFIRM_AFTER, NOTIFICATION_GAP, UNPROVEN_NON_MAX};

/// Names an observation within its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId(u64);

/// Names a notification within its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationId(u64);

/// A notification that has to leave now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification<P> {
    /// Its name; to be given back in [`Registry::on_end`].
    pub id: NotificationId,
    /// The observer.
    pub peer: P,
    /// Of the request that registered it.
    pub token: Token,
    /// CON or NON.
    pub confirmable: bool,
    /// What the request and those for later blocks of the state have in common.
    pub key: RequestKey,
    /// The Block2 option of the request, which says what size of blocks the client prefers.
    pub block: Option<u32>,
    /// The state, Observe option included.
    pub response: ResponseTemplate,
}

/// How a notification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The observer has acknowledged it.
    Delivered,
    /// The observer does not want it, or is not there.
    Gone,
    /// It did not leave for want of room.
    Deferred,
}

/// The same request of any number of observers.
#[derive(Debug)]
struct Observation<P> {
    request: Message,
    /// Uri-Path of the request, to find it by.
    path: Vec<Vec<u8>>,
    /// Of the latest state.
    sequence: u32,
    latest: Option<ResponseTemplate>,
    observers: Vec<Observer<P>>,
}

#[derive(Debug)]
struct Observer<P> {
    peer: P,
    token: Token,
    /// Notifications are CON: the request was, and the application leaves it at that.
    confirmable: bool,
    /// NON notifications that may still leave before it is proven.
    unproven_left: u8,
    /// Something that only the holder of the address can know has come from it.
    proven: bool,
    block: Option<u32>,
    /// When the last CON notification, or the request itself, showed that the client is there.
    confirmed: Instant,
    /// Before this no NON leaves.
    next: Instant,
    on_its_way: Option<NotificationId>,
    /// Something changed that it has not been told.
    behind: bool,
}

/// All observations of a server.
#[derive(Debug)]
pub struct Registry<P> {
    observations: BTreeMap<ObservationId, Observation<P>>,
    by_key: BTreeMap<(RequestKey, Vec<u8>), ObservationId>,
    by_observer: BTreeMap<(P, Token), ObservationId>,
    on_their_way: BTreeMap<NotificationId, (ObservationId, P, Token)>,
    /// Observers that are behind and wait for time.
    waiting: BTreeSet<(Instant, P, Token)>,
    serial: u64,
    /// The newest value of Observe. One sequence serves all, so that a client that registers again
    /// never sees it go back (RFC 7641 s4.4).
    sequence: u32,
    observers_max: usize,
    per_peer_max: usize,
}

impl<P: Ord + Copy> Registry<P> {
    /// At most `observers_max` observers, `per_peer_max` of each peer.
    pub const fn new(observers_max: usize, per_peer_max: usize) -> Self {
        Self {
            observations: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_observer: BTreeMap::new(),
            on_their_way: BTreeMap::new(),
            waiting: BTreeSet::new(),
            serial: 0,
            sequence: 0,
            observers_max,
            per_peer_max,
        }
    }
    /// Observers of all resources.
    pub fn observers(&self) -> usize {
        self.by_observer.len()
    }
    /// Registers the client of a request whose response has succeeded; returns the value of the
    /// response's Observe option, or `None` if there is no room: then the response leaves without
    /// the option (RFC 7641 s4.1).
    ///
    /// Until an acknowledgement shows that `peer` is where it says, unless `proven` says so already,
    /// its notifications are CON: a forged address is told no more than one of them, behind a few
    /// NON ones where the application wants these.
    pub fn register(
        &mut self,
        peer: P,
        request: &Message,
        notifications: Notifications,
        proven: bool,
        now: Instant,
    ) -> Option<u32> {
        let token = request.token.clone();
        // RFC 7641 s4.1: an entry with the same endpoint and token is replaced.
        self.remove(peer, &token);
        let of_peer = (peer, Token::EMPTY)..;
        let of_peer = self.by_observer.range(of_peer).take_while(|((one, _), _)| *one == peer);
        if self.observers() >= self.observers_max
            || of_peer.take(self.per_peer_max).count() >= self.per_peer_max
        {
            return None;
        }
        let key = (RequestKey::of(request), request.payload.clone());
        let id = if let Some(id) = self.by_key.get(&key) {
            *id
        } else {
            let id = ObservationId(self.next());
            self.by_key.insert(key, id);
            self.observations.insert(id, Observation::new(request));
            id
        };
        let observation = self.observations.get_mut(&id).expect("just found or made");
        let (confirmable, unproven_left) = match notifications {
            Notifications::AsRequested => (request.kind == Kind::Confirmable, 0),
            Notifications::NonConfirmable => (false, UNPROVEN_NON_MAX),
        };
        observation.observers.push(Observer {
            peer,
            token: token.clone(),
            confirmable,
            unproven_left,
            proven,
            block: request.options.get_uint(OptionNumber::BLOCK2),
            confirmed: now,
            next: now,
            on_its_way: None,
            behind: false,
        });
        self.by_observer.insert((peer, token), id);
        Some(self.advance())
    }
    /// Forgets an observer; true if it was one.
    pub fn remove(&mut self, peer: P, token: &Token) -> bool {
        let Some(id) = self.by_observer.remove(&(peer, token.clone())) else { return false };
        let Some(observation) = self.observations.get_mut(&id) else { return true };
        let place = observation.observers.iter().position(|one| one.is(peer, token));
        if let Some(gone) = place.map(|place| observation.observers.remove(place)) {
            self.waiting.remove(&(gone.next, peer, token.clone()));
            if let Some(notification) = gone.on_its_way {
                self.on_their_way.remove(&notification);
            }
        }
        if observation.observers.is_empty() {
            self.forget(id);
        }
        true
    }
    /// Forgets every observation of a peer.
    pub fn remove_peer(&mut self, peer: P) {
        let of_peer = self.by_observer.range((peer, Token::EMPTY)..);
        let of_peer = of_peer.take_while(|((one, _), _)| *one == peer);
        let tokens: Vec<Token> = of_peer.map(|((_, token), _)| token.clone()).collect();
        for token in tokens {
            self.remove(peer, &token);
        }
    }
    /// The observations of a path, each with one of its observers and the request that the
    /// application has to answer anew.
    pub fn on_path(&self, path: &[&[u8]]) -> Vec<(ObservationId, P, Message)> {
        let matching = self.observations.iter().filter(|(_, one)| one.path == path);
        matching.filter_map(|(id, one)| one.asked(*id)).collect()
    }
    /// The observation that `request` would join.
    pub fn like(&self, request: &Message) -> Option<(ObservationId, P, Message)> {
        let id = self.by_key.get(&(RequestKey::of(request), request.payload.clone()))?;
        self.observations.get(id)?.asked(*id)
    }
    /// Every observation.
    pub fn all(&self) -> Vec<(ObservationId, P, Message)> {
        self.observations.iter().filter_map(|(id, one)| one.asked(*id)).collect()
    }
    /// The application has answered for an observation: who is to be told now. An error ends it.
    pub fn on_state(
        &mut self,
        id: ObservationId,
        state: ResponseTemplate,
        now: Instant,
    ) -> Vec<Notification<P>> {
        let sequence = self.advance();
        let Some(observation) = self.observations.get_mut(&id) else { return Vec::new() };
        observation.sequence = sequence;
        observation.latest = Some(state);
        let observers: Vec<(P, Token)> =
            observation.observers.iter().map(|one| (one.peer, one.token.clone())).collect();
        observers.into_iter().filter_map(|(peer, token)| self.tell(id, peer, &token, now)).collect()
    }
    /// A notification has ended. Returns what the observer is to be told next.
    pub fn on_end(
        &mut self,
        id: NotificationId,
        end: End,
        now: Instant,
    ) -> Option<Notification<P>> {
        let (observation, peer, token) = self.on_their_way.remove(&id)?;
        if end == End::Gone {
            // RFC 7641 s4.5: after RST or a timeout the client is no longer an observer.
            self.remove(peer, &token);
            return None;
        }
        let observers = &mut self.observations.get_mut(&observation)?.observers;
        let observer = observers.iter_mut().find(|one| one.is(peer, &token))?;
        observer.on_its_way = None;
        if end == End::Deferred {
            observer.behind = true;
            observer.next = now + NOTIFICATION_GAP;
            self.waiting.insert((observer.next, peer, token));
            return None;
        }
        observer.confirmed = now;
        observer.proven = true;
        if !observer.behind {
            return None;
        }
        self.tell(observation, peer, &token, now)
    }
    /// The observer that a notification is on its way to.
    pub fn peer_of(&self, id: NotificationId) -> Option<P> {
        self.on_their_way.get(&id).map(|(_, peer, _)| *peer)
    }
    /// Who is to be told now that time has passed.
    pub fn on_deadline(&mut self, now: Instant) -> Vec<Notification<P>> {
        let mut due = Vec::new();
        while let Some((at, _, _)) = self.waiting.first()
            && *at <= now
            && let Some((_, peer, token)) = self.waiting.pop_first()
        {
            if let Some(id) = self.by_observer.get(&(peer, token.clone())).copied() {
                due.extend(self.tell(id, peer, &token, now));
            }
        }
        due
    }
    /// When [`Registry::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _, _)| *at)
    }

    /// Makes the notification of the latest state for one observer, unless it has to wait.
    fn tell(
        &mut self,
        id: ObservationId,
        peer: P,
        token: &Token,
        now: Instant,
    ) -> Option<Notification<P>> {
        let notification = NotificationId(self.next());
        let observation = self.observations.get_mut(&id)?;
        let state = observation.latest.clone()?;
        let (sequence, key) = (observation.sequence, RequestKey::of(&observation.request));
        let observer = observation.observers.iter_mut().find(|one| one.is(peer, token))?;
        observer.behind = true;
        if observer.on_its_way.is_some() {
            return None;
        }
        // RFC 7641 s4.5: at least every 24 hours a notification MUST be CON.
        let silent = now.since(observer.confirmed) >= CONFIRM_AFTER;
        let unproven = !observer.proven && observer.unproven_left == 0;
        let confirmable = observer.confirmable || unproven || silent;
        if !confirmable && observer.next > now {
            self.waiting.insert((observer.next, peer, token.clone()));
            return None;
        }
        observer.behind = false;
        // RFC 7641 s4.5.1: without an estimate of the RTT, one NON every 3 s at most.
        self.waiting.remove(&(observer.next, peer, token.clone()));
        observer.next = now + NOTIFICATION_GAP;
        let block = observer.block;
        if confirmable {
            observer.on_its_way = Some(notification);
        } else {
            observer.unproven_left = observer.unproven_left.saturating_sub(1);
        }
        let mut response = state;
        if response.code.class() == Class::Success {
            response.options.set_uint(OptionNumber::OBSERVE, sequence);
        } else {
            // RFC 7641 s4.2: an error ends the observation, and has no Observe option.
            self.remove(peer, token);
        }
        if self.by_observer.contains_key(&(peer, token.clone())) {
            self.remember(notification, (id, peer, token.clone()));
        }
        let token = token.clone();
        Some(Notification { id: notification, peer, token, confirmable, key, block, response })
    }

    /// Keeps the way from a notification to its observer; of unconfirmed ones, which nothing ends,
    /// the oldest go.
    fn remember(&mut self, id: NotificationId, observer: (ObservationId, P, Token)) {
        if self.on_their_way.len() >= 2 * self.observers_max {
            self.on_their_way.pop_first();
        }
        self.on_their_way.insert(id, observer);
    }

    fn forget(&mut self, id: ObservationId) {
        if let Some(gone) = self.observations.remove(&id) {
            self.by_key.remove(&(RequestKey::of(&gone.request), gone.request.payload));
        }
    }

    const fn advance(&mut self) -> u32 {
        self.sequence = (self.sequence + 1) % SEQUENCE_MODULUS;
        self.sequence
    }

    const fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

impl<P> Observation<P> {
    fn new(request: &Message) -> Self {
        let path = request.options.iter().values(OptionNumber::URI_PATH);
        let mut shared = request.clone();
        // What one client has already, or prefers, is not for all.
        for own in [OptionNumber::ETAG, OptionNumber::BLOCK2, OptionNumber::ECHO] {
            shared.options.remove(own);
        }
        Self {
            request: shared,
            path: path.map(<[u8]>::to_vec).collect(),
            sequence: 0,
            latest: None,
            observers: Vec::new(),
        }
    }
}

impl<P: Copy> Observation<P> {
    /// What the application is asked, for one of the observers.
    fn asked(&self, id: ObservationId) -> Option<(ObservationId, P, Message)> {
        self.observers.first().map(|first| (id, first.peer, self.request.clone()))
    }
}

impl<P: Copy + PartialEq> Observer<P> {
    fn is(&self, peer: P, token: &Token) -> bool {
        self.peer == peer && self.token == *token
    }
}

#[cfg(test)]
mod tests;
