//! The observers of a server (RFC 7641 s4): who is behind, and in which order they are notified.
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
//! Its parts: [`Observers`] bounds who is registered, [`Observations`] keeps what they observe, and [`Waiting`] is the
//! queue.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Kind, Message, Token};

use super::notification::{End, Notification, Standing};
use super::observation::{ObservationId, Observations, ObserverId};
use super::observer::{Observer, Observers};
use super::waiting::Waiting;
use crate::PeerAddress;
use crate::blockwise::{BodyKey, RequestKey};
use crate::event::ResponseTemplate;
use crate::exchange::{Association, Name};
use crate::params::{CONFIRM_AFTER, NOTIFICATION_GAP};

/// All observations of a server.
#[derive(Debug)]
pub struct Registry<P> {
    observations: Observations<P>,
    observers: Observers<P>,
    /// Observers that are behind.
    waiting: Waiting<ObserverId<P>>,
    /// Observers without credit: they wait until something comes from them.
    withheld: BTreeSet<ObserverId<P>>,
    in_flight: BTreeMap<Name, ObserverId<P>>,
    /// Observations whose latest state is gone although an observer needs it.
    stale: Vec<ObservationId>,
    /// Observers that were forgotten, until [`Registry::next_left`] has named them.
    left: Vec<ObserverId<P>>,
}

impl<P: PeerAddress> Registry<P> {
    /// At most `observers_max` observers, `per_source_max` of each source.
    pub const fn new(observers_max: usize, per_source_max: usize) -> Self {
        Self {
            observations: Observations::new(),
            observers: Observers::new(observers_max, per_source_max),
            waiting: Waiting::new(),
            withheld: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            stale: Vec::new(),
            left: Vec::new(),
        }
    }
    /// Observers of all resources.
    pub fn observers(&self) -> usize {
        self.observers.len()
    }
    /// Registers the client of a request whose `response` has succeeded; returns the value of the
    /// response's Observe option, or `None` if there is no room, or if its token is that of an observer under another
    /// association: then the response leaves without the option (RFC 7641 s4.1). When all places are taken, or those
    /// of its source, the oldest unproven observer, of its source, gives way to a proven one.
    pub fn register(
        &mut self,
        (peer, association): (P, &Association),
        request: &Message,
        response: &ResponseTemplate,
        is_proven: impl Fn(P) -> bool,
        now: Instant,
    ) -> Option<u32> {
        let proven = is_proven(peer);
        let id = (peer, request.token.clone());
        // RFC 8613 s4.1.3.5: SHOULD NOT remove an active observation because of a request with its token.
        if self.observers.get(&id).is_some_and(|one| one.association != *association) {
            return None;
        }
        // RFC 7641 s4.1: an entry with the same endpoint and token is replaced.
        self.take_out(&id);
        let source = peer.source();
        if self.observers.has_share(source) && !(proven && self.displace(Some(source), &is_proven))
        {
            return None;
        }
        if self.observers.is_full() && !(proven && self.displace(None, &is_proven)) {
            return None;
        }
        let joined = self.observations.join(request, id.clone(), response.payload.len());
        let observer = Observer::new(request, association, response, joined, now);
        self.observers.insert(id, observer, proven);
        Some(self.observations.next_sequence())
    }
    /// Changes the maximum number of observers. Those that there are stay.
    pub const fn set_max(&mut self, observers_max: usize) {
        self.observers.set_max(observers_max);
    }
    /// Whether all places are taken, or those of the peer's source.
    pub fn is_full_for(&self, peer: P) -> bool {
        self.observers.is_full() || self.observers.has_share(peer.source())
    }
    /// Forgets the oldest observer whose address is still unproven, of one source or of all; false if there is none.
    fn displace(&mut self, source: Option<P>, is_proven: &impl Fn(P) -> bool) -> bool {
        while let Some(id) = self.observers.oldest_unproven(source).cloned() {
            if !is_proven(id.0) {
                return self.remove(id.0, &id.1);
            }
            // It has proven its address since.
            self.observers.prove(&id);
        }
        false
    }
    /// An observer has asked a group, so its notifications are spread over a leisure.
    pub fn spread(&mut self, peer: P, token: &Token) {
        if let Some(observer) = self.observers.get_mut(&(peer, token.clone())) {
            observer.by_group = true;
        }
    }
    /// Sets octets of credit aside for the notifications of an observer.
    pub fn reserve(&mut self, peer: P, token: &Token, octets: usize) {
        if let Some(observer) = self.observers.get_mut(&(peer, token.clone())) {
            observer.reserve = octets;
        }
    }
    /// A message arrived from a peer, which may have credit again.
    pub fn on_heard(&mut self, peer: P, now: Instant) {
        let from = self.withheld.range((peer, Token::EMPTY)..);
        let own: Vec<_> = from.take_while(|(one, _)| *one == peer).cloned().collect();
        for id in own {
            self.withheld.remove(&id);
            self.wait(&id, now);
        }
    }
    /// Octets of the states that wait to be sent.
    pub const fn state_octets(&self) -> usize {
        self.observations.state_octets()
    }
    /// Octets of the requests that are kept.
    #[cfg(test)]
    pub(crate) fn request_octets(&self) -> usize {
        self.observations.request_octets()
    }
    /// Octets of the state that the application gave last for an observation. The next one is expected to be about as
    /// long.
    pub fn state_len(&self, id: ObservationId) -> usize {
        self.observations.state_len(id)
    }
    /// Whether a state of an observation can be kept until it is sent: states that wait have `octets_max`
    /// octets together, but one alone may be of any length. Its length is noted.
    pub fn has_room_for(
        &mut self,
        id: ObservationId,
        state: &ResponseTemplate,
        octets_max: usize,
    ) -> bool {
        self.observations.has_room_for(id, state, octets_max)
    }
    /// Forgets the states that wait to be sent: the application is asked for each of them again when its turn comes.
    pub fn forget_states(&mut self) {
        self.observations.forget_states();
    }
    /// The next observation whose state the application has to be asked for once more.
    pub fn next_stale(&mut self) -> Option<ObservationId> {
        self.stale.pop()
    }
    /// A client no longer observes. An observer under another association stays.
    pub fn deregister(&mut self, peer: P, association: &Association, token: &Token) {
        let observer = self.observers.get(&(peer, token.clone()));
        if observer.is_some_and(|one| one.association == *association) {
            self.remove(peer, token);
        }
    }
    /// Forgets an observer; true if it was one.
    pub fn remove(&mut self, peer: P, token: &Token) -> bool {
        let id = (peer, token.clone());
        let known = self.take_out(&id);
        if known {
            self.left.push(id);
        }
        known
    }
    /// The next observer that was forgotten, for layers that keep something of it.
    pub fn next_left(&mut self) -> Option<(P, Token)> {
        self.left.pop()
    }
    fn take_out(&mut self, id: &ObserverId<P>) -> bool {
        let Some(gone) = self.observers.remove(id) else { return false };
        if let Some(turn) = gone.turn {
            self.waiting.remove(turn);
            self.observations.remove_waiting(gone.observation);
        }
        self.withheld.remove(id);
        if let Some((handle, _)) = gone.latest {
            self.in_flight.remove(&handle);
        }
        self.observations.leave(gone.observation, id);
        true
    }
    /// Forgets every observation of a peer.
    pub fn remove_peer(&mut self, peer: P) {
        let tokens: Vec<Token> = self.observers.tokens_of(peer).cloned().collect();
        for token in tokens {
            self.remove(peer, &token);
        }
    }
    /// The observations of a path.
    pub fn on_path(&self, path: &[&[u8]]) -> Vec<ObservationId> {
        self.observations.on_path(path)
    }
    /// The observation that `request` would join.
    pub fn like(&self, request: &Message) -> Option<ObservationId> {
        self.observations.like(request)
    }
    /// Every observation.
    pub fn all(&self) -> Vec<ObservationId> {
        self.observations.ids()
    }
    /// One of the observers of an observation, a proven one if there is any, and the request that the application
    /// answers for all of them.
    pub fn question(
        &mut self,
        id: ObservationId,
        is_proven: impl Fn(P) -> bool,
    ) -> Option<(P, Message)> {
        let observation = self.observations.ask(id)?;
        // The transport may have forgotten that an observer was proven when it registered, or has acknowledged a
        // notification.
        let proven = |id: &&ObserverId<P>| self.observers.is_proven(id) || is_proven(id.0);
        let mut all = observation.observers.iter();
        let (peer, _) = all.find(proven).or_else(|| observation.observers.first())?;
        Some((*peer, observation.request.clone()))
    }
    /// The state of an observation has changed. True if an observer can be notified of it now; the others ask
    /// for it when they can.
    pub fn on_change(&mut self, id: ObservationId) -> bool {
        let Some(observation) = self.observations.change(id) else { return false };
        let ready = |id: &ObserverId<P>| {
            let free = self.observers.get(id).is_some_and(|one| !one.awaits_acknowledgement());
            free && !self.withheld.contains(id)
        };
        observation.observers.iter().any(ready)
    }
    /// The application has answered for an observation: the observers that are behind wait to be notified. An error
    /// ends the observation once they have been. Each observer that has asked a group waits for a `pause`.
    pub fn on_state(
        &mut self,
        id: ObservationId,
        state: ResponseTemplate,
        mut pause: impl FnMut() -> Duration,
        now: Instant,
    ) {
        let Some(observation) = self.observations.keep_state(id, state) else { return };
        let is_behind = |id: &&ObserverId<P>| {
            self.observers.get(id).is_some_and(|one| one.version < observation.latest_version)
        };
        let behind: Vec<_> = observation.observers.iter().filter(is_behind).cloned().collect();
        for observer in behind {
            let by_group = self.observers.get(&observer).is_some_and(|one| one.by_group);
            let at = if by_group { now + pause() } else { now };
            self.wait(&observer, at);
        }
        self.observations.drop_unused_state(id);
    }
    /// A notification has ended; false if `handle` names none.
    pub fn on_end(&mut self, handle: Name, end: End, now: Instant) -> bool {
        let Some(id) = self.in_flight.remove(&handle) else { return false };
        if end == End::Gone {
            // RFC 7641 s4.5: after RST or a timeout the client is no longer an observer.
            self.remove(id.0, &id.1);
            return true;
        }
        let Some(observer) = self.observers.get_mut(&id) else { return true };
        observer.latest = None;
        match end {
            End::Deferred => {
                observer.version = 0;
                self.wait(&id, now + NOTIFICATION_GAP);
                return true;
            }
            End::Unheard => {
                observer.version = 0;
                self.withheld.insert(id);
                return true;
            }
            End::Delivered | End::Gone => {}
        }
        observer.confirmed = now;
        observer.acknowledged = true;
        let (observation, version) = (observer.observation, observer.version);
        self.observers.prove(&id);
        if self.observations.get(observation).is_some_and(|one| version < one.version) {
            self.wait(&id, now);
        }
        true
    }
    /// The observer that a notification is for.
    pub fn peer_of(&self, handle: Name) -> Option<P> {
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
        handle: Name,
        standing: impl Fn(P) -> Standing,
    ) -> Option<Notification<P>> {
        while let Some((id, turn)) = self.waiting.pop(now, |id| standing(id.0).room_at) {
            let standing = standing(id.0);
            let observation = self.observers.get_mut(&id).map(|one| {
                one.turn = None;
                one.observation
            });
            let notification = self.notify(&id, turn, handle, standing, now);
            if let Some(observation) = observation {
                self.observations.remove_waiting(observation);
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
        id: &ObserverId<P>,
        turn: u64,
        handle: Name,
        standing: Standing,
        now: Instant,
    ) -> Option<Notification<P>> {
        let observer = self.observers.get(id)?;
        if observer.awaits_acknowledgement() {
            return None;
        }
        // An acknowledgement has proven the address, even if the transport has forgotten it.
        let proven = standing.proven || observer.acknowledged;
        if proven {
            self.observers.prove(id);
        }
        if let Some(at) = standing.room_at.filter(|_| !proven) {
            self.wait_for_room(id, turn, at);
            return None;
        }
        let observer = self.observers.get_mut(id)?;
        let observation = self.observations.get(observer.observation)?;
        let Some(state) = &observation.latest else {
            self.stale.push(observer.observation);
            return None;
        };
        let credit = standing.credit.saturating_add(observer.reserve);
        let needs = state.shortest_len(id.1.encoded_len()) + id.0.overhead();
        if !proven && needs > credit {
            self.withheld.insert(id.clone());
            return None;
        }
        // RFC 7641 s4.5: at least every 24 hours a notification MUST be CON.
        let silent = now.since(observer.confirmed) >= CONFIRM_AFTER;
        let confirmable = observer.confirmable || !proven || silent;
        // RFC 7641 s4.5.1: without an estimate of the RTT, one NON every 3 s at most.
        if !confirmable && observer.next_non > now {
            let next = observer.next_non;
            self.wait(id, next);
            return None;
        }
        observer.version = observation.latest_version;
        let reserve = core::mem::take(&mut observer.reserve);
        let acknowledged = observer.acknowledged;
        observer.next_non = now + NOTIFICATION_GAP;
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        if let Some((before, _)) = observer.latest.replace((handle, kind)) {
            self.in_flight.remove(&before);
        }
        self.in_flight.insert(handle, id.clone());
        let (response, ends) = observation.response(observer.format)?;
        let request = RequestKey::of(&observation.request);
        let (key, block) = (BodyKey::new(&observer.association, &request), observer.block);
        if ends {
            self.remove(id.0, &id.1);
        }
        let (peer, token) = id.clone();
        Some(Notification { peer, token, confirmable, key, block, response, reserve, acknowledged })
    }

    /// Puts an observer behind all others that may be notified from `at` on, unless it waits already.
    fn wait(&mut self, id: &ObserverId<P>, at: Instant) {
        let Some(observer) = self.observers.get_mut(id) else { return };
        if observer.turn.is_some() || self.withheld.contains(id) {
            return;
        }
        observer.turn = Some(self.waiting.push(id.clone(), at));
        self.observations.add_waiting(observer.observation);
    }
    /// An observer keeps its turn until there is room among the unproven, at the latest at `room_at`.
    fn wait_for_room(&mut self, id: &ObserverId<P>, turn: u64, room_at: Instant) {
        let Some(observer) = self.observers.get_mut(id) else { return };
        self.waiting.push_crowded(id.clone(), turn, room_at);
        observer.turn = Some(turn);
        self.observations.add_waiting(observer.observation);
    }
}

#[cfg(test)]
mod tests;
