//! What comes for an open request beside its own response: notifications, and the answers of a group's members. The rest of
//! each is a transfer of its own.

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Message, OptionNumber};

use super::{Ask, Client, Role, transfer_limits};
use crate::PeerAddress;
use crate::blockwise::Transfer;
use crate::exchange::{Input, Name};
use crate::host::Transport;
use crate::host::exchange_layer::ExchangeLayer;

/// The first block of a message, or the whole of it, that belongs to an open request.
struct FirstBlock<P> {
    from: P,
    message: Message,
    role: Role,
    rtt: Duration,
}

impl<P: PeerAddress> Client<P> {
    /// The state of an observed resource, or its first block.
    pub(in crate::host) fn on_notification<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        first: Message,
        now: Instant,
    ) {
        if let Some(ask) = self.asks.get_mut(&inner) {
            ask.observation = Some(first.token.clone());
        }
        let (role, rtt) = (Role::Notification, Duration::ZERO);
        self.replace_older(layer, inner, from, role, now);
        self.resume(layer, inner, FirstBlock { from, message: first, role, rtt }, now);
    }

    /// A newer state of `from` replaces what is still coming in of an older one.
    fn replace_older<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        role: Role,
        now: Instant,
    ) {
        let name = self.name(inner);
        let is_state =
            |one: Role| one == role || (one == Role::Afresh && role == Role::Notification);
        let is_older = |ask: &Ask<P>| ask.name == name && is_state(ask.role) && ask.peer == from;
        let older = self.asks.iter().find(|(_, ask)| is_older(ask));
        if let Some(handle) = older.map(|(inner, _)| *inner) {
            self.asks.remove(&handle);
            // A request that is cancelled is not answered, so it cannot be refused.
            let _always_accepted = layer.transport.handle(now, Input::Cancel { handle });
        }
    }

    /// The answer of a group's member, or its first block: the rest is asked for by unicast.
    pub(in crate::host) fn on_group_response<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        first: Message,
        rtt: Duration,
        now: Instant,
    ) {
        let role = Role::Member;
        if first.options.get(OptionNumber::OBSERVE).is_some() {
            if let Some(ask) = self.asks.get_mut(&inner) {
                ask.observation = Some(first.token.clone());
            }
            self.replace_older(layer, inner, from, role, now);
        }
        self.resume(layer, inner, FirstBlock { from, message: first, role, rtt }, now);
    }

    /// Goes on from the first block of what belongs to an open request.
    fn resume<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        first: FirstBlock<P>,
        now: Instant,
    ) {
        let FirstBlock { from, message, role, rtt } = first;
        let limits = transfer_limits(layer, from);
        let Some(ask) = self.asks.get(&inner) else { return };
        let Some(request) = ask.transfer.as_ref().map(Transfer::whole_request) else { return };
        let (request, name) = (request.clone(), ask.name);
        let (transfer, progress) = Transfer::resume(request, limits, message);
        let started = Some(now);
        let part = Ask { transfer: Some(transfer), started, ..Ask::new(from, name, role) };
        let part = self.open(layer, part);
        self.on_progress(layer, part, from, progress, rtt, now);
    }
}
