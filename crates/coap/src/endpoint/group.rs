//! Requests by multicast, on both sides (RFC 7252 s8).

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Kind, Message, MessageId, MessageView, Token};

use super::Endpoint;
use super::outgoing::{NO_MESSAGE_ID, NOT_A_METHOD, TOO_LONG, free_token};
use crate::PeerAddress;
use crate::chosen_token::{TOKEN_IN_USE, check_len};
use crate::event::{Discard, ExchangeId, Output, Purpose, RequestTemplate, ResponseTemplate};
use crate::exchange::{Answer, Expects, Outgoing, Phase, Role, Transmission};
use crate::params::GROUP_REQUESTS_MAX;

impl<P: PeerAddress> Endpoint<P> {
    /// The application asks a group. The window of RFC 7252 s4.7 is about one peer and has no say.
    pub(super) fn request_group(
        &mut self,
        group: P,
        template: RequestTemplate,
        wait: Duration,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, options, payload, token: chosen, .. } = template;
        if !code.is_request() {
            return Err(NOT_A_METHOD);
        }
        // RFC 7252 s8.1: such a request MUST be Non-confirmable.
        let kind = Kind::NonConfirmable;
        if let Some(token) = &chosen {
            check_len(token)?;
            if self.has_token(token) {
                return Err(TOKEN_IN_USE);
            }
        }
        // Unless it is chosen, only the number of its octets is right yet.
        let token = chosen.clone().unwrap_or_else(|| Token::from_number(0, self.config.token_len));
        let mut message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        if message.encoded_len() > self.config.message_len_max {
            return Err(TOO_LONG);
        }
        if self.open() >= self.config.open_max
            || self.groups.len() >= GROUP_REQUESTS_MAX
            || !self.admit(group, now)
        {
            self.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let id = self.next_id();
        let token = chosen.unwrap_or_else(|| self.free_group_token());
        let peer = self.peers.get_mut(&group).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        message.message_id = peer.ids.issue(now);
        message.token = token.clone();
        peer.hold_token(token.clone(), id);
        self.groups.push((token.clone(), id));
        let due = now + wait;
        let transmission =
            Transmission { started: now, initial: wait, rto: wait, retransmissions: 0, due };
        let bytes = message.to_vec();
        let outgoing = Outgoing {
            peer: group,
            handle,
            token,
            kind,
            role: Role::Request,
            expects: Expects::Group,
            verified: false,
            bytes: bytes.clone(),
            phase: Phase::Acknowledged(transmission),
        };
        self.outgoing.insert(id, outgoing);
        self.deadlines.insert((due, id), ());
        let purpose = Purpose::Request;
        self.outbox.push(Output::Started { handle, rto: wait, at: now });
        self.outbox.push(Output::Send { to: group, bytes, handle, copy: 0, purpose });
        Ok(())
    }

    /// RFC 7252 s8.2: a token in use in a multicast request is not reused for another request, to
    /// whomever, since its answers may come from anyone.
    fn free_group_token(&mut self) -> Token {
        loop {
            let len = self.config.token_len;
            let token = Token::from_number(self.rng.next_u64(), len);
            if !self.has_token(&token) {
                return token;
            }
        }
    }
    /// True if a request to anybody has the token.
    fn has_token(&self, token: &Token) -> bool {
        self.peers.iter().any(|(_, one)| one.by_token(token).is_some())
    }

    /// A token for a request to `peer` that no request to the same peer or to a group has.
    pub(super) fn free_token(&mut self, peer: P, len: usize) -> Token {
        let number = self.rng.next_u64();
        let taken = |token: &Token| {
            self.peers.get(&peer).is_some_and(|one| one.by_token(token).is_some())
                || self.groups.iter().any(|(one, _)| one == token)
        };
        free_token(number, len, taken)
    }

    /// The request to a group that a response of anyone may belong to.
    pub(super) fn group_by_token(&self, token: &Token) -> Option<ExchangeId> {
        self.groups.iter().find(|(one, _)| one == token).map(|(_, id)| *id)
    }

    /// A member has answered; the request stays open for the others.
    pub(super) fn on_group_response(
        &mut self,
        from: P,
        id: ExchangeId,
        message: Message,
        now: Instant,
    ) {
        let Some(exchange) = self.outgoing.get(&id) else { return };
        let Phase::Acknowledged(Transmission { started, .. }) = exchange.phase else { return };
        let (handle, rtt) = (exchange.handle, now.since(started));
        self.outbox.push(Output::GroupResponse { handle, from, message, rtt });
    }

    /// A datagram came to a group's address. Nothing but a NON request may do so, and nothing that
    /// is wrong with it is answered: RFC 7252 s8.1 forbids RST.
    pub(super) fn on_group_datagram(&mut self, from: P, bytes: &[u8], now: Instant) {
        let view = match MessageView::parse(bytes) {
            Ok(view) => view,
            Err(error) => return self.discard(from, Discard::Malformed(error)),
        };
        match (view.kind(), view.code().class()) {
            (Kind::NonConfirmable, Class::Request)
                if self.admit_with(from, self.worth(bytes.len()), now) =>
            {
                self.on_request(from, &view, true, now);
            }
            (Kind::NonConfirmable, Class::Request) => self.discard(from, Discard::Overloaded),
            _ => self.discard(from, Discard::Misplaced),
        }
    }

    /// The application has answered a multicast request: the answer leaves after a random part of
    /// the leisure.
    pub(super) fn hold(
        &mut self,
        id: ExchangeId,
        response: ResponseTemplate,
        handle: Handle,
        now: Instant,
    ) {
        // RFC 7252 s8.2: the server picks a random point of time within the leisure period.
        let due = now + self.rng.duration(Duration::ZERO, self.config.leisure);
        let Some(exchange) = self.incoming.get_mut(&id) else { return };
        exchange.answer = Answer::Leisure(response, handle);
        let before = core::mem::replace(&mut exchange.due, due);
        self.deadlines.remove(&(before, id));
        self.deadlines.insert((due, id), ());
    }
}
