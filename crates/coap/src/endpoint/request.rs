//! Requests and pings of the application (RFC 7252 s4.3, s5.2).

use lowmesh_machine::Rejected;
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, Token};

use super::exchange::{Expects, Outgoing, Role};
use super::message_layer::MessageLayer;
use super::outgoing::{OwnExchanges, Wanted};
use crate::PeerAddress;
use crate::event::RequestTemplate;
use crate::exchange::Name;
use crate::rejection::{TOKEN_IN_USE, check_method, check_token};

impl<P: PeerAddress> OwnExchanges<P> {
    /// The application asks; if `verified`, it says which response counts.
    pub(super) fn request(
        &mut self,
        layer: &mut MessageLayer<P>,
        peer: P,
        template: RequestTemplate,
        verified: bool,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, confirmable, options, payload, token, .. } = template;
        check_method(code)?;
        let expects = Expects::of(code, &options);
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        let holds_token = token.is_some();
        let (token, registered) = match token {
            Some(token) => self.take_over(layer, peer, token, now)?,
            // The octets are drawn when the request leaves; here only their number matters.
            None => (Token::from_number(0, layer.config.token_len), false),
        };
        let message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        let role = Role::Request;
        let wanted =
            Wanted { peer, message, role, expects, verified, registered, handle, holds_token };
        self.enqueue(layer, wanted, now)
    }

    /// Takes a token for a new request. An observation that has it ends without a word: the new
    /// request speaks for it (RFC 7641 s3.6). True too if that has had a notification.
    fn take_over(
        &mut self,
        layer: &mut MessageLayer<P>,
        peer: P,
        token: Token,
        now: Instant,
    ) -> Result<(Token, bool), Rejected> {
        check_token(&token)?;
        let mut registered = false;
        if self.groups.is_taken(&token, now) {
            return Err(TOKEN_IN_USE);
        }
        if let Some(id) = layer.peers.get(&peer).and_then(|peer| peer.by_token(&token)) {
            let observes = |one: &Outgoing<P>| matches!(one.expects, Expects::Notifications(_));
            if !self.all.get(&id).is_some_and(observes) {
                return Err(TOKEN_IN_USE);
            }
            registered = self.close(layer, id, now).is_some_and(|before| before.registered);
        }
        Ok((token, registered))
    }

    /// The application wants to know whether a peer is there.
    pub(super) fn ping(
        &mut self,
        layer: &mut MessageLayer<P>,
        peer: P,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let message = Message::new(Kind::Confirmable, Code::EMPTY, MessageId(0));
        let (role, expects) = (Role::Ping, Expects::One);
        let (verified, registered, holds_token) = (false, false, false);
        let wanted =
            Wanted { peer, message, role, expects, verified, registered, handle, holds_token };
        self.enqueue(layer, wanted, now)
    }
}
