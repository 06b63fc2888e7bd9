//! The notifier of a host (RFC 7641 s4): it asks the application for new states, and sends them to their
//! observers while there is room.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, earliest};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options};

use super::event::{IncomingId, Output, StateId};
use super::exchange_layer::ExchangeLayer;
use super::pace::Pace;
use super::refreshes::{Refreshes, Room};
use super::{HostLimits, Transport};
use crate::PeerAddress;
use crate::blockwise::{Block, Representations, protected_surplus};
use crate::event::ResponseTemplate;
use crate::exchange::{Input, Name};
use crate::observe::{End, Notification, ObservationId, Registry, Standing};
use crate::params::{BLOCK_OPTIONS_OVERHEAD, STATES_MAX};

/// The observers of a server, and what they are still to be told.
#[derive(Debug)]
pub(super) struct Notifier<P> {
    pub(super) registry: Registry<P>,
    refreshes: Refreshes,
    /// The bursts of notifications.
    pace: Pace,
}

impl<P: PeerAddress> Notifier<P> {
    pub(super) const fn new(limits: &HostLimits) -> Self {
        let registry = Registry::new(limits.observers_max, limits.observers_per_source);
        Self { registry, refreshes: Refreshes::new(), pace: Pace::new() }
    }
    /// When the next notification can leave. Without room the transport has to make progress first.
    pub(super) fn next_deadline<T: Transport<P>>(
        &self,
        layer: &ExchangeLayer<P, T>,
    ) -> Option<Instant> {
        let crowded = self.registry.first_crowded();
        let crowded =
            crowded.filter(|peer| layer.transport.room_at(*peer, Instant::ZERO).is_none());
        let due = earliest(self.registry.next_deadline(), crowded.map(|_| Instant::ZERO));
        let due = due.filter(|_| layer.transport.has_room());
        due.map(|due| due.max(self.pace.not_before()))
    }
    /// Whether an observer is to be notified now, and can be.
    pub(super) fn notifies<T: Transport<P>>(
        &self,
        layer: &ExchangeLayer<P, T>,
        now: Instant,
    ) -> bool {
        let due = self.registry.next_deadline().is_some_and(|due| due <= now);
        let crowded = self.registry.first_crowded();
        let room = crowded.is_some_and(|peer| layer.transport.room_at(peer, now).is_none());
        (due || room) && layer.transport.has_room() && self.pace.not_before() <= now
    }
    /// Asks for the states that observers miss, and tells the transport which observers have left.
    pub(super) fn settle<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        now: Instant,
    ) {
        while let Some(id) = self.registry.next_stale() {
            self.refreshes.changed(id);
        }
        self.ask_for_states(layer, now);
        while let Some((peer, token)) = self.registry.next_left() {
            layer.transport.on_observer_left(peer, &token);
        }
    }
    /// The state of an observation has changed.
    fn on_change(&mut self, id: ObservationId) {
        if self.registry.on_change(id) {
            self.refreshes.changed(id);
        }
    }
    /// The state of the resource at a path has changed: its observers are notified. For each different
    /// request among theirs comes an [`Output::Request`] that asks for the new state, a few at a time.
    pub(super) fn changed<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        path: &str,
        now: Instant,
    ) {
        let mut options = Options::new();
        options.insert_path(path);
        let path: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
        for id in self.registry.on_path(&path) {
            self.on_change(id);
        }
        self.ask_for_states(layer, now);
    }
    /// The same for the observers whose requests are like this one. A proxy knows what has changed elsewhere only by
    /// the request.
    pub(super) fn request_changed<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        request: &Message,
        now: Instant,
    ) {
        if let Some(id) = self.registry.like(request) {
            self.on_change(id);
        }
        self.ask_for_states(layer, now);
    }
    /// The same for all observers.
    pub(super) fn all_changed<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        now: Instant,
    ) {
        for id in self.registry.all() {
            self.on_change(id);
        }
        self.ask_for_states(layer, now);
    }

    /// Asks the application for states that have changed, as many as may be asked for at a time.
    pub(super) fn ask_for_states<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        now: Instant,
    ) {
        loop {
            let (registry, transport) = (&mut self.registry, &layer.transport);
            let room = Room { kept: registry.state_octets(), max: STATES_MAX };
            let next = self.refreshes.next(now, room, |id| registry.state_len(id));
            let Some((question, id)) = next else { return };
            match registry.question(id, |peer| transport.is_proven(peer)) {
                Some((from, message)) => {
                    let (exchange, multicast) = (IncomingId::State(question), false);
                    layer.outbox.push(Output::Request { exchange, from, message, multicast });
                }
                // Its observers have left meanwhile.
                None => drop(self.refreshes.end(question)),
            }
        }
    }
    /// The application gives the state of an observed resource; false if it was not asked for one.
    pub(super) fn on_state<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        representations: &mut Representations<P>,
        question: StateId,
        state: ResponseTemplate,
        now: Instant,
    ) -> bool {
        let Some(id) = self.refreshes.end(question) else { return false };
        // A challenge is for a client, and says nothing about the state.
        if !is_challenge(&state) {
            if self.registry.has_room_for(id, &state, STATES_MAX) {
                // RFC 10020 s3.7: the members of a group spread their notifications as their answers.
                let leisure = layer.transport.leisure(state.shortest_len(0) + state.payload.len());
                let rng = &mut layer.rng;
                let pause = || rng.duration(Duration::ZERO, leisure);
                self.registry.on_state(id, state, pause, now);
            } else {
                self.refreshes.changed(id);
            }
        }
        self.notify_waiting(layer, representations, now);
        self.ask_for_states(layer, now);
        true
    }
    /// The application does not give the state of an observed resource.
    pub(super) fn decline_state<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        question: StateId,
        now: Instant,
    ) {
        self.refreshes.end(question);
        self.ask_for_states(layer, now);
    }
    /// Notifies observers in turn, while there is room.
    pub(super) fn notify_waiting<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        representations: &mut Representations<P>,
        now: Instant,
    ) {
        while self.notifies(layer, now) {
            let (handle, transport) = (layer.next_name(), &layer.transport);
            let standing = |peer: P| Standing {
                proven: transport.is_proven(peer),
                credit: transport.credit(peer, now).saturating_add(peer.overhead()),
                room_at: transport.room_at(peer, now),
            };
            let due = self.registry.next_notification(now, handle, standing);
            if let Some(notification) = due {
                self.pace.take(now);
                self.notify(layer, representations, notification, handle, now);
            }
        }
    }
    fn notify<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        representations: &mut Representations<P>,
        notification: Notification<P>,
        handle: Name,
        now: Instant,
    ) {
        let Notification { peer, token, confirmable, key, block, response, .. } = notification;
        if notification.acknowledged {
            layer.transport.prove(peer, now);
        } else if notification.reserve > 0 {
            layer.transport.grant(peer, notification.reserve, now);
        }
        // To an unproven address a notification is no larger than its credit; the observer can ask for the
        // other blocks.
        let overhead = response.encoded_len(token.encoded_len()) - response.payload.len();
        let surplus = protected_surplus(&response.options, overhead + BLOCK_OPTIONS_OVERHEAD);
        let credit = layer.transport.credit(peer, now);
        let most = layer.affordable(peer, credit, overhead, surplus);
        let wanted = block.map(Block::from_value);
        let proven = layer.transport.is_proven(peer);
        let mut response = response;
        if response.code.class() != Class::Success && response.payload.len() > most.1 {
            // RFC 7252 s5.5.2: the text of an error is for people; the code alone ends the observation.
            response.payload.clear();
        }
        let tables = representations;
        let response = tables.answer((peer, key), response, wanted, most, proven, now);
        let observer = token.clone();
        let input = Input::Notify { peer, token, response, confirmable, handle };
        if layer.transport.handle(now, input).is_err() {
            let known = layer.transport.keeps_observer(peer, &observer);
            let end = if known { End::Deferred } else { End::Gone };
            self.registry.on_end(handle, end, now);
        }
    }
    /// True if `handle` is a notification's.
    pub(super) fn on_acknowledged(&mut self, handle: Name, now: Instant) -> bool {
        self.registry.on_end(handle, End::Delivered, now)
    }
    /// True if `handle` is a notification's.
    pub(super) fn on_failed<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        handle: Name,
        reason: DropReason,
        now: Instant,
    ) -> bool {
        let peer = self.registry.peer_of(handle);
        let unproven = peer.is_some_and(|peer| !layer.transport.is_proven(peer));
        let end = match reason {
            DropReason::QueueFull => End::Deferred,
            DropReason::GaveUp if unproven => End::Unheard,
            _ => End::Gone,
        };
        self.registry.on_end(handle, end, now)
    }
}

/// Whether an application asks for a challenge with a response: [`ResponseTemplate::challenge`].
pub(super) fn is_challenge(response: &ResponseTemplate) -> bool {
    response.code == Code::UNAUTHORIZED
        && response.options.get(OptionNumber::ECHO).is_some_and(<[u8]>::is_empty)
}
