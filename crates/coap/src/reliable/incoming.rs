//! Requests of peers on connections, until the application has answered, and notifications (RFC 8323 s3.3, s7).

use alloc::collections::BTreeMap;

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Token;
use lowmesh_wire::coap::stream::{StreamMessage, StreamView};

use super::connection_layer::ConnectionLayer;
use super::message::{TOO_LONG, message};
use crate::PeerAddress;
use crate::event::{Discard, Purpose, ResponseTemplate};
use crate::exchange::{ExchangeId, Name, Output};
use crate::no_response::Unwanted;
use crate::rejection::{ANSWERED, check_response};

/// A request of a peer that the application has not answered.
#[derive(Debug)]
struct Asked<P> {
    peer: P,
    token: Token,
    unwanted: Unwanted,
}

/// Requests of peers that the application has not answered. What ends one returns its peer, whose connection may wait for
/// that.
#[derive(Debug)]
pub(super) struct Requests<P>(BTreeMap<ExchangeId, Asked<P>>);

impl<P: PeerAddress> Requests<P> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether a request can still be answered.
    pub(super) fn contains(&self, exchange: ExchangeId) -> bool {
        self.0.contains_key(&exchange)
    }
    /// Whether a request on this connection is not answered.
    pub(super) fn are_open(&self, peer: P) -> bool {
        self.0.values().any(|asked| asked.peer == peer)
    }
    /// A connection is over: its requests cannot be answered.
    pub(super) fn end(&mut self, peer: P) {
        self.0.retain(|_, asked| asked.peer != peer);
    }

    /// A request has come.
    pub(super) fn on_request(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        from: P,
        view: &StreamView<'_>,
    ) {
        let recognition = layer.understanding().of_request(view.options());
        let token = view.token();
        if let Some(number) = recognition.critical {
            layer.outputs.discard(from, Discard::CriticalOption(number));
        }
        // RFC 7252 s5.4.1: an unknown critical option is answered as in a CON request.
        let refused = layer.understanding().refusal(view.options(), recognition, token.len());
        let refused = refused.or_else(|| {
            let busy = self.is_busy(layer, from).then(ResponseTemplate::busy)?;
            layer.outputs.discard(from, Discard::Overloaded);
            Some(busy)
        });
        // Over a reliable transport the client would wait in vain for a request that is dropped.
        if let Some(ResponseTemplate { code, options, payload, .. }) = refused {
            let answer = StreamMessage { code, token, options, payload };
            return layer.send(from, &answer, Name::NONE, Purpose::Response);
        }
        if let Some(connection) = layer.open.get_mut(&from) {
            connection.incoming += 1;
        }
        let exchange = layer.ids.next();
        let unwanted = Unwanted::from_options(view.options()).unwrap_or(Unwanted::NOTHING);
        self.0.insert(exchange, Asked { peer: from, token, unwanted });
        let message = message(view, recognition);
        layer.outputs.push(Output::Request { exchange, from, message, multicast: false });
    }

    /// True if all places for unanswered requests are taken, or the connections of this source have their share
    /// of them. A connection that is alone may have all.
    fn is_busy(&self, layer: &ConnectionLayer<P>, from: P) -> bool {
        let (taken, share) = (self.0.len(), layer.limits.incoming_per_source);
        if taken >= layer.limits.incoming_max {
            return true;
        }
        !layer.is_alone() && taken >= share && layer.incoming_of_source(from) >= share
    }

    /// The application answers.
    pub(super) fn respond(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Name,
    ) -> Result<P, Rejected> {
        check_response("response", response.code)?;
        let Some(asked) = self.0.get(&exchange) else { return Err(ANSWERED) };
        let (peer, unwanted) = (asked.peer, asked.unwanted);
        let ResponseTemplate { code, options, payload, .. } = response;
        let message = StreamMessage { code, token: asked.token.clone(), options, payload };
        if !layer.fits(peer, &message) {
            return Err(TOO_LONG);
        }
        self.decline(layer, exchange)?;
        if !unwanted.contains(code) {
            layer.send(peer, &message, handle, Purpose::Response);
        }
        Ok(peer)
    }

    /// The application leaves a request without response.
    pub(super) fn decline(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        exchange: ExchangeId,
    ) -> Result<P, Rejected> {
        let Some(asked) = self.0.remove(&exchange) else { return Err(ANSWERED) };
        if let Some(connection) = layer.open.get_mut(&asked.peer) {
            connection.incoming -= 1;
        }
        Ok(asked.peer)
    }
}

/// The application tells an observer. What a connection takes arrives, so a notification that
/// would be a CON has as good as been acknowledged.
pub(super) fn notify<P: PeerAddress>(
    layer: &mut ConnectionLayer<P>,
    peer: P,
    token: Token,
    response: ResponseTemplate,
    confirmable: bool,
    handle: Name,
) -> Result<(), Rejected> {
    let ResponseTemplate { code, options, payload, .. } = response;
    check_response("response", code)?;
    let message = StreamMessage { code, token, options, payload };
    if !layer.open.contains_key(&peer) {
        layer.outputs.fail(handle, DropReason::NoRoute);
        return Ok(());
    }
    if !layer.fits(peer, &message) {
        return Err(TOO_LONG);
    }
    layer.send(peer, &message, handle, Purpose::Response);
    if confirmable {
        let rtt = Duration::ZERO;
        layer.outputs.push(Output::Acknowledged { handle, rtt, retransmissions: 0 });
    }
    Ok(())
}
