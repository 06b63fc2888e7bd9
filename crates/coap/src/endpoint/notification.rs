//! Notifications (RFC 7641): those of a server on their way to an observer, and those that a client
//! gets for its observation.

use lowmesh_machine::Rejected;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Kind, Message, OptionNumber};

use super::exchange::{Expects, Phase, Role};
use super::message_layer::{Departure, MessageLayer};
use super::outgoing::{NO_MESSAGE_ID, NO_ROOM, OwnExchanges, Wanted};
use crate::PeerAddress;
use crate::event::{Discard, Purpose};
use crate::exchange::{ExchangeId, Name, Output};
use crate::observe::Place;
use crate::params::{MAX_AGE_DEFAULT, REGISTER_AGAIN_MAX, REGISTER_AGAIN_MIN};
use crate::rejection::check_response;

impl<P: PeerAddress> OwnExchanges<P> {
    /// The application tells an observer.
    pub(super) fn notify(
        &mut self,
        layer: &mut MessageLayer<P>,
        peer: P,
        message: Message,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        check_response("notification", message.code)?;
        if message.kind == Kind::Confirmable {
            let (role, expects) = (Role::Notification, Expects::One);
            let (holds_token, verified, registered) = (false, false, false);
            let wanted =
                Wanted { peer, message, role, expects, verified, registered, handle, holds_token };
            return self.enqueue(layer, wanted, now);
        }
        if !layer.admit(peer, now) {
            return Err(NO_ROOM);
        }
        let peer_state = layer.peers.get_mut(&peer).expect("just admitted");
        if !peer_state.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let message_id = peer_state.ids.issue(now);
        // RFC 7641 s3.6: a client may answer a NON notification with RST to end it.
        peer_state.expect_reset(message_id, handle);
        let bytes = Message { message_id, ..message }.to_vec();
        let (copy, purpose) = (0, Purpose::Response);
        layer.send(Departure { to: peer, bytes, handle, copy, purpose }, now);
        Ok(())
    }

    /// A response has come for a request that observes. `None` if it ends the request; else it is
    /// dealt with.
    pub(super) fn on_notification(
        &mut self,
        layer: &mut MessageLayer<P>,
        from: P,
        id: ExchangeId,
        message: Message,
        now: Instant,
    ) -> Option<Message> {
        let exchange = self.all.get_mut(&id)?;
        let Expects::Notifications(newest) = exchange.expects else { return Some(message) };
        // RFC 7641 s3.2: without the option, or with an error, the server keeps no observation.
        let Some(sequence) = message.options.get_uint(OptionNumber::OBSERVE) else {
            return Some(message);
        };
        if message.code.class() != Class::Success {
            return Some(message);
        }
        let place = Place { sequence, arrived: now };
        if !place.is_news(newest, exchange.phase.asked()) {
            layer.outputs.discard(from, Discard::Stale);
            return None;
        }
        exchange.expects = Expects::Notifications(Some(place));
        exchange.registered = true;
        let handle = exchange.handle;
        self.release(layer, id, now);
        // RFC 8613 s4.1.3.1 and s7.4: the Max-Age that counts is inside, and the same octets once more would
        // be a replay.
        let due = if message.options.get(OptionNumber::OSCORE).is_some() {
            None
        } else {
            // RFC 7641 s3.3.1: to register again, the client SHOULD wait 5 to 15 s after Max-Age.
            let jitter = layer.rng.duration(REGISTER_AGAIN_MIN, REGISTER_AGAIN_MAX);
            Some(now + max_age(&message) + jitter)
        };
        self.all.get_mut(&id).expect("it is open").phase = Phase::Observing { due };
        if let Some(due) = due {
            layer.deadlines.insert((due, id), ());
        }
        layer.outputs.push(Output::Notification { handle, from, message });
        self.start_waiting(layer, from, now);
        None
    }
}

/// RFC 7252 s5.10.5: how long a response is fresh.
fn max_age(message: &Message) -> Duration {
    message
        .options
        .get_uint(OptionNumber::MAX_AGE)
        .map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(u64::from(seconds)))
}
