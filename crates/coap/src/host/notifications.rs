//! A host's notifications (RFC 7641 s4): it asks the application for new states, and sends them to their
//! observers while there is room.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Message, OptionNumber, Options};

use super::refreshes::Room;
use super::server::is_challenge;
use super::{Host, Transport};
use crate::PeerAddress;
use crate::blockwise::Block;
use crate::event::{ExchangeId, Input, Output, ResponseTemplate};
use crate::observe::{End, Notification, Standing};
use crate::params::{DATAGRAM_OVERHEAD, STATES_MAX};

impl<P: PeerAddress, T: Transport<P>> Host<P, T> {
    /// The state of the resource at a path has changed: its observers are notified. For each different
    /// request among theirs comes an [`Output::Request`] that asks for the new state, a few at a time.
    pub fn changed(&mut self, path: &str, now: Instant) {
        let mut options = Options::new();
        options.insert_path(path);
        let path: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
        for id in self.server.registry.on_path(&path) {
            self.server.on_change(id);
        }
        self.ask_for_states(now);
    }
    /// The same for the observers whose requests are like this one. A proxy knows what has changed elsewhere only by
    /// the request.
    pub fn request_changed(&mut self, request: &Message, now: Instant) {
        if let Some(id) = self.server.registry.like(request) {
            self.server.on_change(id);
        }
        self.ask_for_states(now);
    }
    /// The same for all observers.
    pub fn all_changed(&mut self, now: Instant) {
        for id in self.server.registry.all() {
            self.server.on_change(id);
        }
        self.ask_for_states(now);
    }

    /// Asks the application for states that have changed, as many as may be asked for at a time.
    pub(super) fn ask_for_states(&mut self, now: Instant) {
        loop {
            let (registry, transport) = (&mut self.server.registry, &self.transport);
            let room = Room { kept: registry.state_octets(), max: STATES_MAX };
            let next = self.server.refreshes.next(now, room, |id| registry.state_len(id));
            let Some((exchange, id)) = next else { return };
            match registry.question(id, |peer| transport.is_proven(peer)) {
                Some((from, message)) => {
                    let multicast = false;
                    self.outbox.push(Output::Request { exchange, from, message, multicast });
                }
                // Its observers have left meanwhile.
                None => drop(self.server.refreshes.end(exchange)),
            }
        }
    }
    /// The application gives the state of an observed resource; false if it was not asked for one.
    pub(super) fn on_state(
        &mut self,
        exchange: ExchangeId,
        state: ResponseTemplate,
        now: Instant,
    ) -> bool {
        let Some(id) = self.server.refreshes.end(exchange) else { return false };
        // A challenge is for a client, and says nothing about the state.
        if !is_challenge(&state) {
            if self.server.registry.has_room_for(id, &state, STATES_MAX) {
                self.server.registry.on_state(id, state, now);
            } else {
                self.server.refreshes.changed(id);
            }
        }
        self.notify_waiting(now);
        self.ask_for_states(now);
        true
    }
    /// The application does not give the state of an observed resource.
    pub(super) fn decline_state(&mut self, exchange: ExchangeId, now: Instant) {
        self.server.refreshes.end(exchange);
        self.ask_for_states(now);
    }
    /// Notifies observers in turn, while there is room.
    pub(super) fn notify_waiting(&mut self, now: Instant) {
        while self.notifies(now) {
            let (handle, transport) = (self.client.next(), &self.transport);
            let standing = |peer| Standing {
                proven: transport.is_proven(peer),
                credit: transport.credit(peer, now).saturating_add(DATAGRAM_OVERHEAD),
                room_at: transport.room_at(peer, now),
            };
            let due = self.server.registry.next_notification(now, handle, standing);
            if let Some(notification) = due {
                self.pace.take(now);
                self.notify(notification, handle, now);
            }
        }
    }
    fn notify(&mut self, notification: Notification<P>, handle: Handle, now: Instant) {
        let Notification { peer, token, confirmable, key, block, response, .. } = notification;
        if notification.acknowledged {
            self.transport.prove(peer, now);
        } else if notification.reserve > 0 {
            self.transport.grant(peer, notification.reserve, now);
        }
        // To an unproven address a notification is no larger than its credit; the observer can ask for the
        // other blocks.
        let overhead = response.encoded_len(token.encoded_len()) - response.payload.len();
        let most = self.affordable(peer, self.transport.credit(peer, now), overhead);
        let wanted = block.map(Block::from_value);
        let proven = self.transport.is_proven(peer);
        let tables = &mut self.server.representations;
        let response = tables.answer((peer, key), response, wanted, most, proven, now);
        let observer = token.clone();
        let input = Input::Notify { peer, token, response, confirmable, handle };
        if self.transport.handle(now, input).is_err() {
            let known = self.transport.keeps_observer(peer, &observer);
            let end = if known { End::Deferred } else { End::Gone };
            self.server.registry.on_end(handle, end, now);
        }
    }
    /// True if `handle` is a notification's.
    pub(super) fn on_notification_acknowledged(&mut self, handle: Handle, now: Instant) -> bool {
        self.server.registry.on_end(handle, End::Delivered, now)
    }
    /// True if `handle` is a notification's.
    pub(super) fn on_notification_failed(
        &mut self,
        handle: Handle,
        reason: DropReason,
        now: Instant,
    ) -> bool {
        let peer = self.server.registry.peer_of(handle);
        let unproven = peer.is_some_and(|peer| !self.transport.is_proven(peer));
        let end = match reason {
            DropReason::QueueFull => End::Deferred,
            DropReason::GaveUp if unproven => End::Unheard,
            _ => End::Gone,
        };
        self.server.registry.on_end(handle, end, now)
    }
}
