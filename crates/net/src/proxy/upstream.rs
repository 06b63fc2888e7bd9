//! The origins of a proxy, asked over every transport as their client.

use lowmesh_coap::params::{ACK_DELAY, OPEN_MAX_LIMIT};
use lowmesh_coap::{Output, RequestTemplate};
use lowmesh_units::Duration;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use super::gate::Gate;
use super::limits::{ProxyError, ProxyLimits};
use super::queue::{Asker, Bounds, Line, NoPlace, Place, Queue};
use super::refusal::Refusal;
use crate::client::{Builder, Client, Exchange, Item, origin};
use crate::metrics::{Kind, Report};
use crate::params::{HANDSHAKE_MAX, PROXY_ANSWER_WAIT, PROXY_ENDING_DIVISOR, PROXY_QUEUE_WAIT};
use crate::peer::Peer;

/// A request on its way to its origin.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) asker: Asker,
    pub(super) target: Uri,
    /// The operator has chosen the target.
    pub(super) chosen: bool,
    /// Whose resource it is, in the tables of the proxy.
    pub(super) origin: String,
    /// What clients know the target as.
    pub(super) name: String,
    pub(super) request: RequestTemplate,
}

/// The path to all origins.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    builder: Builder,
    client: Client,
    queue: Queue,
    pub(super) gate: Gate,
    /// Requests at once, with those that have just lost their places.
    places: usize,
}

/// A request that has left, or is over already.
#[derive(Debug)]
pub(super) struct Begun {
    exchange: Exchange,
    first: Option<Item>,
    place: Option<Place>,
    /// What its client gets if another takes its place.
    displaced: Refusal,
    /// After the exchange, so that the connection is dropped before its share.
    line: Option<Line>,
}

/// Waits until a place or a line is another's.
async fn lost(place: Option<&Place>, line: Option<&Line>) {
    let place = async {
        match place {
            Some(place) => place.lost().await,
            None => std::future::pending().await,
        }
    };
    let line = async {
        match line {
            Some(line) => line.lost().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = place => {}
        () = line => {}
    }
}

impl Upstream {
    pub(super) fn open(limits: ProxyLimits) -> Result<Self, ProxyError> {
        let ProxyLimits { access, mut datagrams, mut connection, host, tls, .. } = limits;
        let bounds = Bounds {
            requests: limits.pending_max,
            origin: limits.pending_per_origin,
            connections: limits.connections_max,
            window: datagrams.congestion.window.limits().initial as usize,
            ack_delay: ACK_DELAY,
        };
        // What is bounded here has room below.
        let ending = |places: usize| places.saturating_add(places / PROXY_ENDING_DIVISOR);
        let open = ending(limits.pending_max).saturating_add(limits.observations_max);
        datagrams.open_max = datagrams.open_max.max(open).min(OPEN_MAX_LIMIT);
        // RFC 8613 s2: the option is safe to forward, whatever it protects.
        datagrams.extensions.push(OptionNumber::OSCORE);
        connection.extensions.push(OptionNumber::OSCORE);
        // RFC 7252 s5.4.1: the options of responses are judged by the rules of proxies.
        (datagrams.proxy, connection.proxy) = (true, true);
        let builder = Client::builder()
            .datagrams(datagrams)
            .connection(connection)
            .limits(host)
            .connections_max(ending(limits.connections_max));
        let builder = match tls {
            Some(authorities) => builder.trust(authorities),
            None => builder,
        };
        let gate = Gate { access, ..Gate::default() };
        let client = builder.clone().build()?;
        let (queue, places) = (Queue::new(bounds), ending(limits.pending_max));
        Ok(Self { builder, client, queue, gate, places })
    }
    /// Its server acknowledges requests after so long.
    pub(super) const fn set_ack_delay(&mut self, ack_delay: Duration) {
        self.queue.set_ack_delay(ack_delay);
    }
    /// How many requests its server takes at once.
    pub(super) const fn places(&self) -> usize {
        self.places
    }
    /// The same with a key for DTLS.
    pub(super) fn with_key(self, identity: &[u8], key: &[u8]) -> Result<Self, ProxyError> {
        let builder = self.builder.key(identity, key);
        let client = builder.clone().build()?;
        Ok(Self { builder, client, ..self })
    }
    /// The origin's response, or what the client gets instead.
    pub(super) async fn ask(
        &self,
        asked: &Asked,
        request: RequestTemplate,
    ) -> Result<Message, Refusal> {
        let mut begun = self.begin(asked, request).await?;
        let answer = async {
            while let Some(item) = begun.next(&asked.name).await {
                match item? {
                    Output::Response { message, .. } => return Ok(message),
                    Output::Over { .. } => return Err(Refusal::silent(&asked.name)),
                    _ => {}
                }
            }
            Err(Refusal::new(Code::BAD_GATEWAY, format!("no answer from {}", asked.name)))
        };
        // RFC 7252 s5.7.1: when the request to the destination times out, 5.04 MUST be returned.
        let timely = tokio::time::timeout(PROXY_ANSWER_WAIT, answer).await;
        timely.unwrap_or_else(|_| Err(Refusal::silent(&asked.name)))
    }
    /// Has a request leave for its origin as soon as it is its turn.
    pub(super) async fn begin(
        &self,
        asked: &Asked,
        request: RequestTemplate,
    ) -> Result<Begun, Refusal> {
        let Asked { asker, target, chosen, name, .. } = asked;
        let (proven, method) = (asker.proven, request.code);
        // A server has one window, whether a client names it or it is the target of the reverse proxy.
        let window = origin(target);
        let place = self.queue.enter(*asker, &window, target.scheme.is_reliable());
        let (place, line) = place.map_err(|full| match full {
            NoPlace::Proxy => Refusal::busy("too many requests"),
            NoPlace::Origin => Refusal::busy(format!("too many requests wait for {name}")),
            NoPlace::Unproven => Refusal::unproven(),
        })?;
        let leave = async {
            let addresses = self.gate.pass(target, *chosen, name).await?;
            let _permit = tokio::select! {
                biased;
                permit = place.permit() => permit,
                () = place.out_of_patience(method) => return Err(Refusal::unproven()),
            };
            let asked = self.client.request(request.code, target).template(request);
            let begun = asked.at(addresses).within(HANDSHAKE_MAX).begin().await;
            let mut exchange = begun.map_err(|error| Refusal::instead(&error, name))?;
            // What has left, or failed, no longer stands in the queue of the endpoint.
            let first = match exchange.next().await {
                Some(Ok(Output::Started { .. })) => None,
                other => other,
            };
            // Before the next one may leave.
            place.sent();
            Ok((exchange, first))
        };
        let waited = tokio::select! {
            biased;
            // First: a request that has lost its place must not leave.
            () = lost(Some(&place), line.as_ref()) => {
                return Err(Refusal::displaced(proven || !place.may_ask(method)));
            }
            waited = tokio::time::timeout(PROXY_QUEUE_WAIT, leave) => waited,
        };
        let late = || {
            if !proven && place.may_ask(method) {
                return Refusal::unproven();
            }
            Refusal::busy(format!("requests before this one wait for {name}"))
        };
        let (exchange, first) = waited.unwrap_or_else(|_| Err(late()))?;
        let displaced = Refusal::displaced_after(asked.request.code, proven, name);
        Ok(Begun { exchange, first, place: Some(place), displaced, line })
    }
    /// How its sockets stand.
    pub(super) async fn reports(&self) -> Vec<Report> {
        let mut reports = self.client.reports().await;
        // The connections are counted that clients of the proxy have.
        reports.retain(|report| report.kind != Kind::Connection);
        for report in &mut reports {
            if let Kind::Endpoint { name, .. } = &mut report.kind {
                name.insert_str(0, "upstream ");
            }
        }
        reports
    }
}

impl Begun {
    /// What comes next of it. With the first answer its place is free, and its connection when it is
    /// dropped.
    pub(super) async fn next(&mut self, name: &str) -> Option<Result<Output<Peer>, Refusal>> {
        let item = if let Some(first) = self.first.take() {
            Some(first)
        } else {
            tokio::select! {
                biased;
                item = self.exchange.next() => item,
                () = lost(self.place.as_ref(), self.line.as_ref()) => {
                    return Some(Err(self.displaced.clone()));
                }
            }
        };
        match (&item, &self.place) {
            (Some(Ok(Output::Started { .. })), Some(place)) => place.sent(),
            (Some(Ok(Output::Acknowledged { .. })), Some(place)) => place.acknowledged(),
            (_, Some(_)) => {
                self.place = None;
                self.line.iter().for_each(Line::answered);
            }
            (_, None) => {}
        }
        Some(item?.map_err(|error| Refusal::instead(&error, name)))
    }
}
