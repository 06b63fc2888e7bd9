//! Own requests by multicast (RFC 7252 s8).

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Kind, Message, MessageId, Token};

use super::exchange::{Expects, Outgoing, Phase, Role, Transmission};
use super::message_layer::MessageLayer;
use super::outgoing::{NO_MESSAGE_ID, OwnExchanges, TOO_LONG};
use crate::PeerAddress;
use crate::event::{Purpose, RequestTemplate};
use crate::exchange::{ExchangeId, Name, Output};
use crate::params::GROUP_REQUESTS_MAX;
use crate::rejection::{TOKEN_IN_USE, check_method, check_token};

impl<P: PeerAddress> OwnExchanges<P> {
    /// The application asks a group. The window of RFC 7252 s4.7 is about one peer and has no say.
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
        // RFC 7252 s8.1: such a request MUST be Non-confirmable.
        let kind = Kind::NonConfirmable;
        if let Some(token) = &chosen {
            check_token(token)?;
            if layer.peers.have_token(token) {
                return Err(TOKEN_IN_USE);
            }
        }
        // Unless it is chosen, only the number of its octets is right yet.
        let token = chosen.clone().unwrap_or_else(|| Token::from_number(0, layer.config.token_len));
        let mut message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        if message.encoded_len() > layer.config.message_len_max {
            return Err(TOO_LONG);
        }
        if self.open() >= layer.config.open_max
            || self.groups.len() >= GROUP_REQUESTS_MAX
            || !layer.admit(group, now)
        {
            layer.outputs.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let id = layer.ids.next();
        let token = chosen.unwrap_or_else(|| free_group_token(layer));
        let peer = layer.peers.get_mut(&group).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        message.message_id = peer.ids.issue(now);
        message.token = token.clone();
        peer.hold_token(token.clone(), id);
        self.groups.add(token.clone(), id);
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
        self.all.insert(id, outgoing);
        layer.deadlines.insert((due, id), ());
        let purpose = Purpose::Request;
        layer.outputs.push(Output::Started { handle, rto: wait, at: now });
        layer.outputs.push(Output::Send { to: group, bytes, handle, copy: 0, purpose });
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
        let Some(exchange) = self.all.get(&id) else { return };
        let Phase::Acknowledged(Transmission { started, .. }) = exchange.phase else { return };
        let (handle, rtt) = (exchange.handle, now.since(started));
        layer.outputs.push(Output::GroupResponse { handle, from, message, rtt });
    }
}

/// RFC 7252 s8.2: a token in use in a multicast request is not reused for another request to any peer, since its answers
/// may come from any address.
fn free_group_token<P: PeerAddress>(layer: &mut MessageLayer<P>) -> Token {
    loop {
        let token = Token::from_number(layer.rng.next_u64(), layer.config.token_len);
        if !layer.peers.have_token(&token) {
            return token;
        }
    }
}
