//! The observers of a server (RFC 7641 s4): who observes what, who is behind, and in which order they
//! are notified.
//!
//! Equal requests are one observation: the application answers once for all of them. An observer has at
//! most one CON notification in flight; what changes meanwhile follows when that one has ended, in its
//! newest state (s4.5.2). Observers that are behind wait in one queue, so that however many there are
//! each gets its turn before any gets a second one.
//!
//! ```text
//!   up to date ── state changes ──► behind ── its turn, and room ──► notified
//!        ▲                            ▲                                 │ NON: at once
//!        │                            └─ changed meanwhile ◄── CON ─────┤ CON: when acknowledged
//!        └──────────────────────────────────────────────────────────────┘
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Class, Code, Kind, Message, OptionNumber, Token};

use super::SEQUENCE_MODULUS;
use super::observation::{Observation, ObservationId};
use super::waiting::Waiting;
use crate::PeerAddress;
use crate::blockwise::RequestKey;
use crate::event::{Notifications, ResponseTemplate};
use crate::params::{CONFIRM_AFTER, DATAGRAM_OVERHEAD, NOTIFICATION_GAP};

/// A notification that leaves now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification<P> {
    /// The observer.
    pub peer: P,
    /// The token of the request that registered it.
    pub token: Token,
    /// CON or NON.
    pub confirmable: bool,
    /// What the request and those for later blocks of the state have in common.
    pub key: RequestKey,
    /// The Block2 option of the request, which says what size of blocks the client prefers.
    pub block: Option<u32>,
    /// The state, Observe option included.
    pub response: ResponseTemplate,
    /// Octets of credit that were set aside for it, headers included.
    pub reserve: usize,
    /// The observer has acknowledged one before, which proves its address.
    pub acknowledged: bool,
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
    /// An unproven address did not acknowledge what its credit allowed to be sent.
    Unheard,
}

/// What an observer's address may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The peer has shown that it receives at its address.
    pub proven: bool,
    /// Octets that may leave to it, headers included.
    pub credit: usize,
    /// When there is room for its notification; `None` means now.
    pub room_at: Option<Instant>,
}

type Observed<P> = (P, Token);

#[derive(Debug)]
struct Observer {
    observation: ObservationId,
    /// Notifications are CON: the request was, and the application leaves it at that.
    confirmable: bool,
    block: Option<u32>,
    /// Content-Format of the first response (RFC 7641 s4.2).
    format: Option<u32>,
    /// When the last CON notification, or the request itself, showed that the client is there.
    confirmed: Instant,
    /// The earliest time of the next NON.
    next: Instant,
    /// The CON in flight, or the latest NON.
    latest: Option<(Handle, Kind)>,
    /// The version of the state that it has been sent; 0 if that did not arrive.
    version: u64,
    /// Its turn among those that wait.
    waits: Option<u64>,
    /// Its place among the observers whose address is unproven.
    unproven: Option<u64>,
    /// Octets of credit that its registration has earned and that are set aside, headers included.
    reserve: usize,
    /// It has acknowledged a notification.
    acknowledged: bool,
}

/// All observations of a server.
#[derive(Debug)]
pub struct Registry<P> {
    observations: BTreeMap<ObservationId, Observation<P>>,
    by_key: BTreeMap<(RequestKey, Vec<u8>), ObservationId>,
    observers: BTreeMap<Observed<P>, Observer>,
    /// How many observers a source has.
    by_source: BTreeMap<P, usize>,
    in_flight: BTreeMap<Handle, Observed<P>>,
    /// Observers that are behind.
    waiting: Waiting<Observed<P>>,
    /// Observers whose address is unproven, the oldest first.
    unproven: BTreeMap<u64, Observed<P>>,
    /// Observers without credit: they wait until something comes from them.
    withheld: BTreeSet<Observed<P>>,
    /// Observations whose latest state is gone although an observer needs it.
    stale: Vec<ObservationId>,
    /// Octets of the states that are kept.
    octets: usize,
    /// Observers that were forgotten and not asked about.
    left: Vec<Observed<P>>,
    serial: u64,
    /// The newest value of Observe. One sequence serves all, so that a client that registers again
    /// never sees it go back (RFC 7641 s4.4).
    sequence: u32,
    observers_max: usize,
    per_source_max: usize,
}

impl<P: PeerAddress> Registry<P> {
    /// At most `observers_max` observers, `per_source_max` of each source.
    pub const fn new(observers_max: usize, per_source_max: usize) -> Self {
        Self {
            observations: BTreeMap::new(),
            by_key: BTreeMap::new(),
            observers: BTreeMap::new(),
            by_source: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            waiting: Waiting::new(),
            unproven: BTreeMap::new(),
            withheld: BTreeSet::new(),
            stale: Vec::new(),
            octets: 0,
            left: Vec::new(),
            serial: 0,
            sequence: 0,
            observers_max,
            per_source_max,
        }
    }
    /// Observers of all resources.
    pub fn observers(&self) -> usize {
        self.observers.len()
    }
    /// Registers the client of a request whose `response` has succeeded; returns the value of the
    /// response's Observe option, or `None` if there is no room: then the response leaves without
    /// the option (RFC 7641 s4.1). When all places are taken, or those of its source, the oldest unproven
    /// observer, of its source, gives way to a proven one.
    pub fn register(
        &mut self,
        peer: P,
        request: &Message,
        response: &ResponseTemplate,
        is_proven: impl Fn(P) -> bool,
        now: Instant,
    ) -> Option<u32> {
        let proven = is_proven(peer);
        let place = (peer, request.token.clone());
        // RFC 7641 s4.1: an entry with the same endpoint and token is replaced.
        self.take_out(&place);
        let source = peer.source();
        if self.has_share(source) && !(proven && self.displace(Some(source), &is_proven)) {
            return None;
        }
        if self.is_full() && !(proven && self.displace(None, &is_proven)) {
            return None;
        }
        let observation = self.observation_of(request);
        let joined = self.observations.get_mut(&observation).expect("just found or made");
        joined.observers.insert(place.clone());
        joined.state_len = response.payload.len();
        let version = joined.version;
        let serial = self.next();
        if !proven {
            self.unproven.insert(serial, place.clone());
        }
        let observer = Observer {
            observation,
            confirmable: match response.notifications {
                Notifications::AsRequested => request.kind == Kind::Confirmable,
                Notifications::NonConfirmable => false,
            },
            block: request.options.get_uint(OptionNumber::BLOCK2),
            format: response.options.get_uint(OptionNumber::CONTENT_FORMAT),
            confirmed: now,
            next: now,
            latest: None,
            version,
            waits: None,
            unproven: (!proven).then_some(serial),
            reserve: 0,
            acknowledged: false,
        };
        self.observers.insert(place, observer);
        *self.by_source.entry(source).or_default() += 1;
        Some(self.advance())
    }
    /// Changes how many observers there may be. Those that there are stay.
    pub const fn set_max(&mut self, observers_max: usize) {
        self.observers_max = observers_max;
    }
    /// Whether all places are taken, or those of the peer's source.
    pub fn is_full_for(&self, peer: P) -> bool {
        self.is_full() || self.has_share(peer.source())
    }
    fn is_full(&self) -> bool {
        self.observers() >= self.observers_max
    }
    fn has_share(&self, source: P) -> bool {
        self.by_source.get(&source).is_some_and(|count| *count >= self.per_source_max)
    }
    /// Forgets the oldest observer whose address is still unproven, of all or of one source; false if there is none.
    fn displace(&mut self, source: Option<P>, is_proven: &impl Fn(P) -> bool) -> bool {
        let of_source = |place: &Observed<P>| source.is_none_or(|one| place.0.source() == one);
        while let Some(serial) =
            self.unproven.iter().find(|(_, place)| of_source(place)).map(|(serial, _)| *serial)
        {
            let Some(place) = self.unproven.remove(&serial) else { break };
            if !is_proven(place.0) {
                return self.remove(place.0, &place.1);
            }
            // It has proven its address since.
            if let Some(observer) = self.observers.get_mut(&place) {
                observer.unproven = None;
            }
        }
        false
    }
    /// Sets octets of credit aside for the notifications of an observer.
    pub fn reserve(&mut self, peer: P, token: &Token, octets: usize) {
        if let Some(observer) = self.observers.get_mut(&(peer, token.clone())) {
            observer.reserve = octets;
        }
    }
    /// Something came from a peer, which may have credit again.
    pub fn on_heard(&mut self, peer: P, now: Instant) {
        let from = self.withheld.range((peer, Token::EMPTY)..);
        let own: Vec<_> = from.take_while(|(one, _)| *one == peer).cloned().collect();
        for place in own {
            self.withheld.remove(&place);
            self.wait(&place, now);
        }
    }
    /// Octets of the states that wait to be sent.
    pub const fn state_octets(&self) -> usize {
        self.octets
    }
    /// Octets of the requests that are kept.
    #[cfg(test)]
    pub(crate) fn request_octets(&self) -> usize {
        let all = self.observations.values().map(|one| &one.request);
        all.map(|one| one.options.as_bytes().len() + one.payload.len()).sum()
    }
    /// Octets of the state that the application told last for an observation, about as many as it will tell
    /// next.
    pub fn state_len(&self, id: ObservationId) -> usize {
        self.observations.get(&id).map_or(0, |one| one.state_len)
    }
    /// Whether a state of an observation can be kept until it is sent: states that wait have `octets_max`
    /// octets together, but one alone may be of any length. Its length is noted.
    pub fn has_room_for(
        &mut self,
        id: ObservationId,
        state: &ResponseTemplate,
        octets_max: usize,
    ) -> bool {
        let Some(observation) = self.observations.get_mut(&id) else { return true };
        observation.state_len = state.payload.len();
        let replaced = observation.latest.as_ref().map_or(0, |before| before.payload.len());
        let others = self.octets - replaced;
        others == 0 || others + state.payload.len() <= octets_max
    }
    /// Forgets the states that wait to be sent: the application is asked for each of them again when its turn comes.
    pub fn forget_states(&mut self) {
        for observation in self.observations.values_mut() {
            observation.latest = None;
        }
        self.octets = 0;
    }
    /// The next observation whose state the application has to be asked for once more.
    pub fn next_stale(&mut self) -> Option<ObservationId> {
        self.stale.pop()
    }
    /// Forgets an observer; true if it was one.
    pub fn remove(&mut self, peer: P, token: &Token) -> bool {
        let place = (peer, token.clone());
        let known = self.take_out(&place);
        if known {
            self.left.push(place);
        }
        known
    }
    /// The next observer that was forgotten, for layers that keep something of it.
    pub fn next_left(&mut self) -> Option<(P, Token)> {
        self.left.pop()
    }
    fn take_out(&mut self, place: &Observed<P>) -> bool {
        let Some(gone) = self.observers.remove(place) else { return false };
        let source = place.0.source();
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
        if let Some(waits) = gone.waits {
            self.waiting.remove(waits);
            self.waits_no_more(gone.observation);
        }
        self.withheld.remove(place);
        if let Some(serial) = gone.unproven {
            self.unproven.remove(&serial);
        }
        if let Some((handle, _)) = gone.latest {
            self.in_flight.remove(&handle);
        }
        if let Some(observation) = self.observations.get_mut(&gone.observation) {
            observation.observers.remove(place);
            if observation.observers.is_empty() {
                self.forget(gone.observation);
            }
        }
        true
    }
    /// Forgets every observation of a peer.
    pub fn remove_peer(&mut self, peer: P) {
        let tokens: Vec<Token> = self.of_peer(peer).map(|(_, token)| token.clone()).collect();
        for token in tokens {
            self.remove(peer, &token);
        }
    }
    /// The observations of a path.
    pub fn on_path(&self, path: &[&[u8]]) -> Vec<ObservationId> {
        let matching = self.observations.iter().filter(|(_, one)| one.path == path);
        matching.map(|(id, _)| *id).collect()
    }
    /// The observation that `request` would join.
    pub fn like(&self, request: &Message) -> Option<ObservationId> {
        self.by_key.get(&(RequestKey::of(request), request.payload.clone())).copied()
    }
    /// Every observation.
    pub fn all(&self) -> Vec<ObservationId> {
        self.observations.keys().copied().collect()
    }
    /// One of the observers of an observation, a proven one if there is any, and the request that the application answers for all of
    /// them.
    pub fn question(
        &mut self,
        id: ObservationId,
        is_proven: impl Fn(P) -> bool,
    ) -> Option<(P, Message)> {
        let observation = self.observations.get_mut(&id)?;
        observation.asked = observation.version;
        // One that was proven when it registered, or has acknowledged a notification, may be unknown to the
        // transport by now.
        let proven = |place: &&Observed<P>| {
            let noted = self.observers.get(*place).is_some_and(|one| one.unproven.is_none());
            noted || is_proven(place.0)
        };
        let mut all = observation.observers.iter();
        let (peer, _) = all.find(proven).or_else(|| observation.observers.first())?;
        Some((*peer, observation.request.clone()))
    }
    /// The state of an observation has changed. True if an observer can be notified of it now; the others ask
    /// for it when they can.
    pub fn on_change(&mut self, id: ObservationId) -> bool {
        let Some(observation) = self.observations.get_mut(&id) else { return false };
        observation.version += 1;
        let ready = |place: &Observed<P>| {
            let in_flight = |one: &Observer| matches!(one.latest, Some((_, Kind::Confirmable)));
            let free = self.observers.get(place).is_some_and(|one| !in_flight(one));
            free && !self.withheld.contains(place)
        };
        observation.observers.iter().any(ready)
    }
    /// The application has answered for an observation: those who are behind wait to be notified. An error
    /// ends the observation once they have been.
    pub fn on_state(&mut self, id: ObservationId, state: ResponseTemplate, now: Instant) {
        let sequence = self.advance();
        let Some(observation) = self.observations.get_mut(&id) else { return };
        observation.sequence = sequence;
        observation.told = observation.asked;
        let told = observation.told;
        self.octets += state.payload.len();
        if let Some(before) = observation.latest.replace(state) {
            self.octets -= before.payload.len();
        }
        let observers: Vec<Observed<P>> = observation.observers.iter().cloned().collect();
        for place in observers {
            if self.observers.get(&place).is_some_and(|one| one.version < told) {
                self.wait(&place, now);
            }
        }
        self.drop_state_if_unused(id);
    }
    /// A notification has ended; false if `handle` names none.
    pub fn on_end(&mut self, handle: Handle, end: End, now: Instant) -> bool {
        let Some(place) = self.in_flight.remove(&handle) else { return false };
        if end == End::Gone {
            // RFC 7641 s4.5: after RST or a timeout the client is no longer an observer.
            self.remove(place.0, &place.1);
            return true;
        }
        let Some(observer) = self.observers.get_mut(&place) else { return true };
        observer.latest = None;
        match end {
            End::Deferred => {
                observer.version = 0;
                self.wait(&place, now + NOTIFICATION_GAP);
                return true;
            }
            End::Unheard => {
                observer.version = 0;
                self.withheld.insert(place);
                return true;
            }
            End::Delivered | End::Gone => {}
        }
        observer.confirmed = now;
        observer.acknowledged = true;
        if let Some(serial) = observer.unproven.take() {
            self.unproven.remove(&serial);
        }
        let (id, version) = (observer.observation, observer.version);
        if self.observations.get(&id).is_some_and(|one| version < one.version) {
            self.wait(&place, now);
        }
        true
    }
    /// The observer that a notification is for.
    pub fn peer_of(&self, handle: Handle) -> Option<P> {
        self.in_flight.get(&handle).map(|(peer, _)| *peer)
    }
    /// When [`Registry::next_notification`] has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.next_deadline()
    }
    /// The peer that is notified next once there is room among the unproven.
    pub fn first_crowded(&self) -> Option<P> {
        self.waiting.first_crowded().map(|(peer, _)| *peer)
    }
    /// The notification of the observer whose turn it is, under the name `handle`; `None` if nobody is to
    /// be notified now.
    ///
    /// Until something shows that its address is right, an observer is notified with CON only, and within
    /// the credit of its address.
    pub fn next_notification(
        &mut self,
        now: Instant,
        handle: Handle,
        standing: impl Fn(P) -> Standing,
    ) -> Option<Notification<P>> {
        while let Some((place, turn)) = self.waiting.pop(now, |place| standing(place.0).room_at) {
            let standing = standing(place.0);
            let id = self.observers.get_mut(&place).map(|one| {
                one.waits = None;
                one.observation
            });
            let notification = self.notify(&place, turn, handle, standing, now);
            if let Some(id) = id {
                self.waits_no_more(id);
            }
            if notification.is_some() {
                return notification;
            }
        }
        None
    }

    /// The notification of the latest state for an observer, unless it has to wait.
    fn notify(
        &mut self,
        place: &Observed<P>,
        turn: u64,
        handle: Handle,
        standing: Standing,
        now: Instant,
    ) -> Option<Notification<P>> {
        let observer = self.observers.get_mut(place)?;
        let id = observer.observation;
        if matches!(observer.latest, Some((_, Kind::Confirmable))) {
            return None;
        }
        // What it has acknowledged has proven its address, whatever its transport remembers.
        let proven = standing.proven || observer.acknowledged;
        if proven && let Some(serial) = observer.unproven.take() {
            self.unproven.remove(&serial);
        }
        if let Some(at) = standing.room_at.filter(|_| !proven) {
            self.wait_for_room(place, turn, at);
            return None;
        }
        let observation = self.observations.get(&id)?;
        let Some(state) = &observation.latest else {
            self.stale.push(id);
            return None;
        };
        let credit = standing.credit.saturating_add(observer.reserve);
        let needs = state.shortest_len(place.1.encoded_len()) + DATAGRAM_OVERHEAD;
        if !proven && needs > credit {
            self.withheld.insert(place.clone());
            return None;
        }
        // RFC 7641 s4.5: at least every 24 hours a notification MUST be CON.
        let silent = now.since(observer.confirmed) >= CONFIRM_AFTER;
        let confirmable = observer.confirmable || !proven || silent;
        // RFC 7641 s4.5.1: without an estimate of the RTT, one NON every 3 s at most.
        if !confirmable && observer.next > now {
            let next = observer.next;
            self.wait(place, next);
            return None;
        }
        observer.version = observation.told;
        let reserve = core::mem::take(&mut observer.reserve);
        let acknowledged = observer.acknowledged;
        observer.next = now + NOTIFICATION_GAP;
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        if let Some((before, _)) = observer.latest.replace((handle, kind)) {
            self.in_flight.remove(&before);
        }
        let (block, format) = (observer.block, observer.format);
        self.in_flight.insert(handle, place.clone());
        let observation = self.observations.get(&id)?;
        let (response, ends) = observation.response(format)?;
        let key = RequestKey::of(&observation.request);
        if ends {
            self.remove(place.0, &place.1);
        }
        let (peer, token) = place.clone();
        Some(Notification { peer, token, confirmable, key, block, response, reserve, acknowledged })
    }

    /// Puts an observer behind all others that may be notified from `at` on, unless it waits already.
    fn wait(&mut self, place: &Observed<P>, at: Instant) {
        let Some(observer) = self.observers.get_mut(place) else { return };
        if observer.waits.is_some() || self.withheld.contains(place) {
            return;
        }
        observer.waits = Some(self.waiting.push(place.clone(), at));
        if let Some(observation) = self.observations.get_mut(&observer.observation) {
            observation.waiting += 1;
        }
    }
    /// An observer keeps its turn until there is room among the unproven, at the latest at `room_at`.
    fn wait_for_room(&mut self, place: &Observed<P>, turn: u64, room_at: Instant) {
        let Some(observer) = self.observers.get_mut(place) else { return };
        self.waiting.push_crowded(place.clone(), turn, room_at);
        observer.waits = Some(turn);
        if let Some(observation) = self.observations.get_mut(&observer.observation) {
            observation.waiting += 1;
        }
    }
    /// One observer fewer waits for the state of an observation, which is kept as long as any does.
    fn waits_no_more(&mut self, id: ObservationId) {
        if let Some(observation) = self.observations.get_mut(&id) {
            observation.waiting -= 1;
        }
        self.drop_state_if_unused(id);
    }
    fn drop_state_if_unused(&mut self, id: ObservationId) {
        if let Some(observation) = self.observations.get_mut(&id)
            && observation.waiting == 0
            && let Some(state) = observation.latest.take()
        {
            self.octets -= state.payload.len();
        }
    }
    fn of_peer(&self, peer: P) -> impl Iterator<Item = &Observed<P>> {
        let from = self.observers.range((peer, Token::EMPTY)..);
        from.map(|(place, _)| place).take_while(move |(one, _)| *one == peer)
    }
    /// The observation that a request is part of, a new one if need be.
    fn observation_of(&mut self, request: &Message) -> ObservationId {
        if let Some(id) = self.like(request) {
            return id;
        }
        let id = ObservationId(self.next());
        self.by_key.insert((RequestKey::of(request), request.payload.clone()), id);
        self.observations.insert(id, Observation::new(request));
        id
    }
    fn forget(&mut self, id: ObservationId) {
        if let Some(gone) = self.observations.remove(&id) {
            self.octets -= gone.latest.map_or(0, |state| state.payload.len());
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
    /// The latest state as a notification for an observer whose first response had `format`, and whether
    /// it ends the observation.
    fn response(&self, format: Option<u32>) -> Option<(ResponseTemplate, bool)> {
        let state = self.latest.as_ref()?;
        // RFC 7641 s4.2: an error ends the observation, and has no Observe option.
        if state.code.class() != Class::Success {
            return Some((state.clone(), true));
        }
        // RFC 7641 s4.2: a state in another Content-Format than the first one is 4.06.
        let changed = state.options.get_uint(OptionNumber::CONTENT_FORMAT) != format;
        if state.code == Code::CONTENT && changed {
            return Some((ResponseTemplate::new(Code::NOT_ACCEPTABLE), true));
        }
        let mut response = state.clone();
        response.options.set_uint(OptionNumber::OBSERVE, self.sequence);
        Some((response, false))
    }
}

#[cfg(test)]
mod tests;
