//! Own requests to groups (RFC 7252 s8; RFC 10020 s3).
//!
//! ```text
//!             window opens         first answer                 wait is over
//!   Queued ---------------> Sent --------------> Acknowledged ---------------> over
//!                            |  wait is over          |  wait is over, it observes
//!                            +--> over                +--> Observing ----> cancelled
//! ```
//! NSTART counts for a group as for a peer (RFC 10020 s3.6): a request is outstanding until the first answer has come.

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Kind, Message, MessageId, OptionNumber, Token};

use super::exchange::{Expects, Outgoing, Phase, Role};
use super::group_members::Standing;
use super::message_layer::MessageLayer;
use super::outgoing::{NO_MESSAGE_ID, OwnExchanges, Wanted};
use crate::PeerAddress;
use crate::event::{Discard, Purpose, RequestTemplate};
use crate::exchange::{ExchangeId, Name, Output, Repetition};
use crate::observe::Place;
use crate::params::GROUP_REQUESTS_MAX;
use crate::rejection::{TOKEN_IN_USE, check_method, check_token};

/// A repetition of what is not open.
const NOT_OPEN: Rejected =
    Rejected::Gone { what: "request", why: "no request to a group is open under this name" };
/// A repetition of what has not left yet.
const NOT_SENT: Rejected = Rejected::WrongState {
    what: "request",
    why: "it waits for an earlier request to the same group (NSTART)",
};

impl<P: PeerAddress> OwnExchanges<P> {
    /// The application asks a group, once the window of the group lets it.
    pub(super) fn request_group(
        &mut self,
        layer: &mut MessageLayer<P>,
        group: P,
        template: RequestTemplate,
        wait: Duration,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, options, payload, token: chosen, .. } = template;
        check_method(code)?;
        let observes = Expects::of(code, &options) == Expects::Notifications(None);
        // RFC 7252 s8.1: such a request MUST be Non-confirmable.
        let kind = Kind::NonConfirmable;
        let holds_token = chosen.is_some();
        let token = match chosen {
            Some(token) => self.take_over_of_group(layer, group, token, now)?,
            // The octets are drawn when the request leaves; here only their number matters.
            None => Token::from_number(0, layer.config.token_len),
        };
        let asks_group = |one: &&Outgoing<P>| matches!(one.expects, Expects::Group { .. });
        if self.all.values().filter(asks_group).count() >= GROUP_REQUESTS_MAX {
            layer.outputs.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        let (role, expects) = (Role::Request, Expects::Group { wait, observes });
        let (peer, verified, registered) = (group, false, false);
        let wanted =
            Wanted { peer, message, role, expects, verified, registered, handle, holds_token };
        self.enqueue(layer, wanted, now)
    }

    /// Takes a token for a new request to a group. An observation of the same group that has it ends without a word: the
    /// new request speaks for it (RFC 10020 s3.7).
    fn take_over_of_group(
        &mut self,
        layer: &mut MessageLayer<P>,
        group: P,
        token: Token,
        now: Instant,
    ) -> Result<Token, Rejected> {
        check_token(&token)?;
        if let Some(id) = self.groups.by_token(&token) {
            let own = |one: &Outgoing<P>| {
                one.peer == group && matches!(one.expects, Expects::Group { observes: true, .. })
            };
            if !self.all.get(&id).is_some_and(own) {
                return Err(TOKEN_IN_USE);
            }
            self.close(layer, id, now);
            self.groups.reuse(&token);
        } else if layer.peers.have_token(&token) || self.groups.is_taken(&token, now) {
            return Err(TOKEN_IN_USE);
        }
        Ok(token)
    }

    /// The application sends a request to a group once more (RFC 10020 s3.1.3), and takes answers for `wait` from now on.
    pub(super) fn repeat_group(
        &mut self,
        layer: &mut MessageLayer<P>,
        handle: Name,
        repetition: Repetition,
        wait: Duration,
        now: Instant,
    ) -> Result<(), Rejected> {
        let named = |(_, one): &(&ExchangeId, &mut Outgoing<P>)| {
            one.handle == handle && matches!(one.expects, Expects::Group { .. })
        };
        let (id, exchange) = self.all.iter_mut().find(named).ok_or(NOT_OPEN)?;
        let peer = layer.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        if matches!(exchange.phase, Phase::Queued) {
            return Err(NOT_SENT);
        }
        if repetition == Repetition::NewMessage {
            if !peer.ids.reserve(now) {
                return Err(NO_MESSAGE_ID);
            }
            exchange.renumber(peer.ids.issue(now));
            self.members.ask_again(*id, now);
        }
        let mut copy = 1;
        if let Phase::Sent(transmission) | Phase::Acknowledged(transmission) = &mut exchange.phase {
            transmission.retransmissions = transmission.retransmissions.saturating_add(1);
            copy = transmission.retransmissions;
            layer.deadlines.remove(&(transmission.due, *id));
            transmission.due = transmission.due.max(now + wait);
            layer.deadlines.insert((transmission.due, *id), ());
        }
        let (to, bytes, purpose) = (exchange.peer, exchange.bytes.clone(), Purpose::Request);
        layer.outputs.push(Output::Send { to, bytes, handle, copy, purpose });
        Ok(())
    }

    /// A member has answered; the request stays open for the others.
    pub(super) fn on_group_response(
        &mut self,
        layer: &mut MessageLayer<P>,
        from: P,
        id: ExchangeId,
        message: Message,
        now: Instant,
    ) {
        let Some(exchange) = self.all.get_mut(&id) else { return };
        let Expects::Group { observes, .. } = exchange.expects else { return };
        // RFC 7641 s3.2: without the option, or with an error, the server keeps no observation.
        let sequence = message.options.get_uint(OptionNumber::OBSERVE);
        let sequence = sequence.filter(|_| observes && message.code.class() == Class::Success);
        let place = sequence.map(|sequence| Place { sequence, arrived: now });
        match self.members.take(id, from, place) {
            Standing::News => {}
            Standing::Stale => return layer.outputs.discard(from, Discard::Stale),
            Standing::Excess => return layer.outputs.discard(from, Discard::Overloaded),
        }
        let ((rtt, _), handle, group) =
            (exchange.phase.effort(now), exchange.handle, exchange.peer);
        if let Phase::Sent(transmission) = exchange.phase {
            exchange.phase = Phase::Acknowledged(transmission);
            let peer = layer.peers.get_mut(&group).expect("a peer with exchanges is kept");
            peer.discarded(id, now);
        }
        layer.outputs.push(Output::GroupResponse { handle, from, message, rtt });
        self.start_waiting(layer, group, now);
    }

    /// Whether an exchange is a request to a group.
    pub(super) fn is_of_group(&self, id: ExchangeId) -> bool {
        self.all.get(&id).is_some_and(|one| matches!(one.expects, Expects::Group { .. }))
    }
    /// The wait for the members has passed: an observation goes on, any other request is over.
    pub(super) fn on_group_wait_over(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        now: Instant,
    ) {
        let Some(exchange) = self.all.get(&id) else { return };
        let (group, octets) = (exchange.peer, exchange.bytes.len() as u64);
        if let (Phase::Sent(transmission), Some(rate)) =
            (exchange.phase, layer.config.group_probing_rate)
        {
            // RFC 10020 s3.6 and RFC 7252 s4.7: to a group that does not answer, PROBING_RATE on average.
            let pause = Duration::from_secs(octets / u64::from(rate.max(1)));
            let peer = layer.peers.get_mut(&group).expect("a peer with exchanges is kept");
            peer.hold_until(transmission.started + pause);
        }
        if !matches!(exchange.expects, Expects::Group { observes: true, .. }) {
            return self.finish(layer, id, now);
        }
        self.release(layer, id, now);
        self.all.get_mut(&id).expect("just found").phase = Phase::Observing { due: None };
        self.start_waiting(layer, group, now);
    }
}
